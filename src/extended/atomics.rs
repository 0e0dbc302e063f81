//! Remote atomics: operations on numbers in segments that are atomic with each other.
//!
//! Called by `capi` with checked ranges. Invariant: a processor of the target's host does each
//! operation, always with the same instructions, but a SET in the headers may be a plain store,
//! which is atomic with them too. The processor is the initiator's where the target is mapped
//! there, and the target's, in a handler, elsewhere. So all ranks may operate on one number.

use super::coll::operators::NumberType;
use super::handler_ids::{ATOMIC_REPLY, ATOMIC_REQUEST};
use crate::client_memory::{Dst, RemoteRange, Src, own_memory};
use crate::conduit::{AmMessage, OpId, Outgoing, RefusedAccess};
use crate::rank::JobRank;
use crate::runtime::Ctx;
use crate::runtime::am::AmToken;
use crate::runtime::ops::{ImplicitKind, OpHandle};
use crate::{fault, report};
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use parking_lot::Mutex;

/// By how many bits of `gex_OP_t` the operations that return the old value lie above those that
/// do not.
const FETCHING: u32 = 15;

/// What an operation does, whether it returns the old value or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtomicKind {
    And,
    Or,
    Xor,
    Add,
    Sub,
    Mult,
    Min,
    Max,
    Inc,
    Dec,
    /// Stores the first operand.
    Set,
    /// Stores the second operand where the value is the first.
    Cas,
    Get,
}

/// In the order of the bits of `gex_OP_t`.
const KINDS: [AtomicKind; 13] = [
    AtomicKind::And,
    AtomicKind::Or,
    AtomicKind::Xor,
    AtomicKind::Add,
    AtomicKind::Sub,
    AtomicKind::Mult,
    AtomicKind::Min,
    AtomicKind::Max,
    AtomicKind::Inc,
    AtomicKind::Dec,
    AtomicKind::Set,
    AtomicKind::Cas,
    AtomicKind::Get,
];

/// An operation on a type, without its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicCode {
    number: NumberType,
    kind: AtomicKind,
    fetching: bool,
    /// Number of its bit in `gex_OP_t`.
    bit: u32,
}

impl AtomicCode {
    /// By the value of `gex_OP_t`; `None` for what is no operation of the type.
    pub fn of(number: NumberType, op: u32) -> Option<AtomicCode> {
        let code = AtomicCode::named(number, op)?;
        let AtomicCode { kind, fetching, .. } = code;
        let bitwise = matches!(kind, AtomicKind::And | AtomicKind::Or | AtomicKind::Xor);
        let exists = (kind != AtomicKind::Get || fetching) && (!bitwise || number.is_integer());
        exists.then_some(code)
    }

    /// The same for an operation that exists for the type; `None` for more or fewer than one.
    #[inline(always)]
    pub fn named(number: NumberType, op: u32) -> Option<AtomicCode> {
        if !op.is_power_of_two() {
            return None;
        }
        let bit = op.trailing_zeros();
        let fetching = bit >= FETCHING;
        let kind = *KINDS.get((if fetching { bit - FETCHING } else { bit }) as usize)?;
        Some(AtomicCode { number, kind, fetching, bit })
    }

    /// Whether the old value is returned.
    pub fn is_fetching(self) -> bool {
        self.fetching
    }

    /// Bytes of the number.
    pub fn size(self) -> usize {
        self.number.size()
    }

    /// With which implicit operations it counts.
    fn implicit_kind(self) -> ImplicitKind {
        match (self.kind, self.fetching) {
            (AtomicKind::Set, false) => ImplicitKind::Puts,
            (AtomicKind::Get, _) => ImplicitKind::Gets,
            _ => ImplicitKind::Atomics,
        }
    }

    fn pack(self) -> i32 {
        (self.number as i32) << 8 | self.bit as i32
    }

    fn unpack(word: i32) -> Option<AtomicCode> {
        let number = NumberType::of(1u32.checked_shl(word as u32 >> 8)?)?;
        AtomicCode::of(number, 1u32.checked_shl(word as u32 & 0xff)?)
    }
}

