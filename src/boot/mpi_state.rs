//! Whether this program has MPI, and whether MPI is initialised.
//!
//! Used where `boot` shares a launcher's service with MPI. The library does not depend on MPI: its
//! functions are looked up among those that the program has loaded.

use core::ffi::{CStr, c_int, c_void};

/// `MPI_Initialized` and `MPI_Finalized`, in every MPI; they may be called at any time.
type FlagFunction = extern "C" fn(*mut c_int) -> c_int;

/// Whether MPI is initialised; `None` if the program has no MPI.
pub(super) fn is_initialised() -> Option<bool> {
    flag(c"MPI_Initialized")
}

/// Whether the program may call MPI now.
pub(super) fn is_usable() -> bool {
    is_initialised() == Some(true) && flag(c"MPI_Finalized") == Some(false)
}

fn flag(name: &CStr) -> Option<bool> {
    let f = sys::library::symbol(name)?.as_ptr();
    // SAFETY: the functions of these names have this type.
    let f = unsafe { core::mem::transmute::<*mut c_void, FlagFunction>(f) };
    let mut flag = 0;
    Some(f(&mut flag) == 0 && flag != 0)
}
