/* The parts of the binding that need a C compiler to fit every vendor's header. They are calls
 * whose argument types differ, constants of any type, and names that are functions or arrays. No
 * function of this file is called per message. */
#include "shim.h"

#include <stddef.h>
#include <string.h>

int gasneti_ptl_open(int has_rank, struct gasneti_ptl_limits *limits, ptl_handle_ni_t *ni, const char **call) {
    ptl_ni_limits_t wanted, granted, *desired = &wanted;
    int interfaces, rc;
    *call = "PtlInit";
    rc = PtlInit(&interfaces);
    if (rc != PTL_OK) {
        return rc;
    }
    if (has_rank) {
        *call = "PtlSetRank";
        rc = gasneti_ptl_set_rank();
        if (rc != PTL_OK) {
            return rc;
        }
    }
    memset(&wanted, 0, sizeof wanted);
    memset(&granted, 0, sizeof granted);
    wanted.max_mes = limits->mes;
    wanted.max_mds = limits->mds;
    wanted.max_eqs = limits->eqs;
    wanted.max_pt_index = limits->pt_index;
    wanted.max_me_list = limits->mes;
    wanted.max_ac_index = 1;
    wanted.max_md_iovecs = 1;
    wanted.max_getput_md = 8;
#ifdef GASNETI_HAS_SEASTAR
    /* Limits would hold for MPI and SHMEM in this process, which share the interface. */
    desired = NULL;
#endif
    *call = "PtlNIInit";
    rc = PtlNIInit(GASNETI_HAS_IFACE, PTL_PID_ANY, desired, &granted, ni);
#ifdef GASNETI_HAS_IFACE_DUP
    if (rc == GASNETI_HAS_IFACE_DUP || rc == -(int)GASNETI_HAS_IFACE_DUP) {
        rc = PTL_OK;
        if (granted.max_mes == 0 && granted.max_mds == 0 && granted.max_eqs == 0) {
            return rc;
        }
    }
#endif
    limits->mes = granted.max_mes;
    limits->mds = granted.max_mds;
    limits->eqs = granted.max_eqs;
    limits->pt_index = granted.max_pt_index;
    return rc;
}

int gasneti_ptl_eq_alloc(ptl_handle_ni_t ni, ptl_size_t count, ptl_handle_eq_t *eq) {
    return PtlEQAlloc(ni, count, NULL, eq);
}

int gasneti_ptl_eq_free(ptl_handle_eq_t eq) {
    int rc = PtlEQFree(eq);
#ifdef GASNETI_HAS_EQ_IN_USE
    int tries;
    for (tries = 0; tries < 4 && (rc == GASNETI_HAS_EQ_IN_USE || rc == -(int)GASNETI_HAS_EQ_IN_USE); tries++) {
        ptl_event_t event;
        (void)PtlEQGet(eq, &event);
        rc = PtlEQFree(eq);
    }
#endif
    return rc;
}

void gasneti_ptl_eq_none(ptl_handle_eq_t *eq) {
    *eq = PTL_EQ_NONE;
}

void gasneti_ptl_anybody(ptl_process_id_t *id) {
    id->nid = PTL_NID_ANY;
    id->pid = PTL_PID_ANY;
}

unsigned long long gasneti_ptl_dropped(ptl_handle_ni_t ni) {
    ptl_sr_value_t value = 0;
    return PtlNIStatus(ni, PTL_SR_DROP_COUNT, &value) == PTL_OK ? (unsigned long long)value : 0;
}

unsigned gasneti_ptl_properties(ptl_handle_ni_t ni) {
    unsigned properties = 0;
#ifdef PTL_NI_THREAD_SAFE
    if (PtlNIProperties(ni, &properties) != PTL_OK) {
        properties = 0;
    }
#endif
    (void)ni;
    return properties;
}

static const struct {
    int value;
    const char *name;
} errors[] = {
#define GASNETI_ROW(name) {(int)(name), #name},
    GASNETI_HAS_ERRORS(GASNETI_ROW)
};

#define ERRORS (int)(sizeof errors / sizeof errors[0])

const char *gasneti_ptl_error_name(int error) {
    int i;
    for (i = 0; i < ERRORS; i++) {
        if (errors[i].value == error || errors[i].value == -error) {
            return errors[i].name;
        }
    }
    return NULL;
}

const char *gasneti_ptl_disagrees(int *value, const char **theirs) {
#ifdef GASNETI_HAS_ERROR_STR
    int i, j;
    for (i = 0; i < ERRORS; i++) {
        const char *text = GASNETI_HAS_ERROR_STR(errors[i].value);
        int known = text == NULL || strncmp(text, "PTL_", 4) != 0;
        for (j = 0; j < ERRORS && !known; j++) {
            known = errors[j].value == errors[i].value && strcmp(text, errors[j].name) == 0;
        }
        if (!known) {
            *value = errors[i].value;
            *theirs = text;
            return errors[i].name;
        }
    }
#endif
    (void)value;
    (void)theirs;
    return NULL;
}

void *gasneti_ptl_function(void) {
    /* POSIX lets an object pointer carry it. */
    int (*function)(ptl_handle_md_t, ptl_ack_req_t, ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t, ptl_match_bits_t, ptl_size_t,
                    ptl_hdr_data_t) = PtlPut;
    void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}

const char *gasneti_ptl_fabric_variable(void) {
#ifdef PORTALS3_FABRIC_FD
    return PORTALS3_FABRIC_FD;
#else
    return NULL;
#endif
}
