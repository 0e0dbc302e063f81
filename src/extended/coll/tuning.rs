//! Which algorithms a team uses: the environment's settings and what the client changed.
//!
//! Read by `choice` and `direct`, changed by the tuning calls of `capi`. Invariant: the settings
//! of a team are the same in all its processes, if these make the same tuning calls.

use super::request::CollOperation;
use super::tree::Tree;
use crate::env::{self, Bytes, OptionalVariable};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::{AtomicU32, Ordering};
use parking_lot::{Mutex, MutexGuard};

/// How many operations there are.
pub const OPERATIONS: usize = 7;

/// The operations in the order of their numbers, with their names in variables and files.
const NAMES: [(&str, CollOperation); OPERATIONS] = [
    ("BROADCAST", CollOperation::Broadcast),
    ("SCATTER", CollOperation::Scatter),
    ("GATHER", CollOperation::Gather),
    ("GATHER_ALL", CollOperation::GatherAll),
    ("EXCHANGE", CollOperation::Exchange),
    ("REDUCE", CollOperation::Reduce),
    ("SCAN", CollOperation::Scan),
];

/// The name of the choice by size.
pub const BY_SIZE: &str = "BY_SIZE";

/// Default of the largest block that all processes send to all by dissemination, in bytes.
/// Larger blocks cost more to move several times than the fewer messages save.
const DISSEMINATE: usize = 256;
/// The settings of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollTuning {
    /// By operation; `None` to choose by size.
    pub(super) trees: [Option<Tree>; OPERATIONS],
    /// By operation: largest block for dissemination, in bytes.
    pub(super) limits: [usize; OPERATIONS],
    /// Radix of exchange's dissemination.
    pub(super) radix: usize,
    /// Bytes that an inner node of a broadcast forwards at a time; 0 for all.
    pub(super) segment: usize,
    /// Largest scratch memory of a tree's node, in bytes.
    pub(super) scratch: usize,
}

/// The settings of a team, which any of its threads may change, and all read in each call.
#[derive(Debug)]
pub struct TeamTuning {
    settings: Mutex<CollTuning>,
    /// A bit for each operation whose algorithm the settings leave open.
    open: AtomicU32,
}

impl TeamTuning {
    pub(super) fn new(settings: CollTuning) -> TeamTuning {
        let open = AtomicU32::new(settings.open());
        TeamTuning { settings: Mutex::new(settings), open }
    }

    /// Reads the settings.
    pub fn settings(&self) -> MutexGuard<'_, CollTuning> {
        self.settings.lock()
    }

    /// Changes the settings.
    pub fn change<R>(&self, f: impl FnOnce(&mut CollTuning) -> R) -> R {
        let mut settings = self.settings.lock();
        let result = f(&mut settings);
        // Relaxed: the client orders its tuning calls and the collectives after them.
        self.open.store(settings.open(), Ordering::Relaxed);
        result
    }

    /// Whether the algorithm of an operation is open: shared memory may carry it out.
    #[inline]
    pub(super) fn leaves_open(&self, operation: CollOperation) -> bool {
        !operation.is_tuned() || self.open.load(Ordering::Relaxed) & 1 << operation as u32 != 0
    }
}

