//! Plans of all processes of a team, carried out in one process with messages in any order. Every
//! operation, algorithm and root gives the right result, and nothing else is written.

use super::all_to_all::{self, AllToAll};
use super::arrays::{self, DealtArray};
use super::block_cyclic::BlockCyclic;
use super::compute::{self, RECEIVED_AT_ONCE};
use super::layout::{LocalBlocks, TeamLayout};
use super::plan::{CollPlan, CollTransfer, LocalStep, TransferMemory};
use super::request::{CollBuffers, CollMemory, CollRequest};
use super::tree::Tree;
use super::{CollOperation, ReduceOperator, Reduction, movement, rest};
use crate::client_memory::{Dst, Src};
use crate::extended::random::SeededRandom;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::{c_int, c_void};

/// A message: sender, receiver, tag.
type TestMessage = (usize, usize, u32);

/// Carries out the plans of all processes.
fn carry_out(plans: &[CollPlan], random: &mut SeededRandom) {
    let n = plans.len();
    let (mut round, mut begun) = (vec![0; n], vec![false; n]);
    // Data in flight, and receives that wait, by sender, receiver and tag.
    let mut sent: BTreeMap<TestMessage, Vec<u8>> = BTreeMap::new();
    let mut wanted: Vec<Vec<(TestMessage, Dst<'static>)>> = vec![Vec::new(); n];
    let mut idle = 0;
    while (0..n).any(|p| round[p] < plans[p].rounds.len()) {
        let me = random.below(n);
        idle += 1;
        assert!(idle < 100_000, "all processes wait");
        if round[me] == plans[me].rounds.len() {
            continue;
        }
        if !begun[me] {
            begun[me] = true;
            plans[me].work(round[me]);
            for t in &plans[me].rounds[round[me]].transfers {
                let peer = t.peer.index();
                assert_ne!(peer, me);
                match t.memory {
                    TransferMemory::Send(from) => {
                        let mut data = vec![0; from.len()];
                        Dst::from(&mut data[..]).copy_from(from);
                        let before = sent.insert((me, peer, t.tag), data);
                        assert!(before.is_none(), "two messages of one name");
                    }
                    TransferMemory::Receive(to) => wanted[me].push(((peer, me, t.tag), to)),
                }
            }
        }
        wanted[me].retain(|&(name, to)| {
            let Some(data) = sent.remove(&name) else { return true };
            to.copy_from(Src::from(&data[..]));
            idle = 0;
            false
        });
        if wanted[me].is_empty() {
            round[me] += 1;
            begun[me] = false;
            idle = 0;
        }
    }
    assert!(sent.is_empty(), "messages that no process expects");
}

/// Memory of an image, with a margin around it that must stay as it is.
struct GuardedMemory(CollMemory, usize);

const MARGIN: usize = 32;
const BLANK: u8 = 0xee;

impl GuardedMemory {
    fn new(data: &[u8]) -> GuardedMemory {
        let mut memory = GuardedMemory(CollMemory::new(data.len() + 2 * MARGIN), data.len());
        memory.0.bytes().fill(BLANK);
        memory.bytes().copy_from(Src::from(data));
        memory
    }

    fn blank(n: usize) -> GuardedMemory {
        GuardedMemory::new(&vec![BLANK; n])
    }

    /// The bytes between the margins.
    fn bytes(&mut self) -> Dst<'static> {
        self.0.bytes().part(MARGIN, self.1)
    }

    fn check(&mut self, data: &[u8], what: &str) {
        let mut all = vec![0; self.1 + 2 * MARGIN];
        Dst::from(&mut all[..]).copy_from(self.0.bytes().into());
        let (before, rest) = all.split_at(MARGIN);
        let (bytes, after) = rest.split_at(self.1);
        assert!(before.iter().chain(after).all(|&b| b == BLANK), "{what}: margin");
        assert_eq!(bytes, data, "{what}");
    }
}

