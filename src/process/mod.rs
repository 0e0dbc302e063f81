//! State that exists once per process: its exit, its signal handlers, and the [`JobReport`] that
//! exit and signal handlers use. Called by `runtime::{job, start}`, `capi` and the C library;
//! calls `boot::exit_notice`.
//!
//! # Process-wide state
//!
//! A process has one set of signal handlers, one exit, and in GASNet-1 one job. A handler gets
//! no argument of ours, so it finds its state in statics. They are all here, except those named
//! below.
//!
//! | what | where |
//! |---|---|
//! | the exit notice of the job, which thread exits, the code | [`exit`] |
//! | the hooks before the exit; the alarm that bounds it | [`exit_hooks`], `alarm` |
//! | which thread reports a fatal signal, the hook after it, handlers of signals that the user named, where shared memory is mapped | [`signals`] |
//! | what the threads of this rank wait for, and its statistics | [`JobReport`], a reference to the job |
//!
//! Invariants: a static is an atomic, or set once by `gasnet_init` or `gasnet_attach`. It is
//! read without locks, since a signal handler may have interrupted any instruction. Code outside
//! `capi` gets its job as an argument; these references serve handlers and the C library's exit.
//!
//! State of the process that stands elsewhere, and why:
//!
//! | what | where | why |
//! |---|---|---|
//! | the job as C functions see it, the record of the inline functions | `capi`, `capi::fast` | one load on the fast path of every call |
//! | what the objects of the program registered, hooks of the client | `capi::client`, `capi::tracing`, `capi::tools` | set before `gasnet_init`, or without it |
//! | the rank that messages name, hooks of fatal messages | `report` | below every other module |
//! | the environment that the ranks agreed on | `env` | below this module |
//! | switches of the trace, of debug checks and of locks | `trace`, `runtime::checks`, `runtime::hsl` | read on every call |
//! | the debug heap, variables already printed | `tools` | works without a job |
//! | numbers of threads | `runtime::threads`, `sys::thread` | threads may exist before the job |
//! | facts about the host, read once | `sys` | constants of the process |
//! | warnings that were printed | where they are printed | one warning per process |

mod alarm;
pub mod exit;
pub mod exit_hooks;
mod lost_output;
pub mod signals;

use crate::report::MessageLine;
use crate::trace::NetworkLine;
use core::fmt::Write;
use std::sync::OnceLock;

/// What a job says about this rank. Everything but the flush is async-signal-safe.
pub trait JobReport: Sync {
    /// Writes what the threads of this rank wait for.
    fn write_activity(&self, line: &mut MessageLine);
    /// Writes the statistics that the user requested to their files.
    fn write_stats(&self);
    /// Passes each line of the network's counters.
    fn count_network(&self, line: NetworkLine<'_>);

    /// Waits until the network keeps no message, for a moment at most. It may allocate and wait
    /// for locks.
    fn flush_network(&self);
}

static JOB: OnceLock<&'static dyn JobReport> = OnceLock::new();

/// Lets this job answer for this process from now on.
pub fn set_job(job: &'static dyn JobReport) {
    let _ = JOB.set(job);
}

/// Whether this process is a rank of a job, and not a child that a rank has forked.
/// Async-signal-safe.
pub fn is_rank() -> bool {
    exit::notice().is_some_and(|notice| notice.is_member())
}

/// Writes what this process does.
fn write_activity(line: &mut MessageLine) {
    match JOB.get() {
        Some(job) => job.write_activity(line),
        None => {
            let _ = write!(line, "in gasnet_init");
        }
    }
}

/// Waits until the network keeps no message of this process, for a moment at most.
pub fn flush_network() {
    if let Some(job) = JOB.get() {
        job.flush_network();
    }
}

/// Passes each line of the network's counters, once there is a network.
pub fn count_network(line: NetworkLine<'_>) {
    if let Some(job) = JOB.get() {
        job.count_network(line);
    }
}

/// Writes the statistics of the job, if there are any. A hook of [`exit_hooks`].
pub fn write_stats() {
    if let Some(job) = JOB.get() {
        job.write_stats();
    }
}
