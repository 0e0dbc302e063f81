//! What requests and replies that arrive have in common: their header, the prefetch of their
//! payload, the message that their handler gets.
//!
//! Used by `request_recv` and `reply_recv`. Invariant: an address or length that a message names
//! is checked against its buffer, our segment or its sender's library memory before it is used. A
//! message that fails ends the job.

use super::am_body::args_bytes;
use super::match_bits::{AmForm, AmHeader};
use super::memory::Body;
use super::message::LARGEST_STASH;
use super::portals::Portals;
use super::prefetch::prefetch_lines;
use super::{AmMessage, Conduit, MAX_ARGS};
use crate::client_memory::Dst;
use crate::rank::JobRank;
use crate::{fault, report};
use core::ptr;
use sys::peer::Peer;

impl<P: Portals> Conduit<P> {
    /// A message has arrived with this body, in its event or in a buffer. Prefetches its payload,
    /// if a handler will read that where it is.
    #[inline(always)]
    pub(super) fn prefetch_payload(&self, am: &AmHeader, body: Body<'_>, in_event: bool) {
        // A Short has none; tested first, before the jump table.
        if am.form == AmForm::Short {
            return;
        }
        match am.form {
            AmForm::Medium if !in_event => prefetch_lines(body.address(), body.len()),
            AmForm::Outbox => {
                if let Some(payload) = self.in_outbox(am) {
                    prefetch_lines(payload.as_ptr(), payload.len());
                }
            }
            _ => {}
        }
    }

    /// The payload of a request that stays in its sender's outbox; `None` if it cannot be there.
    #[inline(always)]
    pub(super) fn in_outbox(&self, am: &AmHeader) -> Option<Dst<'static>> {
        let memory = self.library_memory(am.source)?;
        let (n, place) = AmHeader::unpack_stashed(am.extent);
        let n = Peer::new(n).at_most(LARGEST_STASH)?;
        memory.peer_part(Peer::new(place as usize), Peer::new(n))
    }

    /// Unpacks a message for its handler; `data` is a payload that is not in the body. The payload
    /// of a Long that came in the body goes to its destination. `wrong` is space for a planted
    /// fault.
    #[inline(always)]
    pub(super) fn message<'a>(
        &self,
        am: &AmHeader,
        body: Body<'a>,
        data: Option<Dst<'a>>,
        wrong: &'a mut [i32; MAX_ARGS],
    ) -> AmMessage<'a> {
        let numargs = usize::from(am.numargs);
        let Some(mut args) = body.args(numargs) else { missing_args(am.source, numargs) };
        let payload = match am.form {
            AmForm::Short => AmMessage::NO_PAYLOAD,
            _ => match self.payload(am, body, args_bytes(numargs), data) {
                Some(payload) => payload,
                None => bad_message(am.source),
            },
        };
        if fault::on("flip_arg") && numargs != 0 {
            wrong[..numargs].copy_from_slice(args);
            wrong[numargs / 2] ^= 1;
            args = &wrong[..numargs];
        }
        if fault::on("flip_am") {
            payload.flip(payload.len() / 2);
        }
        AmMessage {
            source: am.source,
            category: am.form.category(),
            handler: am.handler,
            args,
            payload,
        }
    }

    /// The payload of a message that is no Short; `at` is how many bytes of the body come before
    /// it. `None` if it is not within the memory that it should be in.
    #[inline(always)]
    pub(super) fn payload<'a>(
        &self,
        am: &AmHeader,
        body: Body<'a>,
        at: usize,
        data: Option<Dst<'a>>,
    ) -> Option<Dst<'a>> {
        let n = Peer::new(am.extent as usize);
        let segment = |offset: Peer<u64>, n| self.rar().at(offset.map(|at| at as usize), n);
        match am.form {
            AmForm::Short => None,
            AmForm::Medium => body.part(at, n),
            AmForm::Landing => {
                let (n, destination) = AmHeader::unpack_landing(am.extent);
                let n = Peer::new(n);
                let (from, to) = (body.part(at, n)?, segment(Peer::new(destination), n)?);
                self.rar().store(to, from.into(), am.source, self.me);
                Some(to)
            }
            AmForm::Packed if n.equals(0) => {
                let address = body.word(Peer::new(at))?.data() as usize;
                let address = ptr::without_provenance_mut(address);
                // SAFETY: no bytes may be anywhere.
                Some(unsafe { Dst::new(address, 0) })
            }
            AmForm::Packed => {
                let from = body.part(at, n)?;
                let offset = body.word(n.map(|n| at + n.next_multiple_of(8)))?;
                let to = segment(offset, n)?;
                self.rar().store(to, from.into(), am.source, self.me);
                Some(to)
            }
            AmForm::Placed => segment(body.word(Peer::new(at))?, n),
            AmForm::Unpacked | AmForm::Outbox => data,
        }
    }
}

/// What the header of a message says.
#[inline(always)]
pub(super) fn header(bits: u64, data: u64) -> AmHeader {
    match AmHeader::unpack(bits, data) {
        Some(am) => am,
        None => malformed(bits, data),
    }
}

/// Ends the job over a message that this library does not send.
pub(super) fn malformed(match_bits: u64, hdr_data: u64) -> ! {
    report::fatal(
        format_args!(
            "an active message with match bits {match_bits:#018x} and data {hdr_data:#018x} makes no sense"
        ),
        format_args!("Make sure that all processes run the same version of this library."),
    )
}

/// Ends the job over a message with more arguments than its body has.
pub(super) fn missing_args(source: JobRank, numargs: usize) -> ! {
    report::fatal(
        format_args!(
            "an active message of process {source} makes no sense: its body is shorter than its {numargs} arguments"
        ),
        format_args!("Make sure that all processes run the same version of this library."),
    )
}

pub(super) fn bad_message(source: JobRank) -> ! {
    report::fatal(
        format_args!(
            "an active message of process {source} is longer than its buffer, has the offset of another message, or aims outside our segment or its own memory"
        ),
        format_args!("Make sure that all processes run the same version of this library."),
    )
}
