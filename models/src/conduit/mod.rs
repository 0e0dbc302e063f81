//! The files of the conduit that threads share, as they are, over loom's primitives.

pub mod credits;
pub mod firehose;
pub mod models;

/// Stands in for the library's `conduit/primitive.rs`.
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
    use std::ops::Deref;

    /// # Safety
    /// None is needed here: a table of loom's records is made of defaults.
    pub(crate) unsafe trait LoomRecord: Default {}

    // SAFETY: none is needed.
    unsafe impl LoomRecord for AtomicU32 {}

    /// A table of records.
    pub(crate) struct LoomTable<T: LoomRecord>(Box<[T]>);

    pub(crate) use {LoomRecord as Zeros, LoomTable as Zeroed};

    impl<T: LoomRecord> LoomTable<T> {
        pub(crate) fn new(count: usize) -> LoomTable<T> {
            LoomTable((0..count).map(|_| T::default()).collect())
        }
    }

    impl<T: LoomRecord> Deref for LoomTable<T> {
        type Target = [T];

        fn deref(&self) -> &[T] {
            &self.0
        }
    }

    /// Lets the other threads run: a thread that spins waits for one of them.
    pub(crate) struct Backoff;

    impl Backoff {
        pub(crate) fn new() -> Backoff {
            Backoff
        }

        pub(crate) fn snooze(&self) {
            loom::thread::yield_now();
        }
    }
}

#[path = "../../../src/conduit/hold.rs"]
mod hold;
#[path = "../../../src/conduit/lid_cache.rs"]
mod lid_cache;
#[path = "../../../src/conduit/par_lists.rs"]
mod par_lists;
#[path = "../../../src/conduit/sync.rs"]
mod sync;
#[path = "../../../src/conduit/tickets.rs"]
mod tickets;
#[path = "../../../src/conduit/pinned/unmap_news.rs"]
mod unmap_news;
