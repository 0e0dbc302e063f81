/* A closed interface accepts no messages: what is sent to it leaves its memory untouched. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    ptl_handle_md_t from;
    char buffer[8], data[8] = "too late";
    unsigned last;
    ptl_handle_ni_t own;
    pid_t child;
    int rc, status, most;

    start();
    last = size - 1;
    memset(buffer, 0, sizeof buffer);
    target(PT, region(buffer, sizeof buffer, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE));
    from = source(region(data, 4, 0, PTL_EQ_NONE));
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 0)); /* both know each other now */
    barrier();
    CHECK(memcmp(buffer, "too ", 4) == 0);
    /* A child that closes what it has inherited does not close it for its parent. In a job of one
     * it may then open an interface of its own. */
    child = fork();
    if (child == 0) {
        RETURNS(PTL_FAIL, PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &own));
        PtlFini();
        OK(PtlInit(&most));
        RETURNS(size == 1 ? PTL_OK : PTL_FAIL, PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &own));
        _exit(failures != 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 4, 0));
    barrier();
    CHECK(memcmp(buffer, "too too ", 8) == 0);
    barrier();
    if (rank == last && rank > 0) {
        memset(buffer, 'm', sizeof buffer);
        idle_eq = PTL_EQ_NONE;
        OK(PtlNIFini(ni));
    }
    barrier();
    if (rank != last) {
        rc = PtlPut(from, PTL_ACK_REQ, next, PT, 0, 0, 4, 0);
        CHECK(rc == PTL_OK || rc == PTL_PROCESS_INVALID);
    }
    barrier();
    if (rank == last && rank > 0) {
        CHECK(memcmp(buffer, "mmmmmmmm", 8) == 0);
        RETURNS(PTL_NI_INVALID, PtlGetId(ni, &self));
        RETURNS(PTL_FAIL, PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
    }
    PtlFini();
    idle_eq = PTL_EQ_NONE;
    if (failures == 0)
        barrier();
    if (rank == 0 && failures == 0)
        printf("closing: PASS\n");
    return failures != 0;
}
