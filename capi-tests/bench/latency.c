/* Speed figures of the library and the hardware's own limits, measured in the same run. They
 * are a blocking put of 8 bytes, an AM Short round trip and a memcpy of 8 bytes. The last is
 * the round trip of a cache line between the two cores. Two ranks, each pinned to its own
 * CPU; `ci/bench.sh` runs it on both paths.
 *
 * usage: latency [rounds]
 *
 * Each round times a block of every operation in turn, so that a disturbance affects all
 * alike. Ratios are taken from the medians over the rounds, and from the minima, which a busy
 * machine disturbs less. The limits are measured without the library, on a memory file of this
 * program that rank 1 opens through rank 0. */
#include <gasnet.h>

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LINE 64
#define BLOCK_COPY 20000
#define BLOCK_LINE 2000
#define BLOCK_PUT 5000
#define BLOCK_AM 1000
#define H_PING 201
#define H_PONG 202
#define H_FILE 203

enum { COPY, TRIP, PUT, AM, KINDS };

/* Two cache lines of the shared page: a number that rank 0 writes, and the answer of rank 1. */
struct shared {
    volatile uint64_t ask;
    char pad0[LINE - sizeof(uint64_t)];
    volatile uint64_t answer;
    char pad1[LINE - sizeof(uint64_t)];
    char copy[4096 - 2 * LINE];
};

static volatile int pongs;
static volatile int file_pid = -1, file_fd = -1;
static struct shared *shared;
/* Called through a pointer, with a length unknown to the compiler, as a library would. */
static void *(*volatile copy_function)(void *, const void *, size_t) = memcpy;

static void ping_h(gasnet_token_t token) { gasnet_AMReplyShort0(token, H_PONG); }
static void pong_h(gasnet_token_t token) {
    (void)token;
    pongs = pongs + 1;
}
static void file_h(gasnet_token_t token, gasnet_handlerarg_t pid, gasnet_handlerarg_t fd) {
    (void)token;
    file_fd = fd;
    file_pid = pid;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void barrier(void) {
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
}

static void fail(const char *what) {
    perror(what);
    gasnet_exit(1);
}

/* Pins this process to the rank-th of the CPUs that it may use; returns their number. */
static int pin(int rank) {
    cpu_set_t all, one;
    int cpu, seen = 0, count;
    if (sched_getaffinity(0, sizeof all, &all)) fail("sched_getaffinity");
    count = CPU_COUNT(&all);
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all) || seen++ != rank % count) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one)) fail("sched_setaffinity");
    }
    return count;
}

/* One page that both processes map. */
static void share(void) {
    int fd;
    char path[64];
    if (gasnet_mynode() == 0) {
        fd = memfd_create("latency", 0);
        if (fd < 0 || ftruncate(fd, sizeof *shared)) fail("memfd_create");
        gasnet_AMRequestShort2(1, H_FILE, (gasnet_handlerarg_t)getpid(), fd);
    } else {
        GASNET_BLOCKUNTIL(file_pid >= 0);
        snprintf(path, sizeof path, "/proc/%d/fd/%d", file_pid, file_fd);
        fd = open(path, O_RDWR);
        if (fd < 0) fail(path);
    }
    shared = (struct shared *)mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) fail("mmap");
    barrier();
}

static double time_copy(void) {
    uint64_t value = 0;
    volatile size_t n = 8;
    double began = now();
    int i;
    for (i = 0; i < BLOCK_COPY; i++) {
        value++;
        copy_function(shared->copy, &value, n);
    }
    return (now() - began) / BLOCK_COPY;
}

/* Rank 0 asks, rank 1 answers: two transfers of a cache line. */
static double time_line(int first) {
    double began = now();
    uint64_t i, base = (uint64_t)first * BLOCK_LINE;
    for (i = base + 1; i <= base + BLOCK_LINE; i++) {
        if (gasnet_mynode() == 0) {
            __atomic_store_n(&shared->ask, i, __ATOMIC_RELEASE);
            while (__atomic_load_n(&shared->answer, __ATOMIC_ACQUIRE) != i) {}
        } else {
            while (__atomic_load_n(&shared->ask, __ATOMIC_ACQUIRE) != i) {}
            __atomic_store_n(&shared->answer, i, __ATOMIC_RELEASE);
        }
    }
    return (now() - began) / BLOCK_LINE;
}

