//! Names of errors, events and failures: as functions, and as the arrays that Cray's header has.
//!
//! Invariant: every function returns a string that lives as long as the process, never null.

use core::ffi::{CStr, c_char, c_uint};

use crate::abi::{CEnum, CHandle, CRAY_ERRORS, PTL_NI_FAIL, PTL_NI_OK, PTL_UNKNOWN_ERROR};

/// A C string in a static array.
#[repr(transparent)]
#[derive(Debug)]
pub struct StaticText(*const c_char);

// SAFETY: it points to a constant.
unsafe impl Sync for StaticText {}

const fn text(string: &'static CStr) -> StaticText {
    StaticText(string.as_ptr())
}

const SPECIFIED: usize = PTL_UNKNOWN_ERROR as usize + 1;

/// `ptl_err_str`: by error code.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static ptl_err_str: [StaticText; SPECIFIED + 1 + CRAY_ERRORS.len()] = [
    text(c"PTL_OK"),
    text(c"PTL_AC_INDEX_INVALID"),
    text(c"PTL_EQ_DROPPED"),
    text(c"PTL_EQ_EMPTY"),
    text(c"PTL_EQ_INVALID"),
    text(c"PTL_FAIL"),
    text(c"PTL_HANDLE_INVALID"),
    text(c"PTL_IFACE_INVALID"),
    text(c"PTL_MD_ILLEGAL"),
    text(c"PTL_MD_INVALID"),
    text(c"PTL_MD_IN_USE"),
    text(c"PTL_MD_NO_UPDATE"),
    text(c"PTL_ME_INVALID"),
    text(c"PTL_ME_IN_USE"),
    text(c"PTL_ME_LIST_TOO_LONG"),
    text(c"PTL_NI_INVALID"),
    text(c"PTL_NO_INIT"),
    text(c"PTL_NO_SPACE"),
    text(c"PTL_PID_INVALID"),
    text(c"PTL_PROCESS_INVALID"),
    text(c"PTL_PT_FULL"),
    text(c"PTL_PT_INDEX_INVALID"),
    text(c"PTL_SEGV"),
    text(c"PTL_SR_INDEX_INVALID"),
    text(c"PTL_UNKNOWN_ERROR"),
    text(c"PTL_MAX_ERRNO"),
    text(CRAY_ERRORS[0]),
    text(CRAY_ERRORS[1]),
    text(CRAY_ERRORS[2]),
    text(CRAY_ERRORS[3]),
    text(CRAY_ERRORS[4]),
    text(CRAY_ERRORS[5]),
];

/// `ptl_event_str`: by event kind.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static ptl_event_str: [StaticText; 12] = [
    text(c"PTL_EVENT_GET_START"),
    text(c"PTL_EVENT_GET_END"),
    text(c"PTL_EVENT_PUT_START"),
    text(c"PTL_EVENT_PUT_END"),
    text(c"PTL_EVENT_GETPUT_START"),
    text(c"PTL_EVENT_GETPUT_END"),
    text(c"PTL_EVENT_REPLY_START"),
    text(c"PTL_EVENT_REPLY_END"),
    text(c"PTL_EVENT_SEND_START"),
    text(c"PTL_EVENT_SEND_END"),
    text(c"PTL_EVENT_ACK"),
    text(c"PTL_EVENT_UNLINK"),
];

fn name(table: &[StaticText], number: c_uint, other: &'static CStr) -> *const c_char {
    table.get(number as usize).map_or(other.as_ptr(), |text| text.0)
}

/// The name of an error code. The string is constant; never null.
#[unsafe(no_mangle)]
pub extern "C" fn PtlErrorStr(error: c_uint) -> *const c_char {
    name(&ptl_err_str, error, c"unknown Portals error")
}

/// The name of an event kind. The string is constant; never null.
#[unsafe(no_mangle)]
pub extern "C" fn PtlEventKindStr(kind: CEnum) -> *const c_char {
    name(&ptl_event_str, kind, c"unknown Portals event")
}

/// The name of a failure. The string is constant; never null. `ni` is not looked at.
#[unsafe(no_mangle)]
pub extern "C" fn PtlNIFailStr(_ni: CHandle, fail: u32) -> *const c_char {
    match fail {
        PTL_NI_OK => c"PTL_NI_OK".as_ptr(),
        PTL_NI_FAIL => c"PTL_NI_FAIL".as_ptr(),
        _ => c"unknown Portals failure".as_ptr(),
    }
}
