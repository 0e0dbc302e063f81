//! Whether all processes of a team pass the same arguments to a collective, with debug checks.
//!
//! Called by `Coll::start`, and by the handler of the messages. Each process tells the next one
//! of its team what it has called: around the ring, two that differ have neighbours that differ.
//! Invariant: a call is kept until the neighbour's is known, or the other way round; then the two
//! are compared.

use super::CollCall;
use super::inbox::{CollMessage, halves, overwritten};
use super::request::{CollId, CollOperation, CollRequest, ReduceOperator};
use crate::client_memory::Src;
use crate::conduit::AmMessage;
use crate::extended::handler_ids::COLL_CALLED;
use crate::extended::messages::{checksum, request, without_checksum};
use crate::rank::{JobRank, TeamRank};
use crate::report;
use crate::runtime::Ctx;
use crate::tools::constant_names::{DataTypes, Operations};
use alloc::collections::BTreeMap;
use core::fmt;
use parking_lot::Mutex;

/// Calls that are kept at most. A neighbour whose calls are not checked tells nothing.
const MOST_KEPT: usize = 4096;

/// Words of a record.
const WORDS: usize = 8;

/// The names of [`super::CollOperation`], by number.
const OPERATIONS: [&str; 9] = [
    "a broadcast",
    "a scatter",
    "a gather",
    "a gather_all",
    "an exchange",
    "a reduce",
    "a scan",
    "a barrier",
    "a reduce to all",
];

/// Those that have a root.
const HAVE_ROOTS: [CollOperation; 4] = [
    CollOperation::Broadcast,
    CollOperation::Scatter,
    CollOperation::Gather,
    CollOperation::Reduce,
];

const IN_ALLSYNC: i32 = 1;
const OUT_ALLSYNC: i32 = 2;
const INCLUSIVE: i32 = 4;
/// The kind of a reduction by a function of a client of GASNet-EX.
const CLIENT_FUNCTION: i32 = i32::MIN;

/// What the processes must pass alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallRecord([i32; WORDS]);

impl CallRecord {
    fn of(request: &CollRequest) -> CallRecord {
        let flag = |is: bool, bit: i32| if is { bit } else { 0 };
        let flags = flag(request.in_allsync, IN_ALLSYNC)
            | flag(request.out_allsync, OUT_ALLSYNC)
            | flag(request.inclusive, INCLUSIVE);
        // Functions may lie elsewhere in another process.
        let (kind, elem_size) = request.reduction.map_or((0, 0), |reduction| {
            let kind = match reduction.operator {
                ReduceOperator::Builtin { code, .. } => code as i32,
                ReduceOperator::Registered { flags, .. } => -1 - flags,
                ReduceOperator::InPlace { .. } => CLIENT_FUNCTION,
            };
            (kind, reduction.elem_size)
        });
        let array = [request.src_array, request.dst_array].map(|array| {
            array.map_or(0, |array| checksum(array.block_and_offset().map(halves).as_flattened()))
        });
        let [high, low] = halves(request.nbytes);
        CallRecord([
            request.operation as i32 | flags << 8,
            request.root as i32,
            high,
            low,
            elem_size as i32,
            kind,
            array[0],
            array[1],
        ])
    }
}

impl fmt::Display for CallRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [operation, root, high, low, elem_size, kind, array, other_array] = self.0;
        let name = OPERATIONS.get((operation & 0xff) as usize).unwrap_or(&"something else");
        let nbytes = u64::from(high as u32) << 32 | u64::from(low as u32);
        // A barrier has nothing else.
        if operation & 0xff == CollOperation::Barrier as i32 {
            return f.write_str(name);
        }
        write!(f, "{name} of {nbytes} bytes")?;
        if HAVE_ROOTS.iter().any(|rooted| operation & 0xff == *rooted as i32) {
            write!(f, " with root {root}")?;
        }
        if elem_size != 0 {
            write!(f, ", elements of {elem_size} bytes")?;
        }
        match kind {
            0 => {}
            CLIENT_FUNCTION => write!(f, ", a function of the client")?,
            kind if kind < 0 => write!(f, ", a registered function with flags {}", -1 - kind)?,
            kind => {
                let (dt, op) = (DataTypes(kind as u32 >> 8), Operations(kind as u32 & 0xff));
                write!(f, ", {dt}, {op}")?;
            }
        }
        if array != 0 || other_array != 0 {
            write!(f, ", arrays in blocks (layouts {array:x}, {other_array:x})")?;
        }
        let marks =
            [(IN_ALLSYNC, "IN_ALLSYNC"), (OUT_ALLSYNC, "OUT_ALLSYNC"), (INCLUSIVE, "inclusive")];
        for (_, mark) in marks.iter().filter(|(bit, _)| operation >> 8 & bit != 0) {
            write!(f, ", {mark}")?;
        }
        Ok(())
    }
}

/// One side of a comparison, which waits for the other one.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// The call of this process, and its function.
    Own(CallRecord, &'static str),
    /// The call of the process before it.
    Theirs(CallRecord),
}

/// The calls of this process and of those before it that are not compared yet.
#[derive(Debug, Default)]
pub(super) struct CollAgreement {
    known: Mutex<BTreeMap<CollId, Known>>,
}

