//! Which ranks a rank waits for in a movement in shared memory, and which it wakes.
//!
//! Used by `direct` and `movements`. Invariant: it follows from what all ranks pass alike, so
//! a rank that is awaited knows it.
//!
//! ```text
//!                                    a rank copies when       its memory is free when
//!   from the root, at the root       -                        all have left
//!   from the root, at another        the root has entered     -
//!   to the root, at the root         all have entered         -
//!   to the root, at another          -                        the root has left
//!   from all to all                  all have entered         all have left
//!   meeting                          all have entered         -
//! ```
//!
//! No rank is awaited to copy if all know the address of the sources, and may read there. With
//! `OUT_NOSYNC` none is awaited at all then.
//! `IN_ALLSYNC` and `OUT_ALLSYNC` put "all" in the place of the others. `OUT_NOSYNC` leaves out
//! the last column, and so do small sources without `IN_ALLSYNC`, which may pass through slots.

use super::request::{CollOperation, CollRequest};
use super::shape::{MovementKind, MovementShape};

/// Which ranks must have taken a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AwaitedRanks {
    None,
    /// This one.
    Rank(usize),
    All,
}

/// The ranks that a rank wakes when it has taken a step: those that may sleep until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WokenRanks {
    None,
    /// All, if every rank has taken the step.
    AllByTheLast,
    All,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MovementRoles {
    pub(super) shape: MovementShape,
    /// The address of the source of every rank, if this rank needs no others to know it.
    pub(super) common_src: Option<usize>,
    /// No rank awaits another: each does its share when it calls, and counts nothing.
    pub(super) is_alone: bool,
    /// The ranks whose entry this rank awaits before it copies.
    pub(super) entered: AwaitedRanks,
    /// Those whose leaving it awaits before its memory belongs to the client again.
    pub(super) left: AwaitedRanks,
    /// Those that it wakes when it has entered.
    pub(super) at_entry: WokenRanks,
    /// Those that it wakes when it has left. A rank without room for its offsets awaits all.
    pub(super) at_leaving: WokenRanks,
}

