//! Clocks and sleeping. Called by every part that waits or measures; async-signal-safe.

/// Nanoseconds of the monotonic clock, which does not run while the machine is suspended. A system
/// without it has the time of day.
pub fn now_ns() -> u64 {
    time_of(libc::CLOCK_MONOTONIC).unwrap_or_else(time_of_day)
}

/// How long the threads of a process have had a CPU, in nanoseconds; `None` if the system does not
/// say, or there is no such process. Linux numbers the clocks of processes.
pub fn cpu_ns(pid: u32) -> Option<u64> {
    const OF_PROCESS: libc::clockid_t = 2;
    time_of(!(pid as libc::clockid_t) << 3 | OF_PROCESS)
}

/// Nanoseconds of a clock; `None` if the system does not have it.
fn time_of(clock: libc::clockid_t) -> Option<u64> {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a live timespec.
    let failed = unsafe { libc::clock_gettime(clock, &mut t) } != 0;
    (!failed).then_some(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// Nanoseconds since 1970.
#[cold]
fn time_of_day() -> u64 {
    let mut t = libc::timeval { tv_sec: 0, tv_usec: 0 };
    // SAFETY: `t` is a live timeval; null says that no time zone is wanted.
    unsafe { libc::gettimeofday(&mut t, core::ptr::null_mut()) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000
}

/// A counter that runs at a constant, unspecified rate and costs a few cycles to read. It serves
/// pacing loops and seeds, not measurements.
pub fn tick() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86_64 processor has rdtsc.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let t: u64;
        // SAFETY: the virtual counter is readable in user mode on Linux; nothing else changes.
        unsafe {
            core::arch::asm!("mrs {t}, cntvct_el0", t = out(reg) t, options(nomem, nostack))
        };
        t
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        now_ns()
    }
}

/// Sleeps for at least this many nanoseconds, or until a signal arrives.
pub fn sleep_ns(ns: u64) {
    let t = libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `t` is a live timespec; null says that the remainder is not wanted.
    unsafe { libc::nanosleep(&t, core::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes() {
        let (t, k) = (now_ns(), tick());
        sleep_ns(2_000_000);
        assert!(now_ns() - t >= 2_000_000);
        assert!(tick() > k);
    }

    #[test]
    fn a_system_without_a_clock_has_the_time_of_day() {
        assert_eq!(time_of(-1), None);
        let (t, day) = (time_of_day(), time_of(libc::CLOCK_REALTIME).expect("Linux"));
        assert!(day.abs_diff(t) < 60_000_000_000);
        sleep_ns(2_000_000);
        assert!(time_of_day() > t);
    }
}
