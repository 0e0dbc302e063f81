/* testlarge: latency and bandwidth of bulk puts and gets, checked, in a table. */
/* faults: flip_put flip_get skip_sync:portals */
/* args: -m 5 1M */
/* nodes: any */
/* threads: both */
#include "pairs.h"

static gasnet_handle_t *handles;

static void put_bulk(size_t size, int n) {
    while (n--) gasnet_put_bulk(pairs.peer, pairs.remote, pairs.local, size);
}

static void get_bulk(size_t size, int n) {
    while (n--) gasnet_get_bulk(pairs.local, pairs.peer, pairs.remote, size);
}

static void put_nb_flood(size_t size, int n) {
    int i;
    for (i = 0; i < n; i++) handles[i] = gasnet_put_nb_bulk(pairs.peer, pairs.remote, pairs.local, size);
    gasnet_wait_syncnb_all(handles, (size_t)n);
}

static void get_nb_flood(size_t size, int n) {
    int i;
    for (i = 0; i < n; i++) handles[i] = gasnet_get_nb_bulk(pairs.local, pairs.peer, pairs.remote, size);
    gasnet_wait_syncnb_all(handles, (size_t)n);
}

static void put_nbi_flood(size_t size, int n) {
    while (n--) gasnet_put_nbi_bulk(pairs.peer, pairs.remote, pairs.local, size);
    gasnet_wait_syncnbi_puts();
}

static void get_nbi_flood(size_t size, int n) {
    while (n--) gasnet_get_nbi_bulk(pairs.local, pairs.peer, pairs.remote, size);
    gasnet_wait_syncnbi_gets();
}

int main(int argc, char **argv) {
    static const struct pairs_op ops[] = {
        {'A', PAIRS_PUT, "put_bulk", put_bulk},
        {'B', PAIRS_GET, "get_bulk", get_bulk},
        {'C', PAIRS_PUT, "put_nb*", put_nb_flood},
        {'D', PAIRS_GET, "get_nb*", get_nb_flood},
        {'E', PAIRS_PUT, "put_nbi*", put_nbi_flood},
        {'F', PAIRS_GET, "get_nbi*", get_nbi_flood},
    };
    pairs_start("testlarge", argc, argv, 10, 2 * 1024 * 1024, 1);
    handles = (gasnet_handle_t *)calloc((size_t)pairs.iters + 1, sizeof *handles);
    pairs_table(ops, (int)(sizeof ops / sizeof *ops), 16, 4);
    if (gasnet_mynode() == 0) printf("(* = bulk, all in flight at once)\n");
    check_done();
}
