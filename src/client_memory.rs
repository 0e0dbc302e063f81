//! Memory that operations read and write: [`Src`] and [`Dst`] of this process, [`RemoteRange`]
//! of a rank.
//!
//! Built once from a client's pointer, in `capi`, where the client's contract is written down; the
//! lower layers take these types and are safe. Invariants: a [`Src`] may be read, and a [`Dst`]
//! read and written, for its length and lifetime. A [`RemoteRange`] lies in memory of its rank
//! that operations may address; its mapping, if any, is a [`Dst`]. Where every address of a rank
//! may be named (`GASNET_SEGMENT_EVERYTHING`), the client must know the memory there. A part of
//! [`AddressSpace`] may not exist.
//!
//! ```text
//!   client's pointer    capi, unsafe -> Src<'static>, Dst<'static>  until the operation is synced
//!   &[u8], &mut [u64]   From, safe ---> Src<'a>, Dst<'a>            as long as the borrow
//!   rank, address, len  Segments -----> RemoteRange                 as long as the job
//! ```
//!
//! Other threads and processes may access the same bytes at the same time; GASNet leaves that
//! order to its clients. So no reference to the bytes is made here. 1, 2, 4 and 8 bytes move in
//! one access, which a reader of an aligned word sees as a whole.

use core::ffi::{CStr, c_char};
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64};
use sys::peer::Peer;
use sys::word;

pub mod own_memory;
mod remote;
pub use remote::{AddressSpace, RemoteRange, UncheckedRange};

/// An address, which alone allows no access: the types below, which have a length, do.
#[derive(Clone, Copy, Debug)]
struct Address(*mut u8);

// SAFETY: an address is a number to every thread. `Src::new` and `Dst::new` demand that any
// thread may access the bytes there.
unsafe impl Send for Address {}
// SAFETY: as above; it never changes.
unsafe impl Sync for Address {}

impl Address {
    const NULL: Address = Address(ptr::null_mut());

    #[inline(always)]
    fn add(self, bytes: usize) -> Address {
        Address(self.0.wrapping_add(bytes))
    }
}

/// Bytes of this process to be read: private memory or its segment.
#[derive(Clone, Copy, Debug)]
pub struct Src<'a> {
    at: Address,
    len: usize,
    lifetime: PhantomData<&'a [u8]>,
}

/// The fewest bytes for which `memmove` may use `rep movsb`.
const LONG_COPY: usize = 2048;
/// Bytes of a part of a long copy that goes in parts; whole cache lines.
const COPY_PART: usize = 1984;

/// Bytes of this process to be written, and to be read again: private memory or its segment.
#[derive(Clone, Copy, Debug)]
pub struct Dst<'a> {
    at: Address,
    len: usize,
    lifetime: PhantomData<&'a mut [u8]>,
}

/// A string of the client that lives as long as the process, or none.
#[derive(Clone, Copy, Debug)]
pub struct ClientText(*const c_char);

impl ClientText {
    /// No string.
    pub const NULL: ClientText = ClientText(ptr::null());

    /// The string at `text`.
    ///
    /// # Safety
    /// `text` must be null or a NUL-terminated string that lives, unchanged, as long as the
    /// process.
    #[inline(always)]
    pub const unsafe fn new(text: *const c_char) -> ClientText {
        ClientText(text)
    }

    /// First byte; null for none.
    #[inline(always)]
    pub const fn as_ptr(self) -> *const c_char {
        self.0
    }

    /// The string; its length is found here.
    pub fn get(self) -> Option<&'static CStr> {
        // SAFETY: not null, so a string that lives as long as the process, as `new` demands.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }
}

impl From<&'static CStr> for ClientText {
    fn from(text: &'static CStr) -> ClientText {
        ClientText(text.as_ptr())
    }
}

/// Whether the `len` bytes from `offset` on lie within `all` bytes.
#[inline(always)]
const fn within(offset: usize, len: usize, all: usize) -> bool {
    offset <= all && len <= all - offset
}

