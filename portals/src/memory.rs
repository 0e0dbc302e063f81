//! Moving bytes between memory descriptors: which bytes they are, and how they are reached.
//!
//! Bytes in an arena or a segment are mapped here; bytes in a peer's private memory are reached with
//! cross-memory attach. The bytes move once. What a peer says of its memory is checked against the length of
//! the arena or the segment; addresses of its private memory are the kernel's to check.

use core::sync::atomic::Ordering;

use crate::arena::{IOVECS, MdCell};
use crate::deliver::{FramedTransfer, Matched};
use crate::fault;
use crate::md::{Accepted, MdMemory, MdRecord, MemoryKind};
use crate::ni::{MappedPeer, NetworkInterface};
use crate::types::*;

/// Memory of a descriptor.
#[derive(Clone, Copy)]
enum Spot {
    /// Mapped here.
    Near(*mut u8),
    /// In the peer's address space.
    Far(u64),
}

impl Spot {
    fn advance(self, by: u64) -> Spot {
        match self {
            Spot::Near(pointer) => Spot::Near(pointer.wrapping_add(by as usize)),
            Spot::Far(address) => Spot::Far(address.wrapping_add(by)),
        }
    }
}

/// Stretches of memory, in order.
struct Stretches {
    count: usize,
    list: [(Spot, u64); IOVECS],
}

impl Stretches {
    fn new() -> Stretches {
        Stretches { count: 0, list: [(Spot::Far(0), 0); IOVECS] }
    }

    fn one(pointer: *mut u8, length: u64) -> Stretches {
        let mut out = Stretches::new();
        out.push(Spot::Near(pointer), length);
        out
    }

    fn push(&mut self, spot: Spot, length: u64) {
        if let Some(free) = self.list.get_mut(self.count) {
            *free = (spot, length);
            self.count += 1;
        }
    }

    /// Cuts `length` bytes, `at` bytes from the start of the pieces taken together.
    fn cut(at: u64, length: u64, pieces: impl Iterator<Item = (Spot, u64)>) -> Stretches {
        let mut out = Stretches::new();
        let (mut skip, mut left) = (at, length);
        for (spot, size) in pieces {
            if left == 0 {
                break;
            }
            if skip >= size {
                skip -= size;
                continue;
            }
            let take = (size - skip).min(left);
            out.push(spot.advance(skip), take);
            skip = 0;
            left -= take;
        }
        out
    }
}

impl NetworkInterface {
    /// Whether the memory of a descriptor can be reached from here.
    #[inline(always)]
    pub(crate) fn reaches(&self, peer: &MappedPeer, cell: &MdCell, kind: MemoryKind) -> bool {
        if peer.index == self.index {
            return true;
        }
        match kind {
            MemoryKind::Arena => true,
            MemoryKind::Segment => self.segment_mapped(peer.index) || self.attaches(peer),
            MemoryKind::Private => self.attaches(peer),
            MemoryKind::Scattered => self.attaches(peer) || self.reaches_pieces(peer, cell),
        }
    }

    /// Whether memory of this kind is mapped here, in one piece.
    #[inline(always)]
    pub(crate) fn shares(&self, peer: &MappedPeer, kind: MemoryKind) -> bool {
        match kind {
            MemoryKind::Arena => true,
            MemoryKind::Segment => self.segment_mapped(peer.index),
            MemoryKind::Private | MemoryKind::Scattered => false,
        }
    }

    /// Where the memory of a peer's descriptor of this kind is mapped here, if all of it is, in one piece.
    pub(crate) fn mapped_at(
        &self,
        peer: &MappedPeer,
        kind: MemoryKind,
        start: u64,
        length: u64,
    ) -> Option<*mut u8> {
        if peer.index == self.index || !self.shares(peer, kind) {
            return None;
        }
        match self.spot(peer, kind, start, 0, 0, length)? {
            Spot::Near(pointer) => Some(pointer),
            Spot::Far(_) => None,
        }
    }

    fn reaches_pieces(&self, peer: &MappedPeer, cell: &MdCell) -> bool {
        peer.view.iov(cell.iov.load(Ordering::Relaxed)).is_some_and(|table| {
            let count = table.count.load(Ordering::Relaxed) as usize;
            table.pieces.iter().take(count).all(|piece| {
                match MemoryKind::from_bits(piece.kind.load(Ordering::Relaxed)) {
                    MemoryKind::Arena => true,
                    MemoryKind::Segment => self.segment_mapped(peer.index),
                    MemoryKind::Private | MemoryKind::Scattered => false,
                }
            })
        })
    }

