//! The wire over libfabric: one reliable-datagram endpoint per process, which may be scalable.
//!
//! Opened by the owner of an interface with [`OfiWire::open`], and handed to
//! [`crate::NetworkInterface::joined`] as [`super::tcp::TcpWire`] is. libfabric is loaded then; a
//! machine without it has no such wire.
//!
//! | file | what it owns |
//! |---|---|
//! | `network`, `sending`, `receiving`, `peer`, `batch` | the peers: frames in order, credits |
//! | `remote`, `flights` | puts and gets in the memory of peers: which are under way |
//! | `loss` | which frames were lost, though the provider reports nothing |
//! | `seal` | sender, number, credits and seal of a frame |
//! | `provider` | the choice of a provider |
//! | `domain`, `endpoint`, `slot`, `region`, `memory`, `opening`, `object`, `library` | all calls of libfabric |
//! | `queue_signal` | what tells that something is complete |
//! | `bindings` | its C interface |
//! | `limits` | frames, credits, buffers |
//!
//! A frame is one tagged message, or shares one with others (`batch`). There is a buffer for it
//! before its sender may send it. The buffer is posted, unless the provider's receive queue is
//! full. Then it follows as others complete, and messages may wait in the provider meanwhile. What
//! `loss` sends may wait there too.
//!
//! The seal of a frame proves that a process of the job has sent it, to this one, and that it has
//! not arrived before. It covers the first 256 bytes, and all of a message of several frames: what
//! can change packets in the network can change what follows, as with the wire over TCP.
//!
//! A scalable endpoint has several transmit and receive contexts. Each is a lane ([`Wire::lanes`])
//! with peers, buffers, a completion queue and a lock of its own, so that threads use them at
//! once. The frames of a pair of processes stay in one lane.
//!
//! Invariant: messages may arrive in any order. Only a process that ends relies on order: what a
//! provider keeps has left when a later message to the same peer has (`OfiNetwork::begin_flush`).

mod batch;
mod bindings;
mod domain;
mod endpoint;
mod flights;
#[cfg(test)]
mod headers;
mod library;
mod limits;
mod loss;
mod memory;
mod network;
mod object;
mod opening;
mod peer;
mod provider;
mod queue_signal;
mod receiving;
mod region;
mod remote;
#[cfg(test)]
mod remote_tests;
mod seal;
mod sending;
mod slot;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::OnceLock;

use super::numbering::HostNumbering;
use super::outcome::{FrameSent, FrameSink, PeerState};
use super::remote::{RemoteBegun, RemoteLimits, RemoteMemory, RemoteOperation, RemoteRegion};
use super::wire::{PeerFailureHandler, PeerFailures, Wire, WireCounters, allow_connections};
use crate::base::lock::SpinLock;
use crate::types::{MdIovec, PtlProcessId, Size};
use bindings::FI_EADDRINUSE;
use domain::OfiDomain;
use endpoint::{NAME_BYTES, OfiEndpoint};
use handshake::FrameKey;
pub use handshake::JobSecret;
use library::{Libfabric, OfiError, ProviderInfo};
use limits::{CONTEXTS, FRAME, INJECTED, LONG_MESSAGE, SHORT_FRAME};
use network::{OfiEnd, OfiNetwork, OfiPeers};
use provider::WireSite;
pub use provider::{OfiProvider, OfiRemoteAccess, ProviderChoice, has_hardware, providers};
pub use seal::OfiTagMode;
use sys::clock;
use sys::epoll::EpollSet;

/// Bytes of the address of a process: provider, mode, number of contexts, length, and the
/// endpoint's address.
pub const ADDRESS: usize = SAME + NAME_BYTES;
/// Bytes of the part that is the same in all addresses of a job.
const SAME: usize = PROVIDER + 3;
/// Bytes of the name of a provider.
const PROVIDER: usize = 30;

