//! The registry of operations in flight: explicit ones behind handles, implicit ones counted per thread, and access
//! regions, which collect implicit operations behind one handle.
//!
//! The extended room opens and syncs operations, always for the calling thread; whoever polls completes them through
//! [`Ops::complete`], from any thread. Invariants: a fragment is counted before it is
//! initiated, and all are before the operation can be synced; slots are never moved or freed before the registry is; a slot's generation changes whenever
//! its operation has been synced, so a handle that was synced already is recognised and counts as complete.

use crate::client_memory::Dst;
use crate::conduit::OpId;
use crate::report;
use alloc::boxed::Box;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crossbeam_utils::CachePadded;

/// Threads that can have operations.
pub const THREADS: usize = 256;
/// Explicit operations and access regions that one thread can have in flight.
pub const OPS_PER_THREAD: u32 = 1 << INDEX_BITS;

const INDEX_BITS: u32 = 20;
const THREAD_SHIFT: u32 = INDEX_BITS;
const KIND_SHIFT: u32 = INDEX_BITS + 8;

/// An explicit operation or a region: the index names its slot.
const EXPLICIT: u32 = 0;
/// The implicit puts of a thread; no index.
const PUTS: u32 = 1;
/// The implicit gets of a thread; no index.
const GETS: u32 = 2;

/// No slot.
const NONE: u32 = u32::MAX;
/// Slots of the first slab of a thread; each later one has as many slots as all before it.
const FIRST_SLAB: u32 = 256;
const SLABS: usize = (INDEX_BITS - FIRST_SLAB.ilog2() + 1) as usize;

const _: () = assert!(
    size_of::<usize>() == 8,
    "a handle holds a generation, a thread and an index: 60 bits"
);

/// What `gasnet_handle_t` holds: generation, thread and index of an explicit operation; 0 is `GASNET_INVALID_HANDLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct OpHandle(pub usize);

impl OpHandle {
    /// `GASNET_INVALID_HANDLE`: nothing to wait for.
    pub const INVALID: OpHandle = OpHandle(0);

    /// The name under which fragments of this operation are completed.
    pub fn op(self) -> OpId {
        OpId(self.0 as u32)
    }

    fn new(generation: u32, op: OpId) -> OpHandle {
        OpHandle((generation as usize) << 32 | op.0 as usize)
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Whether a handle is live, already synced, or invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleState {
    /// Its operation, of the thread with this index, has not been synced.
    Live(u16),
    /// Its operation was synced.
    Synced,
    /// It names no operation.
    Invalid,
}

/// Which count of implicit operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImplicitKind {
    /// Puts and memsets.
    Puts,
    /// Gets.
    Gets,
}

/// One explicit operation or region.
#[derive(Debug)]
struct OpSlot {
    /// Fragments initiated; written by the owner only.
    issued: AtomicU32,
    /// Fragments completed. The Release of each completion pairs with the Acquire of the sync.
    done: AtomicU32,
    /// From 1; changes at each sync.
    generation: AtomicU32,
    /// Next free slot, while this one is free.
    next: AtomicU32,
    /// Where a get of the value form puts its bytes.
    value: AtomicU64,
}

/// What the owner alone writes.
#[derive(Debug)]
struct OwnerWords {
    /// First free slot.
    free: AtomicU32,
    /// The open access region.
    region: AtomicU32,
    /// Slabs made.
    slabs: AtomicU32,
    /// Fragments of implicit puts and gets initiated.
    issued: [AtomicU32; 2],
}

/// What any thread writes.
#[derive(Debug)]
struct SharedWords {
    /// Slots that another thread than their owner synced: a stack that others push on and the owner takes whole.
    returned: AtomicU32,
    /// Fragments of implicit puts and gets completed; pairs like [`OpSlot::done`].
    done: [AtomicU32; 2],
}

/// All operations of one thread.
#[derive(Debug)]
struct OpLane {
    owner: CachePadded<OwnerWords>,
    shared: CachePadded<SharedWords>,
    /// First slots of the slabs. Release when a slab is made, pairs with the Acquire in [`OpLane::slot`].
    slabs: [AtomicPtr<OpSlot>; SLABS],
}

/// Slab and place in it of a slot.
fn place(index: u32) -> (usize, u32) {
    if index < FIRST_SLAB {
        (0, index)
    } else {
        let slab = (index / FIRST_SLAB).ilog2() + 1;
        (slab as usize, index - slab_len(slab as usize))
    }
}

/// Slots of a slab, and, except of the first, of all slabs before it.
fn slab_len(slab: usize) -> u32 {
    if slab == 0 { FIRST_SLAB } else { FIRST_SLAB << (slab - 1) }
}

impl OpLane {
    fn new() -> OpLane {
        OpLane {
            owner: CachePadded::new(OwnerWords {
                free: AtomicU32::new(NONE),
                region: AtomicU32::new(NONE),
                slabs: AtomicU32::new(0),
                issued: [AtomicU32::new(0), AtomicU32::new(0)],
            }),
            shared: CachePadded::new(SharedWords {
                returned: AtomicU32::new(NONE),
                done: [AtomicU32::new(0), AtomicU32::new(0)],
            }),
            slabs: [const { AtomicPtr::new(ptr::null_mut()) }; SLABS],
        }
    }

