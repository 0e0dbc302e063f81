//! The CPUs that this process may use, and binding to some of them. Called by `runtime`, which
//! decides how to wait, by `boot` (`gasnetrun` binds ranks), by `capi` and by `gasnet_info`.
//!
//! Invariant: the quota of the control groups is read once per process.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// CPUs that this process may use at the same time, at least 1. These are the CPUs of its
/// affinity mask, or fewer if a control group limits their time (a quota of 1.5 CPUs counts as
/// 2).
pub fn usable() -> usize {
    let mut n = affinity();
    if let Some(q) = quota() {
        n = n.min(q.ceil() as usize);
    }
    n.max(1)
}

/// Words of a [`CpuMask`]: 8192 CPUs suffice for every kernel configuration.
const WORDS: usize = 128;

/// A set of CPUs.
#[derive(Clone, PartialEq, Eq)]
pub struct CpuMask([u64; WORDS]);

impl CpuMask {
    /// The CPUs that the calling thread may run on; `None` if the system does not say.
    pub fn of_thread() -> Option<CpuMask> {
        let mut m = CpuMask([0; WORDS]);
        // SAFETY: the mask is a live buffer of the stated size.
        let r = unsafe {
            libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&m.0), m.0.as_mut_ptr())
        };
        (r > 0 && m.count() > 0).then_some(m)
    }

    /// The CPUs with these numbers.
    pub fn of(cpus: impl IntoIterator<Item = usize>) -> CpuMask {
        let mut m = CpuMask([0; WORDS]);
        for c in cpus.into_iter().filter(|c| c / 64 < WORDS) {
            m.0[c / 64] |= 1 << (c % 64);
        }
        m
    }

    /// The number of CPUs in the set.
    pub fn count(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The numbers of the CPUs, in ascending order.
    pub fn cpus(&self) -> impl Iterator<Item = usize> + '_ {
        (0..WORDS * 64).filter(|c| self.0[c / 64] >> (c % 64) & 1 == 1)
    }

    /// The CPUs in both sets.
    pub fn and(&self, other: &CpuMask) -> CpuMask {
        CpuMask(core::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// The CPUs in either set.
    pub fn or(&self, other: &CpuMask) -> CpuMask {
        CpuMask(core::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// Binds the calling thread, and the threads and processes that it starts, to these CPUs;
    /// false if the system refuses.
    pub fn bind(&self) -> bool {
        // SAFETY: the mask is a live buffer of the stated size.
        unsafe {
            libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&self.0), self.0.as_ptr())
                == 0
        }
    }

    /// The set as bytes, for a message.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    /// The set with these [`CpuMask::bytes`].
    pub fn from_bytes(bytes: &[u8]) -> CpuMask {
        let mut m = CpuMask([0; WORDS]);
        for (w, b) in m.0.iter_mut().zip(bytes.chunks_exact(8)) {
            *w = u64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
        }
        m
    }
}

impl core::fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.cpus()).finish()
    }
}

/// The number of CPUs in the affinity mask of the calling thread.
pub fn affinity() -> usize {
    // SAFETY: a query without pointers.
    let online = || unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as usize;
    CpuMask::of_thread().map_or_else(online, |m| m.count())
}

/// Pins the calling thread to CPU number `nth` of this set, modulo the number of CPUs; false if
/// the system refuses.
pub fn pin(nth: usize, mask: &CpuMask) -> bool {
    mask.cpus().nth(nth % mask.count()).is_some_and(|c| CpuMask::of([c]).bind())
}

/// Whether processes, each of which may use one of `masks`, are too many to have a CPU each at
/// the same time.
pub fn too_few(masks: &[CpuMask]) -> bool {
    let all = masks.iter().fold(CpuMask::of([]), |a, m| a.or(m));
    // Hall's condition: the processes confined to a set must not outnumber it. The sets that
    // matter are the masks themselves and their union.
    masks
        .iter()
        .chain([&all])
        .any(|set| masks.iter().filter(|m| m.and(set) == **m).count() > set.count())
}

/// The cores among these CPUs: CPUs of one core (hyper-threads) together.
pub fn cores(among: &CpuMask) -> Vec<CpuMask> {
    groups(among, |c| format!("/sys/devices/system/cpu/cpu{c}/topology/thread_siblings_list"))
}

