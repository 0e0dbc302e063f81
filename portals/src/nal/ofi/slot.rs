//! What one operation of the library needs, and why it may not begin.
//!
//! Used by [`super::endpoint`] and its parts. Plain values. Invariant: a slot belongs to one
//! operation at a time, from its begin to its completion.

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use super::bindings::{FI_ADDR_UNSPEC, FiContext2};
use super::library::OfiError;

/// A peer, as the endpoint names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OfiAddress(pub(super) u64);

impl OfiAddress {
    /// Of no peer.
    pub(super) const NONE: OfiAddress = OfiAddress(FI_ADDR_UNSPEC);
}

/// Why an operation has not begun.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotBegun {
    /// There is no room now.
    Full,
    /// It cannot.
    Failed(OfiError),
}

/// The operation that uses a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferUse {
    None,
    Receive,
    Send,
    /// A put or get, which has no buffer.
    Remote,
}

/// A buffer, or a remote operation, and what the library needs with it.
#[repr(C)]
pub(super) struct BufferSlot {
    /// The library's during an operation; the address of the operation.
    context: FiContext2,
    pub(super) number: u32,
    pub(super) used_by: BufferUse,
    pub(super) memory: NonNull<u8>,
    pub(super) descriptor: *mut c_void,
}

impl BufferSlot {
    /// That of a buffer.
    pub(super) fn new(number: u32, memory: NonNull<u8>, descriptor: *mut c_void) -> BufferSlot {
        let context = FiContext2::default();
        BufferSlot { context, number, used_by: BufferUse::None, memory, descriptor }
    }

    /// That of a remote operation.
    pub(super) fn remote(number: u32) -> BufferSlot {
        BufferSlot::new(number, NonNull::dangling(), ptr::null_mut())
    }
}
