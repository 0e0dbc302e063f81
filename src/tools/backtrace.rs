//! Printing the call stack of this process. The C library prints it, or a program (addr2line,
//! gdb, ...), or the client's own function, if it defines `gasnett_backtrace_user`.
//!
//! Called by `capi::tools`, and after fatal errors and signals. Invariant: a [`BacktracePlan`]
//! is made outside signal handlers; printing by it neither allocates nor locks. It tries the
//! methods of GASNET_BACKTRACE_TYPE in order, until one succeeds.

use crate::{env, report};
use core::ffi::c_int;
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, Ordering};
use std::ffi::CString;
use sys::capture::Capture;
use sys::helper::HelperProgram;

/// The client's own function that prints the stack.
#[derive(Clone, Copy, Debug)]
pub struct ClientBacktrace<'a> {
    /// The name of the method in GASNET_BACKTRACE_TYPE.
    pub name: &'a str,
    /// Prints the stack to a descriptor; returns 0 on success.
    pub print: extern "C" fn(c_int) -> c_int,
}

/// A method that is available.
#[derive(Debug)]
enum BacktraceStep {
    /// The client's function.
    User(extern "C" fn(c_int) -> c_int),
    /// The C library: addresses, and names of exported functions.
    ExecInfo,
    /// This program, which prints files and lines for the addresses of one object after another.
    Addr2line(CString),
    /// A program that inspects the process from outside.
    Program(HelperProgram),
}

/// The methods to try, in order.
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
        let args = args.filter_map(|a| CString::new(a).ok()).collect();
        Some(BacktraceStep::Program(HelperProgram::new(path, args)))
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
    /// The plan of GASNET_BACKTRACE_TYPE. Ends the job if it names an unknown method.
    pub fn new(user: Option<ClientBacktrace<'_>>) -> BacktracePlan {
        let Some(list) = env::BACKTRACE_TYPE.get() else {
            let own = env::BACKTRACE_METHODS.iter().filter_map(|name| step(name));
            return BacktracePlan(
                user.map(|u| BacktraceStep::User(u.print)).into_iter().chain(own).collect(),
            );
        };
        if let Some(wrong) = list.unknown_method(user.map(|u| u.name)) {
            report::fatal(format_args!("{}", wrong.cause), format_args!("{}", wrong.remedy));
        }
        let own = |name: &str| user.filter(|u| name.eq_ignore_ascii_case(u.name));
        let chosen = list.names().filter_map(|name| match own(name) {
            Some(u) => Some(BacktraceStep::User(u.print)),
            None => step(&name.to_ascii_uppercase()),
        });
        BacktracePlan(chosen.collect())
    }

    /// As [`BacktracePlan::print`] to stderr, with the rank in front of each line, from the frames
    /// of the client on. Async-signal-safe.
    pub fn print_ranked(&self, capture: &Capture) -> bool {
        let mut prefix = report::MessageLine::new();
        let _ = report::rank().map_or(Ok(()), |rank| write!(prefix, "[{rank}] "));
        // One write: the stacks of several ranks do not mix.
        let show = |done: bool, text: &[u8]| {
            sys::stdio::write_stderr(text);
            done
        };
        capture
            .with_lines(|fd| self.print(fd), client_part, prefix.bytes(), show)
            .unwrap_or_else(|| self.print(2))
    }

    /// Writes the stack of the calling thread, or of all threads, to `fd`; false if no method
    /// succeeded. Async-signal-safe.
    pub fn print(&self, fd: c_int) -> bool {
        self.0.iter().any(|step| match step {
            BacktraceStep::User(print) => print(fd) == 0,
            BacktraceStep::ExecInfo => sys::stack::print(fd),
            BacktraceStep::Addr2line(path) => sys::stack::print_lines(fd, path),
            BacktraceStep::Program(program) => program.run(fd, LONGEST_NS),
        })
    }
}

/// What debuggers print between the frames of a signal handler and those that it interrupted.
const SIGNAL_FRAME: &[u8] = b"<signal handler called>";

