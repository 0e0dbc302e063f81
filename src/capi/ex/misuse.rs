//! Debug checks that only GASNet-EX has: where a call is legal that needs no context of its own.
//!
//! Used by all of this folder. Invariant: a check does nothing unless debug checks are on. A misuse
//! ends the job with one line that names it and one that says what to do instead.

use crate::capi::early_job;
use crate::runtime::{GasnetJob, checks};

/// The job for a call that is legal before `gex_Segment_Attach`, but not in a handler, and not
/// while a handler-safe lock is held.
pub(super) fn outside_handlers(function: &str) -> &'static GasnetJob {
    let job = early_job(function);
    if checks::on() {
        job.ctx().check_call(function);
    }
    job
}
