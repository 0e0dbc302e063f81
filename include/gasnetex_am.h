/* Active messages of GASNet-EX, included by gasnetex.h: registration, limits, and the 14 families
   of functions that send. A family has a function for each number of arguments, 0 to 16, and a
   macro without the number that counts them. These are inline: they pack the arguments into an
   array for one function of the library. */
#ifndef GASNETEX_AM_H
#define GASNETEX_AM_H

#include "gasnetex.h"

GASNETI_BEGIN_EXTERNC

#define GEX_AM_INDEX_BASE 128

/* A handler, of any handler prototype. */
#if defined(GASNET_USE_STRICT_PROTOTYPES) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
typedef void *gex_AM_Fn_t;
#elif defined(__GNUC__) && (__GNUC__ > 4 || defined(__clang__)) && !defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
typedef void (*gex_AM_Fn_t)();
#pragma GCC diagnostic pop
#else
typedef void (*gex_AM_Fn_t)();
#endif

/* A row of the handler table. An index of 0 is chosen by gex_EP_RegisterHandlers. */
typedef struct {
  gex_AM_Index_t gex_index;
  gex_AM_Fn_t gex_fnptr;
  gex_Flags_t gex_flags;
  unsigned int gex_nargs;
  const void *gex_cdata;
  const char *gex_name;
} gex_AM_Entry_t;
int gex_EP_RegisterHandlers(gex_EP_t ep, gex_AM_Entry_t *table, size_t numentries);

/* What a handler may ask of its token. */
typedef unsigned int gex_TI_t;
#define GEX_TI_SRCRANK 1U
#define GEX_TI_ENTRY 2U
#define GEX_TI_IS_REQ 4U
#define GEX_TI_IS_LONG 8U
#define GEX_TI_EP 16U
#define GEX_TI_ALL 31U
typedef struct {
  gex_Rank_t gex_srcrank;
  gex_EP_t gex_ep;
  const gex_AM_Entry_t *gex_entry;
  int gex_is_req;
  int gex_is_long;
} gex_Token_Info_t;
gex_TI_t gex_Token_Info(gex_Token_t token, gex_Token_Info_t *info, gex_TI_t mask);

/* Limits, in bytes */
unsigned int gex_AM_MaxArgs(void);

size_t gex_AM_MaxRequestMedium(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt, gex_Flags_t flags,
                      unsigned int numargs);
size_t gex_AM_MaxReplyMedium(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt, gex_Flags_t flags,
                      unsigned int numargs);
size_t gex_AM_MaxRequestLong(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt, gex_Flags_t flags,
                      unsigned int numargs);
size_t gex_AM_MaxReplyLong(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt, gex_Flags_t flags,
                      unsigned int numargs);
size_t gex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int numargs);
size_t gex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int numargs);
size_t gex_AM_LUBRequestMedium(void);
size_t gex_AM_LUBReplyMedium(void);
size_t gex_AM_LUBRequestLong(void);
size_t gex_AM_LUBReplyLong(void);

/* Negotiated payload */
void *gex_AM_SrcDescAddr(gex_AM_SrcDesc_t sd);
size_t gex_AM_SrcDescSize(gex_AM_SrcDesc_t sd);
gex_AM_SrcDesc_t gex_AM_PrepareRequestMedium(gex_TM_t tm, gex_Rank_t rank, const void *client_buf, size_t least_payload,
                                             size_t most_payload, gex_Event_t *lc_opt, gex_Flags_t flags,
                                             unsigned int numargs);
gex_AM_SrcDesc_t gex_AM_PrepareReplyMedium(gex_Token_t token, const void *client_buf, size_t least_payload,
                                           size_t most_payload, gex_Event_t *lc_opt, gex_Flags_t flags,
                                           unsigned int numargs);
gex_AM_SrcDesc_t gex_AM_PrepareRequestLong(gex_TM_t tm, gex_Rank_t rank, const void *client_buf, size_t least_payload,
                                           size_t most_payload, void *dest_addr, gex_Event_t *lc_opt,
                                           gex_Flags_t flags, unsigned int numargs);
gex_AM_SrcDesc_t gex_AM_PrepareReplyLong(gex_Token_t token, const void *client_buf, size_t least_payload,
                                         size_t most_payload, void *dest_addr, gex_Event_t *lc_opt, gex_Flags_t flags,
                                         unsigned int numargs);
int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);

