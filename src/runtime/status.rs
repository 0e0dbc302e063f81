//! What a job says about this rank: what its threads wait for, printed when the launcher receives
//! SIGUSR1, and its statistics.
//!
//! Called by signal handlers and the exit, through [`crate::process`]. Invariant: everything here
//! is async-signal-safe.

use super::counters;
use super::job::GasnetJob;
use crate::process::JobReport;
use crate::rank::JobRank;
use crate::report::MessageLine;
use crate::trace::NetworkLine;
use core::fmt::Write;

/// Threads, and peers, that a report names.
const SHOWN: usize = 4;

impl JobReport for GasnetJob {
    fn write_activity(&self, line: &mut MessageLine) {
        write(self, line);
    }

    fn flush_network(&self) {
        if let Some(host) = self.endpoint.conduit.shared_host() {
            host.flush_wire(FLUSH_NS);
        }
    }

    fn write_stats(&self) {
        if let Some(files) = &self.stats_files {
            files.write(self.endpoint.rank, &self.endpoint.conduit);
        }
    }

    fn count_network(&self, line: NetworkLine<'_>) {
        counters::network_lines(&self.endpoint.conduit, line);
    }
}

/// How long the exit of a rank waits for its messages to leave: a connection may have to be made
/// first. Usually they have left.
const FLUSH_NS: u64 = 400_000_000;

/// Writes what this rank does.
fn write(job: &GasnetJob, line: &mut MessageLine) {
    let mut waiting = 0;
    for thread in 0..job.slots.count() as u16 {
        let Some((what, peer, ns)) = job.slots.of(thread).activity.now() else { continue };
        waiting += 1;
        if waiting > SHOWN {
            continue;
        }
        let _ = write!(line, "{}", if waiting == 1 { "waits" } else { ";" });
        if thread > 0 || waiting > 1 {
            let _ = write!(line, " (thread {thread})");
        }
        let _ = write!(line, " in {what}");
        if let Some(peer) = peer {
            let _ = write!(line, " for rank {peer}");
        }
        let _ = write!(line, " since {:.1} s", ns as f64 / 1e9);
    }
    let _ = match waiting {
        0 => write!(line, "does not wait in the library"),
        _ if waiting > SHOWN => write!(line, "; and {} more threads", waiting - SHOWN),
        _ => Ok(()),
    };
    let _ = write!(line, "; operations outstanding: {}", job.ops.outstanding());
    // The peers with the fewest credits.
    let mut least = [(u32::MAX, JobRank(0)); SHOWN];
    for rank in job.team.ranks().filter(|&r| r != job.endpoint.rank) {
        let Some(credits) = job.endpoint.conduit.credits(rank) else { continue };
        if credits < least[SHOWN - 1].0 {
            least[SHOWN - 1] = (credits, rank);
            least.sort_unstable();
        }
    }
    let mut mark = "; credits:";
    for (credits, rank) in least.into_iter().filter(|l| l.0 != u32::MAX) {
        let _ = write!(line, "{mark} {credits} for rank {rank}");
        mark = ",";
    }
    if job.team.size() as usize > SHOWN + 1 {
        let _ = write!(line, " (the least)");
    }
}
