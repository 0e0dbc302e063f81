//! What crosses the C ABI as data: the types of the extended API, and the record that the
//! inline paths of the headers read.
//!
//! Written by `fast`, read by clients; cbindgen generates include/gasnet_abi.h from this file.
//! Invariant: [`gasneti_abi`] keeps its size. An executable may hold a copy of it, which the
//! dynamic linker made with the size at link time. A new field replaces a reserved word. Its
//! value 0 means "not set", so headers and library of different versions work together.
#![allow(non_camel_case_types, non_upper_case_globals)]

use core::ffi::c_void;
use core::mem::{offset_of, size_of};

/// Rank of a process.
pub type gasnet_node_t = u32;
/// An integer that holds a value of the value forms; `SIZEOF_GASNET_REGISTER_VALUE_T` bytes.
pub type gasnet_register_value_t = usize;
/// An explicit operation; `GASNET_INVALID_HANDLE` is null.
pub type gasnet_handle_t = *mut c_void;
/// A get that returns a value.
pub type gasnet_valget_handle_t = *mut c_void;

/// Ranks below this number have an inline path; puts to and gets from others call the library.
/// Segments are mapped on one host only, which rarely has more ranks.
pub const GASNETI_NEAR: usize = 256;

/// What the inline paths read.
///
/// Bytes `[addr, addr + n)` of the process `rank < GASNETI_NEAR` may be read and written at
/// `addr + distance[rank]` under two conditions, in unsigned arithmetic:
/// - `offset`, which is `addr - base[rank]`, is below `starts[rank]`.
/// - `n - 7 <= starts[rank] - offset`.
///
/// For 8 bytes the first condition suffices. `starts` is 0 where the path is closed, as all
/// are before `gasnet_attach` returns: call the function then.
///
/// Arrays of words, not an array of records: an addressing mode finds an entry by its rank.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gasneti_abi_t {
    /// If not null, points to a word. The word is 0 while every implicit operation of this
    /// process was complete when it was initiated and no access region is open. A sync has
    /// nothing to do then.
    pub implicit: *const usize,
    /// Not 0 if tracing or statistics are on: the headers then pass where calls come from.
    pub watched: usize,
    /// 0.
    pub reserved: [usize; 6],
    /// First byte of the segment of each process, as an address of that process.
    pub base: [usize; GASNETI_NEAR],
    /// Offsets below this number start 8 bytes that lie in the segment; 0 where the inline path
    /// is closed.
    pub starts: [usize; GASNETI_NEAR],
    /// What leads from an address of the owner to the same byte as mapped here.
    pub distance: [usize; GASNETI_NEAR],
}

/// The one record of this process; written by `gasnet_init` and `gasnet_attach`.
#[unsafe(no_mangle)]
pub static mut gasneti_abi: gasneti_abi_t = gasneti_abi_t {
    implicit: core::ptr::null(),
    watched: 0,
    reserved: [0; 6],
    base: [0; GASNETI_NEAR],
    starts: [0; GASNETI_NEAR],
    distance: [0; GASNETI_NEAR],
};

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(offset_of!(gasneti_abi_t, implicit) == 0);
    assert!(offset_of!(gasneti_abi_t, watched) == 8);
    assert!(offset_of!(gasneti_abi_t, base) == 64);
    assert!(offset_of!(gasneti_abi_t, starts) == 64 + 2048);
    assert!(offset_of!(gasneti_abi_t, distance) == 64 + 4096);
    assert!(size_of::<gasneti_abi_t>() == 64 + 6144);
};
