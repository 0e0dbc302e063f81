/* Memory barriers and atomic operations of the tools interface, inline, on the compiler's __atomic
   builtins.

   Six families have the same ten operations: {atomic, atomic32, atomic64} and their strong forms.
   The last argument of an operation is a set of GASNETT_ATOMIC_* fences. Addition and subtraction
   return the new value, swap the old one. An object has the size of its number and may be laid
   over a float, double or int. */
#ifndef GASNET_ATOMICS_H
#define GASNET_ATOMICS_H

#include "gasnet_basic.h"

/* Fences: what is ordered before and after the operation. */
#define GASNETT_ATOMIC_NONE 0
#define GASNETT_ATOMIC_RMB_PRE 1
#define GASNETT_ATOMIC_WMB_PRE 2
#define GASNETT_ATOMIC_RMB_POST 4
#define GASNETT_ATOMIC_WMB_POST 8
#define GASNETT_ATOMIC_RMB_POST_IF_TRUE 16
#define GASNETT_ATOMIC_RMB_POST_IF_FALSE 32
#define GASNETT_ATOMIC_MB_PRE (GASNETT_ATOMIC_WMB_PRE | GASNETT_ATOMIC_RMB_PRE)
#define GASNETT_ATOMIC_MB_POST (GASNETT_ATOMIC_WMB_POST | GASNETT_ATOMIC_RMB_POST)
#define GASNETT_ATOMIC_REL GASNETT_ATOMIC_WMB_PRE
#define GASNETT_ATOMIC_ACQ GASNETT_ATOMIC_RMB_POST
#define GASNETT_ATOMIC_ACQ_IF_TRUE GASNETT_ATOMIC_RMB_POST_IF_TRUE
#define GASNETT_ATOMIC_ACQ_IF_FALSE GASNETT_ATOMIC_RMB_POST_IF_FALSE

/* Barriers between this thread's own loads and stores. The weak forms do nothing in a program
   without threads. */
#define gasnett_compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define gasnett_local_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#define gasnett_local_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define gasnett_local_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#if GASNETI_THREADED
#define gasnett_weak_wmb() gasnett_local_wmb()
#define gasnett_weak_rmb() gasnett_local_rmb()
#define gasnett_weak_mb() gasnett_local_mb()
#else
#define gasnett_weak_wmb() gasnett_compiler_fence()
#define gasnett_weak_rmb() gasnett_compiler_fence()
#define gasnett_weak_mb() gasnett_compiler_fence()
#endif

#define GASNETI_MEMBAR_CONFIG membars_native
#define GASNETI_ATOMIC_CONFIG atomics_native
#define GASNETI_ATOMIC32_CONFIG atomic32_native
#define GASNETI_ATOMIC64_CONFIG atomic64_native
#define GASNETT_MEMBAR_CONFIG GASNETI_MEMBAR_CONFIG
#define GASNETT_ATOMIC_CONFIG GASNETI_ATOMIC_CONFIG
#define GASNETT_ATOMIC32_CONFIG GASNETI_ATOMIC32_CONFIG
#define GASNETT_ATOMIC64_CONFIG GASNETI_ATOMIC64_CONFIG
#define GASNETT_HAVE_ATOMIC_CAS 1
#define GASNETT_HAVE_ATOMIC_ADD_SUB 1
#define GASNETT_HAVE_STRONGATOMIC_CAS 1
#define GASNETT_HAVE_STRONGATOMIC_ADD_SUB 1

/* The fence before an operation. A read barrier alone orders earlier loads before what follows, a
   write barrier alone earlier stores; both together order all accesses. */
GASNETI_ALWAYS_INLINE void gasneti_fence_pre(int flags) {
  if ((flags & GASNETT_ATOMIC_MB_PRE) == GASNETT_ATOMIC_MB_PRE) {
    gasnett_local_mb();
  } else if (flags & GASNETT_ATOMIC_WMB_PRE) {
    gasnett_local_wmb();
  } else if (flags & GASNETT_ATOMIC_RMB_PRE) {
    gasnett_local_rmb();
  }
}

/* The fence after an operation. */
GASNETI_ALWAYS_INLINE void gasneti_fence_post(int flags) {
  if ((flags & GASNETT_ATOMIC_MB_POST) == GASNETT_ATOMIC_MB_POST) {
    gasnett_local_mb();
  } else if (flags & GASNETT_ATOMIC_WMB_POST) {
    gasnett_local_wmb();
  } else if (flags & GASNETT_ATOMIC_RMB_POST) {
    gasnett_local_rmb();
  }
}

