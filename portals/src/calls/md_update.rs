//! `PtlMDUpdate`: replaces a descriptor if the given event queue is empty, or unconditionally.
//!
//! While it is changed, new operations cannot start on it (phase CLOSING; if it is attached, the
//! version of its list is odd). Invariant: operations that move bytes go on with the descriptor
//! that they have read; operations in flight stay counted.

use core::sync::atomic::Ordering;

use super::NetworkInterface;
use crate::descriptor::record::{LocalMd, control};
use crate::descriptor::state::{self, threshold_of};
use crate::tables::{Examined, NiState, OldPieces, OwnerTables};
use crate::types::*;
use sys::clock;

/// How long an unconditional update waits for operations that are moving bytes.
const UNUSED_WITHIN_NS: u64 = 1_000_000_000;
/// How long its first wait is.
const FIRST_WAIT_NS: u64 = 10_000;

impl NetworkInterface {
    /// `PtlMDUpdate`: returns the present state in `old`; then, if `test_eq` holds no unread
    /// event and none is about to be posted, replaces it by `new`. With [`EqHandle::NONE`] it
    /// replaces in any case, but waits for operations that are moving bytes. If one of them does
    /// not end within a second, since its initiator is stopped or dead, the result is
    /// `PTL_MD_NO_UPDATE`. It is so in both cases while the reply to a framed get is to come.
    ///
    /// New operations must wait meanwhile. One of them may be what the update waits for: a put
    /// from this descriptor that looks at its list. Two updates of two processes may wait for each
    /// other so. Hence the wait is a series of short ones, each longer than the one before.
    /// Between two of them everything is as before the call.
    ///
    /// # Safety
    /// As for [`NetworkInterface::md_attach`]; with [`EqHandle::NONE`], the old memory must stay
    /// valid until operations that have begun are complete.
    pub unsafe fn md_update(
        &self,
        md: MdHandle,
        mut old: Option<&mut MemoryDescriptor>,
        new: Option<&MemoryDescriptor>,
        test_eq: EqHandle,
    ) -> Result<(), PtlError> {
        let end = clock::now_ns().saturating_add(UNUSED_WITHIN_NS);
        let mut wait = FIRST_WAIT_NS;
        loop {
            // SAFETY: the same contract.
            let done = unsafe { self.try_update(md, old.as_deref_mut(), new, test_eq, wait)? };
            if done {
                return Ok(());
            }
            let left = end.saturating_sub(clock::now_ns());
            if left == 0 {
                return Err(PtlError::MdNoUpdate);
            }
            self.state.wait_unused(md.0 & 0xffff, true, wait.min(left));
            wait = (wait * 2).min(left);
        }
    }

