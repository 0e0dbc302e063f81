//! Exchange and barrier of all ranks while a job starts, as traits.
//!
//! Implemented by `supervisor_link`, `single` and `network_start`, used by the runtime.
//! Invariant: all ranks call the same ones in the same order.

use crate::rank::ByJobRank;

/// The exchange of bytes between all ranks.
pub trait Exchange: Send + Sync + core::fmt::Debug {
    /// What each rank gave; all give the same number of bytes. Waits for every rank, and does not
    /// return if the job ends meanwhile.
    fn exchange(&self, mine: &[u8]) -> ByJobRank<Vec<u8>>;
}

/// The barrier of all ranks that needs no network.
pub trait JobBarrier: Send + Sync + core::fmt::Debug {
    /// Waits until every rank has called it. Serves no messages, and does not return if the job
    /// ends meanwhile.
    fn barrier(&self);
}
