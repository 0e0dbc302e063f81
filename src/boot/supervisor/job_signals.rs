//! The signals of a supervisor: those that ask the job to end, that ask for its status, and that
//! report the end of a child.
//!
//! Owned by [`super::Supervisor`]. Invariants: the process has one thread, so a signal that is
//! blocked here runs no handler and ends nothing. The ranks start with the signal mask and
//! actions that the process had before.

use crate::boot::error::BootError;
use std::os::fd::{AsFd, BorrowedFd};
use sys::front::FrontLink;
use sys::signal::{
    self, Disposition, ReceivedSignal, Signal, SignalAction, SignalQueue, SignalSet,
};

/// Signals that ask the job to end.
pub(super) const END_REQUESTS: [Signal; 4] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
/// The signal that requests the status of the ranks.
pub(super) const STATUS_REQUEST: Signal = Signal::USR1;
/// The signal that is passed on to the ranks unchanged.
const PASSED_ON: Signal = Signal::USR2;

/// What a front process passes on to the supervisor behind it.
pub(in crate::boot) const OF_FRONT: [Signal; 6] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, PASSED_ON, STATUS_REQUEST];

/// Where the signals come from that ask the job to end. They are passed on to the ranks.
#[derive(Debug)]
pub enum SignalSource {
    /// Users and terminals send them to this process.
    Own,
    /// They are sent to the process in front of this one.
    Front(FrontLink),
    /// None arrive: a launcher sends them to the ranks.
    Launcher,
}

/// The signals of a supervisor, and what they did before.
#[derive(Debug)]
pub(super) struct JobSignals {
    queue: SignalQueue,
    front: Option<FrontLink>,
    old_mask: SignalSet,
    old_actions: Vec<(Signal, SignalAction)>,
}

impl JobSignals {
    /// Takes over the signals of this process.
    pub(super) fn take_over(source: SignalSource) -> Result<JobSignals, BootError> {
        let mut received = vec![Signal::CHLD];
        // A supervisor in the background that reads the terminal for rank 0 is not stopped.
        let mut blocked = vec![Signal::TTIN];
        let mut front = None;
        // Ignored signals stay ignored, as nohup requires.
        let is_handled = |s: &Signal| signal::disposition(*s) != Disposition::Ignore;
        match source {
            SignalSource::Own => received.extend(OF_FRONT.into_iter().filter(is_handled)),
            SignalSource::Front(link) => {
                // A terminal sends them to this process as well.
                blocked.extend(OF_FRONT);
                received.extend([STATUS_REQUEST].into_iter().filter(is_handled));
                front = Some(link);
            }
            SignalSource::Launcher => {
                END_REQUESTS.into_iter().chain([PASSED_ON]).for_each(signal::ignore);
                received.push(STATUS_REQUEST);
            }
        }
        blocked.extend(&received);
        let received = SignalSet::of(&received);
        let mut old_actions =
            Vec::from([Signal::CHLD, Signal::PIPE].map(|s| (s, signal::action(s))));
        // With SIGCHLD ignored the system would reap the children.
        signal::set_default(Signal::CHLD);
        signal::ignore(Signal::PIPE);
        // Handlers of the program are for its ranks.
        for s in signal::handled().filter(|s| !blocked.contains(s)) {
            old_actions.push((s, signal::action(s)));
            signal::drop_handler(s);
        }
        let old_mask = signal::block(&SignalSet::of(&blocked));
        let queue = SignalQueue::new(&received)
            .map_err(|e| BootError::system("cannot create a descriptor for signals", &e))?;
        Ok(JobSignals { queue, front, old_mask, old_actions })
    }

    /// The mask that programs of this process are to have.
    pub(super) fn ranks_mask(&self) -> &SignalSet {
        &self.old_mask
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
        self.queue.next().or_else(|| self.front.as_ref()?.next())
    }

    /// Readable when a signal has arrived.
    pub(super) fn fds(&self) -> [Option<BorrowedFd<'_>>; 2] {
        [self.queue.fd(), self.front.as_ref().map(AsFd::as_fd)]
    }

    /// Whether signals may arrive that no descriptor reports ([`SignalQueue::fd`]).
    pub(super) fn needs_looks(&self) -> bool {
        self.queue.fd().is_none()
    }

    /// Has the front process, if there is one, end with this code.
    pub(super) fn end_front(&self, code: i32) {
        if let Some(front) = &self.front {
            front.end(code);
        }
    }
}
