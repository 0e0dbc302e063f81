//! The portals-conduit: GASNet's puts, gets and active messages in terms of Portals 3.3.
//!
//! Opened by `runtime::job`, called through [`network::JobConduit`]. Generic over
//! [`portals::Portals`]; what comes up from the network goes to the [`Upcall`] that every call is
//! handed. Invariant: the conduit imports nothing of the layers above it.
//!
//! One file for each noun of the README of GASNet's portals-conduit:
//!
//! | file | noun |
//! |---|---|
//! | `rar`, `reqsb`, `rplsb`, `reqrb`, `tmpmd`, `system` | the descriptors, and the memory behind them |
//! | `queue`, `safe`, `am_recv`, `reply`, `system` | the event queues, and what each event does |
//! | `message` | what the conduit carries, as the layers above name it |
//! | `put`, `get`, `am_plan`, `am_send`, `am_body` | operations and messages that leave; the bodies of messages |
//! | `match_bits`, `user` | what travels in match bits; which descriptor an event is about |
//! | `tickets`, `credits`, `lid_cache` | limits of the traffic; halves of Longs |
//! | `implicit` | replies of handlers that sent none |
//! | `outbox` | payloads that stay at their sender |
//! | `wait` | polls, waiting for resources |
//! | `prefetch` | where the next message is expected |
//! | `config`, `memory`, `sync`, `primitive` | parameters; buffers; locks and lists; atomics, which models replace |
//! | `portals` | the Portals calls that the conduit makes, and their implementations |
//! | `network` | the conduit over each Portals of the build |
//!
//! # Polling
//!
//! A poll serves SYS_EQ completely, then SAFE_EQ up to a limit, then AM_EQ up to a limit. AM_EQ is
//! served only with everything in hand that a handler's reply may need. SAFE_EQ may be served at
//! any time: its events only give resources back. A thread waits with SAFE polls for what its own
//! events give back (tickets, temporary descriptors, departure of data). It waits with full polls
//! for what replies give back (credits, ReqSB chunks), since peers that wait for us in the same
//! state must get our replies. Handlers never nest on a thread and run with no lock held; any
//! thread may run any of them.
#![cfg_attr(not(test), deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc))]

mod am_body;
mod am_plan;
mod am_recv;
mod am_send;
mod config;
pub mod credits;
mod get;
mod implicit;
mod lid_cache;
mod match_bits;
mod memory;
mod message;
pub mod network;
mod outbox;
pub mod portals;
mod prefetch;
mod primitive;
mod put;
mod queue;
mod rar;
mod reply;
mod reqrb;
mod reqsb;
mod rplsb;
mod safe;
mod sync;
mod system;
#[cfg(test)]
mod tests;
mod tickets;
mod tmpmd;
mod user;
mod wait;

pub use config::Config;
pub use credits::MIN_CREDITS;
pub use message::{
    AmMessage, CHUNK, Category, MAX_ARGS, MAX_NODES, OpId, Outgoing, SystemMessage,
};

use crate::client_memory::Dst;
use crate::rank::JobRank;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use once_cell::race::OnceBox;
use portals::{Portals, PortalsError, PortalsId, SharedHost};
use sys::hint::cold_path;

/// What a sender waits for, as a report names it.
#[derive(Clone, Copy, Debug)]
pub struct ResourceNeed {
    /// What.
    pub what: &'static &'static str,
    /// The rank that must give it back, if it is one.
    pub peer: Option<JobRank>,
}

impl ResourceNeed {
    /// Not of one rank.
    pub(crate) const fn of(what: &'static &'static str) -> ResourceNeed {
        ResourceNeed { what, peer: None }
    }
}

