//! Event queues: [`ring`]s of one-line slots in the owner's arena, filled by whoever delivers, emptied by the
//! owner.
//!
//! Posting an event dirties one line of the target. A full ring loses the event: the producer counts it and
//! notes the ticket it would have had; the event that gets that ticket is reported with `PTL_EQ_DROPPED`.
//!
//! A producer that dies or stops between claim and publication holds up the queue: the consumer reports it
//! empty and [`NetworkInterface::blocked_by`] tells the producer's name.
//!
//! An event is at most what a peer wrote; kinds and indices are checked, and addresses come from the reader's
//! own records. A record is not used again before all events that name it have been consumed (see
//! `md::rested`).
//!
//! Consumers take turns by a try-lock in private memory; who finds it taken for long reports the queue empty,
//! since the other thread is about to take the event.

use core::marker::PhantomData;
use core::mem;
use core::ptr::NonNull;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

use crate::arena::{EqCell, EventSlot, LINE};
use crate::doorbell;
use crate::md::MdRecord;
use crate::ni::{NetworkInterface, OwnerTables};
use crate::prefetch;
use crate::ring::{self, Memo, published, reserved_by};
use crate::types::*;
use sys::hint::cold_path;

/// A ring as a producer of this process sees it: ours or a peer's.
#[derive(Debug, Default)]
pub(crate) struct EventRing {
    /// Which queue this is; 0: none yet. Stored last (Release), read first (Acquire).
    key: AtomicU64,
    /// The first slot; the low bits, which a line's address has to spare, are the logarithm of how many there
    /// are. In one word, so that whoever reads it, however late, reads a ring that exists.
    slots: AtomicPtr<EventSlot>,
    memo: Memo,
}

/// An event on its way into a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    pub(crate) kind: PtlEventKind,
    pub(crate) fail: bool,
    pub(crate) pt_index: u32,
    /// Index of the process that the event names.
    pub(crate) initiator: u32,
    pub(crate) md: u32,
    pub(crate) generation: u32,
    pub(crate) match_bits: u64,
    pub(crate) hdr_data: u64,
    pub(crate) rlength: u64,
    pub(crate) mlength: u64,
    pub(crate) offset: u64,
    pub(crate) link: Seq,
    pub(crate) threshold: i32,
}

/// In the word of a slot that says what happened: in place of lengths, offset, link and threshold, which are those of an empty message
/// at offset 0, the slot holds the bytes that travel with the event.
pub(crate) const INLINE: u64 = 1 << 6;

impl Posting {
    /// The word of a slot that says what happened.
    #[inline(always)]
    pub(crate) fn what(
        kind: PtlEventKind,
        fail: bool,
        pt_index: u32,
        initiator: u32,
        md: u32,
        generation: u32,
    ) -> u64 {
        kind as u64
            | u64::from(fail) << 5
            | u64::from(pt_index & 0xff) << 8
            | u64::from(initiator & 0xffff) << 16
            | u64::from(md & 0xffff) << 32
            | u64::from(generation) << 48
    }
}

impl EventRing {
    /// Sees to it that this is the ring of the queue with `key`. False if the peer's word cannot be trusted.
    ///
    /// The caller's hazard names a descriptor of that queue, so the queue lives; and a queue of another key
    /// at this index is dead, so that no thread is using the ring that is replaced.
    #[cold]
    pub(crate) fn follow(&self, view: &crate::arena::ArenaView, cell: &EqCell, key: u64) -> bool {
        let shape = &cell.shape;
        let size = shape.size.load(Ordering::Relaxed);
        let Some(slots) = view.ring(shape.ring.load(Ordering::Relaxed), size) else {
            return false;
        };
        if shape.key.load(Ordering::Acquire) != key || key == 0 {
            return false;
        }
        let head = cell.head.0.load(Ordering::Acquire);
        let tagged = slots.as_ptr().map_addr(|address| address | size.trailing_zeros() as usize);
        self.slots.store(tagged, Ordering::Relaxed);
        self.memo.restart(head);
        self.key.store(key, Ordering::Release);
        true
    }

    /// Whether this is the ring of the queue with `key`, a word of a peer's: 0 is no queue's.
    #[inline(always)]
    pub(crate) fn is(&self, key: u64) -> bool {
        key != 0 && self.is_still(key)
    }

    /// [`EventRing::is`], for a key that is not 0.
    #[inline(always)]
    pub(crate) fn is_still(&self, key: u64) -> bool {
        debug_assert_ne!(key, 0);
        self.key.load(Ordering::Acquire) == key
    }

