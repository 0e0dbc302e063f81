/* A full event queue loses events, reports it once with an event after the loss, and works on.
 * Messages arrive nevertheless. The library chooses which events are lost. */
#include "check.h"

#define SENT 12

int main(void) {
    ptl_handle_eq_t eq;
    ptl_handle_md_t from;
    ptl_event_t event;
    char buffer[SENT + 2], data[1] = {1};
    int i, rc, dropped = 0, taken = 0;
    ptl_hdr_data_t due = 0;

    start();
    marks_begin();
    eq = queue(4);
    memset(buffer, 0, sizeof buffer);
    target(PT, region(buffer, sizeof buffer, PTL_MD_OP_PUT, eq));
    from = source(region(data, sizeof data, 0, PTL_EQ_NONE));
    barrier();
    for (i = 0; i < SENT; i++)
        OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, (ptl_hdr_data_t)i));
    mark();
    await_mark();
    while ((rc = PtlEQGet(eq, &event)) != PTL_EQ_EMPTY) {
        CHECK(rc == PTL_OK || rc == PTL_EQ_DROPPED);
        CHECK(event.type == PTL_EVENT_PUT_END && event.hdr_data >= due);
        due = event.hdr_data + 1;
        dropped += rc == PTL_EQ_DROPPED;
        taken++;
    }
    CHECK(taken >= 3 && taken < SENT);
    for (i = 0; i < SENT; i++)
        CHECK(buffer[i] == 1);
    barrier();
    for (i = SENT; i < SENT + 2; i++) {
        OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, (ptl_hdr_data_t)i));
        still_well();
        rc = PtlEQWait(eq, &event);
        CHECK(rc == PTL_OK || rc == PTL_EQ_DROPPED);
        CHECK(event.hdr_data == (ptl_hdr_data_t)i);
        dropped += rc == PTL_EQ_DROPPED;
    }
    CHECK(dropped == 1);
    return finish("overflow");
}
