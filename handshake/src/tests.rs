//! Handshakes between two sides, honest and not.

use super::*;

const HERE: LibraryVersion = LibraryVersion::new("0.2.0");

fn spec(secret: &JobSecret, identity: u64, nonce: u8) -> HandshakeSpec<'_> {
    let purpose = ConnectionPurpose::Data;
    HandshakeSpec { secret, library: HERE, purpose, identity, nonce: Nonce([nonce; 16]) }
}

/// Moves bytes both ways, `step` at a time, until nothing moves; returns what each side found.
fn run(
    connector: &mut Handshake,
    acceptor: &mut Handshake,
    step: usize,
) -> [Result<(), HandshakeError>; 2] {
    let mut found = [Ok(()), Ok(())];
    loop {
        let mut moved = 0;
        moved += pass(connector, acceptor, step, &mut found[1]);
        moved += pass(acceptor, connector, step, &mut found[0]);
        if moved == 0 {
            return found;
        }
    }
}

fn pass(
    from: &mut Handshake,
    to: &mut Handshake,
    step: usize,
    found: &mut Result<(), HandshakeError>,
) -> usize {
    let bytes = from.to_send();
    let bytes = bytes[..step.min(bytes.len())].to_vec();
    from.sent(bytes.len());
    match to.feed(&bytes) {
        Ok(taken) => assert_eq!(taken, bytes.len()),
        Err(why) => *found = Err(why),
    }
    bytes.len()
}

#[test]
fn a_claim_comes_before_its_proof() {
    let secret = JobSecret::from_bytes([7; 16]);
    let mut connector = Handshake::connector(spec(&secret, 1, 1), Some(2));
    let mut acceptor = Handshake::acceptor(spec(&secret, 2, 2));
    let greeting = connector.to_send().to_vec();
    connector.sent(greeting.len());
    assert_eq!(acceptor.feed(&greeting[..GREETING - 1]), Ok(GREETING - 1));
    assert_eq!((acceptor.claimed(), acceptor.peer()), (None, None));
    assert_eq!(acceptor.feed(&greeting[GREETING - 1..]), Ok(1));
    assert_eq!((acceptor.claimed(), acceptor.peer()), (Some(1), None));
    assert_eq!(run(&mut connector, &mut acceptor, 1000), [Ok(()), Ok(())]);
    assert_eq!((acceptor.claimed(), acceptor.peer()), (Some(1), Some(1)));
}

/// One that does not know the secret claims nothing, but is answered.
#[test]
fn a_claim_needs_the_secret() {
    let (one, two) = (JobSecret::from_bytes([7; 16]), JobSecret::from_bytes([8; 16]));
    let greeting = Handshake::connector(spec(&one, 1, 1), None).to_send().to_vec();
    let mut claims_another = greeting.clone();
    claims_another[44] ^= 1;
    for (secret, greeting, claimed) in
        [(&one, &greeting, Some(1)), (&two, &greeting, None), (&one, &claims_another, None)]
    {
        let mut acceptor = Handshake::acceptor(spec(secret, 2, 2));
        assert_eq!(acceptor.feed(greeting), Ok(GREETING));
        assert_eq!(acceptor.claimed(), claimed);
        assert_eq!(acceptor.to_send().len(), GREETING + PROOF);
    }
}

#[test]
fn both_sides_learn_each_other_whatever_the_cuts() {
    let secret = JobSecret::from_bytes([7; 16]);
    for step in [1, 2, 59, 60, 61, 75, 76, 77, 91, 107, 1000] {
        let mut connector = Handshake::connector(spec(&secret, 1, 1), Some(2));
        let mut acceptor = Handshake::acceptor(spec(&secret, 2, 2));
        assert!(acceptor.to_send().is_empty());
        assert_eq!(run(&mut connector, &mut acceptor, step), [Ok(()), Ok(())]);
        assert_eq!((connector.peer(), acceptor.peer()), (Some(2), Some(1)));
        assert_eq!(acceptor.feed(b"a frame"), Ok(0));
    }
}

