//! Active messages that have arrived and whose handlers have not run. They lack their data, or
//! space in the receive buffers, or this thread is inside a handler.
//!
//! Requests are kept and run by `request_recv`, replies by `reply_recv`. Invariant: a request
//! keeps its receive buffer, or a copy of its body; a reply keeps its chunk of ReqSB. A reply of a
//! rank to itself, which `own_messages` runs, is in its request's token, with a copy of its
//! payload.

use super::match_bits::AmHeader;
use super::reply_token::ReplyKit;
use crate::client_memory::Dst;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use sys::peer::Peer;

/// Where the body of a request is until its handler has run.
pub(super) enum RequestBody {
    /// In a request receive buffer, which it holds: its number, the offset in it, bytes.
    Buffer(u32, Peer<usize>, Peer<usize>),
    /// Copied out, because it has to wait; or it has none.
    Copy(Box<[u64]>),
}

/// A request that has arrived.
pub(super) struct ArrivedRequest {
    pub(super) am: AmHeader,
    pub(super) body: RequestBody,
    /// The data of an unpacked Long.
    pub(super) data: Option<Dst<'static>>,
}

/// What only the taker of AM_EQ touches.
#[derive(Default)]
pub(super) struct AmConsumer {
    /// Empty while the handler of the last request has it, where other threads may need one
    /// meanwhile.
    pub(super) kit: ReplyKit,
    /// Requests whose handlers must wait until the receive buffers have space for what their
    /// credits allow.
    pub(super) waiting: VecDeque<ArrivedRequest>,
}

/// A reply that has arrived.
#[derive(Clone, Copy)]
pub(super) struct ArrivedReply {
    pub(super) am: AmHeader,
    /// The chunk that it is in.
    pub(super) chunk: u32,
    /// Bytes of it.
    pub(super) len: Peer<usize>,
    /// The data of an unpacked Long.
    pub(super) data: Option<Dst<'static>>,
}