impl CollTuning {
    /// Reads the environment, for a team with at most `images` images on a process.
    pub(super) fn from_env(images: usize) -> CollTuning {
        let rooted = env::COLL_ROOTED_GEOM.get();
        let mut trees = rooted_trees(rooted);
        let mut limits = [DISSEMINATE; OPERATIONS];
        let limit = |all: &OptionalVariable<Bytes>, each: &OptionalVariable<Bytes>| {
            let per_image = || each.get().map(|n| n * images);
            all.get().or_else(per_image).unwrap_or(DISSEMINATE)
        };
        trees[CollOperation::Broadcast as usize] = env::COLL_BROADCAST_GEOM.get().or(rooted);
        trees[CollOperation::Scatter as usize] = env::COLL_SCATTER_GEOM.get().or(rooted);
        trees[CollOperation::Gather as usize] = env::COLL_GATHER_GEOM.get().or(rooted);
        limits[CollOperation::GatherAll as usize] = limit(
            &env::COLL_GATHER_ALL_DISSEM_LIMIT,
            &env::COLL_GATHER_ALL_DISSEM_LIMIT_PER_THREAD,
        );
        limits[CollOperation::Exchange as usize] =
            limit(&env::COLL_EXCHANGE_DISSEM_LIMIT, &env::COLL_EXCHANGE_DISSEM_LIMIT_PER_THREAD);
        // Without optimisation each operation is one message for each pair.
        let all = env::COLL_OPT.get();
        let plain = [
            (CollOperation::Broadcast, &env::COLL_BROADCAST_OPT),
            (CollOperation::Scatter, &env::COLL_SCATTER_OPT),
            (CollOperation::Gather, &env::COLL_GATHER_OPT),
            (CollOperation::GatherAll, &env::COLL_GATHER_ALL_OPT),
            (CollOperation::Exchange, &env::COLL_EXCHANGE_OPT),
        ];
        for (operation, variable) in plain {
            if !variable.get().unwrap_or(all) {
                trees[operation as usize] = Some(Tree::FLAT);
                limits[operation as usize] = 0;
            }
        }
        CollTuning {
            trees,
            limits,
            radix: env::COLL_EXCHANGE_DISSEM_RADIX.get() as usize,
            segment: env::COLL_PIPE_SEG_SIZE.get(),
            scratch: env::COLL_SCRATCH_SIZE.get(),
        }
    }

    /// Sets the tree; `None` to choose by size.
    pub fn set_tree(&mut self, operation: CollOperation, tree: Option<Tree>) {
        self.trees[operation as usize] = tree;
    }

    /// The tree that was set.
    pub fn tree(&self, operation: CollOperation) -> Option<Tree> {
        self.trees[operation as usize]
    }

    /// Sets the largest block for dissemination, in bytes.
    pub fn set_limit(&mut self, operation: CollOperation, limit: usize) {
        self.limits[operation as usize] = limit;
    }

    /// The settings as lines of text: operation, tree or `BY_SIZE`, limit.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, operation) in NAMES {
            let i = operation as usize;
            let tree = self.trees[i].map_or(String::from(BY_SIZE), Tree::name);
            // Writing into a String cannot fail.
            let _ = writeln!(text, "{name} {tree} {}", self.limits[i]);
        }
        text
    }

    /// Reads lines that [`CollTuning::to_text`] wrote.
    ///
    /// # Errors
    /// The first line that it cannot have written.
    pub fn take_text<'a>(&mut self, text: &'a str) -> Result<(), &'a str> {
        for line in text.lines().filter(|l| !l.trim().is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let &[name, tree, limit] = words.as_slice() else { return Err(line) };
            let &(_, operation) = NAMES.iter().find(|(n, _)| *n == name).ok_or(line)?;
            let tree = match tree {
                BY_SIZE => None,
                _ => Some(Tree::parse(tree).ok_or(line)?),
            };
            self.limits[operation as usize] = limit.parse().map_err(|_| line)?;
            self.trees[operation as usize] = tree;
        }
        Ok(())
    }

    /// Leaves the algorithm of an operation open, as it is by default.
    pub(super) fn leave_open(&mut self, operation: CollOperation) {
        if operation.is_tuned() {
            self.trees[operation as usize] = None;
            self.limits[operation as usize] = DISSEMINATE;
        }
    }

    /// See [`TeamTuning`]. A tree of an operation that follows none has no meaning.
    fn open(&self) -> u32 {
        let is_open = |&(_, operation): &(&str, CollOperation)| {
            let i = operation as usize;
            let by_size = self.trees[i].is_none() || !operation.has_tree();
            by_size && self.limits[i] == DISSEMINATE
        };
        NAMES.iter().filter(|named| is_open(named)).fold(0, |open, &(_, op)| open | 1 << op as u32)
    }
}

