//! How many CPUs this process may use. Called once at init, to decide how to wait.

use std::path::{Path, PathBuf};

/// CPUs that this process may use at a time, at least 1: those of its affinity mask, or fewer if a control group
/// limits their time (a quota of 1.5 CPUs counts as 2).
pub fn usable() -> usize {
    let mut n = affinity();
    if let Some(q) = quota() {
        n = n.min(q.ceil() as usize);
    }
    n.max(1)
}

/// CPUs in the affinity mask of the calling thread.
pub fn affinity() -> usize {
    // The kernel refuses masks that are smaller than its own; 8192 CPUs suffice for every kernel configuration.
    let mut mask = [0u64; 128];
    // SAFETY: the mask is a live buffer of the stated size.
    let r = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    if r <= 0 {
        // SAFETY: plain query.
        return (unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).max(1) as usize;
    }
    mask.iter().map(|w| w.count_ones() as usize).sum()
}

/// Pins the calling thread to one of the CPUs in its affinity mask, counted round and round from 0; false if the system
/// refuses.
pub fn pin(nth: usize) -> bool {
    let mut mask = [0u64; 128];
    // SAFETY: the mask is a live buffer of the stated size.
    let r = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    let cpus: Vec<usize> = (0..mask.len() * 64).filter(|c| mask[c / 64] >> (c % 64) & 1 == 1).collect();
    if r <= 0 || cpus.is_empty() {
        return false;
    }
    let cpu = cpus[nth % cpus.len()];
    mask.fill(0);
    mask[cpu / 64] = 1 << (cpu % 64);
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&mask), mask.as_ptr()) == 0 }
}

/// CPU time per time that control groups (version 1 or 2) grant to this process, if they limit it.
pub fn quota() -> Option<f64> {
    let v2 = cgroup_files("", "cpu.max")
        .into_iter()
        .filter_map(|f| parse_cpu_max(&std::fs::read_to_string(f).ok()?));
    let v1 = cgroup_files("cpu", "cpu.cfs_quota_us").into_iter().filter_map(|f| {
        let quota: f64 = std::fs::read_to_string(&f).ok()?.trim().parse().ok()?;
        let period: f64 =
            std::fs::read_to_string(f.with_file_name("cpu.cfs_period_us")).ok()?.trim().parse().ok()?;
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    });
    v2.chain(v1).reduce(f64::min)
}

fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (period > 0.0).then(|| quota / period)
}

/// Existing files named `file` of this process's control group and of all groups above it: of the version 1
/// hierarchy with this controller, or, with an empty `controller`, of version 2.
pub(crate) fn cgroup_files(controller: &str, file: &str) -> Vec<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(path) = own.lines().find_map(|line| group_path(line, controller)) else { return Vec::new() };
    let roots: &[&str] = match controller {
        "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
        "cpu" => &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
        "memory" => &["/sys/fs/cgroup/memory"],
        _ => &[],
    };
    let mut found = Vec::new();
    for root in roots {
        // Inside a container the group's own path may not exist below the mount, whose top then is the group.
        for dir in Path::new(path).ancestors() {
            let f = Path::new(root).join(dir.strip_prefix("/").unwrap_or(dir)).join(file);
            if f.is_file() && !found.contains(&f) {
                found.push(f);
            }
        }
    }
    found
}

/// The path in a line `id:controllers:path` of /proc/self/cgroup, if it is for this controller.
fn group_path<'a>(line: &'a str, controller: &str) -> Option<&'a str> {
    let mut fields = line.splitn(3, ':');
    let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let hit = match controller {
        "" => id == "0" && controllers.is_empty(),
        c => controllers.split(',').any(|x| x == c),
    };
    hit.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_one() {
        assert!(usable() >= 1);
        assert!(usable() <= affinity());
    }

    #[test]
    fn quotas() {
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(parse_cpu_max("max 100000\n"), None);
    }

    #[test]
    fn group_lines() {
        assert_eq!(group_path("4:memory:/a/b", "memory"), Some("/a/b"));
        assert_eq!(group_path("3:cpu,cpuacct:/x:y", "cpu"), Some("/x:y"));
        assert_eq!(group_path("0::/z", ""), Some("/z"));
        assert_eq!(group_path("1:name=systemd:/", "memory"), None);
    }
}
