//! The sizes of a firehose, and how a rank shares its M regions among its peers. Free of I/O.
//!
//! Called by `Firehose`, by the simulator `firehose-sim` and by `local`. Invariant: of the M
//! regions that a rank sets aside for its peers, each peer is sure of one.

use super::MemoryExtent;

/// The limits of one rank, counted in regions. All ranks of a job have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirehoseLimits {
    /// Bytes of a region: a power of two, not less than a page.
    pub region_bytes: usize,
    /// Ranks of the job, 2 at least.
    pub ranks: u32,
    /// M: regions of a rank that its peers may hold, all together.
    pub m: u32,
    /// MAXVICTIM: regions that a rank keeps pinned for itself, used or idle, beyond those.
    pub max_victim: u32,
    /// Whether regions that some peers do not use may be lent to others.
    pub lend: bool,
}

/// Why limits cannot hold, and the least that would, in regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirehoseMisfit {
    /// M gives some peer no region: it must be this much at least.
    M(u32),
    /// MAXVICTIM leaves this rank no region for its own transfers: it must be this much at least.
    MaxVictim(u32),
    /// A rank can number this many regions at most; M and MAXVICTIM together are more.
    TooMany(u32),
}

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
