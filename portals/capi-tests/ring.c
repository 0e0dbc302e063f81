/* A token travels from process to process; each adds one. */
#include "check.h"

#define LAPS 20

int main(void) {
    ptl_handle_eq_t eq;
    ptl_handle_md_t from;
    unsigned in = 0, out = 0;
    int lap;

    start();
    eq = queue(16);
    target(PT, region(&in, sizeof in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq));
    from = source(region(&out, sizeof out, 0, PTL_EQ_NONE));
    barrier();
    for (lap = 0; lap < LAPS; lap++) {
        if (rank == 0) {
            out = (unsigned)lap * 1000;
            OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 0));
        }
        expect(eq, PTL_EVENT_PUT_END);
        if (rank == 0) {
            CHECK(in == (unsigned)lap * 1000 + size - 1);
        } else {
            out = in + 1;
            OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 0));
        }
    }
    return finish("ring");
}