#[cold]
#[inline(never)]
#[track_caller]
fn out_of_range(offset: usize, len: usize, all: usize) -> ! {
    panic!("{len} bytes from byte {offset} on are not within {all} bytes");
}

impl<'a> Src<'a> {
    /// The `len` bytes at `at`; no bytes may be anywhere, null included.
    ///
    /// # Safety
    /// They must be readable, by any thread, until the operations that get this value or a part
    /// of it are complete.
    #[inline(always)]
    pub const unsafe fn new(at: *const u8, len: usize) -> Src<'a> {
        Src { at: Address(at.cast_mut()), len, lifetime: PhantomData }
    }

    /// No bytes, at null.
    #[inline(always)]
    pub const fn empty() -> Src<'a> {
        Src { at: Address::NULL, len: 0, lifetime: PhantomData }
    }

    /// First byte.
    #[inline(always)]
    pub const fn as_ptr(self) -> *const u8 {
        self.at.0
    }

    /// Bytes.
    #[inline(always)]
    #[allow(
        clippy::len_without_is_empty,
        reason = "the length decides about many sizes, 0 is one of them"
    )]
    pub const fn len(self) -> usize {
        self.len
    }

    /// The `len` bytes from `offset` on.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    #[track_caller]
    pub fn part(self, offset: usize, len: usize) -> Src<'a> {
        if !within(offset, len, self.len) {
            out_of_range(offset, len, self.len);
        }
        Src { at: self.at.add(offset), len, lifetime: PhantomData }
    }

    /// The first `n` bytes and the others.
    ///
    /// # Panics
    /// If there are fewer than `n`.
    #[inline(always)]
    #[track_caller]
    pub fn split_at(self, n: usize) -> (Src<'a>, Src<'a>) {
        (self.part(0, n), self.part(n, self.len.wrapping_sub(n)))
    }
}

impl Src<'_> {
    /// The same bytes for an operation that cannot tell how long the borrow lasts.
    ///
    /// # Safety
    /// The operations that get the value must be complete before the borrow ends.
    #[inline(always)]
    pub const unsafe fn until_complete(self) -> Src<'static> {
        Src { at: self.at, len: self.len, lifetime: PhantomData }
    }
}

impl<'a> From<&'a [u8]> for Src<'a> {
    #[inline(always)]
    fn from(bytes: &'a [u8]) -> Src<'a> {
        Src { at: Address(bytes.as_ptr().cast_mut()), len: bytes.len(), lifetime: PhantomData }
    }
}

impl<'a> From<&'a [u64]> for Src<'a> {
    #[inline(always)]
    fn from(words: &'a [u64]) -> Src<'a> {
        let at = Address(words.as_ptr().cast_mut().cast());
        Src { at, len: size_of_val(words), lifetime: PhantomData }
    }
}

impl<'a> From<Dst<'a>> for Src<'a> {
    #[inline(always)]
    fn from(bytes: Dst<'a>) -> Src<'a> {
        Src { at: bytes.at, len: bytes.len, lifetime: PhantomData }
    }
}

