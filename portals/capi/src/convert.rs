//! From C to Rust and back: handles, enumerations, descriptors, events, error codes.
//!
//! Used by every exported function. A C handle is a handle of `portals3` with its kind in the
//! two highest bits of the index. The generation is in the upper half, the index in the lower.
//! Invariant: a handle of one kind is never taken for another. `PTL_INVALID_HANDLE`,
//! `PTL_HANDLE_NONE` and `PTL_EQ_NONE` have an index that no object has, since there are at most
//! [`MOST`] objects of a kind.

use core::ffi::c_int;
use core::ptr::NonNull;

use portals3::{
    AckReq, EqHandle, FetchedEvent, InsPos, MdHandle, MeHandle, NiFail, NiLimits, PtlError,
    PtlEventKind, Unlink, md_options,
};

use crate::abi::{self, *};

/// The number that a call returns instead of `PTL_OK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

impl From<PtlError> for Code {
    fn from(error: PtlError) -> Code {
        Code(match error {
            PtlError::AcIndexInvalid => PTL_AC_INDEX_INVALID,
            PtlError::EqInvalid => PTL_EQ_INVALID,
            PtlError::Fail => PTL_FAIL,
            PtlError::HandleInvalid => PTL_HANDLE_INVALID,
            PtlError::IfaceInvalid => PTL_IFACE_INVALID,
            PtlError::MdIllegal => PTL_MD_ILLEGAL,
            PtlError::MdInvalid => PTL_MD_INVALID,
            PtlError::MdInUse => PTL_MD_IN_USE,
            PtlError::MdNoUpdate => PTL_MD_NO_UPDATE,
            PtlError::MeInvalid => PTL_ME_INVALID,
            PtlError::MeInUse => PTL_ME_IN_USE,
            PtlError::MeListTooLong => PTL_ME_LIST_TOO_LONG,
            PtlError::NiInvalid => PTL_NI_INVALID,
            PtlError::NoSpace => PTL_NO_SPACE,
            PtlError::PidInvalid => PTL_PID_INVALID,
            PtlError::ProcessInvalid => PTL_PROCESS_INVALID,
            PtlError::PtFull => PTL_PT_FULL,
            PtlError::PtIndexInvalid => PTL_PT_INDEX_INVALID,
            PtlError::Segv => PTL_SEGV,
            PtlError::SrIndexInvalid => PTL_SR_INDEX_INVALID,
        })
    }
}

/// The number that a call returns.
#[inline(always)]
pub(crate) fn answer(call: impl FnOnce() -> Result<(), Code>) -> c_int {
    match call() {
        Ok(()) => PTL_OK,
        Err(Code(code)) => code,
    }
}

/// A pointer to a result; null is `PTL_SEGV`.
#[inline(always)]
pub(crate) fn out<T>(pointer: *mut T) -> Result<NonNull<T>, Code> {
    NonNull::new(pointer).ok_or(Code(PTL_SEGV))
}

/// The kind of object of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Ni = 0,
    Me = 1,
    Md = 2,
    Eq = 3,
}

const CLASS: u32 = 14;
/// Most objects of one kind.
pub(crate) const MOST: u32 = (1 << CLASS) - 2;

impl Class {
    pub(crate) fn of(handle: CHandle) -> Class {
        match handle >> CLASS & 3 {
            0 => Class::Ni,
            1 => Class::Me,
            2 => Class::Md,
            _ => Class::Eq,
        }
    }

    #[inline(always)]
    pub(crate) fn mark(self, inner: u32) -> CHandle {
        inner | (self as u32) << CLASS
    }

    /// The handle without its mark, if it is of this kind.
    #[inline(always)]
    fn unmark(self, handle: CHandle) -> Option<u32> {
        (handle >> CLASS & 3 == self as u32).then_some(handle & !(3 << CLASS))
    }
}

#[inline(always)]
pub(crate) fn me_in(handle: CHandle) -> Result<MeHandle, Code> {
    Class::Me.unmark(handle).map(MeHandle).ok_or(Code(PTL_ME_INVALID))
}

#[inline(always)]
pub(crate) fn md_in(handle: CHandle) -> Result<MdHandle, Code> {
    Class::Md.unmark(handle).map(MdHandle).ok_or(Code(PTL_MD_INVALID))
}

/// A queue; `PTL_EQ_NONE` is not one.
#[inline(always)]
pub(crate) fn eq_in(handle: CHandle) -> Result<EqHandle, Code> {
    Class::Eq.unmark(handle).map(EqHandle).ok_or(Code(PTL_EQ_INVALID))
}

/// A queue, or `PTL_EQ_NONE` where that has a meaning.
pub(crate) fn eq_or_none_in(handle: CHandle) -> Result<EqHandle, Code> {
    if handle == PTL_EQ_NONE { Ok(EqHandle::NONE) } else { eq_in(handle) }
}

pub(crate) fn me_out(me: MeHandle) -> CHandle {
    Class::Me.mark(me.0)
}

pub(crate) fn md_out(md: MdHandle) -> CHandle {
    Class::Md.mark(md.0)
}

pub(crate) fn eq_out(eq: EqHandle) -> CHandle {
    if eq == EqHandle::NONE { PTL_EQ_NONE } else { Class::Eq.mark(eq.0) }
}

/// A value outside the enumeration is `PTL_FAIL`, here and below: the specification has no error
/// for it.
pub(crate) fn unlink_in(unlink: CEnum) -> Result<Unlink, Code> {
    match unlink {
        PTL_RETAIN => Ok(Unlink::Retain),
        PTL_UNLINK => Ok(Unlink::Unlink),
        _ => Err(Code(PTL_FAIL)),
    }
}

