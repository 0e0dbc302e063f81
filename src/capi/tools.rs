//! The `gasnett_*` functions: what the headers do not do inline. None of them needs a job.

use crate::env::{self, OptionalVariable, Signals, number};
use crate::report;
use crate::runtime::{exit, segment, signals};
use crate::tools::{bytes, environment, heap, process, stack, timer};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::ffi::CString;
use std::sync::OnceLock;
use sys::locks;
use sys::signal::Signal;

/// `gasnett_backtrace_type_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktraceType {
    /// Its name in GASNET_BACKTRACE_TYPE, or null.
    name: *const c_char,
    /// Prints the stack to a file; null if the client supplies none.
    print: Option<unsafe extern "C" fn(c_int) -> c_int>,
    /// Whether it may be called in a program with threads.
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

/// The text of a C string; empty for null, with a mark in place of what is not UTF-8.
///
/// # Safety
/// `text` must be null or NUL-terminated.
unsafe fn text<'a>(text: *const c_char) -> std::borrow::Cow<'a, str> {
    if text.is_null() {
        return "".into();
    }
    // SAFETY: not null, and the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// A slice of C memory.
///
/// # Safety
/// `n` bytes at `p` must be readable if `n` is not 0.
unsafe fn memory<'a>(p: *const c_void, n: usize) -> &'a [u8] {
    if n == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(p.cast(), n) }
}

/// `gasnett_ticks_now`: nanoseconds of the monotonic clock.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_ticks_now() -> u64 {
    sys::clock::now_ns()
}

/// `gasnett_tick_granularityus`: microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_tick_granularityus() -> f64 {
    timer::granularity_us()
}

/// `gasnett_tick_overheadus`: microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_tick_overheadus() -> f64 {
    timer::overhead_us()
}

/// `gasnett_gettimeofday_us`: microseconds since 1970.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_gettimeofday_us() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

/// `gasnett_format_number`: writes at most `bufsz` bytes, the final NUL included, and returns `buf`.
///
/// # Safety
/// `bufsz` bytes at `buf` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_number(
    value: i64,
    buf: *mut c_char,
    bufsz: usize,
    is_mem: c_int,
) -> *mut c_char {
    let s = number::format(value, is_mem != 0);
    let n = s.len().min(bufsz.saturating_sub(1));
    if bufsz != 0 {
        // SAFETY: n + 1 <= bufsz, which the caller promises to be writable.
        unsafe {
            core::ptr::copy_nonoverlapping(s.as_ptr(), buf.cast(), n);
            *buf.add(n) = 0;
        }
    }
    buf
}

/// `gasnett_parse_int`; a text that is no number ends the job.
///
/// # Safety
/// `string` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_parse_int(string: *const c_char, mult: u64) -> i64 {
    // SAFETY: the caller's promise.
    let t = unsafe { text(string) };
    number::parse(&t, mult).unwrap_or_else(|| {
        report::fatal(
            format_args!("gasnett_parse_int(): '{t}' is not a number"),
            format_args!(
                "Give a number{}.",
                if mult == 0 { "" } else { " with or without a suffix B, KB, MB, GB or TB" }
            ),
        )
    })
}

/// `gasnett_setenv`.
///
/// # Safety
/// Both must be NUL-terminated, and no other thread may use the environment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_setenv(key: *const c_char, value: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { sys::environment::set(CStr::from_ptr(key), CStr::from_ptr(value)) };
}

/// `gasnett_unsetenv`.
///
/// # Safety
/// `key` must be NUL-terminated, and no other thread may use the environment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_unsetenv(key: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { sys::environment::unset(CStr::from_ptr(key)) };
}

/// `gasnett_getenv`: the value, or null.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv(key: *const c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    env::raw(unsafe { CStr::from_ptr(key) })
}

/// `gasnett_getenv_withdefault`: the value, or `dflt` itself.
///
/// # Safety
/// Both must be NUL-terminated; `dflt` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_withdefault(
    key: *const c_char,
    dflt: *const c_char,
) -> *mut c_char {
    // SAFETY: the caller's promise.
    let (set, k) = unsafe { (env::raw(CStr::from_ptr(key)), text(key)) };
    let value = if set.is_null() { dflt.cast_mut() } else { set };
    // SAFETY: NUL-terminated, or null, as both are.
    let shown = (!value.is_null()).then(|| unsafe { text(value) });
    environment::display(&k, shown.as_deref(), set.is_null());
    value
}

