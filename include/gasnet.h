/* The GASNet-1 interface: core and extended API.

   Define exactly one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR before including this header,
   and include it before gasnet_tools.h. gasnet_init passes the thread mode and the segment mode
   to the library. Objects of one program that differ in them do not link, or gasnet_init ends
   the program with a line that names both. */
#ifndef _GASNET_H
#define _GASNET_H
#define _INCLUDED_GASNET_H 1

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

/* Versions and configuration */
#define GASNET_SPEC_VERSION_MAJOR 1
#define GASNET_SPEC_VERSION_MINOR 8
#define GASNET_VERSION GASNET_SPEC_VERSION_MAJOR

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
#if GASNET_SEGMENT_EVERYTHING
#define GASNET_ALIGNED_SEGMENTS 1
#define GASNETI_SEGMENT_CONFIG "align,nopshm"
#else
#define GASNET_ALIGNED_SEGMENTS 0
#define GASNET_PSHM 1
#define GASNETI_PSHM_ENABLED 1
#define GASNETI_SEGMENT_CONFIG "noalign,pshm"
#endif
#define GASNET_NULL_ARGV_OK 1

#if GASNET_DEBUG
#define GASNETI_DEBUG_CONFIG "debug"
#else
#define GASNETI_DEBUG_CONFIG "nodebug"
#endif
#define GASNET_CONFIG_STRING                                                                                          \
  "RELEASE=" _STRINGIFY(GASNET_RELEASE_VERSION_MAJOR) "." _STRINGIFY(GASNET_RELEASE_VERSION_MINOR) "." _STRINGIFY(    \
      GASNET_RELEASE_VERSION_PATCH) ",SPEC=" _STRINGIFY(GASNET_SPEC_VERSION_MAJOR) "." _STRINGIFY(                    \
      GASNET_SPEC_VERSION_MINOR) ",CONDUIT=" GASNET_CONDUIT_NAME_STR "(" GASNET_CORE_NAME_STR                         \
                                 "-" GASNET_CORE_VERSION_STR "/" GASNET_EXTENDED_NAME_STR                             \
                                 "-" GASNET_EXTENDED_VERSION_STR "),THREADMODEL=" _STRINGIFY(                         \
                                     GASNETI_THREAD_MODE_NAME) ",SEGMENT=" _STRINGIFY(GASNETI_SEGMENT_MODE_NAME)      \
                                     ",PTR=" _STRINGIFY(GASNETI_PTR_CONFIG) "," GASNETI_SEGMENT_CONFIG                \
                                     "," GASNETI_DEBUG_CONFIG                                                         \
                                     ",trace,stats," GASNETI_DEBUGMALLOC_CONFIG ",srclines,timers_posixrt,"          \
                                     _STRINGIFY(GASNETI_MEMBAR_CONFIG) "," _STRINGIFY(GASNETI_ATOMIC_CONFIG) ","      \
                                     _STRINGIFY(GASNETI_ATOMIC32_CONFIG) "," _STRINGIFY(GASNETI_ATOMIC64_CONFIG)

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

GASNETI_BEGIN_EXTERNC

/* Types */
typedef uint32_t gasnet_node_t;
typedef uint8_t gasnet_handler_t;
typedef int32_t gasnet_handlerarg_t;
typedef void *gasnet_token_t;
typedef void *gasnet_handle_t;
typedef struct gasneti_valget_s *gasnet_valget_handle_t;
typedef uintptr_t gasnet_register_value_t;
typedef void *gasnet_threadinfo_t;

#define GASNET_INVALID_HANDLE ((gasnet_handle_t)0)
#define SIZEOF_GASNET_REGISTER_VALUE_T SIZEOF_VOID_P

/* A row of the handler table: the index, or 0 for one that gasnet_attach chooses, and the
   function, of any handler prototype. */
typedef struct gasneti_handlerentry_s {
  gasnet_handler_t index;
#if defined(GASNET_USE_STRICT_PROTOTYPES) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
  void *fnptr;
#elif defined(__clang__) && !defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wstrict-prototypes"
  void (*fnptr)();
#pragma clang diagnostic pop
#else
  void (*fnptr)();
#endif
} gasnet_handlerentry_t;

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

/* A piece of memory of the vector functions; len in bytes. */
typedef struct {
  void *addr;
  size_t len;
} gasnet_memvec_t;

/* A handler-safe lock: a mutex in PARSYNC and PAR, empty in SEQ. */
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

/* Start and end of a job */
int gasneti_init(int *argc, char ***argv, const gasneti_client_t *client);
int gasnet_attach(gasnet_handlerentry_t *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);
void gasnet_exit(int exitcode) GASNETI_ATTRIBUTE((__noreturn__));
gasnet_node_t gasnet_mynode(void);
gasnet_node_t gasnet_nodes(void);
char *gasnet_getenv(const char *name);
uintptr_t gasnet_getMaxLocalSegmentSize(void);
uintptr_t gasnet_getMaxGlobalSegmentSize(void);
int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int numentries);
int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int numentries);
const char *gasnet_ErrorName(int errval);
const char *gasnet_ErrorDesc(int errval);
int gasnet_set_waitmode(int wait_mode);

