//! What a network reports: whether a frame has left, what has arrived, how a peer is.
//!
//! Used by every NAL and wire, and by their callers. Plain values and a trait; no invariant.

/// What became of a frame that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSent {
    /// It will arrive, unless the peer or the network fails.
    Sent,
    /// There is no room now. A part of it may have left: the next frame to this peer is the same
    /// again.
    Full,
    /// The peer cannot be reached any more.
    Gone,
}

/// What takes the frames that have arrived.
pub trait FrameSink {
    /// Takes a frame, with the number of its sender.
    fn frame(&mut self, peer: u32, frame: &[u8]);

    /// Where the payload of the frame with this header belongs, if its message is known and the
    /// bytes may be written there without [`FrameSink::frame`]: first byte, and how many. The
    /// memory stays valid until the next call.
    fn place(&mut self, peer: u32, header: &[u8]) -> Option<(*mut u8, usize)> {
        let _ = (peer, header);
        None
    }

    /// This many bytes of that frame have been written there.
    fn placed(&mut self, peer: u32, header: &[u8], length: usize) {
        let _ = (peer, header, length);
    }

    /// A remote operation has ended ([`super::remote::RemoteMemory`]); it has failed unless `ok`.
    fn completed(&mut self, token: u64, ok: bool) {
        let _ = (token, ok);
    }
}

impl<F: FnMut(u32, &[u8])> FrameSink for F {
    fn frame(&mut self, peer: u32, frame: &[u8]) {
        self(peer, frame);
    }
}

/// What the operating system reports of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// It can run.
    Alive,
    /// It is stopped (by a signal or a debugger).
    Stopped,
    /// It has ended.
    Dead,
}
