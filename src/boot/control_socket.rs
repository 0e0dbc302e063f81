//! A rank's end of the socket to its supervisor.
//!
//! Made by `supervisor_link`, owned by [`super::exit_notice`]. Invariant: it is open until the
//! process ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use sys::{poll, signal, socket};

/// The control socket of a rank.
#[derive(Debug)]
pub(super) struct ControlSocket {
    socket: OwnedFd,
    /// How messages call the supervisor.
    supervisor: &'static str,
}

impl ControlSocket {
    pub(super) fn new(socket: OwnedFd, supervisor: &'static str) -> ControlSocket {
        ControlSocket { socket, supervisor }
    }

    /// How messages call the supervisor.
    pub(super) fn supervisor(&self) -> &'static str {
        self.supervisor
    }

    /// For conversations.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a message without waiting; whether it was sent. Async-signal-safe.
    pub(super) fn send(&self, message: &[u8]) -> bool {
        socket::send(self.socket(), message, false).is_ok()
    }

    /// Whether messages interrupt this process by [`signal::notice`].
    ///
    /// # Errors
    /// That of the system.
    pub(super) fn set_notices(&self, on: bool) -> io::Result<()> {
        socket::signal_on_event(self.socket(), on.then(signal::notice))
    }

    /// Whether the supervisor has exited. Async-signal-safe.
    pub(super) fn is_hung_up(&self) -> bool {
        poll::hung_up(self.socket())
    }
}
