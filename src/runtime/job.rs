//! The job as one rank knows it: made by `gasnet_init`, completed by `gasnet_attach`.
//!
//! Called by `capi`, then passed to every call in its [`Ctx`]. Invariant: a [`GasnetJob`] is
//! made once and lives until the process ends. What `attach` adds is written once
//! ([`GasnetJob::segments`]); all else is read-only or guards itself (conduit, operations,
//! handlers).

use super::counters::StatsFiles;
use super::environment;
use super::segment::{self, SegmentLimits, Segments};
use super::subsystem::SubsystemSlot;
use super::threads::{self, Ctx, ThreadSlots};
use super::wait::Waiting;
use super::{GasnetError, GasnetResult, activity, am, ops};
use crate::boot;
use crate::boot::bootstrap::Bootstrap;
use crate::boot::options::BootOptions;
use crate::boot::placement::Placement;
use crate::boot::rank_id::HostMemory;
use crate::client_memory::Dst;
use crate::conduit;
use crate::conduit::network::{InterfaceRanks, JobConduit, OpenInterface};
use crate::conduit::portals::{PortalsId, SharedHost};
use crate::limits::MAX_THREADS;
use crate::process::{self, JobReport, exit, signals};
use crate::rank::{JobRank, LocalRank};
use crate::report::MessageLine;
use crate::{env, report, trace};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use once_cell::race::OnceBox;
use std::os::fd::{AsFd, AsRawFd};
use sys::hint::cold_path;
use sys::memory::Mapping;
use sys::process::Liveness;

/// How many client threads may call at a time (`GASNET_SEQ`, `GASNET_PARSYNC`, `GASNET_PAR`).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadMode {
    /// One thread in the whole process.
    Seq = 1,
    /// Several threads, one of them at a time.
    Parsync = 2,
    /// Several threads at once.
    Par = 3,
}

/// What a client chose when it called `gasnet_init`.
#[derive(Clone, Copy, Debug)]
pub struct ClientChoice {
    /// Its thread mode.
    pub threads: ThreadMode,
    /// Bound of the segment that the client's `gasnet_max_segsize` sets, in bytes; 0 for none.
    pub max_segsize: u64,
}

/// One process's view of the job.
#[derive(Debug)]
pub struct GasnetJob {
    /// Rank of this process.
    pub mynode: u32,
    /// Processes of the job.
    pub nodes: u32,
    /// Thread mode of the client.
    pub threads: ThreadMode,
    /// The network.
    pub conduit: JobConduit,
    /// Operations in flight.
    pub ops: ops::Ops,
    /// State of the layer `extended`.
    pub subsystem: SubsystemSlot,
    /// Registered handlers.
    pub handlers: am::HandlerTable,
    /// How to wait.
    pub waiting: Waiting,
    /// Limits of the segments.
    pub limits: SegmentLimits,
    pub(super) slots: ThreadSlots,
    boot: Bootstrap,
    stats_files: Option<StatsFiles>,
    stopped_peer_reported: AtomicBool,
    /// [`SCRATCH_BYTES`] of each rank of the host, if they share memory.
    scratch: Option<Mapping>,
    attached: OnceBox<Segments>,
}

/// Bytes of shared memory of each rank of a host, see [`GasnetJob::common_scratch`].
pub const SCRATCH_BYTES: usize = 4096;

