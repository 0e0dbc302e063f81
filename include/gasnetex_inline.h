/* Inline paths in front of puts, gets, atomics and waits of GASNet-EX, included by gasnetex.h. As
   in gasnet_inline.h, an operation in mapped memory is done inline and is complete. They serve the
   team of all ranks and pairs of endpoints, whose ranks are those of the job. A name without
   parentheses is the function. */
#ifndef GASNETEX_INLINE_H
#define GASNETEX_INLINE_H

#include "gasnetex.h"
#include "gasnet_direct.h"

/* The team of gex_Client_Init is 8, the pair of endpoints 0 is 1, and other teams and pairs are
   greater. With debug checks every call goes to the library, which rejects other objects. */
#define GASNETI_JOB_RANKS(tm) GASNETT_PREDICT_TRUE((uintptr_t)(tm) <= 8)

/* A put that is complete: so is its local side, if the client wants an event for that. */
GASNETI_ALWAYS_INLINE gex_Event_t gasneti_complete(gex_Event_t *lc_opt) {
  if ((uintptr_t)lc_opt > (uintptr_t)GEX_EVENT_GROUP) *lc_opt = GEX_EVENT_INVALID;
  return GEX_EVENT_INVALID;
}

/* Whether lc_opt is a value that a put accepts; the library rejects others. Constants cost
   nothing. Other values are looked at only for the implicit put. */
#define GASNETI_LC_OF_PUT_NBI(lc_opt) \
  GASNETT_PREDICT_TRUE((uintptr_t)(lc_opt) - 1 < (uintptr_t)GEX_EVENT_GROUP)
#define GASNETI_LC_OF_PUT_NB(lc_opt) (!gasnett_constant_p(lc_opt) || ((lc_opt) && (lc_opt) != GEX_EVENT_GROUP))

GASNETI_OUTLINE int gasneti_PutBlocking_from(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t n,
    gex_Flags_t flags GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gex_RMA_PutBlocking(tm, rank, dest, src, n, flags);
}
GASNETI_ALWAYS_INLINE int gasneti_PutBlocking_inline(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src,
    size_t n, gex_Flags_t flags GASNETI_CALLER) {
  if (GASNETI_JOB_RANKS(tm) && gasneti_put_here(rank, dest, src, n)) return 0;
  return GASNETI_WATCHED ? gasneti_PutBlocking_from(tm, rank, dest, src, n, flags, file, line)
                         : gex_RMA_PutBlocking(tm, rank, dest, src, n, flags);
}
#define gex_RMA_PutBlocking(tm, rank, dest, src, n, flags) \
  gasneti_PutBlocking_inline(tm, rank, dest, src, n, flags, __FILE__, __LINE__)

GASNETI_OUTLINE int gasneti_PutNBI_from(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t n,
    gex_Event_t *lc_opt, gex_Flags_t flags GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gex_RMA_PutNBI(tm, rank, dest, src, n, lc_opt, flags);
}
GASNETI_ALWAYS_INLINE int gasneti_PutNBI_inline(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src,
    size_t n, gex_Event_t *lc_opt, gex_Flags_t flags GASNETI_CALLER) {
  if (GASNETI_LC_OF_PUT_NBI(lc_opt) && GASNETI_JOB_RANKS(tm) && gasneti_put_here(rank, dest, src, n)) return 0;
  return GASNETI_WATCHED ? gasneti_PutNBI_from(tm, rank, dest, src, n, lc_opt, flags, file, line)
                         : gex_RMA_PutNBI(tm, rank, dest, src, n, lc_opt, flags);
}
#define gex_RMA_PutNBI(tm, rank, dest, src, n, lc_opt, flags) \
  gasneti_PutNBI_inline(tm, rank, dest, src, n, lc_opt, flags, __FILE__, __LINE__)

GASNETI_OUTLINE gex_Event_t gasneti_PutNB_from(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t n,
    gex_Event_t *lc_opt, gex_Flags_t flags GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gex_RMA_PutNB(tm, rank, dest, src, n, lc_opt, flags);
}
GASNETI_MUST_SYNC GASNETI_ALWAYS_INLINE gex_Event_t gasneti_PutNB_inline(gex_TM_t tm, gex_Rank_t rank, void *dest,
    const void *src, size_t n, gex_Event_t *lc_opt, gex_Flags_t flags GASNETI_CALLER) {
  if (GASNETI_LC_OF_PUT_NB(lc_opt) && GASNETI_JOB_RANKS(tm) && gasneti_put_here(rank, dest, src, n))
    return gasneti_complete(lc_opt);
  return GASNETI_WATCHED ? gasneti_PutNB_from(tm, rank, dest, src, n, lc_opt, flags, file, line)
                         : gex_RMA_PutNB(tm, rank, dest, src, n, lc_opt, flags);
}
#define gex_RMA_PutNB(tm, rank, dest, src, n, lc_opt, flags) \
  gasneti_PutNB_inline(tm, rank, dest, src, n, lc_opt, flags, __FILE__, __LINE__)

