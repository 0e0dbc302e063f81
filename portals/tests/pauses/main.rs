//! Death and delay: a process is stopped or killed at each named point of a delivery.
//!
//! The survivors go on: their own messages arrive, their calls return, and what they cannot have
//! is reported to be held by the paused process. A stopped process that is continued finishes as
//! if nothing had happened. Needs the feature `faults`. The list of points is compared with the
//! sources, so that none is forgotten.

#![cfg(feature = "faults")]

#[path = "../rig/mod.rs"]
mod rig;

use portals3::md_options::{EVENT_START_DISABLE, MANAGE_REMOTE, MAX_SIZE, OP_GET, OP_PUT};
use portals3::nal::PeerState;
use portals3::{
    AckReq, EqHandle, InsPos, MdHandle, MeHandle, MemoryDescriptor, NetworkInterface, PtlError,
    PtlEventKind, PtlProcessId, Unlink,
};

use std::time::Duration;

use sys::process::{self, Liveness};
use sys::signal::Signal;

use rig::agent::{AgentAnswer, AgentCall, Swap};
use rig::watchdog::Watchdog;
use rig::{Rig, RigKind, RigNode, Running, To, md};

const PT: u32 = 4;
/// Operations of the process that is paused.
const COUNT: u64 = 10;
/// Index of the process that is paused. 0 is the process that the tests look through, 2 a
/// bystander.
const VICTIM: u32 = 1;

/// What the victim is doing when it is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Put,
    Get,
    GetPut,
    /// Puts to descriptors that unlink themselves after one.
    LastPut,
    /// Puts at once.
    PutAtOnce,
    /// Gets at once.
    GetAtOnce,
    /// Puts at once, of which the fifth fills a descriptor that then unlinks itself.
    FillAtOnce,
}

impl Work {
    /// The passage of a point that pauses. Operations that are complete at once walk only the
    /// first time.
    fn passage(self) -> u32 {
        if self == Work::FillAtOnce { 1 } else { 3 }
    }
}

struct Scene {
    rig: Rig,
    eq: EqHandle,
    md: MdHandle,
}

fn attach(
    node: &RigNode,
    eq: EqHandle,
    threshold: i32,
    unlink: Unlink,
) -> (MeHandle, MdHandle, MemoryDescriptor) {
    let me = node
        .me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After)
        .expect("PtlMEAttach");
    let options = OP_PUT | OP_GET | MANAGE_REMOTE | EVENT_START_DISABLE;
    let wanted = MemoryDescriptor { threshold, ..md(node.memory(8), options, eq) };
    (me, node.md_attach(me, wanted, unlink).expect("PtlMDAttach"), wanted)
}

