//! What a job says about this rank: what its threads wait for, printed when the launcher receives
//! SIGUSR1, and its statistics.
//!
//! Called by signal handlers and the exit, through [`crate::process`]. Invariant: everything here
//! is async-signal-safe, but for the flush of the network. That sends and receives, and so may
//! allocate and wait for locks: [`crate::process::exit`] says what bounds it.

use super::job::GasnetJob;
use super::threads::ThreadSlot;
use super::{counters, lock_waits};
use crate::process::JobReport;
use crate::rank::JobRank;
use crate::report::MessageLine;
use crate::trace::NetworkLine;
use core::fmt::{Arguments, Write};

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

/// What threads do, on one line.
struct ActivityList<'a> {
    line: &'a mut MessageLine,
    threads: usize,
}

impl ActivityList<'_> {
    /// Adds what a thread does. `thread` is its index, if it has one.
    fn add(&mut self, thread: Option<u16>, what: Arguments<'_>) {
        self.threads += 1;
        if self.threads > SHOWN {
            return;
        }
        let mark = if self.threads == 1 { "" } else { "; " };
        let _ = write!(self.line, "{mark}{what}");
        if let Some(thread) = thread.filter(|&thread| thread > 0 || self.threads > 1) {
            let _ = write!(self.line, " (thread {thread})");
        }
    }

    /// Adds what the thread of a slot does, if it is in the library.
    fn add_slot(&mut self, slot: &ThreadSlot) {
        let (thread, running) = (Some(slot.index), slot.running());
        if let Some((what, peer, ns)) = slot.activity.now(running.is_some()) {
            let since = Seconds(ns);
            match peer {
                Some(peer) => {
                    self.add(thread, format_args!("waits in {what} for rank {peer} since {since}"))
                }
                None => self.add(thread, format_args!("waits in {what} since {since}")),
            }
            return;
        }
        let Some(running) = running else { return };
        match (running, slot.activity.last_round().map(Seconds)) {
            (Some((handler, rank)), Some(since)) => self.add(
                thread,
                format_args!("runs handler {handler} for rank {rank} since {since} at most"),
            ),
            (Some((handler, rank)), None) => {
                self.add(thread, format_args!("runs handler {handler} for rank {rank}"));
            }
            (None, _) => self.add(thread, format_args!("runs a handler of active messages")),
        }
    }
}

/// Nanoseconds, as reports write them.
struct Seconds(u64);

impl core::fmt::Display for Seconds {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:.1} s", self.0 as f64 / 1e9)
    }
}

/// Writes what this rank does.
fn write(job: &GasnetJob, line: &mut MessageLine) {
    let mut list = ActivityList { line, threads: 0 };
    for thread in 0..job.slots.count() as u16 {
        list.add_slot(job.slots.of(thread));
    }
    for (lock, ns) in lock_waits::now() {
        let since = Seconds(ns);
        list.add(None, format_args!("waits for the handler-safe lock {lock:#x} since {since}"));
    }
    let threads = list.threads;
    let _ = match threads {
        0 => write!(line, "does not wait in the library"),
        _ if threads > SHOWN => write!(line, "; and {} more threads", threads - SHOWN),
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
