//! Hints to the compiler. Called on the fast paths of `portals3` and `gasnet`; they change
//! nothing that a program does.

/// Marks the path that calls it as cold: rarely taken, or that of a mode (threads, events)
/// which has dearer things to do.
///
/// The compiler moves such code aside, so that the hot path falls through without jumps, and
/// keeps nothing in registers for it. Newer compilers have it as `core::hint::cold_path`.
#[cold]
#[inline(always)]
pub fn cold_path() {}
