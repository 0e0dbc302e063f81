/* portals3.h: the Portals 3.3 message passing interface, as libportals3 implements it.
 *
 * Names, types and the order of arguments are those of the specification. The numeric values are
 * this library's own: no program may depend on them. Written by hand; a test compares every value
 * and every layout with the library's. Valid C99 and C++98.
 *
 * Every function but PtlFini and the Ptl*Str returns PTL_OK or an error. Errors that any of them
 * may return are not repeated below. They are PTL_NO_INIT before PtlInit, PTL_SEGV for a null
 * pointer to a result, and PTL_FAIL for a value outside an enumeration. A handle of no such
 * object gives PTL_NI_INVALID, PTL_ME_INVALID, PTL_MD_INVALID or PTL_EQ_INVALID.
 *
 * Several threads may call functions at once, but no other call may run during PtlFini and the
 * last PtlNIFini.
 *
 * PORTALS3_CRAY_SPELLINGS adds the spellings of Cray's header: see the end of this file. */
#ifndef PORTALS3_H
#define PORTALS3_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ---- */

typedef uint64_t ptl_size_t;
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef uint64_t ptl_sr_value_t;
typedef uint32_t ptl_handle_any_t;
typedef uint32_t ptl_handle_ni_t;
typedef uint32_t ptl_handle_me_t;
typedef uint32_t ptl_handle_md_t;
typedef uint32_t ptl_handle_eq_t;
typedef uint32_t ptl_pt_index_t;
typedef uint32_t ptl_ac_index_t;
typedef uint32_t ptl_interface_t;
typedef uint32_t ptl_nid_t;
typedef uint32_t ptl_pid_t;
typedef uint32_t ptl_uid_t;
typedef uint32_t ptl_jid_t;
typedef uint32_t ptl_sr_index_t;
typedef uint32_t ptl_ni_fail_t;
typedef uint32_t ptl_seq_t;
typedef uint32_t ptl_time_t; /* milliseconds */

typedef struct {
    ptl_nid_t nid;
    ptl_pid_t pid;
} ptl_process_id_t;

typedef struct {
    int max_mes;       /* match list entries */
    int max_mds;       /* memory descriptors */
    int max_eqs;       /* event queues */
    int max_ac_index;  /* highest access control index */
    int max_pt_index;  /* highest portal table index */
    int max_md_iovecs; /* entries of a scattered descriptor */
    int max_me_list;   /* entries of one match list */
    int max_getput_md; /* bytes that PtlGetPut swaps */
} ptl_ni_limits_t;

typedef enum {
    PTL_OK = 0,
    PTL_AC_INDEX_INVALID,
    PTL_EQ_DROPPED,
    PTL_EQ_EMPTY,
    PTL_EQ_INVALID,
    PTL_FAIL,
    PTL_HANDLE_INVALID,
    PTL_IFACE_INVALID,
    PTL_MD_ILLEGAL,
    PTL_MD_INVALID,
    PTL_MD_IN_USE,
    PTL_MD_NO_UPDATE,
    PTL_ME_INVALID,
    PTL_ME_IN_USE,
    PTL_ME_LIST_TOO_LONG,
    PTL_NI_INVALID,
    PTL_NO_INIT,
    PTL_NO_SPACE,
    PTL_PID_INVALID,
    PTL_PROCESS_INVALID,
    PTL_PT_FULL,
    PTL_PT_INDEX_INVALID,
    PTL_SEGV,
    PTL_SR_INDEX_INVALID,
    PTL_UNKNOWN_ERROR,
    PTL_MAX_ERRNO
} ptl_err_t;

typedef enum { PTL_RETAIN = 0, PTL_UNLINK } ptl_unlink_t;
typedef enum { PTL_INS_BEFORE = 0, PTL_INS_AFTER } ptl_ins_pos_t;
typedef enum { PTL_ACK_REQ = 0, PTL_NO_ACK_REQ } ptl_ack_req_t;

typedef enum {
    PTL_EVENT_GET_START = 0,
    PTL_EVENT_GET_END,
    PTL_EVENT_PUT_START,
    PTL_EVENT_PUT_END,
    PTL_EVENT_GETPUT_START,
    PTL_EVENT_GETPUT_END,
    PTL_EVENT_REPLY_START,
    PTL_EVENT_REPLY_END,
    PTL_EVENT_SEND_START,
    PTL_EVENT_SEND_END,
    PTL_EVENT_ACK,
    PTL_EVENT_UNLINK
} ptl_event_kind_t;

/* A piece of a scattered descriptor. */
typedef struct {
    void *iov_base;
    ptl_size_t iov_len;
} ptl_md_iovec_t;

