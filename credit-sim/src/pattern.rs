//! Who sends what to whom: the patterns of the portals-conduit README.

/// A pattern of communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Everybody sends largest requests to process 0, without a pause.
    AllToOne,
    /// Ghost zones: everybody sends bursts of 4-credit Mediums to its six neighbours in a torus of three dimensions.
    Neighbours,
    /// Collectives over a binary tree: one short message along each edge, then the next collective.
    Tree,
    /// Everybody sends to one of four processes; which four changes a few times.
    Shifting,
    /// Everybody sends requests of any size to anybody.
    Uniform,
}

/// All of them.
pub(crate) const PATTERNS: &[Pattern] =
    &[Pattern::AllToOne, Pattern::Neighbours, Pattern::Tree, Pattern::Shifting, Pattern::Uniform];

/// Messages to each neighbour in one exchange of ghost zones.
const BURST: u32 = 32;
/// How often hot spots shift.
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

    /// Whether everybody's partners stay the same.
    pub(crate) fn is_static(self) -> bool {
        matches!(self, Pattern::AllToOne | Pattern::Neighbours | Pattern::Tree)
    }

    /// Processes that send.
    pub(crate) fn senders(self, nodes: u32) -> u32 {
        match self {
            Pattern::AllToOne => nodes - 1,
            _ => nodes,
        }
    }

    /// Requests of each sender that show the pattern.
    pub(crate) fn requests(self, nodes: u32) -> u32 {
        match (self, nodes) {
            (Pattern::Neighbours, ..=1024) => 6 * BURST * 30,
            (Pattern::Neighbours, _) => 6 * BURST * 24,
            (Pattern::Uniform, 30_000..) => 40,
            (_, ..=1024) => 2000,
            (_, ..30_000) => 200,
            _ => 64,
        }
    }

    /// Step `k` of a process; `rest` after it has been done once. `dice` gives random numbers below its argument.
    pub(crate) fn step(
        self,
        node: u32,
        nodes: u32,
        k: u32,
        requests: u32,
        mut dice: impl FnMut(u32) -> u32,
    ) -> (u32, u16) {
        match self {
            Pattern::AllToOne => (0, 8),
            Pattern::Neighbours => (neighbour(node, nodes, k / BURST % 6), 4),
            Pattern::Tree => {
                // Edges of this process, in turn: parent, left and right child.
                let edges = [(node.max(1) - 1) / 2, 2 * node + 1, 2 * node + 2];
                let to = edges[(k % 3) as usize];
                (if to < nodes { to } else { edges[0] }, 1)
            }
            Pattern::Shifting => {
                let shift = k * SHIFTS / requests;
                let hot = (node % 4) * (nodes / 4) + shift;
                (hot % nodes, 4)
            }
            Pattern::Uniform => (dice(nodes), 1 + dice(8) as u16),
        }
    }

    /// Whether a process waits for all its replies before step `k`.
    pub(crate) fn rests(self, k: u32) -> bool {
        match self {
            Pattern::Neighbours => k.is_multiple_of(6 * BURST),
            Pattern::Tree => k.is_multiple_of(3),
            _ => false,
        }
    }
}

/// The neighbour in this direction, 0 to 5, in a torus as near to a cube as the number of processes lets it be.
fn neighbour(node: u32, nodes: u32, direction: u32) -> u32 {
    let side = (f64::from(nodes).cbrt().round() as u32).max(1);
    let x = (1..=side).rev().find(|x| nodes.is_multiple_of(*x)).unwrap_or(1);
    let rest = nodes / x;
    let root = (f64::from(rest).sqrt() as u32).max(1);
    let y = (1..=root).rev().find(|y| rest.is_multiple_of(*y)).unwrap_or(1);
    let z = rest / y;
    let at = [node % x, node / x % y, node / x / y];
    let size = [x, y, z];
    let axis = (direction / 2) as usize;
    let mut to = at;
    to[axis] =
        (at[axis] + if direction.is_multiple_of(2) { 1 } else { size[axis] - 1 }) % size[axis];
    to[0] + x * (to[1] + y * to[2])
}
