//! Moving bytes between memory descriptors: which bytes they are, and how they are reached.
//!
//! Called by the put and get paths and by [`super::framed`]. Bytes in an arena or a segment are
//! mapped here. Bytes in a peer's private memory are reached by cross-memory attach. So are those
//! of a descriptor of this process over its address space, where pages may be missing. Invariant:
//! the bytes move once, and what a peer wrote about its memory was checked by [`crate::peer`].

use core::sync::atomic::Ordering;

use super::copy::copy;
use crate::access_fault::AccessFault;
use crate::arena::{IOVECS, peer_word};
use crate::base::fault;
use crate::deliver::Matched;
use crate::descriptor::record::{MdMemory, MdRecord};
use crate::descriptor::state::Accepted;
use crate::descriptor::traits::MemoryKind;
use crate::peer::{Location, MappedPeer};
use crate::tables::NiState;
use crate::types::*;
use sys::attach::{self, AttachFailure};
use sys::peer::Peer;
use sys::process;

/// Fills places of a [`ByteRanges`] that are not used.
const NOWHERE: Location = Location::Remote(Peer::new(0));

/// Ranges of memory, in order.
pub(super) struct ByteRanges {
    count: usize,
    list: [(Location, u64); IOVECS],
}

impl ByteRanges {
    fn new() -> ByteRanges {
        ByteRanges { count: 0, list: [(NOWHERE, 0); IOVECS] }
    }

    pub(super) fn one(pointer: *mut u8, length: u64) -> ByteRanges {
        let mut out = ByteRanges::new();
        out.push(Location::Mapped(pointer), length);
        out
    }

    /// Fills in pieces of memory that is mapped here, and returns how many; `None` if some is
    /// not.
    pub(super) fn mapped(&self, pieces: &mut [MdIovec; IOVECS]) -> Option<usize> {
        for (piece, &(location, len)) in pieces.iter_mut().zip(&self.list[..self.count]) {
            let Location::Mapped(base) = location else { return None };
            *piece = MdIovec { base: base.cast(), len };
        }
        Some(self.count)
    }

    fn push(&mut self, location: Location, length: u64) {
        if let Some(free) = self.list.get_mut(self.count) {
            *free = (location, length);
            self.count += 1;
        }
    }

    /// The `length` bytes that begin `at` bytes into the pieces taken together.
    fn cut(at: u64, length: u64, pieces: impl Iterator<Item = (Location, u64)>) -> ByteRanges {
        let mut out = ByteRanges::new();
        let (mut skip, mut left) = (at, length);
        for (location, size) in pieces {
            if left == 0 {
                break;
            }
            if skip >= size {
                skip -= size;
                continue;
            }
            let take = (size - skip).min(left);
            out.push(location.advance(skip), take);
            skip = 0;
            left -= take;
        }
        out
    }
}

impl NiState {
    /// The memory of a matched descriptor, a peer's or our own, for operations that need these
    /// options. `None`: a peer's words lead outside of what is shared, or of the descriptor.
    fn target_ranges(
        &self,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        needs: u32,
    ) -> Option<ByteRanges> {
        let Accepted { offset, mlength, .. } = matched.accepted;
        if peer.index == self.peers.index {
            let memory = self.own_target(matched, needs)?;
            return Some(own_ranges(memory, offset, mlength));
        }
        let (cell, kind) = (matched.cell, matched.traits.kind());
        let (start, address, whole) =
            (peer_word(&cell.start), peer_word(&cell.address), peer_word(&cell.length));
        let iov = peer_word(&cell.iov);
        // What is used was read before: a word that is overwritten later was right.
        if !cell.is_sealed(matched.traits.0) {
            return self.address_is_damaged(peer, matched);
        }
        if kind != MemoryKind::Scattered {
            let length = Peer::new(mlength);
            let location = self.peers.locate(peer, kind, start, address, offset, length)?;
            if let Location::Remote(_) = location {
                let inside = length.map(|length| offset.saturating_add(length));
                inside.at_most(whole.data())?;
            }
            let mut out = ByteRanges::new();
            out.push(location, mlength);
            return Some(out);
        }
        let table = peer.view.iov(iov)?;
        let (mut sealed, mut whole) = (true, true);
        let pieces = table.used().iter().map(|piece| {
            let size = peer_word(&piece.length);
            let kind = MemoryKind::from_bits(piece.kind.load(Ordering::Relaxed).into());
            let (start, address) = (peer_word(&piece.start), peer_word(&piece.address));
            let location = self.peers.locate(peer, kind, start, address, 0, size);
            whole &= location.is_some();
            sealed &= piece.is_sealed();
            // A location was checked for this size, or the kernel checks what it is used for.
            (location.unwrap_or(NOWHERE), size.data())
        });
        let out = ByteRanges::cut(offset, mlength, pieces);
        if !sealed {
            return self.address_is_damaged(peer, matched);
        }
        whole.then_some(out)
    }

