//! Event queues: allocate, free, and take the next event.
//!
//! An interface's owner calls these; producers never do. Invariant: an event is taken once, in
//! the order of its positions.

use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering, fence};

use super::NetworkInterface;
use crate::arena::ring::first;
use crate::arena::{ShapeWords, doorbell};
use crate::descriptor::record::MdRecord;
use crate::event::record::{EqRecord, EqWatch, TakenEvent, pass, take_slot};
use crate::event::ring::INLINE;
use crate::nal::numbering::RemoteName;
use crate::types::*;
use sys::hint::cold_path;
use sys::peer::Peer;

impl NetworkInterface {
    /// What it takes to look at a queue often.
    pub fn eq_watch(&self, eq: EqHandle) -> Result<EqWatch, PtlError> {
        let index = self.state.eq_index(eq)?;
        let (state, cell) = (&self.state, self.state.eq_cell(index));
        // SAFETY: cells are in our own arena, which is the NAL's.
        Ok(unsafe { EqWatch::new(eq, &state.eqs, index, cell, &state.peers.nal) })
    }

    /// Whether the queue is empty, by one look at the slot of its next event. Frames that have
    /// arrived are not seen before [`NetworkInterface::progress`].
    #[inline(always)]
    pub fn eq_is_quiet(&self, watch: &EqWatch) -> bool {
        watch.record().look(Ordering::Relaxed).is_none()
    }

    /// The position of the next event, if no process has begun to post it: all events that were
    /// posted have been taken. Frames count as not posted until [`NetworkInterface::progress`].
    pub fn eq_drained(&self, watch: &EqWatch) -> Option<u64> {
        watch.record().unclaimed()
    }

    /// Called by a thread that looks for events: its next message does not continue a burst.
    #[inline(always)]
    pub fn burst_ends(&self) {
        if self.in_a_row.load(Ordering::Relaxed) {
            self.in_a_row.store(false, Ordering::Relaxed);
        }
    }

    /// Whether a message was posted after the last look for events.
    #[inline(always)]
    pub fn is_in_burst(&self) -> bool {
        self.in_a_row.load(Ordering::Relaxed)
    }

    /// Whether the handle is valid.
    pub fn has_eq(&self, eq: EqHandle) -> bool {
        self.state.eq_index(eq).is_ok()
    }

    /// `PtlEQAlloc`: room for at least `count` events (rounded up to a power of two). A
    /// `handler` is run with every event, by the thread that takes it from the queue.
    pub fn eq_alloc(&self, count: Size, handler: Option<EqHandler>) -> Result<EqHandle, PtlError> {
        if count == 0 {
            return Ok(EqHandle::NONE);
        }
        if count > 1 << 24 {
            return Err(PtlError::NoSpace);
        }
        let size = count.next_power_of_two();
        let owner = &mut *self.state.owner.lock();
        let mut taken = self.state.take_queue(owner, size);
        if taken.is_none() {
            self.state.reclaim(owner);
            taken = self.state.take_queue(owner, size);
        }
        let (index, offset, used) = taken.ok_or(PtlError::NoSpace)?;
        owner.next_eq_key += 1;
        let shape = ShapeWords { ring: offset, size, key: owner.next_eq_key };
        owner.rings[index as usize] = shape;
        let (record, cell, ring) = (
            &self.state.eqs[index as usize],
            self.state.eq_cell(index),
            &self.state.peers.own.rings[index as usize],
        );
        let relaxed = Ordering::Relaxed;
        cell.head.0.store(first(size), relaxed);
        cell.losses.count.store(0, relaxed);
        cell.losses.last.store(0, relaxed);
        cell.losses.claimed.store(0, relaxed);
        // A producer that sees the key sees the rest.
        fence(Ordering::Release);
        shape.store(&cell.shape);
        record.descriptors.store(0, relaxed);
        record.handler.store(handler.map_or(0, |f| f as usize), relaxed);
        if !ring.follow(&self.state.peers.own.view, cell, owner.next_eq_key) {
            return Err(PtlError::Fail);
        }
        // A ring that was never used is zeros, as a new ring must be.
        if used {
            for position in 0..size {
                ring.slots().at(position).control.store(0, relaxed);
            }
        }
        ring.slots().set_up_first();
        record.slots.store(ring.slots().first.cast_mut(), relaxed);
        record.mask.store(size - 1, relaxed);
        record.start(first(size));
        let generation = (record.handle.load(relaxed) >> 16).wrapping_add(1) & 0xffff;
        record.handle.store(generation << 16 | 1, Ordering::Release);
        Ok(EqHandle(generation << 16 | index))
    }

