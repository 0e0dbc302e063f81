//! One connection: its stage, and the frame that is being sent on it.
//!
//! Owned by [`super::network`]. Invariant: the bytes of a frame leave in one piece: nothing comes
//! between its beginning and its end, and what was begun is sent again until all of it has left.

use alloc::boxed::Box;
use alloc::vec::Vec;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::input::{CREDITS, FrameCredits, FrameInput};
use super::limits::{WINDOW_BYTES, WINDOW_FRAMES};
use crate::arena::IOVECS;
use crate::nal;
use crate::types::MdIovec;
use handshake::Handshake;
use sys::tcp::{self, SendPiece};

/// Bytes that are copied to be sent in one piece.
const SMALL: usize = 256;
/// Bytes of frames that are kept for the next one, so that one call of the system sends them all.
const MOST_KEPT: usize = 8 << 10;

/// The stage of a connection.
#[derive(Debug)]
pub(super) enum ConnectionStage {
    /// The system connects it.
    Connecting,
    /// Both sides prove that they belong to the job.
    Greeting(Box<Handshake>),
    /// It carries frames, as far as there are credits.
    Open,
}

/// Bytes that go before those of a frame: credits, its length, and small frames that were kept for
/// it.
#[derive(Debug, Default)]
struct FrameLead {
    bytes: Vec<u8>,
    sent: usize,
}

impl FrameLead {
    fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    fn push(&mut self, word: u32) {
        if self.is_empty() {
            self.sent = 0;
            self.bytes.clear();
        }
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    /// Adds a frame.
    ///
    /// # Safety
    /// The pieces are readable.
    unsafe fn push_frame(&mut self, header: &[u8], payload: &[MdIovec]) {
        let start = self.bytes.len();
        self.bytes.resize(start + nal::frame_length(header, payload), 0);
        // SAFETY: the same contract.
        unsafe { nal::gather(&mut self.bytes[start..], header, payload) };
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    pub(super) stage: ConnectionStage,
    /// The peer: the one that this process connects to, or that has proved its identity.
    pub(super) peer: Option<u32>,
    /// This process has made it.
    pub(super) is_outgoing: bool,
    /// When it must have become open, in nanoseconds; only of incoming ones.
    pub(super) deadline: u64,
    /// It is watched for room to send.
    pub(super) is_writing: bool,
    pub(super) input: FrameInput,
    lead: FrameLead,
    /// Bytes of the frame that is being sent that have left; `None` between two frames.
    frame_sent: Option<usize>,
}

/// What became of bytes to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendProgress {
    /// All have left.
    All,
    /// All have left but for credits behind them, which wait for room.
    AllButCredits,
    /// There is no room for more.
    NoRoom,
    /// The peer has given no credits for them.
    NoCredit,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, stage: ConnectionStage, peer: Option<u32>) -> Connection {
        Connection {
            socket,
            stage,
            peer,
            is_outgoing: peer.is_some(),
            deadline: u64::MAX,
            is_writing: false,
            input: FrameInput::new(),
            lead: FrameLead::default(),
            frame_sent: None,
        }
    }

    /// Sends what waits, or credits if half of a window is owed.
    ///
    /// # Errors
    /// That of the system.
    pub(super) fn flush(&mut self) -> io::Result<SendProgress> {
        if !matches!(self.stage, ConnectionStage::Open) {
            return Ok(SendProgress::All);
        }
        loop {
            // Also behind what waited: meanwhile more may be owed, and nothing else may leave.
            if self.frame_sent.is_none() && self.lead.is_empty() {
                self.push_credits(2);
            }
            if self.lead.is_empty() {
                return Ok(SendProgress::All);
            }
            // SAFETY: no pieces.
            if unsafe { self.send_pieces(&[], &[]) }? == SendProgress::NoRoom {
                return Ok(SendProgress::NoRoom);
            }
        }
    }

    /// Puts credits in front of what is sent next, if this part of a window is owed.
    fn push_credits(&mut self, part: u32) {
        let FrameCredits { frames, bytes } = self.input.owed;
        if frames >= WINDOW_FRAMES / part || bytes >= WINDOW_BYTES / part {
            let granted = self.input.grant();
            self.lead.push(CREDITS | granted.frames);
            self.lead.push(granted.bytes);
        }
    }

    /// Sends a frame, or the rest of it. One that another `follows` may be kept until that is
    /// sent, or is refused.
    ///
    /// # Errors
    /// That of the system.
    ///
    /// # Safety
    /// The pieces are readable.
    pub(super) unsafe fn send(
        &mut self,
        header: &[u8],
        payload: &[MdIovec],
        follows: bool,
    ) -> io::Result<SendProgress> {
        if self.frame_sent.is_none() {
            let length = nal::frame_length(header, payload);
            if !self.input.credits.take(length as u32 + 4) {
                self.flush()?;
                return Ok(SendProgress::NoCredit);
            }
            if self.lead.is_empty() {
                self.push_credits(8);
            }
            self.lead.push(length as u32);
            if follows && self.lead.bytes.len() + length <= MOST_KEPT {
                // SAFETY: the same contract.
                unsafe { self.lead.push_frame(header, payload) };
                return Ok(SendProgress::All);
            }
            self.frame_sent = Some(0);
        }
        // SAFETY: the same contract.
        let sent = unsafe { self.send_pieces(header, payload) };
        if let Ok(SendProgress::All) = sent {
            // Credits could not leave within the frame. Maybe no other frame follows that they
            // could leave with, since the peer waits for them.
            self.frame_sent = None;
            if self.flush()? == SendProgress::NoRoom {
                return Ok(SendProgress::AllButCredits);
            }
        }
        sent
    }