    /// Reports that the addresses of a peer's descriptor were overwritten: its owner does not
    /// change them while a hazard names it.
    #[cold]
    fn address_is_damaged(&self, peer: &MappedPeer, matched: &Matched<'_>) -> Option<ByteRanges> {
        self.report(&Damage::Address { process: peer.index, md: matched.md });
        None
    }

    /// Moves the bytes of a matched message between a descriptor of ours and the target. Hazards
    /// name both.
    #[inline(always)]
    pub(crate) fn move_bytes(
        &self,
        record: &MdRecord,
        local_offset: u64,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        to_target: bool,
    ) -> bool {
        if peer.index != self.peers.index && record.pieces.load(Ordering::Relaxed).is_null() {
            let start = record.start.load(Ordering::Relaxed) as *mut u8;
            let local = start.wrapping_add(local_offset as usize);
            let local = [MdIovec { base: local.cast(), len: matched.accepted.mlength }];
            // SAFETY: memory of a descriptor, valid until the unlink (`md_attach`), which a hazard
            // prevents; the range was checked against its length.
            return unsafe { self.move_pieces(&local, peer, matched, to_target) };
        }
        self.move_ranges(record, local_offset, peer, matched, to_target)
    }

    /// Moves the bytes of a matched message between pieces of memory here, one after the other,
    /// and another process, whose descriptor a hazard names.
    ///
    /// # Safety
    /// The pieces are valid for the bytes accepted: readable if they move `to_target`, else
    /// writable.
    #[inline(always)]
    pub(crate) unsafe fn move_pieces(
        &self,
        local: &[MdIovec],
        peer: &MappedPeer,
        matched: &Matched<'_>,
        to_target: bool,
    ) -> bool {
        let Accepted { offset, mlength, .. } = matched.accepted;
        if let Some(mut remote) = self.mapped_memory(peer, matched) {
            remote = remote.wrapping_add(offset as usize);
            let mut left = mlength;
            for piece in local {
                let n = piece.len.min(left) as usize;
                let local = piece.base.cast();
                let (from, to) = if to_target { (local, remote) } else { (remote, local) };
                // SAFETY: `local` is a part of a valid piece (`# Safety`). `remote` lies in an
                // arena or a segment, and all pieces together in the bytes accepted there.
                unsafe { copy(from, to, n) };
                remote = remote.wrapping_add(n);
                left -= n as u64;
            }
            fault::point("put.copied");
            return true;
        }
        self.move_remote_pieces(local, peer, matched, to_target)
    }

    /// First byte of the descriptor's memory, if the bytes accepted are mapped here.
    #[inline(always)]
    fn mapped_memory(&self, peer: &MappedPeer, matched: &Matched<'_>) -> Option<*mut u8> {
        if !matched.base.is_null() {
            // All of the descriptor is mapped, and the bytes were accepted by its length.
            return Some(matched.base);
        }
        self.look_up_memory(peer, matched)
    }

