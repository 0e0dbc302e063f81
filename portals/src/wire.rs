//! Messages cut into frames, for peers whose memory cannot be reached.
//!
//! The interface calls [`Wire::submit`] for a peer with [`crate::nal::Route::Wire`], and for a message to a mapped peer whose
//! descriptor lies in private memory that cross-memory attach cannot reach; [`Wire::busy`] tells that such a message
//! is still on its way, and while it is, every later message of the pair is submitted too, so that messages match in
//! the order in which they were sent. [`Wire::progress`] runs inside the calls that look at event queues.

use alloc::boxed::Box;

use crate::deliver::{Header, Transfer};
use crate::ni::Interface;
use crate::types::*;

/// A message to be framed.
#[derive(Debug)]
pub(crate) struct Submission {
    /// Index of the target.
    pub(crate) target: u32,
    /// As the target is to see it.
    pub(crate) header: Header,
    /// Put and get-put: the hold on the source; SEND_START has been posted. [`Interface::transfer_end`] posts
    /// SEND_END when the bytes have been read.
    pub(crate) source: Option<Transfer>,
    /// Put: whether an acknowledgement is wanted.
    pub(crate) ack: bool,
    /// Put: the descriptor that logs the ACK; get and get-put: the one that the reply goes to.
    pub(crate) md: MdHandle,
    /// Get and get-put: where in `md` the reply goes.
    pub(crate) local_offset: Size,
}

/// The framing state of one interface.
#[derive(Debug)]
pub(crate) struct Wire {
    peers: Box<[()]>,
}

impl Wire {
    /// For a fabric of `size` processes.
    pub(crate) fn new(size: u32) -> Wire {
        Wire { peers: alloc::vec![(); size as usize].into_boxed_slice() }
    }

    /// Takes a message over. It may be sent at once or by a later [`Wire::progress`].
    pub(crate) fn submit(&self, ni: &Interface, message: Submission) {
        let _ = (ni, message);
        unimplemented!()
    }

    /// Whether a framed message from us to `target` has not been taken by it yet.
    pub(crate) fn busy(&self, target: u32) -> bool {
        let _ = (target, &self.peers);
        false
    }

    /// Sends what waits, takes what has come. Called often; returns at once if there is nothing to do or another
    /// thread is at it.
    pub(crate) fn progress(&self, ni: &Interface) {
        let _ = ni;
    }
}
