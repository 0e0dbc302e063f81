//! The calls of the specification on one interface.
//!
//! Called by the users of this crate: its C interface, and the conduit. A file holds the calls on
//! one object: [`ac`], [`me`], [`md`] and [`md_update`], [`eq`], [`eq_dead`] and [`eq_poll`]. The
//! data movement calls are in [`put_get`], [`get_put`], [`at_once`], whose fast paths are
//! [`cached`] and [`attached`], and [`scattered`]. This one holds the interface itself:
//! `PtlNIInit`, identity, limits, status, library memory. Invariant: every call may be made by
//! several threads at once.

mod ac;
#[cfg(test)]
mod address_space_tests;
mod at_once;
mod attached;
mod cached;
#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod damage_tests;
mod eq;
mod eq_dead;
mod eq_poll;
#[cfg(test)]
mod event_tests;
mod exposed;
#[cfg(test)]
mod exposed_tests;
mod get_put;
mod md;
mod md_update;
mod me;
mod put_get;
#[cfg(test)]
mod registration_tests;
mod scattered;

pub use exposed::NotExposed;
pub use scattered::ScatteredPiece;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::mem::{self, size_of};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::access_fault::AccessHandler;
use crate::arena::{
    self, ArenaHeader, ArenaView, CLOSED, IdentWords, MAGIC, PROCESSES, access, doorbell, hazard,
};
use crate::descriptor::traits::MemoryKind;
use crate::nal::joined::Joined;
use crate::nal::loopback::Loopback;
use crate::nal::numbering::HostNumbering;
use crate::nal::shm::Fabric;
use crate::nal::wire::{Wire, WireCounters};
use crate::nal::{Nal, PeerState};
use crate::peer::Peers;
use crate::tables::NiState;
use crate::transfer::framer::Framer;
use crate::types::*;
use sys::bell::{self, Bell};
use sys::clock;
use sys::hint::cold_path;
use sys::peer::Peer;
use sys::thread;

/// The arena of [`NetworkInterface::loopback`]: enough for everything that one process allocates
/// in it. Untouched pages cost nothing.
const LOOPBACK_BYTES: usize = 64 << 20;

/// Calls in which a thread that only delivers takes frames between two waits.
const DELIVERIES_PER_WAIT: u32 = 64;

/// One network interface of the specification.
///
/// All calls may be made by several threads at once.
pub struct NetworkInterface {
    pub(crate) state: NiState,
    framer: Framer,
    /// Messages that were framed.
    framed: AtomicU64,
    /// A message was framed although its target is mapped: later ones may have to wait for it.
    /// Without this word each message reads the count of its target: 0.98 of row `put_8` through
    /// Portals, and `one_way_request` would be beyond its bound.
    framed_before: AtomicBool,
    /// We have posted an event to a peer, and have not looked at our queues since. A hint.
    in_a_row: AtomicBool,
}

impl fmt::Debug for NetworkInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkInterface")
            .field("id", &self.id())
            .field("size", &self.state.peers.size)
            .finish_non_exhaustive()
    }
}

impl NetworkInterface {
    /// Opens an interface of one process, whose arena is in private memory.
    pub fn loopback(limits: Option<NiLimits>) -> Result<NetworkInterface, PtlError> {
        NetworkInterface::alone(0, LOOPBACK_BYTES, limits)
    }

    /// As [`NetworkInterface::loopback`], with this node id and an arena of this many bytes.
    pub fn alone(
        nid: u32,
        bytes: usize,
        limits: Option<NiLimits>,
    ) -> Result<NetworkInterface, PtlError> {
        let nal = Loopback::new(nid, bytes).ok_or(PtlError::NoSpace)?;
        NetworkInterface::with_nal(Box::new(nal), limits)
    }

    /// Opens the interface of one process of a shared memory fabric. Peers can be addressed once
    /// they have called this too.
    pub fn shm(fabric: Fabric, limits: Option<NiLimits>) -> Result<NetworkInterface, PtlError> {
        NetworkInterface::with_nal(Box::new(fabric), limits)
    }

