//! What the ranks of a job agree on before they register memory on demand.
//!
//! Called by `runtime::start`. Invariants: regions have one size in the whole job, since a rank
//! names bytes of one region of its peer. The ranks of a host register the same number of bytes,
//! since their arenas have one size. All else each rank decides by what its own system allows.

use crate::boot::bootstrap::Bootstrap;
use crate::rank::JobRank;
use crate::report;
use alloc::vec::Vec;

/// What every rank gives. Collective.
fn exchange(boot: &Bootstrap, mine: u64) -> Vec<(JobRank, u64)> {
    let all = boot.exchange.exchange(&mine.to_ne_bytes());
    let number = |b: &Vec<u8>| b.as_slice().try_into().map_or(0, u64::from_ne_bytes);
    all.ranked().map(|(rank, bytes)| (rank, number(bytes))).collect()
}

/// The least of what the ranks of this host may register, in bytes, of which this rank may
/// register `own`. Collective; its own where the ranks cannot exchange anything yet, and share no
/// arena.
pub(super) fn least_of_host(boot: &Bootstrap, own: u64) -> u64 {
    if boot.network_start.is_some() {
        return own;
    }
    let place = |rank| boot.placement.place_of(rank).host;
    let here = place(boot.placement.rank());
    let all = exchange(boot, own).into_iter();
    all.filter(|&(rank, _)| place(rank) == here).fold(own, |least, (_, bytes)| least.min(bytes))
}

/// The size of regions in bytes: the least of all ranks. `own`: that of this rank; `None` where
/// data travel in active messages. Collective; ends the job if that differs.
pub(super) fn region_bytes(boot: &Bootstrap, own: Option<usize>) -> Option<usize> {
    let all = exchange(boot, own.map_or(0, |bytes| bytes as u64));
    let differs = |&&(_, bytes): &&(JobRank, u64)| (bytes == 0) != own.is_none();
    if let Some((other, _)) = all.iter().find(differs) {
        let (yes, no) = match own {
            Some(_) => (boot.placement.rank(), *other),
            None => (*other, boot.placement.rank()),
        };
        report::fatal(
            format_args!(
                "rank {yes} registers memory for its peers on demand, rank {no} does not"
            ),
            format_args!("Give all ranks the same GASNET_USE_FIREHOSE and the same library."),
        );
    }
    own.and(all.into_iter().map(|(_, bytes)| bytes as usize).min())
}