GASNETI_OUTLINE int gasneti_GetBlocking_from(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t n,
    gex_Flags_t flags GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gex_RMA_GetBlocking(tm, dest, rank, src, n, flags);
}
GASNETI_ALWAYS_INLINE int gasneti_GetBlocking_inline(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t n,
    gex_Flags_t flags GASNETI_CALLER) {
  if (GASNETI_JOB_RANKS(tm) && gasneti_get_here(dest, rank, src, n)) return 0;
  return GASNETI_WATCHED ? gasneti_GetBlocking_from(tm, dest, rank, src, n, flags, file, line)
                         : gex_RMA_GetBlocking(tm, dest, rank, src, n, flags);
}
#define gex_RMA_GetBlocking(tm, dest, rank, src, n, flags) \
  gasneti_GetBlocking_inline(tm, dest, rank, src, n, flags, __FILE__, __LINE__)

GASNETI_OUTLINE int gasneti_GetNBI_from(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t n,
    gex_Flags_t flags GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gex_RMA_GetNBI(tm, dest, rank, src, n, flags);
}
GASNETI_ALWAYS_INLINE int gasneti_GetNBI_inline(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t n,
    gex_Flags_t flags GASNETI_CALLER) {
  if (GASNETI_JOB_RANKS(tm) && gasneti_get_here(dest, rank, src, n)) return 0;
  return GASNETI_WATCHED ? gasneti_GetNBI_from(tm, dest, rank, src, n, flags, file, line)
                         : gex_RMA_GetNBI(tm, dest, rank, src, n, flags);
}
#define gex_RMA_GetNBI(tm, dest, rank, src, n, flags) \
  gasneti_GetNBI_inline(tm, dest, rank, src, n, flags, __FILE__, __LINE__)

GASNETI_OUTLINE gex_Event_t gasneti_GetNB_from(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t n,
    gex_Flags_t flags GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gex_RMA_GetNB(tm, dest, rank, src, n, flags);
}
GASNETI_MUST_SYNC GASNETI_ALWAYS_INLINE gex_Event_t gasneti_GetNB_inline(gex_TM_t tm, void *dest, gex_Rank_t rank,
    void *src, size_t n, gex_Flags_t flags GASNETI_CALLER) {
  if (GASNETI_JOB_RANKS(tm) && gasneti_get_here(dest, rank, src, n)) return GEX_EVENT_INVALID;
  return GASNETI_WATCHED ? gasneti_GetNB_from(tm, dest, rank, src, n, flags, file, line)
                         : gex_RMA_GetNB(tm, dest, rank, src, n, flags);
}
#define gex_RMA_GetNB(tm, dest, rank, src, n, flags) \
  gasneti_GetNB_inline(tm, dest, rank, src, n, flags, __FILE__, __LINE__)

GASNETI_OUTLINE int gasneti_PutBlockingVal_from(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
    size_t n, gex_Flags_t flags GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gex_RMA_PutBlockingVal(tm, rank, dest, value, n, flags);
}
GASNETI_ALWAYS_INLINE int gasneti_PutBlockingVal_inline(gex_TM_t tm, gex_Rank_t rank, void *dest,
    gex_RMA_Value_t value, size_t n, gex_Flags_t flags GASNETI_CALLER) {
  if (GASNETI_JOB_RANKS(tm) && gasneti_put_val_here(rank, dest, (uintptr_t)value, n)) return 0;
  return GASNETI_WATCHED ? gasneti_PutBlockingVal_from(tm, rank, dest, value, n, flags, file, line)
                         : gex_RMA_PutBlockingVal(tm, rank, dest, value, n, flags);
}
#define gex_RMA_PutBlockingVal(tm, rank, dest, value, n, flags) \
  gasneti_PutBlockingVal_inline(tm, rank, dest, value, n, flags, __FILE__, __LINE__)

