//! The alarm that bounds what this process does while it exits.
//!
//! Called by `exit` and `signals`. Invariant: a handler that was set here takes the alarm for its
//! own only if [`is_due`]: timers of the program may raise the same signal earlier.

use core::sync::atomic::{AtomicU64, Ordering};
use sys::clock;
use sys::signal::{self, IntervalTimers, Signal, SignalHandler, SignalSet};

/// When the alarm is due, in nanoseconds.
static AT: AtomicU64 = AtomicU64::new(0);

/// From now on an alarm runs `handler`. None of the program is pending.
pub(super) fn take_over(handler: SignalHandler) {
    AT.store(u64::MAX, Ordering::Release);
    signal::alarm_us(0);
    // What is pending is dropped.
    signal::ignore(Signal::ALRM);
    signal::handle(Signal::ALRM, handler, true);
    signal::unblock(&SignalSet::of(&[Signal::ALRM]));
}

/// Sets when the alarm is due.
pub(super) fn set(us: u64) {
    AT.store(clock::now_ns().saturating_add(us.saturating_mul(1000)), Ordering::Release);
    signal::alarm_us(us);
}

/// The alarm does not come any more.
pub(super) fn cancel() {
    AT.store(u64::MAX, Ordering::Release);
    signal::alarm_us(0);
}

/// Gives the program its timers, its handler and its mask back after a call that has the alarm.
pub(super) fn borrow<T>(call: impl FnOnce() -> T) -> T {
    let (timers, action) = (IntervalTimers::take(), signal::action(Signal::ALRM));
    let mask = signal::block(&SignalSet::of(&[]));
    let result = call();
    cancel();
    signal::restore(Signal::ALRM, &action);
    signal::set_mask(&mask);
    timers.go_on();
    result
}

/// Whether the alarm is due.
pub(super) fn is_due() -> bool {
    clock::now_ns() >= AT.load(Ordering::Acquire)
}
