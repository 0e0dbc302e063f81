//! GASNET_PSHM_NODES: the process that calls `gasnet_init` forks the ranks and becomes their
//! supervisor.
//!
//! Called by [`super::start`]. Invariant: each rank returns from `gasnet_init` as if it had been
//! started separately.

use super::bootstrap::Bootstrap;
use super::error::BootError;
use super::options::BootOptions;
use super::supervisor::{ProcessRole, Supervisor};
use super::supervisor_link;
use crate::report;
use sys::process;

/// Forks `size` ranks and returns in each of them. The calling process does not return: it exits
/// with the exit code of the job, without the exit handlers of the program, which the ranks run.
///
/// # Errors
/// The processes cannot be started.
pub(super) fn start(size: u32, options: &BootOptions) -> Result<Bootstrap, BootError> {
    warn_of_threads(options);
    // Output that is still buffered must come out once, not once per rank.
    sys::stdio::flush();
    // Each is read once, here, and known in every rank.
    sys::memory::total();
    sys::cpu::quota();
    match Supervisor::new(size, options)?.start()? {
        ProcessRole::Rank(id) => {
            let bootstrap = supervisor_link::join(id)?;
            Ok(Bootstrap { one_environment: true, ..bootstrap })
        }
        ProcessRole::Supervisor(supervisor) => sys::exit_now(supervisor.watch()),
    }
}

/// Warns of threads that exist in the supervisor only.
fn warn_of_threads(options: &BootOptions) {
    let n = process::thread_count();
    if n > 1 && !options.quiet {
        report::warn(
            format_args!(
                "gasnet_init forks the processes of GASNET_PSHM_NODES, but {} other threads are \
                 running already and exist only in the parent",
                n - 1
            ),
            format_args!(
                "Call gasnet_init before threads are started, or start the program with gasnetrun."
            ),
        );
    }
}