    fn slot(&self, index: u32) -> Option<&OpSlot> {
        let (slab, at) = place(index);
        let slots = self.slabs.get(slab)?.load(Ordering::Acquire);
        if slots.is_null() {
            return None;
        }
        // SAFETY: a slab that is not null has `slab_len(slab)` slots, `at` is below that by `place`, and it lives as
        // long as the lane.
        Some(unsafe { &*slots.add(at as usize) })
    }

    fn my_slot(&self, index: u32) -> &OpSlot {
        self.slot(index).expect("free lists hold slots that exist")
    }

    /// Takes a free slot; owner only.
    fn alloc(&self) -> (u32, &OpSlot) {
        let mut index = self.owner.free.load(Ordering::Relaxed);
        if index == NONE {
            // Acquire pairs with the Release of `give_back`: the links of the stack are seen.
            index = self.shared.returned.swap(NONE, Ordering::Acquire);
            if index == NONE {
                index = self.grow();
            }
        }
        let slot = self.my_slot(index);
        self.owner.free.store(slot.next.load(Ordering::Relaxed), Ordering::Relaxed);
        (index, slot)
    }

    /// Makes one more slab and returns its first slot, linked to the rest of it.
    #[cold]
    fn grow(&self) -> u32 {
        let slab = self.owner.slabs.load(Ordering::Relaxed) as usize;
        if slab == SLABS {
            report::fatal(
                format_args!(
                    "more than {OPS_PER_THREAD} non-blocking operations of one thread in flight"
                ),
                format_args!(
                    "Sync some of them (gasnet_wait_syncnb and its like) before initiating more."
                ),
            );
        }
        let len = slab_len(slab);
        let first = if slab == 0 { 0 } else { len };
        let slots: Box<[OpSlot]> = (0..len)
            .map(|at| OpSlot {
                issued: AtomicU32::new(0),
                done: AtomicU32::new(0),
                generation: AtomicU32::new(1),
                next: AtomicU32::new(if at + 1 == len { NONE } else { first + at + 1 }),
                value: AtomicU64::new(0),
            })
            .collect();
        self.slabs[slab].store(Box::into_raw(slots).cast(), Ordering::Release);
        self.owner.slabs.store(slab as u32 + 1, Ordering::Relaxed);
        first
    }

    /// Ends the life of an operation; owner only.
    fn free(&self, index: u32, slot: &OpSlot, generation: u32) {
        slot.generation.store(next_generation(generation), Ordering::Relaxed);
        slot.next.store(self.owner.free.load(Ordering::Relaxed), Ordering::Relaxed);
        self.owner.free.store(index, Ordering::Relaxed);
    }

