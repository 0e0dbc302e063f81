/* libportals-contrary: Portals 3.3 over libportals3 with the habits of other vendors'
 * libraries. For tests.
 *
 * CONTRARY names the active habits, separated by commas:
 *   send_end    a get posts a SEND_END event too
 *   mute        REPLY events have no match bits
 *   negated     errors are returned negated
 *   dup         PtlNIInit returns PTL_IFACE_DUP, with a good handle
 *   eq_in_use   PtlEQFree returns PTL_EQ_IN_USE the first two times
 *   md_in_use   every third PtlMDUnlink returns PTL_MD_IN_USE
 *   high        node and process ids are the highest possible
 *   small       the portal table has 16 entries
 *   lies        for tests of rejection: PTL_EVENT_ACK and PTL_EVENT_SEND_END are exchanged, as
 *               with the header of another version
 *   renamed     for tests of rejection: the name of PTL_NO_SPACE belongs to another number
 * The differences between its header and that of libportals3 are permanent. An MD's real user
 * pointer leads to a record of this file, never freed, so that events can report the caller's
 * values. */
#include "below.h"

#include <portals/portals3.h>

#include <stdlib.h>
#include <string.h>

struct record {
    ptl_md_t md;
    struct record *eq;
    uint32_t below;
    /* A queue: SEND_END events of gets that were not yet fetched. */
    struct later *later;
    int lock;
};

struct later {
    struct later *next;
    ptl_event_t event;
};

const char *ptl_err_str[40];

static int on(const char *habit) {
    const char *all = getenv("CONTRARY"), *at;
    size_t n = strlen(habit);
    if (all == NULL)
        return 0;
    for (at = strstr(all, habit); at != NULL; at = strstr(at + 1, habit))
        if ((at == all || at[-1] == ',') && (at[n] == 0 || at[n] == ','))
            return 1;
    return 0;
}

static struct {
    int send_end, mute, negated, dup, eq_in_use, md_in_use, high, small, lies, renamed;
} habits;

static int answer(int code) {
    return habits.negated ? -code : code;
}

static int translated(int below) {
    switch (below) {
#define ERROR_CASE(name) case BELOW_##name: return answer(PTL_##name);
        BELOW_ERRORS(ERROR_CASE)
    }
    return answer(PTL_VAL_FAILED);
}

/* Handles are addresses of records or numbers of libportals3, inverted; kinds never look
 * alike. */
static ptl_handle_any_t number_out(uint32_t below) {
    return (ptl_handle_any_t)below << 20 | 0x5aa5a;
}

static uint32_t number_in(ptl_handle_any_t handle) {
    return (uint32_t)(handle >> 20);
}

static struct record *record_in(ptl_handle_any_t handle) {
    return (struct record *)(uintptr_t)~handle;
}

static ptl_handle_any_t record_out(struct record *record) {
    return ~(ptl_handle_any_t)(uintptr_t)record;
}

static struct record *new_record(void) {
    struct record *record = calloc(1, sizeof *record);
    if (record == NULL)
        abort();
    return record;
}

/* The ids of libportals3, which are small, count down from the highest; and back. */
static ptl_process_id_t turned(ptl_nid_t nid, ptl_pid_t pid) {
    ptl_process_id_t id;
    id.nid = habits.high ? 0xfffffff0U - nid : nid;
    id.pid = habits.high ? (ptl_pid_t)(0xfffe - pid) : pid;
    return id;
}

ptl_interface_t contrary_interface(int bridge, int nal) {
    return bridge == PTL_BRIDGE_UK && nal == PTL_IFACE_SS ? 4711 : -1;
}

int PtlInit(int *max_interfaces) {
    habits.send_end = on("send_end");
    habits.mute = on("mute");
    habits.negated = on("negated");
    habits.dup = on("dup");
    habits.eq_in_use = on("eq_in_use") ? 2 : 0;
    habits.md_in_use = on("md_in_use");
    habits.high = on("high");
    habits.small = on("small");
    habits.lies = on("lies");
    *max_interfaces = 2;
    return PTL_OK;
}

__attribute__((constructor)) static void name_errors(void) {
    int i;
    for (i = 0; i < 40; i++)
        ptl_err_str[i] = "unknown";
#define ERROR_NAME(name) ptl_err_str[PTL_##name] = "PTL_" #name;
    BELOW_ERRORS(ERROR_NAME)
    ptl_err_str[PTL_IFACE_DUP] = "PTL_IFACE_DUP";
    if (on("renamed"))
        ptl_err_str[PTL_NO_SPACE] = "PTL_ME_IN_USE";
}

