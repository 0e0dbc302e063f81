//! What the conduit writes into the 64 match bits and the 64 bits of immediate data of its
//! messages.
//!
//! Used by every file that sends a message or takes an event. Only the low four bits select a
//! descriptor ([`TargetMd`]). The match entries ignore the other sixty, so these carry what the
//! receiver must know, or the sender when its own events come back. Invariant: each `unpack` reads
//! what the `pack` next to it writes.
//!
//! | message | match bits |
//! |---|---|
//! | put, get | 3:0 target; 7:4 kind; 15:8 thread; 16 the thread waits for departure; 31:20 chunk; 63:32 operation id |
//! | active message | 3:0 target; 7:4 kind; 10:8 form; 13:11 flags; 18:14 arguments; 26:19 handler; 38:27 chunk; 63:39 extent |
//! | data of a Long | 3:0 target; 7:4 kind; 15:8 thread; 16 the thread waits for departure |
//! | system message | 3:0 target; 15:8 id; 63:32 word 0 |
//! | put, get of registered memory | `pinned/bits` |
//!
//! | message | immediate data |
//! |---|---|
//! | active message | 31:0 rank of the sender; 50:32 extent; 63:51 credit field |
//! | data of a Long | 31:0 rank of the sender; 63:32 long id |
//! | system message | 31:0 rank of the sender; 63:32 word 1 |
//!
//! *Departure*: a thread waits until the source of its put or Long may be reused.
//!
//! The chunk is the sender's; of a reply whose body travels in its event it is the requester's.
//! The extent has 44 bits, whose lower 25 are in the match bits. It is the length of the payload.
//! If the payload travels in the event, it also has the destination ([`AmHeader::landing`]). If
//! the payload stays in the sender's outbox, it also has the offset ([`AmHeader::stashed`]). All
//! other addresses have 64 bits and are the last word of the body (`am_body`).

use super::credits::policy::CreditField;
use super::message::MAX_MEDIUM;
use super::portals::InlineBody;
use super::{CHUNK, Category, OpId, SystemMessage};
use crate::rank::JobRank;

/// Match entries compare the low four bits only.
pub(super) const IGNORE: u64 = !0xf;

/// The descriptor that a message targets.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetMd {
    /// The segment, without events.
    Rar = 0,
    /// The segment, with events on AM_EQ.
    RarAm = 1,
    /// The segment, with events on SAFE_EQ.
    RarSrc = 2,
    /// The request receive buffers, and the catch basin behind them.
    ReqRb = 3,
    /// The request send buffer.
    ReqSb = 4,
    /// The system queue.
    Sys = 5,
    /// Requests that need no space in a buffer: all header, or with a body in their event.
    ReqHdr = 6,
    /// The exchanges of a start without memory files.
    #[cfg(any(feature = "libportals", test))]
    Start = 7,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Put,
    Get,
    AmHeader,
    AmData,
    /// A put or get of registered memory ([`super::pinned`]).
    Pinned,
}

const PUT: u64 = 0x10;
const GET: u64 = 0x20;
const AM: u64 = 0x40;
const AM_DATA: u64 = 0x80;
pub(super) const PINNED: u64 = 0x30;

/// What these match bits belong to; `None` for nothing that we send.
#[inline]
pub(super) fn kind(bits: u64) -> Option<MessageKind> {
    match bits & 0xf0 {
        PUT => Some(MessageKind::Put),
        GET => Some(MessageKind::Get),
        AM => Some(MessageKind::AmHeader),
        AM_DATA => Some(MessageKind::AmData),
        PINNED => Some(MessageKind::Pinned),
        _ => None,
    }
}

/// The match bits of a put or get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RmaBits {
    /// Names the operation to the upper layer.
    pub(super) op: OpId,
    /// The thread that waits for the source to be reusable, if one does.
    pub(super) local: Option<u8>,
    /// The bounce buffer, if there is one.
    pub(super) chunk: u32,
}

