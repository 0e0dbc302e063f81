/* Times what all ranks do at once. A program that includes it has defined bench_barrier and
 * bench_agree, by the interface that it measures. */
#ifndef TOGETHER_H
#define TOGETHER_H

#include "figures.h"

/* The least repetitions in a block, of operations of up to TOGETHER_SHORT bytes and of longer
 * ones. Both are multiples of the operations that programs keep in flight. */
#define TOGETHER_SHORT ((size_t)32 << 10)
#define TOGETHER_LEAST 64
#define TOGETHER_LEAST_LONG 16
/* Where ranks outnumber the CPUs, a block spans four time slices of 3 ms. */
#define TOGETHER_SLICES_NS 12e6
/* The blocks there, and of operations on more than TOGETHER_SHORT bytes. */
#define TOGETHER_BLOCKS 3

/* Nanoseconds of `times` repetitions by all ranks: from a common start to the end of the last. */
static inline double together_spent(void (*run)(size_t size, long times), size_t size, long times) {
    double began;
    bench_barrier();
    began = bench_now();
    run(size, times);
    bench_barrier();
    return bench_now() - began;
}

/* As bench_alone, but all ranks act at once and equally often, a multiple of `least` times. The
 * barrier at the end takes a small part of a block: at most about one of `least` repetitions. */
static inline double together_timed(void (*run)(size_t size, long times), size_t size, long least) {
    const int oversubscribed = bench_nodes > bench_cpus, few = oversubscribed || size > TOGETHER_SHORT;
    const int blocks = few ? TOGETHER_BLOCKS : BENCH_BLOCKS;
    /* A long block needs no second trial. */
    const int trials = few ? 1 : 2;
    double block[BENCH_BLOCKS], wanted = bench_wanted_ns();
    long times = least;
    int b, passed = 0;
    if (oversubscribed && wanted < TOGETHER_SLICES_NS) wanted = TOGETHER_SLICES_NS;
    together_spent(run, size, least);
    while (passed < trials) {
        long more = bench_more(times, together_spent(run, size, times), wanted);
        more = bench_agree((more + least - 1) / least * least);
        passed = more > 0 ? 0 : passed + 1;
        if (more > 0) times = more;
    }
    for (b = 0; b < blocks; b++) block[b] = together_spent(run, size, times) / (double)times;
    return bench_of_blocks(block, blocks);
}

/* The same of an operation on `size` bytes. */
static inline double bench_together(void (*run)(size_t size, long times), size_t size) {
    return together_timed(run, size, size <= TOGETHER_SHORT ? TOGETHER_LEAST : TOGETHER_LEAST_LONG);
}

#endif
