/* mpi_startup: an MPI job that starts, passes one barrier and ends, for comparison with
 * `startup`. The time is measured from outside.
 *
 * usage: mpi_startup */
#include <mpi.h>

int main(int argc, char **argv) {
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS || MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
    return MPI_Finalize();
}
