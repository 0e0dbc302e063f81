//! Event queues: size, sequence, overflow, handlers, `PtlEQGet`, `PtlEQWait`, `PtlEQPoll`.

use std::sync::atomic::{AtomicU64, Ordering};

use portals3::md_options::{EVENT_START_DISABLE, MANAGE_REMOTE};
use portals3::{AckReq, EqHandle, FetchedEvent, PtlError, PtlEventKind, Size, Unlink};

use crate::common::*;
use crate::rig::agent::{AgentAnswer, AgentCall};
use crate::rig::{Rig, RigKind, pattern};

instantiate! {
    an_empty_queue_tells_so
    a_queue_holds_as_many_events_as_asked_for
    a_queue_without_room_is_none
    sequence_numbers_count_the_events_of_a_queue
    an_overflow_is_told_once_with_the_next_event
    a_queue_works_on_after_an_overflow
    a_queue_works_around_many_times
    overflow_of_one_queue_does_not_touch_another
    wait_returns_an_event_that_is_there
    wait_sleeps_until_an_event_comes
    poll_finds_the_first_queue_with_an_event
    poll_returns_nothing_when_its_time_is_over
    poll_sleeps_until_an_event_comes
    poll_refuses_what_is_no_queue
    a_handler_runs_for_every_event
    a_freed_queue_is_invalid
    queues_can_be_freed_and_allocated_again
}

/// A target whose queue has room for `count` events, one for each put.
fn queue(rig: &Rig, count: Size) -> (QueuedMd, QueuedMd) {
    let node = rig.target();
    let eq = node.eq_alloc(count).expect("PtlEQAlloc");
    let me = entry(node);
    let side = behind(node, me, 8, Unlink::Retain, |md| {
        md.eq = eq;
        md.options |= MANAGE_REMOTE | EVENT_START_DISABLE;
    });
    let from = source_with(rig, &pattern(1, 8), |md| md.eq = EqHandle::NONE);
    (side, from)
}

fn an_empty_queue_tells_so(kind: RigKind) {
    let rig = kind.rig();
    for node in rig.nodes() {
        let eq = node.eq_alloc(4).expect("PtlEQAlloc");
        rig.silent(node, eq);
        rig.silent(node, eq);
    }
}

fn a_queue_holds_as_many_events_as_asked_for(kind: RigKind) {
    let rig = kind.rig();
    for count in [1, 2, 3, 4, 7, 64, 100] {
        let (side, from) = queue(&rig, count);
        for hdr in 0..count {
            put(&rig, from, to(&rig), hdr);
        }
        for hdr in 0..count {
            assert_eq!(rig.event(rig.target(), side.eq).hdr_data, hdr);
        }
        rig.silent(rig.target(), side.eq);
        rig.target().md_unlink(side.md).expect("PtlMDUnlink");
    }
}

fn a_queue_without_room_is_none(kind: RigKind) {
    let rig = kind.rig();
    assert_eq!(rig.target().eq_alloc(0), Ok(EqHandle::NONE));
}

fn sequence_numbers_count_the_events_of_a_queue(kind: RigKind) {
    let rig = kind.rig();
    let (side, from) = queue(&rig, 8);
    let mut last = None;
    for hdr in 0..40 {
        put(&rig, from, to(&rig), hdr);
        let sequence = rig.event(rig.target(), side.eq).sequence;
        assert!(
            last.is_none_or(|last: u32| sequence == last.wrapping_add(1)),
            "{last:?}, then {sequence}"
        );
        last = Some(sequence);
    }
}

/// Reads until the queue is empty, and checks that exactly the events after a gap report a loss;
/// `due` is the next in line.
fn read_with_gaps(rig: &Rig, eq: EqHandle, due: &mut u64) -> u64 {
    let mut lost = 0;
    while let Some(FetchedEvent { event, dropped }) = rig.poll(rig.target(), eq) {
        assert!(event.hdr_data >= *due, "{} after {due}", event.hdr_data);
        assert_eq!(dropped, event.hdr_data > *due, "event {}, due was {due}", event.hdr_data);
        lost += event.hdr_data - *due;
        *due = event.hdr_data + 1;
    }
    lost
}

