//! The messages between the supervisors of two hosts.
//!
//! Sent over a [`super::link`]. Invariant: what arrived is a message or the connection ends; a
//! message takes memory only for bytes that have arrived.
//!
//! ```text
//! bytes  content
//! 4      length of what follows, little-endian
//! 1      kind
//! n      data, as the kind says
//! ```

use crate::boot::decision::ExitDecision;
use crate::rank::JobRank;

/// A message between supervisors. "Up" is towards the host of gasnetrun, "down" away from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::boot) enum HostMessage {
    /// Down: what the host is to start, see `remote_plan`.
    Plan(Vec<u8>),
    /// Up, first: what the host is called that a launcher has started.
    Name(String),
    /// Up: a rank of the sender's hosts is the first to call `gasnet_init`. Down: one of another
    /// host.
    Joined,
    /// Up: all ranks of the sender's hosts are in the barrier. Down: all ranks of the job are.
    Barrier,
    /// Up: what the ranks of the sender's hosts contribute to an exchange.
    Contributions(Vec<(JobRank, Vec<u8>)>),
    /// Down: what all ranks contributed, by rank.
    Exchanged(Vec<u8>),
    /// Both ways: the job ends.
    Decision(ExitDecision),
    /// Down: a signal for the ranks.
    Signal(u32),
    /// Down: print what the ranks do.
    Status,
    /// Up: that was printed.
    StatusPrinted,
    /// Up: a program keeps a rank of the sender's hosts stopped, which gets more time to exit.
    TakesLonger,
    /// Up: all ranks of the sender's hosts have ended. If no decision says otherwise, with this
    /// exit code.
    Ended(i32),
}

/// Longest message, without the length. It bounds nothing but nonsense: both ends have proven that
/// they belong to the job.
const LONGEST: u32 = 1 << 31;

const PLAN: u8 = 1;
const JOINED: u8 = 2;
const BARRIER: u8 = 3;
const CONTRIBUTIONS: u8 = 4;
const EXCHANGED: u8 = 5;
const DECISION: u8 = 6;
const SIGNAL: u8 = 7;
const STATUS: u8 = 8;
const STATUS_PRINTED: u8 = 9;
const ENDED: u8 = 10;
const NAME: u8 = 11;
const TAKES_LONGER: u8 = 12;

/// What was received is no message.
#[derive(Debug, PartialEq)]
pub(in crate::boot) struct NoMessage;