impl RmaBits {
    #[inline]
    pub(super) fn pack(self, kind: MessageKind) -> u64 {
        let kind = if kind == MessageKind::Put { PUT } else { GET };
        TargetMd::Rar as u64
            | kind
            | local_bits(self.local)
            | u64::from(self.chunk) << 20
            | u64::from(self.op.0) << 32
    }

    #[inline]
    pub(super) fn unpack(bits: u64) -> RmaBits {
        RmaBits {
            op: OpId((bits >> 32) as u32),
            local: local(bits),
            chunk: (bits >> 20) as u32 & 0xfff,
        }
    }
}

#[inline]
fn local_bits(thread: Option<u8>) -> u64 {
    thread.map_or(0, |t| u64::from(t) << 8 | 1 << 16)
}

/// The thread that waits for the departure of a put or of the data of a Long.
#[inline]
pub(super) fn local(bits: u64) -> Option<u8> {
    (bits & 1 << 16 != 0).then_some((bits >> 8) as u8)
}

/// Match bits of the data of a Long.
#[inline]
pub(super) fn am_data(target: TargetMd, local: Option<u8>) -> u64 {
    target as u64 | AM_DATA | local_bits(local)
}

/// Flags of an active message, next to the number of its form.
const REQUEST: u64 = 8;
const MAY_WAIT: u64 = 16;
const COPY: u64 = 32;

/// How an active message travels.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AmForm {
    /// Arguments.
    Short = 1,
    /// Arguments, payload.
    Medium,
    /// Arguments, payload, destination.
    Packed,
    /// Arguments; the payload is a message of its own. With [`AmHeader::copy`] a large Medium: its
    /// payload is in memory of the sender, or it has a piece of it ([`MediumPlace`]).
    Unpacked,
    /// Arguments, destination; the payload is at its destination already.
    Placed,
    /// Arguments; the payload is in the sender's [`super::outbox`].
    Outbox,
    /// Arguments and a payload, so short that both may travel in the message's event; the receiver
    /// writes the payload to its destination.
    Landing,
}

impl AmForm {
    /// The form whose number is in the low three bits of the flags.
    #[inline]
    fn of(flags: u64) -> Option<AmForm> {
        const { assert!(AmForm::Short as u8 == 1 && AmForm::Landing as u8 == 7) };
        match flags & 7 {
            0 => None,
            // A `match` would compile to a jump table.
            // SAFETY: 1 to 7 are the numbers of the forms.
            form => Some(unsafe { core::mem::transmute::<u8, AmForm>(form as u8) }),
        }
    }

    #[inline]
    pub(super) fn category(self) -> Category {
        match self {
            AmForm::Short => Category::Short,
            AmForm::Medium | AmForm::Outbox => Category::Medium,
            AmForm::Packed | AmForm::Unpacked | AmForm::Placed | AmForm::Landing => Category::Long,
        }
    }
}

/// The match bits and immediate data of an active message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AmHeader {
    pub(super) form: AmForm,
    pub(super) request: bool,
    /// Of a request: its implicit reply may wait, see [`super::implicit`].
    pub(super) may_wait: bool,
    /// Of [`AmForm::Outbox`]: the payload stays only until the reply, see [`super::outbox`]. Of
    /// [`AmForm::Unpacked`]: it is a large Medium, see [`super::large_medium`].
    pub(super) copy: bool,
    /// 0 is the reply of a handler that sent none.
    pub(super) handler: u8,
    /// Arguments, at most 16.
    pub(super) numargs: u8,
    /// Number of the sender's chunk in its ReqSB (a request) or RplSB (a reply). Of a reply whose
    /// body travels in its event, the number of the receiver's chunk in its ReqSB. At most
    /// [`MOST_CHUNKS`].
    pub(super) chunk: u32,
    /// Rank of the sender.
    pub(super) source: JobRank,
    /// Bytes of payload; of [`AmForm::Unpacked`] the long id; of [`AmForm::Landing`] what
    /// [`AmHeader::landing`] makes, of [`AmForm::Outbox`] [`AmHeader::stashed`]. Of a large Medium
    /// that or [`AmHeader::piece`]. Below [`EXTENTS`].
    pub(super) extent: u64,
    /// A [`super::credits::policy::CreditField`].
    pub(super) credit: u16,
}

