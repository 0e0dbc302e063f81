//! The line of the client's source that each thread executes. It is the line that the client
//! has set (GASNETT_TRACE_SETSOURCELINE), or else that of its last call, which the macros of
//! the headers pass.
//!
//! Called by `capi` and by spans. Invariant: only the thread itself reads and writes its lines.

use crate::client_memory::ClientText;
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

/// A line of a source file.
#[derive(Clone, Copy, Debug)]
pub struct SourceLine {
    /// Name of the file; null for no line.
    pub file: ClientText,
    /// Number of the line.
    pub line: u32,
}

const NOWHERE: SourceLine = SourceLine { file: ClientText::NULL, line: 0 };

thread_local! {
    static SET: Cell<SourceLine> = const { Cell::new(NOWHERE) };
    static CALL: Cell<SourceLine> = const { Cell::new(NOWHERE) };
    /// How many calls of [`freeze`] wait for their [`unfreeze`].
    static FROZEN: Cell<u32> = const { Cell::new(0) };
    /// Number of the thread plus 1; 0 before it has one.
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// Sets the line, unless it is frozen.
pub fn set(line: SourceLine) {
    if FROZEN.get() == 0 {
        SET.set(line);
    }
}

/// Records the line of the thread's next call.
pub fn call(line: SourceLine) {
    CALL.set(line);
}

/// Forgets the line of the thread's last call, whose object may be unloaded.
pub fn forget_call() {
    CALL.set(NOWHERE);
}

/// The line of the thread's last call.
pub fn last_call() -> SourceLine {
    CALL.get()
}

/// Keeps the line unchanged until [`unfreeze`] has been called as often.
pub fn freeze() {
    FROZEN.set(FROZEN.get().saturating_add(1));
}

/// Undoes one call of [`freeze`].
pub fn unfreeze() {
    FROZEN.set(FROZEN.get().saturating_sub(1));
}

/// The line that the calling thread executes.
pub fn current() -> SourceLine {
    let set = SET.get();
    if set.file.as_ptr().is_null() { CALL.get() } else { set }
}

impl SourceLine {
    /// The name of the file without its directories, and the number; `None` for no line.
    pub fn name(&self) -> Option<(&'static str, u32)> {
        let name = self.file.get()?.to_str().ok()?;
        Some((name.rsplit('/').next().unwrap_or(name), self.line))
    }
}

/// The number of the calling thread: threads are numbered from 0, in the order of their first
/// call.
pub fn thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    if THREAD.get() == 0 {
        THREAD.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    THREAD.get() - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::CStr;

    #[test]
    fn a_line_that_is_set_wins_and_freezes() {
        let line = |file: &'static CStr, line| SourceLine { file: file.into(), line };
        call(line(c"dir/call.c", 3));
        assert_eq!(current().name(), Some(("call.c", 3)));
        set(line(c"set.upc", 4));
        call(line(c"call.c", 5));
        freeze();
        set(line(c"other.upc", 6));
        assert_eq!(current().name(), Some(("set.upc", 4)));
        unfreeze();
        set(line(c"other.upc", 7));
        assert_eq!(current().name(), Some(("other.upc", 7)));
    }
}
