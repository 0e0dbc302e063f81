//! Debug checks that only GASNet-EX has: where a call is legal, whether what its flags say of the
//! other rank is true, scratch memory, and whether a team is quiet when it is destroyed.
//!
//! Used by all of this folder. Invariant: a check does nothing unless debug checks are on. A
//! misuse ends the job with one line that names it and one that says what to do instead.

use super::objects::{ExObject, has_all_memory, job_rank};
use super::{Flags, Rank};
use crate::capi::early_job;
use crate::capi::rma::LocalArgument;
use crate::rank::JobRank;
use crate::report;
use crate::runtime::checks::check_local;
use crate::runtime::ops::{HandleState, OpHandle};
use crate::runtime::{Ctx, GasnetJob, checks};
use alloc::vec::Vec;
use core::ffi::c_void;
use parking_lot::Mutex;

/// The job for a call that is legal before `gex_Segment_Attach`, but not in a handler, and not
/// while a handler-safe lock is held.
pub(super) fn outside_handlers(function: &str) -> &'static GasnetJob {
    let job = early_job(function);
    if checks::on() {
        job.ctx().check_call(function);
    }
    job
}

/// What the flag of a call says of the rank that the call names.
struct Assertion {
    bit: Flags,
    name: &'static str,
    /// Whether it is this rank, or one of its neighbourhood, that the call names or does not name.
    names_near: bool,
    is_nbrhd: bool,
}

const fn assertion(bit: u32, name: &'static str, names_near: bool, is_nbrhd: bool) -> Assertion {
    Assertion { bit: 1 << bit, name, names_near, is_nbrhd }
}

/// Of puts and gets.
const PEER_NEVER: [Assertion; 2] = [
    assertion(14, "GEX_FLAG_PEER_NEVER_NBRHD", false, true),
    assertion(15, "GEX_FLAG_PEER_NEVER_SELF", false, false),
];
/// Of atomics.
const MY: [Assertion; 2] = [
    assertion(11, "GEX_FLAG_AD_MY_RANK", true, false),
    assertion(12, "GEX_FLAG_AD_MY_NBRHD", true, true),
];

/// Whether a rank is in the neighbourhood of this one.
fn is_neighbour(job: &GasnetJob, rank: JobRank) -> bool {
    let supernodes = job.placement().supernodes();
    supernodes[rank] == supernodes[job.endpoint.rank]
}

/// Ends the job if a flag says of `rank` what is not so.
fn check_assertions(
    job: &GasnetJob,
    function: &str,
    rank: JobRank,
    flags: Flags,
    all: &[Assertion],
) {
    for a in all.iter().filter(|a| flags & a.bit != 0) {
        let is_near = if a.is_nbrhd { is_neighbour(job, rank) } else { rank == job.endpoint.rank };
        if is_near != a.names_near {
            report::fatal(
                format_args!(
                    "{function}(): {} is passed, but rank {rank} of the job is{} {}",
                    a.name,
                    if is_near { "" } else { " not" },
                    if a.is_nbrhd { "in the neighbourhood of this one" } else { "this one" },
                ),
                format_args!(
                    "Pass this flag only where it is true; gex_System_QueryNbrhdInfo lists the neighbourhood."
                ),
            );
        }
    }
}

/// A put or get as the client calls it. What of it a check looks at.
pub(super) struct TransferCall<'a> {
    pub(super) function: &'a str,
    pub(super) tm: ExObject,
    pub(super) rank: Rank,
    pub(super) remote: *mut c_void,
    pub(super) n: usize,
    pub(super) local: Option<LocalArgument>,
    pub(super) flags: Flags,
}

