//! Connections that prove nothing, or not yet.

use super::*;
use crate::nal::tcp::end::identity;
use crate::nal::tcp::limits::{ATTEMPTS, STRANGERS};
use handshake::{ConnectionPurpose, Handshake, HandshakeSpec, Nonce};

/// Strangers are refused and counted, however they behave, and the job goes on meanwhile.
#[test]
fn strangers_are_refused_and_delay_nothing() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let (_memories, from) = bound_and_exposed(a, b);
    // More silent ones than may be pending.
    let silent: Vec<_> = (0..2 * STRANGERS).map(|_| TcpStream::connect(b.address)).collect();
    let mut loud: Vec<TcpStream> = Vec::new();
    for i in 0..50u8 {
        let mut stranger = TcpStream::connect(b.address).unwrap();
        let bytes: Vec<u8> = (0..200).map(|n| (n as u8).wrapping_mul(i)).collect();
        stranger.write_all(&bytes).unwrap();
        loud.push(stranger);
    }
    a.put(from, (0, 64), b, 7, 0, 0);
    events(&[a, b], 2);
    until(&[a, b], || b.ni.counters().refused >= (STRANGERS + 50) as u64);
    for mut stranger in loud {
        stranger.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut answer = Vec::new();
        let ended = stranger.read_to_end(&mut answer);
        assert!(
            answer.is_empty()
                && !matches!(&ended, Err(e) if e.kind() == io::ErrorKind::WouldBlock)
        );
    }
    until(&[a, b], || {
        let all = (2 * STRANGERS + 50) as u64;
        b.ni.counters().refused == all
    });
    drop(silent);
    assert!(a.failed().is_empty() && b.failed().is_empty());
}

/// A connection from this address that greets as the process with this identity would.
fn greeted(from: [u8; 4], to: &Process, identity: u64) -> TcpStream {
    greeted_with(&secret(0), from, to, identity)
}

/// The same with any secret.
fn greeted_with(secret: &JobSecret, from: [u8; 4], to: &Process, identity: u64) -> TcpStream {
    let spec = HandshakeSpec {
        secret,
        library: LibraryVersion::new("test"),
        purpose: ConnectionPurpose::Data,
        identity,
        nonce: Nonce::random().unwrap(),
    };
    let socket = tcp::connect(IpAddr::from(from), to.address).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_nonblocking(false).unwrap();
    stream.write_all(Handshake::connector(spec, None).to_send()).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream
}

/// A process that has greeted and computes makes no room for strangers, whatever they say.
#[test]
fn one_that_has_greeted_stays() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let mut process = greeted([127, 0, 0, 1], b, identity(a.ni.id()));
    until(&[a, b], || process.peek(&mut [0]).is_ok_and(|n| n == 1));
    let mut strangers = Vec::new();
    for _ in 0..2 * STRANGERS {
        // From another host, and as processes that the job does not have here.
        strangers.push(greeted([127, 0, 0, 2], b, identity(a.ni.id())));
        strangers.push(greeted([127, 0, 0, 1], b, identity(id(7, 7))));
        strangers.push(greeted([127, 0, 0, 1], b, identity(b.ni.id())));
        strangers.push(TcpStream::connect(b.address).unwrap());
        b.ni.progress();
    }
    until(&[a, b], || b.ni.counters().refused >= 7 * STRANGERS as u64);
    let mut answer = [0; 1024];
    while process.read(&mut answer).is_ok_and(|n| n != 0) {}
    let ended = process.read(&mut answer).unwrap_err();
    assert_eq!(ended.kind(), io::ErrorKind::WouldBlock);
    drop(strangers);
    assert!(a.failed().is_empty() && b.failed().is_empty());
}

/// A process connects again to a peer that has lost its connection before its proof. It does so
/// more often than attempts are counted.
fn check_made_again(maker: &Process, other: &Process) {
    let (_memories, from) = bound_and_exposed(maker, other);
    maker.put(from, (0, 64), other, 7, 0, 0);
    let number = maker.ni.number(other.ni.id()).unwrap();
    let is_meeting = || maker.ni.state.peers.nal.is_meeting(number);
    let mut others = Vec::new();
    for round in 0..=u64::from(ATTEMPTS) {
        until(&[maker], is_meeting);
        // It has greeted, and computes. One of its host displaces it.
        others.push(greeted([127, 0, 0, 1], other, identity(maker.ni.id())));
        until(&[other], || other.ni.counters().refused == 2 * round + 1);
        until(&[maker], || !is_meeting());
    }
    drop(others);
    events(&[maker, other], 2);
    assert!(maker.failed().is_empty() && other.failed().is_empty());
}

/// Even if a connection of that peer would stay.
#[test]
fn a_connection_that_the_peer_has_lost_is_made_again() {
    let job = job(&[1, 1]);
    check_made_again(&job[1], &job[0]);
}

/// Also if its own would stay.
#[test]
fn a_connection_that_would_stay_is_made_again() {
    let job = job(&[1, 1]);
    check_made_again(&job[0], &job[1]);
}

/// One that does not know the secret displaces no process, although it greets from its host and in
/// its name.
#[test]
fn a_stranger_displaces_no_process_of_its_host() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let (_memories, from) = bound_and_exposed(a, b);
    a.put(from, (0, 64), b, 7, 0, 0);
    let mut process = greeted([127, 0, 0, 1], b, identity(a.ni.id()));
    until(&[b], || process.peek(&mut [0]).is_ok_and(|n| n == 1));
    let before = b.ni.counters().refused;
    let none = JobSecret::from_bytes([8; 16]);
    let mut strangers = Vec::new();
    for _ in 0..2 * STRANGERS {
        strangers.push(greeted_with(&none, [127, 0, 0, 1], b, identity(a.ni.id())));
        until(&[b], || strangers.last().unwrap().peek(&mut [0]).is_ok_and(|n| n == 1));
    }
    // They make room for each other.
    assert!(b.ni.counters().refused - before >= STRANGERS as u64);
    let mut answer = [0; 1024];
    while process.read(&mut answer).is_ok_and(|n| n != 0) {}
    assert_eq!(process.read(&mut answer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    events(&[a, b], 2);
    assert!(a.failed().is_empty() && b.failed().is_empty());
}
