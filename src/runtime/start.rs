//! The start of a job: `gasnet_init` makes it, `gasnet_attach` completes it.
//!
//! Called by `capi`, once each. Invariant: all ranks do the same steps in the same order, as
//! most of them are collective.

use super::client::{GasnetClient, SegmentMode, ThreadMode};
use super::counters::StatsFiles;
use super::endpoint::Endpoint;
use super::exit_messages::JobExitWire;
use super::job::GasnetJob;
use super::ops::Ops;
use super::scratch::HostScratch;
use super::segment::{self, SegmentLimits};
use super::subsystem::SubsystemSlot;
use super::team::JobTeam;
use super::threads::ThreadSlots;
use super::wait;
use super::wait_mode::Waiting;
use super::{GasnetError, GasnetResult, agreed_environment, agreed_regions};
use crate::boot;
use crate::boot::bootstrap::Bootstrap;
use crate::boot::options::BootOptions;
use crate::boot::rank_variables;
use crate::client_memory::Dst;
use crate::conduit::network::{InterfaceRanks, JobConduit, OpenInterface, WireKind};
use crate::conduit::portals::{OpenError, PortalsError, PortalsId};
use crate::conduit::{self, ExposedMemory, SegmentBlocks};
use crate::env::WireProgress;
use crate::process::{self, exit, signals};
use crate::rank::JobRank;
use crate::{env, fault, report, trace};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64};
use std::os::fd::{AsFd, AsRawFd};
use sys::byte_count::ByteCount;

