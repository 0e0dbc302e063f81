//! The ways out of a job: `gasnet_exit`, the end of `main`, a peer's exit, a lost supervisor. Called by capi, by every
//! wait that finds the job ending, by signal handlers, and by the C library at exit.
//!
//! Invariants: nothing here allocates, waits for a lock of the library, or calls Portals, since any of it may run in a
//! signal handler that interrupted anything. One thread of a process leaves; the others stay where they are until
//! `_exit`. Only the process that called `gasnet_init` acts; its forked children are not part of the job.
//!
//! `exit` sets the exit word (first exit wins), sends one message to the supervisor, flushes the C streams under an
//! alarm, and ends the process with the agreed code. How the others learn of it is told in `boot::supervisor`.

use crate::boot;
use crate::boot::control::{self, ExitCause, ExitDecision, JobControl};
use crate::{env, fault, report};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use sys::signal::Signal;
use sys::{process, signal, thread};

/// The job of this process; null before [`install`].
static JOB: AtomicPtr<JobControl> = AtomicPtr::new(core::ptr::null_mut());
/// The thread that leaves; 0 if none does.
static EXITING_THREAD: AtomicU32 = AtomicU32::new(0);
/// The code with which whatever interrupts the flushing ends this process.
static CODE: AtomicI32 = AtomicI32::new(0);
/// The thread that leaves has begun to flush.
static FLUSHING: AtomicBool = AtomicBool::new(false);
/// Called once when this process leaves, before it flushes: a `fn()` each, null for none.
static EXIT_HOOKS: [AtomicPtr<()>; 4] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 4];
/// Microseconds that flushing may take when this process exits of its own accord.
static FLUSH_US: AtomicU64 = AtomicU64::new(1_500_000);
/// Microseconds that flushing may take when it follows a peer, whose supervisor is waiting.
const FOLLOW_FLUSH_US: u64 = 500_000;

fn job() -> Option<&'static JobControl> {
    let p = JOB.load(Ordering::Acquire);
    // SAFETY: JOB holds null or a reference that lives as long as the process.
    (!p.is_null()).then(|| unsafe { &*p })
}

/// Arms the ways out: from now on the end of this process, however it comes about, is the end of the job, and the end
/// of the job is the end of this process. Called once, by `gasnet_init`.
pub fn install(job: &'static JobControl) {
    if let Some(s) = env::EXITTIMEOUT.get() {
        FLUSH_US.store(((s * 1e6) as u64).max(1000), Ordering::Relaxed);
    }
    JOB.store(core::ptr::from_ref(job).cast_mut(), Ordering::Release);
    report::set_exit(exit);
    report::set_await_end(wait_for_exit);
    control::set_exit_handler(follow);
    let notice = signal::notice();
    signal::handle(notice, on_notice, false);
    signal::unblock(&signal::SignalSet::of(&[notice]));
    if let Err(e) = job.arm() {
        report::fatal(format_args!("{}", e.cause), format_args!("{}", e.remedy));
    }
    process::on_exit(at_exit);
    // What came before the socket was armed has raised no signal.
    if job.poll_exit().is_some() || job.orphaned() {
        follow();
    }
}

/// Ends the job with this code, unless it is ending already with another; any thread, any handler, any time.
pub fn exit(code: i32) -> ! {
    let Some(job) = job() else {
        sys::stdio::flush();
        sys::exit_now(code)
    };
    if !job.is_member() {
        report::line(format_args!(
            "process {} called gasnet_exit, but only its parent is part of the job; it ends alone with exit code {code}",
            process::pid()
        ));
        sys::exit_now(code);
    }
    claim_exit();
    flush_and_exit(decide(job, code), FLUSH_US.load(Ordering::Relaxed))
}

/// Decides for this rank that the job ends with this code, and tells; returns the code that holds.
fn decide(job: &JobControl, code: i32) -> i32 {
    let code = if fault::on("wrong_code") { code.wrapping_add(1) } else { code };
    let d = job.decide(ExitDecision { code, cause: ExitCause::Exit, rank: job.rank() });
    job.notify();
    d.code
}

/// Leaves because [`JobControl::poll_exit`] has a code. A SIGQUIT handler that the client installed runs first; the
/// code that it may give to `gasnet_exit` comes too late.
pub fn follow() -> ! {
    let Some(job) = job() else { sys::exit_now(1) };
    if !job.is_member() {
        sys::exit_now(1);
    }
    let first = claim_exit();
    let code =
        job.decide(ExitDecision { code: 1, cause: ExitCause::Supervisor, rank: job.rank() }).code;
    if first && is_client_handler(signal::disposition(Signal::QUIT)) {
        signal::unblock(&signal::SignalSet::of(&[Signal::QUIT]));
        signal::raise(Signal::QUIT);
    }
    flush_and_exit(code, FOLLOW_FLUSH_US)
}

