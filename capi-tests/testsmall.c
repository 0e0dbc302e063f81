/* testsmall: latency and flood rate of small puts and gets, checked, in a table. */
/* faults: flip_put flip_get skip_sync:portals drop_op:portals */
/* args: 200 2048 */
/* nodes: any */
/* threads: both */
#include "pairs.h"

static gasnet_handle_t *handles;

static void put(size_t size, int n) {
    while (n--) gasnet_put(pairs.peer, pairs.remote, pairs.local, size);
}

static void get(size_t size, int n) {
    while (n--) gasnet_get(pairs.local, pairs.peer, pairs.remote, size);
}

static void put_nb(size_t size, int n) {
    while (n--) gasnet_wait_syncnb(gasnet_put_nb(pairs.peer, pairs.remote, pairs.local, size));
}

static void get_nb(size_t size, int n) {
    while (n--) gasnet_wait_syncnb(gasnet_get_nb(pairs.local, pairs.peer, pairs.remote, size));
}

static void put_nb_flood(size_t size, int n) {
    int i;
    for (i = 0; i < n; i++) handles[i] = gasnet_put_nb(pairs.peer, pairs.remote, pairs.local, size);
    gasnet_wait_syncnb_all(handles, (size_t)n);
}

static void get_nb_flood(size_t size, int n) {
    int i;
    for (i = 0; i < n; i++) handles[i] = gasnet_get_nb(pairs.local, pairs.peer, pairs.remote, size);
    gasnet_wait_syncnb_all(handles, (size_t)n);
}

static void put_nbi_flood(size_t size, int n) {
    while (n--) gasnet_put_nbi(pairs.peer, pairs.remote, pairs.local, size);
    gasnet_wait_syncnbi_puts();
}

static void get_nbi_flood(size_t size, int n) {
    while (n--) gasnet_get_nbi(pairs.local, pairs.peer, pairs.remote, size);
    gasnet_wait_syncnbi_gets();
}

int main(int argc, char **argv) {
    static const struct pairs_op ops[] = {
        {'A', PAIRS_PUT, "put", put},
        {'B', PAIRS_GET, "get", get},
        {'C', PAIRS_PUT, "put_nb", put_nb},
        {'D', PAIRS_GET, "get_nb", get_nb},
        {'E', PAIRS_PUT, "put_nb*", put_nb_flood},
        {'F', PAIRS_GET, "get_nb*", get_nb_flood},
        {'G', PAIRS_PUT, "put_nbi*", put_nbi_flood},
        {'H', PAIRS_GET, "get_nbi*", get_nbi_flood},
    };
    pairs_start("testsmall", argc, argv, 1000, 2048, 1);
    handles = (gasnet_handle_t *)calloc((size_t)pairs.iters + 1, sizeof *handles);
    pairs_table(ops, (int)(sizeof ops / sizeof *ops), 1, 2);
    if (gasnet_mynode() == 0) printf("(* = all in flight at once)\n");
    check_done();
}
