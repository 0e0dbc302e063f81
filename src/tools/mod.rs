//! The services behind the `gasnett_*` functions that the headers do not inline.
//!
//! Called by `capi::tools`, `capi::heap` and `capi::vis`. Invariant: usable without a job.
//!
//! | file | what it owns |
//! |---|---|
//! | `heap`, `block` | debug malloc; the memory of one object, with its fences |
//! | `stack` | printing the call stack |
//! | `process` | host, pause for a debugger, limits |
//! | `environment` | environment variables of clients |
//! | `pieces` | lists of memory and strides, as text |
//! | `bytes` | checksums, counts of zero bytes |
//! | `timer` | granularity and overhead of the clock |

mod block;
pub mod bytes;
pub mod environment;
pub mod heap;
pub mod pieces;
pub mod process;
pub mod stack;
pub mod timer;
