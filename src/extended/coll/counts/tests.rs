//! Tests of the counts of movements.

use super::*;
use crate::client_memory::Src;
use crate::extended::coll::request::{CollOperation, CollRequest};
use crate::extended::coll::roles::MovementRoles;
use crate::extended::coll::shape::MovementShape;
use alloc::vec::Vec;
use core::ops::Range;

fn enter(rank: &MovementCounts, slots: usize, offsets: &[u64]) -> Option<MovementNumber> {
    let number = rank.next(slots)?;
    rank.publish(number, slots, offsets);
    Some(number)
}

/// Slots among three ranks.
const SLOTS: u64 = slots(3) as u64;
/// Its slot lies where the first was.
const LAST: u64 = SLOTS + 1;

/// Movements that all ranks have entered and left, but for the last one.
fn entered_by_two_of_three(pages: &[ScratchPages]) -> Vec<MovementCounts> {
    let ranks: Vec<MovementCounts> =
        pages.iter().map(|pages| MovementCounts::new(pages, 1)).collect();
    for (rank, number) in
        (1..=LAST).flat_map(|n| [(0, n), (1, n), (2, n)]).take(3 * LAST as usize - 1)
    {
        if rank == 0 && number > 1 {
            ranks.iter().for_each(|r| r.leave(number - 1));
            assert!(ranks.iter().all(|r| r.all_left(number - 1)));
        }
        assert_eq!(enter(&ranks[rank], 1, &[number + 100]), Some(number));
    }
    assert!(ranks.iter().all(|r| r.damage().is_none()));
    ranks
}

#[test]
fn an_awaited_count_is_one_that_lags() {
    let pages = ScratchPages::for_test(3);
    let ranks = entered_by_two_of_three(&pages);
    let number = LAST;
    assert_eq!(ranks[0].awaited(ENTERED, AwaitedRanks::Rank(1), number), AwaitedCount::REACHED);
    let awaited = ranks[0].awaited(ENTERED, AwaitedRanks::All, number);
    assert_eq!(awaited.parts(), (2, ENTERED, number));
    assert!(!ranks[0].is_reached(awaited) && ranks[0].is_reached(AwaitedCount::REACHED));
    assert_eq!(enter(&ranks[2], 1, &[]), Some(number));
    assert!(ranks[0].is_reached(awaited));
    let most = AwaitedCount::new(EAGER_RANKS - 1, LEFT, (1 << NUMBER_BITS) - 1);
    assert_eq!(most.parts(), (EAGER_RANKS - 1, LEFT, (1 << NUMBER_BITS) - 1));
}

#[test]
fn overwritten_words_are_found() {
    let pages = ScratchPages::for_test(3);
    let ranks = entered_by_two_of_three(&pages);
    for rank in 0..3 {
        let offsets = ranks[0].ring(rank).1.iter().take(SLOTS as usize).step_by(65);
        for word in ranks[0].counts(rank)[..2].iter().chain(offsets) {
            let whole = word.load(Ordering::Relaxed);
            for value in [0, u64::MAX, whole ^ 8, whole + 1, whole << 32] {
                word.store(value, Ordering::Relaxed);
                let found = ranks.iter().find_map(MovementCounts::damage).unwrap();
                assert_eq!((found.rank, found.value), (rank, value));
                word.store(whole, Ordering::Relaxed);
            }
        }
    }
}

/// Neither a rank that waits for all nor one with no record of the word goes on with it.
#[test]
fn counts_that_no_rank_can_have_are_no_movement() {
    let pages = ScratchPages::for_test(3);
    let ranks = entered_by_two_of_three(&pages);
    let word = &ranks[0].counts(2)[ENTERED];
    assert!(!ranks[0].all_entered(LAST));
    for (value, is_entered) in
        [(LAST, true), (LAST - 1 + SLOTS, true), (LAST + SLOTS, false), (u64::MAX, false)]
    {
        word.store(value, Ordering::Relaxed);
        assert_eq!(ranks[0].all_entered(LAST), is_entered, "{value}");
    }
    let theirs = ranks[0].damage().expect("rank 0 knows how far rank 2 can be");
    assert_eq!((theirs.rank, theirs.value), (2, u64::MAX));
}

