//! Which rank accesses which region of which other.

use crate::dice::Dice;

/// A pattern of accesses. Regions are chosen at random, but in `Stream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessPattern {
    /// Each rank accesses one other.
    Pairs,
    /// Each rank walks through the memory of one other.
    Stream,
    /// Each rank accesses six others.
    Neighbours,
    /// All ranks access rank 0, which accesses rank 1.
    Hot,
    /// The same, but all except rank 1 begin late: rank 1 finds all regions unused.
    Late,
    /// Each rank accesses all others, in a random order.
    AllToAll,
    /// Each rank accesses one other for a short time, then the next.
    Turns,
}

/// All patterns.
pub(crate) const PATTERNS: &[AccessPattern] = &[
    AccessPattern::Pairs,
    AccessPattern::Stream,
    AccessPattern::Neighbours,
    AccessPattern::Hot,
    AccessPattern::Late,
    AccessPattern::AllToAll,
    AccessPattern::Turns,
];

/// Operations before those that begin late.
const LATE: u32 = 300;

/// Operations to one rank before those to the next.
const TURN: u32 = 12;

impl AccessPattern {
    pub(crate) fn name(self) -> &'static str {
        match self {
            AccessPattern::Pairs => "pairs",
            AccessPattern::Stream => "stream",
            AccessPattern::Neighbours => "neighbours",
            AccessPattern::Hot => "hot",
            AccessPattern::Late => "late",
            AccessPattern::AllToAll => "all-to-all",
            AccessPattern::Turns => "turns",
        }
    }

    /// The peer and the region of operation `k` of a rank; `set` regions of each peer are used.
    pub(crate) fn access(self, me: u32, ranks: u32, set: u32, k: u32, dice: &Dice) -> (u32, u32) {
        let next = |step: u32| (me + 1 + step % (ranks - 1)) % ranks;
        match self {
            AccessPattern::Pairs => (next(0), dice.below(set)),
            AccessPattern::Stream => (next(0), k % set),
            AccessPattern::Neighbours => (next(dice.below(6) * (ranks / 7 + 1)), dice.below(set)),
            AccessPattern::Hot => (u32::from(me == 0), dice.below(set)),
            AccessPattern::Late if me != 1 && k < LATE => (next(0), dice.below(set)),
            AccessPattern::Late => (u32::from(me == 0), dice.below(set)),
            AccessPattern::AllToAll => (next(dice.below(ranks - 1)), dice.below(set)),
            AccessPattern::Turns => (next(k / TURN), dice.below(set)),
        }
    }
}