impl GasnetJob {
    /// Makes this process a rank of the job. Collective; ends the process with a message if
    /// that is impossible. `function` names the caller in messages, here and below.
    pub fn start(function: &str, client: GasnetClient) -> &'static GasnetJob {
        let options = BootOptions::from_env().with_linked(conduit::network::linked());
        let boot = boot::start(&options).unwrap_or_else(|e| {
            report::fatal(format_args!("{function}(): {}", e.cause), format_args!("{}", e.remedy))
        });
        GasnetJob::start_from(function, boot, client)
    }

    /// As [`GasnetJob::start`], from a process that is a rank already. Without host memory no rank
    /// maps memory of another, and everything goes through Portals.
    pub fn start_from(
        function: &str,
        mut boot: Bootstrap,
        client: GasnetClient,
    ) -> &'static GasnetJob {
        let supernode_size = match boot.host_memory {
            Some(_) if client.segments != SegmentMode::Everything => env::SUPERNODE_MAXSIZE.get(),
            _ => 1,
        };
        let (rank, size) = (boot.placement.rank(), boot.placement.size());
        report::set_rank(rank.0);
        agreed_environment::agree(function, &boot);
        if boot.network_start.is_none() {
            segment::agree_on_mode(function, &boot, client.segments);
        }
        exit::install(&mut boot, env::EXITTIMEOUT.get());
        trace::open(rank.0, size);
        let spared = env::NO_CATCH_SIGNAL.get().unwrap_or_default();
        signals::install(|s| spared.has(s));
        if env::DISABLE_MUNMAP.get() && !sys::heap::keep_freed() {
            report::warn(
                format_args!("GASNET_DISABLE_MUNMAP has no effect with this C library"),
                format_args!("Unset it."),
            );
        }
        let max_threads = match client.threads {
            ThreadMode::Seq => 1,
            _ => env::MAX_THREADS.get() as usize,
        };
        // With several threads, even one index can pass from thread to thread, and some puts and
        // gets need none.
        let callers = match client.threads {
            ThreadMode::Seq => 1,
            _ => max_threads.max(2),
        };
        let mut config = conduit::Config::from_env(size, callers);
        config.wire_thread = has_wire(&boot) && delivers_by_thread(client.threads);
        let network = conduit::network::chosen();
        let registered = network.most_registered(client.segments.named_memory());
        if let Some(on_demand) = network.registers(client.segments.named_memory()) {
            let host_ranks = boot.placement.local_size();
            let most = network.most_regions();
            config.register_on_demand(on_demand, host_ranks, most, |bytes| {
                agreed_regions::least_of_host(&boot, bytes)
            });
        }
        let interface = OpenInterface::open(interface_ranks(function, &boot), &mut config)
            .unwrap_or_else(|e| no_interface(function, &e));
        if interface.wire_kind().is_some() {
            process::exit::set_flush_network(process::flush_network);
        }
        let peers = find_peers(function, &boot, &interface);
        refuse_twins(&peers).unwrap_or_else(|e| no_interface(function, &e));
        if boot.network_start.is_some() {
            let hosts: Vec<u32> = peers.iter().map(|id| id.nid).collect();
            boot.placement = boot.placement.with_hosts(&hosts);
            rank_variables::set(&boot.placement);
        }
        let local_size = boot.placement.local_size();
        let bound = env::MAX_SEGSIZE
            .get()
            .and_then(|bound| bound.of_rank(local_size, sys::memory::limits().physical))
            .or((client.max_segsize != 0).then_some(client.max_segsize));
        let start = boot.network_start.and_then(|start| {
            Some((start, interface.start_interface()?, config.pt_am, peers.clone()))
        });
        let conduit = JobConduit::open(interface, config, rank, peers)
            .unwrap_or_else(|e| no_network(function, &e));
        if let Some((start, interface, pt, addresses)) = start {
            let network =
                interface.open(pt, rank, &addresses).unwrap_or_else(|e| no_network(function, &e));
            // The conduit of a rank whose barrier has returned can receive from this one.
            start.connect(network);
            segment::agree_on_mode(function, &boot, client.segments);
        }
        #[cfg(feature = "hosted")]
        if client.segments == SegmentMode::Everything {
            super::tracers::admit(&boot);
        }
        let scratch = boot.host_memory.as_ref().map(|memory| {
            HostScratch::map(memory, local_size).unwrap_or_else(|e| no_network(function, &e))
        });
        // A rank that returns from this exchange can send to this one.
        let network = conduit.shared_host().map_or(0, |host| host.mapped().1);
        let limits = SegmentLimits::find(&boot, client.segments, network, registered, bound);
        let waiting = Waiting::new(env::WAITMODE.get(), local_size as usize, sys::cpu::usable())
            .with_naps(conduit.has_bypass());
        wait::share_cpus(waiting.shares_cpus());
        boot.placement = boot.placement.with_supernodes(supernode_size);
        let stats_files = StatsFiles::open(rank, conduit.config().credit_stats);
        let job: &'static GasnetJob = Box::leak(Box::new(GasnetJob {
            client,
            team: JobTeam::new(size, rank),
            endpoint: Endpoint::new(rank, conduit),
            ops: Ops::new(callers),
            subsystem: SubsystemSlot::default(),
            waiting,
            limits,
            slots: ThreadSlots::new(max_threads),
            boot,
            stats_files,
            stopped_peer_reported: AtomicBool::new(false),
            looked: AtomicU64::new(0),
            scratch,
        }));
        if let Some(extension) = job.endpoint.conduit.shared_host() {
            let (base, bytes) = extension.mapped();
            signals::set_network(base, bytes, memory_limit(&job.boot));
        }
        process::set_job(job);
        let conduit = &job.endpoint.conduit;
        if conduit.config().wire_thread
            && let Err(e) = conduit.start_wire_thread()
        {
            report::warn(
                format_args!("no thread can be started for GASNET_PROGRESS=THREAD: {e}"),
                format_args!(
                    "Raise `ulimit -u`. Puts and gets of other hosts complete when this rank \
                     polls."
                ),
            );
        }
        if job.boot.network_start.is_some() {
            job.boot.exit.connect(Box::leak(Box::new(JobExitWire(job))));
        }
        job
    }

    /// Maps the segments, `len` bytes for this rank. Collective, a full barrier. `function` names
    /// the caller in messages.
    ///
    /// # Errors
    /// With a message each: [`GasnetError::NotInit`] the second time; [`GasnetError::BadArg`] for
    /// a segment that is larger than the limit or no multiple of the page size. In EVERYTHING
    /// `len` does not count.
    pub fn attach_segment(&'static self, function: &str, len: usize) -> GasnetResult {
        self.check_segment(function, len)?;
        let endpoint = &self.endpoint;
        let mode = self.client.segments;
        let len = if mode == SegmentMode::Everything { 0 } else { len };
        let on_demand = endpoint.conduit.config().targets_regions();
        let region_bytes = match on_demand {
            true => {
                agreed_regions::region_bytes(&self.boot, endpoint.conduit.config().region_bytes())
            }
            false => None,
        };
        // So no region that peers name has bytes outside the segment.
        let align = region_bytes.unwrap_or(1);
        let attached = segment::attach(&self.boot, mode, len, align, env::USE_HUGEPAGES.get());
        let attached = attached.unwrap_or_else(|e| {
            report::fatal(
                format_args!(
                    "{function}(): the segments of this host cannot be mapped ({} of this rank, \
                     limit {}): {e}",
                    ByteCount(len as u64),
                    ByteCount(self.limits.local as u64)
                ),
                format_args!(
                    "Request smaller segments in all ranks (GASNET_MAX_SEGSIZE bounds them), or \
                     free what the system names."
                ),
            )
        });
        if !attached.segments.at_one_address() {
            super::records::note_addresses();
        }
        let own = attached.segments.own();
        let exposed = match mode {
            SegmentMode::Everything if on_demand => ExposedMemory::RegisteredAddressSpace,
            SegmentMode::Everything => ExposedMemory::AddressSpace,
            SegmentMode::Fast | SegmentMode::Large => {
                let (base, bytes) = attached.segments.mapped();
                signals::set_segments(base, bytes, memory_limit(&self.boot));
                if let Some(host) = endpoint.conduit.shared_host() {
                    host.expose_segments(own, attached.locals.as_slice());
                }
                match on_demand {
                    true => ExposedMemory::RegisteredSegment(own),
                    false => ExposedMemory::Segment(own),
                }
            }
        };
        let conduit = &endpoint.conduit;
        match conduit.config().pinned.is_some() {
            true => conduit.expose_registered(exposed, region_bytes, || {
                let ranks = self.team.ranks().map(|rank| attached.segments[rank].base().addr());
                ranks.collect()
            }),
            false => conduit.expose(exposed),
        }
        .and_then(|()| match mode {
            SegmentMode::Fast => conduit.expose_remotely(|| SegmentBlocks::WHOLE),
            SegmentMode::Large => conduit
                .expose_remotely(|| SegmentBlocks::on_demand(self.boot.placement.local_size())),
            SegmentMode::Everything => Ok(()),
        })
        .unwrap_or_else(|e| no_network(function, &e));
        if !endpoint.bind(attached.segments) {
            return Err(GasnetError::NotInit);
        }
        self.meet();
        match mode {
            SegmentMode::Everything => self.note_means(),
            SegmentMode::Large if on_demand => super::records::note_on_demand(),
            _ => {}
        }
        Ok(())
    }

    /// Whether memory of the client can be bound as a segment: ranks expose no address space, and
    /// the network registers nothing on demand.
    pub fn binds_segments(&self) -> bool {
        self.client.segments != SegmentMode::Everything
            && self.endpoint.conduit.config().pinned.is_none()
    }

    /// Lets peers reach memory that the client has bound.
    ///
    /// # Errors
    /// The call of the network that failed.
    pub fn expose_created(&self, own: Dst<'static>) -> Result<(), PortalsError> {
        self.endpoint.conduit.expose(ExposedMemory::UnsharedSegment(own))
    }

    /// Whether [`GasnetJob::attach_segment`] can be called with this length.
    ///
    /// # Errors
    /// As listed there.
    pub fn check_segment(&self, function: &str, len: usize) -> GasnetResult {
        if let Some(known) = self.endpoint.known_segments() {
            let (why, remedy) = if known.are_attached() {
                (
                    "this process has called it before; the second call changes nothing",
                    "Call it once, or check the code that it returns, GASNET_ERR_NOT_INIT.",
                )
            } else if known.bound().is_some() {
                (
                    "a segment was bound by gex_EP_BindSegment; the call changes nothing",
                    "Call one of them only, or check the code that it returns, GASNET_ERR_NOT_INIT.",
                )
            } else {
                (
                    "this process knows segments that other ranks have published; the call changes \
                     nothing",
                    "Attach segments before any rank binds and publishes one, or bind one here too \
                     (gex_EP_BindSegment).",
                )
            };
            report::warn(format_args!("{function}(): {why}"), format_args!("{remedy}"));
            return Err(GasnetError::NotInit);
        }
        if self.client.segments == SegmentMode::Everything {
            return Ok(());
        }
        let page = segment::PAGE;
        if !len.is_multiple_of(page) {
            report::warn(
                format_args!(
                    "{function}(): a segment of {} is not a multiple of the page size, {}",
                    ByteCount(len as u64),
                    ByteCount(page as u64)
                ),
                format_args!("Round it with GASNET_PAGESIZE."),
            );
            return Err(GasnetError::BadArg);
        }
        if len > self.limits.local {
            report::warn(
                format_args!(
                    "{function}(): a segment of {} was requested, but the limit of this rank is {}",
                    ByteCount(len as u64),
                    ByteCount(self.limits.local as u64)
                ),
                format_args!(
                    "Request at most what gasnet_getMaxLocalSegmentSize() returns; what limits it \
                     is {}.",
                    self.limits.bounded_by
                ),
            );
            return Err(GasnetError::BadArg);
        }
        Ok(())
    }

    /// Returns when all ranks have called it.
    pub fn meet(&self) {
        self.boot.barrier.barrier();
    }
}

