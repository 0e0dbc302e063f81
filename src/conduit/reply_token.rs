//! What a reply needs: the kit that is taken before any request, and the token of one request.
//!
//! A kit is filled and handed over by `request_recv`; a token is made there, used by `reply_send`
//! and `implicit`. Invariant: a request handler runs only with a complete kit, so its reply waits
//! for no resource.

use super::match_bits::AmHeader;
use super::message::{Category, MAX_ARGS};
use crate::client_memory::Dst;
use crate::rank::JobRank;

/// What a reply may need: two send tickets and a temporary descriptor (a Long outside the segment,
/// in two messages) and a RplSB chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplyKit {
    pub(super) tickets: u32,
    pub(super) tmpmd: Option<u32>,
    pub(super) chunk: Option<u32>,
}

impl ReplyKit {
    #[inline(always)]
    pub(super) fn is_complete(&self) -> bool {
        self.tickets == 2 && self.tmpmd.is_some() && self.chunk.is_some()
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.tickets == 0 && self.tmpmd.is_none() && self.chunk.is_none()
    }
}

/// A reply of a rank to itself, until its handler runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnReply {
    pub(super) category: Category,
    pub(super) handler: u8,
    pub(super) args: [i32; MAX_ARGS],
    pub(super) numargs: usize,
    /// Where it is: of a Long its destination, of a Medium memory of the thread.
    pub(super) payload: Dst<'static>,
}

/// What a request handler needs to send its reply; made by the conduit, one per request.
#[derive(Debug)]
pub struct ReplyToken {
    /// Rank of the requester.
    pub source: JobRank,
    /// The chunk of the requester's ReqSB that the reply goes to.
    pub(super) chunk: u32,
    /// The credit field that the request carried.
    pub(super) credit: u16,
    pub(super) replied: bool,
    /// Whether the request is one of this rank to itself, which has taken nothing.
    pub(super) is_own: bool,
    /// The reply to such a request, until its handler runs.
    pub(super) own_reply: Option<OwnReply>,
    pub(super) kit: ReplyKit,
}

impl ReplyToken {
    /// Of the request with this header; `kit` is complete.
    #[inline(always)]
    pub(super) fn new(am: &AmHeader, kit: ReplyKit) -> ReplyToken {
        let AmHeader { source, chunk, credit, .. } = *am;
        ReplyToken { source, chunk, credit, replied: false, is_own: false, own_reply: None, kit }
    }

    /// Of a request of this rank, `me`, to itself.
    pub(super) fn own(me: JobRank) -> ReplyToken {
        ReplyToken {
            source: me,
            chunk: 0,
            credit: 0,
            replied: false,
            is_own: true,
            own_reply: None,
            kit: ReplyKit::default(),
        }
    }

    /// Whether a reply has been sent with this token.
    pub fn replied(&self) -> bool {
        self.replied
    }
}
