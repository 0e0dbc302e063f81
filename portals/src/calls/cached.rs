//! Puts and gets by a cached match alone: a delivery without a walk.
//!
//! Called first by [`super::at_once`]. All steps that do not depend on the message were done
//! when the match was cached (see [`crate::peer::match_cache`]). The others have the order of
//! [`crate::deliver`]. The hazard is published; the key of the ring and the list's version are
//! read once more. Room is claimed, the bytes move, END is posted. The claim is given back, and
//! the hazard is cleared. Invariant: a call that returns false (no match, another version, no
//! room) has moved and posted nothing; the caller then walks.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use super::NetworkInterface;
use crate::arena::MdCell;
use crate::arena::hazard::HazardWord;
use crate::base::fault;
use crate::deliver::Matched;
use crate::descriptor::state::{self, Accepted};
use crate::event::ring::{EventSlots, INLINE};
use crate::message::{OpKind, TargetAddress};
use crate::peer::MappedPeer;
use crate::peer::match_cache::{self, CachedMatch};
use crate::transfer::copy;
use crate::types::*;
use sys::cache;
use sys::hint::cold_path;

impl NetworkInterface {
    /// A hint: a put of `bytes` bytes to this entry will follow soon. Prefetches the cache lines
    /// of its destination, if a cached match names them and the target manages the offset. The
    /// line of the event is not prefetched: its consumer, which polls it, would take it back
    /// before the event is written.
    #[inline(always)]
    pub fn about_to_put(
        &self,
        target: PtlProcessId,
        pt_index: PtIndex,
        match_bits: MatchBits,
        bytes: Size,
    ) {
        let kind = OpKind::Put;
        if let Some((_, entry)) = self.state.peers.cached(kind, target, pt_index, match_bits)
            && let Some(at) = entry.guess(match_cache::key(kind, pt_index, 0), match_bits)
        {
            cache::prefetch_range_to_write(at, bytes as usize);
        }
    }

    /// [`NetworkInterface::put_at_once`] of one piece, where a cached match leads to memory that
    /// is mapped here. False, and nothing done, elsewhere.
    ///
    /// # Safety
    /// The piece is readable.
    #[inline(always)]
    pub unsafe fn put_mapped(
        &self,
        from: MdIovec,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
    ) -> bool {
        let (kind, n, bits, offset) = (OpKind::Put, from.len, match_bits, remote_offset);
        // SAFETY: a put only reads the piece, which is readable (`# Safety` above).
        unsafe {
            self.by_cached_match(
                kind,
                &[from],
                n,
                target,
                pt_index,
                ac_index,
                bits,
                offset,
                0,
                None,
            )
        }
    }

    /// [`NetworkInterface::get_at_once`], as [`NetworkInterface::put_mapped`].
    ///
    /// # Safety
    /// The piece is writable.
    #[inline(never)]
    pub unsafe fn get_mapped(
        &self,
        to: MdIovec,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
    ) -> bool {
        let (kind, n, bits, offset) = (OpKind::Get, to.len, match_bits, remote_offset);
        // SAFETY: the piece is writable (`# Safety` above).
        unsafe {
            self.by_cached_match(kind, &[to], n, target, pt_index, ac_index, bits, offset, 0, None)
        }
    }

