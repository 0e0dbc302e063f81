//! Concurrency: many senders to one queue, and descriptors that are removed or changed while
//! messages arrive.
//!
//! Each test is a bounded number of operations (repeated as `PORTALS3_STRESS` says), and waits
//! by yielding its core. Invariant: the verdict is a count or a comparison of bytes, never a
//! time.

#[path = "../rig/mod.rs"]
mod rig;

use portals3::md_options::{EVENT_START_DISABLE, MANAGE_REMOTE, MAX_SIZE, OP_PUT};
use portals3::{
    AckReq, EqHandle, FetchedEvent, InsPos, MdHandle, MemoryDescriptor, NetworkInterface,
    PtlError, PtlEventKind, PtlProcessId, Unlink,
};

use rig::agent::{AgentAnswer, AgentCall};
use rig::watchdog::Watchdog;
use rig::{NodeBuffer, OfiRig, Rig, RigKind, RigNode, Running, To, md};
use std::thread;
use std::time::{Duration, Instant};

const PT: u32 = 4;

/// Senders and the node that they put to, which is node 0. On a loopback the senders are its own
/// threads. Every other sender puts at once where it can.
struct Fire<'a> {
    rig: &'a Rig,
    sources: Vec<(&'a RigNode, MdHandle, Option<NodeBuffer>)>,
}

impl<'a> Fire<'a> {
    fn new(rig: &'a Rig, senders: usize) -> Fire<'a> {
        let nodes = rig.nodes();
        let sources = (0..senders)
            .map(|number| {
                let node = nodes
                    .get(1 + number % nodes.len().max(2).saturating_sub(1))
                    .unwrap_or(&nodes[0]);
                let value = (number as u64 + 1) << 32;
                let buffer = node.filled(&value.to_ne_bytes());
                let md = node
                    .md_bind(md(buffer, 0, EqHandle::NONE), Unlink::Retain)
                    .expect("PtlMDBind");
                (node, md, (number % 2 == 1).then_some(buffer))
            })
            .collect();
        Fire { rig, sources }
    }

    /// All senders put to one word, or each to its own ([`OWN_WORDS`]).
    fn to(&self, sender: usize) -> To {
        let offset = if OWN_WORDS { 8 * sender as u64 } else { 0 };
        To { id: self.rig.nodes()[0].id(), pt: PT, ac: 0, bits: 0, offset }
    }

    /// Starts `count` puts of every sender. Header data count from `first`, with the sender
    /// above bit 32.
    fn open(&self, first: u64, count: u64) -> Vec<Running<'a>> {
        let start = |(number, &(node, md, at_once))| {
            let node: &'a RigNode = node;
            let (to, hdr) = (self.to(number), (number as u64) << 32 | first);
            node.begin(AgentCall::PutMany { md, at_once, ack: AckReq::NoAck, to, hdr, count })
        };
        self.sources.iter().enumerate().map(start).collect()
    }
}

/// Waits until all are over, yielding meanwhile, and until all that they sent has arrived.
fn join(rig: &Rig, running: Vec<Running<'_>>, mut meanwhile: impl FnMut()) {
    while !running.iter().all(Running::is_over) {
        meanwhile();
        rig.nudge(&running);
    }
    for call in running {
        assert!(matches!(call.finish(), Ok(AgentAnswer::Number(_))));
    }
    rig.settle();
}

fn owner(rig: &Rig) -> (&RigNode, &NetworkInterface) {
    let node = &rig.nodes()[0];
    (node, node.interface().expect("the first node is here"))
}

fn watch(name: &str, kind: RigKind) -> Watchdog {
    Watchdog::new(format!("{name} on {kind:?}"), 200)
}

/// Whether no two senders write to one word, which ThreadSanitizer reports.
const OWN_WORDS: bool = cfg!(tsan);

/// The most that [`build`] says.
const MOST_SENDERS: usize = 4;

/// Processes where the kind has them, otherwise threads of one, and how many senders.
fn build(kind: RigKind) -> (Rig, usize) {
    (
        kind.build(if kind.has_processes() { 3 } else { 2 }, None, 7),
        if kind.has_processes() { 2 } else { 4 },
    )
}

