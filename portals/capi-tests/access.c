/* Access control: which processes an entry admits to which portal table entry. */
#include "check.h"

static ptl_handle_md_t from;

static void sends(ptl_ac_index_t ac) { OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, ac, 0, 0, ac)); }

int main(void) {
    ptl_process_id_t stranger = {PTL_NID_ANY, 4711};
    ptl_handle_eq_t eq;
    ptl_sr_value_t before;
    ptl_uid_t uid;
    ptl_jid_t jid;
    char buffer[8], data[1] = {1};

    start();
    marks_begin();
    OK(PtlGetUid(ni, &uid));
    OK(PtlGetJid(ni, &jid));
    CHECK(limits.max_ac_index >= 6);
    eq = queue(64);
    target(PT, region(buffer, sizeof buffer, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq));
    from = source(region(data, sizeof data, 0, PTL_EQ_NONE));
    OK(PtlACEntry(ni, 1, prev, uid, jid, PT));
    OK(PtlACEntry(ni, 2, stranger, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
    OK(PtlACEntry(ni, 3, any_process, uid + 1, PTL_JID_ANY, PTL_PT_INDEX_ANY));
    OK(PtlACEntry(ni, 4, any_process, PTL_UID_ANY, jid + 1, PTL_PT_INDEX_ANY));
    OK(PtlACEntry(ni, 5, any_process, PTL_UID_ANY, PTL_JID_ANY, PT + 1));
    OK(PtlACEntry(ni, 6, any_process, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
    before = drops();
    barrier();
    sends(0);
    sends(1);
    sends(2);
    sends(3);
    sends(4);
    sends(5);
    sends(6);
    mark();
    await_mark();
    CHECK(expect(eq, PTL_EVENT_PUT_END).hdr_data == 0);
    CHECK(expect(eq, PTL_EVENT_PUT_END).hdr_data == 1);
    CHECK(expect(eq, PTL_EVENT_PUT_END).hdr_data == 6);
    expect_empty(eq);
    CHECK(drops() - before == 4);
    /* An entry can be changed. */
    OK(PtlACEntry(ni, 2, prev, PTL_UID_ANY, PTL_JID_ANY, PT));
    barrier();
    sends(2);
    CHECK(expect(eq, PTL_EVENT_PUT_END).hdr_data == 2);

    RETURNS(PTL_AC_INDEX_INVALID, PtlACEntry(ni, (ptl_ac_index_t)limits.max_ac_index + 1, prev, uid, jid, PT));
    RETURNS(PTL_PT_INDEX_INVALID, PtlACEntry(ni, 1, prev, uid, jid, (ptl_pt_index_t)limits.max_pt_index + 1));
    RETURNS(PTL_NI_INVALID, PtlACEntry(PTL_INVALID_HANDLE, 1, prev, uid, jid, PT));
    return finish("access");
}
