//! Limits that the system puts on this process (`ulimit`), and its pages. Called by `tools`,
//! `boot`, `runtime::segment` and `memory`.

use std::sync::OnceLock;

/// Bytes of a page of this machine.
pub fn page_size() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    // SAFETY: a query without pointers, which cannot fail for the page size.
    *PAGE.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize)
}

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

/// The limits that a job passes on to its other hosts, by the kernel's number.
#[allow(clippy::unnecessary_cast, reason = "the constants have other types in other C libraries")]
pub const PASSED_ON: [u32; 8] = [
    libc::RLIMIT_CPU as u32,
    libc::RLIMIT_FSIZE as u32,
    libc::RLIMIT_DATA as u32,
    libc::RLIMIT_STACK as u32,
    libc::RLIMIT_CORE as u32,
    libc::RLIMIT_MEMLOCK as u32,
    libc::RLIMIT_NOFILE as u32,
    libc::RLIMIT_AS as u32,
];

/// Sets the limit of a resource that holds now, as far as this process may; `None` for no limit.
pub fn set_soft(resource: u32, wanted: Option<u64>) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live structure; an unknown resource is refused.
    if unsafe { libc::getrlimit(resource as _, &mut limit) } != 0 {
        return;
    }
    limit.rlim_cur = wanted.map_or(libc::RLIM_INFINITY, |n| n as _).min(limit.rlim_max);
    // SAFETY: a live structure; what the system refuses stays as it was.
    unsafe { libc::setrlimit(resource as _, &limit) };
}

/// The limit of a resource that holds now (`ulimit -S`); `None` if there is none.
pub fn soft(resource: u32) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live structure; an unknown resource is refused.
    let known = unsafe { libc::getrlimit(resource as _, &mut limit) } == 0;
    (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// The longest file, memory files included, that this process may make, in bytes (`ulimit -f`);
/// `None` if that is not limited.
#[allow(clippy::unnecessary_cast, reason = "the constant has another type in other C libraries")]
pub fn file_size() -> Option<u64> {
    soft(libc::RLIMIT_FSIZE as u32)
}

/// Address space that this process may have, in bytes (`ulimit -v`); `None` if that is not
/// limited.
#[allow(clippy::unnecessary_cast, reason = "the constant has another type in other C libraries")]
pub fn address_space() -> Option<u64> {
    soft(libc::RLIMIT_AS as u32)
}

/// Memory that this process may lock, in bytes (`ulimit -l`); `None` if that is not limited. A
/// process with the right to lock (CAP_IPC_LOCK) is not bound by it.
#[allow(clippy::unnecessary_cast, reason = "the constant has another type in other C libraries")]
pub fn locked_memory() -> Option<u64> {
    soft(libc::RLIMIT_MEMLOCK as u32)
}

/// Raises a limit as far as this process may; false if the system refuses.
pub fn maximize(resource: u32) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live structure; an unknown resource is refused.
    if unsafe { libc::getrlimit(resource as _, &mut limit) } != 0 {
        return false;
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: a live structure.
    unsafe { libc::setrlimit(resource as _, &limit) == 0 }
}

#[allow(clippy::unnecessary_cast, reason = "the constant has another type in other C libraries")]
const DESCRIPTORS: u32 = libc::RLIMIT_NOFILE as u32;

/// Allows this process as many descriptors as it may have, if the system does not refuse. Returns
/// how many it was allowed before, for [`allow_descriptors`].
pub fn maximize_descriptors() -> Option<u64> {
    let before = soft(DESCRIPTORS);
    maximize(DESCRIPTORS);
    before
}

/// Sets how many descriptors this process and its programs are allowed from now on, as far as it
/// may; `None` for no limit. Programs that use `select` rely on a low limit.
pub fn allow_descriptors(wanted: Option<u64>) {
    set_soft(DESCRIPTORS, wanted);
}

/// Whether this process is allowed this number of descriptors.
pub fn has_descriptors(number: u64) -> bool {
    soft(DESCRIPTORS).is_none_or(|allowed| allowed >= number)
}

/// Allows this process this number of descriptors at least, as far as it may.
pub fn need_descriptors(number: u64) {
    if !has_descriptors(number) {
        allow_descriptors(Some(number));
    }
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

    #[test]
    fn descriptors_are_allowed_as_before() {
        let before = maximize_descriptors();
        let most = soft(DESCRIPTORS);
        allow_descriptors(before);
        assert_eq!(soft(DESCRIPTORS), before);
        need_descriptors(2);
        assert_eq!(soft(DESCRIPTORS), before);
        if before != most {
            need_descriptors(before.unwrap() + 1);
            assert_eq!(soft(DESCRIPTORS), before.map(|n| n + 1));
            allow_descriptors(before);
        }
    }
}
