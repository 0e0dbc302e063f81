//! Which algorithm a collective uses: by operation, size, and what the environment or the client asks for.
//!
//! Called by `engine` to make a plan, by the tuning calls to change what a team does. Invariant: all processes of a team
//! come to the same choice, because it depends on nothing but the call and what is the same everywhere.

use super::engine::ImageBuffers;
use super::movement::{self, AllToAll, LocalBlocks, TeamLayout};
use super::plan::CollPlan;
use super::team::TeamView;
use super::tree::Tree;
use super::{CollOperation, CollRequest, compute};
use crate::env::{self, Bytes, FreeText, OptionalVariable};
use crate::report;
use crate::runtime::Ctx;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// How many operations there are.
pub const OPERATIONS: usize = 7;

/// The operations in the order of their numbers, as they are named in variables and files.
const NAMES: [(&str, CollOperation); OPERATIONS] = [
    ("BROADCAST", CollOperation::Broadcast),
    ("SCATTER", CollOperation::Scatter),
    ("GATHER", CollOperation::Gather),
    ("GATHER_ALL", CollOperation::GatherAll),
    ("EXCHANGE", CollOperation::Exchange),
    ("REDUCE", CollOperation::Reduce),
    ("SCAN", CollOperation::Scan),
];

/// Largest block that all processes send to all by dissemination, unless something else is asked for. Beyond it fewer
/// messages do not pay for moving the data several times.
const DISSEMINATE: usize = 256;
/// Processes that a root serves one by one, each with one message, before a tree is worth its copies.
const SERVED: usize = 16;
/// Largest block that goes through the scratch memory of inner nodes.
const PASSED_ON: usize = 2048;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollTuning {
    /// By operation; `None` to go by size.
    trees: [Option<Tree>; OPERATIONS],
    /// By operation: largest block for dissemination, in bytes.
    limits: [usize; OPERATIONS],
    /// Radix of exchange's dissemination.
    radix: usize,
    /// Bytes that an inner node of a broadcast passes on at a time; 0 for all.
    segment: usize,
    /// Most scratch memory of a tree's node, in bytes.
    scratch: usize,
}

fn tree_of(variable: &OptionalVariable<FreeText>) -> Option<Tree> {
    let text = variable.get()?;
    Some(Tree::parse(&text).unwrap_or_else(|| {
        report::fatal(
            format_args!("{}={text} cannot be used", variable.name()),
            format_args!(
                "Give FLAT_TREE, NARY_TREE,n (n at least 1) or KNOMIAL_TREE,n (n at least 2), or unset it."
            ),
        )
    }))
}

impl CollTuning {
    /// Reads the environment, for a team with so many images on each process at most.
    pub(super) fn from_env(images: usize) -> CollTuning {
        let rooted = tree_of(&env::COLL_ROOTED_GEOM);
        let mut trees = [rooted; OPERATIONS];
        let mut limits = [DISSEMINATE; OPERATIONS];
        let limit = |all: &OptionalVariable<Bytes>, each: &OptionalVariable<Bytes>| {
            let per_image = || each.get().map(|n| n * images);
            all.get().or_else(per_image).unwrap_or(DISSEMINATE)
        };
        trees[CollOperation::Broadcast as usize] = tree_of(&env::COLL_BROADCAST_GEOM).or(rooted);
        trees[CollOperation::Scatter as usize] = tree_of(&env::COLL_SCATTER_GEOM).or(rooted);
        trees[CollOperation::Gather as usize] = tree_of(&env::COLL_GATHER_GEOM).or(rooted);
        limits[CollOperation::GatherAll as usize] = limit(
            &env::COLL_GATHER_ALL_DISSEM_LIMIT,
            &env::COLL_GATHER_ALL_DISSEM_LIMIT_PER_THREAD,
        );
        limits[CollOperation::Exchange as usize] =
            limit(&env::COLL_EXCHANGE_DISSEM_LIMIT, &env::COLL_EXCHANGE_DISSEM_LIMIT_PER_THREAD);
        // Without optimisation each operation is one message per pair.
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

    /// Asks for a tree.
    pub fn set_tree(&mut self, operation: CollOperation, tree: Option<Tree>) {
        self.trees[operation as usize] = tree;
    }

    /// The tree that was asked for.
    pub fn tree(&self, operation: CollOperation) -> Option<Tree> {
        self.trees[operation as usize]
    }

    /// Sets the largest block for dissemination, in bytes.
    pub fn set_limit(&mut self, operation: CollOperation, limit: usize) {
        self.limits[operation as usize] = limit;
    }

    /// As lines of text: operation, tree or `BY_SIZE`, limit.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, operation) in NAMES {
            let i = operation as usize;
            let tree = self.trees[i].map_or(String::from("BY_SIZE"), Tree::name);
            // Writing into a String cannot fail.
            let _ = writeln!(text, "{name} {tree} {}", self.limits[i]);
        }
        text
    }

    /// Takes over lines that [`CollTuning::to_text`] wrote; the first line that makes no sense is the error.
    ///
    /// # Errors
    /// That line.
    pub fn take_text<'a>(&mut self, text: &'a str) -> Result<(), &'a str> {
        for line in text.lines().filter(|l| !l.trim().is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let &[name, tree, limit] = words.as_slice() else { return Err(line) };
            let &(_, operation) = NAMES.iter().find(|(n, _)| *n == name).ok_or(line)?;
            let tree = match tree {
                "BY_SIZE" => None,
                _ => Some(Tree::parse(tree).ok_or(line)?),
            };
            self.limits[operation as usize] = limit.parse().map_err(|_| line)?;
            self.trees[operation as usize] = tree;
        }
        Ok(())
    }

    /// Whether nothing is asked for of this movement. Combining is none.
    pub(super) fn leaves_open(&self, operation: CollOperation) -> bool {
        let i = operation as usize;
        i <= CollOperation::Exchange as usize
            && self.trees[i].is_none()
            && self.limits[i] == DISSEMINATE
    }

    /// The tree of an operation whose inner nodes hold the blocks of others.
    fn holding(&self, operation: CollOperation, l: TeamLayout<'_>, nbytes: usize) -> Tree {
        let by_size =
            if l.n() > SERVED && nbytes <= PASSED_ON { Tree::BINOMIAL } else { Tree::FLAT };
        let tree = self.trees[operation as usize].unwrap_or(by_size);
        if l.all().saturating_mul(nbytes) > self.scratch { Tree::FLAT } else { tree }
    }

    fn all_to_all(
        &self,
        operation: CollOperation,
        l: TeamLayout<'_>,
        nbytes: usize,
        large: AllToAll,
    ) -> AllToAll {
        let small = nbytes <= self.limits[operation as usize] && l.n() > 2;
        if small { AllToAll::Dissemination(self.radix) } else { large }
    }
}