fn many_senders_to_one_queue(kind: RigKind) {
    let _watchdog = watch("many senders", kind);
    let (rig, senders) = build(kind);
    let (node, ni) = owner(&rig);
    let (rounds, count) = (40, 100);
    // Room for one round: the ring wraps many times.
    let eq = node.eq_alloc(senders as u64 * count).expect("PtlEQAlloc");
    let me = node
        .me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After)
        .expect("PtlMEAttach");
    let options = OP_PUT | MANAGE_REMOTE | EVENT_START_DISABLE;
    node.md_attach(me, md(node.memory(8 * MOST_SENDERS), options, eq), Unlink::Retain)
        .expect("PtlMDAttach");
    let fire = Fire::new(&rig, senders);
    let mut next = vec![0; senders];
    for round in 0..rounds {
        let running = fire.open(round * count, count);
        let mut left = senders as u64 * count;
        while left > 0 {
            let Some(FetchedEvent { event, dropped }) = ni.eq_get(eq).expect("PtlEQGet") else {
                rig.nudge(&running);
                continue;
            };
            left -= 1;
            assert!(!dropped, "there is room for all: {event:?}");
            let (sender, number) = ((event.hdr_data >> 32) as usize, event.hdr_data & 0xffff_ffff);
            assert_eq!(number, next[sender], "events of one sender come in order");
            next[sender] += 1;
        }
        join(&rig, running, || ());
        assert!(ni.eq_get(eq).expect("PtlEQGet").is_none());
    }
    assert_eq!(next, vec![rounds * count; senders]);
    assert_eq!(node.dropped(), 0);
}

fn overflow_under_fire_is_always_reported(kind: RigKind) {
    let _watchdog = watch("overflow", kind);
    let (rig, senders) = build(kind);
    let (node, ni) = owner(&rig);
    let count = 3000;
    let eq = node.eq_alloc(8).expect("PtlEQAlloc");
    let me = node
        .me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After)
        .expect("PtlMEAttach");
    let options = OP_PUT | MANAGE_REMOTE | EVENT_START_DISABLE;
    node.md_attach(me, md(node.memory(8 * MOST_SENDERS), options, eq), Unlink::Retain)
        .expect("PtlMDAttach");
    let fire = Fire::new(&rig, senders);
    let mut next = vec![0; senders];
    let mut taken = 0;
    let mut reported = 0;
    let mut gaps = 0;
    let mut take = || {
        while let Some(FetchedEvent { event, dropped }) = ni.eq_get(eq).expect("PtlEQGet") {
            let (sender, number) = ((event.hdr_data >> 32) as usize, event.hdr_data & 0xffff_ffff);
            assert!(number >= next[sender], "events of one sender come in order");
            // The gap of one sender may be reported with an event of another.
            gaps += u64::from(number > next[sender]);
            reported += u64::from(dropped);
            next[sender] = number + 1;
            taken += 1;
        }
    };
    join(&rig, fire.open(0, count), &mut take);
    take();
    // A last put, for which there is room, reports what was lost at the end.
    join(&rig, fire.open(count, 1), || ());
    take();
    let all = senders as u64 * (count + 1);
    assert!(taken <= all);
    assert_eq!(
        taken < all,
        reported > 0,
        "{taken} of {all} came, {reported} losses were reported, {gaps} gaps seen"
    );
}

/// Fills a buffer that no process may write any more with a mark, which is compared in the end.
struct Graveyard<'a>(&'a RigNode, Vec<NodeBuffer>);

impl Graveyard<'_> {
    fn bury(&mut self, buffer: NodeBuffer) {
        self.0.write(buffer, &[0xaa; 8 * MOST_SENDERS]);
        self.1.push(buffer);
    }

    fn verify(&self) {
        assert!(
            self.1.iter().all(|buffer| self.0.read(*buffer) == [0xaa; 8 * MOST_SENDERS]),
            "written after it was unlinked"
        );
    }
}

/// The content of a buffer after puts: in each word nothing, or the value of one sender that
/// writes there.
fn whole(node: &RigNode, buffer: NodeBuffer, senders: usize) {
    for (number, word) in (1..).zip(node.read(buffer).chunks_exact(8)) {
        let value = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
        let sender = value >> 32;
        let writes_here = if OWN_WORDS { sender == number } else { number == 1 };
        let is_value = value & 0xffff_ffff == 0 && sender <= senders as u64 && writes_here;
        assert!(value == 0 || is_value, "{value:x}");
    }
}

