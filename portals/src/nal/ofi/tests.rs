//! Wires of one process over the loopback device: credits, strangers, replays, dead peers.

use super::limits::*;
use super::*;
use crate::nal::wire::{PeerEnd, PeerFailure};
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::vec;

pub(super) const SECRET: [u8; 16] = [9; 16];

/// A process of a job of two hosts.
pub(super) struct Process {
    pub(super) wire: OfiWire,
    pub(super) failures: Arc<Mutex<Vec<PeerFailure>>>,
    pub(super) got: Vec<Vec<u8>>,
}

/// Reports that the test that calls this cannot run, once. `ci/check.sh` counts the lines of the
/// file CHECK_SKIPPED.
pub(super) fn skip(why: &dyn core::fmt::Display) {
    let thread = std::thread::current();
    let line = std::format!("skipped {}: {why}\n", thread.name().unwrap_or_default());
    std::print!("{line}");
    if let Some(path) = std::env::var_os("CHECK_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
    }
}

/// `None`, said aloud: this machine has no libfabric.
fn open(secret: [u8; 16]) -> Option<Process> {
    open_of(secret, &["net", "tcp"])
}

fn open_of(secret: [u8; 16], providers: &[&str]) -> Option<Process> {
    open_with(secret, providers, OfiRemoteAccess::Never)
}

pub(super) fn open_with(
    secret: [u8; 16],
    providers: &[&str],
    remote: OfiRemoteAccess,
) -> Option<Process> {
    let failures = Arc::new(Mutex::new(Vec::new()));
    let log = failures.clone();
    let wire = OfiWire::open(OfiSpec {
        address: IpAddr::from([127, 0, 0, 1]),
        ports: 0..=0,
        secret: JobSecret::from_bytes(secret),
        providers: ProviderChoice::Include(providers.iter().map(ToString::to_string).collect()),
        tag_mode: None,
        remote,
        thread_grouping: false,
        events: 1,
        processes: 2,
        on_failure: Box::new(move |failure| log.lock().unwrap().push(failure.clone())),
    });
    match wire {
        Ok(wire) => Some(Process { wire, failures, got: Vec::new() }),
        Err(why @ (NoOfi::NoLibrary(_) | NoOfi::NoProvider)) => {
            skip(&why);
            None
        }
        Err(why) => panic!("{why}"),
    }
}

fn connect(process: &Process, nid: u32, addresses: &[[u8; ADDRESS]; 2]) -> bool {
    let numbering = HostNumbering::new(nid, &[1, 1]).unwrap();
    process.wire.connect(PtlProcessId { nid, pid: 0 }, &numbering, addresses.concat().into())
}

fn pair() -> Option<[Process; 2]> {
    pair_of(&["net", "tcp"])
}

fn pair_of(providers: &[&str]) -> Option<[Process; 2]> {
    pair_with(providers, OfiRemoteAccess::Never)
}

pub(super) fn pair_with(providers: &[&str], remote: OfiRemoteAccess) -> Option<[Process; 2]> {
    let (a, b) = (open_with(SECRET, providers, remote)?, open_with(SECRET, providers, remote)?);
    let addresses = [a.wire.address(), b.wire.address()];
    assert!(connect(&a, 0, &addresses) && connect(&b, 1, &addresses));
    Some([a, b])
}

/// Sends the first frame of `a` to `b`: the two greet each other before it leaves.
pub(super) fn send_first(a: &mut Process, b: &mut Process, number: u32, long: bool) {
    until(|| {
        poll(a);
        poll(b);
        send(a, number, long) == FrameSent::Sent
    });
}

/// Waits until a frame has arrived.
pub(super) fn await_first(process: &mut Process) {
    until(|| {
        poll(process);
        !process.got.is_empty()
    });
}

/// A frame that says that a message was taken, as long as the longest if `long`.
fn send(from: &Process, number: u32, long: bool) -> FrameSent {
    send_before(from, number, long, false)
}

/// The same; another one `follows`.
fn send_before(from: &Process, number: u32, long: bool, follows: bool) -> FrameSent {
    let header = [3, number].map(u32::to_le_bytes).concat();
    let mut rest =
        vec![number as u8; if long { from.wire.max_frame(Size::MAX) - header.len() } else { 8 }];
    let piece = MdIovec { base: rest.as_mut_ptr().cast(), len: rest.len() as u64 };
    // SAFETY: the piece is readable. The other process has the number 1.
    unsafe { from.wire.send(1, &header, &[piece], follows) }
}