impl GasnetJob {
    /// Makes this process a rank of the job. Collective; ends the process with a message if
    /// that is impossible.
    pub fn start(choice: ClientChoice) -> &'static GasnetJob {
        let boot = boot::start(&BootOptions::from_env()).unwrap_or_else(|e| {
            report::fatal(format_args!("gasnet_init(): {}", e.cause), format_args!("{}", e.remedy))
        });
        GasnetJob::start_from(boot, choice)
    }

    /// As [`GasnetJob::start`], from a process that is a rank already. Without host memory no rank
    /// maps memory of another, and everything goes through Portals.
    pub fn start_from(mut boot: Bootstrap, choice: ClientChoice) -> &'static GasnetJob {
        let supernode_size = match boot.host_memory {
            Some(_) => env::SUPERNODE_MAXSIZE.get(),
            None => 1,
        };
        let (rank, size) = (boot.placement.rank().0, boot.placement.size());
        report::set_rank(rank);
        environment::agree(&boot);
        trace::open(rank);
        exit::install(&mut boot, env::EXITTIMEOUT.get());
        let spared = env::NO_CATCH_SIGNAL.get().unwrap_or_default();
        signals::install(|s| spared.has(s));
        let max_threads = match choice.threads {
            ThreadMode::Seq => 1,
            _ => env::MAX_THREADS.get() as usize,
        };
        let bound = env::MAX_SEGSIZE
            .get()
            .map(|n| n as u64)
            .or((choice.max_segsize != 0).then_some(choice.max_segsize));
        let local_size = boot.placement.local_size();
        let waiting = Waiting::new(env::WAITMODE.get(), local_size as usize, sys::cpu::usable());

        let config = conduit::Config::from_env(size, max_threads);
        let interface = OpenInterface::open(interface_ranks(&boot), &config)
            .unwrap_or_else(|e| no_interface(&e));
        let peers = find_peers(&boot, &interface);
        let conduit =
            JobConduit::open(interface, config, rank, peers).unwrap_or_else(|e| no_network(&e));
        let scratch = boot.host_memory.as_ref().map(|memory| {
            map_scratch(memory, local_size as usize).unwrap_or_else(|e| no_network(&e))
        });
        // A rank that returns from this exchange can send to this one.
        let limits = SegmentLimits::find(&boot.placement, boot.exchange, bound);
        boot.placement = boot.placement.with_supernodes(supernode_size);
        let stats_files = StatsFiles::open(rank, conduit.config().credit_stats);
        let job: &'static GasnetJob = Box::leak(Box::new(GasnetJob {
            mynode: rank,
            nodes: size,
            threads: choice.threads,
            conduit,
            ops: ops::Ops::new(max_threads),
            subsystem: SubsystemSlot::default(),
            handlers: am::HandlerTable::default(),
            waiting,
            limits,
            slots: ThreadSlots::new(max_threads),
            boot,
            stats_files,
            stopped_peer_reported: AtomicBool::new(false),
            scratch,
            attached: OnceBox::new(),
        }));
        if let Some(extension) = job.conduit.shared_host() {
            let (base, bytes) = extension.mapped();
            signals::set_network(base, bytes);
        }
        process::set_job(job);
        job
    }

    /// `gasnet_attach`: registers the handlers and maps the segments. Collective, a full barrier.
    ///
    /// # Errors
    /// [`GasnetError::NotInit`] the second time; [`GasnetError::BadArg`], with a message, for a
    /// bad table or a segment that is not a multiple of the page size or larger than the limit.
    pub fn attach(
        &self,
        table: &mut [am::HandlerEntry],
        internal: &[am::InternalHandler],
        len: usize,
    ) -> GasnetResult {
        if self.attached.get().is_some() {
            return Err(GasnetError::NotInit);
        }
        let page = segment::PAGE;
        if !len.is_multiple_of(page) {
            report::warn(
                format_args!(
                    "gasnet_attach(): a segment of {len} bytes is not a multiple of the page size, {page}"
                ),
                format_args!("Round it with GASNET_PAGESIZE."),
            );
            return Err(GasnetError::BadArg);
        }
        if len > self.limits.local {
            report::warn(
                format_args!(
                    "gasnet_attach(): a segment of {len} bytes was requested, but the limit of this \
                     rank is {} bytes",
                    self.limits.local
                ),
                format_args!(
                    "Request at most what gasnet_getMaxLocalSegmentSize() returns; \
                     GASNET_MAX_SEGSIZE sets that limit within the memory of this host and its \
                     processes."
                ),
            );
            return Err(GasnetError::BadArg);
        }
        self.handlers.register(table)?;
        self.handlers.register_internal(internal);
        let attached = segment::attach(&self.boot, len, env::USE_HUGEPAGES.get()).unwrap_or_else(|e| {
            report::fatal(
                format_args!(
                    "gasnet_attach(): the segments of this host cannot be mapped ({len} bytes of \
                     this rank, limit {}): {e}",
                    self.limits.local
                ),
                format_args!(
                    "Request smaller segments in all processes (GASNET_MAX_SEGSIZE bounds them), or \
                     raise the limits of the process (ulimit -v, ulimit -f)."
                ),
            )
        });
        let mine = attached.segments[self.mynode];
        let (base, bytes) = attached.segments.mapped();
        signals::set_segments(base, bytes);
        if let Some(x) = self.conduit.shared_host() {
            let (bases, lens) = (attached.bases.as_slice(), attached.lens.as_slice());
            // SAFETY: the mappings of the segments of this host, which stay until the process
            // ends.
            unsafe { x.expose_segments(mine.base, mine.len, bases, lens) };
        }
        // SAFETY: the mapping of our segment, which stays for the life of the process.
        let own = unsafe { Dst::new(mine.base, mine.len) };
        self.conduit.attach_segment(own).unwrap_or_else(|e| no_network(&e));
        if self.attached.set(Box::new(attached.segments)).is_err() {
            return Err(GasnetError::NotInit);
        }
        self.boot.barrier.barrier();
        Ok(())
    }

    /// The segments of all processes.
    ///
    /// # Panics
    /// Before `attach`; `capi` rejects calls before.
    #[inline]
    pub fn segments(&self) -> &Segments {
        self.attached.get().expect("attached")
    }

    /// The context of the calling thread.
    #[inline]
    pub fn ctx(&'static self) -> Ctx {
        let thread = match self.threads {
            ThreadMode::Seq => 0,
            _ => {
                cold_path();
                self.thread_index()
            }
        };
        Ctx { job: self, thread }
    }

    #[inline]
    fn thread_index(&self) -> u16 {
        threads::index().unwrap_or_else(|| self.new_thread())
    }

    #[cold]
    fn new_thread(&self) -> u16 {
        match threads::take(self.slots.count()) {
            Some(i) => {
                self.ops.abandon_region(i);
                self.slots.of(i).held.clear();
                i
            }
            None => report::fatal(
                format_args!(
                    "more than {} threads use the library at the same time",
                    self.slots.count()
                ),
                format_args!(
                    "End threads before starting others, or raise GASNET_MAX_THREADS (at most {}).",
                    MAX_THREADS
                ),
            ),
        }
    }

    /// Where the ranks of the job run.
    pub fn placement(&self) -> &Placement {
        &self.boot.placement
    }

    /// [`SCRATCH_BYTES`] of shared memory of each rank, by rank, zero at start; `None` unless all
    /// ranks of the job map each other's memory.
    pub fn common_scratch(&self) -> Option<Box<[*mut u8]>> {
        let scratch = self.scratch.as_ref()?;
        let placement = self.placement();
        let of = |rank| {
            let local: LocalRank = placement.local_rank_of(rank)?;
            Some(scratch.as_ptr().wrapping_add(local.index() * SCRATCH_BYTES))
        };
        placement.is_one_supernode().then(|| (0..self.nodes).map(JobRank).map(of).collect())?
    }

    /// Exits if the job has ended. One load.
    #[inline]
    pub fn leave_if_ending(&self) {
        if self.boot.exit.poll_exit().is_some() {
            exit::follow();
        }
    }

    /// Checks the process that holds what this thread waits for, if there is one: ends the job
    /// if it is dead, reports once if it is stopped.
    #[cold]
    pub(super) fn look_at_holder(&self, host: &dyn SharedHost) {
        let Some(rank) = host.blocked_by().map(LocalRank) else { return };
        let Some(pid) = self.boot.exit.pid_of(rank) else { return };
        let Some(rank) = self.placement().job_rank(rank) else { return };
        match sys::process::liveness(pid) {
            Liveness::Alive => {}
            Liveness::Stopped => {
                if !self.stopped_peer_reported.swap(true, Ordering::Relaxed) {
                    report::warn(
                        format_args!(
                            "process {rank} (pid {pid}) is stopped in the middle of a delivery to this process"
                        ),
                        format_args!(
                            "Continue it with kill -CONT {pid}, or end the job with kill {pid}."
                        ),
                    );
                }
            }
            Liveness::Dead => {
                if !exit::is_ending() {
                    report::note(format_args!(
                        "process {rank} (pid {pid}) died in the middle of a delivery to this process"
                    ));
                }
                exit::peer_died()
            }
        }
    }
}

