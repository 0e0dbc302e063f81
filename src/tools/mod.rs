//! The services behind the `gasnett_*` functions that the headers do not inline.
//!
//! Called by `capi::tools`, `capi::heap` and `capi::vis`. Invariant: usable without a job.
//!
//! | file | what it owns |
//! |---|---|
//! | `debug_malloc`, `fenced_block` | debug malloc; the memory of one object, with its fences |
//! | `backtrace` | printing the call stack |
//! | `this_process` | host, pause for a debugger, limits |
//! | `client_variables` | environment variables of clients |
//! | `list_text` | lists of memory and strides, as text |
//! | `constant_names` | sets of constants of GASNet-EX, as text |
//! | `checksum` | checksums, counts of zero bytes |
//! | `shell` | words for a shell |
//! | `timer` | granularity and overhead of the clock |

pub mod backtrace;
pub mod checksum;
pub mod client_variables;
pub mod constant_names;
pub mod debug_malloc;
mod fenced_block;
pub mod list_text;
#[cfg(feature = "hosted")]
pub mod shell;
pub mod this_process;
pub mod timer;
