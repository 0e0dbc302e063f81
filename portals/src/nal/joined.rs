//! A network of two: the processes of this host by shared memory, the others by a wire.
//!
//! Opened by [`crate::NetworkInterface::joined`]. Invariant: processes of this host have the
//! numbers that they have in their fabric; all other numbers belong to the wire.
//!
//! In each lane of the wire, one thread at a time takes frames: the one that has the lock of that
//! lane. No thread sleeps with such a lock. Frames of this host belong to lane 0. Which threads
//! try to take frames:
//!
//! | the program | its threads | the thread that only delivers, if any |
//! |---|---|---|
//! | polls | look at the wire every time or now and then | rests for 1 ms at a time |
//! | sleeps for an event | wake when something arrives | rests for 1 ms at a time |
//! | does neither | do nothing | sleeps until something arrives, and takes it |

use alloc::boxed::Box;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::io;
use std::os::fd::AsFd;

use super::numbering::HostNumbering;
use super::shm::Fabric;
use super::sleepers::{Sleepers, WakeSource};
use super::wire::Wire;
use super::{FrameSent, FrameSink, FrameWatch, Nal, PeerState, Route};
use crate::types::{Damage, MdIovec, Size};
use sys::bell::{self, Bell};
use sys::clock;
use sys::poll::{self, PollEntry};

/// How long the wire is looked at in every poll after a frame came or left.
const ACTIVE_NS: u64 = 200_000;

/// How often a wire is looked at that is not active. A look is a system call, which takes longer
/// than a message between processes of a host.
const LOOK_NS: u64 = 20_000;

/// Most polls between two such looks.
const MOST_POLLS: u32 = 2048;

/// Polls until the next look, if the last look came `since` nanoseconds and `polls` polls after
/// the one before. A poll may take some nanoseconds or a time slice of the system.
fn patience(polls: u32, since: u64) -> u32 {
    let fitting = u64::from(polls.max(1)) * LOOK_NS / since.max(1);
    fitting.clamp(1, u64::from(MOST_POLLS.min(2 * polls + 1))) as u32
}

/// How long a thread that delivers rests while others deliver.
const REST_NS: u64 = 1_000_000;

/// When the wire is looked at.
struct WireLooks {
    /// Polls until the next look.
    countdown: AtomicU32,
    /// Looks that were made.
    made: AtomicU32,
    /// When a frame last came or left.
    active: AtomicU64,
    /// The polls between the last two looks while the wire is not active, and when the last was.
    polls: AtomicU32,
    looked: AtomicU64,
    /// By lane: the last look has found nothing.
    quiet: Box<[AtomicBool]>,
}

