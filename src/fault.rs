//! Planted faults, for the tests of the tests: a library that is built with the feature `faults` misbehaves in the one
//! way that `GASNET_TEST_FAULT` names. Without the feature every question is answered by a constant `false`.

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

/// Whether any fault is switched on; closes the inline paths of the headers.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub const fn any() -> bool {
    false
}

/// Whether any fault is switched on; closes the inline paths of the headers.
#[cfg(feature = "faults")]
pub fn any() -> bool {
    crate::env::TEST_FAULT.get().is_some()
}
