/* What the programs of this directory share: start, checks, barrier, descriptors, events, verdict.
 *
 * Each program tests one feature of the Portals 3.3 interface through portals3.h, and runs as a
 * job of any number of processes. Every process is an initiator towards the next one and a target
 * of the previous one (itself, in a job of one). Process 0 prints `<name>: PASS` and all exit
 * with 0, or a process prints the failure and exits with 1.
 *
 * By hand: ptlrun -n 4 ./lists */
#ifndef PORTALS_CAPI_TESTS_CHECK_H
#define PORTALS_CAPI_TESTS_CHECK_H

#define _DEFAULT_SOURCE 1
#include <portals3.h>

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The portal table entry of most tests, and one for messages that only mark a position in the
 * order. */
#define PT 4
#define PT_MARK 5

static ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
static unsigned rank, size;
static ptl_process_id_t self, next, prev;
static ptl_process_id_t any_process;
static ptl_ni_limits_t limits;
static ptl_handle_eq_t idle_eq = PTL_EQ_NONE;
static int failures;

static inline void report(const char *file, int line, const char *what, int got, int expected) {
    if (failures++ < 8)
        fprintf(stderr, "%s:%d: process %u: %s: %s, not %s\n", file, line, rank, what, PtlErrorStr((unsigned)got),
                PtlErrorStr((unsigned)expected));
}

/* The call returns this. */
#define RETURNS(expected, call)                                  \
    do {                                                         \
        int got_ = (call), expected_ = (expected);               \
        if (got_ != expected_)                                   \
            report(__FILE__, __LINE__, #call, got_, expected_);  \
    } while (0)

#define OK(call) RETURNS(PTL_OK, call)

/* The condition holds. */
#define CHECK(condition)                                                                                   \
    do {                                                                                                   \
        if (!(condition) && failures++ < 8)                                                                \
            fprintf(stderr, "%s:%d: process %u: not so: %s\n", __FILE__, __LINE__, rank, #condition); \
    } while (0)

/* A failure after which the test cannot continue. */
static inline void give_up(const char *why) {
    fprintf(stderr, "process %u: %s\n", rank, why);
    exit(1);
}

/* Waits for all processes, by the launcher's socket. Makes calls meanwhile, for libraries that
 * deliver only in calls. */
static inline void barrier(void) {
    const char *number = getenv("PTL_BARRIER_FD");
    struct pollfd answer;
    ptl_event_t event;
    char byte = 0;
    if (number == NULL)
        return;
    answer.fd = atoi(number);
    answer.events = POLLIN;
    if (write(answer.fd, &byte, 1) != 1)
        give_up("barrier: the launcher has exited");
    while (poll(&answer, 1, 1) == 0)
        if (idle_eq != PTL_EQ_NONE)
            (void)PtlEQGet(idle_eq, &event);
    if (read(answer.fd, &byte, 1) != 1)
        give_up("barrier: another process has failed");
}

/* Opens the interface with these limits (null: the defaults), and waits until all have. */
static inline void start_limited(ptl_ni_limits_t *desired) {
    int most = 0;
    alarm(120);
    any_process.nid = PTL_NID_ANY;
    any_process.pid = PTL_PID_ANY;
    OK(PtlInit(&most));
    CHECK(most >= 1);
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, desired, &limits, &ni));
    OK(PtlGetRank(ni, &rank, &size));
    if (failures)
        give_up("no interface");
    OK(PtlGetId(ni, &self));
    OK(PtlGetRankId(ni, (rank + 1) % size, &next));
    OK(PtlGetRankId(ni, (rank + size - 1) % size, &prev));
    OK(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &idle_eq));
    barrier();
}

static inline void start(void) { start_limited(NULL); }

/* Closes the interface when all are done; the exit code. */
static inline int finish(const char *name) {
    barrier();
    OK(PtlNIFini(ni));
    PtlFini();
    idle_eq = PTL_EQ_NONE;
    if (failures == 0)
        barrier(); /* of those that passed: process 0 prints for all */
    if (rank == 0 && failures == 0)
        printf("%s: PASS\n", name);
    return failures != 0;
}