typedef struct {
    void *start;               /* first byte; with PTL_MD_IOVEC an array of ptl_md_iovec_t */
    ptl_size_t length;         /* bytes; with PTL_MD_IOVEC entries */
    int threshold;             /* operations until it is inactive, or PTL_MD_THRESH_INF */
    ptl_size_t max_size;       /* with PTL_MD_MAX_SIZE: less space than this makes it inactive */
    unsigned int options;      /* PTL_MD_* */
    void *user_ptr;            /* comes back in its events */
    ptl_handle_eq_t eq_handle; /* where its events go, or PTL_EQ_NONE */
} ptl_md_t;

typedef struct {
    ptl_event_kind_t type;
    ptl_process_id_t initiator; /* of an ACK or REPLY: the target */
    ptl_uid_t uid;              /* this process's own, and so is jid */
    ptl_jid_t jid;
    ptl_pt_index_t pt_index; /* modulo 256, the most entries of a table */
    ptl_match_bits_t match_bits;
    ptl_size_t rlength; /* requested bytes */
    ptl_size_t mlength; /* bytes accepted */
    ptl_size_t offset;  /* where in the descriptor */
    ptl_handle_md_t md_handle;
    ptl_md_t md; /* the descriptor and its threshold when the event was posted; see PtlMDUpdate */
    ptl_hdr_data_t hdr_data;
    ptl_seq_t link; /* of an END: the sequence of its START */
    ptl_ni_fail_t ni_fail_type;
    volatile ptl_seq_t sequence;
} ptl_event_t;

/* Called by the call that takes an event from its queue. May make calls itself. */
typedef void (*ptl_eq_handler_t)(ptl_event_t *event);

/* ---- constants ---- */

#define PTL_INVALID_HANDLE ((ptl_handle_any_t)0xffffffffU)
#define PTL_HANDLE_NONE ((ptl_handle_any_t)0x7fffffffU)
#define PTL_EQ_NONE ((ptl_handle_eq_t)0xbfffffffU)
#define PTL_PT_INDEX_ANY ((ptl_pt_index_t)0xffffffffU)
#define PTL_NID_ANY ((ptl_nid_t)0xffffffffU)
#define PTL_PID_ANY ((ptl_pid_t)0xffffffffU)
#define PTL_UID_ANY ((ptl_uid_t)0xffffffffU)
#define PTL_JID_ANY ((ptl_jid_t)0xffffffffU)
#define PTL_TIME_FOREVER ((ptl_time_t)0xffffffffU)
#define PTL_EQ_HANDLER_NONE ((ptl_eq_handler_t)0)
#define PTL_IFACE_DEFAULT ((ptl_interface_t)0xf0f0f300U)
#define PTL_NI_OK ((ptl_ni_fail_t)0)
#define PTL_NI_FAIL ((ptl_ni_fail_t)1)
#define PTL_SR_DROP_COUNT ((ptl_sr_index_t)0)
#define PTL_MD_THRESH_INF (-1)

#define PTL_MD_OP_PUT 0x001U              /* responds to puts */
#define PTL_MD_OP_GET 0x002U              /* responds to gets */
#define PTL_MD_MANAGE_REMOTE 0x004U       /* the initiator supplies the offset */
#define PTL_MD_TRUNCATE 0x008U            /* truncates messages that are too long */
#define PTL_MD_ACK_DISABLE 0x010U         /* sends no acknowledgements */
#define PTL_MD_IOVEC 0x020U               /* is scattered */
#define PTL_MD_MAX_SIZE 0x040U            /* max_size applies */
#define PTL_MD_EVENT_START_DISABLE 0x080U /* posts no START events */
#define PTL_MD_EVENT_END_DISABLE 0x100U   /* posts no END events */

/* ---- the library and the interface ---- */

/* May be called more than once. Stores 1 in *max_interfaces. */
int PtlInit(int *max_interfaces);
/* Closes everything. Called once, when no part of the program makes further calls. */
void PtlFini(void);

/* Opens PTL_IFACE_DEFAULT; any other interface is PTL_IFACE_INVALID. pid is the caller's own or
 * PTL_PID_ANY, else PTL_PID_INVALID. desired and actual may be null. A repeated call returns the
 * same handle and the limits that were granted first. PTL_NO_SPACE: no memory for these limits.
 * PTL_FAIL: this network cannot carry the job (see PtlSetRank), or the process that forked this
 * one has opened the interface; a line on the standard error stream says why. */
int PtlNIInit(ptl_interface_t interface_number, ptl_pid_t pid, ptl_ni_limits_t *desired, ptl_ni_limits_t *actual,
              ptl_handle_ni_t *ni_handle);
