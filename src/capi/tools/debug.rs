//! Stacks, pauses for debuggers, signals, and the end of a process that has failed.
//!
//! Called by clients, and by `gasnet_init` (`open`). Invariant: what runs in a signal handler
//! allocates nothing.

use super::text;
use crate::env;
use crate::process::{exit, exit_hooks, signals};
use crate::report;
use crate::tools::{backtrace, client_variables, debug_malloc, this_process};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::ffi::CString;
use std::sync::OnceLock;
use sys::capture::Capture;
use sys::signal::Signal;

/// `gasnett_backtrace_type_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktraceType {
    /// Its name in GASNET_BACKTRACE_TYPE, or null.
    name: *const c_char,
    /// Prints the stack to a file; null if the client supplies none.
    print: Option<extern "C" fn(c_int) -> c_int>,
    /// Part of the interface of GASNet; not read.
    thread_support: c_int,
}

unsafe extern "C" {
    /// In shim.c, or defined by the client.
    static gasnett_backtrace_user: BacktraceType;
    /// In shim.c; a client may assign it.
    static mut gasnett_print_backtrace_ifenabled: Option<unsafe extern "C" fn(c_int) -> c_int>;
    /// In shim.c; set to 0 in a debugger.
    static mut gasnet_frozen: c_int;
}

/// The client's own means to print a stack, if it has one.
fn user_means() -> Option<backtrace::ClientBacktrace<'static>> {
    // SAFETY: the client's definition, or that of shim.c; both are constants while this runs.
    let user = unsafe { gasnett_backtrace_user };
    let name = match user.name.is_null() {
        true => "",
        // SAFETY: NUL-terminated, as the interface asks, and constant.
        false => unsafe { CStr::from_ptr(user.name) }.to_str().unwrap_or(""),
    };
    user.print.map(|print| backtrace::ClientBacktrace { name, print })
}

/// How stacks are printed where nothing may be allocated to find out; made by `gasnet_init` or
/// `gasnett_backtrace_init`.
static PLAN: OnceLock<backtrace::BacktracePlan> = OnceLock::new();
/// Where a stack is kept until the rank is put in front of its lines; not set without memory.
static CAPTURE: OnceLock<Capture> = OnceLock::new();

/// Loads and looks up what printing a stack needs, so that it can be printed where nothing may
/// be allocated. `gasnet_init` calls it if it may be needed.
///
/// - `exename`: not used.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_backtrace_init(_exename: *const c_char) {
    sys::stack::prepare();
    PLAN.get_or_init(|| backtrace::BacktracePlan::new(user_means()));
    if CAPTURE.get().is_none()
        && let Ok(capture) = Capture::new()
    {
        let _ = CAPTURE.set(capture);
    }
}

/// Prints the stack of the calling thread, by the means that GASNET_BACKTRACE_TYPE names.
///
/// - `fd`: where to print, a file descriptor.
/// - Returns 0 if the stack was printed, 1 otherwise.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_print_backtrace(fd: c_int) -> c_int {
    sys::stack::prepare();
    c_int::from(!backtrace::BacktracePlan::new(user_means()).print(fd))
}

/// As [`gasnett_print_backtrace`], to stderr, by the plan that is made already and with the rank
/// in front of each line. Whether that succeeded. Async-signal-safe.
fn print_by_plan() -> bool {
    let print = |plan: &backtrace::BacktracePlan| match CAPTURE.get() {
        Some(capture) => plan.print_ranked(capture),
        None => plan.print(2),
    };
    let printed = PLAN.get().is_some_and(print);
    if !printed {
        report::line(format_args!("no means could print the stack"));
    }
    printed
}

/// Calls a function that prints the stack of a process that ends afterwards: the end of the job
/// waits for it.
fn before_end<T>(print: impl FnOnce() -> T) -> T {
    exit::set_printing_stack(true);
    let result = print();
    exit::set_printing_stack(false);
    result
}

