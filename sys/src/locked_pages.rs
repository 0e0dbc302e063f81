//! Pages of this process that are kept in memory, counted by page.
//!
//! Called as part of `memory`. Invariant: a page is locked exactly while its count is not 0 or it
//! is listed as refused, unless it has been unmapped meanwhile; the kernel itself does not count.

use super::limits::page_size;
use super::{main_stack, pages};
use core::cell::{Cell, RefCell};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The pages that are locked, each with the number of its users.
#[derive(Debug, Default)]
pub struct LockedPages {
    counts: BTreeMap<usize, u32>,
    /// Pages without users that the system has refused to unlock: a mapping would have to be
    /// split, and the process has as many as it may (`vm.max_map_count`).
    refused: BTreeSet<usize>,
    /// Where the next retry begins.
    retry_from: usize,
}

/// Unlocks a range. False: the system has refused it, or a page of it is not mapped.
type Unlock<'a> = &'a dyn Fn(Range<usize>) -> bool;

/// Most ranges, of those that were refused before, that are refused again in one call.
const RETRIES: usize = 2;
/// Most pages of such a range.
const RETRIED: usize = 32;

impl LockedPages {
    /// None.
    pub const fn new() -> LockedPages {
        LockedPages { counts: BTreeMap::new(), refused: BTreeSet::new(), retry_from: 0 }
    }

    /// Locks the pages of a range. The lowest page of the first thread's stack is none of them
    /// then: the stack grows.
    ///
    /// # Errors
    /// That of the system, or `Unsupported` if the stack cannot grow; then nothing is locked that
    /// was not before, except pages that the system refuses to unlock now.
    pub fn lock(&mut self, start: usize, bytes: usize) -> io::Result<()> {
        self.lock_or(start, bytes, &pages::unlock)
    }

    /// [`LockedPages::lock`]; what was refused before, and what a failure has left locked, is
    /// unlocked by this function.
    fn lock_or(&mut self, start: usize, bytes: usize, unlock: Unlock<'_>) -> io::Result<()> {
        let range = pages_of(start, bytes);
        self.retry(unlock);
        let locked = match main_stack::extends_below(&range) {
            true => pages::lock(range.clone()),
            false => Err(io::ErrorKind::Unsupported.into()),
        };
        if locked.is_err() {
            // Nothing behind the first page that is not mapped was locked.
            self.unlock_unused(range, false, unlock);
            return locked;
        }
        for page in range.step_by(page_size()) {
            *self.counts.entry(page).or_insert(0) += 1;
            self.refused.remove(&page);
        }
        Ok(())
    }

    /// Lets go of the pages of a range that was locked. What the system refuses to unlock is tried
    /// again by later calls.
    pub fn unlock(&mut self, start: usize, bytes: usize) {
        self.unlock_by(start, bytes, &pages::unlock);
    }

    /// [`LockedPages::unlock`] by this function.
    fn unlock_by(&mut self, start: usize, bytes: usize, unlock: Unlock<'_>) {
        let range = pages_of(start, bytes);
        for page in range.clone().step_by(page_size()) {
            if let Some(count) = self.counts.get_mut(&page) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&page);
                }
            }
        }
        // Some may have been unmapped meanwhile.
        self.unlock_unused(range, true, unlock);
        self.retry(unlock);
    }

    /// Bytes that are locked.
    pub fn bytes(&self) -> usize {
        (self.counts.len() + self.refused.len()) * page_size()
    }

    /// Unlocks the pages of a range that have no user, each run of them in one call. Without
    /// `beyond_holes` the first page of a run that is not mapped ends it.
    fn unlock_unused(&mut self, range: Range<usize>, beyond_holes: bool, unlock: Unlock<'_>) {
        let mut at = range.start;
        while at < range.end {
            let used =
                self.counts.range(at..range.end).next().map_or(range.end, |(&page, _)| page);
            if used > at {
                self.unlock_run(at..used, beyond_holes, unlock);
            }
            at = used + page_size();
        }
    }

    /// Unlocks pages without users, and notes those that are refused. Returns whether none is.
    fn unlock_run(&mut self, run: Range<usize>, beyond_holes: bool, unlock: Unlock<'_>) -> bool {
        let (refused, ended) = (RefCell::new(Vec::new()), Cell::new(false));
        pages::each_part(run.clone(), &|part| {
            if ended.get() || unlock(part.clone()) {
                return true;
            }
            if part.len() == page_size() {
                match pages::is_mapped(part.start) {
                    true => refused.borrow_mut().push(part.start),
                    false => ended.set(!beyond_holes),
                }
            }
            false
        });
        let refused = refused.into_inner();
        if !self.refused.is_empty() {
            for page in self.refused.range(run).copied().collect::<Vec<_>>() {
                self.refused.remove(&page);
            }
        }
        self.refused.extend(&refused);
        refused.is_empty()
    }

    /// Unlocks pages that were refused before, until some are refused again.
    fn retry(&mut self, unlock: Unlock<'_>) {
        let mut failed = 0;
        while failed < RETRIES && !self.refused.is_empty() {
            let after = self.refused.range(self.retry_from..).next();
            let Some(&start) = after.or(self.refused.first()) else { return };
            let mut end = start + page_size();
            while self.refused.contains(&end) && end - start < RETRIED * page_size() {
                end += page_size();
            }
            self.retry_from = end;
            if !self.unlock_run(start..end, true, unlock) {
                failed += 1;
            }
        }
    }
}

