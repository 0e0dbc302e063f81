//! The socket to a supervisor, where there is neither: in place of `control_socket`.
//!
//! Owned by `exit_notice`. Invariant: there is no value of [`ControlSocket`].

use std::io;
use std::os::fd::BorrowedFd;

/// The control socket of a rank, of which there is none.
#[derive(Debug)]
pub(super) enum ControlSocket {}

impl ControlSocket {
    pub(super) fn supervisor(&self) -> &'static str {
        match *self {}
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        match *self {}
    }

    pub(super) fn send(&self, _message: &[u8]) -> bool {
        match *self {}
    }

    pub(super) fn set_notices(&self, _on: bool) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn is_hung_up(&self) -> bool {
        match *self {}
    }
}