/// What [`OfiWire::open`] needs.
pub struct OfiSpec {
    /// The address of the interface to use, for providers that use addresses of IP.
    pub address: IpAddr,
    /// The ports to choose from; `0..=0` leaves the choice to the provider.
    pub ports: RangeInclusive<u16>,
    /// The secret of the job.
    pub secret: JobSecret,
    /// The providers that the user wants.
    pub providers: ProviderChoice,
    /// The mode that the user wants; `None`: the best that the provider allows.
    pub tag_mode: Option<OfiTagMode>,
    /// Whether puts and gets use remote access.
    pub remote: OfiRemoteAccess,
    /// Whether threads use several contexts of a scalable endpoint, where the provider has them.
    pub thread_grouping: bool,
    /// Completions that are read from the provider's queue at a time.
    pub events: usize,
    /// Processes of the job, about.
    pub processes: u32,
    /// Called with each peer that fails.
    pub on_failure: PeerFailureHandler,
}

impl fmt::Debug for OfiSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfiSpec")
            .field("address", &self.address)
            .field("providers", &self.providers)
            .finish_non_exhaustive()
    }
}

/// Why there is no wire over libfabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoOfi {
    /// No libfabric can be loaded.
    NoLibrary(String),
    /// No provider of those that the user wants is here, or reaches other hosts.
    NoProvider,
    /// The provider does not allow the mode that the user wants.
    NoTagMode(String),
    /// None of those that the user wants has remote access, which the user demands: their names.
    NoRemoteAccess(String),
    /// Each provider has failed: the reasons.
    Failed(String),
}

