/* PtlMDUpdate: reads, replaces, refuses while the queue is not empty or a reply is to come,
 * revives a descriptor. */
#include "check.h"

#define PT_GET 6

int main(void) {
    ptl_handle_eq_t eq, other;
    ptl_handle_md_t from, into;
    ptl_md_t md, old;
    char first[16], second[16], third[16], data[8] = "updated";
    int rc;

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
    /* A reply ends in the memory for which it was requested. */
    md = region(second, sizeof second, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
    memcpy(second, data, sizeof data);
    (void)target(PT_GET, md);
    memset(first, 0, sizeof first);
    memset(third, 0, sizeof third);
    md = region(first, sizeof first, 0, eq);
    from = source(md);
    barrier();
    OK(PtlGet(from, next, PT_GET, 0, 0, 0));
    md.start = third;
    RETURNS(PTL_MD_NO_UPDATE, PtlMDUpdate(from, NULL, &md, eq));
    (void)expect(eq, PTL_EVENT_REPLY_END);
    CHECK(strcmp(first, "updated") == 0 && third[0] == 0);
    OK(PtlMDUpdate(from, NULL, &md, eq));
    /* A get that is dropped has no reply, and holds up no update once its target knows. */
    OK(PtlGet(from, next, PT_MARK, 0, 0, 0));
    while ((rc = PtlMDUpdate(from, NULL, &md, PTL_EQ_NONE)) == PTL_MD_NO_UPDATE)
        expect_empty(idle_eq);
    CHECK(rc == PTL_OK);
    return finish("update");
}