/// The images of each process, for teams of several shapes.
fn teams() -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = (1..=9).map(|n| vec![1; n]).collect();
    all.extend([
        vec![2],
        vec![3, 3],
        vec![2; 5],
        vec![1, 3, 2],
        vec![4, 1, 1, 2, 1],
        vec![1; 17],
        vec![2; 8],
    ]);
    all
}

fn first(counts: &[u32]) -> Vec<u32> {
    let mut first = vec![0];
    for count in counts {
        first.push(first[first.len() - 1] + count);
    }
    first
}

/// The block of image i for image j.
fn block(i: usize, j: usize, n: usize) -> Vec<u8> {
    (0..n).map(|k| (i * 37 + j * 101 + k * 7 + 1) as u8 & 0x7f).collect()
}

fn blocks(i: usize, all: usize, n: usize) -> Vec<u8> {
    (0..all).flat_map(|j| block(i, j, n)).collect()
}

/// Makes the plans of a team with `make` and carries them out on `dst` and `src`, by image.
fn run(
    counts: &[u32],
    nbytes: usize,
    reduction: Option<Reduction>,
    dst: &mut [GuardedMemory],
    src: &mut [GuardedMemory],
    make: impl Fn(&mut CollPlan, TeamLayout<'_>, LocalBlocks<'_>),
) {
    let first = first(counts);
    let buffers: Vec<CollBuffers> = dst
        .iter_mut()
        .zip(src)
        .map(|(dst, src)| CollBuffers { dst: dst.bytes(), src: src.bytes().into() })
        .collect();
    let mut random = SeededRandom::new(nbytes as u64 * 31 + counts.len() as u64 + 1);
    let plans: Vec<CollPlan> = (0..counts.len())
        .map(|me| {
            let mut plan = CollPlan::with(reduction);
            let images = first[me] as usize..first[me + 1] as usize;
            let places = LocalBlocks { images: &buffers[images], nbytes };
            plan.barrier(counts.len(), me, false);
            make(&mut plan, TeamLayout { me, first: &first }, places);
            plan.barrier(counts.len(), me, true);
            plan
        })
        .collect();
    carry_out(&plans, &mut random);
}

const TREES: [&str; 6] =
    ["FLAT_TREE", "KNOMIAL_TREE,2", "KNOMIAL_TREE,3", "NARY_TREE,1", "NARY_TREE,2", "NARY_TREE,4"];

fn trees() -> impl Iterator<Item = Tree> {
    TREES.iter().filter_map(|t| Tree::parse(t))
}

#[test]
fn broadcast() {
    for counts in teams() {
        let all = counts.iter().sum::<u32>() as usize;
        for (tree, root) in trees().flat_map(|t| (0..all).map(move |r| (t, r))) {
            for (n, segment) in [(0, 0), (1, 0), (13, 0), (13, 4), (12, 4)] {
                let mut dst: Vec<GuardedMemory> =
                    (0..all).map(|_| GuardedMemory::blank(n)).collect();
                let mut src: Vec<GuardedMemory> =
                    (0..all).map(|i| GuardedMemory::new(&block(i, 0, n))).collect();
                run(&counts, n, None, &mut dst, &mut src, |plan, l, p| {
                    movement::broadcast(plan, l, p, root, tree, segment);
                });
                for d in &mut dst {
                    d.check(&block(root, 0, n), "broadcast");
                }
            }
        }
    }
}

#[test]
fn scatter_and_gather() {
    for counts in teams() {
        let all = counts.iter().sum::<u32>() as usize;
        for (tree, root) in trees().flat_map(|t| (0..all).map(move |r| (t, r))) {
            let n = 5;
            let mut dst: Vec<GuardedMemory> = (0..all).map(|_| GuardedMemory::blank(n)).collect();
            let mut src: Vec<GuardedMemory> =
                (0..all).map(|i| GuardedMemory::new(&blocks(i, all, n))).collect();
            run(&counts, n, None, &mut dst, &mut src, |plan, l, p| {
                movement::scatter(plan, l, p, root, tree)
            });
            for (i, d) in dst.iter_mut().enumerate() {
                d.check(&block(root, i, n), "scatter");
            }
            let mut dst: Vec<GuardedMemory> =
                (0..all).map(|_| GuardedMemory::blank(n * all)).collect();
            let mut src: Vec<GuardedMemory> =
                (0..all).map(|i| GuardedMemory::new(&block(root, i, n))).collect();
            run(&counts, n, None, &mut dst, &mut src, |plan, l, p| {
                movement::gather(plan, l, p, root, tree)
            });
            dst[root].check(&blocks(root, all, n), "gather");
            for (_, d) in dst.iter_mut().enumerate().filter(|(i, _)| *i != root) {
                d.check(&vec![BLANK; n * all], "gather, not the root");
            }
        }
    }
}

