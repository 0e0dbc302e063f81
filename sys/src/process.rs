//! Processes: their numbers, what /proc shows of them, and signals to them. Called by `boot`,
//! and by a rank that waits for a peer.
//!
//! The system gives the number of a process that has ended to a new one: [`ProcessIdentity`]
//! distinguishes them.

use crate::signal::Signal;
use std::ffi::CStr;
use std::io;

/// Number of this process. Async-signal-safe.
pub fn pid() -> u32 {
    // SAFETY: no arguments; never fails.
    unsafe { libc::getpid() as u32 }
}

/// What this process has used of a CPU since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuUse {
    /// Time on a CPU, of all threads, in nanoseconds.
    pub ns: u64,
    /// How often a thread has waited in the kernel, as for input or a time. That another process
    /// got its CPU does not count, nor does `sched_yield`.
    pub waits: u64,
}

/// What this process has used of a CPU; `None` where the system does not say.
/// Async-signal-safe.
#[cfg(feature = "hosted")]
pub fn cpu_use() -> Option<CpuUse> {
    // SAFETY: plain numbers, for which all zeros is a value.
    let mut used: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: room for the result, of this process.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut used) } != 0 {
        return None;
    }
    let times = [used.ru_utime, used.ru_stime];
    let ns = times.iter().map(|t| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000);
    Some(CpuUse { ns: ns.sum(), waits: used.ru_nvcsw as u64 })
}

/// `None`: lightweight kernels do not say.
#[cfg(not(feature = "hosted"))]
pub fn cpu_use() -> Option<CpuUse> {
    None
}

/// Number of the parent process. Async-signal-safe.
pub fn parent() -> u32 {
    // SAFETY: no arguments; never fails.
    unsafe { libc::getppid() as u32 }
}

/// Number of the parent of another process; `None` if there is no such process.
pub fn parent_of(pid: u32) -> Option<u32> {
    stat_field(pid, PARENT)
}

fn stat_path(pid: u32) -> String {
    format!("/proc/{pid}/stat")
}

/// The numbers of fields of /proc/pid/stat: the state, the parent, the group of processes, the
/// threads.
const STATE: usize = 3;
const PARENT: usize = 4;
const GROUP: usize = 5;
const THREADS: usize = 20;

/// A field of /proc/pid/stat, by its number in the system's manual, at least 3.
fn stat_field<T: core::str::FromStr>(pid: u32, number: usize) -> Option<T> {
    field_of(&std::fs::read(stat_path(pid)).ok()?, number)
}

/// The same of the text. Async-signal-safe for numbers and letters.
fn field_of<T: core::str::FromStr>(stat: &[u8], number: usize) -> Option<T> {
    // The name before it, in parentheses, may contain anything.
    let name_end = stat.iter().rposition(|&c| c == b')')?;
    let fields = core::str::from_utf8(&stat[name_end + 1..]).ok()?;
    fields.split_ascii_whitespace().nth(number - 3)?.parse().ok()
}

/// A process: a later one may have the same number, but not the same start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did.
    pub start: u64,
}

impl ProcessIdentity {
    /// The process that has this number now; `None` if there is none.
    pub fn of(pid: u32) -> Option<ProcessIdentity> {
        Some(ProcessIdentity { pid, start: stat_field(pid, 22)? })
    }

    /// The same, where the system may not show when it started, which is then 0.
    pub fn now(pid: u32) -> ProcessIdentity {
        ProcessIdentity::of(pid).unwrap_or(ProcessIdentity { pid, start: 0 })
    }

    /// Whether it exists, if only as a zombie. Where /proc cannot be read, as when this process
    /// has no descriptor left, a process with its number counts as it.
    pub fn exists(self) -> bool {
        match ProcessIdentity::of(self.pid) {
            Some(now) => self.start == 0 || now == self,
            None => !is_missing(self.pid),
        }
    }
}

