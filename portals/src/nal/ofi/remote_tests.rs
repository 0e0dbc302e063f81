//! Puts and gets in the memory of the other of two processes, in both modes of registration.

use super::bindings::{FI_MR_PROV_KEY, FI_MR_VIRT_ADDR};
use super::limits::REMOTE_AT_ONCE;
use super::tests::*;
use super::*;
use crate::nal::wire::PeerEnd;
use std::vec;

const PROVIDERS: [&str; 4] = ["tcp;ofi_rxm", "net", "sockets", "tcp"];
const BYTES: usize = 1 << 20;

/// Two processes that know each other; `None`, said aloud: this machine has no such provider.
fn pair(provider: &str, remote: OfiRemoteAccess) -> Option<[Process; 2]> {
    let [mut a, mut b] = pair_with(&[provider], remote)?;
    send_first(&mut a, &mut b, 1, false);
    await_first(&mut b);
    b.got.clear();
    Some([a, b])
}

/// Completions: token and whether it went well.
#[derive(Default)]
struct Ended(Vec<(u64, bool)>);

impl FrameSink for Ended {
    fn frame(&mut self, _: u32, _: &[u8]) {
        panic!("a frame carries data");
    }
    fn completed(&mut self, token: u64, ok: bool) {
        self.0.push((token, ok));
    }
}

fn piece(memory: &mut [u8]) -> MdIovec {
    MdIovec { base: memory.as_mut_ptr().cast(), len: memory.len() as u64 }
}

/// Begins an operation and waits for its end.
fn run(pair: &mut [Process; 2], is_put: bool, pieces: &[MdIovec], at: RemoteRegion) -> bool {
    let [a, b] = pair;
    let operation = RemoteOperation { peer: 1, is_put, pieces, at, token: 7 };
    let mut ended = Ended::default();
    // SAFETY: the pieces are those of the caller, which waits here.
    until(|| unsafe { a.wire.begin(&operation) } == RemoteBegun::Begun);
    assert!(a.wire.is_working(0));
    until(|| {
        a.wire.receive(0, 64, &mut ended);
        poll(b);
        !ended.0.is_empty()
    });
    assert!(!a.wire.is_working(0) && b.got.is_empty());
    assert_eq!(ended.0.len(), 1);
    assert_eq!(ended.0[0].0, 7);
    ended.0[0].1
}

fn put_and_get(provider: &str, remote: OfiRemoteAccess) {
    let mut memory = vec![0u8; BYTES];
    let Some(mut pair) = pair(provider, remote) else { return };
    // SAFETY: the memory is dropped after the wire.
    let region = unsafe { pair[1].wire.register(memory.as_mut_ptr(), BYTES) }.unwrap();
    let mode = pair[1].wire.lanes[0].network.lock().endpoint.domain.mr_mode;
    match remote {
        OfiRemoteAccess::AlwaysBasic => {
            assert_eq!(mode & FI_MR_VIRT_ADDR, FI_MR_VIRT_ADDR);
            assert_eq!(mode & FI_MR_PROV_KEY, FI_MR_PROV_KEY);
            assert_eq!(region.address, memory.as_ptr().addr() as u64);
        }
        _ if mode & FI_MR_PROV_KEY == 0 => {
            let wire = &pair[1].wire;
            // SAFETY: as above.
            let again = unsafe { wire.register(memory.as_mut_ptr(), BYTES) }.unwrap();
            assert_ne!(region.key, again.key, "keys are random");
        }
        _ => {}
    }
    let random = |length: usize| -> Vec<u8> {
        (0..length).map(|_| sys::random::number().unwrap() as u8).collect()
    };
    let most = pair[0].wire.limits().pieces;
    for (offset, length, count) in
        [(0, 8, 1), (13, 8, 1), (4096, 100, 2), (64, 16 << 10, most), (1, BYTES - 1, 1)]
    {
        let mut sent = random(length);
        let part = length.div_ceil(count);
        let pieces: Vec<MdIovec> = sent.chunks_mut(part).map(piece).collect();
        let at = RemoteRegion { address: region.address + offset as u64, ..region };
        assert!(pair[0].wire.takes_pieces(&pieces));
        assert!(run(&mut pair, true, &pieces, at), "{provider} put {length}");
        assert!(memory[offset..][..length] == sent[..], "{provider} put {length}");
        let mut got = vec![0u8; length];
        let pieces: Vec<MdIovec> = got.chunks_mut(part).map(piece).collect();
        assert!(run(&mut pair, false, &pieces, at), "{provider} get {length}");
        assert!(got == sent, "{provider} get {length}");
    }
    let [a, b] = pair;
    assert!(a.failures.lock().unwrap().is_empty() && b.failures.lock().unwrap().is_empty());
}