/// `gasnett_getenv_yesno_withdefault`: 1 or 0.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_yesno_withdefault(
    key: *const c_char,
    dflt: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    c_int::from(environment::yes(&unsafe { text(key) }, dflt != 0))
}

/// `gasnett_getenv_int_withdefault`.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_int_withdefault(
    key: *const c_char,
    dflt: i64,
    mult: u64,
) -> i64 {
    // SAFETY: the caller's promise.
    environment::int(&unsafe { text(key) }, dflt, mult)
}

/// `gasnett_getenv_dbl_withdefault`.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_dbl_withdefault(key: *const c_char, dflt: f64) -> f64 {
    // SAFETY: the caller's promise.
    environment::float(&unsafe { text(key) }, dflt)
}

/// `gasnett_verboseenv`: 1 if this process prints the variables that are looked at.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_verboseenv() -> c_int {
    c_int::from(environment::verbose())
}

/// `gasnett_envint_display`.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_envint_display(
    key: *const c_char,
    value: i64,
    is_dflt: c_int,
    is_mem: c_int,
) {
    // SAFETY: the caller's promise.
    environment::display(
        &unsafe { text(key) },
        Some(&number::format(value, is_mem != 0)),
        is_dflt != 0,
    );
}

/// `gasnett_envstr_display`.
///
/// # Safety
/// Both must be NUL-terminated; `value` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_envstr_display(
    key: *const c_char,
    value: *const c_char,
    is_dflt: c_int,
) {
    // SAFETY: the caller's promise.
    let (key, shown) = unsafe { (text(key), (!value.is_null()).then(|| text(value))) };
    environment::display(&key, shown.as_deref(), is_dflt != 0);
}

/// `gasnett_envdbl_display`.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_envdbl_display(key: *const c_char, value: f64, is_dflt: c_int) {
    // SAFETY: the caller's promise.
    environment::display(&unsafe { text(key) }, Some(&value.to_string()), is_dflt != 0);
}

/// The client's own means to print a stack, if it has one.
fn user_means() -> Option<stack::ClientBacktrace<'static>> {
    // SAFETY: the client's definition, or that of shim.c; both are constants while this runs.
    let user = unsafe { gasnett_backtrace_user };
    let name = match user.name.is_null() {
        true => "",
        // SAFETY: NUL-terminated, as the interface asks, and constant.
        false => unsafe { CStr::from_ptr(user.name) }.to_str().unwrap_or(""),
    };
    user.print.map(|print| stack::ClientBacktrace { name, print })
}

/// How stacks are printed where nothing may be allocated to find out; made by `gasnet_init` or `gasnett_backtrace_init`.
static PLAN: OnceLock<stack::BacktracePlan> = OnceLock::new();

/// `gasnett_backtrace_init`: loads and looks up what printing a stack needs. The name of the program is not needed.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_backtrace_init(_exename: *const c_char) {
    sys::stack::prepare();
    PLAN.get_or_init(|| stack::BacktracePlan::new(user_means()));
}

/// `gasnett_print_backtrace`: 0 if the stack was printed.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_print_backtrace(fd: c_int) -> c_int {
    c_int::from(!stack::BacktracePlan::new(user_means()).print(fd))
}

/// As [`gasnett_print_backtrace`], to stderr, by the plan that is made already; async-signal-safe.
fn print_by_plan() {
    if !PLAN.get().is_some_and(|plan| plan.print(2)) {
        report::line(format_args!("no means could print the stack"));
    }
}

/// What `gasnett_print_backtrace_ifenabled` is unless the client assigns it: prints the stack if GASNET_BACKTRACE asks
/// for it; 0 if it was printed.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_backtrace_if_enabled(fd: c_int) -> c_int {
    if stack::enabled() { gasnett_print_backtrace(fd) } else { 1 }
}

