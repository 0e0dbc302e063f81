//! Events: of operations one by one and in arrays, of implicit operations by category, of access
//! regions.
//!
//! Called by clients. Invariant: an event is the handle of an operation or of its leaf; the leaf
//! of one that does not count departures ends with it. A handle that was synced counts as
//! complete, as does the leaf of such a one, but debug checks report both.

use super::{Event, Flags, client_event, event};
use crate::capi::sync::ready;
use crate::capi::{OK, check_empty_call, ctx};
use crate::extended::sync::HandleNeed;
use crate::report;
use crate::runtime::ops::{ImplicitKind, OpHandle};
use crate::runtime::{Ctx, checks};
use crate::trace::{EventDetail, watch};
use core::ffi::{c_int, c_uint};

/// `GEX_EVENT_NO_OP`
const NO_OP: OpHandle = OpHandle(1);
/// `GEX_EC_LC`
const LOCAL_COMPLETION: c_uint = 2;
/// `GEX_EC_PUT`, `GEX_EC_GET`, `GEX_EC_RMW`, `GEX_EC_LC` and `GEX_EC_AM`
const CATEGORIES: [c_uint; 4] = [3, 4, 8, LOCAL_COMPLETION];

/// The events of an array, checked, and the context of the caller.
///
/// # Safety
/// `events` must point to `n` events that no other thread uses meanwhile; it may be anything if
/// `n` is 0.
unsafe fn array<'a>(
    function: &str,
    events: *mut Event,
    n: usize,
    flags: Flags,
) -> (Ctx, &'a mut [OpHandle]) {
    let c = ctx(function);
    c.check_no_flags(function, flags);
    if n == 0 {
        return (c, &mut []);
    }
    // SAFETY: by this function's condition; an OpHandle is a word of the size of a pointer.
    let events: &mut [OpHandle] = unsafe { core::slice::from_raw_parts_mut(events.cast(), n) };
    if events.contains(&NO_OP) {
        no_op(function);
    }
    c.check_events(function, events);
    (c, events)
}

#[cold]
fn no_op(function: &str) -> ! {
    report::fatal(
        format_args!("{function}(): GEX_EVENT_NO_OP is no event"),
        format_args!("Call again what returned it: nothing was initiated."),
    )
}

/// Reports whether an event has happened. Does not poll.
///
/// - `event`: what a call returned; `GEX_EVENT_INVALID` counts as happened. It is invalid once it
///   was found to have happened.
/// - Returns `GASNET_OK` or `GASNET_ERR_NOT_READY`.
/// - Context: after `gex_Client_Init`; not in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Event_Test(event: Event) -> c_int {
    watch!(S "gex_Event_Test", EventDetail::Sync(1), gex_Event_Test(event));
    let (function, mut event) = ("gex_Event_Test", event);
    if event.is_null() {
        check_empty_call(function);
        return OK;
    }
    // SAFETY: one event, which belongs to this call.
    let (c, events) = unsafe { array(function, &mut event, 1, 0) };
    ready(c.ops_done(events, HandleNeed::All))
}

/// Waits for an event.
///
/// - `event`: what a call returned; `GEX_EVENT_INVALID` counts as happened. It is invalid
///   afterwards.
/// - Context: after `gex_Client_Init`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Event_Wait(event: Event) {
    watch!(S "gex_Event_Wait", EventDetail::Sync(1), gex_Event_Wait(event));
    let (function, mut event) = ("gex_Event_Wait", event);
    if event.is_null() {
        check_empty_call(function);
        return;
    }
    // SAFETY: one event, which belongs to this call.
    let (c, events) = unsafe { array(function, &mut event, 1, 0) };
    c.wait_ops(events, HandleNeed::All);
}

/// Reports whether at least one of several events has happened. Does not poll.
///
/// - `pevent`, `numevents`: the events. Entries that are `GEX_EVENT_INVALID` are ignored; those of
///   events that have happened become `GEX_EVENT_INVALID`.
/// - `flags`: 0.
/// - Returns `GASNET_OK` if one has happened or all are invalid, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: after `gex_Client_Init`; not in a handler.
///
/// # Safety
/// `pevent` must point to `numevents` events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_Event_TestSome(
    pevent: *mut Event,
    numevents: usize,
    flags: Flags,
) -> c_int {
    watch!(S "gex_Event_TestSome", EventDetail::Sync(numevents), gex_Event_TestSome(pevent, numevents, flags));
    let function = "gex_Event_TestSome";
    // SAFETY: the specification demands an array of as many events.
    let (c, events) = unsafe { array(function, pevent, numevents, flags) };
    ready(c.ops_done(events, HandleNeed::Some))
}

