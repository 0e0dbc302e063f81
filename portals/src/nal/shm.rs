//! A fabric of processes of one host that share one memory file.
//!
//! Each process joins with [`Fabric::join`] and opens [`crate::NetworkInterface::shm`] over it.
//! The file has one part per process: its arena, then its inbox; each process maps all of it.
//! Pages are allocated on first touch. A caller that needs a guarantee reserves them first
//! ([`sys::memory::reserve`]).
//!
//! The inbox is a `ring` of frames, for messages to private memory that cross-memory attach
//! cannot reach. All peers share it, so its size does not grow with the job. A producer that
//! dies or stops while it holds a slot blocks the frames of the others; [`Nal::blocked_by`]
//! names it.
//!
//! Invariants: a frame is copied out of the inbox before it is read, since its sender could still
//! write to it. The copy is read only if it has the checksum that the sender has stored: a slot
//! that was overwritten ends the job ([`Nal::damage`]).

use core::mem::{offset_of, size_of};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use sys::checksum::add;
use sys::memory::{self, Mapping};
use sys::process::{self, Liveness};

use super::{FrameSent, FrameSink, FrameWatch, Nal, PeerState, Route, frame_length, gather};
use crate::arena::ring::{self, Memo, published, reserved_by};
use crate::arena::{ArenaHeader, CLOSED, JOINED, MAGIC, OwnLine};
use crate::types::{ArenaTable, Damage, MdIovec, Size};

/// Frames that an inbox has room for.
const FRAMES: u64 = 32;
/// An inbox without room says nothing about its owner. After this many, the owner is looked at.
const LOOK_AT_PEER: u32 = 4096;
/// Longest frame, in bytes.
const FRAME: usize = 4096 - 64;

/// A slot of an inbox, with its frame.
#[repr(C, align(64))]
struct FrameSlot {
    control: AtomicU64,
    /// The sender of the frame, and its length.
    sender: AtomicU32,
    length: AtomicU32,
    /// See [`checksum`].
    checksum: AtomicU64,
    bytes: OwnLine<[u8; FRAME]>,
}

/// The frames for one process.
#[repr(C, align(4096))]
struct FrameInbox {
    /// Position of the next frame to be taken; written by the owner of the inbox.
    head: OwnLine<AtomicU64>,
    /// Set by senders after they have published a frame; cleared by the owner before it reads.
    flag: OwnLine<AtomicU32>,
    slots: [FrameSlot; FRAMES as usize],
}

const _: () = assert!(size_of::<FrameSlot>() == 4096 && FRAMES.is_power_of_two());

/// The checksum of a frame: changes with any word of it.
fn checksum(sender: u32, frame: &[u8]) -> u64 {
    const BLOCK: usize = 32;
    let word = |bytes: &[u8]| {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(eight)
    };
    // Sums that do not wait for each other.
    let mut sums = [1, 2, 3, u64::from(sender) << 32 | frame.len() as u64];
    let blocks = frame.chunks_exact(BLOCK);
    let rest = blocks.remainder();
    for block in blocks {
        for (sum, bytes) in sums.iter_mut().zip(block.chunks_exact(8)) {
            *sum = add(*sum, word(bytes));
        }
    }
    for (sum, bytes) in sums.iter_mut().zip(rest.chunks(8)) {
        *sum = add(*sum, word(bytes));
    }
    sums.into_iter().fold(0, add)
}

/// Whether memory outside of arenas and segments may be reached by `process_vm_readv` and
/// `process_vm_writev`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPolicy {
    /// Yes, if the operating system allows it (found by a probe).
    Allowed,
    /// No: such messages are framed.
    Denied,
}