/// Bounds of what a header can carry: extents, which bound lengths of payloads,
pub(super) const EXTENTS: u64 = 1 << (LOWER_BITS + UPPER_BITS);
/// destinations of Longs that land,
pub(super) const DESTINATIONS: u64 = EXTENTS >> LANDING_BITS;
/// bytes of library memory in which a payload may be stashed,
pub(super) const STASHES: u64 = (EXTENTS >> STASHED_BITS) * STASH_UNIT;
/// and numbers of chunks.
pub(super) const MOST_CHUNKS: u32 = 1 << CHUNK_BITS;

const ARGS_SHIFT: u32 = 14;
const ARGS_BITS: u32 = 5;
const HANDLER_SHIFT: u32 = ARGS_SHIFT + ARGS_BITS;
const CHUNK_SHIFT: u32 = HANDLER_SHIFT + 8;
const CHUNK_BITS: u32 = 12;
/// Where the lower part of the extent is in the match bits.
const LOWER_SHIFT: u32 = CHUNK_SHIFT + CHUNK_BITS;
const LOWER_BITS: u32 = 64 - LOWER_SHIFT;
/// Where the upper part is in the immediate data.
const UPPER_SHIFT: u32 = 32;
const UPPER_BITS: u32 = CREDIT_SHIFT - UPPER_SHIFT;
const CREDIT_SHIFT: u32 = 64 - CreditField::BITS;
/// Bits of the length of a payload that lands.
const LANDING_BITS: u32 = 6;
const _: () = assert!(size_of::<InlineBody>() < 1 << LANDING_BITS);
/// Bits of the length of a payload in the outbox, or of a large Medium.
const STASHED_BITS: u32 = 17;
/// Added to the length of a payload that travels in pieces.
const IN_PIECES: usize = 1 << (STASHED_BITS - 1);
const _: () = assert!(CHUNK < IN_PIECES && MAX_MEDIUM < IN_PIECES);
/// The place of such a payload, or of a piece in its payload, is a multiple of this many bytes.
pub(super) const STASH_UNIT: u64 = 64;

/// Where the payload of a large Medium is, as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MediumPlace {
    /// This many bytes at this offset in the library memory of the sender.
    Area(usize, usize),
    /// In pieces: bytes of all pieces, and where this one begins.
    Piece(usize, usize),
    /// A request for the next piece of the reply to the request from this chunk, and whether it
    /// is the last one from that chunk.
    Next(u32, bool),
}

/// The lowest `n` bits.
const fn low(n: u32) -> u64 {
    (1 << n) - 1
}

impl AmHeader {
    /// The extent of [`AmForm::Landing`]: bytes of payload, at most an [`InlineBody`], and where
    /// they go in the receiver's segment, below [`DESTINATIONS`].
    #[inline(always)]
    pub(super) fn landing(bytes: usize, destination: u64) -> u64 {
        destination << LANDING_BITS | bytes as u64
    }

    /// What [`AmHeader::landing`] was given.
    #[inline(always)]
    pub(super) fn unpack_landing(extent: u64) -> (usize, u64) {
        ((extent & low(LANDING_BITS)) as usize, extent >> LANDING_BITS)
    }

    /// The extent of [`AmForm::Outbox`]: bytes of payload, and where they are in the sender's
    /// library memory, a multiple of [`STASH_UNIT`] below [`STASHES`].
    #[inline(always)]
    pub(super) fn stashed(bytes: usize, place: u64) -> u64 {
        (place / STASH_UNIT) << STASHED_BITS | bytes as u64
    }

    /// What [`AmHeader::stashed`] was given.
    #[inline(always)]
    pub(super) fn unpack_stashed(extent: u64) -> (usize, u64) {
        ((extent & low(STASHED_BITS)) as usize, (extent >> STASHED_BITS) * STASH_UNIT)
    }