    /// Where `length` bytes of a peer's region are, `at` bytes from its start. `None`: it lies outside of
    /// what is shared.
    #[inline(always)]
    fn spot(
        &self,
        peer: &MappedPeer,
        kind: MemoryKind,
        start: u64,
        address: u64,
        at: u64,
        length: u64,
    ) -> Option<Spot> {
        let from = start.checked_add(at)?;
        match kind {
            MemoryKind::Arena => peer.view.range(from, length).map(|p| Spot::Near(p.as_ptr())),
            MemoryKind::Segment => {
                let segment = self.segments.get(peer.index as usize)?;
                // Acquire pairs with the Release in `expose`.
                let size = segment.length.load(Ordering::Acquire);
                if size == 0 {
                    return Some(Spot::Far(address.wrapping_add(at)));
                }
                let base = segment.base.load(Ordering::Relaxed);
                (from.checked_add(length)? <= size)
                    .then(|| Spot::Near(base.wrapping_add(from as usize)))
            }
            MemoryKind::Private | MemoryKind::Scattered => {
                Some(Spot::Far(address.wrapping_add(at)))
            }
        }
    }

    /// The memory of a descriptor of ours, `at` bytes from its start. The caller holds it and has checked the
    /// length.
    fn near_stretches(&self, memory: MdMemory, at: u64, length: u64) -> Stretches {
        let MdMemory { start, pieces } = memory;
        if pieces.is_null() {
            return Stretches::one(start.wrapping_add(at as usize), length);
        }
        // SAFETY: made by `md::write`, freed only when nobody holds the descriptor.
        let pieces = unsafe { &*pieces };
        let spots =
            pieces.list[..pieces.count].iter().map(|&(base, size)| (Spot::Near(base), size));
        Stretches::cut(at, length, spots)
    }

    /// The memory of a matched descriptor of a peer, or of ours.
    fn far_stretches(&self, peer: &MappedPeer, matched: &Matched<'_>) -> Option<Stretches> {
        let Accepted { offset, mlength, .. } = matched.accepted;
        if peer.index == self.index {
            return Some(self.near_stretches(
                self.mds[matched.md as usize].memory(),
                offset,
                mlength,
            ));
        }
        let (cell, relaxed) = (matched.cell, Ordering::Relaxed);
        let kind = matched.traits.kind();
        if kind != MemoryKind::Scattered {
            let (start, address) = (cell.start.load(relaxed), cell.address.load(relaxed));
            let spot = self.spot(peer, kind, start, address, offset, mlength)?;
            let mut out = Stretches::new();
            out.push(spot, mlength);
            return Some(out);
        }
        let table = peer.view.iov(cell.iov.load(relaxed))?;
        let count = (table.count.load(relaxed) as usize).min(IOVECS);
        let mut whole = true;
        let pieces = table.pieces[..count].iter().map(|piece| {
            let size = piece.length.load(relaxed);
            let kind = MemoryKind::from_bits(piece.kind.load(relaxed));
            let (start, address) = (piece.start.load(relaxed), piece.address.load(relaxed));
            let spot = self.spot(peer, kind, start, address, 0, size);
            whole &= spot.is_some();
            (spot.unwrap_or(Spot::Far(0)), size)
        });
        let out = Stretches::cut(offset, mlength, pieces);
        whole.then_some(out)
    }

    /// Moves the bytes of a matched message between a descriptor of ours and the target. Both are held.
    #[inline(always)]
    pub(crate) fn move_bytes(
        &self,
        record: &MdRecord,
        local_offset: u64,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        to_target: bool,
    ) -> bool {
        if peer.index != self.index && record.pieces.load(Ordering::Relaxed).is_null() {
            let start = record.start.load(Ordering::Relaxed) as *mut u8;
            let near = start.wrapping_add(local_offset as usize);
            let near = [MdIovec { base: near.cast(), len: matched.accepted.mlength }];
            // SAFETY: memory of a held descriptor, which its user promised to keep valid; the range was checked against its
            // length.
            return unsafe { self.move_pieces(&near, peer, matched, to_target) };
        }
        self.move_stretches(record, local_offset, peer, matched, to_target)
    }

