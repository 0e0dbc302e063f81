//! Exchange and barrier of all ranks while a job starts, as traits.
//!
//! Implemented by `supervisor_link`, `single` and `network_start`, used by the runtime.
//! Invariant: all ranks call the same ones in the same order.

use crate::rank::{ByJobRank, JobRank};
use alloc::vec::Vec;

/// The exchange of bytes between all ranks.
pub trait Exchange: Send + Sync + core::fmt::Debug {
    /// What each rank gave; all give the same number of bytes. Waits for every rank, and does not
    /// return if the job ends meanwhile.
    fn exchange(&self, mine: &[u8]) -> ByJobRank<Vec<u8>>;

    /// The `bytes` bytes of rank `giver`, which alone gives some. Waits as `exchange` does.
    fn hand_over(&self, given: Option<&[u8]>, giver: JobRank, bytes: usize) -> Vec<u8> {
        let mut block = given.unwrap_or_default().to_vec();
        block.resize(bytes, 0);
        self.exchange(&block)[giver].clone()
    }
}

/// The barrier of all ranks that needs no network.
pub trait JobBarrier: Send + Sync + core::fmt::Debug {
    /// Waits until every rank has called it. Serves no messages, and does not return if the job
    /// ends meanwhile.
    fn barrier(&self);
}
