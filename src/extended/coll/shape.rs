//! What a movement in shared memory is: between which ranks data move, and how many offsets each
//! rank publishes for it.
//!
//! Used by `direct` and `roles`. Invariant: it follows from what all ranks pass alike.

use super::counts::{OFFSETS, SLOT_BYTES};
use super::request::{CollOperation, CollRequest};

/// Largest operand of a reduction that the root combines alone, in bytes, if all ranks wait for
/// each other; and of one to all that each rank combines for itself.
const MAX_REDUCED: usize = 2048;

/// The most offsets of a movement: a rank has room for twice as many, so that another one can
/// follow.
pub(super) const MOST_OFFSETS: usize = OFFSETS as usize / 2;

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
    /// Bytes of a source.
    pub(super) source: usize,
    /// How many offsets a rank publishes. Each has a slot.
    pub(super) offsets: usize,
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
        let slots = match request.operation {
            CollOperation::Scatter => ranks.div_ceil(blocks_of_a_slot(n).max(1)),
            _ => 1,
        };
        let is_read_at_once = match kind {
            MovementKind::FromRoot | MovementKind::ToRoot => true,
            MovementKind::AllToAll => request.operation == CollOperation::ReduceAll && !is_split,
            MovementKind::Meeting => false,
        };
        let is_eager =
            is_read_at_once && n <= SLOT_BYTES && slots <= MOST_OFFSETS && !request.in_allsync;
        let source = match request.operation {
            CollOperation::Scatter | CollOperation::Exchange => n.saturating_mul(ranks),
            _ => n,
        };
        let offsets = match request.operation {
            _ if is_eager => slots,
            // That of the result follows that of the source.
            CollOperation::Reduce | CollOperation::ReduceAll if is_split => 2,
            _ => 1,
        };
        Some(MovementShape { kind, is_split, is_eager, source, offsets })
    }
}

/// How many blocks of this many bytes a slot holds.
pub(super) fn blocks_of_a_slot(nbytes: usize) -> usize {
    SLOT_BYTES / nbytes.max(1)
}