    /// The extent of a piece, at `offset` of a payload of `total` bytes, more than 0.
    pub(super) fn piece(total: usize, offset: usize) -> u64 {
        AmHeader::stashed(total | IN_PIECES, offset as u64)
    }

    /// The extent of [`MediumPlace::Next`].
    pub(super) fn next(chunk: u32, last: bool) -> u64 {
        AmHeader::stashed(IN_PIECES, (u64::from(chunk) << 1 | u64::from(last)) * STASH_UNIT)
    }

    /// Where the payload of a large Medium is; `None` if it is none.
    pub(super) fn medium_place(&self) -> Option<MediumPlace> {
        if self.form != AmForm::Unpacked || !self.copy {
            return None;
        }
        let (n, place) = AmHeader::unpack_stashed(self.extent);
        Some(match (n.checked_sub(IN_PIECES), place as usize) {
            (None, place) => MediumPlace::Area(n, place),
            (Some(0), place) => {
                let word = place / STASH_UNIT as usize;
                MediumPlace::Next((word >> 1) as u32, word & 1 != 0)
            }
            (Some(total), offset) => MediumPlace::Piece(total, offset),
        })
    }

    /// Whether no bytes travel with it and none follow. (A Medium counts as one with bytes, which
    /// it nearly always has.)
    #[inline]
    fn is_all(&self) -> bool {
        self.numargs == 0 && matches!(self.form, AmForm::Short | AmForm::Outbox)
    }

    /// Match bits and immediate data.
    #[inline]
    pub(super) fn pack(&self) -> (u64, u64) {
        debug_assert!(
            self.numargs <= 16
                && self.chunk < MOST_CHUNKS
                && self.extent < EXTENTS
                && self.credit >> CreditField::BITS == 0
        );
        let (target, request) = match (self.request, self.is_all()) {
            (true, true) => (TargetMd::ReqHdr, REQUEST),
            (true, false) => (TargetMd::ReqRb, REQUEST),
            (false, _) => (TargetMd::ReqSb, 0),
        };
        let may_wait = if self.may_wait { MAY_WAIT } else { 0 };
        let copy = if self.copy { COPY } else { 0 };
        let bits = target as u64
            | AM
            | (self.form as u64 | request | may_wait | copy) << 8
            | u64::from(self.numargs) << ARGS_SHIFT
            | u64::from(self.handler) << HANDLER_SHIFT
            | u64::from(self.chunk) << CHUNK_SHIFT
            | self.extent << LOWER_SHIFT;
        let data = u64::from(self.source.0)
            | self.extent >> LOWER_BITS << UPPER_SHIFT
            | u64::from(self.credit) << CREDIT_SHIFT;
        (bits, data)
    }

    /// The match bits of a request that needs no space in a buffer: its body, if it has one,
    /// travels in its event.
    #[inline]
    pub(super) fn inline_request(bits: u64) -> u64 {
        bits & IGNORE | TargetMd::ReqHdr as u64
    }

    /// The match bits of a reply whose body travels in its event, to this chunk of the requester.
    #[inline]
    pub(super) fn inline_reply(bits: u64, chunk: u32) -> u64 {
        bits & !(low(CHUNK_BITS) << CHUNK_SHIFT) | u64::from(chunk) << CHUNK_SHIFT
    }

    /// `None` for what no [`AmHeader::pack`] makes.
    #[inline]
    pub(super) fn unpack(bits: u64, data: u64) -> Option<AmHeader> {
        let flags = bits >> 8;
        let form = AmForm::of(flags)?;
        let numargs = (bits >> ARGS_SHIFT & low(ARGS_BITS)) as u8;
        if numargs > 16 {
            return None;
        }
        Some(AmHeader {
            form,
            request: flags & REQUEST != 0,
            may_wait: flags & MAY_WAIT != 0,
            copy: flags & COPY != 0,
            handler: (bits >> HANDLER_SHIFT) as u8,
            numargs,
            chunk: AmHeader::chunk(bits),
            source: AmHeader::source(data),
            extent: (data >> UPPER_SHIFT & low(UPPER_BITS)) << LOWER_BITS | bits >> LOWER_SHIFT,
            credit: (data >> CREDIT_SHIFT) as u16,
        })
    }