impl JobReport for GasnetJob {
    fn write_activity(&self, line: &mut MessageLine) {
        activity::write(self, line);
    }

    fn write_stats(&self) {
        if let Some(files) = &self.stats_files {
            files.write(self);
        }
    }
}

/// What the network interface must know of the job.
fn interface_ranks(boot: &Bootstrap) -> InterfaceRanks {
    let arena = boot.host_memory.as_ref().map(|memory| {
        sys::descriptor::duplicate(memory.arena.as_raw_fd()).unwrap_or_else(|e| no_network(&e))
    });
    let placement = &boot.placement;
    InterfaceRanks {
        rank: placement.rank(),
        size: placement.size(),
        local_rank: placement.local_rank(),
        local_size: placement.local_size(),
        arena,
    }
}

/// The addresses of all ranks, by rank; every interface is open when it returns. Ends the job if
/// the ranks are not all on the same network.
fn find_peers(boot: &Bootstrap, interface: &OpenInterface) -> Vec<PortalsId> {
    let (kind, id) = (interface.kind(), interface.id());
    let mine = [kind as u32, id.nid, id.pid].map(u32::to_ne_bytes).concat();
    let mut peers = Vec::new();
    for (rank, b) in boot.exchange.exchange(&mine).ranked() {
        let word = |i: usize| u32::from_ne_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        if word(0) != kind as u32 {
            report::fatal(
                format_args!(
                    "gasnet_init(): this process runs on the network {}, but process {rank} does \
                     not",
                    kind.name()
                ),
                format_args!("Give all processes the same GASNET_NETWORK and the same library."),
            );
        }
        peers.push(PortalsId { nid: word(4), pid: word(8) });
    }
    match interface.known_peers(boot.placement.rank().0, boot.placement.size()) {
        Ok(known) => known.unwrap_or(peers),
        Err(e) => no_interface(&e),
    }
}

fn map_scratch(memory: &HostMemory, local_size: usize) -> std::io::Result<Mapping> {
    let len = local_size * SCRATCH_BYTES;
    sys::memory::reserve(memory.scratch.as_fd(), 0, len as u64)?;
    Mapping::shared(memory.scratch.as_fd(), 0, len)
}

fn no_interface(e: &dyn core::fmt::Display) -> ! {
    report::fatal(
        format_args!("gasnet_init(): the Portals network cannot be set up: {e}"),
        format_args!("{}", conduit::network::chosen().remedy()),
    )
}

fn no_network(e: &dyn core::fmt::Display) -> ! {
    report::fatal(
        format_args!("gasnet_init(): the Portals network cannot be set up: {e}"),
        format_args!(
            "Free memory, start fewer processes, or lower GASNET_PORTAL_SB_CHUNKS and GASNET_PORTAL_AMRECV_SPACE."
        ),
    )
}
