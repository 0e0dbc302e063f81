//! A reliable-datagram endpoint of libfabric, or one pair of contexts of a scalable endpoint:
//! buffers, messages and their completion.
//!
//! Owned by [`super::network`], under its lock. With [`super::domain`] and [`super::library`] it
//! has all calls of libfabric. Invariant: memory that the library may read or write belongs to no
//! [`OfiBuffer`] meanwhile: a buffer is given up when an operation begins, and comes back when it
//! is complete.

use alloc::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::{CStr, c_int, c_long, c_void};
use core::mem;
use core::ptr::{self, NonNull};
use std::os::fd::RawFd;

use super::bindings::*;
use super::domain::OfiDomain;
use super::library::{Libfabric, OfiError};
use super::object::close;
use super::queue_signal::QueueSignal;
use super::region::{OfiRegistrar, RemoteSlots};
use super::slot::{BufferSlot, BufferUse, NotBegun, OfiAddress};

/// Bytes of an address of an endpoint at most.
pub(super) const NAME_BYTES: usize = 64;

/// A buffer that no operation uses.
#[derive(Debug)]
pub(super) struct OfiBuffer(u32);

impl OfiBuffer {
    /// Its number: those of an endpoint are numbered from 0.
    pub(super) fn number(&self) -> usize {
        self.0 as usize
    }

    /// One that belongs to no endpoint.
    #[cfg(test)]
    pub(super) fn test(number: u32) -> OfiBuffer {
        OfiBuffer(number)
    }
}

/// An operation that is complete.
#[derive(Debug)]
pub(super) enum OfiCompletion {
    /// A message has arrived: its bytes are the first of the buffer.
    Received { buffer: OfiBuffer, length: usize, tag: u64, data: u64 },
    /// A message has left.
    Sent { buffer: OfiBuffer },
    /// None has arrived in this buffer.
    ReceiveFailed { buffer: OfiBuffer },
    /// The message in this buffer has not left, or its peer is lost.
    SendFailed { buffer: OfiBuffer, error: OfiError },
    /// The remote operation of this number has ended, or failed: see [`OfiEndpoint::give_back`].
    Remote { number: usize, error: Option<OfiError> },
}

/// What carries a message but for its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageTag {
    pub(super) tag: u64,
    /// Remote CQ data.
    pub(super) data: Option<u64>,
}

/// Memory of several buffers.
pub(super) struct BufferBlock {
    memory: NonNull<u8>,
    layout: Layout,
    region: Option<NonNull<FidMr>>,
}

/// See the head of this file.
pub(super) struct OfiEndpoint {
    pub(super) library: &'static Libfabric,
    pub(super) domain: Arc<OfiDomain>,
    pub(super) queue: NonNull<FidCq>,
    /// The endpoint, or the contexts of one that is scalable.
    pub(super) transmit: NonNull<FidEp>,
    pub(super) receive: NonNull<FidEp>,
    /// The number of these contexts.
    pub(super) context: usize,
    pub(super) signal: QueueSignal,
    pub(super) buffer_bytes: usize,
    pub(super) slots: Vec<NonNull<BufferSlot>>,
    pub(super) blocks: Vec<BufferBlock>,
    pub(super) operations: RemoteSlots,
    /// Room for the completions that are read at a time.
    pub(super) entries: Box<[FiCqTaggedEntry]>,
}

// SAFETY: these objects are used by one thread at a time: all calls but that of `drop` are within
// the lock of the network.
unsafe impl Send for OfiEndpoint {}

impl OfiEndpoint {
    /// The address of this endpoint.
    ///
    /// # Errors
    /// That of `fi_getname`; it may be too long.
    pub(super) fn name(&self) -> Result<Vec<u8>, OfiError> {
        let mut name = [0u8; NAME_BYTES];
        let mut length = NAME_BYTES;
        // SAFETY: an open endpoint, and a place of that length.
        let returned = unsafe {
            let endpoint = self.domain.scalable.unwrap_or(self.transmit);
            let getname = (*endpoint.as_ref().cm).getname;
            getname(endpoint.cast().as_ptr(), name.as_mut_ptr().cast(), &mut length)
        };
        match returned {
            0 if length <= NAME_BYTES => Ok(name[..length].to_vec()),
            n => Err(self.library.error("fi_getname", n)),
        }
    }

