//! The access control list. Each entry is guarded by a version of its own, like a portal table entry.
//!
//! When an interface opens, entry 0 admits the processes of the same user and job to every portal table
//! entry; the other entries admit nobody.

use core::sync::atomic::{Ordering, fence};

use crate::arena::{AcEntry, pack_id};
use crate::deliver::MessageHeader;
use crate::ni::NetworkInterface;
use crate::types::*;

impl NetworkInterface {
    /// `PtlACEntry`
    pub fn ac_entry(
        &self,
        ac_index: AcIndex,
        match_id: PtlProcessId,
        uid: Uid,
        jid: Jid,
        pt_index: PtIndex,
    ) -> Result<(), PtlError> {
        let _owner = self.owner.lock();
        let entry = self.own.view.ac(ac_index).ok_or(PtlError::AcIndexInvalid)?;
        if pt_index != PT_INDEX_ANY && pt_index > self.limits.max_pt_index {
            return Err(PtlError::PtIndexInvalid);
        }
        let even = entry.version.load(Ordering::Relaxed) & !1;
        entry.version.store(even + 1, Ordering::Relaxed);
        // Who sees any change below sees the odd version at its second look.
        fence(Ordering::Release);
        entry.process.store(pack_id(match_id), Ordering::Relaxed);
        entry.ids.store(u64::from(uid) << 32 | u64::from(jid), Ordering::Relaxed);
        entry.pt_index.store(pt_index, Ordering::Relaxed);
        entry.valid.store(1, Ordering::Relaxed);
        entry.version.store(even + 2, Ordering::Release);
        Ok(())
    }
}

/// Whether an entry admits a message. `None` if its owner is changing it right now.
#[inline(always)]
pub(crate) fn admits(
    entry: &AcEntry,
    header: &MessageHeader,
    initiator: PtlProcessId,
) -> Option<bool> {
    // Acquire pairs with the Release that made the version even.
    let version = entry.version.load(Ordering::Acquire);
    let process = entry.process.load(Ordering::Relaxed);
    let ids = entry.ids.load(Ordering::Relaxed);
    let pt_index = entry.pt_index.load(Ordering::Relaxed);
    let valid = entry.valid.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    if version & 1 != 0 || entry.version.load(Ordering::Relaxed) != version {
        return None;
    }
    Some(
        valid != 0
            && (pt_index == PT_INDEX_ANY || pt_index == header.pt_index)
            && fits((ids >> 32) as u32, header.uid)
            && fits(ids as u32, header.jid)
            && fits_id(process, initiator),
    )
}

#[inline(always)]
fn fits(pattern: u32, value: u32) -> bool {
    pattern == u32::MAX || pattern == value
}

/// Whether a process is the one that a packed id names, wild cards included.
#[inline(always)]
pub(crate) fn fits_id(pattern: u64, id: PtlProcessId) -> bool {
    const {
        assert!(
            UID_ANY == u32::MAX
                && JID_ANY == u32::MAX
                && NID_ANY == u32::MAX
                && PID_ANY == u32::MAX
        )
    };
    fits((pattern >> 32) as u32, id.nid) && fits(pattern as u32, id.pid)
}
