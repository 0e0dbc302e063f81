//! The exit of this process and of its job: `gasnet_exit`, the end of `main`, a peer's exit, a
//! lost supervisor.
//!
//! Called by `capi`, by every wait that finds the job ending, by signal handlers, and by the C
//! library at exit. Invariants: it may run in a signal handler that interrupted anything, so it
//! neither allocates nor waits for a lock of the library, but for two uses of Portals: in a job
//! without a supervisor, and `flush_network` after a success. Should such a call not return, an
//! alarm ends the process with its code; at the end of `main`, where no signal was caught, the
//! supervisor does. One thread of a process exits; the others stay where they are until `_exit`.
//! Only the process that called `gasnet_init` acts; its forked children are not part of the job.
//!
//! [`exit`] decides the end of the job (the first failure wins) and sends one message to the
//! supervisor. Then it flushes the C streams under an alarm, and ends the process with the
//! agreed code. `boot::supervisor` notifies the other ranks. Without a supervisor the message
//! goes to the other ranks, and the process ends when all leave ([`ExitNotice::agree`]).

use crate::boot::bootstrap::Bootstrap;
use crate::boot::decision::{ExitCause, ExitDecision, is_success};
use crate::boot::exit_notice::{ExitAgreement, ExitNotice};
use crate::boot::key_value::LauncherRelease;
use crate::process::{alarm, exit_hooks, lost_output};
use crate::{fault, report, trace};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;
use sys::signal::{self, Signal, SignalInfo, SignalSet};
use sys::{bounded_stderr, clock, process, thread};

/// The exit of the job of this process; not set before [`install`].
static NOTICE: OnceLock<&'static ExitNotice> = OnceLock::new();
/// Ends the use of the launcher's service; called once.
static RELEASE: OnceLock<LauncherRelease> = OnceLock::new();
static RELEASED: AtomicBool = AtomicBool::new(false);
/// The thread that exits; 0 for none, or [`IN_HANDLERS`].
static EXITING_THREAD: AtomicU32 = AtomicU32::new(0);
/// The thread that exits has gone back to the C library, which runs handlers of the program.
const IN_HANDLERS: u32 = u32::MAX;
/// Which thread that is; 0 before.
static HANDLER_THREAD: AtomicU32 = AtomicU32::new(0);
/// The code with which this process ends when the flush is interrupted.
static CODE: AtomicI32 = AtomicI32::new(0);
/// Until then the C library may run the exit handlers of this process, which decided itself to
/// end; 0 if it does not.
static HANDLERS_UNTIL: AtomicU64 = AtomicU64::new(0);
/// The thread that exits has begun to flush.
static FLUSHING: AtomicBool = AtomicBool::new(false);
/// It flushes the C streams now, and this is how long it may at a time, in microseconds; else 0.
static STREAMS_US: AtomicU64 = AtomicU64::new(0);
/// How far the wait for the ranks of a job without a supervisor is: one of the three below.
static AGREEMENT: AtomicU32 = AtomicU32::new(NOT_BEGUN);
const NOT_BEGUN: u32 = 0;
const WAITING: u32 = 1;
const OVER: u32 = 2;
/// Called when all else is flushed, if the network keeps messages.
static FLUSH_NETWORK: OnceLock<fn()> = OnceLock::new();
/// This process prints the stack of its failure.
static PRINTING_STACK: AtomicBool = AtomicBool::new(false);
/// The exit hooks are running in the flush of this process.
static IN_HOOKS: AtomicBool = AtomicBool::new(false);
/// The faults whose handler was that of `signals` before the flush, as bits.
static OWN_FAULTS: AtomicU32 = AtomicU32::new(0);
/// Microseconds that the flush may take when this process decided to exit.
static FLUSH_US: AtomicU64 = AtomicU64::new(1_500_000);
/// Microseconds that messages to other ranks may take, which wait for none of them.
const NOTICE_US: u64 = 500_000;
/// The alarm comes so much later than the deadline of a call of the network.
const ALARM_MARGIN_US: u64 = 500_000;
/// Microseconds that the flush may take when it follows a peer: the supervisor is waiting.
const FOLLOW_FLUSH_US: u64 = 500_000;

