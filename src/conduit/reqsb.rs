//! ReqSB: the chunks that requests leave from and their replies arrive in; small puts and gets whose local side lies
//! outside the segment bounce through them.
//!
//! The descriptor is attached (replies target it) and has its events on SAFE_EQ. A request holds its chunk until its
//! reply has been dealt with, a bounced put until its ACK, a bounced get until its REPLY. Invariant: only the holder
//! of a chunk touches its bytes and its [`Record`]; he passes it on through the event that ends his hold.
//!
//! Requests leave through a second descriptor of the same memory that has no events: the reply says that they have left. A SEND
//! event of our own would only stand in the queue before the reply, in a line that the peer is about to write. A request that the
//! network sends within the call does not even write to its chunk, which then waits for the reply only.

use super::CHUNK;
use super::match_bits::{IGNORE, TargetMd};
use super::memory;
use super::portals::{EntryPosition, MdFlags, MdSpec, Portals, PortalsError};
use super::reply::ArrivedReply;
use super::sync::FreeList;
use super::user::Descriptor;
use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// What a chunk's holder notes beside it.
union Record {
    none: (),
    /// A bounced get: where the bytes go.
    get: (*mut u8, usize),
    /// A reply that waits for its handler, and the next one that does.
    reply: MaybeUninit<(ArrivedReply, u32)>,
}

pub(super) struct ReqSb<P: Portals> {
    base: *mut u8,
    pub(super) md: P::Md,
    /// The same memory as a source that has no events.
    pub(super) silent: P::Md,
    free: FreeList,
    records: Box<[UnsafeCell<Record>]>,
}

// SAFETY: chunks and their records are only touched by their holders, of whom there is one at a time; holds pass from
// thread to thread through the free list or an event queue, both of which order memory.
unsafe impl<P: Portals> Send for ReqSb<P> {}
// SAFETY: as above.
unsafe impl<P: Portals> Sync for ReqSb<P> {}

impl<P: Portals> ReqSb<P> {
    pub(super) fn open(
        portals: &P,
        pt: u32,
        par: bool,
        chunks: u32,
        eq: P::Eq,
    ) -> Result<Self, PortalsError> {
        let bytes = chunks as usize * CHUNK;
        let base = memory::targeted(portals, bytes)?;
        let me =
            portals.me_attach(EntryPosition::Tail(pt), TargetMd::ReqSb as u64, IGNORE, false)?;
        let spec = MdSpec {
            start: base,
            length: bytes,
            max_size: None,
            flags: MdFlags {
                op_put: true,
                manage_remote: true,
                event_start_disable: true,
                ..MdFlags::default()
            },
            user: Descriptor::ReqSb.pack(),
            eq: Some(eq),
        };
        // SAFETY: the memory is never freed.
        let md = unsafe { portals.md_attach(me, &spec, false) }?;
        let source = MdSpec { flags: MdFlags::default(), eq: None, ..spec };
        // SAFETY: as above.
        let silent = unsafe { portals.md_bind(&source) }?;
        let records = (0..chunks).map(|_| UnsafeCell::new(Record { none: () })).collect();
        Ok(ReqSb { base, md, silent, free: FreeList::new(par, chunks), records })
    }

    /// Takes a chunk.
    #[inline]
    pub(super) fn take(&self) -> Option<u32> {
        self.free.take()
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> u32 {
        self.free.left()
    }

    /// Gives a chunk back.
    #[inline]
    pub(super) fn give(&self, chunk: u32) {
        self.free.give(chunk);
    }

    /// First byte of a chunk.
    #[inline]
    pub(super) fn at(&self, chunk: u32) -> *mut u8 {
        debug_assert!((chunk as usize) < self.records.len());
        // SAFETY: chunk numbers are below the number of chunks, so this is inside the buffer.
        unsafe { self.base.add(chunk as usize * CHUNK) }
    }

    /// The chunk that starts at this offset; `None` if none does.
    #[inline]
    pub(super) fn chunk_at(&self, offset: usize) -> Option<u32> {
        (offset.is_multiple_of(CHUNK) && offset / CHUNK < self.records.len())
            .then_some((offset / CHUNK) as u32)
    }

    /// Notes where a bounced get goes.
    ///
    /// # Safety
    /// The caller holds the chunk.
    #[inline]
    pub(super) unsafe fn note_get(&self, chunk: u32, dest: *mut u8, n: usize) {
        // SAFETY: the caller holds the chunk, so nobody else touches its record.
        unsafe { (*self.records[chunk as usize].get()).get = (dest, n) };
    }

    /// Where a bounced get goes.
    ///
    /// # Safety
    /// The caller holds the chunk, and the last note was [`ReqSb::note_get`].
    #[inline]
    pub(super) unsafe fn noted_get(&self, chunk: u32) -> (*mut u8, usize) {
        // SAFETY: the caller says that this is what was written last, and nobody else touches the record.
        unsafe { (*self.records[chunk as usize].get()).get }
    }

    /// Notes a reply whose handler has to wait, and the chunk of the next one.
    ///
    /// # Safety
    /// The caller holds the chunk.
    pub(super) unsafe fn note_reply(&self, chunk: u32, reply: ArrivedReply, next: u32) {
        // SAFETY: the caller holds the chunk, so nobody else touches its record.
        unsafe { (*self.records[chunk as usize].get()).reply = MaybeUninit::new((reply, next)) };
    }

    /// The reply whose handler had to wait, and the chunk of the next one.
    ///
    /// # Safety
    /// The caller holds the chunk, and the last note was [`ReqSb::note_reply`].
    pub(super) unsafe fn noted_reply(&self, chunk: u32) -> (ArrivedReply, u32) {
        // SAFETY: the caller says that this is what was written last, and nobody else touches the record.
        unsafe { (*self.records[chunk as usize].get()).reply.assume_init() }
    }
}
