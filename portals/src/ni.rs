//! The network interface (`PtlNIInit`): identity, limits, peers, segments, library memory, status and
//! counters.
//!
//! The other calls of the specification are in the files of the objects that they are about.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::mem::size_of;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use crate::arena::{self, ArenaHeader, ArenaView, HAZARDS, MAGIC, PROCESSES};
use crate::doorbell;
use crate::eq::{EqRecord, EventRing};
use crate::hazard;
use crate::lock::SpinLock;
use crate::md::{MdRecord, Pieces, Resting};
use crate::me::MeRecord;
use crate::nal::loopback::Loopback;
use crate::nal::shm::Fabric;
use crate::nal::{Nal, PeerState, Route};
use crate::shortcut::MatchCache;
use crate::types::*;
use crate::wire::Framer;
use crate::zeroed::Zeroed;
use sys::hint::cold_path;

/// A process whose arena is mapped here.
#[derive(Debug)]
pub(crate) struct MappedPeer {
    pub(crate) index: u32,
    pub(crate) view: ArenaView,
    /// Our view of its queues' rings.
    pub(crate) rings: Box<[EventRing]>,
    pub(crate) shortcuts: MatchCache,
    /// Cross-memory attach: not tried yet, works, does not.
    attach: AtomicU8,
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
        }
    }
}

/// Where the segment of a process is mapped here; length 0: nowhere. The length is stored last.
#[derive(Debug, Default)]
pub(crate) struct MappedSegment {
    pub(crate) base: AtomicPtr<u8>,
    pub(crate) length: AtomicU64,
}

