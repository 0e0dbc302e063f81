/* Match lists: order, match and ignore bits, match ids, entries that cannot accept a message. */
#include "check.h"

static char landed[8][8];
static ptl_handle_eq_t eq;

static ptl_md_t tagged(const char *tag, unsigned options) {
    ptl_md_t md = region(landed[0], sizeof landed, options | PTL_MD_MANAGE_REMOTE, eq);
    md.user_ptr = (void *)tag;
    return md;
}

static void lands(ptl_match_bits_t bits, const char *tag, ptl_event_kind_t kind) {
    ptl_event_t event = expect(eq, kind);
    CHECK(event.match_bits == bits);
    CHECK(strcmp(event.md.user_ptr, tag) == 0);
}

int main(void) {
    static const ptl_match_bits_t sent[] = {0x12, 0x13, 0x10, 0x99, 0x55};
    static const char *const found[] = {"exact", "low bits ignored", "low bits ignored", "friend", "rest"};
    ptl_process_id_t stranger = {PTL_NID_ANY, 4711};
    ptl_handle_me_t low, exact, last, between;
    ptl_handle_md_t exact_md, from;
    char data[8] = "payload";
    unsigned i;

    start();
    eq = queue(64);
    low = entry(PT, 0x10, 0xf);
    attach(low, tagged("low bits ignored", PTL_MD_OP_PUT), PTL_RETAIN);
    OK(PtlMEAttach(ni, PT, any_process, 0x12, 0, PTL_RETAIN, PTL_INS_BEFORE, &exact));
    exact_md = attach(exact, tagged("exact", PTL_MD_OP_PUT), PTL_RETAIN);
    OK(PtlMEAttach(ni, PT, stranger, 0, ~(ptl_match_bits_t)0, PTL_RETAIN, PTL_INS_AFTER, &between));
    attach(between, tagged("stranger", PTL_MD_OP_PUT), PTL_RETAIN);
    OK(PtlMEInsert(between, any_process, 0, ~(ptl_match_bits_t)0, PTL_RETAIN, PTL_INS_AFTER, &between));
    attach(entry(PT, 0, ~(ptl_match_bits_t)0), tagged("gets", PTL_MD_OP_GET), PTL_RETAIN);
    last = entry(PT, 0, ~(ptl_match_bits_t)0);
    attach(last, tagged("rest", PTL_MD_OP_PUT), PTL_RETAIN);
    OK(PtlMEInsert(last, prev, 0x99, 0, PTL_RETAIN, PTL_INS_BEFORE, &between));
    attach(between, tagged("friend", PTL_MD_OP_PUT), PTL_RETAIN);
    attach(entry(PT, 0x55, 0), tagged("too late", PTL_MD_OP_PUT), PTL_RETAIN);
    from = source(region(data, sizeof data, 0, PTL_EQ_NONE));
    barrier();

    for (i = 0; i < 5; i++)
        OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, sent[i], 8 * i, 0));
    OK(PtlGet(from, next, PT, 0, 0x55, 0));
    for (i = 0; i < 5; i++)
        lands(sent[i], found[i], PTL_EVENT_PUT_END);
    lands(0x55, "gets", PTL_EVENT_GET_END);
    expect_empty(eq);
    for (i = 0; i < 5; i++)
        CHECK(strcmp(landed[i], "payload") == 0);

    /* An unlinked entry is passed over; its descriptor is unlinked too. */
    OK(PtlMDUnlink(exact_md));
    OK(PtlMEUnlink(exact));
    RETURNS(PTL_ME_INVALID, PtlMEUnlink(exact));
    RETURNS(PTL_MD_INVALID, PtlMDUnlink(exact_md));
    barrier();
    OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0x12, 0, 0));
    lands(0x12, "low bits ignored", PTL_EVENT_PUT_END);
    {
        ptl_handle_md_t second;
        RETURNS(PTL_ME_IN_USE, PtlMDAttach(low, tagged("second", PTL_MD_OP_PUT), PTL_RETAIN, &second));
        RETURNS(PTL_ME_INVALID, PtlMDAttach(from, tagged("no entry", PTL_MD_OP_PUT), PTL_RETAIN, &second));
    }
    return finish("lists");
}