    /// The ring's slots. It must have been set up (`is`).
    #[inline(always)]
    pub(crate) fn slots(&self) -> EventSlots<'_> {
        let tagged = self.slots.load(Ordering::Relaxed);
        let size = 1u64 << (tagged.addr() & (LINE - 1));
        let first = tagged.map_addr(|address| address & !(LINE - 1)).cast_const();
        EventSlots { first, size, ring: PhantomData }
    }

    /// Whether the event with this ticket, which the consumer has come to, is published.
    #[inline(always)]
    fn holds(&self, ticket: u64) -> bool {
        let slots = self.slots();
        // Acquire: see `ring`.
        slots.at(ticket).control.load(Ordering::Acquire) == published(ticket, slots.size)
    }

    /// Asks for the line of the next slot, to write to it.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slots: EventSlots<'_>) {
        prefetch::line_to_write((&raw const *slots.at(self.memo.hint())).cast());
    }

    /// Posts an event: its ticket, or `None` if there was no room.
    #[inline(always)]
    pub(crate) fn post(&self, cell: &EqCell, own_index: u32, event: &Posting) -> Option<u64> {
        let what = Posting::what(
            event.kind,
            event.fail,
            event.pt_index,
            event.initiator,
            event.md,
            event.generation,
        );
        let link = u64::from(event.link) << 32 | u64::from(event.threshold as u32);
        let &Posting { match_bits, hdr_data, rlength, mlength, offset, .. } = event;
        let words = [what, match_bits, hdr_data, rlength, mlength, offset, link];
        self.post_words(self.slots(), cell, own_index, words)
    }

    /// Posts an event, told by the words of its [`EventSlot`] behind the control, to the slots of this ring.
    #[inline(always)]
    pub(crate) fn post_words(
        &self,
        slots: EventSlots<'_>,
        cell: &EqCell,
        own_index: u32,
        words: [u64; 7],
    ) -> Option<u64> {
        let ticket = self.memo.hint();
        let slot = slots.at(ticket);
        if !ring::claim_hinted(&slot.control, ticket, slots.size, &self.memo, own_index) {
            return self.post_elsewhere(slots, cell, own_index, words);
        }
        fill(slot, &words, published(ticket, slots.size));
        Some(ticket)
    }

    /// [`EventRing::post_words`], wherever there is a free slot.
    #[cold]
    #[inline(never)]
    fn post_elsewhere(
        &self,
        slots: EventSlots<'_>,
        cell: &EqCell,
        own_index: u32,
        words: [u64; 7],
    ) -> Option<u64> {
        let control_of = |ticket| &slots.at(ticket).control;
        match ring::search(control_of, slots.size, &self.memo, &cell.head.0, own_index) {
            Ok(ticket) => {
                fill(slots.at(ticket), &words, published(ticket, slots.size));
                Some(ticket)
            }
            Err(ticket) => {
                lose(cell, ticket);
                None
            }
        }
    }

    /// A ticket that no event that was posted before this call has reached; all before `from` are claimed.
    fn tail(&self, from: u64) -> u64 {
        let slots = self.slots();
        ring::tail(|ticket| &slots.at(ticket).control, slots.size, from)
    }
}

/// The slots of a ring.
#[derive(Clone, Copy)]
pub(crate) struct EventSlots<'a> {
    first: *const EventSlot,
    size: u64,
    ring: PhantomData<&'a EventSlot>,
}

impl<'a> EventSlots<'a> {
    /// The slots from `first` on, one more than `mask`.
    ///
    /// # Safety
    /// They are what `ArenaView::ring` gave, and that arena stays mapped.
    #[inline(always)]
    pub(crate) unsafe fn new(first: *const EventSlot, mask: u64) -> EventSlots<'a> {
        EventSlots { first, size: mask + 1, ring: PhantomData }
    }

    #[inline(always)]
    fn at(self, ticket: u64) -> &'a EventSlot {
        // SAFETY: `first` points to `size` slots inside an arena (checked by `ArenaView::ring`) that stays mapped
        // as long as the interface; slots consist of atomics.
        unsafe { &*self.first.add((ticket & (self.size - 1)) as usize) }
    }
}

/// Fills a slot that its producer, this process, has reserved, and publishes it.
#[inline(always)]
fn fill(slot: &EventSlot, words: &[u64; 7], published: u64) {
    crate::fault::point("event.reserved");
    let &[what, match_bits, hdr_data, rlength, mlength, offset, link] = words;
    let relaxed = Ordering::Relaxed;
    slot.what.store(what, relaxed);
    slot.match_bits.store(match_bits, relaxed);
    slot.hdr_data.store(hdr_data, relaxed);
    slot.rlength.store(rlength, relaxed);
    slot.mlength.store(mlength, relaxed);
    slot.offset.store(offset, relaxed);
    slot.link.store(link, relaxed);
    slot.control.store(published, Ordering::Release);
    crate::fault::point("event.published");
}

