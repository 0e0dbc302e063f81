//! Signals: handlers, masks, names, a descriptor to read them from, and the alarm. Called by `runtime::signals`,
//! `runtime::exit`, `boot::supervisor` and the tools. All but [`SignalQueue`] is async-signal-safe.

use core::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A handler: number, what is known about the signal, the interrupted context.
pub type SignalHandler = extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void);

/// What a signal does to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// What the system does by default.
    Default,
    /// Nothing.
    Ignore,
    /// Calls the handler at this address.
    Handler(usize),
}

/// An action as the system reports it, to be put back later.
#[derive(Clone, Copy)]
pub struct SignalAction(libc::sigaction);

impl core::fmt::Debug for SignalAction {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.disposition().fmt(f)
    }
}

impl SignalAction {
    /// What it does.
    pub fn disposition(&self) -> Disposition {
        match self.0.sa_sigaction {
            libc::SIG_DFL => Disposition::Default,
            libc::SIG_IGN => Disposition::Ignore,
            handler => Disposition::Handler(handler),
        }
    }
}

fn empty_action() -> libc::sigaction {
    // SAFETY: all-zero is a valid sigaction: default action, no flags, empty mask.
    unsafe { core::mem::zeroed() }
}

/// The signal that tells a process to look at its control socket. Real-time, so that it neither merges with signals
/// that programs use nor has a default meaning to anybody; the topmost ones are left to programs, which count from
/// either end.
pub fn notice() -> i32 {
    libc::SIGRTMAX() - 3
}

/// What a signal does now.
pub fn action(signal: i32) -> SignalAction {
    let mut old = empty_action();
    // SAFETY: a live structure to fill; nothing is changed.
    unsafe { libc::sigaction(signal, core::ptr::null(), &mut old) };
    SignalAction(old)
}

/// What a signal does now.
pub fn disposition(signal: i32) -> Disposition {
    action(signal).disposition()
}

/// Has a signal call `handler`, on the alternate stack if the thread has one and `alternate` is set; interrupted
/// system calls resume where possible.
pub fn handle(signal: i32, handler: SignalHandler, alternate: bool) {
    let mut new = empty_action();
    new.sa_sigaction = handler as usize;
    new.sa_flags =
        libc::SA_SIGINFO | libc::SA_RESTART | if alternate { libc::SA_ONSTACK } else { 0 };
    // SAFETY: the handler has the type that SA_SIGINFO asks for.
    unsafe { libc::sigaction(signal, &new, core::ptr::null_mut()) };
}

/// Sets the address of a plain handler of one argument, `SIG_DFL` or `SIG_IGN`, as a client gives it; returns the one
/// before, `SIG_ERR` if the system refuses.
///
/// # Safety
/// The address must be one of these.
pub unsafe fn set_plain(signal: i32, handler: usize) -> usize {
    let mut new = empty_action();
    new.sa_sigaction = handler;
    new.sa_flags = libc::SA_RESTART;
    let mut old = empty_action();
    // SAFETY: valid actions; the handler is what the caller promises.
    if unsafe { libc::sigaction(signal, &new, &mut old) } == 0 {
        old.sa_sigaction
    } else {
        libc::SIG_ERR
    }
}

/// Puts back an action.
pub fn restore(signal: i32, action: &SignalAction) {
    // SAFETY: the action was reported by the system.
    unsafe { libc::sigaction(signal, &action.0, core::ptr::null_mut()) };
}

/// Gives a signal its default action.
pub fn set_default(signal: i32) {
    // SAFETY: a valid action.
    unsafe { libc::sigaction(signal, &empty_action(), core::ptr::null_mut()) };
}

/// Has a signal ignored.
pub fn ignore(signal: i32) {
    let mut new = empty_action();
    new.sa_sigaction = libc::SIG_IGN;
    // SAFETY: a valid action.
    unsafe { libc::sigaction(signal, &new, core::ptr::null_mut()) };
}

/// Sends a signal to the calling thread.
pub fn raise(signal: i32) {
    // SAFETY: plain system call on this very thread.
    unsafe {
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), signal)
    };
}

/// A set of signals.
#[derive(Clone, Copy)]
pub struct SignalSet(libc::sigset_t);

impl core::fmt::Debug for SignalSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SignalSet")
    }
}

impl SignalSet {
    /// These signals.
    pub fn of(signals: &[i32]) -> SignalSet {
        // SAFETY: the set is initialised by sigemptyset before use; unknown numbers are refused without effect.
        unsafe {
            let mut set = core::mem::zeroed();
            libc::sigemptyset(&mut set);
            for &s in signals {
                libc::sigaddset(&mut set, s);
            }
            SignalSet(set)
        }
    }
}

fn mask(how: i32, set: &SignalSet) -> SignalSet {
    let mut old = SignalSet::of(&[]);
    // SAFETY: both sets are live.
    unsafe { libc::pthread_sigmask(how, &set.0, &mut old.0) };
    old
}

/// Blocks signals for the calling thread; returns what was blocked before.
pub fn block(set: &SignalSet) -> SignalSet {
    mask(libc::SIG_BLOCK, set)
}

/// Lets signals through to the calling thread; returns what was blocked before.
pub fn unblock(set: &SignalSet) -> SignalSet {
    mask(libc::SIG_UNBLOCK, set)
}

/// Blocks exactly these for the calling thread.
pub fn set_mask(set: &SignalSet) {
    mask(libc::SIG_SETMASK, set);
}

/// Sleeps until a signal handler has run.
pub fn pause() {
    // SAFETY: plain system call.
    unsafe { libc::pause() };
}

