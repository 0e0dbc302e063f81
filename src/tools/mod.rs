//! The services behind the `gasnett_*` functions that the headers do not inline.
//!
//! Called by `capi::tools`, `capi::heap` and `capi::vis`. Invariant: usable without a job.

mod block;
pub mod bytes;
pub mod environment;
pub mod heap;
pub mod pieces;
pub mod process;
pub mod stack;
pub mod timer;