/// The exit of the job of this process, if it has one. Async-signal-safe.
pub(super) fn notice() -> Option<&'static ExitNotice> {
    NOTICE.get().copied()
}

/// Connects the exit of this process with that of the job. From now on the end of one, however it
/// comes about, is the end of the other. `exit_timeout` is GASNET_EXITTIMEOUT in seconds. Called
/// once, by `gasnet_init`.
pub fn install(job: &mut Bootstrap, exit_timeout: Option<f64>) {
    if let Some(s) = exit_timeout {
        FLUSH_US.store(((s * 1e6) as u64).max(1000), Ordering::Relaxed);
    }
    let notice = job.exit;
    let _ = NOTICE.set(notice);
    if let Some(release) = job.release.take() {
        let _ = RELEASE.set(release);
    }
    report::set_exit(fail);
    report::set_await_end(wait_for_exit);
    report::set_is_folded(is_folded);
    for signal in signal::notices() {
        signal::handle(signal, on_notice, false);
        signal::unblock(&SignalSet::of(&[signal]));
    }
    if let Err(e) = notice.arm(follow, super::signals::is_client_handled) {
        report::fatal(format_args!("{}", e.cause), format_args!("{}", e.remedy));
    }
    process::on_exit(at_exit);
    // Messages that came before the socket was armed have raised no signal.
    if notice.must_exit() || notice.is_supervisor_lost() {
        follow();
    }
}

/// Says that this process prints the stack of its failure, after which it ends: until then
/// the end of the job does not end it, and the supervisor gives it time. Async-signal-safe.
pub fn set_printing_stack(on: bool) {
    PRINTING_STACK.store(on, Ordering::Release);
    if let Some(notice) = notice() {
        notice.set_printing_stack(on);
    }
}

fn is_printing_stack() -> bool {
    PRINTING_STACK.load(Ordering::Acquire)
}

/// Whether another rank prints the error with this hash.
fn is_folded(hash: u32) -> bool {
    notice().is_some_and(|notice| notice.is_error_folded(hash))
}

/// `gasnet_exit`: ends the job with this code, unless it is ending already with another. Callable
/// from any thread and any signal handler at any time.
pub fn exit(code: i32) -> ! {
    exit_for(code, ExitCause::Exit)
}

/// As [`exit`], after an error that this rank has printed. Without standard error it has not:
/// then the supervisor names the rank.
fn fail(code: i32) -> ! {
    let is_printed = sys::descriptor::is_open(2);
    exit_for(code, if is_printed { ExitCause::Error } else { ExitCause::Ended })
}

/// As [`exit`], because of `cause`.
fn exit_for(code: i32, cause: ExitCause) -> ! {
    if notice().is_some_and(|notice| !notice.is_member()) {
        report::line(format_args!(
            "process {} called gasnet_exit, but only its parent is part of the job; it ends alone \
             with exit code {code}",
            process::pid()
        ));
        sys::exit_now(code);
    }
    claim_exit(true);
    let agreed = notice().map_or(code, |notice| decide_exit_code(notice, code, cause));
    flush_and_exit(agreed, flush_us())
}

/// Decides for this rank that the job ends with this code, and notifies the supervisor; returns
/// the code that holds.
fn decide_exit_code(notice: &ExitNotice, code: i32, cause: ExitCause) -> i32 {
    let code = if fault::on("wrong_code") { code.wrapping_add(1) } else { code };
    let is_over = AGREEMENT.load(Ordering::Acquire) == OVER;
    if is_over && !is_success(code) && notice.decision().is_none_or(ExitDecision::is_success) {
        // The others have gone with success, and an exit handler has failed.
        return code;
    }
    let decision = notice.decide(code, cause);
    if notice.agreement_us().is_some() {
        // This may have interrupted a call of the network, which then never lets another in.
        let before = AGREEMENT.swap(WAITING, Ordering::AcqRel);
        under_alarm(decision.code, NOTICE_US, || notice.notify(code, cause));
        AGREEMENT.store(before, Ordering::Release);
    } else {
        notice.notify(code, cause);
    }
    decision.code
}

