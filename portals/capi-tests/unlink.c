/* PTL_UNLINK: one UNLINK event after the last END; entries and descriptors that are unlinked with
 * each other; PtlMDUnlink posts no event. */
#include "check.h"

int main(void) {
    ptl_handle_eq_t eq;
    ptl_handle_me_t me, kept;
    ptl_handle_md_t from, into;
    ptl_handle_ni_t found;
    ptl_event_t event;
    ptl_md_t md;
    char buffer[64], data[8] = "unlink!";

    start();
    eq = queue(64);
    md = region(buffer, sizeof buffer, PTL_MD_OP_PUT, eq);
    md.threshold = 2;
    OK(PtlMEAttach(ni, PT, any_process, 1, 0, PTL_UNLINK, PTL_INS_AFTER, &me));
    into = attach(me, md, PTL_UNLINK);
    from = source(region(data, sizeof data, 0, PTL_EQ_NONE));
    OK(PtlNIHandle(me, &found));
    OK(PtlNIHandle(into, &found));
    CHECK(found == ni);
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 1, 0, 7));
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 1, 0, 8));
    CHECK(expect(eq, PTL_EVENT_PUT_END).hdr_data == 7);
    CHECK(expect(eq, PTL_EVENT_PUT_END).hdr_data == 8);
    event = expect(eq, PTL_EVENT_UNLINK);
    CHECK(event.md_handle == into && event.md.threshold == 0);
    expect_empty(eq);
    RETURNS(PTL_MD_INVALID, PtlMDUnlink(into));
    RETURNS(PTL_ME_INVALID, PtlMEUnlink(me));
    RETURNS(PTL_HANDLE_INVALID, PtlNIHandle(me, &found));
    RETURNS(PTL_HANDLE_INVALID, PtlNIHandle(into, &found));
    barrier();

    /* An entry that is retained can get another descriptor. */
    kept = entry(PT, 2, 0);
    md.threshold = 1;
    attach(kept, md, PTL_UNLINK);
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 2, 0, 0));
    expect(eq, PTL_EVENT_PUT_END);
    expect(eq, PTL_EVENT_UNLINK);
    into = attach(kept, md, PTL_RETAIN);
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 2, 0, 0));
    expect(eq, PTL_EVENT_PUT_END);
    expect_empty(eq);
    OK(PtlMDUnlink(into));
    expect_empty(eq);

    /* A descriptor attached with PTL_UNLINK is unlinked with its entry. */
    md.threshold = PTL_MD_THRESH_INF;
    into = attach(kept, md, PTL_UNLINK);
    OK(PtlMEUnlink(kept));
    RETURNS(PTL_MD_INVALID, PtlMDUnlink(into));
    OK(PtlMDUnlink(from));
    RETURNS(PTL_MD_INVALID, PtlMDUnlink(from));
    RETURNS(PTL_MD_INVALID, PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 2, 0, 0));
    return finish("unlink");
}