/// Ends the job if a put or get has no local address, if its flags say what is not so, or if its
/// source and destination overlap in this process. Called where calls are checked.
#[cold]
#[inline(never)]
pub(super) fn check_transfer(job: &'static GasnetJob, call: &TransferCall<'_>) {
    let TransferCall { function, n, .. } = *call;
    let rank = job_rank(job, function, call.tm, call.rank);
    check_assertions(job, function, rank, call.flags, &PEER_NEVER);
    let Some((argument, local)) = call.local else { return };
    check_local(function, (argument, local.cast()), n);
    let apart = call.remote.addr().abs_diff(local.addr());
    if rank == job.endpoint.rank && apart < n {
        report::fatal(
            format_args!(
                "{function}(): source and destination overlap: {n} bytes at {:p} and at {local:p} of this rank",
                call.remote
            ),
            format_args!("Pass memory that does not overlap, or call memmove."),
        );
    }
}

/// Ends the job if the flags of an atomic say of its target what is not so. Called where calls are
/// checked.
#[cold]
#[inline(never)]
pub(super) fn check_atomic(job: &GasnetJob, function: &str, rank: JobRank, flags: Flags) {
    check_assertions(job, function, rank, flags, &MY);
}

/// Ends the job unless these bytes are in the segment of this rank. Called where calls are
/// checked.
#[cold]
pub(super) fn check_scratch(c: Ctx, function: &str, addr: usize, len: usize) {
    if addr == 0 || len == 0 {
        report::fatal(
            format_args!("{function}(): scratch memory has {len} bytes at {addr:#x}"),
            format_args!(
                "Pass memory of the segment, as GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED says, or GEX_FLAG_TM_NO_SCRATCH."
            ),
        );
    }
    let is_inside = c.endpoint().bound_segment().is_some_and(|own| {
        let offset = addr.wrapping_sub(own.as_ptr().addr());
        offset <= own.len() && len <= own.len() - offset
    });
    if !is_inside && !has_all_memory(c.job) {
        report::fatal(
            format_args!(
                "{function}(): scratch memory, {len} bytes at {addr:#x}, is not in the segment of this rank"
            ),
            format_args!("Pass memory of the bound segment, or GEX_FLAG_TM_NO_SCRATCH."),
        );
    }
}

/// The events of collectives, and their teams, as far as they may not be synced.
static COLLECTIVES: Mutex<Vec<(ExObject, OpHandle)>> = Mutex::new(Vec::new());
/// Below this number of events, those that were synced are not removed.
const FEW: usize = 64;

/// Notes the event of a collective of a team. Called where calls are checked.
#[cold]
pub(super) fn note_collective(c: Ctx, tm: ExObject, event: OpHandle) {
    // The team of all ranks is never destroyed.
    if tm != ExObject::ALL {
        let mut all = COLLECTIVES.lock();
        if all.len() >= FEW && all.len() == all.capacity() {
            all.retain(|(_, event)| is_live(c, *event));
        }
        all.push((tm, event));
    }
}

fn is_live(c: Ctx, event: OpHandle) -> bool {
    matches!(c.job.ops.look_up(event), HandleState::Live(_))
}

/// Ends the job if a team that is to be destroyed has this atomics domain, or a collective whose
/// event was not synced. Called where calls are checked.
#[cold]
pub(super) fn check_quiet(c: Ctx, function: &str, tm: ExObject, domain: Option<ExObject>) {
    if let Some(domain) = domain {
        report::fatal(
            format_args!("{function}(): the team {tm:?} has the atomics domain {domain:?}"),
            format_args!("Call gex_AD_Destroy for its domains first."),
        );
    }
    let mut all = COLLECTIVES.lock();
    let is_active = |&(team, event): &(ExObject, OpHandle)| team == tm && is_live(c, event);
    if let Some((_, event)) = all.iter().find(|one| is_active(one)) {
        report::fatal(
            format_args!(
                "{function}(): the event {:#x} of a collective of the team {tm:?} is not synced",
                event.0
            ),
            format_args!("Test or wait for the events of all its collectives first."),
        );
    }
    all.retain(|(team, _)| *team != tm);
}
