/* testbarrier: barriers hold early ranks until late ranks arrive, named or not; latency of
 * each kind. */
/* faults: skip_barrier */
/* args: 100 */
/* nodes: any */
/* threads: both */
#include "check.h"

#define USAGE "[-t] [-b] [-p pollers] [iterations 1000]\n" \
    "  -t  wait with gasnet_barrier_try\n" \
    "  -b  use gasnet_barrier, which does both halves\n" \
    "  -p  threads that poll meanwhile (PAR)\n"

static int use_try, use_whole;
static volatile int stop;

static void barrier(int id, int flags) {
    int rc;
    if (use_whole) {
        rc = gasnet_barrier(id, flags);
    } else {
        gasnet_barrier_notify(id, flags);
        if (use_try)
            GASNET_BLOCKUNTIL((rc = gasnet_barrier_try(id, flags)) != GASNET_ERR_NOT_READY);
        else
            rc = gasnet_barrier_wait(id, flags);
    }
    CHECK(rc == GASNET_OK, "barrier %d, flags %d: %s", id, flags, gasnet_ErrorName(rc));
}

/* Every rank puts the number of the round to all others before the barrier and reads theirs
 * after it. One rank is late, another one each time. */
static void rounds(int n, int flags) {
    volatile uint64_t *seen = (volatile uint64_t *)check_at(gasnet_mynode(), 0);
    gasnet_node_t i;
    int r;
    for (r = 1; r <= n; r++) {
        check_alive("rounds of barriers");
        if (r % (int)gasnet_nodes() == (int)gasnet_mynode()) usleep(2000);
        for (i = 0; i < gasnet_nodes(); i++) gasnet_put_val(i, check_at(i, 8 * gasnet_mynode()), (uint64_t)r, 8);
        barrier(r, flags);
        for (i = 0; i < gasnet_nodes(); i++)
            CHECK(seen[i] == (uint64_t)r, "round %d: rank %d is in round %lu", r, (int)i, (unsigned long)seen[i]);
        barrier(-r, flags);
    }
}

static void timed(const char *title, int n, int id, int flags) {
    double began;
    int i;
    check_alive(title);
    check_barrier();
    began = check_now();
    for (i = 0; i < n; i++) barrier(id, flags);
    began = (check_now() - began) / n / 1000;
    if (gasnet_mynode() == 0) printf("%-12s %9d %11.3f us\n", title, n, began);
}

#if CHECK_PAR
static void poller(int id) {
    (void)id;
    GASNET_BLOCKUNTIL(stop);
}
#endif

int main(int argc, char **argv) {
    int i, n, pollers = 0;

    check_init("testbarrier", &argc, &argv);
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-t")) use_try = 1;
        else if (!strcmp(argv[i], "-b")) use_whole = 1;
        else if (!strcmp(argv[i], "-p") && i + 1 < argc) pollers = atoi(argv[++i]);
        else check_usage(USAGE);
    }
    n = (int)check_arg(argc, argv, i, 1000);
    if (n < 1 || argc > i + 1) check_usage(USAGE);
    check_attach(NULL, 0, 8 * gasnet_nodes());
#if CHECK_PAR
    {
        struct check_thread *threads = check_start(pollers, 0, poller);
#else
    (void)pollers;
    (void)stop;
    {
#endif
        rounds(20, GASNET_BARRIERFLAG_ANONYMOUS);
        rounds(10, 0);
        rounds(10, GASNET_BARRIERFLAG_UNNAMED);
        if (gasnet_mynode() == 0) printf("testbarrier: latency of barriers of %d processes\n", (int)gasnet_nodes());
        timed("anonymous", n, 0, GASNET_BARRIERFLAG_ANONYMOUS);
        timed("unnamed", n, 0, GASNET_BARRIERFLAG_UNNAMED);
        timed("named", n, 12345, 0);
#if CHECK_PAR
        stop = 1;
        check_join(threads, pollers);
#endif
    }
    check_done();
}
