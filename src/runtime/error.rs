//! The error codes of GASNet-1.
//!
//! Returned by functions that `capi` calls, which hands the number to the client. Invariant: the
//! numbers are those of gasnet.h.

/// The error codes of GASNet-1 (specification 1.8, section 2.4.2); zero is success.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GasnetError {
    /// `GASNET_ERR_NOT_INIT`
    NotInit = 10001,
    /// `GASNET_ERR_RESOURCE`
    Resource = 10002,
    /// `GASNET_ERR_BAD_ARG`
    BadArg = 10003,
    /// `GASNET_ERR_NOT_READY`
    NotReady = 10004,
    /// `GASNET_ERR_BARRIER_MISMATCH`
    BarrierMismatch = 10005,
}

/// The result of a call that a client may see fail.
pub type GasnetResult<T = ()> = core::result::Result<T, GasnetError>;