/* Undoes one PtlNIInit; the last one closes the interface. Later messages are dropped. A message
 * that is under way may still change memory for a moment. In a forked child the interface stays
 * that of the parent; after PtlFini the child of a job of one may open its own. */
int PtlNIFini(ptl_handle_ni_t ni_handle);
/* PTL_SR_DROP_COUNT: messages to this process that no descriptor accepted. Other registers are
 * PTL_SR_INDEX_INVALID. Like the calls on event queues, it takes and sends messages that need
 * calls of this process (PTL_ATTACH=0). */
int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status);
/* 0 to the caller, 1 to the other processes of the job. PTL_PROCESS_INVALID: not of the job. */
int PtlNIDist(ptl_handle_ni_t ni_handle, ptl_process_id_t process, unsigned long *distance);
/* The interface of an object. PTL_HANDLE_INVALID: there is no such object. */
int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle);

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);
int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_id_t *id);
int PtlGetJid(ptl_handle_ni_t ni_handle, ptl_jid_t *jid);

/* PTL_AC_INDEX_INVALID, PTL_PT_INDEX_INVALID. Initially entry 0 admits the processes of the same
 * user and job, and the others admit no process. */
int PtlACEntry(ptl_handle_ni_t ni_handle, ptl_ac_index_t ac_index, ptl_process_id_t match_id, ptl_uid_t uid, ptl_jid_t jid,
               ptl_pt_index_t pt_index);

/* ---- match list entries ---- */

/* PTL_PT_INDEX_INVALID, PTL_ME_LIST_TOO_LONG, PTL_NO_SPACE. */
int PtlMEAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op, ptl_ins_pos_t position, ptl_handle_me_t *me_handle);
/* On a portal table entry that was never used; PTL_PT_FULL. */
int PtlMEAttachAny(ptl_handle_ni_t ni_handle, ptl_pt_index_t *pt_index, ptl_process_id_t match_id,
                   ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op,
                   ptl_handle_me_t *me_handle);
int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits,
                ptl_unlink_t unlink_op, ptl_ins_pos_t position, ptl_handle_me_t *me_handle);
/* Its descriptor goes with it. PTL_ME_IN_USE while an operation uses that. */
int PtlMEUnlink(ptl_handle_me_t me_handle);

/* ---- memory descriptors ---- */

/* PTL_ME_IN_USE: the entry has a descriptor. PTL_MD_ILLEGAL, PTL_EQ_INVALID.
 * PTL_NO_SPACE: there are max_mds descriptors. A removed one counts until its queue is read as far
 * as it was filled at the removal, or freed. Of PtlMDAttach without PTL_MD_MANAGE_REMOTE also: the
 * numbers of bytes and of operations (threshold) have more than 53 bits together, as 4 MiB with
 * INT_MAX have; PTL_MD_THRESH_INF needs no bit. */
int PtlMDAttach(ptl_handle_me_t me_handle, ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_md_t *md_handle);
int PtlMDBind(ptl_handle_ni_t ni_handle, ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_md_t *md_handle);
/* PTL_MD_IN_USE while an operation uses it. Posts no event. */
int PtlMDUnlink(ptl_handle_md_t md_handle);
/* old_md and new_md may be null. PTL_MD_NO_UPDATE: test_eq is not empty, or an event is about to
 * be posted to it. With PTL_EQ_NONE for test_eq: an operation moves bytes for a second. With both:
 * the reply to a get is to come. After an update with PTL_EQ_NONE an event that was not read
 * before has the new start, length, max_size, options, user_ptr and eq_handle in its md. */
int PtlMDUpdate(ptl_handle_md_t md_handle, ptl_md_t *old_md, ptl_md_t *new_md, ptl_handle_eq_t test_eq);

/* ---- event queues ---- */

/* Room for at least count events. */
int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_eq_handler_t eq_handler, ptl_handle_eq_t *eq_handle);
int PtlEQFree(ptl_handle_eq_t eq_handle);
/* PTL_EQ_EMPTY; PTL_EQ_DROPPED: there is an event, and others before it were lost. */
int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event);
int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event);
/* The first queue, in the order of the array, that has an event. */
int PtlEQPoll(ptl_handle_eq_t *eq_handles, int size, ptl_time_t timeout, ptl_event_t *event, int *which_eq);

/* ---- moving data ---- */

/* PTL_PROCESS_INVALID: not a process of the job, or one that has not called PtlNIInit yet. */
int PtlPut(ptl_handle_md_t md_handle, ptl_ack_req_t ack_req, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
           ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);
/* PTL_MD_ILLEGAL: the region exceeds the descriptor. */
int PtlPutRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                 ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
                 ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);
int PtlGet(ptl_handle_md_t md_handle, ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset);
int PtlGetRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_id_t target_id,
                 ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset);
