//! How the processes of a fabric reach each other.
//!
//! A network abstraction layer (NAL) tells, per peer, whether its arena is mapped here ([`Route::Mapped`]:
//! the initiator runs the target's side itself) or whether messages must be cut into frames ([`Route::Wire`]:
//! `wire` makes and reads them, the NAL only carries them).

pub(crate) mod frame;
pub(crate) mod loopback;
pub mod shm;

use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

/// How messages to a peer travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The peer's arena is mapped at this address, with the length that [`Nal::arena_bytes`] tells.
    Mapped(NonNull<u8>),
    /// Everything goes through frames.
    Wire,
}

/// One way to reach peers. Processes are numbered 0 to `size() - 1`; the number is their `PtlProcessId::pid`.
///
/// # Safety
/// Memory that [`Nal::arena`] and [`Nal::route`] tell of is mapped, readable, writable, aligned to a page,
/// zeroed when the NAL is made, and stays so while the NAL lives.
pub unsafe trait Nal: Send + Sync {
    /// Node id of all processes of this NAL.
    fn nid(&self) -> u32;
    /// Our own number.
    fn index(&self) -> u32;
    /// How many processes there are.
    fn size(&self) -> u32;
    /// Job id.
    fn jid(&self) -> u32;
    /// Our own arena.
    fn arena(&self) -> NonNull<u8>;
    /// Length of every arena, in bytes.
    fn arena_bytes(&self) -> usize;
    /// All arenas that are mapped here, as far as they lie together with ours: first byte, bytes.
    fn mapped(&self) -> (NonNull<u8>, usize) {
        (self.arena(), self.arena_bytes())
    }
    /// How to reach a peer (also ourselves). Asked once, when the peer is first addressed.
    fn route(&self, peer: u32) -> Route;
    /// Whether memory of a `Mapped` peer outside of its arena and segment may be reached with cross-memory
    /// attach.
    fn may_attach(&self) -> bool {
        true
    }
    /// Whether a process still lives.
    fn peer_state(&self, peer: u32) -> PeerState {
        let _ = peer;
        PeerState::Alive
    }

    /// The number of a process that has begun to hand us a frame and has not finished, if frames of others
    /// have to wait for it.
    fn blocked_by(&self) -> Option<u32> {
        None
    }

    /// Longest frame that [`Nal::send`] takes, in bytes.
    fn max_frame(&self) -> usize;
    /// Hands over one frame; false if there is no room now. Frames of one pair arrive in order unless the NAL
    /// says otherwise; they arrive at most once.
    fn send(&self, peer: u32, frame: &[u8]) -> bool;
    /// Whether [`Nal::receive`] may find something. Cheap: asked in every poll, unless there is a flag.
    fn has_frames(&self) -> bool;
    /// A word that is not 0 when [`Nal::receive`] may find something; it stays where it is.
    fn frames_flag(&self) -> Option<&AtomicU32> {
        None
    }
    /// Takes the frames that have arrived, in order, with the number of their sender, until `sink` has been
    /// called `max` times or there are no more. Called by one thread at a time.
    fn receive(&self, max: usize, sink: &mut dyn FnMut(u32, &[u8]));
}

/// What the operating system says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// It runs or could run.
    Alive,
    /// It is stopped (by a signal or a debugger).
    Stopped,
    /// It has ended.
    Dead,
}
