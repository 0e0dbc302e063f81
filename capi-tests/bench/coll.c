/* coll: time of the collectives of gasnet_coll.h over all ranks, by the bytes of one rank's
 * part. `broadcast` begins when all ranks have entered and ends when all have their data
 * (IN_ALLSYNC, OUT_ALLSYNC); `broadcast_my` synchronises each rank with its own data (MYSYNC),
 * `broadcast_no` none (NOSYNC). Of `broadcast_nb`, `broadcast_nb_my` and `broadcast_nb_no`,
 * which do not block, 16 are in flight. The other operations have the same six forms.
 *
 * usage: coll [options] [measurement ...]      options: see bench.h
 * Every eighth size is measured, of more than 4 ranks or from 32 KiB up every 64th, and the
 * largest. */
#include "bench.h"
#include <gasnet_coll.h>

#define IN_FLIGHT 16

enum operation { BROADCAST, SCATTER, GATHER, GATHER_ALL, EXCHANGE, REDUCE, OPERATIONS };
static const char *const names[OPERATIONS] = {"broadcast", "scatter", "gather", "gather_all", "exchange", "reduce"};

/* What is measured. */
static enum operation operation;
static int flags;

/* Per rank: a part of every other rank, at the same offsets in all segments. */
static char *from, *to;

/* The same position in the segment of rank 0, the root. */
static void *at_root(char *mine) {
    return (char *)bench_seg[0].addr + (mine - (char *)bench_seg[bench_me].addr);
}

static void add(void *results, size_t count, const void *left, size_t left_count, const void *right, size_t size, int how,
                int arg) {
    size_t i;
    (void)left_count, (void)size, (void)how, (void)arg;
    for (i = 0; i < count; i++) ((long *)results)[i] = ((const long *)left)[i] + ((const long *)right)[i];
}

static void blocking(size_t n, long times) {
    for (; times > 0; times--) switch (operation) {
            case BROADCAST: gasnet_coll_broadcast(GASNET_TEAM_ALL, to, 0, at_root(from), n, flags); break;
            case SCATTER: gasnet_coll_scatter(GASNET_TEAM_ALL, to, 0, at_root(from), n, flags); break;
            case GATHER: gasnet_coll_gather(GASNET_TEAM_ALL, 0, at_root(to), from, n, flags); break;
            case GATHER_ALL: gasnet_coll_gather_all(GASNET_TEAM_ALL, to, from, n, flags); break;
            case EXCHANGE: gasnet_coll_exchange(GASNET_TEAM_ALL, to, from, n, flags); break;
            default:
                gasnet_coll_reduce(GASNET_TEAM_ALL, 0, at_root(to), from, 0, 0, sizeof(long), n / sizeof(long), 0, 0, flags);
        }
}

static gasnet_coll_handle_t started(size_t n) {
    switch (operation) {
        case BROADCAST: return gasnet_coll_broadcast_nb(GASNET_TEAM_ALL, to, 0, at_root(from), n, flags);
        case SCATTER: return gasnet_coll_scatter_nb(GASNET_TEAM_ALL, to, 0, at_root(from), n, flags);
        case GATHER: return gasnet_coll_gather_nb(GASNET_TEAM_ALL, 0, at_root(to), from, n, flags);
        case GATHER_ALL: return gasnet_coll_gather_all_nb(GASNET_TEAM_ALL, to, from, n, flags);
        case EXCHANGE: return gasnet_coll_exchange_nb(GASNET_TEAM_ALL, to, from, n, flags);
        default:
            return gasnet_coll_reduce_nb(GASNET_TEAM_ALL, 0, at_root(to), from, 0, 0, sizeof(long), n / sizeof(long), 0, 0,
                                         flags);
    }
}

static void in_flight(size_t n, long times) {
    gasnet_coll_handle_t handles[IN_FLIGHT];
    while (times > 0) {
        size_t count = times < IN_FLIGHT ? (size_t)times : IN_FLIGHT, i;
        for (i = 0; i < count; i++) handles[i] = started(n);
        gasnet_coll_wait_sync_all(handles, count);
        times -= (long)count;
    }
}

/* All sizes of the operation in one form. */
static void sizes(const char *form, int synchronisation, void (*run)(size_t, long)) {
    /* It outlives the figures. */
    char *name = (char *)malloc(64);
    const size_t step = bench_nodes > 4 || bench_min >= TOGETHER_SHORT ? 64 : 8;
    size_t n;
    snprintf(name, 64, "%s%s", names[operation], form);
    flags = synchronisation | GASNET_COLL_SINGLE | GASNET_COLL_SRC_IN_SEGMENT | GASNET_COLL_DST_IN_SEGMENT;
    if (!bench_wants(name, "Time (us)")) return;
    for (n = bench_min; n < bench_max; n *= step) bench_row(n, bench_together(run, n) / 1000);
    bench_row(bench_max, bench_together(run, bench_max) / 1000);
}

int main(int argc, char **argv) {
    gasnet_coll_fn_entry_t functions[] = {{add, 0}};
    int next, i;
    size_t all;
    bench_max = TOGETHER_SHORT;
    if (!bench_options(argc, argv)) return 2;
    bench_start(&argc, &argv);
    all = (size_t)bench_nodes * bench_max;
    bench_attach(NULL, 0, 2 * all + 4096);
    /* GASNET_COLL_SINGLE: an address that one rank passes is the address at every rank. */
    for (i = 0; i < bench_nodes; i++)
        if (bench_seg[i].addr != bench_seg[0].addr) bench_fail("coll: the segments of the ranks have different addresses");
    from = (char *)bench_seg[bench_me].addr;
    to = from + all;
    gasnet_coll_init(NULL, 0, functions, 1, 0);
    for (next = 0; next < OPERATIONS; next++) {
        operation = (enum operation)next;
        sizes("", GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC, blocking);
        sizes("_my", GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC, blocking);
        sizes("_no", GASNET_COLL_IN_NOSYNC | GASNET_COLL_OUT_NOSYNC, blocking);
        sizes("_nb", GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC, in_flight);
        sizes("_nb_my", GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC, in_flight);
        sizes("_nb_no", GASNET_COLL_IN_NOSYNC | GASNET_COLL_OUT_NOSYNC, in_flight);
    }
    bench_end();
    return 0;
}
