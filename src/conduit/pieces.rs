//! Payloads of large Mediums that travel in pieces: those that arrive, and those of replies that
//! wait for the requester to ask for the next piece.
//!
//! Used by `large_medium`. Invariants: each piece of a payload is taken once; a payload is handed
//! out whole, and once.

use super::match_bits::{MOST_CHUNKS, STASH_UNIT};
use super::message::{MAX_ARGS, MAX_MEDIUM, Outgoing, PIECE};
use super::par_lists::ParLists;
use super::sync::ParLock;
use crate::client_memory::{Dst, Src};
use crate::rank::JobRank;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use sys::peer::Peer;

const _: () = assert!((PIECE as u64).is_multiple_of(STASH_UNIT));

/// Payloads of one sender that may be incomplete at once: a reply for each of our chunks, or a
/// request for each of its threads.
const MOST_OPEN: usize = MOST_CHUNKS as usize;

/// A payload of which pieces have arrived.
struct OpenPayload {
    source: JobRank,
    id: u64,
    total: usize,
    /// The pieces that have not arrived: a bit for each.
    missing: u64,
    words: Box<[u64]>,
}

const _: () = assert!(MAX_MEDIUM.div_ceil(PIECE) < u64::BITS as usize);

impl OpenPayload {
    fn new(source: JobRank, id: u64, total: usize) -> OpenPayload {
        let missing = (1 << total.div_ceil(PIECE)) - 1;
        let words = alloc::vec![0; total.div_ceil(8)].into_boxed_slice();
        OpenPayload { source, id, total, missing, words }
    }

    fn is(&self, source: JobRank, id: u64) -> bool {
        self.source == source && self.id == id
    }
}

/// What a piece is of.
#[derive(Clone, Copy)]
pub(super) struct PieceOf {
    pub(super) source: JobRank,
    /// Names the payload among those of the source that are under way.
    pub(super) id: u64,
    /// Bytes of the payload.
    pub(super) total: usize,
    /// Where the piece begins in it.
    pub(super) offset: usize,
}

impl PieceOf {
    /// Of a payload of `total` bytes, if a payload may have that many and a piece begins there.
    pub(super) fn checked(
        source: JobRank,
        id: Peer<u64>,
        (total, offset): (usize, usize),
        largest: usize,
    ) -> Option<PieceOf> {
        let total = Peer::new(total).at_most(largest)?;
        let offset = Peer::new(offset).below(total)?;
        offset.is_multiple_of(PIECE).then_some(PieceOf { source, id: id.data(), total, offset })
    }

    /// Bytes of the piece.
    pub(super) fn len(&self) -> usize {
        (self.total - self.offset).min(PIECE)
    }
}

/// The payloads that arrive in pieces.
pub(super) struct OpenPayloads {
    open: ParLists<OpenPayload>,
}

impl OpenPayloads {
    pub(super) fn new(par: bool) -> OpenPayloads {
        OpenPayloads { open: ParLists::new(par) }
    }

    /// All payloads of one source are in one list.
    fn of(&self, source: JobRank) -> &ParLock<Vec<OpenPayload>> {
        self.open.list(source.index())
    }

    /// Takes in a piece: whether the payload is complete. `None` if the piece has arrived before
    /// or does not fit, or if the source has too many payloads under way.
    pub(super) fn add(&self, piece: PieceOf, bytes: Src<'_>) -> Option<bool> {
        let PieceOf { source, id, total, offset } = piece;
        let mut list = self.of(source).lock();
        let at = match list.iter().position(|open| open.is(source, id)) {
            Some(at) => at,
            None => {
                let others = list.iter().filter(|open| open.source == source).count();
                if others == MOST_OPEN {
                    return None;
                }
                list.push(OpenPayload::new(source, id, total));
                list.len() - 1
            }
        };
        let open = &mut list[at];
        let bit = 1 << (offset / PIECE);
        if open.total != total || open.missing & bit == 0 || bytes.len() != piece.len() {
            return None;
        }
        Dst::from(&mut *open.words).part(offset, bytes.len()).copy_from(bytes);
        open.missing &= !bit;
        Some(open.missing == 0)
    }

    /// Takes a payload out that is complete.
    pub(super) fn take(&self, source: JobRank, id: u64) -> Option<Box<[u64]>> {
        let mut list = self.of(source).lock();
        let at = list.iter().position(|open| open.is(source, id) && open.missing == 0)?;
        Some(list.swap_remove(at).words)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.open.iter().all(|list| list.lock().is_empty())
    }
}