/// What [`Fabric::join`] needs.
#[derive(Debug)]
pub struct FabricSpec {
    /// The memory file of the fabric; empty at first. A process opens one interface over its part.
    pub arena: OwnedFd,
    /// The number of this process.
    pub index: u32,
    /// The number of processes.
    pub size: u32,
    /// Arena bytes per process, rounded up to whole pages; the same in all processes. The file
    /// is longer than all arenas together by the inboxes.
    pub bytes: usize,
    /// Node id of this host.
    pub nid: u32,
    /// Job id.
    pub jid: u32,
    /// Cross-memory attach.
    pub attach: AttachPolicy,
}

/// The part of one process in a shared memory file, and the mapping of all of it.
#[derive(Debug)]
pub struct Fabric {
    mapping: Mapping,
    /// Bytes of one arena.
    bytes: usize,
    /// Position of the next frame for us; [`FrameInbox::head`] is the copy that peers read.
    next: AtomicU64,
    /// What we remember of the inboxes of peers.
    memos: Box<[Memo]>,
    /// The first frame that was found overwritten.
    broken: OnceLock<Damage>,
    /// How often an inbox had no room.
    fulls: AtomicU32,
    index: u32,
    size: u32,
    nid: u32,
    jid: u32,
    attach: AttachPolicy,
}

impl Fabric {
    /// Maps the file. Peers may be addressed once they have opened their interfaces
    /// ([`crate::NetworkInterface::shm`]); the caller arranges a barrier for that.
    pub fn join(spec: FabricSpec) -> io::Result<Fabric> {
        let page = memory::page_size();
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let bytes =
            spec.bytes.checked_next_multiple_of(page).filter(|&b| b > 0).ok_or_else(invalid)?;
        let part = bytes.checked_add(size_of::<FrameInbox>()).ok_or_else(invalid)?;
        let total =
            part.checked_mul(spec.size as usize).filter(|&t| t < 1 << 47).ok_or_else(invalid)?;
        if spec.index >= spec.size {
            return Err(invalid());
        }
        // All processes pass the same length, so the order of their calls does not matter.
        let file = spec.arena.as_fd();
        memory::set_len(file, total as u64)?;
        let mapping = Mapping::shared(file, 0, total)?;
        let FabricSpec { index, size, nid, jid, attach, .. } = spec;
        let memos = (0..size).map(|_| Memo::default()).collect::<Box<[Memo]>>();
        for memo in &memos {
            memo.restart(ring::first(FRAMES));
        }
        let next = AtomicU64::new(ring::first(FRAMES));
        let broken = OnceLock::new();
        let fulls = AtomicU32::new(0);
        let fabric =
            Fabric { mapping, bytes, next, memos, broken, fulls, index, size, nid, jid, attach };
        let magic = &fabric.header(index).ident.magic;
        if magic.compare_exchange(0, JOINED, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            let why = "a process with this number has used the memory file before";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        // Peers read it only after our interface is open.
        fabric.head_of(index).store(ring::first(FRAMES), Ordering::Relaxed);
        Ok(fabric)
    }

    /// The arena of a process, followed by its inbox.
    fn part(&self, index: u32) -> NonNull<u8> {
        debug_assert!(index < self.size);
        // SAFETY: inside the mapping.
        unsafe { self.mapping.base().add((self.bytes + size_of::<FrameInbox>()) * index as usize) }
    }

    fn header(&self, index: u32) -> &ArenaHeader {
        // SAFETY: a mapped header, which consists of atomics; arenas are never shorter (checked by
        // `with_nal`).
        unsafe { self.part(index).cast().as_ref() }
    }
}

/// Inboxes are addressed by fields, never as a whole, since peers write frames into them.
impl Fabric {
    fn inbox(&self, index: u32) -> *mut FrameInbox {
        self.part(index).as_ptr().wrapping_add(self.bytes).cast()
    }

    fn head_of(&self, index: u32) -> &AtomicU64 {
        // SAFETY: inside the part of a process; an atomic at offset 0 of a page.
        unsafe { &*self.inbox(index).cast() }
    }

