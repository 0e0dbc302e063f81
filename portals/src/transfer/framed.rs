//! One framed message on the side of this process: its descriptor is held from START to END.
//!
//! Called by [`super::framer`] and, for the source of a put, by the put path. Invariant: while a
//! [`FramedTransfer`] exists, its descriptor counts as in use; [`NiState::transfer_end`] ends
//! both.

use core::ptr;
use core::sync::atomic::Ordering;

use super::bytes::{ByteRanges, copy_all, copy_own, own_ranges};
use crate::access_fault::AccessFault;
use crate::arena::hazard::{HazardWord, NO_MD};
use crate::arena::{IOVECS, doorbell};
use crate::deliver::{ClaimResult, FindResult, Matched, claim_local};
use crate::descriptor::record::{LocalMd, MdMemory};
use crate::descriptor::state::{self, Accepted};
use crate::descriptor::traits::Traits;
use crate::message::{MessageHeader, OpHalf, OpKind};
use crate::tables::NiState;
use crate::types::md_options::*;
use crate::types::*;
use sys::attach::AttachFailure;

/// The use of one descriptor of this process by one framed message: its START event has been
/// posted, its END event has not. The descriptor counts as in use (`PTL_MD_IN_USE`) until
/// [`NiState::transfer_end`].
#[derive(Debug)]
pub(crate) struct FramedTransfer {
    pub(crate) half: OpHalf,
    pub(crate) md: MdHandle,
    /// Offset in the descriptor, in bytes.
    pub(crate) offset: Size,
    /// Bytes accepted.
    pub(crate) mlength: Size,
    /// The message as events name it ([`Peers::as_posted`](crate::peer::Peers::as_posted)); of
    /// a REPLY, `initiator` is the target.
    pub(crate) header: MessageHeader,
    /// Whether an acknowledgement may be sent (arrival of a put: the descriptor lacks
    /// `ACK_DISABLE`).
    pub(crate) ack_allowed: bool,
    /// Sequence of the START event, or 0.
    pub(crate) link: Seq,
    /// The descriptor's memory when the operation was accepted: an update may replace it before
    /// the last byte has moved.
    pub(crate) memory: MdMemory,
    matched: TransferTarget,
}

/// The part of a [`Matched`] that a [`FramedTransfer`] keeps.
#[derive(Clone, Copy, Debug)]
struct TransferTarget {
    traits: Traits,
    eq_key: u64,
    threshold: i32,
}

impl NiState {
    /// Runs `action` while a hazard names a descriptor of ours; `None` if the handle is not
    /// valid.
    fn with_local<'a, R>(
        &'a self,
        md: MdHandle,
        action: impl FnOnce(&LocalMd<'a>) -> Option<R>,
    ) -> Option<R> {
        loop {
            let local = self.local(md).ok()?;
            let hold = self.peers.hold(HazardWord::own(local.index, local.index));
            if !local.unchanged() {
                hold.clear(false);
                continue;
            }
            let result = action(&local);
            hold.clear(true);
            doorbell::ring(self.peers.own.view.header());
            return result;
        }
    }

    /// Makes a transfer of a claimed descriptor of ours, and posts START. A hazard of the caller
    /// names the descriptor.
    pub(crate) fn transfer_begin(
        &self,
        matched: &Matched<'_>,
        header: &MessageHeader,
        half: OpHalf,
    ) -> FramedTransfer {
        let header = &self.peers.as_posted(header);
        let link = self.peers.post_start(&self.peers.own, matched, header, half);
        let record = &self.mds[matched.md as usize];
        record.pending.fetch_add(1, Ordering::Relaxed);
        state::join(matched.cell, matched.traits, &record.sharing);
        if let Some(eq) = matched.traits.eq() {
            self.eqs[eq as usize].transfers.fetch_add(1, Ordering::Relaxed);
        }
        FramedTransfer {
            half,
            md: MdHandle(matched.generation << 16 | matched.md),
            offset: matched.accepted.offset,
            mlength: matched.accepted.mlength,
            header: *header,
            ack_allowed: !matched.traits.has(ACK_DISABLE),
            link,
            memory: match half {
                OpHalf::Arrival(_) => record.memory(),
                // What the client names of its own.
                _ => MdMemory { whole: false, ..record.memory() },
            },
            matched: TransferTarget {
                traits: matched.traits,
                eq_key: matched.eq_key,
                threshold: matched.accepted.threshold,
            },
        }
    }

