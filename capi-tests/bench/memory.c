/* memory: the memory of a rank, in KiB, after a hundred barriers. It is the proportional set size:
 * of a page that several processes have, each counts its part.
 *
 * usage: memory [options] [measurement ...]      options: see bench.h
 * The column Size is the number of ranks. */
#include "bench.h"

static double proportional_kib(void) {
    double sum = 0, kib;
    char line[256];
    FILE *maps = fopen("/proc/self/smaps", "r");
    if (!maps) {
        perror("/proc/self/smaps");
        gasnet_exit(2);
    }
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "Pss: %lf", &kib) == 1) sum += kib;
    fclose(maps);
    return sum;
}

int main(int argc, char **argv) {
    int i;
    if (!bench_options(argc, argv)) return 2;
    bench_init(&argc, &argv, NULL, 0, 4096);
    for (i = 0; i < 100; i++) bench_barrier();
    if (bench_wants("memory", "Memory (KiB)")) bench_row((size_t)bench_nodes, proportional_kib());
    bench_end();
    return 0;
}