/// Makes a call of the network. An alarm ends this process with `code` if the call does not return
/// in this time.
fn under_alarm<T>(code: i32, us: u64, call: impl FnOnce() -> T) -> T {
    CODE.store(code, Ordering::Release);
    alarm::borrow(|| {
        alarm::take_over(on_exit_fault);
        alarm::set(us + ALARM_MARGIN_US);
        call()
    })
}

/// [`follow`], unless this rank may still go on for a moment. Exit handlers of a process that ends
/// as it decided may poll, and may wait for threads that do. A wait for a peer that has ended has
/// an end.
#[cold]
#[inline(never)]
pub fn follow_when_due() {
    let until = HANDLERS_UNTIL.load(Ordering::Acquire);
    if until != 0 && clock::now_ns() < until && !is_ended_by_another() {
        return;
    }
    if notice().is_none_or(ExitNotice::is_due) {
        follow();
    }
}

/// Whether the job ends with a failure that is not the end of this process.
fn is_ended_by_another() -> bool {
    notice().is_some_and(|notice| {
        notice.decision().is_some_and(|d| !d.is_success() && d.rank != Some(notice.rank()))
    })
}

/// Exits because the job ends ([`ExitNotice::must_exit`]). A SIGQUIT handler that the client
/// installed runs first; a code that it passes to `gasnet_exit` comes too late.
pub fn follow() -> ! {
    let Some(notice) = notice() else { sys::exit_now(1) };
    if !notice.is_member() {
        sys::exit_now(1);
    }
    // Another thread prints its stack, and ends this process. The supervisor bounds the wait.
    while is_printing_stack() {
        clock::sleep_ns(1_000_000);
    }
    let first = claim_exit(false);
    notice.check_order();
    let code = notice.decide(1, ExitCause::Supervisor).code;
    if first && has_client_quit_handler() {
        signal::unblock(&SignalSet::of(&[Signal::QUIT]));
        signal::raise(Signal::QUIT);
    }
    flush_and_exit(code, FOLLOW_FLUSH_US)
}

/// Exits because a peer has died. Its supervisor reports the death and decides the exit code.
pub fn peer_died() -> ! {
    wait_for_exit();
    fail(1)
}

/// Waits a second for the end of the job, and exits if it comes.
fn wait_for_exit() {
    const TRIES: u32 = 1000;
    for _ in 0..TRIES {
        if notice().is_none_or(|n| n.must_exit()) {
            follow();
        }
        clock::sleep_ns(1_000_000);
    }
}

/// Whether the end of the job was decided, though this process may still run. A peer that is found
/// dead then is no error.
pub fn is_ending() -> bool {
    notice().is_some_and(|n| n.decision().is_some())
}

/// Microseconds that the flush may take when this process decided to exit.
pub(super) fn flush_us() -> u64 {
    FLUSH_US.load(Ordering::Relaxed)
}

/// Whether the client has a handler of SIGQUIT. Async-signal-safe.
pub(super) fn has_client_quit_handler() -> bool {
    super::signals::is_client_handled(Signal::QUIT)
}

/// Exits if the end of the job was decided with a failure. For a signal that asks this process to
/// end, before the order has arrived.
pub(super) fn follow_failure() {
    let is_failing = || notice().and_then(ExitNotice::decision).is_some_and(|d| d.is_final);
    if !is_printing_stack() && is_failing() {
        follow();
    }
}