/// The end of `gasnett_fatalerror` and of lock functions that fail: message, stack, freeze, abort.
fn fatal(message: core::fmt::Arguments<'_>) -> ! {
    report::fatal_line(message);
    // SAFETY: a pointer that the client may assign before; null means none.
    if let Some(print) = unsafe { gasnett_print_backtrace_ifenabled } {
        // SAFETY: it is a function that takes a descriptor, as the interface asks.
        unsafe { print(2) };
    }
    gasnett_freezeForDebuggerErr();
    // The handler of the abort has nothing to add.
    PRINT_STACK.store(false, Ordering::Relaxed);
    FREEZE.store(false, Ordering::Relaxed);
    sys::stdio::flush();
    std::process::abort()
}

/// `gasnett_fatalerror`, after shim.c has made the text.
///
/// # Safety
/// `message` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_fatal_text(message: *const c_char) -> ! {
    // SAFETY: the caller's promise.
    fatal(format_args!("{}", unsafe { text(message) }))
}

/// `gasnett_freezeForDebuggerNow`.
///
/// # Safety
/// `flag` must point to a live int and `flagname` be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_freezeForDebuggerNow(flag: *mut c_int, flagname: *const c_char) {
    // SAFETY: a live, aligned int, as the caller promises; the debugger writes it from outside.
    let flag = unsafe { AtomicI32::from_ptr(flag) };
    // SAFETY: the caller's promise.
    process::freeze(flag, &unsafe { text(flagname) });
}

/// `gasnett_freezeForDebuggerErr`: freezes if GASNET_FREEZE_ON_ERROR asks for it.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_freezeForDebuggerErr() {
    if process::freeze_on_error() {
        freeze();
    }
}

/// Whether GASNET_BACKTRACE asked for stacks of this process, and GASNET_FREEZE_ON_ERROR for a pause, at
/// `gasnet_init`; fatal signals may come when nothing can be allocated to find out.
static PRINT_STACK: AtomicBool = AtomicBool::new(false);
static FREEZE: AtomicBool = AtomicBool::new(false);

/// Prepares for debuggers what the environment asks for: freezes now, or prints the stack and freezes after a fatal
/// error or signal; and shows the library's variables if GASNET_VERBOSEENV asks. Called by `gasnet_init` when the rank
/// is known.
pub(super) fn open() {
    environment::display_all();
    PRINT_STACK.store(env::BACKTRACE.get() && stack::enabled(), Ordering::Relaxed);
    FREEZE.store(process::freeze_on_error(), Ordering::Relaxed);
    if PRINT_STACK.load(Ordering::Relaxed) || env::BACKTRACE_SIGNAL.get().is_some() {
        gasnett_backtrace_init(core::ptr::null());
    }
    handle_named(&env::BACKTRACE_SIGNAL, on_backtrace_signal);
    handle_named(&env::FREEZE_SIGNAL, on_freeze_signal);
    heap::plan_report();
    exit::on_exit(heap::write_report);
    signals::set_after_fatal(|_| after_fatal());
    report::set_after_fatal(after_fatal);
    if env::FREEZE.get() {
        freeze();
    }
}

extern "C" fn on_backtrace_signal(s: Signal, _: &sys::signal::SignalInfo, _: *mut c_void) {
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

/// Has the signal that this variable names call `handler`.
fn handle_named(variable: &OptionalVariable<Signals>, handler: sys::signal::SignalHandler) {
    let signals = variable.get().unwrap_or_default();
    for &s in signals.named() {
        if matches!(s, Signal::KILL | Signal::STOP) {
            report::fatal(
                format_args!("{}={}: this signal cannot be handled", variable.name(), s.name()),
                format_args!("Give another signal, such as SIGUSR1."),
            );
        }
        sys::signal::handle(s, handler, false);
    }
}

fn after_fatal() {
    if PRINT_STACK.swap(false, Ordering::Relaxed) {
        print_by_plan();
    }
    if FREEZE.swap(false, Ordering::Relaxed) {
        freeze();
    }
}

fn freeze() {
    // SAFETY: an int of shim.c that lives for ever; only atomic accesses in this program.
    process::freeze(unsafe { AtomicI32::from_ptr(&raw mut gasnet_frozen) }, "gasnet_frozen");
}

/// `gasnett_killmyprocess`: ends this process at once.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_killmyprocess(exitcode: c_int) -> ! {
    sys::exit_now(exitcode)
}

