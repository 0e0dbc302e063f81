//! Processes: numbers, life signs, starting and ending. Called by `boot` and by whoever waits for a peer.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Number of this process. Async-signal-safe.
pub fn pid() -> u32 {
    // SAFETY: no arguments; never fails.
    unsafe { libc::getpid() as u32 }
}

/// Number of the parent process. Async-signal-safe.
pub fn parent() -> u32 {
    // SAFETY: no arguments; never fails.
    unsafe { libc::getppid() as u32 }
}

/// Number of the parent of another process; `None` if there is no such process.
pub fn parent_of(pid: u32) -> Option<u32> {
    stat_field(pid, 4)
}

/// The field of this number, from 3, as the system's manual counts those of /proc/pid/stat.
fn stat_field<T: core::str::FromStr>(pid: u32, number: usize) -> Option<T> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may contain anything.
    stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(number - 3)?.parse().ok()
}

/// A process: its number may be given to another one after its end, but not with the same time of start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its number.
    pub pid: u32,
    /// When it was started, in ticks since the machine was.
    pub start: u64,
}

impl Identity {
    /// The process that has this number now; `None` if there is none.
    pub fn of(pid: u32) -> Option<Identity> {
        Some(Identity { pid, start: stat_field(pid, 22)? })
    }

    /// Whether it is there, be it as a zombie.
    pub fn is_there(self) -> bool {
        Identity::of(self.pid) == Some(self)
    }

    /// A descriptor that polls readable when it ends; an error if it is gone.
    pub fn watch(self) -> io::Result<OwnedFd> {
        let fd = pidfd(self.pid)?;
        // Whose descriptor it is is settled now, so the number can no longer mislead.
        if self.is_there() { Ok(fd) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    }
}

/// The living children of a process, zombies aside.
pub fn children(pid: u32) -> Vec<u32> {
    let mut all = Vec::new();
    let mut told = false;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        if let Ok(list) = std::fs::read_to_string(task.path().join("children")) {
            told = true;
            all.extend(
                list.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()),
            );
        }
    }
    if !told {
        // Not every kernel has such lists.
        let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|e| e.file_name().to_str()?.parse().ok());
        all.extend(numbers.filter(|&child| parent_of(child) == Some(pid)));
    }
    all.retain(|&child| liveness(child) != Liveness::Dead);
    all
}

/// The name of a process as tools show it, at most 15 bytes; empty if there is no such process.
pub fn name_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_string()
}

/// The value of a variable in the environment that a process was started with, if we may see it.
pub fn variable_of(pid: u32, name: &str) -> Option<String> {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let text = environ.split(|&b| b == 0).filter_map(|v| std::str::from_utf8(v).ok());
    text.filter_map(|v| v.strip_prefix(name)?.strip_prefix('=')).map(str::to_string).next()
}

/// What another process is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs or can run.
    Alive,
    /// It was stopped by a signal or by a debugger.
    Stopped,
    /// It is gone, or a zombie.
    Dead,
}

/// What the process with this number is up to. Opens a file of /proc: not for hot loops. Does not allocate.
pub fn liveness(pid: u32) -> Liveness {
    let mut path = [0u8; 32];
    let mut w = &mut path[..31];
    if io::Write::write_fmt(&mut w, format_args!("/proc/{pid}/stat")).is_err() {
        return Liveness::Dead;
    }
    let mut text = [0u8; 128];
    // SAFETY: the path is NUL-terminated, since its last byte is never written.
    let fd = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        // Without /proc, or with a hidden one, the null signal tells at least the living from the gone.
        // SAFETY: signal 0 is not delivered.
        let gone = unsafe { libc::kill(pid as i32, 0) } != 0 && super::errno() == libc::ESRCH;
        return if gone { Liveness::Dead } else { Liveness::Alive };
    }
    // SAFETY: a live descriptor and a live buffer.
    let n = unsafe { libc::read(fd, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: opened above, used by nobody else.
    unsafe { libc::close(fd) };
    if n <= 0 {
        return Liveness::Dead;
    }
    parse_state(&text[..n as usize])
}

/// Nanoseconds that the living threads of a process have had a CPU, and that they have waited for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// With a CPU.
    pub ran: u64,
    /// Ready to run, without one.
    pub waited: u64,
}

