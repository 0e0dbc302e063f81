//! How the objects of libfabric are opened: fabric, domain, addresses, endpoint, completion queue.
//!
//! Used by [`super::OfiWire`]. Invariant: what was opened is closed if the rest cannot be.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicU64;
use std::os::fd::RawFd;

use super::bindings::*;
use super::domain::OfiDomain;
use super::endpoint::OfiEndpoint;
use super::library::{Libfabric, OfiError, ProviderInfo};
use super::limits::REMOTE_PIECES;
use super::object::Unfinished;
use super::provider;
use super::queue_signal::QueueSignal;
use super::region::{self, RemoteSlots};
use crate::base::lock::SpinLock;
use crate::nal::remote::RemoteLimits;

/// What a call of the library has opened, by the pointer that it was given.
fn opened<T>(
    library: &Libfabric,
    call: &'static str,
    open: impl FnOnce(*mut *mut T) -> c_int,
) -> Result<Unfinished<T>, OfiError> {
    let mut object = ptr::null_mut();
    match (open(&mut object), NonNull::new(object)) {
        (0, Some(object)) => Ok(Unfinished(object)),
        (0, None) => Err(library.error(call, -12)),
        (n, _) => Err(library.error(call, n)),
    }
}

/// The error of a call that opens nothing.
fn done(library: &Libfabric, call: &'static str, returned: c_int) -> Result<(), OfiError> {
    match returned {
        0 => Ok(()),
        n => Err(library.error(call, n)),
    }
}

/// Binds an endpoint to another object.
///
/// # Safety
/// Both are open.
unsafe fn bind<T>(
    library: &Libfabric,
    endpoint: NonNull<FidEp>,
    to: NonNull<T>,
    flags: u64,
) -> Result<(), OfiError> {
    let fid = endpoint.cast::<Fid>().as_ptr();
    // SAFETY: open objects, each of which begins with its Fid. A table has the functions that
    // those of each provider of 1.17 have.
    done(library, "fi_ep_bind", unsafe { ((*(*fid).ops).bind)(fid, to.cast().as_ptr(), flags) })
}

/// Lets an endpoint send and receive.
///
/// # Safety
/// It is open, and bound to what it needs.
unsafe fn enable(library: &Libfabric, endpoint: NonNull<FidEp>) -> Result<(), OfiError> {
    let fid = endpoint.cast::<Fid>().as_ptr();
    let none = ptr::null_mut::<c_void>();
    // SAFETY: as above.
    done(library, "fi_enable", unsafe { ((*(*fid).ops).control)(fid, FI_ENABLE, none) })
}

impl OfiDomain {
    /// Opens what the endpoints of a provider share, for messages with `peers` processes: with a
    /// scalable endpoint if the provider is to have several contexts.
    ///
    /// # Errors
    /// Of the call that failed.
    pub(super) fn open(info: &ProviderInfo, peers: usize) -> Result<OfiDomain, OfiError> {
        let (library, contexts) = (info.library(), info.contexts());
        let fabric = Unfinished(library.open_fabric(info)?);
        let none = ptr::null_mut::<c_void>();
        // SAFETY: an object that is open, a structure that is complete, room for a pointer. A
        // table has the functions that those of each provider of 1.17 have.
        let domain = opened(library, "fi_domain", |place| unsafe {
            let domain = (*fabric.0.as_ref().ops).domain;
            domain(fabric.0.as_ptr(), info.raw_mut(), place, none)
        })?;
        let context_bits = contexts.next_power_of_two().ilog2();
        let mut attributes = FiAvAttr {
            kind: match info.domain().av_type {
                0 => FI_AV_TABLE,
                given => given,
            },
            rx_ctx_bits: context_bits as c_int,
            count: peers,
            ep_per_node: 0,
            name: ptr::null(),
            map_addr: ptr::null_mut(),
            flags: 0,
        };
        // SAFETY: as above.
        let addresses = opened(library, "fi_av_open", |place| unsafe {
            let av_open = (*domain.0.as_ref().ops).av_open;
            av_open(domain.0.as_ptr(), &mut attributes, place, none)
        })?;
        let scalable = match contexts {
            1 => None,
            _ => {
                // SAFETY: as above.
                let endpoint = opened(library, "fi_scalable_ep", |place| unsafe {
                    let scalable_ep = (*domain.0.as_ref().ops).scalable_ep;
                    scalable_ep(domain.0.as_ptr(), info.raw_mut(), place, none)
                })?;
                // SAFETY: open objects; an endpoint that has what it needs before it is enabled.
                unsafe {
                    bind(library, endpoint.0, addresses.0, 0)?;
                    enable(library, endpoint.0)?;
                }
                Some(endpoint.keep())
            }
        };
        let bits = 8 * info.domain().mr_key_size.min(8) as u32;
        Ok(OfiDomain {
            scalable,
            addresses: addresses.keep(),
            domain: domain.keep(),
            fabric: fabric.keep(),
            context_bits,
            mr_mode: region::meaning_of(info.domain().mr_mode),
            limits: info.has_remote_access().then(|| RemoteLimits {
                longest: info.endpoint().max_msg_size as u64,
                pieces: info.tx().iov_limit.clamp(1, REMOTE_PIECES),
                by_hardware: provider::carries_out_alone(&info.name()),
            }),
            key_mask: u64::MAX.checked_shr(64 - bits).unwrap_or(u64::MAX),
            key: AtomicU64::new(0),
            regions: SpinLock::new(BTreeMap::new()),
        })
    }
}

