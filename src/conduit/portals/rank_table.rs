//! Which process of the emulation has which rank, and the report of an access that names two.
//!
//! Used by `emulation` and `remote_ranks`. Invariant: the table is set once, before the first
//! message to another host.

use super::PortalsId;
use crate::conduit::RefusedAccess;
use crate::rank::JobRank;
use crate::report;
use alloc::sync::Arc;
use alloc::vec::Vec;
use portals3::{AccessFault, PtlProcessId};
use std::sync::OnceLock;

/// The rank of each process, once all are known. A process of a job on one host has its rank as
/// its number.
#[derive(Clone, Debug, Default)]
pub(super) struct RankTable(Arc<OnceLock<Vec<PortalsId>>>);

impl RankTable {
    /// Says which processes have which ranks: the addresses of all, by rank.
    pub(super) fn set(&self, all: Vec<PortalsId>) {
        let _ = self.0.set(all);
    }

    /// The rank of a process of the job.
    pub(super) fn rank(&self, process: PortalsId) -> JobRank {
        let all = self.0.get();
        let rank = all.and_then(|all| all.iter().position(|other| *other == process));
        JobRank(rank.map_or(process.pid, |rank| rank as u32))
    }
}

/// Ends the job: the kernel refused an access, as only a descriptor over an address space allows
/// to ask for.
#[cold]
pub(super) fn refused(fault: &AccessFault, ranks: &RankTable) {
    let rank = |PtlProcessId { nid, pid }| ranks.rank(PortalsId { nid, pid });
    match *fault {
        AccessFault::Target { put, initiator, target, address, length } => RefusedAccess {
            operation: if put { "a put" } else { "a get" },
            bytes: length as usize,
            piece: false,
            initiator: rank(initiator),
            target: rank(target),
            address: address as usize,
            writes: put,
        }
        .report(),
        AccessFault::Denied { put, initiator, target, address, length } => {
            let operation = if put { "put" } else { "get" };
            let (initiator, target) = (rank(initiator), rank(target));
            report::fatal(
                format_args!(
                    "a {operation} of {length} bytes by rank {initiator} failed: the system now \
                     denies rank {initiator} the memory of rank {target}, at {address:#x}"
                ),
                format_args!(
                    "After gasnet_init, a rank must not change its user, its capabilities or its \
                     dumpable attribute (prctl)."
                ),
            )
        }
        AccessFault::Initiator { put, address, length } => {
            let (operation, can) = if put { ("put", "read") } else { ("get", "written") };
            report::fatal(
                format_args!(
                    "{length} bytes of a {operation} failed: at {address:#x} this rank has no \
                     memory that can be {can}"
                ),
                format_args!("Pass memory of this rank as the local side, from end to end."),
            )
        }
    }
}
