//! Sending active messages: what requests and replies share.
//!
//! Used by `request_send` and `reply_send`. Invariant: nothing here waits; the caller holds what
//! the message needs.
//!
//! ```text
//!  plan      choose the form                     Short     arguments
//!            Long: put the payload ahead of      Medium    arguments, payload
//!            the header if the put completes     Outbox    arguments, where the payload stays
//!            within the call (Placed); Medium:   Landing   arguments, payload to be copied
//!            stash a large payload (Outbox)      Placed    arguments, where the payload is now
//!                                                Packed    arguments, payload, destination
//!                                                Unpacked  arguments; payload: its own put
//!  reserve   credits, chunk       full polls: both return with replies, which peers that wait
//!                                 like us send from their full polls
//!            TMPMD, ticket        for Unpacked; SAFE polls: both return with our own events
//!  transmit  Unpacked: the data, to RARAM or RARSRC
//!            the message: in its event, else from plain memory within the call, else from
//!            its chunk
//! ```
//!
//! An event at the sender exists only where something must report its departure. These are the
//! data of a Long, and a reply that leaves a RplSB chunk. The reply to a request reports the
//! departure of the request, and a reply without arguments is all header.
//!
//! Up to 32 bytes of arguments and payload travel in the event, if the network can do that.
//! They go to ReqHdr or, for a reply, to a chunk that the header names.

use super::am_body::{DESTINATION_BYTES, HeadWords, has_destination, has_payload, inline_body};
use super::hold::Hold;
use super::match_bits::{self, AmForm, TargetMd};
use super::memory::{bytes_of, word_at};
use super::message::MAX_MEDIUM;
use super::portals::{Direct, MdPart, Portals, Target};
use super::queue::broken;
use super::{Category, Conduit, MAX_ARGS, MAX_EAGER, Outgoing, Upcall};
use crate::client_memory::Src;
use crate::rank::JobRank;

/// Largest Long that travels in one message with any arguments.
const MAX_PACKED: usize = MAX_EAGER - DESTINATION_BYTES;

/// Largest Long request to memory that is registered on demand.
const LARGEST_PINNED: usize = 1 << 30;

impl<P: Portals> Conduit<P> {
    /// Largest Medium payload in bytes.
    pub fn max_medium(&self) -> usize {
        self.config.max_medium
    }

    /// Largest Long request payload in bytes.
    pub fn max_long_request(&self) -> usize {
        match self.config.targets_regions() {
            true => LARGEST_PINNED,
            false => self.config.max_transfer,
        }
    }

    /// Largest Long reply payload in bytes.
    pub fn max_long_reply(&self) -> usize {
        match self.config.targets_regions() {
            // A handler cannot wait for registered memory: the payload travels along.
            true => MAX_PACKED,
            false => self.config.max_transfer,
        }
    }

    /// Sends a message with its body in its event. Returns false, with nothing done, if the
    /// message has no body, one that does not fit, or the network cannot.
    #[inline(always)]
    pub(super) fn send_inline(
        &self,
        form: AmForm,
        len: usize,
        offset: u64,
        m: &Outgoing<'_>,
        to: &Target,
    ) -> bool {
        if !Self::fits_inline(form, len) {
            return false;
        }
        match self.direct(to.process) {
            Some(direct) => direct.put_inline(&inline_body(form, offset, m), to),
            None => false,
        }
    }

    /// Sends a message within the call, from where its parts are; false, and nothing done, if that
    /// is not possible.
    #[inline(always)]
    pub(super) fn send_at_once(
        &self,
        form: AmForm,
        offset: u64,
        m: &Outgoing<'_>,
        to: &Target,
    ) -> bool {
        let Some(direct) = self.direct(to.process) else { return false };
        let n = m.payload.len();
        let mut head = HeadWords::new();
        head.push_args(m.args);
        if !has_payload(form) || n == 0 {
            if has_destination(form) {
                head.push(offset);
            }
            return direct.put_at_once([head.bytes()], to);
        }
        let (whole, rest) = m.payload.split_at(n & !7);
        let mut last = [0u64; 2];
        let mut filled = 0;
        if rest.len() != 0 {
            last[0] = word_at(rest, 0);
            filled = 1;
        }
        if has_destination(form) {
            last[filled] = offset;
            filled += 1;
        }
        direct.put_at_once([head.bytes(), whole, bytes_of(&last[..filled])], to)
    }

    /// Sends the data of a Long; the caller has a ticket for it, and a TMPMD if they lie outside
    /// the segment.
    #[inline(never)]
    pub(super) fn put_data<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        target: TargetMd,
        m: &Outgoing<'_>,
        lid: u32,
        slot: Option<u32>,
    ) {
        let local = (!m.source_stays).then(|| up.thread() as u8);
        if local.is_some() {
            self.thread(up).expect_local(self.config.par());
        }
        let from = match slot {
            Some(slot) => {
                // SAFETY: `source_stays` is only set for a `Src<'static>`; without it `wait_local`
                // waits for SEND, after which the payload is not read.
                let region = unsafe { m.payload.until_complete() }.into();
                // Its event is SEND.
                self.tmpmd.bind(&self.portals, slot, region, Hold::DATA, 1)
            }
            None => self.in_own_segment(m.payload),
        };
        let bits = match_bits::am_data(target, local);
        let to = Target {
            hdr_data: match_bits::lid(self.me, lid),
            ..self.in_segment(rank, m.to.offset(), bits)
        };
        self.portals.put(from, false, &to).unwrap_or_else(|e| broken(e));
        if let Some(slot) = slot {
            self.tmpmd.release(&self.portals, slot);
        }
    }

    fn in_own_segment(&self, bytes: Src<'_>) -> MdPart<P::Md> {
        let part = self.rar().local(bytes);
        part.unwrap_or_else(|| unreachable!("what lies outside the segment has a TMPMD"))
    }
}

#[inline(always)]
pub(super) fn check_sizes(m: &Outgoing<'_>) {
    debug_assert!(
        m.args.len() <= MAX_ARGS
            && (m.category != Category::Medium || m.payload.len() <= MAX_MEDIUM)
    );
}
