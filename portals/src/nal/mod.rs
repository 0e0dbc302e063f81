//! How the processes of a fabric reach each other: network abstraction layers (NALs).
//!
//! A [`Nal`] reports, per peer, whether the peer's arena is mapped here ([`Route::Mapped`]) or
//! messages must be cut into frames ([`Route::Wire`]). `transfer::framer` makes and reads frames,
//! the NAL carries them. For a mapped peer the initiator runs the target's side itself, with two
//! exceptions that go in frames too. These are messages to private memory that cross-memory
//! attach cannot reach, and messages behind a framed one.
//!
//! Used by `peer`, `transfer` and `calls`.
//! Invariant: the bytes that a NAL returns as an arena stay mapped while it lives.

pub(crate) mod frame;
pub(crate) mod joined;
pub(crate) mod loopback;
pub mod numbering;
pub mod ofi;
pub(crate) mod outcome;
mod primitive;
pub mod remote;
pub mod shm;
mod sleepers;
pub mod tcp;
pub mod wire;

use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

use crate::types::{Damage, MdIovec, Size};
use numbering::HostNumbering;
pub use outcome::{FrameSent, FrameSink, PeerState};
use sys::bell::Bell;
use wire::Wire;

/// How messages to a peer travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The peer's arena is mapped at this address; its length is [`Nal::arena_bytes`].
    Mapped(NonNull<u8>),
    /// Every message travels in frames.
    Wire,
}

/// Words that live as long as their NAL and do not move. The frames that may be there are taken by
/// [`Nal::receive`].
pub struct FrameWatch<'a> {
    /// Not 0: frames may have arrived.
    pub arrived: &'a AtomicU32,
    /// Each poll decrements it; one that finds 0 there calls [`Nal::receive`].
    pub countdown: Option<&'a AtomicU32>,
}

/// A network: how to reach each peer. The processes of this host are numbered 0 to `size() - 1`;
/// the number is their `PtlProcessId::pid`. Those of other hosts, if any, follow
/// ([`HostNumbering`]).
///
/// # Safety
/// The memory that [`Nal::arena`] and [`Nal::route`] return is mapped, readable, writable
/// and aligned to a page. It is zeroed when the NAL is made. It stays mapped, readable and
/// writable while the NAL lives.
pub unsafe trait Nal: Send + Sync {
    /// Node id of all processes of this NAL.
    fn nid(&self) -> u32;
    /// The number of this process.
    fn index(&self) -> u32;
    /// The number of processes of this host.
    fn size(&self) -> u32;
    /// The numbers of the processes of all hosts; `None` if there is one host.
    fn numbering(&self) -> Option<&HostNumbering> {
        None
    }
    /// What reaches the other hosts.
    fn wire(&self) -> Option<&dyn Wire> {
        None
    }
    /// Job id.
    fn jid(&self) -> u32;
    /// The arena of this process.
    fn arena(&self) -> NonNull<u8>;
    /// Length of every arena, in bytes.
    fn arena_bytes(&self) -> usize;
    /// The mapping that holds all arenas on this host, or our own arena if they are separate:
    /// first byte, bytes.
    fn mapped(&self) -> (NonNull<u8>, usize) {
        (self.arena(), self.arena_bytes())
    }
    /// No interface was opened over this, and nothing was written to the arena: this process may
    /// try again.
    fn not_opened(&self) {}
    /// How to reach a peer, ourselves included. Called once, when the peer is first addressed.
    fn route(&self, peer: u32) -> Route;
    /// Whether memory of a `Mapped` peer outside of its arena and segment may be reached by
    /// cross-memory attach.
    fn may_attach(&self) -> bool {
        true
    }
    /// Whether a process is alive.
    fn peer_state(&self, peer: u32) -> PeerState {
        let _ = peer;
        PeerState::Alive
    }

    /// Whether frames to a process wait until it and this one have met.
    fn is_meeting(&self, peer: u32) -> bool {
        let _ = peer;
        false
    }

