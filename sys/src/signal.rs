//! Signals: their numbers and names, handlers, masks, a descriptor to read them from, and the
//! alarm. Called by `process::signals`, `process::exit`, `boot::supervisor` and the tools. All
//! but [`SignalQueue`] is async-signal-safe.

use core::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A signal, by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Signal(i32);

macro_rules! signals {
    ($($short:ident = $long:ident;)*) => {
        impl Signal {
            $(#[doc = concat!("`", stringify!($long), "`.")]
            pub const $short: Signal = Signal(libc::$long);)*
        }

        /// The signals that have a name.
        const NAMES: &[(Signal, &str)] = &[$((Signal::$short, stringify!($long)),)*];
    };
}

signals! {
    HUP = SIGHUP;
    INT = SIGINT;
    QUIT = SIGQUIT;
    ILL = SIGILL;
    TRAP = SIGTRAP;
    ABRT = SIGABRT;
    BUS = SIGBUS;
    FPE = SIGFPE;
    KILL = SIGKILL;
    USR1 = SIGUSR1;
    SEGV = SIGSEGV;
    USR2 = SIGUSR2;
    PIPE = SIGPIPE;
    ALRM = SIGALRM;
    TERM = SIGTERM;
    CHLD = SIGCHLD;
    CONT = SIGCONT;
    STOP = SIGSTOP;
    TSTP = SIGTSTP;
    TTIN = SIGTTIN;
    TTOU = SIGTTOU;
    URG = SIGURG;
    XCPU = SIGXCPU;
    XFSZ = SIGXFSZ;
    VTALRM = SIGVTALRM;
    PROF = SIGPROF;
    WINCH = SIGWINCH;
    IO = SIGIO;
    PWR = SIGPWR;
    SYS = SIGSYS;
}

impl Signal {
    /// The signal with this number. The system refuses numbers that no signal has.
    pub const fn new(number: i32) -> Signal {
        Signal(number)
    }

    /// Its number.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// `SIGSEGV`, say; `a signal` if it has no name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(s, _)| *s == self).map_or("a signal", |(_, name)| name)
    }

    /// The signal given as a number or as a name with or without `SIG`, in either case; `None`
    /// if there is none.
    pub fn parse(text: &str) -> Option<Signal> {
        let text = text.trim();
        if let Ok(n) = text.parse::<i32>() {
            return (1..=libc::SIGRTMAX()).contains(&n).then_some(Signal(n));
        }
        let upper = text.to_ascii_uppercase();
        let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
        NAMES.iter().find(|(_, name)| &name[3..] == bare).map(|(s, _)| *s)
    }

    /// Whether a handler can take it: not those that end or stop any process, and not those that
    /// the C library uses between its threads.
    pub fn can_be_handled(self) -> bool {
        !matches!(self, Signal::KILL | Signal::STOP) && !(32..34).contains(&self.0)
    }
}

impl core::fmt::Debug for Signal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

/// A handler: the signal, what the kernel says about it, the interrupted context.
pub type SignalHandler = extern "C" fn(Signal, &SignalInfo, *mut c_void);

/// What the kernel says about a signal to its handler. The size is hidden: a program that calls a
/// handler itself, with the signal alone, passes any address.
#[derive(Debug)]
#[repr(C)]
pub struct SignalInfo([u8; 0]);

impl SignalInfo {
    /// Whether a process sent it. Otherwise the kernel did, as for the whole foreground group of
    /// a terminal. Only where the kernel has called the handler.
    pub fn is_sent(&self) -> bool {
        self.words().si_code <= 0
    }

    /// The address whose access raised the signal, 0 if the kernel names none. `None` if no
    /// fault of this thread raised it: then it does not come again when the handler returns.
    /// Only where the kernel has called the handler.
    pub fn fault(&self) -> Option<usize> {
        fault_of(self.words())
    }

    /// As [`SignalInfo::fault`], also where a program has called the handler. `None` if nothing is
    /// there that this process can read.
    pub fn fault_if_any(&self) -> Option<usize> {
        let mut bytes = [0u8; size_of::<libc::siginfo_t>()];
        if crate::attach::peek(core::ptr::from_ref(self).cast(), &mut bytes) < bytes.len() {
            return None;
        }
        // SAFETY: as many bytes; numbers and addresses, for which any are valid.
        let info = unsafe { bytes.as_ptr().cast::<libc::siginfo_t>().read_unaligned() };
        fault_of(&info)
    }

