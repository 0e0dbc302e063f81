//! What all endpoints of a wire share: fabric, domain, addresses, exposed memory.
//!
//! Opened by [`super::opening`]; each [`super::endpoint`] holds it. Invariant: it is closed after
//! the endpoints that use it.
//!
//! Without a scalable endpoint there is one endpoint, whose lock covers all calls, as
//! FI_THREAD_DOMAIN demands. With one, threads call at once what belongs to different contexts:
//! the provider has granted FI_THREAD_SAFE.

use alloc::collections::BTreeMap;
use core::ffi::{c_int, c_void};
use core::mem;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use super::bindings::*;
use super::object::close;
use super::region::ExposedRegion;
use crate::base::lock::SpinLock;
use crate::nal::remote::RemoteLimits;
use crate::types::MdIovec;

/// See the head of this file.
pub(super) struct OfiDomain {
    pub(super) fabric: NonNull<FidFabric>,
    pub(super) domain: NonNull<FidDomain>,
    pub(super) addresses: NonNull<FidAv>,
    /// The endpoint whose contexts the wire uses.
    pub(super) scalable: Option<NonNull<FidEp>>,
    /// The highest bits of an address, which name a context of its endpoint.
    pub(super) context_bits: u32,
    pub(super) mr_mode: c_int,
    /// What the provider allows of one remote operation; `None`: there is no remote access.
    pub(super) limits: Option<RemoteLimits>,
    /// The bits of a key.
    pub(super) key_mask: u64,
    /// The key of the next memory that no peer reads or writes.
    pub(super) key: AtomicU64,
    /// Memory that peers may use, by where it starts. No two regions overlap.
    pub(super) regions: SpinLock<BTreeMap<usize, ExposedRegion>>,
}

// SAFETY: the head of this file says which calls of the library may come at once.
unsafe impl Send for OfiDomain {}
// SAFETY: as above.
unsafe impl Sync for OfiDomain {}

impl OfiDomain {
    /// The address of a context of an endpoint (`fi_rx_addr`).
    pub(super) fn address_of(&self, endpoint: u64, context: usize) -> u64 {
        match self.context_bits {
            0 => endpoint,
            bits => (context as u64) << (64 - bits) | endpoint,
        }
    }

    /// A key that no other memory for messages has.
    pub(super) fn next_key(&self) -> u64 {
        self.key.fetch_add(1, Ordering::Relaxed)
    }

    /// The descriptor of a piece of local memory that the provider wants to be registered.
    pub(super) fn descriptor(&self, piece: &MdIovec) -> Option<*mut c_void> {
        let regions = self.regions.lock();
        let (&start, region) = regions.range(..=piece.base.addr()).next_back()?;
        let rest = region.bytes.checked_sub(piece.base.addr() - start)?;
        (piece.len as usize <= rest).then_some(region.descriptor)
    }

    /// Closes the regions that the provider lets go.
    pub(super) fn close_regions(&self) {
        // SAFETY: each is open, and closed once; operations that use it have ended, or their
        // endpoint is closed next.
        self.regions.lock().retain(|_, region| unsafe { !close(region.region) });
    }
}

impl Drop for OfiDomain {
    fn drop(&mut self) {
        // SAFETY: each is open and closed once, what uses another before that. Its contexts are
        // closed. An endpoint that the library cannot close keeps the rest.
        unsafe {
            if self.scalable.is_some_and(|endpoint| !close(endpoint)) {
                return;
            }
            for region in mem::take(&mut *self.regions.lock()).into_values() {
                close(region.region);
            }
            close(self.addresses);
            close(self.domain);
            close(self.fabric);
        }
    }
}