/// The children of a process, without zombies. `None` if the system does not show them, or if this
/// process lacks a descriptor for that.
pub fn children(pid: u32) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    let mut listed = false;
    let tasks = unless_lacking(std::fs::read_dir(format!("/proc/{pid}/task")))?;
    for task in tasks.into_iter().flatten().flatten() {
        let list = unless_lacking(std::fs::read_to_string(task.path().join("children")))?;
        if let Some(list) = list {
            listed = true;
            all.extend(
                list.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()),
            );
        }
    }
    if !listed {
        // The kernel has no such lists.
        let numbers = std::fs::read_dir("/proc").ok()?.flatten();
        for child in numbers.filter_map(|e| e.file_name().to_str()?.parse().ok()) {
            let stat = unless_lacking(std::fs::read(stat_path(child)))?;
            let parent = stat.and_then(|stat| field_of(&stat, PARENT));
            all.extend(Some(child).filter(|_| parent == Some(pid)));
        }
    }
    all.retain(|&child| liveness(child) != Liveness::Dead);
    Some(all)
}

/// What was read; `Some(None)` if it does not exist, `None` if this process lacks a descriptor.
fn unless_lacking<T>(read: io::Result<T>) -> Option<Option<T>> {
    match read {
        Err(e) if crate::is_lack(&e) => None,
        read => Some(read.ok()),
    }
}

/// A process and those that descend from it by parents that live, without zombies.
pub fn tree(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(&parent) = all.get(at) {
        // A number that was given anew meanwhile could name a process twice.
        let new: Vec<u32> =
            children(parent).into_iter().flatten().filter(|c| !all.contains(c)).collect();
        all.extend(new);
        at += 1;
    }
    all
}

/// Whether a process is in another group of processes than this one: what a terminal sends to the
/// group of this one does not reach it. False where the system does not show the groups.
pub fn is_of_other_group(other: u32) -> bool {
    let group = |pid| stat_field::<i32>(pid, GROUP);
    group(other).is_some_and(|theirs| group(pid()).is_some_and(|own| own != theirs))
}

/// Sends a signal to a process and to those that descend from it ([`tree`]). Sends none for 0.
pub fn kill_tree(pid: u32, signal: Signal) {
    if pid != 0 {
        tree(pid).into_iter().for_each(|pid| _ = kill(pid, signal));
    }
}

/// The name of a process as tools show it, at most 15 bytes; empty if there is no such process.
pub fn name_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_string()
}

/// The value of a variable in the environment that a process was started with, if this process
/// may read it.
pub fn variable_of(pid: u32, name: &str) -> Option<String> {
    let read = |path| std::fs::read(path).ok().filter(|environ| !environ.is_empty());
    let of_thread = |thread| read(format!("/proc/{pid}/task/{thread}/environ"));
    // Without its first thread, a process has it in those of the others.
    let environ = read(format!("/proc/{pid}/environ"))
        .or_else(|| threads(pid)?.into_iter().find_map(of_thread))?;
    let text = environ.split(|&b| b == 0).filter_map(|v| std::str::from_utf8(v).ok());
    text.filter_map(|v| v.strip_prefix(name)?.strip_prefix('=')).map(str::to_string).next()
}

/// Whether a process can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs or can run.
    Alive,
    /// It was stopped by a signal or by a debugger.
    Stopped,
    /// It has exited; it may be a zombie.
    Dead,
}

