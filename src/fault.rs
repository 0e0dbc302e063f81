//! Planted faults, which test the tests: a library built with the feature `faults` misbehaves as
//! GASNET_TEST_FAULT says.
//!
//! Called where a fault is planted. Invariant: without the feature every function is a constant
//! `false`, and the planted code is not compiled in.

use core::sync::atomic::{AtomicU32, Ordering};

/// Whether this fault is switched on.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub const fn on(_name: &str) -> bool {
    false
}

/// Whether this fault is switched on.
#[cfg(feature = "faults")]
pub fn on(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| crate::env::TEST_FAULT.get()).as_deref() == Some(name)
}

/// Whether this fault is switched on and, by `calls`, this is the 64th call, or a multiple of it.
#[inline(always)]
pub fn on_every_64th(name: &str, calls: &AtomicU32) -> bool {
    on(name) && calls.fetch_add(1, Ordering::Relaxed) % 64 == 63
}

/// Whether any fault is switched on, which closes the inline paths of the headers.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub const fn any() -> bool {
    false
}

/// Whether any fault is switched on, which closes the inline paths of the headers.
#[cfg(feature = "faults")]
pub fn any() -> bool {
    crate::env::TEST_FAULT.get().is_some()
}
