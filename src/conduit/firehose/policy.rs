//! The sizes of a firehose, and how a rank shares its M regions among its peers. Free of I/O.
//!
//! Called by `Firehose`, by the simulator `firehose-sim` and by `local`. Invariant: of the M
//! regions that a rank sets aside for its peers, each peer is sure of one. What peers hold, plus
//! one for each that holds none, is at most M.

use super::access::MissTurn;
use super::extent::MemoryExtent;
use super::moves::HoldLimit;
use crate::rank::JobRank;
use alloc::collections::{BTreeMap, VecDeque};

/// The limits of one rank, counted in regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirehoseLimits {
    /// Bytes of a region: a power of two, not less than a page; the same in all ranks of a job.
    pub region_bytes: usize,
    /// Ranks of the job, 2 at least.
    pub ranks: u32,
    /// M: regions of a rank that its peers may hold, all together.
    pub m: u32,
    /// MAXVICTIM: regions that a rank keeps pinned for itself, used or idle, beyond those.
    pub max_victim: u32,
    /// Regions of all peers together that this rank holds at most: the size of its table.
    pub table: u32,
    /// Whether regions that some peers do not use may be lent to others.
    pub lend: bool,
}

/// Why limits cannot hold, and the least that would, in regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirehoseMisfit {
    /// M gives some peer no region: it must be this much at least.
    M(u32),
    /// The table has no space for a region.
    Table(u32),
    /// MAXVICTIM leaves this rank no region for its own transfers: it must be this much at least.
    MaxVictim(u32),
    /// The size of a region is no power of two, or more than this.
    RegionBytes(usize),
    /// A rank can number this many regions at most; M and MAXVICTIM together are more.
    TooMany(u32),
}

/// Largest region: the answer to a move has 32 bits for the bytes of one.
const MOST_BYTES: usize = 1 << 30;

/// Most regions of a rank.
const MOST_SLOTS: u32 = 1 << 24;

impl FirehoseLimits {
    /// Whether these limits can hold.
    ///
    /// # Errors
    /// The least, or the most, that works.
    pub fn check(self) -> Result<FirehoseLimits, FirehoseMisfit> {
        if self.m < self.peers() {
            return Err(FirehoseMisfit::M(self.peers()));
        }
        if !self.region_bytes.is_power_of_two() || self.region_bytes > MOST_BYTES {
            return Err(FirehoseMisfit::RegionBytes(MOST_BYTES));
        }
        if self.table == 0 {
            return Err(FirehoseMisfit::Table(1));
        }
        if self.max_victim == 0 {
            return Err(FirehoseMisfit::MaxVictim(1));
        }
        if self.m.saturating_add(self.max_victim) > MOST_SLOTS {
            return Err(FirehoseMisfit::TooMany(MOST_SLOTS));
        }
        Ok(self)
    }

    /// The other ranks.
    pub fn peers(self) -> u32 {
        self.ranks.saturating_sub(1).max(1)
    }

    /// M/(N-1): regions of each rank that each peer owns.
    pub fn share(self) -> u32 {
        self.m / self.peers()
    }

    /// The slots of a rank: most regions that it has pinned at once.
    pub fn slots(self) -> u32 {
        self.m + self.max_victim
    }

    /// The region in which an address lies.
    #[inline]
    pub fn block(self, address: usize) -> MemoryExtent {
        let start = address & !(self.region_bytes - 1);
        // The last region of an address space ends at its last byte but one.
        MemoryExtent { start, end: start.saturating_add(self.region_bytes) }
    }

    /// How many of `len` bytes from an address lie in its region: one piece of a transfer.
    #[inline]
    pub fn piece(self, address: usize, len: usize) -> usize {
        len.min(self.region_bytes - (address & (self.region_bytes - 1)))
    }
}

/// Regions that a peer which uses its share gets in addition, at most, in one answer.
const LEND_STEP: u32 = 32;

/// What a rank knows of one of its peers as the holder of its regions.
#[derive(Clone, Copy, Debug, Default)]
struct Borrower {
    /// References that it holds.
    held: u32,
    /// The last limit that was announced to it.
    announced: HoldLimit,
}

/// How a rank shares its M regions among its peers. The rule is [`RegionLender::grant`]; the
/// limits that are announced only save peers requests which it would refuse.
///
/// Each peer is sure of one region. With [`FirehoseLimits::lend`] all others are for whichever
/// peer asks first. A peer that finds less than its share has them recalled from those that hold
/// more than theirs.
#[derive(Debug)]
pub struct RegionLender {
    limits: FirehoseLimits,
    /// Peers that have ever asked.
    peers: BTreeMap<JobRank, Borrower>,
    /// Sum of `max(held, 1)` over all peers.
    committed: u32,
    /// Where the next search for a peer that holds more than its share begins.
    cursor: JobRank,
}

