//! The variables that say which rank a process is: their names and meanings.
//!
//! Set by `boot`, for the program that gasnetrun starts and in `gasnet_init`; listed on the pages
//! of the variables. Invariant: the library never reads them.

use std::ffi::CStr;

/// A variable that the library sets in each rank.
#[derive(Clone, Copy, Debug)]
pub struct RankVariable {
    /// Its name.
    pub name: &'static CStr,
    /// What its value means, one sentence.
    pub help: &'static str,
}

/// The rank, from 0.
pub const RANK: RankVariable =
    RankVariable { name: c"GASNET_RANK", help: "Rank of the process in the job, from 0." };

/// Ranks of the job.
pub const SIZE: RankVariable =
    RankVariable { name: c"GASNET_SIZE", help: "Number of ranks of the job." };

/// The rank among those of the host.
pub const LOCAL_RANK: RankVariable = RankVariable {
    name: c"GASNET_LOCAL_RANK",
    help: "Rank of the process among the ranks of its host, from 0.",
};

/// All of them.
pub const RANK_VARIABLES: [RankVariable; 3] = [RANK, SIZE, LOCAL_RANK];

/// Whether this entry `name=...` of an environment is one of them.
pub(super) fn is_rank_entry(entry: &[u8]) -> bool {
    let rest = |v: RankVariable| entry.strip_prefix(v.name.to_bytes());
    RANK_VARIABLES.into_iter().any(|v| rest(v).is_some_and(|rest| rest.starts_with(b"=")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries() {
        assert!(is_rank_entry(b"GASNET_RANK=3") && is_rank_entry(b"GASNET_LOCAL_RANK="));
        assert!(!is_rank_entry(b"GASNET_RANKS=3") && !is_rank_entry(b"GASNET_RANK"));
    }
}