    /// The number of a process that has begun to hand us a frame and has not finished, if frames
    /// of other processes wait behind it.
    fn blocked_by(&self) -> Option<u32> {
        None
    }

    /// Damage of the memory that the next frame is due in. Repairs what can be repaired.
    fn damage(&self) -> Option<Damage> {
        None
    }

    /// The number of lanes among which the peers are divided. Threads send and receive in
    /// different lanes at once; in each, one thread at a time does.
    fn lanes(&self) -> usize {
        1
    }
    /// The lane of a peer, less than [`Nal::lanes`]. It never changes once frames have left.
    fn lane_of(&self, peer: u32) -> usize {
        let _ = peer;
        0
    }

    /// Longest frame, in bytes, to this peer of a message with these bytes of payload.
    /// [`Nal::send`] takes it.
    fn max_frame(&self, peer: u32, payload: Size) -> usize;
    /// Sends one frame: its header and the bytes of these pieces. Frames arrive at most once, in
    /// an order that [`crate::FrameTag::precedes`] allows. `follows`: the caller sends another one
    /// to this peer at once; if this one is [`FrameSent::Sent`], its bytes may be kept until then.
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
    /// What a poll reads to learn whether [`Nal::receive`] may find something.
    fn frame_watch(&self) -> FrameWatch<'_>;
    /// A remote operation ([`remote::RemoteMemory`]) in the memory of a peer has begun: its end is
    /// to be looked for.
    fn began_remote(&self, peer: u32) {
        let _ = peer;
    }
    /// The next look at [`Nal::frame_watch`] is the last one before a sleep: it misses nothing.
    fn look_soon(&self) {}
    /// What wakes a thread that sleeps by [`Nal::sleep`]; `None`: no thread does.
    fn bell(&self) -> Option<&Bell> {
        None
    }
    /// Sleeps until something has arrived or the bell rings, if `may_sleep` says so when it would
    /// be missed no more.
    fn sleep(&self, timeout_ns: u64, may_sleep: &dyn Fn() -> bool) {
        let _ = (timeout_ns, may_sleep);
    }
    /// For a thread that delivers what other threads do not: sleeps until something has arrived
    /// (true), or while they deliver it.
    fn wait(&self, timeout_ns: u64) -> bool {
        let _ = timeout_ns;
        true
    }
    /// What such a thread delivers was not delivered by another.
    fn rested(&self) {}
    /// Passes the frames that have arrived in a lane to `sink`, each with the number of its
    /// sender, until `max` frames are taken or none is left.
    fn receive(&self, lane: usize, max: usize, sink: &mut dyn FrameSink);
}

/// A frame in one piece, as [`Nal::send`] gets it.
///
/// # Safety
/// The pieces are readable.
pub unsafe fn gathered(header: &[u8], payload: &[MdIovec]) -> Vec<u8> {
    let mut frame = alloc::vec![0; frame_length(header, payload)];
    // SAFETY: the same contract.
    unsafe { gather(&mut frame, header, payload) };
    frame
}

/// Bytes of a frame, as [`Nal::send`] gets it.
fn frame_length(header: &[u8], payload: &[MdIovec]) -> usize {
    payload.iter().fold(header.len(), |sum, piece| sum + piece.len as usize)
}

/// Copies a frame to a place that is as long.
///
/// # Safety
/// The pieces are readable.
unsafe fn gather(frame: &mut [u8], header: &[u8], payload: &[MdIovec]) {
    let (head, mut rest) = frame.split_at_mut(header.len());
    head.copy_from_slice(header);
    for piece in payload {
        let (to, behind) = rest.split_at_mut(piece.len as usize);
        // SAFETY: the piece is readable (`# Safety`), and its place is as long.
        unsafe { core::ptr::copy_nonoverlapping(piece.base.cast(), to.as_mut_ptr(), to.len()) };
        rest = behind;
    }
}
