//! The consumer's side of an event queue: what the owner keeps of one of its queues, and how it
//! reads a slot.
//!
//! Used by the calls that take events. Consumers take turns by a try-lock in private memory. A
//! thread that finds it taken for long reports the queue empty, since the other thread is about to
//! take the event. Invariant: an event is a peer's words: kinds and indices are checked, and
//! addresses come from the reader's own records.

use alloc::sync::Arc;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::arena::ring::{self, published};
use crate::arena::{EqCell, EventSlot};
use crate::event::ring::{EventSlots, INLINE};
use crate::nal::Nal;
use crate::types::*;
use sys::cache;
use sys::hint::cold_path;
use sys::peer::Peer;
use sys::thread;

/// How far [`EqRecord::prefetch_later`] looks past an event, in positions.
const LATER: u64 = 3;

/// What this process keeps of one of its queues.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub(crate) struct EqRecord {
    /// Generation 16-31; 1: live.
    pub(crate) handle: AtomicU32,
    pub(crate) consuming: AtomicBool,
    /// Another thread found the queue taken and returned without looking.
    pub(crate) missed: AtomicBool,
    /// Position of the next event.
    pub(crate) next: AtomicU64,
    /// Its slot, and the control of that slot once the event is published (see [`published`]).
    /// Computed once an event, not at every look: 0.83 of row `poll_idle`.
    look_at: AtomicPtr<EventSlot>,
    look_for: AtomicU64,
    /// The slots of the ring, and one less than their number.
    pub(crate) slots: AtomicPtr<EventSlot>,
    pub(crate) mask: AtomicU64,
    /// The number of losses while all of them are reported; another number while one is not.
    reported: AtomicU64,
    /// Losses that have been reported or are about to be.
    losses: AtomicU64,
    /// The event with this position, or the next after it, follows a loss; `u64::MAX`: no loss to
    /// report.
    report_at: AtomicU64,
    /// [`EqHandler`], or 0.
    pub(crate) handler: AtomicUsize,
    /// Descriptors that log to this queue; changed under the owner lock.
    pub(crate) descriptors: AtomicU32,
    /// Framed messages that will post to this queue.
    pub(crate) transfers: AtomicU32,
}

impl EqRecord {
    /// Whether it is that of the live queue with this handle.
    #[inline(always)]
    pub(crate) fn is_of(&self, eq: EqHandle, order: Ordering) -> bool {
        self.handle.load(order) == eq.0 >> 16 << 16 | 1
    }

    /// The slot of the next event, if that event is published.
    #[inline(always)]
    pub(crate) fn look(&self, order: Ordering) -> Option<&EventSlot> {
        // SAFETY: the queue is or was live, so this is a slot of its ring, stored before it became
        // live. Slots consist of atomics. They stay mapped as long as the NAL, which an interface
        // and each watch keep.
        let slot = unsafe { &*self.look_at.load(Ordering::Relaxed) };
        (slot.control.load(order) == self.look_for.load(Ordering::Relaxed)).then_some(slot)
    }

