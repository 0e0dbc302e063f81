//! When the shell that runs the supervisor of another host is ended by force.
//!
//! Owned by [`super::other_hosts`]. Invariant: however deep the tree of hosts is, the shells of
//! all levels are ended about [`SHELL_END`] after the last rank.
//!
//! Time stands still while output waits for its reader, such as a pager: what is in the shell
//! would be lost with it.
//!
//! A shell outlives its supervisor if a process that a rank has left behind keeps its output open.
//! All supervisors count from the end of the ranks, which each reports before it waits for shells:
//!
//! ```text
//! host 1   |<------------- SHELL_END ------------->|<- OUTPUT ->| ends its shell to host 2
//! host 2   |<------------- SHELL_END ------------->| ends its shell to host 3, and exits
//! host 3   | exits; a process keeps its output
//!          the last rank ends
//! ```

/// Nanoseconds that a shell may take to end after the ranks have ended.
const SHELL_END: u64 = 3_000_000_000;
/// The same after its supervisor has exited, for output on its way.
const OUTPUT: u64 = 200_000_000;
/// The same if its supervisor does not exit.
const STOPPED: u64 = 10_000_000_000;

/// The end of another host, as the supervisor that has started it sees it.
#[derive(Debug, Default)]
pub(super) struct ShellEnd {
    over_at: Option<u64>,
    left_at: Option<u64>,
    /// Since when output waits for its reader.
    waits_since: Option<u64>,
}

impl ShellEnd {
    /// The ranks of the host and of those below it have ended. `has_left`: its supervisor has hung
    /// up.
    pub(super) fn note_over(&mut self, now: u64, has_left: bool) {
        self.over_at.get_or_insert(now);
        if has_left {
            self.left_at.get_or_insert(now);
        }
    }

    /// Whether output of the shell waits for its reader.
    pub(super) fn note_output(&mut self, now: u64, waits: bool) {
        if let Some(since) = self.waits_since.take() {
            for at in [&mut self.over_at, &mut self.left_at].into_iter().flatten() {
                *at += now - since.max(*at);
            }
        }
        self.waits_since = waits.then_some(now);
    }

    /// When the shell of a host that is over is to be looked at again.
    pub(super) fn deadline(&self, now: u64) -> Option<u64> {
        match self.over_at {
            Some(_) => self.due_at(),
            None => Some(now),
        }
    }

    /// When its shell is to be ended, once that is known.
    fn due_at(&self) -> Option<u64> {
        if self.waits_since.is_some() {
            return None;
        }
        match (self.over_at?, self.left_at) {
            (over, Some(left)) => Some((over + SHELL_END).max(left + OUTPUT)),
            (over, None) => Some(over + STOPPED),
        }
    }

    /// Whether its shell is to be ended.
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.due_at().is_some_and(|due| now >= due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each host starts one other. On each a process keeps the output of the shell open.
    #[test]
    fn a_deep_tree_does_not_wait_for_each_level() {
        const DEPTH: u64 = 10;
        const STEP: u64 = 1_000_000;
        let mut leaves_at = 0;
        for level in 0..DEPTH {
            let mut end = ShellEnd::default();
            let mut now = 0;
            while !end.is_due(now) {
                now += STEP;
                end.note_over(now, now >= leaves_at);
            }
            assert!(now >= leaves_at, "level {level} cuts the one below it off");
            leaves_at = now;
        }
        assert!(leaves_at < SHELL_END + DEPTH * (OUTPUT + 2 * STEP));
    }

    #[test]
    fn output_that_waits_for_its_reader_stops_the_clock() {
        let mut end = ShellEnd::default();
        end.note_output(5, true);
        end.note_over(10, false);
        assert_eq!(end.due_at(), None);
        end.note_output(20, true);
        end.note_over(20, true);
        end.note_output(50, false);
        assert_eq!(end.due_at(), Some(50 + SHELL_END));
        end.note_output(60, false);
        assert_eq!(end.due_at(), Some(50 + SHELL_END));
    }

    #[test]
    fn a_supervisor_that_is_stopped_is_not_waited_for() {
        let mut end = ShellEnd::default();
        assert!(!end.is_due(u64::MAX));
        end.note_over(0, false);
        assert!(!end.is_due(2 * SHELL_END) && end.is_due(STOPPED));
    }
}
