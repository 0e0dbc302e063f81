//! Teams: the ranks that a call names, and the client's view of them.
//!
//! Called by clients. Invariant: a team that a client may name is in the table of `objects`.
//! Scratch memory that a client gives is not used; it gets it back.

use super::atomics::domain_of;
use super::misuse::{check_quiet, check_scratch, outside_handlers};
use super::objects::{self, ExObject, job_rank, team_of, with_team};
use super::{Flags, RANK_INVALID, Rank, write};
use crate::capi::{ctx, early_job};
use crate::extended::coll::TeamRef;
use crate::extended::collectives;
use crate::rank::{JobRank, NamedRank, TeamRank};
use crate::report;
use crate::runtime::{Ctx, GasnetJob, checks};
use core::ffi::{c_int, c_void};

const SCRATCH_SIZE_MIN: Flags = 1;
const SCRATCH_SIZE_RECOMMENDED: Flags = 1 << 1;
const GLOBAL_SCRATCH: Flags = 1 << 2;
const LOCAL_SCRATCH: Flags = 1 << 3;
const SYMMETRIC_SCRATCH: Flags = 1 << 4;
const NO_SCRATCH: Flags = 1 << 5;
/// `GEX_FLAG_SCRATCH_SEG_OFFSET`
const SCRATCH_OFFSET: Flags = 1 << 6;
const GLOBALLY_QUIESCED: Flags = 1 << 13;
const RANK_IS_JOBRANK: Flags = 1 << 13;

/// What a query for the size of scratch memory returns: clients expect a size, this library needs
/// none.
const SCRATCH: usize = 64;

/// `gex_EP_Location_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EndpointLocation {
    rank: Rank,
    ep_index: u16,
}

/// `gex_Memvec_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScratchMemory {
    addr: *mut c_void,
    len: usize,
}

/// Keeps a pointer with a team.
///
/// - `tm`: the team.
/// - `val`: the pointer, which the library does not follow.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_TM_SetCData(tm: ExObject, val: *const c_void) {
    let function = "gex_TM_SetCData";
    with_team(early_job(function), function, tm, |team| team.data().set(val));
}

/// Returns the pointer that `gex_TM_SetCData` has kept; null at first.
///
/// - `tm`: the team.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_TM_QueryCData(tm: ExObject) -> *mut c_void {
    let function = "gex_TM_QueryCData";
    with_team(early_job(function), function, tm, |team| team.data().get())
}

/// Returns the client of a team.
///
/// - `tm`: the team.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_TM_QueryClient(tm: ExObject) -> ExObject {
    let function = "gex_TM_QueryClient";
    with_team(early_job(function), function, tm, |_| ());
    ExObject::THE_CLIENT
}

/// Returns the endpoint of this process in a team.
///
/// - `tm`: the team.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_TM_QueryEP(tm: ExObject) -> ExObject {
    let function = "gex_TM_QueryEP";
    with_team(early_job(function), function, tm, |_| ());
    ExObject::THE_ENDPOINT
}

/// Returns the flags that a team was made with; 0 of the team of all ranks.
///
/// - `tm`: the team.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_TM_QueryFlags(tm: ExObject) -> Flags {
    let function = "gex_TM_QueryFlags";
    with_team(early_job(function), function, tm, |team| team.flags())
}

/// The rank in a team of a rank of the job; [`RANK_INVALID`] if it is no member.
fn rank_in(job: &'static GasnetJob, function: &str, tm: ExObject, rank: JobRank) -> Rank {
    let found = with_team(job, function, tm, |team| team.team_rank(rank));
    found.map_or(RANK_INVALID, |rank| rank.0)
}

/// Returns the rank of this process in a team.
///
/// - `tm`: the team.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_TM_QueryRank(tm: ExObject) -> Rank {
    let (function, job) = ("gex_TM_QueryRank", early_job("gex_TM_QueryRank"));
    rank_in(job, function, tm, job.endpoint.rank)
}

/// Returns the number of ranks of a team.
///
/// - `tm`: the team.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_TM_QuerySize(tm: ExObject) -> Rank {
    let function = "gex_TM_QuerySize";
    with_team(early_job(function), function, tm, |team| team.size())
}

