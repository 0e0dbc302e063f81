//! The messages of collectives that have arrived, and those that are expected.
//!
//! Handlers write it, `engine` reads it. Invariant: nothing that a peer sent is used as an
//! address or an index before it was compared with what is kept here.
//!
//! ```text
//!   small   sender: data  ------------------------------------>  kept here if it is early
//!   large   receiver: READY (slot, address, bytes)  ---------->  sender
//!           sender: data to the address, or in pieces  ------->  receiver
//! ```

use super::request::CollId;
use crate::client_memory::{Dst, Src};
use crate::conduit::{AmMessage, Category};
use crate::extended::messages::{self, checksum};
use crate::rank::JobRank;
use crate::{fault, report};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;

/// Names a message: its collective, the process at the other side, the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MessageId {
    pub(super) coll: CollId,
    pub(super) peer: JobRank,
    pub(super) tag: u32,
}

/// A message that arrived as an active message or through a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct CollMessage<'a> {
    pub(super) source: JobRank,
    pub(super) category: Category,
    pub(super) args: &'a [i32],
    pub(super) payload: Src<'a>,
}

impl<'a> CollMessage<'a> {
    /// An active message whose handler is running.
    pub(super) fn of(m: &AmMessage<'a>) -> CollMessage<'a> {
        CollMessage {
            source: m.source,
            category: m.category,
            args: m.args,
            payload: m.payload.into(),
        }
    }
}

/// A message that is expected.
#[derive(Debug)]
struct ReceiveSlot {
    id: MessageId,
    to: Dst<'static>,
    /// Bytes that have arrived.
    arrived: usize,
    done: bool,
}

/// Where a peer expects a large message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadyNotice {
    /// Number of the peer's slot.
    pub(super) slot: u32,
    /// The address at the peer; not checked.
    pub(super) at: usize,
    pub(super) n: usize,
}