    #[cold]
    #[inline(never)]
    fn look_up_memory(&self, peer: &MappedPeer, matched: &Matched<'_>) -> Option<*mut u8> {
        let (cell, kind) = (matched.cell, matched.traits.kind());
        let length = peer_word(&cell.length);
        let base = self.peers.mapped_at(peer, kind, peer_word(&cell.start), length.data())?;
        let Accepted { offset, mlength, .. } = matched.accepted;
        Peer::new(offset.saturating_add(mlength)).at_most(length.data())?;
        cell.is_sealed(matched.traits.0).then_some(base)
    }

    #[inline(never)]
    fn move_remote_pieces(
        &self,
        local: &[MdIovec],
        peer: &MappedPeer,
        matched: &Matched<'_>,
        to_target: bool,
    ) -> bool {
        let pieces = local.iter().map(|piece| (Location::Mapped(piece.base.cast()), piece.len));
        let local = ByteRanges::cut(0, matched.accepted.mlength, pieces);
        self.move_between(&local, peer, matched, to_target)
    }

    #[inline(never)]
    fn move_ranges(
        &self,
        record: &MdRecord,
        local_offset: u64,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        to_target: bool,
    ) -> bool {
        // The kernel checks the memory of the target; what else the client names is its own.
        let memory = MdMemory { whole: false, ..record.memory() };
        let local = own_ranges(memory, local_offset, matched.accepted.mlength);
        self.move_between(&local, peer, matched, to_target)
    }

    /// Moves the bytes of a matched message between ranges here and the target.
    fn move_between(
        &self,
        local: &ByteRanges,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        to_target: bool,
    ) -> bool {
        let needs = if to_target { md_options::OP_PUT } else { md_options::OP_GET };
        let Some(remote) = self.target_ranges(peer, matched, needs) else { return false };
        let pid = peer.attached_pid();
        let (from, to) = if to_target { (local, &remote) } else { (&remote, local) };
        let moved = copy_all(from, to, pid);
        fault::point("put.copied");
        match moved {
            Ok(()) | Err(AttachFailure::Process) => {}
            Err(failure) => self.refused(failure, local, &remote, peer.index, to_target),
        }
        moved.is_ok()
    }

    /// Reports a put or get of this process that named memory which is not there, or which the
    /// system denies it.
    #[cold]
    #[inline(never)]
    fn refused(
        &self,
        failure: AttachFailure,
        local: &ByteRanges,
        remote: &ByteRanges,
        target: u32,
        put: bool,
    ) {
        let mut here = local.list[..local.count].iter().filter_map(|&(at, length)| match at {
            Location::Mapped(at) => Some((at.addr() as u64, length)),
            Location::Remote(_) | Location::Own(_) => None,
        });
        let wrong = |&(at, length): &(u64, u64)| !attach::is_accessible(at, length, !put);
        let length = local.list[..local.count].iter().map(|piece| piece.1).sum();
        let there = match remote.list[0].0 {
            Location::Mapped(at) => at.addr() as u64,
            Location::Remote(at) => at.data(),
            Location::Own(at) => at,
        };
        let initiator = self.peers.process(self.peers.index);
        let target = self.peers.process(target);
        self.peers.report_fault(&match here.find(wrong) {
            _ if failure == AttachFailure::Denied => {
                AccessFault::Denied { put, initiator, target, address: there, length }
            }
            Some((address, length)) => AccessFault::Initiator { put, address, length },
            None => AccessFault::Target { put, initiator, target, address: there, length },
        });
    }

    /// Swaps `bytes` (at most 64) with the bytes of a matched get-put, under the target's lock
    /// word. `bytes` is stored, and then holds what was there before.
    pub(crate) fn swap_bytes(
        &self,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        bytes: &mut [u8],
    ) -> bool {
        let needs = md_options::OP_PUT | md_options::OP_GET;
        let Some(remote) = self.target_ranges(peer, matched, needs) else { return false };
        let pid = peer.attached_pid();
        let mut before = [0u8; 64];
        let length = bytes.len().min(before.len());
        let old = ByteRanges::one(before.as_mut_ptr(), length as u64);
        let new = ByteRanges::one(bytes.as_mut_ptr(), length as u64);
        let lock = &peer.view.header().swap_lock.0;
        if !self.peers.lock_swap(lock) {
            return false;
        }
        fault::point("getput.locked");
        let swapped = copy_all(&remote, &old, pid).and_then(|()| copy_all(&new, &remote, pid));
        let ok = swapped.is_ok();
        self.peers.unlock_swap(lock);
        bytes[..length].copy_from_slice(&before[..length]);
        ok
    }
}

