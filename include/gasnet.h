/* The GASNet-1 interface: core and extended API.

   Define exactly one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR before including this header,
   and include it before gasnet_tools.h. gasnet_init passes the thread mode and the segment mode
   to the library. Objects of one program that differ in them do not link, or gasnet_init ends
   the program with a line that names both.

   The gasnet.h of GASNet-EX includes gasnetex.h and gasnet_tools.h, and its clients rely on that.
   With GASNET_WITH_EX this header does so too; it needs C99 or C++11 then. */
#ifndef _GASNET_H
#ifdef GASNET_WITH_EX
#include "gasnetex.h"
#endif
#define _GASNET_H
#define _INCLUDED_GASNET_H 1

#if defined(_GASNET_TOOLS_H) && !defined(_GASNETEX_H)
#error gasnet.h must be included before gasnet_tools.h
#endif

#include "gasnet_common.h"

/* Versions and configuration */
#define GASNET_SPEC_VERSION_MAJOR 1
#define GASNET_SPEC_VERSION_MINOR 8
#define GASNET_VERSION GASNET_SPEC_VERSION_MAJOR

GASNETI_BEGIN_EXTERNC

/* Types */
typedef uint8_t gasnet_handler_t;
typedef int32_t gasnet_handlerarg_t;
/* The types of tokens and events of GASNet-EX too. The names of C++ functions contain types, so in
   C++ they do not depend on what else the object includes. */
typedef void *gasnet_token_t;
#if defined(__cplusplus) || defined(_GASNET_FWD_H)
typedef struct gasneti_event_s *gasnet_handle_t;
#else
typedef void *gasnet_handle_t;
#endif
typedef struct gasneti_valget_s *gasnet_valget_handle_t;
typedef uintptr_t gasnet_register_value_t;

#define GASNET_INVALID_HANDLE ((gasnet_handle_t)0)
#define SIZEOF_GASNET_REGISTER_VALUE_T SIZEOF_VOID_P

/* A row of the handler table: the index, or 0 for one that gasnet_attach chooses, and the
   function, of any handler prototype. */
typedef struct gasneti_handlerentry_s {
  gasnet_handler_t index;
#if defined(GASNET_USE_STRICT_PROTOTYPES) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
  void *fnptr;
#elif defined(__GNUC__) && (__GNUC__ > 4 || defined(__clang__)) && !defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
  void (*fnptr)();
#pragma GCC diagnostic pop
#else
  void (*fnptr)();
#endif
} gasnet_handlerentry_t;

/* A piece of memory of the vector functions; len in bytes. */
typedef struct {
  void *addr;
  size_t len;
} gasnet_memvec_t;

/* Start of a job */
int gasneti_init(int *argc, char ***argv, const gasneti_client_t *client);
int gasnet_attach(gasnet_handlerentry_t *table, int numentries, uintptr_t segsize, uintptr_t minheapoffset);
gasnet_node_t gasnet_mynode(void);
gasnet_node_t gasnet_nodes(void);
int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int numentries);
int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int numentries);
/* Active messages; gasnet_am.h has the functions that send */
size_t gasnet_AMMaxArgs(void);
size_t gasnet_AMMaxMedium(void);
size_t gasnet_AMMaxLongRequest(void);
size_t gasnet_AMMaxLongReply(void);
int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *source);
/* Puts and gets. nbytes counts bytes. The remote side lies in the segment of the node. If the
   node is the caller itself, it may be other memory of the caller, except with debug checks. */
void gasnet_put(gasnet_node_t node, void *dest, const void *src, size_t nbytes);
void gasnet_put_bulk(gasnet_node_t node, void *dest, const void *src, size_t nbytes);
void gasnet_get(void *dest, gasnet_node_t node, const void *src, size_t nbytes);
void gasnet_get_bulk(void *dest, gasnet_node_t node, const void *src, size_t nbytes);
void gasnet_memset(gasnet_node_t node, void *dest, int val, size_t nbytes);

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

GASNETI_END_EXTERNC

#include "gasnet_am.h"
#include "gasnet_coll.h"
/* Inline paths in front of the library's functions. */
#ifndef GASNETI_INSIDE_LIBRARY
/* gasnet_init of this object: passes the modes of the object to the library. The exported function
   gasnet_init, called by dlsym or from another language, means PAR and FAST. */
GASNETI_INLINE int gasneti_init_client(int *argc, char ***argv) {
  gasneti_client_t client = gasneti_client;
  client.max_segsize = gasnet_max_segsize;
  return gasneti_init(argc, argv, &client);
}
#define gasnet_init gasneti_init_client
/* Clients of GASNet-EX that include this header name it so. */
#define gasneti_mynode gasnet_mynode()
#include "gasnet_inline.h"
#endif

#ifdef GASNET_WITH_EX
#include "gasnet_tools.h"
#endif

#endif