impl OfiEndpoint {
    /// Opens an endpoint, or the contexts `context` of the scalable one, with buffers of this many
    /// bytes. `events` completions are read at a time.
    ///
    /// # Errors
    /// Of the call that failed.
    pub(super) fn open(
        domain: &Arc<OfiDomain>,
        info: &ProviderInfo,
        context: usize,
        buffer_bytes: usize,
        events: usize,
    ) -> Result<OfiEndpoint, OfiError> {
        let library = info.library();
        let (queue, descriptor) = Self::open_queue(library, domain.domain, info)?;
        let queue = Unfinished(queue);
        let (none, number) = (ptr::null_mut::<c_void>(), context as c_int);
        let (transmit, receive) = match domain.scalable {
            None => {
                // SAFETY: an open object, a complete structure, room for a pointer.
                let endpoint = opened(library, "fi_endpoint", |place| unsafe {
                    let endpoint = (*domain.domain.as_ref().ops).endpoint;
                    endpoint(domain.domain.as_ptr(), info.raw_mut(), place, none)
                })?;
                // SAFETY: open objects; an endpoint that has what it needs before it is enabled.
                unsafe {
                    bind(library, endpoint.0, domain.addresses, 0)?;
                    bind(library, endpoint.0, queue.0, FI_TRANSMIT | FI_RECV)?;
                    enable(library, endpoint.0)?;
                }
                let endpoint = endpoint.keep();
                (endpoint, endpoint)
            }
            Some(scalable) => {
                let endpoint = scalable.as_ptr();
                // SAFETY: as above; without attributes a context has those of its endpoint.
                let transmit = opened(library, "fi_tx_context", |place| unsafe {
                    let tx_ctx = (*(*endpoint).ops).tx_ctx;
                    tx_ctx(endpoint, number, ptr::null_mut(), place, none)
                })?;
                // SAFETY: as above.
                let receive = opened(library, "fi_rx_context", |place| unsafe {
                    let rx_ctx = (*(*endpoint).ops).rx_ctx;
                    rx_ctx(endpoint, number, ptr::null_mut(), place, none)
                })?;
                // SAFETY: as above.
                unsafe {
                    bind(library, transmit.0, queue.0, FI_TRANSMIT)?;
                    bind(library, receive.0, queue.0, FI_RECV)?;
                    enable(library, transmit.0)?;
                    enable(library, receive.0)?;
                }
                (transmit.keep(), receive.keep())
            }
        };
        Ok(OfiEndpoint {
            library,
            domain: Arc::clone(domain),
            queue: queue.keep(),
            transmit,
            receive,
            context,
            signal: QueueSignal::new(descriptor),
            buffer_bytes,
            slots: Vec::new(),
            blocks: Vec::new(),
            operations: RemoteSlots::default(),
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