    /// Opens the interface of one process of a job on several hosts. Host `i` has `hosts[i]`
    /// processes; this one is number `pid` of `fabric` on host `nid` of it. `wire` reaches the
    /// processes of other hosts. Before the first message to them, or from them, all processes
    /// call [`NetworkInterface::connect`]. `PTL_PID_INVALID`: there is no such process.
    /// `PTL_NO_SPACE`: also if the system has no descriptors left.
    pub fn joined(
        fabric: Fabric,
        hosts: &[u32],
        wire: Box<dyn Wire>,
        limits: Option<NiLimits>,
    ) -> Result<NetworkInterface, PtlError> {
        let numbering = HostNumbering::new(fabric.nid(), hosts).ok_or(PtlError::PidInvalid)?;
        if numbering.own() != fabric.size() {
            return Err(PtlError::PidInvalid);
        }
        let joined = Joined::new(fabric, numbering, wire).map_err(|_| PtlError::NoSpace)?;
        NetworkInterface::with_nal(Box::new(joined), limits)
    }

    /// Says where the processes of other hosts are: the addresses of all wires, one after the
    /// other in the order of (`nid`, `pid`). `PTL_PROCESS_INVALID`: not as many as processes, or
    /// there are no other hosts.
    pub fn connect(&self, addresses: Box<[u8]>) -> Result<(), PtlError> {
        let nal = &self.state.peers.nal;
        let (Some(wire), Some(numbering)) = (nal.wire(), nal.numbering()) else {
            return Err(PtlError::ProcessInvalid);
        };
        match wire.connect(self.id(), numbering, addresses) {
            true => Ok(()),
            false => Err(PtlError::ProcessInvalid),
        }
    }

    /// The number of a process.
    pub fn number(&self, process: PtlProcessId) -> Result<u32, PtlError> {
        self.state.peers.index_of(process)
    }

    /// Opens an interface over any NAL. `PTL_NO_SPACE`: the tables for these limits do not fit the
    /// arena. `PTL_PID_INVALID`: our number is not below the fabric's size, or the fabric is too
    /// large.
    pub fn with_nal(
        nal: Box<dyn Nal>,
        limits: Option<NiLimits>,
    ) -> Result<NetworkInterface, PtlError> {
        let nal = Arc::from(nal);
        let opened = NetworkInterface::over(&nal, limits);
        if opened.is_err() {
            nal.not_opened();
        }
        opened
    }

    fn over(nal: &Arc<dyn Nal>, limits: Option<NiLimits>) -> Result<NetworkInterface, PtlError> {
        let limits = arena::granted(&limits.unwrap_or(NiLimits::DEFAULT));
        let size = nal.size();
        if nal.index() >= size || size > PROCESSES {
            return Err(PtlError::PidInvalid);
        }
        if nal.arena_bytes() < size_of::<ArenaHeader>() {
            return Err(PtlError::NoSpace);
        }
        // SAFETY: the contract of `Nal`: the arena is mapped, zeroed, and stays so while the NAL
        // lives.
        let view = unsafe { ArenaView::new(nal.arena(), nal.arena_bytes(), &limits) }
            .ok_or(PtlError::NoSpace)?;
        let interface = NetworkInterface {
            framer: Framer::new(size, nal.lanes()),
            state: NiState::new(Peers::new(Arc::clone(nal), view), limits),
            framed: AtomicU64::new(0),
            framed_before: AtomicBool::new(false),
            in_a_row: AtomicBool::new(false),
        };
        interface.open()?;
        Ok(interface)
    }

    /// Publishes the arena to the peers.
    fn open(&self) -> Result<(), PtlError> {
        let state = &self.state;
        let admission = access::admission(PtlProcessId::ANY, state.uid, state.jid, PT_INDEX_ANY);
        let owner = &mut *state.owner.lock();
        state.admit(owner, 0, admission)?;
        let (view, limits) = (&state.peers.own.view, &state.limits);
        let secret = &*state.secret;
        let words = IdentWords {
            secret_at: core::ptr::from_ref(secret).expose_provenance() as u64,
            secret: secret.load(Ordering::Relaxed),
            os_pid: sys::process::pid(),
            max_mes: limits.max_mes,
            max_mds: limits.max_mds,
            max_eqs: limits.max_eqs,
            max_ac_index: limits.max_ac_index,
            max_pt_index: limits.max_pt_index,
            bell: state.peers.nal.bell().map_or(0, Bell::name),
        };
        owner.ident = words;
        let ident = &view.header().ident;
        words.store(ident);
        // Release pairs with the Acquire in `ArenaView::of_peer`.
        ident.magic.store(MAGIC, Ordering::Release);
        Ok(())
    }

