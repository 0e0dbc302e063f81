//! Waiting for what sending needs.
//!
//! Called by the files that send. Decides what to poll; `runtime::wait` decides whether to spin,
//! yield or sleep. A wait with SAFE polls is for resources that events of this rank return, a
//! wait with full polls (`poll`) for those that replies return. Invariant: a wait with SAFE polls
//! runs no handler of a request.

use super::portals::Portals;
use super::{Conduit, ResourceNeed, Upcall};
use sys::hint::cold_path;

/// Most SAFE polls of one round of a wait.
const SAFE_POLLS: u32 = 16;

impl<P: Portals> Conduit<P> {
    /// Wakes the other threads of this process that sleep: this one may have served what one of
    /// them waits for.
    #[inline]
    pub(super) fn wake_threads(&self) {
        if self.config.par() {
            cold_path();
            if let Some(host) = self.portals.shared_host() {
                host.ring_self();
            }
        }
    }

    /// Waits with SAFE polls until `attempt` gives something.
    #[inline]
    pub(super) fn wait_safe<U: Upcall, T>(
        &self,
        up: U,
        need: ResourceNeed,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> T {
        match attempt() {
            Some(x) => x,
            // All that came back is taken. A thread that waits for a ticket finds several then,
            // and what it sends next leaves together.
            None => self.wait_longer(up, need, attempt, || {
                (0..SAFE_POLLS).take_while(|_| self.poll_safe(up)).count() != 0
            }),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn wait_longer<U: Upcall, T>(
        &self,
        up: U,
        need: ResourceNeed,
        mut attempt: impl FnMut() -> Option<T>,
        mut poll: impl FnMut() -> bool,
    ) -> T {
        let mut round = 0;
        loop {
            if poll() {
                self.wake_threads();
                round = 0;
            } else {
                up.pause(round, need);
                round = round.saturating_add(1);
            }
            if let Some(x) = attempt() {
                up.end_pauses();
                return x;
            }
        }
    }

    /// Waits until all that `ClientThread::expect_local` has counted has left.
    pub(super) fn wait_local<U: Upcall>(&self, up: U) {
        let thread = self.thread(up);
        let need = ResourceNeed { all_sent: true, ..ResourceNeed::of(&"the departure of data") };
        self.wait_safe(up, need, || thread.all_left().then_some(()));
    }
}
