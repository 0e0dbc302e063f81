//! Child processes: how they start, and how they end. Called by `boot`, for `gasnetrun`
//! among others, and by `ptlrun`.
//!
//! A process id is valid until the child is reaped ([`reap`], [`await_child`]).

use crate::process;
use crate::signal::Signal;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// Which of the two processes returns from [`fork`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The new process.
    Child,
    /// The old one; number of the new one.
    Parent(u32),
}

/// Forks this process.
///
/// # Errors
/// That of the system.
///
/// # Safety
/// If the process has several threads, the child must do nothing that needs a lock which one of
/// them may hold.
pub unsafe fn fork() -> io::Result<Forked> {
    // SAFETY: the caller sees to the locks.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid as u32)),
    }
}

/// Forks this process twice, so that init or a subreaper collects the new process.
/// [`Forked::Parent`] has the number of a process in between, which has ended and was collected.
///
/// # Errors
/// That of the system.
///
/// # Safety
/// As for [`fork`].
pub unsafe fn fork_detached() -> io::Result<Forked> {
    // SAFETY: the caller sees to the locks.
    let between = match unsafe { fork() }? {
        Forked::Child => {
            // SAFETY: this process has one thread.
            match unsafe { fork() } {
                Ok(Forked::Child) => return Ok(Forked::Child),
                Ok(Forked::Parent(_)) => crate::exit_now(0),
                Err(e) => crate::exit_now(e.raw_os_error().unwrap_or(libc::EAGAIN)),
            }
        }
        Forked::Parent(between) => between,
    };
    match await_child(between) {
        Ended::Exited(0) => Ok(Forked::Parent(between)),
        Ended::Exited(error) => Err(io::Error::from_raw_os_error(error)),
        Ended::Killed(_) => Err(io::Error::from(io::ErrorKind::Interrupted)),
    }
}

/// Has the kernel kill this process when its parent (the thread that forked it) dies. False if
/// the parent, which had the number `parent`, is dead already. Async-signal-safe.
pub fn die_with_parent(parent: u32) -> bool {
    // SAFETY: touches no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) };
    process::parent() == parent
}

unsafe extern "C" {
    /// The environment of this process, as POSIX has it.
    static mut environ: *const *const libc::c_char;
}

/// Replaces this process, which has one thread, by a program, found through PATH unless its name
/// has a slash. Returns only if that fails. `args` begins with the name that the program sees as
/// its own. `variables`, each as `NAME=value`, are added to its environment.
pub fn exec(program: &CStr, args: &[CString], variables: &[CString]) -> io::Error {
    let own = std::env::vars_os().filter_map(|(name, value)| {
        let text = [name.as_bytes(), b"=", value.as_bytes()].concat();
        let name = &text[..=name.len()];
        let replaced = variables.iter().any(|v| v.to_bytes().starts_with(name));
        (!replaced).then(|| CString::new(text).ok()).flatten()
    });
    let environment: Vec<CString> = own.collect();
    let list = |texts: &[CString], more: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().chain(more).map(|t| t.as_ptr()).chain([core::ptr::null()]).collect()
    };
    let (args, environment) = (list(args, &[]), list(&environment, variables));
    // SAFETY: nothing else in this process uses the environment before the program does. If the
    // program cannot be run, the old environment is back before the texts of the new one are
    // freed.
    let old = unsafe { (&raw mut environ).replace(environment.as_ptr()) };
    // SAFETY: the name and all texts are NUL-terminated, and the lists end with null.
    unsafe { libc::execvp(program.as_ptr(), args.as_ptr()) };
    // SAFETY: as above.
    unsafe { (&raw mut environ).write(old) };
    io::Error::last_os_error()
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By exit, with this code.
    Exited(i32),
    /// By this signal.
    Killed(Signal),
}

/// How a process ended that has this status of the wait functions.
pub(crate) fn decode(status: i32) -> Ended {
    if libc::WIFSIGNALED(status) {
        Ended::Killed(Signal::new(libc::WTERMSIG(status)))
    } else {
        Ended::Exited(libc::WEXITSTATUS(status))
    }
}

/// Repeats waitpid until no signal interrupts it: the number that it returns, and the status.
fn wait_for(child: i32, flags: i32) -> io::Result<(u32, i32)> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a live variable.
        match unsafe { libc::waitpid(child, &mut status, flags) } {
            -1 if crate::errno() == libc::EINTR => {}
            -1 => return Err(io::Error::last_os_error()),
            pid => return Ok((pid as u32, status)),
        }
    }
}

/// Collects this child if it has ended; `None` if it runs or is stopped. A child that another
/// part of the process has collected counts as `Exited(0)`.
pub fn reap(child: u32) -> Option<Ended> {
    match wait_for(child as i32, libc::WNOHANG) {
        Ok((0, _)) => None,
        Ok((_, status)) if libc::WIFSIGNALED(status) || libc::WIFEXITED(status) => {
            Some(decode(status))
        }
        Ok(_) => None,
        Err(_) => Some(Ended::Exited(0)),
    }
}

/// Whether [`reap`] may find that a child of this process has ended: one has, or all were
/// collected.
pub fn any_ended() -> bool {
    // SAFETY: all-zero is a valid value, that of no child.
    let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: a live structure to fill.
    if unsafe { libc::waitid(libc::P_ALL, 0, &mut info, flags) } != 0 {
        return true;
    }
    // SAFETY: the call has filled the number of a child, or it is still 0.
    unsafe { info.si_pid() != 0 }
}

/// Waits for the end of a child. A child that another part of the process has collected counts
/// as `Exited(0)`.
pub fn await_child(child: u32) -> Ended {
    wait_for(child as i32, 0).map_or(Ended::Exited(0), |(_, status)| decode(status))
}

/// Waits for the end of any child: its number, and how it ended.
///
/// # Errors
/// That of the system; there may be no child.
pub fn await_any() -> io::Result<(u32, Ended)> {
    wait_for(-1, 0).map(|(pid, status)| (pid, decode(status)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_detached_process_is_no_child() {
        let (from, to) = crate::descriptor::pipe().unwrap();
        // SAFETY: the child makes system calls only.
        match unsafe { fork_detached() }.unwrap() {
            Forked::Child => {
                let parent = process::parent().to_ne_bytes();
                let _ = crate::descriptor::write(to.as_raw_fd(), &parent);
                crate::exit_now(0)
            }
            Forked::Parent(between) => {
                assert_eq!(await_child(between), Ended::Exited(0), "collected already");
                let mut parent = [0; 4];
                assert_eq!(crate::descriptor::read(from.as_raw_fd(), &mut parent).unwrap(), 4);
                assert_ne!(u32::from_ne_bytes(parent), process::pid());
            }
        }
    }
}
