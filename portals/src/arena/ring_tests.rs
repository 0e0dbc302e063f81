//! Tests of the ring: what producers claim and what the consumer finds, whatever controls hold.
//!
//! Part of `ring`, whose private functions they call. Invariant: each test is one thread.

use super::*;

/// Another producer's `others` events were claimed and consumed meanwhile: a stale hint
/// finds the first free position.
#[test]
fn stale_hints_find_the_first_free_position() {
    for size in [1u64, 2, 4, 64] {
        for others in 0..300u64 {
            let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
            let of = |t: u64| &slots[(t & (size - 1)) as usize];
            let (head, theirs, ours) =
                (AtomicU64::new(first(size)), Memo::default(), Memo::default());
            theirs.restart(first(size));
            ours.restart(first(size));
            for n in 0..others {
                let position = claim(of, size, 4, &theirs, &head, 1).unwrap();
                let due = first(size) + n;
                assert_eq!((position, theirs.hint()), (due, due + 1));
                of(position).store(published(position), Ordering::Release);
                // The consumer lags by half a ring.
                head.store((position + 1 - size / 2).max(first(size)), Ordering::Release);
            }
            let consumed = head.load(Ordering::Relaxed);
            assert_eq!(tail(of, size, consumed), first(size) + others);
            assert_eq!(
                claim(of, size, 4, &ours, &head, 2),
                Ok(first(size) + others),
                "{size} {others}"
            );
        }
    }
}

/// A producer that has stood still for most of the positions that a control can distinguish
/// finds the first free one.
#[test]
fn very_old_hints_find_it_too() {
    let size = 4u64;
    for passed in
        [1u64 << 38, (1 << 39) - 8, (1 << 39) + 8, (1 << 40) - 8, (1 << 40) + 800, 5 << 40]
    {
        let due = passed + size;
        let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
        let of = |t: u64| &slots[(t & (size - 1)) as usize];
        for t in due - size..due {
            of(t).store(published(t), Ordering::Relaxed);
        }
        let (head, memo) = (AtomicU64::new(due), Memo::default());
        memo.restart(first(size));
        for n in 0..6 {
            assert_eq!(claim(of, size, 4, &memo, &head, 1), Ok(due + n), "{passed:#x}");
            of(due + n).store(published(due + n), Ordering::Release);
            head.store(due + n + 1, Ordering::Release);
        }
    }
}

/// Where another producer posts too, a slot that it has claimed is read and not swapped.
#[test]
fn who_is_not_alone_looks_first() {
    let size = 8u64;
    let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
    let of = |t: u64| &slots[(t & (size - 1)) as usize];
    let (head, ours, theirs) = (AtomicU64::new(first(size)), Memo::default(), Memo::default());
    ours.restart(first(size));
    theirs.restart(first(size));
    assert_eq!(claim(of, size, 4, &ours, &head, 1), Ok(16));
    assert!(!ours.others.load(Ordering::Relaxed));
    assert_eq!(claim(of, size, 4, &theirs, &head, 2), Ok(17));
    assert!(theirs.others.load(Ordering::Relaxed));
    assert_eq!(claim(of, size, 4, &ours, &head, 1), Ok(18));
    assert!(ours.others.load(Ordering::Relaxed));
    // The next is free and is the position of the hint: no other producer since.
    assert_eq!(claim(of, size, 4, &ours, &head, 1), Ok(19));
    assert!(!ours.others.load(Ordering::Relaxed));
}

/// The producer is named while the slot is reserved, and only by the control of that position.
#[test]
fn a_reserved_slot_names_its_producer() {
    let (word, memo) = (AtomicU64::new(published(4)), Memo::default());
    memo.restart(8);
    assert_eq!(reserved_by(0, 8), None);
    assert!(claim_hinted(&word, 8, 4, &memo, 0xfffff));
    let now = word.load(Ordering::Relaxed);
    assert_eq!((reserved_by(now, 8), reserved_by(now, 12)), (Some(0xfffff), None));
    assert!(!claim_hinted(&word, 8, 4, &memo, 1) && !claim_hinted(&word, 12, 4, &memo, 1));
    word.store(published(8), Ordering::Release);
    assert_eq!(reserved_by(published(8), 8), None);
    // A lap later the slot is free, but the ring has room only after the consumer has passed
    // it.
    assert!(!claim_hinted(&word, 12, 4, &memo, 1));
    memo.restart(9);
    assert!(claim_hinted(&word, 12, 4, &memo, 1));
}

