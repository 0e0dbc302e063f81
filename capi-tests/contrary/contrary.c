/* libportals-contrary: Portals 3.3 over libportals3 with the habits of other vendors'
 * libraries. For tests.
 *
 * CONTRARY names the active habits, separated by commas:
 *   send_end    a get posts a SEND_END event too
 *   mute        REPLY events have no match bits
 *   negated     errors are returned negated
 *   dup         PtlNIInit returns PTL_IFACE_DUP, with a good handle and without limits
 *   eq_in_use   PtlEQFree returns PTL_EQ_IN_USE the first two times
 *   md_in_use   every third PtlMDUnlink returns PTL_MD_IN_USE
 *   high        node and process ids are the highest possible
 *   small       the portal table has 8 entries
 *   no_eq_none  a descriptor with PTL_EQ_NONE is refused
 *   null_empty  a descriptor without bytes is refused unless it starts at null
 *   unthreaded  a second thread that enters the library ends the process
 *   connects    the first message to a process waits until a call there accepts a connection
 *   unranked    a process that does not call PtlSetRank is a job of its own; pids come from
 *               PTL_PIDMAP, and there is no memory file
 *   twins       for tests of rejection: the same, and PtlSetRank has no effect
 *   lies        for tests of rejection: PTL_EVENT_ACK and PTL_EVENT_SEND_END are exchanged, as
 *               with the header of another version
 *   whole       for tests of rejection: a put that was truncated is acknowledged with all bytes
 *   renamed     for tests of rejection: the name of PTL_NO_SPACE belongs to another number
 * The differences between its header and that of libportals3 are permanent. An MD's real user
 * pointer leads to a record of this file, never freed, so that events can report the caller's
 * values. */
#include "below.h"
#include "connect.h"

#include <portals/nal.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    int send_end, mute, negated, dup, eq_in_use, md_in_use, high, small, no_eq_none, null_empty, unthreaded, connects, lies, whole;
} habits;

/* The calls that are under way. */
static int inside;

static int enter(void) {
    static const char line[] = "libportals-contrary: a second thread entered a library without threads\n";
    if (__sync_add_and_fetch(&inside, 1) > 1 && habits.unthreaded) {
        (void)!write(STDERR_FILENO, line, sizeof line - 1);
        _exit(70);
    }
    if (habits.unthreaded)
        sched_yield();
    if (habits.connects)
        connect_progress();
    return 0;
}

static void leave(const int *entered) {
    (void)entered;
    (void)__sync_sub_and_fetch(&inside, 1);
}

/* First in each function of the interface. */
#define ENTERED int entered __attribute__((cleanup(leave))) = enter()

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

/* Pids by rank, as PtlSetRank found them; none without it. */
static struct {
    unsigned int rank, size;
    ptl_pid_t pids[PROCESSES];
} job;

/* The ids of libportals3, which are small, count down from the highest; and back. */
static ptl_process_id_t turned(ptl_nid_t nid, ptl_pid_t pid) {
    ptl_process_id_t id;
    id.nid = habits.high ? 0xfffffff0U - nid : nid;
    id.pid = habits.high ? (ptl_pid_t)(0xfffe - pid) : pid;
    return id;
}

static ptl_process_id_t id_out(uint32_t nid, uint32_t rank) {
    return turned(nid, rank < job.size ? job.pids[rank] : (ptl_pid_t)rank);
}

static ptl_process_id_t id_in(ptl_process_id_t id) {
    unsigned int rank;
    id = turned(id.nid, id.pid);
    for (rank = 0; rank < job.size; rank++)
        if (job.pids[rank] == id.pid) {
            id.pid = (ptl_pid_t)rank;
            break;
        }
    return id;
}

/* The descriptor of the memory file that the user's launcher has for the library below. */
static int fabric_file(void) {
    char name[32], target[64];
    int fd;
    for (fd = 0; fd < 1024; fd++) {
        ssize_t n;
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        n = readlink(name, target, sizeof target - 1);
        target[n > 0 ? n : 0] = 0;
        if (strstr(target, "gasnet-arena") != NULL)
            break;
    }
    return fd;
}

const char *contrary_fabric_variable(void) {
    return on("unranked") || on("twins") ? NULL : "PTL_FABRIC_FD";
}

