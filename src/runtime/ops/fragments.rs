//! The counts of the fragments of an operation: those initiated, those complete.
//!
//! Used by the registry in this folder, and by crate `models`. Invariant: the owner of an
//! operation counts a fragment before it initiates it. So the network completes none that is not
//! counted.

use super::primitive::{AtomicU32, Ordering};

/// Counts fragments before the first of them is initiated; owner of the operation only.
#[inline]
pub(super) fn count_before(issued: &AtomicU32, fragments: u32) {
    // Release pairs with the Acquire of `was_in_flight`.
    issued.store(issued.load(Ordering::Relaxed).wrapping_add(fragments), Ordering::Release);
}

/// Whether all fragments are complete; owner of the operation, or the thread that syncs it. What
/// they wrote is seen then: Acquire pairs with the Release of each [`CountedFragment::count`].
#[inline]
pub(super) fn are_complete(issued: &AtomicU32, done: &AtomicU32) -> bool {
    done.load(Ordering::Acquire) == issued.load(Ordering::Relaxed)
}

/// A fragment that has just been counted as complete.
pub(super) struct CountedFragment<'a> {
    issued: &'a AtomicU32,
    /// Fragments that were complete before it.
    before: u32,
    /// Of an explicit operation: that of its slot, and its value before.
    generation: Option<(&'a AtomicU32, u32)>,
}

impl<'a> CountedFragment<'a> {
    /// Counts a fragment as complete. `concurrent`: several threads may complete fragments at
    /// once. `generation`: that of the slot of an explicit operation.
    #[inline]
    pub(super) fn count(
        issued: &'a AtomicU32,
        done: &'a AtomicU32,
        generation: Option<&'a AtomicU32>,
        concurrent: bool,
    ) -> CountedFragment<'a> {
        // Until this fragment is counted, its slot cannot be synced.
        let generation = generation.map(|now| (now, now.load(Ordering::Relaxed)));
        let before = if concurrent {
            // Acquire pairs with the Release of the same count in other threads: what they have
            // seen of `issued` is seen here. Otherwise `was_in_flight` could read an earlier
            // value, which may equal the number of fragments that they have counted.
            done.fetch_add(1, Ordering::AcqRel)
        } else {
            let before = done.load(Ordering::Relaxed);
            done.store(before.wrapping_add(1), Ordering::Release);
            before
        };
        CountedFragment { issued, before, generation }
    }

    /// Whether it was in flight: its operation had counted it before it was sent.
    ///
    /// Another thread may have synced the operation since, and begun one with fewer fragments in
    /// its slot; then the generation has changed. Acquire pairs with the Release of
    /// [`count_before`] and of the begin of an operation: a count of the new operation is not seen
    /// with the old generation.
    #[inline]
    pub(super) fn was_in_flight(&self) -> bool {
        self.issued.load(Ordering::Acquire) != self.before
            || self.generation.is_some_and(|(now, used)| now.load(Ordering::Relaxed) != used)
    }
}
