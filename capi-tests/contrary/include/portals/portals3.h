/* portals/portals3.h of libportals-contrary: Portals 3.3 from a vendor whose choices all
 * differ from libportals3's. For tests of the binding to a libportals; programs should not use
 * it.
 *
 * Numbers and orders are shuffled, pids have 16 bits, handles 64, structures have another
 * order and more members, spellings are Cray's. Parts of the specification that the conduit
 * does not use are absent. */
#ifndef CONTRARY_PORTALS3_H
#define CONTRARY_PORTALS3_H

#include <stdint.h>

typedef uint64_t ptl_size_t;
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef int64_t ptl_sr_value_t;
typedef uint64_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_me_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef uint8_t ptl_pt_index_t;
typedef uint16_t ptl_ac_index_t;
typedef int ptl_interface_t;
typedef uint32_t ptl_nid_t;
typedef uint16_t ptl_pid_t;
typedef uint32_t ptl_uid_t;
typedef uint32_t ptl_jid_t;
typedef int ptl_sr_index_t;
typedef uint8_t ptl_ni_fail_t;
typedef uint64_t ptl_seq_t;

typedef struct {
    ptl_pid_t pid;
    ptl_nid_t nid;
} ptl_process_id_t;

typedef struct {
    int max_getput_md, max_me_list, max_md_iovecs, max_pt_index, max_ac_index, max_eqs, max_mds, max_mes;
    int max_interrupts;
} ptl_ni_limits_t;

enum {
    PTL_OK = 0,
    PTL_SEGV = 31,
    PTL_NO_SPACE = 2,
    PTL_ME_IN_USE = 33,
    PTL_VAL_FAILED = 4,
    PTL_NAL_FAILED = 35,
    PTL_NO_INIT = 6,
    PTL_IFACE_DUP = 37,
    PTL_IFACE_INVALID = 8,
    PTL_HANDLE_INVALID = 39,
    PTL_MD_INVALID = 10,
    PTL_ME_INVALID = 11,
    PTL_PROCESS_INVALID = 12,
    PTL_PT_INDEX_INVALID = 13,
    PTL_SR_INDEX_INVALID = 14,
    PTL_EQ_INVALID = 15,
    PTL_EQ_DROPPED = 16,
    PTL_EQ_EMPTY = 7,
    PTL_MD_NO_UPDATE = 18,
    PTL_FAIL = 9,
    PTL_IOV_TOO_MANY = 20,
    PTL_IOV_TOO_SMALL = 21,
    PTL_EQ_IN_USE = 3,
    PTL_AC_INDEX_INVALID = 23,
    PTL_MD_ILLEGAL = 1,
    PTL_MD_IN_USE = 25,
    PTL_ME_LIST_TOO_LONG = 26,
    PTL_NI_INVALID = 27,
    PTL_PID_INVALID = 28,
    PTL_PT_FULL = 29
};
/* By number; with gaps. There is no PtlErrorStr. */
extern const char *ptl_err_str[40];

typedef enum { PTL_UNLINK = 3, PTL_RETAIN = 5 } ptl_unlink_t;
typedef enum { PTL_INS_AFTER = 0, PTL_INS_BEFORE } ptl_ins_pos_t;
typedef enum { PTL_NOACK_REQ = 0, PTL_ACK_REQ } ptl_ack_req_t;

typedef enum {
    PTL_EVENT_UNLINK = 1,
    PTL_EVENT_SEND_END,
    PTL_EVENT_SEND_START,
    PTL_EVENT_ACK,
    PTL_EVENT_REPLY_END,
    PTL_EVENT_REPLY_START,
    PTL_EVENT_GETPUT_END,
    PTL_EVENT_GETPUT_START,
    PTL_EVENT_PUT_END,
    PTL_EVENT_PUT_START,
    PTL_EVENT_GET_END,
    PTL_EVENT_GET_START
} ptl_event_kind_t;

typedef struct {
    ptl_handle_eq_t eq_handle;
    void *user_ptr;
    unsigned int options;
    int threshold;
    ptl_size_t max_size;
    ptl_size_t length;
    void *start;
    void *bulk_handle;
} ptl_md_t;

