//! The value of a barrier: what each rank contributes, how contributions merge, what a wait
//! returns.
//!
//! Pure functions, used by both forms of the barrier. Invariant: the rules are those that the
//! test program testbarrierconf checks. They are newer than the text of specification 1.8: flags
//! may differ between notify and wait.

use crate::fault;
use crate::runtime::{GasnetError, GasnetResult};

/// `GASNET_BARRIERFLAG_ANONYMOUS`
pub(super) const ANONYMOUS: i32 = 1;
/// `GASNET_BARRIERFLAG_MISMATCH`
pub(super) const MISMATCH: i32 = 2;

/// What one rank contributes, or all of them merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::extended) enum BarrierValue {
    /// No name.
    Anonymous,
    /// This name.
    Named(i32),
    /// A rank passed the mismatch flag, or two names differ.
    Mismatch,
}

impl BarrierValue {
    /// The contribution of a `gasnet_barrier_notify(id, flags)`.
    pub(in crate::extended) fn of(id: i32, flags: i32) -> BarrierValue {
        if flags & MISMATCH != 0 {
            BarrierValue::Mismatch
        } else if flags & ANONYMOUS != 0 {
            BarrierValue::Anonymous
        } else {
            BarrierValue::Named(id)
        }
    }

    /// Merges two contributions. Associative, commutative and idempotent, so any order and any
    /// overlap give the same.
    #[must_use]
    pub(in crate::extended) fn merge(self, other: BarrierValue) -> BarrierValue {
        match (self, other) {
            (BarrierValue::Anonymous, v) | (v, BarrierValue::Anonymous) => v,
            (BarrierValue::Named(a), BarrierValue::Named(b)) if a == b => self,
            _ => BarrierValue::Mismatch,
        }
    }

    /// Whether `gasnet_barrier_wait(id, flags)` succeeds when this is the merged value of all
    /// ranks.
    pub(super) fn accepts(self, id: i32, flags: i32) -> bool {
        self.merge(BarrierValue::of(id, flags)) != BarrierValue::Mismatch
    }

    /// The result of that wait.
    pub(in crate::extended) fn accept(self, id: i32, flags: i32) -> GasnetResult {
        if self.accepts(id, flags) || fault::on("skip_mismatch") {
            Ok(())
        } else {
            Err(GasnetError::BarrierMismatch)
        }
    }

    /// As 34 bits: 2 of kind, then 32 of name.
    pub(super) fn pack(self) -> u64 {
        match self {
            BarrierValue::Anonymous => 0,
            BarrierValue::Named(id) => 1 << 32 | u64::from(id as u32),
            BarrierValue::Mismatch => 2 << 32,
        }
    }

    /// From [`BarrierValue::pack`]; higher bits are ignored.
    pub(super) fn unpack(bits: u64) -> BarrierValue {
        match bits >> 32 & 3 {
            0 => BarrierValue::Anonymous,
            1 => BarrierValue::Named(bits as u32 as i32),
            _ => BarrierValue::Mismatch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNNAMED: i32 = ANONYMOUS | 8;

    /// Notifies of some ranks, a wait of one of them, and whether it succeeds.
    type RuleRow = (&'static [(i32, i32)], (i32, i32), bool);

    const TABLE: &[RuleRow] = &[
        // The same name everywhere.
        (&[(7, 0), (7, 0), (7, 0)], (7, 0), true),
        (&[(0, 0), (0, 0)], (0, 0), true),
        (&[(-1, 0), (-1, 0)], (-1, 0), true),
        // Anonymous everywhere; the names in the calls do not matter.
        (&[(1, ANONYMOUS), (2, ANONYMOUS)], (3, ANONYMOUS), true),
        (&[(1, UNNAMED), (2, UNNAMED)], (3, UNNAMED), true),
        // Anonymous notify, named wait: all anonymous.
        (&[(1, ANONYMOUS), (2, ANONYMOUS)], (9, 0), true),
        // Anonymous notify, named wait: the name that others contributed, and another.
        (&[(0, ANONYMOUS), (5, 0)], (5, 0), true),
        (&[(0, ANONYMOUS), (5, 0)], (6, 0), false),
        // Named notify, anonymous wait.
        (&[(5, 0), (5, 0)], (0, ANONYMOUS), true),
        (&[(5, 0), (0, ANONYMOUS)], (0, ANONYMOUS), true),
        // Named notify, another name in the wait.
        (&[(5, 0), (5, 0)], (6, 0), false),
        // Two names, with and without anonymous ranks; all ranks see it, whatever they pass.
        (&[(5, 0), (6, 0)], (5, 0), false),
        (&[(5, 0), (6, 0)], (6, 0), false),
        (&[(5, 0), (0, ANONYMOUS), (6, 0)], (0, ANONYMOUS), false),
        (&[(0, ANONYMOUS), (5, 0), (6, 0)], (5, 0), false),
        // A rank passes the mismatch flag to notify; all ranks see it.
        (&[(5, MISMATCH), (5, 0)], (5, 0), false),
        (&[(5, 0), (5, MISMATCH), (5, 0)], (5, 0), false),
        (&[(0, ANONYMOUS), (0, MISMATCH)], (0, ANONYMOUS), false),
        (&[(0, ANONYMOUS | MISMATCH), (0, ANONYMOUS)], (0, ANONYMOUS), false),
        // A rank passes the mismatch flag to wait.
        (&[(5, 0), (5, 0)], (5, MISMATCH), false),
        // A job of one.
        (&[(5, 0)], (5, 0), true),
        (&[(5, 0)], (6, 0), false),
        (&[(5, MISMATCH)], (5, 0), false),
    ];

    #[test]
    fn the_rules() {
        for (row, &(notifies, (id, flags), ok)) in TABLE.iter().enumerate() {
            let forwards = notifies.iter().fold(BarrierValue::Anonymous, |v, &(id, flags)| {
                v.merge(BarrierValue::of(id, flags))
            });
            let backwards =
                notifies.iter().rev().fold(BarrierValue::Anonymous, |v, &(id, flags)| {
                    BarrierValue::of(id, flags).merge(v)
                });
            assert_eq!(forwards, backwards, "row {row}");
            assert_eq!(forwards.accepts(id, flags), ok, "row {row}");
        }
    }

    #[test]
    fn merging_any_way_gives_the_same() {
        let all = [
            BarrierValue::Anonymous,
            BarrierValue::Named(1),
            BarrierValue::Named(2),
            BarrierValue::Mismatch,
        ];
        for a in all {
            assert_eq!(a.merge(a), a);
            assert_eq!(BarrierValue::unpack(a.pack()), a);
            for b in all {
                assert_eq!(a.merge(b), b.merge(a));
                for c in all {
                    assert_eq!(a.merge(b).merge(c), a.merge(b.merge(c)));
                }
            }
        }
        for id in [0, -1, i32::MIN, i32::MAX] {
            assert_eq!(
                BarrierValue::unpack(BarrierValue::Named(id).pack()),
                BarrierValue::Named(id)
            );
        }
    }
}
