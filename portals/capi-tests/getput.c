/* PtlGetPut: swaps up to max_getput_md bytes; its events; its errors. */
#include "check.h"

int main(void) {
    ptl_handle_eq_t eq, own_eq;
    ptl_handle_md_t get, put, short_get, long_put;
    ptl_event_t event;
    char buffer[128], fetched[65], sent[65];
    int length, i;

    start();
    CHECK(limits.max_getput_md >= 8);
    length = limits.max_getput_md > 64 ? 64 : limits.max_getput_md;
    eq = queue(64);
    own_eq = queue(64);
    memset(buffer, 't', sizeof buffer);
    memset(fetched, 0, sizeof fetched);
    memset(sent, 's', sizeof sent);
    target(PT, region(buffer, sizeof buffer, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, eq));
    get = source(region(fetched, (ptl_size_t)length, 0, own_eq));
    put = source(region(sent, (ptl_size_t)length, 0, own_eq));
    barrier();
    OK(PtlGetPut(get, put, next, PT, 0, 5, 32, 0x77));
    event = expect(eq, PTL_EVENT_GETPUT_END);
    CHECK(event.initiator.pid == prev.pid && event.offset == 32 && event.mlength == (ptl_size_t)length);
    CHECK(event.hdr_data == 0x77 && event.match_bits == 5);
    event = expect(own_eq, PTL_EVENT_SEND_END);
    CHECK(event.md_handle == put);
    event = expect(own_eq, PTL_EVENT_REPLY_END);
    CHECK(event.md_handle == get && event.mlength == (ptl_size_t)length && event.initiator.pid == next.pid);
    for (i = 0; i < 128; i++)
        CHECK(buffer[i] == (i >= 32 && i < 32 + length ? 's' : 't'));
    for (i = 0; i < length; i++)
        CHECK(fetched[i] == 't');
    CHECK(fetched[length] == 0);

    short_get = source(region(fetched, (ptl_size_t)length - 1, 0, own_eq));
    RETURNS(PTL_MD_ILLEGAL, PtlGetPut(short_get, put, next, PT, 0, 5, 0, 0));
    if (limits.max_getput_md == 64) {
        long_put = source(region(sent, 65, 0, own_eq));
        RETURNS(PTL_MD_ILLEGAL, PtlGetPut(get, long_put, next, PT, 0, 5, 0, 0));
    }
    RETURNS(PTL_MD_INVALID, PtlGetPut(eq, put, next, PT, 0, 5, 0, 0));
    RETURNS(PTL_MD_INVALID, PtlGetPut(get, PTL_INVALID_HANDLE, next, PT, 0, 5, 0, 0));
    expect_empty(own_eq);
    return finish("getput");
}