pub(super) fn poll(process: &mut Process) {
    let got = &mut process.got;
    process.wire.receive(0, 64, &mut |peer: u32, frame: &[u8]| {
        assert_eq!(peer, 1);
        got.push(frame.to_vec());
    });
}

#[track_caller]
pub(super) fn until(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing more happens");
    }
}

fn numbers(process: &Process) -> Vec<u32> {
    let number = |frame: &Vec<u8>| u32::from_le_bytes(*frame[4..].first_chunk().unwrap());
    process.got.iter().map(number).collect()
}

#[test]
fn a_flood_waits_for_credits_and_arrives_in_order() {
    let Some([mut a, mut b]) = pair() else { return };
    send_first(&mut a, &mut b, 0, false);
    let made = |process: &Process| process.wire.lanes[0].network.lock().buffers();
    // Its greeting left in one of those for sending.
    let first = BUFFERS_AT_FIRST + FIRST_WINDOW as usize + BUFFERS_MORE + SENDS_AT_ONCE;
    assert_eq!(made(&b), first);
    // The receiver does not look: as many leave as there are credits for.
    let mut next = 1;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(200) {
        poll(&mut a);
        if send(&a, next, next % 3 == 0) == FrameSent::Sent {
            next += 1;
        }
    }
    assert!(u64::from(next) <= FIRST_WINDOW, "{next} of {FIRST_WINDOW}");
    let all = 5000;
    until(|| {
        if next < all && send(&a, next, next % 3 == 0) == FrameSent::Sent {
            next += 1;
        }
        poll(&mut a);
        poll(&mut b);
        b.got.len() == all as usize
    });
    assert_eq!(numbers(&b), (0..all).collect::<Vec<_>>());
    assert_eq!(made(&b), first + (WINDOW - FIRST_WINDOW) as usize);
    assert!(made(&a) <= first + SENDS_PER_PEER);
    let is_whole = |frame: &Vec<u8>| frame[8..].iter().all(|byte| *byte == frame[4]);
    assert!(b.got.iter().all(is_whole));
    assert!(
        b.got
            .iter()
            .zip(0..)
            .all(|(frame, i)| (frame.len() == b.wire.max_frame(Size::MAX))
                == (i % 3 == 0 && i != 0))
    );
    assert_eq!(b.wire.counters().refused, 0);
    assert!(a.failures.lock().unwrap().is_empty() && b.failures.lock().unwrap().is_empty());
}

/// Small frames that others follow share messages, so that a window has more of them. Long ones
/// keep their places between them. What no frame follows after all leaves in the next look.
#[test]
fn frames_that_follow_each_other_share_messages() {
    let Some([mut a, mut b]) = pair() else { return };
    send_first(&mut a, &mut b, 0, false);
    await_first(&mut b);
    let mut next = 1;
    while send_before(&a, next, false, true) == FrameSent::Sent {
        next += 1;
    }
    assert!(u64::from(next) > 100 * FIRST_WINDOW, "{next} frames in a window");
    let all = 20_000;
    until(|| {
        for _ in 0..50 {
            let is_last = next % 1000 == 999;
            if next < all && send_before(&a, next, next % 700 == 0, !is_last) == FrameSent::Sent {
                next += 1;
            }
        }
        poll(&mut a);
        poll(&mut b);
        b.got.len() == all as usize
    });
    assert_eq!(numbers(&b), (0..all).collect::<Vec<_>>());
    let is_whole = |frame: &Vec<u8>| frame[8..].iter().all(|byte| *byte == frame[4]);
    assert!(b.got.iter().all(is_whole));
    // The last one is in a batch that nothing follows.
    assert_eq!(send_before(&a, all, false, true), FrameSent::Sent);
    until(|| {
        poll(&mut a);
        poll(&mut b);
        b.got.len() == all as usize + 1
    });
    assert_eq!(send_before(&a, all + 1, false, true), FrameSent::Sent);
    a.wire.flush(10_000_000_000);
    until(|| {
        poll(&mut b);
        b.got.len() == all as usize + 2
    });
    assert!(a.failures.lock().unwrap().is_empty() && b.failures.lock().unwrap().is_empty());
}

