/* mpi: the same figures of an MPI library, for comparison. The two-sided figures are
 * ping-ack (a message of each size, answered by an empty one) and a window of them. The
 * one-sided figures are puts and gets, each flushed, and a window of puts.
 *
 * usage: mpi [options] [measurement ...]      options: see figures.h */
#include "figures.h"

#include <mpi.h>

#define TAG_DATA 1
#define TAG_ACK 2
#define TAG_END 3

static char *window, *local;
static MPI_Win win;
static int peer;

static inline void bench_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void ping_ack(size_t n, long times) {
    while (times--) {
        MPI_Send(local, (int)n, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}
static void send_window(size_t n, long times) {
    while (times--) {
        MPI_Request all[BENCH_WINDOW];
        int i;
        for (i = 0; i < BENCH_WINDOW; i++) MPI_Isend(local, (int)n, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, &all[i]);
        MPI_Waitall(BENCH_WINDOW, all, MPI_STATUSES_IGNORE);
        MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Rank 1 meanwhile: receives `count` messages and answers them, until the order to end arrives. */
static void serve(int count) {
    for (;;) {
        MPI_Status status;
        int i;
        for (i = 0; i < count; i++) {
            MPI_Recv(local, (int)bench_max, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_TAG == TAG_END) return;
        }
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ACK, MPI_COMM_WORLD);
    }
}

static double two_sided(void (*run)(size_t, long), size_t n, int count) {
    double ns = 0;
    bench_barrier();
    if (bench_me == 0) {
        ns = bench_timed(run, n);
        MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_END, MPI_COMM_WORLD);
    } else if (bench_me == peer) serve(count);
    bench_barrier();
    return ns;
}

static void put(size_t n, long times) {
    while (times--) {
        MPI_Put(local, (int)n, MPI_BYTE, peer, 0, (int)n, MPI_BYTE, win);
        MPI_Win_flush(peer, win);
    }
}
static void get(size_t n, long times) {
    while (times--) {
        MPI_Get(local, (int)n, MPI_BYTE, peer, 0, (int)n, MPI_BYTE, win);
        MPI_Win_flush(peer, win);
    }
}
static void put_window(size_t n, long times) {
    while (times--) {
        int i;
        for (i = 0; i < BENCH_WINDOW; i++) MPI_Put(local, (int)n, MPI_BYTE, peer, 0, (int)n, MPI_BYTE, win);
        MPI_Win_flush(peer, win);
    }
}

int main(int argc, char **argv) {
    size_t n;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench_me);
    MPI_Comm_size(MPI_COMM_WORLD, &bench_nodes);
    if (!bench_options(argc, argv) || bench_nodes < 2) {
        if (bench_me == 0 && bench_nodes < 2) fprintf(stderr, "mpi needs two processes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (bench_pinned) bench_pin(bench_me);
    peer = bench_nodes - 1;
    local = (char *)malloc(bench_max);
    memset(local, 1, bench_max);
    MPI_Win_allocate((MPI_Aint)bench_max, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    memset(window, 1, bench_max);
    MPI_Win_lock_all(0, win);
    if (bench_wants("ping_ack", "Round trip (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, two_sided(ping_ack, n, 1) / 1000);
    if (bench_wants("send_bandwidth", "Bandwidth (MB/s)"))
        for (n = bench_min; n <= bench_max; n *= 2)
            bench_row(n, (double)n * BENCH_WINDOW * 1000 / two_sided(send_window, n, BENCH_WINDOW));
    if (bench_wants("put", "Latency (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, bench_alone(put, n) / 1000);
    if (bench_wants("get", "Latency (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, bench_alone(get, n) / 1000);
    if (bench_wants("put_bandwidth", "Bandwidth (MB/s)"))
        for (n = bench_min; n <= bench_max; n *= 2)
            bench_row(n, (double)n * BENCH_WINDOW * 1000 / bench_alone(put_window, n));
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