impl fmt::Display for NoOfi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoOfi::NoLibrary(why) => write!(f, "there is no libfabric: {why}"),
            NoOfi::NoProvider => {
                f.write_str("libfabric has no such provider that reaches other hosts")
            }
            NoOfi::NoRemoteAccess(names) => {
                write!(f, "libfabric's provider {names} has no remote access to memory")
            }
            NoOfi::NoTagMode(why) | NoOfi::Failed(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for NoOfi {}

/// Why an endpoint cannot be opened.
enum NotOpen {
    TagMode(String),
    Error(OfiError),
}

impl From<OfiError> for NotOpen {
    fn from(e: OfiError) -> NotOpen {
        NotOpen::Error(e)
    }
}

/// What was opened of a provider.
struct OpenedEndpoints {
    address: [u8; ADDRESS],
    mode: OfiTagMode,
    domain: Arc<OfiDomain>,
    /// By context.
    networks: Vec<OfiNetwork>,
}

/// What belongs to one context.
struct OfiLane {
    network: SpinLock<OfiNetwork>,
    /// Remote operations under way. Written under the lock of the network.
    working: AtomicUsize,
}

/// See the head of this file.
pub struct OfiWire {
    end: OfiEnd,
    address: [u8; ADDRESS],
    provider: String,
    interface: String,
    domain: Arc<OfiDomain>,
    /// What can be read if one of several queues can.
    queues: Option<EpollSet>,
    peers: OnceLock<OfiPeers>,
    lanes: Box<[OfiLane]>,
}

/// The descriptors of several queues as one; `None` if there are not several.
///
/// # Errors
/// That of the system.
fn joined_queues(networks: &[OfiNetwork]) -> io::Result<Option<EpollSet>> {
    let all = networks.iter().map(OfiNetwork::descriptor).collect::<Option<Vec<RawFd>>>();
    let Some(all) = all.filter(|all| all.len() > 1) else { return Ok(None) };
    let set = EpollSet::new()?;
    for descriptor in all {
        // SAFETY: that of a completion queue, which is open.
        set.add(unsafe { BorrowedFd::borrow_raw(descriptor) }, 0, false)?;
    }
    Ok(Some(set))
}

impl fmt::Debug for OfiWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfiWire").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl OfiWire {
    /// Opens an endpoint of the best provider that there is.
    ///
    /// # Errors
    /// See [`NoOfi`].
    pub fn open(spec: OfiSpec) -> Result<OfiWire, NoOfi> {
        let library = Libfabric::get().map_err(|e| NoOfi::NoLibrary(e.to_string()))?;
        // No more lanes than other processes.
        let others = (spec.processes as usize).saturating_sub(1);
        let contexts = if spec.thread_grouping { others.clamp(1, CONTEXTS) } else { 1 };
        let find_with = |port, remote| {
            let site = WireSite { address: spec.address, port, remote, contexts };
            let found = provider::candidates(library, &spec.providers, site);
            found.map_err(|e| NoOfi::Failed(e.to_string()))
        };
        let find = |port| find_with(port, spec.remote);
        let first = *spec.ports.start();
        let found = find(first)?;
        if found.is_empty() {
            let others = match spec.remote.is_demanded() {
                true => find_with(first, OfiRemoteAccess::Never)?,
                false => Vec::new(),
            };
            let mut names: Vec<String> = others.iter().map(ProviderInfo::name).collect();
            names.dedup();
            return Err(match names.is_empty() {
                true => NoOfi::NoProvider,
                false => NoOfi::NoRemoteAccess(names.join(", ")),
            });
        }
        let mut reasons: Vec<String> = Vec::new();
        for (i, info) in found.into_iter().enumerate() {
            let mut opened = Self::open_at(&info, &spec);
            for port in spec.ports.clone().skip(1) {
                if !matches!(&opened, Err(NotOpen::Error(e)) if e.number == FI_EADDRINUSE) {
                    break;
                }
                // The same provider and interface, at another port.
                let Some(info) = find(port)?.into_iter().nth(i) else { break };
                opened = Self::open_at(&info, &spec);
            }
            match opened {
                Ok(OpenedEndpoints { address, mode, domain, networks }) => {
                    let queues = joined_queues(&networks);
                    let queues = queues.map_err(|e| NoOfi::Failed(e.to_string()))?;
                    let lane = |network| OfiLane {
                        network: SpinLock::new(network),
                        working: AtomicUsize::new(0),
                    };
                    let end = OfiEnd {
                        key: FrameKey::new(&spec.secret),
                        mode,
                        long_message: match provider::announces(&info) {
                            true => LONG_MESSAGE,
                            false => 0,
                        },
                        inject: info.tx().inject_size.min(INJECTED),
                        failures: PeerFailures::new(spec.on_failure),
                        refused: AtomicU64::new(0),
                    };
                    return Ok(OfiWire {
                        end,
                        address,
                        provider: info.name(),
                        interface: info.interface(),
                        domain,
                        queues,
                        peers: OnceLock::new(),
                        lanes: networks.into_iter().map(lane).collect(),
                    });
                }
                Err(NotOpen::TagMode(why)) => return Err(NoOfi::NoTagMode(why)),
                Err(NotOpen::Error(e)) => {
                    reasons.push(format!("{} of {}: {e}", info.name(), info.interface()));
                }
            }
        }
        Err(NoOfi::Failed(reasons.join("; ")))
    }

    fn open_at(info: &ProviderInfo, spec: &OfiSpec) -> Result<OpenedEndpoints, NotOpen> {
        let best = OfiTagMode::of(info);
        let mode = spec.tag_mode.unwrap_or(best);
        if !mode.is_allowed_by(best) {
            let (name, mode, best) = (info.name(), mode.name(), best.name());
            return Err(NotOpen::TagMode(format!(
                "the provider {name} does not allow the tag mode {mode}, but {best}"
            )));
        }
        let domain = Arc::new(OfiDomain::open(info, spec.processes as usize)?);
        let (bytes, events) = (FRAME + mode.lead_bytes(), spec.events);
        let endpoints: Vec<OfiEndpoint> = (0..info.contexts())
            .map(|context| OfiEndpoint::open(&domain, info, context, bytes, events))
            .collect::<Result<_, OfiError>>()?;
        let name = endpoints.first().map_or(Ok(Vec::new()), OfiEndpoint::name)?;
        let networks = endpoints.into_iter().map(OfiNetwork::new).collect::<Result<_, _>>()?;
        let address = Self::encode_address(info, mode, &name);
        Ok(OpenedEndpoints { address, mode, domain, networks })
    }

    fn encode_address(info: &ProviderInfo, mode: OfiTagMode, name: &[u8]) -> [u8; ADDRESS] {
        let mut address = [0; ADDRESS];
        let provider = info.name();
        let length = provider.len().min(PROVIDER);
        address[..length].copy_from_slice(&provider.as_bytes()[..length]);
        let shape = [mode as u8, info.contexts() as u8, name.len() as u8];
        address[PROVIDER..SAME].copy_from_slice(&shape);
        address[SAME..][..name.len()].copy_from_slice(name);
        address
    }

    /// Where this process is, for [`crate::NetworkInterface::connect`] of all processes.
    pub fn address(&self) -> [u8; ADDRESS] {
        self.address
    }

    /// The provider of an address, for people; `None`: these bytes are no address.
    pub fn provider_of(address: &[u8]) -> Option<String> {
        let (provider, rest) = address.split_first_chunk::<PROVIDER>()?;
        let end = provider.iter().position(|byte| *byte == 0).unwrap_or(PROVIDER);
        let [mode, contexts, ..] = rest else { return None };
        let mode = match mode {
            0 => OfiTagMode::Full,
            1 => OfiTagMode::One,
            2 => OfiTagMode::Two,
            _ => return None,
        };
        let provider = String::from_utf8_lossy(&provider[..end]);
        let contexts = match contexts {
            1 => String::new(),
            n => format!(", {n} contexts"),
        };
        Some(format!("{provider}, tag mode {}{contexts}", mode.name()))
    }

    /// The lane of a process.
    fn lane(&self, peer: u32) -> &OfiLane {
        &self.lanes[self.lane_of(peer)]
    }

    /// Whether puts and gets use remote access to the memory of peers.
    pub fn has_remote_access(&self) -> bool {
        self.domain.limits.is_some()
    }

    /// How many contexts its endpoint has.
    pub fn contexts(&self) -> usize {
        self.lanes.len()
    }

    /// The provider and its interface.
    pub fn provider(&self) -> (&str, &str) {
        (&self.provider, &self.interface)
    }
}

