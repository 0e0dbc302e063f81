//! Which rank sends what to which other: the patterns of the portals-conduit README. Imports
//! nothing.

/// A pattern of communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// All ranks send the largest requests to rank 0, without a pause.
    AllToOne,
    /// Ghost zones: each rank sends bursts of 4-credit Mediums to its six neighbours in a torus
    /// of three dimensions.
    Neighbours,
    /// Collectives over a binary tree: one short message along each edge, then the next
    /// collective.
    Tree,
    /// Each rank sends to one of four ranks, which change a few times.
    Shifting,
    /// Each rank sends requests of any size to any rank.
    Uniform,
}

/// All patterns.
pub(crate) const PATTERNS: &[Pattern] =
    &[Pattern::AllToOne, Pattern::Neighbours, Pattern::Tree, Pattern::Shifting, Pattern::Uniform];

/// Messages to each neighbour in one exchange of ghost zones.
const BURST: u32 = 32;
/// Number of shifts of the hot spots.
const SHIFTS: u32 = 4;

impl Pattern {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Pattern::AllToOne => "all-to-one",
            Pattern::Neighbours => "neighbours",
            Pattern::Tree => "tree",
            Pattern::Shifting => "shifting",
            Pattern::Uniform => "uniform",
        }
    }

    /// Whether the partners of each rank stay the same.
    pub(crate) fn is_static(self) -> bool {
        matches!(self, Pattern::AllToOne | Pattern::Neighbours | Pattern::Tree)
    }

    /// Number of ranks that send.
    pub(crate) fn senders(self, ranks: u32) -> u32 {
        match self {
            Pattern::AllToOne => ranks - 1,
            _ => ranks,
        }
    }

    /// Requests of each sender that are enough to show the pattern.
    pub(crate) fn requests(self, ranks: u32) -> u32 {
        match (self, ranks) {
            (Pattern::Neighbours, ..=1024) => 6 * BURST * 30,
            (Pattern::Neighbours, _) => 6 * BURST * 24,
            (Pattern::Uniform, 30_000..) => 40,
            (_, ..=1024) => 2000,
            (_, ..30_000) => 200,
            _ => 64,
        }
    }

    /// Target and credits of request `k` of a rank. `dice` returns random numbers below its
    /// argument.
    pub(crate) fn step(
        self,
        rank: u32,
        ranks: u32,
        k: u32,
        requests: u32,
        mut dice: impl FnMut(u32) -> u32,
    ) -> (u32, u16) {
        match self {
            Pattern::AllToOne => (0, 8),
            Pattern::Neighbours => (neighbour(rank, ranks, k / BURST % 6), 4),
            Pattern::Tree => {
                // Edges of this rank, in turn: parent, left and right child.
                let edges = [(rank.max(1) - 1) / 2, 2 * rank + 1, 2 * rank + 2];
                let to = edges[(k % 3) as usize];
                (if to < ranks { to } else { edges[0] }, 1)
            }
            Pattern::Shifting => {
                let shift = k * SHIFTS / requests;
                let hot = (rank % 4) * (ranks / 4) + shift;
                (hot % ranks, 4)
            }
            Pattern::Uniform => (dice(ranks), 1 + dice(8) as u16),
        }
    }

    /// Whether a rank waits for all its replies before request `k`.
    pub(crate) fn rests(self, k: u32) -> bool {
        match self {
            Pattern::Neighbours => k.is_multiple_of(6 * BURST),
            Pattern::Tree => k.is_multiple_of(3),
            _ => false,
        }
    }
}

/// The neighbour in this direction, 0 to 5, in the torus closest to a cube.
fn neighbour(rank: u32, ranks: u32, direction: u32) -> u32 {
    let side = (f64::from(ranks).cbrt().round() as u32).max(1);
    let x = (1..=side).rev().find(|x| ranks.is_multiple_of(*x)).unwrap_or(1);
    let rest = ranks / x;
    let root = (f64::from(rest).sqrt() as u32).max(1);
    let y = (1..=root).rev().find(|y| rest.is_multiple_of(*y)).unwrap_or(1);
    let z = rest / y;
    let at = [rank % x, rank / x % y, rank / x / y];
    let size = [x, y, z];
    let axis = (direction / 2) as usize;
    let mut to = at;
    to[axis] =
        (at[axis] + if direction.is_multiple_of(2) { 1 } else { size[axis] - 1 }) % size[axis];
    to[0] + x * (to[1] + y * to[2])
}
