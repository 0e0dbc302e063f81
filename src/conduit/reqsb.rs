//! ReqSB: the chunks that requests leave from and their replies arrive in. Small puts whose source
//! may be reused at once bounce through them, as do small puts and gets outside the segment.
//!
//! Taken by `request_send`, `put` and `get`, given back by `reply_recv` and `safe`. The
//! descriptor is attached (replies target it) and has its events on SAFE_EQ. A request holds
//! its chunk until its reply has been handled, a bounced put until its ACK, a bounced get
//! until its REPLY. Invariant: only the holder of a chunk touches its bytes and its
//! entries of `gets` and `asks`; the event that ends the hold passes it on.
//!
//! Requests leave through a second descriptor of the same memory that has no events, since the
//! reply says that they have left. A SEND event would only occupy the slot before the reply's, in
//! a cache line that the peer is about to write. A request that the network sends within the call
//! does not write its chunk at all; the chunk then only waits for the reply.

use super::CHUNK;
use super::hold::Hold;
use super::match_bits::{IGNORE, MOST_CHUNKS, TargetMd};
use super::memory::{self, Chunks};
use super::portals::{EntryPosition, MdFlags, MdPart, MdSpec, Portals, PortalsError};
use super::sync::FreeList;
use super::user::Descriptor;
use crate::client_memory::{Dst, Src};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, Ordering};
use once_cell::race::OnceBox;
use parking_lot::Mutex;
use sys::peer::Peer;

pub(super) struct ReqSb<P: Portals> {
    pub(super) chunks: Chunks,
    md: P::Md,
    /// The same memory as a source that has no events.
    silent: P::Md,
    free: FreeList,
    /// Where the bytes of a bounced get go in the end, by chunk; made with the first such get. A
    /// lock is free whenever it is taken.
    gets: OnceBox<Box<[Mutex<Dst<'static>>]>>,
    /// The pieces of a reply that a chunk is still to request, by chunk.
    asks: Box<[AtomicU32]>,
}

/// What a chunk requests of a reply in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PieceAsk {
    /// The chunk of the request that the reply is to.
    pub(super) base: u32,
    /// Pieces to be requested.
    pub(super) left: u32,
}

/// The word of a chunk that requests none.
const NO_ASK: u32 = u32::MAX;
const BASE_BITS: u32 = 16;
const _: () = assert!(MOST_CHUNKS <= 1 << BASE_BITS);

impl<P: Portals> ReqSb<P> {
    pub(super) fn open(
        portals: &P,
        pt: u32,
        par: bool,
        chunks: u32,
        eq: &P::Eq,
    ) -> Result<Self, PortalsError> {
        let memory = memory::targeted(portals, chunks as usize * CHUNK)?;
        let position = EntryPosition::Tail(pt);
        let me = portals.me_attach(position, TargetMd::ReqSb as u64, IGNORE, false)?;
        let spec = MdSpec {
            region: memory.into(),
            max_size: None,
            flags: MdFlags {
                op_put: true,
                manage_remote: true,
                event_start_disable: true,
                ..MdFlags::default()
            },
            user: Descriptor::ReqSb.pack(),
            eq: Some(eq),
        };
        let md = portals.md_attach(me, &spec, false)?;
        let silent = portals.md_bind(&MdSpec { flags: MdFlags::default(), eq: None, ..spec })?;
        Ok(ReqSb {
            chunks: Chunks::of(memory),
            md,
            silent,
            free: FreeList::new(par, chunks),
            gets: OnceBox::new(),
            asks: (0..chunks).map(|_| AtomicU32::new(NO_ASK)).collect(),
        })
    }

    /// Takes a chunk, for `hold`.
    #[inline]
    pub(super) fn take(&self, hold: Hold) -> Option<u32> {
        self.free.take(hold)
    }

    /// The event that `hold` waits for names this chunk: the chunk, once, if it is held for that.
    /// The caller has it then, and before it takes another event gives it back or keeps it.
    #[inline(always)]
    pub(super) fn end_hold(&self, number: Peer<usize>, hold: Hold) -> Option<u32> {
        self.free.end_hold(number, hold)
    }

    /// Whether this is the number of a chunk that is not free.
    pub(super) fn is_held(&self, number: Peer<usize>) -> bool {
        self.free.is_held(number)
    }

    /// The list of chunks.
    pub(super) fn list(&self) -> &FreeList {
        &self.free
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> u32 {
        self.free.left()
    }

    /// Keeps a chunk whose hold an event has ended: no further event ends it.
    pub(super) fn keep(&self, chunk: u32) {
        self.hold_for(chunk, Hold::HERE);
    }

    /// Says what a chunk is held for from now on.
    pub(super) fn hold_for(&self, chunk: u32, hold: Hold) {
        self.free.set_hold(chunk, hold);
    }

    /// What a chunk, which the caller holds, requests of a reply in pieces, if it does.
    pub(super) fn ask(&self, chunk: u32) -> Option<PieceAsk> {
        let word = self.asks[chunk as usize].load(Ordering::Relaxed);
        let (base, left) = (word & ((1 << BASE_BITS) - 1), word >> BASE_BITS);
        (word != NO_ASK).then_some(PieceAsk { base, left })
    }

    /// Notes what a chunk, which the caller holds, requests of a reply in pieces.
    pub(super) fn set_ask(&self, chunk: u32, ask: Option<PieceAsk>) {
        let word = ask.map_or(NO_ASK, |ask| ask.left << BASE_BITS | ask.base);
        self.asks[chunk as usize].store(word, Ordering::Relaxed);
    }

    /// Gives a chunk back.
    #[inline]
    pub(super) fn give(&self, chunk: u32) {
        self.free.give(chunk);
    }

    /// The first `len` bytes of a chunk, with events for its holder.
    #[inline]
    pub(super) fn part(&self, chunk: u32, len: usize) -> MdPart<P::Md> {
        MdPart { md: self.md, offset: chunk as usize * CHUNK, len }
    }

    /// The first `len` bytes of a chunk as a source without events.
    #[inline]
    pub(super) fn silent_part(&self, chunk: u32, len: usize) -> MdPart<P::Md> {
        MdPart { md: self.silent, offset: chunk as usize * CHUNK, len }
    }

    /// Notes where the bytes of the get go that bounces through this chunk, which the caller
    /// holds.
    #[inline]
    pub(super) fn note_get(&self, chunk: u32, dst: Dst<'static>) {
        *self.get_of(chunk).lock() = dst;
    }

    fn get_of(&self, chunk: u32) -> &Mutex<Dst<'static>> {
        let new = || Box::new(self.asks.iter().map(|_| Mutex::new(Dst::empty())).collect());
        &self.gets.get_or_init(new)[chunk as usize]
    }

    /// The get that bounced through this chunk has arrived: copies its bytes to where they go.
    #[inline]
    pub(super) fn finish_get(&self, chunk: u32) {
        let dst = *self.get_of(chunk).lock();
        dst.copy_from(Src::from(self.chunks.part(chunk, dst.len())));
    }
}

/// The number of the chunk that starts at this offset, if one does; `None` if none can.
#[inline(always)]
pub(super) fn chunk_at(offset: Peer<usize>) -> Option<Peer<usize>> {
    offset.decode(|at| at.is_multiple_of(CHUNK).then_some(Peer::new(at / CHUNK)))
}
