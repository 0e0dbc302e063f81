//! Memory that is registered with the library.
//!
//! Regions that peers may use belong to [`super::domain`], the slots of remote operations to each
//! [`super::endpoint`]; [`super::memory`] adds to both. Invariant: a region stays registered until
//! the endpoints are closed.

use alloc::vec::Vec;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

use super::bindings::*;
use super::library::{Libfabric, OfiError};
use super::object::Unfinished;
use super::slot::BufferSlot;

/// What registers memory with an endpoint, which is open.
pub(super) struct OfiRegistrar {
    pub(super) library: &'static Libfabric,
    pub(super) domain: NonNull<FidDomain>,
    pub(super) endpoint: NonNull<FidEp>,
    pub(super) mr_mode: c_int,
}

impl OfiRegistrar {
    /// Registers memory for the operations of `access`.
    ///
    /// # Errors
    /// That of the library.
    pub(super) fn register(
        &self,
        start: *const u8,
        bytes: usize,
        access: u64,
        key: u64,
    ) -> Result<NonNull<FidMr>, OfiError> {
        let mut region = ptr::null_mut();
        // SAFETY: an open domain, memory of this length, and room for a pointer.
        let returned = unsafe {
            let FidDomain { mr, .. } = self.domain.as_ref();
            ((**mr).reg)(
                self.domain.cast().as_ptr(),
                start.cast(),
                bytes,
                access,
                0,
                key,
                0,
                &mut region,
                ptr::null_mut(),
            )
        };
        let Some(region) = NonNull::new(region).filter(|_| returned == 0) else {
            return Err(self.library.error("fi_mr_reg", returned));
        };
        let region = Unfinished(region);
        if self.mr_mode & FI_MR_ENDPOINT != 0 {
            let fid = region.0.cast::<Fid>().as_ptr();
            // SAFETY: open objects.
            let returned = unsafe {
                let FiOps { bind, control, .. } = *(*fid).ops;
                match bind(fid, self.endpoint.cast().as_ptr(), 0) {
                    0 => control(fid, FI_ENABLE, ptr::null_mut()),
                    failed => failed,
                }
            };
            if returned != 0 {
                return Err(self.library.error("fi_mr_enable", returned));
            }
        }
        Ok(region.keep())
    }
}

/// Memory of this process that peers may use.
pub(super) struct ExposedRegion {
    pub(super) bytes: usize,
    pub(super) region: NonNull<FidMr>,
    pub(super) descriptor: *mut c_void,
}

/// The slots of the remote operations of an endpoint.
#[derive(Default)]
pub(super) struct RemoteSlots {
    /// A context for each operation.
    pub(super) slots: Vec<NonNull<BufferSlot>>,
    /// Those of no operation.
    pub(super) free: Vec<u32>,
}

impl RemoteSlots {
    /// All that was allocated for operations.
    pub(super) fn contexts(&self) -> impl Iterator<Item = NonNull<BufferSlot>> {
        self.slots.iter().copied()
    }
}

/// What the bits of the mode mean that a provider demands.
pub(super) fn meaning_of(mr_mode: c_int) -> c_int {
    match mr_mode {
        FI_MR_BASIC => FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
        given => given,
    }
}
