/* Round trips of a checked message between two processes, in several sizes; process 0 prints half
 * the time of one. */
#include "check.h"

#define LONGEST 65536

int main(int argc, char **argv) {
    static char in[LONGEST], out[LONGEST];
    static const ptl_size_t lengths[] = {0, 1, 8, 1000, 4096, LONGEST};
    int rounds = argc > 1 ? atoi(argv[1]) : 50;
    unsigned partner, which;
    ptl_process_id_t peer;
    ptl_handle_eq_t eq;
    ptl_handle_md_t from;

    start();
    partner = (rank ^ 1U) < size ? rank ^ 1U : rank;
    OK(PtlGetRankId(ni, partner, &peer));
    eq = queue(64);
    target(PT, region(in, sizeof in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq));
    from = source(region(out, sizeof out, 0, PTL_EQ_NONE));
    barrier();
    for (which = 0; which < sizeof lengths / sizeof *lengths; which++) {
        ptl_size_t length = lengths[which];
        double begin = seconds();
        int round;
        for (round = 0; round < rounds; round++) {
            ptl_event_t event;
            memset(out, round + 1, length);
            if (rank <= partner)
                OK(PtlPutRegion(from, 0, length, PTL_NO_ACK_REQ, peer, PT, 0, 0, 0, (ptl_hdr_data_t)round));
            event = expect(eq, PTL_EVENT_PUT_END);
            CHECK(event.mlength == length && event.hdr_data == (ptl_hdr_data_t)round);
            CHECK(length == 0 || (in[0] == (char)(round + 1) && memcmp(in, in + 1, length - 1) == 0));
            if (rank > partner)
                OK(PtlPutRegion(from, 0, length, PTL_NO_ACK_REQ, peer, PT, 0, 0, 0, (ptl_hdr_data_t)round));
        }
        if (rank == 0)
            printf("%6lu bytes: %8.2f us\n", (unsigned long)length, (seconds() - begin) / rounds / 2 * 1e6);
    }
    return finish("pingpong");
}
