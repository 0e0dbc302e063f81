/* testmemset: remote memset in its three forms, checked with the surrounding bytes, and timed
 * in a table. */
/* faults: skip_memset */
/* args: 20 256K */
/* nodes: any */
/* threads: both */
#include "pairs.h"

static gasnet_handle_t *handles;

static void set(size_t size, int n) {
    while (n--) gasnet_memset(pairs.peer, pairs.remote, pairs_value(size), size);
}

/* Only the low byte of the value counts. */
static void set_nb(size_t size, int n) {
    while (n--) gasnet_wait_syncnb(gasnet_memset_nb(pairs.peer, pairs.remote, pairs_value(size) | 0x1234500, size));
}

static void set_nb_flood(size_t size, int n) {
    int i;
    for (i = 0; i < n; i++) handles[i] = gasnet_memset_nb(pairs.peer, pairs.remote, pairs_value(size), size);
    gasnet_wait_syncnb_all(handles, (size_t)n);
}

static void set_nbi_flood(size_t size, int n) {
    while (n--) gasnet_memset_nbi(pairs.peer, pairs.remote, pairs_value(size), size);
    gasnet_wait_syncnbi_puts();
}

int main(int argc, char **argv) {
    static const struct pairs_op ops[] = {
        {'A', PAIRS_SET, "memset", set},
        {'B', PAIRS_SET, "memset_nb", set_nb},
        {'C', PAIRS_SET, "memset_nb*", set_nb_flood},
        {'D', PAIRS_SET, "memset_nbi*", set_nbi_flood},
    };
    size_t i;
    pairs_start("testmemset", argc, argv, 20, 1024 * 1024, 1);
    handles = (gasnet_handle_t *)calloc((size_t)pairs.iters + 1, sizeof *handles);
    for (i = 0; i < sizeof ops / sizeof *ops; i++) pairs_measure(&ops[i], pairs.max < 777 ? pairs.max : 777);
    pairs_table(ops, (int)(sizeof ops / sizeof *ops), 1, 4);
    if (gasnet_mynode() == 0) printf("(* = all in flight at once)\n");
    check_done();
}
