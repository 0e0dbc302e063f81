//! Death and delay: an initiator (or the owner of a list) is stopped or killed at each named point of a delivery.
//!
//! Whoever is left goes on: its own messages arrive, its calls return, and what it cannot have is blamed on the one
//! who holds it. A stopped process that is let go again finishes as if nothing had happened. Needs the feature
//! `faults`.

#![cfg(feature = "faults")]

#[path = "../rig/mod.rs"]
mod rig;

use portals3::md_options::{EVENT_START_DISABLE, MANAGE_REMOTE};
use portals3::nal::PeerState;
use portals3::{AckReq, EqHandle, Error, EventKind, InsPos, Interface, MdHandle, ProcessId, Unlink};

use rig::agent::{Answer, Call, Swap};
use rig::watchdog::Watchdog;
use rig::{Kind, Node, Rig, To, md};

const PT: u32 = 4;
/// Operations of the one who is paused, and at which passage of the point.
const COUNT: u64 = 10;
const PASSAGE: u64 = 3;
/// Index of the one who is paused; 0 is the target, 2 a bystander.
const VICTIM: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Put,
    GetPut,
}

struct Scene {
    rig: Rig,
    eq: EqHandle,
    md: MdHandle,
}

impl Scene {
    fn new(kind: Kind, point: &str, signal: &str) -> Scene {
        let pause = format!("{point}:{signal}:{PASSAGE}");
        let rig = kind.build_paused(3, VICTIM, &pause);
        let node = &rig.nodes()[0];
        let eq = node.eq_alloc(256).expect("PtlEQAlloc");
        let me =
            node.me_attach(PT, ProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After).expect("PtlMEAttach");
        let options = portals3::md_options::OP_PUT | portals3::md_options::OP_GET;
        let wanted = md(node.memory(8), options | MANAGE_REMOTE | EVENT_START_DISABLE, eq);
        let md = node.md_attach(me, wanted, Unlink::Retain).expect("PtlMDAttach");
        Scene { rig, eq, md }
    }

    fn target(&self) -> &Node {
        &self.rig.nodes()[0]
    }

    fn interface(&self) -> &Interface {
        self.target().interface().expect("the target is here")
    }

    fn victim(&self) -> &Node {
        &self.rig.nodes()[VICTIM as usize]
    }

    fn to(&self) -> To {
        To { id: self.target().id(), pt: PT, ac: 0, bits: 0, offset: 0 }
    }

    /// What a node does to the target, [`COUNT`] times.
    fn call(&self, node: &Node, work: Work) -> Call {
        let from = node.memory(8);
        let put = node.md_bind(md(from, 0, EqHandle::NONE), Unlink::Retain).expect("PtlMDBind");
        match work {
            Work::Put => Call::PutMany { md: put, ack: AckReq::NoAck, to: self.to(), hdr: 0, count: COUNT },
            Work::GetPut => {
                let (eq, into) = (node.eq_alloc(64).expect("PtlEQAlloc"), node.memory(8));
                let get = node.md_bind(md(into, 0, eq), Unlink::Retain).expect("PtlMDBind");
                let (get_address, put_address) = (into.address, from.address);
                let swap = Swap { get, get_address, put, put_address, eq, to: self.to() };
                Call::SwapMany { swap, first: 1, count: COUNT }
            }
        }
    }

    /// The bystander puts; nobody who is stopped or dead can keep it from that.
    fn bystander_goes_on(&self) {
        let node = &self.rig.nodes()[2];
        let answer = node.begin(self.call(node, Work::Put)).finish();
        assert!(matches!(answer, Ok(Answer::Number(COUNT))), "{answer:?}");
    }

