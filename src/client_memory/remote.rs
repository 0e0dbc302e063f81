//! Memory of a rank as operations name it: unchecked as a client gives it, checked, and the
//! address space of a rank.
//!
//! Part of `client_memory`; made by `runtime::segment` and `runtime::address`. Invariant: a
//! [`RemoteRange`] lies in memory of its rank that operations may address, and its mapping, if
//! any, is a [`Dst`].

use super::{Address, Dst, out_of_range, within};
use crate::rank::JobRank;
use core::marker::PhantomData;
use core::ptr;

/// All addresses of a process but null: what each rank exposes in `GASNET_SEGMENT_EVERYTHING`. An
/// offset in it counts from [`AddressSpace::FIRST`].
#[derive(Clone, Copy, Debug)]
pub struct AddressSpace;

impl AddressSpace {
    /// Its first address.
    pub const FIRST: usize = 1;
    /// Bytes: as many as the descriptor of a network may have. No address of Linux is higher.
    pub const BYTES: usize =
        if usize::BITS == 64 { (1 << 62) - AddressSpace::FIRST } else { usize::MAX - 1 };

    /// That of this process. Parts of it are made of what clients name only.
    pub(crate) const fn here() -> Dst<'static> {
        let at = Address(ptr::without_provenance_mut(AddressSpace::FIRST));
        Dst { at, len: AddressSpace::BYTES, lifetime: PhantomData }
    }

    /// The bytes of this process from an address on, of which pages may be missing.
    pub(crate) const fn extent(start: usize, len: usize) -> Dst<'static> {
        Dst { at: Address(ptr::without_provenance_mut(start)), len, lifetime: PhantomData }
    }

    /// That of a rank, which this process is if it is its `own`.
    pub(crate) const fn of(rank: JobRank, own: bool) -> RemoteRange {
        match own {
            true => RemoteRange::mapped_at(rank, 0, AddressSpace::here()),
            false => RemoteRange::unmapped(rank, 0, AddressSpace::BYTES),
        }
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
    mapped: Address,
}

impl RemoteRange {
    /// The bytes from `offset` on in the segment of `rank`, which this process addresses as
    /// `mapped`. Own memory outside the segment has the offset [`usize::MAX`].
    #[inline(always)]
    pub const fn mapped_at(rank: JobRank, offset: usize, mapped: Dst<'static>) -> RemoteRange {
        RemoteRange { rank, len: mapped.len, offset, mapped: mapped.at }
    }

    /// The `len` bytes from `offset` on in the segment of `rank`, which only the conduit
    /// reaches.
    #[inline(always)]
    pub const fn unmapped(rank: JobRank, offset: usize, len: usize) -> RemoteRange {
        RemoteRange { rank, len, offset, mapped: Address::NULL }
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
        if self.mapped.0.is_null() {
            return None;
        }
        Some(Dst { at: self.mapped, len: self.len, lifetime: PhantomData })
    }

    /// The `len` bytes from `offset` on.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    #[track_caller]
    pub fn part(self, offset: usize, len: usize) -> RemoteRange {
        match self.try_part(offset, len) {
            Some(part) => part,
            None => out_of_range(offset, len, self.len),
        }
    }

    /// The `len` bytes from `offset` on, if there are as many.
    #[inline(always)]
    pub fn try_part(self, offset: usize, len: usize) -> Option<RemoteRange> {
        if !within(offset, len, self.len) {
            return None;
        }
        let mapped = if self.mapped.0.is_null() { self.mapped } else { self.mapped.add(offset) };
        Some(RemoteRange {
            rank: self.rank,
            len,
            offset: self.offset.wrapping_add(offset),
            mapped,
        })
    }
}

/// Bytes that a client names by a rank and an address of that rank: not checked yet.
///
/// `runtime::address` makes a [`RemoteRange`] of it.
#[derive(Clone, Copy, Debug)]
pub struct UncheckedRange {
    at: Address,
    len: usize,
}

impl UncheckedRange {
    /// The `len` bytes at `at`, an address of the rank that the client names with it.
    ///
    /// # Safety
    /// If the rank is the calling process and they are outside its segment, they must be readable
    /// and writable until operations on them are complete.
    #[inline(always)]
    pub const unsafe fn new(at: *mut u8, len: usize) -> UncheckedRange {
        UncheckedRange { at: Address(at), len }
    }

    /// First byte, as its owner addresses it.
    #[inline(always)]
    pub const fn as_ptr(self) -> *mut u8 {
        self.at.0
    }

    /// The bytes as memory of this process.
    ///
    /// # Safety
    /// Unless there are none, the rank that the client names with them must be the calling
    /// process, and they must be outside its segment.
    pub const unsafe fn of_this_process(self) -> Dst<'static> {
        Dst { at: self.at, len: self.len, lifetime: PhantomData }
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
}
