//! Collectives of GASNet-EX.
//!
//! Called by clients, by all members of a team in the same order. Invariant: what reaches the
//! extended layer has a team, a root in it, and buffers as long as the request says.

use super::misuse::note_collective;
use super::objects::{ExObject, team_of};
use super::{Event, Flags, Rank, client_event, event};
use crate::capi::ctx;
use crate::client_memory::{Dst, Src};
use crate::extended::coll::operators::{NumberType, number_fn};
use crate::extended::coll::{
    CollBuffers, CollCall, CollOperation, CollRequest, InPlaceFn, ReduceOperator, Reduction,
};
use crate::extended::collectives;
use crate::rank::NamedRank;
use crate::report;
use crate::runtime::Ctx;
use crate::runtime::activity::WaitReason;
use crate::runtime::checks::{self, check_local};
use crate::runtime::ops::OpHandle;
use crate::tools::constant_names::{DataTypes, Operations};
use crate::trace::{EventDetail, span};
use core::ffi::c_void;

/// `GEX_DT_USER`
const USER_TYPE: u32 = 1 << 6;
/// `GEX_OP_USER`
const USER_OP: u32 = 1 << 30;
/// `GEX_OP_USER_NC`
const USER_OP_NC: u32 = 1 << 31;

/// What a client wants of a reduction.
#[derive(Clone, Copy, Debug)]
struct ReduceArguments {
    dt: u32,
    dt_sz: usize,
    dt_cnt: usize,
    op: u32,
    user_op: Option<InPlaceFn>,
    user_cdata: *const c_void,
}

impl ReduceArguments {
    /// The reduction, and the bytes of all elements.
    fn reduction(self, function: &str) -> (Reduction, usize) {
        let refuse = |why: &str, remedy: &str| -> ! {
            report::fatal(format_args!("{function}(): {why}"), format_args!("{remedy}"))
        };
        let number = NumberType::of(self.dt);
        let elem_size = match number {
            Some(number) if number.size() == self.dt_sz => self.dt_sz,
            Some(_) => refuse("dt_sz is not the size of the type", "Pass sizeof of the type."),
            None if self.dt == USER_TYPE && self.dt_sz == 0 => {
                refuse("dt_sz is 0", "Pass the bytes of an element of GEX_DT_USER.")
            }
            None if self.dt == USER_TYPE => self.dt_sz,
            None => refuse("dt is no type", "Pass one of GEX_DT_*."),
        };
        let operator = match (self.op, self.user_op, number) {
            (USER_OP, Some(f), _) => {
                let cdata = self.user_cdata.expose_provenance();
                ReduceOperator::InPlace { function: f, cdata }
            }
            (USER_OP_NC, ..) => refuse(
                "GEX_OP_USER_NC is not available",
                "Pass GEX_OP_USER and a commutative function.",
            ),
            (USER_OP, None, _) => refuse("user_op is null", "Pass the function of GEX_OP_USER."),
            (op, _, Some(number)) => match number_fn(number, op) {
                Some(function) => ReduceOperator::Builtin { function, code: self.dt << 8 | op },
                None => report::fatal(
                    format_args!(
                        "{function}(): {} has no reduction {}",
                        DataTypes(self.dt),
                        Operations(op)
                    ),
                    format_args!(
                        "Pass GEX_OP_ADD, MULT, MIN or MAX, for integers also AND, OR or XOR, or GEX_OP_USER."
                    ),
                ),
            },
            _ => refuse("GEX_DT_USER has no operations", "Pass GEX_OP_USER and a function."),
        };
        if self.dt_cnt == 0 && checks::on() {
            refuse("dt_cnt is 0", "Pass the number of elements of each rank, at least 1.");
        }
        match elem_size.checked_mul(self.dt_cnt) {
            Some(bytes) => (Reduction { operator, elem_size }, bytes),
            None => {
                refuse("the elements have more bytes than memory", "Pass the number of elements.")
            }
        }
    }

