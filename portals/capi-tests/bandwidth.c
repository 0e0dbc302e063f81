/* Windows of long puts and gets to the next process, acknowledged and checked; process 0 prints
 * the bandwidth. */
#include "check.h"

#define CHUNK 65536
#define WINDOW 8

int main(int argc, char **argv) {
    static char in[WINDOW * CHUNK], out[WINDOW * CHUNK];
    int rounds = argc > 1 ? atoi(argv[1]) : 4, round;
    ptl_handle_eq_t eq;
    ptl_handle_md_t from;
    double begin;
    int i;

    start();
    eq = queue(4 * WINDOW);
    target(PT, region(in, sizeof in, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE));
    from = source(region(out, sizeof out, 0, eq));
    barrier();
    begin = seconds();
    for (round = 0; round < rounds; round++) {
        memset(out, round + (int)rank, sizeof out);
        for (i = 0; i < WINDOW; i++)
            OK(PtlPutRegion(from, (ptl_size_t)(i * CHUNK), CHUNK, PTL_ACK_REQ, next, PT, 0, 0, (ptl_size_t)(i * CHUNK), 0));
        for (i = 0; i < 2 * WINDOW; i++) {
            ptl_event_t event;
            still_well();
            OK(PtlEQWait(eq, &event));
            CHECK(event.type == PTL_EVENT_SEND_END || (event.type == PTL_EVENT_ACK && event.mlength == CHUNK));
        }
        barrier();
        CHECK(in[0] == (char)(round + (int)((rank + size - 1) % size)) && memcmp(in, in + 1, sizeof in - 1) == 0);
        barrier();
    }
    if (rank == 0)
        printf("put: %8.1f MB/s\n", (double)rounds * (double)sizeof out / (seconds() - begin) / 1e6);
    begin = seconds();
    for (round = 0; round < rounds; round++) {
        memset(in, round + (int)rank, sizeof in);
        barrier();
        for (i = 0; i < WINDOW; i++)
            OK(PtlGetRegion(from, (ptl_size_t)(i * CHUNK), CHUNK, next, PT, 0, 0, (ptl_size_t)(i * CHUNK)));
        for (i = 0; i < WINDOW; i++)
            CHECK(expect(eq, PTL_EVENT_REPLY_END).mlength == CHUNK);
        CHECK(out[0] == (char)(round + (int)((rank + 1) % size)) && memcmp(out, out + 1, sizeof out - 1) == 0);
        barrier();
    }
    if (rank == 0)
        printf("get: %8.1f MB/s\n", (double)rounds * (double)sizeof out / (seconds() - begin) / 1e6);
    return finish("bandwidth");
}
