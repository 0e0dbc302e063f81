//! The processes that started connected ranks: mostly daemons of launchers, such as
//! hydra_pmi_proxy, slurmstepd and mpirun.
//!
//! Owned by [`super::Supervisor`]. Invariant: if one exits before one of its ranks, the job ends.

use super::rank_process::RankProcess;
use sys::watch::ProcessWatch;

/// The process ids, each with its watch.
#[derive(Debug, Default)]
pub(super) struct RankParents(Vec<(u32, ProcessWatch)>);

impl RankParents {
    /// Whether this process is watched.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.0.iter().any(|(known, _)| *known == pid)
    }

    pub(super) fn add(&mut self, pid: u32, watch: ProcessWatch) {
        self.0.push((pid, watch));
    }

    /// What is watched.
    pub(super) fn watches(&self) -> impl Iterator<Item = &ProcessWatch> {
        self.0.iter().map(|(_, watch)| watch)
    }

    /// A process that has exited although a rank that it started still runs.
    pub(super) fn exited_early(&mut self, ranks: &mut [RankProcess]) -> Option<u32> {
        let mut exited = None;
        self.0.retain(|(pid, watch)| {
            let has_exited = watch.has_ended();
            if has_exited {
                exited = Some(*pid);
            }
            !has_exited
        });
        let pid = exited?;
        // A rank that exited before it is detected here.
        ranks.iter_mut().for_each(RankProcess::check_watch);
        ranks.iter().any(|r| r.parent == Some(pid) && !r.has_exited()).then_some(pid)
    }
}
