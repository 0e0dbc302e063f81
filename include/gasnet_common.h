/* What gasnet.h and gasnetex.h share: modes, configuration, results, locks, waiting, the barrier
   and the end of a job. Included by both. */
#ifndef _GASNET_COMMON_H
#define _GASNET_COMMON_H

#if defined(_GASNET_TOOLS_H)
#error gasnet.h must be included before gasnet_tools.h
#endif

/* Thread mode */
#if defined(GASNET_SEQ) + defined(GASNET_PARSYNC) + defined(GASNET_PAR) != 1
#error Define exactly one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR before including gasnet.h
#endif
#if defined(GASNET_SEQ)
#undef GASNET_SEQ
#define GASNET_SEQ 1
#define GASNETI_THREAD_MODE 1
#define GASNETI_THREAD_MODE_NAME SEQ
#elif defined(GASNET_PARSYNC)
#undef GASNET_PARSYNC
#define GASNET_PARSYNC 1
#define GASNETI_THREAD_MODE 2
#define GASNETI_THREAD_MODE_NAME PARSYNC
#else
#undef GASNET_PAR
#define GASNET_PAR 1
#define GASNETI_THREAD_MODE 3
#define GASNETI_THREAD_MODE_NAME PAR
#endif

/* Segment mode */
#if defined(GASNET_SEGMENT_FAST) + defined(GASNET_SEGMENT_LARGE) + defined(GASNET_SEGMENT_EVERYTHING) > 1
#error Define at most one of GASNET_SEGMENT_FAST, GASNET_SEGMENT_LARGE and GASNET_SEGMENT_EVERYTHING
#endif
#if defined(GASNET_SEGMENT_EVERYTHING)
#undef GASNET_SEGMENT_EVERYTHING
#define GASNET_SEGMENT_EVERYTHING 1
#define GASNETI_SEGMENT_MODE 3
#define GASNETI_SEGMENT_MODE_NAME EVERYTHING
#elif defined(GASNET_SEGMENT_LARGE)
#undef GASNET_SEGMENT_LARGE
#define GASNET_SEGMENT_LARGE 1
#define GASNETI_SEGMENT_MODE 2
#define GASNETI_SEGMENT_MODE_NAME LARGE
#else
#undef GASNET_SEGMENT_FAST
#define GASNET_SEGMENT_FAST 1
#define GASNETI_SEGMENT_MODE 1
#define GASNETI_SEGMENT_MODE_NAME FAST
#endif

#include "gasnet_abi.h"
#include "gasnet_atomics.h"
#include "gasnet_basic.h"
#include "gasnet_locks.h"

#define GASNET_CONDUIT_PORTALS 1
#define GASNET_CONDUIT_NAME PORTALS
#define GASNET_CONDUIT_NAME_STR "PORTALS"
#define GASNET_CORE_NAME PORTALS
#define GASNET_CORE_NAME_STR "PORTALS"
#define GASNET_CORE_VERSION 0.1
#define GASNET_CORE_VERSION_STR "0.1"
#define GASNET_EXTENDED_NAME PORTALS
#define GASNET_EXTENDED_NAME_STR "PORTALS"
#define GASNET_EXTENDED_VERSION 0.1
#define GASNET_EXTENDED_VERSION_STR "0.1"

#define GASNET_MAXNODES 65536
/* In EVERYTHING each rank exposes its own address space, and maps that of no other. */
#if defined(GASNET_SEGMENT_EVERYTHING) && GASNET_SEGMENT_EVERYTHING
#define GASNET_ALIGNED_SEGMENTS 1
#define GASNETI_SEGMENT_CONFIG "align,nopshm"
#else
#define GASNET_ALIGNED_SEGMENTS 0
#define GASNET_PSHM 1
#define GASNETI_PSHM_ENABLED 1
#define GASNETI_SEGMENT_CONFIG "noalign,pshm"
#endif
#define GASNET_NULL_ARGV_OK 1