impl<'a> Dst<'a> {
    /// The `len` bytes at `at`; no bytes may be anywhere, null included.
    ///
    /// # Safety
    /// They must be readable and writable, by any thread, until the operations that get this value
    /// or a part of it are complete. Until then no Rust reference to them may be used.
    #[inline(always)]
    pub const unsafe fn new(at: *mut u8, len: usize) -> Dst<'a> {
        Dst { at: Address(at), len, lifetime: PhantomData }
    }

    /// No bytes, at null.
    #[inline(always)]
    pub const fn empty() -> Dst<'a> {
        Dst { at: Address::NULL, len: 0, lifetime: PhantomData }
    }

    /// First byte.
    #[inline(always)]
    pub const fn as_ptr(self) -> *mut u8 {
        self.at.0
    }

    /// Bytes.
    #[inline(always)]
    #[allow(
        clippy::len_without_is_empty,
        reason = "the length decides about many sizes, 0 is one of them"
    )]
    pub const fn len(self) -> usize {
        self.len
    }

    /// The `len` bytes from `offset` on.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    #[track_caller]
    pub fn part(self, offset: usize, len: usize) -> Dst<'a> {
        if !within(offset, len, self.len) {
            out_of_range(offset, len, self.len);
        }
        Dst { at: self.at.add(offset), len, lifetime: PhantomData }
    }

    /// The `len` bytes from `offset` on, if there are as many.
    #[inline(always)]
    pub fn try_part(self, offset: usize, len: usize) -> Option<Dst<'a>> {
        if within(offset, len, self.len) { Some(self.part(offset, len)) } else { None }
    }

    /// [`Dst::try_part`] of what another process named.
    #[inline(always)]
    pub fn peer_part(self, offset: Peer<usize>, len: Peer<usize>) -> Option<Dst<'a>> {
        // Checked there.
        self.try_part(offset.data(), len.data())
    }

    /// The first `n` bytes and the others.
    ///
    /// # Panics
    /// If there are fewer than `n`.
    #[inline(always)]
    #[track_caller]
    pub fn split_at(self, n: usize) -> (Dst<'a>, Dst<'a>) {
        (self.part(0, n), self.part(n, self.len.wrapping_sub(n)))
    }

    /// The bytes as a number of 4 bytes, if they are as many and aligned.
    #[inline(always)]
    pub fn as_u32(self) -> Option<&'a AtomicU32> {
        let fits = self.len == 4 && self.at.0.addr().is_multiple_of(4);
        // SAFETY: aligned, and readable and writable by any thread, as `new` demands.
        fits.then(|| unsafe { AtomicU32::from_ptr(self.at.0.cast()) })
    }

    /// The bytes as a number of 8 bytes, if they are as many and aligned.
    #[inline(always)]
    pub fn as_u64(self) -> Option<&'a AtomicU64> {
        let fits = self.len == 8 && self.at.0.addr().is_multiple_of(8);
        // SAFETY: aligned, and readable and writable by any thread, as `new` demands.
        fits.then(|| unsafe { AtomicU64::from_ptr(self.at.0.cast()) })
    }

    /// The same bytes for an operation that cannot tell how long the borrow lasts.
    ///
    /// # Safety
    /// The operations that get the value must be complete before the borrow ends.
    #[inline(always)]
    pub const unsafe fn until_complete(self) -> Dst<'static> {
        Dst { at: self.at, len: self.len, lifetime: PhantomData }
    }

    /// Copies all bytes of `src`, which may overlap; 1, 2, 4 and 8 bytes in one load and one
    /// store.
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline(always)]
    #[track_caller]
    pub fn copy_from(self, src: Src<'_>) {
        if self.len != src.len {
            out_of_range(0, src.len, self.len);
        }
        match self.len {
            1 => self.copy_word::<u8>(src),
            2 => self.copy_word::<u16>(src),
            4 => self.copy_word::<u32>(src),
            8 => self.copy_word::<u64>(src),
            n if n >= LONG_COPY => self.copy_long(src),
            // SAFETY: as many bytes as both have.
            n => unsafe { ptr::copy(src.as_ptr(), self.as_ptr(), n) },
        }
    }

    /// [`Dst::copy_from`] of [`LONG_COPY`] bytes or more.
    ///
    /// Here `memmove` of the GNU C library uses `rep movsb`. On AMD's Zen 3 and 4 that is up to 20
    /// times slower if the destination begins up to 63 bytes behind the source, modulo the size of
    /// a page (bug 30994 of that library). Then the copy goes in parts for which `memmove` uses
    /// vector registers: 64 KiB in 2 us instead of 30.
    #[inline(never)]
    fn copy_long(self, src: Src<'_>) {
        let (from, to, n) = (src.as_ptr(), self.as_ptr(), self.len);
        let behind = to.addr().wrapping_sub(from.addr());
        let is_slow = (1..64).contains(&(behind % 4096));
        // Parts in order must not overwrite what is to be copied yet.
        let step = if is_slow && behind >= n { COPY_PART } else { n };
        for at in (0..n).step_by(step) {
            let part = step.min(n - at);
            // SAFETY: within the bytes of both; `memmove` allows each part to overlap.
            unsafe { ptr::copy(from.wrapping_add(at), to.wrapping_add(at), part) };
        }
    }

    /// As [`Dst::copy_from`], of `N` bytes, without a call of `memmove`.
    ///
    /// # Panics
    /// If either has not `N` bytes.
    #[inline(always)]
    #[track_caller]
    pub fn copy_array<const N: usize>(self, src: Src<'_>) {
        if self.len != N || src.len != N {
            out_of_range(0, src.len, N);
        }
        match N {
            8 => self.copy_word::<u64>(src),
            _ => self.copy_word::<[u8; N]>(src),
        }
    }

    /// Copies as many bytes as a `T` has: the lengths have been compared with it.
    #[inline(always)]
    fn copy_word<T: Copy>(self, src: Src<'_>) {
        debug_assert!(self.len == size_of::<T>() && src.len == self.len);
        // SAFETY: as many bytes as a `T`, of integers, has, of which every pattern of bits is one.
        let word = unsafe { word::load(src.as_ptr().cast::<T>()) };
        // SAFETY: as many bytes as a `T` has, writable by the invariant of the type.
        unsafe { word::store(self.as_ptr().cast::<T>(), word) }
    }

    /// Sets all bytes to `value`.
    #[inline(always)]
    pub fn fill(self, value: u8) {
        // SAFETY: the bytes are writable, by the invariant of the type.
        unsafe { self.as_ptr().write_bytes(value, self.len) }
    }

    /// Inverts a bit of the byte at `offset`, if there is one: what planted faults do.
    pub fn flip(self, offset: usize) {
        if let Some(byte) = self.try_part(offset, 1) {
            let mut copy = [0];
            Dst::from(&mut copy[..]).copy_from(byte.into());
            byte.fill(copy[0] ^ 1);
        }
    }
}

