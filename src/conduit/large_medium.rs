//! Mediums that do not fit into one message: how they travel, and what arrives of them.
//!
//! `request_send` and `reply_send` send them. Called by these for an area, by `request_recv` and
//! `reply_recv` when messages arrive. Invariant: a reply waits for nothing. A request waits for an
//! area for a short time, and else only for what an ordinary request needs.
//!
//! ```text
//!   mapped          the payload stays in a large area of the sender (`large_areas`), where it
//!                   is not in the outbox
//!   request         piece ─> piece ─> ... ─> piece: each is a request with credits of its own.
//!   otherwise       The handler runs as that of the piece which completes the payload; the others
//!                   get implicit replies.
//!   reply           requester              replier: keeps a copy of the payload
//!   otherwise         chunk <── piece ──────── reply to the request; returns no credits
//!                     chunk ─── NEXT ────────> a request from the same chunk, without credits
//!                     other ─── NEXT ────────> one from each other chunk that joins
//!                     chunk <── piece ──────── its reply; from the chunk the next NEXT
//!                     other <── piece ──────── the same
//!                     ...
//!                     chunk <── piece ──────── that to its last NEXT returns its credits
//! ```
//!
//! A reply in pieces needs nothing that its request does not hold already. Other chunks join, each
//! with one credit, as far as both are free: each of these chunks requests an equal share of the
//! pieces. The credits of a chunk stay in use until its last piece, so its NEXT may use the event
//! of its request before, which the replier has taken. A NEXT has no body, so it needs no space
//! in a receive buffer, and is sent at once, also inside a handler. The handler runs with the
//! chunk whose piece completes the payload. Until then the chunk of the request stays taken, since
//! it names the payload on both sides; another is free when it has nothing more to request. What a
//! replier keeps for a requester is bounded by the chunks of the requester.

use super::am_body::args_bytes;
use super::am_recv::bad_message;
use super::arrived::ArrivedReply;
use super::credits;
use super::hold::Hold;
use super::large_areas::{LargeAreas, LargePayload, PayloadArea};
use super::match_bits::{AmForm, AmHeader, MediumPlace};
use super::memory::Body;
use super::message::{LARGEST_STASH, MAX_EAGER, PIECE};
use super::pieces::PieceOf;
use super::portals::Portals;
use super::queue::broken;
use super::reqsb::PieceAsk;
use super::{AmMessage, Category, Conduit, MAX_ARGS, Outgoing};
use crate::client_memory::Dst;
use crate::rank::JobRank;
use alloc::boxed::Box;
use sys::peer::Peer;

/// Most chunks that request pieces of one reply. Over TCP a reply of 64 KiB takes 4.5 ms with
/// them and 10 without, one of 16 KiB 0.7 and 2.4.
const WINDOW: u32 = 12;

/// A large payload that is where its handler may access it.
pub(super) enum WholePayload {
    Area(LargePayload),
    Joined(Box<[u64]>, usize),
}

impl WholePayload {
    pub(super) fn bytes(&mut self) -> Dst<'_> {
        match self {
            WholePayload::Area(payload) => payload.bytes,
            WholePayload::Joined(words, n) => Dst::from(&mut words[..]).part(0, *n),
        }
    }

    /// The handler has returned.
    pub(super) fn handled(self) {
        if let WholePayload::Area(payload) = self {
            payload.handled();
        }
    }
}

impl<P: Portals> Conduit<P> {
    /// Whether a rank reads payloads in our areas: it maps our library memory, as we map its own.
    pub(super) fn reads_areas(&self, rank: JobRank) -> bool {
        rank == self.me || self.library_memory(rank).is_some()
    }

    /// Takes an area for the payload of a Medium to this rank, of at most `n` bytes. The handler
    /// reads it there: the client writes it before [`Conduit::request_area`] or
    /// [`Conduit::reply_area`]. `None` if the payload must travel. So must that of a reply which
    /// fits into one message.
    pub fn take_area(&self, rank: JobRank, n: usize, request: bool) -> Option<PayloadArea> {
        let stays = request && n <= LARGEST_STASH && self.library_memory(rank).is_some();
        let in_outbox = if stays { self.outbox.take_area(n) } else { None };
        if n <= MAX_EAGER { in_outbox } else { in_outbox.or_else(|| self.large_area(rank, n)) }
    }

