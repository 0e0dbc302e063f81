/* PTL_MD_MAX_SIZE: a descriptor with less room than max_size accepts no more messages, and unlinks
 * itself if it may. */
#include "check.h"

int main(void) {
    ptl_handle_eq_t eq;
    ptl_handle_md_t from, into;
    ptl_event_t event;
    ptl_sr_value_t before;
    ptl_md_t md;
    char buffer[256], data[100];
    int i;

    start();
    marks_begin();
    eq = queue(64);
    memset(buffer, 0, sizeof buffer);
    memset(data, (int)rank + 1, sizeof data);
    md = region(buffer, sizeof buffer, PTL_MD_OP_PUT | PTL_MD_MAX_SIZE, eq);
    md.max_size = 128;
    into = attach(entry(PT, 0, 0), md, PTL_UNLINK);
    from = source(region(data, sizeof data, 0, PTL_EQ_NONE));
    before = drops();
    barrier();
    for (i = 0; i < 4; i++)
        OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 0));
    mark();
    await_mark();
    for (i = 0; i < 2; i++) {
        event = expect(eq, PTL_EVENT_PUT_END);
        CHECK(event.offset == (ptl_size_t)(100 * i) && event.mlength == 100);
    }
    event = expect(eq, PTL_EVENT_UNLINK);
    CHECK(event.md_handle == into);
    expect_empty(eq);
    CHECK(drops() - before == 2);
    for (i = 0; i < 256; i++)
        CHECK(buffer[i] == (i < 200 ? (char)((rank + size - 1) % size + 1) : 0));
    RETURNS(PTL_MD_INVALID, PtlMDUnlink(into));
    return finish("maxsize");
}
