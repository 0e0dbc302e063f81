//! The bounds of the wire: frames, credits, times.
//!
//! Used by all files of this folder. Invariant: half of a window holds the longest frame.

use crate::nal::frame::FrameHeader;

/// Longest frame.
pub(super) const FRAME: usize = (256 << 10) + FrameHeader::MOST_BYTES;
/// Credits of one direction of a connection: frames, and bytes with their lengths.
pub(super) const WINDOW_FRAMES: u32 = 1024;
pub(super) const WINDOW_BYTES: u32 = 4 << 20;
/// Connections that have not greeted yet as a process of the job does. One more ends the oldest.
pub(super) const STRANGERS: usize = 64;
/// How long such a connection may take to greet, and then to prove that it belongs to the job.
pub(super) const STRANGER_NS: u64 = 5_000_000_000;
pub(super) const GREETED_NS: u64 = 600_000_000_000;
/// How long a process connects again to a peer that closes what is not open yet, as where it has
/// begun a connection of its own, and how long it waits before each time.
pub(super) const CLOSED_NS: u64 = 20_000_000_000;
pub(super) const CLOSED_AGAIN_NS: u64 = 1_000_000_000;
/// How long a process waits before it connects again where the network could not be reached, or
/// the process lacked something.
pub(super) const AGAIN_NS: u64 = 50_000_000;
/// How long it tries so while it lacks what a connection needs, such as descriptors.
pub(super) const LACK_NS: u64 = 60_000_000_000;
/// How often a connection that ended within its handshake, or that no host answered, is tried.
pub(super) const ATTEMPTS: u32 = 4;
/// A host that does not answer for so long is lost.
pub(super) const LOST_MS: u32 = 3000;
/// Connections that wait in the kernel to be accepted.
pub(super) const BACKLOG: u32 = 4096;

const _: () = assert!(FRAME + 4 <= WINDOW_BYTES as usize / 2);
