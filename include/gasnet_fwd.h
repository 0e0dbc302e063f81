/* Constants and scalar types of GASNet-EX. Usable alone: needs no thread mode. The values are part
   of the interface; clients repeat them. */
#ifndef _GASNET_FWD_H
#define _GASNET_FWD_H

#include <stdint.h>

typedef uint32_t gex_Rank_t;
typedef uint16_t gex_EP_Index_t;
typedef uint32_t gex_Flags_t;
typedef uint32_t gex_DT_t;
typedef uint32_t gex_OP_t;
typedef uint32_t gex_EP_Capabilities_t;
typedef uint8_t gex_AM_Index_t;
typedef int32_t gex_AM_Arg_t;
typedef void *gex_Addr_t;

/* An endpoint of a team or of the job. */
typedef struct {
  gex_Rank_t gex_rank;
  gex_EP_Index_t gex_ep_index;
} gex_EP_Location_t;

#define GEX_RANK_INVALID (~(gex_Rank_t)0)

/* An event: what completes later. The same type as the handles of gasnet.h. */
#if defined(_GASNET_H) && !defined(__cplusplus)
typedef gasnet_handle_t gex_Event_t;
#else
typedef struct gasneti_event_s *gex_Event_t;
#endif
#define GEX_EVENT_INVALID ((gex_Event_t)(uintptr_t)0)
#define GEX_EVENT_NO_OP ((gex_Event_t)(uintptr_t)1)
#define GEX_EVENT_NOW ((gex_Event_t *)(uintptr_t)1)
#define GEX_EVENT_DEFER ((gex_Event_t *)(uintptr_t)2)
#define GEX_EVENT_GROUP ((gex_Event_t *)(uintptr_t)3)

/* Types of data, for atomics and reductions */
#define GEX_DT_I32 (1U << 0)
#define GEX_DT_U32 (1U << 1)
#define GEX_DT_I64 (1U << 2)
#define GEX_DT_U64 (1U << 3)
#define GEX_DT_FLT (1U << 4)
#define GEX_DT_DBL (1U << 5)
#define GEX_DT_USER (1U << 6)

/* Operations, for atomics and reductions */
#define GEX_OP_AND (1U << 0)
#define GEX_OP_OR (1U << 1)
#define GEX_OP_XOR (1U << 2)
#define GEX_OP_ADD (1U << 3)
#define GEX_OP_SUB (1U << 4)
#define GEX_OP_MULT (1U << 5)
#define GEX_OP_MIN (1U << 6)
#define GEX_OP_MAX (1U << 7)
#define GEX_OP_INC (1U << 8)
#define GEX_OP_DEC (1U << 9)
#define GEX_OP_SET (1U << 10)
#define GEX_OP_CAS (1U << 11)
#define GEX_OP_TO_FETCHING(op) ((op) << 15)
#define GEX_OP_TO_NONFETCHING(op) ((op) >> 15)
#define GEX_OP_FAND (1U << 15)
#define GEX_OP_FOR (1U << 16)
#define GEX_OP_FXOR (1U << 17)
#define GEX_OP_FADD (1U << 18)
#define GEX_OP_FSUB (1U << 19)
#define GEX_OP_FMULT (1U << 20)
#define GEX_OP_FMIN (1U << 21)
#define GEX_OP_FMAX (1U << 22)
#define GEX_OP_FINC (1U << 23)
#define GEX_OP_FDEC (1U << 24)
#define GEX_OP_SWAP (1U << 25)
#define GEX_OP_FCAS (1U << 26)
#define GEX_OP_GET (1U << 27)
#define GEX_OP_USER (1U << 30)
#define GEX_OP_USER_NC (1U << 31)
/* The older name of GEX_OP_FCAS. */
#define GEX_OP_CSWAP GEX_OP_FCAS

/* Flags. Each call has its own, so some values occur twice. */
#define GEX_FLAG_IMMEDIATE (1U << 0)