    fn flag_of(&self, index: u32) -> &AtomicU32 {
        // SAFETY: inside the part of a process, aligned, an atomic.
        unsafe { &(*self.inbox(index)).flag.0 }
    }

    fn slot(&self, index: u32, position: u64) -> *mut FrameSlot {
        const { assert!(offset_of!(FrameInbox, slots) % 64 == 0) };
        let first =
            self.inbox(index).wrapping_byte_add(offset_of!(FrameInbox, slots)).cast::<FrameSlot>();
        first.wrapping_add((position % FRAMES) as usize)
    }

    fn control_of(&self, index: u32, position: u64) -> &AtomicU64 {
        // SAFETY: inside the part of a process, aligned, an atomic.
        unsafe { &(*self.slot(index, position)).control }
    }

    fn sender_of(&self, index: u32, position: u64) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &(*self.slot(index, position)).sender }
    }

    fn length_of(&self, index: u32, position: u64) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &(*self.slot(index, position)).length }
    }

    fn checksum_of(&self, index: u32, position: u64) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { &(*self.slot(index, position)).checksum }
    }

    fn bytes_of(&self, index: u32, position: u64) -> *mut u8 {
        self.slot(index, position).wrapping_byte_add(offset_of!(FrameSlot, bytes)).cast()
    }
}

