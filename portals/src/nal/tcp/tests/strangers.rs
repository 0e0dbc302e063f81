//! Connections that prove nothing, or not yet.

use super::*;
use crate::nal::tcp::limits::STRANGERS;
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

/// Processes that have greeted and compute make no room for strangers.
#[test]
fn those_that_have_greeted_stay() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let mut strangers = Vec::new();
    for round in 0..STRANGERS + 1 {
        let spec = HandshakeSpec {
            secret: &secret(0),
            library: LibraryVersion::new("test"),
            purpose: ConnectionPurpose::Data,
            identity: 1,
            nonce: Nonce::random().unwrap(),
        };
        let mut greeted = TcpStream::connect(b.address).unwrap();
        greeted.write_all(Handshake::connector(spec, None).to_send()).unwrap();
        greeted.set_nonblocking(true).unwrap();
        let mut answer = [0; 1];
        until(&[a, b], || greeted.peek(&mut answer).is_ok_and(|n| n == 1));
        strangers.push(greeted);
        // One process is to have one that is not open, and others may have as many as strangers.
        assert_eq!(b.ni.counters().refused, 0, "{round}");
    }
    let silent: Vec<_> = (0..2 * STRANGERS).map(|_| TcpStream::connect(b.address)).collect();
    until(&[a, b], || b.ni.counters().refused >= STRANGERS as u64);
    for greeted in &mut strangers {
        let mut answer = [0; 1024];
        while greeted.read(&mut answer).is_ok_and(|n| n != 0) {}
        let now = greeted.read(&mut answer).unwrap_err();
        assert_eq!(now.kind(), io::ErrorKind::WouldBlock);
    }
    drop(silent);
    assert!(a.failed().is_empty() && b.failed().is_empty());
}
