/* Events: pairs of START and END, links, content, and the options that suppress them. */
#include "check.h"

static void pair(ptl_handle_eq_t eq, ptl_event_kind_t first, ptl_event_kind_t last, ptl_event_t *end) {
    ptl_event_t begin = expect(eq, first);
    *end = expect(eq, last);
    CHECK(end->link == begin.sequence);
    CHECK(begin.match_bits == end->match_bits && begin.md_handle == end->md_handle);
}

static void check_event(const ptl_event_t *event, ptl_process_id_t initiator, ptl_size_t rlength, ptl_size_t mlength, ptl_size_t offset) {
    CHECK(event->initiator.nid == initiator.nid && event->initiator.pid == initiator.pid);
    CHECK(event->rlength == rlength && event->mlength == mlength);
    CHECK(event->offset == offset);
    CHECK(event->match_bits == 0xabcd);
}

int main(void) {
    ptl_handle_eq_t eq, own_eq;
    ptl_handle_md_t from, into;
    ptl_handle_me_t me;
    ptl_event_t event;
    ptl_uid_t uid;
    ptl_jid_t jid;
    ptl_md_t md;
    char buffer[64], data[16];
    int i;

    start();
    OK(PtlGetUid(ni, &uid));
    OK(PtlGetJid(ni, &jid));
    eq = queue(64);
    own_eq = queue(64);
    memset(buffer, 'b', sizeof buffer);
    for (i = 0; i < 16; i++)
        data[i] = (char)(i + (int)rank);
    md = region(buffer, sizeof buffer, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE, eq);
    md.options &= ~PTL_MD_EVENT_START_DISABLE;
    md.user_ptr = &eq;
    me = entry(PT, 0xab00, 0xff);
    into = attach(me, md, PTL_RETAIN);
    md = region(data, sizeof data, 0, own_eq);
    md.options &= ~PTL_MD_EVENT_START_DISABLE;
    from = source(md);
    barrier();

    /* Offset 56 leaves room for 8 of the 16 bytes. */
    OK(PtlPut(from, PTL_ACK_REQ, next, PT, 0, 0xabcd, 56, 0x123456789abcdefULL));
    pair(eq, PTL_EVENT_PUT_START, PTL_EVENT_PUT_END, &event);
    check_event(&event, prev, 16, 8, 56);
    CHECK(event.hdr_data == 0x123456789abcdefULL && event.pt_index == PT);
    CHECK(event.uid == uid && event.jid == jid);
    CHECK(event.md_handle == into && event.md.start == buffer && event.md.length == 64 && event.md.user_ptr == &eq);
    CHECK(event.md.eq_handle == eq && event.md.threshold == PTL_MD_THRESH_INF);
    for (i = 0; i < 8; i++)
        CHECK(buffer[56 + i] == (char)(i + (int)((rank + size - 1) % size)) && buffer[48 + i] == 'b');
    pair(own_eq, PTL_EVENT_SEND_START, PTL_EVENT_SEND_END, &event);
    CHECK(event.md_handle == from && event.match_bits == 0xabcd);
    event = expect(own_eq, PTL_EVENT_ACK);
    check_event(&event, next, 16, 8, 56);
    CHECK(event.md_handle == from);
    expect_empty(eq);
    expect_empty(own_eq);
    barrier();

    OK(PtlGet(from, next, PT, 0, 0xabcd, 48));
    pair(eq, PTL_EVENT_GET_START, PTL_EVENT_GET_END, &event);
    check_event(&event, prev, 16, 16, 48);
    pair(own_eq, PTL_EVENT_REPLY_START, PTL_EVENT_REPLY_END, &event);
    check_event(&event, next, 16, 16, 0);
    CHECK(data[0] == 'b' && data[7] == 'b');
    for (i = 8; i < 16; i++)
        CHECK(data[i] == (char)(i - 8 + (int)rank));
    expect_empty(eq);
    expect_empty(own_eq);
    OK(PtlMDUnlink(from));
    OK(PtlMDUnlink(into));

    /* Suppressed events. */
    md = region(buffer, sizeof buffer, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_ACK_DISABLE, eq);
    into = attach(me, md, PTL_RETAIN);
    from = source(region(data, sizeof data, 0, own_eq));
    barrier();
    OK(PtlPut(from, PTL_ACK_REQ, next, PT, 0, 0xabcd, 0, 0));
    expect(eq, PTL_EVENT_PUT_END);
    expect(own_eq, PTL_EVENT_SEND_END);
    barrier();
    expect_empty(own_eq); /* ACK_DISABLE */
    expect_empty(eq);
    OK(PtlMDUnlink(into));
    md.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_END_DISABLE;
    attach(me, md, PTL_RETAIN);
    barrier();
    OK(PtlPut(from, PTL_ACK_REQ, next, PT, 0, 0xabcd, 0, 0));
    expect(own_eq, PTL_EVENT_SEND_END);
    expect(own_eq, PTL_EVENT_ACK);
    expect(eq, PTL_EVENT_PUT_START);
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0xabcd, 0, 0));
    expect(own_eq, PTL_EVENT_SEND_END);
    expect(eq, PTL_EVENT_PUT_START);
    expect_empty(eq);
    expect_empty(own_eq);
    return finish("events");
}