/// Returns a pair of endpoints, which names ranks by their ranks in the job. It is legal where a
/// message, a put or a get is sent, for their limits, and for queries about segments.
///
/// - `local_ep`: the endpoint of this process.
/// - `remote_ep_index`: the index of the endpoint of the other rank: 0.
/// - Returns the pair; equal arguments give equal pairs.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_TM_Pair(local_ep: ExObject, remote_ep_index: u16) -> ExObject {
    let function = "gex_TM_Pair";
    local_ep.check_endpoint(function);
    if remote_ep_index != 0 {
        report::fatal(
            format_args!("{function}(): a rank has no endpoint {remote_ep_index}"),
            format_args!("Pass 0: GASNET_MAXEPS is 1."),
        );
    }
    ExObject::PAIR
}

/// Returns the rank in the job of a rank of a team.
///
/// - `tm`: the team.
/// - `rank`: its rank in the team; one that the team does not have ends the job.
/// - Context: after `gex_Client_Init`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_TM_TranslateRankToJobrank(tm: ExObject, rank: Rank) -> Rank {
    let function = "gex_TM_TranslateRankToJobrank";
    job_rank(outside_handlers(function), function, tm, rank).0
}

/// Returns the rank in a team of a rank of the job.
///
/// - `tm`: the team.
/// - `jobrank`: its rank in the job, below `gex_System_QueryJobSize()`.
/// - Returns the rank, or `GEX_RANK_INVALID` if it is no member.
/// - Context: after `gex_Client_Init`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_TM_TranslateJobrankToRank(tm: ExObject, jobrank: Rank) -> Rank {
    let function = "gex_TM_TranslateJobrankToRank";
    let job = outside_handlers(function);
    if checks::on() {
        job.team.check_rank(function, jobrank);
    }
    rank_in(job, function, tm, JobRank(jobrank))
}

/// Returns the rank in the job, and the index of the endpoint, of a rank of a team.
///
/// - `tm`: the team.
/// - `rank`: its rank in the team; one that the team does not have ends the job.
/// - `flags`: 0.
/// - Context: after `gex_Client_Init`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_TM_TranslateRankToEP(
    tm: ExObject,
    rank: Rank,
    flags: Flags,
) -> EndpointLocation {
    let function = "gex_TM_TranslateRankToEP";
    let job = outside_handlers(function);
    job.ctx().check_no_flags(function, flags);
    let rank = job_rank(job, function, tm, rank).0;
    EndpointLocation { rank, ep_index: 0 }
}

/// Whether a call requests the size of scratch memory only.
fn requests_size(flags: Flags) -> bool {
    flags & (SCRATCH_SIZE_MIN | SCRATCH_SIZE_RECOMMENDED) != 0
}

/// Splits a team: its ranks that pass the same color form a new one. Collective.
///
/// - `new_tm_p`: where the new team is stored; null for a rank that joins none.
/// - `parent_tm`: the team.
/// - `color`: which of the new teams this rank joins; not negative.
/// - `key`: orders the members: by it, then by their rank in the parent team.
/// - `scratch_addr`, `scratch_size`: memory in the segment; not used, and given back by
///   `gex_TM_Destroy`.
/// - `flags`: `GEX_FLAG_TM_NO_SCRATCH`, or a flag that requests the size of scratch memory.
/// - Returns the bytes of scratch memory if they are requested, in a rank that joins a team, and
///   makes no team then; 0 otherwise.
/// - Context: by all members, in the order of their other collectives; not in a handler.
///
/// # Safety
/// `new_tm_p` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_TM_Split(
    new_tm_p: *mut ExObject,
    parent_tm: ExObject,
    color: c_int,
    key: c_int,
    scratch_addr: *mut c_void,
    scratch_size: usize,
    flags: Flags,
) -> usize {
    let function = &"gex_TM_Split";
    let c = ctx(function);
    let parent = team_of(c, function, parent_tm);
    if requests_size(flags) {
        return if new_tm_p.is_null() { 0 } else { SCRATCH };
    }
    let joins = !new_tm_p.is_null();
    if joins && color < 0 {
        report::fatal(
            format_args!("{function}(): the color {color} is negative"),
            format_args!("Pass a color from 0 up, or a null new_tm_p to join no team."),
        );
    }
    if checks::on() && joins && flags & NO_SCRATCH == 0 {
        check_scratch(c, function, scratch_addr.addr(), scratch_size);
    }
    let order = (key as u32) ^ 1 << 31;
    let choice = joins.then_some((color as u32, order));
    if let Some(team) = collectives(c).split_ranks(c, function, &parent, choice) {
        let given = flags & NO_SCRATCH == 0 && scratch_size != 0;
        let scratch = given.then_some((scratch_addr.addr(), scratch_size));
        // SAFETY: the specification demands a place for the result.
        unsafe { write(new_tm_p, objects::add_team(team, scratch, flags)) };
    }
    0
}