#if defined(GASNET_DEBUG) && GASNET_DEBUG
#define GASNETI_DEBUG_CONFIG "debug"
#else
#define GASNETI_DEBUG_CONFIG "nodebug"
#endif
#ifndef GASNETI_SPEC_CONFIG
#define GASNETI_SPEC_CONFIG "1.8"
#endif
#define GASNETI_VERSION_CONFIG                                                                                        \
  "RELEASE=" _STRINGIFY(GASNET_RELEASE_VERSION_MAJOR) "." _STRINGIFY(GASNET_RELEASE_VERSION_MINOR) "." _STRINGIFY(    \
      GASNET_RELEASE_VERSION_PATCH) ",SPEC=" GASNETI_SPEC_CONFIG
#define GASNET_CONFIG_STRING                                                                                          \
  GASNETI_VERSION_CONFIG ",CONDUIT=" GASNET_CONDUIT_NAME_STR "(" GASNET_CORE_NAME_STR "-" GASNET_CORE_VERSION_STR     \
                         "/" GASNET_EXTENDED_NAME_STR "-" GASNET_EXTENDED_VERSION_STR "),THREADMODEL=" _STRINGIFY(    \
                             GASNETI_THREAD_MODE_NAME) ",SEGMENT=" _STRINGIFY(GASNETI_SEGMENT_MODE_NAME)              \
                             ",PTR=" _STRINGIFY(GASNETI_PTR_CONFIG) "," GASNETI_SEGMENT_CONFIG                        \
                             "," GASNETI_DEBUG_CONFIG ",trace,stats," GASNETI_DEBUGMALLOC_CONFIG                      \
                             ",srclines,timers_posixrt," _STRINGIFY(GASNETI_MEMBAR_CONFIG) "," _STRINGIFY(            \
                                 GASNETI_ATOMIC_CONFIG) "," _STRINGIFY(GASNETI_ATOMIC32_CONFIG) "," _STRINGIFY(       \
                                 GASNETI_ATOMIC64_CONFIG)

/* Results */
#define GASNET_OK 0
#define GASNET_ERR_NOT_INIT 10001
#define GASNET_ERR_RESOURCE 10002
#define GASNET_ERR_BAD_ARG 10003
#define GASNET_ERR_NOT_READY 10004
#define GASNET_ERR_BARRIER_MISMATCH 10005

/* Flags of the barriers */
#define GASNET_BARRIERFLAG_ANONYMOUS 1
#define GASNET_BARRIERFLAG_MISMATCH 2
#define GASNET_BARRIERFLAG_IMAGES 4
#define GASNET_BARRIERFLAG_UNNAMED (GASNET_BARRIERFLAG_ANONYMOUS | 8)

/* Wait modes */
#define GASNET_WAIT_SPIN 0
#define GASNET_WAIT_BLOCK 1
#define GASNET_WAIT_SPINBLOCK 2

#define GASNETI_MUST_SYNC GASNETI_ATTRIBUTE((__warn_unused_result__))

GASNETI_BEGIN_EXTERNC

/* Types */
typedef uint32_t gasnet_node_t;
typedef void *gasnet_threadinfo_t;

/* A segment: its address in its own process, and its size in bytes. */
typedef struct gasneti_seginfo_s {
  void *addr;
  uintptr_t size;
} gasnet_seginfo_t;

/* The location of a rank: its compute node (host) and its supernode, both numbered from 0. A
   supernode is a group of ranks that map each other's segments. For a rank of the caller's
   supernode, an address in its segment plus offset is the address of the same byte in this
   process. */
typedef struct gasneti_nodeinfo_s {
  gasnet_node_t host;
  gasnet_node_t supernode;
  uintptr_t offset;
} gasnet_nodeinfo_t;

