//! Tests of how a rank shares its regions, without memory and messages.

use super::*;

/// Three ranks; each peer owns two of four regions.
fn lender(lend: bool) -> RegionLender {
    let (region_bytes, ranks, m, max_victim, table) = (4096, 3, 4, 1, 4);
    RegionLender::new(FirehoseLimits { region_bytes, ranks, m, max_victim, table, lend })
}

const ONE: JobRank = JobRank(1);
const TWO: JobRank = JobRank(2);

#[test]
fn a_peer_gets_its_share_and_no_more() {
    let mut lender = lender(false);
    assert_eq!([ONE; 3].map(|peer| lender.grant(peer)), [true, true, false]);
    assert_eq!([TWO; 3].map(|peer| lender.grant(peer)), [true, true, false]);
    assert_eq!(lender.sums(), (4, 4));
    assert!(lender.take_back(ONE) && lender.grant(ONE) && !lender.grant(ONE));
    assert_eq!([TWO; 3].map(|peer| lender.take_back(peer)), [true, true, false]);
    assert!(!lender.grant(ONE), "what another peer leaves unused is not lent");
    assert_eq!((lender.held(ONE), lender.held(TWO)), (2, 0));
    assert_eq!(lender.limit(ONE, 5, false).regions, 2);
}

#[test]
fn all_but_one_region_of_each_peer_is_lent() {
    let mut lender = lender(true);
    assert_eq!([ONE; 4].map(|peer| lender.grant(peer)), [true, true, true, false]);
    assert_eq!((lender.held(ONE), lender.sums()), (3, (3, 4)));
    assert!(lender.grant(TWO), "each peer is sure of one");
    assert!(!lender.grant(TWO) && !lender.grant(ONE));
    assert_eq!(lender.sums(), (4, 4));
    // The last region of a peer stays set aside for it.
    assert!(lender.take_back(TWO) && !lender.take_back(TWO));
    assert_eq!(lender.sums(), (3, 4));
    assert!(!lender.grant(ONE));
    assert!(lender.take_back(ONE) && lender.grant(TWO) && lender.grant(TWO));
    assert!(!lender.grant(TWO));
}

/// What a refused peer misses of its share is recalled, one by one, from one that has more.
#[test]
fn only_what_is_above_a_share_is_recalled() {
    let mut lender = lender(true);
    assert!([ONE; 3].map(|peer| lender.grant(peer)) == [true; 3] && lender.grant(TWO));
    let before = lender.limit(ONE, 0, false);
    assert!(!lender.grant(TWO));
    let (from, limit) = lender.recall(TWO).expect("a peer has more than its share");
    assert_eq!((from, limit.regions), (ONE, 2));
    assert!(limit.is_newer(before) && !before.is_newer(limit));
    assert_eq!(lender.recall(TWO), None, "it is about to give back");
    assert!(lender.take_back(ONE) && lender.grant(TWO));
    // Both have their share.
    assert!(!lender.grant(ONE) && !lender.grant(TWO));
    assert_eq!((lender.recall(ONE), lender.recall(TWO)), (None, None));
    assert!(lender.take_back(TWO));
    assert_eq!(lender.recall(TWO), None, "no peer has more than its share");
    // A peer that has its share and wants more has no claim on what another borrows.
    assert!(lender.grant(ONE));
    assert!(!lender.grant(ONE));
    lender.limit(ONE, 0, false);
    assert_eq!(lender.recall(ONE), None);
    assert_eq!(lender.recall(TWO).map(|(from, limit)| (from, limit.regions)), Some((ONE, 2)));
}

#[test]
fn turns_are_served_in_order() {
    let mut turns = MissTurns::default();
    assert!(turns.admits(None));
    let first = turns.wait(None);
    let second = turns.wait(None);
    assert_eq!(turns.wait(Some(first)), first);
    let admitted = |turns: &MissTurns| [None, Some(first), Some(second)].map(|t| turns.admits(t));
    assert_eq!(admitted(&turns), [false, true, false]);
    turns.done(Some(first));
    assert_eq!(admitted(&turns), [false, false, true]);
    turns.done(None);
    turns.done(Some(second));
    assert!(turns.admits(None));
}
