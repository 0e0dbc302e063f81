//! The trace and the statistics: which calls a client makes, how much they move, and how long
//! they take. They also say from which line of the client's source a call comes. See
//! GASNET_TRACEFILE, GASNET_STATSFILE, and docs/guide/tracing.md.
//!
//! `capi` opens a [`Span`] where a call enters, `runtime` where a handler runs; dropping the
//! span ends the event. Invariant: while neither file is open, `watch!` costs one test and
//! `span!` two. While one is, the inline paths of the headers are disabled (`capi::fast`), so
//! that no call is missed.
//!
//! ```text
//!   span!, watch! -> Span -> Probe                    counts, bytes, times
//!                         -> trace_files::line              a line, put together on the stack
//!                            -> output::TraceOutput   buffer; written when full and at exit
//! ```
//!
//! | file | what it owns |
//! |---|---|
//! | `span` | events in progress; `span!` and `watch!` |
//! | `detail` | what an event is about |
//! | `probe` | the counters of events |
//! | `source` | the line of the client's source that each thread executes |
//! | `trace_files` | the trace file and the statistics file, and which events each holds |
//! | `output` | the buffer and the file that receive the lines |

mod detail;
mod output;
mod probe;
pub mod source;
mod span;
mod trace_files;

pub use crate::env::{Letter, LetterMask};
pub use detail::EventDetail;
pub use probe::Probe;
pub use span::{Span, TracedResult, record, record_since};
pub(crate) use span::{span, watch};
pub use trace_files::{
    NetworkLine, TraceFileKind, client_statistic, close, close_client_statistics, dump_statistics,
    forget, leave, local, note, omit_client_statistics, on, on_network_statistics, on_statistics,
    open, set_local,
};
