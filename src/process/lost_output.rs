//! Output that this process loses when it ends: its reader takes nothing, another thread holds a
//! C stream, or a file of the library cannot be written in time.
//!
//! Called by `exit` and `signals`, in handlers of signals. Invariant: async-signal-safe, and
//! prints nothing that standard error has no room for.

use crate::report;
use crate::trace::TraceFileKind;
use sys::signal::{self, Signal, SignalHandler, SignalSet};
use sys::{bounded_stderr, clock, process};

/// Prints that this process loses something, and what to do.
fn report_loss(loss: &str, remedy: &str) {
    if bounded_stderr::is_stuck() {
        return;
    }
    match report::rank() {
        Some(rank) => report::line(format_args!("rank {rank}: {loss}")),
        None => report::line(format_args!("process {}: {loss}", process::pid())),
    }
    report::line(format_args!("  {remedy}"));
}

/// The C streams are not flushed in time. The reader of standard output may have standard error,
/// too.
pub(super) fn report_streams() {
    match bounded_stderr::is_reader_stuck() {
        true => report_loss(
            "output is lost, since its reader takes nothing",
            "Have the reader go on, or raise GASNET_EXITTIMEOUT.",
        ),
        false => report_loss(
            "output may be lost: a C stream is locked by another thread, or not written in time",
            "End threads that read from C streams before the exit, or raise GASNET_EXITTIMEOUT.",
        ),
    }
}

/// The exit hooks have not returned in time.
pub(super) fn report_cut_hooks() {
    if TraceFileKind::Trace.is_on() || TraceFileKind::Stats.is_on() {
        report_loss(
            "its trace or its statistics are not complete: they were not written in time",
            "Look at the reader of the file and at the function of GASNETT_STATS_INIT, or raise \
             GASNET_EXITTIMEOUT.",
        );
    }
}

/// Waits until the reader of the output takes something, within the handler of the alarm. A signal
/// that asks this process to end runs `on_request`, also if the program blocks it.
pub(super) fn wait_for_reader(on_request: SignalHandler) {
    const REQUESTS: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::HUP];
    let actions = REQUESTS.map(signal::action);
    let mask = signal::block(&SignalSet::of(&[]));
    for s in REQUESTS {
        signal::handle(s, on_request, true);
    }
    signal::unblock(&SignalSet::of(&REQUESTS));
    while bounded_stderr::is_reader_stuck() {
        clock::sleep_ns(20_000_000);
    }
    signal::set_mask(&mask);
    for (s, action) in REQUESTS.iter().zip(&actions) {
        signal::restore(*s, action);
    }
}