GASNETI_OUTLINE int gasneti_PutNBIVal_from(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
    size_t n, gex_Flags_t flags GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gex_RMA_PutNBIVal(tm, rank, dest, value, n, flags);
}
GASNETI_ALWAYS_INLINE int gasneti_PutNBIVal_inline(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
    size_t n, gex_Flags_t flags GASNETI_CALLER) {
  if (GASNETI_JOB_RANKS(tm) && gasneti_put_val_here(rank, dest, (uintptr_t)value, n)) return 0;
  return GASNETI_WATCHED ? gasneti_PutNBIVal_from(tm, rank, dest, value, n, flags, file, line)
                         : gex_RMA_PutNBIVal(tm, rank, dest, value, n, flags);
}
#define gex_RMA_PutNBIVal(tm, rank, dest, value, n, flags) \
  gasneti_PutNBIVal_inline(tm, rank, dest, value, n, flags, __FILE__, __LINE__)

GASNETI_OUTLINE gex_Event_t gasneti_PutNBVal_from(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
    size_t n, gex_Flags_t flags GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  return gex_RMA_PutNBVal(tm, rank, dest, value, n, flags);
}
GASNETI_MUST_SYNC GASNETI_ALWAYS_INLINE gex_Event_t gasneti_PutNBVal_inline(gex_TM_t tm, gex_Rank_t rank,
    void *dest, gex_RMA_Value_t value, size_t n, gex_Flags_t flags GASNETI_CALLER) {
  if (GASNETI_JOB_RANKS(tm) && gasneti_put_val_here(rank, dest, (uintptr_t)value, n)) return GEX_EVENT_INVALID;
  return GASNETI_WATCHED ? gasneti_PutNBVal_from(tm, rank, dest, value, n, flags, file, line)
                         : gex_RMA_PutNBVal(tm, rank, dest, value, n, flags);
}
#define gex_RMA_PutNBVal(tm, rank, dest, value, n, flags) \
  gasneti_PutNBVal_inline(tm, rank, dest, value, n, flags, __FILE__, __LINE__)

/* Remote atomics in mapped memory, in domains over the team of all ranks, whose names end in 14.
   The operations are those of the library, with the same instructions, but a SET whose flags ask
   for no acquire is a plain store. An opcode that is not constant goes to the library. So does,
   with GEX_FLAG_AD_REL, an operation that may only load: earlier stores need a fence before it. */
#ifdef __GNUC__
/* A compare-and-swap that fails only loads, except on x86, where it is a full fence. */
#if PLATFORM_ARCH_X86_64 || PLATFORM_ARCH_X86
#define GASNETI_MAY_ONLY_LOAD(op) ((op) == GEX_OP_GET)
#else
#define GASNETI_MAY_ONLY_LOAD(op) ((op) == GEX_OP_GET || (op) == GEX_OP_CAS || (op) == GEX_OP_FCAS)
#endif
/* Such a domain, and an address that is aligned for the type. */
#define GASNETI_ALL_RANKS_DOMAIN(ad, addr, type) \
  GASNETT_PREDICT_TRUE(!((((uintptr_t)(ad) & 15) ^ 14) | ((uintptr_t)(addr) & (sizeof(type) - 1))))

/* Stores a value that is computed from the old one, for operations that processors lack. */
#define GASNETI_AD_COMPUTED(type, value)                                                                              \
  do {                                                                                                                \
    type computed;                                                                                                    \
    __atomic_load(at, &old, __ATOMIC_RELAXED);                                                                        \
    do computed = (value);                                                                                            \
    while (!__atomic_compare_exchange(at, &old, &computed, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));                   \
  } while (0)

