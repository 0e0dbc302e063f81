//! The collectives: initialisation, teams and their barriers.
//!
//! Called by clients; `movement`, `sync` and `tuning` hold the other functions. Invariant: what
//! reaches the extended layer has a live team, checked flags and an image of that team.

pub mod movement;
pub mod sync;
pub mod tuning;

use super::{code, ctx, ex};
use crate::extended::coll::{ReduceFn, TeamRef};
use crate::extended::collectives;
use crate::rank::{JobRank, TeamRank};
use crate::report;
use crate::runtime::ops::OpHandle;
use crate::runtime::{Ctx, ThreadMode};
use crate::trace::{EventDetail, span};
use core::ffi::{c_int, c_uint, c_void};

/// `GASNET_COLL_NONCOMM`, a flag of a function.
const NONCOMM: c_uint = 1 << 1;
/// `GASNET_BARRIERFLAG_IMAGES`
const BARRIER_IMAGES: c_int = 4;

/// `gasnet_team_handle_t`: the number of a team, plus one.
type TeamHandle = *const c_void;
/// `gasnet_coll_handle_t`: the handle of an operation, as `gasnet_handle_t`.
type CollHandle = OpHandle;
/// `void *const []`
type BlockList = *const *mut c_void;

/// `gasnet_coll_fn_entry_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FnEntry {
    fnptr: Option<ReduceFn>,
    flags: c_uint,
}

fn team_of(c: Ctx, function: &str, handle: TeamHandle) -> TeamRef {
    let number = (handle as usize).wrapping_sub(1);
    match u32::try_from(number).ok().and_then(|id| collectives(c).team(id)) {
        Some(team) => team,
        None if number == 0 && ex::is_client() => collectives(c).one_image_each(c),
        None if number == 0 => report::fatal(
            format_args!("{function}() was called before gasnet_coll_init()"),
            format_args!("Call gasnet_coll_init in every image after gasnet_attach."),
        ),
        None => report::fatal(
            format_args!("{function}(): {handle:p} is no team of this process"),
            format_args!("Pass GASNET_TEAM_ALL or what gasnet_coll_team_split returned here."),
        ),
    }
}

/// Initialises the collectives: every image calls it once, before anything else of them.
/// Collective over all images.
///
/// - `images`: the number of images of each rank, at least 1, and in SEQ 1; null for one each.
///   Read before the call returns.
/// - `my_image`: number of the calling image, from 0, which no other thread passes; not used if
///   `images` is null.
/// - `fn_tbl`: `fn_count` functions for reductions and scans; not used after the call. All
///   images pass the same.
/// - `fn_count`: rows of the table; 0 for none.
/// - `init_flags`: not used.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `images` must be null or hold the number of images of each process, `fn_tbl` `fn_count`
/// functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_init(
    images: *const u32,
    my_image: u32,
    fn_tbl: *mut FnEntry,
    fn_count: usize,
    _init_flags: c_int,
) {
    let _span = span!(W "gasnet_coll_init");
    let function = "gasnet_coll_init";
    let c = ctx(function);
    let counts = if images.is_null() {
        vec![1; c.team().size() as usize]
    } else {
        // SAFETY: the specification of gasnet_coll_init demands the number of images of each
        // process, or null.
        unsafe { core::slice::from_raw_parts(images, c.team().size() as usize) }.to_vec()
    };
    if let Some(node) = counts.iter().position(|&n| n == 0) {
        report::fatal(
            format_args!("{function}(): rank {node} has no images"),
            format_args!("Each process has at least one image."),
        );
    }
    let own = c.endpoint().rank;
    let own_images = counts[c.team().me().index()];
    if c.client().threads == ThreadMode::Seq && own_images > 1 {
        report::fatal(
            format_args!(
                "{function}(): rank {own} has {own_images} images, and one thread: the program is compiled for GASNET_SEQ"
            ),
            format_args!("Pass null for one image each, or compile for GASNET_PAR."),
        );
    }
    let table = if fn_tbl.is_null() || fn_count == 0 {
        &[]
    } else {
        // SAFETY: the specification of gasnet_coll_init demands `fn_count` rows, unless the
        // table is null.
        unsafe { core::slice::from_raw_parts(fn_tbl, fn_count) }
    };
    let functions: Vec<(ReduceFn, c_int)> = table
        .iter()
        .enumerate()
        .map(|(i, e)| match e.fnptr {
            Some(f) => (f, (e.flags & NONCOMM) as c_int),
            None => report::fatal(
                format_args!("{function}(): row {i} of the function table is null"),
                format_args!("Pass the number of functions that the table has."),
            ),
        })
        .collect();
    let mine = if images.is_null() { own.0 } else { my_image };
    collectives(c).init(c, &counts, mine, &functions);
}

/// Splits a team: its processes that pass the same color form a new one. Collective over the
/// images of the team.
///
/// - `parent_team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `color`: which of the new teams this process joins.
/// - `relrank`: orders the members: by it, then by their rank in the parent team.
/// - `clientdata`: not used.
/// - Returns the new team. It lives until the process ends.
/// - Context: by every image of the team, in the same order as its other collectives. Not in a
///   handler or a no-interrupt section, and not while a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_team_split(
    parent_team: TeamHandle,
    color: u32,
    relrank: u32,
    _clientdata: *mut c_void,
) -> TeamHandle {
    let _span = span!(W "gasnet_coll_team_split");
    let function = &"gasnet_coll_team_split";
    let c = ctx(function);
    (collectives(c).split(c, function, &team_of(c, function, parent_team), color, relrank).id()
        as usize
        + 1) as TeamHandle
}

