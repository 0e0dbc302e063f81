//! The ranks and the network of the simulation.
//!
//! Time passes in ticks. In each, a rank handles the messages that have arrived (some requests,
//! all others). Then its client sends requests, one after the other, until it lacks credits. A
//! message arrives in the next tick. A rank keeps records only of the peers that it has
//! exchanged messages with.

use crate::pattern::Pattern;
use gasnet::conduit::credits::policy::{
    CreditBank, CreditChange, CreditField, CreditLimits, CreditPolicy, CreditReturn, CreditStore,
    PeerCredits,
};
use gasnet::conduit::credits::stats::CreditStats;
use gasnet::rank::JobRank;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Number of requests that a rank handles and sends in a tick.
const PACE: usize = 8;
/// Nanoseconds of a tick in the statistics.
const TICK_NS: u64 = 1000;

#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u32((*b).into()));
    }
    fn write_u32(&mut self, n: u32) {
        self.0 = (self.0 ^ u64::from(n)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// The credits of a rank and its peers.
struct SparseCredits {
    ranks: u32,
    each: u16,
    min: u16,
    peers: RefCell<HashMap<u32, PeerEntry, BuildHasherDefault<Mix>>>,
    /// Peers that hold more than the least; or, if all do at first, those that do not.
    odd: RefCell<BTreeSet<u32>>,
    bank: Cell<CreditBank>,
    epoch: Cell<u32>,
    received: Cell<u32>,
    sums: Cell<Sums>,
    /// The movements of a watched rank.
    stats: Option<CreditStats>,
    /// The current tick.
    tick: Cell<u64>,
}

struct PeerEntry {
    peer: PeerCredits,
    /// How often its loan turned from growing to shrinking or back.
    turns: u16,
    /// Whether its loan shrank last.
    shrank: bool,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    lent: u64,
    returned: u64,
    /// CREDIT_RETURNs without a credit.
    vain: u64,
    stalls: u64,
    moved_now: bool,
}

impl CreditStore for SparseCredits {
    fn peer<R>(&self, JobRank(rank): JobRank, f: impl FnOnce(&mut PeerCredits) -> R) -> R {
        // `changed` needs the map too, so the record is put back before and after.
        let mut peer =
            self.peers.borrow().get(&rank).map_or(PeerCredits::initial(self.each), |e| e.peer);
        let result = f(&mut peer);
        let new = || PeerEntry { peer, turns: 0, shrank: false };
        self.peers.borrow_mut().entry(rank).or_insert_with(new).peer = peer;
        result
    }

    fn bank<R>(&self, f: impl FnOnce(&mut CreditBank) -> R) -> R {
        let mut bank = self.bank.get();
        let result = f(&mut bank);
        self.bank.set(bank);
        result
    }

    fn note_spare(&self, JobRank(rank): JobRank, spare: bool) {
        let odd = spare == (self.each <= self.min);
        if odd {
            self.odd.borrow_mut().insert(rank);
        } else {
            self.odd.borrow_mut().remove(&rank);
        }
    }

    fn next_spare(&self, JobRank(after): JobRank) -> Option<JobRank> {
        let odd = self.odd.borrow();
        if self.each <= self.min {
            return odd
                .range(after + 1..)
                .next()
                .or_else(|| odd.iter().next())
                .copied()
                .map(JobRank);
        }
        (after + 1..self.ranks).chain(0..=after).find(|n| !odd.contains(n)).map(JobRank)
    }

    fn epoch(&self) -> u32 {
        self.epoch.get()
    }

    fn count_request(&self, length: u32) {
        self.received.set(self.received.get() + 1);
        if self.received.get() >= length {
            self.received.set(0);
            self.epoch.set(self.epoch.get() + 1);
        }
    }

    fn changed(&self, rank: JobRank, peer: &PeerCredits, change: CreditChange) {
        if let Some(stats) = &self.stats {
            stats.note(self.tick.get() * TICK_NS, rank, self.epoch(), peer, change);
        }
        let mut s = self.sums.get();
        let shrank = match change {
            CreditChange::Lent(n) => {
                s.lent += u64::from(n);
                Some(false)
            }
            CreditChange::Returned(0) => {
                s.vain += 1;
                None
            }
            CreditChange::Returned(n) => {
                s.returned += u64::from(n);
                Some(true)
            }
            CreditChange::Stalled(_) => {
                s.stalls += 1;
                None
            }
            _ => None,
        };
        if let Some(shrank) = shrank {
            s.moved_now = true;
            let mut peers = self.peers.borrow_mut();
            let new = || PeerEntry { peer: PeerCredits::initial(self.each), turns: 0, shrank };
            let e = peers.entry(rank.0).or_insert_with(new);
            e.turns += u16::from(e.shrank != shrank);
            e.shrank = shrank;
        }
        self.sums.set(s);
    }
}

enum Message {
    Reply(CreditField),
    Revoke(bool),
    Return(CreditReturn),
}

struct SimulatedRank {
    policy: CreditPolicy<SparseCredits>,
    requests: VecDeque<(u32, CreditField)>,
    others: VecDeque<(u32, Message)>,
    /// Credits of the requests that are on their way or not yet handled.
    used: u64,
    /// Number of requests sent, and of those without a reply.
    sent: u32,
    open: u32,
    /// The request that could not be sent: target, credits, how many it lacked.
    waiting: Option<(u32, u16, u16)>,
    active: bool,
}

/// The result of a simulation.
#[derive(Debug, Default)]
pub(crate) struct SimulationResult {
    pub(crate) requests: u64,
    pub(crate) stalls: u64,
    pub(crate) ticks: u64,
    pub(crate) lent: u64,
    pub(crate) returned: u64,
    /// CREDIT_REVOKE messages; those that returned no credit, and how many of these are allowed.
    pub(crate) messages: u64,
    pub(crate) vain: u64,
    pub(crate) vain_allowed: u64,
    /// Requests handled when the first sender had sent all of its own. Ranks that are idle from
    /// then on return credits, as they should.
    pub(crate) all_sent_until: Option<u64>,
    /// Requests handled when credits moved last before that.
    pub(crate) last_movement: u64,
    /// Largest number of credits in use at one rank at a time, and the number that it has.
    pub(crate) most_used: u64,
    pub(crate) total: u32,
    pub(crate) conserved: bool,
    /// How often the loan of a pair changed its direction before that, at worst, and how often
    /// it may.
    pub(crate) worst_turns: u16,
    pub(crate) turns_allowed: u16,
    pub(crate) records: u64,
    pub(crate) most_records: u64,
}

impl SimulationResult {
    /// Number of credits that moved.
    pub(crate) fn moved(&self) -> u64 {
        self.lent + self.returned
    }
}

pub(crate) struct SimulatedJob {
    ranks: Vec<SimulatedRank>,
    outcome: SimulationResult,
}

impl SimulatedJob {
    /// Ranks that hold `each` credits of each other; those in `watched` record their movements.
    pub(crate) fn new(
        ranks: u32,
        each: u16,
        bank: u32,
        limits: CreditLimits,
        watched: &[u32],
    ) -> SimulatedJob {
        let rank = |me| {
            let store = SparseCredits {
                ranks,
                each,
                min: limits.min,
                peers: RefCell::default(),
                odd: RefCell::default(),
                bank: Cell::new(CreditBank::new(bank)),
                epoch: Cell::new(0),
                received: Cell::new(0),
                sums: Cell::default(),
                stats: watched
                    .contains(&me)
                    .then(|| CreditStats::new(false, JobRank(me), ranks, each, bank)),
                tick: Cell::new(0),
            };
            SimulatedRank {
                policy: CreditPolicy { limits, store },
                requests: VecDeque::new(),
                others: VecDeque::new(),
                used: 0,
                sent: 0,
                open: 0,
                waiting: None,
                active: true,
            }
        };
        let total = u32::from(each) * ranks + bank;
        SimulatedJob {
            ranks: (0..ranks).map(rank).collect(),
            outcome: SimulationResult { total, ..SimulationResult::default() },
        }
    }

    /// Runs until every rank has sent its requests and received all replies. Returns the
    /// result, and the records of the watched ranks in the order of ranks.
    pub(crate) fn run(
        mut self,
        pattern: Pattern,
        requests: u32,
        seed: u64,
    ) -> (SimulationResult, Vec<CreditStats>) {
        let count = self.ranks.len() as u32;
        let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut roll = move |n: u32| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            (dice >> 11) as u32 % n
        };
        let first = count - pattern.senders(count);
        let mut active: Vec<u32> = (0..count).collect();
        let mut flying: Vec<(u32, u32, Result<CreditField, Message>)> = Vec::new();
        while !active.is_empty() {
            self.outcome.ticks += 1;
            let mut again = Vec::new();
            for &me in &active {
                let rank = &mut self.ranks[me as usize];
                rank.active = false;
                let policy = &rank.policy;
                policy.store.tick.set(self.outcome.ticks);
                while let Some((from, message)) = rank.others.pop_front() {
                    match message {
                        Message::Reply(field) => {
                            assert!(
                                policy.reply_arrived(JobRank(from), field),
                                "{from} returns too many"
                            );
                            rank.open -= 1;
                        }
                        Message::Revoke(epoch) => {
                            let back = policy.revoke_arrived(JobRank(from), epoch);
                            flying.push((me, from, Err(Message::Return(back))));
                        }
                        Message::Return(back) => {
                            assert!(
                                policy.return_arrived(JobRank(from), back),
                                "{from} returns too many"
                            );
                        }
                    }
                }
                for _ in 0..PACE {
                    let Some((from, field)) = rank.requests.pop_front() else { break };
                    rank.used -= u64::from(field.used());
                    self.outcome.requests += 1;
                    policy.request_arrived(JobRank(from), field);
                    let (back, low) = policy.reply_field(JobRank(from), field);
                    flying.push((me, from, Err(Message::Reply(back))));
                    if low {
                        policy.scavenge(|JobRank(peer), epoch| {
                            self.outcome.messages += 1;
                            flying.push((me, peer, Err(Message::Revoke(epoch))));
                        });
                    }
                }
                let mut blocked = me < first || rank.sent == requests;
                for _ in 0..PACE {
                    if me < first
                        || rank.sent == requests
                        || (pattern.rests(rank.sent) && rank.open != 0)
                    {
                        blocked = true;
                        break;
                    }
                    let (to, n, short) = rank.waiting.take().unwrap_or_else(|| {
                        let (to, n) = pattern.step(me, count, rank.sent, requests, &mut roll);
                        (to, n, 0)
                    });
                    let Some((epoch, _)) = policy.take(JobRank(to), n) else {
                        let short = if short == 0 { policy.stall(JobRank(to), n) } else { short };
                        rank.waiting = Some((to, n, short));
                        blocked = true;
                        break;
                    };
                    rank.sent += 1;
                    rank.open += 1;
                    flying.push((me, to, Ok(CreditField::new(epoch, short, n))));
                }
                if !blocked || !rank.requests.is_empty() {
                    rank.active = true;
                    again.push(me);
                }
                let mut sums = policy.store.sums.get();
                if std::mem::take(&mut sums.moved_now) {
                    policy.store.sums.set(sums);
                    if self.outcome.all_sent_until.is_none() {
                        self.outcome.last_movement = self.outcome.requests;
                    }
                }
            }
            if self.outcome.all_sent_until.is_none()
                && active.iter().any(|&n| n >= first && self.ranks[n as usize].sent == requests)
            {
                self.outcome.all_sent_until = Some(self.outcome.requests);
                self.count_turns();
            }
            active = again;
            for (from, to, message) in flying.drain(..) {
                let rank = &mut self.ranks[to as usize];
                match message {
                    Ok(field) => {
                        rank.used += u64::from(field.used());
                        self.outcome.most_used = self.outcome.most_used.max(rank.used);
                        rank.requests.push_back((from, field));
                    }
                    Err(message) => rank.others.push_back((from, message)),
                }
                if !std::mem::replace(&mut rank.active, true) {
                    active.push(to);
                }
            }
        }
        self.close(pattern)
    }

    fn count_turns(&mut self) {
        let worst = |n: &SimulatedRank| {
            n.policy.store.peers.borrow().values().map(|e| e.turns).max().unwrap_or(0)
        };
        self.outcome.worst_turns = self.ranks.iter().map(worst).max().unwrap_or(0);
    }

    fn close(mut self, pattern: Pattern) -> (SimulationResult, Vec<CreditStats>) {
        let o = &mut self.outcome;
        o.conserved = true;
        // Each shift may revoke loans and lend again.
        o.turns_allowed = if pattern.is_static() { 2 } else { 16 };
        for (x, rank) in self.ranks.iter().enumerate() {
            let store = &rank.policy.store;
            let peers = store.peers.borrow();
            let sums = store.sums.get();
            (o.lent, o.returned, o.stalls) =
                (o.lent + sums.lent, o.returned + sums.returned, o.stalls + sums.stalls);
            o.vain += sums.vain;
            // Revocations in flight when the last answer counts are added.
            let limits = rank.policy.limits;
            let of_an_epoch = u64::from(limits.vain) + u64::from(limits.targets) - 1;
            o.vain_allowed +=
                if sums.vain == 0 { 0 } else { of_an_epoch * u64::from(store.epoch.get() + 1) };
            o.records += peers.len() as u64;
            o.most_records = o.most_records.max(peers.len() as u64);
            let mut lent = i64::from(store.each) * i64::from(store.ranks);
            for (&y, e) in peers.iter() {
                lent += i64::from(e.peer.loan_credits) - i64::from(store.each);
                let other = self.ranks[y as usize].policy.store.peers.borrow();
                let held = other.get(&(x as u32)).map_or(store.each, |e| e.peer.send_credits);
                o.conserved &= e.peer.loan_credits == held && e.peer.send_inuse == 0;
            }
            o.conserved &= lent + i64::from(store.bank.get().credits) == i64::from(o.total);
        }
        let watched = self.ranks.into_iter().filter_map(|n| n.policy.store.stats).collect();
        (self.outcome, watched)
    }
}