/// Prints the stack if GASNET_BACKTRACE requests it: what `gasnett_print_backtrace_ifenabled`
/// is unless the client assigns it.
///
/// - `fd`: where to print, a file descriptor.
/// - Returns 0 if the stack was printed, 1 otherwise.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_backtrace_if_enabled(fd: c_int) -> c_int {
    match backtrace::enabled() {
        true if fd == 2 => {
            gasnett_backtrace_init(core::ptr::null());
            c_int::from(!print_by_plan())
        }
        true => gasnett_print_backtrace(fd),
        false => 1,
    }
}

/// The end of `gasnett_fatalerror` and of lock functions that fail: message, stack, freeze,
/// abort.
pub(super) fn fatal(message: core::fmt::Arguments<'_>) -> ! {
    report::fatal_line(message);
    // SAFETY: a pointer that the client may assign before; null means none.
    if let Some(print) = unsafe { gasnett_print_backtrace_ifenabled } {
        // SAFETY: it is a function that takes a descriptor, as the interface asks.
        before_end(|| unsafe { print(2) });
    }
    gasnett_freezeForDebuggerErr();
    // The handler of the abort has nothing to add.
    PRINT_STACK.store(false, Ordering::Relaxed);
    report::set_crash_advice(None);
    FREEZE.store(false, Ordering::Relaxed);
    signals::flush_and_abort()
}

/// Ends the job with a message: what `gasnett_fatalerror` calls with its text. Prints the stack
/// and pauses first if the environment requests it. Does not return.
///
/// - `message`: the text, NUL-terminated.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `message` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_fatal_text(message: *const c_char) -> ! {
    // SAFETY: the macro gasnett_fatalerror passes a string that it has formatted.
    fatal(format_args!("{}", unsafe { text(message) }))
}

/// Pauses this process until a debugger changes a flag.
///
/// - `flag`: set to 1 here; the process goes on when it is 0.
/// - `flagname`: its name, which the message says; NUL-terminated.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `flag` must point to a live int and `flagname` be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_freezeForDebuggerNow(flag: *mut c_int, flagname: *const c_char) {
    // SAFETY: gasnet_tools.h demands a live int, which the debugger writes from outside.
    let flag = unsafe { AtomicI32::from_ptr(flag) };
    // SAFETY: gasnet_tools.h demands the name of the flag as a string.
    this_process::freeze(flag, &unsafe { text(flagname) });
}

/// Pauses this process as `gasnett_freezeForDebuggerNow` if GASNET_FREEZE_ON_ERROR requests it.
/// The flag is `gasnet_frozen`.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_freezeForDebuggerErr() {
    if this_process::freeze_on_error() {
        freeze();
    }
}

/// Whether GASNET_BACKTRACE requests stacks of this process, and GASNET_FREEZE_ON_ERROR a
/// pause, at `gasnet_init`; fatal signals may come when nothing can be allocated to find out.
static PRINT_STACK: AtomicBool = AtomicBool::new(false);
static FREEZE: AtomicBool = AtomicBool::new(false);

/// Prepares for debuggers what the environment requests: freezes now, or prints the stack and
/// freezes after a fatal error or signal. Shows the library's variables if GASNET_VERBOSEENV
/// asks. Called by `gasnet_init` when the rank is known.
pub(in crate::capi) fn open() {
    client_variables::display_all();
    PRINT_STACK.store(env::BACKTRACE.get() && backtrace::enabled(), Ordering::Relaxed);
    FREEZE.store(this_process::freeze_on_error(), Ordering::Relaxed);
    // The plan also rejects an unknown method, before a stack is needed.
    if PRINT_STACK.load(Ordering::Relaxed)
        || env::BACKTRACE_SIGNAL.get().is_some()
        || env::BACKTRACE_TYPE.get().is_some()
    {
        gasnett_backtrace_init(core::ptr::null());
    }
    if backtrace::is_for_this_rank() {
        handle_named(env::BACKTRACE_SIGNAL.get(), on_backtrace_signal);
    }
    handle_named(env::FREEZE_SIGNAL.get(), on_freeze_signal);
    debug_malloc::plan_report();
    exit_hooks::on_exit(debug_malloc::write_report);
    // With a pause, a debugger prints the stack.
    if !env::BACKTRACE.get() && !FREEZE.load(Ordering::Relaxed) {
        report::set_crash_advice(Some(backtrace::HINT));
    }
    signals::set_after_fatal(after_fatal);
    report::set_after_fatal(after_fatal);
    if env::FREEZE.get() {
        freeze();
    }
}