#[cold]
fn lose(cell: &EqCell, ticket: u64) {
    cell.losses.last.fetch_max(ticket, Ordering::Relaxed);
    // Release pairs with the consumer's Acquire: it finds the ticket.
    cell.losses.count.fetch_add(1, Ordering::Release);
}

/// What this process itself knows of one of its queues.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub(crate) struct EqRecord {
    /// generation 16-31, 1: live.
    handle: AtomicU32,
    consuming: AtomicBool,
    /// A thread found the queue taken and went away.
    missed: AtomicBool,
    /// Ticket of the next event.
    next: AtomicU64,
    /// Its slot, and what the control there says when it has come (see [`ring::published`]).
    look_at: AtomicPtr<EventSlot>,
    look_for: AtomicU64,
    /// The slots of the ring, and their number less one.
    slots: AtomicPtr<EventSlot>,
    mask: AtomicU64,
    /// Losses that have been noticed.
    losses: AtomicU64,
    /// The event that gets this ticket, or the next after it, comes after a loss; `u64::MAX`: no loss to
    /// report.
    report_at: AtomicU64,
    /// [`EqHandler`], or 0.
    handler: AtomicUsize,
    /// Descriptors that log here; changed under the owner lock.
    pub(crate) descriptors: AtomicU32,
    /// Framed messages that will post here.
    pub(crate) transfers: AtomicU32,
}

impl EqRecord {
    /// The slot of the next event, if that is published.
    #[inline(always)]
    fn look(&self, order: Ordering) -> Option<&EventSlot> {
        // SAFETY: the queue is or was live, so this is a slot of its ring, stored before it became so; slots stay mapped as
        // long as the interface, and consist of atomics.
        let slot = unsafe { &*self.look_at.load(Ordering::Relaxed) };
        (slot.control.load(order) == self.look_for.load(Ordering::Relaxed)).then_some(slot)
    }

    #[inline(always)]
    fn slots(&self) -> EventSlots<'_> {
        // SAFETY: the queue is or was live: stored from its ring before it became so.
        unsafe {
            EventSlots::new(self.slots.load(Ordering::Relaxed), self.mask.load(Ordering::Relaxed))
        }
    }

    /// Goes on to the event with this ticket. Whoever looks meanwhile may see half of it: before the thread that takes events
    /// has served what it took, that is as good as to look too early.
    #[inline(always)]
    fn go_on(&self, ticket: u64) {
        let slots = self.slots();
        self.look_at
            .store(slots.at(ticket) as *const EventSlot as *mut EventSlot, Ordering::Relaxed);
        // The lap is another one only where the ring begins anew.
        if ticket & (slots.size - 1) == 0 {
            cold_path();
            self.look_for.store(published(ticket, slots.size), Ordering::Relaxed);
        }
        // Release pairs with the Acquire in `eq_passed`.
        self.next.store(ticket, Ordering::Release);
    }

    /// Takes the turn. Whoever has it gives it back within nanoseconds, unless the system takes its processor
    /// away or we are a signal handler on top of it: after a while we leave without, and leave word.
    #[inline(always)]
    fn try_consume(&self) -> bool {
        // Acquire pairs with the Release of the thread that consumed before us.
        !self.consuming.swap(true, Ordering::Acquire) || self.try_consume_again()
    }

    #[cold]
    fn try_consume_again(&self) -> bool {
        for round in 0..200 {
            sys::thread::relax(round);
            if round == 100 {
                // The rounds that follow give this store time to be seen by who gives the turn back after
                // them.
                self.missed.store(true, Ordering::SeqCst);
            }
            if !self.consuming.load(Ordering::Relaxed)
                && !self.consuming.swap(true, Ordering::Acquire)
            {
                return true;
            }
        }
        false
    }
}

/// A live queue of an interface, for [`NetworkInterface::eq_is_quiet`] and [`NetworkInterface::eq_next`].
#[derive(Clone, Copy, Debug)]
pub struct EqWatch {
    eq: EqHandle,
    record: NonNull<EqRecord>,
    cell: NonNull<EqCell>,
}

// SAFETY: what it points to consists of atomics, and is only reached through the interface.
unsafe impl Send for EqWatch {}
// SAFETY: as above.
unsafe impl Sync for EqWatch {}

