//! Small frames to a peer that leave as one message.
//!
//! Made and read by [`super::network`]. Invariant: what a peer wrote is cut into frames only where
//! it is whole.
//!
//! ```text
//! | 1 byte | 2 bytes         | that many | 2 bytes         | that many | ...
//! | MARK   | length of frame | frame     | length of frame | frame     |
//! ```

use super::endpoint::OfiBuffer;

/// No frame begins with this byte: the operation in it does not exist.
pub(super) const MARK: u8 = 0x0c;

/// Bytes of a length.
const LENGTH: usize = 2;

/// Longest frame that waits for others.
pub(super) const MOST_KEPT: usize = 1 << 10;

/// Frames that wait for more.
#[derive(Debug)]
pub(super) struct FrameBatch {
    buffer: OfiBuffer,
    /// Bytes of the message, with those before its first frame.
    length: usize,
}

impl FrameBatch {
    /// One without frames. `message` is the memory of the buffer; `before` bytes of it are not for
    /// frames.
    pub(super) fn new(buffer: OfiBuffer, message: &mut [u8], before: usize) -> FrameBatch {
        message[before] = MARK;
        FrameBatch { buffer, length: before + 1 }
    }

    /// Its buffer.
    pub(super) fn buffer_mut(&mut self) -> &mut OfiBuffer {
        &mut self.buffer
    }

    /// Whether a frame of this length fits into a message of `room` bytes.
    pub(super) fn has_room(&self, length: usize, room: usize) -> bool {
        length <= MOST_KEPT && self.length + LENGTH + length <= room
    }

    /// Where the next frame goes in the message, which has room for it.
    pub(super) fn place<'a>(&mut self, message: &'a mut [u8], length: usize) -> &'a mut [u8] {
        let (head, frame) = message[self.length..][..LENGTH + length].split_at_mut(LENGTH);
        head.copy_from_slice(&(length as u16).to_le_bytes());
        self.length += LENGTH + length;
        frame
    }

    /// The buffer, and the bytes of its message.
    pub(super) fn into_parts(self) -> (OfiBuffer, usize) {
        (self.buffer, self.length)
    }

    /// From parts that did not leave.
    pub(super) fn from_parts(buffer: OfiBuffer, length: usize) -> FrameBatch {
        FrameBatch { buffer, length }
    }
}

/// The frames of a message: several, or one that is not marked.
///
/// # Errors
/// The message is cut off.
pub(super) fn each_frame<'a>(
    message: &'a [u8],
    mut take: impl FnMut(&'a [u8]),
) -> Result<(), &'static str> {
    let Some((&MARK, mut rest)) = message.split_first() else {
        take(message);
        return Ok(());
    };
    while let Some((length, bytes)) = rest.split_first_chunk::<LENGTH>() {
        let length = usize::from(u16::from_le_bytes(*length));
        let Some((frame, behind)) = bytes.split_at_checked(length) else { break };
        take(frame);
        rest = behind;
    }
    if rest.is_empty() { Ok(()) } else { Err("it sent a message that is cut off") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nal::frame::FrameHeader;
    use alloc::vec;
    use alloc::vec::Vec;

    fn frames(message: &[u8]) -> (Vec<&[u8]>, bool) {
        let mut all = Vec::new();
        let whole = each_frame(message, |frame| all.push(frame)).is_ok();
        (all, whole)
    }

    #[test]
    fn frames_come_out_as_they_went_in() {
        let mut message = vec![0; 300];
        let mut batch = FrameBatch::new(OfiBuffer::test(7), &mut message, 16);
        let all: [&[u8]; 3] = [b"one", &[5; 100], b"x"];
        for frame in all {
            assert!(batch.has_room(frame.len(), 300));
            batch.place(&mut message, frame.len()).copy_from_slice(frame);
        }
        assert!(!batch.has_room(300, 300) && !batch.has_room(MOST_KEPT + 1, 1 << 20));
        let (_, length) = batch.into_parts();
        assert_eq!(frames(&message[16..length]), (all.to_vec(), true));
        for cut in 17..length {
            let (some, whole) = frames(&message[16..cut]);
            assert!(all.starts_with(&some), "{cut}");
            assert_eq!(whole, [17, 22, 124].contains(&cut), "{cut}");
        }
    }

    #[test]
    fn a_frame_alone_is_not_marked() {
        assert_eq!(frames(b"frame"), (vec![&b"frame"[..]], true));
        let mut first = [0; 64];
        first[0] = MARK;
        assert_eq!(FrameHeader::decode(&first), None);
    }

    #[test]
    fn fuzz_frame_batch() {
        fuzz::check("frame_batch", 20_000, |input| {
            let (all, _) = frames(input);
            assert!(all.iter().map(|frame| frame.len()).sum::<usize>() <= input.len());
        });
    }
}