/* The functions that send: arguments of the family, their number, and an array of them. */
int gasneti_RequestShort(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags,
                         unsigned int numargs, const gex_AM_Arg_t *args);
int gasneti_RequestMedium(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *source_addr,
                          size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int numargs,
                          const gex_AM_Arg_t *args);
int gasneti_RequestLong(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *source_addr, size_t nbytes,
                        void *dest_addr, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int numargs,
                        const gex_AM_Arg_t *args);
int gasneti_ReplyShort(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags, unsigned int numargs,
                       const gex_AM_Arg_t *args);
int gasneti_ReplyMedium(gex_Token_t token, gex_AM_Index_t handler, const void *source_addr, size_t nbytes,
                        gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int numargs, const gex_AM_Arg_t *args);
int gasneti_ReplyLong(gex_Token_t token, gex_AM_Index_t handler, const void *source_addr, size_t nbytes,
                      void *dest_addr, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int numargs,
                      const gex_AM_Arg_t *args);
int gasneti_CommitRequestMedium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, gex_Flags_t commit_flags,
                                unsigned int numargs, const gex_AM_Arg_t *args);
int gasneti_CommitRequestLong(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, void *dest_addr,
                              gex_Flags_t commit_flags, unsigned int numargs, const gex_AM_Arg_t *args);
int gasneti_CommitReplyMedium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, gex_Flags_t commit_flags,
                                unsigned int numargs, const gex_AM_Arg_t *args);
int gasneti_CommitReplyLong(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, void *dest_addr,
                              gex_Flags_t commit_flags, unsigned int numargs, const gex_AM_Arg_t *args);

/* Arguments as parameters and in calls. */
#define GASNETI_P0
#define GASNETI_A0
#define GASNETI_P1 , gex_AM_Arg_t a0
#define GASNETI_A1 a0
#define GASNETI_P2 GASNETI_P1, gex_AM_Arg_t a1
#define GASNETI_A2 GASNETI_A1, a1
#define GASNETI_P3 GASNETI_P2, gex_AM_Arg_t a2
#define GASNETI_A3 GASNETI_A2, a2
#define GASNETI_P4 GASNETI_P3, gex_AM_Arg_t a3
#define GASNETI_A4 GASNETI_A3, a3
#define GASNETI_P5 GASNETI_P4, gex_AM_Arg_t a4
#define GASNETI_A5 GASNETI_A4, a4
#define GASNETI_P6 GASNETI_P5, gex_AM_Arg_t a5
#define GASNETI_A6 GASNETI_A5, a5
#define GASNETI_P7 GASNETI_P6, gex_AM_Arg_t a6
#define GASNETI_A7 GASNETI_A6, a6
#define GASNETI_P8 GASNETI_P7, gex_AM_Arg_t a7
#define GASNETI_A8 GASNETI_A7, a7
#define GASNETI_P9 GASNETI_P8, gex_AM_Arg_t a8
#define GASNETI_A9 GASNETI_A8, a8
#define GASNETI_P10 GASNETI_P9, gex_AM_Arg_t a9
#define GASNETI_A10 GASNETI_A9, a9
#define GASNETI_P11 GASNETI_P10, gex_AM_Arg_t a10
#define GASNETI_A11 GASNETI_A10, a10
#define GASNETI_P12 GASNETI_P11, gex_AM_Arg_t a11
#define GASNETI_A12 GASNETI_A11, a11
#define GASNETI_P13 GASNETI_P12, gex_AM_Arg_t a12
#define GASNETI_A13 GASNETI_A12, a12
#define GASNETI_P14 GASNETI_P13, gex_AM_Arg_t a13
#define GASNETI_A14 GASNETI_A13, a13
#define GASNETI_P15 GASNETI_P14, gex_AM_Arg_t a14
#define GASNETI_A15 GASNETI_A14, a14
#define GASNETI_P16 GASNETI_P15, gex_AM_Arg_t a15
#define GASNETI_A16 GASNETI_A15, a15
#define GASNETI_NONE(n) const gex_AM_Arg_t *const args = NULL
#define GASNETI_SOME(n) const gex_AM_Arg_t args[n] = { GASNETI_A##n }

