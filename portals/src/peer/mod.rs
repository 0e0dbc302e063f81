//! The processes of a fabric as this one sees them: their arenas, their segments, whether they
//! live.
//!
//! `deliver`, `tables`, `transfer` and `calls` reach peers through [`Peers`]. Invariant: a
//! pointer to a peer's arena, segment or header stays valid as long as the [`Peers`] that gave
//! it.

pub(crate) mod match_cache;
mod reach;
mod versions;

pub(crate) use reach::Location;
pub(crate) use versions::{OwnVersions, falsely_odd};

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use crate::access_fault::{AccessFault, AccessHandler};
use crate::arena::hazard::{HazardHold, HazardWord};
use crate::arena::{ArenaHeader, ArenaView, doorbell};
use crate::base::fault;
use crate::event::ring::EventRing;
use crate::message::{MessageHeader, OpKind};
use crate::nal::numbering::{HostNumbering, RemoteName};
use crate::nal::{Nal, PeerState, Route};
use crate::peer::match_cache::{MatchCache, MatchCacheEntry};
use crate::types::*;
use sys::hint::cold_path;
use sys::{attach, clock, thread};

/// A process whose arena is mapped here.
#[derive(Debug)]
pub(crate) struct MappedPeer {
    pub(crate) index: u32,
    pub(crate) view: ArenaView,
    /// What this process keeps of the rings of its queues.
    pub(crate) rings: Box<[EventRing]>,
    pub(crate) shortcuts: MatchCache,
    /// Cross-memory attach: one of the states below.
    attach: AtomicU8,
    /// The process id with which it works. Private: in the arena, any process can change it.
    attached: AtomicU32,
}

impl MappedPeer {
    /// The process id to reach private memory with; no process has the id that this returns if
    /// cross-memory attach does not work.
    pub(crate) fn attached_pid(&self) -> u32 {
        match self.attach.load(Ordering::Acquire) {
            WORKS => self.attached.load(Ordering::Relaxed),
            _ => 0,
        }
    }
}

const UNTRIED: u8 = 0;
const WORKS: u8 = 1;

const FAILS: u8 = 2;

impl MappedPeer {
    fn new(index: u32, view: ArenaView) -> MappedPeer {
        let rings = (0..view.max_eqs).map(|_| EventRing::default()).collect();
        MappedPeer {
            index,
            view,
            rings,
            shortcuts: MatchCache::default(),
            attach: AtomicU8::new(UNTRIED),
            attached: AtomicU32::new(0),
        }
    }
}

/// Where the segment of a process is mapped here; length 0: not mapped. The length is stored
/// last.
#[derive(Debug, Default)]
pub(crate) struct MappedSegment {
    pub(crate) base: AtomicPtr<u8>,
    pub(crate) length: AtomicU64,
}

/// This process and its peers.
pub(crate) struct Peers {
    /// The number of this process.
    pub(crate) index: u32,
    pub(crate) nid: u32,
    /// Processes of this host.
    pub(crate) size: u32,
    /// Only one thread calls; see [`crate::NetworkInterface::set_single_threaded`].
    pub(crate) single: bool,
    /// Messages to this process itself need no frames.
    pub(crate) own_mapped: bool,
    /// Our own arena.
    pub(crate) own: MappedPeer,
    pub(crate) own_versions: OwnVersions,
    /// Peers that have been addressed; null before, and for those that are reached by frames only.
    mapped: Box<[AtomicPtr<MappedPeer>]>,
    /// Headers of all mapped arenas but our own.
    headers: Box<[Option<NonNull<ArenaHeader>>]>,
    pub(crate) segments: Box<[MappedSegment]>,
    /// Index + 1 of the process that a call is waiting for, and when the call last recorded it.
    waiting_for: AtomicU32,
    waiting_since: AtomicU64,
    /// [`FrameWatch::arrived`], read without a call: 0.89 of row `poll_idle`.
    frames_arrived: NonNull<AtomicU32>,
    /// [`FrameWatch::countdown`]
    countdown: Option<NonNull<AtomicU32>>,
    /// Shared with the watches of queues.
    pub(crate) nal: Arc<dyn Nal>,
    pub(crate) on_damage: Option<DamageHandler>,
    pub(crate) on_fault: Option<AccessHandler>,
}