    /// `PtlEQFree`. Events of descriptors that still log to the queue are lost; its memory is
    /// reused when the last of them is unlinked.
    pub fn eq_free(&self, eq: EqHandle) -> Result<(), PtlError> {
        let owner = &mut *self.state.owner.lock();
        let index = self.state.eq_index(eq)?;
        let record = &self.state.eqs[index as usize];
        let mut round = 0;
        // Acquire pairs with the Release of a consumer that is just leaving.
        while record.consuming.swap(true, Ordering::Acquire) {
            sys::thread::relax(round);
            round += 1;
        }
        record.handle.fetch_and(!1, Ordering::Release);
        record.consuming.store(false, Ordering::Release);
        self.state.eq_recycle(owner, index);
        // A thread that waits for its events finds it gone. It sets its bit in the doorbell, then
        // looks at the handle; this thread changes the handle, then reads the bit.
        fence(Ordering::SeqCst);
        self.state.peers.wake_own();
        Ok(())
    }

    /// Takes the next event, and the result of `read` on it. The caller has looked the queue up,
    /// and found it at `index`.
    #[inline(always)]
    fn take<R>(
        &self,
        eq: EqHandle,
        index: u32,
        read: impl FnOnce(&TakenEvent) -> R,
    ) -> Option<(TakenEvent, R)> {
        let (record, ring) =
            (&self.state.eqs[index as usize], &self.state.peers.own.rings[index as usize]);
        // Acquire: see [`crate::arena::ring`].
        if !ring.holds(record.next.load(Ordering::Relaxed)) || !record.try_consume() {
            return None;
        }
        // Another thread may have freed it since, and allocated a new one there.
        let live = record.is_of(eq, Ordering::Relaxed);
        // Acquire: see [`crate::arena::ring`].
        let slot = if live { record.look(Ordering::Acquire) } else { None };
        let inline = &mut InlineWords::default();
        let taken =
            slot.map(|slot| take_slot(record, self.state.eq_cell(index), slot, inline, read));
        self.leave_queue(record);
        taken
    }

