//! The conduit's record of each calling thread.
//!
//! One for each [`super::Upcall::thread`], owned by [`super::Conduit`]. Invariant: only
//! the thread itself accesses its record, except the count of departures.

use super::arrived::ArrivedReply;
use super::memory;
use super::message::{CHUNK, MAX_MEDIUM};
use super::sync;
use crate::client_memory::Dst;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use once_cell::race::OnceBox;
use parking_lot::Mutex;

/// A calling thread.
pub(super) struct ClientThread {
    /// Puts and Longs of this thread whose source is not yet reusable; any thread may take one
    /// off.
    local: AtomicU32,
    /// Whether it is inside a handler.
    pub(super) in_handler: AtomicBool,
    /// Whether `deferred` has any.
    pub(super) has_deferred: AtomicBool,
    /// The replies that it has deferred.
    pub(super) deferred: Mutex<Vec<ArrivedReply>>,
    /// Memory for copies of payloads: of the request whose handler it runs, and of the reply of a
    /// rank to itself. Of each up to [`CHUNK`] bytes, and more.
    kept_payloads: [[OnceBox<Dst<'static>>; 2]; 2],
}

impl ClientThread {
    pub(super) fn new() -> Self {
        ClientThread {
            local: AtomicU32::new(0),
            in_handler: AtomicBool::new(false),
            has_deferred: AtomicBool::new(false),
            deferred: Mutex::new(Vec::new()),
            kept_payloads: Default::default(),
        }
    }

    /// `n` bytes, at most [`MAX_MEDIUM`], aligned to 8, for a copy of the payload of the request
    /// whose handler this thread is about to run. Or, while that runs, of the reply if both are of
    /// this rank to itself.
    pub(super) fn kept_payload(&self, is_reply: bool, n: usize) -> Dst<'static> {
        let [small, large] = &self.kept_payloads[usize::from(is_reply)];
        let (memory, bytes) = if n <= CHUNK { (small, CHUNK) } else { (large, MAX_MEDIUM) };
        memory.get_or_init(|| Box::new(memory::leaked(bytes))).part(0, n)
    }

    /// It has sent something whose departure it will wait for. `par`: several threads call.
    #[inline]
    pub(super) fn expect_local(&self, par: bool) {
        sync::count(par, &self.local, 1);
    }

    /// Something has left whose departure it waits for. False if there was nothing.
    #[inline]
    pub(super) fn local_done(&self, par: bool) -> bool {
        sync::take(par, &self.local, 1)
    }

    /// How many of those that [`ClientThread::expect_local`] has counted have not left.
    pub(super) fn leaving(&self) -> u32 {
        self.local.load(Ordering::Relaxed)
    }

    /// Whether all that [`ClientThread::expect_local`] has counted has left.
    #[inline]
    pub(super) fn all_left(&self) -> bool {
        self.local.load(Ordering::Acquire) == 0
    }
}