/// Bytes behind the proof of the connector are left to the owner of the connection.
#[test]
fn what_follows_a_handshake_is_not_taken() {
    let secret = JobSecret::from_bytes([7; 16]);
    let mut connector = Handshake::connector(spec(&secret, 1, 1), None);
    let mut acceptor = Handshake::acceptor(spec(&secret, 2, 2));
    acceptor.feed(connector.to_send()).unwrap();
    connector.sent(GREETING);
    connector.feed(acceptor.to_send()).unwrap();
    let mut bytes = connector.to_send().to_vec();
    assert_eq!(bytes.len(), PROOF);
    bytes.extend(b"a frame");
    assert_eq!(acceptor.feed(&bytes), Ok(PROOF));
    assert_eq!(acceptor.peer(), Some(1));
}

#[test]
fn another_secret_is_refused_by_both() {
    let (one, two) = (JobSecret::from_bytes([7; 16]), JobSecret::from_bytes([8; 16]));
    let mut connector = Handshake::connector(spec(&one, 1, 1), None);
    let mut acceptor = Handshake::acceptor(spec(&two, 2, 2));
    let found = run(&mut connector, &mut acceptor, 1000);
    // The acceptor proves first, so the connector does not go on.
    assert_eq!(found, [Err(HandshakeError::Proof), Ok(())]);
    assert_eq!((connector.peer(), acceptor.peer()), (None, None));
    assert_eq!(acceptor.feed(&[0; PROOF]), Err(HandshakeError::Proof));
    assert_eq!(connector.feed(&[]), Err(HandshakeError::Proof));
}

#[test]
fn a_connector_knows_whom_it_wants() {
    let secret = JobSecret::from_bytes([7; 16]);
    let mut connector = Handshake::connector(spec(&secret, 1, 1), Some(3));
    let mut acceptor = Handshake::acceptor(spec(&secret, 2, 2));
    let [found, _] = run(&mut connector, &mut acceptor, 1000);
    assert_eq!(found, Err(HandshakeError::Identity { expected: 3, found: 2 }));
    assert_eq!(acceptor.peer(), None);
}

/// Both sides name both versions.
#[test]
fn a_mismatch_names_both_versions() {
    let secret = JobSecret::from_bytes([7; 16]);
    let theirs = LibraryVersion::new("0.3.0\x1b[2J");
    let mut other = spec(&secret, 1, 1);
    other.library = theirs;
    let mut connector = Handshake::connector(other, None);
    let mut acceptor = Handshake::acceptor(spec(&secret, 2, 2));
    let [there, here] = run(&mut connector, &mut acceptor, 1000);
    assert_eq!(here, Err(HandshakeError::Library { ours: HERE, theirs }));
    assert_eq!(there, Err(HandshakeError::Library { ours: theirs, theirs: HERE }));
    let text = here.unwrap_err().to_string();
    assert_eq!(text, r"library version 0.2.0 here, 0.3.0\x1b[2J there");

    let mut connector = Handshake::connector(spec(&secret, 1, 1), None);
    connector.own.bytes[8] = 9;
    let mut acceptor = Handshake::acceptor(spec(&secret, 2, 2));
    let [_, here] = run(&mut connector, &mut acceptor, 1000);
    assert_eq!(here, Err(HandshakeError::Protocol { ours: PROTOCOL, theirs: 9 }));

    let mut other = spec(&secret, 1, 1);
    other.purpose = ConnectionPurpose::Control;
    let mut connector = Handshake::connector(other, None);
    let mut acceptor = Handshake::acceptor(spec(&secret, 2, 2));
    let (ours, theirs) = (ConnectionPurpose::Data, ConnectionPurpose::Control);
    let [_, here] = run(&mut connector, &mut acceptor, 1000);
    assert_eq!(here, Err(HandshakeError::Purpose { ours, theirs }));
}