/// Leaves because a peer was found dead. Its supervisor is about to find out how it died, and with what code the job
/// therefore ends; the peer's death is told there.
pub fn lost() -> ! {
    wait_for_exit();
    exit(1)
}

/// Waits a second for somebody to end the job, and leaves if that happens.
fn wait_for_exit() {
    const TRIES: u32 = 1000;
    for _ in 0..TRIES {
        if job().is_none_or(|j| j.poll_exit().is_some()) {
            follow();
        }
        sys::clock::sleep_ns(1_000_000);
    }
}

/// Whether somebody has decided that the job ends, though this process may still go on. A peer that is found dead
/// then is nothing to complain about.
pub fn is_ending() -> bool {
    job().is_some_and(|j| j.decision().is_some())
}

fn is_client_handler(d: signal::Disposition) -> bool {
    matches!(d, signal::Disposition::Handler(h) if !super::signals::is_ours(h))
}

/// Makes this thread the one that leaves; false if it was that already, further down its stack. Does not return if
/// another thread leaves. Comes before the decision, so that a thread which sees the decision of its own process
/// stays where it is.
fn claim_exit() -> bool {
    let me = thread::tid();
    match EXITING_THREAD.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => true,
        Err(other) if other == me => false,
        Err(_) => loop {
            signal::pause();
        },
    }
}

/// Flushes, unless that is what was interrupted, and ends this process.
fn flush_and_exit(code: i32, flush_us: u64) -> ! {
    if !FLUSHING.swap(true, Ordering::AcqRel) {
        signal::ignore(Signal::QUIT);
        flush_stats();
        flush(code, flush_us);
    }
    sys::exit_now(code)
}

/// Adds to what is called once when this process leaves; async-signal-safe, since leaving is.
///
/// # Panics
/// If there are more than four already; they are all ours.
pub fn on_exit(hook: fn()) {
    let free = |slot: &&AtomicPtr<()>| slot.load(Ordering::Relaxed).is_null();
    EXIT_HOOKS.iter().find(free).expect("four hooks").store(hook as *mut (), Ordering::Release);
}

/// Calls what [`on_exit`] was given, once.
pub(super) fn flush_stats() {
    for slot in &EXIT_HOOKS {
        let hook = slot.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !hook.is_null() {
            // SAFETY: EXIT_HOOKS only ever holds nulls and what `on_exit` stored, each a `fn()`.
            let hook: fn() = unsafe { core::mem::transmute(hook) };
            hook();
        }
    }
}

/// Flushes the C streams and takes leave of a foreign launcher. What interrupts this thread in the middle of `printf` may find a stream in disorder or its
/// lock held by a thread that never lets go: then a fault or the alarm ends the process, still with `code`.
fn flush(code: i32, us: u64) {
    const FLUSH_FAULTS: [Signal; 10] = [
        Signal::ALRM,
        Signal::SEGV,
        Signal::BUS,
        Signal::FPE,
        Signal::ILL,
        Signal::ABRT,
        Signal::TERM,
        Signal::INT,
        Signal::HUP,
        Signal::PIPE,
    ];
    CODE.store(code, Ordering::Release);
    for s in FLUSH_FAULTS {
        signal::handle(s, on_flush_fault, true);
    }
    signal::unblock(&signal::SignalSet::of(&FLUSH_FAULTS));
    signal::alarm_us(us);
    sys::stdio::flush();
    boot::finish();
}

extern "C" fn on_flush_fault(_: Signal, _: &sys::signal::SignalInfo, _: *mut c_void) {
    sys::exit_now(CODE.load(Ordering::Acquire))
}

/// The kernel says that something happened on the control socket.
extern "C" fn on_notice(_: Signal, _: &sys::signal::SignalInfo, _: *mut c_void) {
    let Some(job) = job() else { return };
    if !job.is_member() || EXITING_THREAD.load(Ordering::Acquire) != 0 {
        return;
    }
    let errno = sys::errno();
    job.answer(super::activity::write);
    if job.poll_exit().is_some() {
        follow();
    }
    if job.orphaned() {
        report::line(format_args!(
            "rank {}: the launcher is gone, so the job ends",
            job.rank().unwrap_or_default()
        ));
        follow();
    }
    sys::set_errno(errno);
}

/// The program called `exit` or returned from `main`; the handlers that it registered later than `gasnet_init` have
/// run.
extern "C" fn at_exit(code: i32, _: *mut c_void) {
    let Some(job) = job() else { return };
    if !job.is_member() {
        return;
    }
    let first = claim_exit();
    let agreed = decide(job, code);
    if agreed == code && first {
        // The C library goes on: earlier exit handlers, destructors, streams.
        signal::ignore(Signal::QUIT);
        flush_stats();
        boot::finish();
        return;
    }
    flush_and_exit(agreed, FLUSH_US.load(Ordering::Relaxed))
}
