//! Pages of this process that are kept in memory, counted by page.
//!
//! Called as part of `memory`. Invariant: a page is locked exactly while its count is not 0,
//! unless it has been unmapped meanwhile; the kernel itself does not count.

use super::limits::page_size;
use super::{main_stack, pages};
use core::ops::Range;
use std::collections::BTreeMap;
use std::io;

/// The pages that are locked, each with the number of its users.
#[derive(Debug, Default)]
pub struct LockedPages {
    counts: BTreeMap<usize, u32>,
}

impl LockedPages {
    /// None.
    pub const fn new() -> LockedPages {
        LockedPages { counts: BTreeMap::new() }
    }

    /// Locks the pages of a range. The lowest page of the first thread's stack is none of them
    /// then: the stack grows.
    ///
    /// # Errors
    /// That of the system, or `Unsupported` if the stack cannot grow; then nothing is locked that
    /// was not before.
    pub fn lock(&mut self, start: usize, bytes: usize) -> io::Result<()> {
        let range = pages_of(start, bytes);
        let locked = match main_stack::extends_below(&range) {
            true => pages::lock(range.clone()),
            false => Err(io::ErrorKind::Unsupported.into()),
        };
        if locked.is_err() {
            self.unlock_unused(range, pages::unlock);
            return locked;
        }
        for page in range.step_by(page_size()) {
            *self.counts.entry(page).or_insert(0) += 1;
        }
        Ok(())
    }

    /// Lets go of the pages of a range that was locked.
    pub fn unlock(&mut self, start: usize, bytes: usize) {
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
        self.unlock_unused(range, |unused| pages::each_part(unused, &pages::unlock));
    }

    /// Bytes that are locked.
    pub fn bytes(&self) -> usize {
        self.counts.len() * page_size()
    }

    /// Unlocks the pages of a range that have no user, each run of them in one call.
    fn unlock_unused(&self, range: Range<usize>, unlock: impl Fn(Range<usize>) -> bool) {
        let mut at = range.start;
        while at < range.end {
            let used =
                self.counts.range(at..range.end).next().map_or(range.end, |(&page, _)| page);
            if used > at {
                unlock(at..used);
            }
            at = used + page_size();
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
    }
}