/// Waits until at least one of several events has happened.
///
/// - `pevent`, `numevents`: the events. Entries that are `GEX_EVENT_INVALID` are ignored; those of
///   events that have happened become `GEX_EVENT_INVALID`.
/// - `flags`: 0.
/// - Context: after `gex_Client_Init`; not in a handler, and not while a handler-safe lock is
///   held.
///
/// # Safety
/// `pevent` must point to `numevents` events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_Event_WaitSome(pevent: *mut Event, numevents: usize, flags: Flags) {
    watch!(S "gex_Event_WaitSome", EventDetail::Sync(numevents), gex_Event_WaitSome(pevent, numevents, flags));
    let function = "gex_Event_WaitSome";
    // SAFETY: the specification demands an array of as many events.
    let (c, events) = unsafe { array(function, pevent, numevents, flags) };
    c.wait_ops(events, HandleNeed::Some);
}

/// Reports whether all of several events have happened. Does not poll.
///
/// - `pevent`, `numevents`: the events. Entries that are `GEX_EVENT_INVALID` are ignored; those of
///   events that have happened become `GEX_EVENT_INVALID`.
/// - `flags`: 0.
/// - Returns `GASNET_OK` or `GASNET_ERR_NOT_READY`.
/// - Context: after `gex_Client_Init`; not in a handler.
///
/// # Safety
/// `pevent` must point to `numevents` events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_Event_TestAll(
    pevent: *mut Event,
    numevents: usize,
    flags: Flags,
) -> c_int {
    watch!(S "gex_Event_TestAll", EventDetail::Sync(numevents), gex_Event_TestAll(pevent, numevents, flags));
    let function = "gex_Event_TestAll";
    // SAFETY: the specification demands an array of as many events.
    let (c, events) = unsafe { array(function, pevent, numevents, flags) };
    ready(c.ops_done(events, HandleNeed::All))
}

/// Waits until all of several events have happened.
///
/// - `pevent`, `numevents`: the events. Entries that are `GEX_EVENT_INVALID` are ignored; all
///   become `GEX_EVENT_INVALID`.
/// - `flags`: 0.
/// - Context: after `gex_Client_Init`; not in a handler, and not while a handler-safe lock is
///   held.
///
/// # Safety
/// `pevent` must point to `numevents` events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_Event_WaitAll(pevent: *mut Event, numevents: usize, flags: Flags) {
    watch!(S "gex_Event_WaitAll", EventDetail::Sync(numevents), gex_Event_WaitAll(pevent, numevents, flags));
    let function = "gex_Event_WaitAll";
    // SAFETY: the specification demands an array of as many events.
    let (c, events) = unsafe { array(function, pevent, numevents, flags) };
    c.wait_ops(events, HandleNeed::All);
}

/// Returns the event of a part of an operation: that its local side may be reused.
///
/// - `root`: the event of the operation, not synced.
/// - `event_category`: one of `GEX_EC_*`. `GEX_EC_LC`: its sources may be reused; others: it is
///   complete.
/// - Returns the event, the same each time. It may be synced before the root, in one array with
///   it, or not at all.
/// - Context: after `gex_Client_Init`; not in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Event_QueryLeaf(root: Event, event_category: c_uint) -> Event {
    let (function, handle) = ("gex_Event_QueryLeaf", OpHandle(root.addr()));
    if handle == NO_OP {
        no_op(function);
    }
    if checks::on() {
        check_leaf(function, handle, event_category);
    }
    match event_category {
        _ if root.is_null() => root,
        LOCAL_COMPLETION => event(handle.leaf()),
        _ => event(handle.end_leaf()),
    }
}

#[cold]
fn check_leaf(function: &str, root: OpHandle, category: c_uint) {
    ctx(function).check_events(function, &[root]);
    if root.is_leaf() {
        report::fatal(
            format_args!("{function}(): the event {:#x} is a leaf, which has none", root.0),
            format_args!("Pass the event that the call of the operation returned."),
        );
    }
    if !CATEGORIES.contains(&category) {
        report::fatal(
            format_args!("{function}(): {category:#x} is not one category of events"),
            format_args!("Pass GEX_EC_LC, or GEX_EC_GET, _PUT, _AM or _RMW alone."),
        );
    }
}