static double time_put(void *remote) {
    uint64_t value = 0;
    double began = now();
    int i;
    for (i = 0; i < BLOCK_PUT; i++) {
        value++;
        gasnet_put(1, remote, &value, 8);
    }
    return (now() - began) / BLOCK_PUT;
}

static double time_am(void) {
    double began;
    int i;
    pongs = 0;
    began = now();
    for (i = 0; i < BLOCK_AM; i++) {
        gasnet_AMRequestShort0(1, H_PING);
        GASNET_BLOCKUNTIL(pongs == i + 1);
    }
    return (now() - began) / BLOCK_AM;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t handlers[] = {{H_PING, ping_h}, {H_PONG, pong_h}, {H_FILE, file_h}};
    static const char *const names[KINDS] = {"memcpy of 8 B", "cache-line round trip", "blocking put of 8 B",
                                             "AM Short round trip"};
    gasnet_seginfo_t seg[2];
    gasnet_nodeinfo_t info[2];
    double *times[KINDS], median[KINDS];
    int rounds, r, k, cpus, mapped;

    if (gasnet_init(&argc, &argv) || gasnet_attach(handlers, 3, GASNET_PAGESIZE * 16, 0)) return 1;
    rounds = argc > 1 ? atoi(argv[1]) : 100;
    if (gasnet_nodes() != 2 || rounds < 1) {
        if (gasnet_mynode() == 0) fprintf(stderr, "usage: latency [rounds], as a job of two processes\n");
        gasnet_exit(1);
    }
    cpus = pin((int)gasnet_mynode());
    gasnet_getSegmentInfo(seg, 2);
    gasnet_getNodeInfo(info, 2);
    mapped = info[0].supernode == info[1].supernode;
    for (k = 0; k < KINDS; k++) times[k] = (double *)calloc((size_t)rounds, sizeof **times);
    share();

    for (r = 0; r < rounds; r++) {
        /* While rank 0 measures alone, the other rank waits in the barrier and serves the
         * network. */
        barrier();
        times[TRIP][r] = time_line(r);
        barrier();
        if (gasnet_mynode() == 0) {
            times[COPY][r] = time_copy();
            times[PUT][r] = time_put(seg[1].addr);
            times[AM][r] = time_am();
        }
    }
    barrier();
    if (gasnet_mynode() == 0) {
        if (cpus < 2) printf("only one CPU may be used: the times of two processes mean little\n");
        printf("%s, %d rounds\n", mapped ? "segments mapped into each other" : "everything through Portals", rounds);
        printf("%-24s %10s %10s %10s\n", "ns per operation", "least", "median", "90 %");
        for (k = 0; k < KINDS; k++) {
            qsort(times[k], (size_t)rounds, sizeof **times, by_value);
            median[k] = times[k][rounds / 2];
            printf("%-24s %10.1f %10.1f %10.1f\n", names[k], times[k][0], median[k], times[k][rounds * 9 / 10]);
        }
        if (mapped)
            printf("put / memcpy: %.2f of medians, %.2f of least times (aim: under 3)\n", median[PUT] / median[COPY],
                   times[PUT][0] / times[COPY][0]);
        else
            printf("put: %.3f us median, %.3f us least (aim: under 0.3)\n", median[PUT] / 1000, times[PUT][0] / 1000);
        printf("AM Short / cache-line round trip: %.2f of medians, %.2f of least times (aim: under 5)\n\n",
               median[AM] / median[TRIP], times[AM][0] / times[TRIP][0]);
        fflush(stdout);
    }
    barrier();
    gasnet_exit(0);
}