int PtlNIInit(ptl_interface_t interface, ptl_pid_t pid, ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *ni) {
    int limits[4], rc;
    if (interface != 4711 || pid != PTL_PID_ANY)
        return answer(PTL_IFACE_INVALID);
    limits[0] = desired->max_mes;
    limits[1] = desired->max_mds;
    limits[2] = desired->max_eqs;
    limits[3] = habits.small && desired->max_pt_index > 15 ? 15 : desired->max_pt_index;
    rc = below_open(limits);
    memset(actual, 0, sizeof *actual);
    actual->max_mes = limits[0];
    actual->max_mds = limits[1];
    actual->max_eqs = limits[2];
    actual->max_pt_index = habits.small && limits[3] > 15 ? 15 : limits[3];
    *ni = 0x1234567800000001ULL;
    return rc == BELOW_OK && habits.dup ? answer(PTL_IFACE_DUP) : translated(rc);
}

int PtlNIStatus(ptl_handle_ni_t ni, ptl_sr_index_t status_register, ptl_sr_value_t *status) {
    (void)ni;
    if (status_register != PTL_SR_DROP_COUNT)
        return answer(PTL_SR_INDEX_INVALID);
    *status = (ptl_sr_value_t)below_dropped();
    return PTL_OK;
}

int PtlGetId(ptl_handle_ni_t ni, ptl_process_id_t *id) {
    uint32_t nid, pid;
    int rc = below_id(&nid, &pid);
    (void)ni;
    *id = turned(nid, (ptl_pid_t)pid);
    return translated(rc);
}

static int attach(int where, uint32_t pt, uint32_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                  ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_handle_me_t *me) {
    uint32_t made;
    int rc;
    if (match_id.nid != PTL_NID_ANY || match_id.pid != PTL_PID_ANY || (unlink != PTL_UNLINK && unlink != PTL_RETAIN))
        return answer(PTL_PROCESS_INVALID);
    rc = below_me(where, pt, base, match_bits, ignore_bits, unlink == PTL_UNLINK, &made);
    *me = number_out(made);
    return translated(rc);
}

int PtlMEAttach(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position, ptl_handle_me_t *me) {
    (void)ni;
    return attach(position == PTL_INS_AFTER, pt, 0, match_id, match_bits, ignore_bits, unlink, me);
}

int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits,
                ptl_unlink_t unlink, ptl_ins_pos_t position, ptl_handle_me_t *me) {
    if (position != PTL_INS_BEFORE)
        return answer(PTL_FAIL);
    return attach(2, 0, number_in(base), match_id, match_bits, ignore_bits, unlink, me);
}

int PtlMEUnlink(ptl_handle_me_t me) {
    return translated(below_me_unlink(number_in(me)));
}

static int make(int attached, uint32_t me, const ptl_md_t *md, ptl_unlink_t unlink, ptl_handle_md_t *made) {
    struct record *record = new_record();
    struct below_md below;
    int rc, wants = (md->options & PTL_MD_FLAG_AUTO_UNLINK) != 0 || (md->options & PTL_MD_MAX_SIZE) == 0;
    memset(&below, 0, sizeof below);
    record->md = *md;
    record->eq = md->eq_handle == PTL_EQ_NONE ? NULL : record_in(md->eq_handle);
    below.start = md->start;
    below.length = md->length;
    below.infinite = md->threshold == PTL_MD_THRESH_INF;
    below.threshold = md->threshold;
    below.max_size = md->max_size;
    below.user_ptr = record;
    below.eq = record->eq == NULL ? BELOW_NO_EQ : record->eq->below;
#define OPTION(name) below.options |= md->options & PTL_MD_##name ? 1U << BELOW_MD_##name : 0;
    BELOW_OPTIONS(OPTION)
    rc = below_md(attached, me, &below, unlink == PTL_UNLINK && wants, &record->below);
    *made = record_out(record);
    return translated(rc);
}

int PtlMDAttach(ptl_handle_me_t me, ptl_md_t md, ptl_unlink_t unlink, ptl_handle_md_t *made) {
    return make(1, number_in(me), &md, unlink, made);
}

int PtlMDBind(ptl_handle_ni_t ni, ptl_md_t md, ptl_unlink_t unlink, ptl_handle_md_t *made) {
    (void)ni;
    return make(0, 0, &md, unlink, made);
}

int PtlMDUnlink(ptl_handle_md_t md) {
    static int calls;
    if (habits.md_in_use && __sync_add_and_fetch(&calls, 1) % 3 == 0)
        return answer(PTL_MD_IN_USE);
    return translated(below_md_unlink(record_in(md)->below));
}

int PtlEQAlloc(ptl_handle_ni_t ni, ptl_size_t count, void (*handler)(ptl_event_t *), ptl_handle_eq_t *eq) {
    struct record *record = new_record();
    int rc;
    (void)ni;
    if (handler != NULL)
        return answer(PTL_FAIL);
    rc = below_eq(count, &record->below);
    *eq = record_out(record);
    return translated(rc);
}