/// A process of another job knows the addresses, not the secret.
#[test]
fn a_stranger_is_refused_and_delays_nothing() {
    let Some([mut a, mut b]) = pair() else { return };
    let Some(mut stranger) = open([8; 16]) else { return };
    let addresses = [stranger.wire.address(), b.wire.address()];
    assert!(connect(&stranger, 0, &addresses));
    let _ = send(&stranger, 0, false);
    until(|| {
        poll(&mut stranger);
        poll(&mut b);
        b.wire.counters().refused != 0
    });
    assert_eq!(send(&stranger, 0, false), FrameSent::Full);
    send_first(&mut a, &mut b, 7, false);
    await_first(&mut b);
    assert_eq!(numbers(&b), [7]);
    assert!(b.failures.lock().unwrap().is_empty());
}

/// The frames of a process that was started again count as such that came before.
#[test]
fn what_came_before_is_refused() {
    let Some([mut a, mut b]) = pair() else { return };
    send_first(&mut a, &mut b, 1, false);
    await_first(&mut b);
    let Some(mut again) = open(SECRET) else { return };
    assert!(connect(&again, 0, &[again.wire.address(), b.wire.address()]));
    let _ = send(&again, 2, false);
    until(|| {
        poll(&mut again);
        poll(&mut b);
        b.wire.counters().refused != 0
    });
    assert_eq!(numbers(&b), [1]);
}

/// By this provider. Those for TCP alone connect again without end: the supervisors end the job.
#[test]
fn a_dead_peer_is_reported_once() {
    let Some([mut a, mut b]) = pair_of(&["sockets"]) else { return };
    send_first(&mut a, &mut b, 1, false);
    drop(b);
    until(|| {
        poll(&mut a);
        let _ = send(&a, 2, true);
        a.wire.peer_state(1) == PeerState::Dead
    });
    assert_eq!(send(&a, 3, true), FrameSent::Gone);
    let failures = a.failures.lock().unwrap();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].process, PtlProcessId { nid: 1, pid: 0 });
    assert_eq!(failures[0].end, PeerEnd::Closed, "{}", failures[0]);
}

/// A look that asks a peer, if it is time only by this process's clock.
fn check(process: &mut Process) {
    process.wire.lanes[0].network.lock().loss_clock.check_now();
    poll(process);
}

/// The number of the next frame to the peer.
fn next(process: &Process) -> u64 {
    process.wire.lanes[0].network.lock().peers[&1].next
}

/// The provider has kept it, and its connection broke before it left.
fn lose_a_frame(process: &Process) {
    let mut network = process.wire.lanes[0].network.lock();
    let peer = network.peers.get_mut(&1).unwrap();
    peer.has_sent(true, true);
}

/// Also if no frame follows it, and if both lose one at the same time.
#[test]
fn a_lost_frame_is_noticed() {
    for both in [false, true] {
        let Some([mut a, mut b]) = pair() else { return };
        send_first(&mut a, &mut b, 1, false);
        lose_a_frame(&a);
        if both {
            lose_a_frame(&b);
        }
        // Its sender makes no calls.
        (0..100).for_each(|_| check(&mut b));
        assert!(b.failures.lock().unwrap().is_empty());
        until(|| {
            check(&mut a);
            check(&mut b);
            [&a, &b].iter().any(|one| one.wire.peer_state(1) == PeerState::Dead)
        });
        let failures = [a, b].map(|one| one.failures.lock().unwrap().clone());
        assert!(both || failures[0].is_empty(), "the receiver notices it");
        let all = failures.concat();
        assert_eq!((all.len(), all[0].end), (1, PeerEnd::Dropped), "{}", all[0]);
    }
}

/// This provider moves a long frame only while its sender makes calls, and a short one at once.
#[test]
fn a_frame_that_is_overtaken_is_not_lost() {
    let Some([mut a, mut b]) = pair_of(&["tcp;ofi_rxm"]) else { return };
    send_first(&mut a, &mut b, 1, false);
    await_first(&mut b);
    assert_eq!([send(&a, 2, true), send(&a, 3, false)], [FrameSent::Sent; 2]);
    let is_overtaken = |b: &Process| !b.wire.lanes[0].network.lock().peers[&1].early.is_empty();
    until(|| {
        poll(&mut b);
        is_overtaken(&b) || b.got.len() == 3
    });
    let overtaken = is_overtaken(&b);
    (0..1000).for_each(|_| check(&mut b));
    assert_eq!(is_overtaken(&b), overtaken, "its sender makes no calls");
    until(|| {
        poll(&mut a);
        poll(&mut b);
        b.got.len() == 3
    });
    assert_eq!(numbers(&b), [1, 2, 3]);
    assert!(b.failures.lock().unwrap().is_empty());
}

