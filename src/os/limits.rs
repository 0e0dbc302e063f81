//! Limits that the system puts on this process. Called by `tools`.

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
    fn raised_to_the_hard_limit() {
        assert!(maximize(libc::RLIMIT_RSS as u32));
        assert!(!maximize(9999));
    }
}