/// `gasnett_flush_streams`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_flush_streams() {
    sys::stdio::flush();
}

/// `gasnett_close_streams`: what is written from now on is lost.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_close_streams() {
    sys::stdio::close();
}

/// `gasnett_reghandler`: sets a signal's handler, returns the one before.
///
/// # Safety
/// `handler` must be a function of one int, or `SIG_DFL` or `SIG_IGN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_reghandler(signal: c_int, handler: usize) -> usize {
    let signal = Signal::new(signal);
    // SAFETY: the caller's promise.
    let old = unsafe { sys::signal::set_plain(signal, handler) };
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

/// `gasnett_signame_fromval`: the name of a signal; never null.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_signame_fromval(signal: c_int) -> *const c_char {
    static NAMES: [OnceLock<CString>; 65] = [const { OnceLock::new() }; 65];
    match usize::try_from(signal).ok().and_then(|i| NAMES.get(i)) {
        Some(slot) => slot
            .get_or_init(|| CString::new(Signal::new(signal).name()).unwrap_or_default())
            .as_ptr(),
        None => c"*unknown*".as_ptr(),
    }
}

/// `gasnett_maximize_rlimits`: 1 if all limits that are worth it are as high as they may be.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_maximize_rlimits() -> c_int {
    c_int::from(process::maximize_limits())
}

/// `gasnett_maximize_rlimit`: 1 if this limit is as high as it may be. Its name is not needed.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_maximize_rlimit(resource: c_int, _description: *const c_char) -> c_int {
    c_int::from(u32::try_from(resource).is_ok_and(sys::limits::maximize))
}

/// `gasnett_diagnostic_gethandlers`: none.
///
/// # Safety
/// Both must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_diagnostic_gethandlers(
    table: *mut *mut c_void,
    numentries: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe {
        table.write(core::ptr::null_mut());
        numentries.write(0);
    }
}

/// `gasnett_run_diagnostics`: 0 failures of no tests, which is said once.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_run_diagnostics(
    _iters: c_int,
    _threads: c_int,
    _sections: *const c_char,
    _seginfo: *const c_void,
) -> c_int {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if report::rank().is_none_or(|rank| rank == 0) && !TOLD.swap(true, Ordering::Relaxed) {
        report::note(format_args!(
            "gasnett_run_diagnostics(): this library has no tests of its inside that a program can call; nothing was tested"
        ));
    }
    0
}

/// `gasnett_gethostname`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_gethostname() -> *const c_char {
    static NAME: OnceLock<CString> = OnceLock::new();
    NAME.get_or_init(|| CString::new(process::hostname()).unwrap_or_default()).as_ptr()
}

/// `gasnett_cpu_count`: CPUs that this process may run on.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_cpu_count() -> c_int {
    c_int::try_from(sys::cpu::affinity()).unwrap_or(c_int::MAX)
}

/// `gasnett_getPhysMemSz`: bytes of memory of this machine, 0 if it cannot be found out and that is not fatal.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_getPhysMemSz(failure_is_fatal: c_int) -> u64 {
    let n = sys::memory::limits().physical;
    if n == 0 && failure_is_fatal != 0 {
        fatal(format_args!(
            "gasnett_getPhysMemSz(): the system does not tell how much memory there is"
        ));
    }
    n
}

/// `gasnett_set_affinity`: pins this thread to the CPU with this number, round and round.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_set_affinity(rank: c_int) {
    if !sys::cpu::pin(usize::try_from(rank).unwrap_or(0)) {
        report::note(format_args!("gasnett_set_affinity(): the system does not allow it"));
    }
}

/// `gasnett_sched_yield`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_sched_yield() {
    sys::thread::yield_now();
}

/// `gasnett_checksum`.
///
/// # Safety
/// `nbytes` bytes at `p` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_checksum(p: *const c_void, nbytes: c_int) -> u64 {
    // SAFETY: the caller's promise.
    bytes::checksum(unsafe { memory(p, usize::try_from(nbytes).unwrap_or(0)) })
}

/// `gasnett_count0s`: how many of the bytes are zero.
///
/// # Safety
/// `nbytes` bytes at `src` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_count0s(src: *const c_void, nbytes: usize) -> usize {
    // SAFETY: the caller's promise.
    bytes::zeros(unsafe { memory(src, nbytes) })
}

