//! What a network does beyond the specification. [`Direct`] is the fast path to a peer whose
//! memory is mapped here. [`SharedHost`] is what the processes of a host share through the
//! network.
//!
//! Implemented by `emulation`; a libportals has neither. Invariant: nothing depends on them but
//! speed and waking up.

use super::{MdEvent, PortalsId, Target};
use crate::client_memory::{Dst, Src};

/// Bytes that travel in the event of their put, by words.
pub type InlineBody = [u64; 4];

/// What the fast path finds in an event queue.
// With a tag of its own, not in a niche of the event: then compilers see which branch it takes.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum NextEvent {
    /// `PTL_EQ_EMPTY`.
    Nothing,
    /// This event, of kind [`super::MdEventKind::PutEnd`] and without a failure.
    Arrival(MdEvent),
    /// Whatever [`super::Portals::eq_get`] gives.
    Other,
}

/// Pieces of [`Direct::scattered_at_once`] that a caller collects: more gain nothing.
pub const SCATTERED: usize = 256;

/// A piece of a scattered put or get: memory here, and its offset at the target. A put only reads
/// it.
#[derive(Clone, Copy, Debug)]
pub struct ScatteredRma {
    /// Memory here.
    pub local: Dst<'static>,
    /// Offset in the descriptor of the target.
    pub offset: usize,
}

/// The fast path between processes that map each other's memory.
///
/// When a put or get of this trait returns true, the operation is complete, without an event here.
/// If it returns false the verb must be used: it has done nothing, or the target has accepted a
/// part or nothing, which only an event of the verb says.
pub trait Direct: Send + Sync {
    /// [`super::Portals::Eq`]
    type Eq;

    /// Whether [`Direct::put_inline`] may return true.
    const INLINES: bool = true;

    /// A put whose bytes travel in its event, and otherwise an empty put at offset 0. Some
    /// networks do the same with the entries of their completion queues.
    fn put_inline(&self, inline: &InlineBody, to: &Target) -> bool;

    /// A put from plain memory: the bytes of all pieces, one after the other.
    #[inline(always)]
    fn put_at_once<const N: usize>(&self, from: [Src<'_>; N], to: &Target) -> bool {
        let _ = (from, to);
        false
    }

    /// The same of one piece, only where the network has remembered that it maps the memory there:
    /// a caller that can do without the others learns so soon.
    #[inline(always)]
    fn put_mapped(&self, from: Src<'_>, to: &Target) -> bool {
        let _ = (from, to);
        false
    }

    /// A get to plain memory, as [`Direct::put_mapped`].
    #[inline(always)]
    fn get_mapped(&self, to: Dst<'_>, from: &Target) -> bool {
        let _ = (to, from);
        false
    }

    /// A get to plain memory.
    #[inline(always)]
    fn get_at_once(&self, to: Dst<'_>, from: &Target) -> bool {
        let _ = (to, from);
        false
    }

    /// Puts or gets pieces, each at an offset of its own in the descriptor that matches.
    fn scattered_at_once(&self, put: bool, pieces: &[ScatteredRma], to: &Target) -> bool {
        let _ = (put, pieces, to);
        false
    }

    /// A hint: a put of this many bytes to this target will follow soon.
    #[inline(always)]
    fn prefetch_target(&self, to: &Target, bytes: usize) {
        let _ = (to, bytes);
    }

    /// Delivers what waits for this process: what [`super::Portals::eq_get`] does before it looks.
    /// [`Direct::eq_next`] and [`Direct::eq_is_quiet`] do not.
    #[inline(always)]
    fn progress(&self) {}

    /// [`super::Portals::eq_get`] for the most frequent event alone.
    #[inline(always)]
    fn eq_next(&self, eq: &Self::Eq, inline: &mut InlineBody) -> NextEvent {
        let _ = (eq, inline);
        NextEvent::Other
    }

    /// Whether [`super::Portals::eq_get`] would find nothing in this queue.
    #[inline(always)]
    fn eq_is_quiet(&self, eq: &Self::Eq) -> bool {
        let _ = eq;
        false
    }

    /// How many events were taken from this queue: a number that grows by one with each. `None` if
    /// a process has posted another one or is about to. `None` also where the network cannot know.
    fn eq_drained(&self, eq: &Self::Eq) -> Option<u64> {
        let _ = eq;
        None
    }

    /// A hint: what is sent next is no part of a burst that was sent before. A process that polls
    /// waits for something, or answers.
    #[inline(always)]
    fn burst_ends(&self) {}

    /// A hint: a message was sent after the last call of [`Direct::burst_ends`].
    #[inline(always)]
    fn is_in_burst(&self) -> bool {
        false
    }
}

/// The fast path of a network that has none: no value of this type exists.
#[cfg(any(feature = "libportals", test))]
#[derive(Debug)]
pub struct NoDirect<Eq> {
    never: core::convert::Infallible,
    eq: core::marker::PhantomData<fn(Eq)>,
}

#[cfg(any(feature = "libportals", test))]
impl<Eq> Direct for NoDirect<Eq> {
    type Eq = Eq;
    const INLINES: bool = false;