fn an_overflow_is_told_once_with_the_next_event(kind: RigKind) {
    let rig = kind.rig();
    let (side, from) = queue(&rig, 4);
    let mut due = 0;
    for hdr in 0..7 {
        put(&rig, from, to(&rig), hdr);
    }
    // Which of the seven are kept is left to the implementation: the oldest or the newest.
    let mut lost = read_with_gaps(&rig, side.eq, &mut due);
    put(&rig, from, to(&rig), 7);
    lost += read_with_gaps(&rig, side.eq, &mut due);
    assert_eq!((due, lost), (8, 3), "a queue of 4 requested events has space for 4 here");
}

fn a_queue_works_on_after_an_overflow(kind: RigKind) {
    let rig = kind.rig();
    let (side, from) = queue(&rig, 4);
    let (mut hdr, mut due, mut lost) = (0, 0, 0);
    for burst in [3, 9, 1, 4, 5, 30, 2, 2, 2] {
        for _ in 0..burst {
            put(&rig, from, to(&rig), hdr);
            hdr += 1;
        }
        lost += read_with_gaps(&rig, side.eq, &mut due);
    }
    put(&rig, from, to(&rig), hdr);
    lost += read_with_gaps(&rig, side.eq, &mut due);
    assert_eq!(due, hdr + 1);
    assert_eq!(lost, 5 + 1 + 26);
}

fn a_queue_works_around_many_times(kind: RigKind) {
    let rig = kind.rig();
    let (side, from) = queue(&rig, 4);
    let (mut hdr, mut due) = (0, 0);
    for burst in [1, 2, 3, 4].into_iter().cycle().take(if kind.has_processes() { 60 } else { 400 })
    {
        for _ in 0..burst {
            put(&rig, from, to(&rig), hdr);
            hdr += 1;
        }
        assert_eq!(read_with_gaps(&rig, side.eq, &mut due), 0);
        assert_eq!(due, hdr);
    }
}

fn overflow_of_one_queue_does_not_touch_another(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let (small, from) = queue(&rig, 2);
    let other = node.me_attach(
        PT + 1,
        portals3::PtlProcessId::ANY,
        0,
        !0,
        Unlink::Retain,
        portals3::InsPos::After,
    );
    let other = behind(node, other.expect("PtlMEAttach"), 4096, Unlink::Retain, |_| ());
    for hdr in 0..20 {
        put(&rig, from, to(&rig), hdr);
        put(&rig, from, crate::rig::To { pt: PT + 1, ..to(&rig) }, hdr);
    }
    assert_eq!(arrived(&rig, other.eq), (0..20).collect::<Vec<_>>());
    assert_eq!(rig.events(node, small.eq).len(), 2);
}

fn wait_returns_an_event_that_is_there(kind: RigKind) {
    let rig = kind.rig();
    let (side, from) = queue(&rig, 4);
    put(&rig, from, to(&rig), 5);
    let fetched = rig.target().eq_wait(side.eq).expect("PtlEQWait").expect("an event");
    assert_eq!((fetched.event.hdr_data, fetched.dropped), (5, false));
}

fn wait_sleeps_until_an_event_comes(kind: RigKind) {
    let rig = kind.rig();
    let (side, from) = queue(&rig, 4);
    for hdr in 0..30 {
        let waiting = rig.target().begin(AgentCall::EqWait(side.eq));
        // Sometimes before and sometimes after the sleep begins; both must end.
        if hdr % 3 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        rig.initiator().put(from.md, AckReq::NoAck, to(&rig), hdr).expect("PtlPut");
        while !waiting.is_over() {
            rig.initiator().progress();
            std::thread::yield_now();
        }
        let answer = waiting.finish().expect("PtlEQWait");
        let AgentAnswer::Fetched(Some(fetched)) = answer else { panic!("{answer:?}") };
        assert_eq!(fetched.event.hdr_data, hdr);
        rig.settle();
    }
}

fn poll_finds_the_first_queue_with_an_event(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let (side, from) = queue(&rig, 4);
    let empty = node.eq_alloc(4).expect("PtlEQAlloc");
    put(&rig, from, to(&rig), 1);
    put(&rig, from, to(&rig), 2);
    let (which, fetched) =
        node.eq_poll(&[empty, side.eq], Some(0)).expect("PtlEQPoll").expect("an event");
    assert_eq!((which, fetched.event.hdr_data), (1, 1));
    let (which, fetched) =
        node.eq_poll(&[side.eq, empty], None).expect("PtlEQPoll").expect("an event");
    assert_eq!((which, fetched.event.hdr_data), (0, 2));
}

