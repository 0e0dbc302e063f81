//! The messages between the supervisors of two hosts.
//!
//! Sent over a `hosts::link`, in the parts that `parts` makes. Invariant: what arrived is a
//! message or the connection ends.
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
pub enum HostMessage {
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
    /// Up: ranks of the sender's hosts have errors that others print.
    Withheld(Vec<WithheldError>),
    /// Up: ranks of the sender's hosts are cut off by one that has ended with success.
    CutOff(CutOffRanks),
    /// Up: all ranks of the sender's hosts have ended. If no decision says otherwise, with this
    /// exit code.
    Ended(i32),
}

/// An error of several ranks, which one of them prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldError {
    /// The hash of the text.
    pub hash: u32,
    /// The rank that prints it.
    pub by: JobRank,
    /// All that have it, in ascending order.
    pub ranks: Vec<JobRank>,
}

/// Ranks that are cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutOffRanks {
    /// All of them.
    pub ranks: Vec<JobRank>,
    /// What some of them do.
    pub lines: Vec<(JobRank, String)>,
}

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
const WITHHELD: u8 = 13;
const CUT_OFF: u8 = 14;

impl HostMessage {
    /// As sent, if it is sent in one part.
    pub fn encode(&self) -> Vec<u8> {
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
                    add_ranked(&mut out, *rank, bytes);
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
            HostMessage::Withheld(errors) => {
                out.push(WITHHELD);
                for WithheldError { hash, by, ranks } in errors {
                    let words = [*hash, by.0, ranks.len() as u32].into_iter();
                    out.extend(words.chain(ranks.iter().map(|r| r.0)).flat_map(u32::to_le_bytes));
                }
            }
            HostMessage::CutOff(CutOffRanks { ranks, lines }) => {
                out.push(CUT_OFF);
                out.extend((ranks.len() as u32).to_le_bytes());
                out.extend(ranks.iter().flat_map(|r| r.0.to_le_bytes()));
                for (rank, line) in lines {
                    add_ranked(&mut out, *rank, line.as_bytes());
                }
            }
            HostMessage::Ended(code) => {
                out.push(ENDED);
                out.extend(code.to_le_bytes());
            }
        }
        let length = (out.len() - 4) as u32;
        out[..4].copy_from_slice(&length.to_le_bytes());
        out
    }

    /// The message with this kind and data; `None` if there is none.
    pub fn decode(content: &[u8]) -> Option<HostMessage> {
        let (&kind, data) = content.split_first()?;
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
            (WITHHELD, errors) => HostMessage::Withheld(withheld(errors)?),
            (CUT_OFF, all) => HostMessage::CutOff(cut_off(all)?),
            (ENDED, code) => HostMessage::Ended(i32::from_le_bytes(code.try_into().ok()?)),
            _ => return None,
        })
    }
}

/// What belongs to a rank, behind its number and length.
fn add_ranked(out: &mut Vec<u8>, rank: JobRank, bytes: &[u8]) {
    out.extend(rank.0.to_le_bytes());
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
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

fn withheld(mut data: &[u8]) -> Option<Vec<WithheldError>> {
    let mut all = Vec::new();
    while !data.is_empty() {
        let (words, rest) = data.split_first_chunk::<12>()?;
        let [hash, by, number] =
            [0, 4, 8].map(|at| words[at..].first_chunk().map_or(0, |w| u32::from_le_bytes(*w)));
        let (ranks, rest) = rest.split_at_checked(4 * number as usize)?;
        let ranks = ranks.as_chunks().0.iter().map(|w| JobRank(u32::from_le_bytes(*w)));
        all.push(WithheldError { hash, by: JobRank(by), ranks: ranks.collect() });
        data = rest;
    }
    Some(all)
}

fn cut_off(data: &[u8]) -> Option<CutOffRanks> {
    let (number, rest) = data.split_first_chunk()?;
    let bytes = 4 * u64::from(u32::from_le_bytes(*number));
    let (ranks, rest) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
    let ranks = ranks.as_chunks().0.iter().map(|w| JobRank(u32::from_le_bytes(*w)));
    let lines = contributions(rest)?.into_iter();
    let lines = lines.map(|(rank, line)| Some((rank, String::from_utf8(line).ok()?)));
    Some(CutOffRanks { ranks: ranks.collect(), lines: lines.collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::decision::ExitCause;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let decision = ExitDecision::new(7, ExitCause::Killed, Some(JobRank(70_000)));
        let all = [
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
            HostMessage::Withheld(vec![
                WithheldError { hash: 9, by: JobRank(3), ranks: vec![JobRank(3), JobRank(4)] },
                WithheldError { hash: 7, by: JobRank(0), ranks: Vec::new() },
            ]),
            HostMessage::CutOff(CutOffRanks {
                ranks: vec![JobRank(3), JobRank(9)],
                lines: vec![(JobRank(3), "waits".to_string())],
            }),
            HostMessage::CutOff(CutOffRanks::default()),
            HostMessage::Ended(-1),
        ];
        for message in all {
            assert_eq!(HostMessage::decode(&message.encode()[4..]), Some(message));
        }
        assert_eq!(HostMessage::decode(&[]), None);
        assert_eq!(HostMessage::decode(&[JOINED, 0]), None);
        assert_eq!(HostMessage::decode(&[CUT_OFF, 255, 255, 255, 255]), None);
    }
}