    /// An address for people.
    pub(super) fn shown(&self, name: &[u8; NAME_BYTES]) -> String {
        let mut text = [0u8; 128];
        let mut length = text.len();
        // SAFETY: an address at least as long as any of the provider, and a place of that length.
        unsafe {
            let addresses = self.domain.addresses;
            let straddr = (*addresses.as_ref().ops).straddr;
            let (name, text) = (name.as_ptr().cast(), text.as_mut_ptr().cast());
            straddr(addresses.as_ptr(), name, text, &mut length);
        }
        let text = CStr::from_bytes_until_nul(&text).map(CStr::to_string_lossy);
        text.map_or_else(|_| String::new(), |text| text.into_owned())
    }

    /// Makes a peer known by its address: its endpoint, or its context of the same number. The
    /// bytes come from that peer; the library checks them.
    ///
    /// # Errors
    /// That of `fi_av_insert`.
    pub(super) fn insert(&mut self, name: &[u8; NAME_BYTES]) -> Result<OfiAddress, OfiError> {
        let mut address = FI_ADDR_UNSPEC;
        // SAFETY: an address at least as long as any of the provider, and room for its number.
        let inserted = unsafe {
            let addresses = self.domain.addresses;
            let insert = (*addresses.as_ref().ops).insert;
            insert(addresses.as_ptr(), name.as_ptr().cast(), 1, &mut address, 0, ptr::null_mut())
        };
        match inserted {
            1 => Ok(OfiAddress(self.domain.address_of(address, self.context))),
            n => Err(self.library.error("fi_av_insert", n)),
        }
    }

    /// The buffers that were added.
    #[cfg(test)]
    pub(super) fn buffers(&self) -> usize {
        self.slots.len()
    }

    /// Adds buffers.
    ///
    /// # Errors
    /// The provider cannot register their memory.
    pub(super) fn add_buffers(
        &mut self,
        count: usize,
        mut take: impl FnMut(OfiBuffer),
    ) -> Result<(), OfiError> {
        const ALIGN: usize = 4096;
        let stride = self.buffer_bytes.next_multiple_of(64);
        let size = (stride * count).next_multiple_of(ALIGN);
        let Ok(layout) = Layout::from_size_align(size, ALIGN) else {
            return Err(self.library.error("fi_mr_reg", -12));
        };
        // SAFETY: neither the size nor the count is 0.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        let mut block = BufferBlock { memory, layout, region: None };
        let mut descriptor = ptr::null_mut();
        if self.domain.mr_mode & FI_MR_LOCAL != 0 {
            let key = self.domain.next_key();
            match self.registrar().register(memory.as_ptr(), size, FI_SEND | FI_RECV, key) {
                Ok(region) => {
                    // SAFETY: a region that was just made.
                    descriptor = unsafe { region.as_ref().mem_desc };
                    block.region = Some(region);
                }
                Err(e) => {
                    // SAFETY: allocated above with this layout.
                    unsafe { dealloc(memory.as_ptr(), layout) };
                    return Err(e);
                }
            }
        }
        for i in 0..count {
            let number = self.slots.len() as u32;
            // SAFETY: within the block.
            let part = unsafe { memory.add(i * stride) };
            let slot = Box::new(BufferSlot::new(number, part, descriptor));
            self.slots.push(NonNull::from(Box::leak(slot)));
            take(OfiBuffer(number));
        }
        self.blocks.push(block);
        Ok(())
    }

    /// What registers memory.
    pub(super) fn registrar(&self) -> OfiRegistrar {
        let OfiDomain { domain, mr_mode, .. } = *self.domain;
        OfiRegistrar { library: self.library, domain, endpoint: self.transmit, mr_mode }
    }

    fn slot(&self, buffer: &OfiBuffer) -> NonNull<BufferSlot> {
        self.slots[buffer.number()]
    }

    /// The bytes of a buffer.
    pub(super) fn bytes(&self, buffer: &OfiBuffer) -> &[u8] {
        // SAFETY: memory of that length, which no operation uses: see the head of this file.
        unsafe {
            let memory = self.slot(buffer).as_ref().memory;
            core::slice::from_raw_parts(memory.as_ptr(), self.buffer_bytes)
        }
    }

    /// The same to be written.
    pub(super) fn bytes_mut(&mut self, buffer: &mut OfiBuffer) -> &mut [u8] {
        // SAFETY: as above; the buffer is borrowed mutably.
        unsafe {
            let memory = self.slot(buffer).as_ref().memory;
            core::slice::from_raw_parts_mut(memory.as_ptr(), self.buffer_bytes)
        }
    }

