/* rma: puts, gets and memsets from rank 0 to the last rank (itself if it is the only one).
 * Latency of the blocking, explicit, implicit and value forms. The time of initiating.
 * Bandwidth of a window of operations in flight, in one direction and in both at once.
 *
 * usage: rma [options] [measurement ...]      options: see bench.h */
#include "bench.h"

static gasnet_node_t peer;
static char *remote, *local;
static uint64_t word;
static volatile gasnet_register_value_t sink;
static gasnet_handle_t handles[BENCH_WINDOW];

/* ---- latency: each operation complete before the next begins ---- */

static void put(size_t n, long times) { while (bench_again(&times)) gasnet_put(peer, remote, local, n); }
static void get(size_t n, long times) { while (bench_again(&times)) gasnet_get(local, peer, remote, n); }
static void put_bulk(size_t n, long times) { while (bench_again(&times)) gasnet_put_bulk(peer, remote, local, n); }
static void get_bulk(size_t n, long times) { while (bench_again(&times)) gasnet_get_bulk(local, peer, remote, n); }
static void put_nb(size_t n, long times) { while (bench_again(&times)) gasnet_wait_syncnb(gasnet_put_nb(peer, remote, local, n)); }
static void get_nb(size_t n, long times) { while (bench_again(&times)) gasnet_wait_syncnb(gasnet_get_nb(local, peer, remote, n)); }
static void put_nbi(size_t n, long times) {
    while (bench_again(&times)) {
        gasnet_put_nbi(peer, remote, local, n);
        gasnet_wait_syncnbi_puts();
    }
}
static void get_nbi(size_t n, long times) {
    while (bench_again(&times)) {
        gasnet_get_nbi(local, peer, remote, n);
        gasnet_wait_syncnbi_gets();
    }
}
static void put_word(size_t n, long times) {
    (void)n;
    while (bench_again(&times)) {
        word++;
        gasnet_put(peer, remote, &word, 8);
    }
}
static void get_word(size_t n, long times) {
    (void)n;
    while (bench_again(&times)) {
        gasnet_get(&word, peer, remote, 8);
        sink = word;
    }
}
static void put_val(size_t n, long times) { while (bench_again(&times)) gasnet_put_val(peer, remote, (gasnet_register_value_t)times, n); }
static void get_val(size_t n, long times) { while (bench_again(&times)) sink = gasnet_get_val(peer, remote, n); }
static void set(size_t n, long times) { while (bench_again(&times)) gasnet_memset(peer, remote, (int)times, n); }

/* ---- a window of operations in flight ---- */

static void put_window(size_t n, long times) {
    while (times--) {
        int i;
        for (i = 0; i < BENCH_WINDOW; i++) gasnet_put_nbi_bulk(peer, remote, local, n);
        gasnet_wait_syncnbi_puts();
    }
}
static void get_window(size_t n, long times) {
    while (times--) {
        int i;
        for (i = 0; i < BENCH_WINDOW; i++) gasnet_get_nbi_bulk(local, peer, remote, n);
        gasnet_wait_syncnbi_gets();
    }
}
static void put_handles(size_t n, long times) {
    while (times--) {
        int i;
        for (i = 0; i < BENCH_WINDOW; i++) handles[i] = gasnet_put_nb_bulk(peer, remote, local, n);
        gasnet_wait_syncnb_all(handles, BENCH_WINDOW);
    }
}

/* Nanoseconds that rank 0 spends initiating, without the waiting. */
static double initiating(int puts, size_t n) {
    double spent = 0, began = bench_now();
    long count = 0;
    while (bench_now() - began < bench_ms * 1e6) {
        double at = bench_now();
        int i;
        for (i = 0; i < BENCH_WINDOW; i++)
            handles[i] = puts ? gasnet_put_nb_bulk(peer, remote, local, n) : gasnet_get_nb_bulk(local, peer, remote, n);
        spent += bench_now() - at;
        count += BENCH_WINDOW;
        gasnet_wait_syncnb_all(handles, BENCH_WINDOW);
    }
    return spent / (double)count;
}

static void latency(const char *name, void (*run)(size_t, long), size_t max) {
    size_t n;
    if (!bench_wants(name, "Latency (us)")) return;
    for (n = bench_min; n <= bench_max && n <= max; n *= 2) bench_row(n, bench_alone(run, n) / 1000);
}

static void bandwidth(const char *name, void (*run)(size_t, long), int both) {
    size_t n;
    if (!bench_wants(name, "Bandwidth (MB/s)")) return;
    for (n = bench_min < 8 ? 8 : bench_min; n <= bench_max; n *= 2) {
        double ns = both ? together_timed(run, n, 1) : bench_alone(run, n);
        bench_row(n, (both ? 2 : 1) * (double)n * BENCH_WINDOW * 1000 / ns);
    }
}

int main(int argc, char **argv) {
    size_t n;
    int i;
    if (!bench_options(argc, argv)) return 2;
    bench_init(&argc, &argv, NULL, 0, 2 * bench_max + 4096);
    peer = (gasnet_node_t)(bench_nodes - 1 - bench_me);
    remote = (char *)bench_seg[peer].addr;
    local = (char *)bench_seg[bench_me].addr + bench_max;

    latency("put", put, bench_max);
    latency("get", get, bench_max);
    latency("put_bulk", put_bulk, bench_max);
    latency("get_bulk", get_bulk, bench_max);
    latency("put_nb", put_nb, bench_max);
    latency("get_nb", get_nb, bench_max);
    latency("put_nbi", put_nbi, bench_max);
    latency("get_nbi", get_nbi, bench_max);
    latency("put_val", put_val, sizeof(gasnet_register_value_t));
    latency("get_val", get_val, sizeof(gasnet_register_value_t));
    latency("memset", set, bench_max);
    if (bench_wants("put_word", "Latency (us)")) bench_row(8, bench_alone(put_word, 8) / 1000);
    if (bench_wants("get_word", "Latency (us)")) bench_row(8, bench_alone(get_word, 8) / 1000);
    for (i = 1; i >= 0; i--) {
        if (!bench_wants(i ? "put_initiate" : "get_initiate", "Overhead (us)")) continue;
        for (n = bench_min; n <= bench_max; n *= 2) {
            bench_barrier();
            if (bench_me == 0) bench_row(n, initiating(i, n) / 1000);
            bench_barrier();
        }
    }
    bandwidth("put_bandwidth", put_window, 0);
    bandwidth("get_bandwidth", get_window, 0);
    bandwidth("put_nb_bandwidth", put_handles, 0);
    if (bench_nodes == 2) {
        bandwidth("put_bibandwidth", put_window, 1);
        bandwidth("get_bibandwidth", get_window, 1);
    }
    if (bench_wants("put_rate", "Messages/s")) bench_row(8, BENCH_WINDOW * 1e9 / bench_alone(put_window, 8));
    if (bench_wants("get_rate", "Messages/s")) bench_row(8, BENCH_WINDOW * 1e9 / bench_alone(get_window, 8));
    bench_end();
    return 0;
}