impl EqWatch {
    /// The queue.
    pub fn eq(self) -> EqHandle {
        self.eq
    }
}

/// A slot's content.
#[derive(Clone, Copy, Debug)]
struct TakenEvent {
    ticket: u64,
    dropped: bool,
    what: u64,
    match_bits: u64,
    hdr_data: u64,
    rlength: u64,
    mlength: u64,
    offset: u64,
    link: u64,
}

impl TakenEvent {
    #[inline(always)]
    fn kind(&self) -> PtlEventKind {
        use PtlEventKind::*;
        // In the order of their numbers, so that this is but a comparison.
        match self.what & 0x1f {
            0 => GetStart,
            1 => GetEnd,
            2 => PutStart,
            4 => GetPutStart,
            5 => GetPutEnd,
            6 => ReplyStart,
            7 => ReplyEnd,
            8 => SendStart,
            9 => SendEnd,
            10 => Ack,
            11 => Unlink,
            // 3, and nonsense from a peer.
            _ => PutEnd,
        }
    }
    fn fail(&self) -> NiFail {
        if self.what & 0x20 != 0 { NiFail::Fail } else { NiFail::Ok }
    }
    fn initiator(&self) -> u32 {
        (self.what >> 16 & 0xffff) as u32
    }
    fn md(&self) -> MdHandle {
        MdHandle((self.what >> 48 << 16 | self.what >> 32 & 0xffff) as u32)
    }
}

impl NetworkInterface {
    /// The index behind a handle.
    #[inline(always)]
    pub(crate) fn eq_index(&self, eq: EqHandle) -> Result<u32, PtlError> {
        let index = eq.0 & 0xffff;
        match self.eqs.get(index as usize) {
            Some(record) if record.handle.load(Ordering::Acquire) == eq.0 >> 16 << 16 | 1 => {
                Ok(index)
            }
            _ => Err(PtlError::EqInvalid),
        }
    }

    /// What it takes to look at a queue often.
    pub fn eq_watch(&self, eq: EqHandle) -> Result<EqWatch, PtlError> {
        let index = self.eq_index(eq)?;
        Ok(EqWatch {
            eq,
            record: NonNull::from(&self.eqs[index as usize]),
            cell: NonNull::from(self.eq_cell(index)),
        })
    }

    /// Whether nothing is in this queue, by one look at the slot of its next event. What has come in frames is not there before
    /// [`NetworkInterface::progress`].
    ///
    /// # Safety
    /// The watch is of this interface.
    #[inline(always)]
    pub unsafe fn eq_is_quiet(&self, watch: EqWatch) -> bool {
        // SAFETY: records live as long as the interface.
        unsafe { watch.record.as_ref() }.look(Ordering::Relaxed).is_none()
    }

    /// To be called by whoever looks for events: what it sends next is no part of a burst that it sent before.
    #[inline(always)]
    pub fn burst_ends(&self) {
        if self.in_a_row.load(Ordering::Relaxed) {
            self.in_a_row.store(false, Ordering::Relaxed);
        }
    }

    /// Whether there is such a queue.
    pub fn has_eq(&self, eq: EqHandle) -> bool {
        self.eq_index(eq).is_ok()
    }

    #[inline(always)]
    fn eq_cell(&self, index: u32) -> &EqCell {
        match self.own.view.eq(index) {
            Some(cell) => cell,
            None => unreachable!("indices of records are indices of cells"),
        }
    }

    /// What descriptors call the queue.
    pub(crate) fn eq_key(&self, index: u32) -> u64 {
        self.eq_cell(index).shape.key.load(Ordering::Relaxed)
    }