    /// Gives a buffer to an operation; it comes back if the operation does not begin.
    fn begin(
        &mut self,
        call: &'static str,
        buffer: OfiBuffer,
        used_by: BufferUse,
        operation: impl FnOnce(*mut c_void, *mut c_void, *mut c_void) -> c_long,
    ) -> Result<(), (OfiBuffer, NotBegun)> {
        let slot = self.slot(&buffer).as_ptr();
        // SAFETY: the slots live as long as this value, and this one is in no operation.
        let returned = unsafe {
            (*slot).used_by = used_by;
            let BufferSlot { memory, descriptor, .. } = *slot;
            operation(memory.as_ptr().cast(), descriptor, slot.cast())
        };
        if returned == 0 {
            return Ok(());
        }
        // SAFETY: as above: the operation has not begun.
        unsafe { (*slot).used_by = BufferUse::None };
        Err((buffer, self.not_begun(call, returned)))
    }

    pub(super) fn not_begun(&self, call: &'static str, returned: c_long) -> NotBegun {
        match returned as c_int {
            n if n == -FI_EAGAIN => NotBegun::Full,
            n => NotBegun::Failed(self.library.error(call, n)),
        }
    }

    /// Lets the next message arrive in this buffer.
    ///
    /// # Errors
    /// It does not; the buffer comes back.
    pub(super) fn post(&mut self, buffer: OfiBuffer) -> Result<(), (OfiBuffer, NotBegun)> {
        let (endpoint, length) = (self.receive, self.buffer_bytes);
        self.begin("fi_trecv", buffer, BufferUse::Receive, |memory, desc, context| {
            // SAFETY: memory of that length and a context that belong to this operation now.
            unsafe {
                let recv = (*endpoint.as_ref().tagged).recv;
                let (any, all) = (FI_ADDR_UNSPEC, u64::MAX);
                recv(endpoint.as_ptr(), memory, length, desc, any, 0, all, context)
            }
        })
    }

    /// Sends the first bytes of a buffer.
    ///
    /// # Errors
    /// It does not; the buffer comes back.
    pub(super) fn send(
        &mut self,
        to: OfiAddress,
        buffer: OfiBuffer,
        length: usize,
        with: MessageTag,
    ) -> Result<(), (OfiBuffer, NotBegun)> {
        assert!(length <= self.buffer_bytes);
        let (endpoint, MessageTag { tag, data }) = (self.transmit, with);
        self.begin("fi_tsend", buffer, BufferUse::Send, |memory, desc, context| {
            let (ep, OfiAddress(to)) = (endpoint.as_ptr(), to);
            // SAFETY: as above.
            unsafe {
                let FiOpsTagged { send, senddata, .. } = *endpoint.as_ref().tagged;
                match data {
                    Some(data) => senddata(ep, memory, length, desc, data, to, tag, context),
                    None => send(ep, memory, length, desc, to, tag, context),
                }
            }
        })
    }

