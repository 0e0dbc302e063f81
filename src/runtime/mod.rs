//! The runtime layer: the job (init, attach), segments, active messages, operations, threads,
//! waiting.
//!
//! Called by `extended` and `capi`; calls the conduit. Invariant: everything that a call needs
//! is in its [`Ctx`].
//!
//! A [`Ctx`] is the context of a call: the job and the index of the calling thread.
//!
//! | file | what it owns |
//! |---|---|
//! | `job` | the job, from `gasnet_init` on |
//! | `environment` | one environment for all ranks |
//! | `segment` | the segments, and the addresses in them |
//! | `threads` | the client threads, and [`Ctx`] |
//! | `am` | active messages: handler table, token, how a message gets to its handler |
//! | `ops` | the operations in flight |
//! | `wait`, `activity` | spinning, yielding and sleeping; what each thread waits for |
//! | `hsl`, `checks` | handler-safe locks; the debug checks |
//! | `subsystem` | the state of the extended layer, and its share in polling |
//! | `counters`, `records` | the statistics files; records of the trace about the job |
#![cfg_attr(not(test), deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc))]

pub mod activity;
pub mod am;
pub mod checks;
pub mod counters;
pub mod environment;
pub mod hsl;
pub mod job;
pub mod ops;
pub mod records;
pub mod segment;
pub mod subsystem;
pub mod threads;
pub mod wait;

pub use job::{GasnetJob, ThreadMode};
pub use threads::Ctx;

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
