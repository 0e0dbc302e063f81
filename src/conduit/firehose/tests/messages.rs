//! Tests of single messages: what a rank sends, and what it accepts of others.

use super::*;

/// Collects messages.
#[derive(Default)]
struct TestOutbox(Mutex<Vec<MoveRequest>>);

impl Mover for TestOutbox {
    fn send(&self, _: JobRank, message: &[u8], _: Src<'_>) {
        self.0.lock().unwrap().push(MoveRequest::decode(message).expect("ours"));
    }
}

impl TestOutbox {
    /// The messages that a rank sends now.
    fn of(pair: &TestPair<'_>, rank: usize) -> Vec<MoveRequest> {
        let outbox = TestOutbox::default();
        pair.0[rank].progress(&outbox);
        outbox.0.into_inner().unwrap()
    }
}

/// What a peer refuses is requested again, in the order in which it was missed.
#[test]
fn refused_requests_keep_their_order() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(4, 1, 8), [&memories[0], &memories[1]]);
    let wanted: Vec<MemoryExtent> = [0x7000, 0x5000, 0x9000, 0x3000]
        .map(|start| MemoryExtent { start, end: start + 8 })
        .into();
    for &bytes in &wanted {
        let access = pair.0[0].remote(JobRank(1), bytes, 0, false, None);
        assert!(matches!(access, RemoteAccess::Pending(_)));
    }
    let request = [MoveRequest::Move { victims: vec![], wanted: wanted.clone(), hungry: 0 }];
    assert_eq!(TestOutbox::of(&pair, 0), request);
    let limit = moves::HoldLimit { regions: 4, number: 1 };
    let results = wanted.iter().map(|bytes| (bytes.start, moves::WantedResult::Refused));
    let answer = moves::MoveAnswer { limit, results: results.collect() };
    let mut coded = [0; ANSWER_BYTES];
    let len = answer.encode(&mut coded);
    assert!(pair.0[0].answered(JobRank(1), &coded[..len]));
    assert_eq!(TestOutbox::of(&pair, 0), request);
}

/// An answer pins the bytes that were wanted, or is none.
#[test]
fn an_answer_covers_what_was_wanted() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(4, 1, 4), [&memories[0], &memories[1]]);
    let bytes = MemoryExtent { start: 0x5000, end: 0x5008 };
    let access = pair.0[0].remote(JobRank(1), bytes, 0, false, None);
    let RemoteAccess::Pending(hold) = access else { panic!("a first access") };
    let answered = |first, (start, end)| {
        let (id, extent) = (PinId::default(), MemoryExtent { start, end });
        let results = vec![(first, moves::WantedResult::Pinned { id, key: 1, extent })];
        let limit = moves::HoldLimit::default();
        let mut coded = [0; ANSWER_BYTES];
        let len = moves::MoveAnswer { limit, results }.encode(&mut coded);
        pair.0[0].answered(JobRank(1), &coded[..len])
    };
    assert!(!answered(0x5000, (0x5000, 0x6000)), "nothing was sent");
    assert_eq!(TestOutbox::of(&pair, 0).len(), 1);
    assert!(!answered(0x5000, (0x5000, 0x5004)), "not enough");
    assert!(!answered(0x5000, (0x4000, 0x5000)), "other bytes");
    assert!(!answered(0x5004, (0x5000, 0x6000)), "not what was wanted");
    assert_eq!(pair.0[0].state(hold), HoldState::Pending);
    assert!(answered(0x5000, (0x5000, 0x6000)));
    assert_eq!(pair.0[0].state(hold), HoldState::Ready);
    assert!(!answered(0x5000, (0x5000, 0x6000)), "answered twice");
    pair.0[0].release_remote(hold);
}

/// The payload of a put that rode along has arrived, whatever the answer is. Nothing is requested
/// again.
#[test]
fn a_put_that_rode_along_ends_with_its_answer() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(4, 1, 4), [&memories[0], &memories[1]]);
    let bytes = MemoryExtent { start: 0x5000, end: 0x5008 };
    for result in [moves::WantedResult::Refused, moves::WantedResult::Busy] {
        let access = pair.0[0].remote(JobRank(1), bytes, 0, true, None);
        let RemoteAccess::Riding(hold, _) = access else { panic!("it may ride") };
        let (limit, results) = (moves::HoldLimit::default(), vec![(bytes.start, result)]);
        let mut coded = [0; ANSWER_BYTES];
        let len = moves::MoveAnswer { limit, results }.encode(&mut coded);
        assert!(pair.0[0].answered(JobRank(1), &coded[..len]));
        assert_eq!(pair.0[0].state(hold), HoldState::Failed(PinError::Limit));
        pair.0[0].release_remote(hold);
        assert_eq!(TestOutbox::of(&pair, 0), []);
        assert_eq!(pair.0[0].remote_sums(JobRank(1)), (0, 0));
    }
}