impl Wire for OfiWire {
    fn connect(&self, own: PtlProcessId, numbering: &HostNumbering, addresses: Box<[u8]>) -> bool {
        let (addresses, rest) = addresses.as_chunks::<ADDRESS>();
        let is_like_ours = |other: &[u8; ADDRESS]| other[..SAME] == self.address[..SAME];
        if !rest.is_empty()
            || addresses.len() != numbering.total() as usize
            || !addresses.iter().all(is_like_ours)
        {
            return false;
        }
        allow_connections(numbering);
        let name_of = |address: &[u8; ADDRESS]| {
            let mut name = [0; NAME_BYTES];
            name.copy_from_slice(&address[SAME..]);
            name
        };
        let Some(own) = numbering.position(own) else { return false };
        let names = addresses.iter().map(name_of).collect();
        let lanes = self.lanes.len() as u32;
        let peers = OfiPeers { own, numbering: numbering.clone(), names, lanes };
        self.peers.set(peers).is_ok()
    }

    fn lanes(&self) -> usize {
        self.lanes.len()
    }

    fn lane_of(&self, peer: u32) -> usize {
        match self.peers.get() {
            Some(peers) if self.lanes.len() > 1 => peers.lane_of(peer),
            _ => 0,
        }
    }

    fn max_frame(&self, payload: Size) -> usize {
        if payload >= self.end.long_message { FRAME } else { SHORT_FRAME }
    }

    unsafe fn send(
        &self,
        peer: u32,
        header: &[u8],
        payload: &[MdIovec],
        follows: bool,
    ) -> FrameSent {
        let Some(peers) = self.peers.get() else { return FrameSent::Full };
        let frame = (header, payload, follows);
        // SAFETY: the same contract.
        unsafe { self.lane(peer).network.lock().send(&self.end, peers, peer, frame) }
    }