#[test]
fn bytes_are_put_and_got_in_both_modes_of_registration() {
    for provider in PROVIDERS {
        put_and_get(provider, OfiRemoteAccess::Always);
        put_and_get(provider, OfiRemoteAccess::AlwaysBasic);
    }
}

/// The provider is full, or the peer has enough under way: the rest waits for completions.
#[test]
fn many_operations_are_under_way_and_each_ends_once() {
    let [mut memory, mut source] = [0u8, 9].map(|byte| vec![byte; 64 << 10]);
    let Some([a, mut b]) = pair("sockets", OfiRemoteAccess::Always) else { return };
    // SAFETY: dropped after the wires.
    let region = unsafe { b.wire.register(memory.as_mut_ptr(), memory.len()) }.unwrap();
    let (mut ended, mut next, all) = (Ended::default(), 0, 1000);
    let mut most = 0;
    until(|| {
        if next < all {
            let at = RemoteRegion { address: region.address + next % 64 * 1024, ..region };
            let pieces = [piece(&mut source[(next % 64 * 1024) as usize..][..1024])];
            let operation =
                RemoteOperation { peer: 1, is_put: true, pieces: &pieces, at, token: next };
            // SAFETY: alive until all have ended.
            match unsafe { a.wire.begin(&operation) } {
                RemoteBegun::Begun => {
                    next += 1;
                    return false;
                }
                RemoteBegun::Full => {}
                RemoteBegun::Gone => panic!("gone"),
            }
        }
        most = most.max(next as usize - ended.0.len());
        a.wire.receive(0, 64, &mut ended);
        poll(&mut b);
        ended.0.len() == all as usize
    });
    let mut tokens: Vec<u64> = ended.0.iter().map(|(token, _)| *token).collect();
    tokens.sort_unstable();
    assert!(tokens.into_iter().eq(0..all) && ended.0.iter().all(|(_, ok)| *ok));
    assert!((2..=REMOTE_AT_ONCE).contains(&most), "{most} at once");
    assert!(memory.iter().all(|byte| *byte == 9));
}

/// A key that the peer has not given: nothing is written, and the operation fails.
#[test]
fn a_wrong_key_writes_nothing() {
    let [mut memory, mut source] = [0u8, 1].map(|byte| vec![byte; 4096]);
    let Some(mut pair) = pair("sockets", OfiRemoteAccess::Always) else { return };
    // SAFETY: dropped after the wires.
    let region = unsafe { pair[1].wire.register(memory.as_mut_ptr(), memory.len()) }.unwrap();
    let pieces = [piece(&mut source[..64])];
    let at = RemoteRegion { key: region.key ^ 4, ..region };
    assert!(!run(&mut pair, true, &pieces, at));
    assert!(memory.iter().all(|byte| *byte == 0));
    assert_eq!(pair[0].wire.peer_state(1), PeerState::Dead);
}

/// Each operation that has begun ends once, and the first that fails is the last that begins.
#[test]
fn a_peer_that_dies_ends_what_is_under_way() {
    // All that are under way may end before the peer does.
    assert!((0..20).any(|_| die_meanwhile().is_none_or(|has_failed| has_failed)));
}

/// Whether an operation has failed because its peer died; `None`, said aloud: no such provider.
fn die_meanwhile() -> Option<bool> {
    let [mut memory, mut source] = [0u8, 1].map(|byte| vec![byte; BYTES]);
    let [a, b] = pair("sockets", OfiRemoteAccess::Always)?;
    // SAFETY: dropped after the wires.
    let region = unsafe { b.wire.register(memory.as_mut_ptr(), BYTES) }.unwrap();
    let pieces = [piece(&mut source)];
    let operation =
        RemoteOperation { peer: 1, is_put: true, pieces: &pieces, at: region, token: 1 };
    let (mut b, mut ended, mut begun) = (Some(b), Ended::default(), 0);
    until(|| {
        // SAFETY: the source is dropped after the wire.
        match unsafe { a.wire.begin(&operation) } {
            RemoteBegun::Begun => begun += 1,
            RemoteBegun::Full => drop(b.take()),
            RemoteBegun::Gone => return true,
        }
        a.wire.receive(0, 1, &mut ended);
        false
    });
    until(|| {
        a.wire.receive(0, 64, &mut ended);
        ended.0.len() == begun
    });
    assert!(!a.wire.is_working(0));
    let failures = a.failures.lock().unwrap();
    assert!(failures.len() == 1 && failures[0].end == PeerEnd::Closed, "{failures:?}");
    Some(ended.0.iter().any(|(_, ok)| !ok))
}

#[test]
fn without_remote_access_all_goes_in_frames() {
    let Some(process) = open_with(SECRET, &["tcp", "net"], OfiRemoteAccess::Hardware) else {
        return;
    };
    assert!(process.wire.remote_memory().is_none() && !process.wire.has_remote_access());
}
