//! Atomics domains and remote atomics.
//!
//! Called by clients. Invariant: an operation reaches the extended layer only if its domain has
//! it.

use super::misuse::{check_atomic, outside_handlers};
use super::objects::{ClientData, ExObject, ExTable, job_rank, team_of};
use super::{Event, Flags, Rank, event, write};
use crate::capi::rma::{job, unwatched_job};
use crate::capi::{OK, ctx};
use crate::client_memory::{Dst, UncheckedRange};
use crate::extended::atomics::{AtomicCode, AtomicForm, AtomicOperation};
use crate::extended::coll::Team;
use crate::extended::coll::operators::NumberType;
use crate::rank::{JobRank, TeamRank};
use crate::report;
use crate::runtime::{GasnetJob, checks};
use crate::tools::constant_names::{DataTypes, Operations};
use crate::trace::{EventDetail, watch};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// `GEX_FLAG_AD_REL`
const RELEASE: Flags = 1 << 1;
/// `GEX_FLAG_RANK_IS_JOBRANK`
const RANK_IS_JOBRANK: Flags = 1 << 13;

/// What an atomics domain is for.
#[derive(Clone, Copy, Debug)]
struct AtomicsDomain {
    tm: ExObject,
    number: NumberType,
    ops: u32,
    flags: Flags,
}

/// The domains that were not destroyed, and what clients keep with them.
static DOMAINS: ExTable<(AtomicsDomain, ClientData)> = ExTable::of_domains();

/// What an operation reads of a domain, without the locks of [`DOMAINS`] and of the teams.
struct KnownDomain {
    /// Its name, stored last; 0 in a free place, [`FILLED`] while it is filled.
    name: AtomicUsize,
    /// The number of its type, and its operations in the lower half; [`NO_TYPE`] in a free place.
    operations: AtomicU64,
    /// The rank in the job of rank 0 of its team, and in the lower half how much the ranks that
    /// follow differ.
    ranks: AtomicU64,
    /// Ranks of its team.
    size: AtomicU32,
}

/// No name of a domain.
const FILLED: usize = 1;
/// No type: a client may pass `GEX_AD_INVALID`, which is the name in a free place.
const NO_TYPE: u64 = u64::MAX;

/// Domains over teams whose ranks are evenly spaced in the job, by the lower bits of their
/// numbers. One whose place is taken is not here.
static KNOWN: [KnownDomain; 16] = [const {
    KnownDomain {
        name: AtomicUsize::new(0),
        operations: AtomicU64::new(NO_TYPE),
        ranks: AtomicU64::new(0),
        size: AtomicU32::new(0),
    }
}; 16];

impl KnownDomain {
    /// The place for the domain of this name.
    #[inline(always)]
    fn of(ad: ExObject) -> &'static KnownDomain {
        &KNOWN[ad.number() as usize % KNOWN.len()]
    }

    /// Keeps a domain that is made over a team, if its place is free.
    fn keep(ad: ExObject, domain: &AtomicsDomain, team: &Team) {
        let Some((first, step)) = spacing(team) else { return };
        let place = KnownDomain::of(ad);
        let (claimed, taken) = (Ordering::Acquire, Ordering::Relaxed);
        if place.name.compare_exchange(0, FILLED, claimed, taken).is_ok() {
            let halves = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
            place.operations.store(halves(domain.number as u32, domain.ops), Ordering::Relaxed);
            place.ranks.store(halves(first, step), Ordering::Relaxed);
            place.size.store(team.size(), Ordering::Relaxed);
            place.name.store(ad.word(), Ordering::Release);
        }
    }

    /// Frees the place of a domain that is destroyed.
    fn forget(ad: ExObject) {
        let place = KnownDomain::of(ad);
        let (claimed, other) = (Ordering::Acquire, Ordering::Relaxed);
        if place.name.compare_exchange(ad.word(), FILLED, claimed, other).is_ok() {
            place.operations.store(NO_TYPE, Ordering::Relaxed);
            place.name.store(0, Ordering::Release);
        }
    }

    /// The domain of this name and type; `None` if it is not here.
    #[inline(always)]
    fn find(ad: ExObject, number: NumberType) -> Option<&'static KnownDomain> {
        let place = KnownDomain::of(ad);
        let is_here = place.name.load(Ordering::Acquire) == ad.word()
            && place.operations.load(Ordering::Relaxed) >> 32 == number as u64;
        is_here.then_some(place)
    }

    /// The rank in the job of a rank of its team; `None` if there is no such rank.
    #[inline(always)]
    fn job_rank(&self, rank: Rank) -> Option<JobRank> {
        let ranks = self.ranks.load(Ordering::Relaxed);
        let job_rank = ((ranks >> 32) as u32).wrapping_add(rank.wrapping_mul(ranks as u32));
        (rank < self.size.load(Ordering::Relaxed)).then_some(JobRank(job_rank))
    }
}

