/* Scattered descriptors, and regions of descriptors. */
#include "check.h"

int main(void) {
    ptl_handle_eq_t eq, own_eq;
    ptl_handle_md_t from, refused;
    ptl_md_iovec_t pieces[17], sources[2];
    ptl_event_t event;
    ptl_md_t md;
    char a[10], b[20], c[30], head[25], tail[35];
    int i;

    start();
    CHECK(limits.max_md_iovecs >= 3);
    eq = queue(16);
    own_eq = queue(16);
    pieces[0].iov_base = a, pieces[0].iov_len = sizeof a;
    pieces[1].iov_base = b, pieces[1].iov_len = sizeof b;
    pieces[2].iov_base = c, pieces[2].iov_len = sizeof c;
    sources[0].iov_base = head, sources[0].iov_len = sizeof head;
    sources[1].iov_base = tail, sources[1].iov_len = sizeof tail;
    for (i = 0; i < 60; i++)
        *(i < 25 ? head + i : tail + i - 25) = (char)(i + (int)rank);
    memset(a, 'z', sizeof a);
    memset(b, 'z', sizeof b);
    memset(c, 'z', sizeof c);
    target(PT, region(pieces, 3, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_IOVEC, eq));
    from = source(region(sources, 2, PTL_MD_IOVEC, own_eq));
    memset(sources, 0, sizeof sources); /* the vector was copied */
    barrier();
    OK(PtlPutRegion(from, 20, 30, PTL_ACK_REQ, next, PT, 0, 0, 5, 0));
    event = expect(eq, PTL_EVENT_PUT_END);
    CHECK(event.offset == 5 && event.mlength == 30);
    for (i = 0; i < 60; i++) {
        char *byte = i < 10 ? a + i : i < 30 ? b + i - 10 : c + i - 30;
        CHECK(*byte == (i >= 5 && i < 35 ? (char)(i + 15 + (int)((rank + size - 1) % size)) : 'z'));
    }
    expect(own_eq, PTL_EVENT_SEND_END);
    CHECK(expect(own_eq, PTL_EVENT_ACK).mlength == 30);
    RETURNS(PTL_MD_ILLEGAL, PtlPutRegion(from, 31, 30, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 0));
    RETURNS(PTL_MD_ILLEGAL, PtlGetRegion(from, ~(ptl_size_t)0, 2, next, PT, 0, 0, 0));

    for (i = 0; i < 17; i++)
        pieces[i].iov_base = a, pieces[i].iov_len = 1;
    if (limits.max_md_iovecs <= 16) {
        md = region(pieces, (ptl_size_t)limits.max_md_iovecs + 1, PTL_MD_IOVEC, PTL_EQ_NONE);
        RETURNS(PTL_MD_ILLEGAL, PtlMDBind(ni, md, PTL_RETAIN, &refused));
    }
    md = region(NULL, 8, 0, PTL_EQ_NONE);
    RETURNS(PTL_MD_ILLEGAL, PtlMDBind(ni, md, PTL_RETAIN, &refused));
    return finish("iovec");
}