/* The functions of all families with n arguments; GASNETI_NONE or GASNETI_SOME makes the array. */
#define GASNETI_AM(n, ARRAY)                                                                                          \
  GASNETI_INLINE int (gex_AM_RequestShort##n)(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t       \
      flags GASNETI_P##n) {                                                                                           \
    ARRAY(n);                                                                                                         \
    return gasneti_RequestShort(tm, rank, handler, flags, n, args);                                                   \
  }                                                                                                                   \
  GASNETI_INLINE int (gex_AM_RequestMedium##n)(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void       \
      *src, size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags GASNETI_P##n) {                                     \
    ARRAY(n);                                                                                                         \
    return gasneti_RequestMedium(tm, rank, handler, src, nbytes, lc_opt, flags, n, args);                             \
  }                                                                                                                   \
  GASNETI_INLINE int (gex_AM_RequestLong##n)(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void         \
      *src, size_t nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags GASNETI_P##n) {                         \
    ARRAY(n);                                                                                                         \
    return gasneti_RequestLong(tm, rank, handler, src, nbytes, dest, lc_opt, flags, n, args);                         \
  }                                                                                                                   \
  GASNETI_INLINE int (gex_AM_ReplyShort##n)(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags              \
      GASNETI_P##n) {                                                                                                 \
    ARRAY(n);                                                                                                         \
    return gasneti_ReplyShort(token, handler, flags, n, args);                                                        \
  }                                                                                                                   \
  GASNETI_INLINE int (gex_AM_ReplyMedium##n)(gex_Token_t token, gex_AM_Index_t handler, const void *src, size_t       \
      nbytes, gex_Event_t *lc_opt, gex_Flags_t flags GASNETI_P##n) {                                                  \
    ARRAY(n);                                                                                                         \
    return gasneti_ReplyMedium(token, handler, src, nbytes, lc_opt, flags, n, args);                                  \
  }                                                                                                                   \
  GASNETI_INLINE int (gex_AM_ReplyLong##n)(gex_Token_t token, gex_AM_Index_t handler, const void *src, size_t         \
      nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags GASNETI_P##n) {                                      \
    ARRAY(n);                                                                                                         \
    return gasneti_ReplyLong(token, handler, src, nbytes, dest, lc_opt, flags, n, args);                              \
  }                                                                                                                   \
  GASNETI_INLINE void (gex_AM_CommitRequestMedium##n)(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes      \
      GASNETI_P##n) {                                                                                                 \
    ARRAY(n);                                                                                                         \
    (void)gasneti_CommitRequestMedium(sd, handler, nbytes, 0, n, args);                                               \
  }                                                                                                                   \
  GASNETI_INLINE void (gex_AM_CommitRequestLong##n)(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,       \
      void *dest GASNETI_P##n) {                                                                                      \
    ARRAY(n);                                                                                                         \
    (void)gasneti_CommitRequestLong(sd, handler, nbytes, dest, 0, n, args);                                           \
  }                                                                                                                   \
  GASNETI_INLINE int (gex_AM_CommitRequestMedium##n##_v2)(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t         \
      nbytes, gex_Flags_t commit_flags GASNETI_P##n) {                                                                \
    ARRAY(n);                                                                                                         \
    return gasneti_CommitRequestMedium(sd, handler, nbytes, commit_flags, n, args);                                   \
  }                                                                                                                   \
  GASNETI_INLINE int (gex_AM_CommitRequestLong##n##_v2)(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t           \
      nbytes, void *dest, gex_Flags_t commit_flags GASNETI_P##n) {                                                    \
    ARRAY(n);                                                                                                         \
    return gasneti_CommitRequestLong(sd, handler, nbytes, dest, commit_flags, n, args);                               \
  }                                                                                                                   \
  GASNETI_INLINE void (gex_AM_CommitReplyMedium##n)(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes        \
      GASNETI_P##n) {                                                                                                 \
    ARRAY(n);                                                                                                         \
    (void)gasneti_CommitReplyMedium(sd, handler, nbytes, 0, n, args);                                                 \
  }                                                                                                                   \
  GASNETI_INLINE void (gex_AM_CommitReplyLong##n)(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,         \
      void *dest GASNETI_P##n) {                                                                                      \
    ARRAY(n);                                                                                                         \
    (void)gasneti_CommitReplyLong(sd, handler, nbytes, dest, 0, n, args);                                             \
  }                                                                                                                   \
  GASNETI_INLINE int (gex_AM_CommitReplyMedium##n##_v2)(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t           \
      nbytes, gex_Flags_t commit_flags GASNETI_P##n) {                                                                \
    ARRAY(n);                                                                                                         \
    return gasneti_CommitReplyMedium(sd, handler, nbytes, commit_flags, n, args);                                     \
  }                                                                                                                   \
  GASNETI_INLINE int (gex_AM_CommitReplyLong##n##_v2)(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t             \
      nbytes, void *dest, gex_Flags_t commit_flags GASNETI_P##n) {                                                    \
    ARRAY(n);                                                                                                         \
    return gasneti_CommitReplyLong(sd, handler, nbytes, dest, commit_flags, n, args);                                 \
  }
