//! Polls, waiting for what sending needs, and the state of each calling thread.
//!
//! Called by `JobConduit::poll` and by the files that send. Decides what to poll;
//! `runtime::wait` decides whether to spin, yield or sleep. A wait with SAFE polls is for
//! resources that events of this process return, a wait with full polls for those that replies
//! return. Invariant: handlers do not nest on a thread.

use super::memory;
use super::portals::{Direct, Portals};
use super::reply::ArrivedReply;
use super::sync;
use super::{CHUNK, Conduit, ResourceNeed, Upcall};
use crate::client_memory::Dst;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use once_cell::race::OnceBox;
use parking_lot::Mutex;
use sys::cache;
use sys::hint::cold_path;

/// Most polls of SAFE_EQ after a wait. The peer works off what it still has of ours meanwhile, so
/// they are few.
const CATCH_UP_POLLS: u32 = 8;

/// What the conduit knows of a calling thread.
pub(super) struct ClientThread {
    /// Puts and Longs of this thread whose source is not yet reusable; any thread may take one
    /// off.
    local: AtomicU32,
    /// Whether it is inside a handler. Only this thread touches it.
    pub(super) in_handler: AtomicBool,
    /// Whether `deferred` has any. Only this thread touches it.
    pub(super) has_deferred: AtomicBool,
    /// The replies that it has deferred. Only this thread touches it.
    pub(super) deferred: Mutex<Vec<ArrivedReply>>,
    /// [`CHUNK`] bytes for the payload of the request whose handler it runs.
    payload: OnceBox<Dst<'static>>,
}

impl ClientThread {
    pub(super) fn new() -> Self {
        ClientThread {
            local: AtomicU32::new(0),
            in_handler: AtomicBool::new(false),
            has_deferred: AtomicBool::new(false),
            deferred: Mutex::new(Vec::new()),
            payload: OnceBox::new(),
        }
    }

    /// [`CHUNK`] bytes, aligned to 8, for this thread alone.
    pub(super) fn payload(&self) -> Dst<'static> {
        *self.payload.get_or_init(|| Box::new(memory::leaked(CHUNK)))
    }
}

impl<P: Portals> Conduit<P> {
    /// Serves all queues; runs handlers. True if there was any event. Inside a handler it is
    /// [`Conduit::poll_safe`].
    #[inline(always)]
    pub fn poll<U: Upcall>(&self, up: U) -> bool {
        // Most polls find nothing: three looks and no call. Most others find one queue with
        // events.
        if let Some(direct) = self.portals.direct_to_self() {
            direct.progress();
            direct.burst_ends();
        }
        if !self.sys.queue.is_quiet(&self.portals)
            || self.waiting.load(Ordering::Relaxed) != 0
            || self.keeps_replies()
        {
            cold_path();
            return self.serve(up);
        }
        let served = match (self.safe.is_quiet(&self.portals), self.am.is_quiet(&self.portals)) {
            (true, true) => {
                if !(self.request_prefetch.prefetch() | self.reply_prefetch.prefetch()) {
                    cache::wait_for_loads();
                }
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

    /// Serves the queues that may have events, and the replies that are kept.
    #[inline(never)]
    fn serve<U: Upcall>(&self, up: U) -> bool {
        let outside = !self.in_handler(up);
        if outside {
            self.replies_age();
        }
        let sys = outside && !self.sys.queue.is_quiet(&self.portals) && self.serve_sys(up);
        let safe = !self.safe.is_quiet(&self.portals) && self.serve_safe(up);
        let served = (self.am_may_have() && self.serve_am(up)) | safe | sys;
        if served {
            self.wake_threads();
        }
        served
    }

    /// Wakes the other threads of this process that sleep: this one may have served what one of
    /// them waits for.
    #[inline]
    fn wake_threads(&self) {
        if self.config.par() {
            cold_path();
            if let Some(host) = self.portals.shared_host() {
                host.ring_self();
            }
        }
    }

    #[inline]
    pub(super) fn in_handler<U: Upcall>(&self, up: U) -> bool {
        self.threads[up.thread()].in_handler.load(Ordering::Relaxed)
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
            None => self.wait_longer(up, need, attempt, || self.poll_safe(up)),
        }
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

    #[cold]
    #[inline(never)]
    fn wait_longer<U: Upcall, T>(
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
                return x;
            }
        }
    }

    /// This thread has sent something whose departure it will wait for.
    #[inline]
    pub(super) fn expect_local<U: Upcall>(&self, up: U) {
        sync::count(self.config.par(), &self.threads[up.thread()].local, 1);
    }

    /// Something has left whose departure this thread waits for.
    #[inline]
    pub(super) fn local_done(&self, thread: usize) {
        if let Some(t) = self.threads.get(thread) {
            sync::count(self.config.par(), &t.local, -1);
        }
    }

    /// Waits until all that [`Conduit::expect_local`] has counted has left.
    pub(super) fn wait_local<U: Upcall>(&self, up: U) {
        let local = &self.threads[up.thread()].local;
        self.wait_safe(up, ResourceNeed::of(&"the departure of data"), || {
            (local.load(Ordering::Acquire) == 0).then_some(())
        });
    }
}