    /// [`AmHeader::chunk`]; the sender's own events need no more.
    #[inline]
    pub(super) fn chunk(bits: u64) -> u32 {
        (bits >> CHUNK_SHIFT & low(CHUNK_BITS)) as u32
    }

    /// Whether these match bits say [`AmForm::Unpacked`].
    #[inline(always)]
    pub(super) fn is_unpacked(bits: u64) -> bool {
        bits >> 8 & 7 == AmForm::Unpacked as u64
    }

    /// Rank of the sender.
    #[inline]
    pub(super) fn source(data: u64) -> JobRank {
        JobRank(data as u32)
    }
}

#[cfg(test)]
impl AmHeader {
    /// Of process 0, to handler 200, with no arguments and nothing else that can be left out.
    pub(super) fn plain(form: AmForm, request: bool) -> AmHeader {
        AmHeader {
            form,
            request,
            may_wait: false,
            copy: false,
            handler: 200,
            numargs: 0,
            chunk: 0,
            source: JobRank(0),
            extent: 0,
            credit: u16::from(request),
        }
    }
}

/// Distinguishes the long id of a reply from that of a request, which is the number of a chunk in
/// the requester's ReqSB.
pub(super) const REPLY_LID: u32 = MOST_CHUNKS;
const _: () = assert!(2 * (REPLY_LID as u64) <= EXTENTS);

/// Immediate data of the data of a Long.
#[inline]
pub(super) fn lid(source: JobRank, id: u32) -> u64 {
    u64::from(source.0) | u64::from(id) << 32
}

/// The sender and the long id.
#[inline]
pub(super) fn unpack_lid(data: u64) -> (JobRank, u32) {
    (JobRank(data as u32), (data >> 32) as u32)
}

/// Match bits and immediate data of a system message.
#[inline]
pub(super) fn system(source: JobRank, m: SystemMessage) -> (u64, u64) {
    let [a, b] = m.args.map(u64::from);
    (TargetMd::Sys as u64 | u64::from(m.id) << 8 | a << 32, u64::from(source.0) | b << 32)
}

