/* testalign: bulk puts and gets at every alignment of both sides, checked, and timed in a
 * table. */
/* faults: flip_put flip_get skip_sync:portals */
/* args: 10 4096 */
/* nodes: any */
/* threads: both */
#include "pairs.h"

#define ALIGNMENTS 16

static gasnet_handle_t *handles;

/* Slot `i` of an area, at alignment `i`. */
static char *slot(char *area, int i) { return area + (size_t)i * pairs.slot + i; }

/* Sets every slot of an area, with its guards, to the guard's value. */
static void blank(char *area) { memset(area - PAIRS_GUARD, 0x5a, ALIGNMENTS * pairs.slot); }

/* All pairs of alignments for one size, checked; the surrounding bytes must not change. */
static void check_puts(size_t size, int from) {
    uint64_t seed = check_mix(size * 64 + (unsigned)from);
    int to;
    check_alive("puts at all alignments");
    blank(pairs.mine);
    check_fill(pairs.local + from, size, seed);
    check_barrier();
    for (to = 0; pairs.sender && to < ALIGNMENTS; to++)
        gasnet_put_nbi_bulk(pairs.peer, slot(pairs.remote, to), pairs.local + from, size);
    gasnet_wait_syncnbi_puts();
    check_barrier();
    for (to = 0; pairs_target() && to < ALIGNMENTS; to++) {
        check_same(slot(pairs.mine, to), size, seed, "a put between alignments");
        pairs_guards(slot(pairs.mine, to), size, "memory around a put between alignments");
    }
    check_barrier();
}

static void check_gets(size_t size, int from) {
    uint64_t seed = check_mix(size * 64 + 32 + (unsigned)from);
    gasnet_handle_t pending[ALIGNMENTS];
    char *local = from % 2 ? pairs.local : pairs.other;
    int to;
    check_alive("gets at all alignments");
    blank(local);
    check_fill(pairs.mine + from, size, seed);
    check_barrier();
    for (to = 0; pairs.sender && to < ALIGNMENTS; to++)
        pending[to] = gasnet_get_nb_bulk(slot(local, to), pairs.peer, pairs.remote + from, size);
    for (to = 0; pairs.sender && to < ALIGNMENTS; to++) {
        gasnet_wait_syncnb(pending[to]);
        check_same(slot(local, to), size, seed, "a get between alignments");
        pairs_guards(slot(local, to), size, "memory around a get between alignments");
    }
    check_barrier();
}

/* Microseconds of one put or get to an alignment. */
static double timed(size_t size, int is_put, int to) {
    double began;
    int i;
    check_alive("timing");
    check_barrier();
    began = check_now();
    for (i = 0; pairs.sender && i < pairs.iters; i++)
        handles[i] = is_put ? gasnet_put_nb_bulk(pairs.peer, pairs.remote + to, pairs.local, size)
                            : gasnet_get_nb_bulk(pairs.local + to, pairs.peer, pairs.remote, size);
    if (pairs.sender) gasnet_wait_syncnb_all(handles, (size_t)pairs.iters);
    began = (check_now() - began) / pairs.iters / 1000;
    check_barrier();
    return began;
}

int main(int argc, char **argv) {
    size_t size;
    int i, last = 0;

    pairs_start("testalign", argc, argv, 100, 32 * 1024, ALIGNMENTS);
    handles = (gasnet_handle_t *)calloc((size_t)pairs.iters, sizeof *handles);
    for (size = 1; !last; size = size * 5 + 2) {
        last = size >= pairs.max;
        if (last) size = pairs.max;
        for (i = 0; i < ALIGNMENTS; i++) {
            if (pairs.puts) check_puts(size, i);
            if (pairs.gets) check_gets(size, i);
        }
    }
    size = pairs.max;
    if (gasnet_mynode() == 0)
        printf("testalign: us of a bulk operation of %lu bytes, all in flight at once, by alignment of the destination"
               "\n%9s %11s %11s\n", (unsigned long)size, "alignment", "put", "get");
    for (i = 0; i < ALIGNMENTS; i++) {
        double put = pairs.puts ? timed(size, 1, i) : 0, get = pairs.gets ? timed(size, 0, i) : 0;
        if (gasnet_mynode() == 0) printf("%9d %11.3f %11.3f\n", i, put, get);
    }
    check_done();
}
