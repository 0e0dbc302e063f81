//! Waiting for what sending needs. Two kinds: with SAFE polls, for what our own events bring back; with full polls,
//! for what replies bring back. And what each thread has of its own.

use super::portals::Portals;
use super::reply::NONE;
use super::sync;
use super::{CHUNK, Conduit, ResourceNeed, Upcall};
use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use once_cell::race::OnceBox;
use sys::hint::cold_path;

/// Most polls of SAFE_EQ after a wait. While they run the peer works off what it still has of ours, so they are not many.
const CATCH_UP_POLLS: u32 = 8;

/// What the conduit knows of a calling thread.
pub(super) struct ClientThread {
    /// Puts and Longs of this thread whose source is not yet reusable; any thread may take one off.
    local: AtomicU32,
    /// Whether it is inside a handler. Only this thread touches it.
    pub(super) in_handler: AtomicBool,
    /// The last reply that it put off, [`NONE`] if there is none. Only this thread touches it.
    pub(super) put_off: AtomicU32,
    /// Room for the payload of the request whose handler it runs.
    payload: OnceBox<Payload>,
}

struct Payload(UnsafeCell<[u64; CHUNK / 8]>);

// SAFETY: only touched by the thread that it belongs to.
unsafe impl Sync for Payload {}
// SAFETY: numbers.
unsafe impl Send for Payload {}

impl ClientThread {
    pub(super) fn new() -> Self {
        ClientThread {
            local: AtomicU32::new(0),
            in_handler: AtomicBool::new(false),
            put_off: AtomicU32::new(NONE),
            payload: OnceBox::new(),
        }
    }

    /// [`CHUNK`] bytes, aligned to 8, for this thread alone.
    pub(super) fn payload(&self) -> *mut u8 {
        let new = || Box::new(Payload(UnsafeCell::new([0; CHUNK / 8])));
        self.payload.get_or_init(new).0.get().cast()
    }
}

impl<P: Portals> Conduit<P> {
    /// Serves all queues; runs handlers. True if anything was there. Inside a handler it is [`Conduit::poll_safe`].
    #[inline(always)]
    pub fn poll<U: Upcall>(&self, up: U) -> bool {
        // Mostly there is nothing: three looks and no call. Else mostly one queue alone has something.
        self.portals.progress();
        self.portals.burst_ends();
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
                    look_once();
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

    /// Serves the queues that may have something, and looks after what waits.
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

    /// Wakes the other threads of this process that sleep: what one of them waits for may have been served by this one.
    #[inline]
    fn wake_threads(&self) {
        if self.config.par() {
            cold_path();
            if let Some(extension) = self.portals.extension() {
                extension.ring_self();
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

    /// Waits with full polls until `attempt` gives something, and then takes in what else has come: whoever has to wait
    /// here sends without polling, and would have to wait again after as many requests as one poll has brought back.
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

    /// Serves what is in SAFE_EQ, up to so many polls of it.
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

    /// This thread has sent something that it will wait for to leave.
    #[inline]
    pub(super) fn expect_local<U: Upcall>(&self, up: U) {
        sync::count(self.config.par(), &self.threads[up.thread()].local, 1);
    }

    /// What this thread waited for has left.
    #[inline]
    pub(super) fn local_done(&self, thread: usize) {
        if let Some(t) = self.threads.get(thread) {
            sync::count(self.config.par(), &t.local, -1);
        }
    }

    /// Waits until all has left that [`Conduit::expect_local`] was told of.
    pub(super) fn wait_local<U: Upcall>(&self, up: U) {
        let local = &self.threads[up.thread()].local;
        self.wait_safe(up, ResourceNeed::of(&"the departure of data"), || {
            (local.load(Ordering::Acquire) == 0).then_some(())
        });
    }
}

/// Waits until what was looked at before has been read. The processor would begin the looks of the next polls meanwhile, which ask for a
/// line again that a peer is just about to write.
#[inline(always)]
fn look_once() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: x86-64 has it; it touches no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence()
    };
}