/// Makes a team of listed ranks. Collective over the parent team.
///
/// - `new_tms`, `num_new_tms`: where the new team is stored; 0 for a rank that is in none. A rank
///   has one endpoint, so it joins one team at most.
/// - `parent_tm`: the team.
/// - `args`, `numargs`: the members, in their order; the same in all members. A rank is one of the
///   parent team, with `GEX_FLAG_RANK_IS_JOBRANK` one of the job.
/// - `scratch_addrs`, `scratch_size`: memory in the segments; not used, and given back by
///   `gex_TM_Destroy`.
/// - `flags`: one of `GEX_FLAG_TM_GLOBAL_SCRATCH`, `LOCAL`, `SYMMETRIC` and `NO_SCRATCH`, or a
///   flag that requests the size of scratch memory.
/// - Returns as `gex_TM_Split`.
/// - Context: by all members, in the order of their other collectives; not in a handler.
///
/// # Safety
/// `new_tms` must hold `num_new_tms` places, `args` `numargs` members, and `scratch_addrs` an
/// address for each member with `GEX_FLAG_TM_GLOBAL_SCRATCH`, and one otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_TM_Create(
    new_tms: *mut ExObject,
    num_new_tms: usize,
    parent_tm: ExObject,
    args: *const EndpointLocation,
    numargs: usize,
    scratch_addrs: *const *mut c_void,
    scratch_size: usize,
    flags: Flags,
) -> usize {
    let function = &"gex_TM_Create";
    // Without members the other arguments do not count.
    let num_new_tms = if numargs == 0 { 0 } else { num_new_tms };
    let c = ctx(function);
    let parent = team_of(c, function, parent_tm);
    if requests_size(flags) {
        return if num_new_tms == 0 { 0 } else { SCRATCH };
    }
    if num_new_tms > 1 {
        report::fatal(
            format_args!("{function}(): {num_new_tms} new teams for the one endpoint of a rank"),
            format_args!("Pass 1, or 0 for a rank that joins no team."),
        );
    }
    let own = c.endpoint().rank;
    let ranks = match num_new_tms {
        0 if numargs == 0 || !checks::on() => None,
        _ if args.is_null() => report::fatal(
            format_args!("{function}(): args is null, numargs {numargs}"),
            format_args!("Pass the members of the new team, or 0 as numargs."),
        ),
        _ => {
            // SAFETY: the specification demands `numargs` members.
            let list = unsafe { core::slice::from_raw_parts(args, numargs) };
            let ranks = members(c, function, &parent, list, flags);
            let is_member = ranks.contains(&own);
            if is_member != (num_new_tms == 1) {
                report::fatal(
                    format_args!(
                        "{function}(): num_new_tms is {num_new_tms}, but args lists {} of this rank",
                        if is_member { "the endpoint" } else { "no endpoint" }
                    ),
                    format_args!("Pass as many new_tms as args has endpoints of the caller."),
                );
            }
            is_member.then_some(ranks)
        }
    };
    let place = ranks.as_ref().and_then(|ranks| ranks.iter().position(|&rank| rank == own));
    if checks::on() && place.is_some() {
        let one_of = GLOBAL_SCRATCH | LOCAL_SCRATCH | SYMMETRIC_SCRATCH | NO_SCRATCH;
        if (flags & one_of).count_ones() != 1 {
            report::fatal(
                format_args!(
                    "{function}(): the flags {flags:#x} do not say where scratch memory is"
                ),
                format_args!(
                    "Pass one of GEX_FLAG_TM_GLOBAL_SCRATCH, LOCAL_SCRATCH, SYMMETRIC_SCRATCH and NO_SCRATCH."
                ),
            );
        }
        if flags & (NO_SCRATCH | SCRATCH_OFFSET) == 0 {
            let at = if flags & GLOBAL_SCRATCH != 0 { place.unwrap_or(0) } else { 0 };
            let addr = match scratch_addrs.is_null() || scratch_size == 0 {
                true => 0,
                // SAFETY: the specification demands as many addresses as the flag says.
                false => unsafe { scratch_addrs.add(at).read() }.addr(),
            };
            check_scratch(c, function, addr, scratch_size);
        }
    }
    if let Some(team) = collectives(c).create(c, function, &parent, ranks) {
        let given = flags & NO_SCRATCH == 0 && scratch_size != 0 && !scratch_addrs.is_null();
        let at = if flags & GLOBAL_SCRATCH != 0 { place.unwrap_or(0) } else { 0 };
        // SAFETY: the specification demands as many addresses as the flag says.
        let scratch =
            given.then(|| (unsafe { scratch_addrs.add(at).read() }.addr(), scratch_size));
        // SAFETY: the specification demands a place for each new team, and there is one.
        unsafe { write(new_tms, objects::add_team(team, scratch, flags)) };
    }
    0
}

