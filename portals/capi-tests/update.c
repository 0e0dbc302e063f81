/* PtlMDUpdate: reads, replaces, refuses while the queue is not empty, revives a descriptor. */
#include "check.h"

int main(void) {
    ptl_handle_eq_t eq, other;
    ptl_handle_md_t from, into;
    ptl_md_t md, old;
    char first[16], second[16], data[8] = "updated";

    start();
    eq = queue(64);
    other = queue(4);
    memset(first, 0, sizeof first);
    memset(second, 0, sizeof second);
    md = region(first, sizeof first, PTL_MD_OP_PUT, eq);
    md.threshold = 1;
    md.user_ptr = first;
    into = target(PT, md);
    from = source(region(data, sizeof data, 0, PTL_EQ_NONE));

    OK(PtlMDUpdate(into, &old, NULL, PTL_EQ_NONE));
    CHECK(old.start == first && old.length == 16 && old.threshold == 1 && old.user_ptr == first && old.eq_handle == eq);
    CHECK(old.options == md.options);
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 0));
    still_well();
    barrier();
    while (first[0] == 0) { /* the event is posted now, or about to be */
        ptl_event_t none;
        (void)PtlEQGet(idle_eq, &none);
    }
    /* Refused while the event is unread; the old state is returned nevertheless. */
    md.start = second;
    md.length = 8;
    md.user_ptr = second;
    memset(&old, 0, sizeof old);
    RETURNS(PTL_MD_NO_UPDATE, PtlMDUpdate(into, &old, &md, eq));
    CHECK(old.start == first && old.threshold == 0);
    RETURNS(PTL_EQ_INVALID, PtlMDUpdate(into, NULL, &md, PTL_INVALID_HANDLE));
    CHECK(expect(eq, PTL_EVENT_PUT_END).md.user_ptr == first);
    OK(PtlMDUpdate(into, &old, &md, eq));
    OK(PtlMDUpdate(into, &old, NULL, PTL_EQ_NONE));
    CHECK(old.start == second && old.length == 8 && old.threshold == 1);
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 0));
    CHECK(expect(eq, PTL_EVENT_PUT_END).md.user_ptr == second);
    CHECK(strcmp(second, "updated") == 0);
    barrier();
    /* Unconditional, onto another queue. */
    md.eq_handle = other;
    OK(PtlMDUpdate(into, NULL, &md, PTL_EQ_NONE));
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 0));
    CHECK(expect(other, PTL_EVENT_PUT_END).offset == 0);
    expect_empty(eq);
    md.options |= 0x80000000U;
    RETURNS(PTL_MD_ILLEGAL, PtlMDUpdate(into, NULL, &md, PTL_EQ_NONE));
    RETURNS(PTL_MD_INVALID, PtlMDUpdate(eq, &old, NULL, PTL_EQ_NONE));
    return finish("update");
}