    fn receive(&self, lane: usize, max: usize, sink: &mut dyn FrameSink) -> bool {
        let Some(peers) = self.peers.get() else { return false };
        let lane = &self.lanes[lane];
        // While a thread registers memory with this lock, there is other work.
        let Some(mut network) = lane.network.try_lock() else { return false };
        let received = network.receive(&self.end, peers, max, sink);
        lane.working.store(network.remote.count, Ordering::Relaxed);
        received
    }

    fn remote_memory(&self) -> Option<&dyn RemoteMemory> {
        self.domain.limits.is_some().then_some(self)
    }

    fn is_working(&self, lane: usize) -> bool {
        self.lanes[lane].working.load(Ordering::Relaxed) != 0
    }

    fn peer_state(&self, peer: u32) -> PeerState {
        self.end.failures.state(peer)
    }

    fn silent_peer(&self, ns: u64) -> Option<u32> {
        self.lanes.iter().find_map(|lane| lane.network.try_lock()?.silent_peer(ns))
    }

    fn is_meeting(&self, peer: u32) -> bool {
        self.lane(peer).network.lock().is_meeting(peer)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let mut all = self.lanes.iter().map(|lane| lane.network.lock().descriptor());
        let first = all.next()??;
        if all.any(|descriptor| descriptor.is_none()) {
            return None;
        }
        // SAFETY: that of a completion queue, which is open as long as this value.
        let first = || unsafe { BorrowedFd::borrow_raw(first) };
        Some(self.queues.as_ref().map_or_else(first, EpollSet::as_fd))
    }

    fn longest_sleep_ns(&self) -> u64 {
        let longest = |lane: &OfiLane| lane.network.lock().longest_sleep_ns();
        self.lanes.iter().map(longest).min().unwrap_or(u64::MAX)
    }

    fn flush(&self, timeout_ns: u64) {
        let Some(peers) = self.peers.get() else { return };
        let until = clock::now_ns().saturating_add(timeout_ns);
        let lanes = self.lanes.iter();
        let mut networks: Vec<_> = lanes.filter_map(|lane| lane.network.try_lock()).collect();
        for network in &mut networks {
            network.begin_flush(&self.end, peers);
        }
        let mut is_leaving = true;
        while is_leaving && clock::now_ns() < until {
            is_leaving = false;
            for network in &mut networks {
                is_leaving |= network.flush_more(&self.end, peers);
            }
        }
    }

    fn counters(&self) -> WireCounters {
        WireCounters { refused: self.end.refused.load(Ordering::Relaxed), parts: 0 }
    }
}

impl RemoteMemory for OfiWire {
    fn limits(&self) -> RemoteLimits {
        let none = RemoteLimits { longest: 0, pieces: 0, by_hardware: false };
        self.domain.limits.unwrap_or(none)
    }

    unsafe fn register(&self, start: *mut u8, bytes: usize) -> Result<RemoteRegion, String> {
        let network = self.lanes[0].network.lock();
        let registrar = network.endpoint.registrar();
        // One context means that one thread at a time calls the provider.
        let _alone = (self.lanes.len() == 1).then_some(network);
        registrar.expose(&self.domain, start, bytes).map_err(|e| e.to_string())
    }

    fn takes_pieces(&self, pieces: &[MdIovec]) -> bool {
        self.domain.takes_pieces(pieces)
    }

    unsafe fn begin(&self, operation: &RemoteOperation<'_>) -> RemoteBegun {
        let Some(peers) = self.peers.get() else { return RemoteBegun::Full };
        let lane = self.lane(operation.peer);
        let mut network = lane.network.lock();
        // SAFETY: the same contract.
        let begun = unsafe { network.begin_remote(&self.end, peers, operation) };
        lane.working.store(network.remote.count, Ordering::Relaxed);
        begun
    }
}
