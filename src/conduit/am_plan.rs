//! How an active message travels: its form, and what that needs.
//!
//! Called by `reply_send`, and by `request_send` unless the payload is in the outbox. Puts the
//! payload of a Long ahead of its header, by a copy to a cross-mapped target. To others it is a
//! put, if the network completes that within the call.
//! Invariant: the body of a plan fits one chunk, and its credits are no more than any sender can
//! have.

use super::am_body::{DESTINATION_BYTES, addressed_bytes, args_bytes};
use super::credits;
use super::match_bits::{AmForm, AmHeader, DESTINATIONS, EXTENTS};
use super::portals::{Direct, InlineBody, Portals};
use super::{CHUNK, Category, Conduit, MAX_ARGS, Outgoing};
use crate::rank::JobRank;

/// How a message travels.
#[derive(Clone, Copy)]
pub(super) struct SendPlan {
    pub(super) form: AmForm,
    /// Bytes of its body.
    pub(super) len: usize,
    /// Of a Long, where its payload is in the segment of the target; if it is empty, the address
    /// that the client named. Of [`AmForm::Outbox`], where it is in the library memory of this
    /// process.
    pub(super) offset: u64,
}

impl SendPlan {
    #[inline(always)]
    pub(super) fn new(form: AmForm, len: usize, offset: u64) -> SendPlan {
        SendPlan { form, len, offset }
    }

    /// Of a Long whose payload is at its destination.
    #[inline(always)]
    pub(super) fn placed(m: &Outgoing<'_>) -> SendPlan {
        SendPlan::new(
            AmForm::Placed,
            args_bytes(m.args.len()) + DESTINATION_BYTES,
            m.to.offset() as u64,
        )
    }
}

impl<P: Portals> Conduit<P> {
    /// How a message travels whose payload is not in the outbox. Puts the payload of a Long ahead
    /// where that is done within the call.
    #[inline(always)]
    pub(super) fn plan(&self, rank: JobRank, m: &Outgoing<'_>) -> SendPlan {
        let (args, n) = (args_bytes(m.args.len()), m.payload.len());
        match m.category {
            Category::Short => SendPlan::new(AmForm::Short, args, 0),
            Category::Medium => SendPlan::new(AmForm::Medium, args + n, 0),
            Category::Long => self.plan_long(rank, m),
        }
    }

    /// How a Long travels. The header of one that lands has space for destinations below
    /// [`DESTINATIONS`], that of one whose payload is put ahead for lengths below [`EXTENTS`].
    #[inline(always)]
    fn plan_long(&self, rank: JobRank, m: &Outgoing<'_>) -> SendPlan {
        let (args, n) = (args_bytes(m.args.len()), m.payload.len());
        if n == 0 {
            // Nothing to send apart.
            return SendPlan::new(AmForm::Packed, args + DESTINATION_BYTES, m.address as u64);
        }
        let offset = m.to.offset() as u64;
        if self.config.at_once {
            let landing = SendPlan::new(AmForm::Landing, args + n, offset);
            if Self::fits_inline(landing.form, landing.len)
                && n <= self.config.packed_limit
                && rank != self.me
                && offset < DESTINATIONS
            {
                return landing;
            }
            if (n as u64) < EXTENTS {
                let put_ahead = match m.to.mapped() {
                    Some(to) => {
                        to.copy_from(m.payload);
                        true
                    }
                    None => self.put_at_once(m.to, m.payload),
                };
                // The header is published after the payload.
                if put_ahead {
                    return SendPlan::placed(m);
                }
            }
        }
        let packed = addressed_bytes(args, n);
        if n <= self.config.packed_limit && packed <= CHUNK {
            SendPlan::new(AmForm::Packed, packed, offset)
        } else {
            SendPlan::new(AmForm::Unpacked, args, offset)
        }
    }

    /// Whether a message may travel in its event with its body. One that needs no body has none.
    #[inline(always)]
    pub(super) fn fits_inline(form: AmForm, len: usize) -> bool {
        P::Direct::INLINES
            && len <= size_of::<InlineBody>()
            && match form {
                AmForm::Short | AmForm::Outbox => len != 0,
                AmForm::Unpacked => false,
                _ => true,
            }
    }
}

/// [`AmHeader::extent`] of all forms but [`AmForm::Unpacked`].
#[inline(always)]
pub(super) fn extent(form: AmForm, offset: u64, m: &Outgoing<'_>) -> u64 {
    match form {
        AmForm::Landing => AmHeader::landing(m.payload.len(), offset),
        AmForm::Outbox => AmHeader::stashed(m.payload.len(), offset),
        _ => m.payload.len() as u64,
    }
}

/// Credits that a request uses: its header's, and one for the event of a Long's data.
#[inline(always)]
pub(super) fn credits_for(plan: SendPlan) -> u32 {
    const { assert!(args_bytes(MAX_ARGS) <= credits::CREDIT_BYTES) };
    match plan.form {
        AmForm::Short => 1,
        form => credits::needed(plan.len) + u32::from(form == AmForm::Unpacked),
    }
}