impl RegionLender {
    /// No peer holds any.
    pub fn new(limits: FirehoseLimits) -> RegionLender {
        let (peers, cursor) = (BTreeMap::new(), JobRank(0));
        RegionLender { limits, peers, committed: limits.peers(), cursor }
    }

    /// How many regions a peer holds.
    pub fn held(&self, peer: JobRank) -> u32 {
        self.peers.get(&peer).map_or(0, |p| p.held)
    }

    /// How many all peers hold, and the sum that is at most M.
    pub fn sums(&self) -> (u32, u32) {
        (self.peers.values().map(|p| p.held).sum(), self.committed)
    }

    /// A peer gives a reference back; false if it holds none.
    #[must_use]
    pub fn take_back(&mut self, peer: JobRank) -> bool {
        let p = self.peers.entry(peer).or_default();
        if p.held == 0 {
            return false;
        }
        p.held -= 1;
        self.committed -= u32::from(p.held >= 1);
        true
    }

    /// Gives a peer one more reference, if it may have one.
    #[must_use]
    pub fn grant(&mut self, peer: JobRank) -> bool {
        let (m, share) = (self.limits.m, self.limits.share());
        let p = self.peers.entry(peer).or_default();
        let fits = p.held == 0 || self.committed < m;
        if !fits || (!self.limits.lend && p.held >= share) {
            return false;
        }
        self.committed += u32::from(p.held >= 1);
        p.held += 1;
        true
    }

    /// The limit that an answer announces to a peer. It could use `hungry` more; `refused`: it was
    /// just refused one.
    pub(super) fn limit(&mut self, peer: JobRank, hungry: u32, refused: bool) -> HoldLimit {
        let free = self.limits.m - self.committed;
        let share = self.limits.share();
        let p = self.peers.entry(peer).or_default();
        let own = share.min(p.held.saturating_add(free)).max(p.held).max(1);
        let regions = match (refused, self.limits.lend) {
            (_, false) => share,
            (true, true) => p.held.max(1),
            (false, true) if p.held >= share => own + hungry.min(free / 2).min(LEND_STEP),
            (false, true) => own,
        };
        p.announced = HoldLimit { regions, number: p.announced.number.wrapping_add(1) };
        p.announced
    }

    /// A peer was refused a region: what to tell which other, if that one holds more than its
    /// share.
    pub(super) fn recall(&mut self, refused: JobRank) -> Option<(JobRank, HoldLimit)> {
        let share = self.limits.share();
        if self.held(refused) >= share {
            return None;
        }
        // Those that have a lower limit are about to give back.
        let rich =
            |(_, p): &(&JobRank, &mut Borrower)| p.held > share && p.announced.regions >= p.held;
        let after = JobRank(self.cursor.0.saturating_add(1));
        let (&rank, _) = match self.peers.range_mut(after..).find(rich) {
            Some(found) => found,
            None => self.peers.range_mut(..after).find(rich)?,
        };
        self.cursor = rank;
        let p = self.peers.get_mut(&rank)?;
        p.announced =
            HoldLimit { regions: p.held - 1, number: p.announced.number.wrapping_add(1) };
        Some((rank, p.announced))
    }
}

/// The order in which operations take entries that become free, where there was none: first come,
/// first served.
#[derive(Debug, Default)]
pub(super) struct MissTurns {
    next: u64,
    waiting: VecDeque<u64>,
}

impl MissTurns {
    /// Whether an operation with this turn, or without one, may take what is free.
    pub(super) fn admits(&self, turn: Option<MissTurn>) -> bool {
        match (self.waiting.front(), turn) {
            (None, _) => true,
            (Some(&first), Some(MissTurn(mine))) => first == mine,
            (Some(_), None) => false,
        }
    }

    /// The operation has to wait: its turn.
    pub(super) fn wait(&mut self, turn: Option<MissTurn>) -> MissTurn {
        turn.unwrap_or_else(|| {
            self.next += 1;
            self.waiting.push_back(self.next);
            MissTurn(self.next)
        })
    }

    /// The operation has what it waited for.
    pub(super) fn done(&mut self, turn: Option<MissTurn>) {
        if let Some(MissTurn(mine)) = turn {
            self.waiting.retain(|&t| t != mine);
        }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
