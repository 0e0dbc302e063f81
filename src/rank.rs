//! Ranks, one type for each numbering: in the job, in a team, on a host.
//!
//! Used by every layer. Conversions are in `extended::members` and `runtime::team` (team and
//! job), `boot::placement` and, in a supervisor, `boot::host_share` (host and job). Invariant: no
//! other code converts a number of one kind to another.

use alloc::boxed::Box;
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

/// A rank as a client names it.
#[derive(Clone, Copy, Debug)]
pub struct NamedRank(pub u32);

impl fmt::Display for NamedRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u32::MAX => f.write_str("GEX_RANK_INVALID"),
            rank => fmt::Display::fmt(&rank, f),
        }
    }
}

macro_rules! table {
    ($name:ident, $rank:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name<T>(Box<[T]>);

        impl<T> $name<T> {
            /// The entries in the order of their ranks.
            pub fn as_slice(&self) -> &[T] {
                &self.0
            }

            /// The entries in the order of their ranks.
            pub fn iter(&self) -> core::slice::Iter<'_, T> {
                self.0.iter()
            }

            /// The entries, each with its rank.
            pub fn ranked(&self) -> impl Iterator<Item = ($rank, &T)> {
                (0..).map($rank).zip(&self.0)
            }
        }

        impl<T> core::ops::Index<$rank> for $name<T> {
            type Output = T;
            fn index(&self, rank: $rank) -> &T {
                &self.0[rank.index()]
            }
        }

        impl<T> core::ops::IndexMut<$rank> for $name<T> {
            fn index_mut(&mut self, rank: $rank) -> &mut T {
                &mut self.0[rank.index()]
            }
        }

        impl<T> FromIterator<T> for $name<T> {
            fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
                $name(entries.into_iter().collect())
            }
        }
    };
}

table!(ByJobRank, JobRank, "One entry for each rank of the job.");
table!(ByLocalRank, LocalRank, "One entry for each rank of this host.");

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
