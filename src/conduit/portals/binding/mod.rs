//! A libportals as the conduit sees it.
//!
//! Owns the translation between [`super::Portals`] and the C interface of the library that was
//! found when this one was built. Opened by `conduit::network`, used by the conduit. Invariant:
//! every value comes from the vendor's header.
//!
//! Vendors differ. The binding accepts errors of either sign, an interface that is open already,
//! SEND events of gets, and REPLY events without match bits. Descriptors and queues may stay in
//! use for a moment (docs/guide/libportals.md, "What a libportals must have").
//!
//! | file | what it owns |
//! |---|---|
//! | `shim.h`, `shim.c` | what only C can say of any vendor's header |
//! | `system.h`, `system.c` | weak references to the functions of CNOS and PMI |
//! | `sys` | what bindgen made of it |
//! | `system` | CNOS and PMI, if the program has them |
//! | `call_lock` | one call at a time, for a library that threads may not enter together |
//! | `open` | how the interface is opened, and what must be true of it |
//! | `ranks` | which processes are where: what the library receives, and what the system knows |

// How wide a type is, the header says.
#![allow(clippy::unnecessary_cast)]

mod call_lock;
mod open;
mod ranks;
mod sys;
mod system;

pub use open::{header, loaded_file, wants_process_ids};
pub use ranks::forget_stale;
pub use system::linked;

use super::{
    EntryPosition, EqResult, IN_USE, InlineBody, MdEvent, MdEventKind, MdPart, MdSpec, NoDirect,
    OpenError, Portals, PortalsError, PortalsId, SharedHost, Target, TrafficCounters,
};
use crate::boot::linked_launcher::LinkedSystem;
use crate::env;
use crate::rank::JobRank;
use alloc::vec::Vec;
use call_lock::{CallGuard, CallLock};
use core::ffi::{CStr, c_int};
use core::mem::{MaybeUninit, zeroed};
use core::sync::atomic::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use system::peer;

/// Error codes, without their sign.
const OK: u32 = code(sys::GASNETI_PTL_OK as c_int);
const EQ_EMPTY: u32 = code(sys::GASNETI_PTL_EQ_EMPTY as c_int);
const EQ_DROPPED: u32 = code(sys::GASNETI_PTL_EQ_DROPPED as c_int);
const MD_INVALID: u32 = code(sys::GASNETI_PTL_MD_INVALID as c_int);
const MD_IN_USE: u32 = code(sys::GASNETI_PTL_MD_IN_USE as c_int);
const NI_OK: i64 = sys::GASNETI_PTL_NI_OK;

const GET_END: i64 = sys::GASNETI_PTL_EVENT_GET_END;
const PUT_END: i64 = sys::GASNETI_PTL_EVENT_PUT_END;
const REPLY_END: i64 = sys::GASNETI_PTL_EVENT_REPLY_END;
const SEND_END: i64 = sys::GASNETI_PTL_EVENT_SEND_END;
const ACK: i64 = sys::GASNETI_PTL_EVENT_ACK;
const UNLINK_EVENT: i64 = sys::GASNETI_PTL_EVENT_UNLINK;

/// Some libraries return errors negated.
const fn code(returned: c_int) -> u32 {
    returned.unsigned_abs()
}

/// A handle of the library.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct PtlHandle<T>(T);

// SAFETY: handles are names of objects; Portals 3.3 lets any thread use them.
unsafe impl<T> Send for PtlHandle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for PtlHandle<T> {}

type Eq = PtlHandle<sys::ptl_handle_eq_t>;
type Me = PtlHandle<sys::ptl_handle_me_t>;
type Md = PtlHandle<sys::ptl_handle_md_t>;

/// What was sent.
#[derive(Default)]
struct Sent {
    puts: AtomicU64,
    gets: AtomicU64,
    bytes: AtomicU64,
}

/// The interface of the library.
pub struct Binding {
    ni: PtlHandle<sys::ptl_handle_ni_t>,
    id: PortalsId,
    /// `PTL_EQ_NONE`
    eq_none: Eq,
    /// Stands for it in a library that refuses it: a queue for descriptors that post nothing.
    quiet: Option<Eq>,
    echoes_match_bits: bool,
    /// Held during each call of a process with several threads, unless they may enter together.
    calls: Option<&'static CallLock>,
    single_threaded: bool,
    sent: CachePadded<Sent>,
}

