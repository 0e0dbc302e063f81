//! What has arrived for the collectives, and what they expect: written by handlers, read by `engine`.
//!
//! A small message carries its data at once and is kept here if it comes before the process wants it. A large one waits
//! until the receiver says where it goes (READY); then the sender writes there directly, or sends it in pieces. Invariant:
//! nothing that a peer sent is used as an address or an index before it was compared with what is kept here.

use super::engine::CollId;
use crate::conduit::{AmMessage, Category};
use crate::{fault, report};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;

/// Names a message: its collective, the process at the other side, the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MessageId {
    pub(super) key: CollId,
    pub(super) node: u32,
    pub(super) tag: u32,
}

/// A message that we wait for.
#[derive(Debug)]
struct ReceiveSlot {
    name: MessageId,
    at: *mut u8,
    n: usize,
    arrived: usize,
    done: bool,
}

/// Where a peer wants a large message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadyNotice {
    /// Number of the peer's slot.
    pub(super) slot: u32,
    /// As the peer addresses it; not checked.
    pub(super) at: *mut u8,
    pub(super) n: usize,
}

#[derive(Debug, Default)]
struct InboxTables {
    slots: Vec<Option<ReceiveSlot>>,
    free: Vec<u32>,
    /// Small messages that are wanted and not here.
    wanted: BTreeMap<MessageId, u32>,
    /// Small messages that are here and not wanted yet.
    early: BTreeMap<MessageId, Box<[u8]>>,
    ready: BTreeMap<MessageId, ReadyNotice>,
    /// Collectives that something has arrived for.
    news: Vec<CollId>,
}

// SAFETY: the addresses are of memory that a client lends to a collective, or of a plan's scratch memory, or of a peer.
unsafe impl Send for InboxTables {}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CollInbox {
    shelf: Mutex<InboxTables>,
    /// Whether `news` may hold anything; a hint that saves the lock.
    any: AtomicBool,
}

#[cold]
fn malformed(m: &AmMessage<'_>) -> ! {
    report::fatal(
        format_args!(
            "a message of a collective, of process {}, does not fit: {:?}, {} bytes",
            m.source,
            m.args,
            m.payload.len()
        ),
        format_args!(
            "All images must call the collectives of a team in the same order with the same root, size and flags."
        ),
    )
}

fn word(high: i32, low: i32) -> usize {
    (high as u32 as usize) << 32 | low as u32 as usize
}

/// The two halves of a word, as arguments.
pub(super) fn halves(word: usize) -> [i32; 2] {
    [(word >> 32) as i32, word as i32]
}

impl InboxTables {
    fn keep(&mut self, slot: ReceiveSlot) -> u32 {
        match self.free.pop() {
            Some(i) => {
                self.slots[i as usize] = Some(slot);
                i
            }
            None => {
                self.slots.push(Some(slot));
                self.slots.len() as u32 - 1
            }
        }
    }

    fn finish(&mut self, i: u32) {
        if let Some(slot) = &mut self.slots[i as usize] {
            slot.done = true;
            self.news.push(slot.name.key);
            spoil(slot.at, slot.n);
        }
    }
}

fn spoil(at: *mut u8, n: usize) {
    if fault::on("flip_coll") && n != 0 {
        // SAFETY: the first of at least one byte that was just written.
        unsafe { *at ^= 1 };
    }
}

impl CollInbox {
    /// Wants a small message; `None` if it was here and has been copied to `at`, else the number to ask for.
    ///
    /// # Safety
    /// `at` must be writable until the slot is done.
    pub(super) unsafe fn want_small(&self, name: MessageId, at: *mut u8, n: usize) -> Option<u32> {
        let mut shelf = self.shelf.lock();
        if let Some(data) = shelf.early.remove(&name) {
            if data.len() != n {
                sizes_differ(name, data.len(), n);
            }
            // SAFETY: the caller's promise; the sizes agree.
            unsafe { core::ptr::copy_nonoverlapping(data.as_ptr(), at, n) };
            spoil(at, n);
            return None;
        }
        let slot = shelf.keep(ReceiveSlot { name, at, n, arrived: 0, done: false });
        shelf.wanted.insert(name, slot);
        Some(slot)
    }

    /// Wants a large message; the number to ask for, and to tell the sender.
    pub(super) fn want_large(&self, name: MessageId, at: *mut u8, n: usize) -> u32 {
        self.shelf.lock().keep(ReceiveSlot { name, at, n, arrived: 0, done: false })
    }

    /// Whether what was wanted under this number is here; the number is free then.
    pub(super) fn take_done(&self, slot: u32) -> bool {
        let mut shelf = self.shelf.lock();
        let done = shelf.slots[slot as usize].take_if(|s| s.done).is_some();
        if done {
            shelf.free.push(slot);
        }
        done
    }

