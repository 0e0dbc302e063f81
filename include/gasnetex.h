/* The GASNet-EX interface, in the same library as that of gasnet.h.

   Define exactly one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR before including this header,
   and include it before gasnet_tools.h. An object may include gasnet.h too, before or after; the
   types of handles and tokens are the same then. C99 or C++11 is needed. */
#ifndef _GASNETEX_H
#define _GASNETEX_H

/* The release whose interface this is; it supersedes that of GASNet-1. The object's configuration
   strings, which gasnet_common.h makes, name it. */
#include "gasnet_config.h"
#undef GASNETI_SPEC_CONFIG
#define GASNETI_SPEC_CONFIG "0.19"
#undef GASNET_RELEASE_VERSION_MAJOR
#undef GASNET_RELEASE_VERSION_MINOR
#undef GASNET_RELEASE_VERSION_PATCH
#define GASNET_RELEASE_VERSION_MAJOR 2025
#define GASNET_RELEASE_VERSION_MINOR 8
#define GASNET_RELEASE_VERSION_PATCH 0

#include "gasnet_common.h"
#include "gasnet_fwd.h"

#define GEX_SPEC_VERSION_MAJOR 0
#define GEX_SPEC_VERSION_MINOR 19

/* Features */
#define GASNET_MAXEPS 1
#define GASNET_HIDDEN_AM_CONCURRENCY_LEVEL 0
#define GASNET_SUPPORTS_AM_CANCEL 20240418L
#define GASNET_SUPPORTS_AM_COMMIT_V2 20240906L
/* The handler reads a negotiated Medium where the client wrote it, if it maps that memory. */
#define GASNET_NATIVE_NP_ALLOC_REQ_MEDIUM 1
#define GASNET_NATIVE_NP_ALLOC_REP_MEDIUM 1
#define GASNET_SUPPORTS_TI_SRCRANK 1
#define GASNET_SUPPORTS_TI_EP 1
#define GASNET_SUPPORTS_TI_ENTRY 1
#define GASNET_SUPPORTS_TI_IS_REQ 1
#define GASNET_SUPPORTS_TI_IS_LONG 1

GASNETI_BEGIN_EXTERNC

/* Objects. Each is a name that the library checks; 0 is none. */
typedef struct gasneti_client_s *gex_Client_t;
typedef struct gasneti_ep_s *gex_EP_t;
typedef struct gasneti_tm_s *gex_TM_t;
typedef struct gasneti_segment_s *gex_Segment_t;
typedef struct gasneti_mk_s *gex_MK_t;
typedef struct gasneti_ad_s *gex_AD_t;
typedef struct gasneti_srcdesc_s *gex_AM_SrcDesc_t;
/* The same type as the tokens of gasnet.h. */
typedef void *gex_Token_t;
#define GEX_CLIENT_INVALID ((gex_Client_t)(uintptr_t)0)
#define GEX_EP_INVALID ((gex_EP_t)(uintptr_t)0)
#define GEX_TM_INVALID ((gex_TM_t)(uintptr_t)0)
#define GEX_SEGMENT_INVALID ((gex_Segment_t)(uintptr_t)0)
#define GEX_MK_INVALID ((gex_MK_t)(uintptr_t)0)
#define GEX_MK_HOST ((gex_MK_t)(uintptr_t)1)
#define GEX_AD_INVALID ((gex_AD_t)(uintptr_t)0)
#define GEX_AM_SRCDESC_NO_OP ((gex_AM_SrcDesc_t)(uintptr_t)0)

typedef uint64_t gex_RMA_Value_t;
#define SIZEOF_GEX_RMA_VALUE_T 8

/* A piece of memory; gex_len in bytes. */
typedef struct {
  void *gex_addr;
  size_t gex_len;
} gex_Memvec_t;

/* A rank of a neighbourhood or of a host. */
typedef const struct {
  gex_Rank_t gex_jobrank;
} gex_RankInfo_t;

/* Life of a job */
int gasneti_Client_Init(gex_Client_t *client_p, gex_EP_t *ep_p, gex_TM_t *tm_p, const char *clientName, int *argc,
                        char ***argv, gex_Flags_t flags, const gasneti_client_t *object);
void gasnet_QueryGexObjects(gex_Client_t *client_p, gex_EP_t *endpoint_p, gex_TM_t *tm_p, gex_Segment_t *segment_p);
int gex_Segment_Attach(gex_Segment_t *segment_p, gex_TM_t tm, uintptr_t size);

/* The job */
gex_Rank_t gex_System_QueryJobRank(void);
gex_Rank_t gex_System_QueryJobSize(void);
uint64_t gex_System_QueryMaxThreads(void);
int gex_System_GetVerboseErrors(void);
void gex_System_SetVerboseErrors(int enable);
int gex_System_QueryHiddenAMConcurrencyLevel(void);
void gex_System_QueryNbrhdInfo(gex_RankInfo_t **info_p, gex_Rank_t *info_count_p, gex_Rank_t *my_info_index_p);
void gex_System_QueryHostInfo(gex_RankInfo_t **info_p, gex_Rank_t *info_count_p, gex_Rank_t *my_info_index_p);
void gex_System_QueryMyPosition(gex_Rank_t *nbrhd_set_size_p, gex_Rank_t *nbrhd_set_rank_p, gex_Rank_t *host_set_size_p,
                                gex_Rank_t *host_set_rank_p);