/// The memory of a descriptor of ours, `at` bytes from its start. The caller holds the
/// descriptor and has checked the length.
pub(super) fn own_ranges(memory: MdMemory, at: u64, length: u64) -> ByteRanges {
    let MdMemory { start, pieces, whole } = memory;
    if whole {
        let mut out = ByteRanges::new();
        out.push(Location::Own((start.addr() as u64).wrapping_add(at)), length);
        return out;
    }
    if pieces.is_null() {
        return ByteRanges::one(start.wrapping_add(at as usize), length);
    }
    // SAFETY: made by `NiState::write`, freed only when no hazard names the descriptor.
    let pieces = unsafe { &*pieces };
    let locations =
        pieces.list[..pieces.count].iter().map(|&(base, size)| (Location::Mapped(base), size));
    ByteRanges::cut(at, length, locations)
}

/// Copies bytes between a descriptor of ours and a buffer: to the buffer if `out`. The caller
/// holds the descriptor and has checked `at + length`.
pub(crate) fn copy_own(
    memory: MdMemory,
    at: u64,
    buffer: &mut [u8],
    out: bool,
) -> Result<(), AttachFailure> {
    let memory = own_ranges(memory, at, buffer.len() as u64);
    let buffer = ByteRanges::one(buffer.as_mut_ptr(), buffer.len() as u64);
    if out { copy_all(&memory, &buffer, 0) } else { copy_all(&buffer, &memory, 0) }
}

/// Copies from one list of ranges to another of the same total length. Of one of them all are
/// mapped.
///
/// # Errors
/// Not all bytes moved.
pub(super) fn copy_all(from: &ByteRanges, to: &ByteRanges, pid: u32) -> Result<(), AttachFailure> {
    let (mut i, mut j) = (0, 0);
    let (mut i_done, mut j_done) = (0, 0);
    while i < from.count && j < to.count {
        let (source, source_size) = from.list[i];
        let (target, target_size) = to.list[j];
        let length = (source_size - i_done).min(target_size - j_done);
        let count = length as usize;
        // A mapped range lies in memory of a held descriptor, in an arena or a segment, or in a
        // caller's buffer; its length was checked. The kernel checks the other ranges.
        match (source.advance(i_done), target.advance(j_done)) {
            (Location::Mapped(a), Location::Mapped(b)) => {
                // SAFETY: both ranges are mapped, as above, and have `count` bytes left.
                unsafe { copy(a, b, count) };
            }
            (Location::Mapped(a), Location::Remote(b)) => {
                // SAFETY: `a` is mapped, as above, and has `count` bytes left.
                unsafe { attach::write(pid, b.data(), a, count) }?
            }
            (Location::Mapped(a), Location::Own(b)) => {
                // SAFETY: as above.
                unsafe { attach::write(process::pid(), b, a, count) }?
            }
            (Location::Remote(a), Location::Mapped(b)) => {
                // SAFETY: `b` is mapped, as above, and has `count` bytes left.
                unsafe { attach::read(pid, a.data(), b, count) }?
            }
            (Location::Own(a), Location::Mapped(b)) => {
                // SAFETY: as above.
                unsafe { attach::read(process::pid(), a, b, count) }?
            }
            (_, Location::Remote(_) | Location::Own(_)) => return Err(AttachFailure::Process),
        }
        i_done += length;
        j_done += length;
        if i_done == source_size {
            (i, i_done) = (i + 1, 0);
        }
        if j_done == target_size {
            (j, j_done) = (j + 1, 0);
        }
    }
    Ok(())
}