/// The trees if operations that follow one have this tree.
fn rooted_trees(tree: Option<Tree>) -> [Option<Tree>; OPERATIONS] {
    NAMES.map(|(_, operation)| tree.filter(|_| operation.has_tree()))
}

impl CollOperation {
    /// Whether it has a name, and algorithms to choose from.
    pub(super) fn is_tuned(self) -> bool {
        (self as usize) < OPERATIONS
    }

    /// Whether its messages may follow a tree.
    pub(super) fn has_tree(self) -> bool {
        use CollOperation::{Broadcast, Gather, Reduce, Scatter};
        matches!(self, Broadcast | Scatter | Gather | Reduce)
    }

    /// Its name in variables and files.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back() {
        let mut tuning = CollTuning {
            trees: [None; OPERATIONS],
            limits: [7; OPERATIONS],
            radix: 2,
            segment: 0,
            scratch: usize::MAX,
        };
        let untouched = tuning.clone();
        tuning.set_tree(CollOperation::Gather, Tree::parse("NARY_TREE,3"));
        tuning.set_limit(CollOperation::Exchange, 99);
        let mut again = untouched.clone();
        assert_eq!(again.take_text(&tuning.to_text()), Ok(()));
        assert_eq!(again, tuning);
        for bad in [
            "BROADCAST",
            "BROADCAST FLAT_TREE",
            "BROADCAST OAK 1",
            "SING FLAT_TREE 1",
            "SCAN BY_SIZE x",
        ] {
            assert_eq!(untouched.clone().take_text(bad), Err(bad));
        }
    }

    /// The tree of rooted operations leaves the others to shared memory.
    #[test]
    fn a_rooted_tree_is_of_rooted_operations() {
        let tuning = TeamTuning::new(CollTuning {
            trees: rooted_trees(Some(Tree::FLAT)),
            limits: [DISSEMINATE; OPERATIONS],
            radix: 2,
            segment: 0,
            scratch: 0,
        });
        for (name, operation) in NAMES {
            assert_eq!(tuning.leaves_open(operation), !operation.has_tree(), "{name}");
        }
    }

    #[test]
    fn a_tree_of_an_operation_without_trees_changes_nothing() {
        let tuning = TeamTuning::new(CollTuning {
            trees: [None; OPERATIONS],
            limits: [DISSEMINATE; OPERATIONS],
            radix: 2,
            segment: 0,
            scratch: 0,
        });
        for (name, operation) in NAMES {
            tuning.change(|t| t.set_tree(operation, Some(Tree::BINOMIAL)));
            assert_eq!(tuning.leaves_open(operation), !operation.has_tree(), "{name}");
        }
    }

    #[test]
    fn operations_have_their_numbers() {
        for (i, (name, operation)) in NAMES.iter().enumerate() {
            assert_eq!((*operation as usize, operation.name()), (i, *name));
        }
    }

    /// Any text is read or refused; what was read is written so that it is read again.
    fn any_text(input: &[u8]) {
        let text = String::from_utf8_lossy(input);
        let default = || CollTuning {
            trees: [None; OPERATIONS],
            limits: [DISSEMINATE; OPERATIONS],
            radix: 2,
            segment: 1024,
            scratch: 1 << 20,
        };
        let mut tuning = default();
        if let Err(line) = tuning.take_text(&text) {
            assert!(text.lines().any(|l| l == line));
            return;
        }
        let mut again = default();
        assert_eq!(again.take_text(&tuning.to_text()), Ok(()));
        assert_eq!((again.trees, again.limits), (tuning.trees, tuning.limits));
    }

    #[test]
    fn fuzz_coll_tuning() {
        fuzz::check("coll_tuning", 5_000, any_text);
    }
}