    /// `PtlEQAlloc`: room for at least `count` events (rounded up to a power of two). A `handler` is run with
    /// every event, by the thread that takes it from the queue.
    pub fn eq_alloc(&self, count: Size, handler: Option<EqHandler>) -> Result<EqHandle, PtlError> {
        if count == 0 {
            return Ok(EqHandle::NONE);
        }
        if count > 1 << 24 {
            return Err(PtlError::NoSpace);
        }
        let size = count.next_power_of_two();
        let owner = &mut *self.owner.lock();
        let index = owner.free_eqs.pop().ok_or(PtlError::NoSpace)?;
        let free = owner.free_rings.iter().position(|&(slots, _)| slots == size);
        let bytes = size as usize * mem::size_of::<EventSlot>();
        let offset = match free {
            Some(position) => owner.free_rings.swap_remove(position).1,
            None => match self.bump(owner, bytes, LINE) {
                Some(offset) => offset,
                None => {
                    owner.free_eqs.push(index);
                    return Err(PtlError::NoSpace);
                }
            },
        };
        owner.rings[index as usize] = (size, offset);
        owner.next_eq_key += 1;
        let (record, cell, ring) =
            (&self.eqs[index as usize], self.eq_cell(index), &self.own.rings[index as usize]);
        let relaxed = Ordering::Relaxed;
        cell.shape.ring.store(offset, relaxed);
        cell.shape.size.store(size, relaxed);
        cell.head.0.store(size, relaxed);
        cell.losses.count.store(0, relaxed);
        cell.losses.last.store(0, relaxed);
        cell.shape.key.store(owner.next_eq_key, Ordering::Release);
        record.losses.store(0, relaxed);
        record.report_at.store(u64::MAX, relaxed);
        record.descriptors.store(0, relaxed);
        record.handler.store(handler.map_or(0, |f| f as usize), relaxed);
        if !ring.follow(&self.own.view, cell, owner.next_eq_key) {
            return Err(PtlError::Fail);
        }
        // What was never used is zeros, as a new ring must be.
        if free.is_some() {
            for ticket in 0..size {
                ring.slots().at(ticket).control.store(0, relaxed);
            }
        }
        record.slots.store(ring.slots().first.cast_mut(), relaxed);
        record.mask.store(size - 1, relaxed);
        record.go_on(size);
        let generation = (record.handle.load(relaxed) >> 16).wrapping_add(1) & 0xffff;
        record.handle.store(generation << 16 | 1, Ordering::Release);
        Ok(EqHandle(generation << 16 | index))
    }

    /// `PtlEQFree`. Descriptors that still log to the queue go on into the void; the memory is reused when
    /// the last of them is gone.
    pub fn eq_free(&self, eq: EqHandle) -> Result<(), PtlError> {
        let owner = &mut *self.owner.lock();
        let index = self.eq_index(eq)?;
        let record = &self.eqs[index as usize];
        let mut round = 0;
        // Acquire pairs with the Release of a consumer that is just leaving.
        while record.consuming.swap(true, Ordering::Acquire) {
            sys::thread::relax(round);
            round += 1;
        }
        record.handle.fetch_and(!1, Ordering::Release);
        record.consuming.store(false, Ordering::Release);
        self.eq_recycle(owner, index);
        Ok(())
    }

    /// A descriptor no longer logs to the queue.
    pub(crate) fn eq_release(&self, owner: &mut OwnerTables, index: u32) {
        self.eqs[index as usize].descriptors.fetch_sub(1, Ordering::Relaxed);
        self.eq_recycle(owner, index);
    }

    /// Reuses a queue that is neither live nor logged to.
    fn eq_recycle(&self, owner: &mut OwnerTables, index: u32) {
        let record = &self.eqs[index as usize];
        if record.handle.load(Ordering::Relaxed) & 1 == 1
            || record.descriptors.load(Ordering::Relaxed) != 0
        {
            return;
        }
        owner.free_rings.push(owner.rings[index as usize]);
        owner.free_eqs.push(index);
    }

    /// A ticket of one of our queues that no event that was posted before this call has reached.
    pub(crate) fn eq_tail(&self, index: u32) -> u64 {
        // All that we have come past are claimed.
        self.own.rings[index as usize].tail(self.eqs[index as usize].next.load(Ordering::Acquire))
    }

    /// Whether all events with tickets below `ticket` have been consumed, or the queue is gone.
    pub(crate) fn eq_passed(&self, eq: EqHandle, ticket: u64) -> bool {
        match self.eq_index(eq) {
            Ok(index) => self.eqs[index as usize].next.load(Ordering::Acquire) >= ticket,
            Err(_) => true,
        }
    }

    /// Whether there is no event in the queue, published or about to be.
    pub(crate) fn eq_is_empty(&self, index: u32) -> bool {
        self.eq_tail(index) <= self.eqs[index as usize].next.load(Ordering::Acquire)
    }

    /// The producer that holds up one of our queues, if there is one now. A peer wrote the number.
    pub(crate) fn queue_blocked_by(&self) -> Option<u32> {
        self.eqs.iter().zip(&self.own.rings).find_map(|(record, ring)| {
            if record.handle.load(Ordering::Acquire) & 1 == 0 {
                return None;
            }
            let ticket = record.next.load(Ordering::Relaxed);
            let slots = ring.slots();
            let now = slots.at(ticket).control.load(Ordering::Relaxed);
            reserved_by(now, ticket, slots.size)
        })
    }

