/* Shared by all measuring programs of this folder: options, pinning, timing, and output.
 *
 * Options of every program:
 *   -j             one JSON object per line instead of columns
 *   -t ms          time spent on each figure (default 10)
 *   -s min:max     sizes in bytes (powers of two)
 *   -q             the 10th percentile of slices instead of the median block
 *   -P             do not pin processes to CPUs
 *   -b             GASNet: ranks that wait sleep (GASNET_WAIT_BLOCK)
 *   -z             GASNet: ranks between the first and the last sleep in barriers
 * The other arguments of a program are names of measurements; without one it makes all.
 *
 * Output, in the columns of the OSU micro-benchmarks: a line `# name, N processes`, a line `#
 * Size  Unit`, and a line per size. Each figure is the median of BENCH_BLOCKS blocks, timed by
 * rank 0. Repetitions are added until a whole block takes at least half of its share of the time,
 * and 5 us; the first call of an operation is never timed. With -q the time is cut into slices of
 * at least 5 us, if possible of one repetition, and the figure is the 10th percentile of them:
 * delays by others do not count. Of what all ranks do at once it is the fastest block.
 *
 * A program that includes this defines bench_barrier(): a barrier of all processes in which
 * waiting processes serve the network. */
#ifndef BENCH_FIGURES_H
#define BENCH_FIGURES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* CPU sets */
#endif
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BENCH_BLOCKS 7
#define BENCH_WINDOW 64
/* A shorter block measures the clock. */
#define BENCH_SHORTEST_NS 5000.0
/* One trial has at most this multiple of the repetitions of the trial before. */
#define BENCH_GROWTH 8

static int bench_json, bench_pinned = 1, bench_sleeps, bench_waits_asleep;
/* The 10th percentile of slices is taken, not the median block. */
static int bench_tenth;
/* CPUs that the program may use. */
static int bench_cpus = 1;
static double bench_ms = 10;
static size_t bench_min = 8, bench_max = (size_t)4 << 20;
static int bench_me, bench_nodes = 1;
static char **bench_names;
static int bench_named;
static const char *bench_now_named, *bench_now_unit;

static inline void bench_barrier(void);

/* Nanoseconds since an arbitrary moment. */
static inline double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Pins this process to the rank-th of the CPUs that it may use. */
static inline void bench_pin(int rank) {
    cpu_set_t all, one;
    int cpu, seen = 0, count;
    if (sched_getaffinity(0, sizeof all, &all)) return;
    count = CPU_COUNT(&all);
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all) || seen++ != rank % count) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one)) return;
    }
}

/* Reads the options; returns 0 if one is invalid. */
static inline int bench_options(int argc, char **argv) {
    cpu_set_t cpus;
    int i;
    if (!sched_getaffinity(0, sizeof cpus, &cpus)) bench_cpus = CPU_COUNT(&cpus);
    bench_names = (char **)calloc((size_t)argc + 1, sizeof *bench_names);
    for (i = 1; i < argc; i++) {
        unsigned long low, high;
        if (!strcmp(argv[i], "-j")) bench_json = 1;
        else if (!strcmp(argv[i], "-P")) bench_pinned = 0;
        else if (!strcmp(argv[i], "-q")) bench_tenth = 1;
        else if (!strcmp(argv[i], "-b")) bench_waits_asleep = 1;
        else if (!strcmp(argv[i], "-z")) bench_sleeps = 1;
        else if (!strcmp(argv[i], "-t") && i + 1 < argc && atof(argv[i + 1]) > 0) bench_ms = atof(argv[++i]);
        else if (!strcmp(argv[i], "-s") && i + 1 < argc && sscanf(argv[i + 1], "%lu:%lu", &low, &high) == 2 && low > 0 &&
                 low <= high) {
            bench_min = low;
            bench_max = high;
            i++;
        } else if (argv[i][0] == '-') {
            fprintf(stderr, "options: [-j] [-P] [-q] [-b] [-z] [-t ms] [-s min:max] [measurement ...]\n");
            return 0;
        } else bench_names[bench_named++] = argv[i];
    }
    return 1;
}

/* Whether a measurement was requested. */
static inline int bench_asked(const char *name) {
    int i, asked = bench_named == 0;
    for (i = 0; i < bench_named; i++) asked |= !strcmp(bench_names[i], name);
    return asked;
}

/* The same; if so, prints its head. */
static inline int bench_wants(const char *name, const char *unit) {
    if (!bench_asked(name)) return 0;
    bench_now_named = name;
    bench_now_unit = unit;
    if (bench_me == 0 && !bench_json) {
        printf("# %s, %d processes\n# %-14s %16s\n", name, bench_nodes, "Size", unit);
        fflush(stdout);
    }
    return 1;
}