/// The rank in the job of rank 0 of a team, and by how much each rank differs from that before,
/// modulo 2^32; `None` if they are not evenly spaced.
fn spacing(team: &Team) -> Option<(u32, u32)> {
    let rank = |rank| team.job_rank(TeamRank(rank)).map(|rank| rank.0);
    let first = rank(0)?;
    let step = rank(1).map_or(0, |second| second.wrapping_sub(first));
    let mut expected = first;
    for at in 0..team.size() {
        if rank(at) != Some(expected) {
            return None;
        }
        expected = expected.wrapping_add(step);
    }
    Some((first, step))
}

/// The domain that a client names; ends the job if there is none.
fn domain(function: &str, ad: ExObject) -> AtomicsDomain {
    DOMAINS.read(ad, |record| record.0).unwrap_or_else(|| no_domain(function, ad))
}

/// A domain of a team that was not destroyed.
pub(super) fn domain_of(tm: ExObject) -> Option<ExObject> {
    DOMAINS.find(|record| record.0.tm == tm)
}

fn with_data<R>(function: &str, ad: ExObject, read: impl FnOnce(&ClientData) -> R) -> R {
    DOMAINS.read(ad, |record| read(&record.1)).unwrap_or_else(|| no_domain(function, ad))
}

#[cold]
fn no_domain(function: &str, ad: ExObject) -> ! {
    let what = match DOMAINS.was_destroyed(ad) {
        true => "an atomics domain that gex_AD_Destroy has ended",
        false => "no atomics domain of this process",
    };
    report::fatal(
        format_args!("{function}(): {ad:?} is {what}"),
        format_args!("Pass what gex_AD_Create gave, before gex_AD_Destroy."),
    )
}

/// Makes an atomics domain: a type, and the operations on it that the client will use. Collective.
///
/// - `ad_p`: where the domain is stored.
/// - `tm`: the team whose ranks the operations name.
/// - `dt`: the type of the numbers, one of `GEX_DT_*` except `USER`.
/// - `ops`: the operations, a combination of `GEX_OP_*`.
/// - `flags`: `GEX_FLAG_AD_FAVOR_*`; accepted.
/// - Context: by all members of the team in the order of their collectives; not in a handler.
///
/// # Safety
/// `ad_p` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_AD_Create(
    ad_p: *mut ExObject,
    tm: ExObject,
    dt: u32,
    ops: u32,
    flags: Flags,
) {
    let function = "gex_AD_Create";
    let c = ctx(function);
    let team = team_of(c, function, tm);
    let Some(number) = NumberType::of(dt) else {
        report::fatal(
            format_args!("{function}(): dt {} is no type of atomics", DataTypes(dt)),
            format_args!("Pass one of GEX_DT_I32, U32, I64, U64, FLT and DBL."),
        )
    };
    let mut bits = (0..32).map(|bit| 1 << bit).filter(|bit| ops & bit != 0);
    if let Some(op) = bits.find(|&op| AtomicCode::of(number, op).is_none()) {
        report::fatal(
            format_args!("{function}(): {} has no operation {}", DataTypes(dt), Operations(op)),
            format_args!("Pass operations of atomics; bitwise ones are for integers only."),
        );
    }
    let domain = AtomicsDomain { tm, number, ops, flags };
    let ad = DOMAINS.add((domain, ClientData::new()), tm == ExObject::ALL);
    KnownDomain::keep(ad, &domain, &team);
    // SAFETY: the specification demands a place for the result.
    unsafe { write(ad_p, ad) };
}

/// Ends an atomics domain, none of whose operations are in flight. Collective.
///
/// - `ad`: the domain.
/// - Context: by all members of its team in the order of their collectives; not in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AD_Destroy(ad: ExObject) {
    outside_handlers("gex_AD_Destroy");
    KnownDomain::forget(ad);
    if DOMAINS.remove(ad).is_none() {
        no_domain("gex_AD_Destroy", ad);
    }
}

/// Returns the flags that `gex_AD_Create` was given.
///
/// - `ad`: the domain.
/// - Context: in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AD_QueryFlags(ad: ExObject) -> Flags {
    domain("gex_AD_QueryFlags", ad).flags
}

/// Returns the team of a domain.
///
/// - `ad`: the domain.
/// - Context: in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AD_QueryTM(ad: ExObject) -> ExObject {
    domain("gex_AD_QueryTM", ad).tm
}

