//! The environment variables of the library: one typed declaration each, in `table`.
//!
//! A declaration drives parsing, the `ENV parameter:` lines, `gasnet_info`, docs/ENVIRONMENT.md
//! and its manual page. Every module reads its variables here: `env::MAX_THREADS.get()` is a
//! `u32`. A reader that expects another type does not compile:
//!
//! ```compile_fail,E0308
//! let threads: bool = gasnet::env::MAX_THREADS.get();
//! ```
//!
//! Neither does a default outside the range. Invariants:
//! - Values are looked up when they are read, so that a client may call `setenv` before
//!   `gasnet_init`.
//! - An empty value counts as not set.
//! - An invalid value ends the job with a line that names the variable, the value and what is
//!   accepted.
//!
//! Imports run downwards: `unknown`, `check` -> `table` -> `variable`, `real_number`,
//! `backtrace_list`, `segment_size`, `signal_list` -> `kinds`, `environ`; then the leaves
//! `contradiction`, `letters`, `number`, `rank_variables`, `tree`, `upstream_names`, `words`.

mod backtrace_list;
mod check;
mod contradiction;
mod environ;
mod kinds;
mod letters;
pub mod number;
mod rank_variables;
mod real_number;
mod segment_size;
mod signal_list;
mod table;
mod tree;
mod unknown;
mod upstream_names;
mod variable;
mod words;

pub use backtrace_list::{BACKTRACE_METHODS, BacktraceList, BacktraceMethods};
pub use check::{both_provider_lists, check_all, contradictions};
pub use contradiction::Contradiction;
pub use environ::{adopt, is_of_host, lookup, raw, snapshot};
pub use kinds::{
    Bytes, FaultName, FillPattern, FreeText, Integer, Letters, OneOf, Ports, RankSet, Ranks,
    TreeName, ValueKind, YesNo,
};
pub use letters::{Letter, LetterMask};
pub use rank_variables::{LOCAL_RANK, RANK, RANK_VARIABLES, RankVariable, SIZE};
pub use real_number::{Fraction, Seconds};
pub use segment_size::{SegmentBound, SegmentSize};
pub use signal_list::{HandledSignals, SignalList, Signals};
pub use table::collectives::*;
pub use table::debugging::*;
pub use table::firehose::*;
pub use table::launch::*;
pub use table::portals::*;
pub use table::tracing::*;
pub use table::{SUBJECTS, Subject, all};
pub use tree::{Tree, TreeKind};
pub use unknown::{Likeness, UnknownVariable, unknown};
pub use variable::{AnyVariable, InvalidValue, OptionalVariable, Variable, VariableState};
pub use words::{
    NetworkChoice, NetworkKind, RmaChoice, SpawnControl, TagModeChoice, WaitMode, WireKind,
    WireProgress,
};
