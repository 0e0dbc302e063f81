//! What the conduit writes into the 64 match bits and the 64 bits of immediate data of its
//! messages.
//!
//! Used by every file that sends a message or takes an event. Only the low four bits select a
//! descriptor ([`TargetMd`]). The match entries ignore the other sixty, so these carry what the
//! receiver must know, or the sender when its own events come back. Invariant: each `unpack` reads
//! what the `pack` next to it writes.
//!
//! | bits | put, get | active message | data of a Long | system message |
//! |---|---|---|---|---|
//! | 3:0 | target | target | target | target |
//! | 7:4 | kind | kind | kind | 0 |
//! | 15:8 | thread | flags | thread | id |
//! | 16 | a thread waits for departure | handler (23:16) | a thread waits for departure | sender (31:16) |
//! | 31:20 | chunk | arguments (31:24) | - | |
//! | 63:32 | operation id | offset (63:44), chunk (43:32) | - | word 0 |
//!
//! Immediate data of an active message: offset (63:48), sender (47:32), bytes of payload or long
//! id (31:8), credit byte (7:0). Of the data of a Long: sender (63:32) and long id. Of a system
//! message: words 1 and 2.
//!
//! The chunk is the sender's; of a reply whose body travels in its event it is the requester's.
//! The offset says where a payload is that does not travel with the header: of a Long in the
//! receiver's segment, of a Medium in the sender's library memory (the outbox). Its lower 20 bits
//! are in the match bits, 16 more in the immediate data.

use super::{CHUNK, Category, MAX_NODES, OpId, SystemMessage};

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
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Put,
    Get,
    AmHeader,
    AmData,
}

const PUT: u64 = 0x10;
const GET: u64 = 0x20;
const AM: u64 = 0x40;
const AM_DATA: u64 = 0x80;

