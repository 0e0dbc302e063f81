//! When a peer is connected to again, and the words for the end of a connection.
//!
//! Owned by [`super::TcpNetwork`]. Invariant: a peer that is not connected is tried at most
//! [`ATTEMPTS`] times. Attempts do not count for at most [`LOST_MS`] while the network cannot be
//! reached, for at most [`LACK_NS`] while this process lacks what a connection needs, and for at
//! most [`CLOSED_NS`] while the peer closes its connections within the handshake.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use std::io;

use super::super::limits::{ATTEMPTS, CLOSED_NS, LACK_NS, LOST_MS};
use crate::nal::wire::PeerEnd;
use sys::tcp::Unanswered;

/// The end of a connection.
#[derive(Debug)]
pub(super) enum ConnectionEnd {
    /// The peer has closed it, or the network has failed.
    Closed(Option<io::Error>),
    /// Another connection to the same peer stays.
    Superseded,
    /// The host of the peer does not answer.
    Unanswered(Unanswered),
    /// The network took no packet of it.
    Unreachable(io::Error),
    /// This process or the system lacks what it needs: descriptors, memory or ports.
    Lack(io::Error),
    /// The peer did what no process of the job does.
    Wrong(String),
}

impl From<io::Error> for ConnectionEnd {
    fn from(e: io::Error) -> ConnectionEnd {
        ConnectionEnd::Closed(Some(e))
    }
}

impl ConnectionEnd {
    /// A connection was not made.
    pub(super) fn not_made(e: io::Error) -> ConnectionEnd {
        match e.kind() {
            io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkDown => ConnectionEnd::Unreachable(e),
            // No port is free, or the address of this host is not there.
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => ConnectionEnd::Lack(e),
            _ if sys::is_lack(&e) => ConnectionEnd::Lack(e),
            // The system has given up what this process did not look at in time.
            io::ErrorKind::TimedOut => ConnectionEnd::Unanswered(Unanswered::Ever),
            _ => ConnectionEnd::Wrong(format!("no connection: {e}")),
        }
    }

    /// The host of the peer does not answer. `met`: the peer has answered on this connection.
    /// Otherwise its host may have taken the connection without room for it: Linux then drops what
    /// arrives on it, and the connection counts as one that was not taken.
    pub(super) fn unanswered(since: Unanswered, met: bool) -> ConnectionEnd {
        ConnectionEnd::Unanswered(if met { since } else { Unanswered::Ever })
    }

    /// What ended the connection, and in words. `granted`: the peer had granted credits;
    /// `between`: between two frames.
    pub(super) fn describe(self, granted: bool, between: bool) -> (PeerEnd, String) {
        let cause = match self {
            ConnectionEnd::Wrong(cause) => cause,
            ConnectionEnd::Unanswered(Unanswered::Ever) => String::from(
                "its host has never answered: a firewall drops packets, or more ranks connect to it \
                 than its net.core.somaxconn allows while it makes no calls",
            ),
            ConnectionEnd::Unanswered(since) => format!("its host {since}"),
            ConnectionEnd::Unreachable(e) => format!("no connection: {e}"),
            ConnectionEnd::Lack(e) => {
                let cause = format!("no connection for {} s: {e}", LACK_NS / 1_000_000_000);
                return (PeerEnd::ByLack, cause);
            }
            ConnectionEnd::Closed(Some(e)) => match sys::socket::fault_of_program(&e) {
                Some(fault) => {
                    let cause = format!("the connection failed: {e}: the program {fault}");
                    return (PeerEnd::ByProgram, cause);
                }
                None => format!("the connection failed: {e}"),
            },
            ConnectionEnd::Closed(None) if !granted => {
                String::from("it closed the connection within the handshake")
            }
            ConnectionEnd::Closed(None) if !between => {
                String::from("the connection ended within a frame")
            }
            ConnectionEnd::Closed(None) | ConnectionEnd::Superseded => {
                return (PeerEnd::Closed, String::from("it closed the connection"));
            }
        };
        (PeerEnd::Lost, cause)
    }
}

/// Attempts to connect to a peer.
#[derive(Debug, Default)]
struct PeerAttempts {
    /// Those that reached its host, or may reach it yet.
    made: u32,
    /// Since when none has reached its host, in nanoseconds of the clock.
    unreachable_since: Option<u64>,
    /// Since when this process lacks what one needs.
    lacking_since: Option<u64>,
    /// Since when the peer closes them.
    closed_since: Option<u64>,
}

/// Attempts to connect to all peers that are not connected.
#[derive(Debug, Default)]
pub(super) struct Attempts(BTreeMap<u32, PeerAttempts>);

impl Attempts {
    /// One begins.
    pub(super) fn begin(&mut self, peer: u32) {
        self.0.entry(peer).or_default().made += 1;
    }

    /// The newest has reached its host.
    pub(super) fn reached(&mut self, peer: u32) {
        if let Some(attempts) = self.0.get_mut(&peer) {
            (attempts.unreachable_since, attempts.lacking_since) = (None, None);
        }
    }

    /// The newest has not reached the host: the link may be down for a moment. Returns whether
    /// another may follow.
    pub(super) fn unreachable(&mut self, peer: u32, now: u64) -> bool {
        let most = u64::from(LOST_MS) * 1_000_000;
        self.uncounted(peer, |attempts| &mut attempts.unreachable_since, now, most)
    }