/// The pages that a range touches.
fn pages_of(start: usize, bytes: usize) -> Range<usize> {
    let page = page_size();
    let end = start.saturating_add(bytes).saturating_add(page - 1) / page * page;
    start / page * page..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Mapping;

    /// What the kernel reports to be locked, in bytes; other tests of this process lock nothing.
    fn locked() -> usize {
        let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let line = text.lines().find_map(|l| l.strip_prefix("VmLck:")).expect("VmLck");
        let number = line.trim().strip_suffix(" kB").and_then(|n| n.trim().parse::<usize>().ok());
        number.expect("a number") * 1024
    }

    #[test]
    fn a_page_is_locked_until_its_last_user_lets_go() {
        let page = page_size();
        let mapping = Mapping::anonymous(4 * page).expect("memory");
        let base = mapping.base().addr().get();
        let mut pages = LockedPages::new();
        pages.lock(base + 1, page).expect("two pages may be locked");
        pages.lock(base + page, 2 * page).expect("and a third");
        assert_eq!((pages.bytes(), locked()), (3 * page, 3 * page));
        pages.unlock(base + page, 2 * page);
        assert_eq!((pages.bytes(), locked()), (2 * page, 2 * page));
        pages.unlock(base + 1, page);
        assert_eq!((pages.bytes(), locked()), (0, 0));
        // Of a range with a hole, all is unlocked.
        pages.lock(base, 3 * page).expect("three pages");
        // SAFETY: a page of the mapping, which nothing uses.
        unsafe { libc::munmap(core::ptr::with_exposed_provenance_mut(base + page), page) };
        pages.unlock(base, 3 * page);
        assert_eq!((pages.bytes(), locked()), (0, 0));
        // A range that has no memory leaves what was locked as it was.
        pages.lock(base, page).expect("one page");
        assert!(pages.lock(base, 1 << 46).is_err());
        assert_eq!((pages.bytes(), locked()), (page, page));
        pages.unlock(base, page);

        pages_that_the_system_refuses_to_unlock_are_tried_again(base, page);
    }

    /// Part of the test above, as only one test may lock.
    fn pages_that_the_system_refuses_to_unlock_are_tried_again(base: usize, page: usize) {
        let mut pages = LockedPages::new();
        let at = base + 2 * page;
        pages.lock(at, 2 * page).expect("two pages");
        let tries = Cell::new(0);
        let refuse = |_: Range<usize>| {
            tries.set(tries.get() + 1);
            false
        };
        pages.unlock_by(at, 2 * page, &refuse);
        assert_eq!((pages.bytes(), locked()), (2 * page, 2 * page));
        // One is locked again: it has a user, and only the other is tried.
        pages.lock_or(at, page, &refuse).expect("one page");
        assert_eq!((pages.bytes(), pages.refused.len()), (2 * page, 1));
        pages.retry(&pages::unlock);
        assert_eq!((pages.bytes(), locked()), (page, page));
        pages.unlock_by(at, page, &refuse);
        tries.set(0);
        pages.retry(&refuse);
        assert_eq!((tries.get(), pages.bytes(), locked()), (RETRIES, page, page));
        // What was unmapped is dropped, though the system refuses it as before.
        // SAFETY: a page of the mapping, which nothing uses.
        unsafe { libc::munmap(core::ptr::with_exposed_provenance_mut(at), page) };
        pages.retry(&refuse);
        assert_eq!((pages.bytes(), locked()), (0, 0));
        // The next lock tries again, also if it fails itself.
        pages.lock(at + page, page).expect("one page");
        pages.unlock_by(at + page, page, &refuse);
        assert_eq!((pages.bytes(), locked()), (page, page));
        assert!(pages.lock(at, page).is_err(), "it is not mapped");
        assert_eq!((pages.bytes(), locked()), (0, 0));
    }
}