impl Scene {
    fn new(kind: RigKind, pause: &str, work: Work) -> Scene {
        let rig = kind.build_paused(3, VICTIM, pause);
        let node = &rig.nodes()[0];
        let eq = node.eq_alloc(256).expect("PtlEQAlloc");
        if work == Work::LastPut {
            for _ in 0..COUNT {
                attach(node, eq, 1, Unlink::Unlink);
            }
        }
        if work == Work::FillAtOnce {
            let me = node.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After);
            let options = OP_PUT | MAX_SIZE | EVENT_START_DISABLE;
            let wanted = MemoryDescriptor { max_size: 1, ..md(node.memory(40), options, eq) };
            node.md_attach(me.expect("PtlMEAttach"), wanted, Unlink::Unlink).expect("PtlMDAttach");
        }
        let (_, md, _) = attach(node, eq, portals3::THRESH_INF, Unlink::Retain);
        Scene { rig, eq, md }
    }

    fn target(&self) -> &RigNode {
        &self.rig.nodes()[0]
    }

    fn interface(&self) -> &NetworkInterface {
        self.target().interface().expect("the target is here")
    }

    fn victim(&self) -> &RigNode {
        &self.rig.nodes()[VICTIM as usize]
    }

    fn bystander(&self) -> &RigNode {
        &self.rig.nodes()[2]
    }

    fn to(&self, node: &RigNode) -> To {
        To { id: node.id(), pt: PT, ac: 0, bits: 0, offset: 0 }
    }

    /// What `node` does to `other`, [`COUNT`] times.
    fn call(&self, node: &RigNode, other: &RigNode, work: Work) -> AgentCall {
        let (from, to) = (node.memory(8), self.to(other));
        let put = node.md_bind(md(from, 0, EqHandle::NONE), Unlink::Retain).expect("PtlMDBind");
        let at_once =
            matches!(work, Work::PutAtOnce | Work::GetAtOnce | Work::FillAtOnce).then_some(from);
        match work {
            Work::Put | Work::LastPut | Work::PutAtOnce | Work::FillAtOnce => AgentCall::PutMany {
                md: put,
                at_once,
                ack: AckReq::NoAck,
                to,
                hdr: 0,
                count: COUNT,
            },
            Work::Get | Work::GetAtOnce => {
                AgentCall::GetMany { md: put, at_once, to, count: COUNT }
            }
            Work::GetPut => {
                let (eq, into) = (node.eq_alloc(64).expect("PtlEQAlloc"), node.memory(8));
                let get = node.md_bind(md(into, 0, eq), Unlink::Retain).expect("PtlMDBind");
                let (get_address, put_address) = (into.address, from.address);
                let swap = Swap { get, get_address, put, put_address, eq, to };
                AgentCall::SwapMany { swap, first: 1, count: COUNT }
            }
        }
    }

    /// The bystander puts; a stopped or dead process does not keep it from that.
    fn bystander_goes_on(&self) {
        let node = self.bystander();
        let answer = node.begin(self.call(node, self.target(), Work::Put)).finish();
        assert!(matches!(answer, Ok(AgentAnswer::Number(COUNT))), "{answer:?}");
        node.progress();
    }

    /// Takes what can be taken: all that the bystander sent, or what precedes the entry that the
    /// victim holds. Returns how many operations of the victim ended, and the process that holds
    /// up the rest.
    fn take(&self) -> (u64, Option<u32>) {
        let (mut victim, mut bystander) = (0, 0);
        loop {
            match self.interface().eq_get(self.eq).expect("PtlEQGet") {
                Some(fetched) if fetched.event.kind == PtlEventKind::Unlink => {}
                Some(fetched) => {
                    assert!(!fetched.dropped);
                    let of_victim = fetched.event.initiator == self.victim().id();
                    *(if of_victim { &mut victim } else { &mut bystander }) += 1;
                }
                None => {
                    let holder = self.interface().blocked_by();
                    assert!(
                        bystander == COUNT || holder == Some(VICTIM),
                        "{bystander} came, {holder:?} holds"
                    );
                    return (victim, holder);
                }
            }
        }
    }

    /// Waits until the victim is stopped, or has exited and was not collected yet.
    fn await_victim(&self, state: Liveness) {
        let pid = self.victim().os_pid().expect("the victim is a process");
        while process::liveness(pid as u32) != state {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn let_go(&self) {
        let pid = self.victim().os_pid().expect("the victim is a process");
        process::kill(pid as u32, Signal::CONT);
    }

    /// Reads all that is left after the victim is done.
    fn drain(&self) -> u64 {
        self.rig.settle();
        let mut ended = 0;
        while let Some(fetched) = self.interface().eq_get(self.eq).expect("PtlEQGet") {
            assert!(!fetched.dropped);
            ended += u64::from(fetched.event.kind != PtlEventKind::Unlink);
        }
        assert_eq!(self.interface().blocked_by(), None);
        ended
    }
}

fn watch(what: &str, point: &str, kind: RigKind) -> Watchdog {
    Watchdog::new(format!("{point} {what} on {kind:?}"), 100)
}

/// Points at which later entries cannot be read until the victim goes on.
fn holds_the_queue(point: &str) -> bool {
    matches!(point, "event.reserved" | "frame.reserved")
}

fn stopped(kind: RigKind, point: &str, work: Work) {
    let _watchdog = watch("stopped", point, kind);
    let scene = Scene::new(kind, &format!("{point}:stop:{}", work.passage()), work);
    let running = scene.victim().begin(scene.call(scene.victim(), scene.target(), work));
    scene.await_victim(Liveness::Stopped);
    assert_eq!(scene.interface().peer_state(VICTIM), PeerState::Stopped);
    scene.bystander_goes_on();
    let (before, holder) = scene.take();
    assert!(!holds_the_queue(point) || holder == Some(VICTIM));
    let unlinked = scene.target().md_unlink(scene.md);
    assert!(matches!(unlinked, Ok(()) | Err(PtlError::MdInUse)), "{unlinked:?}");
    scene.let_go();
    // Messages to the removed descriptor are dropped, and a swap would wait for its reply.
    if unlinked.is_ok() && work == Work::GetPut {
        return;
    }
    let answer = finish(&scene, running);
    assert!(matches!(answer, Ok(AgentAnswer::Number(_))), "{answer:?}");
    assert_eq!(scene.interface().peer_state(VICTIM), PeerState::Alive);
    let after = scene.drain();
    let seen = before + after + scene.target().dropped();
    let held = if holder.is_some() { COUNT } else { 0 };
    assert!(seen >= COUNT && seen <= COUNT + held, "{before} before, {after} after");
    if unlinked.is_err() {
        assert_eq!(scene.target().md_unlink(scene.md), Ok(()));
    }
}

/// Waits for a call, helping where the network needs the target's help.
fn finish(scene: &Scene, running: Running<'_>) -> Result<AgentAnswer, PtlError> {
    let running = [running];
    scene.rig.help(&running);
    let [running] = running;
    running.finish()
}

fn killed(kind: RigKind, point: &str, work: Work) {
    let _watchdog = watch("killed", point, kind);
    let scene = Scene::new(kind, &format!("{point}:kill:{}", work.passage()), work);
    let _running = scene.victim().begin(scene.call(scene.victim(), scene.target(), work));
    scene.await_victim(Liveness::Dead);
    assert_eq!(scene.interface().peer_state(VICTIM), PeerState::Dead);
    scene.bystander_goes_on();
    let (victim, holder) = scene.take();
    assert!(victim <= if work == Work::FillAtOnce { 5 } else { 3 });
    assert!(!holds_the_queue(point) || holder == Some(VICTIM));
    if point == "getput.locked" {
        // The lock went with its holder; a process that wants it does not wait forever.
        let node = scene.bystander();
        let (from, into) = (node.memory(8), node.memory(8));
        let bind = |buffer| {
            node.md_bind(md(buffer, 0, EqHandle::NONE), Unlink::Retain).expect("PtlMDBind")
        };
        let _ = node.get_put(bind(into), bind(from), scene.to(scene.target()), 0);
    }
    // What the dead process was using may stay in use forever; the call returns.
    let unlinked = scene.target().md_unlink(scene.md);
    assert!(matches!(unlinked, Ok(()) | Err(PtlError::MdInUse)), "{unlinked:?}");
}

/// The victim owns a list and changes it while others put to it.
fn owner(kind: RigKind, point: &str, signal: &str) {
    let _watchdog = watch(signal, point, kind);
    // Every attach and unlink passes once; the list exists before.
    let scene = Scene::new(kind, &format!("{point}:{signal}:12"), Work::Put);
    let (node, victim) = (scene.target(), scene.victim());
    let ni = scene.interface();
    let (me, handle, wanted) =
        attach(victim, EqHandle::NONE, portals3::THRESH_INF, Unlink::Retain);
    victim.md_unlink(handle).expect("PtlMDUnlink");
    let churning = victim.begin(AgentCall::Churn { me, md: wanted, count: 30 });
    scene.await_victim(if signal == "stop" { Liveness::Stopped } else { Liveness::Dead });
    let from =
        node.md_bind(md(node.memory(8), 0, EqHandle::NONE), Unlink::Retain).expect("PtlMDBind");
    let to = scene.to(victim);
    let putting = node.begin(AgentCall::PutMany {
        md: from,
        at_once: None,
        ack: AckReq::NoAck,
        to,
        hdr: 0,
        count: COUNT,
    });
    if signal == "stop" {
        // The puts wait for the owner and report it, or found a list that was complete.
        while !putting.is_over() && ni.blocked_by() != Some(VICTIM) {
            std::thread::yield_now();
        }
        scene.let_go();
        assert!(matches!(churning.finish(), Ok(AgentAnswer::Number(30))));
    }
    assert!(matches!(putting.finish(), Ok(AgentAnswer::Number(COUNT))));
}

/// The victim is about to wake a target that sleeps.
fn waker_stopped(kind: RigKind, point: &str) {
    let _watchdog = watch("stopped", point, kind);
    let scene = Scene::new(kind, &format!("{point}:stop:1"), Work::Put);
    let sleeping = scene.target().begin(AgentCall::TakeMany { eq: scene.eq, count: COUNT });
    // Long enough to fall asleep. If it has not, it looks asleep: the point is passed in any
    // case.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let _ = scene.interface().doorbell();
    let running = scene.victim().begin(scene.call(scene.victim(), scene.target(), Work::Put));
    scene.await_victim(Liveness::Stopped);
    assert_eq!(scene.interface().peer_state(VICTIM), PeerState::Stopped);
    scene.let_go();
    assert!(matches!(running.finish(), Ok(AgentAnswer::Number(COUNT))));
    assert!(matches!(sleeping.finish(), Ok(AgentAnswer::Number(0))));
}

macro_rules! points {
    ($($module:ident = $point:literal, $work:ident on $($kind:ident)*;)*) => {
        $(mod $module {
            $(#[allow(non_snake_case, reason = "named after the kind of rig")]
            mod $kind {
                use crate::*;
                #[test]
                fn stopped() {
                    crate::stopped(RigKind::$kind, $point, Work::$work);
                }
                #[test]
                fn killed() {
                    crate::killed(RigKind::$kind, $point, Work::$work);
                }
            })*
        })*

        const INITIATOR_POINTS: &[&str] = &[$($point),*];
    };
}

points! {
    put_matched = "put.matched", Put on ShmMapped ShmAttach;
    put_held = "put.held", Put on ShmMapped ShmAttach;
    put_claimed = "put.claimed", Put on ShmMapped ShmAttach;
    put_copied = "put.copied", Put on ShmMapped ShmAttach;
    event_reserved = "event.reserved", Put on ShmMapped ShmAttach;
    event_published = "event.published", Put on ShmMapped ShmAttach;
    put_ended = "put.ended", Put on ShmMapped ShmAttach;
    put_unlinked = "put.unlinked", LastPut on ShmMapped ShmAttach;
    put_sent = "put.sent", Put on ShmMapped ShmAttach;
    put_cleared = "put.cleared", Put on ShmMapped ShmAttach;
    get_claimed = "get.claimed", Get on ShmMapped ShmAttach;
    getput_locked = "getput.locked", GetPut on ShmMapped ShmAttach;
    frame_reserved = "frame.reserved", Put on ShmDenied;
    at_once_matched = "put.matched", PutAtOnce on ShmMapped;
    at_once_held = "put.held", PutAtOnce on ShmMapped;
    at_once_claimed = "put.claimed", PutAtOnce on ShmMapped;
    at_once_copied = "put.copied", PutAtOnce on ShmMapped;
    at_once_reserved = "event.reserved", PutAtOnce on ShmMapped;
    at_once_published = "event.published", PutAtOnce on ShmMapped;
    at_once_ended = "put.ended", PutAtOnce on ShmMapped;
    at_once_cleared = "put.cleared", PutAtOnce on ShmMapped;
    got_at_once_claimed = "put.claimed", GetAtOnce on ShmMapped;
    got_at_once_ended = "put.ended", GetAtOnce on ShmMapped;
    filled_at_once_unlinked = "put.unlinked", FillAtOnce on ShmMapped;
}

const OTHER_POINTS: &[&str] = &["list.odd", "unlink.closing", "doorbell.changed"];

#[test]
fn list_odd_owner_stopped() {
    owner(RigKind::ShmMapped, "list.odd", "stop");
}

#[test]
fn list_odd_owner_killed() {
    owner(RigKind::ShmMapped, "list.odd", "kill");
}

#[test]
fn unlink_closing_owner_stopped() {
    owner(RigKind::ShmMapped, "unlink.closing", "stop");
}

#[test]
fn unlink_closing_owner_killed() {
    owner(RigKind::ShmMapped, "unlink.closing", "kill");
}

#[test]
fn doorbell_changed_waker_stopped() {
    waker_stopped(RigKind::ShmMapped, "doorbell.changed");
}

#[test]
fn every_point_in_the_sources_is_tested() {
    fn look(directory: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).expect("the sources").flatten() {
            let path = entry.path();
            if path.is_dir() {
                look(&path, found);
            } else {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let points = text
                    .split("fault::point(\"")
                    .skip(1)
                    .filter_map(|rest| rest.split('"').next());
                found.extend(points.map(str::to_owned));
            }
        }
    }
    let mut found = Vec::new();
    look(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 10);
    for point in found {
        let known =
            INITIATOR_POINTS.contains(&point.as_str()) || OTHER_POINTS.contains(&point.as_str());
        assert!(known, "{point} has no test");
    }
}
