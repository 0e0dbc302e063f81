//! The messages between a rank and its supervisor: a head of 16 bytes, followed by data for
//! [`ControlKind::ExchangePart`] and [`ControlKind::JoinRequest`].
//!
//! Used by the supervisor and the ranks. Invariant: one message is one packet of the control
//! socket, so neither side receives a part of one.

use super::decision::ExitDecision;
#[cfg(feature = "hosted")]
use handshake::JobSecret;
#[cfg(feature = "hosted")]
use std::net::{IpAddr, Ipv6Addr};

/// Largest number of data bytes in one message.
pub const DATA_BYTES: usize = 32 << 10;

/// What a control message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ControlKind {
    /// Rank to supervisor: process `a` called `gasnet_init` as this rank.
    Joined = 1,
    /// Rank to supervisor: it waits in a barrier.
    Barrier,
    /// Supervisor to rank: all ranks are in the barrier.
    BarrierDone,
    /// A part of `a` bytes, beginning at byte `b`. To the supervisor: the rank's contribution
    /// to an exchange. To the rank: all contributions, by rank.
    ExchangePart,
    /// Rank to supervisor: it exits. `a` and `b` are the lower and the upper half of the word of
    /// its own decision, whether or not that holds.
    ExitDecided,
    /// Supervisor to rank: the order to exit was given.
    ExitNow,
    /// New process to supervisor: the program cannot be executed, error number `a`.
    ExecFailed,
    /// Process that connected, to supervisor: it asks to be rank `a`; the cookie follows.
    JoinRequest,
    /// Supervisor to a process that connected: it is a rank of a job of `a`. The descriptors of
    /// the memory files are attached.
    JoinReply,
    /// Rank to supervisor: it withholds an error, which another rank prints.
    ErrorWithheld,
    /// Supervisor to a rank of a job of several hosts: the secret of the job and the address of
    /// the host follow (`job_secret`).
    JobSecret,
}

/// The head of a control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlHead {
    /// What it says.
    pub kind: ControlKind,
    /// See [`ControlKind`].
    pub a: u32,
    /// See [`ControlKind`].
    pub b: u32,
}

/// Bytes of a head.
pub const HEAD_BYTES: usize = 16;

impl ControlHead {
    /// A message without numbers.
    pub fn new(kind: ControlKind) -> ControlHead {
        ControlHead { kind, a: 0, b: 0 }
    }

    /// [`ControlKind::ExitDecided`]
    pub(super) fn decided(decision: ExitDecision) -> ControlHead {
        let word = decision.pack();
        ControlHead { kind: ControlKind::ExitDecided, a: word as u32, b: (word >> 32) as u32 }
    }

    /// The decision of a [`ControlKind::ExitDecided`]; `None` if it is none.
    pub fn decision(self) -> Option<ExitDecision> {
        ExitDecision::unpack(u64::from(self.b) << 32 | u64::from(self.a)).ok().flatten()
    }

    /// As sent.
    pub fn bytes(self) -> [u8; HEAD_BYTES] {
        let mut m = [0; HEAD_BYTES];
        m[0..4].copy_from_slice(&(self.kind as u32).to_ne_bytes());
        m[4..8].copy_from_slice(&self.a.to_ne_bytes());
        m[8..12].copy_from_slice(&self.b.to_ne_bytes());
        m
    }

    /// The head and the data of a message; `None` if it is not one.
    pub fn parse(message: &[u8]) -> Option<(ControlHead, &[u8])> {
        let (head, data) = message.split_at_checked(HEAD_BYTES)?;
        let word = |i: usize| u32::from_ne_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
        const KINDS: [ControlKind; 11] = [
            ControlKind::Joined,
            ControlKind::Barrier,
            ControlKind::BarrierDone,
            ControlKind::ExchangePart,
            ControlKind::ExitDecided,
            ControlKind::ExitNow,
            ControlKind::ExecFailed,
            ControlKind::JoinRequest,
            ControlKind::JoinReply,
            ControlKind::ErrorWithheld,
            ControlKind::JobSecret,
        ];
        let kind = KINDS.into_iter().find(|&k| k as u32 == word(0))?;
        Some((ControlHead { kind, a: word(4), b: word(8) }, data))
    }
}

/// The messages that carry `data`; at least one.
pub fn parts(data: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let count = data.len().div_ceil(DATA_BYTES).max(1);
    (0..count).map(move |i| {
        let at = i * DATA_BYTES;
        let piece = &data[at..data.len().min(at + DATA_BYTES)];
        let mut m =
            ControlHead { kind: ControlKind::ExchangePart, a: data.len() as u32, b: at as u32 }
                .bytes()
                .to_vec();
        m.extend_from_slice(piece);
        m
    })
}

