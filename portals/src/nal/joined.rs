//! A network of two: the processes of this host by shared memory, the others by a wire.
//!
//! Opened by [`crate::NetworkInterface::joined`]. Invariant: processes of this host have the
//! numbers that they have in their fabric; all other numbers belong to the wire.
//!
//! One thread at a time takes frames from the wire: the one that has the lock of the framer. No
//! thread sleeps with that lock. Which thread tries to take it:
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
use super::wire::Wire;
use super::{FrameSent, FrameSink, Nal, PeerState, Route};
use crate::types::{Damage, MdIovec};
use sys::bell::Bell;
use sys::clock;
use sys::poll::{self, PollEntry};

/// How long the wire is looked at in every poll after a frame came or left.
const ACTIVE_NS: u64 = 200_000;

/// Polls between two looks at a wire that is not active. A look is a system call, which takes
/// longer than a message between processes of a host.
const PATIENCE: u32 = 256;

/// How long a thread that delivers rests while others deliver.
const REST_NS: u64 = 1_000_000;

/// See the head of this file.
pub(crate) struct Joined {
    host: Fabric,
    wire: Box<dyn Wire>,
    numbering: HostNumbering,
    /// When a frame last came or left.
    active: AtomicU64,
    /// Polls until the next look at the wire.
    patience: AtomicU32,
    /// Wakes threads that sleep until something arrives on the wire.
    bell: Bell,
    /// Threads that sleep so, but for the one that only delivers.
    sleepers: AtomicU32,
    /// Another thread than that one has polled since it looked.
    polled: AtomicBool,
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
        Ok(Joined {
            host,
            wire,
            numbering,
            active: AtomicU64::new(0),
            patience: AtomicU32::new(0),
            bell: Bell::new()?,
            sleepers: AtomicU32::new(0),
            polled: AtomicBool::new(false),
        })
    }

    /// Sleeps until something has arrived or the bell rings. The last of `own` sleepers silences
    /// it: another one that is just falling asleep must hear it.
    fn wait_for_both(&self, timeout_ns: u64, own: u32) {
        let timeout_ns = timeout_ns.min(self.wire.longest_sleep_ns());
        let mut entries = [self.wire.descriptor(), self.bell.as_fd()]
            .map(|descriptor| PollEntry::reading(Some(descriptor)));
        poll::wait_ns(&mut entries, timeout_ns);
        if entries[1].happened() && self.sleepers.load(Ordering::SeqCst) == own {
            self.bell.silence();
        }
    }

    fn is_here(&self, peer: u32) -> bool {
        peer < self.numbering.own()
    }

    /// Whether the wire is to be looked at now.
    fn is_due(&self) -> bool {
        // Several threads may count at once: a look comes earlier or later.
        match self.patience.load(Ordering::Relaxed) {
            0 => true,
            left => {
                self.patience.store(left - 1, Ordering::Relaxed);
                false
            }
        }
    }

    fn is_active(&self) {
        self.active.store(clock::now_ns(), Ordering::Relaxed);
        self.patience.store(0, Ordering::Relaxed);
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

    fn max_frame(&self, peer: u32) -> usize {
        if self.is_here(peer) { self.host.max_frame(peer) } else { self.wire.max_frame() }
    }

    unsafe fn send(&self, peer: u32, header: &[u8], payload: &[MdIovec]) -> FrameSent {
        if self.is_here(peer) {
            // SAFETY: the same contract.
            return unsafe { self.host.send(peer, header, payload) };
        }
        // SAFETY: the same contract.
        let sent = unsafe { self.wire.send(peer, header, payload) };
        self.is_active();
        sent
    }

    fn has_frames(&self) -> bool {
        if !self.polled.load(Ordering::Relaxed) {
            self.polled.store(true, Ordering::Relaxed);
        }
        self.host.has_frames() || self.is_due()
    }

    fn look_soon(&self) {
        self.patience.store(0, Ordering::Relaxed);
    }

    fn bell(&self) -> Option<&Bell> {
        Some(&self.bell)
    }

    fn sleep(&self, timeout_ns: u64, may_sleep: &dyn Fn() -> bool) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        if may_sleep() {
            self.wait_for_both(timeout_ns, 1);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn wait(&self, timeout_ns: u64) -> bool {
        let busy = self.polled.swap(false, Ordering::Relaxed);
        if busy || self.sleepers.load(Ordering::Relaxed) != 0 {
            clock::sleep_ns(timeout_ns.min(REST_NS));
            return false;
        }
        self.wait_for_both(timeout_ns, 0);
        true
    }

    fn rested(&self) {
        self.polled.store(false, Ordering::Relaxed);
    }

    fn receive(&self, max: usize, sink: &mut dyn FrameSink) {
        if self.host.has_frames() {
            let (fabric, own) = (&self.host, self.numbering.own());
            // A slot of the inbox names its sender by a word that any process of the host can
            // write.
            fabric.receive(max, &mut |peer: u32, frame: &[u8]| {
                if peer < own {
                    sink.frame(peer, frame);
                }
            });
        }
        if self.patience.load(Ordering::Relaxed) != 0 {
            return;
        }
        if self.wire.receive(max, sink) {
            self.is_active();
        } else {
            let since = clock::now_ns().wrapping_sub(self.active.load(Ordering::Relaxed));
            let patience = if since < ACTIVE_NS { 0 } else { PATIENCE };
            self.patience.store(patience, Ordering::Relaxed);
        }
    }
}
