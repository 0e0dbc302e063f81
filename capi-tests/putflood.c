/* putflood [ROUNDS]: each rank puts to the segment of the rank opposite, many at once and of many
 * sizes, and gets them back. At the end the target compares its memory too. Without ROUNDS it
 * never ends. Run by cases of several hosts, which kill a rank meanwhile; and with `time` instead
 * of ROUNDS, to print how long puts take. */
#include <gasnet.h>
#include <gasnet_tools.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AREA = 1 << 20, PUTS = 64 };

static void meet(void) {
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) != GASNET_OK) gasnet_exit(5);
}

/* Fills AREA bytes with words that depend on their position, on the round and on the rank. */
static void fill(char *to, long round, gasnet_node_t rank) {
    uint64_t i;
    for (i = 0; i < AREA; i += sizeof i) {
        uint64_t word = ((uint64_t)(round * 64 + (long)rank) << 20 | i) * UINT64_C(0x9e3779b97f4a7c15);
        word ^= word >> 29;
        memcpy(to + i, &word, sizeof word);
    }
}

static int later(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints the 10th percentile and the median of blocking puts or gets, in microseconds. */
static void measure(gasnet_node_t peer, char *there, char *here) {
    static const size_t sizes[] = {8, 9, 64, 1024, 16384, 131072, AREA};
    static double took[2000];
    size_t s;
    int get;
    for (s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (get = 0; get < 2; get++) {
            int i, n = sizes[s] > 20000 ? 200 : 2000;
            for (i = 0; i < n; i++) {
                gasnett_tick_t start = gasnett_ticks_now();
                if (get) gasnet_get(here, peer, there, sizes[s]);
                else gasnet_put(peer, there, here, sizes[s]);
                took[i] = (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start) / 1000;
            }
            qsort(took, (size_t)n, sizeof *took, later);
            printf("%s %lu: %.1f %.1f\n", get ? "get" : "put", (unsigned long)sizes[s], took[n / 10], took[n / 2]);
            fflush(stdout);
        }
}

int main(int argc, char **argv) {
    gasnet_seginfo_t segments[64];
    gasnet_node_t me, ranks, peer;
    char *there, *here, *back;
    long round, rounds;
    size_t at = 0;
    int wrong = 0;
    if (gasnet_init(&argc, &argv) != GASNET_OK) return 1;
    if (gasnet_attach(NULL, 0, 3 * AREA, 0) != GASNET_OK) return 2;
    me = gasnet_mynode();
    ranks = gasnet_nodes();
    if (ranks > 64 || ranks % 2) return 3;
    if (gasnet_getSegmentInfo(segments, 64) != GASNET_OK) return 4;
    peer = (me + ranks / 2) % ranks;
    there = segments[peer].addr;
    here = (char *)segments[me].addr + AREA;
    back = malloc(AREA);
    meet();
    if (argc > 1 && strcmp(argv[1], "time") == 0) {
        if (me == 0) measure(peer, there, here);
        meet();
        gasnet_exit(0);
    }
    rounds = argc > 1 ? atol(argv[1]) : -1;
    for (round = 0; round != rounds; round++) {
        size_t n;
        int i;
        fill(here, round, me);
        for (i = 0, at = 0; i < PUTS && at < AREA; i++, at += n) {
            n = (size_t)1 << (i * 5 % 17);
            if (n > AREA - at) n = AREA - at;
            gasnet_put_nbi_bulk(peer, there + at, here + at, n);
        }
        gasnet_wait_syncnbi_puts();
        memset(back, 0, at);
        gasnet_get(back, peer, there, at);
        wrong += memcmp(back, here, at) != 0;
        if (round == 3 && me == 0) {
            printf("putflood: it flows\n");
            fflush(stdout);
        }
    }
    meet();
    /* The rank opposite has put here. */
    fill(here, rounds - 1, peer);
    wrong += memcmp(segments[me].addr, here, at) != 0;
    printf("rank %d: %d wrong\n", (int)me, wrong);
    gasnet_exit(wrong != 0);
    return 6;
}