/// Returns the type of a domain.
///
/// - `ad`: the domain.
/// - Context: in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AD_QueryDT(ad: ExObject) -> u32 {
    1 << domain("gex_AD_QueryDT", ad).number as u32
}

/// Returns the operations of a domain.
///
/// - `ad`: the domain.
/// - Context: in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AD_QueryOps(ad: ExObject) -> u32 {
    domain("gex_AD_QueryOps", ad).ops
}

/// Keeps a pointer with a domain.
///
/// - `ad`: the domain.
/// - `val`: the pointer, which the library does not follow.
/// - Context: in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AD_SetCData(ad: ExObject, val: *const c_void) {
    with_data("gex_AD_SetCData", ad, |data| data.set(val));
}

/// Returns the pointer that `gex_AD_SetCData` has kept; null at first.
///
/// - `ad`: the domain.
/// - Context: in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AD_QueryCData(ad: ExObject) -> *mut c_void {
    with_data("gex_AD_QueryCData", ad, ClientData::get)
}

/// An operation as a client calls it.
struct AtomicCall {
    /// Behind a reference: two words that are stored one by one and then loaded as one are slow.
    function: &'static &'static str,
    number: NumberType,
    form: AtomicForm,
    ad: ExObject,
    result: *mut c_void,
    rank: Rank,
    addr: *mut c_void,
    op: u32,
    operands: [u64; 2],
    flags: Flags,
}

/// Ends the job if the target is not in the team of the domain, or not where the flags say. Called
/// where calls are checked.
#[cold]
fn check_target(job: &'static GasnetJob, tm: ExObject, call: &AtomicCall) {
    let function = *call.function;
    let rank = match call.flags & RANK_IS_JOBRANK {
        0 => job_rank(job, function, tm, call.rank),
        _ => job.team.check_rank(function, call.rank),
    };
    if team_of(job.ctx(), function, tm).team_rank(rank).is_none() {
        report::fatal(
            format_args!("{function}(): rank {rank} of the job is not in the team of the domain"),
            format_args!("Pass a rank of the team that gex_AD_Create was given."),
        );
    }
    check_atomic(job, function, rank, call.flags);
}

/// The operations of the domain that a call names, and the target in the job. Ends the job if
/// there is none, or if the domain has another type.
#[inline(never)]
fn search(job: &'static GasnetJob, call: &AtomicCall) -> (u32, JobRank) {
    let function = *call.function;
    let domain = domain(function, call.ad);
    if domain.number != call.number {
        report::fatal(
            format_args!(
                "{function}(): the domain has another type, {}",
                DataTypes(1 << domain.number as u32)
            ),
            format_args!("Call the function of the type that gex_AD_Create was given."),
        );
    }
    let rank = match call.flags & RANK_IS_JOBRANK {
        0 => job_rank(job, function, domain.tm, call.rank),
        _ => job.team.check_rank(function, call.rank),
    };
    (domain.ops, rank)
}

/// # Safety
/// `result` must be writable for a fetching operation, until the event has happened.
unsafe fn start(call: AtomicCall) -> Event {
    let AtomicCall { function: &function, number, op, .. } = call;
    let job = match unwatched_job() {
        Some(job) => job,
        None => {
            let job = job(function);
            if checks::on() {
                check_target(job, domain(function, call.ad).tm, &call);
            }
            job
        }
    };
    let known = KnownDomain::find(call.ad, number).and_then(|known| {
        let rank = match call.flags & RANK_IS_JOBRANK {
            0 => known.job_rank(call.rank)?,
            _ => job.team.check_rank(function, call.rank),
        };
        Some((known.operations.load(Ordering::Relaxed) as u32, rank))
    });
    let (ops, rank) = known.unwrap_or_else(|| search(job, &call));
    // Those of the domain exist for its type.
    let code = match AtomicCode::named(number, op) {
        Some(code) if ops & op != 0 => code,
        _ => report::fatal(
            format_args!("{function}(): {} is no operation of the domain", Operations(op)),
            format_args!("Pass one operation of those that gex_AD_Create was given."),
        ),
    };
    // SAFETY: the specification demands the address of a number in the segment of the rank.
    let bytes = unsafe { UncheckedRange::new(call.addr.cast(), code.size()) };
    let target = job.endpoint.remote_range(function, rank, bytes);
    if code.is_fetching() && call.result.is_null() {
        report::fatal(
            format_args!("{function}(): the operation fetches, and result_p is null"),
            format_args!("Pass a place for the old value, or an operation that fetches none."),
        );
    }
    let result = match code.is_fetching() {
        // SAFETY: by this function's condition.
        true => unsafe { Dst::new(call.result.cast(), code.size()) },
        false => Dst::empty(),
    };
    if call.flags & RELEASE != 0 {
        // What this thread has put before is seen by a rank that sees the operation.
        fence(Ordering::SeqCst);
    }
    if code.at_once(function, target, call.operands, result) {
        return core::ptr::null_mut();
    }
    let operation =
        AtomicOperation { code, form: call.form, target, operands: call.operands, result };
    event(crate::extended::atomics(job).start(job.ctx(), function, operation))
}

