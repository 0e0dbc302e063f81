/* The drop count: exactly the messages that no descriptor accepts; what the initiator sees. */
#include "check.h"

int main(void) {
    ptl_handle_eq_t own_eq;
    ptl_handle_md_t from;
    ptl_sr_value_t before, value;
    char buffer[8], data[16];

    start();
    marks_begin();
    own_eq = queue(64);
    attach(entry(PT, 1, 0), region(buffer, sizeof buffer, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE), PTL_RETAIN);
    from = source(region(data, sizeof data, 0, own_eq));
    before = drops();
    CHECK(before == 0);
    barrier();
    mark();
    await_mark();
    CHECK(drops() == 0);
    barrier();
    OK(PtlPut(from, PTL_ACK_REQ, next, PT, 0, 2, 0, 0)); /* no match */
    OK(PtlPut(from, PTL_ACK_REQ, next, PT, 0, 1, 0, 0)); /* no room */
    OK(PtlPut(from, PTL_ACK_REQ, next, PT + 10, 0, 1, 0, 0)); /* empty list */
    /* no such entry */
    OK(PtlPut(from, PTL_ACK_REQ, next, (ptl_pt_index_t)limits.max_pt_index + 1, 0, 1, 0, 0));
    /* no such index */
    OK(PtlPut(from, PTL_ACK_REQ, next, PT, (ptl_ac_index_t)limits.max_ac_index + 1, 1, 0, 0));
    OK(PtlGet(from, next, PT, 0, 1, 0)); /* puts only */
    mark();
    await_mark();
    CHECK(drops() == 6);
    /* SEND events of a dropped put are posted; no acknowledgement, and no event of the get. */
    expect(own_eq, PTL_EVENT_SEND_END);
    expect(own_eq, PTL_EVENT_SEND_END);
    expect(own_eq, PTL_EVENT_SEND_END);
    expect(own_eq, PTL_EVENT_SEND_END);
    expect(own_eq, PTL_EVENT_SEND_END);
    barrier();
    expect_empty(own_eq);
    RETURNS(PTL_SR_INDEX_INVALID, PtlNIStatus(ni, 1000, &value));
    RETURNS(PTL_SEGV, PtlNIStatus(ni, PTL_SR_DROP_COUNT, NULL));
    RETURNS(PTL_NI_INVALID, PtlNIStatus(from, PTL_SR_DROP_COUNT, &value));
    return finish("drops");
}
