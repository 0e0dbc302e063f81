/* What the measuring programs of this directory share: options, pinning, timing, and the lines that they print. They use
 * nothing but the GASNet-1 interface, so that the same source compiles against any installation of GASNet and can be
 * compared with it.
 *
 * Options of every program:
 *   -j             one JSON object a line instead of columns
 *   -t ms          time spent on each figure (default 10)
 *   -s min:max     sizes in bytes (powers of two)
 *   -P             do not pin processes to CPUs
 * What else a program takes are the names of its measurements; without one it makes all.
 *
 * Output, in the columns that scripts for the OSU micro-benchmarks read: a line `# name`, a line `# Size  Unit`, and a
 * line per size. Each figure is the median of BENCH_BLOCKS blocks, timed by process 0. */
#ifndef BENCH_H
#define BENCH_H

#include <gasnet.h>

#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BENCH_BLOCKS 7
#define BENCH_WINDOW 64

static int bench_json, bench_pinned = 1;
static double bench_ms = 10;
static size_t bench_min = 8, bench_max = (size_t)4 << 20;
static gasnet_node_t bench_me, bench_nodes;
static gasnet_seginfo_t *bench_seg;
static char **bench_names;
static int bench_named;
static const char *bench_now_named, *bench_now_unit;

/* Nanoseconds since some moment. */
static inline double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline void bench_barrier(void) {
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) != GASNET_OK) gasnet_exit(1);
}

static inline void bench_fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    gasnet_exit(1);
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

/* Starts the job with a segment of `bytes` and reads the options. Before it the program changes the defaults. */
static inline void bench_init(int *argc, char ***argv, gasnet_handlerentry_t *handlers, int count, size_t bytes) {
    int i;
    if (gasnet_init(argc, argv)) exit(1);
    bench_me = gasnet_mynode();
    bench_nodes = gasnet_nodes();
    bench_names = (char **)calloc((size_t)*argc + 1, sizeof *bench_names);
    for (i = 1; i < *argc; i++) {
        const char *a = (*argv)[i];
        unsigned long low, high;
        if (!strcmp(a, "-j")) bench_json = 1;
        else if (!strcmp(a, "-P")) bench_pinned = 0;
        else if (!strcmp(a, "-t") && i + 1 < *argc) bench_ms = atof((*argv)[++i]);
        else if (!strcmp(a, "-s") && i + 1 < *argc && sscanf((*argv)[i + 1], "%lu:%lu", &low, &high) == 2 && low <= high) {
            bench_min = low;
            bench_max = high;
            i++;
        } else if (a[0] == '-') bench_fail("options: [-j] [-P] [-t ms] [-s min:max] [measurement ...]");
        else bench_names[bench_named++] = (*argv)[i];
    }
    if (bench_ms <= 0) bench_fail("-t must be more than 0 ms");
    bytes = (bytes + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
    if (gasnet_attach(handlers, count, bytes, 0)) bench_fail("gasnet_attach failed");
    bench_seg = (gasnet_seginfo_t *)calloc(bench_nodes, sizeof *bench_seg);
    gasnet_getSegmentInfo(bench_seg, (int)bench_nodes);
    memset(bench_seg[bench_me].addr, 1, bytes);
    if (bench_pinned) bench_pin((int)bench_me);
    bench_barrier();
}

/* Whether a measurement was asked for; if so, its head is printed. */
static inline int bench_wants(const char *name, const char *unit) {
    int i, wanted = bench_named == 0;
    for (i = 0; i < bench_named; i++) wanted |= !strcmp(bench_names[i], name);
    if (!wanted) return 0;
    bench_now_named = name;
    bench_now_unit = unit;
    if (bench_me == 0 && !bench_json) {
        printf("# %s, %d processes\n# %-14s %16s\n", name, (int)bench_nodes, "Size", unit);
        fflush(stdout);
    }
    return 1;
}

/* Prints one figure; process 0 only. */
static inline void bench_row(size_t size, double value) {
    if (bench_me != 0) return;
    if (bench_json)
        printf("{\"name\":\"%s\",\"processes\":%d,\"size\":%lu,\"unit\":\"%s\",\"value\":%.6g}\n", bench_now_named,
               (int)bench_nodes, (unsigned long)size, bench_now_unit, value);
    else printf("%-16lu %16.5g\n", (unsigned long)size, value);
    fflush(stdout);
}

static inline int bench_by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How often `run` must be called to fill a block, as process 0 finds by trying. */
static inline long bench_calibrate(void (*run)(size_t size, long times), size_t size) {
    long times = 1;
    for (;;) {
        double began = bench_now(), spent;
        run(size, times);
        spent = bench_now() - began;
        if (spent > bench_ms * 1e6 / BENCH_BLOCKS / 4 || times > 1000000000L) {
            double wanted = (double)times * bench_ms * 1e6 / BENCH_BLOCKS / (spent > 1 ? spent : 1);
            return wanted < 1 ? 1 : (long)wanted;
        }
        times *= 4;
    }
}

/* Median nanoseconds of one of `run`'s repetitions, when process 0 alone acts and the others serve the network in a
 * barrier. Called by all. */
static inline double bench_alone(void (*run)(size_t size, long times), size_t size) {
    double block[BENCH_BLOCKS];
    bench_barrier();
    if (bench_me == 0) {
        long times = bench_calibrate(run, size);
        int b;
        for (b = 0; b < BENCH_BLOCKS; b++) {
            double began = bench_now();
            run(size, times);
            block[b] = (bench_now() - began) / (double)times;
        }
        qsort(block, BENCH_BLOCKS, sizeof *block, bench_by_value);
    } else block[BENCH_BLOCKS / 2] = 0;
    bench_barrier();
    return block[BENCH_BLOCKS / 2];
}

/* The same when all act at once, as often as each other (process 0 tells how often through the segments; see
 * bench_agree): median nanoseconds on process 0, from a common start to the end of the last one. */
static inline long bench_agree(long times) {
    volatile long *mine = (volatile long *)((char *)bench_seg[bench_me].addr + bench_seg[bench_me].size - sizeof(long));
    gasnet_node_t i;
    if (bench_me == 0)
        for (i = 0; i < bench_nodes; i++)
            gasnet_put(i, (char *)bench_seg[i].addr + bench_seg[i].size - sizeof(long), &times, sizeof times);
    bench_barrier();
    times = *mine;
    bench_barrier();
    return times;
}

static inline double bench_together(void (*run)(size_t size, long times), size_t size) {
    double block[BENCH_BLOCKS];
    long times = 1, next;
    int b;
    for (;;) {
        double began, spent;
        bench_barrier();
        began = bench_now();
        run(size, times);
        bench_barrier();
        spent = bench_now() - began;
        next = times * 4;
        if (spent > bench_ms * 1e6 / BENCH_BLOCKS / 4) next = -(long)((double)times * bench_ms * 1e6 / BENCH_BLOCKS / spent) - 1;
        next = bench_agree(next);
        if (next < 0) break;
        times = next;
    }
    times = -next;
    for (b = 0; b < BENCH_BLOCKS; b++) {
        double began;
        bench_barrier();
        began = bench_now();
        run(size, times);
        bench_barrier();
        block[b] = (bench_now() - began) / (double)times;
    }
    qsort(block, BENCH_BLOCKS, sizeof *block, bench_by_value);
    return block[BENCH_BLOCKS / 2];
}

static inline void bench_end(void) {
    bench_barrier();
    gasnet_exit(0);
}

#endif
