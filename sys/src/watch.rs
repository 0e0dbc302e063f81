//! The end of a process that need not be a child of this one. Called by `boot::supervisor`.
//!
//! Invariant: a [`ProcessWatch`] means one process, also when the system gives its number to
//! another one.

use crate::child::{Ended, decode};
use crate::process::{self, Liveness, ProcessIdentity, parse_state};
use crate::{descriptor, poll};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Nanoseconds between two looks at what no descriptor reports: the end of processes, signals.
pub const LOOK_NS: u64 = 20_000_000;

/// Reports the end of one process.
#[derive(Debug)]
pub enum ProcessWatch {
    /// By a descriptor that polls readable when the process ends.
    Descriptor(OwnedFd),
    /// By looks at its number, every [`LOOK_NS`]: where the system has no such descriptors (Linux
    /// before 5.3), forbids them, or has none left, and where others need them.
    Looks(ProcessIdentity),
}

/// A descriptor that polls readable when the process ends.
///
/// # Errors
/// That of the system; there may be no such process.
fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: the descriptor was just opened, so nothing else owns it.
    unsafe { descriptor::opened(fd as i32) }
}

impl ProcessWatch {
    /// Watches the process that has this number now.
    ///
    /// # Errors
    /// `ESRCH`: there is no such process.
    pub fn new(pid: u32) -> io::Result<ProcessWatch> {
        ProcessWatch::by(pidfd(pid), ProcessIdentity::now(pid))
    }

    /// Watches this process.
    ///
    /// # Errors
    /// `ESRCH`: it has exited and was collected.
    pub fn of(process: ProcessIdentity) -> io::Result<ProcessWatch> {
        ProcessWatch::by(pidfd(process.pid), process)?.if_exists(process)
    }

    /// As [`ProcessWatch::of`], without a descriptor.
    ///
    /// # Errors
    /// As there.
    pub fn by_looks(process: ProcessIdentity) -> io::Result<ProcessWatch> {
        let none = Err(io::Error::from_raw_os_error(libc::EMFILE));
        ProcessWatch::by(none, process)?.if_exists(process)
    }

    /// A descriptor names one process. If the number is that of `process` afterwards, it names
    /// this one.
    fn if_exists(self, process: ProcessIdentity) -> io::Result<ProcessWatch> {
        if process.exists() { Ok(self) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    }

    fn by(fd: io::Result<OwnedFd>, process: ProcessIdentity) -> io::Result<ProcessWatch> {
        match fd {
            Ok(fd) => Ok(ProcessWatch::Descriptor(fd)),
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Err(e),
            // Number 0 is a process that this one cannot see.
            Err(_) if process.pid == 0 || process::is_missing(process.pid) => {
                Err(io::Error::from_raw_os_error(libc::ESRCH))
            }
            Err(_) => Ok(ProcessWatch::Looks(process)),
        }
    }

    /// The descriptor to poll, if there is one.
    pub fn fd(&self) -> Option<&OwnedFd> {
        match self {
            ProcessWatch::Descriptor(fd) => Some(fd),
            ProcessWatch::Looks(_) => None,
        }
    }

    /// Whether the process has ended; it may be a zombie.
    pub fn has_ended(&self) -> bool {
        match self {
            ProcessWatch::Descriptor(fd) => poll::readable(fd.as_fd()),
            ProcessWatch::Looks(p) => process::liveness(p.pid) == Liveness::Dead || !p.exists(),
        }
    }

    /// How the process ended, whose number is `pid`. `None` if it runs, or if the system does not
    /// say.
    pub fn how_ended(&self, pid: u32) -> Option<Ended> {
        if let Some(ended) = self.fd().and_then(of_descriptor) {
            return Some(ended);
        }
        // Older kernels, and processes that their parent has not collected yet.
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        if parse_state(&stat) != Liveness::Dead {
            return None;
        }
        let end = stat.iter().rposition(|&c| c == b')')?;
        let last = stat[end..].split(|&c| c == b' ').next_back()?;
        std::str::from_utf8(last).ok()?.trim().parse().ok().map(decode)
    }
}

/// What the kernel reports about the end of the process of a descriptor.
fn of_descriptor(fd: &OwnedFd) -> Option<Ended> {
    /// The first version of the kernel's `struct pidfd_info`.
    #[repr(C)]
    struct Info {
        mask: u64,
        cgroup: u64,
        numbers: [u32; 11],
        status: i32,
    }
    const GET_INFO: libc::c_ulong = 0xC040_FF0B;
    const EXIT: u64 = 1 << 3;
    let mut info = Info { mask: EXIT, cgroup: 0, numbers: [0; 11], status: 0 };
    // SAFETY: the request says that the structure has 64 bytes, which it has; it is live.
    let r = unsafe { libc::ioctl(fd.as_raw_fd(), GET_INFO as _, &mut info) };
    (r == 0 && info.mask & EXIT != 0).then(|| decode(info.status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{Forked, await_child, fork};
    use crate::signal::Signal;

    /// Both ways to watch a process.
    fn both(pid: u32) -> [ProcessWatch; 2] {
        let fails = || io::Error::from_raw_os_error(libc::ENOSYS);
        let identity = ProcessIdentity::of(pid).unwrap();
        [ProcessWatch::of(identity).unwrap(), ProcessWatch::by(Err(fails()), identity).unwrap()]
    }

    #[test]
    fn how_others_ended() {
        let me = process::pid();
        for watch in both(me) {
            assert!(!watch.has_ended() && watch.how_ended(me).is_none());
        }
        for (code, expected) in [(7, Ended::Exited(7)), (-1, Ended::Killed(Signal::KILL))] {
            // SAFETY: the child does nothing but end.
            let Forked::Parent(pid) = unsafe { fork() }.unwrap() else {
                while process::parent() == me && code < 0 {
                    process::kill(process::pid(), Signal::KILL);
                }
                crate::exit_now(code)
            };
            let watches = both(pid);
            // An older kernel has no descriptors for processes.
            assert!(watches[0].fd().is_some() == pidfd(me).is_ok() && watches[1].fd().is_none());
            for watch in &watches {
                while !watch.has_ended() {
                    crate::clock::sleep_ns(1_000_000);
                }
                assert_eq!(watch.how_ended(pid), Some(expected));
            }
            assert_eq!(await_child(pid), expected);
            assert!(watches.iter().all(ProcessWatch::has_ended));
            assert!(ProcessWatch::new(pid).is_err() && ProcessWatch::new(0).is_err());
        }
    }
}