/* gex_Client_Init */
#define GEX_FLAG_USES_GASNET1 (1U << 0)
#define GEX_FLAG_DEFER_THREADS (1U << 1)

/* Where the memory of a transfer lies */
#define GEX_FLAG_SELF_SEG_UNKNOWN (1U << 3)
#define GEX_FLAG_SELF_SEG_SOME (1U << 4)
#define GEX_FLAG_SELF_SEG_BOUND (1U << 5)
#define GEX_FLAG_SELF_SEG_OFFSET (1U << 6)
#define GEX_FLAG_PEER_SEG_UNKNOWN (1U << 7)
#define GEX_FLAG_PEER_SEG_SOME (1U << 8)
#define GEX_FLAG_PEER_SEG_BOUND (1U << 9)
#define GEX_FLAG_PEER_SEG_OFFSET (1U << 10)
#define GEX_FLAG_PEER_NEVER_SELF (1U << 15)
#define GEX_FLAG_PEER_NEVER_NBRHD (1U << 14)

/* Active messages */
#define GEX_FLAG_AM_PREPARE_LEAST_CLIENT (1U << 11)
#define GEX_FLAG_AM_PREPARE_LEAST_ALLOC (1U << 12)
#define GEX_FLAG_AM_SHORT (1U << 0)
#define GEX_FLAG_AM_MEDIUM (1U << 1)
#define GEX_FLAG_AM_LONG (1U << 2)
#define GEX_FLAG_AM_MEDLONG (GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_LONG)
#define GEX_FLAG_AM_REQUEST (1U << 3)
#define GEX_FLAG_AM_REPLY (1U << 4)
#define GEX_FLAG_AM_REQREP (GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_REPLY)

/* Vector, indexed and strided transfers */
#define GEX_FLAG_ENABLE_LEAF_LC (1U << 11)

/* Atomics */
#define GEX_FLAG_AD_FAVOR_MY_RANK (1U << 0)
#define GEX_FLAG_AD_FAVOR_MY_NBRHD (1U << 1)
#define GEX_FLAG_AD_FAVOR_REMOTE (1U << 2)
#define GEX_FLAG_AD_MY_RANK (1U << 11)
#define GEX_FLAG_AD_MY_NBRHD (1U << 12)
#define GEX_FLAG_AD_ACQ (1U << 2)
#define GEX_FLAG_AD_REL (1U << 1)
#define GEX_FLAG_RANK_IS_JOBRANK (1U << 13)

/* Teams */
#define GEX_FLAG_TM_SCRATCH_SIZE_MIN (1U << 0)
#define GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED (1U << 1)
#define GEX_FLAG_TM_GLOBAL_SCRATCH (1U << 2)
#define GEX_FLAG_TM_LOCAL_SCRATCH (1U << 3)
#define GEX_FLAG_TM_SYMMETRIC_SCRATCH (1U << 4)
#define GEX_FLAG_TM_NO_SCRATCH (1U << 5)
#define GEX_FLAG_SCRATCH_SEG_OFFSET (1U << 6)
#define GEX_FLAG_GLOBALLY_QUIESCED (1U << 13)

/* Endpoints */
#define GEX_EP_CAPABILITY_RMA (1U << 0)
#define GEX_EP_CAPABILITY_AM (1U << 1)
#define GEX_EP_CAPABILITY_VIS (1U << 2)
#define GEX_EP_CAPABILITY_COLL (1U << 3)
#define GEX_EP_CAPABILITY_AD (1U << 4)
#define GEX_EP_CAPABILITY_ALL                                                                                         \
  (GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_AM | GEX_EP_CAPABILITY_VIS | GEX_EP_CAPABILITY_COLL |                    \
   GEX_EP_CAPABILITY_AD)
#define GEX_FLAG_HINT_ACCEL_AD (1U << 0)
#define GEX_FLAG_HINT_ACCEL_COLL (1U << 1)
#define GEX_FLAG_HINT_ACCEL_ALL (GEX_FLAG_HINT_ACCEL_AD | GEX_FLAG_HINT_ACCEL_COLL)

#endif
