/* A queue's handler runs once with every event, and may make calls itself. */
#include "check.h"

static int runs;
static ptl_hdr_data_t seen;
static ptl_handle_ni_t asked;

static void handle(ptl_event_t *event) {
    runs++;
    seen += event->hdr_data;
    OK(PtlNIHandle(event->md_handle, &asked));
}

int main(void) {
    ptl_handle_eq_t eq, plain;
    ptl_handle_md_t from;
    ptl_event_t event;
    char buffer[8], data[1] = {1};
    int which;

    start();
    OK(PtlEQAlloc(ni, 16, handle, &eq));
    target(PT, region(buffer, sizeof buffer, PTL_MD_OP_PUT, eq));
    from = source(region(data, sizeof data, 0, PTL_EQ_NONE));
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 1));
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 10));
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 100));
    still_well();
    OK(PtlEQWait(eq, &event));
    OK(PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &event, &which));
    while (PtlEQGet(eq, &event) == PTL_EQ_EMPTY)
        sched_yield();
    CHECK(runs == 3 && seen == 111 && asked == ni);
    expect_empty(eq);
    CHECK(runs == 3);
    /* A queue that reuses its index has none. */
    barrier();
    OK(PtlEQFree(eq));
    RETURNS(PTL_EQ_INVALID, PtlEQFree(eq));
    RETURNS(PTL_EQ_INVALID, PtlEQGet(eq, &event));
    plain = queue(16);
    target(PT + 1, region(buffer, sizeof buffer, PTL_MD_OP_PUT, plain));
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT + 1, 0, 0, 0, 1000));
    expect(plain, PTL_EVENT_PUT_END);
    CHECK(runs == 3);
    return finish("handler");
}
