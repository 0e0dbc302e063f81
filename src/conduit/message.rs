//! What the conduit carries: active messages, system messages, names of operations, and their
//! largest sizes.
//!
//! Used by every file of the conduit and by the layers above. Invariant: these are plain values;
//! the file uses nothing of the conduit.

use crate::client_memory::{Dst, RemoteRange, Src};
use crate::rank::JobRank;

/// Bytes of a chunk of ReqSB and RplSB, the largest active message.
pub const CHUNK: usize = 2048;
/// Most arguments of an active message.
pub const MAX_ARGS: usize = 16;
/// Largest Medium that is one message: what a chunk holds besides the most arguments.
pub const MAX_EAGER: usize = CHUNK - MAX_ARGS * size_of::<i32>();
/// Largest Medium of any configuration: 64 KiB less two cache lines.
pub(super) const MAX_MEDIUM: usize = (64 << 10) - 128;
/// Bytes of a piece of a larger one, but of the last piece: what a chunk holds besides most
/// arguments and an id, in whole cache lines.
pub(super) const PIECE: usize = (MAX_EAGER - size_of::<u64>()) / 64 * 64;
/// Bytes of a large area before its payload.
pub(super) const LARGE_HEAD: usize = 64;
/// Bytes of the two short large areas, before the ring of the others.
pub(super) const SHORT_PART: usize = 24 << 10;
/// The longest payload that stays in the outbox. Small areas of the outbox have [`MAX_EAGER`]
/// bytes, large ones as many as this.
pub(super) const LARGEST_STASH: usize = 8 << 10;
/// Bytes between two of its areas: the processor of a reader fetches cache lines ahead of those
/// that it reads, and the next area is perhaps being written.
pub(super) const STASH_GAP: usize = 256;
/// Alignment of buffers.
pub(super) const PAGE: usize = 4096;

/// Names an operation of the upper layer. The conduit carries it in the ignored match bits of a
/// put or get and passes it to [`super::Upcall::op_done`] when the operation is complete. The
/// upper layer chooses all 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpId(pub u32);

impl OpId {
    const DEPARTURES: u32 = 1 << 30;

    /// The same operation, a put, whose fragments also end with [`super::Upcall::op_departed`].
    pub const fn with_departures(self) -> OpId {
        OpId(self.0 | OpId::DEPARTURES)
    }

    /// The same operation without that mark.
    pub const fn without_departures(self) -> OpId {
        OpId(self.0 & !OpId::DEPARTURES)
    }

    /// Whether it is the id of [`OpId::with_departures`].
    #[inline(always)]
    pub const fn counts_departures(self) -> bool {
        self.0 & OpId::DEPARTURES != 0
    }
}

/// What an active message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Arguments only.
    Short,
    /// Arguments and a payload in a buffer of the library.
    Medium,
    /// Arguments and a payload in the target's segment.
    Long,
}

/// An active message for its handler.
#[derive(Clone, Copy, Debug)]
pub struct AmMessage<'a> {
    /// Rank of the sender.
    pub source: JobRank,
    /// Short, Medium or Long.
    pub category: Category,
    /// Handler index, 1 to 255.
    pub handler: u8,
    /// 0 to 16 arguments.
    pub args: &'a [i32],
    /// Medium: in a buffer that lives until the handler returns, 8-byte aligned. Long: in our
    /// segment. Short: [`AmMessage::NO_PAYLOAD`].
    pub payload: Dst<'a>,
}

impl AmMessage<'_> {
    /// The payload of a Short: null, no bytes.
    pub const NO_PAYLOAD: Dst<'static> = Dst::empty();
}

/// An active message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    pub(super) category: Category,
    /// Handler index, 1 to 255; 0 is the reply of a handler that sent none.
    pub(super) handler: u8,
    /// 0 to 16 arguments.
    pub(super) args: &'a [i32],
    /// Within the limits of [`super::Conduit::max_medium`] and its like, which the caller checks.
    pub(super) payload: Src<'a>,
    /// Long with a payload: its destination.
    pub(super) to: RemoteRange,
    /// Long without payload: its destination address, as the client gave it.
    pub(super) address: usize,
    /// Long: the source need not be reusable when the call returns (`LongAsync`).
    pub(super) source_stays: bool,
    /// Of a request: it is refused where it would wait.
    pub(super) immediate: bool,
}

impl<'a> Outgoing<'a> {
    /// A Short.
    #[inline(always)]
    pub const fn short(handler: u8, args: &'a [i32]) -> Outgoing<'a> {
        Outgoing { category: Category::Short, ..Outgoing::medium(handler, args, Src::empty()) }
    }

    /// A Medium.
    #[inline(always)]
    pub const fn medium(handler: u8, args: &'a [i32], payload: Src<'a>) -> Outgoing<'a> {
        Outgoing {
            category: Category::Medium,
            handler,
            args,
            payload,
            to: RemoteRange::unmapped(JobRank(0), usize::MAX, 0),
            address: 0,
            source_stays: false,
            immediate: false,
        }
    }

    /// The same with a copy of the arguments, in memory of the caller.
    #[inline(always)]
    pub fn with_args<'b>(&self, copy: &'b mut [i32; MAX_ARGS]) -> Outgoing<'b>
    where
        'a: 'b,
    {
        let args = &mut copy[..self.args.len()];
        args.copy_from_slice(self.args);
        Outgoing { args, ..*self }
    }

    /// The same request, which is refused where it would wait if it is `immediate`.
    #[inline(always)]
    pub const fn immediate(self, immediate: bool) -> Outgoing<'a> {
        Outgoing { immediate, ..self }
    }

    /// A Long, whose source may be reused when the call returns. `to` has as many bytes as the
    /// payload; `address` is where it begins in the target.
    #[inline(always)]
    pub const fn long(
        handler: u8,
        args: &'a [i32],
        payload: Src<'a>,
        to: RemoteRange,
        address: usize,
    ) -> Outgoing<'a> {
        Outgoing {
            category: Category::Long,
            to,
            address,
            ..Outgoing::medium(handler, args, payload)
        }
    }

    /// A Long whose source is read until the job knows that the message has been handled.
    #[inline(always)]
    pub const fn long_async(
        handler: u8,
        args: &'a [i32],
        payload: Src<'static>,
        to: RemoteRange,
        address: usize,
    ) -> Outgoing<'a> {
        Outgoing { source_stays: true, ..Outgoing::long(handler, args, payload, to, address) }
    }
}

/// A message of the system queue between the upper layers of two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemMessage {
    /// What it is about; 0x00 to 0x7f belong to the upper layer.
    pub id: u8,
    /// Two words.
    pub args: [u32; 2],
}