/// What debuggers print in front of the frames of each thread.
const THREAD: &[u8] = b"Thread ";

/// The parts of a text, by their numbers: of each thread its first line, then its frames without
/// those of this library. A thread that a signal has interrupted comes first. The first line of a
/// single thread is left out.
fn client_part(text: &[u8], number: usize) -> Option<&[u8]> {
    let text = without_farewell(text);
    let threads = || threads_of(text);
    if threads().nth(1).is_none() {
        return (number == 0).then(|| client_frames(text));
    }
    let interrupted = threads().filter(|thread| has_signal_frame(thread));
    let others = threads().filter(|thread| !has_signal_frame(thread));
    let thread = interrupted.chain(others).nth(number / 2)?;
    let first_line = thread.iter().position(|&b| b == b'\n').map_or(thread.len(), |end| end + 1);
    let (first_line, frames) = thread.split_at(first_line);
    Some(if number.is_multiple_of(2) { first_line } else { client_frames(frames) })
}

/// A text without the line in which GDB says that it lets go of the process.
fn without_farewell(text: &[u8]) -> &[u8] {
    let lines = text.strip_suffix(b"\n").unwrap_or(text);
    let last = lines.iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
    if text[last..].starts_with(b"[Inferior ") { &text[..last] } else { text }
}

/// The threads of a text: each from its first line to that of the next.
fn threads_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_begin =
        move |at: usize| text[at..].starts_with(THREAD) && (at == 0 || text[at - 1] == b'\n');
    let begins = move |from: usize| (from..text.len()).find(|&at| is_begin(at));
    let mut next = begins(0);
    core::iter::from_fn(move || {
        let begin = next?;
        next = begins(begin + 1);
        Some(&text[begin..next.unwrap_or(text.len())])
    })
}

fn has_signal_frame(text: &[u8]) -> bool {
    text.windows(SIGNAL_FRAME.len()).any(|part| part == SIGNAL_FRAME)
}

/// The part of a text after the last frame of a signal handler. Without one, that after the
/// innermost frames of this library, which began to print; all of it if there are none.
fn client_frames(text: &[u8]) -> &[u8] {
    let (mut at, mut after_signal, mut after_own, mut in_own) = (0, 0, 0, false);
    for line in text.split_inclusive(|&b| b == b'\n') {
        at += line.len();
        if has_signal_frame(line) {
            after_signal = at;
        }
        match is_own_frame(line) {
            true if after_own == 0 || in_own => (in_own, after_own) = (true, at),
            // An inlined function has no path in front of its name. It may be one of a client in
            // Rust, unless a frame of this library follows.
            false if in_own && is_rust_frame(line) => {}
            _ => in_own = false,
        }
    }
    let from = if after_signal > 0 { after_signal } else { after_own };
    if from < text.len() { &text[from..] } else { text }
}

/// Whether a line of a debugger is a frame of this library, by the name of its function.
fn is_own_frame(line: &[u8]) -> bool {
    let Ok(line) = core::str::from_utf8(line) else { return false };
    // "#3  0x00007f00 in name (arguments)" or "#3  name (arguments)".
    let Some((_, frame)) = line.strip_prefix('#').and_then(|rest| rest.split_once(' ')) else {
        return false;
    };
    let frame = frame.trim_start();
    let name = frame.split_once(" in ").filter(|_| frame.starts_with("0x")).map_or(frame, |f| f.1);
    ["gasnet", "gex_", "<gasnet", "sys::"].iter().any(|own| name.starts_with(own))
}

/// Whether a line of a debugger is a frame of a function in Rust: "#3  name () at src/file.rs:5".
fn is_rust_frame(line: &[u8]) -> bool {
    line.starts_with(b"#") && line.windows(4).any(|part| part == b".rs:")
}

/// A program that runs longer than this, in nanoseconds, is ended.
const LONGEST_NS: u64 = 30_000_000_000;

/// How to get a stack.
pub const HINT: &str = "set GASNET_BACKTRACE=1 in the environment to get the call stack";