/* A handler-safe lock: a mutex in PARSYNC and PAR; in SEQ locking does nothing. */
typedef struct {
  gasnett_mutex_t lock;
  uintptr_t gasneti_reserved[2];
} gasnet_hsl_t;
/* Marks a static initialiser, for debug checks. */
#define GASNETI_HSL_STATIC 0x48534C31
#define GASNET_HSL_INITIALIZER { GASNETT_MUTEX_INITIALIZER, { GASNETI_HSL_STATIC, 0 } }

/* Data that a client may define or assign */
/* Bound of the segment in bytes; 0 for none. */
extern uint64_t gasnet_max_segsize;
/* gasnet_attach calls it with the segment. */
extern void (*gasnet_client_attach_hook)(void *, uintptr_t);
/* A debugger sets it to 0 to continue a frozen process. */
extern volatile int gasnet_frozen;

/* The modes that an object was compiled for. */
typedef struct {
  uint32_t abi;
  uint32_t thread_mode;  /* 1 SEQ, 2 PARSYNC, 3 PAR */
  uint32_t segment_mode; /* 1 FAST, 2 LARGE, 3 EVERYTHING */
  uint32_t debug;
  uint64_t max_segsize;
} gasneti_client_t;

/* End of a job; queries */
void gasnet_exit(int exitcode) GASNETI_ATTRIBUTE((__noreturn__));
char *gasnet_getenv(const char *name);
uintptr_t gasnet_getMaxLocalSegmentSize(void);
uintptr_t gasnet_getMaxGlobalSegmentSize(void);
const char *gasnet_ErrorName(int errval);
const char *gasnet_ErrorDesc(int errval);
int gasnet_set_waitmode(int wait_mode);

/* Polling and waiting */
int gasnet_AMPoll(void);
uint32_t gasneti_blockuntil_round(uint32_t round);

/* Waits until cond is true. Polls and evaluates cond in turn, at bounded intervals even if no
   message arrives. */
#define GASNET_BLOCKUNTIL(cond)                                                                                       \
  do {                                                                                                                \
    uint32_t gasneti_round = 0;                                                                                       \
    const uint64_t gasneti_since = GASNETI_WATCHED ? gasneti_trace_blockuntil(0) : 0;                                 \
    while (!(cond)) {                                                                                                 \
      gasneti_round = gasneti_blockuntil_round(gasneti_round);                                                        \
    }                                                                                                                 \
    if (gasneti_since) GASNETI_FROM(__FILE__, __LINE__), (void)gasneti_trace_blockuntil(gasneti_since);               \
    gasnett_local_rmb();                                                                                              \
  } while (0)

/* No-interrupt sections and handler-safe locks */
void gasnet_hold_interrupts(void);
void gasnet_resume_interrupts(void);
void gasnet_hsl_init(gasnet_hsl_t *hsl);
void gasnet_hsl_destroy(gasnet_hsl_t *hsl);
void gasnet_hsl_lock(gasnet_hsl_t *hsl);
int gasnet_hsl_trylock(gasnet_hsl_t *hsl);
void gasnet_hsl_unlock(gasnet_hsl_t *hsl);

/* Thread information. The library needs none: GET is null, and POST declares an object that is
   not used. */
#define GASNET_GET_THREADINFO() ((gasnet_threadinfo_t)0)
#define GASNET_POST_THREADINFO(info) static GASNETI_ATTRIBUTE((__unused__)) int gasneti_posted = (int)sizeof(info)
#define GASNET_BEGIN_FUNCTION() GASNET_POST_THREADINFO(GASNET_GET_THREADINFO())

/* Barrier */
void gasnet_barrier_notify(int id, int flags);
int gasnet_barrier_wait(int id, int flags);
int gasnet_barrier_try(int id, int flags);
int gasnet_barrier(int id, int flags);
int gasnet_barrier_result(int *id);

/* Part of the tools interface; clients use it without including gasnet_tools.h. */
#define gasneti_gethostname gasnett_gethostname

GASNETI_END_EXTERNC

#include "gasnet_trace.h"
/* Mode symbols of the client's objects. */
#ifndef GASNETI_INSIDE_LIBRARY
#include "gasnet_client.h"
#endif

#endif
