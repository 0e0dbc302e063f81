//! The runtime layer: the job (init, attach), segments, active messages, operations, threads,
//! waiting.
//!
//! Called by `extended` and `capi`; calls the conduit. Invariant: everything that a call needs
//! is in its [`Ctx`].
//!
//! A [`Ctx`] is the context of a call: client, thread, endpoint, team and bound segment.
//!
//! | file | what it owns |
//! |---|---|
//! | `job` | the job, and [`Ctx`] |
//! | `start`, `agreed_environment` | `gasnet_init` and `gasnet_attach`; one environment for all ranks |
//! | `agreed_regions` | one size of registered regions for all ranks |
//! | `client`, `endpoint`, `team` | what a context names |
//! | `segment`, `address` | the segments; the addresses in them |
//! | `tracers` | which processes may copy from and to the memory of this rank |
//! | `scratch` | the memory that the ranks of a host share for small data |
//! | `threads` | the client threads, and what is kept for each |
//! | `handlers`, `am` | the handler table and the token; how a message gets to its handler |
//! | `ops` | the operations in flight |
//! | `wait`, `wait_mode`, `activity` | spinning, yielding and sleeping; how soon; what each thread waits for |
//! | `hsl`, `checks`, `held_locks` | handler-safe locks; the debug checks; what a thread holds |
//! | `error` | the error codes |
//! | `exit_messages` | the messages by which ranks without a supervisor exit |
//! | `subsystem` | the state of the extended layer, and its share in polling |
//! | `status`, `counters`, `records` | what this rank reports; the statistics files; records of the trace about the job |
#![cfg_attr(not(test), deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc))]

pub mod activity;
mod address;
pub mod agreed_environment;
mod agreed_regions;
pub mod am;
pub mod checks;
pub mod client;
pub mod counters;
pub mod endpoint;
mod error;
mod exit_messages;
pub mod handlers;
mod held_locks;
pub mod hsl;
pub mod job;
mod lock_waits;
pub mod ops;
pub mod records;
pub mod scratch;
pub mod segment;
pub mod start;
mod status;
pub mod subsystem;
pub mod team;
pub mod threads;
#[cfg(feature = "hosted")]
mod tracers;
pub mod wait;
pub mod wait_mode;

pub use client::ThreadMode;
pub use error::{GasnetError, GasnetResult};
pub use job::{Ctx, GasnetJob};