impl core::fmt::Debug for Binding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Binding").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Binding {
    /// Whether the library says that its interface has this property, a bit of `shim.h`.
    fn has_property(&self, property: i64) -> bool {
        // SAFETY: the interface is open.
        let properties = unsafe { sys::gasneti_ptl_properties(self.ni.0) };
        i64::from(properties) & property != 0
    }

    /// The right to call the library.
    #[inline]
    fn enter(&self) -> Option<CallGuard<'_>> {
        self.calls.map(CallLock::enter)
    }

    /// The addresses of all processes: those of the `system` that has started the job, else those
    /// of a launcher of the library, if it has set them.
    ///
    /// # Errors
    /// They are not those of a job of `size`, or not ours at `rank`.
    pub fn known_peers(
        &self,
        rank: JobRank,
        size: u32,
        system: Option<LinkedSystem>,
    ) -> Result<Option<Vec<PortalsId>>, OpenError> {
        ranks::known(rank, size, self.id, self.ni.0, system)
    }

    /// The same interface once more, with counters of its own: for what is no traffic of the
    /// client.
    pub fn once_more(&self) -> Binding {
        Binding { sent: CachePadded::default(), ..*self }
    }

    #[inline]
    fn count(&self, counter: &AtomicU64, n: u64) {
        if self.single_threaded {
            counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        } else {
            counter.fetch_add(n, Ordering::Relaxed);
        }
    }

    fn md(&self, spec: &MdSpec<'_, Eq>, auto_unlink: bool) -> sys::ptl_md_t {
        let f = spec.flags;
        let is_quiet = spec.eq.is_none() && self.quiet.is_some();
        let options = [
            (f.op_put, sys::GASNETI_PTL_MD_OP_PUT),
            (f.op_get, sys::GASNETI_PTL_MD_OP_GET),
            (f.manage_remote, sys::GASNETI_PTL_MD_MANAGE_REMOTE),
            (f.truncate, sys::GASNETI_PTL_MD_TRUNCATE),
            (f.ack_disable, sys::GASNETI_PTL_MD_ACK_DISABLE),
            (f.event_start_disable || is_quiet, sys::GASNETI_PTL_MD_EVENT_START_DISABLE),
            (f.event_end_disable || is_quiet, sys::GASNETI_PTL_MD_EVENT_END_DISABLE),
            (spec.max_size.is_some(), sys::GASNETI_PTL_MD_MAX_SIZE),
            (auto_unlink, sys::GASNETI_PTL_MD_AUTO_UNLINK),
        ];
        // SAFETY: plain data, for which zero is a value; a header may have members that we do not
        // know.
        let mut md: sys::ptl_md_t = unsafe { zeroed() };
        // Some libraries refuse a descriptor without bytes that starts elsewhere than at null.
        if spec.region.bytes() != 0 {
            md.start = spec.region.start().cast();
        }
        md.length = spec.region.bytes() as _;
        md.threshold = sys::GASNETI_PTL_MD_THRESH_INF as _;
        md.max_size = spec.max_size.unwrap_or(0) as _;
        md.options = options.iter().filter(|o| o.0).fold(0, |all, o| all | o.1) as _;
        md.user_ptr = core::ptr::without_provenance_mut(spec.user);
        md.eq_handle = spec.eq.or(self.quiet.as_ref()).unwrap_or(&self.eq_none).0;
        md
    }
}

#[inline]
fn done(call: &'static str, returned: c_int) -> Result<(), PortalsError> {
    if code(returned) == OK { Ok(()) } else { Err(error(call, returned)) }
}

#[cold]
fn error(call: &'static str, returned: c_int) -> PortalsError {
    // SAFETY: takes any number, returns null or a string constant.
    let name = unsafe { sys::gasneti_ptl_error_name(returned) };
    let name = if name.is_null() {
        None
    } else {
        // SAFETY: a string constant, as above.
        unsafe { CStr::from_ptr(name) }.to_str().ok()
    };
    PortalsError { call, code: name.unwrap_or("an error that its header does not name") }
}

impl Portals for Binding {
    type Eq = Eq;
    type Me = Me;
    type Md = Md;
    type Direct = NoDirect<Eq>;

    fn id(&self) -> PortalsId {
        self.id
    }

    fn eq_alloc(&self, count: usize) -> Result<Eq, PortalsError> {
        // SAFETY: a handle is plain data, overwritten before it is used.
        let mut eq: sys::ptl_handle_eq_t = unsafe { zeroed() };
        let _call = self.enter();
        // SAFETY: `eq` is live.
        let rc = unsafe { sys::gasneti_ptl_eq_alloc(self.ni.0, count as _, &mut eq) };
        done("PtlEQAlloc", rc).map(|()| PtlHandle(eq))
    }