impl WireLooks {
    fn new(lanes: usize) -> WireLooks {
        WireLooks {
            countdown: AtomicU32::new(0),
            made: AtomicU32::new(0),
            active: AtomicU64::new(0),
            polls: AtomicU32::new(0),
            looked: AtomicU64::new(0),
            quiet: (0..lanes).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// The next poll looks.
    fn look_soon(&self) {
        self.countdown.store(0, Ordering::Relaxed);
    }

    fn is_due(&self) -> bool {
        self.countdown.load(Ordering::Relaxed) == 0
    }

    /// Differs from an earlier value if a thread has polled since.
    fn snapshot(&self) -> u64 {
        let made = u64::from(self.made.load(Ordering::Relaxed));
        made << 32 | u64::from(self.countdown.load(Ordering::Relaxed))
    }

    fn is_active(&self) {
        self.active.store(clock::now_ns(), Ordering::Relaxed);
        self.look_soon();
    }

    /// A look at a lane has found something, or nothing.
    fn looked_at(&self, lane: usize, found: bool) {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.quiet[lane].store(!found, Ordering::Relaxed);
        if found {
            self.is_active();
        } else if self.quiet.iter().all(|quiet| quiet.load(Ordering::Relaxed)) {
            self.found_nothing();
        }
    }

    /// The last look at each lane has found nothing.
    fn found_nothing(&self) {
        let now = clock::now_ns();
        let since = now.wrapping_sub(self.active.load(Ordering::Relaxed));
        let polls = if since < ACTIVE_NS { 0 } else { self.polls_until_look(now) };
        // The next looks are at all lanes.
        self.quiet.iter().for_each(|quiet| quiet.store(false, Ordering::Relaxed));
        self.countdown.store(polls, Ordering::Relaxed);
    }

    /// Polls until the next look while the wire is not active.
    fn polls_until_look(&self, now: u64) -> u32 {
        let since = now.wrapping_sub(self.looked.load(Ordering::Relaxed));
        let polls = patience(self.polls.load(Ordering::Relaxed), since);
        self.looked.store(now, Ordering::Relaxed);
        self.polls.store(polls, Ordering::Relaxed);
        polls
    }
}

/// See the head of this file.
pub(crate) struct Joined {
    host: Fabric,
    wire: Box<dyn Wire>,
    numbering: HostNumbering,
    looks: WireLooks,
    /// Wakes threads that sleep until something arrives on the wire.
    bell: Bell,
    /// Threads that sleep so, but for the one that only delivers.
    sleepers: Sleepers,
    /// [`WireLooks::snapshot`] as that one last saw it.
    seen: AtomicU64,
}

impl Joined {
    /// `numbering` is that of the fabric's host, which has as many processes.
    ///
    /// # Errors
    /// That of the system: there is no descriptor.
    pub(crate) fn new(
        host: Fabric,
        numbering: HostNumbering,
        wire: Box<dyn Wire>,
    ) -> io::Result<Joined> {
        let looks = WireLooks::new(wire.lanes());
        Ok(Joined {
            host,
            wire,
            numbering,
            looks,
            bell: Bell::new()?,
            sleepers: Sleepers::default(),
            seen: AtomicU64::new(0),
        })
    }

    /// What threads sleep on, for at most this long.
    fn wake_source(&self, timeout_ns: u64) -> WireAndBell<'_> {
        WireAndBell { wire: &*self.wire, bell: &self.bell, timeout_ns }
    }

    fn is_here(&self, peer: u32) -> bool {
        peer < self.numbering.own()
    }
}

/// See [`WakeSource`].
struct WireAndBell<'a> {
    wire: &'a dyn Wire,
    bell: &'a Bell,
    timeout_ns: u64,
}

impl WakeSource for WireAndBell<'_> {
    fn wait(&self) -> bool {
        let timeout_ns = self.timeout_ns.min(self.wire.longest_sleep_ns());
        let mut entries =
            [self.wire.descriptor(), Some(self.bell.as_fd())].map(PollEntry::reading);
        poll::wait_ns(&mut entries, timeout_ns);
        entries[1].happened()
    }

    fn silence(&self) {
        self.bell.silence();
    }

    fn ring(&self) {
        bell::ring(self.bell.name());
    }
}

// SAFETY: all memory is that of the fabric.
unsafe impl Nal for Joined {
    fn nid(&self) -> u32 {
        self.host.nid()
    }
    fn index(&self) -> u32 {
        self.host.index()
    }
    fn size(&self) -> u32 {
        self.host.size()
    }
    fn numbering(&self) -> Option<&HostNumbering> {
        Some(&self.numbering)
    }
    fn wire(&self) -> Option<&dyn Wire> {
        Some(&*self.wire)
    }
    fn jid(&self) -> u32 {
        self.host.jid()
    }
    fn arena(&self) -> NonNull<u8> {
        self.host.arena()
    }
    fn arena_bytes(&self) -> usize {
        self.host.arena_bytes()
    }
    fn mapped(&self) -> (NonNull<u8>, usize) {
        self.host.mapped()
    }
    fn not_opened(&self) {
        self.host.not_opened();
    }
    fn route(&self, peer: u32) -> Route {
        if self.is_here(peer) { self.host.route(peer) } else { Route::Wire }
    }
    fn may_attach(&self) -> bool {
        self.host.may_attach()
    }
    fn peer_state(&self, peer: u32) -> PeerState {
        if self.is_here(peer) { self.host.peer_state(peer) } else { self.wire.peer_state(peer) }
    }
    fn blocked_by(&self) -> Option<u32> {
        self.host.blocked_by()
    }
    fn damage(&self) -> Option<Damage> {
        self.host.damage()
    }