#define GEX_THREAD_ROLE_RCV (1U << 0)
#define GEX_THREAD_ROLE_SND (1U << 1)
typedef struct {
  unsigned int gex_thread_roles;
  const char *gex_device_list;
  void *(*gex_progress_fn)(void *);
  void *gex_progress_arg;
} gex_ProgressThreadInfo_t;
int gex_System_QueryProgressThreads(gex_Client_t client, unsigned int *count_p, const gex_ProgressThreadInfo_t **info_p,
                                    gex_Flags_t flags);

/* Clients */
void gex_Client_SetCData(gex_Client_t client, const void *val);
void *gex_Client_QueryCData(gex_Client_t client);
gex_Flags_t gex_Client_QueryFlags(gex_Client_t client);
const char *gex_Client_QueryName(gex_Client_t client);

/* Segments */
void gex_Segment_SetCData(gex_Segment_t seg, const void *val);
void *gex_Segment_QueryCData(gex_Segment_t seg);
gex_Client_t gex_Segment_QueryClient(gex_Segment_t seg);
gex_Flags_t gex_Segment_QueryFlags(gex_Segment_t seg);
void *gex_Segment_QueryAddr(gex_Segment_t seg);
uintptr_t gex_Segment_QuerySize(gex_Segment_t seg);
int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p, void **localaddr_p, uintptr_t *size_p);
int gex_Segment_Create(gex_Segment_t *segment_p, gex_Client_t client, gex_Addr_t address, uintptr_t length, gex_MK_t kind,
                       gex_Flags_t flags);
void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags);

/* Endpoints */
void gex_EP_SetCData(gex_EP_t ep, const void *val);
void *gex_EP_QueryCData(gex_EP_t ep);
gex_Client_t gex_EP_QueryClient(gex_EP_t ep);
gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep);
gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep);
gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep);
gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p, void **localaddr_p,
                                       uintptr_t *size_p, gex_Flags_t flags);
int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t *eps, size_t num_eps, gex_Flags_t flags);
int gex_EP_Create(gex_EP_t *ep_p, gex_Client_t client, gex_EP_Capabilities_t capabilities, gex_Flags_t flags);
int gex_EP_BindSegment(gex_EP_t ep, gex_Segment_t segment, gex_Flags_t flags);

/* Teams */
void gex_TM_SetCData(gex_TM_t tm, const void *val);
void *gex_TM_QueryCData(gex_TM_t tm);
gex_Client_t gex_TM_QueryClient(gex_TM_t tm);
gex_EP_t gex_TM_QueryEP(gex_TM_t tm);
gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm);
gex_Rank_t gex_TM_QueryRank(gex_TM_t tm);
gex_Rank_t gex_TM_QuerySize(gex_TM_t tm);
gex_TM_t gex_TM_Pair(gex_EP_t local_ep, gex_EP_Index_t remote_ep_index);
gex_Rank_t gex_TM_TranslateRankToJobrank(gex_TM_t tm, gex_Rank_t rank);
gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t tm, gex_Rank_t jobrank);
gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags);
size_t gex_TM_Split(gex_TM_t *new_tm_p, gex_TM_t parent_tm, int color, int key, void *scratch_addr, size_t scratch_size,
                    gex_Flags_t flags);
size_t gex_TM_Create(gex_TM_t *new_tms, size_t num_new_tms, gex_TM_t parent_tm, gex_EP_Location_t *args, size_t numargs,
                     gex_Addr_t *scratch_addrs, size_t scratch_size, gex_Flags_t flags);
int gex_TM_Destroy(gex_TM_t tm, gex_Memvec_t *scratch_p, gex_Flags_t flags);

/* Puts and gets. The remote side lies in the segment that is bound there. */
int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes, gex_Flags_t flags);
int gex_RMA_PutNBI(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes, gex_Event_t *lc_opt,
                   gex_Flags_t flags);
gex_Event_t gex_RMA_PutNB(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes, gex_Event_t *lc_opt,
                          gex_Flags_t flags) GASNETI_MUST_SYNC;
int gex_RMA_GetBlocking(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes, gex_Flags_t flags);
int gex_RMA_GetNBI(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes, gex_Flags_t flags);
gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes, gex_Flags_t flags)
    GASNETI_MUST_SYNC;
gex_RMA_Value_t gex_RMA_GetBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *src, size_t nbytes, gex_Flags_t flags);
int gex_RMA_PutBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value, size_t nbytes,
                           gex_Flags_t flags);
int gex_RMA_PutNBIVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value, size_t nbytes, gex_Flags_t flags);
gex_Event_t gex_RMA_PutNBVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value, size_t nbytes,
                             gex_Flags_t flags) GASNETI_MUST_SYNC;