// SAFETY: its pointers lead to arenas and segments, and to boxes that it owns. Arenas and
// segments are accessed through atomics, or copied from and to as memory that any process
// may write.
unsafe impl Send for Peers {}
// SAFETY: as above; all that changes is atomic.
unsafe impl Sync for Peers {}

impl Peers {
    /// `view` is our own arena. The NAL was checked: `index` is below `size`.
    pub(crate) fn new(nal: Arc<dyn Nal>, view: ArenaView) -> Peers {
        let (index, size) = (nal.index(), nal.size());
        let watch = nal.frame_watch();
        let header_of = |peer| match nal.route(peer) {
            Route::Mapped(base) if peer != index => Some(base.cast::<ArenaHeader>()),
            _ => None,
        };
        Peers {
            index,
            nid: nal.nid(),
            size,
            single: false,
            own_mapped: nal.route(index) != Route::Wire,
            own_versions: OwnVersions::new(&view),
            own: MappedPeer::new(index, view),
            mapped: (0..size).map(|_| AtomicPtr::new(ptr::null_mut())).collect(),
            headers: (0..size).map(header_of).collect(),
            segments: (0..size).map(|_| MappedSegment::default()).collect(),
            waiting_for: AtomicU32::new(0),
            waiting_since: AtomicU64::new(0),
            frames_arrived: watch.arrived.into(),
            countdown: watch.countdown.map(NonNull::from),
            nal,
            on_damage: None,
            on_fault: None,
        }
    }

    /// Calls the handler of damage.
    #[cold]
    pub(crate) fn report(&self, damage: &Damage) {
        if let Some(handler) = self.on_damage {
            handler(damage);
        }
    }

    /// Calls the handler of failed accesses.
    #[cold]
    pub(crate) fn report_fault(&self, fault: &AccessFault) {
        if let Some(handler) = &self.on_fault {
            handler(fault);
        }
    }

    /// The number of a process.
    #[inline(always)]
    pub(crate) fn index_of(&self, target: PtlProcessId) -> Result<u32, PtlError> {
        if target.nid == self.nid && target.pid < self.size {
            Ok(target.pid)
        } else {
            self.number_elsewhere(target)
        }
    }

    /// The number of a process of another host.
    #[cold]
    #[inline(never)]
    fn number_elsewhere(&self, target: PtlProcessId) -> Result<u32, PtlError> {
        let numbering = self.nal.numbering().ok_or(PtlError::ProcessInvalid)?;
        numbering.number(target).ok_or(PtlError::ProcessInvalid)
    }

    /// Processes of all hosts.
    pub(crate) fn total(&self) -> u32 {
        self.nal.numbering().map_or(self.size, HostNumbering::total)
    }

    /// The peer, or `None` if it is reached by frames only. `PTL_PROCESS_INVALID`: its interface
    /// is not open.
    #[inline(always)]
    pub(crate) fn peer(&self, index: u32) -> Result<Option<&MappedPeer>, PtlError> {
        let Some(peer) = self.mapped.get(index as usize) else {
            cold_path();
            return Ok(None); // of another host
        };
        // Acquire pairs with the Release in `open_peer`.
        let peer = peer.load(Ordering::Acquire);
        if peer.is_null() {
            return self.open_peer(index);
        }
        // SAFETY: made by `Box::into_raw` in `open_peer`, freed with the interface only.
        Ok(Some(unsafe { &*peer }))
    }

