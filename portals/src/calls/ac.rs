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
        let _owner = self.state.owner.lock();
        let entry = self.state.peers.own.view.ac(ac_index).ok_or(PtlError::AcIndexInvalid)?;
        if pt_index != PT_INDEX_ANY && pt_index > self.state.limits.max_pt_index {
            return Err(PtlError::PtIndexInvalid);
        }
        access::write(entry, match_id, uid, jid, pt_index);
        Ok(())
    }
}