/// The ranks of the job that a list of members names; ends the job if it names others than members
/// of the parent team, or one of them twice.
fn members(
    c: Ctx,
    function: &str,
    parent: &TeamRef,
    list: &[EndpointLocation],
    flags: Flags,
) -> Vec<JobRank> {
    let of_job = flags & RANK_IS_JOBRANK != 0;
    let member = |(i, location): (usize, &EndpointLocation)| {
        let (rank, index) = (NamedRank(location.rank), location.ep_index);
        if index != 0 {
            report::fatal(
                format_args!(
                    "{function}(): entry {i} of args has endpoint index {index}; GASNET_MAXEPS is 1"
                ),
                format_args!("Pass 0 as gex_ep_index."),
            );
        }
        let size = if of_job { c.team().size() } else { parent.size() };
        let found = match of_job {
            false => parent.job_rank(TeamRank(rank.0)),
            true => Some(JobRank(rank.0)).filter(|&rank| parent.team_rank(rank).is_some()),
        };
        match found {
            Some(rank) => rank,
            None if rank.0 < size => report::fatal(
                format_args!(
                    "{function}(): entry {i} of args has rank {rank} of the job, which is not in the parent team"
                ),
                format_args!("List members of the parent team."),
            ),
            None => report::fatal(
                format_args!(
                    "{function}(): entry {i} of args has rank {rank}, which is not below {size}"
                ),
                format_args!(
                    "List ranks of the parent team, or of the job with GEX_FLAG_RANK_IS_JOBRANK."
                ),
            ),
        }
    };
    let ranks: Vec<JobRank> = list.iter().enumerate().map(member).collect();
    if let Some(twice) = named_twice(&ranks) {
        report::fatal(
            format_args!("{function}(): rank {twice} of the job is listed twice"),
            format_args!("List each member once."),
        );
    }
    ranks
}

/// A rank that occurs twice.
fn named_twice(ranks: &[JobRank]) -> Option<JobRank> {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find(|two| two[0] == two[1]).map(|two| two[0])
}

/// Ends a team. Collective over it.
///
/// - `tm`: a team of `gex_TM_Split` or `gex_TM_Create`, without collectives in progress.
/// - `scratch_p`: where the scratch memory that it was given is stored; null if that is not
///   wanted.
/// - `flags`: `GEX_FLAG_GLOBALLY_QUIESCED` if all ranks have finished their collectives of the
///   team: the call does not wait for the others then.
/// - Returns 1 if scratch memory was stored, 0 otherwise.
/// - Context: by all members; not in a handler.
///
/// # Safety
/// `scratch_p` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_TM_Destroy(
    tm: ExObject,
    scratch_p: *mut ScratchMemory,
    flags: Flags,
) -> c_int {
    let function = &"gex_TM_Destroy";
    let c = ctx(function);
    let team = team_of(c, function, tm);
    if tm == ExObject::ALL {
        report::fatal(
            format_args!("{function}(): the team of all ranks cannot be destroyed"),
            format_args!("Destroy teams of gex_TM_Split and gex_TM_Create only."),
        )
    }
    if checks::on() {
        check_quiet(c, function, tm, domain_of(tm));
    }
    // Until all have called, handlers may name the team.
    collectives(c).destroy(c, function, &team, flags & GLOBALLY_QUIESCED != 0);
    let scratch = objects::remove_team(tm).and_then(|record| record.scratch);
    let Some((addr, len)) = scratch.filter(|_| !scratch_p.is_null()) else { return 0 };
    let addr = core::ptr::with_exposed_provenance_mut(addr);
    // SAFETY: the specification demands a place for the result.
    unsafe { write(scratch_p, ScratchMemory { addr, len }) };
    1
}
