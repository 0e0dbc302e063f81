//! Programs that are started to look at this process from outside or to help it print: from anywhere, a signal handler
//! included, so that nothing here allocates, locks, or tells the client of a child. Called by `tools::stack` and `os::stack`.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;

/// Whether this file is a program that may be run.
pub fn may_run(file: &CStr) -> bool {
    // SAFETY: NUL-terminated.
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

    /// Runs the program, its output to `fd`, and waits for its end, at most `longest_ns`
    /// nanoseconds; true if it succeeded. Async-signal-safe.
    pub fn run(&self, fd: c_int, longest_ns: u64) -> bool {
        // SAFETY: strings that the value owns, and a null at the end.
        unsafe { run(&self.path, &self.pointers, fd, longest_ns) }
    }
}

/// Runs a program, its output to `fd`, and waits for its end, at most `longest_ns` nanoseconds; true if it succeeded. It may
/// trace this process.
///
/// # Safety
/// `args` must hold NUL-terminated strings and end with null.
pub(crate) unsafe fn run(
    program: &CStr,
    args: &[*const c_char],
    fd: c_int,
    longest_ns: u64,
) -> bool {
    // SAFETY: as fork, but without what the C library does in one, which locks; and no signal tells of the child's end.
    let pid = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) } as libc::pid_t;
    if pid == 0 {
        // SAFETY: a copy of this process, which does nothing but system calls until it is another program; the strings are
        // the caller's promise.
        unsafe {
            let mut none = core::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, core::ptr::null_mut());
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            libc::dup2(fd, 1);
            libc::dup2(null, 0);
            libc::dup2(null, 2);
            libc::execv(program.as_ptr(), args.as_ptr());
            libc::_exit(127)
        }
    }
    if pid < 0 {
        return false;
    }
    // SAFETY: no memory is involved; it fails where nobody asks for it.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, pid, 0, 0, 0) };
    let start = super::clock::now_ns();
    let mut status = 0;
    loop {
        // SAFETY: our own child; a live word for its status.
        match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG | libc::__WALL) } {
            0 => {}
            p if p == pid => return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            _ if super::errno() == libc::EINTR => continue,
            _ => return false,
        }
        if super::clock::now_ns() - start > longest_ns {
            // SAFETY: our own child, not waited for yet.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, &mut status, libc::__WALL);
            }
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
