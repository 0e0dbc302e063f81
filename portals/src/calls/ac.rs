//! Access control: `PtlACEntry` writes one entry.
//!
//! Invariant: the owner lock is held during the write; readers use the entry's version
//! ([`access`]).

use super::NetworkInterface;
use crate::arena::access;
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
        if ac_index > self.state.limits.max_ac_index {
            return Err(PtlError::AcIndexInvalid);
        }
        if pt_index != PT_INDEX_ANY && pt_index > self.state.limits.max_pt_index {
            return Err(PtlError::PtIndexInvalid);
        }
        let words = access::admission(match_id, uid, jid, pt_index);
        self.state.admit(&mut self.state.owner.lock(), ac_index, words)
    }
}
