//! The bytes that arrive on a connection: where frames and credits begin and end.
//!
//! Owned by one connection; the bytes are read into a buffer that all connections share.
//! Invariant: between two calls at most [`STASH`] bytes of a connection are kept. Frames that are
//! longer are passed on in parts, each a frame of its own for its reader, with a header that says
//! where it belongs.

use alloc::vec::Vec;

use super::limits::{FRAME, WINDOW_BYTES, WINDOW_FRAMES};
use crate::nal::frame::FrameHeader;

/// Set in the first word of credits.
pub(super) const CREDITS: u32 = 1 << 31;
/// A frame is passed on in parts only if it is longer: a get-put, of 64 bytes, never is.
const WHOLE: usize = FrameHeader::MOST_BYTES + 64;
/// The length of a frame, and its first bytes.
const STASH: usize = 4 + WHOLE;
/// The header of a part.
const PART: usize = 16;
/// Bytes before the place in the shared buffer that is read into.
pub(super) const RESERVE: usize = STASH + PART;

/// What arrived is not what a process of the job sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputError {
    /// A frame of this length.
    Length(u32),
    /// Bytes that are no frame.
    NoFrame,
    /// More than the peer had credits for.
    BeyondCredit,
    /// Credits for more than a window.
    Credits,
}

impl core::fmt::Display for InputError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            InputError::Length(n) => {
                write!(f, "it sent a frame of {n} bytes, at most {FRAME} are allowed")
            }
            InputError::NoFrame => f.write_str("it sent bytes that are no frame"),
            InputError::BeyondCredit => f.write_str("it sent more than it had credits for"),
            InputError::Credits => f.write_str("it granted more credits than there are"),
        }
    }
}

/// Credits that one side has, or owes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FrameCredits {
    pub(super) frames: u32,
    pub(super) bytes: u32,
}

impl FrameCredits {
    /// Takes those for one frame; false if there are not as many.
    pub(super) fn take(&mut self, bytes: u32) -> bool {
        let left = self.frames.checked_sub(1).zip(self.bytes.checked_sub(bytes));
        if let Some((frames, bytes)) = left {
            *self = FrameCredits { frames, bytes };
        }
        left.is_some()
    }

    /// Adds some; false if there are more than a window then.
    fn add(&mut self, more: FrameCredits) -> bool {
        let frames = self.frames.saturating_add(more.frames);
        let bytes = self.bytes.saturating_add(more.bytes);
        *self = FrameCredits { frames, bytes };
        frames <= WINDOW_FRAMES && bytes <= WINDOW_BYTES
    }
}

/// What has arrived on a connection.
#[derive(Debug)]
pub(super) struct FrameInput {
    stash: [u8; STASH],
    stashed: usize,
    /// The frame of which a part was passed on: the header of its next part, and the bytes that
    /// have not arrived.
    rest: Option<(FrameHeader, usize)>,
    /// What the peer may still send.
    granted: FrameCredits,
    /// What it has sent, and may send again once it is granted.
    pub(super) owed: FrameCredits,
    /// Credits that have arrived and were not used.
    pub(super) credits: FrameCredits,
    /// Whether credits have ever arrived.
    pub(super) is_granted: bool,
    part: Vec<u8>,
    /// Parts of frames but the last that were passed on.
    parts: u64,
}

impl FrameInput {
    /// Nothing has arrived. All credits are owed.
    pub(super) fn new() -> FrameInput {
        FrameInput {
            stash: [0; STASH],
            stashed: 0,
            rest: None,
            granted: FrameCredits::default(),
            owed: FrameCredits { frames: WINDOW_FRAMES, bytes: WINDOW_BYTES },
            credits: FrameCredits::default(),
            is_granted: false,
            part: Vec::new(),
            parts: 0,
        }
    }

    /// Whether all frames that have begun to arrive have arrived.
    pub(super) fn is_between_frames(&self) -> bool {
        self.stashed == 0 && self.rest.is_none()
    }

    /// The parts of frames, but the last of each, that were passed on since the last call.
    pub(super) fn take_parts(&mut self) -> u64 {
        core::mem::take(&mut self.parts)
    }

    /// What is owed, which the caller grants.
    pub(super) fn grant(&mut self) -> FrameCredits {
        let owed = core::mem::take(&mut self.owed);
        // Owed and granted together are a window.
        self.granted.frames += owed.frames;
        self.granted.bytes += owed.bytes;
        owed
    }

    /// Where the bytes that arrive next belong, as `find` says by the header of their part:
    /// first byte, and how many.
    pub(super) fn place(
        &mut self,
        find: impl FnOnce(&[u8]) -> Option<(*mut u8, usize)>,
    ) -> Option<(*mut u8, usize)> {
        let (header, missing) = self.rest.as_ref()?;
        header.encode(&mut self.part);
        let (to, length) = find(&self.part)?;
        Some((to, length.min(*missing)))
    }

    /// Bytes have arrived there; `note` takes the header of their part.
    pub(super) fn placed(&mut self, length: usize, note: impl FnOnce(&[u8])) {
        if let Some((header, _)) = &self.rest {
            header.encode(&mut self.part);
            note(&self.part);
            self.pass(length);
        }
    }

    /// A part of a frame has arrived.
    fn pass(&mut self, length: usize) {
        self.owed.bytes += length as u32;
        if let Some((header, missing)) = &mut self.rest {
            header.at = header.at.wrapping_add(length as u64);
            *missing -= length;
            if *missing == 0 {
                self.owed.frames += 1;
                self.rest = None;
            } else {
                self.parts += 1;
            }
        }
    }

