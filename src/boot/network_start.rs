//! Exchange and barrier of ranks that have nothing in common but the network, while a job starts.
//!
//! Made by `linked`; the runtime connects it with the network ([`NetworkCollective`]) before the
//! first exchange. Invariant: a rank that waits here serves the messages of an exit.

use super::collective::{Exchange, JobBarrier};
use super::exit_notice::ExitNotice;
use super::linked_launcher::{LinkedLauncher, LinkedSystem};
use crate::rank::ByJobRank;
use crate::report;
use std::sync::OnceLock;

/// An exchange over the network.
pub trait NetworkCollective: Send + Sync + core::fmt::Debug {
    /// The bytes that all ranks gave, one after the other by rank; each gives as many. `idle` is
    /// called in each round of a wait that has found nothing.
    fn exchange_bytes(&self, mine: &[u8], idle: &dyn Fn(u32)) -> Vec<u8>;
}

/// Exchange and barrier that need the network.
#[derive(Debug)]
pub struct NetworkStart {
    launcher: &'static dyn LinkedLauncher,
    exit: &'static ExitNotice,
    network: OnceLock<&'static dyn NetworkCollective>,
}

impl NetworkStart {
    pub(super) fn new(
        launcher: &'static dyn LinkedLauncher,
        exit: &'static ExitNotice,
    ) -> NetworkStart {
        NetworkStart { launcher, exit, network: OnceLock::new() }
    }

    /// The system that has started the job.
    pub fn system(&self) -> LinkedSystem {
        self.launcher.system()
    }

    /// Connects it with the network of this rank, which must be ready for messages of the others,
    /// and waits until that of each rank is. Ends the job if the system's barrier fails.
    pub fn connect(&self, network: &'static dyn NetworkCollective) {
        if let Err(why) = self.launcher.barrier() {
            report::fatal(
                format_args!(
                    "gasnet_init(): the barrier of {} failed: {why}",
                    self.launcher.name()
                ),
                format_args!(
                    "See what the launcher prints; each process that it starts must call \
                     gasnet_init, and live until it has returned in all."
                ),
            )
        }
        let _ = self.network.set(network);
    }

    fn bytes(&self, mine: &[u8]) -> Vec<u8> {
        let network = self.network.get().expect("the runtime connects the network first");
        network.exchange_bytes(mine, &|round| {
            self.exit.serve_exit_messages();
            sys::thread::yield_or_sleep(round, 1000);
        })
    }
}

impl Exchange for NetworkStart {
    fn exchange(&self, mine: &[u8]) -> ByJobRank<Vec<u8>> {
        let all = self.bytes(mine);
        match mine.len() {
            0 => (0..self.exit.size()).map(|_| Vec::new()).collect(),
            n => all.chunks(n).map(<[u8]>::to_vec).collect(),
        }
    }
}

impl JobBarrier for NetworkStart {
    fn barrier(&self) {
        self.bytes(&[]);
    }
}
