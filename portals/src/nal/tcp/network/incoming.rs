//! Connections that come in.
//!
//! Called by [`super`]. Invariant: the listening socket is watched unless connections cannot be
//! accepted.

use std::os::fd::{AsFd, OwnedFd};

use super::super::end::{LISTENER, TcpEnd};
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
        (here.on_lack)(&e);
    }
}
