/* firstputs FILE: all ranks wait until FILE exists; then each puts to all others, which are the
 * first messages between most of them. Run by a case of several hosts, which interrupts the
 * network meanwhile. */
#include <gasnet.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    gasnet_seginfo_t segments[64];
    gasnet_node_t me, ranks, peer;
    int wrong = 0;
    if (gasnet_init(&argc, &argv) != GASNET_OK) return 1;
    if (gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0) != GASNET_OK) return 2;
    me = gasnet_mynode();
    ranks = gasnet_nodes();
    if (argc != 2 || ranks > 64) return 3;
    if (gasnet_getSegmentInfo(segments, 64) != GASNET_OK) return 4;
    while (access(argv[1], F_OK) != 0) usleep(1000);
    for (peer = 0; peer < ranks; peer++)
        gasnet_put_val(peer, (int *)segments[peer].addr + me, 100 + me, sizeof(int));
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) != GASNET_OK) return 5;
    for (peer = 0; peer < ranks; peer++)
        wrong += ((volatile int *)segments[me].addr)[peer] != (int)(100 + peer);
    printf("rank %d: %d wrong\n", (int)me, wrong);
    gasnet_exit(wrong != 0);
    return 6;
}
