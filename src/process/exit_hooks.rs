//! What is called once before this process ends: the parts of the library that write files.
//!
//! These register in `gasnet_init`; `exit` calls them. Invariant: each hook is called once, in the
//! order of registration. It may run in a signal handler, under an alarm.

use crate::trace::source;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

static HOOKS: [OnceLock<fn()>; 4] = [const { OnceLock::new() }; 4];
static CALLED: AtomicBool = AtomicBool::new(false);

/// Adds a hook; it must be async-signal-safe, unless it omits what is not after a fatal signal.
///
/// # Panics
/// There are four already.
pub fn on_exit(hook: fn()) {
    assert!(HOOKS.iter().any(|slot| slot.set(hook).is_ok()), "more than four exit hooks");
}

/// Calls the hooks, once.
pub(super) fn call() {
    if !CALLED.swap(true, Ordering::AcqRel) {
        source::forget_call();
        HOOKS.iter().filter_map(OnceLock::get).for_each(|hook| hook());
    }
}
