/* Ranks: every process has one, maps agree with ids, and false maps are refused. */
#include "check.h"

int main(void) {
    ptl_nid_t nids[64];
    ptl_pid_t pids[64];
    unsigned r, n, i;
    ptl_process_id_t id;
    int most;

    OK(PtlGetRank(PTL_INVALID_HANDLE, &r, &n)); /* before PtlInit */
    RETURNS(PTL_NO_INIT, PtlGetRank(0, &r, &n));
    OK(PtlInit(&most));
    start();
    CHECK(r == rank && n == size && size <= 64);
    OK(PtlGetNIDMap(ni, nids, size));
    OK(PtlGetPIDMap(ni, pids, size));
    for (i = 0; i < size; i++) {
        OK(PtlGetRankId(ni, i, &id));
        CHECK(id.nid == nids[i] && id.pid == pids[i]);
        CHECK((id.pid == self.pid) == (i == rank));
    }
    RETURNS(PTL_PROCESS_INVALID, PtlGetRankId(ni, size, &id));
    RETURNS(PTL_FAIL, PtlGetNIDMap(ni, nids, size + 1));
    RETURNS(PTL_FAIL, PtlGetPIDMap(ni, pids, size - 1));
    RETURNS(PTL_SEGV, PtlGetPIDMap(ni, NULL, size));
    RETURNS(PTL_SEGV, PtlGetRank(ni, NULL, &n));
    RETURNS(PTL_SEGV, PtlGetRank(ni, &n, NULL));
    OK(PtlSetRank(ni, rank, size));
    OK(PtlSetRank(ni, (unsigned)-1, (unsigned)-1));
    OK(PtlSetNIDMap(ni, nids, size));
    OK(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, size));
    RETURNS(PTL_FAIL, PtlSetRank(ni, rank, size + 1));
    RETURNS(PTL_FAIL, PtlSetRank(ni, size, size));
    pids[rank] += 1;
    RETURNS(PTL_FAIL, PtlSetPIDMap(ni, pids, size));
    nids[0] += 1;
    RETURNS(PTL_FAIL, PtlSetNIDMap(ni, nids, size));
    RETURNS(PTL_NI_INVALID, PtlSetRank(idle_eq, rank, size));
    OK(PtlGetRank(ni, &r, &n));
    CHECK(r == rank && n == size);
    return finish("ranks");
}