    /// Takes the bytes from `start` to `end` of a buffer, whose first [`RESERVE`] bytes are free.
    /// Passes frames on, and parts of frames; returns how many.
    pub(super) fn take(
        &mut self,
        buffer: &mut [u8],
        start: usize,
        end: usize,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, InputError> {
        // What was kept goes in front.
        let mut start = start - self.stashed;
        buffer[start..][..self.stashed].copy_from_slice(&self.stash[..self.stashed]);
        self.stashed = 0;
        let mut taken = 0;
        loop {
            let arrived = end - start;
            if let Some((header, missing)) = &self.rest {
                let n = arrived.min(*missing);
                if n == 0 {
                    return Ok(taken);
                }
                // Its bytes have been passed on; so have all before them.
                header.encode(&mut self.part);
                buffer[start - PART..start].copy_from_slice(&self.part);
                sink(&buffer[start - PART..start + n]);
                taken += 1;
                start += n;
                self.pass(n);
                continue;
            }
            let bytes = &buffer[start..end];
            let Some((word, after)) = bytes.split_first_chunk() else { break };
            let word = u32::from_le_bytes(*word);
            if word & CREDITS != 0 {
                let Some(bytes) = after.first_chunk() else { break };
                let (frames, bytes) = (word & !CREDITS, u32::from_le_bytes(*bytes));
                if !self.credits.add(FrameCredits { frames, bytes }) {
                    return Err(InputError::Credits);
                }
                self.is_granted = true;
                start += 8;
                continue;
            }
            let length = word as usize;
            if length > FRAME {
                return Err(InputError::Length(word));
            }
            if after.len() < length.min(WHOLE) {
                break;
            }
            if !self.granted.take(word + 4) {
                return Err(InputError::BeyondCredit);
            }
            let frame = &after[..length.min(after.len())];
            let (header, payload) = FrameHeader::decode(frame).ok_or(InputError::NoFrame)?;
            // Its parts need positions.
            let in_parts = header.may_continue() && header.at.checked_add(length as u64).is_some();
            if length > WHOLE && !in_parts {
                return Err(InputError::NoFrame);
            }
            let missing = length - frame.len();
            sink(frame);
            taken += 1;
            self.owed.bytes += frame.len() as u32 + 4;
            if missing == 0 {
                self.owed.frames += 1;
            } else {
                let at = header.at + payload.len() as u64;
                self.rest = Some((FrameHeader { at, ..header }, missing));
                self.parts += 1;
            }
            start += 4 + frame.len();
        }
        self.stashed = end - start;
        self.stash[..self.stashed].copy_from_slice(&buffer[start..end]);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message, the position in it, and the byte there, if any.
    type LearntByte = (u32, u64, Option<u8>);

    /// What a reader learns of bytes that arrive in pieces of this length: of each frame its
    /// message, and of each payload byte its position.
    fn read(bytes: &[u8], cut: usize) -> (Vec<LearntByte>, Option<InputError>) {
        let mut input = FrameInput::new();
        input.grant();
        let mut learnt = Vec::new();
        let mut buffer = vec![0; RESERVE + cut];
        for piece in bytes.chunks(cut) {
            let end = RESERVE + piece.len();
            buffer[RESERVE..end].copy_from_slice(piece);
            let taken = input.take(&mut buffer, RESERVE, end, &mut |frame| {
                let (header, payload) = FrameHeader::decode(frame).expect("a frame");
                assert!(frame.len() <= FRAME);
                if payload.is_empty() {
                    learnt.push((header.message, header.at, None));
                }
                for (i, &byte) in (0..).zip(payload) {
                    learnt.push((header.message, header.at.wrapping_add(i), Some(byte)));
                }
            });
            if let Err(why) = taken {
                return (learnt, Some(why));
            }
            let owed = input.owed;
            assert!(owed.frames <= WINDOW_FRAMES && owed.bytes <= WINDOW_BYTES);
            assert!(input.stashed < STASH);
        }
        (learnt, None)
    }

    /// An input is the bytes of a connection; wherever they are cut, they mean the same.
    fn any_connection(input: &[u8]) {
        let whole = read(input, input.len().max(1));
        for cut in [1, 2, 3, 7, 64, 137, 1000] {
            assert_eq!(read(input, cut), whole, "pieces of {cut}");
        }
    }

    #[test]
    fn fuzz_connection() {
        fuzz::check("connection", 3_000, any_connection);
    }

    #[test]
    fn what_no_process_sends_is_refused() {
        let word = |n: u32| n.to_le_bytes();
        let long = FRAME as u32 + 1;
        assert_eq!(read(&word(long), 4).1, Some(InputError::Length(long)));
        assert_eq!(read(&[word(4), word(0)].concat(), 8).1, Some(InputError::NoFrame));
        let credits = [word(CREDITS | (WINDOW_FRAMES + 1)), word(0)].concat();
        assert_eq!(read(&credits, 8).1, Some(InputError::Credits));
        // Frames that say that a request was taken.
        let frame = [word(8), word(3), word(7)].concat();
        let (learnt, why) = read(&frame.repeat(WINDOW_FRAMES as usize), 4096);
        assert_eq!((learnt.len(), why), (WINDOW_FRAMES as usize, None));
        let (learnt, why) = read(&frame.repeat(WINDOW_FRAMES as usize + 1), 4096);
        assert_eq!((learnt.len(), why), (WINDOW_FRAMES as usize, Some(InputError::BeyondCredit)));
    }
}