/// Bytes of memory that this host has at most for what its ranks share.
fn memory_limit(boot: &Bootstrap) -> u64 {
    sys::memory::total_for(segment::file_of(boot))
}

/// Whether the job has ranks of other hosts that a wire reaches.
#[cfg(feature = "hosted")]
fn has_wire(boot: &Bootstrap) -> bool {
    boot.wire.is_some()
}

/// No launcher starts ranks on other hosts.
#[cfg(not(feature = "hosted"))]
fn has_wire(_: &Bootstrap) -> bool {
    false
}

/// Whether a thread of the library is to deliver what other hosts send.
fn delivers_by_thread(threads: ThreadMode) -> bool {
    let default = match threads {
        ThreadMode::Seq => WireProgress::Poll,
        ThreadMode::Parsync | ThreadMode::Par => WireProgress::Thread,
    };
    env::PROGRESS.get().unwrap_or(default) == WireProgress::Thread
}

/// What the network interface must know of the job.
fn interface_ranks(function: &str, boot: &Bootstrap) -> InterfaceRanks {
    let arena = boot.host_memory.as_ref().map(|memory| {
        sys::descriptor::duplicate(memory.arena.as_fd().as_raw_fd())
            .unwrap_or_else(|e| no_network(function, &e))
    });
    let placement = &boot.placement;
    InterfaceRanks {
        rank: placement.rank(),
        size: placement.size(),
        local_rank: placement.local_rank(),
        hosts: placement.hosts().to_vec(),
        host: placement.place_of(placement.rank()).host,
        #[cfg(feature = "hosted")]
        wire: boot.wire.clone(),
        process_ids: process_ids(boot),
        arena,
        by_system: boot.network_start.is_some(),
    }
}

