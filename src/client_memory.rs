//! Memory that operations read and write: [`Src`] and [`Dst`] of this process, [`RemoteRange`]
//! of a rank.
//!
//! Built once from a client's pointer, in `capi`, where the client's contract is written down;
//! the lower layers take these types and are safe. Invariants: a [`Src`] may be read and a
//! [`Dst`] read and written, for its length, as long as its lifetime lasts; a [`RemoteRange`]
//! lies in memory of its rank that operations may address, and its mapping, if any, is a
//! [`Dst`].
//!
//! ```text
//!   client's pointer    capi, unsafe -> Src<'static>, Dst<'static>  until the operation is synced
//!   &[u8], &mut [u8]    From, safe ---> Src<'a>, Dst<'a>            as long as the borrow
//!   rank, address, len  Segments -----> RemoteRange                 as long as the job
//! ```
//!
//! Other threads and processes may access the same bytes at the same time; GASNet leaves that
//! order to its clients. So no reference to the bytes is made here, and 1, 2, 4 and 8 bytes
//! move in one access, which a reader of an aligned word sees as a whole.

use crate::rank::JobRank;
use core::marker::PhantomData;
use core::ptr;

/// Bytes of this process to be read: private memory or its segment.
#[derive(Clone, Copy, Debug)]
pub struct Src<'a> {
    at: *const u8,
    len: usize,
    lifetime: PhantomData<&'a [u8]>,
}

/// Bytes of this process to be written, and to be read again: private memory or its segment.
#[derive(Clone, Copy, Debug)]
pub struct Dst<'a> {
    at: *mut u8,
    len: usize,
    lifetime: PhantomData<&'a mut [u8]>,
}

// SAFETY: an address and a length; the bytes may be read from any thread, as `Src::new`
// demands.
unsafe impl Send for Src<'_> {}
// SAFETY: as above.
unsafe impl Sync for Src<'_> {}
// SAFETY: an address and a length; the bytes may be accessed from any thread, as `Dst::new`
// demands.
unsafe impl Send for Dst<'_> {}
// SAFETY: as above.
unsafe impl Sync for Dst<'_> {}

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
        Src { at, len, lifetime: PhantomData }
    }

    /// First byte.
    #[inline(always)]
    pub const fn as_ptr(self) -> *const u8 {
        self.at
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
        Src { at: self.at.wrapping_add(offset), len, lifetime: PhantomData }
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
        Src { at: bytes.as_ptr(), len: bytes.len(), lifetime: PhantomData }
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
    /// They must be readable and writable, by any thread, until the operations that get this
    /// value or a part of it are complete, and no Rust reference to them may be used meanwhile.
    #[inline(always)]
    pub const unsafe fn new(at: *mut u8, len: usize) -> Dst<'a> {
        Dst { at, len, lifetime: PhantomData }
    }

    /// First byte.
    #[inline(always)]
    pub const fn as_ptr(self) -> *mut u8 {
        self.at
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
        Dst { at: self.at.wrapping_add(offset), len, lifetime: PhantomData }
    }

    /// The `len` bytes from `offset` on, if there are as many.
    #[inline(always)]
    pub fn try_part(self, offset: usize, len: usize) -> Option<Dst<'a>> {
        if within(offset, len, self.len) { Some(self.part(offset, len)) } else { None }
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
            // SAFETY: one byte of both, by the invariant of the types.
            1 => unsafe { self.at.write(src.at.read()) },
            2 => self.copy_word::<u16>(src),
            4 => self.copy_word::<u32>(src),
            8 => self.copy_word::<u64>(src),
            // SAFETY: as many bytes as both have.
            n => unsafe { ptr::copy(src.at, self.at, n) },
        }
    }

    /// Copies as many bytes as a `T` has: the lengths have been compared with it.
    #[inline(always)]
    fn copy_word<T: Copy>(self, src: Src<'_>) {
        debug_assert!(self.len == size_of::<T>() && src.len == self.len);
        // SAFETY: both have the bytes of a `T`, an integer, which every pattern of bits is.
        unsafe { self.at.cast::<T>().write_unaligned(src.at.cast::<T>().read_unaligned()) }
    }

    /// Sets all bytes to `value`.
    #[inline(always)]
    pub fn fill(self, value: u8) {
        // SAFETY: the bytes are writable, by the invariant of the type.
        unsafe { self.at.write_bytes(value, self.len) }
    }

    /// Inverts a bit of the byte at `offset`, if there is one: what planted faults do.
    pub fn flip(self, offset: usize) {
        if offset < self.len {
            // SAFETY: this byte is within the range.
            unsafe { *self.at.add(offset) ^= 1 }
        }
    }
}