    /// Gives the turn at a queue back ([`EqRecord::try_consume`]).
    #[inline(always)]
    pub(super) fn leave_queue(&self, record: &EqRecord) {
        record.consuming.store(false, Ordering::Release);
        if record.missed.load(Ordering::Relaxed) {
            // A thread that found the queue taken may be about to sleep although there is more.
            record.missed.store(false, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            doorbell::ring(self.state.peers.own.view.header());
        }
    }

    /// Takes the next event after a look at the frames, and the result of `read` on it and its
    /// descriptor's record.
    fn eq_take<R>(
        &self,
        eq: EqHandle,
        read: impl Fn(&TakenEvent, &MdRecord) -> R,
    ) -> Result<Option<(u32, TakenEvent, R)>, PtlError> {
        let index = self.state.eq_index(eq)?;
        self.progress();
        loop {
            let record = |taken: &TakenEvent| self.state.named(taken.md());
            match self.take(eq, index, |taken| record(taken).map(|record| read(taken, record))) {
                Some((taken, Some(read))) => return Ok(Some((index, taken, read))),
                Some((taken, None)) => self.event_is_damaged(index, &taken),
                None => break,
            }
        }
        self.burst_ends();
        Ok(None)
    }

    /// Reports an event that names no descriptor.
    #[cold]
    fn event_is_damaged(&self, queue: u32, taken: &TakenEvent) {
        self.state.report(&Damage::Event {
            queue,
            position: taken.position,
            initiator: self.state.peers.named(taken.initiator(), taken.rlength.data()),
        });
    }

    /// `PtlEQGet` without the descriptor's snapshot and the rarely used fields; runs no handler.
    /// The watch is of this interface, and only one thread at a time takes events from the queue;
    /// otherwise events are mixed up. An inline payload is written to `inline`.
    pub fn eq_next(&self, watch: &EqWatch, inline: &mut InlineWords) -> Option<BriefEvent> {
        self.progress();
        let (record, cell) = (watch.record(), watch.cell());
        let words = |taken: &TakenEvent| {
            let record = self.state.named(taken.md())?;
            let word = |word: &AtomicUsize| word.load(Ordering::Relaxed);
            Some((word(&record.user_ptr), word(&record.start)))
        };
        let (taken, (user_ptr, start)) = loop {
            // Acquire: see [`crate::arena::ring`].
            let slot = record.look(Ordering::Acquire)?;
            match take_slot(record, cell, slot, inline, words) {
                (taken, Some(words)) => break (taken, words),
                (taken, None) => self.event_is_damaged(watch.eq().0 & 0xffff, &taken),
            }
        };
        let md = taken.md();
        let event = BriefEvent {
            kind: taken.kind(),
            dropped: taken.dropped,
            ni_fail: taken.fail(),
            md_handle: md,
            user_ptr: user_ptr as *mut _,
            start: start as *mut _,
            initiator: self.state.peers.process_named(taken.initiator(), taken.rlength.data()),
            match_bits: taken.match_bits,
            hdr_data: taken.hdr_data,
            offset: taken.offset,
            mlength: taken.mlength,
            inline: taken.what & INLINE != 0,
        };
        if event.kind == PtlEventKind::Unlink {
            self.state.reap_handle(md);
        }
        Some(event)
    }

    /// [`NetworkInterface::eq_next`], if the next event is a `PTL_EVENT_PUT_END` without loss or
    /// failure; any other stays in the queue. Does not call [`NetworkInterface::progress`].
    #[inline(always)]
    pub fn eq_next_arrival(&self, watch: &EqWatch, inline: &mut InlineWords) -> EqNext {
        let (record, cell) = (watch.record(), watch.cell());
        // Acquire: see [`crate::arena::ring`].
        let Some(slot) = record.look(Ordering::Acquire) else { return EqNext::Nothing };
        let relaxed = Ordering::Relaxed;
        let what = slot.what.load(relaxed);
        // Acquire pairs with the Release in `lose`.
        let lost = record.has_loss(cell);
        let kind = what & (0x3f | INLINE);
        if kind & !INLINE != PtlEventKind::PutEnd as u64 || lost {
            cold_path();
            return EqNext::Other;
        }
        // Not compared with the record's handle, which costs 3 % of `short_take`: the caller
        // bounds all that the event says, whichever descriptor it names.
        let Some(md) = self.state.mds.get((what >> 32 & 0xffff) as usize) else {
            return EqNext::Other;
        };
        let position = record.next.load(relaxed);
        let (offset, mlength) = if kind & INLINE == 0 {
            let mlength = slot.mlength.load(relaxed);
            if mlength != 0 {
                record.prefetch_later(position);
            }
            (slot.offset.load(relaxed), mlength)
        } else {
            *inline = slot.inline();
            (0, 0)
        };
        let arrival = PutArrival {
            user_ptr: md.user_ptr.load(relaxed) as *mut _,
            start: md.start.load(relaxed) as *mut _,
            match_bits: slot.match_bits.load(relaxed),
            hdr_data: slot.hdr_data.load(relaxed),
            offset: Peer::new(offset),
            mlength: Peer::new(mlength),
            inline: kind & INLINE != 0,
        };
        pass(record, cell, position.wrapping_add(1));
        EqNext::Arrival(arrival)
    }

    /// `PtlEQGet`: `None` is `PTL_EQ_EMPTY`.
    pub fn eq_get(&self, eq: EqHandle) -> Result<Option<FetchedEvent>, PtlError> {
        let snapshot = |taken: &TakenEvent, record: &MdRecord| {
            self.state.snapshot(record, taken.link as u32 as i32)
        };
        let Some((index, taken, md)) = self.eq_take(eq, snapshot)? else { return Ok(None) };
        let md_handle = taken.md();
        let (mut rlength, low) = (taken.rlength.data(), taken.initiator());
        let initiator = self.state.peers.process_named(low, rlength);
        if RemoteName::is_one(low) {
            rlength &= RemoteName::LENGTH;
        }
        let event = PtlEvent {
            kind: taken.kind(),
            initiator,
            uid: self.state.uid,
            jid: self.state.jid,
            pt_index: (taken.what >> 8 & 0xff) as u32,
            match_bits: taken.match_bits,
            // The specification's event is plain numbers, which its user compares with `md`.
            rlength,
            mlength: taken.mlength.data(),
            offset: taken.offset.data(),
            md_handle,
            md,
            hdr_data: taken.hdr_data,
            link: (taken.link >> 32) as Seq,
            ni_fail: taken.fail(),
            sequence: taken.position as Seq,
        };
        if event.kind == PtlEventKind::Unlink {
            self.state.reap_handle(md_handle);
        }
        let handler = self.state.eqs[index as usize].handler.load(Ordering::Relaxed);
        if handler != 0 {
            // SAFETY: stored by `eq_alloc` from a function of this type.
            let handler = unsafe { mem::transmute::<usize, EqHandler>(handler) };
            handler(&event);
        }
        Ok(Some(FetchedEvent { event, dropped: taken.dropped }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::ring::{self, published};
    use crate::nal::shm::AttachPolicy;
    use crate::nal::shm::tests::fabric;

    /// A thread that found a queue taken by another thread is woken when that one is done: there
    /// may be more.
    #[test]
    fn nobody_sleeps_over_a_queue_that_another_thread_was_at() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let eq = ni.eq_alloc(4, None).unwrap();
        let index = ni.state.eq_index(eq).unwrap();
        let (record, ring) =
            (&ni.state.eqs[index as usize], &ni.state.peers.own.rings[index as usize]);
        for position in [8, 9] {
            ring.slots().at(position).control.store(published(position), Ordering::Release);
        }
        record.consuming.store(true, Ordering::Relaxed);
        let seen = ni.doorbell();
        assert!(ni.eq_get(eq).unwrap().is_none());
        record.consuming.store(false, Ordering::Relaxed);
        assert!(ni.eq_get(eq).unwrap().is_some());
        assert_ne!(ni.doorbell(), seen);
    }

    /// A thread that has looked a queue up takes no event of a later queue in its place.
    #[test]
    fn an_event_goes_to_no_caller_that_named_an_earlier_queue() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let earlier = ni.eq_alloc(4, None).unwrap();
        let index = ni.state.eq_index(earlier).unwrap();
        ni.eq_free(earlier).unwrap();
        let reused = |eq: &EqHandle| ni.state.eq_index(*eq) == Ok(index);
        let later = (0..ni.limits().max_eqs).map(|_| ni.eq_alloc(4, None).unwrap()).find(reused);
        let ring = &ni.state.peers.own.rings[index as usize];
        ring.slots().at(8).control.store(published(8), Ordering::Release);
        assert!(ni.take(earlier, index, |_| ()).is_none());
        assert!(ni.take(later.unwrap(), index, |_| ()).is_some());
    }

    /// A watch may be looked at when its interface has been closed.
    #[test]
    fn a_watch_keeps_the_memory_of_its_queue() {
        let mut nodes = fabric(2, AttachPolicy::Denied);
        let closed = nodes.remove(0);
        let eq = closed.eq_alloc(4, None).unwrap();
        let watch = closed.eq_watch(eq).unwrap();
        drop(closed);
        assert!(nodes[0].eq_is_quiet(&watch));
        assert!(nodes[0].eq_next(&watch, &mut [0; 4]).is_none());
        assert!(matches!(nodes[0].eq_next_arrival(&watch, &mut [0; 4]), EqNext::Nothing));
    }

    /// An event that one thread took may be the one that another thread sleeps for.
    #[test]
    fn a_thread_that_took_an_event_wakes_the_others() {
        let ni = NetworkInterface::loopback(None).unwrap();
        ni.ring_self();
        let seen = ni.doorbell();
        assert_eq!(ni.doorbell(), seen);
        ni.ring_self();
        assert_ne!(ni.doorbell(), seen);
    }

    /// A queue is drained only if no position is claimed: an event may wait behind one that is not
    /// published yet.
    #[test]
    fn a_claimed_position_is_not_drained() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let eq = ni.eq_alloc(4, None).unwrap();
        let watch = ni.eq_watch(eq).unwrap();
        let ring = &ni.state.peers.own.rings[ni.state.eq_index(eq).unwrap() as usize];
        assert_eq!(ni.eq_drained(&watch), Some(8));
        let control = &ring.slots().at(8).control;
        for claimed in [ring::reserved(8, 0), published(8)] {
            control.store(claimed, Ordering::Release);
            assert_eq!(ni.eq_drained(&watch), None);
        }
        assert!(ni.eq_get(eq).unwrap().is_some());
        assert_eq!(ni.eq_drained(&watch), Some(9));
    }

    /// The producer that blocks a queue is reported while it does, and only if such a process
    /// exists.
    #[test]
    fn the_producer_that_holds_up_a_queue_has_a_name() {
        let nodes = fabric(2, AttachPolicy::Denied);
        let ni = &nodes[0];
        let eq = ni.eq_alloc(4, None).unwrap();
        let slot = ni.state.peers.own.rings[ni.state.eq_index(eq).unwrap() as usize].slots().at(8);
        slot.control.store(ring::reserved(8, 1), Ordering::Release);
        assert!(ni.eq_get(eq).unwrap().is_none());
        assert_eq!(ni.blocked_by(), Some(1));
        slot.control.store(ring::reserved(8, 0xfffff), Ordering::Release);
        assert!(ni.eq_get(eq).unwrap().is_none());
        assert_eq!(ni.blocked_by(), None);
        assert_eq!(ni.peer_state(0xfffff), crate::nal::PeerState::Dead);
        slot.control.store(ring::reserved(8, 1), Ordering::Release);
        assert!(ni.eq_get(eq).unwrap().is_none());
        slot.control.store(published(8), Ordering::Release);
        assert_eq!(ni.blocked_by(), None);
    }
}
