/* A lock by PtlGetPut: all processes count up one number at process 0, which only the holder of
 * the lock reads and writes. */
#include "check.h"

#define ROUNDS 40

static uint64_t shared[2]; /* the lock, the number */
static uint64_t fetched, sent, number;
static ptl_handle_eq_t eq;
static ptl_handle_md_t get, put, value;
static ptl_process_id_t root;

static uint64_t swap(uint64_t with) {
    sent = with;
    OK(PtlGetPut(get, put, root, PT, 0, 0, 0, 0));
    expect(eq, PTL_EVENT_REPLY_END);
    return fetched;
}

int main(void) {
    int round;

    start();
    OK(PtlGetRankId(ni, 0, &root));
    eq = queue(16);
    target(PT, region(shared, sizeof shared, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE));
    get = source(region(&fetched, sizeof fetched, 0, eq));
    put = source(region(&sent, sizeof sent, 0, PTL_EQ_NONE));
    value = source(region(&number, sizeof number, 0, eq));
    barrier();
    for (round = 0; round < ROUNDS; round++) {
        while (swap(1) != 0)
            sched_yield(); /* lets the holder run */
        OK(PtlGet(value, root, PT, 0, 0, 8));
        expect(eq, PTL_EVENT_REPLY_END);
        number++;
        OK(PtlPut(value, PTL_ACK_REQ, root, PT, 0, 0, 8, 0));
        expect(eq, PTL_EVENT_SEND_END);
        expect(eq, PTL_EVENT_ACK);
        CHECK(swap(0) == 1);
    }
    barrier();
    if (rank == 0)
        CHECK(shared[1] == (uint64_t)size * ROUNDS && shared[0] == 0);
    return finish("lock");
}
