//! Where the supervisors of other hosts connect to the root.
//!
//! Made by `supervisor::other_hosts` and `foreign`, owned by the former. Invariants: a connection
//! becomes a link only after both ends have proven that they know the secret of the job; a
//! stranger keeps a descriptor and a few bytes for [`INTRODUCTION`]. If there are many, those that
//! have not greeted make room at once, and those that do not prove themselves then after [`STEP`].
//! What has arrived is read before.

use super::link::HostLink;
use super::root_address::RootAddress;
use super::{interface, library_version, purpose};
use crate::boot::error::BootError;
use crate::report;
use handshake::{Handshake, HandshakeSpec, JobSecret, Nonce};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use sys::accept::AcceptPause;
use sys::tcp;

/// Nanoseconds in which a connection must have proven that it belongs to the job.
const INTRODUCTION: u64 = 5_000_000_000;
/// In which one that has greeted must have done so, if others wait.
const STEP: u64 = 1_000_000_000;
/// Connections that may be doing so at a time.
const MOST_PENDING: usize = 64;
/// Connections that wait in the kernel to be accepted.
const BACKLOG: u32 = 4096;
/// Strangers that are reported one by one.
const REPORTED: u64 = 3;

/// Listening sockets, and connections that have not proven anything yet.
#[derive(Debug)]
pub(in crate::boot) struct HostListener {
    secret: JobSecret,
    sockets: Vec<OwnedFd>,
    pending: Vec<PendingHost>,
    pause: AcceptPause,
    /// There is room for another connection.
    accepts: bool,
    strangers: u64,
}

#[derive(Debug)]
struct PendingHost {
    stream: TcpStream,
    handshake: Handshake,
    from: SocketAddr,
    until: u64,
    /// From when on it makes room for another one.
    yields_at: u64,
}

impl HostListener {
    /// Listens on these addresses of this host, with a new secret.
    ///
    /// # Errors
    /// As [`HostListener::with`].
    pub(in crate::boot) fn open(addresses: &[IpAddr]) -> Result<HostListener, BootError> {
        let secret = JobSecret::random()
            .map_err(|e| BootError::system("cannot get a random number", &e))?;
        HostListener::with(secret, addresses)
    }

    /// Listens on these addresses of this host.
    ///
    /// # Errors
    /// An address cannot be listened on.
    pub(in crate::boot) fn with(
        secret: JobSecret,
        addresses: &[IpAddr],
    ) -> Result<HostListener, BootError> {
        let ports = interface::ports();
        let socket = |address: &IpAddr| tcp::listen_on(*address, ports.clone(), BACKLOG);
        let sockets = addresses.iter().map(socket).collect::<io::Result<_>>().map_err(|e| {
            BootError::new(
                format!("cannot listen for the other hosts on {addresses:?}: {e}"),
                "Name a free port or another interface: GASNET_NETWORK_PORTS, \
                 GASNET_NETWORK_INTERFACE.",
            )
        })?;
        let (pending, pause) = (Vec::new(), AcceptPause::default());
        Ok(HostListener { secret, sockets, pending, pause, accepts: true, strangers: 0 })
    }

    /// Where it listens, and the secret.
    pub(in crate::boot) fn root_address(&self) -> RootAddress {
        let addresses =
            self.sockets.iter().filter_map(|s| tcp::local_address(s.as_fd()).ok()).collect();
        RootAddress { secret: self.secret.clone(), addresses }
    }

