//! The job: everything that a process knows of it, made by `gasnet_init`, completed by `gasnet_attach`.
//!
//! A [`GasnetJob`] is made once and lives until the process ends. What `attach` adds is written once ([`GasnetJob::segments`]);
//! everything else is read-only or has its own rules (conduit, operations, handlers).

use super::environment;
use super::segment::{self, SegmentLimits, Segments, Supernodes};
use super::subsystem::SubsystemSlot;
use super::threads::{self, Ctx, ThreadSlots};
use super::wait::Waiting;
use super::{GasnetError, GasnetResult, activity, am, counters, exit, ops, signals};
use crate::boot::control::JobControl;
use crate::boot::{self, Bootstrap};
use crate::client_memory::Dst;
use crate::conduit;
use crate::conduit::network::{JobConduit, OpenInterface};
use crate::conduit::portals::{PortalsId, SharedHost};
use crate::limits::MAX_THREADS;
use crate::{env, report, trace};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use once_cell::race::OnceBox;
use std::os::fd::AsFd;
use sys::hint::cold_path;
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
    /// What the extended room keeps.
    pub subsystem: SubsystemSlot,
    /// Registered handlers.
    pub handlers: am::HandlerTable,
    /// How to wait.
    pub waiting: Waiting,
    /// SegmentLimits of the segments.
    pub limits: SegmentLimits,
    /// Who maps whose segment.
    pub supernodes: Supernodes,
    pub(super) slots: ThreadSlots,
    boot: Box<dyn Bootstrap>,
    control: &'static JobControl,
    stopped_peer_told: AtomicBool,
    scratch: sys::memory::Mapping,
    attached: OnceBox<Segments>,
}

/// Bytes of [`GasnetJob::scratch`] of each process of a host.
pub const SCRATCH_BYTES: usize = 4096;

impl GasnetJob {
    /// Starts this process's part of the job. Collective; ends the process with a message if that is impossible.
    pub fn start(choice: ClientChoice) -> &'static GasnetJob {
        let boot = boot::start().unwrap_or_else(|e| {
            report::fatal(format_args!("gasnet_init(): {}", e.cause), format_args!("{}", e.remedy))
        });
        report::set_rank(boot.rank());
        environment::settle(&*boot);
        trace::open(boot.rank());
        exit::install(boot.control());
        signals::install(boot.control());
        let (rank, size) = (boot.rank(), boot.size());
        let max_threads = match choice.threads {
            ThreadMode::Seq => 1,
            _ => env::MAX_THREADS.get() as usize,
        };
        let bound = env::MAX_SEGSIZE
            .get()
            .map(|n| n as u64)
            .or((choice.max_segsize != 0).then_some(choice.max_segsize));
        let supernodes = match env::SUPERNODE_MAXSIZE.get() {
            0 => Supernodes { size: u32::MAX },
            size => Supernodes { size },
        };
        let waiting =
            Waiting::new(env::WAITMODE.get(), boot.host().local_size as usize, sys::cpu::usable());

