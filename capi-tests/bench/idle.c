/* idle: puts of 8 bytes to a rank that waits in a barrier, and to one that sleeps and never calls
 * the library meanwhile.
 *
 * usage: idle [options] [measurement ...]      options: see bench.h */
#include "bench.h"

static char *remote;
static uint64_t word;
/* The first word of a segment: the rank may stop sleeping. */
static volatile uint64_t *stop;

static void put(size_t n, long times) { while (bench_again(&times)) gasnet_put(1, remote, &word, n); }

static void measure(const char *name, int sleeps) {
    const struct timespec nap = {0, 1000000};
    uint64_t one = 1;
    double ns;
    if (!bench_wants(name, "Latency (us)")) return;
    *stop = 0;
    bench_barrier();
    if (bench_me == 0) {
        ns = bench_timed(put, sizeof word);
        bench_row(sizeof word, ns / 1000);
        gasnet_put(1, (char *)bench_seg[1].addr, &one, sizeof one);
    } else if (sleeps)
        while (*stop == 0) nanosleep(&nap, NULL);
    bench_barrier();
}

int main(int argc, char **argv) {
    if (!bench_options(argc, argv)) return 2;
    bench_init(&argc, &argv, NULL, 0, 4096);
    if (bench_nodes != 2) bench_fail("usage: idle [options] [measurement ...], as a job of two processes");
    stop = (volatile uint64_t *)bench_seg[bench_me].addr;
    remote = (char *)bench_seg[1].addr + sizeof word;
    measure("polling_put", 0);
    measure("idle_put", 1);
    bench_end();
    return 0;
}
