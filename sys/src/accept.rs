//! Accepting connections while descriptors may run out. Called by `boot` and by the network `tcp`
//! of `portals3`.
//!
//! Invariant: a listening socket whose connections cannot be accepted is not waited for. The
//! system would report at once, again and again, that there is one.

use crate::is_lack;
use std::io;
use std::os::fd::OwnedFd;

/// How long a pause takes, in nanoseconds.
pub const PAUSE_NS: u64 = 100_000_000;

/// Whether connections can be accepted, and since when.
#[derive(Debug, Default)]
pub struct AcceptPause {
    until: Option<u64>,
    is_known: bool,
}

impl AcceptPause {
    /// Accepts connections, at most `most`, unless a pause goes on at the time `now`. Returns an
    /// error if a pause begins for the first time: the process or the system lacks descriptors or
    /// memory.
    pub fn accept(
        &mut self,
        now: u64,
        most: usize,
        mut accept: impl FnMut() -> io::Result<OwnedFd>,
        mut take: impl FnMut(OwnedFd),
    ) -> Option<io::Error> {
        if self.until.is_some_and(|until| now < until) {
            return None;
        }
        self.until = None;
        for _ in 0..most {
            match accept() {
                Ok(connection) => take(connection),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if is_lack(&e) => {
                    self.until = Some(now.saturating_add(PAUSE_NS));
                    let is_news = !core::mem::replace(&mut self.is_known, true);
                    return is_news.then_some(e);
                }
                // The connection has ended before it was accepted.
                Err(_) => {}
            }
        }
        None
    }

    /// Until when there is a pause. The listening socket is not to be waited for.
    pub fn until(&self) -> Option<u64> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_descriptors_makes_a_pause() {
        let mut pause = AcceptPause::default();
        let calls = core::cell::RefCell::new(Vec::new());
        let mut accept = |now, results: &[i32]| {
            let mut results = results.iter().map(|n| Err(io::Error::from_raw_os_error(*n)));
            let next = || {
                calls.borrow_mut().push(now);
                results.next().unwrap_or(Err(io::ErrorKind::WouldBlock.into()))
            };
            let news = pause.accept(now, 8, next, drop);
            (news.and_then(|e| e.raw_os_error()), pause.until())
        };
        let begun = (Some(libc::EMFILE), Some(PAUSE_NS));
        assert_eq!(accept(0, &[libc::ECONNABORTED, libc::EMFILE]), begun);
        assert_eq!(accept(PAUSE_NS - 1, &[]), (None, Some(PAUSE_NS)));
        let again = (None, Some(2 * PAUSE_NS));
        assert_eq!(accept(PAUSE_NS, &[libc::ENFILE]), again, "it is reported once");
        assert_eq!(accept(2 * PAUSE_NS, &[libc::EINTR]), (None, None));
        assert_eq!(*calls.borrow(), [0, 0, PAUSE_NS, 2 * PAUSE_NS, 2 * PAUSE_NS]);
    }
}
