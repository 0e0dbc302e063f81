//! Puts: data goes to the RAR of its target; the operation id travels in the match bits and comes back with the ACK,
//! which says that the data is there.
//!
//! The source is the segment itself (RARSRC), a bounce buffer (a ReqSB chunk) or a temporary descriptor (TMPMD).
//! A put takes its chunk or descriptor first and its send ticket last, and waits with SAFE polls only; it never waits
//! for a chunk.

use super::match_bits::{MessageKind, RmaBits};
use super::portals::Portals;
use super::queue::broken;
use super::rar::Rar;
use super::{CHUNK, Conduit, OpId, ResourceNeed, Upcall};
use crate::fault;

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

    /// Puts `n` bytes into the segment of `node`, to be in place when this returns; false, and nothing done, where the network
    /// cannot do that within the call.
    ///
    /// # Safety
    /// `src` must be readable for `n` bytes; `dest` must lie in the segment of `node`.
    #[inline]
    pub unsafe fn put_at_once(&self, node: u32, dest: *mut u8, src: *const u8, n: usize) -> bool {
        if !self.config.at_once || n > self.config.max_transfer {
            return false;
        }
        let (to, remote) = (self.peers[node as usize], self.rar().remote(node, dest, n));
        // SAFETY: as the caller vouches.
        unsafe {
            self.portals.put_at_once(
                [(src, n)],
                to,
                self.config.pt_rar,
                NOBODY.pack(MessageKind::Put),
                remote,
                0,
            )
        }
    }

    /// Puts `n` bytes into the segment of `node`. Each of its [`Conduit::fragments`] ends with [`Upcall::op_done`].
    /// Unless `bulk`, the source may be reused when the call returns; with `bulk`, when the operation is done.
    ///
    /// # Safety
    /// `src` must be readable for `n` bytes until then; `dest` must lie in the segment of `node`.
    #[allow(clippy::too_many_arguments)]
    pub unsafe fn put<U: Upcall>(
        &self,
        up: U,
        node: u32,
        dest: *mut u8,
        src: *const u8,
        n: usize,
        op: OpId,
        bulk: bool,
    ) {
        let rar = self.rar();
        let remote = rar.remote(node, dest, n);
        let src = if fault::on("flip_put") { flipped(src, n) } else { src };
        let mut at = 0;
        let mut left = 0;
        while at < n {
            let len = (n - at).min(self.config.max_transfer);
            // SAFETY: this piece lies in what the caller vouches for.
            left += u32::from(unsafe {
                self.put_fragment(up, rar, node, remote + at, src.add(at), len, op, bulk)
            });
            at += len;
        }
        if left != 0 {
            self.wait_local(up);
        }
    }

    /// Puts one piece; true if it has yet to tell us that its source may be reused.
    ///
    /// # Safety
    /// As [`Conduit::put`].
    #[allow(clippy::too_many_arguments)]
    #[inline]
    unsafe fn put_fragment<U: Upcall>(
        &self,
        up: U,
        rar: &Rar<P>,
        node: u32,
        remote: usize,
        src: *const u8,
        n: usize,
        op: OpId,
        bulk: bool,
    ) -> bool {
        let local = rar.local(src, n);
        // A short copy is cheaper than waiting for the source to be reusable.
        let bounce = n <= self.config.put_bounce && (local.is_none() || !bulk);
        let mut rma = RmaBits { op, local: None, chunk: 0 };
        let (md, offset, slot) = if let (true, Some(chunk)) =
            (bounce, bounce.then(|| self.reqsb.take()).flatten())
        {
            // SAFETY: a chunk is larger than any bounced put, we hold this one, and the source is readable.
            unsafe { core::ptr::copy_nonoverlapping(src, self.reqsb.at(chunk), n) };
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
                // SAFETY: the caller keeps the source until the ACK; this descriptor is only a source. Its events are
                // SEND and ACK.
                (
                    unsafe { self.tmpmd.bind(&self.portals, slot, src.cast_mut(), n, 2) },
                    0,
                    Some(slot),
                )
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
                self.peers[node as usize],
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

/// Stands for an operation where no event will ask for it.
pub(super) const NOBODY: RmaBits = RmaBits { op: OpId(0), local: None, chunk: 0 };

/// A copy with one byte wrong, never freed: a planted fault.
fn flipped(src: *const u8, n: usize) -> *const u8 {
    if n == 0 {
        return src;
    }
    // SAFETY: readable for n bytes, as the caller of `put` vouches.
    let mut copy = unsafe { core::slice::from_raw_parts(src, n) }.to_vec();
    copy[n / 2] ^= 1;
    copy.leak().as_ptr()
}
