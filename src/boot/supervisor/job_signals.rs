//! The signals that a supervisor receives instead of the program whose process it is.
//!
//! Owned by [`super::Supervisor`]. Invariant: the ranks start with the signal mask and actions
//! that the process had before.

use crate::boot::error::BootError;
use std::os::fd::AsFd;
use sys::signal::{
    self, Disposition, ReceivedSignal, Signal, SignalAction, SignalQueue, SignalSet,
};

/// Signals that ask the job to end.
pub(super) const END_REQUESTS: [Signal; 4] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
/// The signal that is passed on to the ranks unchanged.
const PASSED_ON: Signal = Signal::USR2;
/// The signal that requests the status of the ranks.
pub(super) const STATUS_REQUEST: Signal = Signal::USR1;

/// The signals of a supervisor, and what they did before.
#[derive(Debug)]
pub(super) struct JobSignals {
    queue: SignalQueue,
    old_mask: SignalSet,
    old_actions: [(Signal, SignalAction); 2],
}

impl JobSignals {
    /// Takes over the signals of this process. With `pass_on`, signals that ask the job to end are
    /// passed on to the ranks; without, they are ignored, because a launcher passes them on.
    pub(super) fn take_over(pass_on: bool) -> Result<JobSignals, BootError> {
        let mut received = vec![Signal::CHLD];
        if pass_on {
            // Ignored signals stay ignored, as nohup requires.
            let all = END_REQUESTS.into_iter().chain([PASSED_ON, STATUS_REQUEST]);
            received.extend(all.filter(|&s| signal::disposition(s) != Disposition::Ignore));
        } else {
            END_REQUESTS.into_iter().chain([PASSED_ON]).for_each(signal::ignore);
            received.push(STATUS_REQUEST);
        }
        let received = SignalSet::of(&received);
        let old_actions = [Signal::CHLD, Signal::PIPE].map(|s| (s, signal::action(s)));
        // With SIGCHLD ignored the system would reap the children.
        signal::set_default(Signal::CHLD);
        signal::ignore(Signal::PIPE);
        let old_mask = signal::block(&received);
        let queue = SignalQueue::new(&received)
            .map_err(|e| BootError::system("cannot create a descriptor for signals", &e))?;
        Ok(JobSignals { queue, old_mask, old_actions })
    }

    /// In a new rank: gives the signals back.
    pub(super) fn restore(&self) {
        for (signal, action) in &self.old_actions {
            signal::restore(*signal, action);
        }
        self.restore_mask();
    }

    /// Gives back the mask alone.
    pub(super) fn restore_mask(&self) {
        signal::set_mask(&self.old_mask);
    }

    /// The next signal that has arrived.
    pub(super) fn next(&self) -> Option<ReceivedSignal> {
        self.queue.next()
    }

    /// Readable when a signal has arrived.
    pub(super) fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
