/* naps: rank 0 puts to the last rank while the others wait; for jobs of more ranks than CPUs.
 * This program's nanosleep stands for that of the C library and counts the sleeps of waiting
 * ranks. With `none` there must be none, with `some` at least one. */
#define _GNU_SOURCE 1
#include <gasnet.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PUTS 50
#define BYTES 65536
#define H_COUNT 201
#define H_DONE 202

static volatile int counting, done;
static volatile unsigned naps, answers, all_naps;

int nanosleep(const struct timespec *time, struct timespec *rest) {
    if (counting) __sync_add_and_fetch(&naps, 1);
    return (int)syscall(SYS_nanosleep, time, rest);
}

static void count_h(gasnet_token_t token, gasnet_handlerarg_t count) {
    (void)token;
    all_naps += (unsigned)count;
    answers++;
}
static void done_h(gasnet_token_t token) {
    (void)token;
    done = 1;
}

static double microseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{H_COUNT, (void (*)())count_h}, {H_DONE, (void (*)())done_h}};
    gasnet_seginfo_t *segments;
    gasnet_node_t i, last;
    int wants_none;
    if (gasnet_init(&argc, &argv) != GASNET_OK || gasnet_attach(table, 2, BYTES, 0) != GASNET_OK) return 1;
    wants_none = argc > 1 && strcmp(argv[1], "none") == 0;
    last = gasnet_nodes() - 1;
    segments = calloc(gasnet_nodes(), sizeof *segments);
    if (segments == NULL) return 1;
    gasnet_getSegmentInfo(segments, (int)gasnet_nodes());
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    counting = 1;
    if (gasnet_mynode() == 0) {
        const struct timespec while_others_wait = {0, 50000000};
        double times[PUTS];
        int put;
        syscall(SYS_nanosleep, &while_others_wait, NULL);
        for (put = 0; put < PUTS; put++) {
            double word = microseconds();
            gasnet_put(last, segments[last].addr, &word, sizeof word);
            times[put] = microseconds() - word;
        }
        qsort(times, PUTS, sizeof times[0], by_size);
        printf("naps: a put of 8 bytes took %.0f us, the median of %d\n", times[PUTS / 2], PUTS);
        for (i = 0; i <= last; i++) gasnet_AMRequestShort0(i, H_DONE);
    }
    GASNET_BLOCKUNTIL(done);
    counting = 0;
    gasnet_AMRequestShort1(0, H_COUNT, (gasnet_handlerarg_t)naps);
    if (gasnet_mynode() == 0) {
        GASNET_BLOCKUNTIL(answers == gasnet_nodes());
        if ((all_naps == 0) == wants_none)
            printf("naps: PASS\n");
        else
            printf("TEST FAILED: waiting ranks slept %u times\n", all_naps);
    }
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_exit(gasnet_mynode() == 0 && (all_naps == 0) != wants_none);
    return 0;
}
