/* Thresholds: each operation takes one, at 0 the descriptor accepts no more; an acknowledgement
 * counts, issuing a get does not. */
#include "check.h"

int main(void) {
    ptl_handle_eq_t eq, own_eq;
    ptl_handle_md_t from;
    ptl_event_t event;
    ptl_md_t md;
    char first[64], second[64], data[8] = "1234567";
    int i;

    start();
    eq = queue(64);
    own_eq = queue(64);
    memset(first, 0, sizeof first);
    memset(second, 0, sizeof second);
    md = region(first, sizeof first, PTL_MD_OP_PUT, eq);
    md.threshold = 3;
    md.user_ptr = first;
    target(PT, md);
    md = region(second, sizeof second, PTL_MD_OP_PUT | PTL_MD_OP_GET, eq);
    md.user_ptr = second;
    target(PT, md);
    from = source(region(data, sizeof data, 0, PTL_EQ_NONE));
    barrier();
    for (i = 0; i < 5; i++)
        OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, (ptl_hdr_data_t)i));
    for (i = 0; i < 5; i++) {
        event = expect(eq, PTL_EVENT_PUT_END);
        CHECK(event.hdr_data == (ptl_hdr_data_t)i);
        CHECK(event.md.user_ptr == (i < 3 ? first : second));
        CHECK(event.md.threshold == (i < 3 ? 2 - i : PTL_MD_THRESH_INF)); /* already counted */
        CHECK(event.offset == (ptl_size_t)(8 * (i % 3)));
    }
    CHECK(memcmp(first, second, 8) == 0 && first[24] == 0);
    OK(PtlMDUnlink(from));

    /* A put with an acknowledgement takes two. */
    md = region(data, sizeof data, 0, own_eq);
    md.threshold = 2;
    from = source(md);
    OK(PtlPut(from, PTL_ACK_REQ, next, PT, 0, 0, 0, 0));
    event = expect(own_eq, PTL_EVENT_SEND_END);
    CHECK(event.md.threshold >= 0 && event.md.threshold <= 1);
    event = expect(own_eq, PTL_EVENT_ACK);
    CHECK(event.md.threshold == 0);
    CHECK(PtlPut(from, PTL_ACK_REQ, next, PT, 0, 0, 0, 0) != PTL_OK);
    OK(PtlMDUnlink(from));

    /* The reply takes one. */
    md.threshold = 1;
    from = source(md);
    OK(PtlGet(from, next, PT, 0, 0, 0));
    event = expect(own_eq, PTL_EVENT_REPLY_END);
    CHECK(event.md.threshold == 0 && event.mlength == 8);
    CHECK(PtlGet(from, next, PT, 0, 0, 0) != PTL_OK);
    OK(PtlMDUnlink(from));

    md.threshold = -2;
    RETURNS(PTL_MD_ILLEGAL, PtlMDBind(ni, md, PTL_RETAIN, &from));
    return finish("threshold");
}