/* The fence after an operation that returns whether it succeeded. */
GASNETI_ALWAYS_INLINE void gasneti_fence_post_bool(int flags, int verdict) {
  gasneti_fence_post(flags);
  if (flags & (verdict ? GASNETT_ATOMIC_RMB_POST_IF_TRUE : GASNETT_ATOMIC_RMB_POST_IF_FALSE)) {
    gasnett_local_rmb();
  }
}

/* A read-modify-write instruction of x86 is a full fence; a compiler barrier is enough. Elsewhere
   the fences that the flags request order the operation, and it needs no order of its own. */
#if PLATFORM_ARCH_X86_64 || PLATFORM_ARCH_X86
#define GASNETI_RMW_ORDER __ATOMIC_SEQ_CST
#define GASNETI_RMW_PRE(flags) ((void)(flags))
#define GASNETI_RMW_POST(flags) ((void)(flags))
#define GASNETI_RMW_POST_BOOL(flags, verdict) ((void)(flags))
#else
#define GASNETI_RMW_ORDER __ATOMIC_RELAXED
#define GASNETI_RMW_PRE(flags) gasneti_fence_pre(flags)
#define GASNETI_RMW_POST(flags) gasneti_fence_post(flags)
#define GASNETI_RMW_POST_BOOL(flags, verdict) gasneti_fence_post_bool(flags, verdict)
#endif

/* The type and the operations of one family, under gasneti_ names. */
#define GASNETI_ATOMIC_FAMILY(fam, val)                                                                               \
  typedef struct GASNETI_ATTRIBUTE((__may_alias__)) {                                                                 \
    volatile val gasneti_value;                                                                                       \
  } gasneti_##fam##_t;                                                                                                \
  GASNETI_ALWAYS_INLINE val gasneti_##fam##_read(const gasneti_##fam##_t *p, int flags) {                             \
    val result;                                                                                                       \
    gasneti_fence_pre(flags);                                                                                         \
    result = __atomic_load_n(&p->gasneti_value, __ATOMIC_RELAXED);                                                    \
    gasneti_fence_post(flags);                                                                                        \
    return result;                                                                                                    \
  }                                                                                                                   \
  GASNETI_ALWAYS_INLINE void gasneti_##fam##_set(gasneti_##fam##_t *p, val value, int flags) {                        \
    gasneti_fence_pre(flags);                                                                                         \
    __atomic_store_n(&p->gasneti_value, value, __ATOMIC_RELAXED);                                                     \
    gasneti_fence_post(flags);                                                                                        \
  }                                                                                                                   \
  GASNETI_ALWAYS_INLINE val gasneti_##fam##_add(gasneti_##fam##_t *p, val by, int flags) {                            \
    val result;                                                                                                       \
    GASNETI_RMW_PRE(flags);                                                                                           \
    result = __atomic_add_fetch(&p->gasneti_value, by, GASNETI_RMW_ORDER);                                             \
    GASNETI_RMW_POST(flags);                                                                                          \
    return result;                                                                                                    \
  }                                                                                                                   \
  GASNETI_ALWAYS_INLINE val gasneti_##fam##_subtract(gasneti_##fam##_t *p, val by, int flags) {                       \
    val result;                                                                                                       \
    GASNETI_RMW_PRE(flags);                                                                                           \
    result = __atomic_sub_fetch(&p->gasneti_value, by, GASNETI_RMW_ORDER);                                             \
    GASNETI_RMW_POST(flags);                                                                                          \
    return result;                                                                                                    \
  }                                                                                                                   \
  GASNETI_ALWAYS_INLINE void gasneti_##fam##_increment(gasneti_##fam##_t *p, int flags) {                             \
    (void)gasneti_##fam##_add(p, 1, flags);                                                                           \
  }                                                                                                                   \
  GASNETI_ALWAYS_INLINE void gasneti_##fam##_decrement(gasneti_##fam##_t *p, int flags) {                             \
    (void)gasneti_##fam##_subtract(p, 1, flags);                                                                      \
  }                                                                                                                   \
  GASNETI_ALWAYS_INLINE int gasneti_##fam##_decrement_and_test(gasneti_##fam##_t *p, int flags) {                     \
    int zero;                                                                                                         \
    GASNETI_RMW_PRE(flags);                                                                                           \
    zero = __atomic_sub_fetch(&p->gasneti_value, 1, GASNETI_RMW_ORDER) == 0;                                           \
    GASNETI_RMW_POST_BOOL(flags, zero);                                                                               \
    return zero;                                                                                                      \
  }                                                                                                                   \
  GASNETI_ALWAYS_INLINE int gasneti_##fam##_compare_and_swap(gasneti_##fam##_t *p, val old, val value, int flags) {   \
    int swapped;                                                                                                      \
    GASNETI_RMW_PRE(flags);                                                                                           \
    swapped = __atomic_compare_exchange_n(&p->gasneti_value, &old, value, 0, GASNETI_RMW_ORDER, GASNETI_RMW_ORDER);     \
    GASNETI_RMW_POST_BOOL(flags, swapped);                                                                            \
    return swapped;                                                                                                   \
  }                                                                                                                   \
  GASNETI_ALWAYS_INLINE val gasneti_##fam##_swap(gasneti_##fam##_t *p, val value, int flags) {                        \
    val result;                                                                                                       \
    GASNETI_RMW_PRE(flags);                                                                                           \
    result = __atomic_exchange_n(&p->gasneti_value, value, GASNETI_RMW_ORDER);                                         \
    GASNETI_RMW_POST(flags);                                                                                          \
    return result;                                                                                                    \
  }