/// The process ids of the system of all ranks, by rank. Empty if the network does not want them,
/// or the ranks cannot exchange them before it is open.
fn process_ids(boot: &Bootstrap) -> Vec<u32> {
    if boot.network_start.is_some() || !conduit::network::wants_process_ids() {
        return Vec::new();
    }
    let all = boot.exchange.exchange(&sys::process::pid().to_ne_bytes());
    let number = |b: &[u8]| b.try_into().map_or(0, u32::from_ne_bytes);
    all.ranked().map(|(_, b)| number(b)).collect()
}

/// Messages to ranks of the same address would all reach one of them.
///
/// # Errors
/// The first two such ranks.
fn refuse_twins(peers: &[PortalsId]) -> Result<(), OpenError> {
    let mut sorted: Vec<_> = peers.iter().zip(0u32..).map(|(id, n)| (id.nid, id.pid, n)).collect();
    sorted.sort_unstable();
    let address = |&(nid, pid, _): &(u32, u32, u32)| (nid, pid);
    let Some(twins) = sorted.windows(2).find(|two| address(&two[0]) == address(&two[1])) else {
        return Ok(());
    };
    let (nid, pid, rank) = twins[0];
    Err(OpenError::new(
        format!("ranks {rank} and {} have the same address, nid {nid} and pid {pid}", twins[1].2),
        "Start the job with the launcher of this Portals, or give each rank its own entry of \
         PTL_NIDMAP and PTL_PIDMAP, if the library reads them.",
    ))
}

/// The networks of a rank as a number, which all ranks must share.
fn network_number(interface: &OpenInterface) -> u32 {
    interface.kind() as u32 | interface.wire_kind().map_or(0, |wire| 1 + wire as u32) << 8
}

/// The version of this library as ranks exchange it: 10 bits each for major, minor and patch.
fn version_number(rank: JobRank) -> u32 {
    let parts = [
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
        env!("CARGO_PKG_VERSION_PATCH"),
    ];
    let number = |part: &str| part.parse().unwrap_or(0) & 0x3ff;
    let version = parts.into_iter().fold(0, |sum: u32, part| sum << 10 | number(part));
    version + u32::from(rank.0 > 1 && fault::on("other_version"))
}

