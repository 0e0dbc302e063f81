//! The types and constants of `portals3.h`, as C sees them.
//!
//! Used by every exported function. Handles are 32 bits wide; `convert` describes their content.
//! Invariant: sizes, offsets and values are those of the header; the test `layout` compares
//! both.

use core::ffi::{c_int, c_uint, c_ulong, c_void};

pub use portals3::{MdIovec, PtlProcessId};

/// `ptl_handle_any_t`, `ptl_handle_ni_t`, `ptl_handle_me_t`, `ptl_handle_md_t`, `ptl_handle_eq_t`.
pub type CHandle = u32;
/// An argument of an enumerated type. C may pass any number.
pub type CEnum = c_uint;
/// The distance that `PtlNIDist` returns.
pub type NiDistance = c_ulong;

/// `ptl_ni_limits_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CNiLimits {
    /// Match list entries.
    pub max_mes: c_int,
    /// Memory descriptors.
    pub max_mds: c_int,
    /// Event queues.
    pub max_eqs: c_int,
    /// Highest access control index.
    pub max_ac_index: c_int,
    /// Highest portal table index.
    pub max_pt_index: c_int,
    /// Entries of a scattered descriptor.
    pub max_md_iovecs: c_int,
    /// Match list entries on one portal table entry.
    pub max_me_list: c_int,
    /// Bytes that `PtlGetPut` swaps.
    pub max_getput_md: c_int,
}

/// `ptl_md_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CMd {
    /// First byte, or the vector.
    pub start: *mut c_void,
    /// Bytes, or entries of the vector.
    pub length: u64,
    /// Operations before it becomes inactive, or `PTL_MD_THRESH_INF`.
    pub threshold: c_int,
    /// Becomes inactive when less room than this is left.
    pub max_size: u64,
    /// `PTL_MD_*`
    pub options: c_uint,
    /// The user's pointer.
    pub user_ptr: *mut c_void,
    /// The queue of its events.
    pub eq_handle: CHandle,
}

/// `ptl_event_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CEvent {
    /// `PTL_EVENT_*`
    pub kind: CEnum,
    /// The process that initiated the operation (of an ACK or REPLY: the target).
    pub initiator: PtlProcessId,
    /// Its user id.
    pub uid: u32,
    /// Its job id.
    pub jid: u32,
    /// The portal table entry that the message named.
    pub pt_index: u32,
    /// The match bits as sent.
    pub match_bits: u64,
    /// Requested bytes.
    pub rlength: u64,
    /// Accepted bytes.
    pub mlength: u64,
    /// Offset in the descriptor.
    pub offset: u64,
    /// The descriptor.
    pub md_handle: CHandle,
    /// Its state at the time of the event.
    pub md: CMd,
    /// Immediate data of a put.
    pub hdr_data: u64,
    /// Ties an END event to its START.
    pub link: u32,
    /// `PTL_NI_*`
    pub ni_fail_type: u32,
    /// Position in its queue.
    pub sequence: u32,
}

/// `ptl_eq_handler_t`
pub type CEqHandler = Option<unsafe extern "C" fn(*mut CEvent)>;

macro_rules! constants {
    ($table:ident: $type:ty { $($name:ident = $value:expr,)* }) => {
        $(
            #[doc = concat!("`", stringify!($name), "`")]
            pub const $name: $type = $value;
        )*
        /// All of them by name, for the comparison with `portals3.h`.
        pub const $table: &[(&str, i64)] = &[$((stringify!($name), $name as i64),)*];
    };
}

constants!(ERRORS: c_int {
    PTL_OK = 0,
    PTL_AC_INDEX_INVALID = 1,
    PTL_EQ_DROPPED = 2,
    PTL_EQ_EMPTY = 3,
    PTL_EQ_INVALID = 4,
    PTL_FAIL = 5,
    PTL_HANDLE_INVALID = 6,
    PTL_IFACE_INVALID = 7,
    PTL_MD_ILLEGAL = 8,
    PTL_MD_INVALID = 9,
    PTL_MD_IN_USE = 10,
    PTL_MD_NO_UPDATE = 11,
    PTL_ME_INVALID = 12,
    PTL_ME_IN_USE = 13,
    PTL_ME_LIST_TOO_LONG = 14,
    PTL_NI_INVALID = 15,
    PTL_NO_INIT = 16,
    PTL_NO_SPACE = 17,
    PTL_PID_INVALID = 18,
    PTL_PROCESS_INVALID = 19,
    PTL_PT_FULL = 20,
    PTL_PT_INDEX_INVALID = 21,
    PTL_SEGV = 22,
    PTL_SR_INDEX_INVALID = 23,
    PTL_UNKNOWN_ERROR = 24,
});

/// Errors of Cray's header that the specification does not have; this library returns none of
/// them.
pub const CRAY_ERRORS: [&core::ffi::CStr; 6] = [
    c"PTL_IFACE_DUP",
    c"PTL_VAL_FAILED",
    c"PTL_EQ_IN_USE",
    c"PTL_NAL_FAILED",
    c"PTL_IOV_TOO_MANY",
    c"PTL_IOV_TOO_SMALL",
];

constants!(WORDS: u32 {
    PTL_INVALID_HANDLE = 0xffff_ffff,
    PTL_HANDLE_NONE = 0x7fff_ffff,
    PTL_EQ_NONE = 0xbfff_ffff,
    PTL_PT_INDEX_ANY = u32::MAX,
    PTL_NID_ANY = u32::MAX,
    PTL_PID_ANY = u32::MAX,
    PTL_UID_ANY = u32::MAX,
    PTL_JID_ANY = u32::MAX,
    PTL_TIME_FOREVER = u32::MAX,
    PTL_IFACE_DEFAULT = 0xf0f0_f300,
    PTL_NI_OK = 0,
    PTL_NI_FAIL = 1,
    PTL_RETAIN = 0,
    PTL_UNLINK = 1,
    PTL_INS_BEFORE = 0,
    PTL_INS_AFTER = 1,
    PTL_ACK_REQ = 0,
    PTL_NO_ACK_REQ = 1,
    PTL_SR_DROP_COUNT = 0,
    PTL_NI_THREAD_SAFE = 1,
    PTL_NI_APPLICATION_BYPASS = 2,
    PTL_MD_OP_PUT = 0x001,
    PTL_MD_OP_GET = 0x002,
    PTL_MD_MANAGE_REMOTE = 0x004,
    PTL_MD_TRUNCATE = 0x008,
    PTL_MD_ACK_DISABLE = 0x010,
    PTL_MD_IOVEC = 0x020,
    PTL_MD_MAX_SIZE = 0x040,
    PTL_MD_EVENT_START_DISABLE = 0x080,
    PTL_MD_EVENT_END_DISABLE = 0x100,
});

constants!(EVENTS: CEnum {
    PTL_EVENT_GET_START = 0,
    PTL_EVENT_GET_END = 1,
    PTL_EVENT_PUT_START = 2,
    PTL_EVENT_PUT_END = 3,
    PTL_EVENT_GETPUT_START = 4,
    PTL_EVENT_GETPUT_END = 5,
    PTL_EVENT_REPLY_START = 6,
    PTL_EVENT_REPLY_END = 7,
    PTL_EVENT_SEND_START = 8,
    PTL_EVENT_SEND_END = 9,
    PTL_EVENT_ACK = 10,
    PTL_EVENT_UNLINK = 11,
});

constants!(SIGNED: c_int {
    PTL_MD_THRESH_INF = -1,
});
