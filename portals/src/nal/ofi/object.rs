//! Objects of libfabric: how they are closed.
//!
//! Used by [`super::endpoint`] and [`super::opening`]. Invariant: an object is closed once.

use core::ptr::NonNull;

use super::bindings::Fid;

/// Closes an object of the library. False: the library still uses it.
///
/// # Safety
/// It is open, is closed once, and nothing that depends on it is open.
pub(super) unsafe fn close<T>(object: NonNull<T>) -> bool {
    let fid = object.cast::<Fid>().as_ptr();
    // SAFETY: each object begins with its Fid; see above.
    unsafe { ((*(*fid).ops).close)(fid) == 0 }
}

/// An object that is closed if what was to use it cannot be opened.
pub(super) struct Unfinished<T>(pub(super) NonNull<T>);

impl<T> Unfinished<T> {
    pub(super) fn keep(self) -> NonNull<T> {
        let object = self.0;
        core::mem::forget(self);
        object
    }
}

impl<T> Drop for Unfinished<T> {
    fn drop(&mut self) {
        // SAFETY: just opened; values of this type are dropped in the reverse order.
        unsafe { close(self.0) };
    }
}
