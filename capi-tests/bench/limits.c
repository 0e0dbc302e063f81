/* limits: what the machine itself can do, without any library. It measures:
 * - the round trip of a cache line between two CPUs
 * - the round trip of a payload that each side copies to the other
 * - memcpy by size, within the memory of a process and into memory shared with another one
 *   (which touched it first)
 * - the time until each of the processes that share a CPU has run once
 *
 * usage: limits [options] [measurement ...]      options: see figures.h */
#include "figures.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LINE 64
#define TRIPS 20000
/* Payloads make fewer round trips, and up to this size. */
#define COPY_TRIPS 4000
#define LONGEST 65536
/* Processes that share the CPUs, and how often each yields. */
#define PROCESSES 8
#define YIELDS 5000

struct lines {
    volatile uint64_t ask;
    char pad0[LINE - sizeof(uint64_t)];
    volatile uint64_t answer;
    char pad1[LINE - sizeof(uint64_t)];
};

static struct lines *lines;
static char *shared, *own, *source, *target;
static char *there, *back; /* shared: where payloads go, and where they come back to */
/* Called through a pointer, with a length unknown to the compiler, as a library would. */
static void *(*volatile copy_function)(void *, const void *, size_t) = memcpy;

/* Only one process exists. */
static inline void bench_barrier(void) {}

static void copy(size_t n, long times) { while (times--) copy_function(target, source, n); }

static void table(const char *latency, const char *bandwidth, char *to) {
    size_t n;
    target = to;
    if (bench_wants(latency, "Latency (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, bench_alone(copy, n) / 1000);
    if (bench_wants(bandwidth, "Bandwidth (MB/s)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, (double)n * 1000 / bench_alone(copy, n));
}

/* A child that ends with this process: it spins for answers, which would not arrive any more. */
static pid_t fork_child(void) {
    const pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)) _exit(1);
    return child;
}

/* The other process: touches the shared memory and answers, first without payloads, then with
 * those of each size. */
static void answer(void) {
    uint64_t i = 1, end = (uint64_t)TRIPS * BENCH_BLOCKS;
    size_t n = 0;
    if (bench_pinned) bench_pin(1);
    memset(shared, 3, bench_max);
    for (;;) {
        for (; i <= end; i++) {
            while (__atomic_load_n(&lines->ask, __ATOMIC_ACQUIRE) != i) {}
            if (n > 0) copy_function(back, there, n);
            __atomic_store_n(&lines->answer, i, __ATOMIC_RELEASE);
        }
        n = n > 0 ? 2 * n : bench_min;
        if (n > bench_max || n > LONGEST || !bench_asked("copy_trip")) _exit(0);
        end += (uint64_t)COPY_TRIPS * BENCH_BLOCKS;
    }
}

/* The round trip of a payload of n bytes, if n is not 0, and a word; i is the next number. In
 * microseconds. */
static double trip(size_t n, uint64_t *i) {
    const int times = n > 0 ? COPY_TRIPS : TRIPS;
    double block[BENCH_BLOCKS];
    int b, t;
    for (b = 0; b < BENCH_BLOCKS; b++) {
        double began = 0;
        for (t = 0; t < times; t++, ++*i) {
            if (n > 0) copy_function(there, source, n);
            __atomic_store_n(&lines->ask, *i, __ATOMIC_RELEASE);
            while (__atomic_load_n(&lines->answer, __ATOMIC_ACQUIRE) != *i) {}
            if (began == 0) began = bench_now(); /* includes the start of the child */
        }
        block[b] = (bench_now() - began) / (times - 1);
    }
    return bench_of_blocks(block, BENCH_BLOCKS) / 1000;
}

/* Processes that only yield: how long each waits for its next turn, in microseconds. Call this
 * before pinning, which they would inherit. */
static double yield_round(void) {
    double *took = (double *)shared;
    volatile uint64_t *here = &lines->ask, *through = &lines->answer;
    int me, t;
    for (me = 0; me < PROCESSES; me++) {
        pid_t child = fork_child();
        if (child < 0) {
            /* The end of this process ends the others. */
            perror("limits: fork");
            exit(1);
        }
        if (child > 0) continue;
        double began;
        if (bench_pinned) bench_pin(me);
        __atomic_add_fetch(here, 1, __ATOMIC_ACQ_REL);
        while (*here != PROCESSES) sched_yield();
        began = bench_now();
        for (t = 0; t < YIELDS; t++) sched_yield();
        took[me] = (bench_now() - began) / YIELDS / 1000;
        __atomic_add_fetch(through, 1, __ATOMIC_ACQ_REL);
        while (*through != PROCESSES) sched_yield(); /* until then the others run too */
        _exit(0);
    }
    for (me = 0; me < PROCESSES; me++) {
        int status;
        if (wait(&status) < 0 || status != 0) {
            fprintf(stderr, "limits: a process that yields has failed\n");
            exit(1);
        }
    }
    lines->ask = lines->answer = 0;
    qsort(took, PROCESSES, sizeof *took, bench_by_value);
    return took[PROCESSES / 2];
}

int main(int argc, char **argv) {
    double yields = 0, line_trip;
    uint64_t i = 1;
    pid_t child;
    size_t n;

    bench_max = (size_t)8 << 20;
    if (!bench_options(argc, argv)) return 2;
    lines = (struct lines *)mmap(NULL, 4096 + bench_max + 2 * LONGEST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    own = (char *)malloc(bench_max);
    source = (char *)malloc(bench_max);
    if (lines == MAP_FAILED || !own || !source) {
        perror("limits: memory");
        return 1;
    }
    there = (char *)lines + 4096;
    back = there + LONGEST;
    shared = back + LONGEST;
    memset(own, 1, bench_max);
    memset(source, 2, bench_max);
    if (bench_asked("yield_round")) yields = yield_round();
    child = fork_child();
    if (child < 0) {
        perror("limits: fork");
        return 1;
    }
    if (child == 0) answer();
    if (bench_pinned) bench_pin(0);
    bench_nodes = 2;
    line_trip = trip(0, &i);
    if (bench_wants("line_trip", "Round trip (us)")) bench_row(0, line_trip);
    if (bench_wants("copy_trip", "Round trip (us)"))
        for (n = bench_min; n <= bench_max && n <= LONGEST; n *= 2) bench_row(n, trip(n, &i));
    waitpid(child, NULL, 0);
    bench_nodes = 1;
    table("memcpy_latency", "memcpy_bandwidth", own);
    table("memcpy_shared_latency", "memcpy_shared_bandwidth", shared);
    bench_nodes = PROCESSES;
    if (bench_wants("yield_round", "Time (us)")) bench_row(0, yields);
    return 0;
}
