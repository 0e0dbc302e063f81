//! How an endpoint of libfabric is opened: fabric, domain, completion queue, addresses.
//!
//! Used by [`super::OfiWire`]. Invariant: what was opened is closed if the rest cannot be.

use alloc::vec::Vec;
use core::ffi::c_int;
use core::ptr::{self, NonNull};
use std::os::fd::RawFd;

use super::bindings::*;
use super::endpoint::OfiEndpoint;
use super::library::{Libfabric, OfiError, ProviderInfo};
use super::object::Unfinished;
use super::provider;
use super::region::{self, OfiMemory};

impl OfiEndpoint {
    /// Opens an endpoint for messages with `peers` processes, and buffers of this many bytes.
    /// `events` completions are read at a time.
    ///
    /// # Errors
    /// Of the call that failed.
    pub(super) fn open(
        info: &ProviderInfo,
        peers: usize,
        buffer_bytes: usize,
        events: usize,
    ) -> Result<OfiEndpoint, OfiError> {
        let library = info.library();
        let opened = |call, returned: c_int| match returned {
            0 => Ok(()),
            n => Err(library.error(call, n)),
        };
        let fabric = Unfinished(library.open_fabric(info)?);
        let mut domain = ptr::null_mut();
        // SAFETY: objects that are open, structures that are complete, room for a pointer. A table
        // has the function, as those of each provider of 1.17 have it.
        let returned = unsafe {
            let domain_of = (*fabric.0.as_ref().ops).domain;
            domain_of(fabric.0.as_ptr(), info.raw_mut(), &mut domain, ptr::null_mut())
        };
        opened("fi_domain", returned)?;
        let none = || library.error("libfabric", -12);
        let domain = Unfinished(NonNull::new(domain).ok_or_else(none)?);
        let (queue, wait) = Self::open_queue(library, domain.0, info)?;
        let queue = Unfinished(queue);
        let mut attributes = FiAvAttr {
            kind: match info.domain().av_type {
                0 => FI_AV_TABLE,
                given => given,
            },
            rx_ctx_bits: 0,
            count: peers,
            ep_per_node: 0,
            name: ptr::null(),
            map_addr: ptr::null_mut(),
            flags: 0,
        };
        let mut addresses = ptr::null_mut();
        // SAFETY: as above.
        let returned = unsafe {
            let av_open = (*domain.0.as_ref().ops).av_open;
            av_open(domain.0.as_ptr(), &mut attributes, &mut addresses, ptr::null_mut())
        };
        opened("fi_av_open", returned)?;
        let addresses = Unfinished(NonNull::new(addresses).ok_or_else(none)?);
        let mut endpoint = ptr::null_mut();
        // SAFETY: as above.
        let returned = unsafe {
            let open = (*domain.0.as_ref().ops).endpoint;
            open(domain.0.as_ptr(), info.raw_mut(), &mut endpoint, ptr::null_mut())
        };
        opened("fi_endpoint", returned)?;
        let endpoint = Unfinished(NonNull::new(endpoint).ok_or_else(none)?);
        let fid = endpoint.0.cast::<Fid>().as_ptr();
        // SAFETY: as above.
        unsafe {
            let FiOps { bind, control, .. } = *(*fid).ops;
            opened("fi_ep_bind", bind(fid, addresses.0.cast().as_ptr(), 0))?;
            let both = FI_TRANSMIT | FI_RECV;
            opened("fi_ep_bind", bind(fid, queue.0.cast().as_ptr(), both))?;
            opened("fi_enable", control(fid, FI_ENABLE, ptr::null_mut()))?;
        }
        let (endpoint, addresses, queue) = (endpoint.keep(), addresses.keep(), queue.keep());
        Ok(OfiEndpoint {
            library,
            fabric: fabric.keep(),
            domain: domain.keep(),
            queue,
            addresses,
            endpoint,
            wait,
            mr_mode: region::meaning_of(info.domain().mr_mode),
            buffer_bytes,
            slots: Vec::new(),
            blocks: Vec::new(),
            memory: OfiMemory::new(info, provider::moves_words_whole(&info.name())),
            entries: vec![FiCqTaggedEntry::NONE; events.max(1)].into(),
        })
    }

    /// A completion queue, and its descriptor if it has one.
    fn open_queue(
        library: &'static Libfabric,
        domain: NonNull<FidDomain>,
        info: &ProviderInfo,
    ) -> Result<(NonNull<FidCq>, Option<RawFd>), OfiError> {
        let mut error = None;
        for wait_obj in [FI_WAIT_FD, FI_WAIT_NONE] {
            let mut attributes = FiCqAttr {
                size: info.tx().size.saturating_add(info.rx().size),
                flags: 0,
                format: FI_CQ_FORMAT_TAGGED,
                wait_obj,
                signaling_vector: 0,
                wait_cond: 0,
                wait_set: ptr::null_mut(),
            };
            let mut queue = ptr::null_mut();
            // SAFETY: an open domain, a complete structure, room for a pointer.
            let returned = unsafe {
                let cq_open = (*domain.as_ref().ops).cq_open;
                cq_open(domain.as_ptr(), &mut attributes, &mut queue, ptr::null_mut())
            };
            let Some(queue) = NonNull::new(queue).filter(|_| returned == 0) else {
                error = Some(library.error("fi_cq_open", returned));
                continue;
            };
            let mut descriptor: RawFd = -1;
            if wait_obj == FI_WAIT_FD {
                let fid = queue.cast::<Fid>().as_ptr();
                // SAFETY: an open object, and room for a descriptor.
                unsafe {
                    let control = (*(*fid).ops).control;
                    control(fid, FI_GETWAIT, (&raw mut descriptor).cast());
                }
            }
            return Ok((queue, (descriptor >= 0).then_some(descriptor)));
        }
        Err(error.unwrap_or_else(|| library.error("fi_cq_open", -FI_ENODATA)))
    }
}
