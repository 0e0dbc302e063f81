/* The functions with which XT-class systems report the address map, for tests. Preloaded; SYSTEM
 * names those that lie or fail. Compiled against the header of a libportals. NIDS and PIDS are the
 * addresses of 2 to 8 processes in the order of ranks; CNOS, PMI or both are defined. They start
 * that many processes of ptlrun: they report rank and size, and have a barrier. The barrier of
 * either system needs that system's own calls before it. */
#include <portals/portals3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

typedef struct {
    ptl_nid_t nid;
    ptl_pid_t pid;
} element;

static const ptl_nid_t nids[] = {NIDS};
static const ptl_pid_t pids[] = {PIDS};

enum { RANKS = sizeof pids / sizeof *pids };

typedef char as_many_nids_as_pids[RANKS >= 2 && RANKS <= 8 && sizeof nids / sizeof *nids == RANKS ? 1 : -1];

/* In the wrong map each process has the pid of the next. */
static element right[RANKS], wrong[RANKS];

static int fault(const char *name) {
    const char *system = getenv("SYSTEM");
    return system != NULL && strcmp(system, name) == 0;
}

__attribute__((constructor)) static void fill(void) {
    int i;
    for (i = 0; i < RANKS; i++) {
        right[i].nid = nids[i];
        right[i].pid = pids[i];
        wrong[i].nid = nids[i];
        wrong[i].pid = pids[(i + 1) % RANKS];
    }
}

static int rank_of_ptlrun(void) {
    const char *rank = getenv("PTL_MY_RID");
    return rank != NULL ? atoi(rank) : fault("no_rank") ? -1 : 0;
}

static int barrier_of_ptlrun(void) {
    const char *text = getenv("PTL_BARRIER_FD");
    char byte = 0;
    if (text == NULL || fault("barrier_fails"))
        return -1;
    return send(atoi(text), &byte, 1, MSG_NOSIGNAL) != 1 || recv(atoi(text), &byte, 1, 0) != 1;
}

#ifdef CNOS
/* The order of calls on Compute Node Linux. */
static enum { NOTHING, INITIALISED, REGISTERED } state;

void cnos_barrier_init(ptl_handle_ni_t ni);
void cnos_barrier_init(ptl_handle_ni_t ni) {
    ptl_process_id_t id;
    if (state == NOTHING && PtlGetId(ni, &id) == PTL_OK)
        state = INITIALISED;
}

int cnos_register_ptlid(ptl_process_id_t id);
int cnos_register_ptlid(ptl_process_id_t id) {
    int i;
    for (i = 0; i < RANKS; i++)
        if (state == INITIALISED && id.nid == right[i].nid && id.pid == right[i].pid)
            state = REGISTERED;
    return 0;
}

int cnos_get_nidpid_map(element **map);
int cnos_get_nidpid_map(element **map) {
    *map = fault("cnos_lies") ? wrong : right;
    return state != REGISTERED || fault("cnos_fails") ? -1 : fault("cnos_counts") ? RANKS + 1 : RANKS;
}

int cnos_get_rank(void);
int cnos_get_rank(void) {
    return rank_of_ptlrun();
}

int cnos_get_size(void);
int cnos_get_size(void) {
    return fault("no_rank") ? -1 : RANKS;
}

int cnos_barrier(void);
int cnos_barrier(void) {
    return state == REGISTERED ? barrier_of_ptlrun() : -1;
}

void cnos_pm_barrier(int ends);
void cnos_pm_barrier(int ends) {
    printf("cnos_pm_barrier(%d)\n", ends);
    fflush(stdout);
}
#endif

#ifdef PMI
static int begun;

int PMI_Init(int *spawned);
int PMI_Init(int *spawned) {
    *spawned = 0;
    begun = 1;
    return 0;
}

int PMI_Get_rank(int *rank);
int PMI_Get_rank(int *rank) {
    *rank = rank_of_ptlrun();
    return !begun;
}

int PMI_Get_size(int *size);
int PMI_Get_size(int *size) {
    *size = RANKS;
    return !begun;
}

int PMI_Barrier(void);
int PMI_Barrier(void) {
    return begun ? barrier_of_ptlrun() : -1;
}

int PMI_CNOS_Get_nidpid_map(void **map);
int PMI_CNOS_Get_nidpid_map(void **map) {
    *map = fault("pmi_lies") ? wrong : right;
    return !begun || fault("pmi_fails");
}
#endif
