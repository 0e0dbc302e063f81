/* testslice: puts and gets of random pieces of the partner's segment, compared with a model of
 * it. */
/* faults: flip_put flip_get skip_sync:portals */
/* args: 128K 5 40 */
/* nodes: any */
/* threads: both */
#include "check.h"

#define USAGE "[segment size 1024000] [rounds 10] [pieces per round 10] [seed]"

/* Whether the forms other than bulk accept these addresses: 2, 4 and 8 bytes are aligned. */
static int plain(const char *remote, const void *local, size_t n) {
    return (n != 2 && n != 4 && n != 8) || (((uintptr_t)remote | (uintptr_t)local) % n == 0);
}

int main(int argc, char **argv) {
    size_t bytes, rounds, pieces, half, i, r;
    uint64_t random;
    char *model, *back, *source;
    gasnet_node_t peer;

    check_init("testslice", &argc, &argv);
    if (argc > 5) check_usage(USAGE);
    bytes = check_arg(argc, argv, 1, 1024000);
    rounds = check_arg(argc, argv, 2, 10);
    pieces = check_arg(argc, argv, 3, 10);
    random = check_arg(argc, argv, 4, 4711);
    if (bytes < 64) check_usage(USAGE);
    if (gasnet_mynode() == 0) printf("testslice: seed %lu\n", (unsigned long)random);
    check_attach(NULL, 0, 2 * bytes);

    /* The first half of a segment belongs to the partner, the second half to this rank. */
    half = bytes;
    peer = check_peer();
    random = check_mix(random + gasnet_mynode());
    model = (char *)calloc(half, 1);
    back = (char *)calloc(half, 1);
    source = check_at(gasnet_mynode(), half);
    for (r = 0; r < rounds; r++) {
        check_alive("slices");
        check_fill(source, half, check_random(&random, SIZE_MAX));
        for (i = 0; i < pieces; i++) {
            size_t at = check_random(&random, half), from = check_random(&random, half), n;
            n = check_random(&random, half - (at > from ? at : from)) + 1;
            if (check_random(&random, 2)) n = n % 100 + 1 < n ? n % 100 + 1 : n;
            memcpy(model + at, source + from, n);
            switch (check_random(&random, 3)) {
                case 0: gasnet_put_bulk(peer, check_at(peer, at), source + from, n); break;
                case 1:
                    if (plain(check_at(peer, at), source + from, n)) gasnet_put(peer, check_at(peer, at), source + from, n);
                    else gasnet_put_bulk(peer, check_at(peer, at), source + from, n);
                    break;
                default: gasnet_wait_syncnb(gasnet_put_nb_bulk(peer, check_at(peer, at), source + from, n)); break;
            }
            at = check_random(&random, half);
            n = check_random(&random, half - at) + 1;
            memset(back, 0x77, half);
            switch (check_random(&random, 3)) {
                case 0: gasnet_get_bulk(back + at, peer, check_at(peer, at), n); break;
                case 1:
                    if (plain(check_at(peer, at), back + at, n)) gasnet_get(back + at, peer, check_at(peer, at), n);
                    else gasnet_get_bulk(back + at, peer, check_at(peer, at), n);
                    break;
                default:
                    gasnet_get_nbi_bulk(back + at, peer, check_at(peer, at), n);
                    gasnet_wait_syncnbi_gets();
                    break;
            }
            CHECK(!memcmp(back + at, model + at, n), "round %lu: a get of %lu bytes at %lu differs from the model",
                  (unsigned long)r, (unsigned long)n, (unsigned long)at);
            check_constant(back, at, 0x77, "memory before a get");
            check_constant(back + at + n, half - at - n, 0x77, "memory after a get");
        }
        memset(back, 0x77, half);
        gasnet_get_bulk(back, peer, check_at(peer, 0), half);
        CHECK(!memcmp(back, model, half), "round %lu: the partner's half differs from the model", (unsigned long)r);
    }
    check_barrier();
    check_done();
}