/// A reply of this rank whose payload the requester takes piece by piece.
#[derive(Clone)]
pub(super) struct StashedReply {
    /// The requester, and its chunk.
    pub(super) to: JobRank,
    pub(super) chunk: u32,
    /// The credit field of the request, which goes back with the last piece.
    pub(super) credit: u16,
    pub(super) handler: u8,
    numargs: usize,
    args: [i32; MAX_ARGS],
    words: Arc<[u64]>,
    pub(super) total: usize,
    /// Where the next piece begins.
    pub(super) offset: usize,
}

impl StashedReply {
    pub(super) fn new(to: JobRank, chunk: u32, credit: u16, m: &Outgoing<'_>) -> StashedReply {
        let total = m.payload.len();
        let mut words = alloc::vec![0u64; total.div_ceil(8)];
        Dst::from(&mut words[..]).part(0, total).copy_from(m.payload);
        let mut args = [0; MAX_ARGS];
        args[..m.args.len()].copy_from_slice(m.args);
        StashedReply {
            to,
            chunk,
            credit,
            handler: m.handler,
            numargs: m.args.len(),
            args,
            words: words.into(),
            total,
            offset: 0,
        }
    }

    /// Whether the next piece is the last one.
    pub(super) fn is_last(&self) -> bool {
        self.total - self.offset <= PIECE
    }

    /// The reply when its next piece, which is not the last one, has been sent.
    pub(super) fn after_this(&self) -> StashedReply {
        StashedReply { offset: self.offset + PIECE, ..self.clone() }
    }

    /// The next piece as a message.
    pub(super) fn piece(&self) -> Outgoing<'_> {
        let len = (self.total - self.offset).min(PIECE);
        let payload = Src::from(&self.words[..]).part(self.offset, len);
        Outgoing::medium(self.handler, &self.args[..self.numargs], payload)
    }
}

/// The replies whose payloads wait. A requester has one for each of its chunks at most: that of
/// the request stays taken until all pieces have arrived.
pub(super) struct StashedReplies {
    stashed: ParLists<StashedReply>,
}

impl StashedReplies {
    pub(super) fn new(par: bool) -> StashedReplies {
        StashedReplies { stashed: ParLists::new(par) }
    }

    fn of(&self, to: JobRank, chunk: u32) -> &ParLock<Vec<StashedReply>> {
        self.stashed.list((chunk as usize).wrapping_add(to.index() * 7))
    }

    /// Keeps a reply of which pieces are left. False if one to this chunk is kept already.
    pub(super) fn keep(&self, reply: StashedReply) -> bool {
        let mut list = self.of(reply.to, reply.chunk).lock();
        let is_new = !list.iter().any(|r| (r.to, r.chunk) == (reply.to, reply.chunk));
        if is_new {
            list.push(reply);
        }
        is_new
    }

    /// The reply to this chunk, of which the next piece is to be sent. It is kept if that is not
    /// the last one.
    pub(super) fn next(&self, to: JobRank, chunk: u32) -> Option<StashedReply> {
        let mut list = self.of(to, chunk).lock();
        let at = list.iter().position(|r| (r.to, r.chunk) == (to, chunk))?;
        if list[at].is_last() {
            return Some(list.swap_remove(at));
        }
        let rest = list[at].after_this();
        Some(core::mem::replace(&mut list[at], rest))
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.stashed.iter().all(|list| list.lock().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that awaits a reply in each of its chunks has as many payloads under way.
    #[test]
    fn a_payload_for_each_chunk_may_be_under_way() {
        let payloads = OpenPayloads::new(false);
        let bytes = [7u8; PIECE];
        let add = |id, offset, n: usize| {
            let piece = PieceOf { source: JobRank(1), id, total: PIECE + 1, offset };
            payloads.add(piece, Src::from(&bytes[..n]))
        };
        for id in 0..u64::from(MOST_CHUNKS) {
            assert_eq!(add(id, 0, PIECE), Some(false));
        }
        assert_eq!(add(MOST_CHUNKS.into(), 0, PIECE), None);
        for id in 0..u64::from(MOST_CHUNKS) {
            assert_eq!(add(id, PIECE, 1), Some(true));
            assert!(payloads.take(JobRank(1), id).is_some());
        }
        assert!(payloads.is_empty());
    }
}