#[test]
fn all_to_all() {
    for counts in teams() {
        let all = counts.iter().sum::<u32>() as usize;
        let ways = [
            AllToAll::Direct,
            AllToAll::Ring,
            AllToAll::Dissemination(2),
            AllToAll::Dissemination(3),
            AllToAll::Dissemination(8),
        ];
        for (how, n) in ways.into_iter().flat_map(|h| [(h, 1), (h, 6)]) {
            let mut dst: Vec<GuardedMemory> =
                (0..all).map(|_| GuardedMemory::blank(n * all)).collect();
            let mut src: Vec<GuardedMemory> =
                (0..all).map(|i| GuardedMemory::new(&block(9, i, n))).collect();
            run(&counts, n, None, &mut dst, &mut src, |plan, l, p| {
                all_to_all::gather_all(plan, l, p, how)
            });
            for d in &mut dst {
                d.check(&blocks(9, all, n), "gather_all");
            }
            let mut dst: Vec<GuardedMemory> =
                (0..all).map(|_| GuardedMemory::blank(n * all)).collect();
            let mut src: Vec<GuardedMemory> =
                (0..all).map(|i| GuardedMemory::new(&blocks(i, all, n))).collect();
            run(&counts, n, None, &mut dst, &mut src, |plan, l, p| {
                all_to_all::exchange(plan, l, p, how)
            });
            for (j, d) in dst.iter_mut().enumerate() {
                let want: Vec<u8> = (0..all).flat_map(|i| block(i, j, n)).collect();
                d.check(&want, "exchange");
            }
        }
    }
}

/// The composition of the maps x -> a x + b modulo 256, which is associative and not commutative.
unsafe extern "C" fn compose(
    results: *mut c_void,
    count: usize,
    left: *const c_void,
    left_count: usize,
    right: *const c_void,
    elem_size: usize,
    _flags: c_int,
    _arg: c_int,
) {
    assert_eq!((left_count, elem_size), (count, 2));
    each_element(count, [results.cast_const(), left, right], both);
}

/// `to = f(left, right)` for each of `count` elements of N bytes; the areas are to, left, right.
fn each_element<const N: usize>(
    count: usize,
    areas: [*const c_void; 3],
    f: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    // SAFETY: `Reduction::combine` calls with three areas of `count` elements.
    let [to, left, right] = areas.map(|a| unsafe { Dst::new(a.cast_mut().cast(), count * N) });
    for i in 0..count {
        let element = |area: Dst<'_>| {
            let mut bytes = [0; N];
            Dst::from(&mut bytes[..]).copy_from(area.part(i * N, N).into());
            bytes
        };
        to.part(i * N, N).copy_from(Src::from(&f(element(left), element(right))[..]));
    }
}