impl<'a> From<&'a mut [u8]> for Dst<'a> {
    #[inline(always)]
    fn from(bytes: &'a mut [u8]) -> Dst<'a> {
        Dst { at: bytes.as_mut_ptr(), len: bytes.len(), lifetime: PhantomData }
    }
}

/// Bytes of a rank that operations may address: in its segment or, for the calling process, in
/// any memory of its own.
///
/// Made by `runtime::segment`, which checks that they lie there.
#[derive(Clone, Copy, Debug)]
pub struct RemoteRange {
    rank: JobRank,
    len: usize,
    /// Bytes before the first one in the segment of the rank; [`usize::MAX`] outside of it.
    offset: usize,
    /// First byte as this process addresses it; null if only the conduit reaches it.
    mapped: *mut u8,
}

// SAFETY: addresses and a length; the bytes may be accessed from any thread, as
// `RemoteRange::new` demands.
unsafe impl Send for RemoteRange {}
// SAFETY: as above.
unsafe impl Sync for RemoteRange {}

impl RemoteRange {
    /// The `len` bytes from `offset` on in the segment of `rank`; `mapped`, if not null, is
    /// where this process addresses them. Own memory outside the segment has the offset
    /// [`usize::MAX`].
    ///
    /// # Safety
    /// Where `mapped` is not null, the bytes must be readable and writable there as long as
    /// operations on them last.
    #[inline(always)]
    pub const unsafe fn new(
        rank: JobRank,
        offset: usize,
        len: usize,
        mapped: *mut u8,
    ) -> RemoteRange {
        RemoteRange { rank, len, offset, mapped }
    }

    /// The `len` bytes from `offset` on in the segment of `rank`, which only the conduit
    /// reaches.
    #[inline(always)]
    pub const fn unmapped(rank: JobRank, offset: usize, len: usize) -> RemoteRange {
        RemoteRange { rank, len, offset, mapped: ptr::null_mut() }
    }

    /// The rank whose memory it is.
    #[inline(always)]
    pub const fn rank(self) -> JobRank {
        self.rank
    }

    /// Bytes before the first one in the segment of the rank.
    #[inline(always)]
    pub const fn offset(self) -> usize {
        self.offset
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

    /// The bytes as this process addresses them, if it does: a plain copy reaches them. `None`
    /// for no bytes, too.
    #[inline(always)]
    pub fn mapped(self) -> Option<Dst<'static>> {
        if self.mapped.is_null() {
            return None;
        }
        // SAFETY: `new` was given an address where these bytes are mapped.
        Some(unsafe { Dst::new(self.mapped, self.len) })
    }

    /// The `len` bytes from `offset` on.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    #[track_caller]
    pub fn part(self, offset: usize, len: usize) -> RemoteRange {
        if !within(offset, len, self.len) {
            out_of_range(offset, len, self.len);
        }
        let mapped =
            if self.mapped.is_null() { ptr::null_mut() } else { self.mapped.wrapping_add(offset) };
        RemoteRange { rank: self.rank, len, offset: self.offset.wrapping_add(offset), mapped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    }

    #[test]
    #[should_panic(expected = "3 bytes from byte 8 on are not within 10 bytes")]
    fn a_part_that_is_not_within_panics() {
        let _ = Src::from(&[0; 10][..]).part(8, 3);
    }

    #[test]
    #[should_panic(expected = "not within")]
    fn a_part_whose_end_wraps_around_panics() {
        let _ = Dst::from(&mut [0; 10][..]).part(1, usize::MAX);
    }

    #[test]
    #[should_panic(expected = "not within")]
    fn a_copy_of_another_length_panics() {
        Dst::from(&mut [0; 10][..]).copy_from(Src::from(&[0; 11][..]));
    }

    #[test]
    fn a_remote_range_keeps_its_mapping_with_its_offset() {
        let mut bytes = [0u8; 16];
        // SAFETY: the bytes outlive the test.
        let mapped = unsafe { RemoteRange::new(JobRank(3), 4096, 16, bytes.as_mut_ptr()) };
        let part = mapped.part(5, 2);
        assert_eq!((part.rank(), part.offset(), part.len()), (JobRank(3), 4101, 2));
        part.mapped().into_iter().for_each(|dst| dst.fill(7));
        assert!(RemoteRange::unmapped(JobRank(3), 4096, 16).part(5, 2).mapped().is_none());
        assert_eq!(bytes[4..8], [0, 7, 7, 0]);
    }
}
