//! The parent processes of connected ranks, such as mpiexec's proxy or slurmstepd, watched by
//! pidfd.
//!
//! Owned by [`super::Supervisor`]. Invariant: if a parent exits before one of its ranks, the job
//! ends.

use super::rank_process::RankProcess;
use std::os::fd::{AsFd, OwnedFd};

/// The launcher's processes, each with the descriptor that watches it.
#[derive(Debug, Default)]
pub(super) struct Launchers(Vec<(u32, OwnedFd)>);

impl Launchers {
    /// Whether this process is watched.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.0.iter().any(|(known, _)| *known == pid)
    }

    pub(super) fn add(&mut self, pid: u32, watch: OwnedFd) {
        self.0.push((pid, watch));
    }

    /// The descriptors to poll.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        self.0.iter().map(|(_, watch)| watch)
    }

    /// A process that has exited although a rank that it started still runs.
    pub(super) fn exited_early(&mut self, ranks: &mut [RankProcess]) -> Option<u32> {
        let mut exited = None;
        self.0.retain(|(pid, watch)| {
            let has_exited = sys::poll::readable(watch.as_fd());
            if has_exited {
                exited = Some(*pid);
            }
            !has_exited
        });
        let pid = exited?;
        // A rank that exited before it is detected here.
        ranks.iter_mut().for_each(RankProcess::check_watch);
        ranks.iter().any(|r| r.launcher == Some(pid) && !r.is_gone()).then_some(pid)
    }
}