#[test]
fn slots_stay_until_all_can_have_read_them() {
    let pages = ScratchPages::for_test(2);
    let ranks: Vec<MovementCounts> =
        pages.iter().map(|pages| MovementCounts::new(pages, 1)).collect();
    for number in 1..=SLOTS {
        assert_eq!(enter(&ranks[0], 1, &[number * 10]), Some(number));
    }
    assert_eq!((enter(&ranks[0], 1, &[70]), enter(&ranks[1], 2, &[9, 8])), (None, Some(2)));
    assert!(ranks[0].all_entered(1) && ranks[0].all_entered(2) && !ranks[0].all_entered(3));
    ranks[0].leave(1);
    assert_eq!(enter(&ranks[0], 1, &[70]), None);
    ranks[1].leave(1);
    // Room for one, but not for two.
    assert_eq!(enter(&ranks[0], 2, &[70, 80]), None);
    assert_eq!(enter(&ranks[0], 1, &[70]), Some(SLOTS + 1));
    for (number, offset) in [(SLOTS + 1, 70), (2, 20), (3, 30)] {
        assert!(ranks[1].offset(0, number, (1, 0)).equals(offset));
    }
}

/// A movement that does not fit in the rest of the ring begins at its start.
#[test]
fn the_slots_of_a_movement_follow_each_other() {
    let pages = ScratchPages::for_test(2);
    let ranks: Vec<MovementCounts> =
        pages.iter().map(|pages| MovementCounts::new(pages, 0)).collect();
    let most = SLOTS as usize / 2 - 1;
    for (slots, number) in [
        (most, most as u64),
        (most, 2 * most as u64),
        (2, SLOTS),
        (most, SLOTS + most as u64),
        (most, SLOTS + 2 * most as u64),
        (3, 2 * SLOTS + 3),
        (most, 2 * SLOTS + 3 + most as u64),
    ] {
        for rank in &ranks {
            assert_eq!(enter(rank, slots, &[number]), Some(number));
        }
        let data = ranks[1].data(0, number, slots);
        let first = ((number - slots as u64) % SLOTS) as usize;
        let begin = ranks[1].data(0, 1, 1);
        assert_eq!(data.as_ptr().addr() - begin.as_ptr().addr(), first * LINE_BYTES);
        assert!(ranks[1].offset(0, number, (slots, 0)).equals(number));
        ranks.iter().for_each(|r| r.leave(number));
    }
}

/// The movement with this number, of any kind.
fn movement(number: u64, ranks: usize) -> CollRequest {
    let bits = number.wrapping_mul(6_364_136_223_846_793_005) >> 32;
    let set = |bit: u32| bits & 1 << bit != 0;
    let operation = [
        CollOperation::Broadcast,
        CollOperation::Gather,
        CollOperation::Exchange,
        CollOperation::Scatter,
    ][bits as usize & 3];
    CollRequest {
        root: (bits >> 8) as u32 % ranks as u32,
        in_allsync: set(2) && set(3),
        out_allsync: set(4) && set(5),
        out_nosync: set(6) && !(set(4) && set(5)),
        // The second takes many slots.
        ..CollRequest::new(operation, [8, 2000, 8000, 8000][(bits >> 16) as usize & 3])
    }
}

/// The ranks whose sources a rank reads.
fn sources(request: &CollRequest, rank: usize, ranks: usize) -> Range<usize> {
    let root = request.root as usize;
    match request.operation {
        CollOperation::Broadcast | CollOperation::Scatter if rank == root => 0..0,
        CollOperation::Broadcast | CollOperation::Scatter => root..root + 1,
        CollOperation::Gather if rank != root => 0..0,
        _ => 0..ranks,
    }
}