/// Counters that belong to a hazard slot: changed only by who holds it.
#[repr(align(64))]
#[derive(Debug, Default)]
pub(crate) struct SlotCounts {
    pub(crate) puts: AtomicU64,
    pub(crate) gets: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// What changes only under the owner lock: nothing here is ever touched by put, get or an empty queue.
#[derive(Debug)]
pub(crate) struct OwnerTables {
    pub(crate) mes: Vec<MeRecord>,
    pub(crate) free_mes: Vec<u16>,
    /// Match entries of each portal table entry, in order.
    pub(crate) lists: Vec<Vec<u16>>,
    /// Portal table entries that ever had one.
    pub(crate) pt_used: Vec<bool>,
    pub(crate) free_mds: Vec<u32>,
    /// Former descriptors that somebody may still mention.
    pub(crate) resting: VecDeque<Resting>,
    /// Replaced while they were in use; freed when the interface is closed.
    pub(crate) old_pieces: Vec<OldPieces>,
    pub(crate) free_iovs: Vec<u64>,
    pub(crate) free_eqs: Vec<u32>,
    /// Slots and offset of the ring of each queue.
    pub(crate) rings: Vec<(u64, u64)>,
    /// The same of rings that can be used again.
    pub(crate) free_rings: Vec<(u64, u64)>,
    pub(crate) next_eq_key: u64,
    /// First free byte of the arena.
    next_byte: usize,
}

/// Pieces that outlive their descriptor.
#[derive(Debug)]
pub(crate) struct OldPieces(pub(crate) *mut Pieces);

// SAFETY: the pointer is owned; it only waits to be freed.
unsafe impl Send for OldPieces {}

impl Drop for OldPieces {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw`, owned by this value alone, dropped with the interface.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// One network interface of the specification.
///
/// All calls may be made by several threads at once.
pub struct NetworkInterface {
    pub(crate) index: u32,
    pub(crate) nid: u32,
    pub(crate) size: u32,
    pub(crate) uid: Uid,
    pub(crate) jid: Jid,
    /// Only one thread calls us; see [`NetworkInterface::set_single_threaded`].
    pub(crate) single: bool,
    /// A message was framed although its target is mapped: later ones may have to wait for it.
    pub(crate) framed_before: AtomicBool,
    /// Even messages to ourselves need no frames.
    own_mapped: bool,
    /// We have posted an event to a peer, and no look at our queues has been in vain since. A hint.
    pub(crate) in_a_row: AtomicBool,
    pub(crate) own: MappedPeer,
    pub(crate) mds: Zeroed<MdRecord>,
    pub(crate) eqs: Box<[EqRecord]>,
    /// Peers that have been addressed; null before, and if they are reached in frames only.
    pub(crate) peers: Box<[AtomicPtr<MappedPeer>]>,
    /// Headers of all mapped arenas but ours.
    headers: Box<[Option<NonNull<ArenaHeader>>]>,
    pub(crate) segments: Box<[MappedSegment]>,
    pub(crate) counts: Box<[SlotCounts; HAZARDS]>,
    pub(crate) framed: AtomicU64,
    /// Index + 1 of the process that a call is waiting for, and when it last said so.
    pub(crate) waiting_for: AtomicU32,
    pub(crate) waiting_since: AtomicU64,
    /// Index + 1 of the descriptor that was last found to be in use.
    pub(crate) found_busy: AtomicU32,
    pub(crate) limits: NiLimits,
    pub(crate) wire: Framer,
    pub(crate) owner: SpinLock<OwnerTables>,
    /// [`Nal::frames_flag`]
    frames_flag: Option<NonNull<AtomicU32>>,
    pub(crate) nal: Box<dyn Nal>,
}

// SAFETY: the pointers in it lead to arenas and segments, which are touched through atomics (or copied from
// and to as memory that anybody may write), and to boxes that it owns.
unsafe impl Send for NetworkInterface {}
// SAFETY: as above; what is not atomic is behind the owner lock.
unsafe impl Sync for NetworkInterface {}

impl fmt::Debug for NetworkInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interface")
            .field("id", &self.id())
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl NetworkInterface {
    /// Opens an interface of one process, whose arena is on the heap.
    pub fn loopback(limits: Option<NiLimits>) -> Result<NetworkInterface, PtlError> {
        let nal = Loopback::new().ok_or(PtlError::NoSpace)?;
        NetworkInterface::with_nal(Box::new(nal), limits)
    }

    /// Opens the interface of one process of a shared memory fabric. Peers can be addressed once they have
    /// called this too.
    pub fn shm(fabric: Fabric, limits: Option<NiLimits>) -> Result<NetworkInterface, PtlError> {
        NetworkInterface::with_nal(Box::new(fabric), limits)
    }

    /// Opens an interface over any NAL. `PTL_NO_SPACE`: the tables for these limits do not fit the arena;
    /// `PTL_PID_INVALID`: our number is not below the fabric's size, or the fabric is too large.
    pub fn with_nal(
        nal: Box<dyn Nal>,
        limits: Option<NiLimits>,
    ) -> Result<NetworkInterface, PtlError> {
        let limits = arena::granted(&limits.unwrap_or(NiLimits::DEFAULT));
        let (index, size) = (nal.index(), nal.size());
        if index >= size || size > PROCESSES {
            return Err(PtlError::PidInvalid);
        }
        if nal.arena_bytes() < size_of::<ArenaHeader>() {
            return Err(PtlError::NoSpace);
        }
        // SAFETY: what the NAL promises.
        let view = unsafe { ArenaView::new(nal.arena(), nal.arena_bytes(), &limits) }
            .ok_or(PtlError::NoSpace)?;
        let headers = (0..size)
            .map(|peer| match nal.route(peer) {
                Route::Mapped(base) if peer != index => Some(base.cast::<ArenaHeader>()),
                _ => None,
            })
            .collect();
        let owner = OwnerTables {
            mes: vec![MeRecord::default(); limits.max_mes as usize],
            free_mes: (0..limits.max_mes as u16).rev().collect(),
            lists: vec![Vec::new(); limits.max_pt_index as usize + 1],
            pt_used: vec![false; limits.max_pt_index as usize + 1],
            free_mds: (0..limits.max_mds).rev().collect(),
            resting: VecDeque::new(),
            old_pieces: Vec::new(),
            free_iovs: Vec::new(),
            free_eqs: (0..limits.max_eqs).rev().collect(),
            rings: vec![(0, 0); limits.max_eqs as usize],
            free_rings: Vec::new(),
            next_eq_key: 0,
            next_byte: view.tables_end(),
        };
        let interface = NetworkInterface {
            index,
            nid: nal.nid(),
            size,
            uid: sys::process::real_user(),
            jid: nal.jid(),
            single: false,
            framed_before: AtomicBool::new(false),
            in_a_row: AtomicBool::new(false),
            own_mapped: nal.route(index) != Route::Wire,
            own: MappedPeer::new(index, view),
            mds: Zeroed::new(limits.max_mds as usize),
            eqs: (0..limits.max_eqs).map(|_| EqRecord::default()).collect(),
            peers: (0..size).map(|_| AtomicPtr::new(ptr::null_mut())).collect(),
            headers,
            segments: (0..size).map(|_| MappedSegment::default()).collect(),
            counts: Box::new(
                [const {
                    SlotCounts {
                        puts: AtomicU64::new(0),
                        gets: AtomicU64::new(0),
                        bytes: AtomicU64::new(0),
                    }
                }; HAZARDS],
            ),
            framed: AtomicU64::new(0),
            waiting_for: AtomicU32::new(0),
            waiting_since: AtomicU64::new(0),
            found_busy: AtomicU32::new(0),
            limits,
            wire: Framer::new(size),
            owner: SpinLock::new(owner),
            frames_flag: nal.frames_flag().map(NonNull::from),
            nal,
        };
        interface.open()?;
        Ok(interface)
    }

    /// Tells the peers that the arena is ready.
    fn open(&self) -> Result<(), PtlError> {
        let any = PtlProcessId::ANY;
        self.ac_entry(0, any, self.uid, self.jid, PT_INDEX_ANY)?;
        let ident = &self.own.view.header().ident;
        let relaxed = Ordering::Relaxed;
        ident.own_base.store(self.own.view.base().as_ptr() as u64, relaxed);
        ident.os_pid.store(sys::process::pid(), relaxed);
        ident.max_mes.store(self.limits.max_mes, relaxed);
        ident.max_mds.store(self.limits.max_mds, relaxed);
        ident.max_eqs.store(self.limits.max_eqs, relaxed);
        ident.max_ac_index.store(self.limits.max_ac_index, relaxed);
        ident.max_pt_index.store(self.limits.max_pt_index, relaxed);
        // Release pairs with the Acquire in `ArenaView::of_peer`.
        ident.magic.store(MAGIC, Ordering::Release);
        Ok(())
    }

    /// Promises that only one thread at a time calls the interface; locks between threads are skipped from
    /// then on.
    ///
    /// # Safety
    /// The promise must be kept for as long as the interface lives.
    pub unsafe fn set_single_threaded(&mut self) {
        self.single = true;
        self.use_only_slot();
    }

    /// The limits that were granted.
    pub fn limits(&self) -> NiLimits {
        self.limits
    }

    /// `PtlGetId`
    pub fn id(&self) -> PtlProcessId {
        PtlProcessId { nid: self.nid, pid: self.index }
    }

    /// `PtlGetUid`
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// `PtlGetJid`
    pub fn jid(&self) -> Jid {
        self.jid
    }

    /// `PtlNIStatus`
    pub fn status(&self, register: StatusRegister) -> u64 {
        match register {
            StatusRegister::DropCount => self.own.view.header().drops.0.load(Ordering::Relaxed),
        }
    }

    /// `PtlNIDist`: 0 to ourselves, 1 to the others of the host.
    pub fn distance(&self, target: PtlProcessId) -> Result<u64, PtlError> {
        Ok(u64::from(self.index_of(target)? != self.index))
    }

    /// The number of a process of this fabric.
    #[inline(always)]
    pub(crate) fn index_of(&self, target: PtlProcessId) -> Result<u32, PtlError> {
        if target.nid == self.nid && target.pid < self.size {
            Ok(target.pid)
        } else {
            Err(PtlError::ProcessInvalid)
        }
    }

    /// The peer, or `None` if it is reached in frames only. `PTL_PROCESS_INVALID`: its interface is not open.
    #[inline(always)]
    pub(crate) fn peer(&self, index: u32) -> Result<Option<&MappedPeer>, PtlError> {
        // Acquire pairs with the Release in `open_peer`.
        let peer = self.peers[index as usize].load(Ordering::Acquire);
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
        // SAFETY: what the NAL promises.
        let view = unsafe { ArenaView::of_peer(base, self.nal.arena_bytes()) }
            .ok_or(PtlError::ProcessInvalid)?;
        let new = Box::into_raw(Box::new(MappedPeer::new(index, view)));
        let slot = &self.peers[index as usize];
        match slot.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as in `peer`.
            Ok(_) => Ok(Some(unsafe { &*new })),
            Err(other) => {
                // SAFETY: ours was not published; the other was, as in `peer`.
                unsafe {
                    drop(Box::from_raw(new));
                    Ok(Some(&*other))
                }
            }
        }
    }

    /// The peers whose arenas are mapped, with their headers.
    pub(crate) fn peer_headers(&self) -> impl Iterator<Item = (u32, &ArenaHeader)> {
        (0..self.size).filter_map(|peer| Some((peer, self.header_of(peer)?)))
    }

    /// Whether the segment of a process is mapped here.
    #[inline(always)]
    pub(crate) fn segment_mapped(&self, index: u32) -> bool {
        self.segments.get(index as usize).is_some_and(|s| s.length.load(Ordering::Acquire) != 0)
    }

    /// Whether private memory of a peer can be reached with cross-memory attach.
    #[inline(always)]
    pub(crate) fn attaches(&self, peer: &MappedPeer) -> bool {
        match peer.attach.load(Ordering::Relaxed) {
            UNTRIED => self.try_attach(peer),
            known => known == WORKS,
        }
    }

    /// Reads the first word of the peer's arena at the peer's address: the right answer says that the process
    /// id is right and that the operating system allows it.
    #[cold]
    fn try_attach(&self, peer: &MappedPeer) -> bool {
        let ident = &peer.view.header().ident;
        let (pid, address) =
            (ident.os_pid.load(Ordering::Relaxed), ident.own_base.load(Ordering::Relaxed));
        let mut word = 0u64;
        let buffer = (&raw mut word).cast::<u8>();
        // SAFETY: the buffer is a writable word.
        let read = self.nal.may_attach() && unsafe { sys::attach::read(pid, address, buffer, 8) };
        let works = read && word == MAGIC;
        peer.attach.store(if works { WORKS } else { FAILS }, Ordering::Relaxed);
        works
    }

    /// Delivers what has come in frames and sends what waits to be sent in frames. The calls that look at
    /// event queues do so by themselves.
    #[inline(always)]
    pub fn progress(&self) {
        if self.is_framing() {
            cold_path();
            self.wire.progress(self);
        }
    }

    /// Whether frames have come or wait to leave.
    #[inline(always)]
    pub(crate) fn is_framing(&self) -> bool {
        let come = match self.frames_flag {
            // SAFETY: a word of the NAL, which lives as long as the interface and stays in its place.
            Some(flag) => unsafe { flag.as_ref() }.load(Ordering::Relaxed) != 0,
            None => {
                cold_path();
                self.nal.has_frames()
            }
        };
        come || self.wire.is_waiting()
    }

    /// The network below.
    #[inline(always)]
    pub(crate) fn nal(&self) -> &dyn Nal {
        &*self.nal
    }

    /// Whether the peer's arena is mapped here.
    pub(crate) fn is_mapped(&self, peer: u32) -> bool {
        peer == self.index && self.own_mapped || self.header_of(peer).is_some()
    }

    /// The header of a peer whose arena is mapped.
    fn header_of(&self, peer: u32) -> Option<&ArenaHeader> {
        let header = self.headers.get(peer as usize)?.as_ref()?;
        // SAFETY: what the NAL promises; a header consists of atomics, and its place does not depend on
        // limits.
        Some(unsafe { header.as_ref() })
    }

    /// Wakes a mapped peer that sleeps on its doorbell, because a frame was put where it will look; anything
    /// else is woken by its NAL, or looks by itself.
    pub(crate) fn wake(&self, peer: u32) {
        if let Some(header) = self.header_of(peer) {
            fence(Ordering::SeqCst);
            doorbell::ring(header);
        }
    }

    /// Wakes the threads of this process that sleep on its doorbell, because this thread has taken an event that one of
    /// them may be waiting for. A thread that is just falling asleep may be missed, so its sleep must be bounded; in
    /// return this costs one load while nobody sleeps.
    #[inline]
    pub fn ring_self(&self) {
        let header = self.own.view.header();
        if doorbell::someone_asleep(header) {
            fence(Ordering::SeqCst);
            doorbell::ring(header);
        }
    }

    /// Wakes every mapped peer that sleeps on its doorbell, because something in memory that it shares with
    /// us has changed; the change must have been made before the call.
    pub fn ring_peers(&self) {
        fence(Ordering::SeqCst);
        for peer in (0..self.headers.len() as u32).filter(|&peer| peer != self.index) {
            if let Some(header) = self.header_of(peer) {
                doorbell::ring(header);
            }
        }
    }

    /// How long a wait for events may sleep, at most: frames of a network that rings no doorbell, and room
    /// for frames of ours, must be looked for.
    pub(crate) fn longest_sleep_ns(&self) -> u64 {
        if self.own_mapped && !self.wire.is_waiting() { u64::MAX } else { 200_000 }
    }

    /// Takes bytes of the arena for good.
    pub(crate) fn bump(&self, owner: &mut OwnerTables, bytes: usize, align: usize) -> Option<u64> {
        let base = self.own.view.base().as_ptr() as usize;
        let address = (base + owner.next_byte).checked_next_multiple_of(align)?;
        let offset = address - base;
        let end = offset.checked_add(bytes)?;
        if end > self.own.view.bytes() {
            return None;
        }
        owner.next_byte = end;
        Some(offset as u64)
    }

    /// Where the memory lies that this process shares with its peers for the network itself: first byte, bytes.
    pub fn mapped(&self) -> (NonNull<u8>, usize) {
        self.nal.mapped()
    }

    /// Zeroed memory in the arena, where peers reach it without our help; never freed. `align` is a power of
    /// two. `None` if the arena is used up.
    pub fn alloc(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        if !align.is_power_of_two() {
            return None;
        }
        let offset = self.bump(&mut self.owner.lock(), bytes, align)?;
        self.own.view.range(offset, bytes as u64)
    }

    /// Where the arena of an open interface of this host, of which [`NetworkInterface::alloc`] gives, is mapped here: first byte, bytes.
    pub fn arena_of(&self, process: PtlProcessId) -> Option<(NonNull<u8>, usize)> {
        let view = &self.peer(self.index_of(process).ok()?).ok()??.view;
        Some((view.base(), view.bytes()))
    }

    /// Tells that `len` bytes from `base` are shared: `peers[i]` is where the same bytes of the segment of
    /// process `i` are mapped here (null: nowhere), `lens[i]` their length. Descriptors made later inside of
    /// it are reached without our help.
    ///
    /// # Safety
    /// The mappings must stay valid while the interface lives.
    pub unsafe fn expose(&self, base: *mut u8, len: usize, peers: &[*mut u8], lens: &[usize]) {
        for (segment, (&base, &length)) in self.segments.iter().zip(peers.iter().zip(lens)) {
            let length = if base.is_null() { 0 } else { length as u64 };
            segment.length.store(0, Ordering::Release);
            segment.base.store(base, Ordering::Release);
            segment.length.store(length, Ordering::Release);
        }
        // Our own, whatever the lists say of it.
        let own = &self.segments[self.index as usize];
        own.base.store(base, Ordering::Relaxed);
        own.length.store(len as u64, Ordering::Release);
    }

    /// The index of a process that holds something that we have been waiting for (a slot that it reserved and
    /// did not publish, a descriptor of ours that was in use, a lock word, a list that it is changing), if
    /// there is one now.
    pub fn blocked_by(&self) -> Option<u32> {
        let held = [self.queue_blocked_by(), self.nal.blocked_by(), self.descriptor_blocked_by()];
        // A number that a peer wrote may be nonsense.
        if let Some(peer) = held.into_iter().flatten().find(|&peer| peer < self.size) {
            return Some(peer);
        }
        // A call that waits repeats it every few microseconds to milliseconds.
        let since = self.waiting_since.load(Ordering::Relaxed);
        let recent = sys::clock::now_ns().saturating_sub(since) < 100_000_000;
        self.waiting_for.load(Ordering::Relaxed).checked_sub(1).filter(|_| recent)
    }

    /// What the operating system says of the process with this index; if there is none, it is dead.
    pub fn peer_state(&self, index: u32) -> PeerState {
        if index < self.size { self.nal.peer_state(index) } else { PeerState::Dead }
    }

    /// What has travelled so far.
    pub fn counters(&self) -> NiCounters {
        let sum = |which: fn(&SlotCounts) -> &AtomicU64| {
            self.counts.iter().map(|c| which(c).load(Ordering::Relaxed)).sum()
        };
        let (frames_sent, frames_taken) = self.wire.counters();
        NiCounters {
            puts: sum(|c| &c.puts),
            gets: sum(|c| &c.gets),
            bytes: sum(|c| &c.bytes),
            framed: self.framed.load(Ordering::Relaxed),
            dropped: self.status(StatusRegister::DropCount),
            frames_sent,
            frames_taken,
        }
    }
}

impl NetworkInterface {
    /// Empties all match lists, so that messages that come later are dropped and touch no memory of ours; waits a
    /// moment for those under way, but not for peers that are stopped or dead.
    fn close_lists(&self) {
        let owner = &mut *self.owner.lock();
        for (pt, _) in (0..).zip(&owner.lists).filter(|(_, list)| !list.is_empty()) {
            let change = self.pt_begin_change(pt);
            self.pt_write(pt, &[]);
            self.pt_end_change(change);
        }
        for round in 0..1000 {
            let aims_at_us = |word: hazard::HazardWord| word.target_md(self.index).is_some();
            if !self.peer_headers().any(|(_, header)| hazard::names(&header.hazards, aims_at_us)) {
                return;
            }
            sys::thread::relax(round);
        }
    }
}

impl Drop for NetworkInterface {
    fn drop(&mut self) {
        // Peers that have not addressed us yet will find us gone.
        self.own.view.header().ident.magic.store(0, Ordering::Release);
        self.close_lists();
        for peer in &self.peers {
            let peer = peer.load(Ordering::Acquire);
            if !peer.is_null() {
                // SAFETY: made by `Box::into_raw` in `open_peer`; nobody else uses the interface any more.
                drop(unsafe { Box::from_raw(peer) });
            }
        }
        for record in self.mds.iter() {
            let pieces = record.pieces.load(Ordering::Acquire);
            if !pieces.is_null() {
                // SAFETY: made by `Box::into_raw` in `md::write`; nobody else uses the interface any more.
                drop(unsafe { Box::from_raw(pieces) });
            }
        }
    }
}
