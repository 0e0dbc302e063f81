//! The operations of the library on numbers, for reductions: all types and operations of
//! `GEX_DT_*` and `GEX_OP_*` that combine.
//!
//! Chosen by `capi`, called by `request`. Invariant: results overlay neither operand, and the
//! areas have the same length, a multiple of the number's size.

use crate::client_memory::{Dst, Src};

/// `to = left op right`, number by number.
pub type NumberFn = fn(Dst<'_>, Src<'_>, Src<'_>);

/// A type of numbers (`gex_DT_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberType {
    /// `GEX_DT_I32`
    I32,
    /// `GEX_DT_U32`
    U32,
    /// `GEX_DT_I64`
    I64,
    /// `GEX_DT_U64`
    U64,
    /// `GEX_DT_FLT`
    F32,
    /// `GEX_DT_DBL`
    F64,
}

impl NumberType {
    /// By the bit of `gex_DT_t`.
    pub fn of(dt: u32) -> Option<NumberType> {
        let all = [
            NumberType::I32,
            NumberType::U32,
            NumberType::I64,
            NumberType::U64,
            NumberType::F32,
            NumberType::F64,
        ];
        all.into_iter().find(|&t| dt == 1 << t as u32)
    }

    /// Bytes of a number.
    pub fn size(self) -> usize {
        match self {
            NumberType::I32 | NumberType::U32 | NumberType::F32 => 4,
            NumberType::I64 | NumberType::U64 | NumberType::F64 => 8,
        }
    }

    /// Whether it has bitwise operations.
    pub fn is_integer(self) -> bool {
        !matches!(self, NumberType::F32 | NumberType::F64)
    }
}

/// Bits of `gex_OP_t`.
pub mod op {
    /// `GEX_OP_AND`
    pub const AND: u32 = 1;
    /// `GEX_OP_OR`
    pub const OR: u32 = 1 << 1;
    /// `GEX_OP_XOR`
    pub const XOR: u32 = 1 << 2;
    /// `GEX_OP_ADD`
    pub const ADD: u32 = 1 << 3;
    /// `GEX_OP_MULT`
    pub const MULT: u32 = 1 << 5;
    /// `GEX_OP_MIN`
    pub const MIN: u32 = 1 << 6;
    /// `GEX_OP_MAX`
    pub const MAX: u32 = 1 << 7;
}

/// Combines all numbers of two areas.
fn each<const N: usize>(
    to: Dst<'_>,
    left: Src<'_>,
    right: Src<'_>,
    f: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    for at in (0..to.len()).step_by(N) {
        let (mut a, mut b) = ([0; N], [0; N]);
        Dst::from(&mut a[..]).copy_array::<N>(left.part(at, N));
        Dst::from(&mut b[..]).copy_array::<N>(right.part(at, N));
        to.part(at, N).copy_array::<N>(Src::from(&f(a, b)[..]));
    }
}

macro_rules! number {
    ($t:ty, $f:expr) => {
        Some(|to, left, right| {
            each(to, left, right, |a, b| {
                let f: fn($t, $t) -> $t = $f;
                f(<$t>::from_ne_bytes(a), <$t>::from_ne_bytes(b)).to_ne_bytes()
            });
        })
    };
}

macro_rules! integer {
    ($t:ty, $op:expr) => {
        match $op {
            op::AND => number!($t, |a, b| a & b),
            op::OR => number!($t, |a, b| a | b),
            op::XOR => number!($t, |a, b| a ^ b),
            op::ADD => number!($t, |a, b| a.wrapping_add(b)),
            op::MULT => number!($t, |a, b| a.wrapping_mul(b)),
            op::MIN => number!($t, |a, b| a.min(b)),
            op::MAX => number!($t, |a, b| a.max(b)),
            _ => None,
        }
    };
}

macro_rules! float {
    ($t:ty, $op:expr) => {
        match $op {
            op::ADD => number!($t, |a, b| a + b),
            op::MULT => number!($t, |a, b| a * b),
            op::MIN => number!($t, |a, b| a.min(b)),
            op::MAX => number!($t, |a, b| a.max(b)),
            _ => None,
        }
    };
}

/// The function that combines numbers of a type; `None` if the type has no such operation.
pub fn number_fn(t: NumberType, operation: u32) -> Option<NumberFn> {
    match t {
        NumberType::I32 => integer!(i32, operation),
        NumberType::U32 => integer!(u32, operation),
        NumberType::I64 => integer!(i64, operation),
        NumberType::U64 => integer!(u64, operation),
        NumberType::F32 => float!(f32, operation),
        NumberType::F64 => float!(f64, operation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combine<const N: usize>(t: NumberType, operation: u32, a: [u8; N], b: [u8; N]) -> [u8; N] {
        let mut to = [0; N];
        let f = number_fn(t, operation).unwrap();
        f(Dst::from(&mut to[..]), Src::from(&a[..]), Src::from(&b[..]));
        to
    }

    #[test]
    fn numbers_are_combined_as_their_type_says() {
        let i = |op, a: i32, b: i32| {
            i32::from_ne_bytes(combine(NumberType::I32, op, a.to_ne_bytes(), b.to_ne_bytes()))
        };
        assert_eq!((i(op::MIN, -1, 1), i(op::MAX, -1, 1), i(op::MULT, -3, 5)), (-1, 1, -15));
        let u = |op, a: u64, b: u64| {
            u64::from_ne_bytes(combine(NumberType::U64, op, a.to_ne_bytes(), b.to_ne_bytes()))
        };
        assert_eq!((u(op::MIN, u64::MAX, 1), u(op::XOR, 6, 3), u(op::ADD, 2, 3)), (1, 5, 5));
        let d = |op, a: f64, b: f64| {
            f64::from_ne_bytes(combine(NumberType::F64, op, a.to_ne_bytes(), b.to_ne_bytes()))
        };
        assert_eq!((d(op::ADD, 0.5, 2.0), d(op::MAX, -2.0, 1.0)), (2.5, 1.0));
    }

    #[test]
    fn floats_have_no_bits() {
        assert!(number_fn(NumberType::F32, op::AND).is_none());
        assert!(NumberType::of(3).is_none());
        assert_eq!(NumberType::of(1 << 5), Some(NumberType::F64));
    }
}