fn both([a, b]: [u8; 2], [c, d]: [u8; 2]) -> [u8; 2] {
    [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
}

const ELEMENTS: usize = 3;

fn operands(image: usize) -> Vec<u8> {
    (0..2 * ELEMENTS).map(|k| (image * 29 + k * 5 + 3) as u8).collect()
}

/// The combination of those of the images of a range.
fn combined(range: core::ops::Range<usize>) -> Vec<u8> {
    (0..ELEMENTS)
        .flat_map(|k| {
            range
                .clone()
                .map(|i| [operands(i)[2 * k], operands(i)[2 * k + 1]])
                .reduce(both)
                .unwrap_or([BLANK, BLANK])
        })
        .collect()
}

#[test]
fn reduce_and_scan() {
    let n = 2 * ELEMENTS;
    let fold = Reduction {
        operator: ReduceOperator::Registered { function: compose, flags: 2, arg: 0 },
        elem_size: 2,
    };
    for counts in teams() {
        let all = counts.iter().sum::<u32>() as usize;
        for (tree, root) in trees().flat_map(|t| (0..all).map(move |r| (t, r))) {
            let mut dst: Vec<GuardedMemory> = (0..all).map(|_| GuardedMemory::blank(n)).collect();
            let mut src: Vec<GuardedMemory> =
                (0..all).map(|i| GuardedMemory::new(&operands(i))).collect();
            run(&counts, n, Some(fold), &mut dst, &mut src, |plan, l, p| {
                compute::reduce(plan, l, p, root, tree, true);
            });
            for (i, d) in dst.iter_mut().enumerate() {
                let want = if i == root { combined(0..all) } else { vec![BLANK; n] };
                d.check(&want, "reduce");
            }
        }
        for inclusive in [true, false] {
            let mut dst: Vec<GuardedMemory> = (0..all).map(|_| GuardedMemory::blank(n)).collect();
            let mut src: Vec<GuardedMemory> =
                (0..all).map(|i| GuardedMemory::new(&operands(i))).collect();
            run(&counts, n, Some(fold), &mut dst, &mut src, |plan, l, p| {
                compute::scan(plan, l, p, inclusive);
            });
            for (i, d) in dst.iter_mut().enumerate() {
                d.check(&combined(0..i + usize::from(inclusive)), "scan");
            }
        }
    }
}

unsafe extern "C" fn add(
    results: *mut c_void,
    count: usize,
    left: *const c_void,
    _left_count: usize,
    right: *const c_void,
    _elem_size: usize,
    _flags: c_int,
    _arg: c_int,
) {
    each_element(count, [results.cast_const(), left, right], |[a], [b]| [a.wrapping_add(b)]);
}

#[test]
fn reduce_from_the_root_on() {
    let operator = ReduceOperator::Registered { function: add, flags: 0, arg: 0 };
    let fold = Reduction { operator, elem_size: 1 };
    for counts in teams() {
        let all = counts.iter().sum::<u32>() as usize;
        for (tree, root) in trees().flat_map(|t| (0..all).map(move |r| (t, r))) {
            let mut dst: Vec<GuardedMemory> = (0..all).map(|_| GuardedMemory::blank(4)).collect();
            let mut src: Vec<GuardedMemory> =
                (0..all).map(|i| GuardedMemory::new(&[i as u8, 1, 2, 255])).collect();
            run(&counts, 4, Some(fold), &mut dst, &mut src, |plan, l, p| {
                compute::reduce(plan, l, p, root, tree, false);
            });
            let n = all as u8;
            let sum = (0..n).fold(0, u8::wrapping_add);
            dst[root].check(&[sum, n, n.wrapping_mul(2), 0u8.wrapping_sub(n)], "reduce");
        }
    }
}

/// As `compose`, of the first two bytes of an element; the others are those of the left operand.
unsafe extern "C" fn compose_first(
    results: *mut c_void,
    count: usize,
    left: *const c_void,
    _left_count: usize,
    right: *const c_void,
    elem_size: usize,
    _flags: c_int,
    _arg: c_int,
) {
    assert_eq!(count, 1);
    // SAFETY: `Reduction::combine` calls with areas of an element.
    let [to, from] = [results, left.cast_mut()].map(|a| unsafe { Dst::new(a.cast(), elem_size) });
    to.copy_from(from.into());
    each_element(count, [results.cast_const(), left, right], both);
}

/// Where a plan puts messages and combinations.
fn areas(plan: &CollPlan) -> BTreeSet<usize> {
    let combined = |step: &LocalStep| match *step {
        LocalStep::Combine { to, .. } => Some(to),
        _ => None,
    };
    let received = |t: &CollTransfer| match t.memory {
        TransferMemory::Receive(to) => Some(to),
        TransferMemory::Send(_) => None,
    };
    let rounds = plan.rounds.iter();
    let all = rounds.flat_map(|r| {
        r.steps.iter().filter_map(combined).chain(r.transfers.iter().filter_map(received))
    });
    all.map(|to| to.as_ptr().addr()).collect()
}

/// Large operands, some of which come as messages, are combined in their order. The memory for
/// that does not grow with their number.
#[test]
fn large_operands_share_memory() {
    const RANKS: usize = 7;
    for (n, at_once) in [(RECEIVED_AT_ONCE / 2, 2), (RECEIVED_AT_ONCE + 2, 1)] {
        let operand = |rank: usize| [&operands(rank)[..2], &vec![rank as u8; n - 2]].concat();
        let want = [&combined(0..RANKS)[..2], &vec![0; n - 2]].concat();
        let operator = ReduceOperator::Registered { function: compose_first, flags: 2, arg: 0 };
        let fold = Reduction { operator, elem_size: n };
        let request =
            CollRequest { reduction: Some(fold), ..CollRequest::new(CollOperation::Reduce, n) };
        for (root, missing) in [(0, 0b111_1110), (6, 0b011_1111), (3, 0b100_0110), (2, 0b101_1001)]
        {
            let request = CollRequest { root: root as u32, ..request };
            let mut dst = GuardedMemory::blank(n);
            let mut src: Vec<GuardedMemory> =
                (0..RANKS).map(|rank| GuardedMemory::new(&operand(rank))).collect();
            let buffers: Vec<CollBuffers> = src
                .iter_mut()
                .map(|src| CollBuffers { dst: dst.bytes(), src: src.bytes().into() })
                .collect();
            let is_missing = |rank: usize| missing & 1 << rank != 0;
            let sources: Vec<Option<Src<'_>>> =
                (0..RANKS).map(|rank| (!is_missing(rank)).then_some(buffers[rank].src)).collect();
            let plans: Vec<CollPlan> = (0..RANKS)
                .map(|rank| match rank {
                    _ if rank == root => rest::received(&request, buffers[rank], &sources),
                    _ if is_missing(rank) => rest::sent(&request, buffers[rank]),
                    _ => CollPlan::default(),
                })
                .collect();
            assert!(areas(&plans[root]).len() <= 2 + at_once);
            carry_out(&plans, &mut SeededRandom::new(1));
            dst.check(&want, "rest of a reduction");
        }
        let mut dst: Vec<GuardedMemory> = (0..RANKS).map(|_| GuardedMemory::blank(n)).collect();
        let mut src: Vec<GuardedMemory> =
            (0..RANKS).map(|rank| GuardedMemory::new(&operand(rank))).collect();
        run(&[1; RANKS], n, Some(fold), &mut dst, &mut src, |plan, l, p| {
            compute::reduce(plan, l, p, 0, Tree::FLAT, true);
            assert!(l.me > 0 || areas(plan).len() <= 3 + at_once, "one is for the barrier");
        });
        dst[0].check(&want, "reduce over a flat tree");
    }
}

/// Block size and offset of arrays.
const ARRAYS: [(usize, usize); 7] = [(1, 0), (1, 3), (2, 5), (3, 1), (5, 17), (16, 9), (1000, 0)];

/// Element `i` of an array of maps, or of bytes.
fn element<const N: usize>(i: usize) -> [u8; N] {
    core::array::from_fn(|k| (i * 29 + k * 83 + 3) as u8)
}

/// The memory of each image for the elements from `first` on, from the first used one on.
fn dealt<const N: usize>(
    (block, offset): (usize, usize),
    images: usize,
    elements: &[[u8; N]],
) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(); images];
    for (i, e) in elements.iter().enumerate() {
        all[(offset + i) / block % images].extend(e);
    }
    all
}

