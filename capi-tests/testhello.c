/* testhello: the smallest job; every rank says hello and puts its number to every other rank. */
/* faults: flip_put skip_barrier wrong_code */
/* args: */
/* nodes: any */
/* threads: both */
#include "check.h"

/* A late sender exposes a barrier that does not wait. */
#define LATE_US 100000

int main(int argc, char **argv) {
    size_t bytes = GASNET_PAGESIZE;
    gasnet_node_t i;
    unsigned char *arrived;

    check_init("testhello", &argc, &argv);
    if (argc == 2 && !strcmp(argv[1], "-m")) bytes = gasnet_getMaxGlobalSegmentSize();
    else if (argc <= 2) bytes = check_arg(argc, argv, 1, bytes);
    else check_usage("[-m | segment size]");
    if (bytes < gasnet_nodes()) bytes = gasnet_nodes();
    check_attach(NULL, 0, bytes);

    printf("Hello from rank %d of %d\n", (int)gasnet_mynode(), (int)gasnet_nodes());
    fflush(stdout);
    CHECK(check_seg[gasnet_mynode()].size == check_round(bytes), "segment of %lu bytes instead of %lu",
          (unsigned long)check_seg[gasnet_mynode()].size, (unsigned long)check_round(bytes));

    arrived = (unsigned char *)check_at(gasnet_mynode(), 0);
    CHECK(arrived[gasnet_mynode()] == 0, "the segment is not zero at start");
    CHECK(arrived[check_seg[gasnet_mynode()].size - 1] == 0, "the segment is not zero at its end");
    check_barrier();
    if (gasnet_mynode() == gasnet_nodes() - 1) usleep(LATE_US);
    for (i = 0; i < gasnet_nodes(); i++) gasnet_put_val(i, check_at(i, gasnet_mynode()), 0xa5, 1);
    check_barrier();
    for (i = 0; i < gasnet_nodes(); i++)
        CHECK(arrived[i] == 0xa5, "nothing came from rank %d before the barrier (0x%02x)", (int)i, arrived[i]);
    check_done();
}
