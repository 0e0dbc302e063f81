//! The registry of operations in flight: explicit ones behind handles, implicit ones counted
//! per thread, and access regions, which collect implicit operations behind one handle.
//!
//! The extended layer opens and syncs operations, always for the calling thread; any thread
//! that polls completes them through [`Ops::complete`]. Invariants: all fragments are counted
//! before the first is initiated, and before the operation can be synced. A slot's generation
//! changes whenever its operation was synced. So a handle that was synced already is recognised
//! and counts as complete.

mod fragments;
mod handle;
mod primitive;
#[cfg(test)]
mod tests;
mod thread_ops;

pub use handle::{HandleState, ImplicitKind, OPS_PER_THREAD, OpHandle};

use crate::client_memory::Dst;
use crate::conduit::OpId;
use crate::limits::MAX_THREADS;
use crate::report;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use fragments::{CountedFragment, are_complete, count_before};
use handle::{OpIdKind, index_of, is_explicit, kind_of, op_id, thread_of};
use once_cell::race::OnceBox;
use thread_ops::{NONE, OpSlot, ThreadOps, slab_len};

/// The operations of all threads of this process.
#[derive(Debug)]
pub struct Ops {
    /// Made when a thread first has an operation. The box is published with Release and read
    /// with Acquire.
    threads: Box<[OnceBox<ThreadOps>]>,
    /// Several threads may complete fragments at once.
    concurrent: bool,
    /// Bit 0: an implicit operation was begun here, which those that complete at once are not.
    /// Other bits: how many access regions are open.
    syncs: AtomicUsize,
}

/// The network has completed a fragment that this process did not start.
#[cold]
fn never_initiated(op: OpId) -> ! {
    report::damaged(format_args!(
        "the network completed operation {:#x}, of which nothing is in flight",
        op.0
    ))
}

impl Ops {
    /// An empty registry for up to `threads` threads, at most [`MAX_THREADS`].
    pub fn new(threads: usize) -> Ops {
        assert!(threads <= MAX_THREADS);
        Ops {
            threads: (0..threads).map(|_| OnceBox::new()).collect(),
            concurrent: threads > 1,
            syncs: AtomicUsize::new(0),
        }
    }

    /// A word that is 0 until a thread begins the first implicit operation that does not complete
    /// at once; after that it is never 0. Before, it is 0 while no access region is open. A sync
    /// that reads 0 returns at once: that serves the inline path of the headers.
    pub fn syncs(&self) -> &AtomicUsize {
        &self.syncs
    }

    /// Fragments in flight, approximately while threads are busy. Async-signal-safe.
    pub fn outstanding(&self) -> u64 {
        let under_way = |issued: &AtomicU32, done: &AtomicU32| {
            let n = issued.load(Ordering::Relaxed).wrapping_sub(done.load(Ordering::Relaxed));
            u64::from(if n < 1 << 31 { n } else { 0 })
        };
        let mut sum = 0;
        for ops in (0..self.threads.len()).filter_map(|t| self.of_thread(t)) {
            sum += ops
                .owner
                .issued
                .iter()
                .zip(&ops.shared.done)
                .map(|(i, d)| under_way(i, d))
                .sum::<u64>();
            let slabs = ops.owner.slabs.load(Ordering::Relaxed) as usize;
            let slots: u32 = (0..slabs).map(slab_len).sum();
            sum += (0..slots)
                .filter_map(|i| ops.slot(i))
                .map(|s| under_way(&s.issued, &s.done))
                .sum::<u64>();
        }
        sum
    }

    fn of_thread(&self, thread: usize) -> Option<&ThreadOps> {
        self.threads.get(thread)?.get()
    }

    /// The operations of the calling thread, which its first one makes.
    fn mine(&self, thread: u16) -> &ThreadOps {
        match self.of_thread(thread.into()) {
            Some(ops) => ops,
            None => self.new_thread(thread),
        }
    }

    #[cold]
    fn new_thread(&self, thread: u16) -> &ThreadOps {
        self.threads[usize::from(thread)].get_or_init(|| Box::new(ThreadOps::new()))
    }

    fn slot_of(&self, op: OpId) -> Option<(&ThreadOps, u32, &OpSlot)> {
        let ops = self.of_thread(thread_of(op))?;
        let index = index_of(op);
        Some((ops, index, ops.slot(index)?))
    }

    /// Opens an explicit operation of `thread` with this many fragments; to be called before
    /// any of them is initiated.
    pub fn begin(&self, thread: u16, fragments: u32) -> OpHandle {
        let (index, slot) = self.mine(thread).alloc();
        // Release, as in `count_before`.
        slot.issued.store(fragments, Ordering::Release);
        slot.done.store(0, Ordering::Relaxed);
        OpHandle::new(
            slot.generation.load(Ordering::Relaxed),
            op_id(OpIdKind::Explicit, thread, index),
        )
    }