    fn lanes(&self) -> usize {
        self.wire.lanes()
    }

    fn lane_of(&self, peer: u32) -> usize {
        if self.is_here(peer) { 0 } else { self.wire.lane_of(peer) }
    }

    fn max_frame(&self, peer: u32, payload: Size) -> usize {
        match self.is_here(peer) {
            true => self.host.max_frame(peer, payload),
            false => self.wire.max_frame(payload),
        }
    }

    unsafe fn send(
        &self,
        peer: u32,
        header: &[u8],
        payload: &[MdIovec],
        follows: bool,
    ) -> FrameSent {
        if self.is_here(peer) {
            // SAFETY: the same contract.
            return unsafe { self.host.send(peer, header, payload, follows) };
        }
        // SAFETY: the same contract.
        let sent = unsafe { self.wire.send(peer, header, payload, follows) };
        if !follows {
            self.looks.is_active();
        }
        sent
    }

    fn is_meeting(&self, peer: u32) -> bool {
        !self.is_here(peer) && self.wire.is_meeting(peer)
    }

    fn frame_watch(&self) -> FrameWatch<'_> {
        FrameWatch { countdown: Some(&self.looks.countdown), ..self.host.frame_watch() }
    }

    fn began_remote(&self, _peer: u32) {
        self.looks.is_active();
    }

    fn look_soon(&self) {
        self.looks.look_soon();
    }

    fn bell(&self) -> Option<&Bell> {
        Some(&self.bell)
    }

    fn sleep(&self, timeout_ns: u64, may_sleep: &dyn Fn() -> bool) {
        self.sleepers.sleep(&self.wake_source(timeout_ns), may_sleep);
    }

    fn wait(&self, timeout_ns: u64) -> bool {
        let now = self.looks.snapshot();
        let busy = self.seen.swap(now, Ordering::Relaxed) != now;
        if busy || self.sleepers.are_any() {
            clock::sleep_ns(timeout_ns.min(REST_NS));
            return false;
        }
        self.sleepers.deliver(&self.wake_source(timeout_ns));
        true
    }

    fn rested(&self) {
        self.seen.store(self.looks.snapshot(), Ordering::Relaxed);
    }

    fn receive(&self, lane: usize, max: usize, sink: &mut dyn FrameSink) {
        if lane == 0 && self.host.frame_watch().arrived.load(Ordering::Relaxed) != 0 {
            let (fabric, own) = (&self.host, self.numbering.own());
            // A slot of the inbox names its sender by a word that any process of the host can
            // write.
            fabric.receive(lane, max, &mut |peer: u32, frame: &[u8]| {
                if peer < own {
                    sink.frame(peer, frame);
                }
            });
        }
        if self.looks.is_due() {
            let found = self.wire.receive(lane, max, sink) || self.wire.is_working(lane);
            self.looks.looked_at(lane, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However long a poll takes, and whatever was before.
    #[test]
    fn looks_come_at_intervals() {
        for before in [0, 1, 100, MOST_POLLS] {
            for poll_ns in [5, 30, 1000, 5_000, 1_000_000] {
                let mut polls = before;
                for _ in 0..20 {
                    polls = patience(polls, u64::from(polls.max(1)) * poll_ns);
                }
                let between = u64::from(polls) * poll_ns;
                let is_bound = polls == 1 || polls == MOST_POLLS;
                assert!(is_bound || between.abs_diff(LOOK_NS) < LOOK_NS / 2, "{between} ns");
            }
        }
    }
}
