//! Programs that look at this process from outside, such as a debugger. Called by
//! `tools::backtrace` and `stack`, also from signal handlers: nothing here allocates or locks, and
//! no signal reports to the client that the child ended.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;

/// Whether this file is a program that this process may run. Async-signal-safe.
pub fn may_run(file: &CStr) -> bool {
    // SAFETY: the name is NUL-terminated.
    unsafe { libc::access(file.as_ptr(), libc::X_OK) == 0 }
}

/// A program with its arguments, ready to be run from a signal handler.
#[derive(Debug)]
pub struct HelperProgram {
    path: CString,
    /// The strings that `pointers` leads to.
    _args: Vec<CString>,
    /// The arguments, then null.
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers lead to strings that the value owns and never changes.
unsafe impl Send for HelperProgram {}
// SAFETY: as above.
unsafe impl Sync for HelperProgram {}

impl HelperProgram {
    /// The program at `path`; the first argument is its name.
    pub fn new(path: CString, args: Vec<CString>) -> HelperProgram {
        let pointers = args.iter().map(|a| a.as_ptr()).chain([core::ptr::null()]).collect();
        HelperProgram { path, _args: args, pointers }
    }

    /// Runs the program, whose output goes to `fd`, and waits for its end for at most `longest_ns`
    /// nanoseconds. True if it exited with 0. It may trace this process, and ends with it.
    /// Async-signal-safe.
    pub fn run(&self, fd: c_int, longest_ns: u64) -> bool {
        // SAFETY: strings that the value owns, and a null at the end.
        unsafe { run(&self.path, &self.pointers, fd, longest_ns) }
    }
}

/// Runs a program whose output goes to `fd`, and waits for its end for at most `longest_ns`
/// nanoseconds. True if it exited with 0. It may trace this process. Async-signal-safe.
///
/// # Safety
/// `args` must hold NUL-terminated strings and end with null.
pub(crate) unsafe fn run(
    program: &CStr,
    args: &[*const c_char],
    fd: c_int,
    longest_ns: u64,
) -> bool {
    let parent = crate::process::pid();
    // SAFETY: fork without what the C library does in one, which locks; no signal reports the
    // child's end.
    let pid = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) } as libc::pid_t;
    if pid == 0 {
        // A rank may leave without waiting for it.
        if !crate::child::die_with_parent(parent) {
            crate::exit_now(127);
        }
        crate::signal::set_mask(&crate::signal::SignalSet::of(&[]));
        // SAFETY: the path is NUL-terminated.
        let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        // SAFETY: the descriptor was just opened, so nothing else owns it.
        let null = unsafe { crate::descriptor::above_standard(null) };
        for (from, to) in [(fd, 1), (null, 0), (null, 2)] {
            // SAFETY: touches no memory; the descriptors are those of this copy of the process.
            if unsafe { libc::dup2(from, to) } < 0 {
                crate::exit_now(127);
            }
        }
        // SAFETY: the caller's strings are NUL-terminated, and null ends them. The copy of the
        // process has made system calls only.
        unsafe { libc::execv(program.as_ptr(), args.as_ptr()) };
        crate::exit_now(127);
    }
    if pid < 0 {
        return false;
    }
    crate::attach::admit_child(pid as u32);
    let start = super::clock::now_ns();
    let mut status = 0;
    loop {
        // SAFETY: `status` is a live variable.
        match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG | libc::__WALL) } {
            0 => {}
            p if p == pid => return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            _ if super::errno() == libc::EINTR => continue,
            _ => return false,
        }
        if super::clock::now_ns() - start > longest_ns {
            crate::process::kill(pid as u32, crate::signal::Signal::KILL);
            // SAFETY: `status` is a live variable.
            unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
            return false;
        }
        super::clock::sleep_ns(5_000_000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null;

    #[test]
    fn ends_and_failures() {
        let run = |script: &CStr, ns| {
            let args = [c"sh".as_ptr(), c"-c".as_ptr(), script.as_ptr(), null()];
            // SAFETY: strings, and a null at the end.
            unsafe { run(c"/bin/sh", &args, 1, ns) }
        };
        assert!(may_run(c"/bin/sh") && !may_run(c"/no/such/program"));
        assert!(run(c"exit 0", 60_000_000_000));
        assert!(!run(c"exit 3", 60_000_000_000));
        assert!(!run(c"exec sleep 600", 20_000_000), "ended");
        // SAFETY: as above.
        assert!(!unsafe { super::run(c"/no/such/program", &[null()], 1, 60_000_000_000) });
    }
}
