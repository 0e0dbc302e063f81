//! Event queues. A handler runs in the call that takes the event from its queue, with the event
//! that the call gives.

use core::ffi::c_int;
use core::mem;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use portals3::{EqHandle, FetchedEvent};

use crate::abi::{self, *};
use crate::calls;
use crate::convert::{Code, eq_in, eq_out, event_out, out};
use crate::state::{self, Ni};

calls! {
    /// A queue for at least `count` events; `PTL_EQ_NONE` for 0. `handler` may be
    /// `PTL_EQ_HANDLER_NONE`.
    fn PtlEQAlloc(ni: CHandle, count: u64, handler: CEqHandler, eq: *mut CHandle) {
        let ni = state::ni(ni)?;
        let eq = out(eq)?;
        let made = ni.interface.eq_alloc(count, None)?;
        if let Some(slot) = ni.handlers.get(made.0 as usize & 0xffff) {
            slot.store(handler.map_or(0, |handler| handler as usize), Ordering::Relaxed);
        }
        // SAFETY: that of the crate.
        unsafe { eq.write(eq_out(made)) };
        Ok(())
    }

    /// Descriptors that still log to it log no more.
    fn PtlEQFree(eq: CHandle) {
        Ok(state::open_ni(PTL_EQ_INVALID)?.interface.eq_free(eq_in(eq)?)?)
    }

    /// The next event. `PTL_EQ_EMPTY`: none; `PTL_EQ_DROPPED`: there is one, and others before
    /// it were lost.
    fn PtlEQGet(eq: CHandle, event: *mut abi::CEvent) {
        let ni = state::open_ni(PTL_EQ_INVALID)?;
        let event = out(event)?;
        let eq = eq_in(eq)?;
        let fetched = ni.interface.eq_get(eq)?.ok_or(Code(PTL_EQ_EMPTY))?;
        // SAFETY: that of the crate.
        unsafe { hand_over(ni, eq, &fetched, event) }
    }

    /// The next event, when it has come.
    fn PtlEQWait(eq: CHandle, event: *mut abi::CEvent) {
        let ni = state::open_ni(PTL_EQ_INVALID)?;
        let event = out(event)?;
        let eq = eq_in(eq)?;
        let fetched = ni.interface.eq_wait(eq)?;
        // SAFETY: that of the crate.
        unsafe { hand_over(ni, eq, &fetched, event) }
    }

    /// The next event of the first of several queues that has one within `timeout` milliseconds;
    /// `which` becomes its place in the array. `PTL_EQ_INVALID` if one is no queue, or there is
    /// none.
    fn PtlEQPoll(eqs: *const CHandle, size: c_int, timeout: u32, event: *mut abi::CEvent, which: *mut c_int) {
        let ni = state::open_ni(PTL_EQ_INVALID)?;
        let (event, which) = (out(event)?, out(which)?);
        if eqs.is_null() {
            return Err(Code(PTL_SEGV));
        }
        if size <= 0 {
            return Err(Code(PTL_EQ_INVALID));
        }
        // SAFETY: that of the crate.
        let handles = unsafe { core::slice::from_raw_parts(eqs, size as usize) };
        let mut few = [EqHandle::NONE; 8];
        let many;
        let queues: &[EqHandle] = match few.get_mut(..handles.len()) {
            Some(few) => {
                for (queue, &handle) in few.iter_mut().zip(handles) {
                    *queue = eq_in(handle)?;
                }
                few
            }
            None => {
                many = handles.iter().map(|&handle| eq_in(handle)).collect::<Result<Vec<_>, _>>()?;
                &many
            }
        };
        if !queues.iter().all(|&queue| ni.interface.has_eq(queue)) {
            return Err(Code(PTL_EQ_INVALID));
        }
        let timeout = (timeout != PTL_TIME_FOREVER).then_some(timeout);
        let (place, fetched) = ni.interface.eq_poll(queues, timeout)?.ok_or(Code(PTL_EQ_EMPTY))?;
        // SAFETY: that of the crate.
        unsafe {
            which.write(place as c_int);
            hand_over(ni, queues[place], &fetched, event)
        }
    }
}

/// Gives an event to the caller and to the queue's handler.
///
/// # Safety
/// `event` is writable.
unsafe fn hand_over(
    ni: &Ni,
    eq: EqHandle,
    fetched: &FetchedEvent,
    event: NonNull<abi::CEvent>,
) -> Result<(), Code> {
    // SAFETY: promised by the caller.
    unsafe { event.write(event_out(fetched)) };
    let handler =
        ni.handlers.get(eq.0 as usize & 0xffff).map_or(0, |slot| slot.load(Ordering::Relaxed));
    // SAFETY: `PtlEQAlloc` stored 0 or a function of this type; 0 is `None`.
    if let Some(handler) = unsafe { mem::transmute::<usize, CEqHandler>(handler) } {
        // SAFETY: the user's function, called as `ptl_eq_handler_t` says.
        unsafe { handler(event.as_ptr()) };
    }
    if fetched.dropped { Err(Code(PTL_EQ_DROPPED)) } else { Ok(()) }
}