/// What this side sent, sent back, is no handshake.
#[test]
fn a_mirror_is_refused() {
    let secret = JobSecret::from_bytes([7; 16]);
    let mut connector = Handshake::connector(spec(&secret, 1, 1), None);
    let own = connector.to_send().to_vec();
    assert_eq!(connector.feed(&own), Err(HandshakeError::Stranger));
    let mut acceptor = Handshake::acceptor(spec(&secret, 2, 2));
    acceptor.feed(&own).unwrap();
    // Its own proof, which it takes for that of the connector.
    let proof = acceptor.to_send()[GREETING..].to_vec();
    assert_eq!(acceptor.feed(&proof), Err(HandshakeError::Proof));
}

/// A proof is for one handshake only.
#[test]
fn a_handshake_cannot_be_replayed() {
    let secret = JobSecret::from_bytes([7; 16]);
    let mut connector = Handshake::connector(spec(&secret, 1, 1), None);
    let mut acceptor = Handshake::acceptor(spec(&secret, 2, 2));
    let mut said = connector.to_send().to_vec();
    acceptor.feed(&said).unwrap();
    connector.sent(GREETING);
    connector.feed(acceptor.to_send()).unwrap();
    said.extend(connector.to_send());
    assert_eq!(acceptor.feed(&said[GREETING..]), Ok(PROOF));
    assert_eq!(acceptor.peer(), Some(1));
    let mut again = Handshake::acceptor(spec(&secret, 2, 3));
    assert_eq!(again.feed(&said), Err(HandshakeError::Proof));
}

#[test]
fn a_stranger_gets_no_answer() {
    let secret = JobSecret::from_bytes([7; 16]);
    let mut acceptor = Handshake::acceptor(spec(&secret, 2, 2));
    assert_eq!(acceptor.feed(b"GET / HTTP/1.1\r\n"), Err(HandshakeError::Stranger));
    assert!(acceptor.to_send().is_empty());
}

/// The first byte chooses a side; the others arrive, in one piece and one by one.
fn any_bytes(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let secret = JobSecret::from_bytes([7; 16]);
    let make = || match choice & 1 {
        0 => Handshake::acceptor(spec(&secret, 2, 2)),
        _ => Handshake::connector(spec(&secret, 1, 1), None),
    };
    // A proof that is right, so that what comes after it is reached.
    let mut bytes = bytes.to_vec();
    if choice & 2 != 0 && bytes.len() >= GREETING + PROOF {
        let mut peer = make();
        peer.received.fill(&bytes, GREETING);
        let side = match peer.side {
            HandshakeSide::Connector => HandshakeSide::Acceptor,
            HandshakeSide::Acceptor => HandshakeSide::Connector,
        };
        let proof = peer.mac(side).finalize().into_bytes();
        bytes[GREETING..][..PROOF].copy_from_slice(&proof);
    }
    let (mut whole, mut slow) = (make(), make());
    let at_once = whole.feed(&bytes);
    let (mut taken, mut one_by_one) = (0, Ok(0));
    for byte in bytes.chunks(1) {
        one_by_one = slow.feed(byte).map(|n| {
            taken += n;
            taken
        });
        if one_by_one.is_err() {
            break;
        }
    }
    if !bytes.is_empty() {
        assert_eq!(at_once, one_by_one);
    }
    assert_eq!((whole.stage, whole.to_send()), (slow.stage, slow.to_send()));
    assert!(whole.to_send().len() <= GREETING + PROOF);
    assert!(at_once.is_err() || at_once.unwrap() <= GREETING + PROOF);
    assert_eq!(
        whole.peer().is_some(),
        whole.received.length == GREETING + PROOF && at_once.is_ok()
    );
    assert!(whole.peer().is_none() || choice & 2 != 0);
}

#[test]
fn fuzz_handshake() {
    fuzz::check("handshake", 20_000, any_bytes);
}
