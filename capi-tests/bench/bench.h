/* Shared by the measuring programs in plain GASNet-1. They use only its interface, so that the
 * same source compiles against any GASNet installation and can be compared with it. Options
 * and output: figures.h. */
#ifndef BENCH_H
#define BENCH_H

#include "figures.h"

#include <gasnet.h>
#include <sys/mman.h>

static gasnet_seginfo_t *bench_seg;

static inline void bench_fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    gasnet_exit(1);
}

/* What bench_seg describes: the segments or, in GASNET_SEGMENT_EVERYTHING, as many bytes at one
 * address of every rank. */
static inline void bench_find_segments(size_t bytes) {
    bench_seg = (gasnet_seginfo_t *)calloc((size_t)bench_nodes, sizeof *bench_seg);
#ifdef GASNET_SEGMENT_EVERYTHING
    {
        void *wanted = (void *)0x200000000000, *memory;
        int i;
        memory = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory != wanted) bench_fail("no memory at the address that all ranks use");
        for (i = 0; i < bench_nodes; i++) {
            bench_seg[i].addr = memory;
            bench_seg[i].size = bytes;
        }
    }
#else
    gasnet_getSegmentInfo(bench_seg, bench_nodes);
#endif
    memset(bench_seg[bench_me].addr, 1, bytes);
}

static inline void bench_barrier(void) {
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (bench_sleeps && bench_me != 0 && bench_me != bench_nodes - 1) {
        const struct timespec nap = {0, 1000000};
        int ended;
        while ((ended = gasnet_barrier_try(0, GASNET_BARRIERFLAG_ANONYMOUS)) == GASNET_ERR_NOT_READY) nanosleep(&nap, NULL);
        if (ended != GASNET_OK) gasnet_exit(1);
        return;
    }
    if (gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) != GASNET_OK) gasnet_exit(1);
}

/* Starts the job. The options were read before. */
static inline void bench_start(int *argc, char ***argv) {
    if (gasnet_init(argc, argv)) exit(1);
    bench_me = (int)gasnet_mynode();
    bench_nodes = (int)gasnet_nodes();
    if (bench_waits_asleep && gasnet_set_waitmode(GASNET_WAIT_BLOCK) != GASNET_OK) bench_fail("gasnet_set_waitmode failed");
}

/* Attaches a segment of `bytes`, whose size may depend on the options and the number of ranks. */
static inline void bench_attach(gasnet_handlerentry_t *handlers, int count, size_t bytes) {
    bytes = (bytes + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
    if (gasnet_attach(handlers, count, bytes, 0)) bench_fail("gasnet_attach failed");
    bench_find_segments(bytes);
    if (bench_pinned) bench_pin(bench_me);
    bench_barrier();
}

/* Starts the job with a segment of `bytes`. */
static inline void bench_init(int *argc, char ***argv, gasnet_handlerentry_t *handlers, int count, size_t bytes) {
    bench_start(argc, argv);
    bench_attach(handlers, count, bytes);
}

/* Rank 0 sets every rank's number of repetitions, through the last word of its segment. */
static inline long bench_agree(long times) {
    volatile long *mine = (volatile long *)((char *)bench_seg[bench_me].addr + bench_seg[bench_me].size - sizeof(long));
    int i;
    if (bench_me == 0)
        for (i = 0; i < bench_nodes; i++)
            gasnet_put((gasnet_node_t)i, (char *)bench_seg[i].addr + bench_seg[i].size - sizeof(long), &times, sizeof times);
    bench_barrier();
    times = *mine;
    bench_barrier();
    return times;
}

#include "together.h"

static inline void bench_end(void) {
    bench_barrier();
    gasnet_exit(0);
}

#endif
