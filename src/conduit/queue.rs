//! The three event queues. Events of SAFE_EQ may be handled at any time. Those of AM_EQ may run
//! request handlers and so need reserved resources for a reply. SYS_EQ is for messages between the
//! libraries.
//!
//! Used by `safe`, `request_recv` and `system_messages`. Invariant: at most one thread takes
//! events off a queue at a time. It unlocks the queue before it handles the event, except that a
//! rank which exits only notes those of SYS_EQ. A thread that finds the queue locked returns: the
//! holder will see every event.

use super::portals::{
    Direct, EqResult, InlineBody, MdEvent, NI_FAIL, NextEvent, Portals, PortalsError,
};
use super::sync::ParLock;
use crate::report;

/// An event queue; `S` is what only the thread may touch that takes events off it.
pub(super) struct EventQueue<P: Portals, S> {
    name: &'static str,
    pub(super) eq: P::Eq,
    pub(super) taker: ParLock<S>,
}

impl<P: Portals, S> EventQueue<P, S> {
    pub(super) fn open(
        portals: &P,
        par: bool,
        name: &'static str,
        events: usize,
        state: S,
    ) -> Result<Self, PortalsError> {
        Ok(EventQueue { name, eq: portals.eq_alloc(events)?, taker: ParLock::new(par, state) })
    }

    /// Whether it is known to be empty.
    #[inline(always)]
    pub(super) fn is_quiet(&self, portals: &P) -> bool {
        match portals.direct_to_self() {
            Some(direct) => direct.eq_is_quiet(&self.eq),
            None => false,
        }
    }

    /// The next event if the fast path finds it; the caller holds [`EventQueue::taker`].
    #[inline(always)]
    pub(super) fn look(&self, portals: &P, inline: &mut InlineBody) -> NextEvent {
        match portals.direct_to_self() {
            Some(direct) => direct.eq_next(&self.eq, inline),
            None => NextEvent::Other,
        }
    }

    /// The next event; the bytes that travelled in it go to `inline`. The caller holds
    /// [`EventQueue::taker`].
    ///
    /// The queues are long enough for everything that tickets, chunks and credits let processes
    /// send, so a lost event is a lost message: fatal.
    // Inlined: 12 of 1,889 instructions fewer in row `put_8` (events).
    #[inline(always)]
    pub(super) fn get(&self, portals: &P, inline: &mut InlineBody) -> Option<MdEvent> {
        match portals.eq_get(&self.eq, inline) {
            Ok(EqResult::Empty) => None,
            Ok(EqResult::Event(e)) => Some(e),
            Ok(EqResult::AfterLoss(_)) => overflow(self.name),
            Err(e) => broken(e),
        }
    }
}

impl<P: Portals> EventQueue<P, ()> {
    /// The next event, if that can be determined cheaply; nothing if another thread is taking.
    #[inline(always)]
    pub(super) fn next(&self, portals: &P, inline: &mut InlineBody) -> NextEvent {
        match self.taker.try_lock() {
            Some(_taker) => self.look(portals, inline),
            None => NextEvent::Nothing,
        }
    }

    /// The next event, unless there is none or another thread is taking.
    pub(super) fn take(&self, portals: &P, inline: &mut InlineBody) -> Option<MdEvent> {
        let _taker = self.taker.try_lock()?;
        self.get(portals, inline)
    }
}

fn overflow(name: &str) -> ! {
    report::fatal(
        format_args!("the event queue {name} has overflowed: messages were lost"),
        format_args!("Leave GASNET_PORTAL_FLOW_CONTROL on, or raise GASNET_PORTAL_AMRECV_SPACE."),
    )
}

/// Ends the job after a Portals call or a transfer that fails only if a peer has died or a
/// library is broken.
pub(super) fn broken(e: PortalsError) -> ! {
    report::fatal_unless_ending(
        format_args!("the Portals network failed: {e}"),
        if e.code == NI_FAIL {
            format_args!(
                "A process of the job has ended, or the path to it has failed. In EVERYTHING the \
                 kernel may have forbidden to access it: see `gasnet_info`."
            )
        } else {
            format_args!(
                "GASNET_PORTAL_NUM_TMPMD and GASNET_PORTAL_MSG_LIMIT bound what it must provide."
            )
        },
    )
}