typedef struct {
    volatile ptl_seq_t sequence;
    ptl_seq_t link;
    ptl_md_t md;
    ptl_handle_md_t md_handle;
    ptl_hdr_data_t hdr_data;
    ptl_size_t offset;
    ptl_size_t mlength;
    ptl_size_t rlength;
    ptl_match_bits_t match_bits;
    ptl_ni_fail_t ni_fail_type;
    ptl_pt_index_t portal;
    ptl_jid_t jid;
    ptl_uid_t uid;
    ptl_process_id_t initiator;
    ptl_event_kind_t type;
} ptl_event_t;

#define PTL_INVALID_HANDLE ((ptl_handle_any_t)-9)
#define PTL_EQ_NONE ((ptl_handle_eq_t)-3)
#define PTL_NID_ANY ((ptl_nid_t)0xfffffffeU)
#define PTL_PID_ANY ((ptl_pid_t)0xFFFF)
#define PTL_NI_OK ((ptl_ni_fail_t)7)
#define PTL_SR_DROP_COUNT ((ptl_sr_index_t)5)
#define PTL_MD_THRESH_INF (-77)
#define PTL_MAX_TRANS_SZ 1000000

#define PTL_MD_OP_PUT (1 << 8)
#define PTL_MD_OP_GET (1 << 9)
#define PTL_MD_MANAGE_REMOTE (1 << 2)
#define PTL_MD_TRUNCATE (1 << 4)
#define PTL_MD_ACK_DISABLE (1 << 5)
#define PTL_MD_MAX_SIZE (1 << 7)
#define PTL_MD_EVENT_START_DISABLE (1 << 1)
#define PTL_MD_EVENT_END_DISABLE (1 << 0)
/* Without it there is no UNLINK event. */
#define PTL_MD_EVENT_AUTO_UNLINK_ENABLE (1 << 12)
/* Without it a full descriptor is not unlinked. */
#define PTL_MD_FLAG_AUTO_UNLINK (1 << 13)

/* Not the interface of programs: portals/nal.h has it. */
#define PTL_IFACE_DEFAULT ((ptl_interface_t)1)

/* For the user's launcher; see libportals3. Null if this library reads none. */
const char *contrary_fabric_variable(void);
#define PORTALS3_FABRIC_FD contrary_fabric_variable()

int PtlInit(int *max_interfaces);
int PtlNIInit(ptl_interface_t interface, ptl_pid_t pid, ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *ni);
int PtlNIStatus(ptl_handle_ni_t ni, ptl_sr_index_t status_register, ptl_sr_value_t *status);
int PtlGetId(ptl_handle_ni_t ni, ptl_process_id_t *id);
int PtlMEAttach(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position, ptl_handle_me_t *me);
int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits,
                ptl_unlink_t unlink, ptl_ins_pos_t position, ptl_handle_me_t *me);
int PtlMEUnlink(ptl_handle_me_t me);
int PtlMDAttach(ptl_handle_me_t me, ptl_md_t md, ptl_unlink_t unlink, ptl_handle_md_t *made);
int PtlMDBind(ptl_handle_ni_t ni, ptl_md_t md, ptl_unlink_t unlink, ptl_handle_md_t *made);
int PtlMDUnlink(ptl_handle_md_t md);
int PtlEQAlloc(ptl_handle_ni_t ni, ptl_size_t count, void (*handler)(ptl_event_t *), ptl_handle_eq_t *eq);
int PtlEQFree(ptl_handle_eq_t eq);
int PtlEQGet(ptl_handle_eq_t eq, ptl_event_t *event);
int PtlPut(ptl_handle_md_t md, ptl_ack_req_t ack, ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);
int PtlPutRegion(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack, ptl_process_id_t target,
                 ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                 ptl_hdr_data_t hdr_data);
int PtlGetRegion(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_process_id_t target, ptl_pt_index_t pt,
                 ptl_ac_index_t ac, ptl_match_bits_t match_bits, ptl_size_t remote_offset);

#endif