    /// Moves the bytes of a matched message between pieces of memory here, one after the other, and a peer other than
    /// ourselves, whose descriptor is held.
    ///
    /// # Safety
    /// The pieces are valid for the bytes accepted, to be read if they go `to_target` and written if they come from there.
    #[inline(always)]
    pub(crate) unsafe fn move_pieces(
        &self,
        near: &[MdIovec],
        peer: &MappedPeer,
        matched: &Matched<'_>,
        to_target: bool,
    ) -> bool {
        let Accepted { offset, mlength, .. } = matched.accepted;
        let (kind, start) = (matched.traits.kind(), matched.cell.start.load(Ordering::Relaxed));
        if self.shares(peer, kind)
            && let Some(Spot::Near(mut far)) = self.spot(peer, kind, start, 0, offset, mlength)
        {
            let mut left = mlength;
            for piece in near {
                let n = piece.len.min(left) as usize;
                let near = piece.base.cast();
                let (from, to) = if to_target { (near, far) } else { (far, near) };
                // SAFETY: `near` is the caller's; `far` lies in an arena or a segment, checked against its length, which
                // all pieces together do not exceed.
                unsafe { copy(from, to, n) };
                far = far.wrapping_add(n);
                left -= n as u64;
            }
            fault::point("put.copied");
            return true;
        }
        self.move_far_pieces(near, peer, matched, to_target)
    }

    #[inline(never)]
    fn move_far_pieces(
        &self,
        near: &[MdIovec],
        peer: &MappedPeer,
        matched: &Matched<'_>,
        to_target: bool,
    ) -> bool {
        let pieces = near.iter().map(|piece| (Spot::Near(piece.base.cast()), piece.len));
        let near = Stretches::cut(0, matched.accepted.mlength, pieces);
        let Some(far) = self.far_stretches(peer, matched) else { return false };
        let pid = peer.view.header().ident.os_pid.load(Ordering::Relaxed);
        let moved =
            if to_target { copy_all(&near, &far, pid) } else { copy_all(&far, &near, pid) };
        fault::point("put.copied");
        moved
    }

    #[inline(never)]
    fn move_stretches(
        &self,
        record: &MdRecord,
        local_offset: u64,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        to_target: bool,
    ) -> bool {
        let near = self.near_stretches(record.memory(), local_offset, matched.accepted.mlength);
        let Some(far) = self.far_stretches(peer, matched) else { return false };
        let pid = peer.view.header().ident.os_pid.load(Ordering::Relaxed);
        let moved =
            if to_target { copy_all(&near, &far, pid) } else { copy_all(&far, &near, pid) };
        fault::point("put.copied");
        moved
    }

    /// Copies bytes between a held descriptor of ours and a buffer. `at + length` was checked by the caller.
    pub(crate) fn copy_near(
        &self,
        memory: MdMemory,
        at: u64,
        buffer: &mut [u8],
        out: bool,
    ) -> bool {
        let memory = self.near_stretches(memory, at, buffer.len() as u64);
        let buffer = Stretches::one(buffer.as_mut_ptr(), buffer.len() as u64);
        if out { copy_all(&memory, &buffer, 0) } else { copy_all(&buffer, &memory, 0) }
    }

    /// Swaps `bytes` (at most 64) with the bytes of a matched get-put, under the target's lock for that:
    /// `bytes` goes in and comes back as what was there.
    pub(crate) fn swap_bytes(
        &self,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        bytes: &mut [u8],
    ) -> bool {
        let Some(far) = self.far_stretches(peer, matched) else { return false };
        let pid = peer.view.header().ident.os_pid.load(Ordering::Relaxed);
        let mut before = [0u8; 64];
        let length = bytes.len().min(before.len());
        let old = Stretches::one(before.as_mut_ptr(), length as u64);
        let new = Stretches::one(bytes.as_mut_ptr(), length as u64);
        let lock = &peer.view.header().swap_lock.0;
        if !self.lock_swap(lock) {
            return false;
        }
        fault::point("getput.locked");
        let ok = copy_all(&far, &old, pid) && copy_all(&new, &far, pid);
        self.unlock_swap(lock);
        bytes[..length].copy_from_slice(&before[..length]);
        ok
    }

    /// Copies bytes out of the memory of a transfer, `at` bytes from its start. False: the memory cannot be
    /// read.
    pub(crate) fn transfer_read(
        &self,
        transfer: &FramedTransfer,
        at: Size,
        to: &mut [u8],
    ) -> bool {
        inside(transfer, at, to.len())
            && self.copy_near(transfer.memory, transfer.offset + at, to, true)
    }

    /// Copies bytes into the memory of a transfer, `at` bytes from its start.
    pub(crate) fn transfer_write(&self, transfer: &FramedTransfer, at: Size, from: &[u8]) -> bool {
        if !inside(transfer, at, from.len()) {
            return false;
        }
        let memory = self.near_stretches(transfer.memory, transfer.offset + at, from.len() as u64);
        copy_all(&Stretches::one(from.as_ptr().cast_mut(), from.len() as u64), &memory, 0)
    }

    /// Swaps the bytes of a get-put arrival, atomically with other get-puts: `bytes` goes in and comes back
    /// as what was there.
    pub(crate) fn transfer_swap(&self, transfer: &FramedTransfer, bytes: &mut [u8]) -> bool {
        bytes.len() as u64 == transfer.mlength
            && self.swap_bytes(&self.own, &self.transfer_matched(transfer), bytes)
    }
}