    /// Takes the next event, and what `read` makes of it. The queue was looked up by the caller.
    #[inline(always)]
    fn take<R>(&self, index: u32, read: impl FnOnce(&TakenEvent) -> R) -> Option<(TakenEvent, R)> {
        let (record, ring) = (&self.eqs[index as usize], &self.own.rings[index as usize]);
        // Acquire: see `ring`.
        if !ring.holds(record.next.load(Ordering::Relaxed)) || !record.try_consume() {
            return None;
        }
        let live = record.handle.load(Ordering::Relaxed) & 1 == 1;
        // Acquire: see `ring`.
        let slot = if live { record.look(Ordering::Acquire) } else { None };
        let inline = &mut InlineWords::default();
        let taken = slot.map(|slot| take_slot(record, self.eq_cell(index), slot, inline, read));
        record.consuming.store(false, Ordering::Release);
        if record.missed.load(Ordering::Relaxed) {
            // It may be about to sleep although there is more.
            record.missed.store(false, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            doorbell::ring(self.own.view.header());
        }
        taken
    }

    /// The process that an event names. An index that no peer could have is nobody's.
    #[inline(always)]
    fn process(&self, index: u32) -> PtlProcessId {
        PtlProcessId { nid: self.nid, pid: index }
    }

    /// What a queue has, after a look at the frames, and what `read` makes of the descriptor's record.
    fn eq_take<R>(
        &self,
        eq: EqHandle,
        read: impl FnOnce(&TakenEvent, Option<&MdRecord>) -> R,
    ) -> Result<Option<(u32, TakenEvent, R)>, PtlError> {
        let index = self.eq_index(eq)?;
        self.progress();
        let record = |taken: &TakenEvent| self.mds.get((taken.md().0 & 0xffff) as usize);
        let taken = self.take(index, |taken| read(taken, record(taken)));
        if taken.is_none() {
            self.burst_ends();
        }
        Ok(taken.map(|(taken, read)| (index, taken, read)))
    }

    /// `PtlEQGet` without the descriptor's snapshot and the fields that hardly anybody reads; runs no
    /// handler. For a queue from which one thread takes at a time: the caller sees to that. Bytes that travelled in the event are written to
    /// `inline`.
    ///
    /// # Safety
    /// The watch is of this interface.
    pub unsafe fn eq_next(&self, watch: EqWatch, inline: &mut InlineWords) -> Option<BriefEvent> {
        self.progress();
        // SAFETY: records and the arena live as long as the interface.
        let (record, cell) = unsafe { (watch.record.as_ref(), watch.cell.as_ref()) };
        // Acquire: see `ring`.
        let slot = record.look(Ordering::Acquire)?;
        let places = |taken: &TakenEvent| {
            let record = self.mds.get((taken.md().0 & 0xffff) as usize);
            let word = |field: fn(&MdRecord) -> &AtomicUsize| {
                record.map_or(0, |record| field(record).load(Ordering::Relaxed))
            };
            (word(|record| &record.user_ptr), word(|record| &record.start))
        };
        let (taken, (user_ptr, start)) = take_slot(record, cell, slot, inline, places);
        let md = taken.md();
        let event = BriefEvent {
            kind: taken.kind(),
            dropped: taken.dropped,
            ni_fail: taken.fail(),
            md_handle: md,
            user_ptr: user_ptr as *mut _,
            start: start as *mut _,
            initiator: self.process(taken.initiator()),
            match_bits: taken.match_bits,
            hdr_data: taken.hdr_data,
            offset: taken.offset,
            mlength: taken.mlength,
            inline: taken.what & INLINE != 0,
        };
        if event.kind == PtlEventKind::Unlink {
            self.reap_handle(md);
        }
        Some(event)
    }

    /// [`NetworkInterface::eq_next`], if the next event is a `PTL_EVENT_PUT_END` with nothing special about it; any other stays.
    /// Without [`NetworkInterface::progress`].
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub unsafe fn eq_next_arrival(&self, watch: EqWatch, inline: &mut InlineWords) -> EqNext {
        // SAFETY: records and the arena live as long as the interface.
        let (record, cell) = unsafe { (watch.record.as_ref(), watch.cell.as_ref()) };
        // Acquire: see `ring`.
        let Some(slot) = record.look(Ordering::Acquire) else { return EqNext::Nothing };
        let relaxed = Ordering::Relaxed;
        let what = slot.what.load(relaxed);
        // Acquire pairs with the Release in `lose`.
        let lost = cell.losses.count.load(Ordering::Acquire) != record.losses.load(relaxed)
            || record.report_at.load(relaxed) != u64::MAX;
        let kind = what & (0x3f | INLINE);
        if kind & !INLINE != PtlEventKind::PutEnd as u64 || lost {
            cold_path();
            return EqNext::Other;
        }
        let Some(md) = self.mds.get((what >> 32 & 0xffff) as usize) else { return EqNext::Other };
        let (offset, mlength) = if kind & INLINE == 0 {
            (slot.offset.load(relaxed), slot.mlength.load(relaxed))
        } else {
            *inline = slot.inline();
            (0, 0)
        };
        let arrival = PutArrival {
            user_ptr: md.user_ptr.load(relaxed) as *mut _,
            start: md.start.load(relaxed) as *mut _,
            match_bits: slot.match_bits.load(relaxed),
            hdr_data: slot.hdr_data.load(relaxed),
            offset,
            mlength,
            inline: kind & INLINE != 0,
        };
        pass(record, cell, record.next.load(relaxed).wrapping_add(1));
        EqNext::Arrival(arrival)
    }

    /// `PtlEQGet`: `None` is `PTL_EQ_EMPTY`.
    pub fn eq_get(&self, eq: EqHandle) -> Result<Option<FetchedEvent>, PtlError> {
        let snapshot = |taken: &TakenEvent, record: Option<&MdRecord>| {
            let nothing = MdRecord::default();
            self.snapshot(record.unwrap_or(&nothing), taken.link as u32 as i32)
        };
        let Some((index, taken, md)) = self.eq_take(eq, snapshot)? else { return Ok(None) };
        let md_handle = taken.md();
        let initiator = self.process(taken.initiator());
        let event = PtlEvent {
            kind: taken.kind(),
            initiator,
            uid: self.uid,
            jid: self.jid,
            pt_index: (taken.what >> 8 & 0xff) as u32,
            match_bits: taken.match_bits,
            rlength: taken.rlength,
            mlength: taken.mlength,
            offset: taken.offset,
            md_handle,
            md,
            hdr_data: taken.hdr_data,
            link: (taken.link >> 32) as Seq,
            ni_fail: taken.fail(),
            sequence: taken.ticket as Seq,
        };
        if event.kind == PtlEventKind::Unlink {
            self.reap_handle(md_handle);
        }
        let handler = self.eqs[index as usize].handler.load(Ordering::Relaxed);
        if handler != 0 {
            // SAFETY: stored by `eq_alloc` from a function of this type.
            let handler = unsafe { mem::transmute::<usize, EqHandler>(handler) };
            handler(&event);
        }
        Ok(Some(FetchedEvent { event, dropped: taken.dropped }))
    }

    /// `PtlEQWait`
    pub fn eq_wait(&self, eq: EqHandle) -> Result<FetchedEvent, PtlError> {
        loop {
            if let Some((_, fetched)) = self.eq_poll(&[eq], None)? {
                return Ok(fetched);
            }
        }
    }

    /// `PtlEQPoll`: the first event of any of these queues, looked through in order. No timeout is
    /// `PTL_TIME_FOREVER`; `Ok(None)` is `PTL_EQ_EMPTY`.
    pub fn eq_poll(
        &self,
        eqs: &[EqHandle],
        timeout_ms: Option<u32>,
    ) -> Result<Option<(usize, FetchedEvent)>, PtlError> {
        let look = || {
            for (which, &eq) in eqs.iter().enumerate() {
                if let Some(fetched) = self.eq_get(eq)? {
                    return Ok(Some((which, fetched)));
                }
            }
            Ok(None)
        };
        if timeout_ms == Some(0) {
            return look();
        }
        for round in 0..200 {
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            sys::thread::relax(round);
        }
        let end =
            timeout_ms.map(|ms| sys::clock::now_ns().saturating_add(u64::from(ms) * 1_000_000));
        loop {
            let seen = self.doorbell();
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            let left = match end {
                None => u64::MAX,
                Some(end) => match end.checked_sub(sys::clock::now_ns()) {
                    None | Some(0) => return Ok(None),
                    Some(left) => left,
                },
            };
            self.sleep(seen, left.min(self.longest_sleep_ns()));
        }
    }
}

/// Goes on to the event with this ticket: all before it have been read.
#[inline(always)]
fn pass(record: &EqRecord, cell: &EqCell, ticket: u64) {
    record.go_on(ticket);
    // Release pairs with the producers' Acquire: we have read the slot.
    cell.head.0.store(ticket, Ordering::Release);
}

/// Reads an event that is published, and the bytes that travelled in it, and goes on to the next.
#[inline(always)]
fn take_slot<R>(
    record: &EqRecord,
    cell: &EqCell,
    slot: &EventSlot,
    inline: &mut InlineWords,
    read: impl FnOnce(&TakenEvent) -> R,
) -> (TakenEvent, R) {
    let relaxed = Ordering::Relaxed;
    let ticket = record.next.load(relaxed);
    let what = slot.what.load(relaxed);
    let [rlength, mlength, offset, link] = match what & INLINE {
        0 => slot.inline(),
        _ => {
            cold_path();
            *inline = slot.inline();
            [0, 0, 0, u64::from(THRESH_INF as u32)]
        }
    };
    let taken = TakenEvent {
        ticket,
        // Acquire pairs with the Release in `lose`.
        dropped: cell.losses.count.load(Ordering::Acquire) != record.losses.load(relaxed)
            || record.report_at.load(relaxed) != u64::MAX,
        what,
        match_bits: slot.match_bits.load(relaxed),
        hdr_data: slot.hdr_data.load(relaxed),
        rlength,
        mlength,
        offset,
        link,
    };
    // As soon as the event counts as consumed, its descriptor's record may be used again (see
    // `md::rested`).
    let read = read(&taken);
    pass(record, cell, ticket.wrapping_add(1));
    if taken.dropped {
        return (TakenEvent { dropped: lost_before(record, cell, ticket), ..taken }, read);
    }
    (taken, read)
}

/// Whether a loss is to be reported with the event of this ticket.
#[cold]
fn lost_before(record: &EqRecord, cell: &EqCell, ticket: u64) -> bool {
    let count = cell.losses.count.load(Ordering::Acquire);
    let last = cell.losses.last.load(Ordering::Relaxed);
    let mut at = record.report_at.load(Ordering::Relaxed);
    if count != record.losses.load(Ordering::Relaxed) {
        record.losses.store(count, Ordering::Relaxed);
        at = at.min(last);
    }
    let report = ticket >= at;
    if report {
        at = if last > ticket { last } else { u64::MAX };
    }
    record.report_at.store(at, Ordering::Relaxed);
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nal::shm::AttachPolicy;
    use crate::nal::shm::tests::fabric;

    /// A thread that could not look at a queue because another one was at it is woken when that one leaves:
    /// there may be more.
    #[test]
    fn nobody_sleeps_over_a_queue_that_another_thread_was_at() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let eq = ni.eq_alloc(4, None).unwrap();
        let index = ni.eq_index(eq).unwrap();
        let (record, ring) = (&ni.eqs[index as usize], &ni.own.rings[index as usize]);
        for ticket in [4, 5] {
            ring.slots().at(ticket).control.store(published(ticket, 4), Ordering::Release);
        }
        record.consuming.store(true, Ordering::Relaxed);
        let seen = ni.doorbell();
        assert!(ni.eq_get(eq).unwrap().is_none());
        record.consuming.store(false, Ordering::Relaxed);
        assert!(ni.eq_get(eq).unwrap().is_some());
        assert_ne!(ni.doorbell(), seen);
    }

