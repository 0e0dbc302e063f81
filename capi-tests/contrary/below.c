/* libportals3 behind below.h. Loaded, not linked: contrary.c defines the same names. */
#define _GNU_SOURCE 1
#include "below.h"

#include <portals3.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int (*PtlInit)(int *);
    int (*PtlNIInit)(ptl_interface_t, ptl_pid_t, ptl_ni_limits_t *, ptl_ni_limits_t *, ptl_handle_ni_t *);
    int (*PtlNIStatus)(ptl_handle_ni_t, ptl_sr_index_t, ptl_sr_value_t *);
    int (*PtlGetId)(ptl_handle_ni_t, ptl_process_id_t *);
    int (*PtlMEAttach)(ptl_handle_ni_t, ptl_pt_index_t, ptl_process_id_t, ptl_match_bits_t, ptl_match_bits_t, ptl_unlink_t,
                       ptl_ins_pos_t, ptl_handle_me_t *);
    int (*PtlMEInsert)(ptl_handle_me_t, ptl_process_id_t, ptl_match_bits_t, ptl_match_bits_t, ptl_unlink_t, ptl_ins_pos_t,
                       ptl_handle_me_t *);
    int (*PtlMEUnlink)(ptl_handle_me_t);
    int (*PtlMDAttach)(ptl_handle_me_t, ptl_md_t, ptl_unlink_t, ptl_handle_md_t *);
    int (*PtlMDBind)(ptl_handle_ni_t, ptl_md_t, ptl_unlink_t, ptl_handle_md_t *);
    int (*PtlMDUnlink)(ptl_handle_md_t);
    int (*PtlEQAlloc)(ptl_handle_ni_t, ptl_size_t, ptl_eq_handler_t, ptl_handle_eq_t *);
    int (*PtlEQFree)(ptl_handle_eq_t);
    int (*PtlEQGet)(ptl_handle_eq_t, ptl_event_t *);
    int (*PtlPutRegion)(ptl_handle_md_t, ptl_size_t, ptl_size_t, ptl_ack_req_t, ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t,
                        ptl_match_bits_t, ptl_size_t, ptl_hdr_data_t);
    int (*PtlGetRegion)(ptl_handle_md_t, ptl_size_t, ptl_size_t, ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t,
                        ptl_match_bits_t, ptl_size_t);
} real;

static ptl_handle_ni_t ni;

static void load(void) {
    void *library = dlopen("libportals3.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "libportals-contrary: %s\n", dlerror());
        abort();
    }
    /* POSIX lets an object pointer carry a function's. */
#define LOAD(name) *(void **)&real.name = dlsym(library, #name);
    LOAD(PtlInit) LOAD(PtlNIInit) LOAD(PtlNIStatus) LOAD(PtlGetId) LOAD(PtlMEAttach) LOAD(PtlMEInsert) LOAD(PtlMEUnlink)
    LOAD(PtlMDAttach) LOAD(PtlMDBind) LOAD(PtlMDUnlink) LOAD(PtlEQAlloc) LOAD(PtlEQFree) LOAD(PtlEQGet) LOAD(PtlPutRegion)
    LOAD(PtlGetRegion)
}

static int error(int rc) {
    switch (rc) {
#define ERROR_CASE(name) case PTL_##name: return BELOW_##name;
        BELOW_ERRORS(ERROR_CASE)
    }
    return BELOW_UNKNOWN;
}

static int kind(ptl_event_kind_t type) {
    switch (type) {
#define EVENT_CASE(name) case PTL_EVENT_##name: return BELOW_EVENT_##name;
        BELOW_EVENTS(EVENT_CASE)
    }
    return BELOW_EVENT_UNKNOWN;
}

static const ptl_process_id_t any_process = {PTL_NID_ANY, PTL_PID_ANY};

int below_open(int limits[4]) {
    ptl_ni_limits_t wanted, granted;
    int interfaces, rc;
    if (real.PtlInit == NULL)
        load();
    rc = real.PtlInit(&interfaces);
    if (rc != PTL_OK)
        return error(rc);
    memset(&wanted, 0, sizeof wanted);
    wanted.max_mes = wanted.max_me_list = limits[0];
    wanted.max_mds = limits[1];
    wanted.max_eqs = limits[2];
    wanted.max_pt_index = limits[3];
    rc = real.PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, &wanted, &granted, &ni);
    limits[0] = granted.max_mes;
    limits[1] = granted.max_mds;
    limits[2] = granted.max_eqs;
    limits[3] = granted.max_pt_index;
    return error(rc);
}