#define GASNETI_AD_ON_INTEGERS(type, bits)                                                                            \
  case GEX_OP_ADD: case GEX_OP_FADD: old = __atomic_fetch_add(at, a, __ATOMIC_ACQ_REL); break;                        \
  case GEX_OP_SUB: case GEX_OP_FSUB: old = __atomic_fetch_sub(at, a, __ATOMIC_ACQ_REL); break;                        \
  case GEX_OP_INC: case GEX_OP_FINC: old = __atomic_fetch_add(at, 1, __ATOMIC_ACQ_REL); break;                        \
  case GEX_OP_DEC: case GEX_OP_FDEC: old = __atomic_fetch_sub(at, 1, __ATOMIC_ACQ_REL); break;                        \
  case GEX_OP_AND: case GEX_OP_FAND: old = __atomic_fetch_and(at, a, __ATOMIC_ACQ_REL); break;                        \
  case GEX_OP_OR: case GEX_OP_FOR: old = __atomic_fetch_or(at, a, __ATOMIC_ACQ_REL); break;                           \
  case GEX_OP_XOR: case GEX_OP_FXOR: old = __atomic_fetch_xor(at, a, __ATOMIC_ACQ_REL); break;                        \
  case GEX_OP_MULT: case GEX_OP_FMULT:                                                                                \
    GASNETI_AD_COMPUTED(type, (type)((uint##bits##_t)old * (uint##bits##_t)a)); break;                                \
  case GEX_OP_MIN: case GEX_OP_FMIN: GASNETI_AD_COMPUTED(type, old < a ? old : a); break;                             \
  case GEX_OP_MAX: case GEX_OP_FMAX: GASNETI_AD_COMPUTED(type, old > a ? old : a); break;
/* Where one of two is not a number, the minimum and the maximum are the other one. */
#define GASNETI_AD_ON_FLOATS(type, bits)                                                                              \
  case GEX_OP_ADD: case GEX_OP_FADD: GASNETI_AD_COMPUTED(type, old + a); break;                                       \
  case GEX_OP_SUB: case GEX_OP_FSUB: GASNETI_AD_COMPUTED(type, old - a); break;                                       \
  case GEX_OP_INC: case GEX_OP_FINC: GASNETI_AD_COMPUTED(type, old + 1); break;                                       \
  case GEX_OP_DEC: case GEX_OP_FDEC: GASNETI_AD_COMPUTED(type, old - 1); break;                                       \
  case GEX_OP_MULT: case GEX_OP_FMULT: GASNETI_AD_COMPUTED(type, old * a); break;                                     \
  case GEX_OP_MIN: case GEX_OP_FMIN: GASNETI_AD_COMPUTED(type, old < a || __builtin_isnan(a) ? old : a); break;       \
  case GEX_OP_MAX: case GEX_OP_FMAX: GASNETI_AD_COMPUTED(type, old > a || __builtin_isnan(a) ? old : a); break;

#define GASNETI_AD_INLINE(name, type, bits, kind)                                                                     \
  GASNETI_ALWAYS_INLINE int gasneti_atomic_here_##name(gex_AD_t ad, type *result_p, gex_Rank_t rank, void *addr,      \
      gex_OP_t op, type a, type b, gex_Flags_t flags) {                                                               \
    void *here;                                                                                                       \
    type old, *at;                                                                                                    \
    if (!gasnett_constant_p(op) || !GASNETI_ALL_RANKS_DOMAIN(ad, addr, type)) return 0;                               \
    if (GASNETI_MAY_ONLY_LOAD(op) && (flags & GEX_FLAG_AD_REL)) return 0;                                             \
    if (!gasneti_direct(rank, addr, sizeof(type), &here)) return 0;                                                   \
    at = (type *)here;                                                                                                \
    switch (op) {                                                                                                     \
      GASNETI_AD_ON_##kind(type, bits)                                                                                \
      case GEX_OP_SET:                                                                                                \
        old = a;                                                                                                      \
        if (flags & GEX_FLAG_AD_ACQ) __atomic_exchange(at, &a, &old, __ATOMIC_ACQ_REL);                               \
        else __atomic_store(at, &a, __ATOMIC_RELEASE);                                                                \
        break;                                                                                                        \
      case GEX_OP_SWAP: __atomic_exchange(at, &a, &old, __ATOMIC_ACQ_REL); break;                                     \
      case GEX_OP_CAS: case GEX_OP_FCAS:                                                                              \
        old = a;                                                                                                      \
        (void)__atomic_compare_exchange(at, &old, &b, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);                         \
        break;                                                                                                        \
      case GEX_OP_GET: __atomic_load(at, &old, __ATOMIC_ACQUIRE); break;                                              \
      default: return 0;                                                                                              \
    }                                                                                                                 \
    if (op >= GEX_OP_FAND) *result_p = old;                                                                           \
    return 1;                                                                                                         \
  }                                                                                                                   \
  GASNETI_MUST_SYNC GASNETI_OUTLINE gex_Event_t gasneti_AD_OpNB_from_##name(gex_AD_t ad, type *result_p,              \
      gex_Rank_t rank, void *addr, gex_OP_t op, type a, type b, gex_Flags_t flags GASNETI_CALLER) {                   \
    gasneti_trace_from(file, (unsigned int)line);                                                                     \
    return gex_AD_OpNB_##name(ad, result_p, rank, addr, op, a, b, flags);                                             \
  }                                                                                                                   \
  GASNETI_OUTLINE int gasneti_AD_OpNBI_from_##name(gex_AD_t ad, type *result_p, gex_Rank_t rank, void *addr,          \
      gex_OP_t op, type a, type b, gex_Flags_t flags GASNETI_CALLER) {                                                \
    gasneti_trace_from(file, (unsigned int)line);                                                                     \
    return gex_AD_OpNBI_##name(ad, result_p, rank, addr, op, a, b, flags);                                            \
  }                                                                                                                   \
  GASNETI_MUST_SYNC GASNETI_ALWAYS_INLINE gex_Event_t gasneti_AD_OpNB_##name(gex_AD_t ad, type *result_p,             \
      gex_Rank_t rank, void *addr, gex_OP_t op, type a, type b, gex_Flags_t flags GASNETI_CALLER) {                   \
    if (gasneti_atomic_here_##name(ad, result_p, rank, addr, op, a, b, flags)) return GEX_EVENT_INVALID;              \
    return GASNETI_WATCHED ? gasneti_AD_OpNB_from_##name(ad, result_p, rank, addr, op, a, b, flags, file, line)       \
                           : gex_AD_OpNB_##name(ad, result_p, rank, addr, op, a, b, flags);                           \
  }                                                                                                                   \
  GASNETI_ALWAYS_INLINE int gasneti_AD_OpNBI_##name(gex_AD_t ad, type *result_p, gex_Rank_t rank, void *addr,         \
      gex_OP_t op, type a, type b, gex_Flags_t flags GASNETI_CALLER) {                                                \
    if (gasneti_atomic_here_##name(ad, result_p, rank, addr, op, a, b, flags)) return 0;                              \
    return GASNETI_WATCHED ? gasneti_AD_OpNBI_from_##name(ad, result_p, rank, addr, op, a, b, flags, file, line)      \
                           : gex_AD_OpNBI_##name(ad, result_p, rank, addr, op, a, b, flags);                          \
  }
GASNETI_AD_INLINE(I32, int32_t, 32, INTEGERS)
GASNETI_AD_INLINE(U32, uint32_t, 32, INTEGERS)
GASNETI_AD_INLINE(I64, int64_t, 64, INTEGERS)
GASNETI_AD_INLINE(U64, uint64_t, 64, INTEGERS)
GASNETI_AD_INLINE(FLT, float, 32, FLOATS)
GASNETI_AD_INLINE(DBL, double, 64, FLOATS)
#define gex_AD_OpNB_I32(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNB_I32(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#define gex_AD_OpNB_U32(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNB_U32(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#define gex_AD_OpNB_I64(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNB_I64(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#define gex_AD_OpNB_U64(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNB_U64(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#define gex_AD_OpNBI_I32(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNBI_I32(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#define gex_AD_OpNBI_U32(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNBI_U32(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#define gex_AD_OpNBI_I64(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNBI_I64(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#define gex_AD_OpNBI_U64(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNBI_U64(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#define gex_AD_OpNB_FLT(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNB_FLT(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#define gex_AD_OpNBI_FLT(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNBI_FLT(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#define gex_AD_OpNB_DBL(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNB_DBL(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#define gex_AD_OpNBI_DBL(ad, result_p, rank, addr, op, a, b, flags) \
  gasneti_AD_OpNBI_DBL(ad, result_p, rank, addr, op, a, b, flags, __FILE__, __LINE__)
#endif

/* An event of an operation that was complete when it was initiated needs no sync. With debug
   checks calls return no such event, and a wait for the constant GEX_EVENT_INVALID goes to the
   library. */
GASNETI_OUTLINE void gasneti_Event_Wait_from(gex_Event_t event GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gex_Event_Wait(event);
}
GASNETI_ALWAYS_INLINE void gasneti_Event_Wait_inline(gex_Event_t event GASNETI_CALLER) {
  int is_constant = gasneti_constant_handle((uintptr_t)event);
  if (event != GEX_EVENT_INVALID || (is_constant && !gasneti_abi.implicit))
    (GASNETI_WATCHED ? gasneti_Event_Wait_from(event, file, line) : gex_Event_Wait(event));
}
GASNETI_OUTLINE void gasneti_NBI_Wait_from(gex_EC_t event_mask, gex_Flags_t flags GASNETI_CALLER) {
  gasneti_trace_from(file, (unsigned int)line);
  gex_NBI_Wait(event_mask, flags);
}
GASNETI_ALWAYS_INLINE void gasneti_NBI_Wait_inline(gex_EC_t event_mask, gex_Flags_t flags GASNETI_CALLER) {
  if (!gasneti_implicit_done())
    (GASNETI_WATCHED ? gasneti_NBI_Wait_from(event_mask, flags, file, line) : gex_NBI_Wait(event_mask, flags));
}
#define gex_Event_Wait(event) gasneti_Event_Wait_inline(event, __FILE__, __LINE__)
#define gex_NBI_Wait(event_mask, flags) gasneti_NBI_Wait_inline(event_mask, flags, __FILE__, __LINE__)

#endif