    /// What one thread took may be what another one sleeps for.
    #[test]
    fn a_thread_that_took_an_event_wakes_the_others() {
        let ni = NetworkInterface::loopback(None).unwrap();
        ni.ring_self();
        let seen = ni.doorbell();
        assert_eq!(ni.doorbell(), seen);
        ni.ring_self();
        assert_ne!(ni.doorbell(), seen);
    }

    /// Who holds up a queue is told as long as it does, and only if there is such a process.
    #[test]
    fn the_producer_that_holds_up_a_queue_has_a_name() {
        let nodes = fabric(2, AttachPolicy::Denied);
        let ni = &nodes[0];
        let eq = ni.eq_alloc(4, None).unwrap();
        let slot = ni.own.rings[ni.eq_index(eq).unwrap() as usize].slots().at(4);
        slot.control.store(ring::reserved(4, 4, 1), Ordering::Release);
        assert!(ni.eq_get(eq).unwrap().is_none());
        assert_eq!(ni.blocked_by(), Some(1));
        slot.control.store(ring::reserved(4, 4, 0xfffff), Ordering::Release);
        assert!(ni.eq_get(eq).unwrap().is_none());
        assert_eq!(ni.blocked_by(), None);
        assert_eq!(ni.peer_state(0xfffff), crate::nal::PeerState::Dead);
        slot.control.store(ring::reserved(4, 4, 1), Ordering::Release);
        assert!(ni.eq_get(eq).unwrap().is_none());
        slot.control.store(published(4, 4), Ordering::Release);
        assert_eq!(ni.blocked_by(), None);
    }
}
