//! The wire of the emulation to ranks of other hosts.
//!
//! Owned by `emulation`. Invariant: a connection that is lost ends the job, unless the job has
//! begun to end: then peers leave, and their connections end with them. The thread of the wire
//! ends with the process.

use super::emulation_error::error;
use super::rank_table::RankTable;
use super::{OpenError, PortalsError, PortalsId, wire_choice};
use crate::boot::bootstrap::WireStart;
use crate::boot::hosts::library_version;
use crate::env::{self, WireKind};
use crate::rank::JobRank;
use crate::report;
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use portals3::nal::ofi::{OfiSpec, OfiWire};
use portals3::nal::tcp::{TcpSpec, TcpWire};
use portals3::nal::wire::{PeerEnd, PeerFailure, PeerFailureHandler, Wire};
use portals3::{AcIndex, JID_ANY, NetworkInterface, PT_INDEX_ANY, PtlProcessId, UID_ANY};
use std::io;
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

/// Access control entry `entry` admits every user from now on: the hosts of a job may know its
/// user by different numbers. A process of another host has proved that it belongs to the job.
///
/// # Errors
/// There is no such entry.
pub(super) fn admit_all_users(
    interface: &NetworkInterface,
    entry: AcIndex,
) -> Result<(), PortalsError> {
    interface
        .ac_entry(entry, PtlProcessId::ANY, UID_ANY, JID_ANY, PT_INDEX_ANY)
        .map_err(|e| error("PtlACEntry", e))
}

/// How this process is connected with ranks of other hosts.
#[derive(Debug)]
pub(super) struct RemoteRanks {
    kind: WireKind,
    address: Vec<u8>,
    ranks: RankTable,
    lost: Arc<OnceLock<LostPeer>>,
    /// A rank that has never answered was reported.
    silence_reported: AtomicBool,
}

/// The first connection that was lost.
#[derive(Debug)]
struct LostPeer {
    failure: PeerFailure,
    at: u64,
}

impl RemoteRanks {
    /// The wire that is chosen, for about this many ranks, and how it stands.
    ///
    /// # Errors
    /// There is no such wire here.
    pub(super) fn open(
        start: WireStart,
        ranks: u32,
    ) -> Result<(Box<dyn Wire>, RemoteRanks), OpenError> {
        let lost = Arc::new(OnceLock::new());
        let first = lost.clone();
        let on_failure = Box::new(move |failure: &PeerFailure| {
            let _ = first.set(LostPeer { failure: failure.clone(), at: clock::now_ns() });
        });
        let kind = wire_choice::chosen()?;
        let (wire, address): (Box<dyn Wire>, _) = match kind {
            WireKind::Tcp => {
                wire_choice::no_remote_access_over_tcp();
                wire_choice::announce_tcp(start.address);
                let wire = tcp_wire(start, on_failure)?;
                let address = wire.address().to_vec();
                (Box::new(wire), address)
            }
            WireKind::Ofi => {
                let wire = ofi_wire(start, ranks, on_failure)?;
                let address = wire.address().to_vec();
                (Box::new(wire), address)
            }
        };
        let (ranks, silence_reported) = (RankTable::default(), AtomicBool::new(false));
        Ok((wire, RemoteRanks { kind, address, ranks, lost, silence_reported }))
    }

    /// What connects ranks of different hosts.
    pub(super) fn kind(&self) -> WireKind {
        self.kind
    }

    /// Where this process listens, for the others.
    pub(super) fn address(&self) -> &[u8] {
        &self.address
    }

    /// Ends the job if a rank cannot talk with this one; `addresses`: of all wires, by rank.
    pub(super) fn check_providers(&self, addresses: &[Vec<u8>]) {
        if self.kind != WireKind::Ofi {
            return;
        }
        let of = OfiWire::provider_of;
        let own = of(&self.address);
        for (rank, address) in (0..).map(JobRank).zip(addresses) {
            let other = of(address);
            if own != other {
                let [own, other] = [own, other].map(Option::unwrap_or_default);
                report::fatal(
                    format_args!(
                        "gasnet_init(): this rank uses libfabric's provider {own}, but rank \
                         {rank} uses {other}"
                    ),
                    format_args!(
                        "Name one that all hosts have in GASNET_OFI_PROVIDER_INCLUDE, with the same \
                         GASNET_OFI_* on all, or set GASNET_NETWORK=TCP."
                    ),
                );
            }
        }
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
        if let Some(lost) = self.lost.get()
            && clock::now_ns() >= lost.at + NEWS
        {
            self.end(lost)
        }
    }