    fn words(&self) -> &libc::siginfo_t {
        // SAFETY: the kernel passes a live siginfo_t to a handler.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }
}

/// The signals of faults: of an address, or an instruction.
pub(crate) const FAULTS: [Signal; 4] = [Signal::SEGV, Signal::BUS, Signal::FPE, Signal::ILL];

fn fault_of(info: &libc::siginfo_t) -> Option<usize> {
    if info.si_code <= 0 || !FAULTS.contains(&Signal(info.si_signo)) {
        return None;
    }
    // SAFETY: the field is an address for these signals.
    Some(unsafe { info.si_addr() } as usize)
}

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

/// The signal at which a process looks at its control socket. It is a real-time signal,
/// which merges with no signal that programs use and has no meaning of its own. The topmost
/// ones are left to programs, which count from either end.
pub fn notice() -> Signal {
    Signal(libc::SIGRTMAX() - 3)
}

/// [`notice`], and the signal that the kernel sends in its place where the user's queue of signals
/// is full (`ulimit -i`): its default action would end the process. A program that gives it
/// another action keeps that.
pub fn notices() -> impl Iterator<Item = Signal> {
    let is_free = |s: &Signal| *s == notice() || disposition(*s) == Disposition::Default;
    [notice(), Signal::IO].into_iter().filter(is_free)
}

/// The action of a signal now.
pub fn action(signal: Signal) -> SignalAction {
    let mut old = empty_action();
    // SAFETY: a live structure to fill; nothing is changed.
    unsafe { libc::sigaction(signal.0, core::ptr::null(), &mut old) };
    SignalAction(old)
}

/// What a signal does now.
pub fn disposition(signal: Signal) -> Disposition {
    action(signal).disposition()
}

/// Makes a signal call `handler`. With `alternate`, it runs on the alternate stack of the
/// thread, if that has one. Interrupted system calls resume where that is possible.
pub fn handle(signal: Signal, handler: SignalHandler, alternate: bool) {
    let mut new = empty_action();
    new.sa_sigaction = handler as usize;
    new.sa_flags =
        libc::SA_SIGINFO | libc::SA_RESTART | if alternate { libc::SA_ONSTACK } else { 0 };
    // SAFETY: the handler has the type that SA_SIGINFO requires: the kernel passes a number, a
    // live siginfo_t and a context.
    unsafe { libc::sigaction(signal.0, &new, core::ptr::null_mut()) };
}

/// Sets a plain handler as C programs give it: the address of a function of one int, `SIG_DFL`
/// or `SIG_IGN`. Returns the one before; `None` if the system refuses.
///
/// # Safety
/// `handler` must be one of these.
pub unsafe fn set_plain(signal: Signal, handler: usize) -> Option<usize> {
    let mut new = empty_action();
    new.sa_sigaction = handler;
    new.sa_flags = libc::SA_RESTART;
    let mut old = empty_action();
    // SAFETY: live actions; without SA_SIGINFO the handler is one of the values that the caller
    // may give.
    let set = unsafe { libc::sigaction(signal.0, &new, &mut old) } == 0;
    set.then_some(old.sa_sigaction)
}

/// Puts back an action.
pub fn restore(signal: Signal, action: &SignalAction) {
    // SAFETY: the action was reported by the system.
    unsafe { libc::sigaction(signal.0, &action.0, core::ptr::null_mut()) };
}

/// Runs code of others, then gives each signal the action that it had before: some libraries take
/// signals over when they are loaded. No other thread may change actions meanwhile.
pub fn with_kept_actions<T>(run: impl FnOnce() -> T) -> T {
    let all = || (1..=libc::SIGRTMAX()).map(Signal);
    let before: Vec<SignalAction> = all().map(action).collect();
    let result = run();
    for (signal, before) in all().zip(&before) {
        restore(signal, before);
    }
    result
}

/// Gives a signal its default action.
pub fn set_default(signal: Signal) {
    // SAFETY: a valid action.
    unsafe { libc::sigaction(signal.0, &empty_action(), core::ptr::null_mut()) };
}

/// Makes a signal ignored.
pub fn ignore(signal: Signal) {
    let mut new = empty_action();
    new.sa_sigaction = libc::SIG_IGN;
    // SAFETY: a valid action.
    unsafe { libc::sigaction(signal.0, &new, core::ptr::null_mut()) };
}

/// The signals that have a handler now.
pub fn handled() -> impl Iterator<Item = Signal> {
    let all = (1..=libc::SIGRTMAX()).map(Signal);
    all.filter(|s| matches!(disposition(*s), Disposition::Handler(_)))
}

/// Takes its handler from a signal. Faults, and what stops and continues a process, do what they
/// do by default; other signals do nothing.
pub fn drop_handler(signal: Signal) {
    match signal {
        s if FAULTS.contains(&s) => set_default(s),
        Signal::TRAP | Signal::ABRT | Signal::SYS => set_default(signal),
        Signal::TSTP | Signal::TTIN | Signal::TTOU | Signal::CONT => set_default(signal),
        _ => ignore(signal),
    }
}

/// Sends a signal to the calling thread.
pub fn raise(signal: Signal) {
    // SAFETY: touches no memory.
    unsafe { libc::raise(signal.0) };
}

/// Sends a signal to the thread `tid` of the process `pid`.
pub fn send_to_thread(pid: u32, tid: u32, signal: Signal) {
    // SAFETY: touches no memory.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal.0) };
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
    /// All signals, without those that the C library keeps for itself.
    pub fn all() -> SignalSet {
        let mut set = SignalSet::of(&[]);
        // SAFETY: the set is live.
        unsafe { libc::sigfillset(&mut set.0) };
        set
    }

    /// These signals. Numbers that no signal has are left out.
    pub fn of(signals: &[Signal]) -> SignalSet {
        // SAFETY: all-zero is a valid value, which sigemptyset overwrites.
        let mut set: libc::sigset_t = unsafe { core::mem::zeroed() };
        // SAFETY: the set is live.
        unsafe { libc::sigemptyset(&mut set) };
        for s in signals {
            // SAFETY: the set is live and initialised.
            unsafe { libc::sigaddset(&mut set, s.0) };
        }
        SignalSet(set)
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

/// Discards this signal if it is blocked and pending for the calling thread or its process.
pub fn discard(signal: Signal) {
    take(&SignalSet::of(&[signal]));
}

/// Sleeps until a signal handler has run.
pub fn pause() {
    // SAFETY: no arguments.
    unsafe { libc::pause() };
}

/// A timer that is due once, after this many microseconds; 0 for never.
fn once(us: u64) -> libc::itimerval {
    libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval {
            tv_sec: (us / 1_000_000) as libc::time_t,
            tv_usec: (us % 1_000_000) as libc::suseconds_t,
        },
    }
}

/// Sets the timer with this number; returns what it was.
fn set_timer(number: i32, new: &libc::itimerval) -> libc::itimerval {
    let mut old = once(0);
    // SAFETY: both timers are live.
    unsafe { libc::syscall(libc::SYS_setitimer, number, &raw const *new, &raw mut old) };
    old
}

/// ITIMER_REAL, ITIMER_VIRTUAL and ITIMER_PROF, which have these numbers everywhere.
const TIMERS: [i32; 3] = [0, 1, 2];

/// Sends SIGALRM to this process after this many microseconds.
pub fn alarm_us(us: u64) {
    set_timer(TIMERS[0], &once(us));
}

/// The timers of `alarm` and `setitimer`, which a forked process does not have.
#[derive(Clone, Copy)]
pub struct IntervalTimers([libc::itimerval; 3]);

impl core::fmt::Debug for IntervalTimers {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("IntervalTimers")
    }
}

impl IntervalTimers {
    /// Stops those of this process.
    pub fn take() -> IntervalTimers {
        IntervalTimers(TIMERS.map(|number| set_timer(number, &once(0))))
    }

