//! Memory that is registered with the library.
//!
//! Owned by [`super::endpoint`]; [`super::memory`] adds to it. Invariant: a region stays
//! registered until its endpoint is closed.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

use super::bindings::*;
use super::library::{Libfabric, OfiError, ProviderInfo};
use super::limits::REMOTE_PIECES;
use super::object::Unfinished;
use super::slot::BufferSlot;
use crate::nal::remote::RemoteLimits;
use crate::types::MdIovec;

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

/// What an endpoint needs for remote access. Where there is none, it stays empty.
pub(super) struct OfiMemory {
    /// What the provider allows of one operation; `None`: there is no remote access.
    pub(super) limits: Option<RemoteLimits>,
    /// The bits of a key.
    pub(super) key_mask: u64,
    /// By where they start. They do not overlap.
    pub(super) regions: BTreeMap<usize, ExposedRegion>,
    /// A context for each operation.
    pub(super) slots: Vec<NonNull<BufferSlot>>,
    /// Those of no operation.
    pub(super) free: Vec<u32>,
}

impl OfiMemory {
    pub(super) fn new(info: &ProviderInfo, moves_words_whole: bool) -> OfiMemory {
        let bits = 8 * info.domain().mr_key_size.min(8) as u32;
        OfiMemory {
            limits: info.has_remote_access().then(|| RemoteLimits {
                longest: info.endpoint().max_msg_size as u64,
                pieces: info.tx().iov_limit.clamp(1, REMOTE_PIECES),
                moves_words_whole,
            }),
            key_mask: u64::MAX.checked_shr(64 - bits).unwrap_or(u64::MAX),
            regions: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// All that is registered.
    pub(super) fn registered(&self) -> impl Iterator<Item = NonNull<FidMr>> {
        self.regions.values().map(|region| region.region)
    }

    /// All that was allocated for operations.
    pub(super) fn contexts(&self) -> impl Iterator<Item = NonNull<BufferSlot>> {
        self.slots.iter().copied()
    }

    /// The descriptor of a piece of local memory that the provider wants to be registered.
    pub(super) fn descriptor(&self, piece: &MdIovec) -> Option<*mut c_void> {
        let (&start, region) = self.regions.range(..=piece.base.addr()).next_back()?;
        let rest = region.bytes.checked_sub(piece.base.addr() - start)?;
        (piece.len as usize <= rest).then_some(region.descriptor)
    }

    /// The library has reported the operation of this slot.
    pub(super) fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }
}

/// What the bits of the mode mean that a provider demands.
pub(super) fn meaning_of(mr_mode: c_int) -> c_int {
    match mr_mode {
        FI_MR_BASIC => FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
        given => given,
    }
}
