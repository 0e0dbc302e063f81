//! GASNET_PSHM_NODES: the process that calls `gasnet_init` forks the ranks and becomes their
//! supervisor, or the front of it.
//!
//! Called by `join`. Invariants: each rank returns from `gasnet_init` as if it had been
//! started separately; the supervisor has one thread.
//!
//! ```text
//! one thread             first process = supervisor ---> rank 0, rank 1, ...
//! several threads        first process = front process
//!                          (its other threads stop) ---> supervisor ---> rank 0, rank 1, ...
//! ```
//!
//! A thread of the program that went on next to the supervisor could take its signals, collect its
//! children, change its memory, or end it. See [`sys::front`] for how a front process serves.

use super::bootstrap::Bootstrap;
use super::error::BootError;
use super::host_share::HostShare;
use super::options::BootOptions;
use super::supervisor::{OF_FRONT, ProcessRole, SignalSource, Supervisor};
use super::supervisor_link;
use crate::report;
use sys::child::Ended;
use sys::front::{self, FrontProcess, FrontRole};
use sys::process;
use sys::python::PythonLock;
use sys::signal::IntervalTimers;

/// Forks `size` ranks and returns in each of them. The calling process does not return. It exits
/// with the exit code of the job, without the exit handlers of the program, which the ranks run.
///
/// # Errors
/// The processes cannot be started.
pub(super) fn start(size: u32, options: &BootOptions) -> Result<Bootstrap, BootError> {
    let timers = IntervalTimers::take();
    let threads = process::threads(process::pid());
    let (source, python) = match threads.as_deref() {
        Some([_]) => (SignalSource::Own, None),
        several => {
            warn_of_threads(several.map_or(0, |all| all.len() - 1), options);
            stand_behind()?
        }
    };
    let is_first = matches!(source, SignalSource::Own);
    // Output that is still buffered must come out once, not once per rank. In a process that was
    // just forked no other thread holds a stream.
    sys::stdio::flush();
    // Each is read once, here, and known in every rank.
    sys::memory::total();
    sys::cpu::quota();
    match Supervisor::new(HostShare::whole(size), source, options)?.start()? {
        ProcessRole::Rank(id) => {
            timers.go_on();
            if let Some(lock) = python {
                lock.give_up();
            }
            let bootstrap = supervisor_link::join(id, "the supervisor of GASNET_PSHM_NODES")?;
            Ok(Bootstrap { one_environment: true, ..bootstrap })
        }
        ProcessRole::Supervisor(supervisor) => {
            // The ranks, forked before, keep the name of the program.
            if !is_first {
                process::set_name(c"gasnet-job");
            }
            sys::exit_now(supervisor.watch())
        }
    }
}

/// Leaves the calling process as the front; returns in a new one, which has one thread.
fn stand_behind() -> Result<(SignalSource, Option<PythonLock>), BootError> {
    let python = PythonLock::take();
    // SAFETY: the C library keeps its allocator and streams usable after a fork, and an
    // interpreter is prepared for it. The child needs no other lock.
    match unsafe { front::split() } {
        Err(e) => Err(BootError::system("cannot start the supervisor of the job", &e)),
        Ok(FrontRole::Front(process)) => serve(process),
        Ok(FrontRole::Child(link)) => {
            if let Some(lock) = &python {
                lock.after_fork();
            }
            Ok((SignalSource::Front(link), python))
        }
    }
}

/// The rest of the life of the front process. Allocates nothing.
fn serve(front: FrontProcess) -> ! {
    let child = front.child();
    match front.run(&OF_FRONT) {
        Ended::Exited(code) => sys::exit_now(code),
        Ended::Killed(signal) => {
            sys::bounded_stderr::bound();
            report::line(format_args!(
                "the supervisor of the job (pid {child}) was killed by signal {} ({}), so the job \
                 ends",
                signal.number(),
                signal.name()
            ));
            sys::exit_now(128 + signal.number())
        }
    }
}

/// Warns of threads that no rank has.
fn warn_of_threads(others: usize, options: &BootOptions) {
    if others > 0 && !options.quiet {
        report::warn(
            format_args!(
                "gasnet_init forks the processes of GASNET_PSHM_NODES, but {others} other threads \
                 are running already: no rank has them, and gasnet_init stops them"
            ),
            format_args!(
                "Call gasnet_init before threads are started, or start the program with gasnetrun."
            ),
        );
    }
}
