//! ReqRB: the buffers that requests arrive in, one after the other, and the catch basin after
//! them; and ReqHdr, a descriptor without bytes.
//!
//! Called by `request_recv`. `arrived`, `unlinked` and the decision to start a handler happen
//! under AM_EQ's lock. Invariant: the attached buffers have space for all requests that peers have
//! credits to send.
//!
//! ```text
//!   match list   ReqHdr ─ buffer ─ buffer ─ ... ─ catch basin
//!                 │        │                       └ a message that finds no buffer: fatal
//!                 │        └ full (less than a chunk is left): UNLINK. When that event has been
//!                 │          taken and the last message released, attached again, empty, just
//!                 │          before the catch basin
//!                 └ requests that are all header, or whose body travels in their event
//! ```
//!
//! With flow control the catch basin is never reached. Let, in bytes,
//!
//! - T be all credits, given away and banked,
//! - F the space in attached buffers after the messages whose events have been taken,
//! - M the credits of those of these messages whose handlers have not been started.
//!
//! `slack` = F - (T - M) stays at zero or above. A message that was delivered but not yet taken
//! lowers F and the credits of its sender alike. Starting a handler lowers M, since it may reply
//! at any moment, which gives the credits back. So it is started only while `slack` stays at zero
//! or above. A message that must wait is copied out (by `request_recv`). So it does not keep its
//! own buffer from being refreshed, which raises F again. A request to ReqHdr uses credits and no
//! space, so it changes none of these. With one thread and one buffer more than the credits fill,
//! nothing waits. The exception is behind a peer that was stopped in the middle of a delivery.

use super::CHUNK;
use super::config::Config;
use super::credits::CREDIT_BYTES;
use super::match_bits::{IGNORE, TargetMd};
use super::memory::{self, Body};
use super::portals::{EntryPosition, MdFlags, MdRegion, MdSpec, Portals, PortalsError};
use super::queue::broken;
use super::sync;
use super::user::Descriptor;
use crate::client_memory::Dst;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use sys::hint::cold_path;
use sys::peer::Peer;

struct ReceiveBuffer {
    memory: Dst<'static>,
    /// One for the attached descriptor and one for each message that has not been released.
    refs: AtomicU32,
    /// Space after the messages whose events have been taken, in bytes, without the last chunk.
    room: AtomicI64,
    /// Where messages begin whose events have been taken since the buffer was attached: a bit for
    /// each multiple of [`ALIGN`] bytes.
    begun: &'static [AtomicU64],
}

/// Bodies begin at multiples of this.
const ALIGN: usize = 8;

impl ReceiveBuffer {
    fn new(memory: Dst<'static>, bytes: usize) -> Result<ReceiveBuffer, PortalsError> {
        Ok(ReceiveBuffer {
            memory,
            refs: AtomicU32::new(0),
            room: AtomicI64::new(0),
            begun: memory::words(bytes.div_ceil(64 * ALIGN))?,
        })
    }

    /// [`ReceiveBuffer::body`] of a message whose event has just been taken; each once. An event
    /// with the offset of another message would hand that out a second time, and lose its own.
    #[inline(always)]
    fn new_body(&self, offset: Peer<usize>, len: Peer<usize>) -> Option<Body<'_>> {
        // An empty message has the offset of the next.
        if len.data() == 0 {
            cold_path();
            return self.body(offset, len);
        }
        let bytes = self.memory.peer_part(offset, len)?;
        // An offset that is no multiple of ALIGN becomes one that is far too large.
        let unit = offset.data().rotate_right(ALIGN.trailing_zeros());
        let (word, bit) = (self.begun.get(unit / 64)?, 1 << (unit % 64));
        let begun = word.load(Ordering::Relaxed);
        word.store(begun | bit, Ordering::Relaxed);
        // SAFETY: as in `body`: the offset is a multiple of ALIGN.
        (begun & bit == 0).then_some(unsafe { Body::held(bytes) })
    }

    /// The message of `len` bytes at `offset`, where an event says that it is.
    #[inline(always)]
    fn body(&self, offset: Peer<usize>, len: Peer<usize>) -> Option<Body<'_>> {
        let bytes = self.memory.peer_part(offset, len)?;
        if !offset.data().is_multiple_of(ALIGN) {
            return None;
        }
        // SAFETY: the bytes belong to this message, which is complete, until `release`; buffers
        // are page aligned, and the offset is a multiple of 8.
        Some(unsafe { Body::held(bytes) })
    }
}

