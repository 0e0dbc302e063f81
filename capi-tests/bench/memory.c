/* memory: the memory of a job for each of its ranks, in KiB, after a hundred barriers. It is the
 * sum of the proportional set sizes of all processes of the job, also of one that is no rank,
 * divided by the ranks. Of a page that several processes have, each counts its part. The
 * processes of the job are those of the session of rank 0 that run this program.
 *
 * usage: memory [options] [measurement ...]      options: see bench.h
 * The column Size is the number of ranks. */
#include "bench.h"

#include <dirent.h>

static void fail(const char *what) {
    perror(what);
    gasnet_exit(2);
}

/* The program that a process runs; empty if it has exited or belongs to another user. */
static void program_of(long pid, char *name, size_t room) {
    char path[64];
    ssize_t n;
    snprintf(path, sizeof path, "/proc/%ld/exe", pid);
    n = readlink(path, name, room - 1);
    name[n > 0 ? n : 0] = 0;
}

static double proportional_kib(long pid) {
    double sum = 0, kib;
    char line[256];
    FILE *maps;
    snprintf(line, sizeof line, "/proc/%ld/smaps", pid);
    maps = fopen(line, "r");
    if (!maps) fail(line);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "Pss: %lf", &kib) == 1) sum += kib;
    fclose(maps);
    return sum;
}

/* The sum over the processes of the job. */
static double job_kib(void) {
    char mine[4096], name[4096];
    const long me = (long)getpid();
    double sum = 0;
    int found = 0;
    struct dirent *entry;
    DIR *all = opendir("/proc");
    if (!all) fail("/proc");
    program_of(me, mine, sizeof mine);
    while ((entry = readdir(all)) != NULL) {
        const long pid = strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || getsid((pid_t)pid) != getsid(0)) continue;
        program_of(pid, name, sizeof name);
        if (!*mine || strcmp(name, mine)) continue;
        sum += proportional_kib(pid);
        found++;
    }
    closedir(all);
    if (found < bench_nodes) bench_fail("memory: not all ranks are in the session of rank 0");
    return sum;
}

int main(int argc, char **argv) {
    const struct timespec nap = {0, 10000000};
    volatile long *measured;
    const long one = 1;
    int i;
    if (!bench_options(argc, argv)) return 2;
    bench_init(&argc, &argv, NULL, 0, 4096);
    measured = (volatile long *)bench_seg[bench_me].addr;
    *measured = 0;
    for (i = 0; i < 100; i++) bench_barrier();
    if (bench_wants("memory", "Memory (KiB)")) {
        if (bench_me == 0) {
            bench_row((size_t)bench_nodes, job_kib() / bench_nodes);
            for (i = 1; i < bench_nodes; i++) gasnet_put((gasnet_node_t)i, bench_seg[i].addr, (void *)&one, sizeof one);
        }
        /* The CPUs belong to rank 0 meanwhile. */
        while (bench_me != 0 && !*measured) {
            nanosleep(&nap, NULL);
            gasnet_AMPoll();
        }
    }
    bench_end();
    return 0;
}
