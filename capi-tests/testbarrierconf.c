/* testbarrierconf: return codes of barriers for equal, different, anonymous and mismatched names,
 * and their result. A barrier between ranks that map each other's memory also takes in the active
 * messages sent before it. So does that of the team of all ranks. */
/* faults: skip_mismatch leave_messages:cross-mapped */
/* args: 10 */
/* nodes: any */
/* threads: both */
#include "check.h"

#include <gasnet_coll.h>

#define USAGE "[-t] [-p pollers] [iterations 10]"
#define ANONYMOUS GASNET_BARRIERFLAG_ANONYMOUS
#define MISMATCH GASNET_BARRIERFLAG_MISMATCH

#define H_TRIED 201

static int use_try;
static volatile int tried;
static volatile int stop;

static void tried_h(gasnet_token_t token) {
    (void)token;
    tried = 1;
}

/* Both halves of a barrier, with names and flags that may differ, and their return codes. */
static int halves(int notify_id, int notify_flags, int wait_id, int wait_flags) {
    int rc;
    gasnet_barrier_notify(notify_id, notify_flags);
    if (use_try)
        GASNET_BLOCKUNTIL((rc = gasnet_barrier_try(wait_id, wait_flags)) != GASNET_ERR_NOT_READY);
    else
        rc = gasnet_barrier_wait(wait_id, wait_flags);
    return rc;
}

static void expect(const char *what, int rc, int want) {
    CHECK(rc == want, "%s: %s instead of %s", what, gasnet_ErrorName(rc), gasnet_ErrorName(want));
}

/* The name of the last barrier, or that it was anonymous for all ranks. */
static void result(const char *what, int anonymous, int want) {
    int id = -77, rc = gasnet_barrier_result(&id);
    CHECK(!rc == !anonymous, "%s: gasnet_barrier_result returned %d", what, rc);
    if (!anonymous && !rc) CHECK(id == want, "%s: gasnet_barrier_result gave %d instead of %d", what, id, want);
}

static void conformance(int i) {
    int me = (int)gasnet_mynode(), n = (int)gasnet_nodes(), bad = GASNET_ERR_BARRIER_MISMATCH;
    int one = i % n; /* the rank that differs */

    check_alive("barrier conformance");
    expect("all anonymous", halves(0, ANONYMOUS, 0, ANONYMOUS), GASNET_OK);
    result("all anonymous", 1, 0);
    expect("all anonymous, different ids that do not count", halves(me, ANONYMOUS, -me, ANONYMOUS), GASNET_OK);
    result("all anonymous, different ids that do not count", 1, 0);
    expect("all unnamed", halves(0, GASNET_BARRIERFLAG_UNNAMED, 0, GASNET_BARRIERFLAG_UNNAMED), GASNET_OK);
    result("all unnamed", 1, 0);
    expect("the same name", halves(i, 0, i, 0), GASNET_OK);
    result("the same name", 0, i);
    expect("the name 0", halves(0, 0, 0, 0), GASNET_OK);
    result("the name 0", 0, 0);
    expect("a negative name", halves(-i - 1, 0, -i - 1, 0), GASNET_OK);
    result("a negative name", 0, -i - 1);
    expect("the name INT_MAX", halves(INT_MAX, 0, INT_MAX, 0), GASNET_OK);
    expect("the name INT_MIN", halves(INT_MIN, 0, INT_MIN, 0), GASNET_OK);
    result("the name INT_MIN", 0, INT_MIN);

    expect("one named, the others anonymous", me == one ? halves(i, 0, i, 0) : halves(0, ANONYMOUS, 0, ANONYMOUS),
           GASNET_OK);
    result("one named, the others anonymous", 0, i);
    expect("one anonymous, the others named", me == one ? halves(7, ANONYMOUS, 7, ANONYMOUS) : halves(i, 0, i, 0),
           GASNET_OK);
    if (n > 1) result("one anonymous, the others named", 0, i);

    /* Flags may differ between the halves. */
    expect("anonymous at first, then named", halves(0, ANONYMOUS, i, 0), GASNET_OK);
    expect("named at first, then anonymous", halves(i, 0, 0, ANONYMOUS), GASNET_OK);
    result("named at first, then anonymous", 0, i);
    expect("named by one, then awaited by this name", me == one ? halves(i, 0, i, 0) : halves(0, ANONYMOUS, i, 0),
           GASNET_OK);
    if (n > 1)
        expect("named by one, then awaited by another name",
               me == one ? halves(i, 0, i, 0) : halves(0, ANONYMOUS, i + 1, 0), me == one ? GASNET_OK : bad);
    expect("one name at first, then another", halves(i, 0, i + 1, 0), bad);

    /* Mismatches. */
    expect("all say mismatch", halves(0, MISMATCH, 0, MISMATCH), bad);
    expect("one says mismatch, the others are anonymous",
           me == one ? halves(0, MISMATCH, 0, MISMATCH) : halves(0, ANONYMOUS, 0, ANONYMOUS), bad);
    expect("one says mismatch, the others are named", me == one ? halves(0, MISMATCH, 0, MISMATCH) : halves(i, 0, i, 0),
           bad);
    if (n > 1)
        expect("one has another name", me == one ? halves(i + 1, 0, i + 1, 0) : halves(i, 0, i, 0), bad);
    if (n > 2) {
        int other = (one + 1) % n;
        expect("two names, the others anonymous",
               me == one     ? halves(i, 0, i, 0)
               : me == other ? halves(i + 1, 0, i + 1, 0)
                             : halves(0, ANONYMOUS, 0, ANONYMOUS),
               bad);
    }
    expect("a mismatch leaves no trace", halves(i, 0, i, 0), GASNET_OK);
    result("a mismatch leaves no trace", 0, i);

    /* gasnet_barrier performs both halves. */
    expect("gasnet_barrier, named", gasnet_barrier(i, 0), GASNET_OK);
    result("gasnet_barrier, named", 0, i);
    expect("gasnet_barrier, anonymous", gasnet_barrier(i, ANONYMOUS), GASNET_OK);
    expect("gasnet_barrier, mismatch", gasnet_barrier(i, me == one ? MISMATCH : ANONYMOUS), bad);

    /* gasnet_barrier_try before the others have arrived: rank 1 waits until rank 0 has tried. */
    if (n > 1) {
        check_barrier();
        if (me == 1) {
            GASNET_BLOCKUNTIL(tried);
            tried = 0;
        }
        gasnet_barrier_notify(i, 0);
        if (me == 0) {
            expect("gasnet_barrier_try before rank 1 arrives", gasnet_barrier_try(i, 0), GASNET_ERR_NOT_READY);
            CHECK_OK(gasnet_AMRequestShort0(1, H_TRIED));
        }
        expect("gasnet_barrier_wait", gasnet_barrier_wait(i, 0), GASNET_OK);
    }
}