    /// Initiates a reduction to `root`, or to all.
    ///
    /// # Safety
    /// `src` must hold all elements until the event has happened, and so must `dst`, where results
    /// are stored.
    unsafe fn initiate(
        self,
        function: WaitReason,
        tm: ExObject,
        (operation, root): (CollOperation, Rank),
        dst: *mut c_void,
        src: *const c_void,
    ) -> Event {
        let (reduction, nbytes) = self.reduction(function);
        let request = CollRequest {
            root,
            reduction: Some(reduction),
            ..CollRequest::new(operation, nbytes)
        };
        // SAFETY: by this function's condition.
        unsafe { initiate(ctx(function), function, tm, request, dst, src) }
    }
}

/// Initiates a collective of a team.
///
/// # Safety
/// `dst` must be writable, `src` readable, as long as [`CollRequest::extents`] says.
unsafe fn initiate(
    c: Ctx,
    function: WaitReason,
    tm: ExObject,
    request: CollRequest,
    dst: *mut c_void,
    src: *const c_void,
) -> Event {
    let team = team_of(c, function, tm);
    if request.root >= team.size() {
        report::fatal(
            format_args!(
                "{function}(): root {} is out of range; this team has {}, from 0",
                NamedRank(request.root),
                team.size()
            ),
            format_args!("Pass a rank below gex_TM_QuerySize()."),
        );
    }
    let coll = collectives(c);
    let (_, me) = coll.caller(c, function, &team, true);
    let (to, from) = request.extents(me, team.size());
    if checks::on() {
        check_local(function, ("dst", dst.cast()), to.end);
        check_local(function, ("src", src.cast()), from.end);
    }
    // SAFETY: by this function's condition.
    let dst = unsafe { Dst::new(dst.cast(), to.end) };
    // SAFETY: likewise.
    let src = unsafe { Src::new(src.cast(), from.end) };
    let buffers = CollBuffers { dst, src };
    let call = CollCall { function, team, by_process: true, request, buffers };
    let event = client_event(event(coll.initiate(c, &call, false)));
    if checks::on() {
        note_collective(c, tm, OpHandle(event.addr()));
    }
    event
}

/// What a trace records of a collective.
fn detail(tm: ExObject, root: Rank, bytes: usize) -> EventDetail {
    EventDetail::Collective { team: tm.number(), root, bytes }
}

/// Returns when all members of a team have called it.
pub(super) fn meet(c: Ctx, function: WaitReason, tm: ExObject) {
    let team = team_of(c, function, tm);
    let buffers = CollBuffers { dst: Dst::empty(), src: Src::empty() };
    let call = CollCall { function, team, by_process: true, request: barrier(), buffers };
    collectives(c).wait_for(c, &call);
}

fn barrier() -> CollRequest {
    CollRequest { in_allsync: true, ..CollRequest::new(CollOperation::Barrier, 0) }
}

/// Initiates a barrier of a team.
///
/// - `tm`: the team.
/// - `flags`: 0.
/// - Returns an event that happens when all members have called.
/// - Context: by all members in the order of their other collectives; not in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Coll_BarrierNB(tm: ExObject, flags: Flags) -> Event {
    let _span = span!(B "gex_Coll_BarrierNB", detail(tm, 0, 0));
    let function = &"gex_Coll_BarrierNB";
    let (c, null) = (ctx(function), core::ptr::null_mut());
    c.check_no_flags(function, flags);
    // SAFETY: a barrier has no memory.
    unsafe { initiate(c, function, tm, barrier(), null, null) }
}

/// Waits until all members of a team have called.
///
/// - `tm`: the team.
/// - `flags`: 0.
/// - Context: by all members in the order of their other collectives; not in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Coll_BarrierBlocking(tm: ExObject, flags: Flags) {
    let _span = span!(B "gex_Coll_BarrierBlocking", detail(tm, 0, 0));
    let function = &"gex_Coll_BarrierBlocking";
    let c = ctx(function);
    c.check_no_flags(function, flags);
    meet(c, function, tm);
}

