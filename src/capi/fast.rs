//! Fills the record that the inline paths of the headers read.
//!
//! Enabled once by `gasnet_attach`; disabled in forked children. Invariant: a peer is enabled
//! only if its segment is mapped here, and checks, tracing and fault injection are off.

use super::abi::{GASNETI_NEAR, gasneti_abi, gasneti_abi_t};
use crate::rank::JobRank;
use crate::runtime::GasnetJob;
use crate::runtime::checks;
use crate::runtime::segment::Segment;
use crate::{fault, trace};

/// Opens the path to the process `rank`, if its segment is mapped here.
fn open_one(record: &mut gasneti_abi_t, rank: JobRank, s: &Segment) {
    let rank = rank.index();
    if rank < GASNETI_NEAR
        && let Some(distance) = s.distance()
    {
        record.base[rank] = s.base().addr();
        record.distance[rank] = distance;
        record.starts[rank] = s.len().saturating_sub(7);
    }
}

/// Opens the paths.
pub(super) fn open(job: &'static GasnetJob) {
    if fault::any() || checks::on() || trace::on() {
        return;
    }
    // SAFETY: written only here, once, inside gasnet_attach, which no other call may overlap.
    #[allow(clippy::deref_addrof, reason = "a plain borrow of a static is refused")]
    let record = unsafe { &mut *(&raw mut gasneti_abi) };
    for rank in job.team.ranks() {
        open_one(record, rank, &job.endpoint.segments()[rank]);
    }
    record.implicit = job.ops.syncs().as_ptr();
}

/// Makes the headers pass where calls come from, if calls are traced. Called by `gasnet_init`.
pub(super) fn watch() {
    let record = &raw mut gasneti_abi;
    // SAFETY: written inside gasnet_init, which no other call may overlap.
    unsafe { (*record).watched = usize::from(trace::on()) };
}

/// Closes the paths, in a forked child.
pub(super) fn close() {
    let record = &raw mut gasneti_abi;
    // SAFETY: called in a process that has just been forked and has only the calling thread.
    unsafe {
        (*record).starts = [0; GASNETI_NEAR];
        (*record).watched = 0;
        (*record).implicit = core::ptr::null();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr;

    #[test]
    fn closed_where_there_is_no_mapping() {
        let none = [0; GASNETI_NEAR];
        let mut record = gasneti_abi_t {
            implicit: ptr::null(),
            watched: 0,
            reserved: [0; 6],
            base: none,
            starts: none,
            distance: none,
        };
        let (base, here) = (0x7000_0000, 0x1000_0000);
        open_one(&mut record, JobRank(3), &Segment::for_test(base, 0x1000, here));
        assert_eq!((record.base[3], record.starts[3]), (0x7000_0000, 0x0ff9));
        assert_eq!(record.base[3].wrapping_add(record.distance[3]), 0x1000_0000);
        open_one(&mut record, JobRank(4), &Segment::for_test(base, 7, here));
        open_one(&mut record, JobRank(5), &Segment::for_test(base, 0x1000, 0));
        open_one(
            &mut record,
            JobRank(GASNETI_NEAR as u32),
            &Segment::for_test(base, 0x1000, here),
        );
        assert_eq!(record.starts.iter().filter(|&&n| n != 0).count(), 1);
    }
}
