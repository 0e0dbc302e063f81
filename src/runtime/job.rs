//! The job as one rank knows it, and the context of a call.
//!
//! Made by `start`, then passed to every call in its [`Ctx`]. Invariant: a [`GasnetJob`] is made
//! once and lives until the process ends. What `attach` adds is written once
//! ([`Endpoint::segments`]); all else is read-only or guards itself (conduit, operations,
//! handlers).

use super::client::{GasnetClient, ThreadMode};
use super::counters::StatsFiles;
use super::endpoint::Endpoint;
use super::ops::Ops;
use super::scratch::HostScratch;
use super::segment::SegmentLimits;
use super::subsystem::SubsystemSlot;
use super::team::JobTeam;
use super::threads::{self, ThreadSlot, ThreadSlots};
use super::wait_mode::Waiting;
use crate::boot::bootstrap::Bootstrap;
use crate::boot::placement::Placement;
use crate::client_memory::Dst;
use crate::limits::MAX_THREADS;
use crate::process::exit;
use crate::report;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sys::hint::cold_path;

/// One process's view of the job.
#[derive(Debug)]
pub struct GasnetJob {
    /// The client.
    pub client: GasnetClient,
    /// All ranks.
    pub team: JobTeam,
    /// The endpoint of this rank.
    pub endpoint: Endpoint<Ctx>,
    /// Operations in flight.
    pub ops: Ops,
    /// State of the layer `extended`.
    pub subsystem: SubsystemSlot<Ctx>,
    /// How to wait.
    pub waiting: Waiting,
    /// Limits of the segments.
    pub limits: SegmentLimits,
    pub(super) slots: ThreadSlots,
    pub(super) boot: Bootstrap,
    pub(super) stats_files: Option<StatsFiles>,
    pub(super) stopped_peer_reported: AtomicBool,
    /// When a thread last looked for what blocks it.
    pub(super) looked: AtomicU64,
    /// That of the host, if its ranks share memory.
    pub(super) scratch: Option<HostScratch>,
}

#[cold]
fn too_many_threads(limit: usize) -> ! {
    let remedy = format_args!("End threads before starting others.");
    let raise = format_args!(
        "End threads before starting others, or raise GASNET_MAX_THREADS (at most {MAX_THREADS})."
    );
    report::fatal(
        format_args!("more than {limit} threads use the library at the same time"),
        if limit < MAX_THREADS { raise } else { remedy },
    )
}

/// The context of a call: which client calls, in which thread, with which endpoint, team and
/// bound segment. GASNet-1 has one of each in a job, so a context is a reference to the job and
/// the thread. Small and `Copy`; handed down through all layers.
#[derive(Clone, Copy, Debug)]
pub struct Ctx {
    /// The job.
    pub job: &'static GasnetJob,
    /// The words of the calling thread.
    pub slot: &'static ThreadSlot,
}

impl GasnetJob {
    /// The context of the calling thread.
    pub fn ctx(&'static self) -> Ctx {
        let slot = match self.client.threads {
            ThreadMode::Seq => self.slots.first(),
            _ => {
                cold_path();
                self.slots.of(threads::index().unwrap_or_else(|| self.new_thread()))
            }
        };
        Ctx { job: self, slot }
    }

    #[cold]
    fn new_thread(&self) -> u16 {
        match self.take_index(false) {
            Some(slot) => slot.index,
            None => too_many_threads(self.slots.count()),
        }
    }

    /// Gives the calling thread an index, if one is free.
    fn take_index(&self, for_locks: bool) -> Option<&'static ThreadSlot> {
        let i = threads::take(self.slots.count())?;
        self.ops.abandon_region(i);
        let slot = self.slots.of(i);
        slot.check_left();
        slot.for_locks.store(for_locks, Ordering::Relaxed);
        slot.owners.fetch_add(1, Ordering::Relaxed);
        slot.held.clear();
        Some(slot)
    }

    /// As [`GasnetJob::ctx`], for a call that only concerns locks. A thread without an index has
    /// one until [`Ctx::end_lock_call`] finds that it holds nothing. `None` if no index is free.
    pub fn ctx_for_locks(&'static self) -> Option<Ctx> {
        if self.client.threads == ThreadMode::Seq || threads::index().is_some() {
            return Some(self.ctx());
        }
        Some(Ctx { job: self, slot: self.take_index(true)? })
    }

    /// Threads that may call at the same time.
    pub fn max_threads(&self) -> usize {
        self.slots.count()
    }

    /// Where the ranks of the job run.
    pub fn placement(&self) -> &Placement {
        &self.boot.placement
    }

    /// The scratch memory of each rank, by rank; `None` unless all ranks of the job map each
    /// other's memory.
    pub fn common_scratch(&self) -> Option<Box<[&'static [AtomicU64]]>> {
        let scratch = self.scratch.as_ref()?;
        let placement = self.placement();
        let of = |rank| scratch.part(placement.local_rank_of(rank)?);
        placement.is_one_supernode().then(|| self.team.ranks().map(of).collect())?
    }

    /// Exits if the job has ended. One load.
    pub fn leave_if_ending(&self) {
        if self.boot.exit.must_exit() {
            exit::follow_when_due();
        }
    }
}

impl Ctx {
    /// The client that calls.
    #[inline(always)]
    pub fn client(self) -> &'static GasnetClient {
        &self.job.client
    }

    /// The endpoint that the call uses.
    #[inline(always)]
    pub fn endpoint(self) -> &'static Endpoint<Ctx> {
        &self.job.endpoint
    }

    /// The team whose ranks the call names.
    #[inline(always)]
    pub fn team(self) -> &'static JobTeam {
        &self.job.team
    }

    /// The segment that is bound to the endpoint; `None` before `gasnet_attach`.
    pub fn segment(self) -> Option<Dst<'static>> {
        self.job.endpoint.bound_segment()
    }

    /// Index of the calling thread, 0 in SEQ, below [`MAX_THREADS`].
    pub fn thread_index(self) -> u16 {
        self.slot.index
    }

    /// Names the calling thread among all that this process has had: its index, and how many
    /// threads have had that.
    pub fn thread_name(self) -> (u16, u32) {
        (self.slot.index, self.slot.owners.load(Ordering::Relaxed))
    }

    /// Whether the thread with this name has not ended; not in SEQ.
    pub fn is_live(self, (index, owners): (u16, u32)) -> bool {
        let slot = self.job.slots.of(index);
        slot.owners.load(Ordering::Relaxed) == owners && threads::is_live(index)
    }

    /// Ends a call with the context of [`GasnetJob::ctx_for_locks`].
    pub fn end_lock_call(self) {
        if self.slot.for_locks.load(Ordering::Relaxed) && self.slot.held.is_empty() {
            threads::give_back(self.slot);
        }
    }

    /// Whether this thread is running a handler.
    pub fn in_handler(self) -> bool {
        !self.slot.token.load(Ordering::Relaxed).is_null()
    }
}