// SAFETY: arenas are parts of one shared mapping that lives as long as the value; a new memory
// file reads as zeros.
unsafe impl Nal for Fabric {
    fn nid(&self) -> u32 {
        self.nid
    }
    fn index(&self) -> u32 {
        self.index
    }
    fn size(&self) -> u32 {
        self.size
    }
    fn jid(&self) -> u32 {
        self.jid
    }
    fn arena(&self) -> NonNull<u8> {
        self.part(self.index)
    }
    fn arena_bytes(&self) -> usize {
        self.bytes
    }
    fn mapped(&self) -> (NonNull<u8>, usize) {
        (self.mapping.base(), self.mapping.len())
    }
    fn not_opened(&self) {
        let magic = &self.header(self.index).ident.magic;
        let _ = magic.compare_exchange(JOINED, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
    fn route(&self, peer: u32) -> Route {
        Route::Mapped(self.part(peer))
    }
    fn may_attach(&self) -> bool {
        self.attach == AttachPolicy::Allowed
    }

    /// From `/proc/<pid>/stat`. The process id is the one that the peer wrote into its arena.
    fn peer_state(&self, peer: u32) -> PeerState {
        let ident = &self.header(peer).ident;
        if ident.magic.load(Ordering::Acquire) != MAGIC {
            return PeerState::Alive;
        }
        match process::liveness(ident.os_pid.load(Ordering::Relaxed)) {
            Liveness::Alive => PeerState::Alive,
            Liveness::Stopped => PeerState::Stopped,
            Liveness::Dead => PeerState::Dead,
        }
    }

    fn blocked_by(&self) -> Option<u32> {
        let next = self.next.load(Ordering::Relaxed);
        let now = self.control_of(self.index, next).load(Ordering::Relaxed);
        reserved_by(now, next)
    }

    fn damage(&self) -> Option<Damage> {
        if let Some(&broken) = self.broken.get() {
            return Some(broken);
        }
        if let Some((next, found)) = ring::head_damage(&self.next, self.head_of(self.index)) {
            let (table, expected) = (ArenaTable::Frames, Some(next));
            return Some(Damage::Word { table, index: 0, word: "head", expected, found });
        }
        let next = self.next.load(Ordering::Acquire);
        // A flag that was cleared by mistake hides frames; one that is set costs a look.
        if self.control_of(self.index, next).load(Ordering::Relaxed) == published(next) {
            self.flag_of(self.index).store(1, Ordering::Relaxed);
        }
        // A sender publishes no hazard, so a claim alone is no damage.
        let control_of = |position| self.control_of(self.index, position);
        let damage = ring::damage(control_of, FRAMES, &self.next, |_| true, |_| false);
        damage.map(|(position, control)| Damage::Frame { position, control })
    }

    fn max_frame(&self, _peer: u32, _payload: Size) -> usize {
        FRAME
    }

    unsafe fn send(&self, peer: u32, header: &[u8], payload: &[MdIovec], _: bool) -> FrameSent {
        let length = frame_length(header, payload);
        match self.header(peer).ident.magic.load(Ordering::Acquire) {
            MAGIC if length <= FRAME => {}
            CLOSED => return FrameSent::Gone,
            _ => return FrameSent::Full,
        }
        // In one piece, since its checksum is taken of what cannot change meanwhile.
        let mut frame = [0u8; FRAME];
        let frame = &mut frame[..length];
        // SAFETY: the same contract.
        unsafe { gather(frame, header, payload) };
        let control_of = |position| self.control_of(peer, position);
        let (memo, head) = (&self.memos[peer as usize], self.head_of(peer));
        let Ok(position) = ring::claim(control_of, FRAMES, 1, memo, head, self.index) else {
            let fulls = self.fulls.fetch_add(1, Ordering::Relaxed);
            let is_dead =
                || fulls.is_multiple_of(LOOK_AT_PEER) && self.peer_state(peer) == PeerState::Dead;
            return if is_dead() { FrameSent::Gone } else { FrameSent::Full };
        };
        crate::base::fault::point("frame.reserved");
        self.sender_of(peer, position).store(self.index, Ordering::Relaxed);
        self.length_of(peer, position).store(frame.len() as u32, Ordering::Relaxed);
        self.checksum_of(peer, position).store(checksum(self.index, frame), Ordering::Relaxed);
        // SAFETY: the slot is ours until it is published, and the frame is not longer than its
        // bytes.
        unsafe {
            ptr::copy_nonoverlapping(frame.as_ptr(), self.bytes_of(peer, position), frame.len())
        };
        self.control_of(peer, position).store(published(position), Ordering::Release);
        // Release: an owner that sees the flag sees the frame.
        self.flag_of(peer).store(1, Ordering::Release);
        FrameSent::Sent
    }

    fn frame_watch(&self) -> FrameWatch<'_> {
        FrameWatch { arrived: self.flag_of(self.index), countdown: None }
    }

    fn receive(&self, _lane: usize, max: usize, sink: &mut dyn FrameSink) {
        // Frames are copied out before they are read: their sender could still write to them.
        let mut copy = [0u8; FRAME];
        // Acquire: the frames of those that set it are visible. A sender that publishes later
        // sets it again.
        self.flag_of(self.index).swap(0, Ordering::AcqRel);
        for _ in 0..max {
            let next = self.next.load(Ordering::Relaxed);
            // Acquire: see `ring`.
            let now = self.control_of(self.index, next).load(Ordering::Acquire);
            if now != published(next) {
                if reserved_by(now, next).is_some() {
                    // Frames behind this one may have set the flag that was just cleared.
                    self.flag_of(self.index).store(1, Ordering::Relaxed);
                }
                return;
            }
            let sender = self.sender_of(self.index, next).load(Ordering::Relaxed);
            let length =
                (self.length_of(self.index, next).load(Ordering::Relaxed) as usize).min(FRAME);
            // SAFETY: the bytes of a slot of our inbox, and a buffer as long.
            unsafe {
                ptr::copy_nonoverlapping(
                    self.bytes_of(self.index, next),
                    copy.as_mut_ptr(),
                    length,
                )
            };
            let found = self.checksum_of(self.index, next).load(Ordering::Relaxed);
            self.next.store(next.wrapping_add(1), Ordering::Release);
            // Release: see `ring`.
            self.head_of(self.index).store(next.wrapping_add(1), Ordering::Release);
            let frame = &copy[..length];
            let right = checksum(sender, frame);
            if found == right {
                sink.frame(sender, frame);
            } else {
                let (table, index) = (ArenaTable::Frames, (next % FRAMES) as u32);
                let expected = Some(right);
                let damage = Damage::Word { table, index, word: "checksum", expected, found };
                let _ = self.broken.set(damage);
            }
        }
        self.flag_of(self.index).store(1, Ordering::Relaxed); // there may be more
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::NetworkInterface;
    use core::slice;
    use std::os::fd::AsFd;
    use sys::memory::MemFd;

    fn join_all(n: u32, bytes: usize, attach: AttachPolicy) -> impl Iterator<Item = Fabric> {
        let file = MemFd::create(c"arena").unwrap();
        (0..n).map(move |index| {
            let arena = file.as_fd().try_clone_to_owned().unwrap();
            let spec = FabricSpec { arena, index, size: n, bytes, nid: 7, jid: 9, attach };
            Fabric::join(spec).unwrap()
        })
    }

    /// `n` interfaces of one memory file, all in this process.
    pub(crate) fn fabric(n: u32, attach: AttachPolicy) -> Vec<NetworkInterface> {
        let fabrics = join_all(n, 4 << 20, attach);
        fabrics.map(|fabric| NetworkInterface::shm(fabric, None).unwrap()).collect()
    }

    fn send(sender: &Fabric, frame: &[u8]) {
        // SAFETY: no pieces.
        let sent = unsafe { sender.send(0, frame, &[], false) };
        assert_eq!(sent, FrameSent::Sent);
    }

    /// What a program before it has left there is not taken for its own.
    #[test]
    fn a_part_is_used_once() {
        let arena: OwnedFd = MemFd::create(c"arena").unwrap().into();
        let join = |index| {
            let arena = arena.try_clone().unwrap();
            let (bytes, attach) = (1 << 16, AttachPolicy::Denied);
            Fabric::join(FabricSpec { arena, index, size: 2, bytes, nid: 7, jid: 9, attach })
        };
        drop(join(0).unwrap());
        join(1).unwrap();
        assert_eq!(join(0).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    /// A closed interface takes no frames, and one that is not open yet takes them later.
    #[test]
    fn frames_to_a_closed_interface_are_gone() {
        let mut fabrics = join_all(2, 1 << 16, AttachPolicy::Denied);
        let (owner, sender) = (fabrics.next().unwrap(), fabrics.next().unwrap());
        // SAFETY: no pieces.
        let send = || unsafe { sender.send(0, b"frame", &[], false) };
        assert_eq!(send(), FrameSent::Full);
        owner.header(0).ident.magic.store(MAGIC, Ordering::Release);
        assert_eq!(send(), FrameSent::Sent);
        owner.header(0).ident.magic.store(CLOSED, Ordering::Release);
        assert_eq!(send(), FrameSent::Gone);
    }

    fn has_frames(owner: &Fabric) -> bool {
        owner.frame_watch().arrived.load(Ordering::Relaxed) != 0
    }

    /// A sender that is stopped before it sets the flag does not hide the frames of others.
    #[test]
    fn frames_behind_a_slow_sender_are_seen() {
        let mut fabrics = join_all(2, 1 << 16, AttachPolicy::Denied);
        let (owner, sender) = (fabrics.next().unwrap(), fabrics.next().unwrap());
        owner.header(0).ident.magic.store(MAGIC, Ordering::Release);
        let slow = owner.control_of(0, FRAMES);
        slow.store(ring::reserved(ring::first(FRAMES), 1), Ordering::Release);
        send(&sender, b"fast");
        assert!(has_frames(&owner));
        owner.receive(0, 9, &mut |_: u32, _: &[u8]| panic!("the first frame is not there yet"));
        assert_eq!(owner.blocked_by(), Some(1));
        owner.checksum_of(0, FRAMES).store(checksum(0, b""), Ordering::Relaxed);
        slow.store(published(ring::first(FRAMES)), Ordering::Release);
        assert!(has_frames(&owner));
        let mut taken = 0;
        let mut last = Vec::new();
        owner.receive(0, 9, &mut |sender: u32, bytes: &[u8]| {
            taken += 1;
            last = vec![(sender, bytes.to_vec())];
        });
        assert_eq!((taken, has_frames(&owner)), (2, false));
        assert_eq!(last, [(1, b"fast".to_vec())]);
    }

    /// A frame that was overwritten after it was published is damage, whichever word it was.
    #[test]
    fn a_frame_that_was_overwritten_is_damage() {
        for word in 1..8 {
            let mut fabrics = join_all(2, 1 << 16, AttachPolicy::Denied);
            let (owner, sender) = (fabrics.next().unwrap(), fabrics.next().unwrap());
            owner.header(0).ident.magic.store(MAGIC, Ordering::Release);
            send(&sender, &[7; 40]);
            assert!(owner.damage().is_none());
            // SAFETY: words of the slot. The first is the control; then come sender and length,
            // the checksum, and from the second line on the bytes.
            let word = unsafe {
                let first = owner.slot(0, FRAMES).cast::<AtomicU64>();
                &*first.add(if word < 3 { word } else { word + 5 })
            };
            word.fetch_xor(1 << 33, Ordering::Relaxed);
            owner.receive(0, 9, &mut |_: u32, _: &[u8]| panic!("the frame was overwritten"));
            let damage = owner.damage();
            assert!(matches!(damage, Some(Damage::Word { word: "checksum", .. })), "{damage:?}");
        }
    }

    /// Whatever senders have written to the slots of an inbox, each frame is taken once and is
    /// not longer than a slot.
    fn any_slots(input: &[u8]) {
        let mut input = fuzz::InputReader::new(input);
        let owner = join_all(1, 1 << 16, AttachPolicy::Denied).next().unwrap();
        while !input.is_empty() {
            let position = owner.next.load(Ordering::Relaxed);
            let control = match input.byte() % 4 {
                0 => published(position).wrapping_add(input.number()),
                1 => ring::reserved(position, input.byte().into()),
                _ => published(position),
            };
            owner.control_of(0, position).store(control, Ordering::Relaxed);
            let sender = input.number() as u32;
            owner.sender_of(0, position).store(sender, Ordering::Relaxed);
            let length = input.number() as u32;
            owner.length_of(0, position).store(length, Ordering::Relaxed);
            let taken_bytes = FRAME.min(length as usize);
            // SAFETY: the bytes of a slot, to which nothing writes now.
            let bytes = unsafe { slice::from_raw_parts(owner.bytes_of(0, position), taken_bytes) };
            let wrong = u64::from(input.byte().is_multiple_of(4));
            let checksum = checksum(sender, bytes).wrapping_add(wrong);
            owner.checksum_of(0, position).store(checksum, Ordering::Relaxed);
            let head = input.number();
            owner.head_of(0).store(head, Ordering::Relaxed);
            let mut taken = 0;
            owner.receive(0, 1, &mut |from: u32, bytes: &[u8]| {
                assert_eq!((from, bytes.len()), (sender, taken_bytes));
                taken += 1;
            });
            let whole = control == published(position);
            assert_eq!(taken, u64::from(whole && wrong == 0));
            assert!(!whole || wrong == 0 || owner.broken.get().is_some());
            assert_eq!(owner.next.load(Ordering::Relaxed), position + u64::from(whole));
            let (blocked, damage) = (owner.blocked_by(), owner.damage());
            // The head, which any process may have changed, may be found too.
            let damaged = matches!(damage, Some(Damage::Frame { .. }));
            assert!(whole || blocked.is_none() || !damaged);
            owner.control_of(0, position).store(published(position), Ordering::Relaxed);
        }
    }

    #[test]
    fn fuzz_inbox() {
        fuzz::check("inbox", 500, any_slots);
    }
}
