/* Every limit: requested, returned, enforced; errors of calls that reach one. */
#include "check.h"

int main(void) {
    ptl_ni_limits_t asked;
    ptl_handle_me_t mes[64], me;
    ptl_handle_md_t mds[64], md_handle;
    ptl_handle_eq_t eqs[64], eq;
    ptl_pt_index_t pt;
    ptl_md_t md;
    char buffer[8];
    int i, count, rc;

    asked.max_mes = 12;
    asked.max_mds = 14;
    asked.max_eqs = 5;
    asked.max_ac_index = 3;
    asked.max_pt_index = 9;
    asked.max_md_iovecs = 4;
    asked.max_me_list = 6;
    asked.max_getput_md = 16;
    start_limited(&asked);
    CHECK(memcmp(&asked, &limits, sizeof asked) == 0);
    md = region(buffer, sizeof buffer, PTL_MD_OP_PUT, PTL_EQ_NONE);

    /* The idle queue of check.h is one of them. */
    for (count = 0; count < 64 && PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &eqs[count]) == PTL_OK; count++)
        ;
    CHECK(count == 4);
    RETURNS(PTL_NO_SPACE, PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &eq));
    OK(PtlEQFree(eqs[1]));
    OK(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &eqs[1]));
    OK(PtlEQFree(eqs[1]));
    RETURNS(PTL_NO_SPACE, PtlEQAlloc(ni, (ptl_size_t)1 << 40, PTL_EQ_HANDLER_NONE, &eq));
    RETURNS(PTL_NO_SPACE, PtlEQAlloc(ni, ~(ptl_size_t)0, PTL_EQ_HANDLER_NONE, &eq));
    OK(PtlEQAlloc(ni, 0, PTL_EQ_HANDLER_NONE, &eq));
    CHECK(eq == PTL_EQ_NONE);
    RETURNS(PTL_EQ_INVALID, PtlEQFree(PTL_EQ_NONE));

    for (count = 0; count < 64 && PtlMDBind(ni, md, PTL_RETAIN, &mds[count]) == PTL_OK; count++)
        ;
    CHECK(count == 14);
    RETURNS(PTL_NO_SPACE, PtlMDBind(ni, md, PTL_RETAIN, &md_handle));
    for (i = 0; i < count; i++)
        OK(PtlMDUnlink(mds[i]));

    /* Each list holds 6, all together 12. */
    for (count = 0; count < 64; count++) {
        rc = PtlMEAttach(ni, PT, any_process, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &mes[count]);
        if (rc != PTL_OK)
            break;
    }
    CHECK(count == 6 && rc == PTL_ME_LIST_TOO_LONG);
    RETURNS(PTL_ME_LIST_TOO_LONG, PtlMEInsert(mes[0], any_process, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &me));
    for (i = 6; i < 12; i++)
        OK(PtlMEAttach(ni, PT + 1, any_process, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &mes[i]));
    RETURNS(PTL_NO_SPACE, PtlMEAttach(ni, PT + 2, any_process, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
    for (i = 0; i < 12; i++)
        OK(PtlMEUnlink(mes[i]));
    for (count = 0; PtlMEAttachAny(ni, &pt, any_process, 0, 0, PTL_UNLINK, &me) == PTL_OK; count++) {
        CHECK(pt != PT && pt != PT + 1 && pt <= 9); /* used before */
        OK(PtlMEUnlink(me));
    }
    CHECK(count == 8);
    RETURNS(PTL_PT_FULL, PtlMEAttachAny(ni, &pt, any_process, 0, 0, PTL_UNLINK, &me));
    RETURNS(PTL_PT_INDEX_INVALID, PtlMEAttach(ni, 10, any_process, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
    OK(PtlMEAttach(ni, 9, any_process, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
    RETURNS(PTL_AC_INDEX_INVALID, PtlACEntry(ni, 4, any_process, PTL_UID_ANY, PTL_JID_ANY, 1));
    OK(PtlACEntry(ni, 3, any_process, PTL_UID_ANY, PTL_JID_ANY, 1));
    {
        ptl_md_iovec_t pieces[5];
        char bytes[17];
        ptl_handle_md_t get, put;
        for (i = 0; i < 5; i++)
            pieces[i].iov_base = buffer, pieces[i].iov_len = 1;
        RETURNS(PTL_MD_ILLEGAL, PtlMDAttach(me, region(pieces, 5, PTL_MD_IOVEC, PTL_EQ_NONE), PTL_RETAIN, &md_handle));
        OK(PtlMDAttach(me, region(pieces, 4, PTL_MD_IOVEC, PTL_EQ_NONE), PTL_RETAIN, &md_handle));
        get = source(region(bytes, 17, 0, PTL_EQ_NONE));
        put = source(region(bytes, 17, 0, PTL_EQ_NONE));
        RETURNS(PTL_MD_ILLEGAL, PtlGetPut(get, put, next, PT, 0, 0, 0, 0));
    }

    /* Values outside the enumerations, null pointers, processes that do not exist. */
    RETURNS(PTL_FAIL, PtlMEAttach(ni, PT, any_process, 0, 0, (ptl_unlink_t)2, PTL_INS_AFTER, &me));
    RETURNS(PTL_FAIL, PtlMEAttach(ni, PT, any_process, 0, 0, PTL_RETAIN, (ptl_ins_pos_t)2, &me));
    RETURNS(PTL_FAIL, PtlMDBind(ni, md, (ptl_unlink_t)3, &md_handle));
    RETURNS(PTL_SEGV, PtlMEAttach(ni, PT, any_process, 0, 0, PTL_RETAIN, PTL_INS_AFTER, NULL));
    RETURNS(PTL_SEGV, PtlMEAttachAny(ni, NULL, any_process, 0, 0, PTL_RETAIN, &me));
    RETURNS(PTL_SEGV, PtlMEInsert(me, any_process, 0, 0, PTL_RETAIN, PTL_INS_AFTER, NULL));
    RETURNS(PTL_SEGV, PtlMDBind(ni, md, PTL_RETAIN, NULL));
    RETURNS(PTL_SEGV, PtlMDAttach(me, md, PTL_RETAIN, NULL));
    RETURNS(PTL_SEGV, PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, NULL));
    md.options |= 0x200;
    RETURNS(PTL_MD_ILLEGAL, PtlMDBind(ni, md, PTL_RETAIN, &md_handle));
    md = region(buffer, sizeof buffer, 0, PTL_EQ_NONE);
    md.eq_handle = eqs[1];
    RETURNS(PTL_EQ_INVALID, PtlMDBind(ni, md, PTL_RETAIN, &md_handle));
    md.eq_handle = PTL_EQ_NONE;
    OK(PtlMDBind(ni, md, PTL_RETAIN, &md_handle));
    {
        ptl_process_id_t absent = self;
        unsigned long distance = 77;
        unsigned int properties;
        const char *attach = getenv("PTL_ATTACH");
        absent.pid += size;
        RETURNS(PTL_PROCESS_INVALID, PtlPut(md_handle, PTL_NO_ACK_REQ, absent, PT, 0, 0, 0, 0));
        RETURNS(PTL_PROCESS_INVALID, PtlGet(md_handle, absent, PT, 0, 0, 0));
        RETURNS(PTL_PROCESS_INVALID, PtlNIDist(ni, absent, &distance));
        RETURNS(PTL_PROCESS_INVALID, PtlPut(md_handle, PTL_NO_ACK_REQ, any_process, PT, 0, 0, 0, 0));
        OK(PtlNIDist(ni, self, &distance));
        RETURNS(PTL_SEGV, PtlNIProperties(ni, NULL));
        RETURNS(PTL_NI_INVALID, PtlNIProperties(PTL_INVALID_HANDLE, &properties));
        OK(PtlNIProperties(ni, &properties));
        CHECK(properties & PTL_NI_THREAD_SAFE);
        if (attach != NULL && *attach == '0')
            CHECK(size == 1 || !(properties & PTL_NI_APPLICATION_BYPASS));
        CHECK(distance == 0);
    }
    RETURNS(PTL_FAIL, PtlPut(md_handle, (ptl_ack_req_t)2, next, PT, 0, 0, 0, 0));
    return finish("limits");
}
