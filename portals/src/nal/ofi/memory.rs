//! Memory that peers may use, and operations on that of peers.
//!
//! The part of [`super::endpoint`] that [`super::remote`] calls, under the same lock. Invariants:
//! a region stays registered until the endpoints are closed. A slot belongs to one operation until
//! the library has reported that operation.

use alloc::boxed::Box;
use core::ptr::{self, NonNull};

use super::bindings::*;
use super::domain::OfiDomain;
use super::endpoint::OfiEndpoint;
use super::library::OfiError;
use super::limits::REMOTE_PIECES;
use super::object::Unfinished;
use super::region::{ExposedRegion, OfiRegistrar};
use super::slot::{BufferSlot, BufferUse, NotBegun, OfiAddress};
use crate::nal::remote::{RemoteOperation, RemoteRegion};
use crate::types::MdIovec;
use sys::random;

/// How often a random key is tried that another region may have.
const KEYS_TRIED: u32 = 4;

impl OfiRegistrar {
    /// Lets peers read and write this memory, by a random key unless the provider chooses one.
    ///
    /// # Errors
    /// That of the library.
    pub(super) fn expose(
        &self,
        domain: &OfiDomain,
        start: *mut u8,
        bytes: usize,
    ) -> Result<RemoteRegion, OfiError> {
        let mr_mode = self.mr_mode;
        let local = match mr_mode & FI_MR_LOCAL {
            0 => 0,
            _ => FI_READ | FI_WRITE | FI_SEND | FI_RECV,
        };
        let mut registered = None;
        for _ in 0..KEYS_TRIED {
            let key =
                random::number().map_err(|_| self.library.error("getrandom", -FI_ENODATA))?;
            // All ones mean that there is no key; what the buffers have are small numbers.
            let key = key & domain.key_mask & !1 | 2;
            let access = FI_REMOTE_READ | FI_REMOTE_WRITE | local;
            match self.register(start, bytes, access, key) {
                Err(e) if e.number == FI_ENOKEY => registered = Some(Err(e)),
                result => {
                    registered = Some(result);
                    break;
                }
            }
        }
        let region =
            registered.unwrap_or_else(|| Err(self.library.error("fi_mr_reg", -FI_ENOKEY)))?;
        let registered = Unfinished(region);
        // SAFETY: a region that was just made.
        let (descriptor, key) = unsafe { (region.as_ref().mem_desc, region.as_ref().key) };
        if key == FI_KEY_NOTAVAIL {
            return Err(self.library.error("fi_mr_key", -FI_ENOKEY));
        }
        let address = match mr_mode & FI_MR_VIRT_ADDR {
            0 => 0,
            _ => start.expose_provenance() as u64,
        };
        let region = registered.keep();
        let region = ExposedRegion { bytes, region, descriptor };
        domain.regions.lock().insert(start.addr(), region);
        Ok(RemoteRegion { address, key })
    }
}

impl OfiDomain {
    /// Whether an operation can have these pieces of local memory.
    pub(super) fn takes_pieces(&self, pieces: &[MdIovec]) -> bool {
        self.limits.is_some_and(|limits| pieces.len() <= limits.pieces)
            && (self.mr_mode & FI_MR_LOCAL == 0
                || pieces.iter().all(|piece| self.descriptor(piece).is_some()))
    }
}

impl OfiEndpoint {
    /// Begins an operation on the memory of a peer; returns its number, which the completion has.
    ///
    /// # Errors
    /// It does not begin.
    ///
    /// # Safety
    /// The pieces are readable (put) or writable (get) until it is complete, or the endpoint is
    /// closed.
    pub(super) unsafe fn begin_remote(
        &mut self,
        to: OfiAddress,
        operation: &RemoteOperation<'_>,
    ) -> Result<usize, NotBegun> {
        let RemoteOperation { is_put, pieces, at, .. } = *operation;
        let mut iov = [FiIovec { base: ptr::null_mut(), len: 0 }; REMOTE_PIECES];
        let mut descriptors = [ptr::null_mut(); REMOTE_PIECES];
        if pieces.len() > REMOTE_PIECES {
            return Err(NotBegun::Failed(self.library.error("fi_writemsg", -FI_ENODATA)));
        }
        let is_local = self.domain.mr_mode & FI_MR_LOCAL != 0;
        let mut length = 0;
        for (i, piece) in pieces.iter().enumerate() {
            iov[i] = FiIovec { base: piece.base, len: piece.len as usize };
            length += piece.len as usize;
            if is_local {
                let known = self.domain.descriptor(piece);
                let unknown = || NotBegun::Failed(self.library.error("fi_mr_desc", -FI_ENOKEY));
                descriptors[i] = known.ok_or_else(unknown)?;
            }
        }
        let number = self.operations.free.pop().unwrap_or_else(|| {
            let slots = &mut self.operations.slots;
            let number = slots.len() as u32;
            slots.push(NonNull::from(Box::leak(Box::new(BufferSlot::remote(number)))));
            number
        });
        let slot = self.operations.slots[number as usize].as_ptr();
        let there = FiRmaIov { addr: at.address, len: length, key: at.key };
        let message = FiMsgRma {
            msg_iov: iov.as_ptr(),
            desc: descriptors.as_mut_ptr(),
            iov_count: pieces.len(),
            addr: to.0,
            rma_iov: &there,
            rma_iov_count: 1,
            context: slot.cast(),
            data: 0,
        };
        // SAFETY: the slots live as long as this value, and this one is in no operation.
        unsafe { (*slot).used_by = BufferUse::Remote };
        // SAFETY: an open endpoint with the capability FI_RMA, whose table has both functions; a
        // complete message, whose arrays the call copies. The pieces outlive the operation.
        let returned = unsafe {
            let endpoint = self.transmit.as_ptr();
            let FiOpsRma { readmsg, writemsg, .. } = *(*endpoint).rma;
            match is_put {
                true => writemsg(endpoint, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE),
                false => readmsg(endpoint, &message, FI_COMPLETION),
            }
        };
        if returned == 0 {
            return Ok(number as usize);
        }
        // SAFETY: as above: the operation has not begun.
        unsafe { (*slot).used_by = BufferUse::None };
        self.operations.free.push(number);
        let call = if is_put { "fi_writemsg" } else { "fi_readmsg" };
        Err(self.not_begun(call, returned))
    }
}
