//! Who waits for whom in a movement in shared memory, and who must be woken.
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
//! ```
//!
//! `IN_ALLSYNC` and `OUT_ALLSYNC` put "all" in the place of the others, `OUT_NOSYNC` leaves out
//! the last column.

use super::request::{CollOperation, CollRequest};

/// Which ranks must have taken a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    None,
    /// This one.
    Rank(usize),
    All,
}

/// Whom a rank wakes when it has taken a step: those that may sleep until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    None,
    /// All, if every rank has taken the step.
    AllByTheLast,
    All,
}

/// Between which ranks data move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MovementKind {
    FromRoot,
    ToRoot,
    AllToAll,
}

impl MovementKind {
    /// Of a request. `is_split`: all ranks combine a part of a reduction, for the root.
    pub(super) fn of(request: &CollRequest, is_split: bool) -> MovementKind {
        match request.operation {
            CollOperation::Broadcast | CollOperation::Scatter => MovementKind::FromRoot,
            CollOperation::Gather => MovementKind::ToRoot,
            CollOperation::Reduce if !is_split => MovementKind::ToRoot,
            _ => MovementKind::AllToAll,
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MovementRoles {
    /// Whose entry this rank awaits before it copies.
    pub(super) entered: Awaited,
    /// Whose leaving it awaits before its memory belongs to the client again.
    pub(super) left: Awaited,
    /// Whom it wakes when it has entered.
    pub(super) at_entry: Woken,
    /// Whom it wakes when it has left. A rank without room for its offsets awaits all.
    pub(super) at_leaving: Woken,
}

impl MovementRoles {
    /// The roles of a rank. `is_split` as for [`MovementKind::of`].
    pub(super) fn new(request: &CollRequest, is_root: bool, is_split: bool) -> MovementRoles {
        let last = Woken::AllByTheLast;
        let root = Awaited::Rank(request.root as usize);
        let (entered, left, at_entry, at_leaving) =
            match (MovementKind::of(request, is_split), is_root) {
                (MovementKind::FromRoot, true) => (Awaited::None, Awaited::All, Woken::All, last),
                (MovementKind::FromRoot, false) => (root, Awaited::None, Woken::None, last),
                (MovementKind::ToRoot, true) => {
                    (Awaited::All, Awaited::None, Woken::None, Woken::All)
                }
                (MovementKind::ToRoot, false) => (Awaited::None, root, last, last),
                (MovementKind::AllToAll, _) => (Awaited::All, Awaited::All, last, last),
            };
        let mut roles = MovementRoles { entered, left, at_entry, at_leaving };
        if request.in_allsync {
            roles = MovementRoles { entered: Awaited::All, at_entry: last, ..roles };
        }
        if request.out_allsync {
            roles = MovementRoles { left: Awaited::All, at_leaving: last, ..roles };
        } else if request.out_nosync {
            roles = MovementRoles { left: Awaited::None, at_leaving: last, ..roles };
        }
        roles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOVEMENTS: [CollOperation; 6] = [
        CollOperation::Broadcast,
        CollOperation::Scatter,
        CollOperation::Gather,
        CollOperation::GatherAll,
        CollOperation::Exchange,
        CollOperation::Reduce,
    ];

    /// Of every movement: the request, whether it is split, and the roles of the root and of
    /// another rank.
    fn every(mut f: impl FnMut(&CollRequest, bool, [MovementRoles; 2])) {
        for (operation, bits) in MOVEMENTS.into_iter().flat_map(|o| (0..16).map(move |b| (o, b))) {
            let set = |bit: u32| bits & 1 << bit != 0;
            let request = CollRequest {
                in_allsync: set(0),
                out_allsync: set(1),
                out_nosync: set(2) && !set(1),
                ..CollRequest::new(operation, 8)
            };
            let is_split = set(3) && operation == CollOperation::Reduce;
            f(
                &request,
                is_split,
                [true, false].map(|r| MovementRoles::new(&request, r, is_split)),
            );
        }
    }

    #[test]
    fn who_is_awaited_wakes() {
        every(|request, is_split, [root, other]| {
            let what = (request.operation, request.in_allsync, request.out_allsync, is_split);
            if other.entered == Awaited::Rank(0) {
                assert_eq!(root.at_entry, Woken::All, "{what:?}");
            }
            if [root.entered, other.entered].contains(&Awaited::All) {
                assert_eq!(other.at_entry, Woken::AllByTheLast, "{what:?}");
            }
            if other.entered == Awaited::All {
                assert_eq!(root.at_entry, Woken::AllByTheLast, "{what:?}");
            }
            if other.left == Awaited::Rank(0) {
                assert_eq!(root.at_leaving, Woken::All, "{what:?}");
            }
            assert_ne!(root.at_leaving, Woken::None, "{what:?}");
            assert_ne!(other.at_leaving, Woken::None, "{what:?}");
        });
    }

    #[test]
    fn a_rank_awaits_all_that_it_reads_and_all_that_read_its_memory() {
        every(|request, is_split, [root, other]| {
            let from_root =
                matches!(request.operation, CollOperation::Broadcast | CollOperation::Scatter);
            let to_root = !is_split
                && matches!(request.operation, CollOperation::Gather | CollOperation::Reduce);
            let what = (request.operation, request.out_nosync, is_split);
            assert_eq!(root.entered == Awaited::All, !from_root || request.in_allsync, "{what:?}");
            assert_eq!(other.entered == Awaited::None, to_root && !request.in_allsync, "{what:?}");
            if request.out_nosync {
                assert_eq!([root.left, other.left], [Awaited::None; 2], "{what:?}");
            } else {
                assert_eq!(
                    root.left == Awaited::None,
                    to_root && !request.out_allsync,
                    "{what:?}"
                );
                let is_free = from_root && !request.out_allsync;
                assert_eq!(other.left == Awaited::None, is_free, "{what:?}");
            }
            if request.out_allsync {
                assert_eq!([root.left, other.left], [Awaited::All; 2], "{what:?}");
            }
        });
    }
}