/// The message [`ControlKind::JobSecret`]: 16 bytes of the secret, and 16 of the address of the
/// host as one of IPv6.
#[cfg(feature = "hosted")]
pub(super) fn job_secret(secret: &JobSecret, address: IpAddr) -> Vec<u8> {
    let address = match address {
        IpAddr::V4(four) => four.to_ipv6_mapped(),
        IpAddr::V6(six) => six,
    };
    let head = ControlHead::new(ControlKind::JobSecret).bytes();
    [&head[..], &secret.to_bytes(), &address.octets()].concat()
}

/// What the data of a [`ControlKind::JobSecret`] say.
#[cfg(feature = "hosted")]
pub(super) fn parse_job_secret(data: &[u8]) -> Option<(JobSecret, IpAddr)> {
    let (secret, address) = data.split_first_chunk()?;
    let address: [u8; 16] = address.try_into().ok()?;
    let secret = JobSecret::from_bytes(*secret);
    Some((secret, IpAddr::V6(Ipv6Addr::from(address)).to_canonical()))
}

/// Data assembled from its parts.
#[derive(Debug, Default)]
pub struct Assembly {
    data: Vec<u8>,
    /// Bytes of all parts, as the first one says.
    total: Option<usize>,
}

impl Assembly {
    /// Adds a part; true when the data is complete; `None` if the part is not the next one.
    pub fn add(&mut self, head: ControlHead, piece: &[u8]) -> Option<bool> {
        let (total, at) = (head.a as usize, head.b as usize);
        let fits = *self.total.get_or_insert(total) == total
            && at == self.data.len()
            && piece.len() <= total - at.min(total);
        if !fits {
            return None;
        }
        // Memory only for what has arrived, whatever the head says.
        self.data.extend_from_slice(piece);
        Some(self.data.len() == total)
    }

    /// Takes the data; the next part begins new data.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(self).data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::decision::ExitCause;

    #[test]
    fn a_decision_survives_its_message() {
        let rank = Some(crate::rank::JobRank(4));
        let decision = ExitDecision::new(139, ExitCause::Exit, rank);
        let bytes = ControlHead::decided(decision).bytes();
        assert_eq!(ControlHead::parse(&bytes).unwrap().0.decision(), Some(decision));
        assert_eq!(ControlHead::new(ControlKind::ExitDecided).decision(), None);
    }

    #[test]
    fn heads() {
        let h = ControlHead { kind: ControlKind::Joined, a: 7, b: 9 };
        assert_eq!(ControlHead::parse(&h.bytes()), Some((h, &[][..])));
        assert_eq!(ControlHead::parse(&[0; HEAD_BYTES]), None);
        assert_eq!(ControlHead::parse(&[1, 0, 0]), None);
    }

    #[test]
    fn parts_make_a_whole() {
        for n in [0, 1, DATA_BYTES, DATA_BYTES + 1, 3 * DATA_BYTES] {
            let data: Vec<u8> = (0..n).map(|i| i as u8).collect();
            let mut a = Assembly::default();
            let messages: Vec<_> = parts(&data).collect();
            for (i, m) in messages.iter().enumerate() {
                let (h, d) = ControlHead::parse(m).unwrap();
                assert_eq!(a.add(h, d), Some(i + 1 == messages.len()));
            }
            assert_eq!(a.take(), data);
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let mut a = Assembly::default();
        assert_eq!(
            a.add(ControlHead { kind: ControlKind::ExchangePart, a: 4, b: 0 }, &[1, 2]),
            Some(false)
        );
        assert_eq!(a.add(ControlHead { kind: ControlKind::ExchangePart, a: 5, b: 2 }, &[1]), None);
        assert_eq!(
            a.add(ControlHead { kind: ControlKind::ExchangePart, a: 4, b: 2 }, &[1, 2, 3]),
            None
        );
    }

    /// Any packets are messages, which are written as they were read, or none; and data comes out
    /// as it went in.
    fn any_packets(input: &[u8]) {
        let mut packets = fuzz::InputReader::new(input);
        let (mut whole, mut parts_of_it) = (Assembly::default(), Vec::new());
        while !packets.is_empty() {
            let length = packets.byte();
            let packet = packets.bytes(length.into());
            let Some((head, data)) = ControlHead::parse(packet) else { continue };
            assert_eq!(head.bytes()[..12], packet[..12]);
            assert_eq!(data, &packet[HEAD_BYTES..]);
            match whole.add(head, data) {
                Some(complete) => {
                    parts_of_it.extend_from_slice(data);
                    assert_eq!(complete, parts_of_it.len() == head.a as usize);
                    if complete {
                        assert_eq!(whole.take(), parts_of_it);
                        parts_of_it.clear();
                    }
                }
                None => {
                    whole.take();
                    parts_of_it.clear();
                }
            }
        }
        let mut again = Assembly::default();
        for message in parts(input) {
            let (head, data) = ControlHead::parse(&message).expect("a message");
            assert!(again.add(head, data).is_some());
        }
        assert_eq!(again.take(), input);
    }

    #[test]
    fn fuzz_control_message() {
        fuzz::check("control_message", 20_000, any_packets);
    }
}
