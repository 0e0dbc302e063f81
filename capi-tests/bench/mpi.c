/* mpi: the same figures of an MPI library, for comparison. The two-sided figures are
 * `two_sided_trip` (a message of each size, answered by an empty one) and `two_sided_bandwidth` (a
 * window of messages). The one-sided figures are puts and gets, each flushed, and a window of
 * puts. The collectives of all ranks have the names of GASNet's, by the bytes of one rank's part,
 * at every eighth size up to 32 KiB.
 *
 * usage: mpi [options] [measurement ...]      options: see figures.h */
#include "figures.h"

#include <mpi.h>

#define TAG_DATA 1
#define TAG_ACK 2
#define TAG_END 3

static char *window, *local, *from, *to;
static MPI_Win win;
static int peer;

static inline void bench_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void two_sided_trip(size_t n, long times) {
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

/* ---- collectives ---- */

/* Rank 0 sets every rank's number of repetitions. */
static long bench_agree(long times) {
    MPI_Bcast(&times, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return times;
}

#include "together.h"

/* Each returns when this rank's part is done, as GASNet's with IN_MYSYNC and OUT_MYSYNC. */
static void broadcast(size_t n, long times) { while (times--) MPI_Bcast(from, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void reduce(size_t n, long times) {
    while (times--) MPI_Reduce(from, to, (int)(n / sizeof(long)), MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
}
static void gather_all(size_t n, long times) {
    while (times--) MPI_Allgather(from, (int)n, MPI_BYTE, to, (int)n, MPI_BYTE, MPI_COMM_WORLD);
}
static void exchange(size_t n, long times) {
    while (times--) MPI_Alltoall(from, (int)n, MPI_BYTE, to, (int)n, MPI_BYTE, MPI_COMM_WORLD);
}
static void barrier(size_t n, long times) {
    (void)n;
    while (times--) MPI_Barrier(MPI_COMM_WORLD);
}

static void collective(const char *name, void (*run)(size_t, long)) {
    size_t n;
    if (!bench_wants(name, "Time (us)")) return;
    for (n = 8; n <= TOGETHER_SHORT; n *= 8) bench_row(n, bench_together(run, n) / 1000);
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
    from = (char *)calloc((size_t)bench_nodes, TOGETHER_SHORT);
    to = (char *)calloc((size_t)bench_nodes, TOGETHER_SHORT);
    if (bench_wants("two_sided_trip", "Round trip (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, two_sided(two_sided_trip, n, 1) / 1000);
    if (bench_wants("two_sided_bandwidth", "Bandwidth (MB/s)"))
        for (n = bench_min; n <= bench_max; n *= 2)
            bench_row(n, (double)n * BENCH_WINDOW * 1000 / two_sided(send_window, n, BENCH_WINDOW));
    if (bench_wants("put", "Latency (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, bench_alone(put, n) / 1000);
    if (bench_wants("get", "Latency (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, bench_alone(get, n) / 1000);
    if (bench_wants("put_bandwidth", "Bandwidth (MB/s)"))
        for (n = bench_min; n <= bench_max; n *= 2)
            bench_row(n, (double)n * BENCH_WINDOW * 1000 / bench_alone(put_window, n));
    collective("broadcast_my", broadcast);
    collective("reduce_my", reduce);
    collective("gather_all_my", gather_all);
    collective("exchange_my", exchange);
    if (bench_wants("barrier_anonymous", "Time (us)")) bench_row((size_t)bench_nodes, bench_together(barrier, 0) / 1000);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
