/* limits: what the machine itself can do, without any library: the round trip of a cache line between two CPUs, and memcpy
 * by size, within the memory of a process and into memory that it shares with another one (touched there first).
 *
 * usage: limits [-t ms] [-s min:max]; lines as of the programs that use bench.h */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* CPU sets */
#endif
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 7
#define LINE 64

struct lines {
    volatile uint64_t ask;
    char pad0[LINE - sizeof(uint64_t)];
    volatile uint64_t answer;
    char pad1[LINE - sizeof(uint64_t)];
};

static double ms = 10;
/* Called through a pointer, with a length that the compiler does not know, as a library would. */
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pin(int rank) {
    cpu_set_t all, one;
    int cpu, seen = 0, count;
    if (sched_getaffinity(0, sizeof all, &all)) return;
    count = CPU_COUNT(&all);
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all) || seen++ != rank % count) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double copies(char *to, const char *from, size_t n) {
    double block[BLOCKS], began, spent = 0;
    long times = 1, i;
    int b;
    for (;; times *= 4) {
        began = now();
        for (i = 0; i < times; i++) copy(to, from, n);
        spent = now() - began;
        if (spent > ms * 1e6 / BLOCKS / 4) break;
    }
    times = (long)((double)times * ms * 1e6 / BLOCKS / spent) + 1;
    for (b = 0; b < BLOCKS; b++) {
        began = now();
        for (i = 0; i < times; i++) copy(to, from, n);
        block[b] = (now() - began) / (double)times;
    }
    qsort(block, BLOCKS, sizeof *block, by_value);
    return block[BLOCKS / 2];
}

static void table(const char *name, char *to, const char *from, size_t min, size_t max) {
    size_t n;
    printf("# %s_latency, 1 processes\n# %-14s %16s\n", name, "Size", "Latency (us)");
    for (n = min; n <= max; n *= 2) {
        printf("%-16lu %16.5g\n", (unsigned long)n, copies(to, from, n) / 1000);
        fflush(stdout);
    }
    printf("# %s_bandwidth, 1 processes\n# %-14s %16s\n", name, "Size", "Bandwidth (MB/s)");
    for (n = min; n <= max; n *= 2) {
        printf("%-16lu %16.5g\n", (unsigned long)n, (double)n * 1000 / copies(to, from, n));
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    unsigned long min = 8, max = (unsigned long)8 << 20;
    struct lines *lines;
    char *shared, *own, *source;
    double block[BLOCKS];
    uint64_t i, count = 20000;
    pid_t child;
    int a, b;

    for (a = 1; a < argc; a++) {
        if (!strcmp(argv[a], "-t") && a + 1 < argc && atof(argv[a + 1]) > 0) ms = atof(argv[++a]);
        else if (!strcmp(argv[a], "-s") && a + 1 < argc && sscanf(argv[a + 1], "%lu:%lu", &min, &max) == 2 && min <= max) a++;
        else {
            fprintf(stderr, "usage: limits [-t ms] [-s min:max]\n");
            return 2;
        }
    }
    lines = (struct lines *)mmap(NULL, 4096 + max, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    own = (char *)malloc(max);
    source = (char *)malloc(max);
    if (lines == MAP_FAILED || !own || !source) {
        perror("limits: memory");
        return 1;
    }
    shared = (char *)lines + 4096;
    memset(own, 1, max);
    memset(source, 2, max);
    fflush(stdout);
    child = fork();
    if (child < 0) {
        perror("limits: fork");
        return 1;
    }
    if (child == 0) {
        pin(1);
        memset(shared, 3, max);
        for (i = 1; i <= count * BLOCKS; i++) {
            while (lines->ask != i) {}
            __atomic_store_n(&lines->answer, i, __ATOMIC_RELEASE);
        }
        _exit(0);
    }
    pin(0);
    for (i = 1, b = 0; b < BLOCKS; b++) {
        double began = 0;
        uint64_t end = i + count;
        for (; i < end; i++) {
            __atomic_store_n(&lines->ask, i, __ATOMIC_RELEASE);
            while (lines->answer != i) {}
            if (began == 0) began = now(); /* the first answer also waits for the child to start */
        }
        block[b] = (now() - began) / (double)(count - 1);
    }
    waitpid(child, NULL, 0);
    qsort(block, BLOCKS, sizeof *block, by_value);
    printf("# line_trip, 2 processes\n# %-14s %16s\n%-16d %16.5g\n", "Size", "Round trip (us)", 0, block[BLOCKS / 2] / 1000);
    table("memcpy", own, source, min, max);
    table("memcpy_shared", shared, source, min, max);
    return 0;
}
