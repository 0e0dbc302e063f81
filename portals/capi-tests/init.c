/* PtlInit, PtlFini, PtlNIInit and PtlNIFini: order, repetition, errors. */
#include "check.h"

int main(void) {
    ptl_handle_ni_t again = PTL_INVALID_HANDLE, stale;
    ptl_ni_limits_t same, huge;
    ptl_process_id_t id;
    ptl_handle_eq_t eq;
    ptl_event_t event;
    ptl_pid_t other;
    int most = 0;

    RETURNS(PTL_NO_INIT, PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &again));
    RETURNS(PTL_NO_INIT, PtlGetId(again, &id));
    RETURNS(PTL_NO_INIT, PtlEQGet(again, &event));
    RETURNS(PTL_NO_INIT, PtlMDUnlink(again));
    RETURNS(PTL_SEGV, PtlInit(NULL));
    OK(PtlInit(&most));
    RETURNS(PTL_NI_INVALID, PtlGetId(again, &id));
    RETURNS(PTL_EQ_INVALID, PtlEQGet(again, &event));
    RETURNS(PTL_IFACE_INVALID, PtlNIInit(PTL_IFACE_DEFAULT + 1, PTL_PID_ANY, NULL, NULL, &again));
    RETURNS(PTL_PID_INVALID, PtlNIInit(PTL_IFACE_DEFAULT, 4711, NULL, NULL, &again));
    RETURNS(PTL_SEGV, PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, NULL));
    CHECK(setenv("PTL_ARENA_BYTES", "2000000", 1) == 0); /* too few for these limits */
    memset(&huge, 0, sizeof huge);
    huge.max_mes = huge.max_mds = huge.max_eqs = 1 << 16;
    RETURNS(PTL_NO_SPACE, PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, &huge, NULL, &again));

    start(); /* initialises once more; with other limits the interface opens */
    OK(PtlNIInit(PTL_IFACE_DEFAULT, self.pid, NULL, &same, &again));
    CHECK(again == ni && memcmp(&same, &limits, sizeof same) == 0);
    other = self.pid + 1;
    RETURNS(PTL_PID_INVALID, PtlNIInit(PTL_IFACE_DEFAULT, other, NULL, NULL, &again));
    OK(PtlNIHandle(ni, &again));
    CHECK(again == ni);
    RETURNS(PTL_HANDLE_INVALID, PtlNIHandle(PTL_INVALID_HANDLE, &again));
    RETURNS(PTL_HANDLE_INVALID, PtlNIHandle(PTL_HANDLE_NONE, &again));
    RETURNS(PTL_HANDLE_INVALID, PtlNIHandle(PTL_EQ_NONE, &again));
    RETURNS(PTL_HANDLE_INVALID, PtlNIHandle(0, &again));
    OK(PtlNIHandle(idle_eq, &again));
    barrier();

    /* Two were opened: the first PtlNIFini leaves it open. */
    OK(PtlNIFini(ni));
    OK(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &eq));
    expect_empty(eq);
    stale = ni;
    barrier();
    idle_eq = PTL_EQ_NONE;
    OK(PtlNIFini(ni));
    RETURNS(PTL_NI_INVALID, PtlNIFini(stale));
    RETURNS(PTL_EQ_INVALID, PtlEQGet(eq, &event));
    RETURNS(PTL_NI_INVALID, PtlGetId(stale, &id));
    if (size == 1) { /* a job of one can open it again, with another handle */
        OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
        CHECK(ni != stale);
        RETURNS(PTL_NI_INVALID, PtlGetId(stale, &id));
        OK(PtlGetId(ni, &id));
        OK(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &eq));
        expect_empty(eq);
    }
    PtlFini(); /* closes what is open */
    RETURNS(PTL_NO_INIT, PtlGetId(ni, &id));
    RETURNS(PTL_NO_INIT, PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &again));
    PtlFini();
    barrier();
    if (rank == 0 && failures == 0)
        printf("init: PASS\n");
    return failures != 0;
}
