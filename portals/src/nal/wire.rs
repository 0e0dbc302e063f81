//! Wires: networks that carry frames between hosts.
//!
//! Joined with the processes of a host by `super::joined`. A wire names processes by the
//! numbers of its interface ([`HostNumbering`]). Invariant: frames of a process arrive once, in
//! the order in which they were sent, or the peer counts as dead and its failure is reported.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use std::os::fd::BorrowedFd;

use super::numbering::HostNumbering;
use super::outcome::{FrameSent, FrameSink, PeerState};
use super::remote::RemoteMemory;
use crate::base::lock::SpinLock;
use crate::types::{MdIovec, PtlProcessId, Size};

/// Allows this process the descriptors of two connections to each process of the job, as where
/// both sides connect at the same time, and [`OWN_DESCRIPTORS`].
pub(super) fn allow_connections(numbering: &HostNumbering) {
    sys::limits::need_descriptors(OWN_DESCRIPTORS + 2 * u64::from(numbering.total()));
}

/// Descriptors of a process for other purposes than its connections.
const OWN_DESCRIPTORS: u64 = 256;

/// A network between hosts. In each lane, [`Wire::send`] and [`Wire::receive`] are called by one
/// thread at a time.
pub trait Wire: Send + Sync {
    /// Says which process this is, and where the others are: their [`Wire`] addresses one after
    /// the other, in the order of (`nid`, `pid`). Called once, before the first frame. False:
    /// these are not as many addresses as there are processes.
    fn connect(&self, own: PtlProcessId, numbering: &HostNumbering, addresses: Box<[u8]>) -> bool;

    /// As [`super::Nal::lanes`].
    fn lanes(&self) -> usize {
        1
    }

    /// As [`super::Nal::lane_of`]. Both processes of a pair have the same lane for it.
    fn lane_of(&self, peer: u32) -> usize {
        let _ = peer;
        0
    }

    /// As [`super::Nal::max_frame`].
    fn max_frame(&self, payload: Size) -> usize;

    /// Sends one frame, as [`super::Nal::send`].
    ///
    /// # Safety
    /// The pieces are readable.
    unsafe fn send(
        &self,
        peer: u32,
        header: &[u8],
        payload: &[MdIovec],
        follows: bool,
    ) -> FrameSent;

    /// Takes frames that have arrived, as [`super::Nal::receive`]; returns whether there were
    /// any.
    fn receive(&self, lane: usize, max: usize, sink: &mut dyn FrameSink) -> bool;

    /// Remote access to the memory of peers; `None`: all goes in frames.
    fn remote_memory(&self) -> Option<&dyn RemoteMemory> {
        None
    }

    /// Whether remote operations of a lane are under way, so that [`Wire::receive`] is to be
    /// called soon.
    fn is_working(&self, lane: usize) -> bool {
        let _ = lane;
        false
    }

    /// Whether a process can be reached.
    fn peer_state(&self, peer: u32) -> PeerState;

    /// A process that this one has addressed, and that has sent nothing for this many
    /// nanoseconds since then, nor before; `None` also where the network itself reports such.
    fn silent_peer(&self, _ns: u64) -> Option<u32> {
        None
    }

    /// As [`super::Nal::is_meeting`].
    fn is_meeting(&self, peer: u32) -> bool;

    /// What can be read when something has arrived after a call of [`Wire::longest_sleep_ns`];
    /// `None`: only a look shows it.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Called before each sleep on the descriptor: how many nanoseconds it may take. 0: something
    /// has arrived.
    fn longest_sleep_ns(&self) -> u64 {
        u64::MAX
    }

    /// Waits until what was sent needs this process no more, for this long at most. Called when
    /// the process ends, possibly within another call of the wire: then it does nothing.
    fn flush(&self, timeout_ns: u64) {
        let _ = timeout_ns;
    }

    /// What it has counted.
    fn counters(&self) -> WireCounters;
}

/// What a wire counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct WireCounters {
    /// Connections that ended before the other side had proved that it belongs to the job. Where
    /// messages prove it: those without a proof, those that came again or failed to arrive.
    pub refused: u64,
    /// Parts of frames, but the last of each, that were passed on as frames of their own.
    pub parts: u64,
}

/// What ended the connection to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEnd {
    /// The peer closed it between two frames, as a process that ends does.
    Closed,
    /// The network, or something else that the peer did.
    Lost,
    /// The network has lost a frame, and carries others.
    Dropped,
    /// This program: it named memory that is not mapped, or closed a descriptor of the wire.
    ByProgram,
    /// This process or the system lacked what a connection needs, such as descriptors or ports.
    ByLack,
}

/// A connection that has failed. Its peer counts as dead.
#[derive(Clone, Debug)]
pub struct PeerFailure {
    /// The peer.
    pub process: PtlProcessId,
    /// Where it is, as the network writes it.
    pub address: String,
    /// What ended the connection.
    pub end: PeerEnd,
    /// What happened.
    pub cause: String,
}

impl fmt::Display for PeerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PtlProcessId { nid, pid } = self.process;
        write!(f, "process {pid} of host {nid} ({}): {}", self.address, self.cause)
    }
}

/// What is called with a failure, once per peer. It may be called within any call of the
/// interface, and must not call the interface itself.
pub type PeerFailureHandler = Box<dyn Fn(&PeerFailure) + Send + Sync>;

/// The peers that have failed.
pub(crate) struct PeerFailures {
    /// Their numbers, sorted.
    dead: SpinLock<Vec<u32>>,
    handler: PeerFailureHandler,
}

impl PeerFailures {
    pub(crate) fn new(handler: PeerFailureHandler) -> PeerFailures {
        PeerFailures { dead: SpinLock::new(Vec::new()), handler }
    }

    /// A peer is dead from now on. The first failure of each is reported.
    #[cold]
    pub(crate) fn add(&self, number: u32, failure: impl FnOnce() -> PeerFailure) {
        {
            let mut dead = self.dead.lock();
            let Err(at) = dead.binary_search(&number) else { return };
            dead.insert(at, number);
        }
        (self.handler)(&failure());
    }

    pub(crate) fn state(&self, number: u32) -> PeerState {
        match self.dead.lock().binary_search(&number) {
            Ok(_) => PeerState::Dead,
            Err(_) => PeerState::Alive,
        }
    }
}
