/* limits: what the machine itself can do, without any library: the round trip of a cache line between two CPUs, and memcpy
 * by size, within the memory of a process and into memory that it shares with another one (touched there first).
 *
 * usage: limits [options] [measurement ...]      options: see figures.h */
#include "figures.h"

#include <sys/mman.h>
#include <sys/wait.h>

#define LINE 64
#define TRIPS 20000

struct lines {
    volatile uint64_t ask;
    char pad0[LINE - sizeof(uint64_t)];
    volatile uint64_t answer;
    char pad1[LINE - sizeof(uint64_t)];
};

static struct lines *lines;
static char *shared, *own, *source, *target;
/* Called through a pointer, with a length that the compiler does not know, as a library would. */
static void *(*volatile copy_function)(void *, const void *, size_t) = memcpy;

/* There is one process only. */
static inline void bench_barrier(void) {}

static void copy(size_t n, long times) { while (times--) copy_function(target, source, n); }

static void table(const char *latency, const char *bandwidth, char *to) {
    size_t n;
    target = to;
    if (bench_wants(latency, "Latency (us)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, bench_alone(copy, n) / 1000);
    if (bench_wants(bandwidth, "Bandwidth (MB/s)"))
        for (n = bench_min; n <= bench_max; n *= 2) bench_row(n, (double)n * 1000 / bench_alone(copy, n));
}

/* The other process: touches the shared memory and answers. */
static void answer(void) {
    uint64_t i;
    if (bench_pinned) bench_pin(1);
    memset(shared, 3, bench_max);
    for (i = 1; i <= (uint64_t)TRIPS * BENCH_BLOCKS; i++) {
        while (lines->ask != i) {}
        __atomic_store_n(&lines->answer, i, __ATOMIC_RELEASE);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    double block[BENCH_BLOCKS];
    uint64_t i = 1;
    pid_t child;
    int b;

    bench_max = (size_t)8 << 20;
    if (!bench_options(argc, argv)) return 2;
    lines = (struct lines *)mmap(NULL, 4096 + bench_max, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    own = (char *)malloc(bench_max);
    source = (char *)malloc(bench_max);
    if (lines == MAP_FAILED || !own || !source) {
        perror("limits: memory");
        return 1;
    }
    shared = (char *)lines + 4096;
    memset(own, 1, bench_max);
    memset(source, 2, bench_max);
    child = fork();
    if (child < 0) {
        perror("limits: fork");
        return 1;
    }
    if (child == 0) answer();
    if (bench_pinned) bench_pin(0);
    for (b = 0; b < BENCH_BLOCKS; b++) {
        double began = 0;
        uint64_t end = i + TRIPS;
        for (; i < end; i++) {
            __atomic_store_n(&lines->ask, i, __ATOMIC_RELEASE);
            while (lines->answer != i) {}
            if (began == 0) began = bench_now(); /* the first answer also waits for the child to start */
        }
        block[b] = (bench_now() - began) / (TRIPS - 1);
    }
    waitpid(child, NULL, 0);
    qsort(block, BENCH_BLOCKS, sizeof *block, bench_by_value);
    bench_nodes = 2;
    if (bench_wants("line_trip", "Round trip (us)")) bench_row(0, block[BENCH_BLOCKS / 2] / 1000);
    bench_nodes = 1;
    table("memcpy_latency", "memcpy_bandwidth", own);
    table("memcpy_shared_latency", "memcpy_shared_bandwidth", shared);
    return 0;
}