/* Prints one figure; rank 0 only. */
static inline void bench_row(size_t size, double value) {
    if (bench_me != 0) return;
    if (bench_json)
        printf("{\"name\":\"%s\",\"processes\":%d,\"size\":%lu,\"unit\":\"%s\",\"value\":%.6g}\n", bench_now_named,
               bench_nodes, (unsigned long)size, bench_now_unit, value);
    else printf("%-16lu %16.5g\n", (unsigned long)size, value);
    fflush(stdout);
}

static inline int bench_by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the blocks and returns the one that is taken: the median, with -q the fastest. */
static inline double bench_of_blocks(double *block, int blocks) {
    qsort(block, (size_t)blocks, sizeof *block, bench_by_value);
    return block[bench_tenth ? 0 : blocks / 2];
}

/* The time that a block is to take. A trial may end at half of it. */
static inline double bench_wanted_ns(void) {
    const double wanted = bench_ms * 1e6 / BENCH_BLOCKS;
    return wanted < 2 * BENCH_SHORTEST_NS ? 2 * BENCH_SHORTEST_NS : wanted;
}

/* Counts the rounds of a loop and is a compiler barrier between them. A compiler that sees the
 * code of a put or a get must not merge the rounds. */
static inline int bench_again(long *times) {
    __asm__ __volatile__("" ::: "memory");
    return (*times)-- > 0;
}

/* The repetitions for the next trial, if a trial of `times` took `spent` of the `wanted` time of a
 * block; 0 if it took at least half of it. */
static inline long bench_more(long times, double spent, double wanted) {
    double factor;
    if (spent >= wanted / 2 || times > 1000000000L) return 0;
    factor = wanted / (spent > 1 ? spent : 1);
    if (factor > BENCH_GROWTH) factor = BENCH_GROWTH;
    return (long)((double)times * factor) + 1;
}

/* The repetitions of `run` that fill at least half of the `wanted` time, found by rank 0 by trial.
 * The first call is not timed: it may connect, allocate or fault pages in. Two trials in a row
 * must take long enough, so that one delay from outside does not pass for work. */
static inline long bench_calibrate(void (*run)(size_t size, long times), size_t size, double wanted) {
    long times = 1;
    int passed = 0;
    run(size, 1);
    while (passed < 2) {
        const double began = bench_now();
        long more;
        run(size, times);
        more = bench_more(times, bench_now() - began, wanted);
        passed = more > 0 ? 0 : passed + 1;
        if (more > 0) times = more;
    }
    return times;
}

/* Nanoseconds of one repetition in `times` of them. */
static inline double bench_repetition(void (*run)(size_t size, long times), size_t size, long times) {
    const double began = bench_now();
    run(size, times);
    return (bench_now() - began) / (double)times;
}

/* Nanoseconds of one repetition of `run`, the 10th percentile of slices; called by rank 0. */
static inline double bench_by_slices(void (*run)(size_t size, long times), size_t size) {
    const long times = bench_calibrate(run, size, 2 * BENCH_SHORTEST_NS);
    const double end = bench_now() + bench_ms * 1e6;
    const size_t most = (size_t)(bench_ms * 1e6 / BENCH_SHORTEST_NS) + BENCH_BLOCKS;
    double *slice = (double *)malloc(most * sizeof *slice), tenth;
    size_t n = 0;
    if (!slice) abort();
    while (n < most && (n < BENCH_BLOCKS || bench_now() < end)) slice[n++] = bench_repetition(run, size, times);
    qsort(slice, n, sizeof *slice, bench_by_value);
    tenth = slice[n / 10];
    free(slice);
    return tenth;
}

/* Nanoseconds of one repetition of `run`; called by rank 0. */
static inline double bench_timed(void (*run)(size_t size, long times), size_t size) {
    double block[BENCH_BLOCKS];
    long times;
    int b;
    if (bench_tenth) return bench_by_slices(run, size);
    times = bench_calibrate(run, size, bench_wanted_ns());
    for (b = 0; b < BENCH_BLOCKS; b++) block[b] = bench_repetition(run, size, times);
    return bench_of_blocks(block, BENCH_BLOCKS);
}

/* The same when only rank 0 acts and the others wait in a barrier. All ranks call it; it
 * returns 0 to the others. */
static inline double bench_alone(void (*run)(size_t size, long times), size_t size) {
    double ns;
    bench_barrier();
    ns = bench_me == 0 ? bench_timed(run, size) : 0;
    bench_barrier();
    return ns;
}

#endif
