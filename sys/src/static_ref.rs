//! A word that holds a reference which lives as long as the process, or none.
//!
//! Used where a static or a signal handler finds an object. Invariant: the word is null or was
//! made of a `&'static T`.

use core::sync::atomic::{AtomicPtr, Ordering};

/// A reference that can be replaced at any time, by any thread. Async-signal-safe.
#[derive(Debug)]
pub struct StaticRef<T: Sync + 'static>(AtomicPtr<T>);

impl<T: Sync + 'static> StaticRef<T> {
    /// No reference.
    pub const fn none() -> StaticRef<T> {
        StaticRef(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// Replaces the reference. Release: a thread that gets it sees what was written before.
    pub fn set(&self, to: Option<&'static T>) {
        let word = to.map_or(core::ptr::null_mut(), |to| core::ptr::from_ref(to).cast_mut());
        self.0.store(word, Ordering::Release);
    }

    /// The reference, if there is one. Acquire, pairs with [`StaticRef::set`].
    #[inline(always)]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or made of a reference that lives as long as the process.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }
}

impl<T: Sync + 'static> Default for StaticRef<T> {
    fn default() -> StaticRef<T> {
        StaticRef::none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_replaced_and_removed() {
        static WORDS: [u32; 2] = [3, 4];
        let word = StaticRef::none();
        assert_eq!(word.get(), None);
        for number in &WORDS {
            word.set(Some(number));
            assert!(word.get().is_some_and(|found| core::ptr::eq(found, number)));
        }
        word.set(None);
        assert_eq!(word.get(), None);
    }
}
