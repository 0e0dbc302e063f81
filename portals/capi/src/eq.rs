//! Event queues.
//!
//! A handler runs in the call that takes the event from its queue, on the calling thread, with
//! the event that the call returns. Invariant: the handler has run when the call returns.

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
    /// Allocates a queue for at least `count` events and stores its handle in `eq`;
    /// `PTL_EQ_NONE` for 0. `handler` may be `PTL_EQ_HANDLER_NONE`. `PTL_NO_SPACE`: too many
    /// queues or events. The caller frees it by `PtlEQFree`.
    fn PtlEQAlloc(ni: CHandle, count: u64, handler: CEqHandler, eq: *mut CHandle) {
        let ni = state::ni(ni)?;
        let eq = out(eq)?;
        let made = ni.interface.eq_alloc(count, None)?;
        if let Some(slot) = ni.handlers.get(made.0 as usize & 0xffff) {
            slot.store(handler.map_or(0, |handler| handler as usize), Ordering::Relaxed);
        }
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { eq.write(eq_out(made)) };
        Ok(())
    }

    /// Frees a queue. Descriptors that still log to it log no more. `PTL_EQ_INVALID`: not a
    /// queue.
    fn PtlEQFree(eq: CHandle) {
        Ok(state::open_ni(PTL_EQ_INVALID)?.interface.eq_free(eq_in(eq)?)?)
    }

    /// Takes the next event and stores it in `event`. `PTL_EQ_EMPTY`: there is none;
    /// `PTL_EQ_DROPPED`: there is one, and others before it were lost.
    fn PtlEQGet(eq: CHandle, event: *mut abi::CEvent) {
        let ni = state::open_ni(PTL_EQ_INVALID)?;
        let event = out(event)?;
        let eq = eq_in(eq)?;
        let fetched = ni.interface.eq_get_past_dead(eq)?.ok_or(Code(PTL_EQ_EMPTY))?;
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { hand_over(ni, eq, &fetched, event) }
    }

    /// Waits for the next event and stores it in `event`. `PTL_EQ_DROPPED` as in `PtlEQGet`.
    fn PtlEQWait(eq: CHandle, event: *mut abi::CEvent) {
        let ni = state::open_ni(PTL_EQ_INVALID)?;
        let event = out(event)?;
        let eq = eq_in(eq)?;
        let fetched = ni.interface.eq_wait(eq)?;
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { hand_over(ni, eq, &fetched, event) }
    }

    /// Takes the next event of the first of `size` queues that has one within `timeout`
    /// milliseconds (`PTL_TIME_FOREVER`: no limit). Stores the position of the queue in the
    /// array in `which`. `PTL_EQ_EMPTY`: none had one; `PTL_EQ_INVALID`: one of them is not a
    /// queue, or `size` is 0.
    fn PtlEQPoll(eqs: *const CHandle, size: c_int, timeout: u32, event: *mut abi::CEvent, which: *mut c_int) {
        let ni = state::open_ni(PTL_EQ_INVALID)?;
        let (event, which) = (out(event)?, out(which)?);
        if eqs.is_null() {
            return Err(Code(PTL_SEGV));
        }
        if size <= 0 {
            return Err(Code(PTL_EQ_INVALID));
        }
        // SAFETY: not null, so valid, as the crate's safety section demands.
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
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe {
            which.write(place as c_int);
            hand_over(ni, queues[place], &fetched, event)
        }
    }
}

/// Passes an event to the caller and to the queue's handler.
///
/// # Safety
/// `event` is writable.
unsafe fn hand_over(
    ni: &Ni,
    eq: EqHandle,
    fetched: &FetchedEvent,
    event: NonNull<abi::CEvent>,
) -> Result<(), Code> {
    // SAFETY: `event` is writable (the section Safety of this function).
    unsafe { event.write(event_out(fetched)) };
    let handler =
        ni.handlers.get(eq.0 as usize & 0xffff).map_or(0, |slot| slot.load(Ordering::Relaxed));
    // SAFETY: `PtlEQAlloc` stored 0 or a function of this type; 0 is `None`.
    if let Some(handler) = unsafe { mem::transmute::<usize, CEqHandler>(handler) } {
        // SAFETY: the user's function, called as `ptl_eq_handler_t` is declared.
        unsafe { handler(event.as_ptr()) };
    }
    if fetched.dropped { Err(Code(PTL_EQ_DROPPED)) } else { Ok(()) }
}