int PtlEQFree(ptl_handle_eq_t eq) {
    if (habits.eq_in_use > 0) {
        habits.eq_in_use--;
        return answer(PTL_EQ_IN_USE);
    }
    return translated(below_eq_free(record_in(eq)->below));
}

static ptl_event_kind_t kind_out(int below) {
    switch (below) {
#define EVENT_CASE(name) case BELOW_EVENT_##name: return PTL_EVENT_##name;
        BELOW_EVENTS(EVENT_CASE)
    }
    abort();
}

static void later(struct record *eq, const struct record *md, ptl_match_bits_t match_bits) {
    struct later *event = calloc(1, sizeof *event), **end;
    if (event == NULL)
        abort();
    event->event.type = PTL_EVENT_SEND_END;
    event->event.md = md->md;
    event->event.match_bits = match_bits;
    event->event.ni_fail_type = PTL_NI_OK;
    while (__sync_lock_test_and_set(&eq->lock, 1)) {
    }
    for (end = &eq->later; *end != NULL; end = &(*end)->next) {
    }
    *end = event;
    __sync_lock_release(&eq->lock);
}

static int earlier(struct record *eq, ptl_event_t *event) {
    struct later *first;
    if (__atomic_load_n(&eq->later, __ATOMIC_ACQUIRE) == NULL)
        return 0;
    while (__sync_lock_test_and_set(&eq->lock, 1)) {
    }
    first = eq->later;
    if (first != NULL)
        eq->later = first->next;
    __sync_lock_release(&eq->lock);
    if (first == NULL)
        return 0;
    *event = first->event;
    free(first);
    return 1;
}

int PtlEQGet(ptl_handle_eq_t eq, ptl_event_t *event) {
    struct record *queue = record_in(eq), *md;
    struct below_event e;
    int rc;
    if (habits.send_end && earlier(queue, event))
        return PTL_OK;
    for (;;) {
        rc = below_eq_get(queue->below, &e);
        if (rc != BELOW_OK && rc != BELOW_EQ_DROPPED)
            return translated(rc);
        md = e.user_ptr;
        /* An UNLINK event that the caller disabled. */
        if (e.kind != BELOW_EVENT_UNLINK || md->md.options & PTL_MD_EVENT_AUTO_UNLINK_ENABLE)
            break;
    }
    memset(event, 0xee, sizeof *event);
    event->type = kind_out(e.kind);
    if (habits.lies && (event->type == PTL_EVENT_ACK || event->type == PTL_EVENT_SEND_END))
        event->type = event->type == PTL_EVENT_ACK ? PTL_EVENT_SEND_END : PTL_EVENT_GET_START;
    event->initiator = turned(e.nid, (ptl_pid_t)e.pid);
    event->match_bits = habits.mute && e.kind == BELOW_EVENT_REPLY_END ? 0 : e.match_bits;
    event->rlength = e.rlength;
    event->mlength = e.mlength;
    event->offset = e.offset;
    event->hdr_data = e.hdr_data;
    event->md = md->md;
    event->md_handle = record_out(md);
    event->ni_fail_type = e.failed ? PTL_NI_OK + 1 : PTL_NI_OK;
    return translated(rc);
}

int PtlPutRegion(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack, ptl_process_id_t target,
                 ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                 ptl_hdr_data_t hdr_data) {
    if (ac != 0 || length > PTL_MAX_TRANS_SZ)
        return answer(PTL_FAIL);
    target = turned(target.nid, target.pid);
    return translated(below_put(record_in(md)->below, local_offset, length, ack == PTL_ACK_REQ, target.nid, target.pid, pt,
                                match_bits, remote_offset, hdr_data));
}

int PtlPut(ptl_handle_md_t md, ptl_ack_req_t ack, ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data) {
    return PtlPutRegion(md, 0, record_in(md)->md.length, ack, target, pt, ac, match_bits, remote_offset, hdr_data);
}

int PtlGetRegion(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_process_id_t target, ptl_pt_index_t pt,
                 ptl_ac_index_t ac, ptl_match_bits_t match_bits, ptl_size_t remote_offset) {
    struct record *record = record_in(md);
    int rc;
    if (ac != 0 || length > PTL_MAX_TRANS_SZ)
        return answer(PTL_FAIL);
    if (habits.send_end && record->eq != NULL)
        later(record->eq, record, match_bits);
    target = turned(target.nid, target.pid);
    rc = below_get(record->below, local_offset, length, target.nid, target.pid, pt, match_bits, remote_offset);
    return translated(rc);
}