#[derive(Debug, Default)]
struct InboxTables {
    slots: Vec<Option<ReceiveSlot>>,
    free: Vec<u32>,
    /// Small messages that are expected and have not arrived.
    wanted: BTreeMap<MessageId, u32>,
    /// Small messages that have arrived and are not expected yet.
    early: BTreeMap<MessageId, Box<[u8]>>,
    ready: BTreeMap<MessageId, ReadyNotice>,
    /// Collectives for which something has arrived.
    news: Vec<CollId>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CollInbox {
    tables: Mutex<InboxTables>,
    /// Whether `news` may hold anything; a hint that avoids the lock.
    any: AtomicBool,
}

fn malformed(m: &CollMessage<'_>) -> ! {
    report::fatal(
        format_args!(
            "a message of a collective, of rank {}, does not fit: {:?}, {} bytes",
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

/// The arguments of a small message or of a piece: three, and their checksum.
pub(super) fn with_checksum([a, b, c]: [i32; 3]) -> [i32; 4] {
    [a, b, c, checksum(&[a, b, c])]
}

/// The three arguments of [`with_checksum`]. Ends the job if they were overwritten.
fn three_of(m: &CollMessage<'_>) -> [i32; 3] {
    match messages::without_checksum(m.args) {
        Some(&[a, b, c]) => [a, b, c],
        Some(_) => malformed(m),
        None => overwritten(m),
    }
}

/// Bits of the upper half of a size that hold a checksum instead. No message is that long.
const SIZE_CHECKSUM: i32 = !0xffff;

/// The eight arguments of the notice that a receiver expects a large message. The seventh is the
/// upper half of the size, with a checksum in its unused bits. No more than eight arguments fit
/// into a cache line.
pub(super) fn ready_args(mut args: [i32; 8]) -> [i32; 8] {
    args[6] &= !SIZE_CHECKSUM;
    args[6] |= checksum(&args) & SIZE_CHECKSUM;
    args
}

/// A message that no rank has sent so.
#[cold]
pub(super) fn overwritten(m: &CollMessage<'_>) -> ! {
    report::damaged(format_args!(
        "a message of a collective, of rank {}, was overwritten: {:?}",
        m.source, m.args
    ))
}

/// The name of a message that begins with context, number and tag.
fn id_of(m: &CollMessage<'_>, [context, number, tag]: [i32; 3]) -> MessageId {
    let coll = CollId { context: context as u32, number: number as u32 };
    MessageId { coll, peer: m.source, tag: tag as u32 }
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
            self.news.push(slot.id.coll);
            spoil(slot.to);
        }
    }
}

/// The planted fault that changes a byte of what has arrived.
fn spoil(to: Dst<'_>) {
    if fault::on("flip_coll") {
        to.flip(0);
    }
}

impl CollInbox {
    /// Expects a small message. `None` if it was early and has been copied to `to`; else the
    /// number of its slot.
    pub(super) fn want_small(&self, id: MessageId, to: Dst<'static>) -> Option<u32> {
        let mut tables = self.tables.lock();
        if let Some(data) = tables.early.remove(&id) {
            if data.len() != to.len() {
                sizes_differ(id, data.len(), to.len());
            }
            to.copy_from(Src::from(&*data));
            spoil(to);
            return None;
        }
        let slot = tables.keep(ReceiveSlot { id, to, arrived: 0, done: false });
        tables.wanted.insert(id, slot);
        Some(slot)
    }

    /// Expects a large message; the number of its slot, which the sender gets to know.
    pub(super) fn want_large(&self, id: MessageId, to: Dst<'static>) -> u32 {
        self.tables.lock().keep(ReceiveSlot { id, to, arrived: 0, done: false })
    }

    /// Whether the message of this slot has arrived; frees the slot if it has.
    pub(super) fn take_done(&self, slot: u32) -> bool {
        let mut tables = self.tables.lock();
        let done = tables.slots[slot as usize].take_if(|s| s.done).is_some();
        if done {
            tables.free.push(slot);
        }
        done
    }

    /// Where the peer expects a large message of this process, once its notice has arrived.
    pub(super) fn take_ready(&self, id: MessageId) -> Option<ReadyNotice> {
        self.tables.lock().ready.remove(&id)
    }

    /// The collectives for which something has arrived since the last call.
    pub(super) fn take_news(&self) -> Vec<CollId> {
        if !self.any.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        core::mem::take(&mut self.tables.lock().news)
    }

    /// Forgets what [`CollInbox::take_news`] would return.
    pub(super) fn drop_news(&self) {
        if self.any.swap(false, Ordering::Acquire) {
            self.tables.lock().news.clear();
        }
    }

    /// Whether [`CollInbox::take_news`] may return anything.
    pub(super) fn has_news(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    fn announce(&self) {
        // Release pairs with the Acquire in `take_news`.
        self.any.store(true, Ordering::Release);
    }

    /// A small message: context, number, tag, checksum; the payload is the data.
    pub(super) fn on_small(&self, m: &CollMessage<'_>) {
        let id = id_of(m, three_of(m));
        let mut tables = self.tables.lock();
        match tables.wanted.remove(&id) {
            Some(i) => {
                let Some(slot) = &tables.slots[i as usize] else { malformed(m) };
                if slot.to.len() != m.payload.len() {
                    sizes_differ(id, m.payload.len(), slot.to.len());
                }
                slot.to.copy_from(m.payload);
                tables.finish(i);
            }
            None => {
                let mut data = alloc::vec![0; m.payload.len()].into_boxed_slice();
                Dst::from(&mut *data).copy_from(m.payload);
                if tables.early.insert(id, data).is_some() {
                    malformed(m);
                }
            }
        }
        drop(tables);
        self.announce();
    }

    /// The notice that a receiver expects a large message: context, number, tag, slot, address,
    /// size.
    pub(super) fn on_ready(&self, m: &CollMessage<'_>) {
        let Ok(args) = <[i32; 8]>::try_from(m.args) else { malformed(m) };
        if ready_args(args) != args {
            overwritten(m);
        }
        let [context, number, tag, slot, at_high, at_low, n_high, n_low] = args;
        let n_high = n_high & !SIZE_CHECKSUM;
        let id = id_of(m, [context, number, tag]);
        let (at, n) = (word(at_high, at_low), word(n_high, n_low));
        let mut tables = self.tables.lock();
        if tables.ready.insert(id, ReadyNotice { slot: slot as u32, at, n }).is_some() {
            malformed(m);
        }
        tables.news.push(id.coll);
        drop(tables);
        self.announce();
    }

    /// A piece of a large message: slot, offset, checksum. As a Short, it has the size of what the
    /// sender copied to its destination in place of the offset.
    pub(super) fn on_piece(&self, m: &CollMessage<'_>) {
        let [number, high, low] = three_of(m);
        let (number, word) = (number as u32, word(high, low));
        let mut tables = self.tables.lock();
        let Some(Some(slot)) = tables.slots.get_mut(number as usize) else { malformed(m) };
        let (offset, bytes) =
            if m.category == Category::Short { (0, word) } else { (word, m.payload.len()) };
        if slot.id.peer != m.source || slot.done || bytes > slot.to.len() - slot.arrived {
            malformed(m);
        }
        let Some(to) = slot.to.try_part(offset, bytes) else { malformed(m) };
        match m.category {
            Category::Short => core::sync::atomic::fence(Ordering::Acquire),
            Category::Medium => to.copy_from(m.payload),
            Category::Long if core::ptr::eq(m.payload.as_ptr(), to.as_ptr()) => {}
            Category::Long => malformed(m),
        }
        slot.arrived += bytes;
        if slot.arrived == slot.to.len() {
            tables.finish(number);
            drop(tables);
            self.announce();
        }
    }
}

/// Ends the job: sender and receiver disagree about a size.
pub(super) fn sizes_differ(id: MessageId, theirs: usize, ours: usize) -> ! {
    report::fatal(
        format_args!(
            "rank {} has {theirs} bytes where this rank has {ours} in the same collective of a team",
            id.peer
        ),
        format_args!(
            "All images must call the collectives of a team in the same order with the same root, size and flags."
        ),
    )
}