    /// Puts or gets `length` bytes, the sum of the pieces; false, and nothing done, if no cached
    /// match serves. With `inline`: an empty put at offset 0 whose event carries that payload.
    ///
    /// # Safety
    /// The pieces are readable by a put and writable by a get.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    pub(crate) unsafe fn by_cached_match<const N: usize>(
        &self,
        kind: OpKind,
        pieces: &[MdIovec; N],
        length: Size,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
        hdr_data: HdrData,
        inline: Option<&InlineWords>,
    ) -> bool {
        let mut copy = MaybeUninit::uninit();
        let Some((peer, entry)) = self.state.peers.cached(kind, target, pt_index, match_bits)
        else {
            return false;
        };
        let key = match_cache::key(kind, pt_index, ac_index);
        let Some(cached) = entry.read(self.state.peers.single, &mut copy, key, match_bits) else {
            return false;
        };
        if self.framed_before.load(Ordering::Relaxed) {
            cold_path();
            if self.framer.busy(target.pid) {
                return false;
            }
        }
        let p = &cached.prepared;
        if p.base.is_null() || inline.is_some() && (p.ring.is_null() || p.cursor_mask != 0) {
            cold_path();
            return false;
        }
        fault::point("put.matched");
        let hold = self.state.peers.hold(HazardWord::from_bits(p.hazard));
        fault::point("put.held");
        // SAFETY: null, or one of the rings of the peer, which live as long as the interface.
        let ring = unsafe { p.ring.as_ref() };
        // SAFETY: not null where `base` is not, and a word of the peer's arena, which stays
        // mapped.
        let pt = unsafe { &*p.pt };
        // SAFETY: as `pt`.
        let ac = unsafe { &*p.ac };
        // SAFETY: as `pt`.
        let cell = unsafe { &*p.cell };
        let offset = match ring.is_none_or(|ring| ring.is_still(p.eq_key)) {
            true => self.claim_cached(cached, pt, ac, cell, length, remote_offset),
            false => None,
        };
        let Some(offset) = offset else {
            cold_path();
            hold.clear(false);
            return false;
        };
        fault::point("put.claimed");
        let mut remote = p.base.wrapping_add(offset as usize);
        for piece in pieces {
            let (n, local) = (piece.len as usize, piece.base.cast::<u8>());
            let (from, to) = if kind == OpKind::Put { (local, remote) } else { (remote, local) };
            // SAFETY: `local` is a valid piece (`# Safety`). `remote` lies in the descriptor and
            // has space for all pieces. The descriptor was mapped when the match was cached and
            // has not changed since (same version).
            unsafe { copy::copy(from, to, n) };
            remote = remote.wrapping_add(n);
        }
        fault::point("put.copied");
        order(kind);
        let mut posted = None;
        if let Some(ring) = ring {
            // SAFETY: `ArenaView::ring` returned the slots when the match was cached; the peer's
            // arena stays mapped.
            let slots = unsafe { EventSlots::new(p.slots, p.mask) };
            // SAFETY: set together with `ring`; a queue in the peer's arena, which stays mapped.
            let eq = unsafe { &*p.eq };
            let link = u64::from(THRESH_INF as u32);
            let words = match inline {
                None => [p.what, match_bits, hdr_data, length, length, offset, link],
                Some(&[a, b, c, d]) => [p.what | INLINE, match_bits, hdr_data, a, b, c, d],
            };
            posted = ring.post_words(slots, eq, self.state.peers.index, words);
            // A process that posts without waiting in between will post again: prefetch the slot
            // after the next two, which were prefetched before. Otherwise the cache line is left
            // to the peer, which polls it.
            if self.in_a_row.load(Ordering::Relaxed) {
                ring.prefetch(slots, 2);
            } else {
                self.in_a_row.store(true, Ordering::Relaxed);
            }
        }
        fault::point("put.ended");
        self.state.count(&hold, kind, inline.map_or(length, |inline| size_of_val(inline) as Size));
        if p.cursor_mask != 0 && state::give_back_counted(cell) {
            cold_path();
            let to =
                TargetAddress { target, pt_index, ac_index, match_bits, remote_offset, hdr_data };
            self.unlink_cached(
                peer,
                kind,
                cached,
                cell,
                length,
                offset,
                &to,
                posted.unwrap_or(0) as Seq,
            );
        }
        self.state.peers.finish(hold, Some(peer), ring.is_some(), false);
        true
    }

    /// Claims room: the offset. The hazard has been published.
    #[inline(always)]
    pub(super) fn claim_cached(
        &self,
        cached: &CachedMatch,
        pt: &AtomicU64,
        ac: &AtomicU64,
        cell: &MdCell,
        length: Size,
        remote_offset: Size,
    ) -> Option<Size> {
        // SeqCst: the second half of Dekker's algorithm (see [`crate::arena::hazard`]).
        if pt.load(Ordering::SeqCst) != cached.version
            || ac.load(Ordering::Acquire) != cached.ac_version
        {
            cold_path();
            return None;
        }
        let mask = cached.prepared.cursor_mask;
        if mask == 0 {
            let room = cached.length.checked_sub(remote_offset)?;
            return (length <= room).then_some(remote_offset);
        }
        let mut now = cell.state.0.load(Ordering::Relaxed);
        loop {
            let offset = now & mask;
            let left = cached.length.checked_sub(offset)?.checked_sub(length)?;
            if now & state::INACTIVE != 0 || now & state::FLIGHTS == state::FLIGHTS {
                return None;
            }
            let full = cached.traits.has(md_options::MAX_SIZE) && left < cached.max_size;
            let next = (now + length + state::FLIGHT) | if full { state::INACTIVE } else { 0 };
            // AcqRel: as in `state::claim`.
            match cell.state.0.compare_exchange_weak(
                now,
                next,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(offset),
                Err(other) => now = other,
            }
        }
    }

    /// Posts UNLINK: this was the last delivery of a descriptor that has unlinked itself.
    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn unlink_cached(
        &self,
        peer: &MappedPeer,
        kind: OpKind,
        cached: &CachedMatch,
        cell: &MdCell,
        length: Size,
        offset: Size,
        to: &TargetAddress,
        link: Seq,
    ) {
        let matched = Matched {
            md: cached.md as u32,
            cell,
            traits: cached.traits,
            generation: cell.generation.load(Ordering::Relaxed),
            eq_key: cached.prepared.eq_key,
            accepted: Accepted { offset, mlength: length, threshold: THRESH_INF },
            base: cached.prepared.base,
        };
        self.state.peers.post_unlink(peer, &matched, &self.state.header(kind, to, length), link);
    }
}