/// The consumer distinguishes a slot that no producer has left so from one that it waits for.
#[test]
fn a_damaged_slot_is_neither_free_nor_claimed() {
    let size = 4u64;
    let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
    let of = |t: u64| &slots[(t & (size - 1)) as usize];
    let (head, memo) = (AtomicU64::new(first(size)), Memo::default());
    memo.restart(first(size));
    let next = |position| next_slot(of, size, position);
    assert_eq!(next(8), NextSlot::Free);
    assert_eq!(claim(of, size, 4, &memo, &head, 7), Ok(8));
    assert_eq!((next(8), next(9)), (NextSlot::Reserved(7), NextSlot::Free));
    of(8).store(published(8), Ordering::Release);
    assert_eq!((next(8), next(9)), (NextSlot::Published, NextSlot::Free));
    assert_eq!(claim(of, size, 4, &memo, &head, 7), Ok(9));
    // The event of position 8 was published, then its slot was overwritten.
    for word in [0, published(12), 0xdead_beef, u64::MAX] {
        of(8).store(word, Ordering::Relaxed);
        assert_eq!(next(8), NextSlot::Damaged(word));
    }
    // In a full ring the slot after the last position is that of the first one.
    for position in 8..12 {
        of(position).store(published(position), Ordering::Relaxed);
    }
    assert_eq!(
        (next(8), next(11), next(12)),
        (NextSlot::Published, NextSlot::Published, NextSlot::Free)
    );
    // Rings of one slot.
    let one = AtomicU64::new(0);
    assert_eq!(next_slot(|_| &one, 1, 2), NextSlot::Free);
    one.store(published(2), Ordering::Relaxed);
    assert_eq!(next_slot(|_| &one, 1, 2), NextSlot::Published);
}

/// In the first lap a slot is set up before it is used. Zero in a slot that the consumer has
/// passed does not make a producer post there, however old its hint is.
#[test]
fn zero_is_free_only_ahead_of_the_consumer() {
    let (size, block) = (16u64, 4);
    let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
    let of = |t: u64| &slots[(t & (size - 1)) as usize];
    let control = |t| of(t).load(Ordering::Relaxed);
    let (head, stale, fresh) = (AtomicU64::new(first(size)), Memo::default(), Memo::default());
    stale.restart(first(size));
    fresh.restart(first(size));
    assert_eq!(claim(of, size, block, &stale, &head, 1), Ok(32));
    of(32).store(published(32), Ordering::Relaxed);
    assert_eq!(
        (33..36).map(control).collect::<Vec<_>>(),
        (17..20).map(published).collect::<Vec<_>>()
    );
    assert_eq!((36..48).map(control).collect::<Vec<_>>(), [0; 12]);
    for position in 33..38 {
        assert_eq!(claim(of, size, block, &fresh, &head, 2), Ok(position));
        of(position).store(published(position), Ordering::Relaxed);
    }
    // An event that is not consumed is overwritten: its slot is not claimed a second time.
    let second = Memo::default();
    second.restart(34);
    of(34).store(0, Ordering::Relaxed);
    assert_eq!(claim(of, size, block, &second, &head, 3), Err(34));
    of(34).store(published(34), Ordering::Relaxed);
    // Consumed up to 36. Then the slots of 33 and 36 are overwritten.
    head.store(37, Ordering::Relaxed);
    of(33).store(0, Ordering::Relaxed);
    of(36).store(0, Ordering::Relaxed);
    assert_eq!(claim(of, size, block, &stale, &head, 1), Ok(38));
    assert_eq!((control(33), control(36)), (0, 0));
    // In a later lap zero is no free slot.
    for position in 39..49 {
        head.store(position, Ordering::Relaxed);
        assert_eq!(claim(of, size, block, &fresh, &head, 2), Ok(position));
        of(position).store(published(position), Ordering::Relaxed);
    }
    of(49).store(0, Ordering::Relaxed);
    assert_eq!(next_slot(of, size, 49), NextSlot::Damaged(0));
    assert!(claim(of, size, block, &fresh, &head, 2).is_err());
}

