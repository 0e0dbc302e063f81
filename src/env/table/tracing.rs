//! Variables of the trace and the statistics.

use crate::env::kinds::{FreeText, Letters, Ranks, YesNo};
use crate::env::variable::variables;

variables! {
    /// File that receives a line for each GASNet call, or stdout or stderr; - is stderr too. Each
    /// % in the name becomes the rank.
    TRACEFILE: FreeText;

    /// Types of events that are traced, a letter each; behind ^ those that are not. The guide
    /// lists the letters under Traces and statistics. The default is all.
    TRACEMASK: Letters;

    /// Ranks that trace, such as 0,2-4. The default is all.
    TRACENODES: Ranks;

    /// Also trace puts and gets of a rank to itself.
    TRACELOCAL: YesNo = true;

    /// Write each line of the trace at once.
    TRACEFLUSH: YesNo = false;

    /// File that receives counts, bytes and times of the calls at exit, named as GASNET_TRACEFILE.
    STATSFILE: FreeText;

    /// Types of events that are counted, as in GASNET_TRACEMASK. The default is all.
    STATSMASK: Letters;

    /// Ranks that count, such as 0,2-4. The default is all.
    STATSNODES: Ranks;
}