pub(super) struct ReqRb<P: Portals> {
    par: bool,
    flow_control: bool,
    /// Bytes of a buffer.
    bytes: usize,
    eq: P::Eq,
    catch_basin: P::Me,
    buffers: Box<[ReceiveBuffer]>,
    slack: CachePadded<AtomicI64>,
    /// How often a buffer was attached again.
    refreshes: AtomicU64,
}

impl<P: Portals> ReqRb<P> {
    pub(super) fn open(portals: &P, config: &Config, eq: &P::Eq) -> Result<Self, PortalsError> {
        attach_req_hdr(portals, config.pt_am, eq)?;
        let bits = TargetMd::ReqRb as u64;
        let catch_basin =
            portals.me_attach(EntryPosition::Tail(config.pt_am), bits, IGNORE, false)?;
        let nothing = MdSpec {
            region: MdRegion::EMPTY,
            max_size: None,
            flags: MdFlags {
                op_put: true,
                truncate: true,
                ack_disable: true,
                event_start_disable: true,
                ..MdFlags::default()
            },
            user: Descriptor::CatchBasin.pack(),
            eq: Some(eq),
        };
        portals.md_attach(catch_basin, &nothing, false)?;
        let bytes = config.buffer_bytes();
        let buffers: Result<Vec<_>, PortalsError> = (0..config.reqrb_buffers)
            .map(|_| ReceiveBuffer::new(memory::targeted(portals, bytes)?, bytes))
            .collect();
        let this = ReqRb {
            par: config.par(),
            flow_control: config.flow_control,
            bytes,
            eq: eq.clone(),
            catch_basin,
            buffers: buffers?.into_boxed_slice(),
            slack: CachePadded::new(AtomicI64::new(
                -((config.total_credits() as usize * CREDIT_BYTES) as i64),
            )),
            refreshes: AtomicU64::new(0),
        };
        for i in 0..config.reqrb_buffers {
            this.attach(portals, i)?;
        }
        debug_assert!(!config.flow_control || this.slack.load(Ordering::Relaxed) >= 0);
        Ok(this)
    }

    /// Attaches an empty buffer after the others.
    fn attach(&self, portals: &P, i: u32) -> Result<(), PortalsError> {
        let b = &self.buffers[i as usize];
        let usable = (self.bytes - CHUNK) as i64;
        b.refs.store(1, Ordering::Relaxed);
        b.room.store(usable, Ordering::Relaxed);
        // To store into a page takes memory.
        let used = b.begun.iter().filter(|word| word.load(Ordering::Relaxed) != 0);
        used.for_each(|word| word.store(0, Ordering::Relaxed));
        let me = portals.me_attach(
            EntryPosition::Before(self.catch_basin),
            TargetMd::ReqRb as u64,
            IGNORE,
            true,
        )?;
        let spec = MdSpec {
            region: b.memory.into(),
            max_size: Some(CHUNK),
            flags: MdFlags { op_put: true, event_start_disable: true, ..MdFlags::default() },
            user: Descriptor::ReqRb(i).pack(),
            eq: Some(&self.eq),
        };
        portals.md_attach(me, &spec, true)?;
        sync::add(self.par, &self.slack, usable);
        Ok(())
    }