/// Ends the job with 128 + the number of a signal; `caught` reports it, unless the job ends
/// already.
pub(super) fn exit_by_signal(s: Signal, caught: impl FnOnce()) -> ! {
    let code = 128 + s.number();
    let Some(notice) = notice() else { sys::exit_now(code) };
    claim_exit(true);
    let agreed = decide_exit_code(notice, code, ExitCause::Signal);
    let held = notice.decision();
    if held.is_some_and(|d| d.cause == ExitCause::Signal && d.rank == Some(notice.rank())) {
        caught();
    }
    flush_and_exit(agreed, FLUSH_US.load(Ordering::Relaxed))
}

/// Makes this thread the one that exits; false if it was that already, further down its stack.
/// Does not return while another thread exits. One that is among exit handlers of the program may
/// wait for this thread: `by_own_will`, or when handlers have had their time, this thread takes
/// its place. Precedes the decision, so that a thread which sees the decision of its own process
/// stays where it is.
fn claim_exit(by_own_will: bool) -> bool {
    const LOOK: u64 = 5_000_000;
    trace::leave();
    let me = thread::tid();
    loop {
        let is_handler = HANDLER_THREAD.load(Ordering::Acquire) == me;
        let may_take = by_own_will || is_handler || is_handler_late();
        let from = match EXITING_THREAD.load(Ordering::Acquire) {
            IN_HANDLERS if may_take => IN_HANDLERS,
            thread if thread == me => return false,
            _ => 0,
        };
        match EXITING_THREAD.compare_exchange(from, me, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) if from == IN_HANDLERS && !by_own_will && !is_handler => {
                report_cut_handlers();
                return true;
            }
            Ok(_) => return !is_handler,
            Err(_) => clock::sleep_ns(LOOK),
        }
    }
}

/// Whether exit handlers of the program have run for longer than they may.
fn is_handler_late() -> bool {
    let until = HANDLERS_UNTIL.load(Ordering::Acquire);
    until != 0 && clock::now_ns() >= until
}

fn report_cut_handlers() {
    if let Some(notice) = notice() {
        report::line(format_args!(
            "rank {}: exit handlers of the program have not ended within GASNET_EXITTIMEOUT; this \
             process ends without the rest",
            notice.rank()
        ));
    }
}

/// Flushes, unless a flush was interrupted, and ends this process.
fn flush_and_exit(code: i32, flush_us: u64) -> ! {
    if !FLUSHING.swap(true, Ordering::AcqRel) {
        signal::ignore(Signal::QUIT);
        call_hooks(code, flush_us);
        flush_streams(code, flush_us);
    }
    end(code)
}

/// Calls the exit hooks, under an alarm that flushes the streams without the rest of them, within
/// `streams_us`, and ends this process with `code`.
fn call_hooks(code: i32, streams_us: u64) {
    CODE.store(code, Ordering::Release);
    STREAMS_US.store(streams_us, Ordering::Release);
    IN_HOOKS.store(true, Ordering::Release);
    alarm::take_over(on_exit_fault);
    // The streams have the rest of the time that a supervisor grants.
    alarm::set(flush_us() / 3);
    exit_hooks::call();
    alarm::cancel();
    IN_HOOKS.store(false, Ordering::Release);
    STREAMS_US.store(0, Ordering::Release);
}

/// Ends this process: at once, or with the other ranks if there is no supervisor. That may be
/// impossible: they do not answer, or this process was interrupted inside the network. Then the
/// alarm comes.
fn end(code: i32) -> ! {
    if is_success(code) {
        super::signals::await_report();
    }
    let agreement = notice().and_then(|n| Some((n, n.agreement_us()?)));
    let Some((notice, us)) = agreement else { sys::exit_now(code) };
    CODE.store(code, Ordering::Release);
    match AGREEMENT.fetch_max(WAITING, Ordering::AcqRel) {
        NOT_BEGUN => handle_faults(us + ALARM_MARGIN_US),
        WAITING => end_alone(code),
        _ => sys::exit_now(code),
    }
    let agreed = notice.agree(code);
    AGREEMENT.store(OVER, Ordering::Release);
    if !ends_alone(notice, &agreed) {
        // After a success, this rank may have lost output.
        let code = if is_success(agreed.code) { code } else { agreed.code };
        release_launcher(code);
        sys::exit_now(code);
    }
    end_alone(agreed.code)
}

