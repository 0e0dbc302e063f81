//! The conduit over each Portals of the build.
//!
//! [`OpenInterface`] and [`JobConduit`] are made by `runtime::start` when a job starts; every call
//! of the upper layers goes through [`JobConduit`]. Invariant: all ranks of a job run on the
//! same network; the caller compares [`OpenInterface::kind`] among them.
//!
//! The conduit is compiled once for each network. [`JobConduit`] chooses at the outermost call, so
//! the code below it knows its network at compile time. In a build with one network the choice
//! costs no instruction; with two it costs a load, a comparison and a predictable branch.
//!
//! | file | what it owns |
//! |---|---|
//! | `job_conduit` | [`JobConduit`]: the conduit of the job, over its network |
//! | `kind` | the networks of the build, the choice of the user |
//! | `info` | a network as `gasnet_info` prints it |
//! | `emulation`, `libportals` | name, remedies and description of each network |

use super::Config;
#[cfg(feature = "libportals")]
use super::portals::binding::{self, Binding};
#[cfg(feature = "emulation")]
use super::portals::emulation::Emulation;
use super::portals::{OpenError, Portals, PortalsError, PortalsId};
#[cfg(feature = "libportals")]
use super::start_exchange::StartExchange;
#[cfg(feature = "hosted")]
use crate::boot::bootstrap::WireStart;
use crate::boot::linked_launcher::{LinkedLaunchers, LinkedSystem};
use crate::boot::network_start::NetworkCollective;
use crate::rank::{JobRank, LocalRank};
#[cfg(feature = "libportals")]
use alloc::boxed::Box;
use alloc::vec::Vec;
use std::os::fd::OwnedFd;

#[cfg(not(any(feature = "emulation", feature = "libportals")))]
compile_error!(
    "a build needs a network: feature `emulation`, or feature `libportals` and a libportals"
);

mod emulation;
mod info;
mod job_conduit;
mod kind;
mod libportals;

pub use crate::env::{NetworkKind, WireKind};
pub use info::NetworkInfo;
pub use job_conduit::JobConduit;
pub use kind::{chosen, networks, not_built};

/// What an interface must know of the job to be opened.
#[derive(Debug)]
pub struct InterfaceRanks {
    /// Rank of this process.
    pub rank: JobRank,
    /// Ranks of the job.
    pub size: u32,
    /// Rank of this process on its host.
    pub local_rank: LocalRank,
    /// Ranks of each host, by its number, and the number of this one.
    pub hosts: Vec<u32>,
    /// See [`InterfaceRanks::hosts`].
    pub host: u32,
    /// What is needed to reach ranks of other hosts, if the job has such.
    #[cfg(feature = "hosted")]
    pub wire: Option<WireStart>,
    /// The process ids of the system, by rank, if the network wants them ([`wants_process_ids`]).
    pub process_ids: Vec<u32>,
    /// An empty memory file that all ranks of the host have, if they can share memory.
    pub arena: Option<OwnedFd>,
    /// The functions of the system have started the job ([`linked`]): its launcher has given the
    /// network what it needs, and knows the addresses.
    pub by_system: bool,
}

/// What the system offers as functions, if the network that the user chose binds them.
pub fn linked() -> LinkedLaunchers {
    #[cfg(feature = "libportals")]
    if chosen() == NetworkKind::Libportals {
        binding::forget_stale();
        return binding::linked();
    }
    LinkedLaunchers::default()
}

/// Whether the network that the user chose wants [`InterfaceRanks::process_ids`].
pub fn wants_process_ids() -> bool {
    #[cfg(feature = "libportals")]
    if chosen() == NetworkKind::Libportals {
        return binding::wants_process_ids();
    }
    false
}

/// An open network interface.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // there is one of it
pub enum OpenInterface {
    /// Of the emulation.
    #[cfg(feature = "emulation")]
    Emulation(Emulation),
    /// Of a libportals.
    #[cfg(feature = "libportals")]
    Libportals(Binding),
}

impl OpenInterface {
    /// Opens the interface of this process on the network that the user chose, which may change
    /// the portal table entries of `config`. Peers can be addressed once they have returned from
    /// this too.
    ///
    /// # Errors
    /// What is missing or wrong with the network.
    pub fn open(ranks: InterfaceRanks, config: &mut Config) -> Result<OpenInterface, OpenError> {
        match chosen() {
            #[cfg(feature = "emulation")]
            NetworkKind::Emulation => match ranks.arena {
                Some(arena) => {
                    let hosts = (&ranks.hosts[..], ranks.host);
                    Emulation::open(arena, ranks.local_rank, hosts, ranks.wire, config)
                }
                None if ranks.size == 1 => Emulation::loopback(config),
                None => Err(OpenError::new(
                    "the ranks of this host share no memory",
                    "Start the job with gasnetrun, or set GASNET_NETWORK to another network.",
                )),
            }
            .map(OpenInterface::Emulation),
            #[cfg(feature = "libportals")]
            NetworkKind::Libportals => {
                let arena = match ranks.arena {
                    None if !ranks.by_system && sys::memory::HAS_FILES => {
                        let file = sys::memory::MemFd::create(c"gasnet-arena");
                        let failure = |e| {
                            OpenError::new(alloc::format!("no memory file: {e}"), "Free memory.")
                        };
                        Some(OwnedFd::from(file.map_err(failure)?))
                    }
                    arena => arena,
                };
                Binding::open(arena, ranks.rank, &ranks.process_ids, config)
                    .map(OpenInterface::Libportals)
            }
            #[allow(unreachable_patterns)]
            kind => unreachable!("{} is not part of the build", kind.name()),
        }
    }