extern "C" fn on_backtrace_signal(
    s: Signal,
    info: &sys::signal::SignalInfo,
    context: *mut c_void,
) {
    if info.fault().is_some() {
        // It would come again, without end.
        PRINT_STACK.store(true, Ordering::Relaxed);
        return signals::on_error(s, info, context);
    }
    let errno = sys::errno();
    report::note(format_args!("stack at signal {} (GASNET_BACKTRACE_SIGNAL):", s.name()));
    print_by_plan();
    sys::set_errno(errno);
}

extern "C" fn on_freeze_signal(_: Signal, _: &sys::signal::SignalInfo, _: *mut c_void) {
    let errno = sys::errno();
    freeze();
    sys::set_errno(errno);
}

/// Has the signals that a variable names call `handler`.
fn handle_named(named: Option<Vec<Signal>>, handler: sys::signal::SignalHandler) {
    named.unwrap_or_default().into_iter().for_each(|s| signals::handle_named(s, handler));
}

fn after_fatal() {
    if PRINT_STACK.swap(false, Ordering::Relaxed) {
        before_end(print_by_plan);
    }
    if FREEZE.swap(false, Ordering::Relaxed) {
        freeze();
    }
}

fn freeze() {
    // SAFETY: an int of shim.c that lives forever; only atomic accesses in this program.
    this_process::freeze(unsafe { AtomicI32::from_ptr(&raw mut gasnet_frozen) }, "gasnet_frozen");
}

/// Ends this process at once, without any clean-up. Does not return.
///
/// - `exitcode`: its exit code.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_killmyprocess(exitcode: c_int) -> ! {
    sys::exit_now(exitcode)
}

/// Writes what is buffered in the C streams of this process, standard output and standard error
/// first. Waits for a stream while another thread holds it, for example while that reads from it.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_flush_streams() {
    sys::stdio::flush();
}

/// Flushes as `gasnett_flush_streams`, then closes stdin, stdout and stderr; what is written from
/// now on is lost.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_close_streams() {
    sys::stdio::close();
}

/// Sets the handler of a signal. A signal that cannot be handled ends the job.
///
/// - `sigtocatch`: its number.
/// - `fp`: a function of one `int`, `SIG_DFL` or `SIG_IGN`.
/// - Returns the previous handler.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `fp` must be a function of one int, or `SIG_DFL` or `SIG_IGN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_reghandler(sigtocatch: c_int, fp: usize) -> usize {
    let signal = Signal::new(sigtocatch);
    // SAFETY: gasnet_tools.h demands what `signal` of C takes: a function of one int, SIG_DFL
    // or SIG_IGN.
    let old = unsafe { sys::signal::set_plain(signal, fp) };
    old.unwrap_or_else(|| {
        report::fatal(
            format_args!(
                "gasnett_reghandler(): signal {} ({}) cannot be handled",
                signal.number(),
                signal.name()
            ),
            format_args!("Choose another signal."),
        )
    })
}

/// Returns the name of a signal, such as `SIGINT`.
///
/// - `sigval`: its number.
/// - Returns a string of the library. It is `a signal` for a signal without a name, such as one
///   for real time, and `*unknown*` for a number below 1 or above 64. Never null.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_signame_fromval(sigval: c_int) -> *const c_char {
    static NAMES: [OnceLock<CString>; 65] = [const { OnceLock::new() }; 65];
    match usize::try_from(sigval).ok().filter(|i| *i > 0).and_then(|i| NAMES.get(i)) {
        Some(slot) => slot
            .get_or_init(|| CString::new(Signal::new(sigval).name()).unwrap_or_default())
            .as_ptr(),
        None => c"*unknown*".as_ptr(),
    }
}