fn unlink_under_fire(kind: RigKind) {
    let _watchdog = watch("unlink under fire", kind);
    let (rig, senders) = build(kind);
    let (node, ni) = owner(&rig);
    let count = 2000;
    let eq = node.eq_alloc(2 * senders as u64 * count).expect("PtlEQAlloc");
    let pool: Vec<_> = (0..64).map(|_| node.memory(8 * MOST_SENDERS)).collect();
    let mut graves = Graveyard(node, Vec::new());
    let fire = Fire::new(&rig, senders);
    let (mut ended, mut refused) = (0, 0_u64);
    let mut count_events = || {
        while let Some(fetched) = ni.eq_get(eq).expect("PtlEQGet") {
            assert!(!fetched.dropped);
            ended += u64::from(fetched.event.kind == PtlEventKind::PutEnd);
        }
        ended
    };
    let mut pool = pool.into_iter();
    let cycle = |buffer: NodeBuffer, refused: &mut u64| {
        let me = node
            .me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Unlink, InsPos::After)
            .expect("PtlMEAttach");
        let options = OP_PUT | MANAGE_REMOTE | EVENT_START_DISABLE;
        let handle =
            node.md_attach(me, md(buffer, options, eq), Unlink::Retain).expect("PtlMDAttach");
        for _ in 0..20 {
            std::thread::yield_now();
            ni.progress();
        }
        loop {
            match node.md_unlink(handle) {
                Ok(()) => break,
                Err(PtlError::MdInUse) => *refused += 1,
                Err(other) => panic!("{other:?}"),
            }
            std::thread::yield_now();
            ni.progress();
        }
        whole(node, buffer, senders);
    };
    join(&rig, fire.open(0, count), || {
        if let Some(buffer) = pool.next() {
            cycle(buffer, &mut refused);
            graves.bury(buffer);
        }
        count_events();
    });
    let ended = count_events();
    graves.verify();
    assert_eq!(
        ended + node.dropped(),
        senders as u64 * count,
        "{} buried, {refused} refused",
        graves.1.len()
    );
}

fn auto_unlink_under_fire(kind: RigKind) {
    used_up_under_fire(kind, |md, times| MemoryDescriptor { threshold: times, ..md });
}

fn full_under_fire(kind: RigKind) {
    used_up_under_fire(kind, |md, _| MemoryDescriptor {
        max_size: 8,
        options: md.options | MAX_SIZE,
        ..md
    });
}

