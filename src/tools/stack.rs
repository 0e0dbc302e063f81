//! Printing the call stack of this process: by the C library, by programs that are started for it (addr2line, gdb, ...), or by
//! the client's own means, if it defines `gasnett_backtrace_user`. Called by `capi::tools` and after fatal errors and signals.
//!
//! GASNET_BACKTRACE_TYPE is a comma-separated list of the means to try, in order; the first that can ends the search. A
//! [`BacktracePlan`] is made outside signal handlers; following it neither allocates nor locks.

use crate::{env, report};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use std::ffi::{CStr, CString};

/// A way to print the stack that the client supplies.
#[derive(Clone, Copy, Debug)]
pub struct ClientBacktrace<'a> {
    /// Its name in GASNET_BACKTRACE_TYPE.
    pub name: &'a str,
    /// Prints the stack to a file; returns 0 if it could.
    pub print: unsafe extern "C" fn(c_int) -> c_int,
}

/// Names of the means of the library, in the order of their trial where GASNET_BACKTRACE_TYPE says nothing.
pub const MEANS: [&str; 6] = ["EXECINFO", "ADDR2LINE", "GDB", "GSTACK", "PSTACK", "EUSTACK"];

/// A means that can be tried now.
#[derive(Debug)]
enum BacktraceStep {
    /// The client's.
    User(unsafe extern "C" fn(c_int) -> c_int),
    /// The C library's: addresses, and names of exported functions.
    ExecInfo,
    /// Files and lines of the addresses of one object after another, by this program.
    Addr2line(CString),
    /// This program with these arguments, which looks at the process from outside.
    Program(CString, Vec<CString>),
}

/// The means to try, in order.
#[derive(Debug)]
pub struct BacktracePlan(Vec<BacktraceStep>);

/// The full path of a program in PATH.
fn find(program: &str) -> Option<CString> {
    let path = env::lookup("PATH")?;
    path.split(':')
        .filter(|dir| !dir.is_empty())
        .filter_map(|dir| CString::new(format!("{dir}/{program}")).ok())
        .find(|file| sys::helper::may_run(file))
}

fn step(name: &str) -> Option<BacktraceStep> {
    let pid = sys::process::pid().to_string();
    let program = |file: &str, args: &[&str]| {
        let path = find(file)?;
        let args = core::iter::once(file).chain(args.iter().copied());
        Some(BacktraceStep::Program(path, args.filter_map(|a| CString::new(a).ok()).collect()))
    };
    match name {
        "EXECINFO" => Some(BacktraceStep::ExecInfo),
        "ADDR2LINE" => find("addr2line").map(BacktraceStep::Addr2line),
        "GDB" => {
            program("gdb", &["-nx", "-batch", "-p", &pid, "-ex", "thread apply all backtrace"])
        }
        "GSTACK" => program("gstack", &[&pid]),
        "PSTACK" => program("pstack", &[&pid]),
        "EUSTACK" => program("eu-stack", &["-p", &pid]),
        _ => None,
    }
}

impl BacktracePlan {
    /// The plan that GASNET_BACKTRACE_TYPE asks for. Ends the job if it names a means that there is not.
    pub fn new(user: Option<ClientBacktrace<'_>>) -> BacktracePlan {
        let Some(list) = env::BACKTRACE_TYPE.get() else {
            let own = MEANS.iter().filter_map(|name| step(name));
            return BacktracePlan(
                user.map(|u| BacktraceStep::User(u.print)).into_iter().chain(own).collect(),
            );
        };
        let mut steps = Vec::new();
        for name in list.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            match user {
                Some(u) if name.eq_ignore_ascii_case(u.name) => {
                    steps.push(BacktraceStep::User(u.print))
                }
                _ if MEANS.iter().any(|m| m.eq_ignore_ascii_case(name)) => {
                    steps.extend(step(&name.to_ascii_uppercase()));
                }
                _ => report::fatal(
                    format_args!(
                        "GASNET_BACKTRACE_TYPE={list}: there is no means {name} to print a stack"
                    ),
                    format_args!(
                        "Give names out of {}{}{}, separated by commas, or unset it.",
                        MEANS.join(", "),
                        if user.is_some() { " and " } else { "" },
                        user.map_or("", |u| u.name)
                    ),
                ),
            }
        }
        BacktracePlan(steps)
    }

    /// Writes the stack of the calling thread, or of all threads, to `fd`; false if no means could. Safe in a signal handler.
    pub fn print(&self, fd: c_int) -> bool {
        self.0.iter().any(|step| match step {
            // SAFETY: the client promises that its function may be called with a file descriptor.
            BacktraceStep::User(print) => unsafe { print(fd) == 0 },
            BacktraceStep::ExecInfo => sys::stack::print(fd),
            BacktraceStep::Addr2line(path) => sys::stack::print_lines(fd, path),
            BacktraceStep::Program(path, args) => {
                let mut list: [*const core::ffi::c_char; 10] = [core::ptr::null(); 10];
                for (to, arg) in list.iter_mut().zip(args.iter().take(9)) {
                    *to = CStr::as_ptr(arg);
                }
                // SAFETY: the strings live in the plan, and a null ends the list.
                unsafe { sys::helper::run(path, &list, fd, LONGEST_NS) }
            }
        })
    }
}

/// A program that takes longer than this, in nanoseconds, is ended.
const LONGEST_NS: u64 = 30_000_000_000;

/// Whether GASNET_BACKTRACE asks for stacks of this process; tells once how to get them if not.
pub fn enabled() -> bool {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let on = env::BACKTRACE.get();
    if !on && !TOLD.swap(true, Ordering::Relaxed) {
        report::note(format_args!(
            "set GASNET_BACKTRACE=1 in the environment to get the call stack"
        ));
    }
    let ranks = env::BACKTRACE_NODES.get();
    on && ranks.is_none_or(|ranks| report::rank().is_none_or(|r| ranks.has(r)))
}