    /// Where the peer wants a large message of ours, once it has said so.
    pub(super) fn take_ready(&self, name: MessageId) -> Option<ReadyNotice> {
        self.shelf.lock().ready.remove(&name)
    }

    /// The collectives that something has arrived for since the last call.
    pub(super) fn take_news(&self) -> Vec<CollId> {
        if !self.any.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        core::mem::take(&mut self.shelf.lock().news)
    }

    /// Whether [`CollInbox::take_news`] has anything to give.
    pub(super) fn has_news(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    fn tell(&self) {
        // Release pairs with the Acquire in `take_news`.
        self.any.store(true, Ordering::Release);
    }

    /// A small message: context, number, tag; the payload is the data.
    pub(super) fn on_small(&self, m: &AmMessage<'_>) {
        let &[context, number, tag] = m.args else { malformed(m) };
        let key = CollId { context: context as u32, number: number as u32 };
        let name = MessageId { key, node: m.source, tag: tag as u32 };
        let mut shelf = self.shelf.lock();
        match shelf.wanted.remove(&name) {
            Some(i) => {
                let Some(slot) = &shelf.slots[i as usize] else { malformed(m) };
                if slot.n != m.payload.len() {
                    sizes_differ(name, m.payload.len(), slot.n);
                }
                if m.payload.len() != 0 {
                    // SAFETY: the engine lends `n` bytes at `at` until the slot is done.
                    unsafe {
                        core::ptr::copy_nonoverlapping(
                            m.payload.as_ptr(),
                            slot.at,
                            m.payload.len(),
                        )
                    };
                }
                shelf.finish(i);
            }
            None => {
                let data = if m.payload.len() == 0 {
                    Box::default()
                } else {
                    // SAFETY: the payload of a message.
                    unsafe { core::slice::from_raw_parts(m.payload.as_ptr(), m.payload.len()) }
                        .into()
                };
                if shelf.early.insert(name, data).is_some() {
                    malformed(m);
                }
            }
        }
        drop(shelf);
        self.tell();
    }

    /// A receiver's word that it wants a large message: context, number, tag, slot, address, size.
    pub(super) fn on_ready(&self, m: &AmMessage<'_>) {
        let &[context, number, tag, slot, at_high, at_low, n_high, n_low] = m.args else {
            malformed(m)
        };
        let key = CollId { context: context as u32, number: number as u32 };
        let name = MessageId { key, node: m.source, tag: tag as u32 };
        let at = core::ptr::with_exposed_provenance_mut(word(at_high, at_low));
        let ready = ReadyNotice { slot: slot as u32, at, n: word(n_high, n_low) };
        let mut shelf = self.shelf.lock();
        if shelf.ready.insert(name, ready).is_some() {
            malformed(m);
        }
        shelf.news.push(key);
        drop(shelf);
        self.tell();
    }

    /// A piece of a large message: slot, offset; or, as a Short, slot and size of what was written directly.
    pub(super) fn on_piece(&self, m: &AmMessage<'_>) {
        let &[number, high, low] = m.args else { malformed(m) };
        let (number, word) = (number as u32, word(high, low));
        let mut shelf = self.shelf.lock();
        let Some(Some(slot)) = shelf.slots.get_mut(number as usize) else { malformed(m) };
        let (offset, bytes) =
            if m.category == Category::Short { (0, word) } else { (word, m.payload.len()) };
        if slot.name.node != m.source
            || slot.done
            || bytes > slot.n - slot.arrived
            || offset > slot.n - bytes
        {
            malformed(m);
        }
        match m.category {
            Category::Short => core::sync::atomic::fence(Ordering::Acquire),
            // SAFETY: within the `n` bytes that the engine lends until the slot is done.
            Category::Medium => unsafe {
                core::ptr::copy_nonoverlapping(m.payload.as_ptr(), slot.at.add(offset), bytes);
            },
            Category::Long if core::ptr::eq(m.payload.as_ptr(), slot.at.wrapping_add(offset)) => {}
            Category::Long => malformed(m),
        }
        slot.arrived += bytes;
        if slot.arrived == slot.n {
            shelf.finish(number);
            drop(shelf);
            self.tell();
        }
    }
}

/// Ends the job: sender and receiver disagree about a size.
#[cold]
pub(super) fn sizes_differ(name: MessageId, theirs: usize, ours: usize) -> ! {
    report::fatal(
        format_args!(
            "process {} has {theirs} bytes where this process has {ours} in the same collective of a team",
            name.node
        ),
        format_args!(
            "All images must call the collectives of a team in the same order with the same root, size and flags."
        ),
    )
}