/// A process that asks whether frames are lost stops when it knows, or when nothing answers.
#[test]
fn asks_end() {
    let Some([mut a, mut b]) = pair() else { return };
    send_first(&mut a, &mut b, 1, false);
    let before = next(&a);
    (0..100).for_each(|_| check(&mut a));
    assert_eq!(next(&a) - before, u64::from(MOST_UNANSWERED));
    let answered = next(&b);
    until(|| {
        check(&mut a);
        check(&mut b);
        next(&b) != answered
    });
    let all = [next(&a), next(&b)];
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(200) {
        check(&mut a);
        check(&mut b);
    }
    assert!(next(&a) <= all[0] + 1 && next(&b) <= all[1] + 1, "{all:?}");
    assert!(a.failures.lock().unwrap().is_empty() && b.failures.lock().unwrap().is_empty());
}

/// A peer is silent until its greeting has arrived.
#[test]
fn a_peer_that_never_answers_is_known() {
    let Some([mut a, mut b]) = pair() else { return };
    assert_eq!(a.wire.silent_peer(0), None);
    let _ = send(&a, 1, false);
    for _ in 0..100 {
        poll(&mut a);
    }
    assert_eq!(a.wire.silent_peer(0), Some(1));
    assert_eq!(a.wire.silent_peer(u64::MAX / 2), None);
    send_first(&mut a, &mut b, 1, false);
    await_first(&mut b);
    assert_eq!(a.wire.silent_peer(0), None);
}

/// Also if the peer's greeting has arrived before: the provider reports what becomes of it.
#[test]
fn a_greeting_is_never_injected() {
    let Some([mut a, mut b]) = pair() else { return };
    send_first(&mut a, &mut b, 1, false);
    // As if the greeting had failed, and were due now.
    let mut network = a.wire.lanes[0].network.lock();
    let peer = network.peers.get_mut(&1).unwrap();
    (peer.next, peer.sent) = (1, 0);
    assert!(peer.greet_again(0) && peer.is_open);
    peer.greet_at = 0;
    network.owed.push(1);
    let before = network.leaving;
    network.pay(&a.wire.end, a.wire.peers.get().unwrap());
    assert_eq!((network.leaving, network.peers[&1].next), (before + 1, 1));
    assert!(!network.peers[&1].is_kept);
}

/// What was sent arrives although the sender makes no call after it has flushed.
#[test]
fn a_flush_waits_until_all_has_left() {
    let Some([mut a, mut b]) = pair() else { return };
    send_first(&mut a, &mut b, 1, true);
    for number in 2..8 {
        until(|| send(&a, number, number % 2 == 0) == FrameSent::Sent);
    }
    a.wire.flush(10_000_000_000);
    until(|| {
        poll(&mut b);
        b.got.len() == 7
    });
    assert_eq!(numbers(&b), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn processes_of_different_providers_do_not_connect() {
    let Some([a, b]) = pair() else { return };
    let Some(other) = open(SECRET) else { return };
    let mut address = b.wire.address();
    address[PROVIDER] ^= 1;
    assert!(!connect(&other, 0, &[other.wire.address(), address]));
    assert_ne!(OfiWire::provider_of(&a.wire.address()), OfiWire::provider_of(&address));
}

/// Both processes of a pair have the same lane, and no lane has many more peers than another.
#[test]
fn peers_are_divided_among_lanes() {
    let hosts = [3, 1, 4, 2];
    let total: u32 = hosts.iter().sum();
    for lanes in 1..=5 {
        let peers_of = |own| {
            let (mut nid, mut pid) = (0, own);
            while pid >= hosts[nid] {
                (nid, pid) = (nid + 1, pid - hosts[nid]);
            }
            let numbering = HostNumbering::new(nid as u32, &hosts).unwrap();
            OfiPeers { own, numbering, names: Box::new([]), lanes }
        };
        for own in 0..total {
            let here = peers_of(own);
            let mut in_lane = vec![0; lanes as usize];
            for other in (0..total).filter(|&other| other != own) {
                let number = here.numbering.number_at(other).unwrap();
                let there = peers_of(other);
                let lane = here.lane_of(number);
                assert_eq!(lane, there.lane_of(there.numbering.number_at(own).unwrap()));
                in_lane[lane] += 1;
            }
            let (least, most) = (in_lane.iter().min().unwrap(), in_lane.iter().max().unwrap());
            assert!(most - least <= 2, "{in_lane:?}");
        }
    }
}