impl CollOperation {
    /// As in variables and files.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }
}

/// The plan of this process for a request, with the addresses of its images.
pub(super) fn plan(
    ctx: Ctx,
    view: &TeamView,
    request: &CollRequest,
    places: &[ImageBuffers],
) -> CollPlan {
    let l = TeamLayout { me: view.me, first: &view.first };
    let dst: Vec<*mut u8> = places.iter().map(|p| p.dst).collect();
    let src: Vec<*mut u8> = places.iter().map(|p| p.src).collect();
    let p = LocalBlocks { dst: &dst, src: &src, nbytes: request.nbytes };
    let tuning = view.tuning.lock();
    // Where everybody writes into mapped memory, a block is best copied once.
    let far = (0..l.n()).any(|r| !ctx.job.segments()[view.members[r]].is_mapped());
    let large = if far { AllToAll::Ring } else { AllToAll::Direct };
    let mut plan = CollPlan::with(request.fold);
    if request.in_allsync {
        plan.barrier(l.n(), l.me, false);
    }
    let (op, root, n) = (request.operation, request.root as usize, request.nbytes);
    match op {
        CollOperation::Barrier => {}
        CollOperation::Broadcast => {
            let tree = tuning.trees[op as usize].unwrap_or(Tree::BINOMIAL);
            movement::broadcast(&mut plan, l, p, root, tree, tuning.segment);
        }
        CollOperation::Scatter => {
            movement::scatter(&mut plan, l, p, root, tuning.holding(op, l, n))
        }
        CollOperation::Gather => movement::gather(&mut plan, l, p, root, tuning.holding(op, l, n)),
        CollOperation::GatherAll => {
            movement::gather_all(&mut plan, l, p, tuning.all_to_all(op, l, n, large))
        }
        CollOperation::Exchange => {
            movement::exchange(&mut plan, l, p, tuning.all_to_all(op, l, n, AllToAll::Direct));
        }
        CollOperation::Reduce => {
            let tree = tuning.trees[op as usize].unwrap_or(Tree::BINOMIAL);
            let ordered = request.fold.is_some_and(|f| f.flags != 0);
            compute::reduce(&mut plan, l, p, root, tree, ordered);
        }
        CollOperation::Scan => compute::scan(&mut plan, l, p, request.inclusive),
    }
    if request.out_allsync {
        plan.barrier(l.n(), l.me, true);
    }
    plan
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

    #[test]
    fn operations_have_their_numbers() {
        for (i, (name, operation)) in NAMES.iter().enumerate() {
            assert_eq!((*operation as usize, operation.name()), (i, *name));
        }
    }
}