/// Returns the number of processes of a team.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - Context: after `gasnet_coll_init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_team_size(team: TeamHandle) -> u32 {
    let function = "gasnet_coll_team_size";
    team_of(ctx(function), function, team).size()
}

/// Returns the rank of a team member in the job.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `rank`: its rank in the team; one that the team does not have ends the job.
/// - Context: after `gasnet_coll_init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_team_rank2node(team: TeamHandle, rank: c_int) -> u32 {
    let function = "gasnet_coll_team_rank2node";
    let team = team_of(ctx(function), function, team);
    team.job_rank(TeamRank(rank as u32)).map(|r| r.0).unwrap_or_else(|| {
        report::fatal(
            format_args!(
                "{function}(): rank {rank} is out of range; this team has {}, from 0",
                team.size()
            ),
            format_args!("Pass a rank below gasnet_coll_team_size()."),
        )
    })
}

/// Returns the rank of a process in a team.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `node`: its rank in the job; one that is not in the team ends the job.
/// - Context: after `gasnet_coll_init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_team_node2rank(team: TeamHandle, node: u32) -> u32 {
    let function = "gasnet_coll_team_node2rank";
    team_of(ctx(function), function, team).team_rank(JobRank(node)).map(|r| r.0).unwrap_or_else(
        || {
            report::fatal(
                format_args!("{function}(): rank {node} is not in this team"),
                format_args!("Ask only for members of the team."),
            )
        },
    )
}

/// Notifies the barrier of a team.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `id`, `flags`: as of `gasnet_barrier_notify`; with `GASNET_BARRIERFLAG_IMAGES` every image
///   calls, otherwise one per process.
/// - Context: after `gasnet_coll_init`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_barrier_notify(team: TeamHandle, id: c_int, flags: c_int) {
    let _span = span!(B "gasnet_coll_barrier_notify", EventDetail::Barrier { id, flags });
    let function = "gasnet_coll_barrier_notify";
    let c = ctx(function);
    let (team, images) = (team_of(c, function, team), flags & BARRIER_IMAGES != 0);
    collectives(c).barrier_notify(c, function, &team, (id, flags), images);
}

/// Waits until all members have notified the barrier that the caller notified.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `id`, `flags`: as of `gasnet_barrier_notify`; with `GASNET_BARRIERFLAG_IMAGES` every image
///   calls, otherwise one per process.
/// - Returns `GASNET_OK`, or `GASNET_ERR_BARRIER_MISMATCH` if the names do not match; the
///   barrier is over in both cases.
/// - Context: after `gasnet_coll_init`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_barrier_wait(team: TeamHandle, id: c_int, flags: c_int) -> c_int {
    let mut span = span!(B "gasnet_coll_barrier_wait", EventDetail::Barrier { id, flags });
    let function = "gasnet_coll_barrier_wait";
    let c = ctx(function);
    let (team, images) = (team_of(c, function, team), flags & BARRIER_IMAGES != 0);
    let result = collectives(c).barrier_wait(c, function, &team, (id, flags), images);
    span.result(code(result))
}

/// Polls once and reports whether the barrier that the caller notified is over.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `id`, `flags`: as of `gasnet_barrier_notify`; with `GASNET_BARRIERFLAG_IMAGES` every image
///   calls, otherwise one per process.
/// - Returns `GASNET_OK` or `GASNET_ERR_BARRIER_MISMATCH` if it is over, `GASNET_ERR_NOT_READY`
///   otherwise.
/// - Context: after `gasnet_coll_init`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_barrier_try(team: TeamHandle, id: c_int, flags: c_int) -> c_int {
    let mut span = span!(B "gasnet_coll_barrier_try", EventDetail::Barrier { id, flags });
    let function = "gasnet_coll_barrier_try";
    let c = ctx(function);
    let (team, images) = (team_of(c, function, team), flags & BARRIER_IMAGES != 0);
    let result = collectives(c).barrier_try(c, function, &team, (id, flags), images);
    span.result(code(result))
}

/// Notifies the barrier of a team and waits for it.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `id`, `flags`: as of `gasnet_barrier_notify`; with `GASNET_BARRIERFLAG_IMAGES` every image
///   calls, otherwise one per process.
/// - Returns `GASNET_OK`, or `GASNET_ERR_BARRIER_MISMATCH` if the names do not match; the
///   barrier is over in both cases.
/// - Context: after `gasnet_coll_init`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_barrier(team: TeamHandle, id: c_int, flags: c_int) -> c_int {
    let mut span = span!(B "gasnet_coll_barrier", EventDetail::Barrier { id, flags });
    let function = "gasnet_coll_barrier";
    let c = ctx(function);
    let (team, images) = (team_of(c, function, team), flags & BARRIER_IMAGES != 0);
    let coll = collectives(c);
    coll.barrier_notify(c, function, &team, (id, flags), images);
    span.result(code(coll.barrier_wait(c, function, &team, (id, flags), images)))
}

/// Reports the name of the last barrier of a team that the caller completed.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `id`: where the name is stored if the barrier had one; null if it is not wanted.
/// - Returns 1 if the barrier was anonymous for all members, else 0.
/// - Context: after `gasnet_coll_init`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `id` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_barrier_result(team: TeamHandle, id: *mut c_int) -> c_int {
    let function = "gasnet_coll_barrier_result";
    let c = ctx(function);
    match team_of(c, function, team).result() {
        None => 1,
        Some(name) => {
            if !id.is_null() {
                // SAFETY: not null, so where the specification of the barrier has the name
                // stored.
                unsafe { id.write(name) };
            }
            0
        }
    }
}
