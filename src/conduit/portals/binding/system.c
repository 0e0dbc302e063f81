/* The functions of CNOS and PMI, and PtlSetRank, as weak references. Their C names here differ
 * from their names at link time, since a vendor's header may declare them with other types. */
#include "system.h"

#include <stddef.h>

#define WEAK(result, name, arguments) extern result gasneti_weak_##name arguments __asm__(#name) __attribute__((weak))

WEAK(int, cnos_get_rank, (void));
WEAK(int, cnos_get_size, (void));
WEAK(int, cnos_get_nidpid_map, (const gasneti_ptl_nidpid **));
/* void with some vendors: what it returns is not used. */
WEAK(void, cnos_barrier_init, (ptl_handle_ni_t));
WEAK(int, cnos_register_ptlid, (ptl_process_id_t));
WEAK(int, cnos_barrier, (void));
WEAK(void, cnos_pm_barrier, (int));

WEAK(int, PMI_Init, (int *));
WEAK(int, PMI_Initialized, (int *));
WEAK(int, PMI_Finalize, (void));
WEAK(int, PMI_Get_rank, (int *));
WEAK(int, PMI_Get_size, (int *));
WEAK(int, PMI_Barrier, (void));
WEAK(int, PMI_KVS_Get_my_name, (char *, int));
WEAK(int, PMI_KVS_Put, (const char *, const char *, const char *));
WEAK(int, PMI_KVS_Commit, (const char *));
WEAK(int, PMI_KVS_Get, (const char *, const char *, char *, int));
WEAK(int, PMI_CNOS_Get_nidpid_map, (const gasneti_ptl_nidpid **));

WEAK(int, PtlSetRank, (ptl_handle_ni_t, unsigned, unsigned));

int gasneti_ptl_has_set_rank(void) {
#ifdef GASNETI_HAS_INVALID_HANDLE
    return gasneti_weak_PtlSetRank != NULL;
#else
    return 0;
#endif
}

int gasneti_ptl_set_rank(void) {
#ifdef GASNETI_HAS_INVALID_HANDLE
    if (gasneti_weak_PtlSetRank)
        /* These values mean PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP. */
        return gasneti_weak_PtlSetRank(GASNETI_HAS_INVALID_HANDLE, (unsigned)-1, (unsigned)-1);
#endif
    return PTL_OK;
}

int gasneti_ptl_has_cnos(void) {
    return gasneti_weak_cnos_get_rank && gasneti_weak_cnos_get_size && gasneti_weak_cnos_get_nidpid_map &&
           gasneti_weak_cnos_barrier;
}

int gasneti_ptl_has_pmi(void) {
    return gasneti_weak_PMI_Init && gasneti_weak_PMI_Get_rank && gasneti_weak_PMI_Get_size && gasneti_weak_PMI_Barrier &&
           (gasneti_weak_PMI_CNOS_Get_nidpid_map ||
            (gasneti_weak_PMI_KVS_Get_my_name && gasneti_weak_PMI_KVS_Put && gasneti_weak_PMI_KVS_Commit &&
             gasneti_weak_PMI_KVS_Get));
}

int gasneti_ptl_cnos_rank(void) {
    return gasneti_weak_cnos_get_rank();
}

int gasneti_ptl_cnos_size(void) {
    return gasneti_weak_cnos_get_size();
}

int gasneti_ptl_cnos_barrier(void) {
    return gasneti_weak_cnos_barrier();
}

void gasneti_ptl_cnos_end(void) {
    if (gasneti_weak_cnos_pm_barrier)
        gasneti_weak_cnos_pm_barrier(1);
}

/* The end is ours only if the beginning was. */
static int begun;

int gasneti_ptl_pmi_begin(int *rank, int *size, const char **call) {
    int rc = 0, done = 0, spawned = 0;
    *call = "PMI_Initialized";
    if (gasneti_weak_PMI_Initialized)
        rc = gasneti_weak_PMI_Initialized(&done);
    if (rc == 0 && !done && !begun) {
        *call = "PMI_Init";
        rc = gasneti_weak_PMI_Init(&spawned);
        begun = rc == 0;
    }
    if (rc == 0) {
        *call = "PMI_Get_rank";
        rc = gasneti_weak_PMI_Get_rank(rank);
    }
    if (rc == 0) {
        *call = "PMI_Get_size";
        rc = gasneti_weak_PMI_Get_size(size);
    }
    return rc;
}

int gasneti_ptl_pmi_barrier(void) {
    return gasneti_weak_PMI_Barrier();
}

int gasneti_ptl_pmi_end(void) {
    int ours = begun;
    begun = 0;
    return ours && gasneti_weak_PMI_Finalize ? gasneti_weak_PMI_Finalize() : 0;
}

int gasneti_ptl_cnos_map(ptl_handle_ni_t ni, ptl_process_id_t id, const gasneti_ptl_nidpid **map) {
    *map = NULL;
    /* The order of these calls is fixed. */
    if (gasneti_weak_cnos_barrier_init)
        gasneti_weak_cnos_barrier_init(ni);
    if (gasneti_weak_cnos_register_ptlid)
        (void)gasneti_weak_cnos_register_ptlid(id);
    return gasneti_weak_cnos_get_nidpid_map(map);
}

int gasneti_ptl_has_pmi_map(void) {
    return gasneti_weak_PMI_CNOS_Get_nidpid_map != NULL;
}

int gasneti_ptl_pmi_map(const gasneti_ptl_nidpid **map) {
    *map = NULL;
    return gasneti_weak_PMI_CNOS_Get_nidpid_map(map);
}

static int space(char *name, int length, const char **call) {
    *call = "PMI_KVS_Get_my_name";
    return gasneti_weak_PMI_KVS_Get_my_name(name, length);
}

int gasneti_ptl_pmi_put(const char *key, const char *value, const char **call) {
    char name[512];
    int rc = space(name, sizeof name, call);
    if (rc == 0) {
        *call = "PMI_KVS_Put";
        rc = gasneti_weak_PMI_KVS_Put(name, key, value);
    }
    if (rc == 0) {
        *call = "PMI_KVS_Commit";
        rc = gasneti_weak_PMI_KVS_Commit(name);
    }
    return rc;
}

int gasneti_ptl_pmi_get(const char *key, char *value, int length, const char **call) {
    char name[512];
    int rc = space(name, sizeof name, call);
    if (rc == 0) {
        *call = "PMI_KVS_Get";
        rc = gasneti_weak_PMI_KVS_Get(name, key, value, length);
    }
    return rc;
}