/// How the threads of a process have fared; nothing where the system does not tell.
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

/// The state in the text of /proc/pid/stat: the letter after the name, whose end is the last `)`.
fn parse_state(stat: &[u8]) -> Liveness {
    let letter = stat.iter().rposition(|&c| c == b')').and_then(|i| stat.get(i + 2));
    match letter {
        Some(b'T' | b't') => Liveness::Stopped,
        Some(b'Z' | b'X' | b'x') | None => Liveness::Dead,
        Some(_) => Liveness::Alive,
    }
}

/// Threads of this process.
pub fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

/// Sends a signal to a process; false if there is no such process. Async-signal-safe.
pub fn kill(pid: u32, signal: i32) -> bool {
    // 0 and numbers beyond i32 would mean whole groups of processes.
    if pid == 0 || pid > i32::MAX as u32 {
        return false;
    }
    // SAFETY: plain system call.
    unsafe { libc::kill(pid as i32, signal) == 0 }
}

/// Has the kernel kill this process when its parent (the thread that forked it) dies; false if the parent, which had
/// this number, is dead already.
pub fn die_with_parent(parent_pid: u32) -> bool {
    // SAFETY: plain system call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) };
    parent() == parent_pid
}

/// Who returns from [`fork`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The new process.
    Child,
    /// The old one; number of the new one.
    Parent(u32),
}

/// Forks this process.
///
/// # Safety
/// If the process has several threads, the child must do nothing that needs a lock which one of them may hold.
pub unsafe fn fork() -> io::Result<Forked> {
    // SAFETY: as promised by the caller.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid as u32)),
    }
}

/// Has every child that this process forks from now on call `hook` before fork returns to it. Lasts as long as the
/// process; `hook` must be async-signal-safe.
pub fn on_fork(hook: extern "C" fn()) {
    // SAFETY: the hook is a function of the type that the C library calls, and the library is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(hook)) };
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By exit, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// Collects this child if it has ended; `None` if it runs. A child that somebody else has collected counts as
/// `Exited(0)`.
pub fn reap(child: u32) -> Option<Ended> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a live variable.
        match unsafe { libc::waitpid(child as i32, &mut status, libc::WNOHANG) } {
            0 => return None,
            -1 if super::errno() == libc::EINTR => continue,
            -1 => return Some(Ended::Exited(0)),
            _ if libc::WIFSIGNALED(status) || libc::WIFEXITED(status) => {
                return Some(decode(status));
            }
            _ => return None,
        }
    }
}

/// A descriptor that polls readable when the process ends.
pub fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: plain system call.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// How the process ended that this descriptor watches, which need not be a child of this process; `None` if it runs,
/// or if the system does not tell. `pid` is its number.
pub fn ended(pidfd: &OwnedFd, pid: u32) -> Option<Ended> {
    /// As far as the first version of the kernel's structure goes.
    #[repr(C)]
    struct Info {
        mask: u64,
        cgroup: u64,
        numbers: [u32; 11],
        status: i32,
    }
    const GET_INFO: libc::c_ulong = 0xC040_FF0B;
    const EXIT: u64 = 1 << 3;
    let mut info = Info { mask: EXIT, cgroup: 0, numbers: [0; 11], status: 0 };
    // SAFETY: the request carries the size of the structure, 64 bytes, which is live.
    let r = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO as _, &mut info) };
    if r == 0 && info.mask & EXIT != 0 {
        return Some(decode(info.status));
    }
    // Older kernels, and whose parent has not collected it yet.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    if parse_state(&stat) != Liveness::Dead {
        return None;
    }
    let end = stat.iter().rposition(|&c| c == b')')?;
    let last = stat[end..].split(|&c| c == b' ').next_back()?;
    std::str::from_utf8(last).ok()?.trim().parse().ok().map(decode)
}

/// What a status of the wait functions says of a process that has ended.
fn decode(status: i32) -> Ended {
    if libc::WIFSIGNALED(status) {
        Ended::Killed(libc::WTERMSIG(status))
    } else {
        Ended::Exited(libc::WEXITSTATUS(status))
    }
}

