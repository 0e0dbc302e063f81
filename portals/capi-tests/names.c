/* Names of errors, events and failures; the spellings of Cray's header. */
#define PORTALS3_CRAY_SPELLINGS 1
#include "check.h"

#define NAMED(value) CHECK(strcmp(PtlErrorStr(value), #value) == 0 && strcmp(ptl_err_str[value], #value) == 0)
#define EVENT(value) CHECK(strcmp(PtlEventKindStr(value), #value) == 0 && strcmp(ptl_event_str[value], #value) == 0)

int main(void) {
    ptl_handle_ni_t handle;
    ptl_handle_md_t from;
    ptl_handle_eq_t eq;
    char buffer[8], data[8] = "cray";

    start();
    NAMED(PTL_OK);
    NAMED(PTL_AC_INDEX_INVALID);
    NAMED(PTL_EQ_DROPPED);
    NAMED(PTL_EQ_EMPTY);
    NAMED(PTL_EQ_INVALID);
    NAMED(PTL_FAIL);
    NAMED(PTL_HANDLE_INVALID);
    NAMED(PTL_IFACE_INVALID);
    NAMED(PTL_MD_ILLEGAL);
    NAMED(PTL_MD_INVALID);
    NAMED(PTL_MD_IN_USE);
    NAMED(PTL_MD_NO_UPDATE);
    NAMED(PTL_ME_INVALID);
    NAMED(PTL_ME_IN_USE);
    NAMED(PTL_ME_LIST_TOO_LONG);
    NAMED(PTL_NI_INVALID);
    NAMED(PTL_NO_INIT);
    NAMED(PTL_NO_SPACE);
    NAMED(PTL_PID_INVALID);
    NAMED(PTL_PROCESS_INVALID);
    NAMED(PTL_PT_FULL);
    NAMED(PTL_PT_INDEX_INVALID);
    NAMED(PTL_SEGV);
    NAMED(PTL_SR_INDEX_INVALID);
    NAMED(PTL_UNKNOWN_ERROR);
    CHECK(strcmp(PtlErrorStr(PTL_IFACE_DUP), "PTL_IFACE_DUP") == 0);
    CHECK(strcmp(ptl_err_str[PTL_VAL_FAILED], "PTL_VAL_FAILED") == 0);
    CHECK(strcmp(ptl_err_str[PTL_EQ_IN_USE], "PTL_EQ_IN_USE") == 0);
    CHECK(strcmp(ptl_err_str[PTL_NAL_FAILED], "PTL_NAL_FAILED") == 0);
    CHECK(strcmp(ptl_err_str[PTL_IOV_TOO_MANY], "PTL_IOV_TOO_MANY") == 0);
    CHECK(strcmp(ptl_err_str[PTL_IOV_TOO_SMALL], "PTL_IOV_TOO_SMALL") == 0);
    CHECK(PtlErrorStr(4711) != NULL && PtlErrorStr((unsigned)-1) != NULL);
    EVENT(PTL_EVENT_GET_START);
    EVENT(PTL_EVENT_GET_END);
    EVENT(PTL_EVENT_PUT_START);
    EVENT(PTL_EVENT_PUT_END);
    EVENT(PTL_EVENT_GETPUT_START);
    EVENT(PTL_EVENT_GETPUT_END);
    EVENT(PTL_EVENT_REPLY_START);
    EVENT(PTL_EVENT_REPLY_END);
    EVENT(PTL_EVENT_SEND_START);
    EVENT(PTL_EVENT_SEND_END);
    EVENT(PTL_EVENT_ACK);
    EVENT(PTL_EVENT_UNLINK);
    CHECK(PtlEventKindStr((ptl_event_kind_t)99) != NULL);
    CHECK(strcmp(PtlNIFailStr(ni, PTL_NI_OK), "PTL_NI_OK") == 0);
    CHECK(strcmp(PtlNIFailStr(ni, PTL_NI_FAIL), "PTL_NI_FAIL") == 0);
    CHECK(PtlNIFailStr(ni, 99) != NULL);

    OK(PtlNIInit(IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS), PTL_PID_ANY, NULL, NULL, &handle));
    CHECK(handle == ni);
    OK(PtlNIFini(handle));
    eq = queue(16);
    target(PT, region(buffer, sizeof buffer, PTL_MD_OP_PUT | PTL_MD_EVENT_AUTO_UNLINK_ENABLE, eq));
    from = source(region(data, sizeof data, 0, PTL_EQ_NONE));
    barrier();
    OK(PtlPut(from, PTL_NOACK_REQ, next, PT, 0, 0, 0, 0));
    expect(eq, PTL_EVENT_PUT_END);
    CHECK(strcmp(buffer, "cray") == 0);
    return finish("names");
}
