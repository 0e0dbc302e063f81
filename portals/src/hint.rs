//! What the compiler cannot know: which way is seldom taken.

/// Says that whoever comes here comes seldom. The code for it goes out of the way of the rest, in one piece without jumps, and what it
/// needs is not kept in registers for it. (`core::hint::cold_path` of newer compilers.)
#[cold]
#[inline(always)]
pub(crate) fn cold_path() {}