/* Active messages; gasnet_am.h has the functions that send */
size_t gasnet_AMMaxArgs(void);
size_t gasnet_AMMaxMedium(void);
size_t gasnet_AMMaxLongRequest(void);
size_t gasnet_AMMaxLongReply(void);
int gasnet_AMPoll(void);
int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *source);
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
    if (gasneti_since) GASNETI_HERE((void)gasneti_trace_blockuntil(gasneti_since));                                   \
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

/* Puts and gets. nbytes counts bytes. The remote side lies in the segment of the node. If the
   node is the caller itself, it may be other memory of the caller, except with debug checks. */
void gasnet_put(gasnet_node_t node, void *dest, const void *src, size_t nbytes);
void gasnet_put_bulk(gasnet_node_t node, void *dest, const void *src, size_t nbytes);
void gasnet_get(void *dest, gasnet_node_t node, const void *src, size_t nbytes);
void gasnet_get_bulk(void *dest, gasnet_node_t node, const void *src, size_t nbytes);
void gasnet_memset(gasnet_node_t node, void *dest, int val, size_t nbytes);

#define GASNETI_MUST_SYNC GASNETI_ATTRIBUTE((__warn_unused_result__))
gasnet_handle_t gasnet_put_nb(gasnet_node_t node, void *dest, const void *src, size_t nbytes) GASNETI_MUST_SYNC;
gasnet_handle_t gasnet_put_nb_bulk(gasnet_node_t node, void *dest, const void *src, size_t nbytes) GASNETI_MUST_SYNC;
gasnet_handle_t gasnet_get_nb(void *dest, gasnet_node_t node, const void *src, size_t nbytes) GASNETI_MUST_SYNC;
gasnet_handle_t gasnet_get_nb_bulk(void *dest, gasnet_node_t node, const void *src, size_t nbytes) GASNETI_MUST_SYNC;
gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void *dest, int val, size_t nbytes) GASNETI_MUST_SYNC;

void gasnet_wait_syncnb(gasnet_handle_t handle);
void gasnet_wait_syncnb_some(gasnet_handle_t *handles, size_t n);
void gasnet_wait_syncnb_all(gasnet_handle_t *handles, size_t n);
int gasnet_try_syncnb(gasnet_handle_t handle);
int gasnet_try_syncnb_some(gasnet_handle_t *handles, size_t n);
int gasnet_try_syncnb_all(gasnet_handle_t *handles, size_t n);
int gasnet_try_syncnb_nopoll(gasnet_handle_t handle);
int gasnet_try_syncnb_some_nopoll(gasnet_handle_t *handles, size_t n);
int gasnet_try_syncnb_all_nopoll(gasnet_handle_t *handles, size_t n);

void gasnet_put_nbi(gasnet_node_t node, void *dest, const void *src, size_t nbytes);
void gasnet_put_nbi_bulk(gasnet_node_t node, void *dest, const void *src, size_t nbytes);
void gasnet_get_nbi(void *dest, gasnet_node_t node, const void *src, size_t nbytes);
void gasnet_get_nbi_bulk(void *dest, gasnet_node_t node, const void *src, size_t nbytes);
void gasnet_memset_nbi(gasnet_node_t node, void *dest, int val, size_t nbytes);

void gasnet_wait_syncnbi_gets(void);
void gasnet_wait_syncnbi_puts(void);
void gasnet_wait_syncnbi_all(void);
int gasnet_try_syncnbi_gets(void);
int gasnet_try_syncnbi_puts(void);
int gasnet_try_syncnbi_all(void);

void gasnet_begin_nbi_accessregion(void);
gasnet_handle_t gasnet_end_nbi_accessregion(void) GASNETI_MUST_SYNC;

/* Values of 1 to SIZEOF_GASNET_REGISTER_VALUE_T bytes */
void gasnet_put_val(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes);
gasnet_handle_t gasnet_put_nb_val(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes)
    GASNETI_MUST_SYNC;
void gasnet_put_nbi_val(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes);
gasnet_register_value_t gasnet_get_val(gasnet_node_t node, const void *src, size_t nbytes);
gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, const void *src, size_t nbytes) GASNETI_MUST_SYNC;
gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle);

/* Barrier */
void gasnet_barrier_notify(int id, int flags);
int gasnet_barrier_wait(int id, int flags);
int gasnet_barrier_try(int id, int flags);
int gasnet_barrier(int id, int flags);
int gasnet_barrier_result(int *id);

/* Part of the tools interface; clients use it without including gasnet_tools.h. */
#define gasneti_gethostname gasnett_gethostname

GASNETI_END_EXTERNC

#include "gasnet_am.h"
#include "gasnet_coll.h"
#include "gasnet_trace.h"
/* Mode symbols of the client's objects; inline paths in front of the library's functions. */
#ifndef GASNETI_INSIDE_LIBRARY
#include "gasnet_client.h"
#include "gasnet_inline.h"
#endif

#endif