    fn put_inline(&self, _: &InlineBody, _: &Target) -> bool {
        match self.never {}
    }
}

/// What the processes of a host share through the network.
pub trait SharedHost: Send + Sync {
    /// Zeroed memory for a descriptor that peers target, where they can reach it without our help;
    /// never freed. `None` when the space set aside at start is used up.
    fn alloc_library_memory(&self, bytes: usize, align: usize) -> Option<Dst<'static>>;

    /// Where the memory that [`SharedHost::alloc_library_memory`] gives of is mapped here, of a
    /// process whose interface is open; of the same length in all processes. `None` where it is
    /// not.
    fn library_memory(&self, of: PortalsId) -> Option<Dst<'static>>;

    /// Says that the segment `own` is shared with the processes of this host. `peers[pid]` is
    /// where the segment of process `pid` of this host is mapped here, if it is.
    fn expose_segments(&self, own: Dst<'static>, peers: &[Option<Dst<'static>>]);

    /// Waits until what was sent to other hosts needs this process no more, at most so long. For a
    /// process that ends.
    fn flush_wire(&self, timeout_ns: u64) {
        let _ = timeout_ns;
    }

    /// Whether all memory of a process can be reached without its help.
    fn attaches(&self, to: PortalsId) -> bool;

    /// Where the memory lies that the processes of this host share for the network itself: first
    /// byte, bytes.
    fn mapped(&self) -> (*mut u8, usize);

    /// The doorbell's count: changes whenever an event has been posted to any queue of ours since
    /// the last [`SharedHost::sleep`] armed it. To be read before the last look at the queues.
    fn doorbell(&self) -> u32;

    /// Sleeps until an event is posted to any queue of ours, `seen` is no longer
    /// [`SharedHost::doorbell`], or `timeout_ns` has passed.
    fn sleep(&self, seen: u32, timeout_ns: u64);

    /// Whether a process of this host sleeps on its doorbell. One that falls asleep later sees
    /// what was stored before a fence before the call.
    fn peers_sleep(&self) -> bool;

    /// Wakes the processes of this host that sleep on their doorbells, because something in memory
    /// that we share with them has changed. The change must have been made before the call.
    fn ring_peers(&self);

    /// Wakes the threads of this process that sleep on the doorbell, because this thread has
    /// served what one of them may wait for. One that is just falling asleep may be missed.
    fn ring_self(&self);

    /// The rank on this host of a process that holds something we wait for (an unpublished slot, a
    /// lock word), if there is one now.
    fn blocked_by(&self) -> Option<u32>;

    /// Ends the job if a peer has overwritten words of the network that only this process writes,
    /// or the slot of its next event. What this process waits for may never arrive.
    fn check_memory(&self);
}