    /// As [`Ops::begin`], for a put whose [leaf](OpHandle::leaf) is complete when all sources of
    /// its fragments have departed; that of another operation ends with it. [`Ops::depart`] counts
    /// them; the operation itself is complete after that.
    pub fn begin_with_departures(&self, thread: u16, fragments: u32) -> OpHandle {
        let handle = self.begin(thread, 2 * fragments);
        let (_, _, slot) = self.slot_of(handle.op()).expect("just opened");
        slot.sources.store(fragments, Ordering::Relaxed);
        slot.departed.store(0, Ordering::Relaxed);
        OpHandle::new(handle.generation(), handle.op().with_departures())
    }

    /// Adds fragments to an explicit operation that the caller has opened and not handed out;
    /// to be called before any of them is initiated.
    pub fn extend(&self, handle: OpHandle, fragments: u32) {
        let (_, _, slot) = self.slot_of(handle.op()).expect("the caller has just opened it");
        count_before(&slot.issued, fragments);
    }

    /// The id under which the implicit operations that `thread` begins next are completed.
    pub fn implicit_op(&self, thread: u16, which: ImplicitKind) -> OpId {
        match self.mine(thread).owner.region.load(Ordering::Relaxed) {
            NONE => op_id(OpIdKind::Implicit(which), thread, 0),
            region => op_id(OpIdKind::Explicit, thread, region),
        }
    }

    /// Counts this many fragments to the open access region of `thread`, or to its implicit
    /// operations; to be called before any of them is initiated. Returns the id under which
    /// they are completed.
    pub fn begin_implicit(&self, thread: u16, which: ImplicitKind, fragments: u32) -> OpId {
        let ops = self.mine(thread);
        let op = self.implicit_op(thread, which);
        let count = if is_explicit(op) {
            &ops.my_slot(index_of(op)).issued
        } else {
            if self.syncs.load(Ordering::Relaxed) & 1 == 0 {
                self.syncs.fetch_or(1, Ordering::Relaxed);
            }
            &ops.owner.issued[which as usize]
        };
        count_before(count, fragments);
        op
    }

    /// As [`Ops::begin_implicit`], for a put whose sources also count as
    /// [`ImplicitKind::Departures`], or for the leaf of the access region.
    pub fn begin_implicit_with_departures(&self, thread: u16, fragments: u32) -> OpId {
        let op = self.begin_implicit(thread, ImplicitKind::Puts, 2 * fragments);
        let ops = self.mine(thread);
        let sources = match is_explicit(op) {
            true => &ops.my_slot(index_of(op)).sources,
            false => &ops.owner.issued[ImplicitKind::Departures as usize],
        };
        sources.store(sources.load(Ordering::Relaxed).wrapping_add(fragments), Ordering::Relaxed);
        op.with_departures()
    }

    /// Counts the departure of a source of `op`, which counts them; from any thread.
    #[cold]
    pub fn depart(&self, op: OpId) {
        let departed = self.of_thread(thread_of(op)).and_then(|ops| match is_explicit(op) {
            true => Some(&ops.slot(index_of(op))?.departed),
            false => Some(&ops.shared.done[ImplicitKind::Departures as usize]),
        });
        // First: the operation cannot be synced before this end of its fragment is counted.
        departed.into_iter().for_each(|departed| _ = departed.fetch_add(1, Ordering::Release));
        self.complete(op);
    }

    /// Counts a fragment of `op` as complete; from any thread. The thread that syncs sees what
    /// it wrote. Ends the job if no fragment of `op` is in flight: the id came from the network.
    #[inline]
    pub fn complete(&self, op: OpId) {
        if !self.count(op).is_some_and(|counted| counted.was_in_flight()) {
            never_initiated(op);
        }
    }

