/* Planted faults, for tests of the tests: preloaded before libportals3, it makes the library
 * misbehave as PLANT names. Each program must fail with some of them. */
#define _GNU_SOURCE 1
#include <portals3.h>

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int planted(const char *name) {
    const char *plant = getenv("PLANT");
    return plant != NULL && strcmp(plant, name) == 0;
}

/* The library's own function; POSIX lets an object pointer carry it. */
#define REAL(pointer, name) (*(void **)&(pointer) = dlsym(RTLD_NEXT, name))

/* put_fails: PtlPut and PtlPutRegion do nothing and return PTL_OK. */
int PtlPut(ptl_handle_md_t md, ptl_ack_req_t ack, ptl_process_id_t to, ptl_pt_index_t pt, ptl_ac_index_t ac,
           ptl_match_bits_t bits, ptl_size_t offset, ptl_hdr_data_t data) {
    int (*real)(ptl_handle_md_t, ptl_ack_req_t, ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t, ptl_match_bits_t, ptl_size_t,
                ptl_hdr_data_t);
    REAL(real, "PtlPut");
    return planted("put_fails") ? PTL_FAIL : real(md, ack, to, pt, ac, bits, offset, data);
}

int PtlPutRegion(ptl_handle_md_t md, ptl_size_t from, ptl_size_t length, ptl_ack_req_t ack, ptl_process_id_t to,
                 ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t bits, ptl_size_t offset, ptl_hdr_data_t data) {
    int (*real)(ptl_handle_md_t, ptl_size_t, ptl_size_t, ptl_ack_req_t, ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t,
                ptl_match_bits_t, ptl_size_t, ptl_hdr_data_t);
    REAL(real, "PtlPutRegion");
    return planted("put_fails") ? PTL_FAIL : real(md, from, length, ack, to, pt, ac, bits, offset, data);
}

/* threads: a second thread inside PtlEQGet ends the process. */
int PtlEQGet(ptl_handle_eq_t eq, ptl_event_t *event) {
    static const char line[] = "two threads are inside the library\n";
    static int inside;
    int (*real)(ptl_handle_eq_t, ptl_event_t *), rc;
    REAL(real, "PtlEQGet");
    if (__sync_add_and_fetch(&inside, 1) > 1 && planted("threads")) {
        (void)!write(STDERR_FILENO, line, sizeof line - 1);
        _exit(70);
    }
    if (planted("threads")) sched_yield();
    rc = real(eq, event);
    (void)__sync_sub_and_fetch(&inside, 1);
    return rc;
}

/* event_lies: lengths, offsets, kinds, thresholds and immediate data are wrong. */
int PtlEQWait(ptl_handle_eq_t eq, ptl_event_t *event) {
    int (*real)(ptl_handle_eq_t, ptl_event_t *), rc;
    REAL(real, "PtlEQWait");
    rc = real(eq, event);
    if (planted("event_lies") && rc == PTL_OK) {
        event->type = (ptl_event_kind_t)((event->type + 1) % 12);
        event->mlength++;
        event->offset++;
        event->hdr_data++;
        event->md.threshold++;
    }
    return rc;
}

/* half_swap: PtlGetPut fetches and does not put. */
int PtlGetPut(ptl_handle_md_t get, ptl_handle_md_t put, ptl_process_id_t to, ptl_pt_index_t pt, ptl_ac_index_t ac,
              ptl_match_bits_t bits, ptl_size_t offset, ptl_hdr_data_t data) {
    int (*real)(ptl_handle_md_t, ptl_handle_md_t, ptl_process_id_t, ptl_pt_index_t, ptl_ac_index_t, ptl_match_bits_t,
                ptl_size_t, ptl_hdr_data_t);
    REAL(real, "PtlGetPut");
    return planted("half_swap") ? PtlGet(get, to, pt, ac, bits, offset) : real(get, put, to, pt, ac, bits, offset, data);
}

/* always_ok: calls that fail return PTL_OK. */
int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni) {
    int (*real)(ptl_handle_any_t, ptl_handle_ni_t *), rc;
    REAL(real, "PtlNIHandle");
    rc = real(handle, ni);
    return planted("always_ok") ? PTL_OK : rc;
}

int PtlMDBind(ptl_handle_ni_t ni, ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_md_t *made) {
    int (*real)(ptl_handle_ni_t, ptl_md_t, ptl_unlink_t, ptl_handle_md_t *), rc;
    REAL(real, "PtlMDBind");
    rc = real(ni, md, unlink_op, made);
    return planted("always_ok") ? PTL_OK : rc;
}

int PtlGetRankId(ptl_handle_ni_t ni, unsigned rank, ptl_process_id_t *id) {
    int (*real)(ptl_handle_ni_t, unsigned, ptl_process_id_t *), rc;
    REAL(real, "PtlGetRankId");
    rc = real(ni, rank, id);
    return planted("always_ok") ? PTL_OK : rc;
}

int PtlEQPoll(ptl_handle_eq_t *eqs, int size, ptl_time_t timeout, ptl_event_t *event, int *which) {
    int (*real)(ptl_handle_eq_t *, int, ptl_time_t, ptl_event_t *, int *), rc;
    REAL(real, "PtlEQPoll");
    rc = real(eqs, size, timeout, event, which);
    return planted("always_ok") ? PTL_OK : rc;
}
