//! A process that ends what ranks have started if gasnetrun is killed.
//!
//! Started by `launch` before the ranks. The kernel kills the ranks with gasnetrun, but not the
//! programs that a rank has started before `gasnet_init`, such as those of a shell. Invariants:
//! the guard holds no descriptor but one end of a pipe, and ends no process that has joined the
//! job: that one notices the end of its supervisor.
//!
//! ```text
//! gasnetrun (other end of the pipe) --> ranks --> their programs
//!    |  killed: the pipe ends                        ^
//!    +--> guard: kills those with the cookie --------+
//! ```

use super::control_memory::ControlMemory;
use super::error::BootError;
use super::rank_id;
use crate::rank::LocalRank;
use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use sys::child::{self, Forked};
use sys::signal::{self, Signal, SignalSet};
use sys::{clock, descriptor, process, stdio};

/// Nanoseconds between two searches, and the most searches: a process may start another one
/// while it is being killed.
const PAUSE: u64 = 10_000_000;
const SEARCHES: u32 = 200;

/// How tools call the guard.
const NAME: &CStr = c"gasnet-guard";

/// The guard of the ranks of this host.
#[derive(Debug)]
pub(super) struct OrphanGuard {
    process: u32,
    /// Held open by this process, and by ranks until they execute their program.
    _end: OwnedFd,
}

impl OrphanGuard {
    /// Starts the guard of the `ranks` of this host, which have this cookie.
    ///
    /// # Errors
    /// The system lacks a resource.
    pub(super) fn start(
        cookie: u64,
        ranks: u32,
        control: ControlMemory,
    ) -> Result<OrphanGuard, BootError> {
        let failed = |e: &std::io::Error| {
            BootError::system("cannot start the process that guards the ranks", e)
        };
        let (from, to) = descriptor::pipe().map_err(|e| failed(&e))?;
        // SAFETY: this process has one thread.
        match unsafe { child::fork() }.map_err(|e| failed(&e))? {
            Forked::Parent(process) => Ok(OrphanGuard { process, _end: to }),
            Forked::Child => {
                process::set_name(NAME);
                // A signal of the terminal, such as a stop, is not for the guard.
                signal::block(&SignalSet::all());
                descriptor::close_all_but(&[from.as_raw_fd()]);
                stdio::close();
                let is_interrupted =
                    |e: std::io::Error| e.kind() == std::io::ErrorKind::Interrupted;
                while descriptor::read(from.as_raw_fd(), &mut [0]).is_err_and(is_interrupted) {}
                kill_orphans(cookie, ranks, control);
                sys::exit_now(0)
            }
        }
    }

    /// Ends the guard: gasnetrun ends as it should.
    pub(super) fn end(self) {
        process::kill(self.process, Signal::KILL);
        child::await_child(self.process);
    }
}

/// Kills all processes with this cookie in their environment that have not joined the job.
fn kill_orphans(cookie: u64, ranks: u32, control: ControlMemory) {
    for _ in 0..SEARCHES {
        let joined: Vec<u32> =
            (0..ranks).filter_map(|rank| control.pid_of(LocalRank(rank))).collect();
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        // A rank may be a launcher with a guard, which ends when it has done its work.
        let is_orphan = |pid: &u32| {
            !joined.contains(pid)
                && rank_id::cookie_of(*pid) == Some(cookie)
                && process::name_of(*pid).as_bytes() != NAME.to_bytes()
        };
        let orphans: Vec<u32> = numbers.filter(is_orphan).collect();
        if orphans.is_empty() {
            return;
        }
        orphans.into_iter().for_each(|pid| _ = process::kill(pid, Signal::KILL));
        clock::sleep_ns(PAUSE);
    }
}
