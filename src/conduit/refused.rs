//! The report of an access to memory of a rank that is not there, in `GASNET_SEGMENT_EVERYTHING`.
//!
//! Called where the kernel has refused an access: by the network, by the receiver of a Long, by
//! handlers of `extended`. Invariant: one line names operation, initiator, target and address, and
//! the job ends.

use crate::rank::JobRank;
use crate::report;
use core::fmt;

/// Advice about an address that [`is_near_null`].
pub const NULL_BASE: &str = "In EVERYTHING, gasnet_getSegmentInfo and gex_EP_QueryBoundSegmentNB \
                             report a null base: a rank tells others the addresses of its memory.";

/// Whether an address was probably computed from a null base.
pub fn is_near_null(address: usize) -> bool {
    const NEAR: usize = 1 << 20;
    address.cast_signed().unsigned_abs() <= NEAR
}

/// An access to memory of a rank.
#[derive(Clone, Copy, Debug)]
pub struct RefusedAccess {
    /// `a put`, say.
    pub operation: &'static str,
    /// Bytes of the operation, or of this piece of it.
    pub bytes: usize,
    /// Whether the operation may have more bytes: it travels in pieces.
    pub piece: bool,
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
        let remedy = format_args!(
            "Name memory that rank {} has mapped now; what one rank has mapped at an address, \
             another need not have.",
            self.target
        );
        let of_null = format_args!("{remedy} {NULL_BASE}");
        let near_null = is_near_null(self.address);
        report::fatal(format_args!("{self}"), if near_null { of_null } else { remedy })
    }
}

impl fmt::Display for RefusedAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RefusedAccess { operation, bytes, piece, initiator, target, address, writes } = self;
        match piece {
            true => write!(f, "{bytes} bytes of {operation}")?,
            false => write!(f, "{operation} of {bytes} bytes")?,
        }
        let can = if *writes { "written" } else { "read" };
        write!(
            f,
            " by rank {initiator} failed: rank {target} has no {bytes} bytes at {address:#x} that \
             can be {can}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_piece_is_not_called_the_operation() {
        let whole = RefusedAccess {
            operation: "a put",
            bytes: 8,
            piece: false,
            initiator: JobRank(0),
            target: JobRank(1),
            address: 16,
            writes: true,
        };
        let failed = "by rank 0 failed: rank 1 has no 8 bytes at 0x10 that can be written";
        assert_eq!(whole.to_string(), ["a put of 8 bytes ", failed].concat());
        let piece = RefusedAccess { piece: true, ..whole };
        assert_eq!(piece.to_string(), ["8 bytes of a put ", failed].concat());
    }
}