    /// What to poll.
    pub(in crate::boot) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let sockets = self.sockets.iter().filter(|_| self.accepts && self.pause.until().is_none());
        sockets.map(AsFd::as_fd).chain(self.pending.iter().map(|p| p.stream.as_fd()))
    }

    /// When [`HostListener::accept`] must be called at the latest.
    pub(in crate::boot) fn deadline(&self) -> Option<u64> {
        let yields = self.pending.iter().map(|p| p.yields_at).filter(|_| !self.accepts);
        self.pending.iter().map(|p| p.until).chain(yields).chain(self.pause.until()).min()
    }

    /// Accepts connections. Returns those whose other end has proven that it belongs to the job,
    /// each with the number of its host.
    pub(in crate::boot) fn accept(&mut self, now: u64) -> Vec<(u32, HostLink)> {
        let mut proven = self.advance(now);
        // Those that have waited in the kernel have mostly sent something.
        for _ in 0..MOST_PENDING {
            let accepted = self.accept_one(now);
            proven.extend(self.advance(now));
            if !accepted {
                break;
            }
        }
        self.accepts = self.has_room(now);
        proven
    }

    /// Whether another connection can be accepted.
    fn has_room(&self, now: u64) -> bool {
        self.pending.len() < MOST_PENDING || self.yielding(now).is_some()
    }

    /// The oldest connection that makes room for another one.
    fn yielding(&self, now: u64) -> Option<usize> {
        self.pending.iter().position(|p| now >= p.yields_at)
    }

    /// Accepts a connection on each socket, as far as there is room. False if there was none.
    fn accept_one(&mut self, now: u64) -> bool {
        let mut has_accepted = false;
        for at in 0..self.sockets.len() {
            if !self.has_room(now) {
                break;
            }
            let mut accepted = None;
            let accept = || tcp::accept(self.sockets[at].as_fd());
            let lack = self.pause.accept(now, 1, accept, |fd| accepted = Some(fd));
            if let Some(e) = lack {
                report::line(format_args!(
                    "other hosts cannot be accepted until this process has what it lacks: {e}"
                ));
            }
            let Some(stream) = accepted.map(TcpStream::from) else { continue };
            has_accepted = true;
            if let Ok(from) = stream.peer_addr()
                && let Some(handshake) = acceptor(&self.secret, &stream)
            {
                if self.pending.len() == MOST_PENDING
                    && let Some(oldest) = self.yielding(now)
                {
                    let PendingHost { from, .. } = self.pending.remove(oldest);
                    self.count_stranger(from, "it did not prove that it does");
                }
                let until = now + INTRODUCTION;
                self.pending.push(PendingHost { stream, handshake, from, until, yields_at: now });
            }
        }
        has_accepted
    }

    /// Goes on with the proofs. Returns the connections that have proven that they belong to the
    /// job, each with the number of its host.
    fn advance(&mut self, now: u64) -> Vec<(u32, HostLink)> {
        let mut proven = Vec::new();
        for mut p in std::mem::take(&mut self.pending) {
            match p.advance(now) {
                Ok(None) if now < p.until => self.pending.push(p),
                Ok(None) => self.count_stranger(p.from, "it did not prove that it does"),
                Ok(Some((host, received))) => {
                    proven
                        .extend(HostLink::new(p.stream, &received).ok().map(|link| (host, link)));
                }
                Err(why) => self.count_stranger(p.from, &why),
            }
        }
        proven
    }

    fn count_stranger(&mut self, from: SocketAddr, why: &str) {
        self.strangers += 1;
        if self.strangers <= REPORTED {
            report::line(format_args!(
                "a connection from {from} does not belong to this job and was refused: {why}"
            ));
        }
    }
}

/// Nonces are numbers of the system; without one the connection is refused.
fn acceptor(secret: &JobSecret, stream: &TcpStream) -> Option<Handshake> {
    stream.set_nonblocking(true).ok()?;
    stream.set_nodelay(true).ok()?;
    Some(Handshake::acceptor(HandshakeSpec {
        secret,
        library: library_version(),
        purpose: purpose(),
        identity: 0,
        nonce: Nonce::random().ok()?,
    }))
}

impl PendingHost {
    /// Goes on with the proof. The number of the host, and what came behind its proof, when it is
    /// complete.
    fn advance(&mut self, now: u64) -> Result<Option<(u32, Vec<u8>)>, String> {
        let mut buffer = [0; 1024];
        loop {
            let sent = self.send();
            let n = match self.stream.read(&mut buffer) {
                Ok(0) => return Err("it hung up".to_string()),
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return sent.map(|()| None),
                Err(e) => return Err(e.to_string()),
            };
            let had_greeted = self.handshake.claimed().is_some();
            let taken = self.handshake.feed(&buffer[..n]);
            let taken = taken.map_err(|e| {
                // Tells the other end the version of this one.
                let _ = self.send();
                e.to_string()
            })?;
            self.send()?;
            if !had_greeted && self.handshake.claimed().is_some() {
                self.yields_at = now + STEP;
            }
            if let Some(host) = self.handshake.peer() {
                return Ok(Some((host as u32, buffer[taken..n].to_vec())));
            }
        }
    }