GASNETI_AM(0, GASNETI_NONE)
GASNETI_AM(1, GASNETI_SOME)
GASNETI_AM(2, GASNETI_SOME)
GASNETI_AM(3, GASNETI_SOME)
GASNETI_AM(4, GASNETI_SOME)
GASNETI_AM(5, GASNETI_SOME)
GASNETI_AM(6, GASNETI_SOME)
GASNETI_AM(7, GASNETI_SOME)
GASNETI_AM(8, GASNETI_SOME)
GASNETI_AM(9, GASNETI_SOME)
GASNETI_AM(10, GASNETI_SOME)
GASNETI_AM(11, GASNETI_SOME)
GASNETI_AM(12, GASNETI_SOME)
GASNETI_AM(13, GASNETI_SOME)
GASNETI_AM(14, GASNETI_SOME)
GASNETI_AM(15, GASNETI_SOME)
GASNETI_AM(16, GASNETI_SOME)

GASNETI_END_EXTERNC

/* The number of arguments after the first FIXED ones of a call, which has at least FIXED. */
#define GASNETI_NUMBER(FIXED, ...) GASNETI_AFTER##FIXED(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, -)
#define GASNETI_AFTER3(f0, f1, f2, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASNETI_AFTER4(f0, f1, f2, f3, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASNETI_AFTER5(f0, f1, f2, f3, f4, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASNETI_AFTER6(f0, f1, f2, f3, f4, f5, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASNETI_AFTER7(f0, f1, f2, f3, f4, f5, f6, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASNETI_AFTER8(f0, f1, f2, f3, f4, f5, f6, f7, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASNETI_NUMBERED(name, n) GASNETI_NUMBERED_(name, n)
#define GASNETI_NUMBERED_(name, n) name##n
#define GASNETI_NUMBERED_V2(name, n) GASNETI_NUMBERED_V2_(name, n)
#define GASNETI_NUMBERED_V2_(name, n) name##n##_v2
/* The calls without a number in the name. */
#define gex_AM_RequestShort(...) GASNETI_NUMBERED(gex_AM_RequestShort, GASNETI_NUMBER(4, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_RequestMedium(...) GASNETI_NUMBERED(gex_AM_RequestMedium, GASNETI_NUMBER(7, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_RequestLong(...) GASNETI_NUMBERED(gex_AM_RequestLong, GASNETI_NUMBER(8, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyShort(...) GASNETI_NUMBERED(gex_AM_ReplyShort, GASNETI_NUMBER(3, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyMedium(...) GASNETI_NUMBERED(gex_AM_ReplyMedium, GASNETI_NUMBER(6, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyLong(...) GASNETI_NUMBERED(gex_AM_ReplyLong, GASNETI_NUMBER(7, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitRequestMedium(...) GASNETI_NUMBERED(gex_AM_CommitRequestMedium, GASNETI_NUMBER(3, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitRequestLong(...) GASNETI_NUMBERED(gex_AM_CommitRequestLong, GASNETI_NUMBER(4, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitRequestMedium_v2(...) GASNETI_NUMBERED_V2(gex_AM_CommitRequestMedium, GASNETI_NUMBER(4, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitRequestLong_v2(...) GASNETI_NUMBERED_V2(gex_AM_CommitRequestLong, GASNETI_NUMBER(5, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyMedium(...) GASNETI_NUMBERED(gex_AM_CommitReplyMedium, GASNETI_NUMBER(3, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyLong(...) GASNETI_NUMBERED(gex_AM_CommitReplyLong, GASNETI_NUMBER(4, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyMedium_v2(...) GASNETI_NUMBERED_V2(gex_AM_CommitReplyMedium, GASNETI_NUMBER(4, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyLong_v2(...) GASNETI_NUMBERED_V2(gex_AM_CommitReplyLong, GASNETI_NUMBER(5, __VA_ARGS__))(__VA_ARGS__)

#endif