GASNETI_ATOMIC_FAMILY(atomic32, uint32_t)
GASNETI_ATOMIC_FAMILY(atomic64, uint64_t)

/* A native atomic operation is atomic for all writers, so the strong families are the plain ones.
   The general family is that of 32 bits. */
typedef uint32_t gasnett_atomic_val_t;
typedef int32_t gasnett_atomic_sval_t;
#define gasnett_atomic_signed(value) ((gasnett_atomic_sval_t)(value))
#define GASNETT_ATOMIC_MAX ((gasnett_atomic_val_t)0xFFFFFFFFU)
#define GASNETT_ATOMIC_SIGNED_MIN ((gasnett_atomic_sval_t)0x80000000U)
#define GASNETT_ATOMIC_SIGNED_MAX ((gasnett_atomic_sval_t)0x7FFFFFFF)

typedef gasneti_atomic32_t gasnett_atomic_t;
#define gasnett_atomic_init(v) { (v) }
#define gasnett_atomic_read(p, f) gasneti_atomic32_read(p, f)
#define gasnett_atomic_set(p, v, f) gasneti_atomic32_set(p, v, f)
#define gasnett_atomic_increment(p, f) gasneti_atomic32_increment(p, f)
#define gasnett_atomic_decrement(p, f) gasneti_atomic32_decrement(p, f)
#define gasnett_atomic_decrement_and_test(p, f) gasneti_atomic32_decrement_and_test(p, f)
#define gasnett_atomic_compare_and_swap(p, o, v, f) gasneti_atomic32_compare_and_swap(p, o, v, f)
#define gasnett_atomic_swap(p, v, f) gasneti_atomic32_swap(p, v, f)
#define gasnett_atomic_add(p, v, f) gasneti_atomic32_add(p, v, f)
#define gasnett_atomic_subtract(p, v, f) gasneti_atomic32_subtract(p, v, f)

typedef gasneti_atomic32_t gasnett_strongatomic_t;
#define gasnett_strongatomic_init(v) { (v) }
#define gasnett_strongatomic_read(p, f) gasneti_atomic32_read(p, f)
#define gasnett_strongatomic_set(p, v, f) gasneti_atomic32_set(p, v, f)
#define gasnett_strongatomic_increment(p, f) gasneti_atomic32_increment(p, f)
#define gasnett_strongatomic_decrement(p, f) gasneti_atomic32_decrement(p, f)
#define gasnett_strongatomic_decrement_and_test(p, f) gasneti_atomic32_decrement_and_test(p, f)
#define gasnett_strongatomic_compare_and_swap(p, o, v, f) gasneti_atomic32_compare_and_swap(p, o, v, f)
#define gasnett_strongatomic_swap(p, v, f) gasneti_atomic32_swap(p, v, f)
#define gasnett_strongatomic_add(p, v, f) gasneti_atomic32_add(p, v, f)
#define gasnett_strongatomic_subtract(p, v, f) gasneti_atomic32_subtract(p, v, f)

