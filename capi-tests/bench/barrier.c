/* barrier: time of an anonymous and of a named barrier of all ranks.
 *
 * usage: barrier [options] [measurement ...]      options: see bench.h
 * The column Size is the number of ranks. */
#include "bench.h"

static void anonymous(size_t n, long times) {
    (void)n;
    while (times--) {
        gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
        gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    }
}
static void named(size_t n, long times) {
    (void)n;
    while (times--) {
        gasnet_barrier_notify((int)times, 0);
        gasnet_barrier_wait((int)times, 0);
    }
}

int main(int argc, char **argv) {
    if (!bench_options(argc, argv)) return 2;
    bench_init(&argc, &argv, NULL, 0, 4096);
    if (bench_wants("barrier_anonymous", "Time (us)")) bench_row((size_t)bench_nodes, bench_together(anonymous, 0) / 1000);
    if (bench_wants("barrier_named", "Time (us)")) bench_row((size_t)bench_nodes, bench_together(named, 0) / 1000);
    bench_end();
    return 0;
}