        let config = conduit::Config::from_env(size, max_threads);
        let interface = OpenInterface::open(&*boot, &config).unwrap_or_else(|e| no_interface(&e));
        let peers = find_peers(&*boot, &interface);
        let conduit =
            JobConduit::open(interface, config, rank, peers).unwrap_or_else(|e| no_network(&e));
        let scratch = map_scratch(boot.host()).unwrap_or_else(|e| no_network(&e));
        // Whoever returns from this may send to us.
        let limits = SegmentLimits::find(&*boot, bound);
        let job = GasnetJob {
            mynode: rank,
            nodes: size,
            threads: choice.threads,
            conduit,
            ops: ops::Ops::new(max_threads),
            subsystem: SubsystemSlot::default(),
            handlers: am::HandlerTable::default(),
            waiting,
            limits,
            supernodes,
            slots: ThreadSlots::new(max_threads),
            control: boot.control(),
            boot,
            stopped_peer_told: AtomicBool::new(false),
            scratch,
            attached: OnceBox::new(),
        };
        if let Some(extension) = job.conduit.shared_host() {
            let (base, bytes) = extension.mapped();
            signals::set_network(base, bytes);
        }
        let job: &'static GasnetJob = Box::leak(Box::new(job));
        counters::open(job);
        activity::open(job);
        job
    }

    /// `gasnet_attach`: registers the handlers and maps the segments. Collective, a full barrier.
    ///
    /// # Errors
    /// [`GasnetError::NotInit`] the second time, [`GasnetError::BadArg`] for a bad table or a segment that is no multiple of the page
    /// size or larger than the limit, each after a line that says so.
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
                    "gasnet_attach(): a segment of {len} bytes was asked for, but at most {} bytes can be granted here",
                    self.limits.local
                ),
                format_args!(
                    "Ask for no more than gasnet_getMaxLocalSegmentSize() says; GASNET_MAX_SEGSIZE lowers or raises its \
                     bound within what the memory of this machine and its processes allow."
                ),
            );
            return Err(GasnetError::BadArg);
        }
        self.handlers.register(table)?;
        self.handlers.register_internal(internal);
        let attached = segment::attach(&*self.boot, self.supernodes, len, env::USE_HUGEPAGES.get()).unwrap_or_else(|e| {
            report::fatal(
                format_args!(
                    "gasnet_attach(): the segments of this host could not be mapped; {len} bytes were asked for here, {} are \
                     the limit: {e}",
                    self.limits.local
                ),
                format_args!(
                    "Ask for smaller segments in all processes (GASNET_MAX_SEGSIZE bounds them), or raise the limits of the \
                     process (ulimit -v, ulimit -f)."
                ),
            )
        });
        let mine = attached.segments[self.mynode];
        let (base, bytes) = attached.segments.mapped();
        signals::set_segments(base, bytes);
        if let Some(x) = self.conduit.shared_host() {
            // SAFETY: these are the mappings of the segments of this host, which stay for the life of the process.
            unsafe { x.expose_segments(mine.base, mine.len, &attached.bases, &attached.lens) };
        }
        // SAFETY: the mapping of our segment, which stays for the life of the process.
        let own = unsafe { Dst::new(mine.base, mine.len) };
        self.conduit.attach_segment(own).unwrap_or_else(|e| no_network(&e));
        if self.attached.set(Box::new(attached.segments)).is_err() {
            return Err(GasnetError::NotInit);
        }
        self.boot.barrier();
        Ok(())
    }

    /// The segments of all processes.
    ///
    /// # Panics
    /// Before `attach`; `capi` lets nobody in before.
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
                    "Let threads end before others start, or raise GASNET_MAX_THREADS (at most {}).",
                    MAX_THREADS
                ),
            ),
        }
    }

    /// The process that hosts this rank, and its place there.
    pub fn host(&self) -> &boot::HostMemory {
        self.boot.host()
    }

    /// [`SCRATCH_BYTES`] of shared memory of the process with this rank on our host, zero at start.
    pub fn scratch(&self, local_rank: u32) -> *mut u8 {
        assert!(local_rank < self.boot.host().local_size);
        // SAFETY: the mapping holds SCRATCH_BYTES for each process of the host, and local_rank is one of them.
        unsafe { self.scratch.as_ptr().add(local_rank as usize * SCRATCH_BYTES) }
    }

    /// That memory of each process, by rank, if all of the job map each other's segments.
    pub fn common_scratch(&self) -> Option<Box<[*mut u8]>> {
        let all = self.host().local_size == self.nodes && self.supernodes.size >= self.nodes;
        // Where every process of the job is on this host, ranks on the host are ranks.
        all.then(|| (0..self.nodes).map(|rank| self.scratch(rank)).collect())
    }

    /// Leaves this process if somebody has ended the job. One load.
    #[inline]
    pub fn leave_if_ending(&self) {
        if self.control.poll_exit().is_some() {
            exit::follow();
        }
    }

    /// Looks at the process that holds what we have been waiting for, if there is one: ends the job if it is dead,
    /// tells once if it is stopped.
    #[cold]
    pub(super) fn look_at_holder(&self, host: &dyn SharedHost) {
        let Some(local_rank) = host.blocked_by() else { return };
        let Some(pid) = self.control.pid_of(local_rank) else { return };
        match sys::process::liveness(pid) {
            Liveness::Alive => {}
            Liveness::Stopped => {
                if !self.stopped_peer_told.swap(true, Ordering::Relaxed) {
                    report::warn(
                        format_args!(
                            "process {local_rank} (pid {pid}) is stopped in the middle of a delivery to this process"
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
                        "process {local_rank} (pid {pid}) died in the middle of a delivery to this process"
                    ));
                }
                exit::lost()
            }
        }
    }
}

/// The addresses of all processes, by rank; every interface is open when it returns. Ends the job if they are not all on the
/// same network.
fn find_peers(boot: &dyn Bootstrap, interface: &OpenInterface) -> Vec<PortalsId> {
    let (kind, id) = (interface.kind(), interface.id());
    let mine = [kind as u32, id.nid, id.pid].map(u32::to_ne_bytes).concat();
    let mut peers = Vec::new();
    for (rank, b) in boot.exchange(&mine).iter().enumerate() {
        let word = |i: usize| u32::from_ne_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        if word(0) != kind as u32 {
            report::fatal(
                format_args!(
                    "gasnet_init(): this process runs on the network {}, but process {rank} does not",
                    kind.name()
                ),
                format_args!("Give all processes the same GASNET_NETWORK and the same library."),
            );
        }
        peers.push(PortalsId { nid: word(4), pid: word(8) });
    }
    match interface.known_peers(boot.rank(), boot.size()) {
        Ok(known) => known.unwrap_or(peers),
        Err(e) => no_interface(&e),
    }
}

fn map_scratch(host: &boot::HostMemory) -> std::io::Result<sys::memory::Mapping> {
    let len = host.local_size as usize * SCRATCH_BYTES;
    sys::memory::reserve(host.scratch.as_fd(), 0, len as u64)?;
    sys::memory::Mapping::shared(host.scratch.as_fd(), 0, len)
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