/// Descriptors with room for seven puts, which `bounded` makes unlink themselves after this many.
fn used_up_under_fire(kind: RigKind, bounded: fn(MemoryDescriptor, i32) -> MemoryDescriptor) {
    let _watchdog = watch("auto-unlink under fire", kind);
    let (rig, senders) = build(kind);
    let (node, ni) = owner(&rig);
    let (count, threshold) = (2000, 7);
    let eq = node.eq_alloc(2 * senders as u64 * count).expect("PtlEQAlloc");
    let fire = Fire::new(&rig, senders);
    let buffers: Vec<_> = (0..4).map(|_| node.memory(8 * threshold as usize)).collect();
    let attach = |at: usize| {
        let me = node
            .me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Unlink, InsPos::After)
            .expect("PtlMEAttach");
        let wanted = bounded(md(buffers[at], OP_PUT | EVENT_START_DISABLE, eq), threshold);
        node.md_attach(me, wanted, Unlink::Unlink).expect("PtlMDAttach")
    };
    // A few at once, each used up and replaced; their number is what the UNLINK events say.
    let mut live: Vec<(MdHandle, i32)> = (0..4).map(|at| (attach(at), 0)).collect();
    let (mut ended, mut unlinked) = (0_u64, 0_u64);
    let mut take = || {
        while let Some(FetchedEvent { event, dropped }) = ni.eq_get(eq).expect("PtlEQGet") {
            assert!(!dropped);
            let at = live.iter().position(|(handle, _)| *handle == event.md_handle);
            let at = at.expect("an event of a descriptor that has not been unlinked");
            match event.kind {
                PtlEventKind::PutEnd => {
                    live[at].1 += 1;
                    ended += 1;
                }
                PtlEventKind::Unlink => {
                    assert_eq!(live[at].1, threshold, "UNLINK comes after the last END");
                    live[at] = (attach(at), 0);
                    unlinked += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        (ended, unlinked)
    };
    join(&rig, fire.open(0, count), || {
        take();
    });
    let (ended, unlinked) = take();
    assert_eq!(ended + node.dropped(), senders as u64 * count);
    assert!(unlinked >= ended / threshold as u64 - 4 && unlinked <= ended / threshold as u64);
}

fn update_under_fire(kind: RigKind) {
    let _watchdog = watch("update under fire", kind);
    let (rig, senders) = build(kind);
    let (node, ni) = owner(&rig);
    let count = 2000;
    let eq = node.eq_alloc(2 * senders as u64 * count).expect("PtlEQAlloc");
    let fire = Fire::new(&rig, senders);
    let me = node
        .me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After)
        .expect("PtlMEAttach");
    let options = OP_PUT | MANAGE_REMOTE | EVENT_START_DISABLE;
    let pool: Vec<_> = (0..100).map(|_| node.memory(8 * MOST_SENDERS)).collect();
    let mut pool = pool.into_iter();
    let mut current = pool.next().expect("a buffer");
    let handle =
        node.md_attach(me, md(current, options, eq), Unlink::Retain).expect("PtlMDAttach");
    let mut graves = Graveyard(node, Vec::new());
    let (mut ended, mut refused) = (0, 0);
    let mut take = || {
        while let Some(fetched) = ni.eq_get(eq).expect("PtlEQGet") {
            assert!(!fetched.dropped);
            ended += u64::from(fetched.event.kind == PtlEventKind::PutEnd);
        }
        ended
    };
    let mut next = pool.next();
    join(&rig, fire.open(0, count), || {
        take();
        let Some(new) = next else { return };
        // Only if nothing is unread and no operation is in progress: then the old memory must
        // stay untouched.
        match node.md_update(handle, None, Some(md(new, options, eq)), eq) {
            Ok(()) => {
                whole(node, current, senders);
                graves.bury(current);
                current = new;
                next = pool.next();
            }
            Err(PtlError::MdNoUpdate) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    });
    let ended = take();
    graves.verify();
    assert_eq!(ended, senders as u64 * count, "{} buried, {refused} refused", graves.1.len());
    assert_eq!(node.dropped(), 0);
}

/// Repeats a case `PORTALS3_STRESS` times, by default three times.
/// Whether a first message leaves although its sender never calls again.
fn leaves_at_once(kind: RigKind) -> bool {
    let rig = kind.build(2, None, 7);
    let (node, ni) = owner(&rig);
    let eq = node.eq_alloc(8).expect("PtlEQAlloc");
    let me = node
        .me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After)
        .expect("PtlMEAttach");
    let options = OP_PUT | MANAGE_REMOTE | EVENT_START_DISABLE;
    node.md_attach(me, md(node.memory(8), options, eq), Unlink::Retain).expect("PtlMDAttach");
    let running = Fire::new(&rig, 1).open(1, 1);
    let until = Instant::now() + Duration::from_secs(1);
    let mut has_come = false;
    while !has_come && Instant::now() < until {
        has_come = ni.eq_get(eq).expect("PtlEQGet").is_some();
        thread::yield_now();
    }
    join(&rig, running, || ());
    has_come
}

/// The target answers within milliseconds, unless it gets no CPU: then another try counts.
fn first_message(kind: RigKind) {
    let _watchdog = watch("a first message", kind);
    if kind.is_here() {
        assert!((0..20).any(|_| leaves_at_once(kind)), "it waits for another call");
    }
}

#[test]
fn a_first_message_leaves_over_tcp() {
    first_message(RigKind::Tcp);
}

#[test]
fn a_first_message_leaves_over_libfabric() {
    first_message(RigKind::Ofi(OfiRig::Native));
}

fn repeatedly(case: fn(RigKind), kind: RigKind) {
    if !kind.is_here() {
        return;
    }
    let times =
        std::env::var("PORTALS3_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(3);
    for _ in 0..times {
        case(kind);
    }
}

macro_rules! instantiate {
    ($($case:ident)*) => {
        $(mod $case {
            use crate::rig::{OfiRig, RigKind};
            #[test]
            fn loopback() {
                crate::repeatedly(super::$case, RigKind::Loopback);
            }
            #[test]
            fn shm_one_process() {
                crate::repeatedly(super::$case, RigKind::ShmOneProcess);
            }
            #[test]
            fn shm_mapped() {
                crate::repeatedly(super::$case, RigKind::ShmMapped);
            }
            #[test]
            fn shm_attach() {
                crate::repeatedly(super::$case, RigKind::ShmAttach);
            }
            #[test]
            fn shm_denied() {
                crate::repeatedly(super::$case, RigKind::ShmDenied);
            }
            #[test]
            fn framed() {
                crate::repeatedly(super::$case, RigKind::Framed);
            }
            #[test]
            fn tcp() {
                crate::repeatedly(super::$case, RigKind::Tcp);
            }
            #[test]
            fn ofi() {
                crate::repeatedly(super::$case, RigKind::Ofi(OfiRig::Native));
            }
        })*
    };
}

instantiate! {
    many_senders_to_one_queue
    overflow_under_fire_is_always_reported
    unlink_under_fire
    auto_unlink_under_fire
    full_under_fire
    update_under_fire
}
