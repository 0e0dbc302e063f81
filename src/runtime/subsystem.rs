//! The state that the extended layer keeps for a job, and its share in polling.
//!
//! Owned by the job. The extended layer stores its state here at attach. Every
//! poll outside a handler calls [`Subsystem::progress`] while [`SubsystemSlot::want`] is on;
//! it sends the requests that a handler may not send. Invariant: set once, before a client may
//! call.

use alloc::boxed::Box;
use core::any::Any;
use core::fmt::Debug;
use core::sync::atomic::{AtomicU32, Ordering};
use once_cell::race::OnceBox;
use sys::hint::cold_path;

/// State of the layer above, which is called in contexts `C`.
pub trait Subsystem<C>: Send + Sync + Debug {
    /// Called by polls outside handlers while it is wanted ([`SubsystemSlot::want`]); may send
    /// requests.
    fn progress(&self, ctx: C);
    /// Called by a thread that has waited for long: ends the job if shared words of the layer were
    /// overwritten.
    fn check_words(&self);
    /// Whether operations may be incomplete that the layer completes itself, when other threads or
    /// ranks have called.
    fn completes_operations(&self) -> bool;
    /// Itself, for [`SubsystemSlot::get`].
    fn as_any(&self) -> &dyn Any;
}

/// Where a job keeps the state of the layer above.
#[derive(Debug)]
pub struct SubsystemSlot<C: 'static> {
    upper: OnceBox<Box<dyn Subsystem<C>>>,
    /// How many activities of the layer want calls.
    wanted: AtomicU32,
}

impl<C> Default for SubsystemSlot<C> {
    fn default() -> Self {
        SubsystemSlot { upper: OnceBox::new(), wanted: AtomicU32::new(0) }
    }
}

impl<C> SubsystemSlot<C> {
    /// Stores the state.
    ///
    /// # Panics
    /// The second time.
    pub fn set(&self, upper: Box<dyn Subsystem<C>>) {
        assert!(self.upper.set(Box::new(upper)).is_ok(), "a job is attached once");
    }

    /// Whether the state is stored.
    pub fn is_set(&self) -> bool {
        self.upper.get().is_some()
    }

    /// The state, which must have been stored and be of this type.
    pub fn get<T: 'static>(&self) -> &T {
        self.upper
            .get()
            .and_then(|u| u.as_any().downcast_ref())
            .expect("set when the job was attached")
    }

    /// Calls [`Subsystem::check_words`], if the job is attached.
    pub fn check_words(&self) {
        if let Some(upper) = self.upper.get() {
            upper.check_words();
        }
    }

    /// [`Subsystem::completes_operations`]
    pub fn completes_operations(&self) -> bool {
        self.upper.get().is_some_and(|upper| upper.completes_operations())
    }

    /// Switches the calls of [`Subsystem::progress`] on, until this function was called with
    /// false as often as with true.
    pub fn want(&self, wanted: bool) {
        if wanted {
            self.wanted.fetch_add(1, Ordering::Release);
        } else {
            self.wanted.fetch_sub(1, Ordering::Release);
        }
    }

    /// Calls [`Subsystem::progress`] if that is wanted. One load otherwise.
    pub fn progress(&self, ctx: C) {
        if self.wanted.load(Ordering::Acquire) != 0 {
            cold_path();
            if let Some(upper) = self.upper.get() {
                upper.progress(ctx);
            }
        }
    }
}
