//! A system whose stacks have all their pages: in place of `main_stack`.
//!
//! Called by `locked_pages`. Invariant: nothing extends a stack.

use core::ops::Range;

/// True: no page below a stack is missing.
pub(super) fn extends_below(_pages: &Range<usize>) -> bool {
    true
}
