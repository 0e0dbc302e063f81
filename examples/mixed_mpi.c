/* MPI and GASNet in one program: the same ranks, numbered the same.
 *
 *   mpicc mixed_mpi.c -o mixed_mpi $(pkg-config --cflags --libs gasnet-portals-par)
 *   mpirun -n 4 ./mixed_mpi
 *
 * Start the program with the launcher of its MPI. MPI_Init comes first: that works with every
 * launcher. Active messages are not served inside MPI calls, nor MPI messages inside GASNet
 * calls. So a barrier stands between a GASNet phase and an MPI phase. */
#include <gasnet.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code, const char *call) {
  if (code == GASNET_OK) return;
  fprintf(stderr, "%s: %s\n", call, gasnet_ErrorDesc(code));
  gasnet_exit(1);
}

int main(int argc, char **argv) {
  int rank, size, sum, want;
  gasnet_seginfo_t *segments;
  gasnet_node_t next;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(gasnet_init(&argc, &argv), "gasnet_init");
  check(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0), "gasnet_attach");
  segments = (gasnet_seginfo_t *)malloc((size_t)size * sizeof(*segments));
  check(gasnet_getSegmentInfo(segments, size), "gasnet_getSegmentInfo");

  /* A GASNet phase: every rank puts its number into the segment of the next one. */
  next = (gasnet_node_t)((rank + 1) % size);
  gasnet_put(next, segments[next].addr, &rank, sizeof(rank));
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  check(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS), "gasnet_barrier_wait");

  /* An MPI phase: the sum of what has arrived. */
  MPI_Allreduce(segments[rank].addr, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  want = size * (size - 1) / 2;
  if (rank == 0) printf("%d ranks: the sum is %d, expected %d\n", size, sum, want);
  fflush(stdout);

  /* MPI ends first; gasnet_exit does not call MPI_Finalize. */
  MPI_Finalize();
  gasnet_exit(sum != want);
  return 0;
}
