//! The last lines that ranks and other hosts have printed, when all ranks have exited.
//!
//! Used by `watch`. Invariant: a reader that takes nothing, such as a pager, is waited for, but
//! never longer than the user wants.

use super::job::Supervisor;
use super::job_signals::END_REQUESTS;
use super::job_timeout::TIMED_OUT;
use crate::boot::passed_stream::PrefixedStream;
use sys::clock;
use sys::poll::{self, PollEntry};
use sys::signal::ReceivedSignal;

/// Nanoseconds that the reader has to take the last lines, from when the job is to end.
const LAST_OUTPUT: u64 = 2_000_000_000;
/// Nanoseconds that it has in any case, from when all ranks have exited.
const AT_LEAST: u64 = 500_000_000;
/// Milliseconds between two looks at the time.
const LOOK_MS: u32 = 100;

impl Supervisor {
    /// Until when output of other hosts may wait for its reader, if the job was to end.
    pub(super) fn output_due(&self, now: u64) -> Option<u64> {
        Some(self.end_requested_at? + LAST_OUTPUT).filter(|due| now < *due)
    }

    /// Whether output of other hosts that waits for its reader is given up.
    pub(super) fn is_output_cut(&self, now: u64) -> bool {
        self.end_requested_at.is_some()
            && self.output_due(now).is_none()
            && self.others.output_waits()
    }

    /// Prints the last lines. Those of standard output wait for their reader, without end unless
    /// the job was to end.
    pub(super) fn finish_output(&mut self) {
        self.output.streams_mut().iter_mut().for_each(PrefixedStream::finish);
        let begun = clock::now_ns();
        loop {
            let own = self.output.streams_mut().iter_mut();
            let waiting: Vec<&mut PrefixedStream> =
                own.chain(self.others.outputs_mut()).filter(|stream| stream.waits()).collect();
            if waiting.is_empty() {
                return;
            }
            let mut polled: Vec<PollEntry> = waiting.iter().map(|s| s.poll_entry()).collect();
            polled.extend(self.signals.fds().map(PollEntry::reading));
            poll::wait(&mut polled, Some(LOOK_MS));
            let is_request = |s: &ReceivedSignal| END_REQUESTS.contains(&s.signal);
            let mut requests = std::iter::from_fn(|| self.signals.next()).filter(is_request);
            let until = match self.end_requested_at {
                Some(request) => Some((request + LAST_OUTPUT).max(begun + AT_LEAST)),
                None if self.exit.code() == TIMED_OUT => Some(begun + LAST_OUTPUT),
                None => None,
            };
            let is_late = until.is_some_and(|until| clock::now_ns() >= until);
            let is_over = requests.next().is_some() || is_late;
            for stream in waiting {
                stream.print(&[]);
                if is_over {
                    stream.give_up();
                }
            }
        }
    }
}
