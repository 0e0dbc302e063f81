//! Memory descriptors: bind, attach, unlink.
//!
//! Called by the users of this crate; all three hold the owner lock. Invariant: a descriptor
//! becomes reachable for peers only after its record and its cell are complete.

use super::NetworkInterface;
use crate::types::*;

impl NetworkInterface {
    /// Whether the handle is valid.
    pub fn has_md(&self, md: MdHandle) -> bool {
        self.state.local(md).is_ok_and(|local| !self.state.unlinked_itself(&local))
    }

    /// `PtlMDBind`
    ///
    /// # Safety
    /// As for [`NetworkInterface::md_attach`].
    pub unsafe fn md_bind(
        &self,
        md: &MemoryDescriptor,
        unlink: Unlink,
    ) -> Result<MdHandle, PtlError> {
        let owner = &mut *self.state.owner.lock();
        // SAFETY: with IOVEC, the entries of `md` are readable during this call (`# Safety`).
        let examined = unsafe { self.state.examine(md, unlink == Unlink::Unlink, false)? };
        self.state.create(owner, md, examined, 0, unlink)
    }

    /// `PtlMDAttach`
    ///
    /// # Safety
    /// The memory of `md` must stay readable and writable until the descriptor is unlinked or
    /// its UNLINK event read. Its vector must be readable during the call.
    pub unsafe fn md_attach(
        &self,
        me: MeHandle,
        md: &MemoryDescriptor,
        unlink: Unlink,
    ) -> Result<MdHandle, PtlError> {
        let owner = &mut *self.state.owner.lock();
        // SAFETY: with IOVEC, the entries of `md` are readable during this call (`# Safety`).
        let examined = unsafe { self.state.examine(md, unlink == Unlink::Unlink, true)? };
        let me_index = self.state.me_lookup(owner, me)?;
        if owner.mes[me_index as usize].md.is_some() {
            return Err(PtlError::MeInUse);
        }
        let handle = self.state.create(owner, md, examined, me_index + 1, unlink)?;
        self.state.me_set_md(owner, me_index, handle.0 & 0xffff);
        Ok(handle)
    }

    /// `PtlMDUnlink`
    pub fn md_unlink(&self, md: MdHandle) -> Result<(), PtlError> {
        let owner = &mut *self.state.owner.lock();
        let local = self.state.local(md)?;
        if self.state.unlinked_itself(&local) {
            self.state.reap(owner, local.index);
            return Err(PtlError::MdInvalid);
        }
        self.state.try_remove(owner, &local, false)
    }
}