/// A control with one changed bit is that of no entry of this slot, in any lap that is near.
/// The same holds for the control of another slot.
#[test]
fn overwritten_controls_are_damage() {
    for size in [2u64, 8, 1 << 13, 1 << 24] {
        for position in [2 * size, 5 * size + 1, (1 << 40) - 1, 1 << 40, (7 << 41) + size / 2] {
            let of_this_slot = |code: u64| {
                let lead = ahead(code, position);
                lead % size as i64 == 0 && lead.unsigned_abs() < 1 << 32
            };
            for control in [published(position), reserved(position, 5), free(position, size)] {
                assert!(of_this_slot(control));
                for bit in 24..64 {
                    assert!(!of_this_slot(control ^ 1 << bit), "{size} {position:#x} {bit}");
                }
            }
            for other in [position - 1, position + 1, position - size + 1] {
                assert!(!of_this_slot(published(other)));
            }
        }
    }
}

/// Positions are compared correctly when their 40 bits wrap.
#[test]
fn positions_wrap() {
    let size = 4u64;
    let first = (1u64 << 40) - 2;
    let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
    let of = |t: u64| &slots[(t & (size - 1)) as usize];
    for t in first - size..first {
        of(t).store(published(t), Ordering::Relaxed);
    }
    let (head, memo, stale) = (AtomicU64::new(first), Memo::default(), Memo::default());
    memo.restart(first);
    stale.restart(first);
    for n in 0..10 {
        assert_eq!(claim(of, size, 4, &memo, &head, 1), Ok(first + n));
        of(first + n).store(published(first + n), Ordering::Release);
        head.store(first + n + 1, Ordering::Release);
    }
    assert_eq!(claim(of, size, 4, &stale, &head, 1), Ok(first + 10));
}

/// Whatever peers have written to the controls and to the head, a producer's search ends, and
/// its claim is its own. What the consumer finds is one thing.
fn any_controls(input: &[u8]) {
    let mut input = fuzz::InputReader::new(input);
    let size = 1u64 << (input.byte() % 5);
    let (at, hint) = (input.number(), input.number());
    let slots: Vec<AtomicU64> = (0..size)
        .map(|slot| {
            let position = (at & size.wrapping_neg() | slot).wrapping_add(input.number());
            AtomicU64::new(match input.byte() % 4 {
                0 => input.number(),
                1 => published(position),
                2 => reserved(position, input.byte().into()),
                _ => free(position, size),
            })
        })
        .collect();
    let of = |t: u64| &slots[(t & (size - 1)) as usize];
    let control = |t| of(t).load(Ordering::Relaxed);
    let (head, memo) = (AtomicU64::new(at), Memo::default());
    let next = next_slot(of, size, at);
    assert_eq!(next == NextSlot::Published, control(at) == published(at));
    if let NextSlot::Reserved(producer) = next {
        assert_eq!(control(at), reserved(at, producer));
    }
    let damaged = damage(of, size, &head, |_| false, |_| false);
    assert_eq!(damaged.is_none(), matches!(next, NextSlot::Published | NextSlot::Free));
    tail(of, size, hint);
    memo.restart(hint);
    head.store(input.number(), Ordering::Relaxed);
    for _ in 0..3 {
        if let Ok(position) = claim(of, size, 4, &memo, &head, 0xabcd) {
            assert_eq!(control(position), reserved(position, 0xabcd));
        }
    }
}

#[test]
fn fuzz_ring() {
    fuzz::check("ring", 5_000, any_controls);
}

/// A control that was overwritten behind the consumer keeps no producer from finding the first
/// free slot. That holds for every position that the control seems to have, and for old hints.
#[test]
fn nonsense_behind_the_consumer_stops_no_producer() {
    let size = 32u64;
    for nonsense in (0..64).map(|bit| published(352) ^ 1 << bit).chain([0x85ee_ab1e_f0d3_7424]) {
        let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
        let of = |t: u64| &slots[(t & (size - 1)) as usize];
        // Positions up to 370 were consumed.
        for t in 370 - size..370 {
            of(t).store(published(t), Ordering::Relaxed);
        }
        let (head, memo) = (AtomicU64::new(370), Memo::default());
        memo.restart(352);
        of(352).store(nonsense, Ordering::Relaxed);
        assert_eq!(claim(of, size, 1, &memo, &head, 1), Ok(370), "{nonsense:#x}");
    }
}