/// A rank that has no transfer of its own obeys a recall.
#[test]
fn a_recall_is_obeyed_at_once() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(4, 1, 4), [&memories[0], &memories[1]]);
    for region in [1, 2, 3, 4] {
        pair.0[0].release_remote(pair.hold(0, region * PAGE).0);
    }
    assert_eq!(TestOutbox::of(&pair, 0), []);
    let recall = MoveRequest::Recall(moves::HoldLimit { regions: 2, number: 1 << 20 });
    let answer = pair.0[0].serve(JobRank(1), recall.encode().as_bytes(), &mut [0; ANSWER_BYTES]);
    assert_eq!(answer, Some(0));
    pair.progress(0);
    assert_eq!((pair.0[0].remote_sums(JobRank(1)), pair.0[1].held_by(JobRank(0))), ((2, 0), 2));
}

/// Regions that are no longer used are given back when they are many, without a miss.
#[test]
fn many_unused_regions_are_given_back() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(8, 1, 8), [&memories[0], &memories[1]]);
    let holds = [1, 2, 3, 4, 5, 6, 7, 8].map(|region| pair.hold(0, region * PAGE).0);
    holds[1..].iter().for_each(|&hold| pair.0[0].rejected(hold));
    assert_eq!(TestOutbox::of(&pair, 0), []);
    assert_eq!(pair.0[1].held_by(JobRank(0)), 8);
    pair.0[0].rejected(holds[0]);
    pair.progress(0);
    assert_eq!((pair.0[0].remote_sums(JobRank(1)), pair.0[1].held_by(JobRank(0))), ((0, 0), 0));
}

#[test]
fn peers_reach_nothing_beyond_what_is_exposed() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let TestPair([_, owner]) = TestPair::new(false, limits(4, 2, 4), [&memories[0], &memories[1]]);
    let owner = owner.exposing(MemoryExtent { start: 0x4800, end: 0x7800 });
    let serve = |start, end| {
        let wanted = vec![MemoryExtent { start, end }];
        let message = MoveRequest::Move { victims: vec![], wanted, hungry: 0 };
        owner.serve(JobRank(0), message.encode().as_bytes(), &mut [0; ANSWER_BYTES])
    };
    assert!(serve(0x4800, 0x4808).is_some() && serve(0x77f8, 0x7800).is_some());
    let beyond = [(0x47f8, 0x4808), (0x77f8, 0x7808), (0x9000, 0x9008)];
    assert_eq!(beyond.map(|(start, end)| serve(start, end)), [None; 3]);
    assert_eq!(owner.held_by(JobRank(0)), 2);
}

#[test]
fn damaged_messages_are_refused() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(2, 1, 4), [&memories[0], &memories[1]]);
    let serve = |from, victims: &[PinId], wanted: &[MemoryExtent]| {
        let message =
            MoveRequest::Move { victims: victims.to_vec(), wanted: wanted.to_vec(), hungry: 0 };
        let mut answer = [0; ANSWER_BYTES];
        pair.0[1].serve(JobRank(from), message.encode().as_bytes(), &mut answer)
    };
    let bytes = |start, end| MemoryExtent { start, end };
    let not_held = PinId { slot: 0, generation: 1 };
    assert_eq!(serve(0, &[not_held], &[]), None);
    assert_eq!(serve(0, &[PinId { slot: u32::MAX, generation: 0 }], &[]), None);
    assert_eq!(serve(0, &[], &[bytes(0x1ff8, 0x2008)]), None, "two regions");
    assert_eq!(serve(0, &[], &[bytes(0x1000, 0x1000)]), None, "no bytes");
    assert_eq!(serve(1, &[], &[bytes(0x1000, 0x1008)]), None, "of itself");
    assert_eq!(serve(2, &[], &[bytes(0x1000, 0x1008)]), None, "of no rank");
    let (hold, _) = pair.hold(0, 0x1000);
    assert_eq!(serve(0, &[PinId { slot: 0, generation: 9 }], &[]), None, "another generation");
    pair.0[1].release_local(pair.local(1, 0x3000));
    assert_eq!(serve(0, &[PinId { slot: 1, generation: 1 }], &[]), None, "held by no peer");
    pair.0[0].release_remote(hold);
    let answer = moves::MoveAnswer {
        limit: Default::default(),
        results: vec![(0x1000, moves::WantedResult::Busy)],
    };
    let mut coded = [0; ANSWER_BYTES];
    let len = answer.encode(&mut coded);
    assert!(!pair.0[0].answered(JobRank(1), &coded[..len]), "it was answered before");
}
