//! The parts in which messages travel, and how many bytes may be on their way.
//!
//! Owned by [`super::link`], which moves the bytes. Invariants: the other end is sent no more
//! bytes than its kernel has room for. So the kernel of a host that works always takes them,
//! whatever its supervisor does. A message takes memory only for bytes that have arrived.
//!
//! ```text
//! bytes  content, little-endian
//! 4      length of the bytes of a message that follow; bit 31: more of the message follows later
//! 4      bit 30 set: how many bytes of messages the sender has read
//! ```
//!
//! A supervisor that is stopped, or whose output is blocked, reads nothing. If its window closed,
//! the kernel could not tell it from a host that is lost: bytes would wait here in both cases, and
//! the questions for room become rare. With [`WINDOW`] bytes at most all bytes are acknowledged by
//! a host that works, and only by such a host.

use super::message::HostMessage;
use std::collections::VecDeque;

/// Bytes of messages that the other end has not read. A socket has room for as many, whatever the
/// size of the packets: its buffer has 64 KiB or more.
const WINDOW: usize = 16 << 10;
/// Bytes that are read before the other end learns of it. At most this number is on its way.
const REPORTED: usize = WINDOW / 4;
/// Longest message. It bounds nothing but nonsense: both ends have proven that they belong to the
/// job.
const LONGEST: usize = 1 << 31;

const MORE: u32 = 1 << 31;
const READ: u32 = 1 << 30;

/// What was received is no message.
#[derive(Debug, PartialEq)]
pub(super) struct NoMessage;

/// The messages of both directions of a connection.
#[derive(Debug, Default)]
pub(super) struct MessageParts {
    /// Messages to be sent, and their bytes.
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    /// Bytes of the first that were sent.
    begun: usize,
    /// Bytes that were sent and that the other end has not reported as read.
    unread: usize,
    /// Bytes that have arrived, from the beginning of a part.
    received: Vec<u8>,
    /// The message of which parts have arrived.
    joined: Vec<u8>,
    /// Bytes that were read and not reported.
    read: usize,
}

impl MessageParts {
    /// A message is to be sent.
    pub(super) fn push(&mut self, message: &HostMessage) {
        let content = message.encode().split_off(4);
        self.waiting_bytes += content.len();
        self.waiting.push_back(content);
    }

    /// Bytes that wait to be sent.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// What is to be sent next; `None` if there is nothing, or too much is on its way.
    pub(super) fn next_part(&mut self) -> Option<Vec<u8>> {
        if self.read >= REPORTED {
            let read = std::mem::take(&mut self.read) as u32;
            return Some((read | READ).to_le_bytes().to_vec());
        }
        let content = self.waiting.front()?;
        let rest = &content[self.begun..];
        let room = WINDOW - self.unread;
        if room < rest.len().min(REPORTED) {
            return None;
        }
        let (part, later) = rest.split_at(rest.len().min(room));
        let more = if later.is_empty() { 0 } else { MORE };
        let bytes = [&(part.len() as u32 | more).to_le_bytes(), part].concat();
        self.begun += part.len();
        self.unread += part.len();
        self.waiting_bytes -= part.len();
        if more == 0 {
            self.waiting.pop_front();
            self.begun = 0;
        }
        Some(bytes)
    }

    /// Nothing more is to be sent.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        (self.waiting_bytes, self.begun) = (0, 0);
    }

    /// Bytes have arrived.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// The next message of what has arrived, if it is complete.
    ///
    /// # Errors
    /// The bytes are no message. Nothing more can be read then.
    pub(super) fn take(&mut self) -> Result<Option<HostMessage>, NoMessage> {
        while let Some((word, rest)) = self.received.split_first_chunk() {
            let word = u32::from_le_bytes(*word);
            let number = (word & !(MORE | READ)) as usize;
            if word & READ != 0 {
                self.unread = self.unread.checked_sub(number).ok_or(NoMessage)?;
                self.received.drain(..4);
                continue;
            }
            if number == 0 || number > WINDOW || self.joined.len() + number > LONGEST {
                return Err(NoMessage);
            }
            let Some(part) = rest.get(..number) else { return Ok(None) };
            self.joined.extend_from_slice(part);
            self.received.drain(..4 + number);
            self.read += number;
            if word & MORE == 0 {
                let content = std::mem::take(&mut self.joined);
                return HostMessage::decode(&content).map(Some).ok_or(NoMessage);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves what one end may send to the other, in pieces; returns the bytes that were moved.
    fn carry(from: &mut MessageParts, to: &mut MessageParts, piece: usize) -> usize {
        let sent: Vec<u8> = std::iter::from_fn(|| from.next_part()).flatten().collect();
        sent.chunks(piece).for_each(|bytes| to.add(bytes));
        sent.len()
    }

    /// Whatever their length, and the pieces in which they arrive. Both ends send at once.
    #[test]
    fn messages_come_out_as_they_went_in() {
        let messages: Vec<HostMessage> = [0, 1, 5, WINDOW - 1, WINDOW, 10 * WINDOW + 7, 3]
            .map(|length| HostMessage::Exchanged((0..length).map(|i| i as u8).collect()))
            .into();
        for piece in [1, 3, 1000, usize::MAX] {
            let mut ends = [MessageParts::default(), MessageParts::default()];
            let mut taken = [Vec::new(), Vec::new()];
            for end in &mut ends {
                messages.iter().for_each(|message| end.push(message));
            }
            let [a, b] = &mut ends;
            while carry(a, b, piece) + carry(b, a, piece) > 0 {
                for (end, taken) in [&mut *a, b].into_iter().zip(&mut taken) {
                    taken.extend(std::iter::from_fn(|| end.take().unwrap()));
                }
            }
            assert!(taken.iter().all(|taken| *taken == messages), "pieces of {piece}");
            assert!(ends.iter().all(|end| end.waiting_bytes() == 0 && end.received.is_empty()));
        }
    }

    /// An end that reads nothing is sent a window at most; a short message is sent whole.
    #[test]
    fn no_more_than_a_window_is_on_its_way() {
        let (mut a, mut b) = (MessageParts::default(), MessageParts::default());
        for message in [HostMessage::Status, HostMessage::Exchanged(vec![7; 10 * WINDOW])] {
            a.push(&message);
        }
        let sent = carry(&mut a, &mut b, 1000);
        assert!((WINDOW..WINDOW + 100).contains(&sent), "{sent} bytes");
        assert_eq!(b.take(), Ok(Some(HostMessage::Status)));
        assert_eq!(b.take(), Ok(None));
        assert_eq!(carry(&mut b, &mut a, 1), 4);
        assert_eq!(a.take(), Ok(None));
        assert!(carry(&mut a, &mut b, 1000) >= REPORTED);
    }

    /// Any bytes are messages, which are written as they were read, or none.
    fn any_bytes(input: &[u8]) {
        let mut parts = MessageParts::default();
        parts.add(input);
        while let Ok(Some(message)) = parts.take() {
            assert_eq!(HostMessage::decode(&message.encode()[4..]), Some(message));
        }
        assert!(parts.joined.len() + parts.received.len() <= input.len());
    }

    #[test]
    fn fuzz_host_message() {
        fuzz::check("host_message", 20_000, any_bytes);
    }
}