    /// The target's side of a framed message: matches it, claims its descriptor, posts START.
    /// `None`: dropped and counted, or a peer has damaged the words that led to the descriptor.
    pub(crate) fn arrival_begin(&self, header: &MessageHeader) -> Option<FramedTransfer> {
        let own_mds = [NO_MD; 2];
        let find = self.peers.find(&self.peers.own, header);
        let hold = self.peers.hold(match find {
            FindResult::Found(found) => {
                HazardWord::new(self.peers.index, found.md, own_mds[0], own_mds[1])
            }
            _ => HazardWord::own(own_mds[0], own_mds[1]),
        });
        let transfer = match self.peers.claim_found(&self.peers.own, header, find, &hold, own_mds)
        {
            ClaimResult::Matched(matched)
                if self.own_target(&matched, header.kind.needs()).is_some() =>
            {
                Some(self.transfer_begin(&matched, header, OpHalf::Arrival(header.kind)))
            }
            _ => {
                self.dropped(&self.peers.own, header.pt_index, header.match_bits);
                None
            }
        };
        hold.clear(true);
        doorbell::ring(self.peers.own.view.header());
        transfer
    }

    /// The initiator's side, when the first bytes of a reply arrive: claims the descriptor of
    /// the get, posts REPLY_START. `None`: the descriptor is not valid, inactive or too short;
    /// dropped and counted. `header` is the get's, with the target as `initiator`. `asked`: the
    /// descriptor counts it as a reply that is to come.
    pub(crate) fn reply_begin(
        &self,
        md: MdHandle,
        local_offset: Size,
        mlength: Size,
        header: &MessageHeader,
        asked: bool,
    ) -> Option<FramedTransfer> {
        let begin = |local: &LocalMd<'_>| {
            if local_offset.checked_add(mlength)? > local.length() {
                return None;
            }
            let matched = claim_local(local, local_offset, mlength)?;
            Some(self.transfer_begin(&matched, header, OpHalf::Reply))
        };
        let transfer = self.with_local(md, |local| {
            let transfer = begin(local);
            if asked {
                local.record.reply_is_over();
            }
            transfer
        });
        if transfer.is_none() {
            self.dropped(&self.peers.own, header.pt_index, header.match_bits);
        }
        transfer
    }

    /// The get of this descriptor was dropped: there is no reply.
    pub(crate) fn reply_fails(&self, md: MdHandle) {
        let _ = self.with_local(md, |local| {
            local.record.reply_is_over();
            Some(())
        });
    }

    /// As [`NiState::reply_begin`], before the bytes of a get begin to move by remote access.
    /// `fits` gets the pieces of memory that they will fill, unless the kernel must check them.
    /// `None`: they do not fit, or there would be no reply; nothing has changed.
    pub(crate) fn remote_reply_begin(
        &self,
        md: MdHandle,
        local_offset: Size,
        mlength: Size,
        header: &MessageHeader,
        fits: &dyn Fn(Option<usize>, &[MdIovec]) -> bool,
    ) -> Option<FramedTransfer> {
        self.with_local(md, |local| {
            if local_offset.checked_add(mlength)? > local.length() {
                return None;
            }
            let memory = MdMemory { whole: false, ..local.record.memory() };
            let mut pieces = [MdIovec { base: ptr::null_mut(), len: 0 }; IOVECS];
            let count = own_ranges(memory, local_offset, mlength).mapped(&mut pieces);
            if !fits(count, &pieces) {
                return None;
            }
            let matched = claim_local(local, local_offset, mlength)?;
            Some(self.transfer_begin(&matched, header, OpHalf::Reply))
        })
    }

    /// The initiator's side of an acknowledgement: claims the descriptor and posts ACK; if it is
    /// not valid, counts a drop. With `ok` false the put has failed. `header` is the put's, with
    /// the target as `initiator`.
    pub(crate) fn ack_arrived(
        &self,
        md: MdHandle,
        remote_offset: Size,
        mlength: Size,
        header: &MessageHeader,
        ok: bool,
    ) {
        let posted = self.peers.as_posted(header);
        let post = |local: &LocalMd<'_>| {
            self.peers.post_ack(local, remote_offset, mlength, &posted, ok).then_some(())
        };
        if self.with_local(md, post).is_none() {
            self.dropped(&self.peers.own, header.pt_index, header.match_bits);
        }
    }

    /// The descriptor of a transfer, which `pending` keeps.
    pub(crate) fn transfer_matched<'a>(&'a self, transfer: &FramedTransfer) -> Matched<'a> {
        let md = transfer.md.0 & 0xffff;
        let TransferTarget { traits, eq_key, threshold } = transfer.matched;
        Matched {
            md,
            cell: self.own_cell(md),
            traits,
            generation: transfer.md.0 >> 16,
            eq_key,
            accepted: Accepted { offset: transfer.offset, mlength: transfer.mlength, threshold },
            base: ptr::null_mut(),
        }
    }

    /// Posts END (and UNLINK, if this was the descriptor's last operation), and ends the use of
    /// the descriptor.
    pub(crate) fn transfer_end(&self, transfer: FramedTransfer, ok: bool) {
        let matched = self.transfer_matched(&transfer);
        // A process that removes the descriptor reads the hazards first and `pending` then: it
        // sees one of them until the last event is posted.
        let hold = self.peers.hold(HazardWord::own(matched.md, matched.md));
        let (own, header, record) =
            (&self.peers.own, &transfer.header, &self.mds[matched.md as usize]);
        let sequence =
            self.peers.post_end_only(own, &matched, header, transfer.half, transfer.link, ok);
        if state::part(matched.traits, &record.sharing) {
            self.peers.give_back(own, &matched, header, sequence);
        }
        if let Some(eq) = matched.traits.eq() {
            self.eqs[eq as usize].transfers.fetch_sub(1, Ordering::Release);
        }
        record.pending.fetch_sub(1, Ordering::Release);
        hold.clear(true);
        doorbell::ring(self.peers.own.view.header());
    }

    /// Copies bytes out of the memory of a transfer, `at` bytes from its start. False: the
    /// memory cannot be read.
    pub(crate) fn transfer_read(
        &self,
        transfer: &FramedTransfer,
        at: Size,
        to: &mut [u8],
    ) -> bool {
        if !inside(transfer, at, to.len()) {
            return false;
        }
        self.noted(transfer, copy_own(transfer.memory, transfer.offset + at, to, true))
    }

    /// The memory of a transfer, `length` bytes that begin `at` bytes from its start, if the
    /// kernel need not check them: how many pieces.
    pub(crate) fn transfer_pieces(
        &self,
        transfer: &FramedTransfer,
        at: Size,
        length: Size,
        pieces: &mut [MdIovec; IOVECS],
    ) -> Option<usize> {
        if transfer.memory.whole || !inside(transfer, at, length as usize) {
            return None;
        }
        own_ranges(transfer.memory, transfer.offset + at, length).mapped(pieces)
    }

    /// Copies bytes into the memory of a transfer, `at` bytes from its start.
    pub(crate) fn transfer_write(&self, transfer: &FramedTransfer, at: Size, from: &[u8]) -> bool {
        if !inside(transfer, at, from.len()) {
            return false;
        }
        let memory = own_ranges(transfer.memory, transfer.offset + at, from.len() as u64);
        let from = ByteRanges::one(from.as_ptr().cast_mut(), from.len() as u64);
        self.noted(transfer, copy_all(&from, &memory, 0))
    }

    /// Whether the bytes of a transfer were copied; reports that the kernel refused.
    fn noted(&self, transfer: &FramedTransfer, copied: Result<(), AttachFailure>) -> bool {
        if copied == Err(AttachFailure::Address) {
            let FramedTransfer { half, header, offset, mlength: length, .. } = *transfer;
            let address = (transfer.memory.start.addr() as u64).wrapping_add(offset);
            self.peers.report_fault(&match half {
                OpHalf::Arrival(kind) => AccessFault::Target {
                    put: kind == OpKind::Put,
                    initiator: self.peers.process_named(header.initiator, header.rlength),
                    target: self.peers.process(self.peers.index),
                    address,
                    length,
                },
                half => AccessFault::Initiator { put: half == OpHalf::Send, address, length },
            });
        }
        copied.is_ok()
    }

    /// Swaps the bytes of a get-put arrival, atomically with other get-puts: `bytes` is stored,
    /// and then holds what was there before.
    pub(crate) fn transfer_swap(&self, transfer: &FramedTransfer, bytes: &mut [u8]) -> bool {
        bytes.len() as u64 == transfer.mlength
            && self.swap_bytes(&self.peers.own, &self.transfer_matched(transfer), bytes)
    }
}

/// Whether these bytes belong to the transfer.
fn inside(transfer: &FramedTransfer, at: Size, length: usize) -> bool {
    at.checked_add(length as u64).is_some_and(|end| end <= transfer.mlength)
}
