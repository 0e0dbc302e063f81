//! The variables GASNET_RANK, GASNET_SIZE and GASNET_LOCAL_RANK of a process.
//!
//! Called by `launch` for the program that becomes a rank, and in `gasnet_init`. Invariant: a rank
//! has them from the time that its number is known.

use super::placement::Placement;
use crate::env::{LOCAL_RANK, RANK, SIZE};
use std::ffi::{CStr, CString};

/// Names and values for a rank of this placement.
fn values(placement: &Placement) -> [(&'static CStr, u32); 3] {
    [
        (RANK.name, placement.rank().0),
        (SIZE.name, placement.size()),
        (LOCAL_RANK.name, placement.local_rank().0),
    ]
}

/// The variables as `NAME=value`, for the program that becomes this rank.
pub fn for_program(placement: &Placement) -> [CString; 3] {
    values(placement).map(|(name, value)| {
        CString::new(format!("{}={value}", name.to_string_lossy())).unwrap_or_default()
    })
}

/// Sets them in this process, which is a rank.
pub fn set(placement: &Placement) {
    for (name, value) in values(placement) {
        let value = CString::new(value.to_string()).unwrap_or_default();
        // SAFETY: no other thread uses the environment during gasnet_init, as its description
        // demands.
        unsafe { sys::environment::set(name, &value) };
    }
}