/// The new value of a number of one type, for the operations that computers lack for it.
macro_rules! computed {
    ($kind:expr, $a:expr, $b:expr, $one:expr, $add:expr, $sub:expr, $mult:expr) => {{
        let (a, b) = ($a, $b);
        match $kind {
            AtomicKind::Add => $add(a, b),
            AtomicKind::Sub => $sub(a, b),
            AtomicKind::Inc => $add(a, $one),
            AtomicKind::Dec => $sub(a, $one),
            AtomicKind::Mult => $mult(a, b),
            AtomicKind::Min => a.min(b),
            _ => a.max(b),
        }
    }};
}

macro_rules! integer {
    ($t:ty, $kind:expr, $a:expr, $b:expr) => {
        computed!(
            $kind,
            $a as $t,
            $b as $t,
            1,
            <$t>::wrapping_add,
            <$t>::wrapping_sub,
            <$t>::wrapping_mul
        )
    };
}

macro_rules! float {
    ($t:ty, $kind:expr, $a:expr, $b:expr) => {{
        use core::ops::{Add, Mul, Sub};
        let (a, b) = (<$t>::from_bits($a), <$t>::from_bits($b));
        computed!($kind, a, b, 1.0, <$t>::add, <$t>::sub, <$t>::mul).to_bits()
    }};
}

/// Does an operation on one word and returns the old value.
macro_rules! on_word {
    ($word:expr, $code:expr, $operands:expr, $t:ty, $computed:expr) => {{
        let (word, order) = ($word, Ordering::AcqRel);
        let [a, b] = $operands.map(|operand| operand as $t);
        let integer = $code.number.is_integer();
        match $code.kind {
            AtomicKind::Get => word.load(Ordering::Acquire),
            AtomicKind::Set => word.swap(a, order),
            AtomicKind::Cas => match word.compare_exchange(a, b, order, Ordering::Acquire) {
                Ok(old) | Err(old) => old,
            },
            AtomicKind::And => word.fetch_and(a, order),
            AtomicKind::Or => word.fetch_or(a, order),
            AtomicKind::Xor => word.fetch_xor(a, order),
            AtomicKind::Add if integer => word.fetch_add(a, order),
            AtomicKind::Sub if integer => word.fetch_sub(a, order),
            AtomicKind::Inc if integer => word.fetch_add(1, order),
            AtomicKind::Dec if integer => word.fetch_sub(1, order),
            _ => {
                let mut old = word.load(Ordering::Relaxed);
                while let Err(now) =
                    word.compare_exchange_weak(old, $computed(old, a), order, Ordering::Relaxed)
                {
                    old = now;
                }
                old
            }
        }
    }};
}

impl AtomicCode {
    fn on_u32(self, word: &AtomicU32, operands: [u64; 2]) -> u32 {
        on_word!(word, self, operands, u32, |old: u32, a: u32| match self.number {
            NumberType::I32 => integer!(i32, self.kind, old, a) as u32,
            NumberType::F32 => float!(f32, self.kind, old, a),
            _ => integer!(u32, self.kind, old, a),
        })
    }

    fn on_u64(self, word: &AtomicU64, operands: [u64; 2]) -> u64 {
        on_word!(word, self, operands, u64, |old: u64, a: u64| match self.number {
            NumberType::I64 => integer!(i64, self.kind, old, a) as u64,
            NumberType::F64 => float!(f64, self.kind, old, a),
            _ => integer!(u64, self.kind, old, a),
        })
    }

    /// Does it on the number at `at` and returns the old value; `None` if it is not aligned.
    fn apply(self, at: Dst<'_>, operands: [u64; 2]) -> Option<u64> {
        if fault::on("skip_atomic") {
            return Some(0);
        }
        match self.number.size() {
            4 => at.as_u32().map(|word| u64::from(self.on_u32(word, operands))),
            _ => at.as_u64().map(|word| self.on_u64(word, operands)),
        }
    }
}

/// Stores the low-order bytes of a value; `to` is empty where no result is wanted.
fn store(to: Dst<'_>, value: u64) {
    match to.len() {
        4 => to.copy_array::<4>(Src::from(&(value as u32).to_ne_bytes()[..])),
        8 => to.copy_array::<8>(Src::from(&value.to_ne_bytes()[..])),
        _ => {}
    }
}

/// An operation of which the target has not answered.
#[derive(Debug)]
struct PendingAtomic {
    rank: JobRank,
    op: OpId,
    result: Dst<'static>,
}

#[derive(Debug, Default)]
struct AtomicTable {
    pending: Vec<Option<PendingAtomic>>,
    free: Vec<u32>,
}

/// The remote atomics of a process that are in flight, by number.
#[derive(Debug, Default)]
pub struct Atomics(Mutex<AtomicTable>);