/// What the upper layer does for the conduit: a small `Copy` context that is passed with every
/// call.
pub trait Upcall: Copy {
    /// Index of the calling thread, below [`Config::threads`]; indexes per-thread caches.
    fn thread(self) -> usize;
    /// Runs the handler of a request. The handler may call [`Conduit::reply`] with `token` at
    /// most once; if it does not, the conduit sends the implicit reply afterwards.
    fn run_request(self, token: &mut ReplyToken, message: AmMessage<'_>);
    /// Runs the handler of a reply.
    fn run_reply(self, message: AmMessage<'_>);
    /// One of the [`Conduit::fragments`] of the put or get with this id is complete.
    fn op_done(self, op: OpId);
    /// A system message of process `source` that is not the conduit's own.
    fn system(self, source: JobRank, message: SystemMessage) {
        let _ = (source, message);
    }
    /// Called between two polls of a wait for resources; `round` counts from 0. Checks whether
    /// the job is ending, and spins, yields or sleeps as the wait mode says. `need` is what is
    /// waited for.
    fn pause(self, round: u32, need: ResourceNeed);
}

/// What a request handler needs to send its reply; made by the conduit, one per request.
#[derive(Debug)]
pub struct ReplyToken {
    /// Rank of the requester.
    pub source: JobRank,
    /// The chunk of the requester's ReqSB that the reply goes to.
    chunk: u32,
    /// The credit field that the request carried.
    credit: u16,
    replied: bool,
    kit: am_recv::ReplyKit,
}

impl ReplyToken {
    /// Whether a reply has been sent with this token.
    pub fn replied(&self) -> bool {
        self.replied
    }
}

/// How often things happened that well chosen figures make rare.
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
struct StatCounters {
    credit_stalls: AtomicU64,
    requests_waited: AtomicU64,
    replies_deferred: AtomicU64,
    caught: AtomicU64,
}

/// The conduit over one Portals interface.
///
/// At most [`Config::threads`] threads call at the same time, each with its own
/// [`Upcall::thread`]; if that is 1, no two calls ever overlap.
pub struct Conduit<P: Portals> {
    portals: P,
    config: Config,
    me: JobRank,
    peers: Box<[PortalsId]>,
    threads: Box<[CachePadded<wait::ClientThread>]>,
    tickets: tickets::Tickets,
    credits: credits::Credits,
    safe: queue::EventQueue<P, ()>,
    am: queue::EventQueue<P, am_recv::AmConsumer>,
    /// How many requests wait in the taker of `am`.
    waiting: AtomicU32,
    request_prefetch: prefetch::PayloadPrefetch,
    reply_prefetch: prefetch::PayloadPrefetch,
    sys: system::Sys<P>,
    outbox: outbox::Outbox,
    reqsb: reqsb::ReqSb<P>,
    rplsb: rplsb::RplSb<P>,
    reqrb: reqrb::ReqRb<P>,
    tmpmd: tmpmd::TmpMd<P>,
    request_lids: lid_cache::LidCache<am_recv::ArrivedRequest, Dst<'static>>,
    reply_lids: lid_cache::LidCache<reply::ArrivedReply, Dst<'static>>,
    implicit: implicit::ImplicitReplies,
    rar: OnceBox<rar::Rar<P>>,
    stats: StatCounters,
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
        let safe = queue::EventQueue::open(&portals, par, "SAFE_EQ", safe_events, ())?;
        let am = queue::EventQueue::open(
            &portals,
            par,
            "AM_EQ",
            am_events,
            am_recv::AmConsumer::default(),
        )?;
        // Order on the list of this portal table entry, most frequent first: ReqSB (replies),
        // ReqHdr, ReqRB, catch basin, SYS. ReqRB inserts itself before the catch basin.
        let reqsb = reqsb::ReqSb::open(&portals, pt, par, config.sb_chunks, &safe.eq)?;
        let rplsb = rplsb::RplSb::open(&portals, par, config.rpl_chunks, &safe.eq)?;
        let reqrb = reqrb::ReqRb::open(&portals, &config, &am.eq)?;
        let sys = system::Sys::open(&portals, pt, par, sys_events)?;
        let outbox = outbox::Outbox::open(&portals, &config, me)?;
        Ok(Conduit {
            tickets: tickets::Tickets::new(par, config.msg_limit),
            credits: credits::Credits::new(&config, me),
            tmpmd: tmpmd::TmpMd::new(par, config.num_tmpmd, &safe.eq),
            threads: (0..config.threads)
                .map(|_| CachePadded::new(wait::ClientThread::new()))
                .collect(),
            request_lids: lid_cache::LidCache::new(par),
            reply_lids: lid_cache::LidCache::new(par),
            implicit: implicit::ImplicitReplies::new(&config),
            rar: OnceBox::new(),
            stats: StatCounters::default(),
            waiting: AtomicU32::new(0),
            request_prefetch: prefetch::PayloadPrefetch::new(),
            reply_prefetch: prefetch::PayloadPrefetch::new(),
            peers: peers.into_boxed_slice(),
            portals,
            config,
            me,
            safe,
            am,
            sys,
            outbox,
            reqsb,
            rplsb,
            reqrb,
        })
    }

    /// Attaches the descriptors of our segment. Puts, gets and Longs work after a barrier by the
    /// caller.
    ///
    /// # Errors
    /// The Portals call that failed.
    ///
    /// # Panics
    /// The second time.
    pub fn attach_segment(&self, segment: Dst<'static>) -> Result<(), PortalsError> {
        let (safe, am) = (&self.safe.eq, &self.am.eq);
        let rar = rar::Rar::attach(&self.portals, self.config.pt_rar, segment, safe, am)?;
        assert!(self.rar.set(Box::new(rar)).is_ok(), "the segment is attached once");
        Ok(())
    }

    /// The fast path to a process, unless `GASNET_PORTAL_AT_ONCE` turns it off.
    #[inline(always)]
    fn direct(&self, process: PortalsId) -> Option<&P::Direct> {
        if !self.config.at_once {
            cold_path();
            return None;
        }
        self.portals.direct(process)
    }

    #[inline]
    fn rar(&self) -> &rar::Rar<P> {
        match self.rar.get() {
            Some(rar) => rar,
            None => crate::report::fatal(
                format_args!("a put, get or Long was used before gasnet_attach"),
                format_args!("Call gasnet_attach first."),
            ),
        }
    }

    /// Credits that this process has lent to us, those in use included, if they are limited and no
    /// thread is changing them. Async-signal-safe.
    pub fn credits(&self, node: JobRank) -> Option<u32> {
        self.credits.lent_by(node)
    }

    /// What travelled through our interface.
    pub fn counters(&self) -> portals::TrafficCounters {
        self.portals.counters()
    }

    /// What the network shares with the processes of this host: memory, a doorbell.
    pub fn shared_host(&self) -> Option<&dyn SharedHost> {
        self.portals.shared_host()
    }

    /// How often things happened that well chosen figures make rare.
    pub fn stats(&self) -> ConduitStats {
        ConduitStats {
            refreshes: self.reqrb.refreshes(),
            credit_stalls: self.stats.credit_stalls.load(Ordering::Relaxed),
            requests_waited: self.stats.requests_waited.load(Ordering::Relaxed),
            replies_deferred: self.stats.replies_deferred.load(Ordering::Relaxed),
            caught: self.stats.caught.load(Ordering::Relaxed),
        }
    }

    /// Writes the movements of credits as text, if [`Config::credit_stats`] asks for them.
    /// Async-signal-safe as far as `out` is.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_credit_stats(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        self.credits.write_stats(out)
    }

    /// The figures of this conduit.
    pub fn config(&self) -> &Config {
        &self.config
    }
}