    fn send(&mut self) -> Result<(), String> {
        while !self.handshake.to_send().is_empty() {
            match self.stream.write(self.handshake.to_send()) {
                Ok(n) => self.handshake.sent(n),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // A stranger, since the first bytes on a connection have room.
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use sys::accept::PAUSE_NS;
    use sys::child::{self, Forked};
    use sys::clock;
    use sys::limits;

    /// `RLIMIT_NOFILE`.
    const DESCRIPTORS: u32 = 7;

    /// Connects as a host does, and returns what it connected with: it has sent its greeting.
    fn greet(listener: &HostListener) -> TcpStream {
        let RootAddress { secret, addresses } = listener.root_address();
        let mut stream = TcpStream::connect(addresses[0]).unwrap();
        let spec = HandshakeSpec {
            secret: &secret,
            library: library_version(),
            purpose: purpose(),
            identity: 1,
            nonce: Nonce::random().unwrap(),
        };
        stream.write_all(Handshake::connector(spec, None).to_send()).unwrap();
        stream
    }

    /// More hosts than there is room for connect before the first look, behind as many strangers
    /// that say nothing: all of them become links.
    #[test]
    fn many_hosts_connect_at_once() {
        const HOSTS: u32 = 3 * MOST_PENDING as u32;
        let mut listener = HostListener::open(&[Ipv4Addr::LOCALHOST.into()]).unwrap();
        let address = listener.root_address();
        let strangers: Vec<TcpStream> =
            (0..HOSTS).map(|_| TcpStream::connect(address.addresses[0]).unwrap()).collect();
        let hosts: Vec<_> = (0..HOSTS)
            .map(|host| {
                let address = address.clone();
                std::thread::spawn(move || address.connect(host).map(|_| ()))
            })
            .collect();
        let until = clock::now_ns() + 60_000_000_000;
        let mut found = std::collections::BTreeSet::new();
        while found.len() < HOSTS as usize && clock::now_ns() < until {
            found.extend(listener.accept(clock::now_ns()).into_iter().map(|(host, _)| host));
            assert!(listener.pending.len() <= MOST_PENDING);
        }
        for host in hosts {
            assert_eq!(host.join().unwrap(), Ok(()));
        }
        assert_eq!(found.len(), HOSTS as usize);
        drop(strangers);
    }

    /// Those that have greeted and do not go on make room after a second, the others before that.
    #[test]
    fn those_that_have_greeted_keep_their_place_for_a_second() {
        let mut listener = HostListener::open(&[Ipv4Addr::LOCALHOST.into()]).unwrap();
        let greeted: Vec<TcpStream> = (0..MOST_PENDING).map(|_| greet(&listener)).collect();
        let wait = |listener: &mut HostListener, now| {
            while listener.pending.iter().filter(|p| p.yields_at > now).count() < MOST_PENDING {
                assert!(listener.accept(now).is_empty());
            }
        };
        wait(&mut listener, 1);
        assert!(!listener.accepts && listener.descriptors().count() == MOST_PENDING);
        let another = greet(&listener);
        assert!(listener.accept(STEP).is_empty());
        assert_eq!((listener.strangers, listener.deadline()), (0, Some(1 + STEP)));
        while listener.strangers == 0 {
            assert!(listener.accept(1 + STEP).is_empty());
        }
        assert!(listener.pending.len() == MOST_PENDING && listener.accepts);
        drop((greeted, another));
    }

    /// One that sends its proof byte by byte keeps its place no longer than one that says nothing.
    #[test]
    fn a_part_of_a_proof_keeps_no_place() {
        let mut listener = HostListener::open(&[Ipv4Addr::LOCALHOST.into()]).unwrap();
        let mut greeted = greet(&listener);
        while listener.pending.iter().all(|p| p.yields_at == 1) {
            assert!(listener.accept(1).is_empty());
        }
        let mut seen = [0];
        for now in 2..10 {
            greeted.write_all(b"x").unwrap();
            let arrived = listener.pending[0].stream.try_clone().unwrap();
            while arrived.peek(&mut seen).is_err() {}
            assert!(listener.accept(now).is_empty());
            assert!(arrived.peek(&mut seen).is_err());
            assert_eq!(listener.pending[0].yields_at, 1 + STEP);
        }
        assert_eq!(listener.strangers, 0);
    }

    /// A process that lacks descriptors does not wait for its listening sockets: they would end
    /// each wait at once.
    #[test]
    fn a_lack_of_descriptors_makes_a_pause() {
        let mut listener = HostListener::open(&[Ipv4Addr::LOCALHOST.into()]).unwrap();
        let _waits = TcpStream::connect(listener.root_address().addresses[0]).unwrap();
        // SAFETY: the C library keeps its allocator usable in the child, which needs nothing else
        // of other threads.
        let Forked::Parent(child) = unsafe { child::fork() }.unwrap() else {
            let before = limits::soft(DESCRIPTORS);
            limits::set_soft(DESCRIPTORS, Some(0));
            let mut counts = [0; 3];
            for (now, count) in [5, 6, 5 + PAUSE_NS].into_iter().zip(&mut counts) {
                if now == 5 + PAUSE_NS {
                    limits::set_soft(DESCRIPTORS, before);
                }
                let is_due = listener.accept(now).is_empty()
                    && (listener.deadline() == Some(5 + PAUSE_NS) || now > 6);
                *count = if is_due { listener.descriptors().count() } else { 99 };
            }
            sys::exit_now(i32::from(counts != [0, 0, 2]))
        };
        assert_eq!(child::await_child(child), child::Ended::Exited(0));
    }
}
