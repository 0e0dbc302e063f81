//! Ranks, one type for each numbering: in the job, in a team, on a host.
//!
//! Used by every layer. Invariant: a number of one kind becomes one of another only by a table
//! (a team's members, the placement of the job), never by a cast.

use core::fmt;

/// Rank of a process in the job, from 0; GASNet-1 calls it node.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobRank(pub u32);

/// Rank of a process in a team, from 0.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamRank(pub u32);

/// Number of a process among those of the job on its host, from 0, in the order of their ranks
/// in the job.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalRank(pub u32);

macro_rules! rank {
    ($name:ident) => {
        impl $name {
            /// As an index into a table of this numbering.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

rank!(JobRank);
rank!(TeamRank);
rank!(LocalRank);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_rank_prints_as_its_number() {
        assert_eq!(format!("{} {} {:>3}", JobRank(7), TeamRank(0), LocalRank(12)), "7 0  12");
    }

    #[test]
    fn a_rank_is_an_index_of_its_table() {
        let members = [JobRank(3), JobRank(1)];
        assert_eq!(members[TeamRank(1).index()], JobRank(1));
        assert!(members[0] > members[1]);
    }
}
