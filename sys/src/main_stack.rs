//! The stack of the first thread, which the kernel extends downwards where it is touched.
//!
//! Used by [`super::locked_pages`]. The kernel locks what it adds to memory whose lowest page is
//! locked, and ends a program whose limit does not allow that. So that page must stay unlocked.

use super::limits::{self, page_size};
use core::ops::Range;
use std::fs;
use std::sync::OnceLock;

/// Most bytes of a stack that are looked at, if `ulimit -s` allows more.
const MOST: u64 = 1 << 32;

/// The mappings of this process, from the lowest on: the addresses, and whether the kernel calls
/// it the stack. It gives the name to the uppermost part of a stack whose pages are not all alike.
fn mappings(text: &str) -> impl Iterator<Item = (Range<usize>, bool)> {
    text.lines().filter_map(|line| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some((number(start)?..number(end)?, line.ends_with("[stack]")))
    })
}

/// The addresses of the stack, which ends at the same one as long as the process lives.
fn stack_in(text: &str) -> Option<Range<usize>> {
    let mut start = 0;
    let mut end = 0;
    for (mapping, is_stack) in mappings(text) {
        if mapping.start != end {
            start = mapping.start;
        }
        end = mapping.end;
        if is_stack {
            return Some(start..end);
        }
    }
    None
}

fn now() -> Option<Range<usize>> {
    stack_in(&fs::read_to_string("/proc/self/maps").ok()?)
}

/// Makes the stack extend below these pages, if its lowest one is the first of them. False: it
/// cannot. Pages that begin below the stack are not all mapped, and cannot be locked.
pub(super) fn extends_below(pages: &Range<usize>) -> bool {
    static END: OnceLock<usize> = OnceLock::new();
    let end = *END.get_or_init(|| now().map_or(0, |stack| stack.end));
    let most = limits::soft(libc::RLIMIT_STACK).map_or(MOST, |limit| limit.min(MOST));
    if pages.start >= end || pages.end <= end.saturating_sub(most as usize) {
        return true;
    }
    let begins_there = || now().is_some_and(|stack| stack.start == pages.start);
    if !begins_there() {
        return true;
    }
    // The kernel reads the page below as the name of a file, which extends the stack. The page is
    // new then, and the name empty.
    let below = core::ptr::with_exposed_provenance(pages.start - page_size());
    // SAFETY: the kernel checks the address, and does not write.
    unsafe { libc::access(below, libc::F_OK) };
    !begins_there()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_has_all_its_parts() {
        let text = "1000-2000 r--p 0 0:0 0 /bin/true\n\
                    7f00-8000 rw-p 0 0:0 0\n\
                    8000-9000 rw-p 0 0:0 0\n\
                    9000-b000 rw-p 0 0:0 0      [stack]\n\
                    b000-c000 r--p 0 0:0 0      [vvar]\n";
        assert_eq!(stack_in(text), Some(0x7f00..0xb000));
        assert_eq!(stack_in("1000-2000 r--p 0 0:0 0 /bin/true\n"), None);
        let stack = now().expect("Linux");
        assert!(stack.start < stack.end);
    }

    #[test]
    fn the_lowest_page_moves_down() {
        let (before, page) = (now().expect("Linux"), page_size());
        assert!(extends_below(&(before.start..before.start + page)));
        let after = now().expect("Linux");
        assert_eq!((after.start < before.start, after.end), (true, before.end));
        let upper = before.end - page..before.end;
        assert!(extends_below(&upper) && extends_below(&(page..2 * page)));
        assert!(extends_below(&(0..before.end)));
        assert_eq!(now().expect("Linux").end, after.end);
    }
}
