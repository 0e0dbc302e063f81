/* catamount/cnos_mpi_os.h: the name of cnos_mpi_os.h on Catamount. */
#include "../cnos_mpi_os.h"