/// Whether the process with this number can run. Opens a file of /proc, so it is not for hot
/// loops. Async-signal-safe.
pub fn liveness(pid: u32) -> Liveness {
    let mut path = [0u8; 32];
    let mut w = &mut path[..31];
    if io::Write::write_fmt(&mut w, format_args!("/proc/{pid}/stat")).is_err() {
        return Liveness::Dead;
    }
    // More than a name and the numbers up to that of the threads take.
    let mut text = [0u8; 512];
    // SAFETY: the path is NUL-terminated, since its last byte is never written.
    let fd = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
    // SAFETY: the descriptor was just opened, so nothing else owns it.
    let fd = unsafe { crate::descriptor::above_standard(fd) };
    if fd < 0 {
        // Without /proc, or where it is hidden, at least this can be found out.
        return if is_missing(pid) { Liveness::Dead } else { Liveness::Alive };
    }
    // SAFETY: a live descriptor and a live buffer.
    let n = unsafe { libc::read(fd, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: opened above; nothing else uses it.
    unsafe { libc::close(fd) };
    if n <= 0 {
        return Liveness::Dead;
    }
    parse_state(&text[..n as usize])
}

/// Whether no process has this number, not even a zombie. Async-signal-safe.
pub(crate) fn is_missing(pid: u32) -> bool {
    // SAFETY: signal 0 is not delivered.
    let refused = unsafe { libc::kill(pid as i32, 0) } != 0;
    refused && super::errno() == libc::ESRCH
}

/// The process that traces another one, as a debugger does; `None` if there is none.
pub fn tracer_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let tracer = status.lines().find_map(|l| l.strip_prefix("TracerPid:"))?;
    tracer.trim().parse().ok().filter(|&tracer| tracer != 0)
}

/// Whether `ancestor` has started a process, or one of its ancestors has that it has started.
pub fn descends_from(mut pid: u32, ancestor: u32) -> bool {
    const GENERATIONS: u32 = 16;
    for _ in 0..GENERATIONS {
        match parent_of(pid) {
            Some(parent) if parent == ancestor => return true,
            Some(parent) if parent > 1 => pid = parent,
            _ => return false,
        }
    }
    false
}

/// Times of the living threads of a process, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// They had a CPU.
    pub ran: u64,
    /// They were ready to run and waited for a CPU.
    pub waited: u64,
}

/// The times of a process; zeros where the system does not record them.
pub fn cpu_time(pid: u32) -> CpuTime {
    let mut sum = CpuTime::default();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for text in tasks.filter_map(|t| std::fs::read_to_string(t.path().join("schedstat")).ok()) {
        let mut numbers = text.split_whitespace().map_while(|w| w.parse::<u64>().ok());
        sum.ran += numbers.next().unwrap_or_default();
        sum.waited += numbers.next().unwrap_or_default();
    }
    sum
}

/// The state in the text of /proc/pid/stat. The letter is that of the first thread: if that has
/// exited before others, the process is alive.
pub(crate) fn parse_state(stat: &[u8]) -> Liveness {
    match field_of(stat, STATE) {
        Some('T' | 't') => Liveness::Stopped,
        Some('Z' | 'X' | 'x') | None => match field_of::<u32>(stat, THREADS) {
            Some(2..) => Liveness::Alive,
            _ => Liveness::Dead,
        },
        Some(_) => Liveness::Alive,
    }
}

/// The threads of a process, by the kernel's numbers; `None` if the system does not show them.
pub fn threads(pid: u32) -> Option<Vec<u32>> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(tasks.flatten().filter_map(|t| t.file_name().to_str()?.parse().ok()).collect())
}

/// Whether this process has one thread; false if the system does not show it.
/// Async-signal-safe.
pub fn has_one_thread() -> bool {
    // SAFETY: plain numbers, for which all zeros is a value.
    let mut folder: libc::stat64 = unsafe { core::mem::zeroed() };
    // SAFETY: a path that ends with 0, and room for the result.
    let found = unsafe { libc::stat64(c"/proc/self/task".as_ptr(), &mut folder) } == 0;
    // A folder is linked in the one above it, in itself, and in each folder in it: one per thread.
    found && folder.st_nlink == 3
}

/// Sends a signal to a process; false if there is no such process. Async-signal-safe.
pub fn kill(pid: u32, signal: Signal) -> bool {
    // 0 and numbers beyond i32 would mean groups of processes.
    if pid == 0 || pid > i32::MAX as u32 {
        return false;
    }
    // SAFETY: touches no memory.
    unsafe { libc::kill(pid as i32, signal.number()) == 0 }
}

/// Makes every child that this process forks from now on call `hook` before fork returns in it.
/// This cannot be undone. `hook` must be async-signal-safe.
pub fn on_fork(hook: extern "C" fn()) {
    // SAFETY: the hook is a function of the type that the C library calls, and the library is
    // never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(hook)) };
}

