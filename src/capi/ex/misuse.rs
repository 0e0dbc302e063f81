//! Debug checks that only GASNet-EX has: where a call is legal, and whether what its flags say of
//! the other rank is true.
//!
//! Used by all of this folder. Invariant: a check does nothing unless debug checks are on. A misuse
//! ends the job with one line that names it and one that says what to do instead.

use super::job::is_neighbour;
use super::objects::{ExObject, job_rank};
use super::{Flags, Rank};
use crate::capi::early_job;
use crate::capi::rma::LocalArgument;
use crate::rank::JobRank;
use crate::report;
use crate::runtime::checks::check_local;
use crate::runtime::{GasnetJob, checks};
use core::ffi::c_void;

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

/// Ends the job if a flag says of `rank` what is not so.
fn check_assertions(
    job: &GasnetJob,
    function: &str,
    rank: JobRank,
    flags: Flags,
    all: &[Assertion],
) {
    for a in all.iter().filter(|a| flags & a.bit != 0) {
        let is_near = if a.is_nbrhd { is_neighbour(rank) } else { rank == job.endpoint.rank };
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