    /// [`NetworkInterface::md_update`] with a wait of `wait_ns` nanoseconds at most. False: an
    /// operation still moves bytes, and nothing has changed.
    ///
    /// # Safety
    /// As for [`NetworkInterface::md_update`].
    unsafe fn try_update(
        &self,
        md: MdHandle,
        old: Option<&mut MemoryDescriptor>,
        new: Option<&MemoryDescriptor>,
        test_eq: EqHandle,
        wait_ns: u64,
    ) -> Result<bool, PtlError> {
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
        let mut moves_bytes = false;
        // A reply is written to the memory that its descriptor has then. Acquire pairs with the
        // Release in `reply_is_over`. Read after the hazards: a get is counted under one.
        let awaits_reply = || local.record.asked.load(Ordering::Acquire) != 0;
        let free = match (tested, &examined) {
            (Some(eq), Some(_)) => {
                // First the hazards, then the queue: an operation that has cleared its hazard
                // has posted its events.
                !self.state.busy(local.index, me.is_some())
                    && !awaits_reply()
                    && !self.state.eq_about_to_fill(eq)
                    && self.state.eq_is_empty(eq)
            }
            // Operations that are moving bytes rely on what they have read. Framed messages have
            // their own copy.
            (None, Some(_)) if !local.record.exposed.load(Ordering::Relaxed) => {
                moves_bytes = !self.state.wait_unused(local.index, me.is_some(), wait_ns);
                !moves_bytes && !awaits_reply()
            }
            (None, Some(_)) => false,
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
            _ => return Ok(true),
        };
        let control = if result.is_ok() { control::updated(local.control) } else { local.control };
        local.record.control.store(control & !control::PHASE | control::LIVE, Ordering::Release);
        if let Some(change) = change {
            self.state.pt_end_change(change);
        }
        match result {
            Err(PtlError::MdNoUpdate) if moves_bytes => Ok(false),
            result => result.map(|()| true),
        }
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
        // Framed messages go on with the old queue, which counts them, and with the old pieces.
        // What follows are the copies in the arena, which only deliverers read: no hazard names
        // the descriptor.
        if let Some(eq) = old_eq {
            self.eq_release(owner, eq);
        }
        if !old_pieces.is_null() {
            owner.old_pieces.push(OldPieces { md: local.index, pieces: old_pieces });
        }
        self.drop_old_pieces(owner);
        if old_iov != 0 {
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
    use crate::arena::hazard::HazardWord;
    use crate::message::{MessageHeader, OpKind};
    use alloc::vec::Vec;
    use std::thread;

    const PT: u32 = 4;

    /// A descriptor without bytes.
    fn md(eq: EqHandle) -> MemoryDescriptor {
        MemoryDescriptor {
            start: core::ptr::null_mut(),
            length: 0,
            threshold: THRESH_INF,
            max_size: 0,
            options: md_options::OP_PUT | md_options::IOVEC,
            user_ptr: core::ptr::null_mut(),
            eq,
        }
    }

    fn update(ni: &NetworkInterface, handle: MdHandle, new: &MemoryDescriptor) {
        // SAFETY: descriptors without bytes, here and below.
        unsafe { ni.md_update(handle, None, Some(new), EqHandle::NONE) }.unwrap();
    }

    fn attach(ni: &NetworkInterface, md: &MemoryDescriptor) -> MdHandle {
        let me = ni.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After);
        // SAFETY: as in `update`.
        unsafe { ni.md_attach(me.unwrap(), md, Unlink::Retain) }.unwrap()
    }

    /// Updates that go from queue to queue keep one entry of each, until the descriptor is
    /// unlinked.
    #[test]
    fn earlier_queues_are_kept_once() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let queues = [(); 2].map(|()| ni.eq_alloc(4, None).unwrap());
        // SAFETY: as in `update`.
        let handle = unsafe { ni.md_bind(&md(queues[0]), Unlink::Retain) }.unwrap();
        for i in 1..20 {
            update(&ni, handle, &md(queues[i % 2]));
        }
        assert_eq!(ni.state.owner.lock().earlier_queues.len(), 2);
        ni.md_unlink(handle).unwrap();
        assert!(ni.state.owner.lock().earlier_queues.is_empty());
    }

    /// While a framed message is under way, updates keep what it uses, and no longer.
    #[test]
    fn what_a_framed_message_uses_is_freed_after_it() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let queues = ni.limits().max_eqs;
        let allocate = || ni.eq_alloc(4, None);
        let all: Vec<_> = (0..queues).map(|_| allocate().unwrap()).collect();
        let target = attach(&ni, &md(all[0]));
        let header = MessageHeader {
            kind: OpKind::Put,
            initiator: ni.state.peers.index,
            uid: ni.state.uid,
            jid: ni.state.jid,
            pt_index: PT,
            ac_index: 0,
            match_bits: 0,
            remote_offset: 0,
            rlength: 0,
            hdr_data: 0,
        };
        let message = ni.state.arrival_begin(&header).unwrap();
        let arena = || ni.state.owner.lock().next_byte;
        update(&ni, target, &md(all[0]));
        let used = arena();
        for eq in [all[0], all[1], all[1]] {
            update(&ni, target, &md(eq));
        }
        assert_eq!(arena(), used, "the copies in the arena are reused");
        assert_eq!(ni.state.owner.lock().old_pieces.len(), 4);
        ni.eq_free(all[0]).unwrap();
        assert_eq!(allocate(), Err(PtlError::NoSpace), "the message will post to it");
        ni.state.transfer_end(message, true);
        ni.eq_free(allocate().unwrap()).unwrap();
        assert!(ni.state.owner.lock().old_pieces.is_empty());
        ni.md_unlink(target).unwrap();
        for &eq in &all[1..] {
            ni.eq_free(eq).unwrap();
        }
        assert!((0..queues).all(|_| allocate().is_ok()));
    }

    /// A put from a descriptor may wait for the list that the descriptor is attached to, while an
    /// update of the descriptor waits for the put.
    #[test]
    fn an_update_lets_a_put_go_on_that_waits_for_the_list() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let target = attach(&ni, &md(EqHandle::NONE));
        let list = &ni.state.peers.own.view.pt(PT).unwrap().version;
        let before = list.load(Ordering::Acquire);
        let own = target.0 & 0xffff;
        let hold = ni.state.peers.hold(HazardWord::own(own, own));
        thread::scope(|threads| {
            threads.spawn(|| update(&ni, target, &md(EqHandle::NONE)));
            // The put waits until the version is even again.
            while list.load(Ordering::Acquire) < before + 2 {
                thread::yield_now();
            }
            hold.clear(true);
        });
    }
}
