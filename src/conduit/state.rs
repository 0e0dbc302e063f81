//! The conduit over one Portals interface: all that it owns, and where its peers are.
//!
//! Opened by `network`; the files that send, receive and wait are written as methods of
//! [`Conduit`]. Invariant: this file uses none of them, and what it owns knows nothing of it.

use super::arrived::{AmConsumer, ArrivedReply, ArrivedRequest};
use super::client_thread::ClientThread;
use super::config::Config;
use super::credits::Credits;
use super::implicit::ImplicitReplies;
use super::large_areas::LargeAreas;
use super::lid_cache::LidCache;
use super::loss_search::LossSearch;
use super::outbox::Outbox;
use super::pieces::{OpenPayloads, StashedReplies};
use super::pinned::{ExposedSegments, PinnedMemory};
use super::pinned_config::SegmentBlocks;
use super::portals::{
    MdPart, Portals, PortalsError, PortalsId, SharedHost, Target, TrafficCounters,
};
use super::queue::EventQueue;
use super::rar::{ExposedMemory, Rar};
use super::reqrb::ReqRb;
use super::reqsb::ReqSb;
use super::rplsb::RplSb;
use super::sync::ParLock;
use super::system::Sys;
use super::tickets::Tickets;
use super::tmpmd::TmpMd;
use super::upcall::Upcall;
use crate::client_memory::{Dst, Src};
use crate::rank::{ByJobRank, JobRank};
use crate::report;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use once_cell::race::OnceBox;
use sys::hint::cold_path;

/// How often things happened that well chosen parameters make rare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConduitStats {
    /// Request receive buffers that were attached again.
    pub refreshes: u64,
    /// Requests that had to wait for credits.
    pub credit_stalls: u64,
    /// Requests whose handlers had to wait for a receive buffer to be refreshed.
    pub requests_waited: u64,
    /// Replies that arrived inside a handler and were deferred.
    pub replies_deferred: u64,
    /// Requests that reached the catch basin; the first one ends the job.
    pub caught: u64,
}

#[derive(Default)]
pub(super) struct StatCounters {
    pub(super) credit_stalls: AtomicU64,
    pub(super) requests_waited: AtomicU64,
    pub(super) replies_deferred: AtomicU64,
    pub(super) caught: AtomicU64,
}

/// The conduit over one Portals interface.
///
/// At most [`Config::threads`] threads call at the same time, each with its own
/// [`Upcall::thread`]; if that is 1, no two calls ever overlap.
pub struct Conduit<P: Portals> {
    pub(super) portals: P,
    pub(super) config: Config,
    pub(super) me: JobRank,
    pub(super) peers: Box<[PortalsId]>,
    pub(super) threads: Box<[CachePadded<ClientThread>]>,
    pub(super) tickets: Tickets,
    pub(super) credits: Credits,
    pub(super) safe: EventQueue<P, ()>,
    pub(super) am: EventQueue<P, AmConsumer>,
    /// How many requests wait in the taker of `am`.
    pub(super) waiting: AtomicU32,
    pub(super) sys: Sys<P>,
    pub(super) outbox: Outbox,
    pub(super) large_areas: LargeAreas,
    /// Payloads of requests and of replies that arrive in pieces.
    pub(super) request_payloads: OpenPayloads,
    pub(super) reply_payloads: OpenPayloads,
    pub(super) stashed_replies: StashedReplies,
    /// How many payloads of requests this process has sent in pieces.
    pub(super) payloads_sent: AtomicU64,
    pub(super) reqsb: ReqSb<P>,
    pub(super) rplsb: RplSb<P>,
    pub(super) reqrb: ReqRb<P>,
    pub(super) tmpmd: TmpMd<P>,
    pub(super) request_lids: LidCache<ArrivedRequest, Dst<'static>>,
    pub(super) reply_lids: LidCache<ArrivedReply, Dst<'static>>,
    pub(super) implicit: ImplicitReplies,
    pub(super) lost: ParLock<LossSearch>,
    pub(super) rar: OnceBox<Rar<P>>,
    pub(super) pinned: OnceBox<PinnedMemory<P>>,
    pub(super) stats: StatCounters,
}