impl CollAgreement {
    /// Tells the next process of the team of this call, and compares it with that of the one
    /// before.
    #[cold]
    pub(super) fn called(&self, ctx: Ctx, call: &CollCall, id: CollId) {
        let members = &call.view().members;
        let (me, size) = (members.me().0, members.size());
        if size == 1 {
            return;
        }
        let (own, function) = (CallRecord::of(&call.request), call.function);
        let previous = members.job_rank(TeamRank((me + size - 1) % size));
        let next = members.job_rank(TeamRank((me + 1) % size));
        if let Some(Known::Theirs(theirs)) = self.meet(id, Known::Own(own, function)) {
            compare(function, own, theirs, previous);
        }
        let mut args = [0; WORDS + 3];
        args[..2].copy_from_slice(&[id.context as i32, id.number as i32]);
        args[2..WORDS + 2].copy_from_slice(&own.0);
        args[WORDS + 2] = checksum(&args[..WORDS + 2]);
        request(ctx, function, next, COLL_CALLED, &args, Src::empty());
    }

    /// The handler of what [`CollAgreement::called`] sends.
    pub(super) fn on_called(&self, m: &AmMessage<'_>) {
        let words = without_checksum(m.args).and_then(|args| args.split_first_chunk::<2>());
        let Some((&[context, number], record)) = words else { overwritten(&CollMessage::of(m)) };
        let Ok(theirs) = record.try_into().map(CallRecord) else {
            overwritten(&CollMessage::of(m))
        };
        let id = CollId { context: context as u32, number: number as u32 };
        if let Some(Known::Own(own, function)) = self.meet(id, Known::Theirs(theirs)) {
            compare(function, own, theirs, m.source);
        }
    }

    /// Takes the other side of this one; keeps this one if there is none.
    fn meet(&self, id: CollId, one: Known) -> Option<Known> {
        let mut known = self.known.lock();
        let other = known.remove(&id);
        if other.is_none() {
            known.insert(id, one);
            if known.len() > MOST_KEPT {
                known.pop_first();
            }
        }
        other
    }
}

fn compare(function: &str, own: CallRecord, theirs: CallRecord, other: JobRank) {
    if own != theirs {
        report::fatal(
            format_args!(
                "{function}(): this rank passes other arguments than rank {other}: here {own}; there {theirs}"
            ),
            format_args!(
                "All ranks must call the collectives of a team in the same order with the same root, size, type and flags."
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BlockCyclic, Reduction};
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_record_says_what_differs() {
        let one =
            CollRequest { root: 3, ..CollRequest::new(CollOperation::Broadcast, 5 << 32 | 7) };
        let text = CallRecord::of(&one).to_string();
        assert_eq!(text, format!("a broadcast of {} bytes with root 3", (5u64 << 32) + 7));
        let reduction = |elem_size, operator| Some(Reduction { operator, elem_size });
        let number = |code| ReduceOperator::Builtin { function: |_, _, _| {}, code };
        let others = [
            CollRequest { reduction: reduction(8, number(1 << 8 | 2)), ..one },
            CollRequest { reduction: reduction(8, number(1 << 8 | 4)), ..one },
            CollRequest { reduction: reduction(8, number(2 << 8 | 2)), ..one },
            CollRequest { reduction: reduction(4, number(1 << 8 | 2)), ..one },
            CollRequest { root: 2, ..one },
            CollRequest { nbytes: 7, ..one },
            CollRequest { operation: CollOperation::Scatter, ..one },
            CollRequest { in_allsync: true, ..one },
            CollRequest { out_allsync: true, ..one },
            CollRequest { inclusive: true, ..one },
            CollRequest { src_array: BlockCyclic::new(1, 2), ..one },
            CollRequest { src_array: BlockCyclic::new(2, 1), ..one },
            CollRequest { dst_array: BlockCyclic::new(1, 2), ..one },
        ];
        let texts = others.map(|other| CallRecord::of(&other).to_string());
        assert!(!texts.contains(&text));
        for (i, text) in texts.iter().enumerate() {
            assert!(!texts[..i].contains(text), "{text}");
        }
        let names = OPERATIONS.len() as i32;
        assert_eq!(names, CollOperation::ReduceAll as i32 + 1, "a name for each operation");
    }

    #[test]
    fn each_side_waits_for_the_other() {
        let agreement = CollAgreement::default();
        let record = CallRecord::of(&CollRequest::new(CollOperation::Barrier, 0));
        let id = |number| CollId { context: 0, number };
        assert!(agreement.meet(id(0), Known::Own(record, "here")).is_none());
        assert!(agreement.meet(id(1), Known::Theirs(record)).is_none());
        assert!(matches!(agreement.meet(id(0), Known::Theirs(record)), Some(Known::Own(..))));
        assert!(matches!(
            agreement.meet(id(1), Known::Own(record, "here")),
            Some(Known::Theirs(_))
        ));
        assert!(agreement.known.lock().is_empty());
        for number in 0..MOST_KEPT as u32 + 5 {
            assert!(agreement.meet(id(number), Known::Own(record, "here")).is_none());
        }
        assert_eq!(agreement.known.lock().len(), MOST_KEPT);
    }
}