    /// Takes a large area for the payload of a message to this rank.
    fn large_area(&self, rank: JobRank, n: usize) -> Option<PayloadArea> {
        if self.reads_areas(rank) { self.large_areas.take(n) } else { None }
    }

    /// Copies the payload of a message to this rank into an area. `None` if it must travel.
    pub(super) fn stash_large(&self, rank: JobRank, m: &Outgoing<'_>) -> Option<PayloadArea> {
        let area = self.large_area(rank, m.payload.len())?;
        area.bytes.copy_from(m.payload);
        Some(area)
    }

    /// Gives an area back whose message is not sent.
    pub fn give_area(&self, area: PayloadArea) {
        match area.in_outbox {
            true => self.outbox.unstash(area.place as u64),
            false => self.large_areas.give(area),
        }
    }

    /// The extent that says that the payload of a message is in this area.
    pub(super) fn extent_in_area(&self, m: &Outgoing<'_>, area: &PayloadArea) -> u64 {
        self.large_areas.shorten(area, m.payload.len());
        AmHeader::stashed(m.payload.len(), area.place as u64)
    }

    /// The header of a large Medium, of a piece of it, or of a NEXT, which this extent says.
    pub(super) fn large_header(
        &self,
        request: bool,
        m: &Outgoing<'_>,
        chunk: u32,
        extent: u64,
        credit: u16,
    ) -> AmHeader {
        AmHeader {
            form: AmForm::Unpacked,
            request,
            may_wait: false,
            copy: true,
            handler: m.handler,
            numargs: m.args.len() as u8,
            chunk,
            source: self.me,
            extent,
            credit,
        }
    }

    // ---- that arrive

    /// The piece that this request carries has arrived: the payload, if it is complete.
    fn add_piece(
        &self,
        am: &AmHeader,
        body: Body<'_>,
        extent: (usize, usize),
    ) -> Option<WholePayload> {
        let at = args_bytes(am.numargs.into());
        let add = || {
            let largest = self.config.max_medium;
            let len = PieceOf::checked(am.source, Peer::new(0), extent, largest)?.len();
            let id = body.word(Peer::new(at + len.next_multiple_of(8)))?;
            let piece = PieceOf::checked(am.source, id, extent, largest)?;
            let complete =
                self.request_payloads.add(piece, body.part(at, Peer::new(len))?.into())?;
            Some((complete, piece))
        };
        let Some((complete, piece)) = add() else { bad_message(am.source) };
        let words =
            complete.then(|| self.request_payloads.take(piece.source, piece.id)).flatten()?;
        Some(WholePayload::Joined(words, piece.total))
    }

    /// The payload of a large request that has arrived; `None` if more pieces of it must arrive,
    /// or this is a NEXT.
    pub(super) fn large_request(
        &self,
        am: &AmHeader,
        body: Body<'_>,
        place: MediumPlace,
    ) -> Option<WholePayload> {
        match place {
            MediumPlace::Area(n, place) => {
                Some(WholePayload::Area(self.in_large_area(am.source, n, place)))
            }
            MediumPlace::Piece(total, offset) => self.add_piece(am, body, (total, offset)),
            MediumPlace::Next(..) => None,
        }
    }

    /// The payload of a message in a large area of its sender.
    fn in_large_area(&self, source: JobRank, n: usize, place: usize) -> LargePayload {
        let memory = match source == self.me {
            true => self.large_areas.own(),
            false => self.library_memory(source),
        };
        let n = Peer::new(n).at_most(self.config.max_medium);
        let payload = memory
            .zip(n)
            .and_then(|(memory, n)| LargeAreas::find(memory, Peer::new(n), Peer::new(place)));
        payload.unwrap_or_else(|| bad_message(source))
    }

    /// The payload of a large reply: whether it is complete. If not, requests the next piece, or
    /// gives the chunk back.
    pub(super) fn large_reply(&self, reply: &ArrivedReply, place: MediumPlace) -> bool {
        let ArrivedReply { am, chunk, len, .. } = *reply;
        let MediumPlace::Piece(total, offset) = place else { return true };
        let known = self.reqsb.ask(chunk);
        let base = known.map_or(chunk, |ask| ask.base);
        let add = || {
            let (id, largest) = (Peer::new(base.into()), self.config.max_medium);
            let piece = PieceOf::checked(am.source, id, (total, offset), largest)?;
            // SAFETY: this thread holds the chunk until the next piece is requested, below.
            let body = unsafe { self.reqsb.chunks.body(chunk, len) };
            let bytes = body.part(args_bytes(am.numargs.into()), Peer::new(piece.len()))?;
            self.reply_payloads.add(piece, bytes.into())
        };
        let Some(complete) = add() else { bad_message(am.source) };
        let ask = match known {
            Some(ask) => ask,
            None => self.share_pieces(am.source, chunk, total.div_ceil(PIECE) as u32 - 1),
        };
        if complete {
            return true;
        }
        if ask.left != 0 {
            self.request_next(am.source, chunk, ask, 0);
        } else if chunk != ask.base {
            self.give_asking(chunk);
        }
        false
    }