    /// Sends a few bytes, at most `inject_size` of the provider, which keeps no reference to them.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn inject(
        &mut self,
        to: OfiAddress,
        bytes: &[u8],
        with: MessageTag,
    ) -> Result<(), NotBegun> {
        let (memory, length) = (bytes.as_ptr().cast(), bytes.len());
        let (OfiAddress(to), MessageTag { tag, data }) = (to, with);
        let endpoint = self.transmit.as_ptr();
        // SAFETY: an open endpoint, and bytes that the call copies.
        let returned = unsafe {
            let FiOpsTagged { inject, injectdata, .. } = *(*endpoint).tagged;
            match data {
                Some(data) => injectdata(endpoint, memory, length, data, to, tag),
                None => inject(endpoint, memory, length, to, tag),
            }
        };
        match returned {
            0 => Ok(()),
            n => Err(self.not_begun("fi_tinject", n)),
        }
    }

    /// Takes at most `max` operations that are complete; makes progress with the others. Returns
    /// whether more may be complete.
    ///
    /// # Errors
    /// The completion queue has failed.
    pub(super) fn completions(
        &mut self,
        max: usize,
        take: &mut VecDeque<OfiCompletion>,
    ) -> Result<bool, OfiError> {
        let count = max.min(self.entries.len());
        // SAFETY: an open queue, and room for as many entries of its format.
        let returned = unsafe {
            let read = (*self.queue.as_ref().ops).read;
            read(self.queue.as_ptr(), self.entries.as_mut_ptr().cast(), count)
        };
        match returned as c_int {
            n if n == -FI_EAGAIN => Ok(false),
            n if n == -FI_EAVAIL => {
                self.take_failure(take);
                Ok(false)
            }
            n if n < 0 => Err(self.library.error("fi_cq_read", n)),
            n => {
                self.signal.completed();
                for i in 0..(n as usize).min(count) {
                    let FiCqTaggedEntry { op_context, len, tag, data, .. } = self.entries[i];
                    let Some((number, used_by)) = self.ended(op_context) else { continue };
                    let buffer = OfiBuffer(number);
                    take.push_back(match used_by {
                        BufferUse::Receive => {
                            let length = len.min(self.buffer_bytes);
                            OfiCompletion::Received { buffer, length, tag, data }
                        }
                        BufferUse::Remote => {
                            OfiCompletion::Remote { number: number as usize, error: None }
                        }
                        _ => OfiCompletion::Sent { buffer },
                    });
                }
                Ok(n as usize >= count)
            }
        }
    }

    /// The end of a remote operation was taken note of: another one may have its number.
    pub(super) fn give_back(&mut self, number: usize) {
        self.operations.free.push(number as u32);
    }

    /// The number of the slot of an operation that has ended, and what it was.
    fn ended(&self, context: *mut c_void) -> Option<(u32, BufferUse)> {
        let slot = NonNull::new(context)?.cast::<BufferSlot>().as_ptr();
        // SAFETY: a context that is not null is one of an operation that began here: a slot, which
        // lives as long as this value. The library has given it back.
        let (number, used_by) = unsafe {
            let used_by = (*slot).used_by;
            (*slot).used_by = BufferUse::None;
            ((*slot).number, used_by)
        };
        (used_by != BufferUse::None).then_some((number, used_by))
    }

    /// Takes an operation that has failed.
    #[cold]
    fn take_failure(&mut self, take: &mut VecDeque<OfiCompletion>) {
        // Later versions write more than the entry of this one.
        #[repr(C)]
        struct Room {
            entry: FiCqErrEntry,
            more: [u64; 8],
        }
        // SAFETY: all-zero is a valid entry.
        let mut room: Room = unsafe { core::mem::zeroed() };
        // SAFETY: an open queue, and room for an entry.
        let returned = unsafe {
            let readerr = (*self.queue.as_ref().ops).readerr;
            readerr(self.queue.as_ptr(), &mut room.entry, 0)
        };
        if returned != 1 {
            return;
        }
        let Some((number, used_by)) = self.ended(room.entry.op_context) else { return };
        let buffer = OfiBuffer(number);
        let error = |call| self.library.error(call, room.entry.err);
        take.push_back(match used_by {
            BufferUse::Receive => OfiCompletion::ReceiveFailed { buffer },
            BufferUse::Remote => {
                let error = Some(error("remote access"));
                OfiCompletion::Remote { number: number as usize, error }
            }
            _ => OfiCompletion::SendFailed { buffer, error: error("fi_tsend") },
        });
    }

    /// How many nanoseconds a process may sleep now; 0 if something is complete. What
    /// [`OfiEndpoint::descriptor`] names then may end its sleep.
    pub(super) fn longest_sleep_ns(&mut self) -> u64 {
        let mut fid = self.queue.cast::<Fid>().as_ptr();
        // SAFETY: open objects, and an array of one.
        let is_complete = self.descriptor().is_some()
            && unsafe {
                let fabric = self.domain.fabric;
                let trywait = (*fabric.as_ref().ops).trywait;
                trywait(fabric.as_ptr(), &mut fid, 1) != 0
            };
        if is_complete { 0 } else { self.signal.longest_sleep_ns() }
    }

    /// What can be read when something is complete; `None`: only a look shows it.
    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.signal.descriptor()
    }
}

impl Drop for OfiEndpoint {
    fn drop(&mut self) {
        let mut regions: Vec<NonNull<FidMr>> =
            self.blocks.iter().filter_map(|block| block.region).collect();
        // SAFETY: each is open and closed once, what uses another before that. After its endpoint
        // the library uses no buffer; an endpoint that it cannot close keeps all memory.
        unsafe {
            // Providers differ in whether a region that is bound to an endpoint is closed before
            // it or after it.
            if self.domain.mr_mode & FI_MR_ENDPOINT != 0 {
                regions.retain(|&region| !close(region));
                self.domain.close_regions();
            }
            let is_one = self.receive == self.transmit;
            if !close(self.transmit) || !is_one && !close(self.receive) {
                mem::forget(Arc::clone(&self.domain));
                return;
            }
            for region in regions {
                close(region);
            }
            for block in &self.blocks {
                dealloc(block.memory.as_ptr(), block.layout);
            }
            for slot in self.slots.iter().copied().chain(self.operations.contexts()) {
                drop(Box::from_raw(slot.as_ptr()));
            }
            close(self.queue);
        }
    }
}