/// Whether the launcher must end the ranks that did not take part: if one is silent, the next rank
/// says so.
fn ends_alone(notice: &ExitNotice, agreed: &ExitAgreement) -> bool {
    let Some(missing) = agreed.missing.filter(|_| agreed.is_silent) else { return false };
    report::line(format_args!(
        "rank {}: rank {missing} has not called the library since the job began to end with exit \
         code {}; the launcher must end it",
        notice.rank(),
        agreed.code
    ));
    true
}

/// Ends this process so that a launcher ends the job: any failure of a rank makes it do that.
fn end_alone(code: i32) -> ! {
    if is_success(code) {
        process::kill(process::pid(), Signal::KILL);
    }
    sys::exit_now(code)
}

/// Sets what waits, briefly, until messages that have been sent need this process no more.
pub fn set_flush_network(flush: fn()) {
    let _ = FLUSH_NETWORK.set(flush);
}

fn flush_network() {
    if let Some(flush) = FLUSH_NETWORK.get() {
        flush();
    }
}

/// Ends the use of the launcher's service, once, before this process exits with `code`. It may
/// wait and needs locks of others.
fn release_launcher(code: i32) {
    if let Some(release) = RELEASE.get()
        && !RELEASED.swap(true, Ordering::AcqRel)
    {
        release(code);
    }
}

/// Flushes the C streams and releases the launcher. If this interrupted `printf`, a stream may be
/// inconsistent or locked by a thread that never unlocks it. Then a fault or the alarm ends the
/// process, still with `code`. Output that a slow reader does not take is waited for where no
/// other process waits for this one; otherwise its loss is a failure.
fn flush_streams(code: i32, us: u64) {
    CODE.store(code, Ordering::Release);
    handle_faults(us);
    STREAMS_US.store(us, Ordering::Release);
    sys::stdio::flush_at_end();
    STREAMS_US.store(0, Ordering::Release);
    if is_success(code) {
        // Otherwise no rank waits for messages of this one any more.
        flush_network();
    }
    if notice().is_none_or(|n| n.agreement_us().is_none()) {
        release_launcher(code);
    }
}

/// From now on a fault, and an alarm after this time, run [`on_exit_fault`]. A stream without a
/// reader does not keep the others from being written.
fn handle_faults(us: u64) {
    const FAULTS: [Signal; 5] =
        [Signal::SEGV, Signal::BUS, Signal::FPE, Signal::ILL, Signal::ABRT];
    for s in FAULTS {
        if super::signals::is_error_handled(s) {
            OWN_FAULTS.fetch_or(1 << s.number(), Ordering::AcqRel);
        }
        signal::handle(s, on_exit_fault, true);
    }
    signal::unblock(&SignalSet::of(&FAULTS));
    signal::ignore(Signal::PIPE);
    alarm::take_over(on_exit_fault);
    alarm::set(us);
}

/// A flush or the wait for the other ranks has failed, or took too long. If it was the exit hooks,
/// the streams are flushed nevertheless, unless their reader takes nothing. A failure of another
/// thread ends the process as it does at any other time, if this is not the end of a failure.
extern "C" fn on_exit_fault(s: Signal, info: &SignalInfo, context: *mut c_void) {
    if s == Signal::ALRM && !alarm::is_due() {
        return;
    }
    let succeeds = is_success(CODE.load(Ordering::Acquire));
    let me = thread::tid();
    let is_own = OWN_FAULTS.load(Ordering::Acquire) & (1 << s.number()) != 0;
    if is_own && succeeds && EXITING_THREAD.load(Ordering::Acquire) != me {
        return super::signals::on_error(s, info, context);
    }
    let streams_us = STREAMS_US.load(Ordering::Acquire);
    let is_late = s == Signal::ALRM && streams_us != 0;
    let is_stuck = is_late && bounded_stderr::is_reader_stuck();
    if is_stuck && succeeds && notice().is_none_or(ExitNotice::is_alone) {
        lost_output::wait_for_reader(on_request);
        return alarm::set(streams_us);
    }
    // The alarm may have interrupted another thread.
    EXITING_THREAD.store(me, Ordering::Release);
    if !is_stuck && IN_HOOKS.swap(false, Ordering::AcqRel) {
        lost_output::report_cut_hooks();
        flush_streams(CODE.load(Ordering::Acquire), streams_us);
    } else if is_late {
        if succeeds {
            CODE.store(1, Ordering::Release);
        }
        lost_output::report_streams();
    }
    if s == Signal::ALRM
        && AGREEMENT.load(Ordering::Acquire) == WAITING
        && let Some(notice) = notice()
    {
        report::line(format_args!(
            "rank {}: a call of the network does not return, so this rank exits without the others",
            notice.rank()
        ));
    }
    if succeeds {
        super::signals::await_report();
    }
    end(CODE.load(Ordering::Acquire))
}