/// The sender and the message.
#[inline]
pub(super) fn unpack_system(bits: u64, data: u64) -> (JobRank, SystemMessage) {
    let args = [(bits >> 32) as u32, (data >> 32) as u32];
    (JobRank(data as u32), SystemMessage { id: (bits >> 8) as u8, args })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        for local in [None, Some(0), Some(255)] {
            let r = RmaBits { op: OpId(0xfedc_ba98), local, chunk: 4095 };
            for k in [MessageKind::Put, MessageKind::Get] {
                let bits = r.pack(k);
                assert_eq!((RmaBits::unpack(bits), kind(bits), bits & 0xf), (r, Some(k), 0));
            }
            let bits = am_data(TargetMd::RarSrc, local);
            assert_eq!(
                (super::local(bits), kind(bits), bits & 0xf),
                (local, Some(MessageKind::AmData), 2)
            );
        }
        use AmForm::*;
        for form in [Short, Medium, Packed, Unpacked, Placed, Outbox, Landing] {
            for request in [true, false] {
                let m = AmHeader {
                    form,
                    request,
                    may_wait: request,
                    copy: !request,
                    handler: 255,
                    numargs: 16,
                    chunk: MOST_CHUNKS - 1,
                    source: JobRank(u32::MAX - 1),
                    extent: EXTENTS - 1,
                    credit: CreditField::new(true, 7, CreditField::MOST_USED).0,
                };
                let (bits, data) = m.pack();
                assert_eq!(
                    (AmHeader::unpack(bits, data), AmHeader::source(data)),
                    (Some(m), m.source)
                );
                assert_eq!(
                    (kind(bits), AmHeader::chunk(bits)),
                    (Some(MessageKind::AmHeader), m.chunk)
                );
                assert_eq!(bits & 0xf, if request { 3 } else { 4 });
            }
        }
        for (bytes, destination) in [(1, 0), (32, DESTINATIONS - 1)] {
            let extent = AmHeader::landing(bytes, destination);
            assert!(extent < EXTENTS);
            assert_eq!(AmHeader::unpack_landing(extent), (bytes, destination));
        }
        for (bytes, place) in [(320, 0), (CHUNK, STASHES - STASH_UNIT)] {
            let extent = AmHeader::stashed(bytes, place);
            assert!(extent < EXTENTS);
            assert_eq!(AmHeader::unpack_stashed(extent), (bytes, place));
            let am = AmHeader { extent, ..AmHeader::plain(Outbox, true) };
            let (bits, data) = am.pack();
            assert_eq!(bits & 0xf, TargetMd::ReqHdr as u64);
            assert_eq!(AmHeader::unpack(bits, data), Some(am));
        }
        let m = SystemMessage { id: 3, args: [u32::MAX, 7] };
        let (bits, data) = system(JobRank(u32::MAX), m);
        assert_eq!((unpack_system(bits, data), bits & 0xf), ((JobRank(u32::MAX), m), 5));
        assert_eq!(unpack_lid(lid(JobRank(u32::MAX), REPLY_LID)), (JobRank(u32::MAX), REPLY_LID));
    }

    /// The environment allows no more chunks than a header has numbers for.
    const _: () = {
        assert!(crate::env::PORTAL_SB_CHUNKS.kind().highest() <= MOST_CHUNKS);
        assert!(crate::env::PORTAL_RPL_CHUNKS.kind().highest() <= MOST_CHUNKS);
    };

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(AmHeader::unpack(0, 0), None);
        assert_eq!(AmHeader::unpack(8 << 8, 0), None);
        assert_eq!(AmHeader::unpack((AmForm::Short as u64) << 8 | 17 << ARGS_SHIFT, 0), None);
        assert_eq!(kind(0), None);
    }

    /// What two words are unpacked to is within its bounds, and packs to the same words but for
    /// the descriptor.
    fn any_words(input: &[u8]) {
        let mut input = fuzz::InputReader::new(input);
        let (bits, data) = (input.number(), input.number());
        let carried = bits & !0xff;
        if let Some(am) = AmHeader::unpack(bits, data) {
            assert!(am.numargs <= 16 && am.chunk < MOST_CHUNKS && am.extent < EXTENTS);
            let (packed, immediate) = am.pack();
            assert_eq!((packed & !0xff, immediate), (carried, data));
            assert_eq!(AmHeader::unpack(packed, immediate), Some(am));
            let (n, destination) = AmHeader::unpack_landing(am.extent);
            assert!(destination < DESTINATIONS);
            assert_eq!(AmHeader::landing(n, destination), am.extent);
            let (n, place) = AmHeader::unpack_stashed(am.extent);
            assert!(place < STASHES);
            assert_eq!(AmHeader::stashed(n, place), am.extent);
            let chunk = data as u32 % MOST_CHUNKS;
            assert_eq!(AmHeader::chunk(AmHeader::inline_reply(bits, chunk)), chunk);
        }
        let rma = RmaBits::unpack(bits);
        assert_eq!(RmaBits::unpack(rma.pack(MessageKind::Put)), rma);
        assert_eq!(kind(rma.pack(MessageKind::Get)), Some(MessageKind::Get));
        let (source, message) = unpack_system(bits, data);
        assert_eq!(unpack_system(system(source, message).0, system(source, message).1).1, message);
        let (source, id) = unpack_lid(data);
        assert_eq!(lid(source, id), data);
    }

    #[test]
    fn fuzz_match_bits() {
        fuzz::check("match_bits", 20_000, any_words);
    }
}