    /// Ends the life of an operation from another thread than its owner. Push of a Treiber stack; the owner
    /// takes the whole stack at once, so there is no ABA.
    #[cold]
    fn give_back(&self, index: u32, slot: &OpSlot, generation: u32) {
        let next = next_generation(generation);
        if slot
            .generation
            .compare_exchange(generation, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            return;
        }
        let mut top = self.shared.returned.load(Ordering::Relaxed);
        loop {
            slot.next.store(top, Ordering::Relaxed);
            match self.shared.returned.compare_exchange_weak(
                top,
                index,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }
}

impl Drop for OpLane {
    fn drop(&mut self) {
        for (slab, slots) in self.slabs.iter().enumerate() {
            let slots = slots.load(Ordering::Relaxed);
            if !slots.is_null() {
                // SAFETY: made by `grow` from a boxed slice of this length, and nobody else holds the lane any more.
                drop(unsafe {
                    Box::from_raw(ptr::slice_from_raw_parts_mut(slots, slab_len(slab) as usize))
                });
            }
        }
    }
}

fn next_generation(generation: u32) -> u32 {
    generation.wrapping_add(1).max(1)
}

/// The operations of all threads of this process.
#[derive(Debug)]
pub struct Ops {
    /// Made when a thread first has an operation. Release when made, pairs with the Acquire in [`Ops::lane_of`].
    lanes: Box<[AtomicPtr<OpLane>]>,
    /// Completions may come from several threads at once.
    concurrent: bool,
    /// Bit 0: an implicit operation has been begun here; those that were complete at once never are. Above it: how many access
    /// regions are open.
    syncs: AtomicUsize,
}

impl Ops {
    /// An empty registry for up to `threads` threads, at most [`THREADS`].
    pub fn new(threads: usize) -> Ops {
        assert!(threads <= THREADS);
        Ops {
            lanes: (0..threads).map(|_| AtomicPtr::new(ptr::null_mut())).collect(),
            concurrent: threads > 1,
            syncs: AtomicUsize::new(0),
        }
    }

    /// A word that is 0 while a thread that syncs its implicit operations has nothing to wait for and no region open, which would be
    /// a mistake. It may be other than 0 for what other threads did; for what this one did it is.
    pub fn syncs(&self) -> &AtomicUsize {
        &self.syncs
    }

    /// Fragments of operations under way. Async-signal-safe; a little off while threads are busy.
    pub fn outstanding(&self) -> u64 {
        let under_way = |issued: &AtomicU32, done: &AtomicU32| {
            let n = issued.load(Ordering::Relaxed).wrapping_sub(done.load(Ordering::Relaxed));
            u64::from(if n < 1 << 31 { n } else { 0 })
        };
        let mut sum = 0;
        for lane in (0..self.lanes.len()).filter_map(|t| self.lane_of(t)) {
            sum += lane
                .owner
                .issued
                .iter()
                .zip(&lane.shared.done)
                .map(|(i, d)| under_way(i, d))
                .sum::<u64>();
            let slabs = lane.owner.slabs.load(Ordering::Relaxed) as usize;
            let slots: u32 = (0..slabs).map(slab_len).sum();
            sum += (0..slots)
                .filter_map(|i| lane.slot(i))
                .map(|s| under_way(&s.issued, &s.done))
                .sum::<u64>();
        }
        sum
    }

    fn lane_of(&self, thread: usize) -> Option<&OpLane> {
        let lane = self.lanes.get(thread)?.load(Ordering::Acquire);
        // SAFETY: null or made by `mine` from a box, and freed only when the registry is dropped.
        unsafe { lane.as_ref() }
    }

    /// The lane of the calling thread, made at its first operation.
    fn mine(&self, thread: u16) -> &OpLane {
        match self.lane_of(thread.into()) {
            Some(lane) => lane,
            None => self.new_lane(thread),
        }
    }

    #[cold]
    fn new_lane(&self, thread: u16) -> &OpLane {
        let lane = Box::into_raw(Box::new(OpLane::new()));
        self.lanes[usize::from(thread)].store(lane, Ordering::Release);
        // SAFETY: just made; only the thread with this index makes its lane, and it lives as long as the registry.
        unsafe { &*lane }
    }

    fn slot_of(&self, op: OpId) -> Option<(&OpLane, u32, &OpSlot)> {
        let lane = self.lane_of(thread_of(op))?;
        let index = op.0 & (OPS_PER_THREAD - 1);
        Some((lane, index, lane.slot(index)?))
    }

    /// Opens an explicit operation of `thread` with this many fragments; to be called before any of them is
    /// initiated.
    pub fn begin(&self, thread: u16, fragments: u32) -> OpHandle {
        let (index, slot) = self.mine(thread).alloc();
        slot.issued.store(fragments, Ordering::Relaxed);
        slot.done.store(0, Ordering::Relaxed);
        OpHandle::new(slot.generation.load(Ordering::Relaxed), op_id(EXPLICIT, thread, index))
    }

    /// Adds fragments to an explicit operation that its owner, the caller, has opened and not handed out yet; to be
    /// called before any of them is initiated.
    pub fn extend(&self, handle: OpHandle, fragments: u32) {
        let (_, _, slot) = self.slot_of(handle.op()).expect("the caller has just opened it");
        slot.issued
            .store(slot.issued.load(Ordering::Relaxed).wrapping_add(fragments), Ordering::Relaxed);
    }

    /// Counts this many fragments to the open access region of `thread`, or to its implicit operations; to be
    /// called before any of them is initiated. Returns the name under which they are completed.
    pub fn begin_implicit(&self, thread: u16, which: ImplicitKind, fragments: u32) -> OpId {
        let lane = self.mine(thread);
        let region = lane.owner.region.load(Ordering::Relaxed);
        let (count, op) = if region == NONE {
            let kind = if which == ImplicitKind::Puts { PUTS } else { GETS };
            if self.syncs.load(Ordering::Relaxed) & 1 == 0 {
                self.syncs.fetch_or(1, Ordering::Relaxed);
            }
            (&lane.owner.issued[which as usize], op_id(kind, thread, 0))
        } else {
            (&lane.my_slot(region).issued, op_id(EXPLICIT, thread, region))
        };
        count.store(count.load(Ordering::Relaxed).wrapping_add(fragments), Ordering::Relaxed);
        op
    }

    /// One fragment of `op` is complete; from any thread. What it wrote to memory is seen by the thread that syncs.
    pub fn complete(&self, op: OpId) {
        let count = self.lane_of(thread_of(op)).and_then(|lane| match op.0 >> KIND_SHIFT {
            EXPLICIT => lane.slot(op.0 & (OPS_PER_THREAD - 1)).map(|slot| &slot.done),
            PUTS => Some(&lane.shared.done[ImplicitKind::Puts as usize]),
            GETS => Some(&lane.shared.done[ImplicitKind::Gets as usize]),
            _ => None,
        });
        let Some(count) = count else {
            report::fatal(
                format_args!(
                    "the network completed operation {:#x}, which was never initiated",
                    op.0
                ),
                format_args!("This is a mistake in the library; please report it."),
            );
        };
        if self.concurrent {
            count.fetch_add(1, Ordering::Release);
        } else {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        }
    }

    /// Whether an explicit operation is complete; if so, the handle is dead and its slot may be used again. INVALID
    /// and dead handles are complete. `thread` is the caller.
    pub fn sync(&self, thread: u16, handle: OpHandle) -> bool {
        self.sync_value(thread, handle).is_some()
    }

    /// As [`Ops::sync`], with the value that the operation had fetched: `None` while it is not complete, 0 for INVALID
    /// and dead handles.
    pub fn sync_value(&self, thread: u16, handle: OpHandle) -> Option<u64> {
        if handle == OpHandle::INVALID {
            return Some(0);
        }
        let op = handle.op();
        let Some((lane, index, slot)) =
            self.slot_of(op).filter(|_| op.0 >> KIND_SHIFT == EXPLICIT)
        else {
            report::fatal(
                format_args!("{:#x} is not a handle of a non-blocking operation", handle.0),
                format_args!(
                    "Give what gasnet_put_nb and its like returned, or GASNET_INVALID_HANDLE."
                ),
            );
        };
        let generation = slot.generation.load(Ordering::Relaxed);
        if generation != handle.generation() {
            return Some(0);
        }
        if slot.done.load(Ordering::Acquire) != slot.issued.load(Ordering::Relaxed) {
            return None;
        }
        let value = slot.value.load(Ordering::Relaxed);
        if thread_of(op) == usize::from(thread) {
            lane.free(index, slot, generation);
        } else {
            lane.give_back(index, slot, generation);
        }
        Some(value)
    }

    /// What this handle, which is not INVALID, is.
    pub fn look_up(&self, handle: OpHandle) -> HandleState {
        let op = handle.op();
        match self.slot_of(op).filter(|_| op.0 >> KIND_SHIFT == EXPLICIT) {
            None => HandleState::Invalid,
            Some((_, _, slot))
                if slot.generation.load(Ordering::Relaxed) != handle.generation() =>
            {
                HandleState::Synced
            }
            Some(_) => HandleState::Live(thread_of(op) as u16),
        }
    }

    /// Eight zeroed bytes that belong to this operation, which must have been opened by `thread` and not synced.
    pub fn value(&self, handle: OpHandle) -> Dst<'static> {
        let (_, _, slot) = self.slot_of(handle.op()).expect("the caller has just opened it");
        slot.value.store(0, Ordering::Relaxed);
        // SAFETY: slots are never moved or freed before the registry is, whose job lives until the process ends.
        unsafe { Dst::new(slot.value.as_ptr().cast(), size_of::<u64>()) }
    }

    /// Forgets the access region that the last owner of this index left open when it ended. What was initiated in it
    /// completes; its slot is used again only if that has happened already.
    pub fn abandon_region(&self, thread: u16) {
        if self.in_region(thread) {
            self.close_region(thread);
        }
    }

    /// Whether all implicit operations of this kind that `thread` initiated outside access regions are complete.
    pub fn implicit_done(&self, thread: u16, which: ImplicitKind) -> bool {
        let Some(lane) = self.lane_of(thread.into()) else { return true };
        lane.shared.done[which as usize].load(Ordering::Acquire)
            == lane.owner.issued[which as usize].load(Ordering::Relaxed)
    }

    /// Whether `thread` has an access region open.
    pub fn in_region(&self, thread: u16) -> bool {
        self.lane_of(thread.into())
            .is_some_and(|lane| lane.owner.region.load(Ordering::Relaxed) != NONE)
    }

    /// Opens an access region of `thread`; false if one is open.
    pub fn open_region(&self, thread: u16) -> bool {
        let lane = self.mine(thread);
        if lane.owner.region.load(Ordering::Relaxed) != NONE {
            return false;
        }
        let (index, slot) = lane.alloc();
        slot.issued.store(0, Ordering::Relaxed);
        slot.done.store(0, Ordering::Relaxed);
        lane.owner.region.store(index, Ordering::Relaxed);
        self.syncs.fetch_add(2, Ordering::Relaxed);
        true
    }

    /// Closes the access region of `thread` and returns the handle of all that was initiated in it, INVALID if that is
    /// complete; `None` if no region is open.
    pub fn close_region(&self, thread: u16) -> Option<OpHandle> {
        let lane = self.mine(thread);
        let index = lane.owner.region.load(Ordering::Relaxed);
        if index == NONE {
            return None;
        }
        lane.owner.region.store(NONE, Ordering::Relaxed);
        self.syncs.fetch_sub(2, Ordering::Relaxed);
        let generation = lane.my_slot(index).generation.load(Ordering::Relaxed);
        let handle = OpHandle::new(generation, op_id(EXPLICIT, thread, index));
        Some(if self.sync(thread, handle) { OpHandle::INVALID } else { handle })
    }
}

impl Drop for Ops {
    fn drop(&mut self) {
        for lane in &self.lanes {
            let lane = lane.load(Ordering::Relaxed);
            if !lane.is_null() {
                // SAFETY: made by `new_lane` from a box; nobody else holds the registry any more.
                drop(unsafe { Box::from_raw(lane) });
            }
        }
    }
}

fn op_id(kind: u32, thread: u16, index: u32) -> OpId {
    OpId(kind << KIND_SHIFT | u32::from(thread & 0xff) << THREAD_SHIFT | index)
}

fn thread_of(op: OpId) -> usize {
    (op.0 >> THREAD_SHIFT & 0xff) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn slabs_cover_all_indices() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(255), (0, 255));
        assert_eq!(place(256), (1, 0));
        assert_eq!(place(511), (1, 255));
        assert_eq!(place(512), (2, 0));
        assert_eq!(place(OPS_PER_THREAD - 1), (SLABS - 1, slab_len(SLABS - 1) - 1));
        let mut next = 0;
        for slab in 0..SLABS {
            assert_eq!(place(next), (slab, 0));
            next += slab_len(slab);
        }
        assert_eq!(next, OPS_PER_THREAD);
    }