    /// The newest was not made, as this process lacks what it needs. Returns whether another may
    /// follow.
    pub(super) fn lacking(&mut self, peer: u32, now: u64) -> bool {
        self.uncounted(peer, |attempts| &mut attempts.lacking_since, now, LACK_NS)
    }

    /// The peer has closed the newest before it was open, as where it has begun a connection of
    /// its own. Returns whether another may follow that is not counted.
    pub(super) fn closed(&mut self, peer: u32, now: u64) -> bool {
        self.uncounted(peer, |attempts| &mut attempts.closed_since, now, CLOSED_NS)
    }

    /// The newest does not count if `most` nanoseconds have not passed since the first that ended
    /// so; returns that.
    fn uncounted(
        &mut self,
        peer: u32,
        since: impl FnOnce(&mut PeerAttempts) -> &mut Option<u64>,
        now: u64,
        most: u64,
    ) -> bool {
        let attempts = self.0.entry(peer).or_default();
        let since = *since(attempts).get_or_insert(now);
        let again = now.saturating_sub(since) < most;
        attempts.made = attempts.made.saturating_sub(u32::from(again));
        again
    }

    /// Whether another may follow one that ended within its handshake.
    pub(super) fn may_follow(&self, peer: u32) -> bool {
        self.0.get(&peer).is_none_or(|attempts| attempts.made < ATTEMPTS)
    }

    /// The peer is connected.
    pub(super) fn end(&mut self, peer: u32) {
        self.0.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nal::tcp::limits::CLOSED_AGAIN_NS;

    const NS: u64 = 1_000_000;

    #[test]
    fn an_unreachable_network_is_tried_for_its_time() {
        let mut attempts = Attempts::default();
        for ms in (0..u64::from(LOST_MS)).step_by(50) {
            attempts.begin(7);
            assert!(attempts.unreachable(7, ms * NS), "{ms}");
            assert!(attempts.may_follow(7), "{ms}");
        }
        attempts.begin(7);
        assert!(!attempts.unreachable(7, u64::from(LOST_MS) * NS));
        attempts.reached(7);
        assert!(attempts.unreachable(7, u64::from(LOST_MS) * NS));
    }

    #[test]
    fn a_lack_is_waited_out_for_its_time() {
        // ENOMEM and EMFILE.
        let lacks = [12, 24].map(io::Error::from_raw_os_error);
        for e in lacks.into_iter().chain([io::ErrorKind::AddrNotAvailable.into()]) {
            let end = ConnectionEnd::not_made(e);
            assert!(matches!(end, ConnectionEnd::Lack(_)), "{end:?}");
            assert_eq!(end.describe(false, true).0, PeerEnd::ByLack);
        }
        let mut attempts = Attempts::default();
        for now in (0..LACK_NS).step_by(LACK_NS as usize / 100) {
            attempts.begin(7);
            assert!(attempts.lacking(7, now) && attempts.may_follow(7), "{now}");
        }
        attempts.begin(7);
        assert!(!attempts.lacking(7, LACK_NS));
        attempts.reached(7);
        assert!(attempts.lacking(7, LACK_NS));
    }

    #[test]
    fn a_host_that_took_a_connection_without_room_counts_as_one_that_never_answered() {
        let of = |met| match ConnectionEnd::unanswered(Unanswered::Ms(LOST_MS), met) {
            ConnectionEnd::Unanswered(since) => since,
            other => panic!("{other:?}"),
        };
        assert_eq!([of(false), of(true)], [Unanswered::Ever, Unanswered::Ms(LOST_MS)]);
    }

    #[test]
    fn ends_within_handshakes_are_counted() {
        let mut attempts = Attempts::default();
        for _ in 0..ATTEMPTS {
            assert!(attempts.may_follow(7));
            attempts.begin(7);
        }
        assert!(!attempts.may_follow(7));
        attempts.end(7);
        assert!(attempts.may_follow(7));
    }

    #[test]
    fn a_peer_that_closes_is_tried_for_its_time_and_then_counted() {
        let mut attempts = Attempts::default();
        for now in (1..1 + CLOSED_NS).step_by(CLOSED_AGAIN_NS as usize) {
            attempts.begin(7);
            assert!(attempts.closed(7, now) && attempts.may_follow(7), "{now}");
        }
        for made in 1..=ATTEMPTS {
            attempts.begin(7);
            assert!(!attempts.closed(7, 1 + CLOSED_NS));
            assert_eq!(attempts.may_follow(7), made < ATTEMPTS, "{made}");
        }
    }

    #[test]
    fn only_the_network_is_waited_for() {
        for (kind, waits) in [
            (io::ErrorKind::NetworkUnreachable, true),
            (io::ErrorKind::HostUnreachable, true),
            (io::ErrorKind::NetworkDown, true),
            (io::ErrorKind::ConnectionRefused, false),
            (io::ErrorKind::TimedOut, false),
        ] {
            let end = ConnectionEnd::not_made(io::Error::from(kind));
            assert_eq!(matches!(end, ConnectionEnd::Unreachable(_)), waits, "{kind}");
        }
    }
}