impl<'a> From<&'a mut [u8]> for Dst<'a> {
    #[inline(always)]
    fn from(bytes: &'a mut [u8]) -> Dst<'a> {
        Dst { at: Address(bytes.as_mut_ptr()), len: bytes.len(), lifetime: PhantomData }
    }
}

impl<'a> From<&'a mut [u64]> for Dst<'a> {
    #[inline(always)]
    fn from(words: &'a mut [u64]) -> Dst<'a> {
        let at = Address(words.as_mut_ptr().cast());
        Dst { at, len: size_of_val(words), lifetime: PhantomData }
    }
}

/// Words that are written behind shared references: memory of the library, shared or not.
impl<'a> From<&'a [AtomicU64]> for Dst<'a> {
    #[inline(always)]
    fn from(words: &'a [AtomicU64]) -> Dst<'a> {
        let at = Address(words.as_ptr().cast_mut().cast());
        Dst { at, len: size_of_val(words), lifetime: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::JobRank;
    use alloc::vec::Vec;

    #[test]
    fn copies_of_every_small_size_and_alignment() {
        let src: Vec<u8> = (0..64).collect();
        for n in 0..=24 {
            for from in 0..8 {
                for to in 0..8 {
                    let mut dst = [0xeeu8; 64];
                    Dst::from(&mut dst[to..to + n]).copy_from(Src::from(&src[from..from + n]));
                    assert_eq!(dst[to..to + n], src[from..from + n]);
                    assert!(dst[..to].iter().chain(&dst[to + n..]).all(|&b| b == 0xee));
                }
            }
        }
    }

    #[test]
    fn overlapping_bytes_move_as_through_a_buffer() {
        let mut bytes: Vec<u8> = (0..32).collect();
        let all = Dst::from(&mut bytes[..]);
        all.part(3, 20).copy_from(all.part(0, 20).into());
        let expected: Vec<u8> = (0..3).chain(0..20).chain(23..32).collect();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn words_are_eight_bytes_each() {
        let mut words = [u64::from_ne_bytes(*b"abcdefgh"), 0];
        let (first, second) = Dst::from(&mut words[..]).split_at(8);
        second.copy_from(first.into());
        let mut bytes = [0; 16];
        Dst::from(&mut bytes[..]).copy_from(Src::from(&words[..]));
        assert_eq!(&bytes, b"abcdefghabcdefgh");
    }

    #[test]
    fn an_empty_range_is_copied_and_has_no_parts() {
        let nothing = Dst::empty();
        nothing.copy_from(Src::empty());
        assert!(nothing.try_part(0, 0).is_some() && nothing.try_part(0, 1).is_none());
    }

    #[test]
    fn parts_and_halves_are_where_they_should_be() {
        let mut bytes = *b"0123456789";
        let (head, tail) = Src::from(&bytes[..]).split_at(4);
        assert_eq!((head.len(), tail.len()), (4, 6));
        let mut end = [0; 2];
        Dst::from(&mut end[..]).copy_from(tail.part(4, 2));
        assert_eq!(&end, b"89");
        let (front, back) = Dst::from(&mut bytes[..]).split_at(9);
        front.part(8, 1).fill(b'x');
        back.flip(0);
        back.flip(1);
        assert_eq!(&bytes, b"01234567x8");
        let all = Dst::from(&mut bytes[..]);
        let named = |offset, len| all.peer_part(Peer::new(offset), Peer::new(len));
        named(7, 3).into_iter().for_each(|part| part.fill(b'y'));
        assert!(named(10, 0).is_some() && named(8, 3).is_none() && named(11, 0).is_none());
        assert!(named(1, usize::MAX).is_none());
        assert_eq!(&bytes, b"0123456yyy");
    }

    #[test]
    #[should_panic(expected = "3 bytes from byte 8 on are not within 10 bytes")]
    fn a_part_that_is_not_within_panics() {
        let _ = Src::from(&[0u8; 10][..]).part(8, 3);
    }

    #[test]
    #[should_panic(expected = "not within")]
    fn a_part_whose_end_wraps_around_panics() {
        let _ = Dst::from(&mut [0u8; 10][..]).part(1, usize::MAX);
    }

    /// From each side of the places where the copy goes in parts, also over itself.
    #[test]
    fn long_copies() {
        const PAGE: usize = 4096;
        let from = 2 * PAGE;
        for n in [LONG_COPY - 1, LONG_COPY, LONG_COPY + 1, 3 * PAGE + 5] {
            for behind in [0, 1, 63, 64, PAGE, PAGE + 1, PAGE + 63, 5 * PAGE + 9, 8 * PAGE - 1] {
                for to in [from + behind, from.wrapping_sub(behind % PAGE)] {
                    let mut bytes: Vec<u8> = (0..16 * PAGE).map(|i| (i % 251) as u8).collect();
                    let mut wanted = bytes.clone();
                    wanted.copy_within(from..from + n, to);
                    let at = bytes.as_mut_ptr();
                    // SAFETY: both lie in the vector, which nothing else uses.
                    let (dst, src) = unsafe {
                        (Dst::new(at.wrapping_add(to), n), Src::new(at.wrapping_add(from), n))
                    };
                    dst.copy_from(src);
                    assert!(bytes == wanted, "{n} bytes from {from} to {to}");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "not within")]
    fn a_copy_of_another_length_panics() {
        Dst::from(&mut [0u8; 10][..]).copy_from(Src::from(&[0u8; 11][..]));
    }

    #[test]
    fn a_remote_range_keeps_its_mapping_with_its_offset() {
        let mut bytes = [0u8; 16];
        // SAFETY: the bytes outlive the test.
        let memory = unsafe { Dst::from(&mut bytes[..]).until_complete() };
        let mapped = RemoteRange::mapped_at(JobRank(3), 4096, memory);
        let part = mapped.part(5, 2);
        assert_eq!((part.rank(), part.offset(), part.len()), (JobRank(3), 4101, 2));
        part.mapped().into_iter().for_each(|dst| dst.fill(7));
        assert!(RemoteRange::unmapped(JobRank(3), 4096, 16).part(5, 2).mapped().is_none());
        assert_eq!(bytes[4..8], [0, 7, 7, 0]);
    }
}