/// Whether these bytes belong to the transfer.
fn inside(transfer: &FramedTransfer, at: Size, length: usize) -> bool {
    at.checked_add(length as u64).is_some_and(|end| end <= transfer.mlength)
}

/// Copies from one row of stretches to another of the same total length. Whether all bytes moved.
fn copy_all(from: &Stretches, to: &Stretches, pid: u32) -> bool {
    let (mut i, mut j) = (0, 0);
    let (mut i_done, mut j_done) = (0, 0);
    while i < from.count && j < to.count {
        let (source, source_size) = from.list[i];
        let (target, target_size) = to.list[j];
        let length = (source_size - i_done).min(target_size - j_done);
        // SAFETY: what is near lies in memory of a held descriptor (checked against its length), in an arena
        // or a segment (checked), or in a caller's buffer; what is far is the kernel's to check.
        let moved = unsafe {
            match (source.advance(i_done), target.advance(j_done)) {
                (Spot::Near(a), Spot::Near(b)) => {
                    copy(a, b, length as usize);
                    true
                }
                (Spot::Near(a), Spot::Far(b)) => sys::attach::write(pid, b, a, length as usize),
                (Spot::Far(a), Spot::Near(b)) => sys::attach::read(pid, a, b, length as usize),
                (Spot::Far(_), Spot::Far(_)) => false,
            }
        };
        if !moved {
            return false;
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
    true
}

/// Copies bytes that may overlap and that other processes may be looking at. 1, 2, 4 and 8 bytes are one load and one store each: who sees
/// some of a word that comes in pieces, or in two words that are the same, may write something else before the rest comes. Up to four words
/// are not worth a call.
///
/// # Safety
/// Both are valid for `length` bytes.
#[inline(always)]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: promised by the caller.
    unsafe {
        match length {
            0 => {}
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            9..=16 => {
                let last = length - 8;
                let (a, b) = (from.cast::<u64>(), from.add(last).cast::<u64>());
                let (a, b) = (a.read_unaligned(), b.read_unaligned());
                to.cast::<u64>().write_unaligned(a);
                to.add(last).cast::<u64>().write_unaligned(b);
            }
            17..=32 => {
                let last = length - 16;
                let (a, b) = (from.cast::<[u64; 2]>(), from.add(last).cast::<[u64; 2]>());
                let (a, b) = (a.read_unaligned(), b.read_unaligned());
                to.cast::<[u64; 2]>().write_unaligned(a);
                to.add(last).cast::<[u64; 2]>().write_unaligned(b);
            }
            1..8 => copy_less_than_a_word(from, to, length),
            _ => core::ptr::copy(from, to, length),
        }
    }
}

/// [`copy`] of less than 8 bytes.
///
/// # Safety
/// As [`copy`].
#[inline(never)]
unsafe fn copy_less_than_a_word(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: promised by the caller.
    unsafe {
        match length {
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            2 => to.cast::<u16>().write_unaligned(from.cast::<u16>().read_unaligned()),
            1 => to.write(from.read()),
            _ => core::ptr::copy(from, to, length),
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use core::arch::asm;
    use core::hint::black_box;
    use core::sync::atomic::AtomicU64;

    static WORD: AtomicU64 = AtomicU64::new(0);
    static ARRIVALS: AtomicU64 = AtomicU64::new(0);

    /// Takes what has arrived; called after every instruction.
    extern "C" fn take(_: i32) {
        if WORD.swap(0, Ordering::Relaxed) != 0 {
            ARRIVALS.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Who waits for a word to come, and clears it when it has, finds it cleared.
    #[test]
    fn words_arrive_once() {
        let from = 0x0707_0707_0707_0707_u64;
        let (from, to) = (black_box((&raw const from).cast()), black_box(WORD.as_ptr().cast()));
        for length in [1, 2, 4, 8] {
            let length = black_box(length);
            // SAFETY: the handler touches atomics only, and nothing else traps in this process; the processor's trap flag is of
            // this thread, and is cleared again; both pointers are valid for a word.
            unsafe {
                libc::signal(libc::SIGTRAP, take as extern "C" fn(i32) as libc::sighandler_t);
                asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq");
                copy(from, to, length);
                asm!("pushfq", "and qword ptr [rsp], -257", "popfq");
                libc::signal(libc::SIGTRAP, libc::SIG_DFL);
            }
            let left = WORD.load(Ordering::Relaxed);
            assert_eq!((ARRIVALS.swap(0, Ordering::Relaxed), left), (1, 0), "{length} bytes");
        }
    }
}
