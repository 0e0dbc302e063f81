/* libcnos: the functions by which a program of a Cray XT asks its system about its job, for jobs
 * of ptlrun. Rank, size and addresses come from libportals3, the barrier from ptlrun. In a
 * barrier a process writes a byte to the socket that PTL_BARRIER_FD names, and reads one when all
 * have written. Meanwhile it takes and sends messages that need its calls: another process may
 * wait for one of them before it comes to the barrier.
 *
 * Invariant: nothing here makes a descriptor, a thread or a process. */
#include <cnos_mpi_os.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The last of the calls that must precede a barrier. */
static enum { NOTHING, INITIALISED, REGISTERED } state;
static ptl_handle_ni_t interface;

static int rank_and_size(unsigned int *rank, unsigned int *size) {
    return PtlGetRank(PTL_INVALID_HANDLE, rank, size) == PTL_OK ? 0 : -1;
}

int cnos_get_rank(void) {
    unsigned int rank, size;
    return rank_and_size(&rank, &size) == 0 ? (int)rank : -1;
}

int cnos_get_size(void) {
    unsigned int rank, size;
    return rank_and_size(&rank, &size) == 0 ? (int)size : -1;
}

int cnos_barrier_init(ptl_handle_ni_t ni_handle) {
    ptl_process_id_t id;
    if (PtlGetId(ni_handle, &id) != PTL_OK)
        return -1;
    interface = ni_handle;
    if (state == NOTHING)
        state = INITIALISED;
    return 0;
}

int cnos_register_ptlid(ptl_process_id_t id) {
    ptl_process_id_t own;
    if (state == NOTHING || PtlGetId(interface, &own) != PTL_OK || id.nid != own.nid || id.pid != own.pid)
        return -1;
    state = REGISTERED;
    return 0;
}

int cnos_get_nidpid_map(cnos_nidpid_map_t **map) {
    static cnos_nidpid_map_t *known;
    unsigned int rank, size, i;
    if (map == NULL || state != REGISTERED || rank_and_size(&rank, &size) != 0)
        return -1;
    if (known == NULL) {
        cnos_nidpid_map_t *made = malloc(size * sizeof *made);
        if (made == NULL)
            return -1;
        for (i = 0; i < size; i++) {
            ptl_process_id_t id;
            if (PtlGetRankId(interface, i, &id) != PTL_OK) {
                free(made);
                return -1;
            }
            made[i].nid = id.nid;
            made[i].pid = id.pid;
        }
        known = made;
    }
    *map = known;
    return (int)size;
}

/* The socket of barriers; -1 if ptlrun left none. Programs that this process starts do not
 * inherit it. */
static int barrier_socket(void) {
    static int number = -1;
    if (number < 0) {
        const char *text = getenv("PTL_BARRIER_FD");
        char *end;
        long value = text != NULL ? strtol(text, &end, 10) : -1;
        if (value < 0 || value > 1 << 20 || *end != '\0' || fcntl((int)value, F_SETFD, FD_CLOEXEC) != 0)
            return -1;
        number = (int)value;
    }
    return number;
}

int cnos_barrier(void) {
    unsigned int rank, size;
    ptl_sr_value_t drops;
    struct pollfd answer;
    char byte = 0;
    ssize_t done;
    int number;
    if (state != REGISTERED || rank_and_size(&rank, &size) != 0)
        return -1;
    if (size == 1)
        return 0;
    number = barrier_socket();
    if (number < 0)
        return -1;
    do
        done = send(number, &byte, 1, MSG_NOSIGNAL);
    while (done < 0 && errno == EINTR);
    answer.fd = number;
    answer.events = POLLIN;
    while (done == 1) {
        int ready = poll(&answer, 1, 1);
        /* A lightweight kernel may have no poll: then this only waits. */
        if (ready > 0 || (ready < 0 && errno != EINTR)) {
            done = recv(number, &byte, 1, 0);
            if (done == 1)
                return 0;
            if (done < 0 && errno == EINTR)
                done = 1;
        }
        /* A call that delivers, and needs no queue. */
        (void)PtlNIStatus(interface, PTL_SR_DROP_COUNT, &drops);
    }
    return -1;
}
