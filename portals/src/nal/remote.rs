//! Remote access: puts and gets that a wire carries out in the memory of a peer, without frames.
//!
//! Offered by [`super::wire::Wire::remote_memory`], used by `transfer::exposed`. Invariant: an
//! operation that has begun is reported once, by [`super::FrameSink::completed`], within a later
//! call of [`super::wire::Wire::receive`]. Its local memory is not to be freed before, or before
//! the wire is.

use alloc::string::String;

use crate::types::MdIovec;

/// In which blocks an exposed descriptor is registered with the network
/// ([`expose_remotely`](crate::NetworkInterface::expose_remotely)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExposedBlocks {
    /// Bytes of a block; the last one may be shorter.
    pub bytes: u64,
    /// Most blocks that are registered. Messages to others stay in frames.
    pub most: usize,
}

impl ExposedBlocks {
    /// The descriptor as one block.
    pub const WHOLE: ExposedBlocks = ExposedBlocks { bytes: u64::MAX, most: 1 };
}

/// What one operation may be.
#[derive(Clone, Copy, Debug)]
pub struct RemoteLimits {
    /// Most bytes.
    pub longest: u64,
    /// Most pieces of local memory.
    pub pieces: usize,
    /// Hardware carries it out: the target need make no call, and an aligned word of 8 bytes or
    /// less is read and written whole.
    pub by_hardware: bool,
}

/// How peers name registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteRegion {
    /// The address of its first byte.
    pub address: u64,
    /// What proves that a peer may use it.
    pub key: u64,
}

/// A put or get.
#[derive(Debug)]
pub struct RemoteOperation<'a> {
    /// The process whose memory it is.
    pub peer: u32,
    /// A put; else a get.
    pub is_put: bool,
    /// The local memory, [`RemoteLimits::pieces`] at most.
    pub pieces: &'a [MdIovec],
    /// Where in the memory of the peer.
    pub at: RemoteRegion,
    /// Names it when it is complete.
    pub token: u64,
}

/// Whether an operation has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteBegun {
    /// It is reported when it is complete: a put when its bytes are at the peer.
    Begun,
    /// There is no room now.
    Full,
    /// The peer cannot be reached any more.
    Gone,
}

/// Remote access over a wire. Any thread may call it.
pub trait RemoteMemory: Send + Sync {
    /// What one operation may be.
    fn limits(&self) -> RemoteLimits;

    /// Lets peers read and write this memory, as long as the wire lives.
    ///
    /// # Errors
    /// What the network says.
    ///
    /// # Safety
    /// The memory is readable and writable as long as the wire lives.
    unsafe fn register(&self, start: *mut u8, bytes: usize) -> Result<RemoteRegion, String>;

    /// Whether an operation can have these pieces of local memory.
    fn takes_pieces(&self, pieces: &[MdIovec]) -> bool;

    /// Begins an operation.
    ///
    /// # Safety
    /// The pieces are readable (put) or writable (get) until it is complete, or the wire closed.
    unsafe fn begin(&self, operation: &RemoteOperation<'_>) -> RemoteBegun;
}
