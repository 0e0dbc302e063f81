/* What a program of an XT-class machine asks its system: rank, size, address map, barrier. These
 * are the functions of that name on a Cray XT, for jobs of ptlrun over libportals3 (libcnos).
 *
 * The order of calls is that of Compute Node Linux: PtlNIInit, cnos_barrier_init,
 * cnos_register_ptlid, cnos_get_nidpid_map, and only then cnos_barrier. Rank and size are known
 * before. Functions return 0 and -1 for a failure where nothing else is said. */
#ifndef CNOS_MPI_OS_H
#define CNOS_MPI_OS_H

#include <portals/portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The address of a process. */
typedef struct {
    ptl_nid_t nid;
    ptl_pid_t pid;
} cnos_nidpid_map_t;

/* The rank of this process; 0 if ptlrun did not start it. */
int cnos_get_rank(void);
/* The processes of the job; 1 if ptlrun did not start it. */
int cnos_get_size(void);
/* Prepares the barrier of the processes that have this interface. */
int cnos_barrier_init(ptl_handle_ni_t ni_handle);
/* Gives the system the address of this process, which must be that of PtlGetId. */
int cnos_register_ptlid(ptl_process_id_t id);
/* Stores the addresses of all processes, by rank, in memory that the library keeps. Returns the
 * number of processes. */
int cnos_get_nidpid_map(cnos_nidpid_map_t **map);
/* Waits until all processes of the job have called it. Takes and sends messages meanwhile, while
 * the interface of cnos_barrier_init is open. -1: one of them has exited. */
int cnos_barrier(void);

#ifdef __cplusplus
}
#endif

#endif