    /// Skips the locks between threads from now on: only one thread at a time calls the
    /// interface.
    ///
    /// # Safety
    /// No two threads may call the interface at once, for as long as it exists.
    pub unsafe fn set_single_threaded(&mut self) {
        self.state.peers.single = true;
        self.state.peers.own.view.header().hazards.use_only_slot();
    }

    /// The limits that were granted.
    pub fn limits(&self) -> NiLimits {
        self.state.limits
    }

    /// `PtlGetId`
    pub fn id(&self) -> PtlProcessId {
        PtlProcessId { nid: self.state.peers.nid, pid: self.state.peers.index }
    }

    /// `PtlGetUid`
    pub fn uid(&self) -> Uid {
        self.state.uid
    }

    /// `PtlGetJid`
    pub fn jid(&self) -> Jid {
        self.state.jid
    }

    /// `PtlNIStatus`
    pub fn status(&self, register: StatusRegister) -> u64 {
        match register {
            StatusRegister::DropCount => {
                self.state.peers.own.view.header().drops.0.load(Ordering::Relaxed)
            }
        }
    }

    /// `PtlNIDist`: 0 to this process, 1 to the others of the host, 2 to those of other hosts.
    pub fn distance(&self, target: PtlProcessId) -> Result<u64, PtlError> {
        let (number, peers) = (self.state.peers.index_of(target)?, &self.state.peers);
        Ok(u64::from(number != peers.index) + u64::from(number >= peers.size))
    }

    /// Whether puts and gets of the other processes complete without calls of this one: the system
    /// lets processes copy from and to each other's memory. Tried with one of them, which has
    /// opened its interface.
    pub fn has_bypass(&self) -> bool {
        let peers = &self.state.peers;
        let other = (peers.index + 1) % peers.size;
        match peers.peer(other) {
            Ok(Some(peer)) => other == peers.index || peers.attaches(peer),
            _ => false,
        }
    }

    /// Delivers frames that have arrived and sends frames that wait. The calls that look at
    /// event queues do this too.
    #[inline(always)]
    pub fn progress(&self) {
        if self.is_framing() {
            cold_path();
            self.framer.progress(&self.state);
        }
    }

    /// Calls `send`. What it sends to other hosts leaves together at its end, but for what leaves
    /// in calls that look at event queues.
    pub fn together(&self, send: &mut dyn FnMut()) {
        self.framer.hold();
        send();
        self.framer.release(&self.state);
    }

    /// Whether frames have arrived or wait to leave.
    #[inline(always)]
    fn is_framing(&self) -> bool {
        self.state.peers.has_frames() || self.framer.is_waiting()
    }

    /// The doorbell's count, to be taken before the last look at the queues that precedes a
    /// [`NetworkInterface::sleep`]. It changes when an event is posted to any queue of ours
    /// after this call.
    pub fn doorbell(&self) -> u32 {
        let peers = &self.state.peers;
        peers.nal.look_soon();
        doorbell::before_sleep(peers.own.view.header(), peers.nal.bell().is_some())
    }

    /// Sleeps until `seen` is no longer the doorbell's count or `timeout_ns` have passed; may
    /// wake for no reason.
    pub fn sleep(&self, seen: u32, timeout_ns: u64) {
        let (peers, timeout_ns) = (&self.state.peers, timeout_ns.min(self.longest_sleep_ns()));
        let header = peers.own.view.header();
        if peers.nal.bell().is_none() {
            return doorbell::sleep(header, seen, timeout_ns);
        }
        peers.nal.sleep(timeout_ns, &|| doorbell::is_unchanged(header, seen));
    }

    /// Delivers what comes from other hosts, for a thread that does nothing but call this. Sleeps
    /// in the kernel until something arrives, for at most `timeout_ns` nanoseconds. While other
    /// threads look at event queues, or sleep until an event is posted, this only rests: they
    /// deliver. No event handler runs here. [`NetworkInterface::wake_wire`] ends the sleep.
    pub fn progress_wire(&self, timeout_ns: u64) {
        let nal = &self.state.peers.nal;
        if nal.wait(timeout_ns.min(self.longest_sleep_ns())) {
            let mut taken = self.framer.counters().1;
            // A long message arrives in parts, each of which another call takes.
            for _ in 0..DELIVERIES_PER_WAIT {
                nal.look_soon();
                self.progress();
                let before = mem::replace(&mut taken, self.framer.counters().1);
                if before == taken {
                    break;
                }
            }
            nal.rested();
        }
    }

