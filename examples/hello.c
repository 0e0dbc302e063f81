#include <gasnet.h>
#include <stdio.h>

int main(int argc, char **argv) {
  gasnet_init(&argc, &argv);
  gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0);
  printf("Hello from rank %d of %d\n", (int)gasnet_mynode(), (int)gasnet_nodes());
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
  gasnet_exit(0);
  return 0;
}
