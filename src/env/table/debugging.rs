//! Variables for debugging: messages, checks, stacks, debuggers, debug malloc, and aids of the
//! tests.

use crate::env::backtrace_list::BacktraceMethods;
use crate::env::kinds::{FaultName, FillPattern, FreeText, Ranks, YesNo};
use crate::env::signal_list::HandledSignals;
use crate::env::variable::variables;

variables! {
    /// If set, even to nothing, rank 0 prints each variable that is read, and names that are not.
    VERBOSEENV: FreeText;

    /// Print no warnings at start, such as that of a misspelt name.
    QUIET: YesNo = false;

    /// Check each call for misuse of locks, no-interrupt sections, handlers, handles, alignment,
    /// access regions and the caller's own segment. The default is yes for a program compiled with
    /// GASNET_DEBUG.
    DEBUG_CHECKS: YesNo;

    /// Print the call stack on a fatal error.
    BACKTRACE: YesNo = false;

    /// Ranks that print their stack, such as 0,2-4. The default is all.
    BACKTRACE_NODES: Ranks;

    /// Tools that print the stack, separated by commas, tried in order: ADDR2LINE, EXECINFO,
    /// GDB, GSTACK, PSTACK, EUSTACK, or the name of the client's own function, which
    /// `gasnet_info -c` does not know. The default is the client's own, then the others in this
    /// order.
    BACKTRACE_TYPE: BacktraceMethods;

    /// Signals at which a rank prints its stack and goes on, such as USR1.
    BACKTRACE_SIGNAL: HandledSignals;

    /// Pause at start for a debugger.
    FREEZE: YesNo = false;

    /// Pause on a fatal error for a debugger.
    FREEZE_ON_ERROR: YesNo = false;

    /// Signals at which a rank pauses for a debugger, such as USR2. None may be one of
    /// GASNET_BACKTRACE_SIGNAL.
    FREEZE_SIGNAL: HandledSignals;

    /// Debug malloc: fill allocated memory with GASNET_MALLOC_INITVAL.
    MALLOC_INIT: YesNo = false;

    /// Debug malloc: the fill value of GASNET_MALLOC_INIT.
    MALLOC_INITVAL: FillPattern = "NAN";

    /// Debug malloc: fill freed memory with GASNET_MALLOC_CLOBBERVAL.
    MALLOC_CLOBBER: YesNo = false;

    /// Debug malloc: the fill value of GASNET_MALLOC_CLOBBER.
    MALLOC_CLOBBERVAL: FillPattern = "NAN";

    /// Debug malloc: keep freed memory, so that it is not used again.
    MALLOC_LEAKALL: YesNo = false;

    /// Debug malloc: look for writes to freed memory. Implies GASNET_MALLOC_CLOBBER and
    /// GASNET_MALLOC_LEAKALL.
    MALLOC_SCANFREED: YesNo = false;

    /// Debug malloc: check all objects in every call instead of one.
    MALLOC_EXTRACHECK: YesNo = false;

    /// Debug malloc: file for a report at exit about allocated and leaked objects, or stdout or
    /// stderr; - is stderr too. Each % in the name becomes the rank; without one, the ranks
    /// share the file.
    MALLOCFILE: FreeText;

    /// Ranks that write that report, such as 0,2-4. The default is all.
    MALLOCNODES: Ranks;

    /// Test aid: at exit each rank writes the counters of its Portals interface to the file
    /// with this path, a dot and the rank. It is made in gasnet_init.
    TEST_COUNTERS: FreeText;

    /// Test builds only: the planted fault to switch on.
    TEST_FAULT: FaultName;
}