/* Events. A category selects implicit operations of the calling thread. */
typedef unsigned int gex_EC_t;
#define GEX_EC_PUT 3U
#define GEX_EC_AM 2U
#define GEX_EC_LC 2U
#define GEX_EC_GET 4U
#define GEX_EC_RMW 8U
#define GEX_EC_ALL (~0U)
void gex_NBI_BeginAccessRegion(gex_Flags_t flags);
gex_Event_t gex_NBI_EndAccessRegion(gex_Flags_t flags) GASNETI_MUST_SYNC;
int gex_NBI_Test(gex_EC_t event_mask, gex_Flags_t flags);
void gex_NBI_Wait(gex_EC_t event_mask, gex_Flags_t flags);
int gex_Event_Test(gex_Event_t event);
void gex_Event_Wait(gex_Event_t event);
int gex_Event_TestSome(gex_Event_t *pevent, size_t numevents, gex_Flags_t flags);
void gex_Event_WaitSome(gex_Event_t *pevent, size_t numevents, gex_Flags_t flags);
int gex_Event_TestAll(gex_Event_t *pevent, size_t numevents, gex_Flags_t flags);
void gex_Event_WaitAll(gex_Event_t *pevent, size_t numevents, gex_Flags_t flags);
gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t event_category);

/* Handler-safe locks */
typedef gasnet_hsl_t gex_HSL_t;
#define GEX_HSL_INITIALIZER GASNET_HSL_INITIALIZER
void gex_HSL_Init(gex_HSL_t *hsl);
void gex_HSL_Destroy(gex_HSL_t *hsl);
void gex_HSL_Lock(gex_HSL_t *hsl);
void gex_HSL_Unlock(gex_HSL_t *hsl);
int gex_HSL_Trylock(gex_HSL_t *hsl);

/* Collectives. All members of a team make the same calls in the same order. */
typedef void (*gex_Coll_ReduceFn_t)(const void *arg1, void *arg2_and_out, size_t count, const void *cdata);
gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags) GASNETI_MUST_SYNC;
void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags);
gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t nbytes,
                                 gex_Flags_t flags) GASNETI_MUST_SYNC;
gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, gex_DT_t dt, size_t dt_sz,
                                   size_t dt_cnt, gex_OP_t op, gex_Coll_ReduceFn_t user_op, void *user_cdata,
                                   gex_Flags_t flags) GASNETI_MUST_SYNC;
gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t dt, size_t dt_sz, size_t dt_cnt,
                                   gex_OP_t op, gex_Coll_ReduceFn_t user_op, void *user_cdata, gex_Flags_t flags)
    GASNETI_MUST_SYNC;

/* Vector, indexed and strided transfers. Strides are in bytes, and may be negative. */
#define GEX_VIS_MAX_PEERCOMPLETION 127
void gex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void *source_addr, size_t nbytes,
                                      gex_Flags_t flags);
#define GASNETI_VIS(name, list)                                                                                       \
  gex_Event_t gex_VIS_##name##NB list GASNETI_MUST_SYNC;                                                              \
  int gex_VIS_##name##NBI list;                                                                                       \
  int gex_VIS_##name##Blocking list
GASNETI_VIS(VectorGet, (gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[], gex_Rank_t srcrank,
                        size_t srccount, gex_Memvec_t const srclist[], gex_Flags_t flags));
GASNETI_VIS(VectorPut, (gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount, gex_Memvec_t const dstlist[],
                        size_t srccount, gex_Memvec_t const srclist[], gex_Flags_t flags));
GASNETI_VIS(IndexedGet, (gex_TM_t tm, size_t dstcount, void *const dstlist[], size_t dstlen, gex_Rank_t srcrank,
                         size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags));
GASNETI_VIS(IndexedPut, (gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount, void *const dstlist[], size_t dstlen,
                         size_t srccount, void *const srclist[], size_t srclen, gex_Flags_t flags));
GASNETI_VIS(StridedGet, (gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[], gex_Rank_t srcrank, void *srcaddr,
                         const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                         gex_Flags_t flags));
GASNETI_VIS(StridedPut, (gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr, const ptrdiff_t dststrides[], void *srcaddr,
                         const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[], size_t stridelevels,
                         gex_Flags_t flags));

GASNETI_END_EXTERNC

#include "gasnetex_am.h"
#include "gasnet_ratomic.h"
#include "gasnet_mk.h"

#ifndef GASNETI_INSIDE_LIBRARY
/* gex_Client_Init of this object: passes the modes of the object to the library. The exported
   function gex_Client_Init, called by dlsym or from another language, means PAR and FAST. */
GASNETI_INLINE int gasneti_Client_Init_here(gex_Client_t *client_p, gex_EP_t *ep_p, gex_TM_t *tm_p,
                                            const char *clientName, int *argc, char ***argv, gex_Flags_t flags) {
  gasneti_client_t object = gasneti_client;
  object.max_segsize = gasnet_max_segsize;
  return gasneti_Client_Init(client_p, ep_p, tm_p, clientName, argc, argv, flags, &object);
}
#define gex_Client_Init gasneti_Client_Init_here
#include "gasnetex_inline.h"
#include "gasnetex_lines.h"
#endif

#endif
