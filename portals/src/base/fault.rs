//! Faults for tests: named pause points in a delivery, and lost completion events.
//!
//! Called where a fault is planted. Invariant: without the feature `faults`, the functions do
//! nothing.
//!
//! `GASNET_TEST_PAUSE=<name>:<stop|kill>[:count]` raises SIGSTOP or SIGKILL when the point is
//! passed for the count-th time (default 1). `GASNET_TEST_FAULT=drop_op` loses every 64th event
//! that completes an operation that this process initiated (ACK, REPLY_END).

/// A pause point. Costs nothing unless the feature `faults` is on.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) fn point(_name: &str) {}

/// Whether to lose the completion event that is about to be posted.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) fn loses_completion() -> bool {
    false
}

#[cfg(feature = "faults")]
pub(crate) use armed::{loses_completion, point};

#[cfg(feature = "faults")]
mod armed {
    use core::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};

    use sys::environment;
    use sys::signal::Signal;

    const UNKNOWN: u8 = 0;
    const OFF: u8 = 1;
    const ON: u8 = 2;

    static PAUSE: AtomicU8 = AtomicU8::new(UNKNOWN);
    /// How often the point is still to be passed; set from the variable at the first hit of the
    /// right name.
    static LEFT: AtomicI64 = AtomicI64::new(i64::MIN);

    pub(crate) fn point(name: &str) {
        if PAUSE.load(Ordering::Relaxed) == OFF {
            return;
        }
        let Some(setting) = environment::value(c"GASNET_TEST_PAUSE") else {
            PAUSE.store(OFF, Ordering::Relaxed);
            return;
        };
        PAUSE.store(ON, Ordering::Relaxed);
        let mut parts = setting.split(':');
        if parts.next() != Some(name) {
            return;
        }
        let signal = if parts.next() == Some("kill") { Signal::KILL } else { Signal::STOP };
        let count = parts.next().and_then(|n| n.parse().ok()).unwrap_or(1);
        let _ = LEFT.compare_exchange(i64::MIN, count, Ordering::Relaxed, Ordering::Relaxed);
        if LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Raised for this thread, which therefore goes no further; the others of the process
            // stop with it.
            sys::signal::raise(signal);
        }
    }

    static DROP: AtomicU8 = AtomicU8::new(UNKNOWN);
    static COMPLETIONS: AtomicU64 = AtomicU64::new(0);

    pub(crate) fn loses_completion() -> bool {
        let mut now = DROP.load(Ordering::Relaxed);
        if now == UNKNOWN {
            now = if environment::value(c"GASNET_TEST_FAULT").as_deref() == Some("drop_op") {
                ON
            } else {
                OFF
            };
            DROP.store(now, Ordering::Relaxed);
        }
        now == ON && COMPLETIONS.fetch_add(1, Ordering::Relaxed) % 64 == 63
    }
}