    #[inline(always)]
    fn slots(&self) -> EventSlots<'_> {
        // SAFETY: the queue is or was live: both words were stored from its ring before it
        // became live.
        unsafe {
            EventSlots::new(self.slots.load(Ordering::Relaxed), self.mask.load(Ordering::Relaxed))
        }
    }

    /// The position of the next event, if no producer has claimed it.
    pub(crate) fn unclaimed(&self) -> Option<u64> {
        let (slots, position) = (self.slots(), self.next.load(Ordering::Acquire));
        let control_of = |position| &slots.at(position).control;
        let unclaimed = ring::is_unclaimed(control_of, slots.size, position);
        // The same if no other thread has taken an event meanwhile.
        (unclaimed && self.next.load(Ordering::Acquire) == position).then_some(position)
    }

    /// Sets the position of the first event of a new queue, which has no losses.
    pub(crate) fn start(&self, position: u64) {
        self.reported.store(0, Ordering::Relaxed);
        self.losses.store(0, Ordering::Relaxed);
        self.report_at.store(u64::MAX, Ordering::Relaxed);
        self.advance(position);
    }

    /// Advances to the event with this position, the next. Another thread that looks meanwhile may
    /// see half of the change. That is no worse than looking before the thread that takes events
    /// has handled its event.
    #[inline(always)]
    pub(crate) fn advance(&self, position: u64) {
        let slot: *const EventSlot = self.slots().at(position);
        // The handler of the event before runs meanwhile.
        cache::prefetch(slot.cast());
        self.look_for.store(published(position), Ordering::Relaxed);
        self.look_at.store(slot.cast_mut(), Ordering::Relaxed);
        // Release pairs with the Acquire in `eq_passed`.
        self.next.store(position, Ordering::Release);
    }

    /// Prefetches the slot of a later event than the next. For a consumer that reads a payload
    /// elsewhere before it takes the next event: the producer is ahead of it then. Rows
    /// `medium_flood` and `medium_window` of 64 to 256 B between far CPUs: 1.03 to 1.08 of the
    /// rate.
    #[inline(always)]
    pub(crate) fn prefetch_later(&self, position: u64) {
        let slot: *const EventSlot = self.slots().at(position.wrapping_add(LATER));
        cache::prefetch(slot.cast());
    }

    /// Whether an event was lost whose loss is not reported yet.
    #[inline(always)]
    pub(crate) fn has_loss(&self, cell: &EqCell) -> bool {
        // Acquire pairs with the Release in `lose`.
        cell.losses.count.load(Ordering::Acquire) != self.reported.load(Ordering::Relaxed)
    }

    /// Takes the turn. The thread that has it gives it back within nanoseconds, unless the system
    /// takes its processor away or a signal handler interrupts it. After a while this returns
    /// false and records that it did.
    #[inline(always)]
    pub(crate) fn try_consume(&self) -> bool {
        // Acquire pairs with the Release of the previous consumer.
        !self.consuming.swap(true, Ordering::Acquire) || self.try_consume_again()
    }

    #[cold]
    fn try_consume_again(&self) -> bool {
        for round in 0..200 {
            thread::relax(round);
            if round == 100 {
                // The rounds that follow give this store time to become visible to a thread that
                // gives the turn back after them.
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

/// A live queue of an interface, for
/// [`NetworkInterface::eq_is_quiet`](crate::NetworkInterface::eq_is_quiet) and
/// [`NetworkInterface::eq_next`](crate::NetworkInterface::eq_next). The queue's memory stays
/// until the last watch of it is dropped.
#[derive(Clone)]
pub struct EqWatch {
    eq: EqHandle,
    record: NonNull<EqRecord>,
    cell: NonNull<EqCell>,
    /// What the pointers lead to: the records and, through the NAL, the arena.
    _memory: (Arc<[EqRecord]>, Arc<dyn Nal>),
}

// SAFETY: its pointers lead to atomics.
unsafe impl Send for EqWatch {}

// SAFETY: as above.
unsafe impl Sync for EqWatch {}

impl fmt::Debug for EqWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EqWatch").field(&self.eq).finish()
    }
}

impl EqWatch {
    /// Of the queue with this handle, whose record is the one with this index.
    ///
    /// # Safety
    /// `cell` is in the arena of `nal`.
    pub(crate) unsafe fn new(
        eq: EqHandle,
        records: &Arc<[EqRecord]>,
        index: u32,
        cell: &EqCell,
        nal: &Arc<dyn Nal>,
    ) -> EqWatch {
        EqWatch {
            eq,
            record: NonNull::from(&records[index as usize]),
            cell: NonNull::from(cell),
            _memory: (Arc::clone(records), Arc::clone(nal)),
        }
    }

    /// The queue.
    pub fn eq(&self) -> EqHandle {
        self.eq
    }

    #[inline(always)]
    pub(crate) fn record(&self) -> &EqRecord {
        // SAFETY: one of the records that this value owns a share of.
        unsafe { self.record.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn cell(&self) -> &EqCell {
        // SAFETY: the arena is mapped as long as the NAL lives, which this value owns a share of.
        unsafe { self.cell.as_ref() }
    }
}

/// The content of a slot. Lengths and offset are bounded by their user: the descriptor
/// may have been updated since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenEvent {
    pub(crate) position: u64,
    pub(crate) dropped: bool,
    pub(crate) what: u64,
    pub(crate) match_bits: u64,
    pub(crate) hdr_data: u64,
    pub(crate) rlength: Peer<u64>,
    pub(crate) mlength: Peer<u64>,
    pub(crate) offset: Peer<u64>,
    pub(crate) link: u64,
}

impl TakenEvent {
    #[inline(always)]
    pub(crate) fn kind(&self) -> PtlEventKind {
        use PtlEventKind::*;
        // In the order of their numbers, so that this compiles to one comparison.
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
            // 3, and any number that no event has.
            _ => PutEnd,
        }
    }
    pub(crate) fn fail(&self) -> NiFail {
        if self.what & 0x20 != 0 { NiFail::Fail } else { NiFail::Ok }
    }
    /// A number, or the lower part of a [`RemoteName`](crate::nal::numbering::RemoteName).
    pub(crate) fn initiator(&self) -> u32 {
        (self.what >> 16 & 0xffff) as u32
    }
    pub(crate) fn md(&self) -> MdHandle {
        MdHandle((self.what >> 32) as u32)
    }
}

/// Advances to the event with this position, the next: all before it have been read.
#[inline(always)]
pub(crate) fn pass(record: &EqRecord, cell: &EqCell, position: u64) {
    record.advance(position);
    // Release pairs with the producers' Acquire: the slot has been read.
    cell.head.0.store(position, Ordering::Release);
}

/// Reads the event in `slot`, which is published, and its inline payload, and advances to the
/// next.
#[inline(always)]
pub(crate) fn take_slot<R>(
    record: &EqRecord,
    cell: &EqCell,
    slot: &EventSlot,
    inline: &mut InlineWords,
    read: impl FnOnce(&TakenEvent) -> R,
) -> (TakenEvent, R) {
    let relaxed = Ordering::Relaxed;
    let position = record.next.load(relaxed);
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
        position,
        dropped: record.has_loss(cell),
        what,
        match_bits: slot.match_bits.load(relaxed),
        hdr_data: slot.hdr_data.load(relaxed),
        rlength: Peer::new(rlength),
        mlength: Peer::new(mlength),
        offset: Peer::new(offset),
        link,
    };
    // Once the event counts as consumed, its descriptor's record may be reused (see
    // [`crate::tables`]).
    let read = read(&taken);
    pass(record, cell, position.wrapping_add(1));
    if taken.dropped {
        return (TakenEvent { dropped: lost_before(record, cell, position), ..taken }, read);
    }
    (taken, read)
}

/// Whether to report a loss with the event of this position.
#[cold]
fn lost_before(record: &EqRecord, cell: &EqCell, position: u64) -> bool {
    let count = cell.losses.count.load(Ordering::Acquire);
    let last = cell.losses.last.load(Ordering::Relaxed);
    let mut at = record.report_at.load(Ordering::Relaxed);
    if count != record.losses.load(Ordering::Relaxed) {
        record.losses.store(count, Ordering::Relaxed);
        at = at.min(last);
    }
    let report = position >= at;
    if report {
        at = if last > position { last } else { u64::MAX };
    }
    record.report_at.store(at, Ordering::Relaxed);
    record.reported.store(if at == u64::MAX { count } else { !count }, Ordering::Relaxed);
    report
}
