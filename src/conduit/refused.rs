//! The report of an access to memory of a rank that is not there, in `GASNET_SEGMENT_EVERYTHING`.
//!
//! Called where the kernel has refused an access: by the network, by the receiver of a Long, by
//! handlers of `extended`. Invariant: one line names operation, initiator, target and address, and
//! the job ends.

use crate::rank::JobRank;
use crate::report;

/// An access to memory of a rank.
#[derive(Clone, Copy, Debug)]
pub struct RefusedAccess {
    /// `a put`, say.
    pub operation: &'static str,
    /// Bytes of the operation.
    pub bytes: usize,
    /// The rank that began it.
    pub initiator: JobRank,
    /// The rank whose memory it named.
    pub target: JobRank,
    /// Its first address there.
    pub address: usize,
    /// Whether it writes; else it reads.
    pub writes: bool,
}

impl RefusedAccess {
    /// Ends the job.
    #[cold]
    pub fn report(&self) -> ! {
        let RefusedAccess { operation, bytes, initiator, target, address, writes } = self;
        let can = if *writes { "written" } else { "read" };
        report::fatal(
            format_args!(
                "{operation} of {bytes} bytes by rank {initiator} failed: rank {target} has no \
                 {bytes} bytes at {address:#x} that can be {can}"
            ),
            format_args!(
                "Name memory that rank {target} has mapped now; what one rank has mapped at an \
                 address, another need not have."
            ),
        )
    }
}
