//! Full polls, and waiting with them.
//!
//! Called by `JobConduit::poll` and by `request_send`. Invariant: handlers do not nest on a
//! thread.

use super::portals::{Direct, Portals};
use super::{Conduit, ResourceNeed, Upcall};
use core::sync::atomic::Ordering;
use sys::cache;
use sys::hint::cold_path;

/// Most polls of SAFE_EQ after a wait. The peer works off what it still has of ours meanwhile, so
/// they are few: 0.93 of the time of row `medium_flood` of 1 KiB.
const CATCH_UP_POLLS: u32 = 8;

impl<P: Portals> Conduit<P> {
    /// Serves all queues; runs handlers. True if there was any event. Inside a handler it is
    /// [`Conduit::poll_safe`].
    #[inline(always)]
    pub fn poll<U: Upcall>(&self, up: U) -> bool {
        // Most polls find nothing: three looks and no call. Most others find one queue with
        // events, and call its function at once: 0.90 of row `short_take`.
        if let Some(direct) = self.portals.direct_to_self() {
            direct.progress();
            direct.burst_ends();
        }
        if !self.sys.queue.is_quiet(&self.portals)
            || self.waiting.load(Ordering::Relaxed) != 0
            || self.implicit.keeps_any()
        {
            cold_path();
            return self.serve(up);
        }
        let served = match (self.safe.is_quiet(&self.portals), self.am.is_quiet(&self.portals)) {
            (true, true) => {
                cache::wait_for_loads();
                return false;
            }
            (false, true) => self.serve_safe(up),
            (true, false) => self.serve_am(up),
            (false, false) => {
                cold_path();
                return self.serve(up);
            }
        };
        if served {
            self.wake_threads();
        }
        served
    }

    /// Serves the queues that may have events, and the batch of implicit replies. True if there
    /// was any event. For callers that are not to have the code of a poll in them.
    #[inline(never)]
    pub fn serve<U: Upcall>(&self, up: U) -> bool {
        let outside = !self.in_handler(up);
        if outside {
            self.implicit.poll(self.kept_sender());
        }
        let sys = outside && !self.sys.queue.is_quiet(&self.portals) && self.serve_sys(up);
        let safe = !self.safe.is_quiet(&self.portals) && self.serve_safe(up);
        let served = (self.am_may_have() && self.serve_am(up)) | safe | sys;
        if served {
            self.wake_threads();
        }
        served
    }

    /// Waits with full polls until `attempt` gives something, and then serves the replies that
    /// arrived meanwhile. A thread that waits here sends without polling; without this it would
    /// wait again after as many requests as one poll has brought back.
    #[inline]
    pub(super) fn wait_full<U: Upcall, T>(
        &self,
        up: U,
        need: ResourceNeed,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> T {
        match attempt() {
            Some(x) => x,
            None => {
                let x = self.wait_longer(up, need, attempt, || self.poll(up));
                self.catch_up(up);
                x
            }
        }
    }

    /// Serves what is in SAFE_EQ, with at most [`CATCH_UP_POLLS`] polls.
    #[cold]
    #[inline(never)]
    fn catch_up<U: Upcall>(&self, up: U) {
        let polls = (0..CATCH_UP_POLLS).take_while(|_| self.poll_safe(up)).count();
        if polls != 0 {
            self.wake_threads();
        }
    }
}
