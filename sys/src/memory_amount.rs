//! How much memory the machine has, and how much this process may have.
//!
//! Called as part of `memory`. Invariant: what does not change is read once.

use super::cpu::cgroup_files;
use super::limits::page_size;
use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;

/// How much memory this process can have, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    /// RAM of the machine; 0 if the system does not say.
    pub physical: u64,
    /// What the kernel can give now without swapping.
    pub available: u64,
    /// The lowest limit of the control groups (version 1 or 2) of this process, if one limits
    /// it below `physical`.
    pub cgroup: Option<u64>,
}

impl MemoryLimits {
    /// The most that all processes of this machine and control group can have together.
    pub fn total(&self) -> u64 {
        self.cgroup.map_or(self.physical, |c| c.min(self.physical))
    }
}

/// The limits that hold now.
pub fn limits() -> MemoryLimits {
    let (physical, cgroup) = fixed();
    let available = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| parse_available(&text))
        .map_or(physical, |n| n.min(physical));
    MemoryLimits { physical, available, cgroup }
}

/// [`MemoryLimits::total`], 0 if it is unknown. It takes no time when this process, or the one
/// that forked it, has called it before.
pub fn total() -> u64 {
    let (physical, cgroup) = fixed();
    MemoryLimits { physical, available: physical, cgroup }.total()
}

/// [`MemoryLimits::physical`] and [`MemoryLimits::cgroup`].
fn fixed() -> (u64, Option<u64>) {
    static FIXED: OnceLock<(u64, Option<u64>)> = OnceLock::new();
    *FIXED.get_or_init(|| {
        // SAFETY: a query without pointers. It is -1 where the C library would read a /proc that
        // the system lacks.
        let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) }.max(0) as u64;
        let physical = pages * page_size() as u64;
        let v2 = cgroup_files("", "memory.max");
        let v1 = cgroup_files("memory", "memory.limit_in_bytes");
        let cgroup = v2
            .iter()
            .chain(&v1)
            .filter_map(|f| std::fs::read_to_string(f).ok()?.trim().parse::<u64>().ok())
            .min()
            .filter(|&c| c < physical);
        (physical, cgroup)
    })
}

/// Address space that this process may still map, in bytes; `None` if that is not limited.
pub fn address_space_left() -> Option<u64> {
    let limit = super::limits::address_space()?;
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(pages * page_size() as u64))
}

/// Mappings that this process may have (`vm.max_map_count`); `None` if the system does not say.
pub fn most_mappings() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
    text.trim().parse().ok()
}

/// Whether this process has about as many mappings as it may: none can be split. Takes up to a
/// tenth of a second.
#[cold]
pub fn mappings_used_up() -> bool {
    most_mappings().is_some_and(|most| mappings().is_ok_and(|now| now + NEARLY >= most))
}

/// A process that has this many mappings less than it may counts as one that has them all: a lock
/// that failed has merged some again.
const NEARLY: usize = 16;

/// How many mappings this process has.
fn mappings() -> io::Result<usize> {
    let (mut file, mut lines) = (File::open("/proc/self/maps")?, 0);
    let mut buffer = [0; 4096];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(lines),
            n => lines += buffer[..n].iter().filter(|&&byte| byte == b'\n').count(),
        }
    }
}

/// Bytes of the address space of a process: the stack lies at its end.
pub fn address_space() -> u64 {
    let stack = 0u8;
    ((&raw const stack).addr() as u64).next_power_of_two()
}

/// How many processes of this machine the kernel has killed so far because memory, or the
/// memory of their control group, was used up.
pub fn lack_kills() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    text.lines().find_map(|l| l.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

/// What /proc/meminfo says to be available; an estimate before Linux 3.14.
fn parse_available(meminfo: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|l| l.strip_prefix(name))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    let estimate = || Some(field("MemFree:")? + field("Buffers:")? + field("Cached:")?);
    field("MemAvailable:").or_else(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_within_the_address_space() {
        let (space, heap) = (address_space(), Box::new(1u8));
        assert!(((&raw const *heap).addr() as u64) < space && space <= 1 << 57);
    }

    #[test]
    fn mappings_are_counted() {
        let before = mappings().expect("Linux");
        let pages = crate::memory::Mapping::anonymous(64 * page_size()).expect("memory");
        for page in (0..64).step_by(2) {
            let at = pages.as_ptr().wrapping_add(page * page_size()).cast();
            // SAFETY: a page of the mapping, which nothing uses.
            unsafe { libc::madvise(at, page_size(), libc::MADV_DONTFORK) };
        }
        // Other tests map and unmap, too.
        assert!(mappings().expect("Linux") > before + 30);
        assert!(most_mappings().is_some_and(|most| most > before) && !mappings_used_up());
    }

    #[test]
    fn meminfo() {
        assert_eq!(parse_available("MemTotal: 5 kB\nMemAvailable:   16 kB\n"), Some(16384));
        let old = "MemTotal: 9 kB\nMemFree: 4 kB\nBuffers: 2 kB\nCached: 1 kB\n";
        assert_eq!(parse_available(old), Some(7168));
        assert_eq!(parse_available("MemTotal: 9 kB\nMemFree: 4 kB\n"), None);
    }
}
