//! The access control list: which processes an entry admits, guarded by a version per entry.
//!
//! `PtlACEntry` writes an entry, every delivery reads one. Invariant: an entry counts only if
//! its version is even and the same before and after it was read (a seqlock). When an interface
//! opens, entry 0 admits the processes of the same user and job to every portal table entry. The
//! other entries admit no process.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use super::{AcEntry, AcWords, pack_id};
use crate::message::MessageHeader;
use crate::types::*;

/// The words of an entry that admits such processes.
pub(crate) fn admission(match_id: PtlProcessId, uid: Uid, jid: Jid, pt_index: PtIndex) -> AcWords {
    let ids = u64::from(uid) << 32 | u64::from(jid);
    AcWords { process: pack_id(match_id), ids, pt_index, valid: 1 }
}

/// Writes an entry. The caller is the owner and holds the owner lock; `version` is its private
/// copy of the entry's version.
pub(crate) fn write(entry: &AcEntry, version: &AtomicU64, words: &AcWords) {
    let odd = version.load(Ordering::Relaxed) + 1;
    // See `peer::versions`.
    version.store(odd, Ordering::Relaxed);
    entry.version.store(odd, Ordering::Release);
    // A reader that sees any store below sees the odd version at its second look.
    fence(Ordering::Release);
    words.store(entry);
    entry.version.store(odd + 1, Ordering::Release);
    version.store(odd + 1, Ordering::Release);
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
