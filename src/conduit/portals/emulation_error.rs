//! The errors of the emulation as the conduit reports them.
//!
//! Used by `emulation`.

use super::{OpenError, PortalsError};

/// The error of a call, by the name of its code.
pub(super) fn error(call: &'static str, e: portals3::PtlError) -> PortalsError {
    use portals3::PtlError as E;
    let code = match e {
        E::AcIndexInvalid => "PTL_AC_INDEX_INVALID",
        E::EqInvalid => "PTL_EQ_INVALID",
        E::Fail => "PTL_FAIL",
        E::HandleInvalid => "PTL_HANDLE_INVALID",
        E::IfaceInvalid => "PTL_IFACE_INVALID",
        E::MdIllegal => "PTL_MD_ILLEGAL",
        E::MdInvalid => "PTL_MD_INVALID",
        E::MdInUse => "PTL_MD_IN_USE",
        E::MdNoUpdate => "PTL_MD_NO_UPDATE",
        E::MeInvalid => "PTL_ME_INVALID",
        E::MeInUse => "PTL_ME_IN_USE",
        E::MeListTooLong => "PTL_ME_LIST_TOO_LONG",
        E::NiInvalid => "PTL_NI_INVALID",
        E::NoSpace => "PTL_NO_SPACE",
        E::PidInvalid => "PTL_PID_INVALID",
        E::ProcessInvalid => "PTL_PROCESS_INVALID",
        E::PtFull => "PTL_PT_FULL",
        E::PtIndexInvalid => "PTL_PT_INDEX_INVALID",
        E::Segv => "PTL_SEGV",
        E::SrIndexInvalid => "PTL_SR_INDEX_INVALID",
    };
    PortalsError { call, code }
}

/// The interface cannot be opened for lack of memory.
pub(super) fn no_memory(cause: impl core::fmt::Display) -> OpenError {
    OpenError::new(
        format!("{cause}"),
        "Free memory, start fewer processes, or lower GASNET_PORTAL_SB_CHUNKS and GASNET_PORTAL_AMRECV_SPACE.",
    )
}