/// Sends SIGALRM to this process after so many microseconds.
pub fn alarm_us(us: u64) {
    let t = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval {
            tv_sec: (us / 1_000_000) as libc::time_t,
            tv_usec: (us % 1_000_000) as libc::suseconds_t,
        },
    };
    // SAFETY: `t` is live; the old timer is not asked for. The number 0 is ITIMER_REAL everywhere.
    unsafe {
        libc::syscall(
            libc::SYS_setitimer,
            0,
            &t as *const libc::itimerval,
            core::ptr::null_mut::<c_void>(),
        )
    };
}

/// Gives the calling thread a stack for signal handlers if it has none, so that a handler can tell of a stack
/// overflow. The stack is never freed: meant for the first thread.
pub fn ensure_alternate_stack() {
    const BYTES: usize = 64 << 10;
    // SAFETY: all-zero is a valid stack_t.
    let mut now: libc::stack_t = unsafe { core::mem::zeroed() };
    // SAFETY: a live structure to fill.
    if unsafe { libc::sigaltstack(core::ptr::null(), &mut now) } != 0
        || now.ss_flags & libc::SS_DISABLE == 0
    {
        return;
    }
    let Ok(stack) = super::memory::Mapping::anonymous(BYTES) else { return };
    let new = libc::stack_t { ss_sp: stack.leak().as_ptr().cast(), ss_flags: 0, ss_size: BYTES };
    // SAFETY: the memory is mapped for ever and used for nothing else.
    unsafe { libc::sigaltstack(&new, core::ptr::null_mut()) };
}

/// What a handler was told about its signal.
#[derive(Clone, Copy, Debug)]
pub struct FaultInfo {
    /// The kernel raised it because of what the thread did (a fault), so that returning repeats the deed.
    pub fault: bool,
    /// The address of the fault; 0 if there is none.
    pub address: usize,
}

/// Reads the second argument of a [`SignalHandler`].
///
/// # Safety
/// `info` is that argument, for a signal of the kinds that faults raise.
pub unsafe fn fault_info(info: *const libc::siginfo_t) -> FaultInfo {
    // SAFETY: the kernel passes a live structure; the address is part of it for these signals.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let fault = code > 0 && code != libc::SI_KERNEL;
    FaultInfo { fault, address: if fault { address } else { 0 } }
}

const NAMES: &[(i32, &str)] = &[
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGCHLD, "SIGCHLD"),
    (libc::SIGCONT, "SIGCONT"),
    (libc::SIGSTOP, "SIGSTOP"),
    (libc::SIGTSTP, "SIGTSTP"),
    (libc::SIGTTIN, "SIGTTIN"),
    (libc::SIGTTOU, "SIGTTOU"),
    (libc::SIGURG, "SIGURG"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGXFSZ, "SIGXFSZ"),
    (libc::SIGVTALRM, "SIGVTALRM"),
    (libc::SIGPROF, "SIGPROF"),
    (libc::SIGWINCH, "SIGWINCH"),
    (libc::SIGIO, "SIGIO"),
    (libc::SIGPWR, "SIGPWR"),
    (libc::SIGSYS, "SIGSYS"),
];

/// `SIGSEGV`, say; `a signal` if it has no name.
pub fn name(signal: i32) -> &'static str {
    NAMES.iter().find(|(n, _)| *n == signal).map_or("a signal", |(_, name)| name)
}

/// The number of a signal given as a number or as a name with or without `SIG`, in either case.
pub fn parse(text: &str) -> Option<i32> {
    let text = text.trim();
    if let Ok(n) = text.parse::<i32>() {
        return (1..=libc::SIGRTMAX()).contains(&n).then_some(n);
    }
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    NAMES.iter().find(|(_, name)| &name[3..] == bare).map(|(n, _)| *n)
}

/// One signal out of a [`SignalQueue`].
#[derive(Clone, Copy, Debug)]
pub struct ReceivedSignal {
    /// Its number.
    pub signal: i32,
    /// A process sent it to this very process; otherwise the kernel did, as a terminal does for its whole foreground
    /// group.
    pub sent: bool,
}

/// Signals to be read from a descriptor instead of being delivered. They must be blocked.
#[derive(Debug)]
pub struct SignalQueue(OwnedFd);

impl SignalQueue {
    /// Collects these signals from now on.
    pub fn new(set: &SignalSet) -> io::Result<SignalQueue> {
        // SAFETY: the set is live.
        let fd = unsafe { libc::signalfd(-1, &set.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that was just opened and belongs to nobody else.
        Ok(SignalQueue(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next one, if any is there.
    pub fn next(&self) -> Option<ReceivedSignal> {
        // SAFETY: all-zero is a valid value.
        let mut s: libc::signalfd_siginfo = unsafe { core::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: a live descriptor and a live buffer of that size.
        let n = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut s).cast(), size) };
        (n == size as isize)
            .then_some(ReceivedSignal { signal: s.ssi_signo as i32, sent: s.ssi_code <= 0 })
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(name(libc::SIGSEGV), "SIGSEGV");
        assert_eq!(parse("segv"), Some(libc::SIGSEGV));
        assert_eq!(parse("SIGQUIT "), Some(libc::SIGQUIT));
        assert_eq!(parse("9"), Some(9));
        assert_eq!(parse("0"), None);
        assert_eq!(parse("SIG"), None);
    }

    #[test]
    fn queue() {
        let set = SignalSet::of(&[libc::SIGUSR2]);
        let old = block(&set);
        let queue = SignalQueue::new(&set).unwrap();
        assert!(queue.next().is_none());
        raise(libc::SIGUSR2);
        let got = queue.next().unwrap();
        assert!(got.signal == libc::SIGUSR2 && got.sent);
        set_mask(&old);
    }
}
