/* everything: what GASNET_SEGMENT_EVERYTHING costs above the system call that moves the bytes. Two
 * ranks of one host. Rank 0 acts; rank 1 spins or sleeps and never calls the library meanwhile.
 * The measurements take turns block by block, so that their ratios hold on a busy machine.
 *
 * usage: everything [options] [measurement ...]      options: see bench.h
 * The column Size is the bytes of an operation, or the number of operations of 8 bytes. */
#include "bench.h"

#include <sys/uio.h>

#define MANY 64

/* What rank 1 does while rank 0 acts. */
enum order { SPIN, SLEEP, LEAVE };
struct there {
    /* Set by rank 0, by rank 1 when it acts as ordered, and by rank 1 at the start. */
    volatile long order, obeyed, pid;
    char data[4096 - 3 * sizeof(long)];
};

static struct there *there;
static char *local;
static pid_t peer_pid;
static struct iovec here_list[MANY], there_list[MANY];

static void put(size_t n, long times) { while (bench_again(&times)) gasnet_put(1, there->data, local, n); }
static void get(size_t n, long times) { while (bench_again(&times)) gasnet_get(local, 1, there->data, n); }
static void bare_put(size_t n, long times) {
    struct iovec here = {local, n}, far = {there->data, n};
    while (bench_again(&times))
        if (process_vm_writev(peer_pid, &here, 1, &far, 1, 0) != (ssize_t)n) bench_fail("process_vm_writev failed");
}
static void bare_get(size_t n, long times) {
    struct iovec here = {local, n}, far = {there->data, n};
    while (bench_again(&times))
        if (process_vm_readv(peer_pid, &here, 1, &far, 1, 0) != (ssize_t)n) bench_fail("process_vm_readv failed");
}

/* Operations of 8 bytes, 16 apart. */
static void put_singly(size_t count, long times) {
    size_t i;
    while (times--)
        for (i = 0; i < count; i++) gasnet_put(1, there->data + 16 * i, local + 16 * i, 8);
}
static void put_nbi(size_t count, long times) {
    size_t i;
    while (times--) {
        for (i = 0; i < count; i++) gasnet_put_nbi(1, there->data + 16 * i, local + 16 * i, 8);
        gasnet_wait_syncnbi_puts();
    }
}
static void get_singly(size_t count, long times) {
    size_t i;
    while (times--)
        for (i = 0; i < count; i++) gasnet_get(local + 16 * i, 1, there->data + 16 * i, 8);
}
static void get_nbi(size_t count, long times) {
    size_t i;
    while (times--) {
        for (i = 0; i < count; i++) gasnet_get_nbi(local + 16 * i, 1, there->data + 16 * i, 8);
        gasnet_wait_syncnbi_gets();
    }
}
static void bare_vector(size_t count, long times) {
    while (times--)
        if (process_vm_writev(peer_pid, here_list, count, there_list, count, 0) != (ssize_t)(8 * count))
            bench_fail("process_vm_writev failed");
}

static const struct {
    const char *name;
    void (*run)(size_t, long);
    size_t size;
    enum order order;
} measurements[] = {
    {"attach_put", put, 8, SPIN},
    {"bare_attach_put", bare_put, 8, SPIN},
    {"attach_get", get, 8, SPIN},
    {"bare_attach_get", bare_get, 8, SPIN},
    {"asleep_put", put, 8, SLEEP},
    {"singly_put", put_singly, MANY, SPIN},
    {"train_put", put_nbi, MANY, SPIN},
    {"bare_attach_vector", bare_vector, MANY, SPIN},
    {"singly_get", get_singly, MANY, SPIN},
    {"train_get", get_nbi, MANY, SPIN},
};
#define MEASUREMENTS (sizeof measurements / sizeof *measurements)

static void order(enum order what) {
    long word = what, obeyed;
    gasnet_put(1, (void *)&there->order, &word, sizeof word);
    do {
        usleep(200);
        gasnet_get(&obeyed, 1, (void *)&there->obeyed, sizeof obeyed);
    } while (obeyed != word);
}

static void act(void) {
    static double block[MEASUREMENTS][BENCH_BLOCKS];
    static long times[MEASUREMENTS];
    const double wanted = bench_wanted_ns();
    size_t m;
    int b;
    for (m = 0; m < MEASUREMENTS; m++)
        if (bench_asked(measurements[m].name)) times[m] = bench_calibrate(measurements[m].run, measurements[m].size, wanted);
    for (b = 0; b < BENCH_BLOCKS; b++)
        for (m = 0; m < MEASUREMENTS; m++) {
            if (!times[m]) continue;
            order(measurements[m].order);
            block[m][b] = bench_repetition(measurements[m].run, measurements[m].size, times[m]);
        }
    for (m = 0; m < MEASUREMENTS; m++) {
        if (!times[m] || !bench_wants(measurements[m].name, "Time (us)")) continue;
        bench_row(measurements[m].size, bench_of_blocks(block[m], BENCH_BLOCKS) / 1000);
    }
    order(LEAVE);
}

int main(int argc, char **argv) {
    size_t i;
    if (!bench_options(argc, argv)) return 2;
    bench_init(&argc, &argv, NULL, 0, 2 * sizeof(struct there));
    if (bench_nodes != 2) bench_fail("usage: everything [options] [measurement ...], as a job of two processes");
    there = (struct there *)bench_seg[1].addr;
    local = (char *)bench_seg[0].addr + sizeof(struct there);
    if (bench_me == 1) {
        there->order = there->obeyed = SPIN;
        there->pid = (long)getpid();
    }
    bench_barrier();
    if (bench_me == 0) {
        long word;
        gasnet_get(&word, 1, (void *)&there->pid, sizeof word);
        peer_pid = (pid_t)word;
        for (i = 0; i < MANY; i++) {
            here_list[i].iov_base = local + 16 * i;
            there_list[i].iov_base = there->data + 16 * i;
            here_list[i].iov_len = there_list[i].iov_len = 8;
        }
        act();
    } else {
        long what;
        while ((what = there->order) != LEAVE) {
            if (there->obeyed != what) there->obeyed = what;
            if (what == SLEEP) usleep(5000);
        }
        there->obeyed = what;
    }
    bench_end();
    return 0;
}
