//! The messages between the libraries of two ranks, as bytes.
//!
//! Written by `remote` and `local`, read by the other at the peer. Invariant: what was read has
//! counts and sizes within bounds; whether the pins exist that it names, the reader checks.
//!
//! A *move* gives pins back and requests others, in one message. A *recall* only says that the
//! rank which receives it may hold fewer regions of the sender from now on.

use super::extent::MemoryExtent;
use super::traits::{ANSWER_BYTES, MOVE_BYTES, PinError, PinId};
use alloc::vec::Vec;

/// Most pins that a move gives back, and most regions that it requests.
pub(super) const MOST: usize = 16;

const HEAD: usize = 16;
const VICTIM: usize = 8;
const WANTED: usize = 16;
const RESULT: usize = 40;
const _: () = assert!(HEAD + MOST * (VICTIM + WANTED) <= MOVE_BYTES);
const _: () = assert!(HEAD + MOST * RESULT <= ANSWER_BYTES);

const MOVE: u8 = 1;
const RECALL: u8 = 2;

/// A message for [`super::Mover::send`].
#[derive(Clone, Copy)]
pub struct MoveMessage {
    bytes: [u8; MOVE_BYTES],
    len: u16,
}

impl MoveMessage {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl core::fmt::Debug for MoveMessage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "MoveMessage of {} bytes", self.len)
    }
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MoveRequest {
    Move {
        /// Pins that the sender gives back.
        victims: Vec<PinId>,
        /// Bytes that it needs, each within a region.
        wanted: Vec<MemoryExtent>,
        /// How many more regions than its limit it could use.
        hungry: u32,
    },
    Recall(HoldLimit),
}

/// How many regions of the sender the receiver may hold. Later numbers replace earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HoldLimit {
    pub(super) regions: u32,
    pub(super) number: u32,
}

impl HoldLimit {
    /// Whether it was said after `other`.
    pub(super) fn is_newer(self, other: HoldLimit) -> bool {
        self.number.wrapping_sub(other.number) as i32 > 0
    }
}

/// What became of a region that was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedResult {
    Pinned {
        id: PinId,
        /// What messages must name.
        key: u64,
        extent: MemoryExtent,
    },
    /// The peer may hold no more regions now. It gives one back, or waits.
    Refused,
    /// The last pin of the block is not undone yet. The peer asks again.
    Busy,
    Failed(PinError),
}

/// The answer to a move: its results have the order of what was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MoveAnswer {
    pub(super) limit: HoldLimit,
    /// The first byte that was needed, and what became of it.
    pub(super) results: Vec<(usize, WantedResult)>,
}

struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn word(&mut self, n: u32) {
        self.bytes[self.at..self.at + 4].copy_from_slice(&n.to_le_bytes());
        self.at += 4;
    }

    fn long(&mut self, n: u64) {
        self.word(n as u32);
        self.word((n >> 32) as u32);
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from(self.word()?) | u64::from(self.word()?) << 32)
    }

    fn address(&mut self) -> Option<usize> {
        usize::try_from(self.long()?).ok()
    }
}

impl MoveRequest {
    pub(super) fn encode(&self) -> MoveMessage {
        let mut message = MoveMessage { bytes: [0; MOVE_BYTES], len: 0 };
        let mut to = Writer { bytes: &mut message.bytes, at: 0 };
        let counts = |kind: u8, victims: usize, wanted: usize| {
            u32::from(kind) | (victims as u32) << 8 | (wanted as u32) << 16
        };
        match self {
            MoveRequest::Move { victims, wanted, hungry } => {
                to.word(counts(MOVE, victims.len(), wanted.len()));
                to.word(*hungry);
                to.long(0);
                for id in victims {
                    to.word(id.slot);
                    to.word(id.generation);
                }
                for bytes in wanted {
                    to.long(bytes.start as u64);
                    to.long(bytes.end as u64);
                }
            }
            MoveRequest::Recall(limit) => {
                to.word(counts(RECALL, 0, 0));
                to.word(limit.regions);
                to.word(limit.number);
                to.word(0);
            }
        }
        message.len = to.at as u16;
        message
    }

    /// `None` if these are not the bytes of a message.
    pub(super) fn decode(bytes: &[u8]) -> Option<MoveRequest> {
        let mut from = Reader(bytes);
        let counts = from.word()?;
        let (victims, wanted) = ((counts >> 8 & 0xff) as usize, (counts >> 16) as usize);
        let (first, second, _) = (from.word()?, from.word()?, from.word()?);
        let request = match counts as u8 {
            MOVE if victims <= MOST && wanted <= MOST => {
                let mut request = (Vec::with_capacity(victims), Vec::with_capacity(wanted));
                for _ in 0..victims {
                    request.0.push(PinId { slot: from.word()?, generation: from.word()? });
                }
                for _ in 0..wanted {
                    let bytes = MemoryExtent { start: from.address()?, end: from.address()? };
                    if bytes.is_empty() {
                        return None;
                    }
                    request.1.push(bytes);
                }
                MoveRequest::Move { victims: request.0, wanted: request.1, hungry: first }
            }
            RECALL if counts >> 8 == 0 => {
                MoveRequest::Recall(HoldLimit { regions: first, number: second })
            }
            _ => return None,
        };
        from.0.is_empty().then_some(request)
    }
}