/// Whether this rank prints its stack (GASNET_BACKTRACE); prints once how to switch it on if not.
pub fn enabled() -> bool {
    static PRINTED: AtomicBool = AtomicBool::new(false);
    let on = env::BACKTRACE.get();
    if !on && !PRINTED.swap(true, Ordering::Relaxed) {
        report::note(format_args!("{HINT}"));
    }
    on && is_for_this_rank()
}

/// Whether this rank may print its stack (GASNET_BACKTRACE_NODES).
pub fn is_for_this_rank() -> bool {
    let ranks = env::BACKTRACE_NODES.get();
    ranks.is_none_or(|ranks| report::rank().is_none_or(|r| ranks.has(r)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_begins_after_the_signal_handler() {
        let gdb = b"#0 wait4 ()\n#1 <signal handler called>\n#2 step () at a.c:3\n#3 main ()\n";
        assert_eq!(client_frames(gdb), b"#2 step () at a.c:3\n#3 main ()\n");
        for whole in [&b"main at a.c:9\n"[..], b"", b"<signal handler called>\n"] {
            assert_eq!(client_frames(whole), whole);
        }
    }

    fn parts(text: &str) -> String {
        let part = |number| client_part(text.as_bytes(), number);
        let all: Vec<&[u8]> = (0..).map_while(part).collect();
        String::from_utf8(all.concat()).unwrap()
    }

    /// Debuggers print the last thread first, whichever was interrupted.
    #[test]
    fn all_threads_are_kept_and_the_interrupted_one_is_first() {
        let thread = |n: u32, frames: &str| format!("Thread {n} (LWP {n}):\n{frames}\n");
        let waits = "#0  gasnet_barrier_wait ()\n#1  work () at a.c:5\n";
        let handler = "#0  wait4 ()\n#1  <signal handler called>\n";
        let guilty = "#2  guilty () at a.c:3\n";
        let three = |by: [u32; 3]| {
            let frames = |n| match n {
                2 => format!("{handler}{guilty}"),
                _ => format!("#0  read ()\n#1  work () at a.c:{n}\n"),
            };
            by.map(|n| thread(n, &frames(n))).concat()
        };
        let printed = three([3, 2, 1]).replace(handler, "");
        for by in [[3, 2, 1], [2, 3, 1], [3, 1, 2]] {
            let shown = parts(&format!("[New LWP 7]\n{}", three(by)));
            assert!(shown.starts_with(&format!("Thread 2 (LWP 2):\n{guilty}")), "{shown}");
            assert_eq!(shown.len(), printed.len(), "{shown}");
        }
        assert_eq!(parts(&thread(1, waits)), "#1  work () at a.c:5\n\n");
        assert_eq!(parts(""), "");
    }

    #[test]
    fn a_stack_begins_after_the_library_that_prints_it() {
        let own = "#0  0x01 in wait4 () from libc.so.6\n#1  sys::helper::run (fd=2) at h.rs:3\n\
                   #2  0x02 in gasnet::report::fatal (a=...)\n#3  gasnet_attach ()\n";
        let client = "#4  0x03 in step (n=2) at a.c:3\n#5  gasnet_AMPoll ()\n#6  main ()\n";
        let text = format!("Thread 1:\n{own}{client}");
        assert_eq!(client_frames(text.as_bytes()), client.as_bytes());
        assert_eq!(parts(&text), client);
        let inlined = "#1  sys::helper::run (fd=2) at h.rs:3\n#2  check_rank () at src/team.rs:46\n\
                       #3  gasnet_get_val () at src/value.rs:142\n";
        let rust = "#4  0x03 in step () at src/main.rs:3\n#5  main ()\n";
        assert_eq!(parts(&format!("{inlined}{rust}[Inferior 1 (process 7) detached]\n")), rust);
        let other = "#0  step (n=2) at gasnet.c:1\n#1  main (gasnet=0x1) at a.c:9\n";
        assert_eq!(client_frames(other.as_bytes()), other.as_bytes());
    }
}
