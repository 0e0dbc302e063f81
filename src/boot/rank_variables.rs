//! The variables GASNET_RANK, GASNET_SIZE and GASNET_LOCAL_RANK of a process.
//!
//! Called by `launch` for the program that becomes a rank, and in `gasnet_init`. Invariant: a rank
//! has them from the time that its number is known.

#[cfg(feature = "hosted")]
use super::host_share::RankPlace;
use super::placement::Placement;
use crate::env::{LOCAL_RANK, RANK, SIZE};
use crate::rank::{JobRank, LocalRank};
use std::ffi::{CStr, CString};

/// Names and values for a rank.
fn values(rank: JobRank, size: u32, local_rank: LocalRank) -> [(&'static CStr, u32); 3] {
    [(RANK.name, rank.0), (SIZE.name, size), (LOCAL_RANK.name, local_rank.0)]
}

/// The variables as `NAME=value`, for the program that becomes this rank.
#[cfg(feature = "hosted")]
pub(super) fn for_program(place: RankPlace) -> [CString; 3] {
    values(place.rank, place.size, place.local_rank).map(|(name, value)| {
        CString::new(format!("{}={value}", name.to_string_lossy())).unwrap_or_default()
    })
}

/// Sets them in this process, which is a rank.
pub fn set(placement: &Placement) {
    for (name, value) in values(placement.rank(), placement.size(), placement.local_rank()) {
        let value = CString::new(value.to_string()).unwrap_or_default();
        // SAFETY: no other thread uses the environment during gasnet_init, as its description
        // demands.
        unsafe { sys::environment::set(name, &value) };
    }
}