/// Makes the calling process, which was just forked, the child of nobody who would have to wait for it: forks once more
/// and ends the first. Returns in the second.
///
/// # Safety
/// As for [`fork`].
pub unsafe fn detach() {
    // SAFETY: as promised by the caller.
    match unsafe { fork() } {
        Ok(Forked::Child) => {}
        Ok(Forked::Parent(_)) => super::exit_now(0),
        Err(_) => super::exit_now(1),
    }
}

/// Waits for a child that is about to end.
pub fn await_child(child: u32) -> Ended {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a live variable.
        match unsafe { libc::waitpid(child as i32, &mut status, 0) } {
            -1 if super::errno() == libc::EINTR => {}
            -1 => return Ended::Exited(0),
            _ => return decode(status),
        }
    }
}

/// Closes every descriptor but the standard ones and this one; standard input and output lead nowhere afterwards.
pub fn close_all_but(keep: RawFd) {
    let close = |first: u32, last: u32| {
        if first <= last {
            // SAFETY: the caller is alone in a process of its own; nobody uses these descriptors any more.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    };
    null_stdin();
    // SAFETY: plain system call.
    unsafe { libc::dup2(0, 1) };
    let keep = keep.max(2) as u32;
    close(3, keep - 1);
    close(keep + 1, u32::MAX);
}

/// Gives this process (thread, to be precise) a name that tools show; at most 15 bytes of it.
pub fn set_name(name: &CStr) {
    // SAFETY: NUL-terminated.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Effective user of this process.
pub fn user() -> u32 {
    // SAFETY: plain query.
    unsafe { libc::geteuid() }
}

/// Real user of this process.
pub fn real_user() -> u32 {
    // SAFETY: plain query.
    unsafe { libc::getuid() }
}

/// A number that nobody can guess.
pub fn random() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: a live buffer of the stated size; 8 bytes are never cut short.
    match unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } {
        8 => Ok(u64::from_ne_bytes(bytes)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the programs that this process will become loaded at the same addresses every time; false if the system refuses.
pub fn fix_addresses() -> bool {
    // SAFETY: plain system call; this value only asks.
    let old = unsafe { libc::personality(0xffff_ffff) };
    // SAFETY: plain system call.
    old >= 0 && unsafe { libc::personality((old | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong) } >= 0
}

/// Makes descriptor `standard` lead where `to` leads.
pub fn redirect(standard: RawFd, to: BorrowedFd<'_>) {
    // SAFETY: plain system call.
    unsafe { libc::dup2(to.as_raw_fd(), standard) };
}

/// Replaces this process by a program, found through PATH unless its name has a slash; comes back only if that fails.
/// `args` starts with the name that the program sees as its own.
pub fn exec(program: &CStr, args: &[CString]) -> io::Error {
    let mut argv: Vec<*const libc::c_char> = args.iter().map(|a| a.as_ptr()).collect();
    argv.push(core::ptr::null());
    // SAFETY: the name and all arguments are NUL-terminated, the list ends with null.
    unsafe { libc::execvp(program.as_ptr(), argv.as_ptr()) };
    io::Error::last_os_error()
}

/// The file, with all links followed, that holds this address of code or data of the process.
pub fn file_of(address: usize) -> Option<String> {
    // SAFETY: all fields may be zero.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: dladdr looks any address up; the record is alive.
    if unsafe { libc::dladdr(core::ptr::without_provenance(address), &mut info) } == 0
        || info.dli_fname.is_null()
    {
        return None;
    }
    // SAFETY: not null: a string of the loader's, copied at once.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    Some(std::fs::canonicalize(&name).map_or(name, |path| path.display().to_string()))
}

/// The function or variable with this name in the program or a library that it has loaded; null if there is none.
pub fn symbol(name: &CStr) -> *mut core::ffi::c_void {
    // SAFETY: the name is NUL-terminated.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The value of a variable of the environment, NUL-terminated, or null; valid until the environment
/// changes.
pub fn variable(name: &CStr) -> *mut core::ffi::c_char {
    // SAFETY: the name is NUL-terminated.
    unsafe { libc::getenv(name.as_ptr()) }
}

/// Sets a variable of the environment.
///
/// # Safety
/// No other thread may use the environment at the same time.
pub unsafe fn set_env(name: &CStr, value: &CStr) {
    // SAFETY: both are NUL-terminated; exclusive as promised by the caller.
    unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
}

/// Removes a variable from the environment.
///
/// # Safety
/// No other thread may use the environment at the same time.
pub unsafe fn unset_env(name: &CStr) {
    // SAFETY: NUL-terminated; exclusive as promised by the caller.
    unsafe { libc::unsetenv(name.as_ptr()) };
}

/// Makes descriptor 0 read nothing.
pub fn null_stdin() {
    // SAFETY: the path is NUL-terminated; the descriptor is ours until closed.
    unsafe {
        let fd = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
        if fd > 0 {
            libc::dup2(fd, 0);
            libc::close(fd);
        }
    }
}

/// Allows this process as many descriptors as it may have.
pub fn maximize_descriptors() {
    let mut l = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `l` is a live structure.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut l) == 0 && l.rlim_cur < l.rlim_max {
            l.rlim_cur = l.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &l);
        }
    }
}

/// Writes out all of C's output streams.
pub fn flush_stdio() {
    // SAFETY: null means all streams.
    unsafe { libc::fflush(core::ptr::null_mut()) };
}

/// Writes out all of C's output streams, and has descriptors 0 to 2 lead nowhere.
pub fn close_stdio() {
    flush_stdio();
    // SAFETY: the path is NUL-terminated; the descriptor is ours until closed.
    unsafe {
        let fd = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..3 {
            libc::dup2(fd, standard);
        }
        if fd > 2 {
            libc::close(fd);
        }
    }
}

/// Has `hook` called with the code by `exit(code)` and by a return from `main`, after what is registered later and
/// before what was registered earlier.
pub fn on_exit(hook: extern "C" fn(i32, *mut core::ffi::c_void)) {
    unsafe extern "C" {
        fn on_exit(
            hook: extern "C" fn(i32, *mut core::ffi::c_void),
            arg: *mut core::ffi::c_void,
        ) -> i32;
    }
    // SAFETY: the hook is a function of the type that the C library calls, and the library is never unloaded.
    unsafe { on_exit(hook, core::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_with_a_cpu_grows() {
        let before = cpu_time(pid());
        // Somewhere without the file there is nothing to see.
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
        assert_eq!(liveness(pid()), Liveness::Alive);
        assert_eq!(liveness(0x7fff_fff0), Liveness::Dead);
    }

    #[test]
    fn never_signals_a_group() {
        assert!(!kill(0, 0));
        assert!(!kill(u32::MAX, 0));
        assert!(kill(pid(), 0));
    }

    #[test]
    fn parents() {
        assert_eq!(parent_of(pid()), Some(parent()));
        assert_eq!(parent_of(u32::MAX), None);
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
    fn children_that_live() {
        let me = Identity::of(pid()).unwrap();
        assert!(me.is_there() && me.watch().is_ok());
        let other = Identity { start: me.start + 1, ..me };
        assert!(!other.is_there() && other.watch().is_err());
        // SAFETY: the child does nothing but wait to be killed.
        let Forked::Parent(child) = unsafe { fork() }.unwrap() else {
            loop {
                super::super::signal::pause();
            }
        };
        let id = Identity::of(child).unwrap();
        let watch = id.watch().unwrap();
        assert!(children(pid()).contains(&child));
        kill(child, libc::SIGKILL);
        while !super::super::socket::readable(std::os::fd::AsFd::as_fd(&watch)) {
            super::super::clock::sleep_ns(1_000_000);
        }
        assert!(id.is_there(), "a zombie");
        assert!(!children(pid()).contains(&child));
        await_child(child);
        assert!(!id.is_there() && id.watch().is_err());
    }

    #[test]
    fn how_others_ended() {
        for (code, expected) in [(7, Ended::Exited(7)), (-1, Ended::Killed(libc::SIGKILL))] {
            // SAFETY: the child does nothing but end.
            let Forked::Parent(pid) = unsafe { fork() }.unwrap() else {
                if code < 0 {
                    kill(super::pid(), libc::SIGKILL);
                }
                super::super::exit_now(code)
            };
            let fd = pidfd(pid).unwrap();
            while liveness(pid) != Liveness::Dead {
                super::super::clock::sleep_ns(1_000_000);
            }
            assert_eq!(ended(&fd, pid), Some(expected));
            assert_eq!(await_child(pid), expected);
        }
        assert_eq!(ended(&pidfd(pid()).unwrap(), pid()), None);
    }
}