int below_id(uint32_t *nid, uint32_t *pid) {
    ptl_process_id_t id;
    int rc = real.PtlGetId(ni, &id);
    *nid = id.nid;
    *pid = id.pid;
    return error(rc);
}

uint64_t below_dropped(void) {
    ptl_sr_value_t value = 0;
    (void)real.PtlNIStatus(ni, PTL_SR_DROP_COUNT, &value);
    return value;
}

int below_me(int where, uint32_t pt, uint32_t base, uint64_t match_bits, uint64_t ignore_bits, int unlink, uint32_t *me) {
    ptl_unlink_t how = unlink ? PTL_UNLINK : PTL_RETAIN;
    if (where == 2)
        return error(real.PtlMEInsert(base, any_process, match_bits, ignore_bits, how, PTL_INS_BEFORE, me));
    return error(real.PtlMEAttach(ni, pt, any_process, match_bits, ignore_bits, how,
                                  where == 0 ? PTL_INS_BEFORE : PTL_INS_AFTER, me));
}

int below_me_unlink(uint32_t me) {
    return error(real.PtlMEUnlink(me));
}

int below_md(int attached, uint32_t me, const struct below_md *from, int unlink, uint32_t *made) {
    ptl_unlink_t how = unlink ? PTL_UNLINK : PTL_RETAIN;
    ptl_md_t md;
    memset(&md, 0, sizeof md);
    md.start = from->start;
    md.length = from->length;
    md.threshold = from->infinite ? PTL_MD_THRESH_INF : from->threshold;
    md.max_size = from->max_size;
    md.user_ptr = from->user_ptr;
    md.eq_handle = from->eq == BELOW_NO_EQ ? PTL_EQ_NONE : from->eq;
#define OPTION(name) md.options |= from->options & 1U << BELOW_MD_##name ? PTL_MD_##name : 0;
    BELOW_OPTIONS(OPTION)
    return error(attached ? real.PtlMDAttach(me, md, how, made) : real.PtlMDBind(ni, md, how, made));
}

int below_md_unlink(uint32_t md) {
    return error(real.PtlMDUnlink(md));
}

int below_eq(uint64_t count, uint32_t *eq) {
    return error(real.PtlEQAlloc(ni, count, PTL_EQ_HANDLER_NONE, eq));
}

int below_eq_free(uint32_t eq) {
    return error(real.PtlEQFree(eq));
}

int below_eq_get(uint32_t eq, struct below_event *event) {
    ptl_event_t e;
    int rc = real.PtlEQGet(eq, &e);
    if (rc == PTL_OK || rc == PTL_EQ_DROPPED) {
        event->kind = kind(e.type);
        event->nid = e.initiator.nid;
        event->pid = e.initiator.pid;
        event->match_bits = e.match_bits;
        event->rlength = e.rlength;
        event->mlength = e.mlength;
        event->offset = e.offset;
        event->hdr_data = e.hdr_data;
        event->start = e.md.start;
        event->user_ptr = e.md.user_ptr;
        event->failed = e.ni_fail_type != PTL_NI_OK;
    }
    return error(rc);
}

int below_put(uint32_t md, uint64_t from, uint64_t length, int ack, uint32_t nid, uint32_t pid, uint32_t pt, uint64_t match_bits,
              uint64_t to, uint64_t hdr_data) {
    ptl_process_id_t target = {nid, pid};
    return error(real.PtlPutRegion(md, from, length, ack ? PTL_ACK_REQ : PTL_NO_ACK_REQ, target, pt, 0, match_bits, to, hdr_data));
}

int below_get(uint32_t md, uint64_t to, uint64_t length, uint32_t nid, uint32_t pid, uint32_t pt, uint64_t match_bits,
              uint64_t from) {
    ptl_process_id_t target = {nid, pid};
    return error(real.PtlGetRegion(md, to, length, target, pt, 0, match_bits, from));
}