    /// Takes what can be taken: all events of the bystander, or those before the slot that the victim holds.
    fn take(&self) -> (u64, Option<u32>) {
        let (mut victim, mut bystander) = (0, 0);
        loop {
            match self.interface().eq_get(self.eq).expect("PtlEQGet") {
                Some(fetched) => {
                    assert!(!fetched.dropped);
                    assert!(matches!(fetched.event.kind, EventKind::PutEnd | EventKind::GetPutEnd));
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

    fn await_victim(&self, flags: i32) {
        let pid = self.victim().os_pid().expect("the victim is a process");
        // SAFETY: the record is room for the answer; the process is a child of ours.
        let mut record: libc::siginfo_t = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        let result = unsafe { libc::waitid(libc::P_PID, pid as u32, &mut record, flags | libc::WNOWAIT) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }
}

fn stopped(kind: Kind, point: &str, work: Work) {
    let _watchdog = Watchdog::new(format!("{point} stopped on {kind:?}"), 100);
    let scene = Scene::new(kind, point, "stop");
    let running = scene.victim().begin(scene.call(scene.victim(), work));
    scene.await_victim(libc::WSTOPPED);
    assert_eq!(scene.interface().peer_state(VICTIM), PeerState::Stopped);
    if work == Work::Put {
        scene.bystander_goes_on();
    }
    let (before, bystander) = if work == Work::Put { (scene.take().0, COUNT) } else { (0, 0) };
    let unlinked = scene.target().md_unlink(scene.md);
    assert!(matches!(unlinked, Ok(()) | Err(Error::MdInUse)), "{unlinked:?}");
    let pid = scene.victim().os_pid().expect("a process");
    // SAFETY: a child of ours.
    unsafe { libc::kill(pid, libc::SIGCONT) };
    let answer = running.finish();
    assert!(matches!(answer, Ok(Answer::Number(_))), "{answer:?}");
    assert_eq!(scene.interface().peer_state(VICTIM), PeerState::Alive);
    let mut after = 0;
    while scene.interface().eq_get(scene.eq).expect("PtlEQGet").is_some() {
        after += 1;
    }
    assert_eq!(scene.interface().blocked_by(), None);
    // Every message of both arrived, or was dropped because the descriptor had gone.
    let all = COUNT + bystander;
    let seen = before + after + scene.target().dropped();
    assert!(work == Work::GetPut || seen + bystander >= all, "{seen} of {all}");
    if unlinked.is_err() {
        assert_eq!(scene.target().md_unlink(scene.md), Ok(()));
    }
}

fn killed(kind: Kind, point: &str, work: Work) {
    let _watchdog = Watchdog::new(format!("{point} killed on {kind:?}"), 100);
    let scene = Scene::new(kind, point, "kill");
    let _running = scene.victim().begin(scene.call(scene.victim(), work));
    scene.await_victim(libc::WEXITED);
    assert_eq!(scene.interface().peer_state(VICTIM), PeerState::Dead);
    scene.bystander_goes_on();
    let (victim, holder) = scene.take();
    assert!(victim <= PASSAGE);
    assert!(holder.is_none() || scene.interface().peer_state(VICTIM) == PeerState::Dead);
    // What the dead one was using may stay in use for ever; the call returns.
    let unlinked = scene.target().md_unlink(scene.md);
    assert!(matches!(unlinked, Ok(()) | Err(Error::MdInUse)), "{unlinked:?}");
}

macro_rules! points {
    ($($module:ident = $point:literal, $work:ident;)*) => {
        $(mod $module {
            use super::*;
            #[test]
            fn stopped_mapped() {
                stopped(Kind::ShmMapped, $point, Work::$work);
            }
            #[test]
            fn killed_mapped() {
                killed(Kind::ShmMapped, $point, Work::$work);
            }
            #[test]
            fn stopped_attach() {
                stopped(Kind::ShmAttach, $point, Work::$work);
            }
            #[test]
            fn killed_attach() {
                killed(Kind::ShmAttach, $point, Work::$work);
            }
        })*
    };
}

points! {
    put_matched = "put.matched", Put;
    put_held = "put.held", Put;
    put_claimed = "put.claimed", Put;
    put_copied = "put.copied", Put;
    event_reserved = "event.reserved", Put;
    event_published = "event.published", Put;
    put_ended = "put.ended", Put;
    put_sent = "put.sent", Put;
    put_cleared = "put.cleared", Put;
    getput_locked = "getput.locked", GetPut;
}