impl<P: Portals> core::fmt::Debug for Conduit<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Conduit")
            .field("me", &self.me)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl<P: Portals> Conduit<P> {
    /// Allocates queues, buffers and memory descriptors; `peers` is indexed by rank. Peers may
    /// send to us when this has returned in every process (the caller's barrier); active messages
    /// and system messages work from then on.
    ///
    /// # Errors
    /// The Portals call that failed; `PTL_NO_SPACE` mostly.
    pub fn open(
        portals: P,
        config: Config,
        me: JobRank,
        peers: Vec<PortalsId>,
    ) -> Result<Self, PortalsError> {
        let mut config = config;
        config.max_transfer = config.max_transfer.min(portals.max_transfer());
        let (par, pt) = (config.par(), config.pt_am);
        let [safe_events, am_events, sys_events] = config.event_counts();
        let safe = EventQueue::open(&portals, par, "SAFE_EQ", safe_events, ())?;
        let am = EventQueue::open(&portals, par, "AM_EQ", am_events, AmConsumer::default())?;
        // Order on the list of this portal table entry, most frequent first: ReqSB (replies),
        // ReqHdr, ReqRB, catch basin, SYS. ReqRB inserts itself before the catch basin.
        let reqsb = ReqSb::open(&portals, pt, par, config.sb_chunks, &safe.eq)?;
        let rplsb = RplSb::open(&portals, par, config.rpl_chunks, &safe.eq, config.registers)?;
        let reqrb = ReqRb::open(&portals, &config, &am.eq)?;
        let sys = Sys::open(&portals, pt, par, sys_events)?;
        let outbox = Outbox::open(&portals, &config, me)?;
        let large_areas = LargeAreas::open(&portals, &config)?;
        Ok(Conduit {
            tickets: Tickets::new(par, config.msg_limit),
            credits: Credits::new(config.credit_setup(), me),
            tmpmd: TmpMd::new(par, config.num_tmpmd, &safe.eq),
            threads: (0..config.threads).map(|_| CachePadded::new(ClientThread::new())).collect(),
            request_lids: LidCache::new(par),
            reply_lids: LidCache::new(par),
            implicit: ImplicitReplies::new(&config),
            request_payloads: OpenPayloads::new(par),
            reply_payloads: OpenPayloads::new(par),
            stashed_replies: StashedReplies::new(par),
            payloads_sent: AtomicU64::new(0),
            lost: ParLock::new(par, LossSearch::default()),
            rar: OnceBox::new(),
            pinned: OnceBox::new(),
            stats: StatCounters::default(),
            waiting: AtomicU32::new(0),
            peers: peers.into_boxed_slice(),
            portals,
            config,
            me,
            safe,
            am,
            sys,
            outbox,
            large_areas,
            reqsb,
            rplsb,
            reqrb,
        })
    }

    /// Attaches the descriptors of what peers may put to and get from. Puts, gets and Longs work
    /// after a barrier by the caller.
    ///
    /// # Errors
    /// The Portals call that failed.
    ///
    /// # Panics
    /// The second time.
    pub fn expose(&self, memory: ExposedMemory) -> Result<(), PortalsError> {
        let (safe, am) = (&self.safe.eq, &self.am.eq);
        let rar = Rar::attach(&self.portals, self.config.pt_rar, memory, safe, am)?;
        assert!(self.rar.set(Box::new(rar)).is_ok(), "memory is exposed once");
        Ok(())
    }

    /// After [`Conduit::expose`] of a segment: ranks of other hosts may use it without calls of
    /// this one, if the network can.
    ///
    /// # Errors
    /// The Portals call that failed.
    pub fn expose_remotely(
        &self,
        blocks: impl FnOnce() -> SegmentBlocks,
    ) -> Result<(), PortalsError> {
        self.rar().expose_remotely(&self.portals, blocks)
    }

    /// [`Conduit::expose`] where memory is registered on demand, as [`Config::pinned`] says.
    /// `region_bytes`: what all ranks agreed on, if peers name regions. `addresses`: where the
    /// segments of all ranks start, multiples of it; used where these are registered on demand.
    ///
    /// # Errors
    /// The Portals call that failed.
    ///
    /// # Panics
    /// The second time.
    pub fn expose_registered(
        &'static self,
        memory: ExposedMemory,
        region_bytes: Option<usize>,
        addresses: impl FnOnce() -> ByJobRank<usize>,
    ) -> Result<(), PortalsError> {
        self.expose(memory)?;
        if let Some(config) = &self.config.pinned {
            let (eq, par, tickets) = (&self.safe.eq, self.config.par(), self.config.msg_limit);
            let config = match region_bytes {
                Some(bytes) => config.clone().with_regions_of(bytes),
                None => config.clone(),
            };
            let exposed = memory
                .segment_on_demand()
                .map(|own| ExposedSegments { own, addresses: addresses() });
            let pinned =
                PinnedMemory::open(&self.portals, eq, config, exposed, self.me, par, tickets)?;
            assert!(self.pinned.set(Box::new(pinned)).is_ok(), "memory is exposed once");
        }
        Ok(())
    }

    /// Whether the network reaches all memory of a rank without a call of that rank; `None` if it
    /// does not say.
    pub fn attaches(&self, rank: JobRank) -> Option<bool> {
        Some(self.portals.shared_host()?.attaches(self.peers[rank.index()]))
    }

    /// The fast path to a process, unless `GASNET_PORTAL_AT_ONCE` turns it off.
    #[inline(always)]
    pub(super) fn direct(&self, process: PortalsId) -> Option<&P::Direct> {
        if !self.config.at_once {
            cold_path();
            return None;
        }
        self.portals.direct(process)
    }

    #[inline]
    pub(super) fn rar(&self) -> &Rar<P> {
        match self.rar.get() {
            Some(rar) => rar,
            None => self.not_exposed(),
        }
    }

    /// These bytes as a part of the memory that we expose; `None` if they lie elsewhere, or if
    /// this rank exposes none. Then it may put and get nevertheless.
    #[inline]
    pub(super) fn own_part(&self, bytes: Src<'_>) -> Option<MdPart<P::Md>> {
        self.rar.get()?.local(bytes)
    }

    /// Ends the job: no memory is exposed yet.
    #[cold]
    pub(super) fn not_exposed(&self) -> ! {
        report::fatal(
            format_args!("rank {} has no segment that a put, get or Long could name", self.me),
            format_args!("Call gasnet_attach, gex_Segment_Attach or gex_EP_BindSegment first."),
        )
    }

    /// Where an active message to a rank goes.
    #[inline(always)]
    pub(super) fn am_target(
        &self,
        rank: JobRank,
        bits: u64,
        offset: usize,
        hdr_data: u64,
    ) -> Target {
        let process = self.peers[rank.index()];
        Target { process, portal: self.config.pt_am, bits, offset, hdr_data }
    }

    /// The segment of a rank, from `offset` on, as the target of a put or get.
    #[inline]
    pub(super) fn in_segment(&self, rank: JobRank, offset: usize, bits: u64) -> Target {
        let process = self.peers[rank.index()];
        Target { process, portal: self.config.pt_rar, bits, offset, hdr_data: 0 }
    }

    /// The library memory of a rank as mapped here, if it is.
    #[inline(always)]
    pub(super) fn library_memory(&self, rank: JobRank) -> Option<Dst<'static>> {
        self.outbox.memory_of(rank, || {
            self.portals.shared_host()?.library_memory(self.peers[rank.index()])
        })
    }

    /// The record of the calling thread.
    #[inline(always)]
    pub(super) fn thread<U: Upcall>(&self, up: U) -> &ClientThread {
        &self.threads[up.thread()]
    }

    /// Whether the calling thread is inside a handler.
    #[inline]
    pub(super) fn in_handler<U: Upcall>(&self, up: U) -> bool {
        self.thread(up).in_handler.load(Ordering::Relaxed)
    }

    /// How many messages, and so completions, a put or get of `n` bytes takes; 0 for none.
    #[inline]
    pub fn fragments(&self, n: usize) -> u32 {
        if n <= self.config.max_transfer { u32::from(n != 0) } else { self.fragments_of_large(n) }
    }

    /// [`Conduit::fragments`] of more than one message; a transfer of registered memory is one.
    #[cold]
    fn fragments_of_large(&self, n: usize) -> u32 {
        n.checked_div(self.config.max_transfer)
            .map_or(1, |_| n.div_ceil(self.config.max_transfer) as u32)
    }

    /// Credits that this process has lent to us, those in use included, if they are limited and no
    /// thread is changing them. Async-signal-safe.
    pub fn credits(&self, rank: JobRank) -> Option<u32> {
        self.credits.lent_by(rank)
    }

    /// What travelled through our interface.
    pub fn counters(&self) -> TrafficCounters {
        self.portals.counters()
    }

    /// What the network shares with the processes of this host: memory, a doorbell.
    pub fn shared_host(&self) -> Option<&dyn SharedHost> {
        self.portals.shared_host()
    }

    /// Whether puts and gets of peers complete while this process sleeps.
    pub fn has_bypass(&self) -> bool {
        self.portals.has_bypass()
    }

    /// Calls `send`, which initiates several messages to a rank of another host. They leave
    /// together, if the network can.
    pub fn together(&self, send: &mut dyn FnMut()) {
        self.portals.together(send);
    }

    /// Whether puts and gets of ranks of other hosts complete only in calls of their target.
    /// `exposed`: they are in a segment, which the network may access. All ranks are taken to have
    /// the same `GASNET_PROGRESS`.
    pub fn wire_waits_for_calls(&self, exposed: bool) -> bool {
        let bypasses = self.config.wire_thread || exposed && self.portals.has_remote_bypass();
        !bypasses
    }

    /// How often things happened that well chosen parameters make rare.
    pub fn stats(&self) -> ConduitStats {
        ConduitStats {
            refreshes: self.reqrb.refreshes(),
            credit_stalls: self.stats.credit_stalls.load(Ordering::Relaxed),
            requests_waited: self.stats.requests_waited.load(Ordering::Relaxed),
            replies_deferred: self.stats.replies_deferred.load(Ordering::Relaxed),
            caught: self.stats.caught.load(Ordering::Relaxed),
        }
    }

    /// Writes the movements of credits as text, if [`Config::credit_stats`] requests them.
    /// Async-signal-safe as far as `out` is.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_credit_stats(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        self.credits.write_stats(out)
    }

    /// The parameters of this conduit.
    pub fn config(&self) -> &Config {
        &self.config
    }
}