/* ---- messages sent before ---- */

#define H_COUNT 200
#define MESSAGES 20
static volatile int counted;

static void count_h(gasnet_token_t token) {
    (void)token;
    counted = counted + 1;
}

/* Whether all ranks map each other's memory. */
static int mapped(void) {
    gasnet_nodeinfo_t *info = (gasnet_nodeinfo_t *)calloc(gasnet_nodes(), sizeof *info);
    gasnet_node_t i;
    int same = 1;
    CHECK_OK(gasnet_getNodeInfo(info, (int)gasnet_nodes()));
    for (i = 1; i < gasnet_nodes(); i++) same &= info[i].supernode == info[0].supernode;
    free(info);
    return same;
}

static void messages(int i) {
    gasnet_node_t right = (gasnet_mynode() + 1) % gasnet_nodes();
    int k, rc;
    check_alive("messages before a barrier");
    counted = 0;
    if (i == 0) {
        /* A network may have to connect first. */
        check_barrier();
        CHECK_OK(gasnet_AMRequestShort0(right, H_COUNT));
        GASNET_BLOCKUNTIL(counted == 1);
        check_barrier();
        counted = 0;
    }
    check_barrier();
    for (k = 0; k < MESSAGES; k++) CHECK_OK(gasnet_AMRequestShort0(right, H_COUNT));
    switch (i % 5) {
    case 0: rc = gasnet_barrier(i, 0); break;
    case 1: rc = gasnet_coll_barrier(GASNET_TEAM_ALL, i, 0); break;
    case 2:
        gasnet_coll_barrier_notify(GASNET_TEAM_ALL, i, 0);
        GASNET_BLOCKUNTIL((rc = gasnet_coll_barrier_try(GASNET_TEAM_ALL, i, 0)) != GASNET_ERR_NOT_READY);
        break;
    default: rc = halves(i, 0, i, 0);
    }
    expect("a barrier after messages", rc, GASNET_OK);
    CHECK(counted == MESSAGES, "a barrier left %d of %d messages behind", MESSAGES - counted, MESSAGES);
    check_barrier();
}

#if CHECK_PAR
static void poller(int id) {
    (void)id;
    GASNET_BLOCKUNTIL(stop);
}
#endif

int main(int argc, char **argv) {
    gasnet_handlerentry_t handlers[] = {{H_COUNT, count_h}, {H_TRIED, tried_h}};
    int i, n, pollers = 0;

    check_init("testbarrierconf", &argc, &argv);
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-t")) use_try = 1;
        else if (!strcmp(argv[i], "-p") && i + 1 < argc) pollers = atoi(argv[++i]);
        else check_usage(USAGE);
    }
    n = (int)check_arg(argc, argv, i, 10);
    if (n < 1 || argc > i + 1) check_usage(USAGE);
    check_attach(handlers, 2, 0);
    gasnet_coll_init(NULL, 0, NULL, 0, 0);
    if (gasnet_nodes() < 3 && gasnet_mynode() == 0)
        printf("testbarrierconf: with fewer than 3 processes, two names among anonymous ones are not tried\n");
    {
#if CHECK_PAR
        struct check_thread *threads = check_start(pollers, 0, poller);
#endif
        for (i = 0; i < n; i++) conformance(i);
        /* A poller may have taken a message and not run its handler yet. */
        if (!pollers && mapped())
            for (i = 0; i < 30 * n; i++) messages(i);
        use_try = !use_try;
        conformance(n);
#if CHECK_PAR
        stop = 1;
        check_join(threads, pollers);
#else
        (void)pollers;
        (void)stop;
#endif
    }
    check_done();
}