    /// The counting of [`Ops::complete`]; `None` if there is no such operation.
    #[inline]
    fn count(&self, op: OpId) -> Option<CountedFragment<'_>> {
        let ops = self.of_thread(thread_of(op))?;
        let (issued, done, generation) = match kind_of(op)? {
            OpIdKind::Explicit => {
                let slot = ops.slot(index_of(op))?;
                (&slot.issued, &slot.done, Some(&slot.generation))
            }
            OpIdKind::Implicit(kind) => {
                let kind = kind as usize;
                (&ops.owner.issued[kind], &ops.shared.done[kind], None)
            }
        };
        Some(CountedFragment::count(issued, done, generation, self.concurrent))
    }

    /// Whether an explicit operation is complete; if so, the handle counts as synced and its
    /// slot is free. INVALID and synced handles are complete. `thread` is the caller.
    pub fn sync(&self, thread: u16, handle: OpHandle) -> bool {
        self.sync_value(thread, handle).is_some()
    }

    /// As [`Ops::sync`], with the value that the operation had fetched: `None` while it is not
    /// complete, 0 for INVALID and synced handles.
    pub fn sync_value(&self, thread: u16, handle: OpHandle) -> Option<u64> {
        if handle == OpHandle::INVALID {
            return Some(0);
        }
        let op = handle.op();
        let Some((ops, index, slot)) = self.slot_of(op).filter(|_| is_explicit(op)) else {
            let root = handle.root_of_leaf().filter(|root| is_explicit(root.op()));
            if let Some(done) = root.and_then(|root| self.leaf_done(root)) {
                return done.then_some(0);
            }
            report::fatal(
                format_args!("{:#x} is not a handle of a non-blocking operation", handle.0),
                format_args!(
                    "Give what a call that begins an operation has returned, such as gasnet_put_nb or gex_RMA_PutNB, or the invalid handle or event."
                ),
            );
        };
        let generation = slot.generation.load(Ordering::Relaxed);
        if generation != handle.generation() {
            return Some(0);
        }
        if !are_complete(&slot.issued, &slot.done) {
            return None;
        }
        let value = slot.value.load(Ordering::Relaxed);
        if thread_of(op) == usize::from(thread) {
            ops.free(index, slot, generation);
        } else {
            ops.give_back(index, slot, generation);
        }
        Some(value)
    }

    /// Whether the leaf of this operation is complete, or the operation was synced; `None` if
    /// there is no such operation.
    #[cold]
    fn leaf_done(&self, root: OpHandle) -> Option<bool> {
        let (_, _, slot) = self.slot_of(root.op())?;
        let (issued, done) = match root.op().counts_departures() {
            true => (&slot.sources, &slot.departed),
            false => (&slot.issued, &slot.done),
        };
        let was_synced = slot.generation.load(Ordering::Relaxed) != root.generation();
        Some(was_synced || are_complete(issued, done))
    }

    /// The leaf of an operation that was just opened; INVALID if its sources have departed.
    pub fn leaf_of(&self, root: OpHandle) -> OpHandle {
        if self.leaf_done(root) == Some(true) { OpHandle::INVALID } else { root.leaf() }
    }

    /// The state of a handle other than INVALID.
    pub fn look_up(&self, handle: OpHandle) -> HandleState {
        let op = handle.root_of_leaf().unwrap_or(handle).op();
        match self.slot_of(op).filter(|_| is_explicit(op)) {
            None => HandleState::Invalid,
            Some((_, _, slot))
                if slot.generation.load(Ordering::Relaxed) != handle.generation() =>
            {
                HandleState::Synced
            }
            Some(_) => HandleState::Live(thread_of(op) as u16),
        }
    }

    /// Eight zeroed bytes that belong to this operation, which must have been opened by
    /// `thread` and not synced.
    pub fn value(&self, handle: OpHandle) -> Dst<'_> {
        let (_, _, slot) = self.slot_of(handle.op()).expect("the caller has just opened it");
        slot.value.store(0, Ordering::Relaxed);
        Dst::from(core::slice::from_ref(&slot.value))
    }

    /// Closes the access region that the last thread with this index left open when it ended.
    /// Its operations complete, and its slot is used again after that.
    pub fn abandon_region(&self, thread: u16) {
        if self.in_region(thread)
            && let Some(handle) = self.close_region(thread)
            && handle != OpHandle::INVALID
        {
            self.mine(thread).abandon(index_of(handle.op()));
        }
    }

    /// Whether all implicit operations of this kind that `thread` initiated outside access
    /// regions are complete.
    pub fn implicit_done(&self, thread: u16, which: ImplicitKind) -> bool {
        let Some(ops) = self.of_thread(thread.into()) else { return true };
        are_complete(&ops.owner.issued[which as usize], &ops.shared.done[which as usize])
    }

    /// Whether `thread` has an access region open.
    pub fn in_region(&self, thread: u16) -> bool {
        self.of_thread(thread.into())
            .is_some_and(|ops| ops.owner.region.load(Ordering::Relaxed) != NONE)
    }

    /// Opens an access region of `thread`; false if one is open.
    pub fn open_region(&self, thread: u16) -> bool {
        let ops = self.mine(thread);
        if ops.owner.region.load(Ordering::Relaxed) != NONE {
            return false;
        }
        let (index, slot) = ops.alloc();
        // Release, as in `count_before`.
        slot.issued.store(0, Ordering::Release);
        for count in [&slot.done, &slot.sources, &slot.departed] {
            count.store(0, Ordering::Relaxed);
        }
        ops.owner.region.store(index, Ordering::Relaxed);
        self.syncs.fetch_add(2, Ordering::Relaxed);
        true
    }

    /// Closes the access region of `thread` and returns the handle of all that was initiated in
    /// it. Returns INVALID if that is complete, `None` if no region is open.
    pub fn close_region(&self, thread: u16) -> Option<OpHandle> {
        let ops = self.mine(thread);
        let index = ops.owner.region.load(Ordering::Relaxed);
        if index == NONE {
            return None;
        }
        ops.owner.region.store(NONE, Ordering::Relaxed);
        self.syncs.fetch_sub(2, Ordering::Relaxed);
        let (slot, op) = (ops.my_slot(index), op_id(OpIdKind::Explicit, thread, index));
        let has_leaf = slot.sources.load(Ordering::Relaxed) != 0;
        let op = if has_leaf { op.with_departures() } else { op };
        let handle = OpHandle::new(slot.generation.load(Ordering::Relaxed), op);
        Some(if self.sync(thread, handle) { OpHandle::INVALID } else { handle })
    }
}
