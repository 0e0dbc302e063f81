//! The wire of the emulation to ranks of other hosts.
//!
//! Owned by `emulation`. Invariant: a connection that is lost ends the job, unless the job has
//! begun to end: then peers leave, and their connections end with them. The thread of the wire
//! ends with the process.

use super::rank_table::RankTable;
use super::{OpenError, PortalsId};
use crate::boot::bootstrap::WireStart;
use crate::boot::hosts::library_version;
use crate::report;
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use portals3::nal::tcp::{TcpSpec, TcpWire};
use portals3::nal::wire::PeerFailure;
use portals3::{NetworkInterface, PtlProcessId};
use std::sync::OnceLock;
use sys::{clock, thread};

/// Nanoseconds that the news of an exit may take, which come another way than the end of a
/// connection.
const NEWS: u64 = 3_000_000_000;

/// Nanoseconds that the thread of the wire sleeps at most.
const LONGEST_SLEEP: u64 = 1_000_000_000;

/// Starts a thread that delivers what other hosts send while no other thread does. It runs no
/// handler: events stay in their queues.
///
/// # Errors
/// The system allows no further thread.
pub(super) fn start_thread(interface: &'static NetworkInterface) -> std::io::Result<()> {
    thread::start_forever(
        |interface: &'static NetworkInterface| loop {
            interface.progress_wire(LONGEST_SLEEP);
        },
        interface,
    )
}

/// How this process is connected with ranks of other hosts.
#[derive(Debug)]
pub(super) struct RemoteRanks {
    address: Vec<u8>,
    ranks: RankTable,
    lost: Arc<OnceLock<LostPeer>>,
}

/// The first connection that was lost.
#[derive(Debug)]
struct LostPeer {
    failure: PeerFailure,
    at: u64,
}

impl RemoteRanks {
    /// The wire that is chosen, and how it stands.
    ///
    /// # Errors
    /// This process cannot listen.
    pub(super) fn open(start: WireStart) -> Result<(TcpWire, RemoteRanks), OpenError> {
        let WireStart { secret, address, ports } = start;
        let lost = Arc::new(OnceLock::new());
        let first = lost.clone();
        let on_failure = Box::new(move |failure: &PeerFailure| {
            let _ = first.set(LostPeer { failure: failure.clone(), at: clock::now_ns() });
        });
        let library = library_version();
        let range = ports.clone();
        let wire = TcpWire::open(TcpSpec { address, ports, secret, library, on_failure });
        let wire = wire.map_err(|e| {
            OpenError::new(
                format!(
                    "cannot listen for ranks of other hosts at {address}, ports {range:?}: {e}"
                ),
                "Allow more ports in GASNET_NETWORK_PORTS, or name another interface in \
                 GASNET_NETWORK_INTERFACE.",
            )
        })?;
        let address = wire.address().to_vec();
        Ok((wire, RemoteRanks { address, ranks: RankTable::default(), lost }))
    }

    /// Where this process listens, for the others.
    pub(super) fn address(&self) -> &[u8] {
        &self.address
    }

    /// The addresses of all ranks, by rank.
    pub(super) fn set_ranks(&self, ranks: Vec<PortalsId>) {
        self.ranks.set(ranks);
    }

    /// Which process has which rank.
    pub(super) fn ranks(&self) -> RankTable {
        self.ranks.clone()
    }

    /// Ends the job if a connection has been lost for so long that no exit can be the reason.
    pub(super) fn check(&self) {
        let Some(LostPeer { failure, at }) = self.lost.get() else { return };
        if clock::now_ns() < at + NEWS {
            return;
        }
        let PtlProcessId { nid, pid } = failure.process;
        let rank = self.ranks.rank(PortalsId { nid, pid });
        report::fatal(
            format_args!(
                "the connection to rank {rank} at {} is lost: {}",
                failure.address, failure.cause
            ),
            format_args!("Check the network between the hosts, and what is printed of that rank."),
        )
    }
}