/// These CPUs by NUMA node; one group if the machine does not name its nodes.
pub fn numa_nodes(among: &CpuMask) -> Vec<CpuMask> {
    let nodes = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let mut lists: Vec<(usize, CpuMask)> = nodes
        .filter_map(|e| {
            let number = e.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            let list = std::fs::read_to_string(e.path().join("cpulist")).ok()?;
            Some((number, CpuMask::of(parse_list(&list)).and(among)))
        })
        .filter(|(_, m)| m.count() > 0)
        .collect();
    lists.sort_by_key(|(number, _)| *number);
    if lists.is_empty() {
        return vec![among.clone()];
    }
    lists.into_iter().map(|(_, m)| m).collect()
}

fn groups(among: &CpuMask, file: impl Fn(usize) -> String) -> Vec<CpuMask> {
    let mut found: Vec<CpuMask> = Vec::new();
    for c in among.cpus() {
        if found.iter().any(|m| m.cpus().any(|x| x == c)) {
            continue;
        }
        let list = std::fs::read_to_string(file(c)).unwrap_or_default();
        found.push(CpuMask::of(parse_list(&list).into_iter().chain([c])).and(among));
    }
    found
}

/// The numbers in a list such as `0-2,5`.
fn parse_list(text: &str) -> Vec<usize> {
    text.trim()
        .split(',')
        .filter_map(|part| {
            let (a, b) = part.split_once('-').unwrap_or((part, part));
            Some(a.parse().ok()?..=b.parse::<usize>().ok()?)
        })
        .flatten()
        .collect()
}

/// CPU time per time that control groups (version 1 or 2) grant to this process; `None` if they
/// set no limit. Read once.
pub fn quota() -> Option<f64> {
    static QUOTA: OnceLock<Option<f64>> = OnceLock::new();
    *QUOTA.get_or_init(find_quota)
}

fn find_quota() -> Option<f64> {
    let v2 = cgroup_files("", "cpu.max")
        .into_iter()
        .filter_map(|f| parse_cpu_max(&std::fs::read_to_string(f).ok()?));
    let v1 = cgroup_files("cpu", "cpu.cfs_quota_us").into_iter().filter_map(|f| {
        let quota: f64 = std::fs::read_to_string(&f).ok()?.trim().parse().ok()?;
        let period: f64 = std::fs::read_to_string(f.with_file_name("cpu.cfs_period_us"))
            .ok()?
            .trim()
            .parse()
            .ok()?;
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    });
    v2.chain(v1).reduce(f64::min)
}

fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (period > 0.0).then(|| quota / period)
}

/// Existing files named `file` of this process's control group and of all groups above it.
/// With a `controller`, the groups are those of its version 1 hierarchy; with an empty
/// `controller`, those of version 2.
pub(crate) fn cgroup_files(controller: &str, file: &str) -> Vec<PathBuf> {
    static OWN: OnceLock<String> = OnceLock::new();
    let own = OWN.get_or_init(|| std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default());
    let Some(path) = own.lines().find_map(|line| group_path(line, controller)) else {
        return Vec::new();
    };
    let roots: &[&str] = match controller {
        "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
        "cpu" => &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
        "memory" => &["/sys/fs/cgroup/memory"],
        _ => &[],
    };
    let mut found = Vec::new();
    for root in roots {
        // Inside a container the path of the group may not exist below the mount: the top of the
        // mount is the group then.
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
    fn masks() {
        let m = CpuMask::of([0, 3, 64]);
        assert_eq!((m.count(), CpuMask::from_bytes(&m.bytes())), (3, m.clone()));
        assert_eq!(m.and(&CpuMask::of([3, 4])), CpuMask::of([3]));
        assert_eq!(parse_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(parse_list(""), [0usize; 0]);
        let both = CpuMask::of([0, 1]);
        assert!(!too_few(&[both.clone(), both.clone()]));
        assert!(too_few(&[both.clone(), both.clone(), both.clone()]));
        assert!(too_few(&[CpuMask::of([0]), CpuMask::of([0]), both.clone(), CpuMask::of([2, 3])]));
        assert!(!too_few(&[CpuMask::of([0]), CpuMask::of([1])]));
        let all = CpuMask::of_thread().unwrap();
        assert_eq!(cores(&all).iter().fold(CpuMask::of([]), |a, m| a.or(m)), all);
        assert_eq!(numa_nodes(&all).iter().fold(CpuMask::of([]), |a, m| a.or(m)), all);
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