impl HostMessage {
    /// As sent.
    pub(in crate::boot) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        match self {
            HostMessage::Plan(plan) => {
                out.push(PLAN);
                out.extend(plan);
            }
            HostMessage::Name(name) => {
                out.push(NAME);
                out.extend(name.as_bytes());
            }
            HostMessage::Joined => out.push(JOINED),
            HostMessage::Barrier => out.push(BARRIER),
            HostMessage::Contributions(all) => {
                out.push(CONTRIBUTIONS);
                for (rank, bytes) in all {
                    out.extend(rank.0.to_le_bytes());
                    out.extend((bytes.len() as u32).to_le_bytes());
                    out.extend(bytes);
                }
            }
            HostMessage::Exchanged(all) => {
                out.push(EXCHANGED);
                out.extend(all);
            }
            HostMessage::Decision(decision) => {
                out.push(DECISION);
                out.extend(decision.pack().to_le_bytes());
            }
            HostMessage::Signal(number) => {
                out.push(SIGNAL);
                out.extend(number.to_le_bytes());
            }
            HostMessage::Status => out.push(STATUS),
            HostMessage::StatusPrinted => out.push(STATUS_PRINTED),
            HostMessage::TakesLonger => out.push(TAKES_LONGER),
            HostMessage::Ended(code) => {
                out.push(ENDED);
                out.extend(code.to_le_bytes());
            }
        }
        let length = (out.len() - 4) as u32;
        out[..4].copy_from_slice(&length.to_le_bytes());
        out
    }

    /// Takes the first message off what was received, if it is complete.
    ///
    /// # Errors
    /// The bytes are no message.
    pub(in crate::boot) fn take(received: &mut Vec<u8>) -> Result<Option<HostMessage>, NoMessage> {
        let Some(length) = received.first_chunk().map(|l| u32::from_le_bytes(*l)) else {
            return Ok(None);
        };
        if length == 0 || length > LONGEST {
            return Err(NoMessage);
        }
        let end = 4 + length as usize;
        if received.len() < end {
            return Ok(None);
        }
        let message = HostMessage::decode(received[4], &received[5..end]).ok_or(NoMessage)?;
        received.drain(..end);
        Ok(Some(message))
    }

    fn decode(kind: u8, data: &[u8]) -> Option<HostMessage> {
        Some(match (kind, data) {
            (PLAN, plan) => HostMessage::Plan(plan.to_vec()),
            (NAME, name) => HostMessage::Name(String::from_utf8(name.to_vec()).ok()?),
            (JOINED, []) => HostMessage::Joined,
            (BARRIER, []) => HostMessage::Barrier,
            (CONTRIBUTIONS, all) => HostMessage::Contributions(contributions(all)?),
            (EXCHANGED, all) => HostMessage::Exchanged(all.to_vec()),
            (DECISION, word) => {
                let word = u64::from_le_bytes(word.try_into().ok()?);
                HostMessage::Decision(ExitDecision::unpack(word).ok()??)
            }
            (SIGNAL, n) => HostMessage::Signal(u32::from_le_bytes(n.try_into().ok()?)),
            (STATUS, []) => HostMessage::Status,
            (STATUS_PRINTED, []) => HostMessage::StatusPrinted,
            (TAKES_LONGER, []) => HostMessage::TakesLonger,
            (ENDED, code) => HostMessage::Ended(i32::from_le_bytes(code.try_into().ok()?)),
            _ => return None,
        })
    }
}

fn contributions(mut data: &[u8]) -> Option<Vec<(JobRank, Vec<u8>)>> {
    let mut all = Vec::new();
    while !data.is_empty() {
        let (rank, rest) = data.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        all.push((JobRank(u32::from_le_bytes(*rank)), bytes.to_vec()));
        data = rest;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::decision::ExitCause;

    fn some_messages() -> Vec<HostMessage> {
        let decision = ExitDecision::new(7, ExitCause::Killed, Some(JobRank(70_000)));
        vec![
            HostMessage::Plan(b"plan".to_vec()),
            HostMessage::Name("host".to_string()),
            HostMessage::Joined,
            HostMessage::Barrier,
            HostMessage::Contributions(vec![(JobRank(3), b"x".to_vec()), (JobRank(9), vec![])]),
            HostMessage::Contributions(Vec::new()),
            HostMessage::Exchanged(vec![1; 100]),
            HostMessage::Decision(decision),
            HostMessage::Signal(15),
            HostMessage::Status,
            HostMessage::StatusPrinted,
            HostMessage::TakesLonger,
            HostMessage::Ended(-1),
        ]
    }

    /// Whatever the pieces are in which they arrive.
    #[test]
    fn messages_come_out_as_they_went_in() {
        let sent: Vec<u8> = some_messages().iter().flat_map(HostMessage::encode).collect();
        for piece in [1, 3, 7, sent.len()] {
            let (mut received, mut taken) = (Vec::new(), Vec::new());
            for bytes in sent.chunks(piece) {
                received.extend_from_slice(bytes);
                while let Some(message) = HostMessage::take(&mut received).unwrap() {
                    taken.push(message);
                }
            }
            assert_eq!(taken, some_messages());
            assert!(received.is_empty());
        }
    }

    /// Any bytes are messages, which are written as they were read, or none.
    fn any_bytes(input: &[u8]) {
        let mut received = input.to_vec();
        while let Ok(Some(message)) = HostMessage::take(&mut received) {
            let copy = HostMessage::take(&mut message.encode());
            assert_eq!(copy, Ok(Some(message)));
        }
    }

    #[test]
    fn fuzz_host_message() {
        fuzz::check("host_message", 20_000, any_bytes);
    }
}
