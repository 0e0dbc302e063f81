//! What the room above keeps for a job, and its share in polling.
//!
//! Owned by [`super::Job`]; the extended room puts its state here when a job is attached and asks to be called by every
//! poll while it has something to send that no handler may send. Invariant: set at most once, before any client
//! may call.

use super::threads::Ctx;
use alloc::boxed::Box;
use core::any::Any;
use core::fmt::Debug;
use core::sync::atomic::{AtomicBool, Ordering};
use once_cell::race::OnceBox;

/// State of the room above.
pub trait Upper: Send + Sync + Debug {
    /// Called by polls outside handlers while [`UpperSlot::want`] is on; may send requests.
    fn progress(&self, ctx: Ctx);
    /// Itself, for [`UpperSlot::get`].
    fn as_any(&self) -> &dyn Any;
}

/// Where a job keeps the state of the room above.
#[derive(Debug, Default)]
pub struct UpperSlot {
    upper: OnceBox<Box<dyn Upper>>,
    wanted: AtomicBool,
}

impl UpperSlot {
    /// Puts the state there.
    ///
    /// # Panics
    /// The second time.
    pub fn set(&self, upper: Box<dyn Upper>) {
        assert!(self.upper.set(Box::new(upper)).is_ok(), "a job is attached once");
    }

    /// The state, which must be there and of this type.
    pub fn get<T: 'static>(&self) -> &T {
        self.upper.get().and_then(|u| u.as_any().downcast_ref()).expect("set when the job was attached")
    }

    /// Switches the calls of [`Upper::progress`] on or off.
    pub fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Release);
    }

    /// Calls [`Upper::progress`] if that is wanted. One load otherwise.
    #[inline]
    pub fn progress(&self, ctx: Ctx) {
        if self.wanted.load(Ordering::Acquire) {
            if let Some(upper) = self.upper.get() {
                upper.progress(ctx);
            }
        }
    }
}