impl WantedResult {
    fn status(self) -> u32 {
        match self {
            WantedResult::Pinned { .. } => 0,
            WantedResult::Refused => 1,
            WantedResult::Busy => 2,
            WantedResult::Failed(PinError::Limit) => 3,
            WantedResult::Failed(PinError::Unmapped) => 4,
            WantedResult::Failed(PinError::Refused) => 5,
            WantedResult::Failed(PinError::Unwatched) => 6,
            WantedResult::Failed(PinError::Mappings) => 7,
        }
    }
}

impl MoveAnswer {
    /// Writes it; returns how many bytes.
    pub(super) fn encode(&self, bytes: &mut [u8; ANSWER_BYTES]) -> usize {
        let mut to = Writer { bytes, at: 0 };
        to.word(self.results.len() as u32);
        to.word(self.limit.regions);
        to.word(self.limit.number);
        to.word(0);
        for &(start, result) in &self.results {
            to.long(start as u64);
            to.word(result.status());
            let (id, key, extent) = match result {
                WantedResult::Pinned { id, key, extent } => (id, key, extent),
                _ => (PinId::default(), 0, MemoryExtent { start, end: start }),
            };
            to.word(id.slot);
            to.word(id.generation);
            let before = start - extent.start;
            debug_assert!(u32::try_from(before).is_ok(), "{start:#x} is not in {extent:?}");
            to.word(before as u32);
            to.word(extent.len() as u32);
            to.word(0);
            to.long(key);
        }
        to.at
    }

    /// `None` if these are not the bytes of an answer.
    pub(super) fn decode(bytes: &[u8]) -> Option<MoveAnswer> {
        let mut from = Reader(bytes);
        let results = from.word()? as usize;
        if results > MOST {
            return None;
        }
        let limit = HoldLimit { regions: from.word()?, number: from.word()? };
        from.word()?;
        let mut answer = MoveAnswer { limit, results: Vec::with_capacity(results) };
        for _ in 0..results {
            let start = from.address()?;
            let status = from.word()?;
            let id = PinId { slot: from.word()?, generation: from.word()? };
            let (before, len, _) = (from.word()? as usize, from.word()? as usize, from.word()?);
            let key = from.long()?;
            let result = match status {
                0 => {
                    let first = start.checked_sub(before)?;
                    let extent = MemoryExtent { start: first, end: first.checked_add(len)? };
                    WantedResult::Pinned { id, key, extent }
                }
                1 => WantedResult::Refused,
                2 => WantedResult::Busy,
                3 => WantedResult::Failed(PinError::Limit),
                4 => WantedResult::Failed(PinError::Unmapped),
                5 => WantedResult::Failed(PinError::Refused),
                6 => WantedResult::Failed(PinError::Unwatched),
                7 => WantedResult::Failed(PinError::Mappings),
                _ => return None,
            };
            answer.results.push((start, result));
        }
        from.0.is_empty().then_some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn messages_come_back() {
        let id = PinId { slot: 7, generation: 9 };
        let bytes = MemoryExtent { start: 0x7fff_1234_5008, end: 0x7fff_1234_5010 };
        let full =
            MoveRequest::Move { victims: vec![id; MOST], wanted: vec![bytes; MOST], hungry: 5 };
        let limit = HoldLimit { regions: 3, number: u32::MAX };
        for request in [full, MoveRequest::Recall(limit)] {
            assert_eq!(MoveRequest::decode(request.encode().as_bytes()), Some(request));
        }
        let extent = MemoryExtent { start: 0x7fff_1234_4000, end: 0x7fff_1234_6000 };
        let mut results = vec![(bytes.start, WantedResult::Pinned { id, key: !0, extent })];
        results.extend(
            [
                PinError::Limit,
                PinError::Mappings,
                PinError::Unmapped,
                PinError::Refused,
                PinError::Unwatched,
            ]
            .map(|e| (bytes.start, WantedResult::Failed(e))),
        );
        results.push((1, WantedResult::Refused));
        results.push((2, WantedResult::Busy));
        let answer = MoveAnswer { limit, results };
        let mut bytes = [0; ANSWER_BYTES];
        let len = answer.encode(&mut bytes);
        assert_eq!(MoveAnswer::decode(&bytes[..len]), Some(answer));
        assert_eq!(MoveAnswer::decode(&bytes[..len - 1]), None);
    }

    /// What can be read is written as it was, but for padding.
    fn any_bytes(input: &[u8]) {
        if let Some(request) = MoveRequest::decode(input) {
            assert_eq!(MoveRequest::decode(request.encode().as_bytes()), Some(request));
        }
        if let Some(answer) = MoveAnswer::decode(input) {
            let mut bytes = [0; ANSWER_BYTES];
            let in_bounds = answer.results.iter().all(|&(start, result)| match result {
                WantedResult::Pinned { extent, .. } => extent.start <= start,
                _ => true,
            });
            assert!(in_bounds && answer.encode(&mut bytes) <= ANSWER_BYTES);
        }
    }

    #[test]
    fn fuzz_firehose_moves() {
        fuzz::check("firehose_moves", 20_000, any_bytes);
    }
}