/* PTL_MD_ILLEGAL: put_md is longer than max_getput_md or than get_md. */
int PtlGetPut(ptl_handle_md_t get_md, ptl_handle_md_t put_md, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
              ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/* ---- properties of an interface, beyond the specification ---- */

/* Several threads may call functions at once. */
#define PTL_NI_THREAD_SAFE 1u
/* Puts and gets of other processes complete without calls of this one. */
#define PTL_NI_APPLICATION_BYPASS 2u

/* Stores the bits of its properties; the other processes have opened their interfaces. */
int PtlNIProperties(ptl_handle_ni_t ni_handle, unsigned int *properties);

/* ---- names; never null ---- */

const char *PtlErrorStr(unsigned int error);
const char *PtlEventKindStr(ptl_event_kind_t kind);
const char *PtlNIFailStr(ptl_handle_ni_t ni_handle, ptl_ni_fail_t fail);

/* ---- ranks, beyond the specification ----
 *
 * ptlrun, or another launcher, passes the job in environment variables. PTL_MY_RID is the rank of
 * this process. PTL_NIDMAP and PTL_PIDMAP are node and process ids in the order of ranks,
 * separated by colons. PTL_FABRIC_FD is the descriptor of an empty memory file that all processes
 * inherit. PTL_ARENA_BYTES, the same everywhere, is the memory of each process for queues and
 * tables. With PTL_ATTACH=0 messages wait for a call of their target. All processes are on one
 * host, so nids are equal, and pids are ranks. Without these variables the process is alone.
 *
 * ni_handle may be PTL_INVALID_HANDLE, even before PtlInit. The setters must be called before
 * PtlNIInit; later they return PTL_FAIL unless they set what is set already. Maps: PTL_FAIL if
 * group_size is not the number of processes. */

/* The variable with the memory file, for libraries above this one that start processes
 * themselves. These variables are read when PtlNIInit opens the interface. */
#define PORTALS3_FABRIC_FD "PTL_FABRIC_FD"

/* -1 and -1: as the variables say. */
int PtlSetRank(ptl_handle_ni_t ni_handle, unsigned int rank, unsigned int group_size);
int PtlSetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, unsigned int group_size);
int PtlSetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, unsigned int group_size);
int PtlGetRank(ptl_handle_ni_t ni_handle, unsigned int *rank, unsigned int *group_size);
/* PTL_PROCESS_INVALID: no such rank. */
int PtlGetRankId(ptl_handle_ni_t ni_handle, unsigned int rank, ptl_process_id_t *id);
int PtlGetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, unsigned int group_size);
int PtlGetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, unsigned int group_size);

/* ---- Cray's spellings ---- */

#ifdef PORTALS3_CRAY_SPELLINGS

#define PTL_NOACK_REQ PTL_NO_ACK_REQ

/* UNLINK events of automatic unlinks are always enabled here. PtlMDUnlink posts none, so there is
 * no PTL_MD_EVENT_MANUAL_UNLINK_ENABLE. */
#define PTL_MD_EVENT_AUTO_UNLINK_ENABLE 0U
#define PTL_MD_FLAG_AUTO_UNLINK 0U

/* Errors that this library never returns. */
#define PTL_IFACE_DUP (PTL_MAX_ERRNO + 1)
#define PTL_VAL_FAILED (PTL_MAX_ERRNO + 2)
#define PTL_EQ_IN_USE (PTL_MAX_ERRNO + 3)
#define PTL_NAL_FAILED (PTL_MAX_ERRNO + 4)
#define PTL_IOV_TOO_MANY (PTL_MAX_ERRNO + 5)
#define PTL_IOV_TOO_SMALL (PTL_MAX_ERRNO + 6)
#define PTL_INVALID_EQ PTL_EQ_INVALID

/* There is one network, whatever the bridge. */
#define PTL_BRIDGE_UK 0
#define PTL_BRIDGE_QK 1
#define PTL_IFACE_SS 0
#define IFACE_FROM_BRIDGE_AND_NALID(bridge, nal) ((void)(bridge), (void)(nal), PTL_IFACE_DEFAULT)
#define CRAY_USER_NAL PTL_IFACE_DEFAULT
#define CRAY_QK_NAL PTL_IFACE_DEFAULT
#define CRAY_KERN_NAL PTL_IFACE_DEFAULT
#define CRAY_ACCEL PTL_IFACE_DEFAULT

/* Names by error and by event kind, for the values above as well. */
extern const char *const ptl_err_str[];
extern const char *const ptl_event_str[];

#endif /* PORTALS3_CRAY_SPELLINGS */

#ifdef __cplusplus
}
#endif

#endif /* PORTALS3_H */
