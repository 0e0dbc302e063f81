//! Where the root listens, as a word that is passed to the other supervisors, and how these
//! connect to it.
//!
//! Made by `supervisor::other_hosts` and `foreign`, read by [`super::remote`] and `foreign`.
//! Invariant: a link is returned only after both ends have proven that they know the secret, which
//! is part of the word. It must not be seen by other users.

use super::link::{self, HostLink};
use super::{library_version, purpose};
use crate::boot::options;
use handshake::{Handshake, HandshakeSpec, JobSecret, Nonce};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;
use sys::{clock, tcp};

/// How long an address may take to answer, in the first and in the second attempt. A wrong one
/// does not answer at all where a firewall drops packets.
const ANSWERS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// How long the root may take to prove that it knows the secret. It may not run yet, or strangers
/// may keep it from accepting this host, which connects again then.
const PROOF: Duration = Duration::from_secs(20);

/// Milliseconds until this host connects again if the root hangs up.
const AGAIN_MS: [u64; 6] = [50, 100, 200, 400, 800, 1600];

/// The secret of a job, and where its root listens.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::boot) struct RootAddress {
    pub(in crate::boot) secret: JobSecret,
    pub(in crate::boot) addresses: Vec<SocketAddr>,
}

impl RootAddress {
    /// As a word without blanks.
    pub(in crate::boot) fn text(&self) -> String {
        let secret: String = self.secret.to_bytes().iter().map(|b| format!("{b:02x}")).collect();
        let addresses: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        format!("{secret}@{}", addresses.join(","))
    }

    /// What a word says; `None` if it is none of [`RootAddress::text`].
    pub(in crate::boot) fn parse(word: &str) -> Option<RootAddress> {
        let (secret, addresses) = word.split_once('@')?;
        let secret = u128::from_str_radix(secret, 16).ok().filter(|_| secret.len() == 32)?;
        let addresses = addresses.split(',').map(|a| a.parse().ok()).collect::<Option<_>>()?;
        Some(RootAddress { secret: JobSecret::from_bytes(secret.to_be_bytes()), addresses })
    }

    /// Connects to the root as the supervisor of host `host`, within GASNET_SPAWN_TIMEOUT of this
    /// process: with ssh, that of the login.
    ///
    /// # Errors
    /// Each address, with the reason why it is of no use.
    pub(in crate::boot) fn connect(&self, host: u32) -> Result<HostLink, String> {
        let until = options::spawn_timeout().map_or(u64::MAX, |ns| clock::now_ns() + ns);
        self.connect_until(host, until, PROOF)
    }

    /// The same until this time; the root may take `proof` for each attempt.
    fn connect_until(&self, host: u32, until: u64, proof: Duration) -> Result<HostLink, String> {
        let mut failures = Vec::new();
        let mut left = self.addresses.clone();
        for round in 0.. {
            let last = ANSWERS.len() - 1;
            let within = ANSWERS[last.min(round)];
            for address in std::mem::take(&mut left) {
                let why = match self.connect_to(address, within, host, proof) {
                    Ok(link) => return Ok(link),
                    Err(e) => e,
                };
                match why.kind() {
                    ErrorKind::WouldBlock if clock::now_ns() < until => left.push(address),
                    ErrorKind::TimedOut if round < last => left.push(address),
                    ErrorKind::TimedOut => {
                        failures.push(format!("{address} (it does not answer)"));
                    }
                    _ => failures.push(format!("{address} ({why})")),
                }
            }
            if left.is_empty() {
                break;
            }
        }
        Err(failures.join(", "))
    }

    /// A link to the root at this address. Where many connect at a time, the root makes room by
    /// hanging up.
    fn connect_to(
        &self,
        address: SocketAddr,
        within: Duration,
        host: u32,
        proof: Duration,
    ) -> io::Result<HostLink> {
        let mut pauses = AGAIN_MS.iter();
        loop {
            let stream = TcpStream::connect_timeout(&address, within)?;
            stream.set_read_timeout(Some(proof))?;
            match (introduced(stream, host, &self.secret), pauses.next()) {
                (Err(e), Some(pause)) if has_hung_up(&e) => clock::sleep_ns(pause * 1_000_000),
                (ended, _) => return ended,
            }
        }
    }
}

/// Whether the root hung up before it had proven anything.
fn has_hung_up(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

/// A link over a connection to the root. The stream has a timeout: `WouldBlock` if the root sends
/// nothing within it.
fn introduced(mut stream: TcpStream, host: u32, secret: &JobSecret) -> io::Result<HostLink> {
    // The system of a root that does not run yet answers; that of a host that is lost does not.
    tcp::tune(stream.as_fd(), link::LOST_MS)?;
    let spec = HandshakeSpec {
        secret,
        library: library_version(),
        purpose: purpose(),
        identity: host.into(),
        nonce: Nonce::random()?,
    };
    let mut handshake = Handshake::connector(spec, None);
    let mut buffer = [0; 1024];
    loop {
        while !handshake.to_send().is_empty() {
            let n = stream.write(handshake.to_send())?;
            handshake.sent(n);
        }
        if handshake.peer().is_some() {
            return HostLink::new(stream, &[]);
        }
        let n = match stream.read(&mut buffer) {
            Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "it hung up")),
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let why = "it did not prove that it belongs to the job: it is stopped, or \
                           connections of strangers keep it from accepting this one";
                return Err(io::Error::new(ErrorKind::WouldBlock, why));
            }
            Err(e) => return Err(e),
        };
        // The other end says nothing more before it has the proof of this one.
        handshake.feed(&buffer[..n]).map_err(io::Error::other)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::hosts::listener::HostListener;
    use std::net::Ipv4Addr;

    /// A root that does not look at its connections for long gets another one, and one that never
    /// does is given up.
    #[test]
    fn a_root_that_does_not_prove_itself_is_connected_to_again() {
        let mut listener = HostListener::open(&[Ipv4Addr::LOCALHOST.into()]).unwrap();
        let root = listener.root_address();
        let proof = Duration::from_millis(100);
        let why = root.connect_until(1, clock::now_ns(), proof).unwrap_err();
        assert!(why.contains("strangers"), "{why}");
        let until = clock::now_ns() + 60_000_000_000;
        let host = std::thread::spawn(move || root.connect_until(1, until, proof).map(drop));
        clock::sleep_ns(400_000_000);
        let mut found = Vec::new();
        while found.is_empty() && clock::now_ns() < until {
            found = listener.accept(clock::now_ns());
        }
        assert_eq!(host.join().unwrap(), Ok(()));
        assert_eq!(found.iter().map(|(host, _)| *host).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_root_address_is_a_word() {
        let root = RootAddress {
            secret: JobSecret::from_bytes([7; 16]),
            addresses: vec!["10.0.0.1:50".parse().unwrap(), "[::1]:9".parse().unwrap()],
        };
        let word = root.text();
        assert!(!word.contains(|c: char| c.is_ascii_whitespace()));
        assert_eq!(RootAddress::parse(&word), Some(root));
        for wrong in ["", "-", "00@10.0.0.1:50", &word[1..], &format!("{word},"), "x@y"] {
            assert_eq!(RootAddress::parse(wrong), None, "{wrong}");
        }
    }

    /// Any bytes are an address or none.
    fn any_word(input: &[u8]) {
        if let Some(root) = RootAddress::parse(&String::from_utf8_lossy(input)) {
            assert_eq!(RootAddress::parse(&root.text()), Some(root));
        }
    }

    #[test]
    fn fuzz_root_address() {
        fuzz::check("root_address", 3_000, any_word);
    }
}
