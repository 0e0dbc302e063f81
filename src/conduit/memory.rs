//! Memory of the library's own buffers, and the bodies of messages in it.
//!
//! Used by the files that own buffers (`reqsb`, `rplsb`, `reqrb`, `outbox`, `client_thread`).
//! Invariant: a buffer is zeroed, page aligned and never freed, since descriptors and messages of
//! peers may refer to it until the process ends. Its bytes belong to one holder at a time.

use super::message::{CHUNK, PAGE};
use super::portals::{Portals, PortalsError};
use crate::client_memory::{Dst, Src};
use core::sync::atomic::AtomicU64;
use sys::memory::Mapping;
use sys::peer::Peer;

/// Memory that no peer targets.
pub(super) fn private(bytes: usize) -> Result<Dst<'static>, PortalsError> {
    let none = |_| PortalsError { call: "allocation of send buffers", code: "PTL_NO_SPACE" };
    Mapping::leaked_bytes(bytes).map(Dst::from).map_err(none)
}

/// This many words of this process alone, all 0. Those that are never stored take no memory.
pub(super) fn words(count: usize) -> Result<&'static [AtomicU64], PortalsError> {
    let none = |_| PortalsError { call: "allocation of a table", code: "PTL_NO_SPACE" };
    Mapping::anonymous(count * 8).map(Mapping::leak_words).map_err(none)
}

/// Memory that peers target: shared with them if the network shares any, so that they reach it
/// without a call of this process.
pub(super) fn targeted<P: Portals>(
    portals: &P,
    bytes: usize,
) -> Result<Dst<'static>, PortalsError> {
    match portals.shared_host() {
        Some(host) => host
            .alloc_library_memory(bytes, PAGE)
            .ok_or(PortalsError { call: "allocation of shared buffers", code: "PTL_NO_SPACE" }),
        None => private(bytes),
    }
}

/// Buffers of [`CHUNK`] bytes, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Chunks(Dst<'static>);

impl Chunks {
    /// As many chunks as `memory` has.
    pub(super) fn of(memory: Dst<'static>) -> Chunks {
        Chunks(memory)
    }

    /// All of them.
    pub(super) fn memory(&self) -> Dst<'static> {
        self.0
    }

    /// The first `len` bytes of a chunk, for its holder.
    #[inline]
    pub(super) fn part(&self, chunk: u32, len: usize) -> Dst<'static> {
        debug_assert!(len <= CHUNK);
        self.0.part(chunk as usize * CHUNK, len)
    }

    /// The message of `len` bytes that a chunk holds; at most all of the chunk.
    ///
    /// # Safety
    /// The caller holds the chunk as long as it uses the body.
    #[inline(always)]
    pub(super) unsafe fn body<'a>(&self, chunk: u32, len: Peer<usize>) -> Body<'a> {
        let bytes = self.part(chunk, len.clamped(CHUNK));
        // SAFETY: chunks are aligned; the caller holds this one.
        unsafe { Body::held(bytes) }
    }
}

/// The bytes of these words.
#[inline(always)]
pub(super) fn bytes_of(words: &[u64]) -> Src<'_> {
    Src::from(words)
}

/// Up to eight bytes from `at` on, as they stand in memory; zeroes follow the last one.
#[inline(always)]
pub(super) fn word_at(bytes: Src<'_>, at: usize) -> u64 {
    let mut word = [0; 8];
    let left = bytes.len() - at;
    if left >= 8 {
        Dst::from(&mut word[..]).copy_from(bytes.part(at, 8));
    } else {
        Dst::from(&mut word[..left]).copy_from(bytes.part(at, left));
    }
    u64::from_ne_bytes(word)
}

/// A message that has arrived: arguments first, then what its form says.
///
/// Invariant: 8-byte aligned, and written only by the holder of this value until `'a` ends.
#[derive(Clone, Copy)]
pub(super) struct Body<'a> {
    bytes: Dst<'a>,
}

impl<'a> Body<'a> {
    /// A message in these bytes.
    ///
    /// # Safety
    /// They are 8-byte aligned, and the caller holds them until `'a` ends: no peer writes them.
    #[inline(always)]
    pub(super) unsafe fn held(bytes: Dst<'a>) -> Body<'a> {
        debug_assert!(bytes.as_ptr().addr().is_multiple_of(8));
        Body { bytes }
    }

    /// A message in these words.
    #[inline(always)]
    pub(super) fn of(words: &'a mut [u64]) -> Body<'a> {
        Body { bytes: Dst::from(words) }
    }

    /// Bytes.
    #[inline(always)]
    pub(super) fn len(self) -> usize {
        self.bytes.len()
    }

    /// First byte, to prefetch it.
    #[inline(always)]
    pub(super) fn address(self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// The first `n` arguments.
    #[inline(always)]
    pub(super) fn args(self, n: usize) -> Option<&'a [i32]> {
        if n * size_of::<i32>() > self.bytes.len() {
            return None;
        }
        // SAFETY: within the body, which is aligned; nothing else writes it until `'a` ends.
        Some(unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), n) })
    }

    /// The `n` bytes from `offset` on, if the body has them.
    #[inline(always)]
    pub(super) fn part(self, offset: usize, n: Peer<usize>) -> Option<Dst<'a>> {
        self.bytes.peer_part(Peer::new(offset), n)
    }

    /// The word at `offset`, if the body has one there.
    #[inline(always)]
    pub(super) fn word(self, offset: Peer<usize>) -> Option<Peer<u64>> {
        let word = self.bytes.peer_part(offset, Peer::new(8))?;
        Some(Peer::new(word_at(word.into(), 0)))
    }

    /// A copy that can be kept.
    #[cold]
    pub(super) fn copied(self) -> alloc::boxed::Box<[u64]> {
        let mut words = alloc::vec![0; self.len().div_ceil(8)];
        let copy = Body::of(&mut words).bytes.part(0, self.len());
        copy.copy_from(self.bytes.into());
        words.into_boxed_slice()
    }
}

/// A buffer of `bytes` bytes, a multiple of 8, that is never freed.
pub(super) fn leaked(bytes: usize) -> Dst<'static> {
    Dst::from(&mut *alloc::vec![0u64; bytes / 8].leak())
}
