//! Trees over the ranks 0 to n - 1, with the root at 0, for rooted collectives.
//!
//! Pure functions, used by the plans. Invariant: in every kind of tree a subtree is a range of
//! consecutive ranks that begins with its root. So its blocks are one piece of memory, and
//! combining children in order keeps the order of the operands.
//!
//! ```text
//!   flat           0: 1 2 3 4 5 6 7
//!   n-ary, 2       0: 1-3 4-7        1: 2 3    4: 5 6-7    6: 7
//!   k-nomial, 2    0: 1 2-3 4-7      2: 3      4: 5 6-7    6: 7
//! ```

pub use crate::env::Tree;
use crate::env::TreeKind;
use alloc::vec::Vec;

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
                let parts = self.fanout.min(below);
                let at = |i: usize| lo + 1 + below * i / parts;
                (0..parts).map(|i| (at(i), at(i + 1))).filter(|(a, b)| a < b).collect()
            }
            TreeKind::Knomial => {
                let mut all = Vec::new();
                let mut size = 1;
                while size < hi - lo {
                    let starts = (lo + size..hi).step_by(size).take(self.fanout - 1);
                    all.extend(starts.map(|start| (start, hi.min(start + size))));
                    size = size.saturating_mul(self.fanout);
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
        let wide = [TreeKind::Nary, TreeKind::Knomial];
        let wide = wide.map(|kind| Tree::new(kind as u32, usize::MAX).unwrap());
        for tree in trees.map(|t| Tree::parse(t).unwrap()).into_iter().chain(wide) {
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
}
