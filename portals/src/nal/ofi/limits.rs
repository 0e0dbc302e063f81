//! The bounds of the wire: frames, credits, buffers.
//!
//! Used by all files of this folder. Invariant: a peer never sends more than this side has
//! buffers for, but for asks and answers ([`super::loss`]). If it sends many of these while this
//! process makes no calls, some may wait in the provider.

use crate::types::Size;

/// Most contexts of a scalable endpoint.
pub(super) const CONTEXTS: usize = 16;
/// Longest frame: about as much as the system sends at once over TCP.
pub(super) const FRAME: usize = 63 << 10;
/// Longest frame of a message that is not long, and longest message of several frames. Most
/// providers send that at once; they announce what is longer to the receiver first.
pub(super) const SHORT_FRAME: usize = 16 << 10;
/// Bytes of a message for which announcing is worth it.
pub(super) const LONG_MESSAGE: Size = 128 << 10;
/// Bytes before a frame where the provider carries no tag or no data.
pub(super) const LEAD: usize = 16;
/// Frames that a peer may send before it gets credits again: at first, and at most. The window
/// grows with what the peer sends.
pub(super) const FIRST_WINDOW: u64 = 8;
pub(super) const WINDOW: u64 = 16;
/// Buffers for what it sends in addition to a window. There is one greeting, and a frame of
/// credits for each half of a window; a peer that gives no credits gets none for its own frames.
pub(super) const BUFFERS_MORE: usize = 4;
/// Buffers for the greetings of processes that are not known yet.
pub(super) const BUFFERS_AT_FIRST: usize = 32;
/// Frames to a peer in buffers that have not left, in addition to those that the provider keeps.
pub(super) const SENDS_PER_PEER: usize = 16;
/// Buffers that are made at once for such frames, to any peer, when there is none.
pub(super) const SENDS_AT_ONCE: usize = 4;
/// Longest message that the provider is asked to keep.
pub(super) const INJECTED: usize = 256;
/// Remote operations to a peer that are under way, and pieces of local memory of each.
pub(super) const REMOTE_AT_ONCE: usize = 32;
pub(super) const REMOTE_PIECES: usize = 16;
/// How long a peer that was never reached is greeted, and how long after one greeting the next.
pub(super) const UNREACHABLE_NS: u64 = 3_000_000_000;
pub(super) const AGAIN_NS: u64 = 50_000_000;
/// How often peers are asked whether frames are lost, and how many looks read the clock once.
pub(super) const CHECK_NS: u64 = 1_000_000_000;
pub(super) const LOOKS_PER_CLOCK: u32 = 16;
/// Answered asks after which a frame that is missing is lost, and most asks that nothing follows.
pub(super) const ASKS_OF_A_LOSS: u32 = 3;
pub(super) const MOST_UNANSWERED: u32 = 3;
/// How far the number of a frame may be ahead of the expected one.
pub(super) const MOST_AHEAD: u64 = 4 * WINDOW;
/// Longest sleep while frames are leaving.
pub(super) const SHORT_SLEEP_NS: u64 = 1_000_000;
/// Bytes of a frame, from its beginning, that its seal covers.
pub(super) const SEALED: usize = 256;

// The number of a frame has 16 bits in its lead.
const _: () = assert!(MOST_AHEAD < 1 << 15);