impl MovementRoles {
    /// The roles of a rank.
    pub(super) fn new(
        request: &CollRequest,
        shape: MovementShape,
        is_root: bool,
    ) -> MovementRoles {
        let last = WokenRanks::AllByTheLast;
        let root = AwaitedRanks::Rank(request.root as usize);
        let (entered, left, at_entry, at_leaving) = match (shape.kind, is_root) {
            (MovementKind::FromRoot, true) => {
                (AwaitedRanks::None, AwaitedRanks::All, WokenRanks::All, last)
            }
            (MovementKind::FromRoot, false) => (root, AwaitedRanks::None, WokenRanks::None, last),
            (MovementKind::ToRoot, true) => {
                (AwaitedRanks::All, AwaitedRanks::None, WokenRanks::None, WokenRanks::All)
            }
            (MovementKind::ToRoot, false) => (AwaitedRanks::None, root, last, last),
            (MovementKind::AllToAll, _) => (AwaitedRanks::All, AwaitedRanks::All, last, last),
            (MovementKind::Meeting, _) => (AwaitedRanks::All, AwaitedRanks::None, last, last),
        };
        let common_src = request.common_src.filter(|_| !shape.is_split);
        let is_known = match request.operation {
            CollOperation::Gather | CollOperation::GatherAll => request.common_dst.is_some(),
            _ => common_src.is_some(),
        };
        let is_alone = is_known && request.out_nosync && !request.in_allsync;
        let mut roles =
            MovementRoles { shape, common_src, is_alone, entered, left, at_entry, at_leaving };
        if common_src.is_some() {
            roles =
                MovementRoles { entered: AwaitedRanks::None, at_entry: WokenRanks::None, ..roles };
        }
        if request.in_allsync {
            roles = MovementRoles { entered: AwaitedRanks::All, at_entry: last, ..roles };
        }
        if request.out_allsync {
            roles = MovementRoles { left: AwaitedRanks::All, at_leaving: last, ..roles };
        } else if request.out_nosync || shape.is_eager {
            roles = MovementRoles { left: AwaitedRanks::None, at_leaving: last, ..roles };
        }
        roles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOVEMENTS: [CollOperation; 8] = [
        CollOperation::Broadcast,
        CollOperation::Scatter,
        CollOperation::Gather,
        CollOperation::GatherAll,
        CollOperation::Exchange,
        CollOperation::Reduce,
        CollOperation::ReduceAll,
        CollOperation::Barrier,
    ];

    /// Of every movement: the request, its shape, and the roles of the root and of another rank.
    fn every(mut f: impl FnMut(&CollRequest, MovementShape, [MovementRoles; 2])) {
        for (operation, bits) in MOVEMENTS.into_iter().flat_map(|o| (0..16).map(move |b| (o, b))) {
            let set = |bit: u32| bits & 1 << bit != 0;
            let request = CollRequest {
                in_allsync: set(0),
                out_allsync: set(1),
                out_nosync: set(2) && !set(1),
                ..CollRequest::new(operation, if set(3) { 8 } else { 8000 })
            };
            let Some(shape) = MovementShape::of(&request, 3) else { continue };
            f(&request, shape, [true, false].map(|r| MovementRoles::new(&request, shape, r)));
        }
    }

    #[test]
    fn awaited_ranks_wake() {
        every(|request, shape, [root, other]| {
            let what = (request, shape);
            if other.entered == AwaitedRanks::Rank(0) {
                assert_eq!(root.at_entry, WokenRanks::All, "{what:?}");
            }
            if [root.entered, other.entered].contains(&AwaitedRanks::All) {
                assert_eq!(other.at_entry, WokenRanks::AllByTheLast, "{what:?}");
            }
            if other.entered == AwaitedRanks::All {
                assert_eq!(root.at_entry, WokenRanks::AllByTheLast, "{what:?}");
            }
            if other.left == AwaitedRanks::Rank(0) {
                assert_eq!(root.at_leaving, WokenRanks::All, "{what:?}");
            }
            // For its offsets, each waits for all.
            assert_ne!(root.at_leaving, WokenRanks::None, "{what:?}");
            assert_ne!(other.at_leaving, WokenRanks::None, "{what:?}");
        });
    }

    #[test]
    fn a_rank_awaits_all_that_it_reads_and_all_that_read_its_memory() {
        every(|request, shape, [root, other]| {
            let what = (request, shape);
            let (from_root, to_root) =
                (shape.kind == MovementKind::FromRoot, shape.kind == MovementKind::ToRoot);
            assert_eq!(
                root.entered == AwaitedRanks::All,
                !from_root || request.in_allsync,
                "{what:?}"
            );
            assert_eq!(
                other.entered == AwaitedRanks::None,
                to_root && !request.in_allsync,
                "{what:?}"
            );
            let left = [root.left, other.left];
            if request.out_allsync {
                assert_eq!(left, [AwaitedRanks::All; 2], "{what:?}");
            } else if request.out_nosync || shape.is_eager {
                assert_eq!(left, [AwaitedRanks::None; 2], "{what:?}");
            } else {
                let is_meeting = shape.kind == MovementKind::Meeting;
                assert_eq!(
                    left.map(|l| l == AwaitedRanks::None),
                    [to_root || is_meeting, from_root || is_meeting],
                    "{what:?}"
                );
            }
        });
    }

    #[test]
    fn no_rank_awaits_an_address_that_it_knows() {
        every(|request, shape, without| {
            if request.in_allsync {
                return;
            }
            let (common_src, common_dst) = (Some(4096), Some(8192));
            let known = CollRequest { common_src, common_dst, ..*request };
            let with = [true, false].map(|r| MovementRoles::new(&known, shape, r));
            if shape.is_split {
                // The root's result has an address that only the root knows.
                assert_eq!(with, without);
                return;
            }
            for (with, without) in with.into_iter().zip(without) {
                assert_eq!(with.common_src, known.common_src);
                assert_eq!(with.is_alone, request.out_nosync);
                if with.is_alone {
                    assert_eq!(with.left, AwaitedRanks::None, "{request:?}");
                }
                assert_eq!((with.entered, with.at_entry), (AwaitedRanks::None, WokenRanks::None));
                assert_eq!((with.left, with.at_leaving), (without.left, without.at_leaving));
            }
        });
    }
}
