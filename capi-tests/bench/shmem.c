/* shmem: the same figures of an OpenSHMEM library, for comparison: puts, each followed by a
 * quiet, gets, and a window of puts.
 *
 * usage: shmem [options] [measurement ...]      options: see figures.h */
#include "figures.h"

#include <shmem.h>

static char *remote, *local;
static int peer;

static inline void bench_barrier(void) { shmem_barrier_all(); }

static void put(size_t n, long times) {
    while (times--) {
        shmem_putmem(remote, local, n, peer);
        shmem_quiet();
    }
}
static void get(size_t n, long times) { while (times--) shmem_getmem(local, remote, n, peer); }
static void put_window(size_t n, long times) {
    while (times--) {
        int i;
        for (i = 0; i < BENCH_WINDOW; i++) shmem_putmem_nbi(remote, local, n, peer);
        shmem_quiet();
    }
}

int main(int argc, char **argv) {
    size_t n;
    if (!bench_options(argc, argv)) return 2;
    shmem_init();
    bench_me = shmem_my_pe();
    bench_nodes = shmem_n_pes();
    if (bench_pinned) bench_pin(bench_me);
    peer = bench_nodes - 1;
    remote = (char *)shmem_malloc(bench_max);
    local = (char *)malloc(bench_max);
    if (!remote || !local) {
        fprintf(stderr, "shmem: no memory\n");
        return 1;
    }
    memset(remote, 1, bench_max);
    memset(local, 1, bench_max);
    if (bench_wants("put", "Latency (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, bench_alone(put, n) / 1000);
    if (bench_wants("get", "Latency (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, bench_alone(get, n) / 1000);
    if (bench_wants("put_bandwidth", "Bandwidth (MB/s)"))
        for (n = bench_min; n <= bench_max; n *= 2)
            bench_row(n, (double)n * BENCH_WINDOW * 1000 / bench_alone(put_window, n));
    /* Not shmem_finalize: some libraries crash in it, and everything is measured. */
    fflush(stdout);
    shmem_barrier_all();
    shmem_global_exit(0);
    return 0;
}
