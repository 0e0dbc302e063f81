/* vis: strided and indexed puts and gets of 64 KiB in pieces of each size, from rank 0 to the
 * last rank. The pieces are at twice their size apart on both sides; those of `joined` are
 * neighbours at the last rank. `contiguous` is one put of the same bytes.
 *
 * usage: vis [options] [measurement ...]      options: see bench.h
 * The column Size is the bytes of a piece. */
#include "bench.h"
#include <gasnet_vis.h>

#define TOTAL ((size_t)64 << 10)

static gasnet_node_t peer;
static char *remote, *local;
static void **remote_list, **local_list;

static void contiguous_put(size_t n, long times) {
    (void)n;
    while (times--) gasnet_put_bulk(peer, remote, local, TOTAL);
}
static void strided_put(size_t n, long times) {
    size_t stride = 2 * n, count[2];
    count[0] = n;
    count[1] = TOTAL / n;
    while (times--) gasnet_puts_bulk(peer, remote, &stride, local, &stride, count, 1);
}
static void strided_get(size_t n, long times) {
    size_t stride = 2 * n, count[2];
    count[0] = n;
    count[1] = TOTAL / n;
    while (times--) gasnet_gets_bulk(local, &stride, peer, remote, &stride, count, 1);
}
/* The pieces are neighbours at the last rank. */
static void joined_put(size_t n, long times) {
    size_t apart = 2 * n, count[2];
    count[0] = n;
    count[1] = TOTAL / n;
    while (times--) gasnet_puts_bulk(peer, remote, &n, local, &apart, count, 1);
}
static void joined_get(size_t n, long times) {
    size_t apart = 2 * n, count[2];
    count[0] = n;
    count[1] = TOTAL / n;
    while (times--) gasnet_gets_bulk(local, &apart, peer, remote, &n, count, 1);
}
static size_t list(size_t n) {
    size_t i;
    for (i = 0; i < TOTAL / n; i++) {
        remote_list[i] = remote + 2 * n * i;
        local_list[i] = local + 2 * n * i;
    }
    return TOTAL / n;
}
static void indexed_put(size_t n, long times) {
    size_t count = list(n);
    while (times--) gasnet_puti_bulk(peer, count, remote_list, n, count, local_list, n);
}
static void indexed_get(size_t n, long times) {
    size_t count = list(n);
    while (times--) gasnet_geti_bulk(count, local_list, n, peer, count, remote_list, n);
}

static void pieces(const char *name, void (*run)(size_t, long)) {
    size_t n;
    if (!bench_wants(name, "Bandwidth (MB/s)")) return;
    for (n = bench_min; n <= bench_max && n <= TOTAL; n *= 2) bench_row(n, (double)TOTAL * 1000 / bench_alone(run, n));
}

int main(int argc, char **argv) {
    bench_max = 8192;
    if (!bench_options(argc, argv)) return 2;
    bench_init(&argc, &argv, NULL, 0, 4 * TOTAL);
    peer = (gasnet_node_t)bench_nodes - 1;
    remote = (char *)bench_seg[peer].addr;
    local = (char *)bench_seg[bench_me].addr + 2 * TOTAL;
    remote_list = (void **)malloc(TOTAL / bench_min * sizeof(void *));
    local_list = (void **)malloc(TOTAL / bench_min * sizeof(void *));
    pieces("vis_contiguous_put", contiguous_put);
    pieces("vis_strided_put", strided_put);
    pieces("vis_strided_get", strided_get);
    pieces("vis_joined_put", joined_put);
    pieces("vis_joined_get", joined_get);
    pieces("vis_indexed_put", indexed_put);
    pieces("vis_indexed_get", indexed_get);
    bench_end();
    return 0;
}
