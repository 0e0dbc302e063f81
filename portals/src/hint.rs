//! What the compiler cannot know: which way is seldom taken.

/// Says that this way is seldom taken, or is that of a mode (threads, events) which has dearer things to do. The compiler moves its code
/// aside, so that the other way has no jumps, and keeps nothing in registers for it. (`core::hint::cold_path` of newer compilers.)
#[cold]
#[inline(always)]
pub(crate) fn cold_path() {}
