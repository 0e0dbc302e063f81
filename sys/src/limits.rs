//! Limits that the system puts on this process. Called by `tools`, and by `memory` and `runtime::segment`, which keep within them.

/// The limits that are worth raising, by the kernel's number and the name that users know.
#[allow(clippy::unnecessary_cast, reason = "the constants have other types in other C libraries")]
pub const RAISABLE: &[(u32, &str)] = &[
    (libc::RLIMIT_CPU as u32, "RLIMIT_CPU"),
    (libc::RLIMIT_FSIZE as u32, "RLIMIT_FSIZE"),
    (libc::RLIMIT_DATA as u32, "RLIMIT_DATA"),
    (libc::RLIMIT_STACK as u32, "RLIMIT_STACK"),
    (libc::RLIMIT_RSS as u32, "RLIMIT_RSS"),
    (libc::RLIMIT_AS as u32, "RLIMIT_AS"),
];

/// What this process may have of a resource now (`ulimit -S`); `None` if that is not limited.
fn soft(resource: u32) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live structure; an unknown resource is refused.
    let known = unsafe { libc::getrlimit(resource as _, &mut limit) } == 0;
    (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// The longest file that this process may make, memory files too, in bytes (`ulimit -f`).
#[allow(clippy::unnecessary_cast, reason = "the constant has another type in other C libraries")]
pub fn file_size() -> Option<u64> {
    soft(libc::RLIMIT_FSIZE as u32)
}

/// Address space that this process may have, in bytes (`ulimit -v`).
#[allow(clippy::unnecessary_cast, reason = "the constant has another type in other C libraries")]
pub fn address_space() -> Option<u64> {
    soft(libc::RLIMIT_AS as u32)
}

/// Raises a limit as far as this process may; false if the system refuses.
pub fn maximize(resource: u32) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live structure; an unknown resource is refused.
    if unsafe { libc::getrlimit(resource as _, &mut limit) } != 0 {
        return false;
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: as above.
    unsafe { libc::setrlimit(resource as _, &limit) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::unnecessary_cast)]
    fn what_is_limited_is_a_number() {
        assert_eq!(soft(9999), None);
        assert!(soft(libc::RLIMIT_NOFILE as u32).is_some_and(|n| n > 2));
    }

    #[test]
    #[allow(clippy::unnecessary_cast)]
    fn raised_to_the_hard_limit() {
        assert!(maximize(libc::RLIMIT_RSS as u32));
        assert!(!maximize(9999));
    }
}
