//! The lock of a Python interpreter that this process has loaded. Called by `boot::fork`.
//!
//! Python code that calls the library by `ctypes` gives up the interpreter's lock meanwhile, and
//! another thread takes it. A fork in that moment copies a lock whose owner the copy does not
//! have: the copy would wait for it forever. So the process that forks takes the lock before and
//! gives it up afterwards, by the functions that Python (3.7 and later) has for this. They are
//! looked up by name: a process without an interpreter has none.

use crate::library::symbol;
use core::ffi::{CStr, c_int, c_void};
use core::ptr::NonNull;

/// The lock of the interpreter, held by the calling thread.
#[derive(Debug)]
pub struct PythonLock {
    /// What the interpreter wants back.
    before: c_int,
    after_in_child: unsafe extern "C" fn(),
    give_up: unsafe extern "C" fn(c_int),
}

/// A function of the interpreter without arguments or result.
type Action = unsafe extern "C" fn();
/// One that returns an int.
type Question = unsafe extern "C" fn() -> c_int;
/// One that takes an int.
type Giver = unsafe extern "C" fn(c_int);

/// The function of this name.
///
/// # Safety
/// `F` must be the type of a pointer to that function.
unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>()) };
    let address = symbol(name)?;
    // SAFETY: of the same size, and of that type (`# Safety`).
    Some(unsafe { core::mem::transmute_copy(&address) })
}

impl PythonLock {
    /// Takes the lock and prepares the interpreter for a fork; `None` if there is no interpreter.
    pub fn take() -> Option<PythonLock> {
        // SAFETY: the types of this and the following functions are those in Python's manual.
        let is_running: Question = unsafe { function(c"Py_IsInitialized") }?;
        // SAFETY: as above.
        let take: Question = unsafe { function(c"PyGILState_Ensure") }?;
        // SAFETY: as above.
        let prepare: Action = unsafe { function(c"PyOS_BeforeFork") }?;
        // SAFETY: as above.
        let after_in_child: Action = unsafe { function(c"PyOS_AfterFork_Child") }?;
        // SAFETY: as above.
        let give_up: Giver = unsafe { function(c"PyGILState_Release") }?;
        // SAFETY: it may be called at any time.
        if unsafe { is_running() } == 0 {
            return None;
        }
        // SAFETY: the interpreter runs.
        let before = unsafe { take() };
        // SAFETY: this thread holds the lock.
        unsafe { prepare() };
        Some(PythonLock { before, after_in_child, give_up })
    }

    /// In the child of a fork: makes the interpreter forget its other threads, which are not here.
    pub fn after_fork(&self) {
        // SAFETY: this thread holds the lock, and `take` has prepared the interpreter.
        unsafe { (self.after_in_child)() };
    }

    /// Gives up the lock, unless the thread had it before.
    pub fn give_up(self) {
        // SAFETY: this thread holds the lock, and this is what the taking returned.
        unsafe { (self.give_up)(self.before) };
    }
}