/// Orders the bytes of an operation that is complete at once, since no event does it here.
/// A put's bytes are visible before what this thread stores later. A get's bytes are no older
/// than what it loads later.
#[inline(always)]
pub(crate) fn order(kind: OpKind) {
    fence(if kind == OpKind::Put { Ordering::Release } else { Ordering::Acquire });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::md_options::*;
    use crate::nal::shm::AttachPolicy;
    use crate::nal::shm::tests::fabric;
    use crate::test_memory::md;

    /// The address of the next message is predicted for messages with a cached match whose
    /// target manages the offset.
    #[test]
    fn where_the_next_message_will_go() {
        let nis = fabric(2, AttachPolicy::Denied);
        let (a, b) = (&nis[0], &nis[1]);
        let eq = b.eq_alloc(16, None).unwrap();
        let start = b.alloc(256, 64).unwrap().as_ptr();
        let options = OP_PUT | MAX_SIZE | EVENT_START_DISABLE;
        let arena = MemoryDescriptor {
            start: start.cast(),
            length: 256,
            max_size: 64,
            options,
            ..md(&mut [], 0, eq)
        };
        for (bits, md) in
            [(1, arena), (2, MemoryDescriptor { options: options | MANAGE_REMOTE, ..arena })]
        {
            let me =
                b.me_attach(4, PtlProcessId::ANY, bits, 0, Unlink::Unlink, InsPos::After).unwrap();
            // SAFETY: memory of the arena.
            unsafe { b.md_attach(me, &md, Unlink::Unlink).unwrap() };
        }
        let note = |bits| a.state.peers.cached(OpKind::Put, b.id(), 4, bits).unwrap().1;
        let guess = |bits| note(bits).guess(match_cache::key(OpKind::Put, 4, 0), bits);
        let bytes = [7u8; 40];
        let piece = [MdIovec { base: bytes.as_ptr().cast_mut().cast(), len: 40 }];
        // SAFETY: an array.
        let put = |bits| unsafe { a.put_at_once(piece, b.id(), 4, 0, bits, 0, 0) };
        assert_eq!(
            (put(2), guess(1), put(1), put(1)),
            (Ok(Some(40)), None, Ok(Some(40)), Ok(Some(40)))
        );
        // Two messages of 40 bytes, at offsets that the target chose.
        let at = guess(1).unwrap();
        // SAFETY: 80 bytes before it are the ones that were sent.
        assert_eq!(unsafe { std::slice::from_raw_parts(at.sub(80), 80) }, [7; 80]);
        // SAFETY: memory of the arena, which nothing else uses.
        unsafe { at.write(9) };
        // SAFETY: as above.
        assert_eq!(unsafe { start.add(80).read() }, 9);
        assert_eq!(
            (guess(2), note(1).guess(match_cache::key(OpKind::Get, 4, 0), 1)),
            (None, None)
        );
        assert_eq!(note(1).guess(match_cache::key(OpKind::Put, 4, 0), 3), None);
        // Nothing is predicted for an entry or process without a cached match.
        a.about_to_put(b.id(), 9, 5, 100);
        a.about_to_put(PtlProcessId { nid: b.id().nid, pid: 77 }, 4, 1, 100);
    }

    /// Where a descriptor accepts a part, or nothing, the call says how much.
    #[test]
    fn how_much_was_accepted_is_returned() {
        let nis = fabric(2, AttachPolicy::Denied);
        let (a, b) = (&nis[0], &nis[1]);
        let start = b.alloc(64, 64).unwrap().as_ptr();
        let options = OP_PUT | OP_GET | MANAGE_REMOTE | TRUNCATE | EVENT_START_DISABLE;
        for (bits, length) in [(1, 8), (2, 0)] {
            let me =
                b.me_attach(4, PtlProcessId::ANY, bits, 0, Unlink::Retain, InsPos::After).unwrap();
            let arena = MemoryDescriptor {
                start: start.cast(),
                length,
                ..md(&mut [], options | EVENT_END_DISABLE, EqHandle::NONE)
            };
            // SAFETY: memory of the arena.
            unsafe { b.md_attach(me, &arena, Unlink::Retain).unwrap() };
        }
        let mut bytes = [7u8; 16];
        let at = bytes.as_mut_ptr();
        for _ in 0..3 {
            let put = |bits, len| {
                let piece = [MdIovec { base: at.cast(), len }];
                // SAFETY: an array.
                unsafe { a.put_at_once(piece, b.id(), 4, 0, bits, 0, 0) }
            };
            assert_eq!([put(1, 16), put(1, 8), put(1, 9)], [Ok(Some(8)); 3]);
            assert_eq!([put(2, 16), put(2, 1)], [Ok(Some(0)); 2]);
            // SAFETY: an array.
            let get = |bits, len| unsafe { a.get_at_once(at, len, b.id(), 4, 0, bits, 4) };
            assert_eq!([get(1, 8), get(1, 4)], [Ok(Some(4)); 2]);
        }
    }

    /// A peer's descriptor that names a queue without a key: no event is posted, neither by the
    /// walk nor by the cached match.
    #[test]
    fn a_queue_without_key_gets_no_event() {
        let nis = fabric(2, AttachPolicy::Denied);
        let (a, b) = (&nis[0], &nis[1]);
        let eq = b.eq_alloc(16, None).unwrap();
        let me = b.me_attach(4, PtlProcessId::ANY, 1, 0, Unlink::Retain, InsPos::After).unwrap();
        // SAFETY: a descriptor without bytes.
        unsafe {
            b.md_attach(
                me,
                &md(&mut [], OP_PUT | MANAGE_REMOTE | EVENT_START_DISABLE, eq),
                Unlink::Retain,
            )
            .unwrap()
        };
        for cell in (0..b.limits().max_mds).filter_map(|md| b.state.peers.own.view.md(md)) {
            cell.eq_key.store(0, Ordering::Relaxed);
        }
        for _ in 0..3 {
            // SAFETY: no pieces.
            assert_eq!(unsafe { a.put_at_once([], b.id(), 4, 0, 1, 0, 0) }, Ok(Some(0)));
        }
        assert!(b.eq_get(eq).unwrap().is_none());
    }
}
