/* testidle: a rank that waits without traffic uses almost no CPU. In BLOCK mode this holds
 * for every rank, and in every mode for the threads, up to 64, of a rank with fewer CPUs.
 * Rank 0 sleeps meanwhile, and then wakes the others. */
/* faults: awake */
/* args: 500 */
/* nodes: 2+ */
/* threads: both */
#include "check.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#define USAGE "[milliseconds 1000]"
#define H_WAKE 201
/* The share of a CPU, for each waiting thread, besides what BARE_SLEEPS show of the machine. */
#define MOST_USED 0.02
/* The most sleeps of a waiting thread in a second. */
#define MOST_SLEEPS 1000
/* Sleeps outside the library. In some virtual machines the end of one counts as 40 us of CPU
 * time, so that 500 in a second are 2 %. */
#define BARE_SLEEPS 100
/* A virtual machine counts time that its host takes away as this process's: the minimum of
 * this many waits is judged. */
#define WAITS 3
/* The most threads that are started. */
#define MOST_THREADS 64

static volatile int wakes;
/* How many wakes are over. */
static int woken;
static unsigned pause_ms;

static void wake_h(gasnet_token_t token) {
    (void)token;
    wakes++;
}

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* How often this process has slept. */
static double sleeps(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_nvcsw;
}

/* The CPU time in seconds of one sleep outside the library. */
static double bare_sleep(void) {
    double used = seconds(CLOCK_THREAD_CPUTIME_ID);
    int i;
    for (i = 0; i < BARE_SLEEPS; i++) usleep(1000);
    return (seconds(CLOCK_THREAD_CPUTIME_ID) - used) / BARE_SLEEPS;
}

/* Waits until woken WAITS times more than `woken`; checked by the caller's thread. */
static void wait_idly(int woken, int threads, const char *how) {
    double least = 1, fewest = 1e9, bare = bare_sleep();
    int i;
    for (i = 1; i <= WAITS; i++) {
        double used = seconds(CLOCK_PROCESS_CPUTIME_ID), since = seconds(CLOCK_MONOTONIC), slept = sleeps(), passed;
        GASNET_BLOCKUNTIL(wakes >= woken + i);
        slept = sleeps() - slept;
        used = seconds(CLOCK_PROCESS_CPUTIME_ID) - used - slept * bare;
        passed = (seconds(CLOCK_MONOTONIC) - since) * threads;
        if (used / passed < least) least = used / passed;
        if (slept / passed < fewest) fewest = slept / passed;
    }
    CHECK(least < MOST_USED,
          "%s: each of %d threads that wait uses %.1f %% of a CPU besides sleeps of %.0f us, in the best of %d waits", how,
          threads, 100 * least, 1e6 * bare, WAITS);
    CHECK(fewest < MOST_SLEEPS, "%s: each of %d threads that wait sleeps %.0f times a second", how, threads, fewest);
}

/* Rank 0 wakes all others WAITS times, each time after a pause. */
static void wake_later(void) {
    gasnet_node_t i;
    int n;
    for (n = 0; n < WAITS; n++) {
        usleep(pause_ms * 1000);
        for (i = 1; i < gasnet_nodes(); i++) CHECK_OK(gasnet_AMRequestShort0(i, H_WAKE));
    }
}

#if CHECK_PAR
static int threads;
static pthread_barrier_t meeting;

static void waiter(int id) {
    pthread_barrier_wait(&meeting);
    if (id == 0)
        wait_idly(woken, threads, "threads");
    else
        GASNET_BLOCKUNTIL(wakes >= woken + WAITS);
}

/* All ranks but the first wait with this many threads. */
static void wait_with(int n) {
    threads = n;
    check_alive("threads");
    if (gasnet_mynode() == 0) {
        check_barrier();
        wake_later();
    } else {
        struct check_thread *all;
        pthread_barrier_init(&meeting, NULL, (unsigned)n + 1);
        all = check_start(n, 0, waiter);
        check_barrier();
        pthread_barrier_wait(&meeting);
        check_join(all, n);
        pthread_barrier_destroy(&meeting);
    }
    woken += WAITS;
    check_barrier();
}

/* Four threads for each CPU. The oldest C libraries have no CPU_COUNT. */
static int many(void) {
    cpu_set_t set;
    int cpu, count = 0;
    if (sched_getaffinity(0, sizeof set, &set)) return 0;
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++) count += CPU_ISSET(cpu, &set) ? 4 : 0;
    return count;
}
#endif

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_WAKE, wake_h}};

    check_init("testidle", &argc, &argv);
    pause_ms = (unsigned)check_arg(argc, argv, 1, 1000);
    if (argc > 2 || pause_ms < 1) check_usage(USAGE);
    check_attach(table, 1, 0);

#if CHECK_PAR
    if (many() > 0 && many() <= MOST_THREADS) {
        wait_with(many());
        wait_with(MOST_THREADS);
    }
#endif
    check_alive("BLOCK");
    CHECK_OK(gasnet_set_waitmode(GASNET_WAIT_BLOCK));
    check_barrier();
    if (gasnet_mynode() == 0)
        wake_later();
    else
        wait_idly(woken, 1, "BLOCK");
    check_barrier();
    check_done();
}
