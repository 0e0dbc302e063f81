//! What crosses the C ABI as data: the types of the extended API and the record that the inline paths of the headers
//! read.
//!
//! The headers mirror these definitions. [`gasneti_abi`] keeps its size for ever (an executable may hold a copy of
//! it, made by the dynamic linker with the size that it had when the executable was linked): new words take the place
//! of reserved ones, and 0 in a new word means that nothing is known.
#![allow(non_camel_case_types, non_upper_case_globals)]

use ::core::ffi::c_void;
use ::core::mem::{offset_of, size_of};

/// Rank of a process.
pub type gasnet_node_t = u32;
/// An integer that holds a value of the value forms; `SIZEOF_GASNET_REGISTER_VALUE_T` bytes.
pub type gasnet_register_value_t = usize;
/// An explicit operation; `GASNET_INVALID_HANDLE` is null.
pub type gasnet_handle_t = *mut c_void;
/// A get that returns a value.
pub type gasnet_valget_handle_t = *mut c_void;

/// One process of the job as the inline paths see it.
///
/// Bytes `[addr, addr + n)` of that process may be read and written at once at `addr + delta` (modulo 2^64) if
/// `addr - base <= span` and `n <= span - (addr - base)`, in unsigned arithmetic. A `span` of 0 closes the inline path to this
/// process: call the function.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct gasneti_peer_t {
    /// First byte of its segment, as an address of that process.
    pub base: usize,
    /// Bytes of its segment, or 0 if the inline path is closed.
    pub span: usize,
    /// What to add to an address of that process to reach the same byte here.
    pub delta: usize,
    /// Up to 8 bytes may be read and written at once at `addr` if `addr - base` is less than this; a shorter test than the one
    /// above, which says so of the last places of the segment too.
    pub starts: usize,
}

/// What the inline paths read; all zero but `watched` before `gasnet_attach` returns, so that `node < nodes` fails and the
/// function is called.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gasneti_abi_t {
    /// One record for each process of the job, by rank.
    pub peers: *const gasneti_peer_t,
    /// How many there are.
    pub nodes: u32,
    /// Rank of this process.
    pub mynode: u32,
    /// If not null, it points to a word that is 0 as long as every implicit operation of this process was complete when the call
    /// that began it returned, and no access region is open: a sync has nothing to wait for, and is no mistake.
    pub implicit: *const usize,
    /// Not 0 if tracing or statistics are on: the headers then tell where calls come from.
    pub watched: usize,
    /// 0.
    pub reserved: [usize; 4],
}

/// The one record of this process; written by `gasnet_init` and `gasnet_attach`.
#[unsafe(no_mangle)]
pub static mut gasneti_abi: gasneti_abi_t = gasneti_abi_t {
    peers: ::core::ptr::null(),
    nodes: 0,
    mynode: 0,
    implicit: ::core::ptr::null(),
    watched: 0,
    reserved: [0; 4],
};

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<gasneti_peer_t>() == 32);
    assert!(offset_of!(gasneti_peer_t, base) == 0);
    assert!(offset_of!(gasneti_peer_t, span) == 8);
    assert!(offset_of!(gasneti_peer_t, delta) == 16);
    assert!(offset_of!(gasneti_peer_t, starts) == 24);
    assert!(size_of::<gasneti_abi_t>() == 64);
    assert!(offset_of!(gasneti_abi_t, peers) == 0);
    assert!(offset_of!(gasneti_abi_t, nodes) == 8);
    assert!(offset_of!(gasneti_abi_t, mynode) == 12);
    assert!(offset_of!(gasneti_abi_t, implicit) == 16);
    assert!(offset_of!(gasneti_abi_t, watched) == 24);
};