/// How the operation is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicForm {
    /// By its handle.
    Explicit,
    /// With the implicit operations of the thread, or its access region.
    Implicit,
}

/// An operation on the number at `target`.
#[derive(Clone, Copy, Debug)]
pub struct AtomicOperation {
    /// What it does.
    pub code: AtomicCode,
    /// How it is completed.
    pub form: AtomicForm,
    /// The number.
    pub target: RemoteRange,
    /// Its operands, in the low-order bytes.
    pub operands: [u64; 2],
    /// Receives the old value: as large as the number, or empty.
    pub result: Dst<'static>,
}

fn halves(word: u64) -> [i32; 2] {
    [(word >> 32) as i32, word as i32]
}

fn whole(high: i32, low: i32) -> u64 {
    u64::from(high as u32) << 32 | u64::from(low as u32)
}

impl AtomicCode {
    /// Does the operation, if its target is mapped here; else false. `function` names the caller
    /// in messages.
    #[inline(always)]
    pub fn at_once(
        self,
        function: &str,
        target: RemoteRange,
        operands: [u64; 2],
        result: Dst<'_>,
    ) -> bool {
        let Some(here) = target.mapped() else { return false };
        match self.apply(here, operands) {
            Some(old) => store(result, old),
            // Memory of this rank may be outside the segment.
            None => match target.offset() {
                usize::MAX => {
                    misaligned(function, target, format_args!("address {:p}", here.as_ptr()))
                }
                _ => misaligned_in_segment(function, target),
            },
        }
        true
    }
}

impl Atomics {
    fn keep(&self, pending: PendingAtomic) -> u32 {
        let mut table = self.0.lock();
        match table.free.pop() {
            Some(number) => {
                table.pending[number as usize] = Some(pending);
                number
            }
            None => {
                table.pending.push(Some(pending));
                table.pending.len() as u32 - 1
            }
        }
    }

    fn take(&self, number: u32, rank: JobRank) -> Option<PendingAtomic> {
        let mut table = self.0.lock();
        let slot = table.pending.get_mut(number as usize)?;
        let pending = slot.take_if(|pending| pending.rank == rank)?;
        table.free.push(number);
        Some(pending)
    }

    /// Initiates an operation on a number that is not mapped here. INVALID if it is implicit.
    /// `function` names the caller in messages.
    pub fn start(&self, ctx: Ctx, function: &str, operation: AtomicOperation) -> OpHandle {
        let AtomicOperation { code, form, target, operands, result } = operation;
        let first = ctx.endpoint().segments()[target.rank()].base().addr();
        let address = first + target.offset();
        if !address.is_multiple_of(code.size()) {
            match ctx.endpoint().segments().is_everything() {
                true => misaligned(function, target, format_args!("address {address:#x}")),
                false => misaligned_in_segment(function, target),
            }
        }
        let (thread, ops) = (ctx.thread_index(), &ctx.job.ops);
        let (op, handle) = match form {
            AtomicForm::Explicit => {
                let handle = ops.begin(thread, 1);
                (handle.op(), handle)
            }
            AtomicForm::Implicit => {
                (ops.begin_implicit(thread, code.implicit_kind(), 1), OpHandle::INVALID)
            }
        };
        let number = self.keep(PendingAtomic { rank: target.rank(), op, result });
        let [oh, ol] = halves(target.offset() as u64);
        let ([ah, al], [bh, bl]) = (halves(operands[0]), halves(operands[1]));
        let args = [number as i32, code.pack(), oh, ol, ah, al, bh, bl];
        ctx.request(function, target.rank(), &Outgoing::short(ATOMIC_REQUEST, &args));
        handle
    }

    /// The handler of the answer, at the initiator.
    pub(super) fn on_reply(&self, ctx: Ctx, token: &AmToken<'_>, m: &AmMessage<'_>) {
        let &[number, high, low] = m.args else { malformed(m) };
        let Some(pending) = self.take(number as u32, token.source()) else { malformed(m) };
        store(pending.result, whole(high, low));
        ctx.job.ops.complete(pending.op);
    }
}

