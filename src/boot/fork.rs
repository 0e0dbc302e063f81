//! GASNET_PSHM_NODES: the process that calls `gasnet_init` forks the ranks and stays behind as their supervisor. Each
//! rank returns from `gasnet_init` as if it had been started by itself.

use super::supervised::SupervisedRank;
use super::supervisor::{ProcessRole, Supervisor};
use super::{BootError, report_many_threads};
use crate::env;

/// Forks `size` ranks and returns in each of them; the calling process never returns if that succeeds: it ends with
/// the exit code of the job, without running the exit handlers of the program, whose business the ranks have taken
/// over.
pub fn start(size: u32) -> Result<SupervisedRank, BootError> {
    report_many_threads();
    // What the program has printed so far must come out once, not once per process.
    sys::stdio::flush();
    // Asked here once, these are known in every rank.
    sys::memory::total();
    sys::cpu::quota();
    match Supervisor::new(size)?.start()? {
        ProcessRole::Rank(id) => {
            env::mark_shared();
            SupervisedRank::join(id)
        }
        ProcessRole::Supervisor(supervisor) => sys::exit_now(supervisor.watch()),
    }
}
