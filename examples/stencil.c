/* Heat in a rod: a stencil of three points on cells that are spread over the ranks.
 *
 *   stencil [cells per rank] [steps]
 *
 * The segment of a rank holds two rows of cells with a ghost cell at each end. In every step a
 * rank computes its new cells and puts its outermost ones into the ghost cells of its
 * neighbours. Then all ranks meet in a barrier. The two rows take turns, so that no rank
 * writes what a neighbour still reads.
 *
 * Heat is conserved: its sum, which rank 0 computes with gets, must be the same at the end as at
 * the start. */
#include <gasnet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code, const char *call) {
  if (code == GASNET_OK) return;
  fprintf(stderr, "%s: %s\n", call, gasnet_ErrorDesc(code));
  gasnet_exit(1);
}

static void barrier(void) {
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  check(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS), "gasnet_barrier_wait");
}

int main(int argc, char **argv) {
  int me, ranks, cells, steps, step, i;
  size_t row, bytes;
  gasnet_seginfo_t *segments;

  check(gasnet_init(&argc, &argv), "gasnet_init");
  me = (int)gasnet_mynode();
  ranks = (int)gasnet_nodes();
  cells = argc > 1 ? atoi(argv[1]) : 100;
  steps = argc > 2 ? atoi(argv[2]) : 5000;

  /* The segment: two rows of cells + 2, rounded up to whole pages. */
  row = (size_t)cells + 2;
  bytes = 2 * row * sizeof(double);
  bytes = (bytes + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
  check(gasnet_attach(NULL, 0, bytes, 0), "gasnet_attach");
  segments = (gasnet_seginfo_t *)malloc((size_t)ranks * sizeof(*segments));
  check(gasnet_getSegmentInfo(segments, ranks), "gasnet_getSegmentInfo");

  /* All heat starts in the first cell of the rod. */
  for (i = 0; i < (int)(2 * row); i++) ((double *)segments[me].addr)[i] = 0.0;
  if (me == 0) ((double *)segments[me].addr)[1] = 1000.0;
  barrier();

  for (step = 0; step < steps; step++) {
    size_t from = step % 2 ? row : 0, to = step % 2 ? 0 : row; /* first cell of each row */
    double *old = (double *)segments[me].addr + from;
    double *now = (double *)segments[me].addr + to;
    /* The ends of the rod are closed: the ghost cell there mirrors its neighbour. */
    if (me == 0) old[0] = old[1];
    if (me == ranks - 1) old[cells + 1] = old[cells];
    for (i = 1; i <= cells; i++) now[i] = old[i] + 0.25 * (old[i - 1] - 2.0 * old[i] + old[i + 1]);
    /* Both puts are under way at once; the sync waits for both. */
    if (me > 0) {
      double *ghost = (double *)segments[me - 1].addr + to + cells + 1;
      gasnet_put_nbi((gasnet_node_t)(me - 1), ghost, &now[1], sizeof(double));
    }
    if (me < ranks - 1) {
      double *ghost = (double *)segments[me + 1].addr + to;
      gasnet_put_nbi((gasnet_node_t)(me + 1), ghost, &now[cells], sizeof(double));
    }
    gasnet_wait_syncnbi_puts();
    barrier();
  }

  if (me == 0) {
    double sum = 0.0, *copy = (double *)malloc(row * sizeof(double));
    int rank;
    for (rank = 0; rank < ranks; rank++) {
      double *cell = (double *)segments[rank].addr + (steps % 2 ? row : 0);
      gasnet_get(copy, (gasnet_node_t)rank, cell, row * sizeof(double));
      for (i = 1; i <= cells; i++) sum += copy[i];
    }
    printf("%d ranks of %d cells, %d steps: heat %.6f, expected %.6f\n", ranks, cells, steps, sum,
           1000.0);
    if (fabs(sum - 1000.0) > 1e-6) gasnet_exit(1);
  }
  barrier();
  gasnet_exit(0);
  return 0;
}