    #[test]
    fn a_new_owner_of_an_index_inherits_no_region() {
        let ops = Ops::new(2);
        for complete in [true, false] {
            assert!(ops.open_region(1));
            let op = ops.begin_implicit(1, ImplicitKind::Puts, 1);
            if complete {
                ops.complete(op);
            }
            ops.abandon_region(1);
            assert!(!ops.in_region(1));
            let h = ops.begin(1, 1);
            // Still in flight: its slot is not used again.
            assert_eq!(h.op() == op, complete);
            if !complete {
                ops.complete(op);
            }
            assert!(!ops.sync(1, h));
            ops.complete(h.op());
            assert!(ops.sync(1, h));
        }
        ops.abandon_region(0);
    }

    #[test]
    fn an_operation_is_complete_after_its_last_fragment() {
        let ops = Ops::new(1);
        let h = ops.begin(0, 3);
        assert_ne!(h, OpHandle::INVALID);
        for _ in 0..2 {
            ops.complete(h.op());
            assert!(!ops.sync(0, h));
        }
        ops.complete(h.op());
        assert!(ops.sync(0, h));
        assert!(ops.sync(0, OpHandle::INVALID));
    }

    #[test]
    fn an_operation_may_grow_before_it_is_handed_out() {
        let ops = Ops::new(1);
        let h = ops.begin(0, 0);
        ops.extend(h, 1);
        ops.complete(h.op());
        ops.extend(h, 2);
        ops.complete(h.op());
        assert!(!ops.sync(0, h));
        ops.complete(h.op());
        assert!(ops.sync(0, h));
    }