/// What these match bits belong to; `None` for nothing that we send.
#[inline]
pub(super) fn kind(bits: u64) -> Option<MessageKind> {
    match bits & 0xf0 {
        PUT => Some(MessageKind::Put),
        GET => Some(MessageKind::Get),
        AM => Some(MessageKind::AmHeader),
        AM_DATA => Some(MessageKind::AmData),
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
    /// Arguments; the payload is a message of its own.
    Unpacked,
    /// Arguments; the payload is at its destination already.
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
    /// Of [`AmForm::Outbox`]: the payload stays only until the reply, see [`super::outbox`].
    pub(super) copy: bool,
    /// 0 is the reply of a handler that sent none.
    pub(super) handler: u8,
    /// Arguments, at most 16.
    pub(super) numargs: u8,
    /// Offset of the sender's chunk in its ReqSB (a request) or RplSB (a reply), a multiple of
    /// [`CHUNK`]; of a reply whose body travels in its event, of the receiver's chunk.
    pub(super) chunk: u32,
    /// Rank of the sender.
    pub(super) source: u32,
    /// Bytes of payload, or the long id of [`AmForm::Unpacked`]; 24 bits.
    pub(super) length: u32,
    /// EXXXNNNN, see [`super::credits`].
    pub(super) credit: u8,
    /// Of [`AmForm::Placed`] and [`AmForm::Landing`]: where the payload is, or goes, in the
    /// receiver's segment. Of [`AmForm::Outbox`]: where it is in the sender's library memory.
    /// Below [`OFFSETS`]; 0 for other forms.
    pub(super) offset: u64,
}

/// A header can carry lengths of payloads below this.
pub(super) const LENGTHS: usize = 1 << 24;
/// A header can carry offsets below this.
pub(super) const OFFSETS: u64 = 1 << (OFFSET_BITS + 16);
/// Bits of an offset that are in the match bits.
const OFFSET_BITS: u32 = 20;
/// Where a chunk's offset is in the match bits: its number is at bit 32.
const CHUNK_SHIFT: u32 = 32 - CHUNK.trailing_zeros();
/// All bits of a chunk's number: there are no more chunks.
const CHUNK_NUMBERS: u32 = (1 << (32 - OFFSET_BITS)) - 1;
const _: () = assert!(CHUNK.is_power_of_two() && MAX_NODES <= 1 << 16);
const _: () = assert!(CHUNK_NUMBERS as usize * CHUNK < REPLY_LID as usize);

impl AmHeader {
    /// Whether no bytes travel with it and none follow. (A Medium counts as one with bytes, which
    /// it nearly always has.)
    #[inline]
    fn is_all(&self) -> bool {
        self.numargs == 0 && matches!(self.form, AmForm::Short | AmForm::Placed | AmForm::Outbox)
    }

    /// Match bits and immediate data.
    #[inline]
    pub(super) fn pack(&self) -> (u64, u64) {
        debug_assert!(
            self.chunk.is_multiple_of(CHUNK as u32) && self.chunk / CHUNK as u32 <= CHUNK_NUMBERS
        );
        debug_assert!(
            self.source < MAX_NODES && (self.length as usize) < LENGTHS && self.offset < OFFSETS
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
            | u64::from(self.handler) << 16
            | u64::from(self.numargs) << 24
            | u64::from(self.chunk) << CHUNK_SHIFT
            | self.offset << (64 - OFFSET_BITS);
        let data = self.offset >> OFFSET_BITS << 48
            | u64::from(self.source) << 32
            | u64::from(self.length) << 8
            | u64::from(self.credit);
        (bits, data)
    }

    /// The match bits of a request whose body travels in its event: it needs no space in a buffer.
    #[inline]
    pub(super) fn inline_request(bits: u64) -> u64 {
        bits & IGNORE | TargetMd::ReqHdr as u64
    }

    /// The match bits of a reply whose body travels in its event, to the requester's chunk at
    /// this offset.
    #[inline]
    pub(super) fn inline_reply(bits: u64, chunk: u32) -> u64 {
        bits & !(u64::from(CHUNK_NUMBERS) << 32) | u64::from(chunk) << CHUNK_SHIFT
    }

    /// `None` for what no [`AmHeader::pack`] makes.
    #[inline]
    pub(super) fn unpack(bits: u64, data: u64) -> Option<AmHeader> {
        let flags = bits >> 8;
        let form = AmForm::of(flags)?;
        let numargs = (bits >> 24) as u8;
        if numargs > 16 {
            return None;
        }
        Some(AmHeader {
            form,
            request: flags & REQUEST != 0,
            may_wait: flags & MAY_WAIT != 0,
            copy: flags & COPY != 0,
            handler: (bits >> 16) as u8,
            numargs,
            chunk: AmHeader::chunk(bits),
            source: AmHeader::source(data),
            length: (data >> 8) as u32 & (LENGTHS as u32 - 1),
            credit: data as u8,
            offset: data >> 48 << OFFSET_BITS | bits >> (64 - OFFSET_BITS),
        })
    }

    /// [`AmHeader::chunk`]; the sender's own events need no more.
    #[inline]
    pub(super) fn chunk(bits: u64) -> u32 {
        (bits >> CHUNK_SHIFT) as u32 & (CHUNK_NUMBERS * CHUNK as u32)
    }

    /// Rank of the sender.
    #[inline]
    pub(super) fn source(data: u64) -> u32 {
        (data >> 32) as u32 & 0xffff
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
            source: 0,
            length: 0,
            credit: u8::from(request),
            offset: 0,
        }
    }
}

/// Distinguishes the long id of a reply from that of a request, which is an offset in the
/// requester's ReqSB below this.
pub(super) const REPLY_LID: u32 = 1 << 23;

/// Immediate data of the data of a Long.
#[inline]
pub(super) fn lid(source: u32, id: u32) -> u64 {
    u64::from(source) << 32 | u64::from(id)
}

/// Match bits and immediate data of a system message.
#[inline]
pub(super) fn system(source: u16, m: SystemMessage) -> (u64, u64) {
    let [a, b, c] = m.args.map(u64::from);
    (TargetMd::Sys as u64 | u64::from(m.id) << 8 | u64::from(source) << 16 | a << 32, b << 32 | c)
}

/// The sender and the message.
#[inline]
pub(super) fn unpack_system(bits: u64, data: u64) -> (u16, SystemMessage) {
    let args = [(bits >> 32) as u32, (data >> 32) as u32, data as u32];
    ((bits >> 16) as u16, SystemMessage { id: (bits >> 8) as u8, args })
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
                    chunk: REPLY_LID - 2048,
                    source: 65534,
                    length: 0xff_ffff,
                    credit: 0xff,
                    offset: if matches!(form, Placed | Outbox | Landing) {
                        OFFSETS - 8
                    } else {
                        0
                    },
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
        let m = SystemMessage { id: 3, args: [1, u32::MAX, 7] };
        let (bits, data) = system(65535, m);
        assert_eq!((unpack_system(bits, data), bits & 0xf), ((65535, m), 5));
    }

    /// The environment allows no more chunks than a header has numbers for.
    const _: () = {
        assert!(crate::env::PORTAL_SB_CHUNKS.kind().highest() <= CHUNK_NUMBERS + 1);
        assert!(crate::env::PORTAL_RPL_CHUNKS.kind().highest() <= CHUNK_NUMBERS + 1);
    };

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(AmHeader::unpack(0, 0), None);
        assert_eq!(AmHeader::unpack(8 << 8, 0), None);
        assert_eq!(AmHeader::unpack((AmForm::Short as u64) << 8 | 17 << 24, 0), None);
        assert_eq!(kind(0), None);
    }
}