    /// Sends what waits, and then these pieces but for what of them has left.
    ///
    /// # Safety
    /// The pieces are readable.
    unsafe fn send_pieces(
        &mut self,
        header: &[u8],
        payload: &[MdIovec],
    ) -> io::Result<SendProgress> {
        let lead = &self.lead.bytes[self.lead.sent..];
        let whole = lead.len() + nal::frame_length(header, payload);
        if whole <= SMALL && self.frame_sent.is_none_or(|sent| sent == 0) {
            let mut bytes = [0; SMALL];
            let bytes = &mut bytes[..whole];
            let (first, frame) = bytes.split_at_mut(lead.len());
            first.copy_from_slice(lead);
            // SAFETY: the same contract.
            unsafe { nal::gather(frame, header, payload) };
            let sent = tcp::send_bytes(self.socket.as_fd(), bytes);
            return self.note_sent(sent, whole);
        }
        let mut pieces = [SendPiece::EMPTY; IOVECS + 2];
        let (mut count, mut total) = (0, 0);
        let mut skip = self.frame_sent.unwrap_or(0);
        let mut add = |base: *const u8, length: usize, skip: &mut usize| {
            let skipped = length.min(*skip);
            *skip -= skipped;
            if length != skipped {
                pieces[count] = SendPiece::new(base.wrapping_add(skipped), length - skipped);
                count += 1;
                total += length - skipped;
            }
        };
        add(lead.as_ptr(), lead.len(), &mut 0);
        add(header.as_ptr(), header.len(), &mut skip);
        for piece in payload {
            add(piece.base.cast(), piece.len as usize, &mut skip);
        }
        // SAFETY: the kernel checks the pieces, which are a snapshot whenever they are read.
        let sent = unsafe { tcp::send(self.socket.as_fd(), &pieces[..count]) };
        self.note_sent(sent, total)
    }

    /// These bytes of `total` have left.
    fn note_sent(&mut self, sent: io::Result<usize>, total: usize) -> io::Result<SendProgress> {
        let n = match sent {
            Ok(n) => n,
            Err(e)
                if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
            {
                0
            }
            Err(e) => return Err(e),
        };
        let of_lead = n.min(self.lead.bytes.len() - self.lead.sent);
        self.lead.sent += of_lead;
        if let Some(sent) = &mut self.frame_sent {
            *sent += n - of_lead;
        }
        Ok(if n < total { SendProgress::NoRoom } else { SendProgress::All })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::vec;

    /// Both ends of a connection.
    fn open() -> (Connection, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let mut connection = Connection::new(near.into(), ConnectionStage::Open, Some(1));
        connection.input.credits = FrameCredits { frames: 1000, bytes: 1 << 20 };
        (connection, far)
    }

    /// While a frame leaves, the whole window of the peer arrives. If the socket has room for the
    /// end of the frame but not for the credits, the caller learns that they wait.
    #[test]
    fn credits_that_find_no_room_behind_a_frame_are_not_forgotten() {
        let mut waited = 0;
        // Longer than what a socket takes at once.
        for length in (200_000..400_000).step_by(1009) {
            let (mut connection, mut far) = open();
            connection.input.owed = FrameCredits::default();
            let header = vec![1; length];
            let mut got = 0;
            let mut read = |far: &mut UnixStream| got += far.read(&mut [0; 4096]).unwrap_or(0);
            let send = |connection: &mut Connection| {
                // SAFETY: no pieces.
                unsafe { connection.send(&header, &[], false) }.unwrap()
            };
            let mut sent = send(&mut connection);
            connection.input.owed = FrameCredits { frames: WINDOW_FRAMES, bytes: WINDOW_BYTES };
            while sent == SendProgress::NoRoom {
                read(&mut far);
                sent = send(&mut connection);
            }
            let waits = sent == SendProgress::AllButCredits;
            assert_eq!(waits, !connection.lead.is_empty(), "{length}");
            waited += usize::from(waits);
            while connection.flush().unwrap() == SendProgress::NoRoom {
                read(&mut far);
            }
            for _ in 0..200 {
                read(&mut far);
            }
            // The length of the frame, the frame, and the credits.
            assert_eq!(got, 4 + length + 8, "{length}");
        }
        assert!(waited > 0);
    }

    /// Small frames have used half of the window. Their credits wait for room while long frames
    /// use the rest, for which the peer then waits.
    #[test]
    fn credits_owed_while_others_wait_follow_them() {
        let (mut connection, mut far) = open();
        let mut near = UnixStream::from(connection.socket.try_clone().unwrap());
        let mut filled = 0;
        while let Ok(n) = near.write(&[0; 4096]) {
            filled += n;
        }
        let small = FrameCredits { frames: WINDOW_FRAMES / 2, bytes: 40_000 };
        connection.input.owed = small;
        assert_eq!(connection.flush().unwrap(), SendProgress::NoRoom);
        connection.input.owed = FrameCredits { frames: 16, bytes: WINDOW_BYTES - small.bytes };
        let mut rest = filled;
        while rest != 0 {
            rest -= far.read(&mut vec![0; rest]).unwrap();
        }
        assert_eq!(connection.flush().unwrap(), SendProgress::All);
        assert_eq!(connection.input.owed, FrameCredits::default());
        let mut credits = [0; 17];
        assert_eq!(far.read(&mut credits).unwrap(), 16);
    }
}