/// The same for people.
fn version_name(version: u32) -> String {
    format!("{}.{}.{}", version >> 20, version >> 10 & 0x3ff, version & 0x3ff)
}

/// Ends the job: the ranks do not run the same library. `whose`: which versions, as far as known.
fn other_versions(function: &str, whose: core::fmt::Arguments<'_>) -> ! {
    report::fatal(
        format_args!("{function}(): {whose}"),
        format_args!("Install the same libgasnet on all hosts, and start the job anew."),
    )
}

/// The networks of a rank for people.
fn network_name(interface: &OpenInterface) -> &'static str {
    match interface.wire_kind() {
        Some(WireKind::Tcp) => "tcp",
        Some(WireKind::Ofi) => "ofi",
        None => interface.kind().name(),
    }
}

/// The addresses of all ranks, by rank; every interface is open when it returns, unless the system
/// has started the job. Ends the job if the ranks are not all on the same network.
fn find_peers(function: &str, boot: &Bootstrap, interface: &OpenInterface) -> Vec<PortalsId> {
    let (rank, size) = (boot.placement.rank(), boot.placement.size());
    if let Some(start) = boot.network_start {
        return match interface.known_peers(rank, size, Some(start.system())) {
            Ok(Some(peers)) => peers,
            Ok(None) => no_interface(
                function,
                &OpenError::new(
                    "the system does not know the addresses of the ranks",
                    "Link the program with the functions of CNOS or PMI that do.",
                ),
            ),
            Err(e) => no_interface(function, &e),
        };
    }
    let id = interface.id();
    let kind = network_number(interface);
    let version = version_number(rank);
    let mine = [kind, id.nid, id.pid, version].map(u32::to_ne_bytes).concat();
    let mut peers = Vec::new();
    let all = boot.exchange.exchange(&mine);
    // Other versions exchange more or less than this one.
    let whole = all.ranked().filter(|(_, b)| b.len() == mine.len()).count();
    if whole != size as usize {
        other_versions(
            function,
            format_args!(
                "this rank runs libgasnet {}, but others run another version",
                version_name(version)
            ),
        );
    }
    for (other, b) in all.ranked() {
        let words = b.as_chunks().0;
        let word = |i: usize| u32::from_ne_bytes(words[i]);
        if word(3) != version {
            let [own, theirs] = [version, word(3)].map(version_name);
            other_versions(
                function,
                format_args!("this rank runs libgasnet {own}, but rank {other} runs {theirs}"),
            );
        }
        if word(0) != kind {
            report::fatal(
                format_args!(
                    "{function}(): this rank runs on the network {}, but rank {other} does not",
                    network_name(interface)
                ),
                format_args!("Give all ranks the same GASNET_NETWORK and the same library."),
            );
        }
        peers.push(PortalsId { nid: word(1), pid: word(2) });
    }
    let addresses: Vec<Vec<u8>> = match interface.wire_kind() {
        Some(_) => boot
            .exchange
            .exchange(interface.wire_address())
            .ranked()
            .map(|(_, b)| b.clone())
            .collect(),
        None => Vec::new(),
    };
    interface.connect(&peers, &addresses).unwrap_or_else(|e| no_network(function, &e));
    match interface.known_peers(rank, size, None) {
        Ok(known) => known.unwrap_or(peers),
        Err(e) => no_interface(function, &e),
    }
}

fn no_interface(function: &str, e: &OpenError) -> ! {
    report::fatal(
        format_args!("{function}(): the Portals network cannot be set up: {}", e.cause),
        format_args!("{}{}", e.remedy, conduit::network::chosen().alternative()),
    )
}

fn no_network(function: &str, e: &dyn core::fmt::Display) -> ! {
    let limit = sys::limits::address_space().map_or_else(String::new, |limit| {
        let limit = ByteCount(limit);
        format!("This process may have {limit} of address space (ulimit -v): raise that. ")
    });
    report::fatal(
        format_args!("{function}(): the Portals network cannot be set up: {e}"),
        format_args!(
            "{limit}Free memory, start fewer ranks, or lower GASNET_PORTAL_SB_CHUNKS and GASNET_PORTAL_AMRECV_SPACE."
        ),
    )
}