fn poll_returns_nothing_when_its_time_is_over(kind: RigKind) {
    let rig = kind.rig();
    let eqs: Vec<_> = (0..2).map(|_| rig.target().eq_alloc(4).expect("PtlEQAlloc")).collect();
    for timeout in [0, 1, 20] {
        assert!(rig.target().eq_poll(&eqs, Some(timeout)).expect("PtlEQPoll").is_none());
    }
}

fn poll_sleeps_until_an_event_comes(kind: RigKind) {
    let rig = kind.rig();
    let (side, from) = queue(&rig, 4);
    let empty = rig.target().eq_alloc(4).expect("PtlEQAlloc");
    let mut eqs = [EqHandle::NONE; crate::rig::agent::MAX_POLL];
    eqs[..2].copy_from_slice(&[empty, side.eq]);
    for timeout_ms in [None, Some(100_000)] {
        let waiting = rig.target().begin(AgentCall::EqPoll { eqs, len: 2, timeout_ms });
        std::thread::sleep(std::time::Duration::from_millis(5));
        rig.initiator().put(from.md, AckReq::NoAck, to(&rig), 3).expect("PtlPut");
        while !waiting.is_over() {
            rig.initiator().progress();
            std::thread::yield_now();
        }
        let answer = waiting.finish().expect("PtlEQPoll");
        let AgentAnswer::Polled(Some((1, fetched))) = answer else { panic!("{answer:?}") };
        assert_eq!(fetched.event.hdr_data, 3);
        rig.settle();
    }
}

fn poll_refuses_what_is_no_queue(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let eq = node.eq_alloc(4).expect("PtlEQAlloc");
    assert_eq!(node.eq_poll(&[eq, EqHandle(12345)], Some(0)).err(), Some(PtlError::EqInvalid));
}

fn a_handler_runs_for_every_event(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let eq = node.eq_alloc_handled(8).expect("PtlEQAlloc");
    let me = entry(node);
    behind(node, me, 64, Unlink::Retain, |md| {
        md.eq = eq;
        md.options |= EVENT_START_DISABLE | MANAGE_REMOTE;
    });
    let (from, _) = source_of(&rig, 1, 8);
    // The other cases use no handlers, but this one may run on several rigs of one process at
    // once. Its own mark is in the upper half of the data.
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let mark = u64::from(std::process::id()) << 40 | run << 32;
    for hdr in 1..=5 {
        let before = node.handled(mark);
        put(&rig, from, to(&rig), mark | hdr);
        // The handler runs when the event is posted or when it is read.
        assert_eq!(rig.event(node, eq).hdr_data, mark | hdr);
        assert_eq!(node.handled(mark), before + 1);
    }
    rig.silent(node, eq);
}

fn a_freed_queue_is_invalid(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let eq = node.eq_alloc(4).expect("PtlEQAlloc");
    assert_eq!(node.eq_free(eq), Ok(()));
    assert_eq!(node.eq_free(eq), Err(PtlError::EqInvalid));
    assert_eq!(node.eq_get(eq).err(), Some(PtlError::EqInvalid));
    assert_eq!(node.eq_wait(eq).err(), Some(PtlError::EqInvalid));
    assert_eq!(node.eq_get(EqHandle::NONE).err(), Some(PtlError::EqInvalid));
    assert_eq!(node.eq_get(EqHandle(7)).err(), Some(PtlError::EqInvalid));
}

fn queues_can_be_freed_and_allocated_again(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let from = source_with(&rig, &pattern(1, 8), |md| md.eq = EqHandle::NONE);
    for hdr in 0..if kind.has_processes() { 100 } else { 300 } {
        let eq = node.eq_alloc(1 + hdr % 9).expect("PtlEQAlloc");
        let me = entry(node);
        behind(node, me, 8, Unlink::Unlink, |md| {
            md.eq = eq;
            md.options |= EVENT_START_DISABLE;
        });
        put(&rig, from, to(&rig), hdr);
        let event = rig.event(node, eq);
        assert_eq!((event.kind, event.hdr_data), (PtlEventKind::PutEnd, hdr));
        node.me_unlink(me).expect("PtlMEUnlink");
        node.eq_free(eq).expect("PtlEQFree");
    }
}