/// The rank of the job that a trace names.
fn traced_rank(function: &str, ad: ExObject, rank: Rank, flags: Flags) -> u32 {
    match flags & RANK_IS_JOBRANK {
        0 => job_rank(job(function), function, domain(function, ad).tm, rank).0,
        _ => rank,
    }
}

macro_rules! operation {
    ($(#[$doc:meta])* $name:ident: $form:ident $result:ty, $t:ty, $number:expr, $bits:expr) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            ad: ExObject,
            result_p: *mut $t,
            tgt_rank: Rank,
            tgt_addr: *mut c_void,
            opcode: u32,
            operand1: $t,
            operand2: $t,
            flags: Flags,
        ) -> $result {
            watch!(
                P stringify!($name),
                EventDetail::moved(
                    traced_rank(stringify!($name), ad, tgt_rank, flags),
                    size_of::<$t>(),
                    tgt_addr,
                    result_p
                ),
                $name(ad, result_p, tgt_rank, tgt_addr, opcode, operand1, operand2, flags)
            );
            let bits: fn($t) -> u64 = $bits;
            // SAFETY: as this function requires.
            done!($form, unsafe {
                start(AtomicCall {
                    function: &stringify!($name),
                    number: $number,
                    form: AtomicForm::$form,
                    ad,
                    result: result_p.cast(),
                    rank: tgt_rank,
                    addr: tgt_addr,
                    op: opcode,
                    operands: [bits(operand1), bits(operand2)],
                    flags,
                })
            })
        }
    };
}

macro_rules! operations {
    ($nb:ident, $nbi:ident, $t:ty, $number:expr, $bits:expr) => {
        operation! {
            /// Initiates an operation on a number in the segment of a rank.
            ///
            /// - `ad`: a domain of this type, with this operation.
            /// - `result_p`: where the old value is stored, for operations that fetch it.
            /// - `tgt_rank`: the rank that owns the number, in the team of the domain; in the job
            ///   with `GEX_FLAG_RANK_IS_JOBRANK`.
            /// - `tgt_addr`: its address there, aligned.
            /// - `opcode`: the operation.
            /// - `operand1`, `operand2`: its operands, if it has any.
            /// - `flags`: `GEX_FLAG_AD_REL`, `GEX_FLAG_AD_ACQ`; the others are accepted.
            /// - Returns an event that happens when the operation is done.
            /// - Context: after `gex_Segment_Attach`; not in a handler, and not while a
            ///   handler-safe lock is held.
            ///
            /// # Safety
            /// `result_p` must be writable until the event has happened, for operations that
            /// fetch.
            $nb: Explicit Event, $t, $number, $bits
        }

        operation! {
            /// The implicit form of the function without the `I`. `GEX_OP_SET` belongs to the
            /// category `GEX_EC_PUT`, `GEX_OP_GET` to `GEX_EC_GET`, all others to `GEX_EC_RMW`.
            ///
            /// - `ad`, `result_p`, `tgt_rank`, `tgt_addr`, `opcode`, `operand1`, `operand2`,
            ///   `flags`: as there.
            /// - Returns 0.
            /// - Context: after `gex_Segment_Attach`; not in a handler, and not while a
            ///   handler-safe lock is held.
            ///
            /// # Safety
            /// `result_p` must be writable until the operation is synced, for operations that
            /// fetch.
            $nbi: Implicit c_int, $t, $number, $bits
        }
    };
}

operations!(gex_AD_OpNB_I32, gex_AD_OpNBI_I32, i32, NumberType::I32, |v| u64::from(v as u32));
operations!(gex_AD_OpNB_U32, gex_AD_OpNBI_U32, u32, NumberType::U32, u64::from);
operations!(gex_AD_OpNB_I64, gex_AD_OpNBI_I64, i64, NumberType::I64, |v| v as u64);
operations!(gex_AD_OpNB_U64, gex_AD_OpNBI_U64, u64, NumberType::U64, |v| v);
operations!(gex_AD_OpNB_FLT, gex_AD_OpNBI_FLT, f32, NumberType::F32, |v| u64::from(v.to_bits()));
operations!(gex_AD_OpNB_DBL, gex_AD_OpNBI_DBL, f64, NumberType::F64, f64::to_bits);