static inline ptl_handle_eq_t queue(ptl_size_t count) {
    ptl_handle_eq_t eq = PTL_EQ_NONE;
    OK(PtlEQAlloc(ni, count, PTL_EQ_HANDLER_NONE, &eq));
    return eq;
}

/* A descriptor with infinite threshold and no START events. */
static inline ptl_md_t region(void *start_of, ptl_size_t length, unsigned options, ptl_handle_eq_t eq) {
    ptl_md_t md;
    memset(&md, 0, sizeof md);
    md.start = start_of;
    md.length = length;
    md.threshold = PTL_MD_THRESH_INF;
    md.options = options | PTL_MD_EVENT_START_DISABLE;
    md.eq_handle = eq;
    return md;
}

static inline ptl_handle_me_t entry(ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_match_bits_t ignore) {
    ptl_handle_me_t me = PTL_INVALID_HANDLE;
    OK(PtlMEAttach(ni, pt, any_process, bits, ignore, PTL_RETAIN, PTL_INS_AFTER, &me));
    return me;
}

static inline ptl_handle_md_t attach(ptl_handle_me_t me, ptl_md_t md, ptl_unlink_t unlink_op) {
    ptl_handle_md_t handle = PTL_INVALID_HANDLE;
    OK(PtlMDAttach(me, md, unlink_op, &handle));
    return handle;
}

/* A target for everything on a portal table entry. */
static inline ptl_handle_md_t target(ptl_pt_index_t pt, ptl_md_t md) {
    return attach(entry(pt, 0, ~(ptl_match_bits_t)0), md, PTL_RETAIN);
}

static inline ptl_handle_md_t source(ptl_md_t md) {
    ptl_handle_md_t handle = PTL_INVALID_HANDLE;
    OK(PtlMDBind(ni, md, PTL_RETAIN, &handle));
    return handle;
}

/* Called before a wait for something that may never arrive after a failure. */
static inline void still_well(void) {
    if (failures)
        give_up("no use in waiting");
}

/* The next event of a queue, which must be of this kind. */
static inline ptl_event_t expect(ptl_handle_eq_t eq, ptl_event_kind_t kind) {
    ptl_event_t event;
    still_well();
    memset(&event, 0, sizeof event);
    OK(PtlEQWait(eq, &event));
    if (event.type != kind && failures++ < 8)
        fprintf(stderr, "process %u: %s, not %s\n", rank, PtlEventKindStr(event.type), PtlEventKindStr(kind));
    if (event.type != PTL_EVENT_UNLINK)
        CHECK(event.ni_fail_type == PTL_NI_OK);
    return event;
}

static inline void expect_empty(ptl_handle_eq_t eq) {
    ptl_event_t event;
    memset(&event, 0, sizeof event);
    RETURNS(PTL_EQ_EMPTY, PtlEQGet(eq, &event));
}

/* Messages of a pair match in the order in which they were sent: once a mark has arrived, all
 * before it have been matched. */
static char mark_byte;
static ptl_handle_eq_t mark_eq;
static ptl_handle_md_t mark_md;

static inline void marks_begin(void) {
    mark_eq = queue(64);
    (void)target(PT_MARK, region(&mark_byte, 1, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, mark_eq));
    mark_md = source(region(&mark_byte, 1, 0, PTL_EQ_NONE));
}

static inline void mark(void) { OK(PtlPut(mark_md, PTL_NO_ACK_REQ, next, PT_MARK, 0, 0, 0, 0)); }
static inline void await_mark(void) { (void)expect(mark_eq, PTL_EVENT_PUT_END); }

static inline ptl_sr_value_t drops(void) {
    ptl_sr_value_t count = ~(ptl_sr_value_t)0;
    OK(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &count));
    return count;
}

static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
