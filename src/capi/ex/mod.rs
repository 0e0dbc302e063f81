//! The GASNet-EX interface, in the same library as GASNet-1 and over the same layers.
//!
//! Called by clients. Invariant: an object of a client is a number that this folder checks; no
//! pointer that a client passes as an object is followed.
//!
//! | file | what it owns |
//! |---|---|
//! | `objects` | clients, endpoints, teams and segments as clients name them |
//! | `job` | `gex_Client_Init`, `gex_Segment_Attach`, queries about the job |
//! | `segment` | endpoints and segments |
//! | `created_segment` | segments that clients make of memory |
//! | `team` | teams |
//! | `rma`, `vis` | puts and gets; vector, indexed and strided ones |
//! | `event` | events, implicit operations, access regions |
//! | `am`, `negotiated` | active messages; those whose payload is negotiated |
//! | `coll` | collectives |
//! | `atomics` | remote atomics |
//! | `hsl` | handler-safe locks |
//! | `misuse` | debug checks that only this interface has |
//! | `format` | sets of constants as text |

/// What a call of an explicit form returns, or one of another form.
macro_rules! done {
    (Explicit, $call:expr) => {
        $crate::capi::ex::client_event($call)
    };
    ($form:ident, $call:expr) => {{
        $call;
        OK
    }};
}

pub mod am;
pub mod atomics;
pub mod coll;
mod created_segment;
pub mod event;
pub mod format;
pub mod hsl;
pub mod job;
mod misuse;
pub mod negotiated;
mod objects;
pub mod rma;
pub mod segment;
pub mod team;
pub mod vis;

use super::early_job;
use crate::report;
use crate::runtime::checks;
use crate::runtime::ops::OpHandle;
use core::ffi::{c_int, c_void};
use sys::hint::cold_path;

/// `gex_Rank_t`
type Rank = u32;
/// `gex_Flags_t`
type Flags = u32;
/// `gex_Event_t`
type Event = *mut c_void;

/// `GEX_FLAG_IMMEDIATE`: the call does nothing where it would wait for resources.
const IMMEDIATE: Flags = 1;
/// What a call with `GEX_FLAG_IMMEDIATE` returns that has done nothing.
const REFUSED: c_int = 1;
/// `GEX_EVENT_NO_OP`, the same of a call that returns an event.
const NO_OP: Event = core::ptr::without_provenance_mut(1);

/// Whether a call is to be refused where it would wait.
#[inline(always)]
fn is_immediate(flags: Flags) -> bool {
    let immediate = flags & IMMEDIATE != 0;
    if immediate {
        cold_path();
    }
    immediate
}

/// `GEX_RANK_INVALID`
const RANK_INVALID: Rank = Rank::MAX;

/// Whether `gex_Client_Init` started the job.
pub(super) fn is_client() -> bool {
    objects::RECORD.get().is_some()
}

/// The event of an operation.
fn event(handle: OpHandle) -> Event {
    handle.0 as Event
}

/// The event that a client gets of a call of the calling thread. Where calls are checked it is not
/// `GEX_EVENT_INVALID` even if it has happened: a misuse is found whether or not memory is mapped.
#[inline(always)]
fn client_event(event: Event) -> Event {
    if checks::on() && event.is_null() { checked_event() } else { event }
}

#[cold]
fn checked_event() -> Event {
    event(early_job("a call that returns an event").ctx().real_handle(OpHandle::INVALID))
}

/// The address that `GEX_EVENT_NOW` is.
const NOW: usize = 1;

/// Where a call reports that its local side may be reused (`gex_Event_t *lc_opt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LocalCompletion {
    /// Null.
    None,
    /// `GEX_EVENT_NOW`: before the call returns.
    Now,
    /// `GEX_EVENT_DEFER`: with the operation.
    Defer,
    /// `GEX_EVENT_GROUP`: with the implicit operations of the thread.
    Group,
    /// By an event that the call stores there.
    At(*mut Event),
}

impl LocalCompletion {
    fn of(lc_opt: *mut Event) -> LocalCompletion {
        match lc_opt.addr() {
            0 => LocalCompletion::None,
            NOW => LocalCompletion::Now,
            2 => LocalCompletion::Defer,
            3 => LocalCompletion::Group,
            _ => LocalCompletion::At(lc_opt),
        }
    }

    /// That of a message; ends the job if a message has none such. `group`: the message may belong
    /// to an access region.
    fn of_message(function: &str, lc_opt: *mut Event, group: bool) -> LocalCompletion {
        match LocalCompletion::of(lc_opt) {
            local @ (LocalCompletion::Now | LocalCompletion::At(_)) => local,
            LocalCompletion::Group if group => LocalCompletion::Group,
            _ => wrong_lc_opt(function, "GROUP (for a request) or a place"),
        }
    }

    /// Stores the event, where the client wants one.
    ///
    /// # Safety
    /// The place must be writable.
    unsafe fn store(self, value: Event) {
        if let LocalCompletion::At(place) = self {
            // SAFETY: writable, by this function's condition.
            unsafe { place.write(value) };
        }
    }
}

/// Ends the job: the call has no such local completion.
#[cold]
fn wrong_lc_opt(function: &str, others: &str) -> ! {
    report::fatal(
        format_args!("{function}(): this value of lc_opt is not one of this call"),
        format_args!("Pass GEX_EVENT_NOW, {others}."),
    )
}

/// Writes a result, unless the client does not want it.
///
/// # Safety
/// `to` must be null or writable.
unsafe fn write<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not null, so writable, by this function's condition.
        unsafe { to.write(value) };
    }
}