/* Opens the library below as this process of the job that PtlSetRank found. */
static int open_below(int limits[4]) {
    static const char *const names[] = {"PTL_MY_RID", "PTL_NIDMAP", "PTL_PIDMAP", "PTL_FABRIC_FD"};
    char rank[16], fabric[16], nids[PROCESSES * 12] = "0", pids[PROCESSES * 12] = "0", *end = pids + 1;
    const char *values[4];
    unsigned int i;
    /* A launcher of that library sets all variables itself. */
    int rc, own = contrary_fabric_variable() == NULL && getenv("PTL_FABRIC_FD") == NULL;
    for (i = 1; i < job.size; i++) {
        strcat(nids, ":0");
        end += snprintf(end, 12, ":%u", i);
    }
    snprintf(rank, sizeof rank, "%u", job.rank);
    snprintf(fabric, sizeof fabric, "%d", fabric_file());
    values[0] = rank, values[1] = nids, values[2] = pids, values[3] = fabric;
    for (i = 0; own && i < 4; i++)
        if (job.size > 0)
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
    rc = below_open(limits);
    for (i = 0; own && i < 4; i++)
        unsetenv(names[i]);
    return rc;
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
    habits.no_eq_none = on("no_eq_none");
    habits.null_empty = on("null_empty");
    habits.unthreaded = on("unthreaded");
    habits.connects = on("connects");
    habits.lies = on("lies");
    habits.whole = on("whole");
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

/* The convention of Portals libraries with ranks: -1 and -1 mean the variables. */
int PtlSetRank(ptl_handle_ni_t ni, unsigned int rank, unsigned int size);
int PtlSetRank(ptl_handle_ni_t ni, unsigned int rank, unsigned int size) {
    const char *own = getenv("PTL_MY_RID"), *nids = getenv("PTL_NIDMAP"), *pids = getenv("PTL_PIDMAP");
    if (ni != PTL_INVALID_HANDLE || rank != (unsigned int)-1 || size != (unsigned int)-1)
        return answer(PTL_HANDLE_INVALID);
    if (own == NULL || nids == NULL || pids == NULL)
        return answer(PTL_NO_INIT);
    if (!on("unranked"))
        return PTL_OK;
    job.rank = (unsigned int)atoi(own);
    for (; pids != NULL && job.size < PROCESSES; pids = strchr(pids, ':')) {
        pids += *pids == ':';
        job.pids[job.size++] = (ptl_pid_t)atoi(pids);
    }
    return job.rank < job.size ? PTL_OK : answer(PTL_FAIL);
}

int PtlNIInit(ptl_interface_t interface, ptl_pid_t pid, ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *ni) {
    ENTERED;
    int limits[4], rc;
    if (interface != 4711 || pid != PTL_PID_ANY)
        return answer(PTL_IFACE_INVALID);
    /* Other libraries of the process share the interface: none may narrow it. */
    if (desired != NULL)
        return answer(PTL_NI_INVALID);
    limits[0] = 16384;
    limits[1] = 32768;
    limits[2] = 64;
    limits[3] = 127;
    rc = open_below(limits);
    if (rc == BELOW_OK && habits.connects)
        rc = connect_open();
    *ni = 0x1234567800000001ULL;
    if (rc == BELOW_OK && habits.dup)
        return answer(PTL_IFACE_DUP);
    memset(actual, 0, sizeof *actual);
    actual->max_mes = limits[0];
    actual->max_mds = limits[1];
    actual->max_eqs = limits[2];
    actual->max_pt_index = habits.small && limits[3] > 7 ? 7 : limits[3];
    return translated(rc);
}

int PtlNIStatus(ptl_handle_ni_t ni, ptl_sr_index_t status_register, ptl_sr_value_t *status) {
    ENTERED;
    (void)ni;
    if (status_register != PTL_SR_DROP_COUNT)
        return answer(PTL_SR_INDEX_INVALID);
    *status = (ptl_sr_value_t)below_dropped();
    return PTL_OK;
}

int PtlGetId(ptl_handle_ni_t ni, ptl_process_id_t *id) {
    ENTERED;
    uint32_t nid, pid;
    int rc = below_id(&nid, &pid);
    (void)ni;
    *id = id_out(nid, pid);
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
    ENTERED;
    (void)ni;
    return attach(position == PTL_INS_AFTER, pt, 0, match_id, match_bits, ignore_bits, unlink, me);
}

int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits,
                ptl_unlink_t unlink, ptl_ins_pos_t position, ptl_handle_me_t *me) {
    ENTERED;
    if (position != PTL_INS_BEFORE)
        return answer(PTL_FAIL);
    return attach(2, 0, number_in(base), match_id, match_bits, ignore_bits, unlink, me);
}