/// What a rank publishes as the offset of a movement, and stores in its slots.
fn stamp(rank: usize, number: u64) -> u64 {
    number * 100 + rank as u64
}

/// The number of a movement behind another one, among this many ranks.
fn number_after(last: u64, slots: u64, ranks: usize) -> u64 {
    let all = super::slots(ranks) as u64;
    let lap = (last + slots - 1) / all * all;
    last.max(lap) + slots
}

/// Ranks enter, leave and look in any order, each as far as it can. They find the offsets and
/// slots of those whose sources they need, and no memory is free that others still read.
#[test]
fn every_movement_ends() {
    const MANY: usize = 2000;
    let mut state = 1u64;
    for all in [2, 3, 8, 40] {
        let pages = ScratchPages::for_test(all);
        let ranks: Vec<MovementCounts> =
            pages.iter().map(|pages| MovementCounts::new(pages, 1)).collect();
        let mut last = 0;
        let movements: Vec<(u64, CollRequest, MovementShape)> = (0..MANY as u64)
            .map(|i| {
                let request = movement(i, all);
                let shape = MovementShape::of(&request, all).expect("a movement");
                last = number_after(last, shape.slots as u64, all);
                (last, request, shape)
            })
            .collect();
        let roles = |rank: usize, i: usize| {
            let (_, request, shape) = &movements[i];
            MovementRoles::new(request, *shape, rank == request.root as usize)
        };
        // The movements that each rank has entered, has left, and knows to be done.
        let mut at = alloc::vec![[0; 3]; all];
        for step in 0.. {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (rank, kind) = ((state >> 33) as usize % all, state >> 61);
            let [entered, left, done] = &mut at[rank];
            let r = &ranks[rank];
            match kind % 3 {
                0 => {
                    while *entered < MANY {
                        let (number, _, shape) = &movements[*entered];
                        let Some(next) = r.next(shape.slots) else { break };
                        assert_eq!(next, *number);
                        let stamp = stamp(rank, *number);
                        let data = r.data(rank, *number, shape.slots);
                        for slot in 0..shape.slots {
                            let slot = data.part(slot * LINE_BYTES, 8);
                            slot.copy_array::<8>(Src::from(&stamp.to_ne_bytes()[..]));
                        }
                        r.publish(*number, shape.slots, &[stamp]);
                        *entered += 1;
                    }
                }
                1 => {
                    while left < entered {
                        let (number, request, shape) = &movements[*left];
                        if !r.have_reached(ENTERED, roles(rank, *left).entered, *number) {
                            break;
                        }
                        for source in sources(request, rank, all) {
                            let stamp = stamp(source, *number);
                            assert!(r.offset(source, *number, (shape.slots, 0)).equals(stamp));
                            let data = r.data(source, *number, shape.slots);
                            for slot in 0..shape.slots {
                                let slot = data.part(slot * LINE_BYTES, 8);
                                let mut found = [0; 8];
                                Dst::from(&mut found[..]).copy_array::<8>(slot.into());
                                assert_eq!(u64::from_ne_bytes(found), stamp);
                            }
                        }
                        *left += 1;
                        r.leave(*number);
                    }
                }
                _ => {
                    while done < left {
                        let number = movements[*done].0;
                        if !r.have_reached(LEFT, roles(rank, *done).left, number) {
                            break;
                        }
                        *done += 1;
                    }
                }
            }
            assert!(r.damage().is_none());
            if let Some(last) = at[rank][2].checked_sub(1) {
                let (_, request, shape) = &movements[last];
                let mut others = (0..all).filter(|&other| other != rank);
                let is_free = others.all(|other| {
                    let reads = sources(request, other, all).contains(&rank);
                    at[other][1] > last || !reads && !request.out_allsync
                });
                assert!(is_free || request.out_nosync || shape.is_eager && !request.out_allsync);
            }
            if at.iter().all(|a| a[2] == MANY) {
                break;
            }
            assert!(step < 10_000_000, "{at:?}");
        }
    }
}