/// The handler of an operation, at the target.
pub(super) fn on_request(ctx: Ctx, token: &AmToken<'_>, m: &AmMessage<'_>) {
    let &[number, code, oh, ol, ah, al, bh, bl] = m.args else { malformed(m) };
    let Some(code) = AtomicCode::unpack(code) else { malformed(m) };
    let offset = whole(oh, ol) as usize;
    let endpoint = ctx.endpoint();
    let Some(at) = endpoint.own_segment().try_part(offset, code.size()) else { malformed(m) };
    let (address, writes) = (at.as_ptr().addr(), code.kind != AtomicKind::Get);
    if !address.is_multiple_of(code.size()) {
        malformed(m);
    }
    if endpoint.segments().is_everything() && !own_memory::has_word(at, writes) {
        RefusedAccess {
            operation: "a remote atomic",
            bytes: code.size(),
            piece: false,
            initiator: m.source,
            target: endpoint.rank,
            address,
            writes,
        }
        .report();
    }
    let Some(old) = code.apply(at, [whole(ah, al), whole(bh, bl)]) else { malformed(m) };
    let [high, low] = halves(old);
    let args = [number, high, low];
    ctx.reply_to("a remote atomic", token, &Outgoing::short(ATOMIC_REPLY, &args));
}

#[cold]
fn misaligned_in_segment(function: &str, target: RemoteRange) -> ! {
    let offset = target.offset();
    misaligned(function, target, format_args!("offset {offset} of the segment"))
}

#[cold]
fn misaligned(function: &str, target: RemoteRange, place: fmt::Arguments<'_>) -> ! {
    report::fatal(
        format_args!(
            "{function}(): the number at {place} of rank {} is not aligned",
            target.rank()
        ),
        format_args!("Pass an address that is a multiple of the number's size."),
    )
}

fn malformed(m: &AmMessage<'_>) -> ! {
    report::fatal(
        format_args!("a message of rank {} for an atomic is malformed: {:?}", m.source, m.args),
        format_args!("All ranks of a job must use the same version of the library."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(number: NumberType, bit: u32) -> AtomicCode {
        AtomicCode::of(number, 1 << bit).unwrap()
    }

    #[test]
    fn each_operation_computes_what_its_name_says() {
        let on = |number, bit, old: i64, a: i64, b: i64| {
            let word = AtomicU64::new(old as u64);
            let before = code(number, bit).on_u64(&word, [a as u64, b as u64]);
            assert_eq!(before, old as u64);
            word.into_inner() as i64
        };
        let i64s = |bit, old, a| on(NumberType::I64, bit, old, a, 0);
        let all: Vec<i64> = (0..11).map(|bit| i64s(bit, 12, -5)).collect();
        assert_eq!(all, [12 & -5, 12 | -5, 12 ^ -5, 7, 17, -60, -5, 12, 13, 11, -5]);
        assert_eq!(on(NumberType::U64, 6, 12, -5, 0), 12);
        assert_eq!(on(NumberType::I64, 11, 12, 12, 9), 9);
        assert_eq!(on(NumberType::I64, 11, 12, 13, 9), 12);
        assert_eq!(i64s(27, 12, 5), 12);
        let word = AtomicU32::new(1.5f32.to_bits());
        let operand = u64::from(2.0f32.to_bits());
        code(NumberType::F32, 18).on_u32(&word, [operand, 0]);
        assert_eq!(f32::from_bits(word.load(Ordering::Relaxed)), 3.5);
        code(NumberType::F32, 9).on_u32(&word, [operand, 0]);
        assert_eq!(f32::from_bits(word.load(Ordering::Relaxed)), 2.5);
        code(NumberType::F32, 21).on_u32(&word, [operand, 0]);
        assert_eq!(f32::from_bits(word.load(Ordering::Relaxed)), 2.0);
        let word = AtomicU32::new(-3i32 as u32);
        code(NumberType::I32, 6).on_u32(&word, [1, 0]);
        assert_eq!(word.load(Ordering::Relaxed) as i32, -3);
    }

    #[test]
    fn codes_come_back_and_others_are_refused() {
        for (number, bit) in [(NumberType::I32, 0), (NumberType::F64, 18), (NumberType::U64, 27)] {
            let code = code(number, bit);
            assert_eq!(AtomicCode::unpack(code.pack()), Some(code));
        }
        for op in [0, 3, 1 << 12, 1 << 13, 1 << 28, 1 << 31] {
            assert_eq!(AtomicCode::of(NumberType::I32, op), None);
        }
        assert_eq!(AtomicCode::of(NumberType::F64, 1), None);
        assert_eq!(AtomicCode::unpack(-1), None);
    }
}