    /// Lets them go on in this process.
    pub fn go_on(&self) {
        TIMERS.iter().zip(&self.0).for_each(|(&number, timer)| _ = set_timer(number, timer));
    }
}

/// Gives the calling thread a stack for signal handlers if it has none, so that a handler can
/// report a stack overflow. It is never freed, so this is for the first thread only.
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
    // SAFETY: the memory stays mapped until the process ends and is used for nothing else.
    unsafe { libc::sigaltstack(&new, core::ptr::null_mut()) };
}

/// One signal from a [`SignalQueue`].
#[derive(Clone, Copy, Debug)]
pub struct ReceivedSignal {
    /// Which one.
    pub signal: Signal,
    /// A process sent it to this process. Otherwise the kernel did, as for the whole foreground
    /// group of a terminal.
    pub sent: bool,
}

/// Signals that are read instead of being delivered to a handler. They must be blocked. They
/// come from a descriptor, or by looks where the kernel has no such descriptors (Linux before
/// 2.6.27).
#[derive(Debug)]
pub struct SignalQueue {
    fd: Option<OwnedFd>,
    set: SignalSet,
}

impl SignalQueue {
    /// Collects these signals from now on. The descriptor is closed on exec.
    ///
    /// # Errors
    /// That of the system.
    pub fn new(set: &SignalSet) -> io::Result<SignalQueue> {
        /// Bytes of a set of the kernel's signals, which is shorter than that of the C library.
        const KERNEL_SET: usize = 8;
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is live and longer than that.
        let fd =
            unsafe { libc::syscall(libc::SYS_signalfd4, -1, &set.0, KERNEL_SET, flags) as i32 };
        // SAFETY: the descriptor was just opened, so nothing else owns it.
        let fd = match unsafe { crate::descriptor::opened(fd) } {
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => None,
            opened => Some(opened?),
        };
        Ok(SignalQueue { fd, set: *set })
    }

