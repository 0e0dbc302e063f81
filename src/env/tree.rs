//! Trees of collectives, as variables and files name them: a kind and its fan-out.
//!
//! Used by the kinds of variables; `extended::coll` says which ranks are neighbours. Invariant:
//! the fan-out is one that the kind can have. Imports nothing.

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
    pub(crate) kind: TreeKind,
    pub(crate) fanout: usize,
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