    /// Waits until what was sent to other hosts needs this process no more, for this many
    /// nanoseconds at most. Frames may wait for their connection still. For a process that ends.
    pub fn flush_wire(&self, timeout_ns: u64) {
        let nal = &self.state.peers.nal;
        let Some(wire) = nal.wire() else { return };
        let until = clock::now_ns().saturating_add(timeout_ns);
        while self.framer.is_waiting() && clock::now_ns() < until {
            nal.look_soon();
            self.framer.progress_lanes(&self.state);
            thread::yield_now();
        }
        wire.flush(until.saturating_sub(clock::now_ns()));
    }

    /// Ends a sleep of [`NetworkInterface::progress_wire`].
    pub fn wake_wire(&self) {
        if let Some(bell) = self.state.peers.nal.bell() {
            bell::ring(bell.name());
        }
    }

    /// Wakes the threads of this process that sleep on its doorbell. This thread has taken an
    /// event that one of them may be waiting for. A thread that is just falling asleep may be
    /// missed, so its sleep must be bounded. In return, this costs one load while no thread
    /// sleeps.
    pub fn ring_self(&self) {
        self.state.peers.wake_own();
    }

    /// Whether a mapped peer sleeps on its doorbell. One that falls asleep later sees what this
    /// process stored before a fence before the call.
    pub fn peers_sleep(&self) -> bool {
        self.state.peers.any_asleep()
    }

    /// Wakes every mapped peer that sleeps on its doorbell, because memory that it shares with
    /// this process has changed. The change must have been made before the call.
    pub fn ring_peers(&self) {
        self.state.peers.wake_all();
    }

    /// How long a wait for events may sleep at most: a network of frames rings no doorbell, and
    /// room for waiting frames must be polled.
    pub(crate) fn longest_sleep_ns(&self) -> u64 {
        let peers = &self.state.peers;
        let rings = peers.own_mapped && !self.framer.is_waiting();
        if rings { u64::MAX } else { 200_000 }
    }

    /// The memory that this process shares with its peers for the network itself: first byte,
    /// bytes.
    pub fn mapped(&self) -> (NonNull<u8>, usize) {
        self.state.peers.nal.mapped()
    }

    /// Zeroed memory in the arena, which peers reach without our help; never freed. `align` is a
    /// power of two. `None` if the arena is used up.
    pub fn alloc(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        if !align.is_power_of_two() {
            return None;
        }
        let offset = self.state.bump(&mut self.state.owner.lock(), bytes, align)?;
        self.state.peers.own.view.range(Peer::new(offset), Peer::new(bytes as u64))
    }

    /// The mapping here of the arena of an open interface of this host, from which
    /// [`NetworkInterface::alloc`] allocates: first byte, bytes.
    pub fn arena_of(&self, process: PtlProcessId) -> Option<(NonNull<u8>, usize)> {
        let view = &self.state.peers.peer(self.state.peers.index_of(process).ok()?).ok()??.view;
        Some((view.base(), view.bytes()))
    }

    /// Whether all memory of a process can be reached by cross-memory attach.
    pub fn attaches(&self, process: PtlProcessId) -> bool {
        let peers = &self.state.peers;
        let peer = peers.index_of(process).and_then(|index| peers.peer(index));
        matches!(peer, Ok(Some(peer)) if peers.attaches(peer))
    }

    /// Declares that `len` bytes from `base` are shared. `peers[i]` is where the same bytes of the
    /// segment of process `i` are mapped here (null: nowhere), `lens[i]` their length. Peers reach
    /// descriptors made later inside of it without our help.
    ///
    /// # Safety
    /// The mappings must stay valid while the interface lives.
    pub unsafe fn expose(&self, base: *mut u8, len: usize, peers: &[*mut u8], lens: &[usize]) {
        self.state.peers.set_segments(base, len, peers, lens);
    }

    /// Whether peers on this host reach this memory without our help: the arena, or the exposed
    /// segment. An empty range counts as reachable, wherever it begins.
    pub fn is_shared(&self, start: *mut u8, length: u64) -> bool {
        matches!(self.state.place(start, length).0, MemoryKind::Arena | MemoryKind::Segment)
    }

    /// The index of a process that holds something that we have been waiting for, if one does
    /// now. This is a slot that it reserved and did not publish, or a descriptor of ours that
    /// was in use. Or it is a lock word, or a list that it is changing.
    pub fn blocked_by(&self) -> Option<u32> {
        let state = &self.state;
        let held = [
            state.queue_blocked_by(),
            state.peers.nal.blocked_by(),
            state.descriptor_blocked_by(),
        ];
        // A peer wrote the number: it may name no process.
        let held = held.into_iter().flatten().find(|&peer| peer < state.peers.size);
        held.or_else(|| state.peers.waited_for())
    }

