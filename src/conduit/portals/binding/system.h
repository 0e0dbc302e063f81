/* The functions that a program may be linked with beyond those of the specification: CNOS of
 * XT-class machines, PMI as a library, PtlSetRank. All references are weak: a program without the
 * functions links and runs. (dlsym finds nothing in a static program.) A weak reference takes
 * nothing out of an archive: such a program is linked with -Wl,-u,cnos_get_rank and the like.
 *
 * bindgen reads this file, system.c implements it. */
#ifndef GASNETI_PORTALS_SYSTEM_H
#define GASNETI_PORTALS_SYSTEM_H

#include "gasneti_portals_config.h"

/* The address of a process, as both systems store it. */
typedef struct {
    ptl_nid_t nid;
    ptl_pid_t pid;
} gasneti_ptl_nidpid;

/* Whether the program has what a job needs of CNOS, and of PMI. */
int gasneti_ptl_has_cnos(void);
int gasneti_ptl_has_pmi(void);

int gasneti_ptl_cnos_rank(void);
int gasneti_ptl_cnos_size(void);
int gasneti_ptl_cnos_barrier(void);
/* Tells the launcher that this process ends with success. */
void gasneti_ptl_cnos_end(void);

/* PMI is initialised if it is not. Returns 0 or PMI's error; *call names the function. */
int gasneti_ptl_pmi_begin(int *rank, int *size, const char **call);
int gasneti_ptl_pmi_barrier(void);
int gasneti_ptl_pmi_end(void);

/* The map of addresses that CNOS has, after the calls that must precede it and the barrier of
 * CNOS. `id` is the address of this process. Returns the number of elements of *map. */
int gasneti_ptl_cnos_map(ptl_handle_ni_t ni, ptl_process_id_t id, const gasneti_ptl_nidpid **map);
/* Whether the program's PMI has a map of addresses. */
int gasneti_ptl_has_pmi_map(void);
/* That map, with an element for each rank, once PMI is initialised. Returns 0 or PMI's error. */
int gasneti_ptl_pmi_map(const gasneti_ptl_nidpid **map);

/* A text under a key of this job's space, and all texts put before the last PMI barrier. */
int gasneti_ptl_pmi_put(const char *key, const char *value, const char **call);
int gasneti_ptl_pmi_get(const char *key, char *value, int length, const char **call);

/* Whether the program has PtlSetRank. */
int gasneti_ptl_has_set_rank(void);
/* Makes the library take the rank of this process from the environment, before PtlNIInit. PTL_OK
 * if the program has no PtlSetRank. */
int gasneti_ptl_set_rank(void);

#endif