/// `gasnett_count0s_copy`: the same, and copies them.
///
/// # Safety
/// `nbytes` bytes at `src` must be readable, at `dst` writable, and the two must not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_count0s_copy(
    dst: *mut c_void,
    src: *const c_void,
    nbytes: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let from = unsafe { memory(src, nbytes) };
    // SAFETY: as above.
    unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), dst.cast(), from.len()) };
    bytes::zeros(from)
}

/// `gasnett_performance_warning_str`: lines that say why this library is slower than it could be; empty if it is not.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_performance_warning_str() -> *const c_char {
    if cfg!(debug_assertions) {
        c"        libgasnet was built with debug assertions\n".as_ptr()
    } else if cfg!(feature = "faults") {
        c"        libgasnet was built with planted faults\n".as_ptr()
    } else {
        c"".as_ptr()
    }
}

/// `gasnett_mmap`: zeroed memory at a multiple of `GASNETT_PAGESIZE`; ends the job if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_mmap(size: usize) -> *mut c_void {
    match sys::memory::Mapping::anonymous_aligned(size, segment::PAGE) {
        Ok(m) => m.leak().as_ptr().cast(),
        Err(e) => fatal(format_args!("gasnett_mmap(): {size} bytes: {e}")),
    }
}

/// `gasnett_malloc_aligned`: memory at a multiple of `align`, a power of two; ends the job if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_malloc_aligned(align: usize, size: usize) -> *mut c_void {
    match sys::heap::allocate_aligned(align, size) {
        Ok(p) => p.cast(),
        Err(e) => {
            fatal(format_args!("gasnett_malloc_aligned(): {size} bytes, aligned to {align}: {e}"))
        }
    }
}

/// `gasnett_free_aligned`.
///
/// # Safety
/// `p` must be null or have come from [`gasnett_malloc_aligned`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_free_aligned(p: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { sys::heap::free(p.cast()) };
}

/// A lock function of gasnet_locks.h failed: ends the job.
///
/// # Safety
/// `call` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_lock_failed(call: *const c_char, error: c_int) -> ! {
    // SAFETY: the caller's promise.
    let call = unsafe { text(call) };
    fatal(format_args!("{call}(): {}", std::io::Error::from_raw_os_error(error)))
}

/// What a macro of gasnet_locks.h asserts of a lock is not so: ends the job.
///
/// # Safety
/// Both must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_lock_assertion(name: *const c_char, place: *const c_char) -> ! {
    // SAFETY: the caller's promise.
    let (name, place) = unsafe { (text(name), text(place)) };
    fatal(format_args!("{name}() at {place}: the lock is not in that state"))
}

/// `gasnett_mutex_init` with GASNET_DEBUG; 0 or an error number.
///
/// # Safety
/// `lock` must point to memory of a `gasnett_mutex_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_mutex_init_debug(lock: *mut locks::Mutex) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { locks::mutex_init_checking(lock) }
}

/// Whether a mutex is open (0), held by this thread (1) or by another one (2).
///
/// # Safety
/// `lock` must point to an initialised `gasnett_mutex_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_mutex_state(lock: *mut locks::Mutex) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { locks::mutex_state(lock) }
}

macro_rules! rwlock {
    ($($name:ident => $call:ident;)*) => {$(
        /// The function of POSIX threads; 0 or an error number, or the state.
        ///
        /// # Safety
        /// `lock` must point to an initialised `gasnett_rwlock_t` (for init: to any).
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(lock: *mut locks::RwLock) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { locks::$call(lock) }
        }
    )*};
}

rwlock! {
    gasneti_rwlock_state => rwlock_state;
    gasneti_rwlock_init => rwlock_init;
    gasneti_rwlock_destroy => rwlock_destroy;
    gasneti_rwlock_rdlock => rwlock_rdlock;
    gasneti_rwlock_wrlock => rwlock_wrlock;
    gasneti_rwlock_tryrdlock => rwlock_tryrdlock;
    gasneti_rwlock_trywrlock => rwlock_trywrlock;
    gasneti_rwlock_unlock => rwlock_unlock;
}