    /// What is to be called with damage that is found. Without a handler, events that
    /// are damaged are skipped.
    pub fn set_damage_handler(&mut self, handler: DamageHandler) {
        self.state.peers.on_damage = Some(handler);
    }

    /// What is to be called with an access that the kernel refused. Without a handler, the events
    /// of the operation say that it failed.
    pub fn set_access_handler(&mut self, handler: AccessHandler) {
        self.state.peers.on_fault = Some(handler);
    }

    /// Declares that no message is dropped and no event lost where all processes are correct.
    /// Descriptors accept all messages, and queues have room for all events. A drop or loss that
    /// is seen counts as damage from now on.
    pub fn expect_no_loss(&mut self) {
        self.state.loses_nothing = true;
    }

    /// Demands that memory is registered: from now on a descriptor locks the pages that it covers,
    /// outside of arena and segment, while it exists. The kernel checks accesses to them, as those
    /// to an address space, of which no descriptor can be made. Messages to portal table entries
    /// from `revocable` on may come after the end of their descriptor: they are dropped and
    /// counted.
    pub fn demand_registration(&mut self, revocable: PtIndex) {
        self.state.registers = true;
        self.state.revocable = revocable;
    }

    /// Bytes of memory that descriptors have registered.
    pub fn registered(&self) -> usize {
        self.state.owner.lock().registered.bytes()
    }

    /// Looks for damage of the memory that this process shares, and reports it. It checks the
    /// words that only this process writes, and the slots that its next events and its next
    /// frame are due in. Reports to the peers how many of their events are posted, so that they
    /// can miss one. For a thread that has waited for long.
    pub fn check_arena(&self) {
        let state = &self.state;
        state.peers.publish_claimed();
        if let Some(damage) = state.arena_damage().or_else(|| state.peers.nal.damage()) {
            state.report(&damage);
        }
    }

    /// What the operating system reports of the process with this index; a number without a
    /// process is dead.
    pub fn peer_state(&self, index: u32) -> PeerState {
        self.state.peers.state_of(index)
    }

    /// A process of another host that this one has addressed, and that has never sent anything for
    /// this many nanoseconds since then; `None` also where the network itself reports such.
    pub fn silent_peer(&self, ns: u64) -> Option<PtlProcessId> {
        let peers = &self.state.peers;
        Some(peers.process(peers.nal.wire()?.silent_peer(ns)?))
    }

    /// What has travelled since the interface was opened.
    pub fn counters(&self) -> NiCounters {
        let (puts, gets, bytes) = self.state.counted();
        let (frames_sent, frames_taken) = self.framer.counters();
        let wire = self.state.peers.nal.wire().map_or(WireCounters::default(), Wire::counters);
        NiCounters {
            puts,
            gets,
            bytes,
            framed: self.framed.load(Ordering::Relaxed),
            remote: self.framer.remote_messages(),
            dropped: self.status(StatusRegister::DropCount),
            frames_sent,
            frames_taken: frames_taken.saturating_sub(wire.parts),
            refused: wire.refused,
        }
    }

    /// Empties all match lists, so that later messages are dropped and touch no memory of ours.
    /// Waits a moment for those in flight, but not for peers that are stopped or dead.
    fn close_lists(&self) {
        let owner = &mut *self.state.owner.lock();
        for (pt, _) in (0..).zip(&owner.lists).filter(|(_, list)| !list.is_empty()) {
            let change = self.state.pt_begin_change(pt);
            self.state.pt_write(pt, &[]);
            self.state.pt_end_change(change);
        }
        for round in 0..1000 {
            let aims_at_us =
                |word: hazard::HazardWord| word.target_md(self.state.peers.index).is_some();
            if !self
                .state
                .peers
                .peer_headers()
                .any(|(_, header)| hazard::names(&header.hazards, aims_at_us))
            {
                return;
            }
            thread::relax(round);
        }
    }
}

impl Drop for NetworkInterface {
    fn drop(&mut self) {
        // Peers that have not addressed us yet find the interface closed.
        self.state.peers.own.view.header().ident.magic.store(CLOSED, Ordering::Release);
        self.close_lists();
    }
}