pub(crate) fn position_in(position: CEnum) -> Result<InsPos, Code> {
    match position {
        PTL_INS_BEFORE => Ok(InsPos::Before),
        PTL_INS_AFTER => Ok(InsPos::After),
        _ => Err(Code(PTL_FAIL)),
    }
}

#[inline(always)]
pub(crate) fn ack_in(ack: CEnum) -> Result<AckReq, Code> {
    match ack {
        PTL_ACK_REQ => Ok(AckReq::Ack),
        PTL_NO_ACK_REQ => Ok(AckReq::NoAck),
        _ => Err(Code(PTL_FAIL)),
    }
}

// Options have the same values on both sides.
const _: () = {
    assert!(PTL_MD_OP_PUT == md_options::OP_PUT && PTL_MD_OP_GET == md_options::OP_GET);
    assert!(
        PTL_MD_MANAGE_REMOTE == md_options::MANAGE_REMOTE
            && PTL_MD_TRUNCATE == md_options::TRUNCATE
    );
    assert!(PTL_MD_ACK_DISABLE == md_options::ACK_DISABLE && PTL_MD_IOVEC == md_options::IOVEC);
    assert!(PTL_MD_MAX_SIZE == md_options::MAX_SIZE);
    assert!(PTL_MD_EVENT_START_DISABLE == md_options::EVENT_START_DISABLE);
    assert!(PTL_MD_EVENT_END_DISABLE == md_options::EVENT_END_DISABLE);
    assert!(PTL_MD_THRESH_INF == portals3::THRESH_INF);
};

pub(crate) fn descriptor_in(md: &abi::CMd) -> Result<portals3::MemoryDescriptor, Code> {
    // No option of the specification.
    if md.options & md_options::ADDRESS_SPACE != 0 {
        return Err(PtlError::MdIllegal.into());
    }
    Ok(portals3::MemoryDescriptor {
        start: md.start,
        length: md.length,
        threshold: md.threshold,
        max_size: md.max_size,
        options: md.options,
        user_ptr: md.user_ptr,
        eq: eq_or_none_in(md.eq_handle)?,
    })
}

pub(crate) fn descriptor_out(md: &portals3::MemoryDescriptor) -> abi::CMd {
    abi::CMd {
        start: md.start,
        length: md.length,
        threshold: md.threshold,
        max_size: md.max_size,
        options: md.options,
        user_ptr: md.user_ptr,
        eq_handle: eq_out(md.eq),
    }
}

pub(crate) fn event_out(fetched: &FetchedEvent) -> abi::CEvent {
    let event = &fetched.event;
    abi::CEvent {
        kind: match event.kind {
            PtlEventKind::GetStart => PTL_EVENT_GET_START,
            PtlEventKind::GetEnd => PTL_EVENT_GET_END,
            PtlEventKind::PutStart => PTL_EVENT_PUT_START,
            PtlEventKind::PutEnd => PTL_EVENT_PUT_END,
            PtlEventKind::GetPutStart => PTL_EVENT_GETPUT_START,
            PtlEventKind::GetPutEnd => PTL_EVENT_GETPUT_END,
            PtlEventKind::ReplyStart => PTL_EVENT_REPLY_START,
            PtlEventKind::ReplyEnd => PTL_EVENT_REPLY_END,
            PtlEventKind::SendStart => PTL_EVENT_SEND_START,
            PtlEventKind::SendEnd => PTL_EVENT_SEND_END,
            PtlEventKind::Ack => PTL_EVENT_ACK,
            PtlEventKind::Unlink => PTL_EVENT_UNLINK,
        },
        initiator: event.initiator,
        uid: event.uid,
        jid: event.jid,
        pt_index: event.pt_index,
        match_bits: event.match_bits,
        rlength: event.rlength,
        mlength: event.mlength,
        offset: event.offset,
        md_handle: md_out(event.md_handle),
        md: descriptor_out(&event.md),
        hdr_data: event.hdr_data,
        link: event.link,
        ni_fail_type: match event.ni_fail {
            NiFail::Ok => PTL_NI_OK,
            NiFail::Fail => PTL_NI_FAIL,
        },
        sequence: event.sequence,
    }
}

/// Negative limits count as 0. At most [`MOST`] objects can have handles.
pub(crate) fn limits_in(limits: &CNiLimits) -> NiLimits {
    let number = |wanted: c_int| wanted.max(0) as u32;
    NiLimits {
        max_mes: number(limits.max_mes).min(MOST),
        max_mds: number(limits.max_mds).min(MOST),
        max_eqs: number(limits.max_eqs).min(MOST),
        max_ac_index: number(limits.max_ac_index),
        max_pt_index: number(limits.max_pt_index),
        max_md_iovecs: number(limits.max_md_iovecs),
        max_me_list: number(limits.max_me_list),
        max_getput_md: number(limits.max_getput_md),
    }
}

pub(crate) fn limits_out(limits: &NiLimits) -> CNiLimits {
    CNiLimits {
        max_mes: limits.max_mes as c_int,
        max_mds: limits.max_mds as c_int,
        max_eqs: limits.max_eqs as c_int,
        max_ac_index: limits.max_ac_index as c_int,
        max_pt_index: limits.max_pt_index as c_int,
        max_md_iovecs: limits.max_md_iovecs as c_int,
        max_me_list: limits.max_me_list as c_int,
        max_getput_md: limits.max_getput_md as c_int,
    }
}
