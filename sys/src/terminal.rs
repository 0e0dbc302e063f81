//! Pseudo-terminals. Called by the test runner, for what a user does at a keyboard.
//!
//! Invariant: the terminal's keys send signals (^C: SIGINT) only to a session that [`control`]
//! made.

use std::io;
use std::os::fd::{OwnedFd, RawFd};

/// A new pseudo-terminal: the end of the user, and the end of the programs.
///
/// # Errors
/// That of the system.
pub fn open() -> io::Result<(OwnedFd, OwnedFd)> {
    let (mut user, mut programs) = (-1, -1);
    let null = core::ptr::null_mut();
    // SAFETY: two live variables to fill; null says that no name, settings or size are given.
    if unsafe { libc::openpty(&mut user, &mut programs, null, null.cast(), null.cast()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptors were just opened, so nothing else owns them.
    unsafe { crate::descriptor::opened_pair([user, programs]) }
}

/// Makes this process the leader of a new session that `programs`, an end of a terminal,
/// controls. Async-signal-safe.
///
/// # Errors
/// That of the system.
pub fn control(programs: RawFd) -> io::Result<()> {
    // SAFETY: no arguments.
    if unsafe { libc::setsid() } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: touches no memory: this request takes an int.
    match unsafe { libc::ioctl(programs, libc::TIOCSCTTY, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