/// This process is asked to end while it waits for its reader.
extern "C" fn on_request(s: Signal, _: &SignalInfo, _: *mut c_void) {
    end(128 + s.number())
}

/// The kernel reports an event on the control socket.
extern "C" fn on_notice(_: Signal, _: &SignalInfo, _: *mut c_void) {
    let Some(notice) = notice() else { return };
    if !notice.is_member() || EXITING_THREAD.load(Ordering::Acquire) != 0 {
        return;
    }
    let errno = sys::errno();
    notice.answer_status(super::write_activity);
    if is_printing_stack() {
        return sys::set_errno(errno);
    }
    if notice.must_exit() || notice.is_supervisor_lost() {
        follow();
    }
    sys::set_errno(errno);
}

/// The wait for the other ranks at the end of the program; ends this process unless the C library
/// may go on with its exit. It flushes first: after a failure the launcher may end the ranks that
/// remain.
fn wait_at_exit(notice: &ExitNotice, code: i32) {
    let Some(us) = notice.agreement_us() else { return };
    let agreed = under_alarm(code, us + flush_us(), || {
        sys::stdio::flush_at_end();
        AGREEMENT.store(WAITING, Ordering::Release);
        let agreed = notice.agree(code);
        AGREEMENT.store(OVER, Ordering::Release);
        agreed
    });
    if ends_alone(notice, &agreed) {
        end_alone(agreed.code);
    }
    if agreed.code != code {
        sys::exit_now(agreed.code);
    }
}

/// The program called `exit` or returned from `main`; the exit handlers that it registered after
/// `gasnet_init` have run.
extern "C" fn at_exit(code: i32, _: *mut c_void) {
    let Some(notice) = notice() else { return };
    if !notice.is_member() {
        return;
    }
    let first = claim_exit(false);
    // Before the decision: threads that see it go on.
    if first {
        let until = match notice.is_alone() {
            true => u64::MAX,
            false => {
                let flush_ns = FLUSH_US.load(Ordering::Relaxed).saturating_mul(1000);
                clock::now_ns().saturating_add(flush_ns)
            }
        };
        HANDLERS_UNTIL.store(until, Ordering::Release);
    }
    let agreed = decide_exit_code(notice, code, ExitCause::Ended);
    if agreed == code && first {
        // The C library continues: earlier exit handlers, destructors, streams.
        signal::ignore(Signal::QUIT);
        if notice.is_alone() {
            // It may wait for the readers of its files.
            exit_hooks::call();
        } else {
            alarm::borrow(|| call_hooks(code, flush_us()));
        }
        flush_network();
        wait_at_exit(notice, code);
        release_launcher(code);
        if is_success(code) {
            super::signals::await_report();
        }
        HANDLER_THREAD.store(thread::tid(), Ordering::Release);
        EXITING_THREAD.store(IN_HANDLERS, Ordering::Release);
        return;
    }
    HANDLERS_UNTIL.store(0, Ordering::Release);
    flush_and_exit(agreed, FLUSH_US.load(Ordering::Relaxed))
}
