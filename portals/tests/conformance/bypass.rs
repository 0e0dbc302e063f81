//! Application bypass: "a target that never calls the library still has its puts delivered, its
//! acknowledgements sent and its gets answered". This holds where its memory can be reached. Also
//! tested: the behaviour where it cannot.

use portals3::md_options::MANAGE_REMOTE;
use portals3::{AckReq, PtlEventKind};
use sys::process;
use sys::signal::Signal;

use crate::common::*;
use crate::rig::{RigKind, RigNode, pattern};

instantiate! {
    a_target_that_never_calls_is_served_all_the_same
    messages_take_the_road_that_their_memory_allows
    distance_is_zero_to_oneself
}

/// Stops a node's process for as long as this lives.
struct Stopped(Option<i32>);

impl Stopped {
    fn new(node: &RigNode) -> Stopped {
        let pid = node.os_pid();
        if let Some(pid) = pid {
            assert!(process::kill(pid as u32, Signal::STOP));
        }
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            process::kill(pid as u32, Signal::CONT);
        }
    }
}

fn a_target_that_never_calls_is_served_all_the_same(kind: RigKind) {
    if kind.needs_target() {
        return without_bypass_delivery_waits_for_the_target(kind);
    }
    let rig = kind.rig();
    let node = rig.initiator();
    let len = 10_000;
    let side = target(&rig, len, BOTH | MANAGE_REMOTE);
    let (from, bytes) = source_of(&rig, 1, len);
    let into = source(&rig, &vec![0; len]);
    let (swap_in, eight) = source_of(&rig, 3, 8);
    let swap_out = source(&rig, &[0; 8]);
    // From here until it is continued, the target cannot run.
    let stopped = Stopped::new(rig.target());
    node.put(from.md, AckReq::Ack, to(&rig), 11).expect("PtlPut");
    let ours: Vec<_> = std::iter::from_fn(|| node.eq_get(from.eq).expect("PtlEQGet")).collect();
    let ours: Vec<_> = ours.iter().map(|fetched| fetched.event.kind).collect();
    assert!(
        ours.contains(&PtlEventKind::SendEnd) && ours.contains(&PtlEventKind::Ack),
        "{ours:?}"
    );
    node.get(into.md, to(&rig)).expect("PtlGet");
    let reply: Vec<_> = std::iter::from_fn(|| node.eq_get(into.eq).expect("PtlEQGet")).collect();
    assert_eq!(reply.last().map(|fetched| fetched.event.kind), Some(PtlEventKind::ReplyEnd));
    assert!(node.read(into.buffer) == bytes, "the get found what the put brought");
    node.get_put(swap_out.md, swap_in.md, to(&rig), 12).expect("PtlGetPut");
    assert_eq!(node.read(swap_out.buffer), bytes[..8]);
    drop(stopped);
    use PtlEventKind::{GetEnd, GetPutEnd, GetPutStart, GetStart, PutEnd, PutStart};
    let theirs = kinds(&rig, rig.target(), side.eq);
    assert_eq!(theirs, [PutStart, PutEnd, GetStart, GetEnd, GetPutStart, GetPutEnd]);
    assert!(rig.target().read(side.buffer) == [eight, bytes[8..].to_vec()].concat());
}

fn without_bypass_delivery_waits_for_the_target(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let side = target(&rig, 3000, BOTH | MANAGE_REMOTE);
    let bytes = pattern(1, 3000);
    let from = source(&rig, &bytes);
    node.put(from.md, AckReq::Ack, to(&rig), 11).expect("PtlPut");
    for _ in 0..100 {
        node.progress();
    }
    assert_eq!(rig.target().read(side.buffer), [0; 3000]);
    rig.settle();
    assert_eq!(rig.target().read(side.buffer), bytes);
}

fn messages_take_the_road_that_their_memory_allows(kind: RigKind) {
    let rig = kind.rig();
    target(&rig, 64, BOTH | MANAGE_REMOTE);
    let (from, _) = source_of(&rig, 1, 64);
    for _ in 0..10 {
        put(&rig, from, to(&rig), 0);
        get(&rig, from, to(&rig));
    }
    let counters = rig.initiator().interface().expect("the initiator is here").counters();
    assert_eq!((counters.puts, counters.gets, counters.bytes), (10, 10, 20 * 64));
    assert_eq!(counters.framed, if kind.needs_target() { 20 } else { 0 });
}

fn distance_is_zero_to_oneself(kind: RigKind) {
    let rig = kind.rig();
    for node in rig.nodes() {
        assert_eq!(node.distance(node.id()), Ok(0));
        for other in rig.nodes().iter().filter(|other| other.id() != node.id()) {
            assert!(node.distance(other.id()).is_ok_and(|distance| distance > 0));
        }
    }
}