/// The kinds of implicit operations of a mask of categories (`GEX_EC_*`).
fn kinds(mask: c_uint) -> impl Iterator<Item = ImplicitKind> + Clone {
    use ImplicitKind::{Atomics, Departures, Gets, Puts};
    // `GEX_EC_PUT` is the first two. The payload of a message departs within its call.
    let by_bit = [Puts, Departures, Gets, Atomics].into_iter().enumerate();
    by_bit.filter_map(move |(bit, kind)| (mask & 1 << bit != 0).then_some(kind))
}

/// Reports whether the implicit operations of the calling thread are complete. Does not poll.
///
/// - `event_mask`: which of them, a combination of `GEX_EC_*`: `PUT` and `GET` for puts and gets
///   of RMA, VIS and atomics, `RMW` for the other atomics, `LC` for the local side of puts, `AM`
///   for messages, `ALL`.
/// - `flags`: 0.
/// - Returns `GASNET_OK` or `GASNET_ERR_NOT_READY`.
/// - Context: outside access regions, after `gex_Client_Init`; not in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_NBI_Test(event_mask: c_uint, flags: Flags) -> c_int {
    watch!(S "gex_NBI_Test", EventDetail::Nothing, gex_NBI_Test(event_mask, flags));
    let (function, c) = ("gex_NBI_Test", ctx("gex_NBI_Test"));
    c.check_no_flags(function, flags);
    c.check_outside_region(function);
    ready(c.kinds_done(kinds(event_mask)))
}

/// Waits for the implicit operations of the calling thread.
///
/// - `event_mask`: which of them, a combination of `GEX_EC_*`: `PUT` and `GET` for puts and gets
///   of RMA, VIS and atomics, `RMW` for the other atomics, `LC` for the local side of puts, `AM`
///   for messages, `ALL`.
/// - `flags`: 0.
/// - Context: outside access regions, after `gex_Client_Init`; not in a handler, and not while a
///   handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_NBI_Wait(event_mask: c_uint, flags: Flags) {
    watch!(S "gex_NBI_Wait", EventDetail::Nothing, gex_NBI_Wait(event_mask, flags));
    let (function, c) = ("gex_NBI_Wait", ctx("gex_NBI_Wait"));
    c.check_no_flags(function, flags);
    c.check_outside_region(function);
    c.wait_kinds(kinds(event_mask));
}

/// Begins an access region of the calling thread: what it initiates implicitly belongs to the
/// event that `gex_NBI_EndAccessRegion` returns.
///
/// - `flags`: 0.
/// - Context: outside access regions, after `gex_Client_Init`; not in a handler, and not while a
///   handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_NBI_BeginAccessRegion(flags: Flags) {
    watch!(S "gex_NBI_BeginAccessRegion", EventDetail::Nothing, gex_NBI_BeginAccessRegion(flags));
    let function = "gex_NBI_BeginAccessRegion";
    let c = ctx(function);
    c.check_no_flags(function, flags);
    c.begin_region(function);
}

/// Ends the access region of the calling thread.
///
/// - `flags`: 0.
/// - Returns the event of all that was initiated in it.
/// - Context: in an access region; not in a handler, and not while a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_NBI_EndAccessRegion(flags: Flags) -> Event {
    watch!(S "gex_NBI_EndAccessRegion", EventDetail::Nothing, gex_NBI_EndAccessRegion(flags));
    let function = "gex_NBI_EndAccessRegion";
    let c = ctx(function);
    c.check_no_flags(function, flags);
    client_event(event(c.end_region(function)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_category_selects_its_operations() {
        use ImplicitKind::{Atomics, Departures, Gets, Puts};
        let of = |mask: c_uint| kinds(mask).collect::<Vec<_>>();
        assert_eq!((of(0), of(4)), (vec![], vec![Gets]));
        assert_eq!((of(3), of(2)), (vec![Puts, Departures], vec![Departures]));
        assert_eq!((of(8), of(12)), (vec![Atomics], vec![Gets, Atomics]));
        assert_eq!(of(c_uint::MAX), [Puts, Departures, Gets, Atomics]);
    }
}
