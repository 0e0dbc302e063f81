//! The C interface of Portals 3.3 over crate `portals3`: `libportals3` and `portals3.h`.
//!
//! Each function checks what C can get wrong: null pointers, handles of another kind, values
//! outside an enumeration. It then calls one method of [`portals3::NetworkInterface`] and
//! translates the result. A process has one network interface, since there is one network.
//!
//! | file | what it owns |
//! |---|---|
//! | `abi` | the types and constants of `portals3.h` |
//! | `state` | the library's state in this process: initialised or not, the interface |
//! | `convert` | handles, descriptors, events, error codes, from one side to the other |
//! | `ni`, `me`, `md`, `eq`, `ops` | the calls of the specification, by object |
//! | `job` | the processes of the job, as the launcher passes them |
//! | `rank` | the calls about ranks |
//! | `text` | names of errors, events and failures |
//! | `bin/ptlrun` | starts the processes of a job |
//!
//! # Safety
//! As in C:
//! - A pointer that is not null is valid for what the function does with it.
//! - The memory of a descriptor is valid until the descriptor is unlinked.
//! - No other call runs while `PtlNIFini` closes the interface or `PtlFini` runs.
//!
//! Crate `gasnet` never links this library, so a binding to a libportals never meets the
//! emulation by accident.
#![allow(non_snake_case, clippy::too_many_arguments)]

pub mod abi;
mod convert;
pub mod eq;
mod job;
pub mod md;
pub mod me;
pub mod ni;
pub mod ops;
pub mod rank;
mod state;
pub mod text;

/// Defines exported functions. The body evaluates to a `Result<(), Code>`, which becomes the
/// returned number.
macro_rules! calls {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$meta])*
            /// # Safety
            /// That of the [crate](crate#safety).
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> core::ffi::c_int {
                $crate::convert::answer(|| $body)
            }
        )*
    };
}
pub(crate) use calls;