    /// Which network it is of.
    pub fn kind(&self) -> NetworkKind {
        match self {
            #[cfg(feature = "emulation")]
            OpenInterface::Emulation(_) => NetworkKind::Emulation,
            #[cfg(feature = "libportals")]
            OpenInterface::Libportals(_) => NetworkKind::Libportals,
        }
    }

    /// The addresses of all processes, by rank: those of the system that has started the job, else
    /// those that the network's own launcher has set. All processes have opened their interfaces,
    /// unless a `system` has started the job.
    ///
    /// # Errors
    /// They are not those of a job of `size` in which we have this rank.
    pub fn known_peers(
        &self,
        rank: JobRank,
        size: u32,
        system: Option<LinkedSystem>,
    ) -> Result<Option<Vec<PortalsId>>, OpenError> {
        let _ = (rank, size, system);
        match self {
            #[cfg(feature = "emulation")]
            OpenInterface::Emulation(_) => Ok(None),
            #[cfg(feature = "libportals")]
            OpenInterface::Libportals(p) => p.known_peers(rank, size, system),
        }
    }

    /// The interface for the exchanges of a start without memory files.
    pub fn start_interface(&self) -> Option<StartInterface> {
        match self {
            #[cfg(feature = "emulation")]
            OpenInterface::Emulation(_) => None,
            #[cfg(feature = "libportals")]
            OpenInterface::Libportals(p) => Some(StartInterface(p.once_more())),
        }
    }

    /// What connects this process with ranks of other hosts, if it reaches them otherwise than
    /// those of its own.
    pub fn wire_kind(&self) -> Option<WireKind> {
        match self {
            #[cfg(feature = "emulation")]
            OpenInterface::Emulation(p) => p.wire_kind(),
            #[cfg(feature = "libportals")]
            OpenInterface::Libportals(_) => None,
        }
    }

    /// What ranks of other hosts must know of this one; of the same length in all ranks with the
    /// same [`OpenInterface::wire_kind`].
    pub fn wire_address(&self) -> &[u8] {
        match self {
            #[cfg(feature = "emulation")]
            OpenInterface::Emulation(p) => p.wire_address(),
            #[cfg(feature = "libportals")]
            OpenInterface::Libportals(_) => &[],
        }
    }

    /// Says where the ranks of other hosts are: the addresses of all ranks, by rank, and what each
    /// has as [`OpenInterface::wire_address`]. Before the first message.
    ///
    /// # Errors
    /// The Portals call that failed.
    pub fn connect(&self, ranks: &[PortalsId], addresses: &[Vec<u8>]) -> Result<(), PortalsError> {
        let _ = (ranks, addresses);
        match self {
            #[cfg(feature = "emulation")]
            OpenInterface::Emulation(p) => p.connect(ranks, addresses),
            #[cfg(feature = "libportals")]
            OpenInterface::Libportals(_) => Ok(()),
        }
    }

    /// Our address.
    pub fn id(&self) -> PortalsId {
        match self {
            #[cfg(feature = "emulation")]
            OpenInterface::Emulation(p) => p.id(),
            #[cfg(feature = "libportals")]
            OpenInterface::Libportals(p) => p.id(),
        }
    }
}

/// The interface of a process, for the exchanges of a start without memory files.
#[derive(Debug)]
pub struct StartInterface(#[cfg(feature = "libportals")] Binding);

impl StartInterface {
    /// Makes the rank ready for messages of the others, over this portal table entry.
    ///
    /// # Errors
    /// The Portals call that failed.
    pub fn open(
        self,
        pt: u32,
        me: JobRank,
        peers: &[PortalsId],
    ) -> Result<&'static dyn NetworkCollective, PortalsError> {
        #[cfg(feature = "libportals")]
        return Ok(Box::leak(Box::new(StartExchange::open(self.0, pt, me, peers)?)));
        #[cfg(not(feature = "libportals"))]
        unreachable!("no network of this build needs it: {pt} {me} {peers:?}");
    }
}
