//! The handles of non-blocking collectives that clients hold.
//!
//! Used by `super`. Invariant: a handle is a generation and the index of a slot; a handle whose
//! slot has another generation was synced before and counts as done.

use super::request::CollStatus;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The collectives that a handle stands for.
type Statuses = Vec<Arc<CollStatus>>;

/// The handles of a process.
#[derive(Debug, Default)]
pub(super) struct CollHandles {
    /// Generation, and what is waited for.
    slots: Vec<(u32, Statuses)>,
    free: Vec<u32>,
}

impl CollHandles {
    /// A new handle, never 0.
    pub(super) fn add(&mut self, all: Statuses) -> usize {
        let i = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, Vec::new()));
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[i as usize];
        slot.1 = all;
        (slot.0 as usize) << 32 | (i as usize + 1)
    }

    /// Whether all collectives of the handle are done; frees the handle if they are.
    pub(super) fn sync(&mut self, handle: usize) -> bool {
        let (generation, i) = ((handle >> 32) as u32, (handle as u32).wrapping_sub(1));
        match self.slots.get_mut(i as usize) {
            Some(slot) if slot.0 == generation => {
                if !slot.1.iter().all(|s| s.done()) {
                    return false;
                }
                slot.0 = slot.0.wrapping_add(1);
                slot.1.clear();
                self.free.push(i);
                true
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_synced_handle_counts_as_done_when_its_slot_is_used_again() {
        let mut handles = CollHandles::default();
        let first = Arc::new(CollStatus::default());
        let old = handles.add(alloc::vec![first.clone()]);
        assert!(old != 0 && !handles.sync(old));
        first.finish();
        assert!(handles.sync(old));
        let new = handles.add(alloc::vec![Arc::default()]);
        assert!(new != old && handles.sync(old) && !handles.sync(new));
    }
}