typedef gasneti_atomic32_t gasnett_atomic32_t;
#define gasnett_atomic32_init(v) { (v) }
#define gasnett_atomic32_read(p, f) gasneti_atomic32_read(p, f)
#define gasnett_atomic32_set(p, v, f) gasneti_atomic32_set(p, v, f)
#define gasnett_atomic32_increment(p, f) gasneti_atomic32_increment(p, f)
#define gasnett_atomic32_decrement(p, f) gasneti_atomic32_decrement(p, f)
#define gasnett_atomic32_decrement_and_test(p, f) gasneti_atomic32_decrement_and_test(p, f)
#define gasnett_atomic32_compare_and_swap(p, o, v, f) gasneti_atomic32_compare_and_swap(p, o, v, f)
#define gasnett_atomic32_swap(p, v, f) gasneti_atomic32_swap(p, v, f)
#define gasnett_atomic32_add(p, v, f) gasneti_atomic32_add(p, v, f)
#define gasnett_atomic32_subtract(p, v, f) gasneti_atomic32_subtract(p, v, f)

typedef gasneti_atomic32_t gasnett_strongatomic32_t;
#define gasnett_strongatomic32_init(v) { (v) }
#define gasnett_strongatomic32_read(p, f) gasneti_atomic32_read(p, f)
#define gasnett_strongatomic32_set(p, v, f) gasneti_atomic32_set(p, v, f)
#define gasnett_strongatomic32_increment(p, f) gasneti_atomic32_increment(p, f)
#define gasnett_strongatomic32_decrement(p, f) gasneti_atomic32_decrement(p, f)
#define gasnett_strongatomic32_decrement_and_test(p, f) gasneti_atomic32_decrement_and_test(p, f)
#define gasnett_strongatomic32_compare_and_swap(p, o, v, f) gasneti_atomic32_compare_and_swap(p, o, v, f)
#define gasnett_strongatomic32_swap(p, v, f) gasneti_atomic32_swap(p, v, f)
#define gasnett_strongatomic32_add(p, v, f) gasneti_atomic32_add(p, v, f)
#define gasnett_strongatomic32_subtract(p, v, f) gasneti_atomic32_subtract(p, v, f)

typedef gasneti_atomic64_t gasnett_atomic64_t;
#define gasnett_atomic64_init(v) { (v) }
#define gasnett_atomic64_read(p, f) gasneti_atomic64_read(p, f)
#define gasnett_atomic64_set(p, v, f) gasneti_atomic64_set(p, v, f)
#define gasnett_atomic64_increment(p, f) gasneti_atomic64_increment(p, f)
#define gasnett_atomic64_decrement(p, f) gasneti_atomic64_decrement(p, f)
#define gasnett_atomic64_decrement_and_test(p, f) gasneti_atomic64_decrement_and_test(p, f)
#define gasnett_atomic64_compare_and_swap(p, o, v, f) gasneti_atomic64_compare_and_swap(p, o, v, f)
#define gasnett_atomic64_swap(p, v, f) gasneti_atomic64_swap(p, v, f)
#define gasnett_atomic64_add(p, v, f) gasneti_atomic64_add(p, v, f)
#define gasnett_atomic64_subtract(p, v, f) gasneti_atomic64_subtract(p, v, f)

typedef gasneti_atomic64_t gasnett_strongatomic64_t;
#define gasnett_strongatomic64_init(v) { (v) }
#define gasnett_strongatomic64_read(p, f) gasneti_atomic64_read(p, f)
#define gasnett_strongatomic64_set(p, v, f) gasneti_atomic64_set(p, v, f)
#define gasnett_strongatomic64_increment(p, f) gasneti_atomic64_increment(p, f)
#define gasnett_strongatomic64_decrement(p, f) gasneti_atomic64_decrement(p, f)
#define gasnett_strongatomic64_decrement_and_test(p, f) gasneti_atomic64_decrement_and_test(p, f)
#define gasnett_strongatomic64_compare_and_swap(p, o, v, f) gasneti_atomic64_compare_and_swap(p, o, v, f)
#define gasnett_strongatomic64_swap(p, v, f) gasneti_atomic64_swap(p, v, f)
#define gasnett_strongatomic64_add(p, v, f) gasneti_atomic64_add(p, v, f)
#define gasnett_strongatomic64_subtract(p, v, f) gasneti_atomic64_subtract(p, v, f)
#endif