    fn eq_free(&self, eq: Eq) -> Result<(), PortalsError> {
        let _call = self.enter();
        // SAFETY: a queue of ours, which is no longer used.
        done("PtlEQFree", unsafe { sys::gasneti_ptl_eq_free(eq.0) })
    }

    #[inline]
    fn eq_get(&self, eq: &Eq, _: &mut InlineBody) -> Result<EqResult, PortalsError> {
        let _call = match self.calls {
            None => None,
            Some(calls) => match calls.try_enter() {
                // As if this thread had looked a moment earlier.
                None => return Ok(EqResult::Empty),
                entered => entered,
            },
        };
        let mut room = MaybeUninit::<sys::ptl_event_t>::uninit();
        // SAFETY: there is room for an event.
        let rc = unsafe { sys::PtlEQGet(eq.0, room.as_mut_ptr()) } as c_int;
        let lost = match code(rc) {
            EQ_EMPTY => return Ok(EqResult::Empty),
            OK => false,
            EQ_DROPPED => true,
            _ => return Err(error("PtlEQGet", rc)),
        };
        // SAFETY: with these two codes the library has written an event.
        let e = unsafe { room.assume_init_ref() };
        if e.ni_fail_type as i64 != NI_OK {
            return Err(PortalsError::TRANSFER);
        }
        let event = MdEvent {
            kind: match e.type_ as i64 {
                PUT_END => MdEventKind::PutEnd,
                GET_END => MdEventKind::GetEnd,
                REPLY_END => MdEventKind::ReplyEnd,
                SEND_END => MdEventKind::SendEnd,
                ACK => MdEventKind::Ack,
                UNLINK_EVENT => MdEventKind::Unlink,
                _ => MdEventKind::Other,
            },
            user: e.md.user_ptr.addr(),
            match_bits: e.match_bits as u64,
            hdr_data: e.hdr_data as u64,
            start: e.md.start.addr(),
            offset: ::sys::peer::Peer::new(e.offset as usize),
            mlength: ::sys::peer::Peer::new(e.mlength as usize),
            inline: false,
        };
        Ok(if lost { EqResult::AfterLoss(event) } else { EqResult::Event(event) })
    }

    fn me_attach(
        &self,
        position: EntryPosition<Me>,
        match_bits: u64,
        ignore_bits: u64,
        unlink: bool,
    ) -> Result<Me, PortalsError> {
        let mut any = peer(PortalsId::default());
        // SAFETY: a handle is plain data, overwritten before it is used.
        let mut me: sys::ptl_handle_me_t = unsafe { zeroed() };
        let unlink = if unlink { sys::GASNETI_PTL_UNLINK } else { sys::GASNETI_PTL_RETAIN } as _;
        let (bits, ignore) = (match_bits as _, ignore_bits as _);
        let (before, after) = (sys::GASNETI_PTL_INS_BEFORE as _, sys::GASNETI_PTL_INS_AFTER as _);
        let _call = self.enter();
        // SAFETY: `any` and `me` are live.
        unsafe {
            sys::gasneti_ptl_anybody(&mut any);
            let attach = |pt: u32, position, me: *mut sys::ptl_handle_me_t| {
                sys::PtlMEAttach(self.ni.0, pt as _, any, bits, ignore, unlink, position, me)
                    as c_int
            };
            match position {
                EntryPosition::Head(pt) => done("PtlMEAttach", attach(pt, before, &mut me))?,
                EntryPosition::Tail(pt) => done("PtlMEAttach", attach(pt, after, &mut me))?,
                EntryPosition::Before(base) => {
                    let rc = sys::PtlMEInsert(base.0, any, bits, ignore, unlink, before, &mut me);
                    done("PtlMEInsert", rc as c_int)?;
                }
            }
        }
        Ok(PtlHandle(me))
    }

    fn me_unlink(&self, me: Me) -> Result<(), PortalsError> {
        let _call = self.enter();
        // SAFETY: takes any handle.
        done("PtlMEUnlink", unsafe { sys::PtlMEUnlink(me.0) } as c_int)
    }