    /// Gives a chunk back that has requested pieces.
    fn give_asking(&self, chunk: u32) {
        self.reqsb.set_ask(chunk, None);
        self.reqsb.give(chunk);
    }

    /// The first piece of a reply has arrived in the chunk `base`: shares the `rest` out among
    /// this chunk and others that are free, which request theirs.
    fn share_pieces(&self, source: JobRank, base: u32, rest: u32) -> PieceAsk {
        let mut others = [(0, 0); WINDOW as usize - 1];
        let mut count = 0;
        while count + 1 < WINDOW.min(rest) {
            let Some(taken) = self.credits.take(source, 1) else { break };
            let credit = taken.field(0);
            let Some(chunk) = self.reqsb.take(Hold::REQUEST) else {
                self.credits.untake(source, credit);
                break;
            };
            others[count as usize] = (chunk, credit);
            count += 1;
        }
        let share = |i: u32| PieceAsk { base, left: (rest + count - i) / (count + 1) };
        for (i, &(chunk, credit)) in (1..=count).zip(&others) {
            self.request_next(source, chunk, share(i), credit);
        }
        self.reqsb.set_ask(base, Some(share(0)));
        share(0)
    }

    /// The payload of a large reply that is complete, which its handler is about to read.
    pub(super) fn take_large_reply(
        &self,
        reply: &ArrivedReply,
        place: MediumPlace,
    ) -> WholePayload {
        let am = &reply.am;
        match place {
            MediumPlace::Area(n, place) => {
                WholePayload::Area(self.in_large_area(am.source, n, place))
            }
            MediumPlace::Piece(total, _) => {
                let base = self.reqsb.ask(reply.chunk).map_or(reply.chunk, |ask| ask.base);
                let words = self.reply_payloads.take(am.source, base.into());
                self.reqsb.set_ask(reply.chunk, None);
                if base != reply.chunk {
                    self.give_asking(base);
                }
                WholePayload::Joined(words.unwrap_or_else(|| bad_message(am.source)), total)
            }
            MediumPlace::Next(..) => bad_message(am.source),
        }
    }

    /// Sends a NEXT from a chunk that has these pieces to request. `credit` is the credit field of
    /// a chunk that has just joined, and 0 otherwise.
    fn request_next(&self, rank: JobRank, chunk: u32, ask: PieceAsk, credit: u16) {
        let ask = PieceAsk { left: ask.left - 1, ..ask };
        let (last, joined) = (ask.left == 0, chunk != ask.base);
        // The chunk of the request has its credits from that: their field is with the replier.
        let credit = match (joined, last) {
            (true, true) => credits::first_of_several(credit) | credits::last_of_several(1),
            (true, false) => credits::first_of_several(credit),
            (false, _) => 0,
        };
        self.reqsb.set_ask(chunk, Some(ask));
        self.reqsb.hold_for(chunk, Hold::REQUEST);
        let next = Outgoing::short(0, &[]);
        let extent = AmHeader::next(ask.base, last);
        let header = self.large_header(true, &next, chunk, extent, credit);
        let (bits, data) = header.pack();
        let to = self.am_target(rank, AmHeader::inline_request(bits), 0, data);
        if !self.send_at_once(AmForm::Short, 0, &next, &to) {
            let nothing = self.reqsb.silent_part(chunk, 0);
            self.portals.put(nothing, false, &to).unwrap_or_else(|e| broken(e));
        }
    }

    /// A large Medium for its handler.
    pub(super) fn large_message<'a>(
        &self,
        am: &AmHeader,
        body: Body<'a>,
        payload: &'a mut WholePayload,
        wrong: &'a mut [i32; MAX_ARGS],
    ) -> AmMessage<'a> {
        let message = self.message(am, body, Some(payload.bytes()), wrong);
        AmMessage { category: Category::Medium, ..message }
    }
}
