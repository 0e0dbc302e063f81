/* A client as a user writes it: every rank puts its number into the segment of the next one.
 * Compiled as C and as C++ against every form of the installed library. With the argument hang, it
 * says so and computes forever after gasnet_attach. */
#include <gasnet.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  gasnet_seginfo_t *segments;
  gasnet_node_t me, nodes, got;
  volatile int rounds = 0;
  if (gasnet_init(&argc, &argv) != GASNET_OK || gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0) != GASNET_OK) return 1;
  if (argc > 1 && !strcmp(argv[1], "hang")) {
    puts("computes");
    fflush(stdout);
    for (;;) rounds ^= 1;
  }
  me = gasnet_mynode();
  nodes = gasnet_nodes();
  segments = (gasnet_seginfo_t *)malloc(nodes * sizeof(*segments));
  gasnet_getSegmentInfo(segments, (int)nodes);
  gasnet_put((me + 1) % nodes, segments[(me + 1) % nodes].addr, &me, sizeof(me));
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
  got = *(gasnet_node_t *)segments[me].addr;
  if (got != (me + nodes - 1) % nodes) gasnet_exit(2);
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
  if (me == 0) printf("PASS with %u processes, %s\n", (unsigned)nodes, GASNET_CONFIG_STRING);
  gasnet_exit(0);
  return 0;
}
