//! Puts: data goes to the RAR of its target. The operation id travels in the match bits and
//! returns with the ACK, which says that the data has arrived.
//!
//! The source is the segment itself (RARSRC), a bounce buffer (a ReqSB chunk) or a temporary
//! descriptor (TMPMD). A put takes its chunk or descriptor first and its send ticket last, and
//! waits with SAFE polls only; it never waits for a chunk.

use super::match_bits::{MessageKind, RmaBits};
use super::portals::Portals;
use super::queue::broken;
use super::{CHUNK, Conduit, OpId, ResourceNeed, Upcall};
use crate::client_memory::{Dst, RemoteRange, Src};
use crate::fault;
use crate::rank::JobRank;

impl<P: Portals> Conduit<P> {
    /// How many messages, and so completions, a put or get of `n` bytes takes; 0 for none.
    #[inline]
    pub fn fragments(&self, n: usize) -> u32 {
        if n <= self.config.max_transfer {
            u32::from(n != 0)
        } else {
            n.div_ceil(self.config.max_transfer) as u32
        }
    }

    /// Puts to a segment, to be there when this returns; false, and nothing done, where the
    /// network cannot do that within the call.
    #[inline]
    pub fn put_at_once(&self, dst: RemoteRange, src: Src<'_>) -> bool {
        if !self.config.at_once || src.len() > self.config.max_transfer {
            return false;
        }
        // SAFETY: the source is readable, and the call does not keep it.
        unsafe {
            self.portals.put_at_once(
                [(src.as_ptr(), src.len())],
                self.peers[dst.rank().index()],
                self.config.pt_rar,
                NO_OPERATION.pack(MessageKind::Put),
                dst.offset(),
                0,
            )
        }
    }

    /// Puts to a segment. Each of the [`Conduit::fragments`] ends with [`Upcall::op_done`]. The
    /// source may be reused when this returns.
    pub fn put<U: Upcall>(&self, up: U, dst: RemoteRange, src: Src<'_>, op: OpId) {
        self.put_fragments(up, dst, src, op, false);
    }

    /// As [`Conduit::put`], but the source is read until the operation is done.
    pub fn put_bulk<U: Upcall>(&self, up: U, dst: RemoteRange, src: Src<'static>, op: OpId) {
        self.put_fragments(up, dst, src, op, true);
    }

    /// Puts; with `bulk`, the caller has a source that stays.
    #[inline]
    fn put_fragments<U: Upcall>(
        &self,
        up: U,
        dst: RemoteRange,
        src: Src<'_>,
        op: OpId,
        bulk: bool,
    ) {
        let n = src.len();
        let src = if fault::on("flip_put") && n != 0 { flipped(src) } else { src };
        let mut at = 0;
        let mut left = 0;
        while at < n {
            let len = (n - at).min(self.config.max_transfer);
            left += u32::from(self.put_fragment(
                up,
                (dst.rank(), dst.offset() + at),
                src.part(at, len),
                op,
                bulk,
            ));
            at += len;
        }
        if left != 0 {
            self.wait_local(up);
        }
    }

    /// Puts one piece to an offset in the segment of a rank; true if the event that its source
    /// may be reused is still to come.
    #[inline]
    fn put_fragment<U: Upcall>(
        &self,
        up: U,
        (rank, remote): (JobRank, usize),
        src: Src<'_>,
        op: OpId,
        bulk: bool,
    ) -> bool {
        let (rar, n) = (self.rar(), src.len());
        let local = rar.local(src.as_ptr(), n);
        // A short copy is cheaper than waiting for the source to be reusable.
        let bounce = n <= self.config.put_bounce && (local.is_none() || !bulk);
        let mut rma = RmaBits { op, local: None, chunk: 0 };
        let (md, offset, slot) = if let (true, Some(chunk)) =
            (bounce, bounce.then(|| self.reqsb.take()).flatten())
        {
            // SAFETY: a chunk is larger than any bounced put, and this thread holds this one.
            unsafe { Dst::new(self.reqsb.at(chunk), n) }.copy_from(src);
            rma.chunk = chunk;
            (self.reqsb.md, chunk as usize * CHUNK, None)
        } else {
            rma.local = (!bulk).then(|| up.thread() as u8);
            if let Some(offset) = local {
                (rar.src, offset, None)
            } else {
                let slot =
                    self.wait_safe(up, ResourceNeed::of(&"a put for a memory descriptor"), || {
                        self.tmpmd.take()
                    });
                let start = src.as_ptr().cast_mut();
                // SAFETY: the source stays until the ACK with `bulk`, otherwise until
                // `wait_local` has seen SEND. The descriptor is only read. Its events are SEND
                // and ACK.
                let md = unsafe { self.tmpmd.bind(&self.portals, slot, start, n, 2) };
                (md, 0, Some(slot))
            }
        };
        self.wait_safe(up, ResourceNeed::of(&"a put for a send ticket"), || self.tickets.take(1));
        if rma.local.is_some() {
            self.expect_local(up);
        }
        self.portals
            .put(
                md,
                offset,
                n,
                true,
                self.peers[rank.index()],
                self.config.pt_rar,
                rma.pack(MessageKind::Put),
                remote,
                0,
            )
            .unwrap_or_else(|e| broken(e));
        if let Some(slot) = slot {
            self.tmpmd.done(&self.portals, slot);
        }
        rma.local.is_some()
    }
}

/// Stands for an operation where no event will need one.
pub(super) const NO_OPERATION: RmaBits = RmaBits { op: OpId(0), local: None, chunk: 0 };

/// A copy with one byte wrong, never freed: a planted fault.
fn flipped(src: Src<'_>) -> Src<'static> {
    let mut copy = alloc::vec![0; src.len()];
    Dst::from(&mut copy[..]).copy_from(src);
    copy[src.len() / 2] ^= 1;
    Src::from(&*copy.leak())
}
