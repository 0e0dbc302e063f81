//! What a movement in shared memory is: between which ranks data move, and how many slots it
//! takes.
//!
//! Used by `direct` and `roles`. Invariant: it follows from what all ranks pass alike.

use super::counts::slots_of;
use super::request::{CollOperation, CollRequest};
use crate::runtime::scratch::{EAGER_RANKS, slots};

/// Largest operand of a reduction that the root combines alone, in bytes, if all ranks wait for
/// each other; and of one to all that each rank combines for itself.
const MAX_REDUCED: usize = 2048;

/// Largest block of a source that may be copied to slots.
const MAX_EAGER: usize = 4096;
/// Most slots of a movement. A ring has twice as many at least, so that another one can follow.
const MOST_SLOTS: usize = 512;

const _: () = assert!(2 * MOST_SLOTS <= slots(EAGER_RANKS) && 2 * MOST_SLOTS <= slots(2));

/// Between which ranks data move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MovementKind {
    FromRoot,
    ToRoot,
    AllToAll,
    /// No data move: the ranks wait for each other.
    Meeting,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MovementShape {
    pub(super) kind: MovementKind,
    /// Whether all ranks combine a part of a reduction, for the root or for all.
    pub(super) is_split: bool,
    /// Whether a source may be copied to slots when its rank enters. There it needs no segment,
    /// and its rank need not wait for the readers. With `IN_ALLSYNC` it is not copied: others may
    /// write it until they enter.
    pub(super) is_eager: bool,
    /// Whether it is copied wherever it lies: its readers are not awaited, and the client may
    /// change it when its rank has left. Then there is no offset.
    pub(super) is_copied: bool,
    /// Bytes of a source.
    pub(super) source: usize,
    /// How many slots it takes.
    pub(super) slots: usize,
}

impl MovementShape {
    /// Of a request, among this many ranks; `None` for what is no movement.
    pub(super) fn of(request: &CollRequest, ranks: usize) -> Option<MovementShape> {
        let n = request.nbytes;
        let all_wait = request.in_allsync || request.out_allsync;
        let mut is_split = false;
        let kind = match request.operation {
            CollOperation::Broadcast | CollOperation::Scatter => MovementKind::FromRoot,
            CollOperation::Gather => MovementKind::ToRoot,
            CollOperation::Reduce if request.src_array.is_some() => return None,
            CollOperation::Reduce if n > MAX_REDUCED && all_wait => {
                is_split = true;
                MovementKind::AllToAll
            }
            CollOperation::Reduce => MovementKind::ToRoot,
            CollOperation::ReduceAll => {
                is_split = n > MAX_REDUCED;
                MovementKind::AllToAll
            }
            CollOperation::GatherAll | CollOperation::Exchange => MovementKind::AllToAll,
            CollOperation::Barrier => MovementKind::Meeting,
            CollOperation::Scan => return None,
        };
        let source = match request.operation {
            CollOperation::Scatter | CollOperation::Exchange => n.saturating_mul(ranks),
            _ => n,
        };
        let is_read_at_once = match kind {
            MovementKind::FromRoot | MovementKind::ToRoot => true,
            MovementKind::AllToAll => request.operation == CollOperation::ReduceAll && !is_split,
            MovementKind::Meeting => false,
        };
        let is_eager = is_read_at_once
            && n <= MAX_EAGER
            && slots_of(source) <= MOST_SLOTS
            && !request.in_allsync;
        let is_copied = is_eager && !request.out_allsync && !request.out_nosync;
        let slots = match is_eager {
            true => slots_of(source),
            // The offset of the result follows that of the source.
            false => 1 + usize::from(is_split),
        };
        Some(MovementShape { kind, is_split, is_eager, is_copied, source, slots })
    }
}