/// Gives the calling thread a name that tools show; they show at most 15 bytes. The first
/// thread's name is that of the process.
pub fn set_name(name: &CStr) {
    // SAFETY: the name is NUL-terminated.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Effective user of this process.
pub fn user() -> u32 {
    // SAFETY: no arguments; never fails.
    unsafe { libc::geteuid() }
}

/// Real user of this process.
pub fn real_user() -> u32 {
    // SAFETY: no arguments; never fails.
    unsafe { libc::getuid() }
}

/// Makes the system load the programs that this process becomes at the same addresses every
/// time; false if it refuses.
pub fn fix_addresses() -> bool {
    // SAFETY: touches no memory; this value changes nothing.
    let old = unsafe { libc::personality(0xffff_ffff) };
    // SAFETY: touches no memory.
    old >= 0 && unsafe { libc::personality((old | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong) } >= 0
}

/// Makes `exit(code)` and a return from `main` call `hook` with the code: after the hooks that
/// are registered later, before those that were registered earlier.
pub fn on_exit(hook: extern "C" fn(i32, *mut core::ffi::c_void)) {
    unsafe extern "C" {
        fn on_exit(
            hook: extern "C" fn(i32, *mut core::ffi::c_void),
            arg: *mut core::ffi::c_void,
        ) -> i32;
    }
    // SAFETY: the hook is a function of the type that the C library calls, and the library is
    // never unloaded.
    unsafe { on_exit(hook, core::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child;
    use crate::watch::ProcessWatch;

    #[test]
    fn time_with_a_cpu_grows() {
        let before = cpu_time(pid());
        // Not every system records it.
        let grows = before.ran > 0;
        let start = crate::clock::now_ns();
        while crate::clock::now_ns() - start < 50_000_000 {}
        assert_eq!(cpu_time(pid()).ran > before.ran, grows);
        assert_eq!(cpu_time(u32::MAX), CpuTime::default());
    }

    #[test]
    fn states() {
        assert_eq!(parse_state(b"12 (a) b) R 1"), Liveness::Alive);
        assert_eq!(parse_state(b"12 (x) T 1"), Liveness::Stopped);
        assert_eq!(parse_state(b"12 (x) Z 1"), Liveness::Dead);
        assert_eq!(parse_state(b"12 (x"), Liveness::Dead);
        let zombie = b"12 (\xff) Z 1 12 12 0 -1 4227084 0 0 0 0 0 0 0 0 20 0 1 0 26353 0 0";
        assert_eq!(parse_state(zombie), Liveness::Dead);
        assert_eq!(liveness(pid()), Liveness::Alive);
        assert_eq!(liveness(0x7fff_fff0), Liveness::Dead);
    }

    #[test]
    fn never_signals_a_group() {
        assert!(!kill(0, Signal::new(0)));
        assert!(!kill(u32::MAX, Signal::new(0)));
        assert!(kill(pid(), Signal::new(0)));
    }

    #[test]
    fn parents() {
        assert_eq!(parent_of(pid()), Some(parent()));
        assert_eq!(parent_of(u32::MAX), None);
        assert!(descends_from(pid(), parent()) && !descends_from(pid(), pid()));
        assert!(!descends_from(u32::MAX, pid()) && tracer_of(u32::MAX).is_none());
        assert_eq!(name_of(u32::MAX), "");
        assert_eq!(name_of(pid()), std::fs::read_to_string("/proc/self/comm").unwrap().trim_end());
    }

    #[test]
    fn variables_of_others() {
        assert_eq!(variable_of(pid(), "PATH"), std::env::var("PATH").ok());
        assert_eq!(variable_of(pid(), "PAT"), None);
        assert_eq!(variable_of(u32::MAX, "PATH"), None);
    }

    #[test]
    fn a_tree_has_grandchildren() {
        let mut c = std::process::Command::new("sh");
        let shell = c.args(["-c", "(sleep 600; :) & sleep 600; :"]).spawn();
        let mut shell = shell.unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let sleeps = |all: &[u32]| all.iter().filter(|p| name_of(**p) == "sleep").count();
        let mut all = tree(shell.id());
        while sleeps(&all) < 2 && std::time::Instant::now() < deadline {
            std::thread::yield_now();
            all = tree(shell.id());
        }
        let slept = sleeps(&all);
        all.iter().for_each(|pid| _ = kill(*pid, crate::signal::Signal::KILL));
        shell.wait().unwrap();
        assert_eq!((all[0], slept, all.len()), (shell.id(), 2, 4), "{all:?}");
    }

    /// A process that cannot be looked at, for lack of a descriptor, does not count as ended.
    #[test]
    fn a_lack_of_descriptors_is_no_evidence() {
        // SAFETY: the child reads /proc, and ends.
        let child::Forked::Parent(child) = unsafe { child::fork() }.unwrap() else {
            let me = ProcessIdentity::of(pid()).unwrap();
            let watch = ProcessWatch::by_looks(me).unwrap();
            let sees = children(pid()).is_some() && !watch.has_ended();
            crate::limits::allow_descriptors(Some(0));
            // A C library of today cannot set limits on a kernel without prlimit64.
            if std::fs::File::open("/proc/self/stat").is_ok() {
                crate::exit_now(i32::from(!sees));
            }
            let is_blind = children(pid()).is_none() && ProcessIdentity::of(pid()).is_none();
            let has_me = me.exists() && !watch.has_ended() && ProcessWatch::of(me).is_ok();
            crate::exit_now(i32::from(!(sees && is_blind && has_me)))
        };
        assert_eq!(child::await_child(child), child::Ended::Exited(0));
    }

    /// The system shows it as a zombie, but its other thread works.
    #[test]
    fn a_process_without_its_first_thread_is_alive() {
        // SAFETY: the child starts a thread, and ends its first one.
        let child::Forked::Parent(child) = unsafe { child::fork() }.unwrap() else {
            std::thread::spawn(|| {
                loop {
                    crate::signal::pause();
                }
            });
            // SAFETY: this thread owns nothing that the other one uses.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
            unreachable!("the thread has ended")
        };
        let watch = ProcessWatch::by_looks(ProcessIdentity::of(child).unwrap()).unwrap();
        while stat_field(child, STATE) != Some('Z') {
            crate::clock::sleep_ns(1_000_000);
        }
        assert_eq!(liveness(child), Liveness::Alive);
        assert!(!watch.has_ended() && watch.how_ended(child).is_none());
        assert!(children(pid()).unwrap().contains(&child));
        assert_eq!(variable_of(child, "PATH"), std::env::var("PATH").ok());
        kill(child, Signal::KILL);
        while !watch.has_ended() {
            crate::clock::sleep_ns(1_000_000);
        }
        assert_eq!(watch.how_ended(child), Some(child::Ended::Killed(Signal::KILL)));
        assert!(!children(pid()).unwrap().contains(&child));
        child::await_child(child);
    }

    #[test]
    fn children_that_live() {
        let me = ProcessIdentity::of(pid()).unwrap();
        assert!(me.exists() && ProcessWatch::of(me).is_ok());
        let other = ProcessIdentity { start: me.start + 1, ..me };
        assert!(!other.exists() && ProcessWatch::of(other).is_err());
        // SAFETY: the child does nothing but wait to be killed.
        let child::Forked::Parent(child) = unsafe { child::fork() }.unwrap() else {
            loop {
                crate::signal::pause();
            }
        };
        let id = ProcessIdentity::of(child).unwrap();
        let watch = ProcessWatch::of(id).unwrap();
        assert!(children(pid()).unwrap().contains(&child));
        kill(child, Signal::KILL);
        while !watch.has_ended() {
            crate::clock::sleep_ns(1_000_000);
        }
        assert!(id.exists(), "a zombie");
        assert!(!children(pid()).unwrap().contains(&child));
        child::await_child(child);
        assert!(!id.exists() && ProcessWatch::of(id).is_err());
    }
}
