//! Short lists under a lock each, one of which a number selects.
//!
//! For entries that few jobs have: the lists take no memory before the first use. Owned by the
//! tables of halves, pieces and replies that wait. Invariant: an entry stays in the list that its
//! number selects.

use super::sync::ParLock;
use alloc::boxed::Box;
use alloc::vec::Vec;
use once_cell::race::OnceBox;

const LISTS: usize = 64;

pub(super) struct ParLists<T> {
    par: bool,
    lists: OnceBox<Box<[ParLock<Vec<T>>]>>,
}

impl<T> ParLists<T> {
    pub(super) fn new(par: bool) -> ParLists<T> {
        ParLists { par, lists: OnceBox::new() }
    }

    /// The list that this number selects.
    pub(super) fn list(&self, number: usize) -> &ParLock<Vec<T>> {
        let lists = || (0..LISTS).map(|_| ParLock::new(self.par, Vec::new())).collect();
        &self.lists.get_or_init(|| Box::new(lists()))[number % LISTS]
    }

    /// The lists that may have entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ParLock<Vec<T>>> {
        self.lists.get().into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_in_the_list_of_their_number() {
        let lists = ParLists::new(false);
        assert_eq!(lists.iter().count(), 0);
        lists.list(3).lock().push('a');
        lists.list(3 + LISTS).lock().push('b');
        lists.list(4).lock().push('c');
        assert_eq!(*lists.list(3).lock(), ['a', 'b']);
        let all: Vec<char> = lists.iter().flat_map(|list| list.lock().clone()).collect();
        assert_eq!(all, ['a', 'b', 'c']);
    }
}