    /// The message of `len` bytes at `offset` of buffer `i`, which it holds.
    pub(super) fn body(&self, i: u32, offset: Peer<usize>, len: Peer<usize>) -> Option<Body<'_>> {
        self.buffers[i as usize].body(offset, len)
    }

    /// The event of a message of `len` bytes at `offset` of buffer `i` has been taken. The
    /// message holds the buffer until [`ReqRb::release`]. Returns its body, if it can be there and
    /// no other message was. Also returns whether its handler may be started at once; its
    /// `credits` then count as given back.
    #[inline(always)]
    pub(super) fn arrived(
        &self,
        i: u32,
        offset: Peer<usize>,
        len: Peer<usize>,
        credits: u32,
    ) -> (Option<Body<'_>>, bool) {
        let b = &self.buffers[i as usize];
        sync::count(self.par, &b.refs, 1);
        let room = b.room.load(Ordering::Relaxed);
        let used = len.map(|len| len as i64).clamped(room);
        b.room.store(room - used, Ordering::Relaxed);
        let start = !self.flow_control || self.slack.load(Ordering::Relaxed) >= used;
        if start {
            // Only takers lower the slack, and there is one at a time.
            sync::add(self.par, &self.slack, -used);
        } else {
            sync::add(self.par, &self.slack, credit_bytes(credits) - used);
        }
        (b.new_body(offset, len), start)
    }

    /// Whether a handler may be started that had to wait; its `credits` then count as given back.
    pub(super) fn may_start(&self, credits: u32) -> bool {
        let bytes = credit_bytes(credits);
        if self.flow_control && self.slack.load(Ordering::Relaxed) < bytes {
            return false;
        }
        sync::add(self.par, &self.slack, -bytes);
        true
    }

    /// A message that [`ReqRb::arrived`] allowed to start must wait after all, for its data.
    pub(super) fn defer(&self, credits: u32) {
        sync::add(self.par, &self.slack, credit_bytes(credits));
    }

    /// Whether the events that have been taken leave room in buffer `i` for a largest message. It
    /// is not unlinked before it is full.
    pub(super) fn has_room(&self, i: u32) -> bool {
        self.buffers[i as usize].room.load(Ordering::Relaxed) != 0
    }

    /// The UNLINK event of buffer `i` has been taken.
    pub(super) fn unlinked(&self, portals: &P, i: u32) {
        let b = &self.buffers[i as usize];
        sync::add(self.par, &self.slack, -b.room.swap(0, Ordering::Relaxed));
        self.release(portals, i);
    }

    /// A message in buffer `i` has been handled.
    #[inline]
    pub(super) fn release(&self, portals: &P, i: u32) {
        if sync::count(self.par, &self.buffers[i as usize].refs, -1) == 0 {
            self.refresh(portals, i);
        }
    }

    #[cold]
    fn refresh(&self, portals: &P, i: u32) {
        self.refreshes.fetch_add(1, Ordering::Relaxed);
        self.attach(portals, i).unwrap_or_else(|e| broken(e));
    }

    /// How often a buffer was attached again.
    pub(super) fn refreshes(&self) -> u64 {
        self.refreshes.load(Ordering::Relaxed)
    }
}

/// Attaches ReqHdr.
fn attach_req_hdr<P: Portals>(portals: &P, pt: u32, eq: &P::Eq) -> Result<(), PortalsError> {
    let entry =
        portals.me_attach(EntryPosition::Tail(pt), TargetMd::ReqHdr as u64, IGNORE, false)?;
    let spec = MdSpec {
        region: MdRegion::EMPTY,
        max_size: None,
        flags: MdFlags::landing(),
        user: Descriptor::ReqHdr.pack(),
        eq: Some(eq),
    };
    portals.md_attach(entry, &spec, false)?;
    Ok(())
}

fn credit_bytes(credits: u32) -> i64 {
    (credits as usize * CREDIT_BYTES) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two events with one offset, as a damaged one may have, give out one body.
    #[test]
    fn each_message_of_a_buffer_is_handed_out_once() {
        let mut memory = [0u64; 256];
        // SAFETY: the memory outlives the buffer, and nothing else uses it.
        let dst = unsafe { Dst::new(memory.as_mut_ptr().cast(), 2048) };
        let buffer = ReceiveBuffer::new(dst, 2048).unwrap();
        let new = |offset: usize| buffer.new_body(Peer::new(offset), Peer::new(8)).is_some();
        for offset in (0..2048).step_by(8) {
            assert!(new(offset) && !new(offset), "{offset}");
        }
        assert!(!new(2048) && !new(4));
    }
}
