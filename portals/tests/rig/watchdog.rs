//! A watchdog per test: a test that hangs ends the test program with a line that names it.
//!
//! Invariant: a watchdog is never a verdict on speed; its time is far beyond what any test takes
//! on a loaded machine.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Ends the process unless it is dropped in time.
pub struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    /// Watches over the test `name` for `seconds`.
    pub fn new(name: String, seconds: u64) -> Watchdog {
        let (alive, gone): (Sender<()>, Receiver<()>) = channel();
        std::thread::spawn(move || {
            if gone.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout) {
                eprintln!("watchdog: {name} did not end within {seconds} s");
                std::process::abort();
            }
        });
        Watchdog { _alive: alive }
    }
}