/// Initiates a copy from one rank of a team to all.
///
/// - `tm`: the team.
/// - `root`: the rank that has the data.
/// - `dst`: where they are stored, in all members.
/// - `src`: where they are, at the root; it may be `dst`.
/// - `nbytes`: their bytes.
/// - `flags`: 0.
/// - Returns an event that happens when the memory of this rank may be used again.
/// - Context: by all members in the order of their other collectives; not in a handler.
///
/// # Safety
/// `dst`, and at the root `src`, must have `nbytes` bytes until the event has happened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_Coll_BroadcastNB(
    tm: ExObject,
    root: Rank,
    dst: *mut c_void,
    src: *const c_void,
    nbytes: usize,
    _flags: Flags,
) -> Event {
    let _span = span!(W "gex_Coll_BroadcastNB", detail(tm, root, nbytes));
    let function = &"gex_Coll_BroadcastNB";
    let request = CollRequest { root, ..CollRequest::new(CollOperation::Broadcast, nbytes) };
    // SAFETY: the specification demands buffers of `nbytes` bytes.
    unsafe { initiate(ctx(function), function, tm, request, dst, src) }
}

/// Initiates a reduction of the elements of all ranks of a team to one.
///
/// - `tm`: the team.
/// - `root`: the rank that gets the results.
/// - `dst`: where they are stored, at the root; it may be `src`.
/// - `src`: the elements of this rank.
/// - `dt`, `dt_sz`, `dt_cnt`: the type of an element, its bytes if it is `GEX_DT_USER`, and how
///   many there are.
/// - `op`: what combines two elements.
/// - `user_op`, `user_cdata`: the function of `GEX_OP_USER` and its argument.
/// - `flags`: 0.
/// - Returns an event that happens when the memory of this rank may be used again.
/// - Context: by all members in the order of their other collectives; not in a handler.
///
/// # Safety
/// `src`, and at the root `dst`, must hold all elements until the event has happened; `user_op`
/// must combine elements in place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_Coll_ReduceToOneNB(
    tm: ExObject,
    root: Rank,
    dst: *mut c_void,
    src: *const c_void,
    dt: u32,
    dt_sz: usize,
    dt_cnt: usize,
    op: u32,
    user_op: Option<InPlaceFn>,
    user_cdata: *const c_void,
    _flags: Flags,
) -> Event {
    let _span = span!(W "gex_Coll_ReduceToOneNB", detail(tm, root, dt_sz.saturating_mul(dt_cnt)));
    let function = &"gex_Coll_ReduceToOneNB";
    let arguments = ReduceArguments { dt, dt_sz, dt_cnt, op, user_op, user_cdata };
    // SAFETY: the specification demands buffers of all elements.
    unsafe { arguments.initiate(function, tm, (CollOperation::Reduce, root), dst, src) }
}

/// Initiates a reduction of the elements of all ranks of a team to all.
///
/// - `tm`: the team.
/// - `dst`: where the results are stored; it may be `src`, in all members or in none.
/// - `src`: the elements of this rank.
/// - `dt`, `dt_sz`, `dt_cnt`: the type of an element, its bytes if it is `GEX_DT_USER`, and how
///   many there are.
/// - `op`: what combines two elements.
/// - `user_op`, `user_cdata`: the function of `GEX_OP_USER` and its argument.
/// - `flags`: 0.
/// - Returns an event that happens when the memory of this rank may be used again.
/// - Context: by all members in the order of their other collectives; not in a handler.
///
/// # Safety
/// `src` and `dst` must hold all elements until the event has happened; `user_op` must combine
/// elements in place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_Coll_ReduceToAllNB(
    tm: ExObject,
    dst: *mut c_void,
    src: *const c_void,
    dt: u32,
    dt_sz: usize,
    dt_cnt: usize,
    op: u32,
    user_op: Option<InPlaceFn>,
    user_cdata: *const c_void,
    _flags: Flags,
) -> Event {
    let _span = span!(W "gex_Coll_ReduceToAllNB", detail(tm, 0, dt_sz.saturating_mul(dt_cnt)));
    let function = &"gex_Coll_ReduceToAllNB";
    let arguments = ReduceArguments { dt, dt_sz, dt_cnt, op, user_op, user_cdata };
    // SAFETY: the specification demands buffers of all elements.
    unsafe { arguments.initiate(function, tm, (CollOperation::ReduceAll, 0), dst, src) }
}
