//! Connections that come in, until they are open.
//!
//! Called by [`super`]. Invariants: the listening socket is watched unless connections cannot be
//! accepted. One that has greeted with the mark of the process that it names, from its host, makes
//! room only for another such one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use std::os::fd::{AsFd, OwnedFd};

use super::super::end::{LISTENER, TcpEnd};
use super::super::limits::STRANGERS;
use sys::accept::AcceptPause;
use sys::{clock, tcp};

/// Most connections that one look accepts.
const ACCEPTED_AT_ONCE: usize = 16;

/// Accepts connections, unless a pause goes on.
pub(super) fn accept(pause: &mut AcceptPause, here: &TcpEnd, admit: impl FnMut(OwnedFd)) {
    let was_paused = pause.until().is_some();
    let listener = here.listener.as_fd();
    let lack = pause.accept(clock::now_ns(), ACCEPTED_AT_ONCE, || tcp::accept(listener), admit);
    match (was_paused, pause.until().is_some()) {
        (false, true) => here.epoll.remove(listener),
        // If the system has no memory for it, it does not listen any more.
        (true, false) => drop(here.epoll.add(listener, LISTENER, false)),
        _ => {}
    }
    if let Some(e) = lack {
        here.lack(&e);
    }
}

/// Incoming connections that are not open, by their numbers.
#[derive(Debug, Default)]
pub(super) struct IncomingConnections {
    /// Those that may come from anywhere, oldest first.
    pub(super) strangers: Vec<usize>,
    /// Those that have greeted as the peer that they name does, from its host, by its number.
    pub(super) greeted: BTreeMap<u32, usize>,
    /// The listening socket is not watched meanwhile.
    pub(super) pause: AcceptPause,
}

impl IncomingConnections {
    /// It is open, or has ended.
    pub(super) fn remove(&mut self, number: usize) {
        self.strangers.retain(|&stranger| stranger != number);
        self.greeted.retain(|_, &mut greeted| greeted != number);
    }

    /// The one that makes room for another, if it must. What it has sent was read before.
    pub(super) fn crowded_out(&self) -> Option<usize> {
        self.strangers.first().copied().filter(|_| self.strangers.len() >= STRANGERS)
    }

    /// One has greeted as this peer, which may compute before it proves that it belongs to the
    /// job. A peer makes one at a time: an older one makes room, and is returned. A stranger makes
    /// no such greeting without reading the network.
    pub(super) fn note_greeted(&mut self, number: usize, peer: u32) -> Option<usize> {
        self.remove(number);
        self.greeted.insert(peer, number)
    }
}