    /// The next signal; `None` if none has arrived. Does not wait.
    pub fn next(&self) -> Option<ReceivedSignal> {
        match &self.fd {
            Some(fd) => read(fd),
            None => take(&self.set),
        }
    }

    /// Readable when a signal has arrived. `None`: [`SignalQueue::next`] is to be called now and
    /// then.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }
}

/// The next signal of a descriptor.
fn read(fd: &OwnedFd) -> Option<ReceivedSignal> {
    // SAFETY: all-zero is a valid value.
    let mut s: libc::signalfd_siginfo = unsafe { core::mem::zeroed() };
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: a live descriptor and a live buffer of that size.
    let n = unsafe { libc::read(fd.as_raw_fd(), (&raw mut s).cast(), size) };
    let signal = Signal(s.ssi_signo as i32);
    (n == size as isize).then_some(ReceivedSignal { signal, sent: s.ssi_code <= 0 })
}

/// The next of these signals that is blocked and pending for the calling thread or its process.
fn take(set: &SignalSet) -> Option<ReceivedSignal> {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: all-zero is a valid value.
    let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
    // SAFETY: set, information and time are live.
    let number = unsafe { libc::sigtimedwait(&set.0, &mut info, &now) };
    (number > 0).then_some(ReceivedSignal { signal: Signal(number), sent: info.si_code <= 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(Signal::SEGV.name(), "SIGSEGV");
        assert_eq!(Signal::parse("segv"), Some(Signal::SEGV));
        assert_eq!(Signal::parse("SIGQUIT "), Some(Signal::QUIT));
        assert_eq!(Signal::parse("9"), Some(Signal::KILL));
        assert_eq!(Signal::parse("0"), None);
        assert_eq!(Signal::parse("SIG"), None);
    }

    #[test]
    fn actions_that_others_change_are_put_back() {
        set_default(Signal::PIPE);
        with_kept_actions(|| ignore(Signal::PIPE));
        assert_eq!(disposition(Signal::PIPE), Disposition::Default);
    }

    /// A child that ends, and a message of the kernel, are no faults; an access to an address
    /// that no page can have is one, without its address.
    #[test]
    fn faults() {
        let fault = |signal: Signal, code| {
            // SAFETY: all-zero is a valid value.
            let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
            (info.si_signo, info.si_code) = (signal.0, code);
            // SAFETY: a live siginfo_t, as the kernel passes it.
            let info: &SignalInfo = unsafe { &*core::ptr::from_ref(&info).cast() };
            assert_eq!(info.fault_if_any(), info.fault());
            info.fault()
        };
        const SEGV_MAPERR: i32 = 1;
        assert_eq!(fault(Signal::SEGV, SEGV_MAPERR), Some(0));
        assert_eq!(fault(Signal::SEGV, libc::SI_KERNEL), Some(0));
        assert_eq!(fault(Signal::SEGV, libc::SI_USER), None);
        assert_eq!(fault(Signal::CHLD, libc::CLD_EXITED), None);
        assert_eq!(fault(Signal::ALRM, libc::SI_KERNEL), None);
        // SAFETY: no bytes are read there.
        let nothing: &SignalInfo = unsafe { &*core::ptr::without_provenance(8) };
        assert_eq!(nothing.fault_if_any(), None);
    }

    #[test]
    fn dropped_handlers_stop_nothing_of_the_system() {
        extern "C" fn handler(_: Signal, _: &SignalInfo, _: *mut c_void) {}
        for (signal, after) in
            [(Signal::WINCH, Disposition::Ignore), (Signal::TSTP, Disposition::Default)]
        {
            let before = action(signal);
            handle(signal, handler, false);
            assert!(handled().any(|s| s == signal));
            drop_handler(signal);
            assert_eq!(disposition(signal), after);
            restore(signal, &before);
        }
    }

    #[test]
    fn timers_go_on_elsewhere() {
        let set = once(3_600_000_000);
        set_timer(TIMERS[2], &set);
        let timers = IntervalTimers::take();
        assert_eq!(set_timer(TIMERS[2], &once(0)).it_value.tv_sec, 0);
        timers.go_on();
        // A clock tick more than was left.
        let left = set_timer(TIMERS[2], &once(0)).it_value.tv_sec;
        assert!((3_599..=3_601).contains(&left), "{left}");
    }

    #[test]
    fn queue() {
        let set = SignalSet::of(&[Signal::USR2]);
        let old = block(&set);
        for queue in [SignalQueue::new(&set).unwrap(), SignalQueue { fd: None, set }] {
            assert!(queue.next().is_none());
            raise(Signal::USR2);
            let got = queue.next().unwrap();
            assert!(got.signal == Signal::USR2 && got.sent && queue.next().is_none());
        }
        set_mask(&old);
    }
}
