//! `PtlMDUpdate`: replaces a descriptor if the given event queue is empty, or unconditionally.
//!
//! While it is changed, new operations cannot start on it (phase CLOSING; if it is attached, the
//! version of its list is odd). Invariant: operations that move bytes go on with the descriptor
//! that they have read; operations in flight stay counted.

use alloc::boxed::Box;
use core::sync::atomic::Ordering;

use super::NetworkInterface;
use crate::descriptor::record::{LocalMd, control};
use crate::descriptor::state::{self, threshold_of};
use crate::tables::{Examined, NiState, OldPieces, OwnerTables};
use crate::types::*;

impl NetworkInterface {
    /// `PtlMDUpdate`: returns the present state in `old`; then, if `test_eq` holds no unread
    /// event and none is about to be posted, replaces it by `new`. With [`EqHandle::NONE`] it
    /// replaces in any case, but waits for operations that are moving bytes. If one of them does
    /// not end within a second, since its initiator is stopped or dead, the result is
    /// `PTL_MD_NO_UPDATE`.
    ///
    /// # Safety
    /// As for [`NetworkInterface::md_attach`]; with [`EqHandle::NONE`], the old memory must stay
    /// valid until operations that have begun are complete.
    pub unsafe fn md_update(
        &self,
        md: MdHandle,
        old: Option<&mut MemoryDescriptor>,
        new: Option<&MemoryDescriptor>,
        test_eq: EqHandle,
    ) -> Result<(), PtlError> {
        let owner = &mut *self.state.owner.lock();
        let local = self.state.local(md)?;
        if self.state.unlinked_itself(&local) {
            return Err(PtlError::MdInvalid);
        }
        let tested = match test_eq {
            EqHandle::NONE => None,
            eq => Some(self.state.eq_index(eq)?),
        };
        let me = local.record.me.load(Ordering::Relaxed).checked_sub(1);
        let unlink = local.record.unlink.load(Ordering::Relaxed);
        let examined = match new {
            // SAFETY: with IOVEC, the entries of `new` are readable during this call (`# Safety`).
            Some(new) => Some(unsafe { self.state.examine(new, unlink, me.is_some())? }),
            None => None,
        };
        let change = match (&examined, me) {
            (Some(_), Some(me)) => Some(self.state.pt_begin_change(owner.mes[me as usize].pt)),
            _ => None,
        };
        if examined.is_some() {
            local
                .record
                .control
                .swap(local.control & !control::PHASE | control::CLOSING, Ordering::SeqCst);
        }
        // From here on no new operation can use the descriptor, if it is to be replaced.
        let free = match (tested, &examined) {
            (Some(eq), Some(_)) => {
                // First the hazards, then the queue: an operation that has cleared its hazard
                // has posted its events.
                !self.state.busy(local.index, me.is_some())
                    && !self.state.eq_about_to_fill(eq)
                    && self.state.eq_is_empty(eq)
            }
            // Operations that are moving bytes rely on what they have read. Framed messages have
            // their own copy.
            (None, Some(_)) => {
                !local.record.exposed.load(Ordering::Relaxed)
                    && self.state.wait_unused(local.index, me.is_some())
            }
            (_, None) => true,
        };
        if let Some(old) = old {
            let state = local.cell.state.0.load(Ordering::Acquire);
            *old = self.state.snapshot(local.record, threshold_of(local.traits(), state));
        }
        let result = match (new, examined) {
            // A delivery that has just ended may have been its last.
            (Some(_), Some(_)) if self.state.unlinked_itself(&local) => Err(PtlError::MdInvalid),
            (Some(new), Some(examined)) if free => {
                self.state.replace(owner, &local, new, examined)
            }
            (Some(_), Some(_)) => Err(PtlError::MdNoUpdate),
            _ => return Ok(()),
        };
        let control = if result.is_ok() { control::updated(local.control) } else { local.control };
        local.record.control.store(control & !control::PHASE | control::LIVE, Ordering::Release);
        if let Some(change) = change {
            self.state.pt_end_change(change);
        }
        result
    }
}

impl NiState {
    /// The second half of an update. No new operation can use the descriptor.
    fn replace(
        &self,
        owner: &mut OwnerTables,
        local: &LocalMd<'_>,
        new: &MemoryDescriptor,
        examined: Examined,
    ) -> Result<(), PtlError> {
        let record = local.record;
        let old_eq = local.traits().eq();
        let old_pieces = record.pieces.load(Ordering::Relaxed);
        let old_iov = owner.written[local.index as usize].words.iov;
        let old_queue = EqHandle(record.eq.load(Ordering::Relaxed));
        let fresh = examined.state;
        self.write(owner, local.index, new, examined)?;
        let earlier = (local.index, old_queue);
        if old_eq.is_some() && old_queue != new.eq && !owner.earlier_queues.contains(&earlier) {
            owner.earlier_queues.push(earlier);
        }
        // Framed messages go on using the old pieces and the old queue, which stay until the
        // interface is closed.
        let in_use = record.pending.load(Ordering::Acquire) != 0;
        if let Some(eq) = old_eq
            && !in_use
        {
            self.eq_release(owner, eq);
        }
        if !old_pieces.is_null() {
            if in_use {
                owner.old_pieces.push(OldPieces(old_pieces));
            } else {
                // SAFETY: made by `Box::into_raw` in `write`, replaced just now, and unused.
                drop(unsafe { Box::from_raw(old_pieces) });
            }
        }
        if old_iov != 0 && !in_use {
            owner.free_iovs.push(old_iov);
        }
        let mut now = local.cell.state.0.load(Ordering::Relaxed);
        // Operations in flight stay counted: each will still give its claim back.
        while let Err(other) = local.cell.state.0.compare_exchange_weak(
            now,
            fresh | now & state::FLIGHTS,
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            now = other;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Updates that go from queue to queue keep one entry of each, until the descriptor is
    /// unlinked.
    #[test]
    fn earlier_queues_are_kept_once() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let queues = [(); 2].map(|()| ni.eq_alloc(4, None).unwrap());
        let md = |eq| MemoryDescriptor {
            start: core::ptr::null_mut(),
            length: 0,
            threshold: THRESH_INF,
            max_size: 0,
            options: 0,
            user_ptr: core::ptr::null_mut(),
            eq,
        };
        // SAFETY: descriptors without bytes, here and below.
        let handle = unsafe { ni.md_bind(&md(queues[0]), Unlink::Retain) }.unwrap();
        for i in 1..20 {
            let new = md(queues[i % 2]);
            // SAFETY: as above.
            unsafe { ni.md_update(handle, None, Some(&new), EqHandle::NONE) }.unwrap();
        }
        assert_eq!(ni.state.owner.lock().earlier_queues.len(), 2);
        ni.md_unlink(handle).unwrap();
        assert!(ni.state.owner.lock().earlier_queues.is_empty());
    }
}
