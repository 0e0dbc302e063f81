//! GASNet-1 over Portals 3.3.
//!
//! # Layers
//!
//! A layer is a folder. Imports point downwards only.
//!
//! | layer | owns | may call |
//! |---|---|---|
//! | `capi` | the exported C functions: check the arguments, call one function, translate the error | all below |
//! | [`extended`] | puts and gets, handles, access regions, value forms, memset, barrier, vector, indexed and strided forms, collectives | runtime and below |
//! | [`runtime`] | the job: init, attach, segments, active messages, operations, threads, waiting | process, conduit and below |
//! | [`process`] | state that exists once per process: its exit, its signal handlers | boot |
//! | [`conduit`] | the portals-conduit: every message, in terms of Portals puts and gets | its `Portals` trait, boot, env, sys |
//! | [`boot`] | how the ranks of a job find each other, start and end | tools, env, sys |
//! | [`trace`] | what clients call, how long it takes, from where: the trace and the statistics | env, sys |
//! | [`tools`] | `gasnett_*`: usable without a job | env, sys |
//! | [`mod@env`] | the typed table of variables | sys |
//! | [`report`], [`rank`], [`limits`], [`one_line`], [`fault`], [`client_memory`] | leaf modules that any layer may use: messages, rank types, limits of the C headers, text on one line, planted faults, memory of clients | sys; `fault`: env; `client_memory`: `rank` |
//! | `sys` (a crate) | the operating system: memory, threads, clocks, futexes, processes, signals | - |
//!
//! What comes up from the network is a request to run a handler, or the completion of an
//! operation. It comes up through a trait that the upper layer hands down ([`conduit::Upcall`]),
//! never through an import. Only `capi` knows that GASNet-1 has one global job; every other layer
//! is handed its context. State that exists once per process is in [`process`].

extern crate alloc;

pub mod boot;
pub mod capi;
pub mod client_memory;
pub mod conduit;
pub mod env;
pub mod extended;
pub mod fault;
pub mod limits;
pub mod one_line;
pub mod process;
pub mod rank;
pub mod report;
pub mod runtime;
pub mod tools;
pub mod trace;
