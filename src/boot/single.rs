//! A job of one rank, without a supervisor.
//!
//! Used by `join` and `foreign` for a job that has only this process. Invariants:
//! exchange and barrier return at once; the control memory is private.

use super::bootstrap::Bootstrap;
use super::collective::{Exchange, JobBarrier};
use super::control_memory::ControlMemory;
use super::error::BootError;
use super::exit_notice::ExitNotice;
use super::host_memory::HostMemory;
use super::placement::Placement;
use crate::rank::{ByJobRank, JobRank};

/// Exchange and barrier of one rank.
#[derive(Debug)]
struct SingleRank;

impl Exchange for SingleRank {
    fn exchange(&self, mine: &[u8]) -> ByJobRank<Vec<u8>> {
        [mine.to_vec()].into_iter().collect()
    }
}

impl JobBarrier for SingleRank {
    fn barrier(&self) {}
}

/// Makes this process a job of one rank.
///
/// # Errors
/// There is no memory for it.
pub fn start() -> Result<Bootstrap, BootError> {
    let placement = Placement::one_host(JobRank(0), 1);
    let memory = ControlMemory::private()?;
    let exit = ExitNotice::join(memory, JobRank(0), placement.local_rank(), 1, None)?;
    Ok(Bootstrap {
        placement,
        exchange: &SingleRank,
        barrier: &SingleRank,
        exit,
        host_memory: sys::memory::HAS_FILES.then(HostMemory::create).transpose()?,
        #[cfg(feature = "hosted")]
        wire: None,
        one_environment: true,
        network_start: None,
        release: None,
    })
}