    #[test]
    fn a_dead_handle_is_complete_although_its_slot_lives_again() {
        let ops = Ops::new(1);
        let old = ops.begin(0, 1);
        ops.complete(old.op());
        assert!(ops.sync(0, old));
        let new = ops.begin(0, 1);
        assert_eq!(new.op(), old.op(), "the slot is used again");
        assert_ne!(new, old);
        assert!(ops.sync(0, old));
        assert!(!ops.sync(0, new), "syncing the dead handle did not touch the new operation");
        ops.complete(new.op());
        assert!(ops.sync(0, new));
        assert!(ops.sync(0, new));
    }

    #[test]
    fn generations_never_give_the_invalid_handle() {
        assert_eq!(next_generation(u32::MAX), 1);
        assert_eq!(next_generation(1), 2);
    }

    #[test]
    fn many_in_flight_from_the_last_thread() {
        let ops = Ops::new(256);
        let handles: Vec<OpHandle> = (0..65_536 + 1000).map(|_| ops.begin(255, 1)).collect();
        let mut names: Vec<u32> = handles.iter().map(|h| h.op().0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), handles.len());
        assert!(handles.iter().all(|&h| !ops.sync(255, h)));
        for h in handles.iter().rev() {
            ops.complete(h.op());
        }
        assert!(handles.iter().all(|&h| ops.sync(255, h)));
        let again = ops.begin(255, 1);
        assert!(
            names.binary_search(&again.op().0).is_ok(),
            "freed slots are used before new ones are made"
        );
    }

    #[test]
    fn implicit_puts_and_gets_are_separate_and_per_thread() {
        let ops = Ops::new(8);
        let put = ops.begin_implicit(3, ImplicitKind::Puts, 2);
        let get = ops.begin_implicit(3, ImplicitKind::Gets, 1);
        assert!(
            !ops.implicit_done(3, ImplicitKind::Puts) && !ops.implicit_done(3, ImplicitKind::Gets)
        );
        assert!(ops.implicit_done(4, ImplicitKind::Puts));
        ops.complete(get);
        assert!(ops.implicit_done(3, ImplicitKind::Gets));
        ops.complete(put);
        assert!(!ops.implicit_done(3, ImplicitKind::Puts));
        ops.complete(put);
        assert!(ops.implicit_done(3, ImplicitKind::Puts));
    }

    #[test]
    fn a_region_collects_implicit_operations() {
        let ops = Ops::new(8);
        assert_eq!(ops.close_region(0), None);
        assert!(ops.open_region(0));
        assert!(!ops.open_region(0));
        assert!(ops.in_region(0) && !ops.in_region(1));
        assert_eq!(ops.close_region(0), Some(OpHandle::INVALID));

        assert!(ops.open_region(0));
        let a = ops.begin_implicit(0, ImplicitKind::Puts, 1);
        ops.complete(a);
        let b = ops.begin_implicit(0, ImplicitKind::Gets, 2);
        ops.complete(b);
        let h = ops.close_region(0).unwrap();
        assert_ne!(h, OpHandle::INVALID);
        assert!(
            ops.implicit_done(0, ImplicitKind::Puts) && ops.implicit_done(0, ImplicitKind::Gets)
        );
        assert!(!ops.sync(0, h));
        ops.complete(b);
        assert!(ops.sync(0, h));
    }

    /// The word that lets a sync be left out.
    #[test]
    fn syncs_are_needed_while_regions_are_open_and_after_implicit_operations() {
        let ops = Ops::new(2);
        let needed = || ops.syncs().load(Ordering::Relaxed) != 0;
        let h = ops.begin(0, 1);
        ops.complete(h.op());
        assert!(!needed());
        assert!(ops.open_region(1) && needed());
        let op = ops.begin_implicit(1, ImplicitKind::Puts, 1);
        ops.complete(op);
        let h = ops.close_region(1).unwrap();
        assert!(!needed() && ops.sync(1, h));
        ops.complete(ops.begin_implicit(0, ImplicitKind::Gets, 1));
        assert!(needed());
    }

    #[test]
    fn values_travel_in_the_slot() {
        let ops = Ops::new(1);
        let h = ops.begin(0, 1);
        let value = ops.value(h);
        assert_eq!(ops.sync_value(0, h), None);
        value.part(0, 1).fill(7);
        ops.complete(h.op());
        assert_eq!(ops.sync_value(0, h).map(u64::to_le), Some(7));
        assert_eq!(ops.sync_value(0, h), Some(0));
    }

    #[test]
    fn another_thread_may_sync() {
        let ops = Ops::new(256);
        let handles: Vec<OpHandle> = (0..FIRST_SLAB).map(|_| ops.begin(1, 1)).collect();
        for &h in &handles {
            ops.complete(h.op());
            assert!(ops.sync(2, h));
            assert!(ops.sync(2, h), "dead");
        }
        let again: Vec<OpHandle> = (0..FIRST_SLAB).map(|_| ops.begin(1, 1)).collect();
        let slabs = ops.lane_of(1).unwrap().owner.slabs.load(Ordering::Relaxed);
        assert_eq!(slabs, 1, "returned slots are used again");
        assert!(again.iter().all(|&h| !ops.sync(1, h)));
    }

    #[test]
    fn completions_from_several_threads() {
        extern crate std;
        const ROUNDS: u32 = 200;
        const COMPLETERS: u32 = 3;
        let ops = Ops::new(256);
        let (ops, word) = (&ops, &AtomicU64::new(0));
        std::thread::scope(|s| {
            for _ in 0..COMPLETERS {
                s.spawn(move || {
                    let mut seen = 0;
                    while seen >> 32 != u64::from(ROUNDS) {
                        let now = word.load(Ordering::Acquire);
                        if now != seen {
                            seen = now;
                            for _ in 0..100 {
                                ops.complete(OpId(now as u32));
                            }
                        }
                        std::thread::yield_now();
                    }
                });
            }
            for round in 1..=ROUNDS {
                let h = ops.begin(5, COMPLETERS * 100);
                word.store(u64::from(round) << 32 | u64::from(h.op().0), Ordering::Release);
                while !ops.sync(5, h) {
                    std::thread::yield_now();
                }
            }
        });
    }
}
