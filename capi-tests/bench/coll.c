/* coll: time of the collectives of gasnet_coll.h over all ranks, by the bytes of one rank's
 * part. Each begins when all ranks have entered and ends when all have their data.
 *
 * usage: coll [options] [measurement ...]      options: see bench.h
 * Every eighth size is measured. */
#include "bench.h"
#include <gasnet_coll.h>

#define FLAGS (GASNET_COLL_SINGLE | GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC | GASNET_COLL_SRC_IN_SEGMENT | \
               GASNET_COLL_DST_IN_SEGMENT)

/* Per rank: a part of every other rank, at the same offsets in all segments. */
static char *from, *to;

/* The same position in the segment of rank 0, the root. */
static void *at_root(char *mine) {
    return (char *)bench_seg[0].addr + (mine - (char *)bench_seg[bench_me].addr);
}

static void broadcast(size_t n, long times) {
    while (times--) gasnet_coll_broadcast(GASNET_TEAM_ALL, to, 0, at_root(from), n, FLAGS);
}
static void scatter(size_t n, long times) {
    while (times--) gasnet_coll_scatter(GASNET_TEAM_ALL, to, 0, at_root(from), n, FLAGS);
}
static void gather(size_t n, long times) {
    while (times--) gasnet_coll_gather(GASNET_TEAM_ALL, 0, at_root(to), from, n, FLAGS);
}
static void gather_all(size_t n, long times) {
    while (times--) gasnet_coll_gather_all(GASNET_TEAM_ALL, to, from, n, FLAGS);
}
static void exchange(size_t n, long times) {
    while (times--) gasnet_coll_exchange(GASNET_TEAM_ALL, to, from, n, FLAGS);
}

static void sizes(const char *name, void (*run)(size_t, long)) {
    size_t n;
    if (!bench_wants(name, "Time (us)")) return;
    for (n = bench_min; n <= bench_max; n *= 8) bench_row(n, bench_together(run, n) / 1000);
}

int main(int argc, char **argv) {
    size_t all;
    bench_max = 32768;
    if (!bench_options(argc, argv)) return 2;
    all = bench_max * 64;
    bench_init(&argc, &argv, NULL, 0, 2 * all + 4096);
    if ((size_t)bench_nodes * bench_max > all) bench_fail("coll: the parts of more than 64 processes do not fit");
    from = (char *)bench_seg[bench_me].addr;
    to = from + all;
    gasnet_coll_init(NULL, 0, NULL, 0, 0);
    sizes("broadcast", broadcast);
    sizes("scatter", scatter);
    sizes("gather", gather);
    sizes("gather_all", gather_all);
    sizes("exchange", exchange);
    bench_end();
    return 0;
}
