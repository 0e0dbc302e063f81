/* What the Rust side of the binding sees of a libportals: its header, which differs from vendor to
 * vendor. What every vendor has in one spelling or another is named gasneti_ptl_* and
 * GASNETI_PTL_*.
 *
 * bindgen reads this file; shim.c implements it. build.rs writes gasneti_portals_config.h, which
 * includes the vendor's header and says by macros what the header has.
 *
 * Constants are variables because bindgen skips macros with casts, and evaluates these. */
#ifndef GASNETI_PORTALS_SHIM_H
#define GASNETI_PORTALS_SHIM_H

#include "gasneti_portals_config.h"
#include "system.h"

/* buildscript/layout.rs compiles this file with a GASNETI_VALUE that compares. */
#ifndef GASNETI_VALUE
#define GASNETI_VALUE(name, value) static const long long GASNETI_PTL_##name = (long long)(value)
#endif

GASNETI_VALUE(OK, PTL_OK);
GASNETI_VALUE(EQ_EMPTY, PTL_EQ_EMPTY);
GASNETI_VALUE(EQ_DROPPED, PTL_EQ_DROPPED);
GASNETI_VALUE(MD_INVALID, PTL_MD_INVALID);
GASNETI_VALUE(MD_IN_USE, PTL_MD_IN_USE);
GASNETI_VALUE(NI_OK, PTL_NI_OK);

GASNETI_VALUE(EVENT_GET_END, PTL_EVENT_GET_END);
GASNETI_VALUE(EVENT_PUT_END, PTL_EVENT_PUT_END);
GASNETI_VALUE(EVENT_REPLY_END, PTL_EVENT_REPLY_END);
GASNETI_VALUE(EVENT_SEND_END, PTL_EVENT_SEND_END);
GASNETI_VALUE(EVENT_ACK, PTL_EVENT_ACK);
GASNETI_VALUE(EVENT_UNLINK, PTL_EVENT_UNLINK);

GASNETI_VALUE(RETAIN, PTL_RETAIN);
GASNETI_VALUE(UNLINK, PTL_UNLINK);
GASNETI_VALUE(INS_BEFORE, PTL_INS_BEFORE);
GASNETI_VALUE(INS_AFTER, PTL_INS_AFTER);
GASNETI_VALUE(ACK_REQ, PTL_ACK_REQ);
GASNETI_VALUE(NO_ACK_REQ, GASNETI_HAS_NO_ACK_REQ);

GASNETI_VALUE(MD_THRESH_INF, PTL_MD_THRESH_INF);
GASNETI_VALUE(MD_OP_PUT, PTL_MD_OP_PUT);
GASNETI_VALUE(MD_OP_GET, PTL_MD_OP_GET);
GASNETI_VALUE(MD_MANAGE_REMOTE, PTL_MD_MANAGE_REMOTE);
GASNETI_VALUE(MD_TRUNCATE, PTL_MD_TRUNCATE);
GASNETI_VALUE(MD_ACK_DISABLE, PTL_MD_ACK_DISABLE);
GASNETI_VALUE(MD_MAX_SIZE, PTL_MD_MAX_SIZE);
GASNETI_VALUE(MD_EVENT_START_DISABLE, PTL_MD_EVENT_START_DISABLE);
GASNETI_VALUE(MD_EVENT_END_DISABLE, PTL_MD_EVENT_END_DISABLE);
/* Bits that request the UNLINK event of an automatic unlink; 0 where it always comes. */
GASNETI_VALUE(MD_AUTO_UNLINK, GASNETI_HAS_AUTO_UNLINK);

/* Largest message in bytes. */
GASNETI_VALUE(MAX_TRANSFER, GASNETI_HAS_MAX_TRANS_SZ);

/* Properties of an interface; 0 where the header knows none. */
#ifdef PTL_NI_THREAD_SAFE
GASNETI_VALUE(THREAD_SAFE, PTL_NI_THREAD_SAFE);
GASNETI_VALUE(APPLICATION_BYPASS, PTL_NI_APPLICATION_BYPASS);
#else
GASNETI_VALUE(THREAD_SAFE, 0);
GASNETI_VALUE(APPLICATION_BYPASS, 0);
#endif

/* The types that the binding passes on. Their sizes are compared as offsets of these members. */
struct gasneti_ptl_types {
    ptl_handle_ni_t ni;
    ptl_handle_me_t me;
    ptl_handle_md_t md;
    ptl_handle_eq_t eq;
    ptl_size_t length;
    ptl_match_bits_t match_bits;
    ptl_hdr_data_t hdr_data;
    ptl_pt_index_t pt_index;
    ptl_ac_index_t ac_index;
    ptl_unlink_t unlink;
    ptl_ins_pos_t position;
    ptl_ack_req_t ack_req;
    char end;
};

/* The limits that an interface must have, and those that it has. */
struct gasneti_ptl_limits {
    int mes;
    int mds;
    int eqs;
    int pt_index;
};

/* Initialises the library and opens its interface; has_rank: PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP
 * are set. PTL_OK, or the error of the call that *call is set to name. `limits` are those that are
 * wanted, then those that the library says the interface has. An interface that is open already is
 * used as it is; `limits` are not changed if the library does not say what it has. */
int gasneti_ptl_open(int has_rank, struct gasneti_ptl_limits *limits, ptl_handle_ni_t *ni, const char **call);
/* PtlEQAlloc without a handler. */
int gasneti_ptl_eq_alloc(ptl_handle_ni_t ni, ptl_size_t count, ptl_handle_eq_t *eq);
/* PtlEQFree; a queue that is still in use is emptied and freed again. */
int gasneti_ptl_eq_free(ptl_handle_eq_t eq);

/* PTL_EQ_NONE */
void gasneti_ptl_eq_none(ptl_handle_eq_t *eq);
/* PTL_NID_ANY and PTL_PID_ANY */
void gasneti_ptl_anybody(ptl_process_id_t *id);
/* Messages that found no match entry; 0 if the library does not count them. */
unsigned long long gasneti_ptl_dropped(ptl_handle_ni_t ni);

/* What the library says of the interface: the bits THREAD_SAFE and APPLICATION_BYPASS; none
 * if its header has no PtlNIProperties. */
unsigned gasneti_ptl_properties(ptl_handle_ni_t ni);

/* The name of an error in the header, of either sign; null for none. */
const char *gasneti_ptl_error_name(int error);
/* Compares the names that the library has for the header's errors with those of the header. Null
 * if all agree, or if the library has texts instead of names. Otherwise the first name of the
 * header that the library calls something else, *theirs. */
const char *gasneti_ptl_disagrees(int *value, const char **theirs);
/* A function of the library. */
void *gasneti_ptl_function(void);
/* The variable that names a memory file which the processes of a job share, if the library has
 * one. */
const char *gasneti_ptl_fabric_variable(void);

#endif