    #[cold]
    fn open_peer(&self, index: u32) -> Result<Option<&MappedPeer>, PtlError> {
        let Route::Mapped(base) = self.nal.route(index) else { return Ok(None) };
        if index == self.index {
            return Ok(Some(&self.own));
        }
        // SAFETY: the contract of `Nal`: a mapped route leads to an arena of this length, zeroed
        // when it was made.
        let view = unsafe { ArenaView::of_peer(base, self.nal.arena_bytes()) }
            .ok_or(PtlError::ProcessInvalid)?;
        let new = Box::into_raw(Box::new(MappedPeer::new(index, view)));
        let slot = &self.mapped[index as usize];
        match slot.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as in `peer`.
            Ok(_) => Ok(Some(unsafe { &*new })),
            Err(other) => {
                // SAFETY: ours was not published, so this thread alone has it.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: the other was published, as in `peer`.
                Ok(Some(unsafe { &*other }))
            }
        }
    }

    /// The peer, if it has been addressed, and the entry of its match cache that such a message
    /// has.
    #[inline(always)]
    pub(crate) fn cached(
        &self,
        kind: OpKind,
        target: PtlProcessId,
        pt_index: PtIndex,
        match_bits: MatchBits,
    ) -> Option<(&MappedPeer, &MatchCacheEntry)> {
        // Acquire pairs with the Release in `open_peer`. There is no entry for ourselves.
        let peer = self.mapped.get(target.pid as usize)?.load(Ordering::Acquire);
        // SAFETY: null, or made by `Box::into_raw` in `open_peer` and freed with this value
        // only.
        let peer = unsafe { peer.as_ref() }?;
        if target.nid != self.nid {
            cold_path();
            return None;
        }
        Some((peer, peer.shortcuts.of(kind, pt_index, match_bits)))
    }

    /// Reports to the peers that this process has addressed how far it knows their queues to be
    /// claimed.
    pub(crate) fn publish_claimed(&self) {
        for peer in &self.mapped {
            // SAFETY: as in `cached`.
            let Some(peer) = (unsafe { peer.load(Ordering::Acquire).as_ref() }) else { continue };
            for (index, ring) in (0..).zip(&peer.rings) {
                if let Some(cell) = peer.view.eq(index) {
                    ring.publish_claimed(cell);
                }
            }
        }
    }

    /// The peers whose arenas are mapped, with their headers.
    pub(crate) fn peer_headers(&self) -> impl Iterator<Item = (u32, &ArenaHeader)> {
        (0..self.size).filter_map(|peer| Some((peer, self.header_of(peer)?)))
    }

    /// The header of a peer whose arena is mapped.
    fn header_of(&self, peer: u32) -> Option<&ArenaHeader> {
        let header = self.headers.get(peer as usize)?.as_ref()?;
        // SAFETY: the contract of `Nal`; a header consists of atomics, and is at offset 0
        // whatever the limits are.
        Some(unsafe { header.as_ref() })
    }

    /// Whether the peer's arena is mapped here.
    pub(crate) fn is_mapped(&self, peer: u32) -> bool {
        peer == self.index && self.own_mapped || self.header_of(peer).is_some()
    }

    /// Whether the segment of a process is mapped here.
    #[inline(always)]
    pub(crate) fn segment_mapped(&self, index: u32) -> bool {
        self.segments.get(index as usize).is_some_and(|s| s.length.load(Ordering::Acquire) != 0)
    }

    /// Whether private memory of a peer can be reached by cross-memory attach.
    #[inline(always)]
    pub(crate) fn attaches(&self, peer: &MappedPeer) -> bool {
        match peer.attach.load(Ordering::Relaxed) {
            UNTRIED => self.try_attach(peer),
            known => known == WORKS,
        }
    }

    /// Reads a word of the peer's private memory. The random number there proves that the process
    /// is the peer and that the operating system allows it: with namespaces of process ids, a
    /// number may name another process, which may have its memory at the same addresses.
    #[cold]
    fn try_attach(&self, peer: &MappedPeer) -> bool {
        let ident = &peer.view.header().ident;
        let (pid, address) =
            (ident.os_pid.load(Ordering::Relaxed), ident.secret_at.load(Ordering::Relaxed));
        let mut word = 0u64;
        let buffer = (&raw mut word).cast::<u8>();
        // SAFETY: the buffer is a writable word.
        let read = || unsafe { attach::read(pid, address, buffer, 8) };
        let works = self.nal.may_attach()
            && read() == Ok(())
            && word == ident.secret.load(Ordering::Relaxed);
        if works {
            peer.attached.store(pid, Ordering::Relaxed);
        }
        // Release pairs with the Acquire in `attached_pid`.
        peer.attach.store(if works { WORKS } else { FAILS }, Ordering::Release);
        works
    }

    /// Records where the segments of the processes are mapped here; see
    /// [`crate::NetworkInterface::expose`].
    pub(crate) fn set_segments(
        &self,
        base: *mut u8,
        len: usize,
        peers: &[*mut u8],
        lens: &[usize],
    ) {
        for (segment, (&base, &length)) in self.segments.iter().zip(peers.iter().zip(lens)) {
            let length = if base.is_null() { 0 } else { length as u64 };
            segment.length.store(0, Ordering::Release);
            segment.base.store(base, Ordering::Release);
            segment.length.store(length, Ordering::Release);
        }
        // Our own segment, whatever the lists contain for it.
        let own = &self.segments[self.index as usize];
        own.base.store(base, Ordering::Relaxed);
        own.length.store(len as u64, Ordering::Release);
    }

    /// Whether frames may have arrived. Counts a poll.
    #[inline(always)]
    pub(crate) fn has_frames(&self) -> bool {
        // SAFETY: a word of the NAL, which lives as long as this value and does not move.
        let arrived = unsafe { self.frames_arrived.as_ref() }.load(Ordering::Relaxed) != 0;
        let Some(countdown) = self.countdown else { return arrived };
        cold_path();
        // SAFETY: as above.
        let countdown = unsafe { countdown.as_ref() };
        // Where several threads do so at the same time, the network is called earlier or later.
        match countdown.load(Ordering::Relaxed) {
            0 => true,
            left => {
                countdown.store(left - 1, Ordering::Relaxed);
                arrived
            }
        }
    }

    /// Waits a moment for a peer that holds something. False if the peer is dead.
    #[cold]
    pub(crate) fn wait_for(&self, peer: u32, round: &mut u32) -> bool {
        *round = round.wrapping_add(1);
        thread::relax(*round);
        if !(*round).is_multiple_of(1024) {
            return true;
        }
        // The processes may wait for each other's lists, and so none of them looks otherwise.
        if let Some(damage) = self.own_versions.damage(&self.own.view) {
            self.report(&damage);
        }
        self.waiting_for.store(peer + 1, Ordering::Relaxed);
        self.waiting_since.store(clock::now_ns(), Ordering::Relaxed);
        self.nal.peer_state(peer) != PeerState::Dead
    }

    /// The process that a call of this interface waits for now, if any.
    pub(crate) fn waited_for(&self) -> Option<u32> {
        // A call that waits records it again every few microseconds to milliseconds.
        let since = self.waiting_since.load(Ordering::Relaxed);
        let recent = clock::now_ns().saturating_sub(since) < 100_000_000;
        self.waiting_for.load(Ordering::Relaxed).checked_sub(1).filter(|_| recent)
    }

    /// What the operating system reports of the process with this index; a number without a
    /// process is dead.
    pub(crate) fn state_of(&self, index: u32) -> PeerState {
        if index < self.total() { self.nal.peer_state(index) } else { PeerState::Dead }
    }

    /// The process with this number, which may be a peer's word and name no process.
    #[inline]
    pub(crate) fn process(&self, number: u32) -> PtlProcessId {
        let here = PtlProcessId { nid: self.nid, pid: number };
        if number < self.size {
            return here;
        }
        cold_path();
        self.nal.numbering().and_then(|n| n.process(number)).unwrap_or(here)
    }

    /// The number that an event names, by its words for initiator and length. It may be a peer's
    /// word and name no process.
    #[inline(always)]
    pub(crate) fn named(&self, initiator: u32, length: u64) -> u32 {
        if RemoteName::is_one(initiator) {
            cold_path();
            return self.size.wrapping_add(RemoteName::after(initiator, length));
        }
        initiator
    }

    /// The process that an event names; as [`Peers::named`].
    #[inline(always)]
    pub(crate) fn process_named(&self, initiator: u32, length: u64) -> PtlProcessId {
        if RemoteName::is_one(initiator) {
            cold_path();
            return self.process(self.named(initiator, length));
        }
        PtlProcessId { nid: self.nid, pid: initiator }
    }

    /// The header with which events of a framed message are posted: it names its peer as events
    /// do.
    pub(crate) fn as_posted(&self, header: &MessageHeader) -> MessageHeader {
        let Some(after) = header.initiator.checked_sub(self.size) else { return *header };
        let name = RemoteName::new(after);
        // No memory is longer: the length of an event is cut.
        let rlength = header.rlength.min(RemoteName::LENGTH) | name.high;
        MessageHeader { initiator: name.low, rlength, ..*header }
    }

    /// Takes a hazard slot of ours and writes `word` into it.
    #[inline(always)]
    pub(crate) fn hold(&self, word: HazardWord) -> HazardHold<'_> {
        self.own.view.header().hazards.hold(self.single, word)
    }

    /// Clears the hazard and wakes sleepers: of `peer` if `rings`, our own if `rings_own`.
    #[inline(always)]
    pub(crate) fn finish(
        &self,
        hold: HazardHold<'_>,
        peer: Option<&MappedPeer>,
        rings: bool,
        rings_own: bool,
    ) {
        let rings_own = rings_own && !self.single;
        // The fence of the doorbell.
        hold.clear(rings || rings_own);
        fault::point("put.cleared");
        if rings && let Some(peer) = peer {
            doorbell::ring(peer.view.header());
        }
        if rings_own {
            doorbell::ring(self.own.view.header());
        }
    }

    /// Takes the lock word of a target's get-puts: index + 1 of the holder, or 0. That of a dead
    /// holder is taken over: its swap may have been carried out in part. False if the word is
    /// damaged.
    pub(crate) fn lock_swap(&self, lock: &AtomicU32) -> bool {
        let mut round = 0;
        // Acquire pairs with the Release in `unlock_swap`; a dead holder has released nothing.
        let take_from = |holder| {
            lock.compare_exchange(holder, self.index + 1, Ordering::Acquire, Ordering::Relaxed)
        };
        loop {
            match take_from(0) {
                Ok(_) => return true,
                Err(0) => {}
                Err(holder) if holder <= self.size => {
                    if !self.wait_for(holder - 1, &mut round) && take_from(holder).is_ok() {
                        return true;
                    }
                }
                Err(_) => return false, // nonsense that a peer wrote
            }
        }
    }

    /// Releases the lock word.
    pub(crate) fn unlock_swap(&self, lock: &AtomicU32) {
        lock.store(0, Ordering::Release);
    }

    /// Wakes a mapped peer that sleeps on its doorbell, because a frame was put into its inbox.
    /// Other peers are woken by their NAL, or poll.
    pub(crate) fn wake(&self, peer: u32) {
        if let Some(header) = self.header_of(peer) {
            fence(Ordering::SeqCst);
            doorbell::ring(header);
        }
    }

    /// Wakes the threads of this process that sleep on its doorbell; see
    /// [`crate::NetworkInterface::ring_self`].
    pub(crate) fn wake_own(&self) {
        let header = self.own.view.header();
        if doorbell::someone_asleep(header) {
            fence(Ordering::SeqCst);
            doorbell::ring(header);
        }
    }

    /// Whether a mapped peer sleeps on its doorbell.
    pub(crate) fn any_asleep(&self) -> bool {
        self.peer_headers().any(|(_, header)| doorbell::someone_asleep(header))
    }

    /// Wakes every mapped peer that sleeps on its doorbell.
    pub(crate) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        for (_, header) in self.peer_headers() {
            doorbell::ring(header);
        }
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        for peer in &self.mapped {
            let peer = peer.load(Ordering::Acquire);
            if !peer.is_null() {
                // SAFETY: made by `Box::into_raw` in `open_peer`; nothing refers to it any more.
                drop(unsafe { Box::from_raw(peer) });
            }
        }
    }
}