    /// Warns once of a rank that has never answered for long, over a network that does not notice
    /// what it loses. `silent` finds one. For a thread that has waited for long.
    pub(super) fn warn_of_silence(&self, silent: impl FnOnce(u64) -> Option<PtlProcessId>) {
        const LONG: u64 = 30_000_000_000;
        if self.silence_reported.load(Ordering::Relaxed) {
            return;
        }
        let Some(PtlProcessId { nid, pid }) = silent(LONG) else { return };
        if self.silence_reported.swap(true, Ordering::Relaxed) {
            return;
        }
        let rank = self.ranks.rank(PortalsId { nid, pid });
        report::warn(
            format_args!(
                "rank {rank} has not answered for {} s, since this rank first sent it something",
                LONG / 1_000_000_000
            ),
            format_args!(
                "It makes no calls of the library, or packets between the hosts are lost: check \
                 firewalls, and what SIGUSR1 to gasnetrun prints. GASNET_NETWORK=TCP notices such \
                 losses."
            ),
        );
    }

    /// Ends the job if a connection has been lost; a transfer has failed.
    #[cold]
    pub(super) fn end_if_lost(&self) {
        if let Some(lost) = self.lost.get() {
            self.end(lost)
        }
    }

    fn end(&self, LostPeer { failure, .. }: &LostPeer) -> ! {
        let PtlProcessId { nid, pid } = failure.process;
        let rank = self.ranks.rank(PortalsId { nid, pid });
        let remedy = match failure.end {
            PeerEnd::Closed | PeerEnd::Lost => {
                "Check the network between the hosts, and what is printed of that rank."
            }
            PeerEnd::ByLack => LACK_REMEDY,
            PeerEnd::Dropped => {
                "Look for what resets connections or drops packets between the hosts (firewalls, \
                 the fabric), or set GASNET_NETWORK=TCP."
            }
            PeerEnd::ByProgram => {
                "Leave the descriptors of the library open, and the memory of operations mapped \
                 until they are synced."
            }
        };
        report::fatal_unless_ending(
            format_args!(
                "the connection to rank {rank} at {} is lost: {}",
                failure.address, failure.cause
            ),
            format_args!("{remedy}"),
        )
    }
}

fn tcp_wire(start: WireStart, on_failure: PeerFailureHandler) -> Result<TcpWire, OpenError> {
    let WireStart { secret, address, ports } = start;
    let library = library_version();
    let range = ports.clone();
    let on_lack = cannot_connect;
    let wire = TcpWire::open(TcpSpec { address, ports, secret, library, on_failure, on_lack });
    wire.map_err(|e| {
        OpenError::new(
            format!("cannot listen for ranks of other hosts at {address}, ports {range:?}: {e}"),
            "Allow more ports in GASNET_NETWORK_PORTS, or name another interface in \
             GASNET_NETWORK_INTERFACE.",
        )
    })
}

/// The first messages from and to ranks of other hosts wait meanwhile.
fn cannot_connect(lack: &io::Error) {
    report::warn(
        format_args!("the first messages between this rank and other hosts wait: {lack}"),
        format_args!("{LACK_REMEDY}"),
    );
}

/// What to do about a lack of descriptors or ports.
const LACK_REMEDY: &str = "Close files and connections that are not needed, or raise the limit of \
                           open files. For ports, widen net.ipv4.ip_local_port_range.";

fn ofi_wire(
    start: WireStart,
    ranks: u32,
    on_failure: PeerFailureHandler,
) -> Result<OfiWire, OpenError> {
    let WireStart { secret, address, ports } = start;
    let providers = wire_choice::providers()?;
    let tag_mode = wire_choice::tag_mode();
    let spec = OfiSpec {
        address,
        ports,
        secret,
        providers,
        tag_mode,
        remote: wire_choice::remote_access(),
        thread_grouping: env::OFI_THREAD_GROUPING.get(),
        events: env::OFI_PROGRESS_EVENTS.get() as usize,
        processes: ranks,
        on_failure,
    };
    let wire = OfiWire::open(spec).map_err(|why| wire_choice::no_ofi(&why))?;
    wire_choice::announce(&wire);
    Ok(wire)
}
