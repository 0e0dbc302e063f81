//! Trees over the ranks 0 to n - 1, with the root at 0, for rooted collectives.
//!
//! Pure functions, used by the plans. Invariant: in every kind of tree a subtree is a range of
//! consecutive ranks that begins with its root, so its blocks are one piece of memory, and
//! combining children in order keeps the order of the operands.
//!
//! ```text
//!   flat           0: 1 2 3 4 5 6 7
//!   n-ary, 2       0: 1-3 4-7        1: 2 3    4: 5 6-7    6: 7
//!   k-nomial, 2    0: 1 2-3 4-7      2: 3      4: 5 6-7    6: 7
//! ```

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// How the ranks below a node are divided among its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// Each rank is a child.
    Flat,
    /// As many parts of equal size as the fan-out; 1 is a chain.
    Nary,
    /// Subtrees of 1, k, k^2, ... ranks, k - 1 of each, for the fan-out k; 2 is a binomial tree.
    Knomial,
}

/// The names of the kinds, by number.
const KINDS: [(&str, TreeKind); 3] = [
    ("FLAT_TREE", TreeKind::Flat),
    ("NARY_TREE", TreeKind::Nary),
    ("KNOMIAL_TREE", TreeKind::Knomial),
];

/// A kind and its fan-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    kind: TreeKind,
    fanout: usize,
}

/// The neighbours of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeLinks {
    /// None at the root.
    pub(super) parent: Option<usize>,
    /// The subtree of this rank ends before this rank.
    pub(super) end: usize,
    /// The ranges of the children, ascending; the first of each is the child.
    pub(super) children: Vec<(usize, usize)>,
}

impl Tree {
    /// All ranks but the root are children of the root.
    pub const FLAT: Tree = Tree { kind: TreeKind::Flat, fanout: 0 };
    /// The tree of the fewest rounds.
    pub const BINOMIAL: Tree = Tree { kind: TreeKind::Knomial, fanout: 2 };

    /// How many kinds there are.
    pub const KINDS: u32 = KINDS.len() as u32;

    /// The tree of this kind; `None` if there is no such kind, or it cannot have this fan-out.
    pub fn new(kind: u32, fanout: usize) -> Option<Tree> {
        match KINDS.get(kind as usize)?.1 {
            TreeKind::Flat => Some(Tree::FLAT),
            TreeKind::Nary => (fanout >= 1).then_some(Tree { kind: TreeKind::Nary, fanout }),
            TreeKind::Knomial => (fanout >= 2).then_some(Tree { kind: TreeKind::Knomial, fanout }),
        }
    }

    /// From text such as `KNOMIAL_TREE,2`; the fan-out is 2 if it is not given.
    pub fn parse(text: &str) -> Option<Tree> {
        let (name, fanout) = match text.split_once(',') {
            Some((name, fanout)) => (name, fanout.trim().parse().ok()?),
            None => (text, 2),
        };
        let kind = KINDS.iter().position(|(n, _)| n.eq_ignore_ascii_case(name.trim()))?;
        Tree::new(kind as u32, fanout)
    }

    /// Its name, in the form of [`Tree::parse`].
    pub fn name(self) -> String {
        let name = KINDS[self.number() as usize].0;
        if self.kind == TreeKind::Flat {
            String::from(name)
        } else {
            format!("{name},{}", self.fanout)
        }
    }

    /// The number of its kind.
    pub fn number(self) -> u32 {
        self.kind as u32
    }

    /// Its fan-out; 0 where it has none.
    pub fn fanout(self) -> usize {
        self.fanout
    }

    /// Whether only the root has children.
    pub(super) fn is_flat(self) -> bool {
        self.kind == TreeKind::Flat
    }

    /// The ranges of the children of `lo`, whose subtree ends before `hi`.
    fn children(self, lo: usize, hi: usize) -> Vec<(usize, usize)> {
        match self.kind {
            TreeKind::Flat => (lo + 1..hi).map(|r| (r, r + 1)).collect(),
            TreeKind::Nary => {
                let below = hi - lo - 1;
                let at = |i: usize| lo + 1 + below * i / self.fanout;
                (0..self.fanout).map(|i| (at(i), at(i + 1))).filter(|(a, b)| a < b).collect()
            }
            TreeKind::Knomial => {
                let mut all = Vec::new();
                let mut size = 1;
                while lo + size < hi {
                    for i in 1..self.fanout {
                        let start = lo + i * size;
                        if start < hi {
                            all.push((start, hi.min(start + size)));
                        }
                    }
                    size *= self.fanout;
                }
                all
            }
        }
    }

    /// The neighbours of `rank` among `n`.
    pub(super) fn links(self, n: usize, rank: usize) -> TreeLinks {
        let (mut parent, mut lo, mut end) = (None, 0, n);
        loop {
            let children = self.children(lo, end);
            if lo == rank {
                return TreeLinks { parent, end, children };
            }
            let next = children.iter().find(|(a, b)| (*a..*b).contains(&rank));
            parent = Some(lo);
            (lo, end) = *next.expect("the children of a node share all ranks below it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_in_once_and_ranges_nest() {
        let trees = [
            "FLAT_TREE",
            "NARY_TREE,1",
            "NARY_TREE,2",
            "NARY_TREE,5",
            "KNOMIAL_TREE,2",
            "KNOMIAL_TREE,4",
        ];
        for tree in trees.map(|t| Tree::parse(t).unwrap()) {
            for n in 1..=40 {
                let mut seen = alloc::vec![0; n];
                seen[0] = 1;
                for rank in 0..n {
                    let links = tree.links(n, rank);
                    assert_eq!(links.parent.is_none(), rank == 0);
                    let mut at = rank + 1;
                    for &(a, b) in &links.children {
                        assert_eq!(a, at);
                        at = b;
                        seen[a] += 1;
                        let child = tree.links(n, a);
                        assert_eq!((child.parent, child.end), (Some(rank), b));
                    }
                    assert_eq!(at, links.end);
                }
                assert!(seen.iter().all(|&s| s == 1));
            }
        }
    }

    #[test]
    fn names() {
        for text in ["FLAT_TREE", "NARY_TREE,3", "KNOMIAL_TREE,2"] {
            let tree = Tree::parse(text).unwrap();
            assert_eq!(tree.name(), text);
            assert_eq!(Tree::new(tree.number(), tree.fanout()), Some(tree));
        }
        assert_eq!(Tree::parse("knomial_tree"), Some(Tree::BINOMIAL));
        for text in ["", "KNOMIAL_TREE,1", "NARY_TREE,0", "NARY_TREE,x", "FORK_TREE,2,2"] {
            assert_eq!(Tree::parse(text), None, "{text}");
        }
    }
}