    fn md_attach(&self, me: Me, spec: &MdSpec<'_, Eq>, unlink: bool) -> Result<Md, PortalsError> {
        // SAFETY: a handle is plain data, overwritten before it is used.
        let mut made: sys::ptl_handle_md_t = unsafe { zeroed() };
        let how = if unlink { sys::GASNETI_PTL_UNLINK } else { sys::GASNETI_PTL_RETAIN } as _;
        let _call = self.enter();
        // SAFETY: `made` is live; the region stays valid, by the invariant of `MdRegion`.
        let rc = unsafe { sys::PtlMDAttach(me.0, self.md(spec, unlink), how, &mut made) };
        done("PtlMDAttach", rc as c_int).map(|()| PtlHandle(made))
    }

    fn md_bind(&self, spec: &MdSpec<'_, Eq>) -> Result<Md, PortalsError> {
        // SAFETY: a handle is plain data, overwritten before it is used.
        let mut made: sys::ptl_handle_md_t = unsafe { zeroed() };
        let how = sys::GASNETI_PTL_RETAIN as _;
        let _call = self.enter();
        // SAFETY: `made` is live; the region stays valid, by the invariant of `MdRegion`.
        let rc = unsafe { sys::PtlMDBind(self.ni.0, self.md(spec, false), how, &mut made) };
        done("PtlMDBind", rc as c_int).map(|()| PtlHandle(made))
    }

    fn md_try_unlink(&self, md: Md) -> Result<(), PortalsError> {
        let _call = self.enter();
        // SAFETY: takes any handle.
        let rc = unsafe { sys::PtlMDUnlink(md.0) } as c_int;
        match code(rc) {
            MD_INVALID => Ok(()),
            MD_IN_USE => Err(PortalsError { call: "PtlMDUnlink", code: IN_USE }),
            _ => done("PtlMDUnlink", rc),
        }
    }

    #[inline]
    fn put(&self, from: MdPart<Md>, ack: bool, to: &Target) -> Result<(), PortalsError> {
        self.count(&self.sent.puts, 1);
        self.count(&self.sent.bytes, from.len as u64);
        let ack = if ack { sys::GASNETI_PTL_ACK_REQ } else { sys::GASNETI_PTL_NO_ACK_REQ } as _;
        let _call = self.enter();
        // SAFETY: the descriptor's region is valid; everything else is numbers.
        let rc = unsafe {
            sys::PtlPutRegion(
                from.md.0,
                from.offset as _,
                from.len as _,
                ack,
                peer(to.process),
                to.portal as _,
                0,
                to.bits as _,
                to.offset as _,
                to.hdr_data as _,
            )
        };
        done("PtlPutRegion", rc as c_int)
    }

    #[inline]
    fn get(&self, to: MdPart<Md>, from: &Target) -> Result<(), PortalsError> {
        self.count(&self.sent.gets, 1);
        self.count(&self.sent.bytes, to.len as u64);
        let _call = self.enter();
        // SAFETY: the descriptor's region is valid; everything else is numbers.
        let rc = unsafe {
            sys::PtlGetRegion(
                to.md.0,
                to.offset as _,
                to.len as _,
                peer(from.process),
                from.portal as _,
                0,
                from.bits as _,
                from.offset as _,
            )
        };
        done("PtlGetRegion", rc as c_int)
    }

    #[inline]
    fn echoes_match_bits(&self) -> bool {
        self.echoes_match_bits
    }

    fn checks_memory(&self) -> bool {
        false
    }

    fn has_bypass(&self) -> bool {
        let says = || self.has_property(sys::GASNETI_PTL_APPLICATION_BYPASS);
        env::PORTAL_BYPASS.get().unwrap_or_else(says)
    }

    fn max_transfer(&self) -> usize {
        usize::try_from(sys::GASNETI_PTL_MAX_TRANSFER).unwrap_or(1 << 31)
    }

    fn counters(&self) -> TrafficCounters {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let _call = self.enter();
        TrafficCounters {
            puts: value(&self.sent.puts),
            gets: value(&self.sent.gets),
            bytes: value(&self.sent.bytes),
            framed: 0,
            remote: 0,
            // SAFETY: the interface is open.
            dropped: unsafe { sys::gasneti_ptl_dropped(self.ni.0) },
        }
    }

    #[inline(always)]
    fn direct(&self, _: PortalsId) -> Option<&NoDirect<Eq>> {
        None
    }

    #[inline(always)]
    fn direct_to_self(&self) -> Option<&NoDirect<Eq>> {
        None
    }

    #[inline(always)]
    fn shared_host(&self) -> Option<&dyn SharedHost> {
        None
    }
}