/// The combinations of the elements up to each.
fn running<const N: usize>(count: usize, f: impl Fn([u8; N], [u8; N]) -> [u8; N]) -> Vec<[u8; N]> {
    let mut all: Vec<[u8; N]> = Vec::new();
    for i in 0..count {
        all.push(all.last().map_or(element(i), |&left| f(left, element(i))));
    }
    all
}

fn array(l: TeamLayout<'_>, layout: (usize, usize), size: usize, count: usize) -> DealtArray<'_> {
    let layout = BlockCyclic::new(layout.0, layout.1).unwrap();
    DealtArray { l, layout, size, count, first: 0 }
}

#[test]
fn reduce_an_array() {
    let ordered = ReduceOperator::Registered { function: compose, flags: 2, arg: 0 };
    let any_order = ReduceOperator::Registered { function: add, flags: 0, arg: 0 };
    for (counts, at) in teams().into_iter().flat_map(|c| ARRAYS.map(|a| (c.clone(), a))) {
        let all = counts.iter().sum::<u32>() as usize;
        for (i, count) in [0, 1, 2, 7, 40].into_iter().enumerate() {
            let (root, tree) = ((at.1 + i) % all, trees().nth(i).unwrap());
            let blanks = |n: usize| -> Vec<GuardedMemory> {
                (0..all).map(|i| GuardedMemory::blank(if i == root { n } else { 0 })).collect()
            };
            let elements: Vec<[u8; 2]> = (0..count).map(element).collect();
            let src = dealt(at, all, &elements);
            let mut src: Vec<GuardedMemory> = src.iter().map(|s| GuardedMemory::new(s)).collect();
            let mut dst = blanks(2);
            let fold = Reduction { operator: ordered, elem_size: 2 };
            run(&counts, 2, Some(fold), &mut dst, &mut src, |plan, l, p| {
                arrays::reduce(plan, array(l, at, 2, count), p, root, tree, true);
            });
            let want = running(count, both).last().copied().unwrap_or([BLANK; 2]);
            dst[root].check(&want, "reduce in order");
            let elements: Vec<[u8; 1]> = (0..count).map(element).collect();
            let src = dealt(at, all, &elements);
            let mut src: Vec<GuardedMemory> = src.iter().map(|s| GuardedMemory::new(s)).collect();
            let mut dst = blanks(1);
            let fold = Reduction { operator: any_order, elem_size: 1 };
            run(&counts, 1, Some(fold), &mut dst, &mut src, |plan, l, p| {
                arrays::reduce(plan, array(l, at, 1, count), p, root, tree, false);
            });
            let sum = running(count, |[a], [b]| [a.wrapping_add(b)]);
            dst[root].check(sum.last().unwrap_or(&[BLANK]), "reduce");
        }
    }
}

#[test]
fn scan_an_array() {
    let operator = ReduceOperator::Registered { function: compose, flags: 2, arg: 0 };
    let fold = Reduction { operator, elem_size: 2 };
    for (counts, at) in teams().into_iter().flat_map(|c| ARRAYS.map(|a| (c.clone(), a))) {
        let all = counts.iter().sum::<u32>() as usize;
        for (i, count) in [0, 1, 2, 7, 40].into_iter().enumerate() {
            let to = ARRAYS[(at.0 + i) % ARRAYS.len()];
            for exclusive in [0, 1] {
                let elements: Vec<[u8; 2]> = (0..count).map(element).collect();
                let src = dealt(at, all, &elements);
                let mut src: Vec<GuardedMemory> =
                    src.iter().map(|s| GuardedMemory::new(s)).collect();
                let first = exclusive.min(count);
                let results = running(count, both);
                let to = (to.0, to.1 + first);
                let want = dealt(to, all, &results[..count - first]);
                let mut dst: Vec<GuardedMemory> =
                    want.iter().map(|d| GuardedMemory::blank(d.len())).collect();
                run(&counts, 2, Some(fold), &mut dst, &mut src, |plan, l, p| {
                    let written = array(l, (to.0, to.1 - first), 2, count);
                    let dst = DealtArray { first, ..written };
                    arrays::scan(plan, array(l, at, 2, count), dst, p);
                });
                for (d, want) in dst.iter_mut().zip(want) {
                    d.check(&want, "scan");
                }
            }
        }
    }
}
