/* PtlEQPoll: order of the queues, time limits, bad queues. */
#include "check.h"

int main(void) {
    ptl_handle_eq_t eqs[10];
    ptl_handle_md_t from;
    ptl_event_t event;
    char buffer[8], data[1] = {1};
    double begin;
    int which = -1, i;

    start();
    marks_begin();
    for (i = 0; i < 10; i++)
        eqs[i] = queue(8);
    attach(entry(PT, 3, 0), region(buffer, sizeof buffer, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eqs[3]), PTL_RETAIN);
    attach(entry(PT, 9, 0), region(buffer, sizeof buffer, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eqs[9]), PTL_RETAIN);
    from = source(region(data, sizeof data, 0, PTL_EQ_NONE));
    RETURNS(PTL_EQ_EMPTY, PtlEQPoll(eqs, 10, 0, &event, &which));
    begin = seconds();
    RETURNS(PTL_EQ_EMPTY, PtlEQPoll(eqs, 10, 20, &event, &which));
    CHECK(seconds() - begin >= 0.019);
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 9, 0, 0));
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 3, 0, 0));
    mark();
    await_mark();
    OK(PtlEQPoll(eqs, 10, PTL_TIME_FOREVER, &event, &which));
    CHECK(which == 3 && event.match_bits == 3);
    OK(PtlEQPoll(eqs, 10, 1000, &event, &which));
    CHECK(which == 9 && event.match_bits == 9);
    RETURNS(PTL_EQ_EMPTY, PtlEQPoll(eqs + 2, 3, 0, &event, &which));
    OK(PtlEQFree(eqs[5]));
    RETURNS(PTL_EQ_INVALID, PtlEQPoll(eqs, 10, 0, &event, &which));
    RETURNS(PTL_EQ_INVALID, PtlEQPoll(eqs, 0, 0, &event, &which));
    RETURNS(PTL_EQ_INVALID, PtlEQPoll(&from, 1, 0, &event, &which));
    RETURNS(PTL_SEGV, PtlEQPoll(NULL, 1, 0, &event, &which));
    RETURNS(PTL_SEGV, PtlEQPoll(eqs, 1, 0, &event, NULL));
    RETURNS(PTL_SEGV, PtlEQGet(eqs[0], NULL));
    RETURNS(PTL_SEGV, PtlEQWait(eqs[0], NULL));
    return finish("poll");
}