int PtlMEUnlink(ptl_handle_me_t me) {
    ENTERED;
    return translated(below_me_unlink(number_in(me)));
}

static int make(int attached, uint32_t me, const ptl_md_t *md, ptl_unlink_t unlink, ptl_handle_md_t *made) {
    struct record *record;
    struct below_md below;
    int rc, wants;
    if (habits.no_eq_none && md->eq_handle == PTL_EQ_NONE)
        return answer(PTL_EQ_INVALID);
    if (habits.null_empty && md->length == 0 && md->start != NULL)
        return answer(PTL_MD_ILLEGAL);
    wants = (md->options & PTL_MD_FLAG_AUTO_UNLINK) != 0 || (md->options & PTL_MD_MAX_SIZE) == 0;
    record = new_record();
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
    ENTERED;
    return make(1, number_in(me), &md, unlink, made);
}

int PtlMDBind(ptl_handle_ni_t ni, ptl_md_t md, ptl_unlink_t unlink, ptl_handle_md_t *made) {
    ENTERED;
    (void)ni;
    return make(0, 0, &md, unlink, made);
}

int PtlMDUnlink(ptl_handle_md_t md) {
    ENTERED;
    static int calls;
    if (habits.md_in_use && __sync_add_and_fetch(&calls, 1) % 3 == 0)
        return answer(PTL_MD_IN_USE);
    return translated(below_md_unlink(record_in(md)->below));
}

int PtlEQAlloc(ptl_handle_ni_t ni, ptl_size_t count, void (*handler)(ptl_event_t *), ptl_handle_eq_t *eq) {
    ENTERED;
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
    ENTERED;
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
    ENTERED;
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
    event->initiator = id_out(e.nid, e.pid);
    event->match_bits = habits.mute && e.kind == BELOW_EVENT_REPLY_END ? 0 : e.match_bits;
    event->rlength = e.rlength;
    event->mlength = habits.whole && e.kind == BELOW_EVENT_ACK ? e.rlength : e.mlength;
    event->offset = e.offset;
    event->hdr_data = e.hdr_data;
    event->md = md->md;
    event->md_handle = record_out(md);
    event->ni_fail_type = e.failed ? PTL_NI_OK + 1 : PTL_NI_OK;
    return translated(rc);
}

/* The fields that a put and a get share. */
static struct connect_message message_of(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_process_id_t target,
                                         ptl_pt_index_t pt, ptl_match_bits_t match_bits, ptl_size_t remote_offset) {
    struct connect_message message = {0};
    target = id_in(target);
    message.md = record_in(md)->below;
    message.nid = target.nid;
    message.pid = target.pid;
    message.pt = pt;
    message.local = local_offset;
    message.length = length;
    message.match_bits = match_bits;
    message.remote = remote_offset;
    return message;
}

int PtlPutRegion(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack, ptl_process_id_t target,
                 ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                 ptl_hdr_data_t hdr_data) {
    ENTERED;
    struct connect_message message;
    if (ac != 0 || length > PTL_MAX_TRANS_SZ)
        return answer(PTL_FAIL);
    message = message_of(md, local_offset, length, target, pt, match_bits, remote_offset);
    message.ack = ack == PTL_ACK_REQ;
    message.hdr_data = hdr_data;
    return translated(connect_send(&message));
}

int PtlPut(ptl_handle_md_t md, ptl_ack_req_t ack, ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data) {
    return PtlPutRegion(md, 0, record_in(md)->md.length, ack, target, pt, ac, match_bits, remote_offset, hdr_data);
}

int PtlGetRegion(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length, ptl_process_id_t target, ptl_pt_index_t pt,
                 ptl_ac_index_t ac, ptl_match_bits_t match_bits, ptl_size_t remote_offset) {
    ENTERED;
    struct connect_message message;
    struct record *record = record_in(md);
    if (ac != 0 || length > PTL_MAX_TRANS_SZ)
        return answer(PTL_FAIL);
    if (habits.send_end && record->eq != NULL)
        later(record->eq, record, match_bits);
    message = message_of(md, local_offset, length, target, pt, match_bits, remote_offset);
    message.get = 1;
    return translated(connect_send(&message));
}
