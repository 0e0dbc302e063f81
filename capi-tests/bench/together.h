/* Times what all ranks do at once. A program that includes it has defined bench_barrier and
 * bench_agree, by the interface that it measures. */
#ifndef TOGETHER_H
#define TOGETHER_H

#include "figures.h"

/* As bench_alone, but all ranks act at once and equally often: from a common start to the end
 * of the last rank. */
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
    return block[bench_taken];
}

#endif
