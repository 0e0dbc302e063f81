//! THE table of environment variables: name, kind, default, one line. It drives parsing, the printed
//! `ENV parameter:` lines, `gasnet_info` and docs/ENVIRONMENT.md.
//!
//! Values are read with [`lookup`], so that a client which calls `setenv` before `gasnet_init` is heard. A value that
//! cannot be parsed, or is out of range, ends the job with a line that names the variable, the value and what is
//! accepted.

use crate::report;
use crate::tools::number;
use crate::trace::Mask;
use core::ffi::c_char;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Y, YES, 1, N, NO or 0 in either case.
    Bool,
    /// A whole number within these bounds.
    Int(i64, i64),
    /// A number of bytes with an optional suffix B, K, M, G or T, within these bounds.
    Mem(u64, u64),
    /// A number of seconds, possibly a fraction a/b.
    Seconds,
    /// One of these words, in either case.
    Word(&'static [&'static str]),
    /// Ranks such as `0,2-4`, or `*`.
    Ranks,
    /// Names or numbers of signals, separated by commas, or `*`.
    Signals,
    /// Letters of events, or `^` and those to leave out.
    Letters,
    /// Anything.
    Text,
}

/// One environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Var {
    /// Its name.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: Kind,
    /// The value that it has when it is not set, as a user would write it; empty for none.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

const TB: u64 = 1 << 40;

/// All variables that the library reads.
pub const TABLE: &[Var] = &[
    var(
        "GASNET_PSHM_NODES",
        Kind::Int(0, crate::boot::MOST_RANKS as i64),
        "1",
        "number of processes that gasnet_init forks when no launcher started the job; 0 is 1",
    ),
    var(
        "GASNET_SPAWN_CONTROL",
        Kind::Word(&["ALONE", "FORK", "PMI", "PMIX"]),
        "",
        "how processes that gasnetrun did not start find each other: not at all, by GASNET_PSHM_NODES, by the launcher's PMI or \
         PMIx; the default is what the environment tells",
    ),
    var(
        "GASNET_SPAWN_TIMEOUT",
        Kind::Seconds,
        "300",
        "seconds after the first process within which all must have called gasnet_init; 0 for any time",
    ),
    var(
        "GASNET_SSH_NODEFILE",
        Kind::Text,
        "",
        "file that names a machine in each line; gasnetrun, which does not reach other machines yet, refuses one that is not this",
    ),
    var(
        "GASNET_SSH_SERVERS",
        Kind::Text,
        "",
        "names of machines, as in GASNET_SSH_NODEFILE, with blanks or commas between; has no effect if that is set",
    ),
    var(
        "GASNET_NODEFILE",
        Kind::Text,
        "",
        "as GASNET_SSH_NODEFILE, if neither of those two is set",
    ),
    var(
        "GASNET_SUPERNODE_MAXSIZE",
        Kind::Int(0, i64::MAX),
        "0",
        "largest group of processes that map each other's segments; 1 sends everything through Portals, 0 means no limit",
    ),
    var(
        "GASNET_MAX_SEGSIZE",
        Kind::Mem(4096, 1 << 47),
        "",
        "upper bound of the segment of one process",
    ),
    var(
        "GASNET_USE_HUGEPAGES",
        Kind::Bool,
        "1",
        "segments of 2 MB and more in huge pages, where the kernel gives them to those who ask (shmem_enabled of transparent huge pages)",
    ),
    var(
        "GASNET_MAX_THREADS",
        Kind::Int(1, 256),
        "256",
        "client threads of one process that may use the library at the same time",
    ),
    var(
        "GASNET_WAITMODE",
        Kind::Word(&["SPIN", "BLOCK", "SPINBLOCK"]),
        "",
        "how to wait; the default is SPIN, or SPINBLOCK where processes outnumber the CPUs. Where yielding the CPU takes long, or \
         more threads wait than there are CPUs for them, they sleep, unless SPIN is given here",
    ),
    var(
        "GASNET_VERBOSEENV",
        Kind::Text,
        "",
        "if set, process 0 prints each variable that is looked at",
    ),
    var("GASNET_QUIET", Kind::Bool, "0", "no warnings at start"),
    var(
        "GASNET_EXITTIMEOUT",
        Kind::Seconds,
        "",
        "seconds that processes may take to leave when the job ends; the default is the smaller of _MAX and _MIN + processes * _FACTOR",
    ),
    var("GASNET_EXITTIMEOUT_MAX", Kind::Seconds, "2", "see GASNET_EXITTIMEOUT"),
    var("GASNET_EXITTIMEOUT_MIN", Kind::Seconds, "0.7", "see GASNET_EXITTIMEOUT"),
    var("GASNET_EXITTIMEOUT_FACTOR", Kind::Seconds, "0.002", "see GASNET_EXITTIMEOUT"),
    var(
        "GASNET_NO_CATCH_SIGNAL",
        Kind::Signals,
        "",
        "comma-separated names or numbers of signals that keep their default action, or *",
    ),
    var("GASNET_BACKTRACE", Kind::Bool, "0", "print the stack on a fatal error"),
    var(
        "GASNET_BACKTRACE_NODES",
        Kind::Ranks,
        "",
        "ranks that print their stack, such as 0,2-4; the default is all",
    ),
    var(
        "GASNET_BACKTRACE_TYPE",
        Kind::Text,
        "",
        "comma-separated means to print the stack, in order: EXECINFO, ADDR2LINE, GDB, GSTACK, PSTACK, EUSTACK, and the name of \
         the client's own; the default is the client's own, then EXECINFO",
    ),
    var(
        "GASNET_BACKTRACE_SIGNAL",
        Kind::Signals,
        "",
        "a signal at which the stack is printed and the program goes on",
    ),
    var(
        "GASNET_DEBUG_CHECKS",
        Kind::Bool,
        "",
        "check each call for misuse of locks, no-interrupt sections, handlers, handles, alignment, access regions and one's own segment; the \
         default is 1 for a program that was compiled with GASNET_DEBUG",
    ),
    var("GASNET_FREEZE", Kind::Bool, "0", "pause at start for a debugger"),
    var("GASNET_FREEZE_ON_ERROR", Kind::Bool, "0", "pause on a fatal error for a debugger"),
    var(
        "GASNET_FREEZE_SIGNAL",
        Kind::Signals,
        "",
        "a signal at which the process pauses for a debugger",
    ),
    var(
        "GASNET_MALLOC_INIT",
        Kind::Bool,
        "0",
        "debug malloc: fill what is allocated with GASNET_MALLOC_INITVAL",
    ),
    var(
        "GASNET_MALLOC_INITVAL",
        Kind::Text,
        "NAN",
        "a byte (0 to 255), a number of 64 bits, NAN, qNAN or sNAN",
    ),
    var(
        "GASNET_MALLOC_CLOBBER",
        Kind::Bool,
        "0",
        "debug malloc: fill what is freed with GASNET_MALLOC_CLOBBERVAL",
    ),
    var("GASNET_MALLOC_CLOBBERVAL", Kind::Text, "NAN", "as GASNET_MALLOC_INITVAL"),
    var(
        "GASNET_MALLOC_LEAKALL",
        Kind::Bool,
        "0",
        "debug malloc: keep what is freed, so that it is not used again",
    ),
    var(
        "GASNET_MALLOC_SCANFREED",
        Kind::Bool,
        "0",
        "debug malloc: look for writes to what was freed; implies CLOBBER and LEAKALL",
    ),
    var(
        "GASNET_MALLOC_EXTRACHECK",
        Kind::Bool,
        "0",
        "debug malloc: look at all objects in every call, not at one",
    ),
    var(
        "GASNET_MALLOCFILE",
        Kind::Text,
        "",
        "debug malloc: file for a report at exit of what was allocated and not freed, each % in it the rank; or stdout, stderr, -",
    ),
    var(
        "GASNET_MALLOCNODES",
        Kind::Ranks,
        "",
        "ranks that write that report, such as 0,2-4; the default is all",
    ),
    var(
        "GASNET_TRACEFILE",
        Kind::Text,
        "",
        "file for a line of each call of GASNet, each % in it the rank; or stdout, stderr, -",
    ),
    var(
        "GASNET_TRACEMASK",
        Kind::Letters,
        "",
        "the types of events that are traced; the default is all",
    ),
    var(
        "GASNET_TRACENODES",
        Kind::Ranks,
        "",
        "ranks that trace, such as 0,2-4; the default is all",
    ),
    var(
        "GASNET_TRACELOCAL",
        Kind::Bool,
        "1",
        "trace puts and gets of a process to itself as well",
    ),
    var("GASNET_TRACEFLUSH", Kind::Bool, "0", "write each line of the trace at once"),
    var(
        "GASNET_STATSFILE",
        Kind::Text,
        "",
        "file for counts, bytes and times of the calls, written at exit; named as GASNET_TRACEFILE",
    ),
    var(
        "GASNET_STATSMASK",
        Kind::Letters,
        "",
        "the types of events that are counted; the default is all",
    ),
    var(
        "GASNET_STATSNODES",
        Kind::Ranks,
        "",
        "ranks that count, such as 0,2-4; the default is all",
    ),
    var(
        "GASNET_NETWORK",
        Kind::Word(&["EMULATION", "LIBPORTALS"]),
        "",
        "the Portals below, where the library was built with both; the default is LIBPORTALS if it was built with one",
    ),
    var(
        "GASNET_PORTAL_PTE_RAR",
        Kind::Int(0, 255),
        "38",
        "portal table entry for puts and gets; the same in all processes",
    ),
    var(
        "GASNET_PORTAL_PTE_AM",
        Kind::Int(0, 255),
        "39",
        "portal table entry for active messages; the same in all processes",
    ),
    var(
        "GASNET_PORTAL_MSG_LIMIT",
        Kind::Int(12, 65535),
        "250",
        "messages in flight from one process (send tickets)",
    ),
    var("GASNET_PORTAL_NUM_TMPMD", Kind::Int(2, 32768), "1024", "temporary memory descriptors"),
    var("GASNET_PORTAL_PACKED_LONG", Kind::Bool, "1", "send small Longs as one message"),
    var(
        "GASNET_PACKEDLONG_LIMIT",
        Kind::Mem(0, 2048),
        "2KB",
        "largest payload of a Long that is sent as one message; 0 sends those with a payload as two. Where a put ends within the \
         call (GASNET_PORTAL_AT_ONCE), payloads of 256 B and more, and all between processes that map each other's segments, are put to \
         their place and not packed, except those that travel in their event (up to 32 B with the arguments)",
    ),
    var(
        "GASNET_PORTAL_FLOW_CONTROL",
        Kind::Bool,
        "1",
        "flow control of active messages; without it a process that is sent too many at once ends the job",
    ),
    var(
        "GASNET_PORTAL_AT_ONCE",
        Kind::Bool,
        "1",
        "end puts, gets and sends within the call where the network reaches the target's memory, without waiting for events",
    ),
    var(
        "GASNET_PORTAL_DYNAMIC_CREDITS",
        Kind::Bool,
        "1",
        "move credits to the processes that need them; has no effect without flow control",
    ),
    var(
        "GASNET_PORTAL_CREDIT_STATS",
        Kind::Bool,
        "0",
        "at exit each process writes the movements of its credits to gasnet_credits.RANK in its working directory",
    ),
    var(
        "GASNET_PORTAL_EPOCH_DURATION",
        Kind::Int(1, 1 << 30),
        "1024",
        "requests received that make an epoch, after which old demand counts less",
    ),
    var(
        "GASNET_PORTAL_SB_CHUNKS",
        Kind::Int(2, 4096),
        "2048",
        "chunks of 2 KiB for requests and bounce buffers",
    ),
    var(
        "GASNET_PORTAL_OUTBOX_AREAS",
        Kind::Int(0, 4096),
        "64",
        "areas of 2 KiB in which payloads of Medium requests of 320 bytes and more (512 with threads) wait for processes of this host, which read them there; more than there are such processes; 0 for none",
    ),
    var("GASNET_PORTAL_RPL_CHUNKS", Kind::Int(2, 4096), "256", "chunks of 2 KiB for replies"),
    var(
        "GASNET_PORTAL_SAFE_LIMIT",
        Kind::Int(0, 65535),
        "12",
        "events of the SAFE queue per poll, 0 for all",
    ),
    var(
        "GASNET_PORTAL_AM_LIMIT",
        Kind::Int(0, 65535),
        "8",
        "events of the AM queue per poll, 0 for all",
    ),
    var(
        "GASNET_PORTAL_SYS_LIMIT",
        Kind::Int(0, 65535),
        "0",
        "events of the SYS queue per poll, 0 for all",
    ),
    var(
        "GASNET_PORTAL_MAX_CRED_PER_NODE",
        Kind::Int(8, 65535),
        "400",
        "credits that one process may hold of another, while credits move",
    ),
    var(
        "GASNET_PORTAL_CRED_PER_NODE",
        Kind::Int(8, 65535),
        "",
        "credits that each process has of each other at start; the default depends on the size of the job",
    ),
    var(
        "GASNET_PORTAL_BANKED_CREDITS",
        Kind::Int(0, 65535),
        "",
        "credits that each process keeps at start; the default depends on the size of the job",
    ),
    var(
        "GASNET_PORTAL_AMRECV_SPACE",
        Kind::Mem(4 << 20, TB),
        "",
        "bytes of request receive buffers; the default follows from the credits",
    ),
    var(
        "GASNET_PORTAL_PUTGET_BOUNCE_LIMIT",
        Kind::Mem(0, 2048),
        "2KB",
        "largest put or get that goes through a bounce buffer; a get is 8 bytes short of a whole one",
    ),
    var(
        "GASNET_PORTAL_PUT_BOUNCE_LIMIT",
        Kind::Mem(0, 2048),
        "",
        "largest put that goes through a bounce buffer; the default is GASNET_PORTAL_PUTGET_BOUNCE_LIMIT",
    ),
    var(
        "GASNET_PORTAL_GET_BOUNCE_LIMIT",
        Kind::Mem(0, 2040),
        "",
        "largest get that goes through a bounce buffer; the default is GASNET_PORTAL_PUTGET_BOUNCE_LIMIT",
    ),
    var(
        "GASNET_PORTAL_ACCEL",
        Kind::Int(0, 0),
        "0",
        "accelerated Portals of Catamount, which this library is not built for",
    ),
    var(
        "GASNET_VIS_AMPIPE",
        Kind::Bool,
        "0",
        "pack the small pieces of vector, indexed and strided puts and gets into active messages",
    ),
    var(
        "GASNET_VIS_REMOTECONTIG",
        Kind::Bool,
        "",
        "put pieces together that are neighbours in remote memory, puts into larger puts and gets into packed ones; the \
         default is to do so with puts",
    ),
    var(
        "GASNET_VIS_MAXCHUNK",
        Kind::Mem(1, TB),
        "256",
        "largest piece that is packed or put together with others, at most what an active message has room for",
    ),
    var(
        "GASNET_COLL_ROOTED_GEOM",
        Kind::Text,
        "",
        "tree of the collectives with a root: FLAT_TREE, NARY_TREE,n or KNOMIAL_TREE,n; the default goes by size",
    ),
    var(
        "GASNET_COLL_BROADCAST_GEOM",
        Kind::Text,
        "",
        "tree of broadcasts; the default is GASNET_COLL_ROOTED_GEOM",
    ),
    var(
        "GASNET_COLL_SCATTER_GEOM",
        Kind::Text,
        "",
        "tree of scatters; the default is GASNET_COLL_ROOTED_GEOM",
    ),
    var(
        "GASNET_COLL_GATHER_GEOM",
        Kind::Text,
        "",
        "tree of gathers; the default is GASNET_COLL_ROOTED_GEOM",
    ),
    var(
        "GASNET_COLL_PIPE_SEG_SIZE",
        Kind::Mem(0, TB),
        "0",
        "bytes of a broadcast that an inner node of its tree passes on at a time, 0 for all",
    ),
    var(
        "GASNET_COLL_GATHER_ALL_DISSEM_LIMIT",
        Kind::Mem(0, TB),
        "",
        "largest block that gather_all moves by dissemination; the default is 256",
    ),
    var(
        "GASNET_COLL_GATHER_ALL_DISSEM_LIMIT_PER_THREAD",
        Kind::Mem(0, TB),
        "",
        "the same, divided by the images of a process",
    ),
    var(
        "GASNET_COLL_EXCHANGE_DISSEM_LIMIT",
        Kind::Mem(0, TB),
        "",
        "largest block that exchange moves by dissemination; the default is 256",
    ),
    var(
        "GASNET_COLL_EXCHANGE_DISSEM_LIMIT_PER_THREAD",
        Kind::Mem(0, TB),
        "",
        "the same, divided by the images of a process",
    ),
    var(
        "GASNET_COLL_EXCHANGE_DISSEM_RADIX",
        Kind::Int(2, 256),
        "2",
        "radix of exchange's dissemination",
    ),
    var(
        "GASNET_COLL_SCRATCH_SIZE",
        Kind::Mem(0, TB),
        "2MB",
        "most memory for the blocks of others in one scatter or gather; the root serves everybody itself beyond that",
    ),
    var("GASNET_COLL_OPT", Kind::Bool, "1", "collectives use trees and dissemination"),
    var(
        "GASNET_COLL_BROADCAST_OPT",
        Kind::Bool,
        "",
        "broadcasts do; the default is GASNET_COLL_OPT",
    ),
    var("GASNET_COLL_SCATTER_OPT", Kind::Bool, "", "scatters do; the default is GASNET_COLL_OPT"),
    var("GASNET_COLL_GATHER_OPT", Kind::Bool, "", "gathers do; the default is GASNET_COLL_OPT"),
    var(
        "GASNET_COLL_GATHER_ALL_OPT",
        Kind::Bool,
        "",
        "gather_all does; the default is GASNET_COLL_OPT",
    ),
    var(
        "GASNET_COLL_EXCHANGE_OPT",
        Kind::Bool,
        "",
        "exchange does; the default is GASNET_COLL_OPT",
    ),
    var(
        "GASNET_COLL_TUNING_FILE",
        Kind::Text,
        "",
        "file of algorithms that gasnet_coll_init reads, if it is there, and the tuning calls use when they name none",
    ),
    var(
        "GASNET_COLL_ENABLE_PROFILE",
        Kind::Bool,
        "0",
        "count the collectives by operation and size, for gasnet_coll_dumpProfile",
    ),
    var(
        "GASNET_COLL_AUTOTUNE_WARM_ITERS",
        Kind::Int(0, 1 << 30),
        "2",
        "runs of each candidate of gasnet_coll_tune_generic_op that are not timed",
    ),
    var(
        "GASNET_COLL_AUTOTUNE_PERF_ITERS",
        Kind::Int(1, 1 << 30),
        "10",
        "runs of each candidate of gasnet_coll_tune_generic_op that are timed",
    ),
    var(
        "GASNET_TEST_COUNTERS",
        Kind::Text,
        "",
        "test aid: at exit each process writes what its Portals interface carried to this path, a dot and its rank",
    ),
    var("GASNET_TEST_FAULT", Kind::Text, "", "test builds only: the planted fault to switch on"),
];

const fn var(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Var {
    Var { name, kind, default, help }
}

/// The entry of a variable; a name that is not in the table is a mistake of ours.
fn entry(name: &str) -> &'static Var {
    TABLE.iter().find(|v| v.name == name).unwrap_or_else(|| panic!("{name} is not in env::TABLE"))
}

/// The value as set, if it is set.
pub fn lookup(name: &str) -> Option<String> {
    let c = CString::new(name).ok()?;
    let value = raw(&c);
    if value.is_null() {
        return None;
    }
    // SAFETY: not null, NUL-terminated, copied at once.
    Some(unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
}

/// The value of a variable, NUL-terminated, or null: of the environment that the job has settled on, if the processes' own
/// differ. Valid until this process changes its environment.
pub fn raw(name: &CStr) -> *mut c_char {
    match SETTLED.get() {
        Some(block) if !is_launchers(&[name.to_bytes(), b"="].concat()) => {
            find(block, name.to_bytes()).map_or(ptr::null_mut(), |v| v.as_ptr().cast_mut())
        }
        // SAFETY: getenv takes a NUL-terminated name.
        _ => unsafe { libc::getenv(name.as_ptr()) },
    }
}

/// What all processes take for their environment, as [`block`] puts it together, if their own differ.
static SETTLED: OnceLock<Vec<u8>> = OnceLock::new();
/// Whether the processes of the job have been forked from one.
static COMMON: AtomicBool = AtomicBool::new(false);

/// How the names begin by which launchers, also those of a libportals, tell a process who it is.
const LAUNCHERS: &[&str] = &[
    "GASNETI_",
    "GASNET_SPAWN_FDS=",
    "HYDI_",
    "HYDRA_",
    "MPIR_",
    "MPI_LOCAL",
    "OMPI_",
    "OPAL_",
    "ORTE_",
    "PMIX_",
    "PMI_",
    "PRTE_",
    "PTL_",
    "SLURM",
    "SRUN_",
    "_=",
];

/// The processes of this job have one environment, since one has forked them all.
pub fn set_common() {
    COMMON.store(true, Ordering::Relaxed);
}

/// Whether the processes of this job cannot have different environments.
pub fn is_common() -> bool {
    COMMON.load(Ordering::Relaxed)
}

/// The environment of this process without what launchers tell each process apart: `name=value` in order, each with a NUL.
pub fn block() -> Vec<u8> {
    let mut all: Vec<Vec<u8>> = std::env::vars_os()
        .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat())
        .filter(|entry| !is_launchers(entry))
        .collect();
    all.sort();
    all.concat()
}

/// Whether an entry `name=...` is one of those.
fn is_launchers(entry: &[u8]) -> bool {
    LAUNCHERS.iter().any(|l| entry.starts_with(l.as_bytes()))
}

/// Takes this, of another process's [`block`], for the environment.
pub fn settle_on(block: Vec<u8>) {
    let _ = SETTLED.set(block);
}

/// The value of a variable in a block.
fn find<'a>(block: &'a [u8], name: &[u8]) -> Option<&'a CStr> {
    let entries =
        block.split_inclusive(|&b| b == 0).filter_map(|e| CStr::from_bytes_with_nul(e).ok());
    entries.filter(|e| e.to_bytes().starts_with(name)).find_map(|e| {
        let at = name.len();
        (e.to_bytes().get(at) == Some(&b'=')).then(|| &e[at + 1..])
    })
}

/// What values of a kind look like, for the user who gave another one.
pub fn accepted(kind: Kind) -> String {
    match kind {
        Kind::Bool => "Y, YES, 1, N, NO or 0".to_string(),
        Kind::Int(lo, hi) if hi == i64::MAX => format!("a whole number, at least {lo}"),
        Kind::Int(lo, hi) if lo == hi => format!("{lo}"),
        Kind::Int(lo, hi) => format!("a whole number from {lo} to {hi}"),
        Kind::Mem(lo, hi) => {
            format!("a size from {lo} to {hi} bytes, with or without a suffix B, KB, MB, GB or TB")
        }
        Kind::Seconds => "a number of seconds that is not negative, or a fraction a/b".to_string(),
        Kind::Word(words) => format!("one of {}", words.join(", ")),
        Kind::Ranks => "ranks separated by commas, such as 0,2-4, or *".to_string(),
        Kind::Signals => "names or numbers of signals separated by commas, or *".to_string(),
        Kind::Letters => format!("letters out of {}, or ^ and those to leave out", Mask::ALL),
        Kind::Text => "any text".to_string(),
    }
}

fn refuse(v: &Var, value: &str) -> ! {
    report::fatal(
        format_args!("{}={value} cannot be used", v.name),
        format_args!("Give {}, or unset it.", accepted(v.kind)),
    )
}

/// A value that a variable can have.
enum Value {
    Bool(bool),
    Int(i64),
    Mem(u64),
    Seconds(f64),
    Word(usize),
    Other,
}

/// The value that a text, which is not empty, stands for; `None` if the kind has no such value.
fn parse(kind: Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::Bool => match text.to_ascii_uppercase().as_str() {
            "Y" | "YES" | "1" => Some(Value::Bool(true)),
            "N" | "NO" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        Kind::Int(lo, hi) => {
            text.trim().parse::<i64>().ok().filter(|n| (lo..=hi).contains(n)).map(Value::Int)
        }
        Kind::Mem(lo, hi) => parse_mem(text).filter(|n| (lo..=hi).contains(n)).map(Value::Mem),
        Kind::Seconds => number::parse_fraction(text).filter(|s| *s >= 0.0).map(Value::Seconds),
        Kind::Word(words) => {
            words.iter().position(|w| w.eq_ignore_ascii_case(text.trim())).map(Value::Word)
        }
        Kind::Ranks => text.split(',').map(str::trim).all(is_ranks).then_some(Value::Other),
        Kind::Signals => {
            let known = |w: &str| w.is_empty() || w == "*" || sys::signal::parse(w).is_some();
            text.split(',').map(str::trim).all(known).then_some(Value::Other)
        }
        Kind::Letters => Mask::parse(text).is_ok().then_some(Value::Other),
        Kind::Text => Some(Value::Other),
    }
}

fn is_ranks(item: &str) -> bool {
    let rank = |t: &str| t.trim().parse::<u32>().ok();
    match item.split_once('-') {
        _ if item == "*" => true,
        Some((a, b)) => rank(a).zip(rank(b)).is_some_and(|(a, b)| a <= b),
        None => rank(item).is_some(),
    }
}

/// Its value as text, or its default; `None` if both are empty.
pub fn text(name: &str) -> Option<String> {
    let v = entry(name);
    lookup(name)
        .or_else(|| (!v.default.is_empty()).then(|| v.default.to_string()))
        .filter(|s| !s.is_empty())
}

/// Its value, or its default; `None` if both are empty.
fn value(name: &str) -> Option<Value> {
    let v = entry(name);
    let text = text(name)?;
    Some(parse(v.kind, &text).unwrap_or_else(|| refuse(v, &text)))
}

fn wrong_kind(name: &str) -> ! {
    panic!("{name} is of another kind in env::TABLE")
}

/// A [`Kind::Bool`]; false if it has neither value nor default.
pub fn yes(name: &str) -> bool {
    match value(name) {
        Some(Value::Bool(yes)) => yes,
        None => false,
        _ => wrong_kind(name),
    }
}

/// A [`Kind::Int`].
pub fn int(name: &str) -> Option<i64> {
    match value(name)? {
        Value::Int(n) => Some(n),
        _ => wrong_kind(name),
    }
}

/// A [`Kind::Mem`], in bytes.
pub fn mem(name: &str) -> Option<u64> {
    match value(name)? {
        Value::Mem(n) => Some(n),
        _ => wrong_kind(name),
    }
}

/// A [`Kind::Seconds`].
pub fn seconds(name: &str) -> Option<f64> {
    match value(name)? {
        Value::Seconds(s) => Some(s),
        _ => wrong_kind(name),
    }
}

/// A [`Kind::Word`]: the index of the word.
pub fn word(name: &str) -> Option<usize> {
    match value(name)? {
        Value::Word(i) => Some(i),
        _ => wrong_kind(name),
    }
}

/// Ends the job if a variable of the table has a value that it cannot have, whether or not this job would look at it.
/// Called before the job has more than one process, so that the user reads it once.
pub fn check_all() {
    for v in TABLE {
        let text = lookup(v.name).unwrap_or_default();
        if !text.is_empty() && parse(v.kind, &text).is_none() {
            refuse(v, &text);
        }
    }
}

/// A variable as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The variable's value as an `ENV parameter:` line shows it; `None` if it has neither value nor default.
    pub shown: Option<String>,
    /// Whether it comes from the environment; else it is the default.
    pub set: bool,
    /// What is accepted, if the value is not.
    pub refused: Option<String>,
}

/// How a variable stands; never ends the job.
pub fn setting(v: &Var) -> Setting {
    let set = lookup(v.name);
    let raw = set.as_deref().unwrap_or(v.default);
    if raw.is_empty() {
        return Setting {
            shown: set.is_some().then(String::new),
            set: set.is_some(),
            refused: None,
        };
    }
    let (shown, refused) = match parse(v.kind, raw) {
        Some(Value::Bool(yes)) => (if yes { "YES" } else { "NO" }.to_string(), None),
        Some(Value::Int(n)) => (explained(raw, &n.to_string()), None),
        Some(Value::Mem(n)) => {
            let formatted =
                i64::try_from(n).map_or_else(|_| n.to_string(), |n| number::format(n, true));
            // A default is written in the way that users write it.
            (if set.is_some() { explained(raw, &formatted) } else { formatted }, None)
        }
        Some(Value::Seconds(s)) => (explained(raw, &s.to_string()), None),
        Some(Value::Word(_) | Value::Other) => (raw.to_string(), None),
        None => (raw.to_string(), Some(accepted(v.kind))),
    };
    Setting { shown: Some(shown), set: set.is_some(), refused }
}

/// A value as the user wrote it, with what it was understood to be if that looks different.
pub fn explained(raw: &str, formatted: &str) -> String {
    if raw == formatted { raw.to_string() } else { format!("{raw} ({formatted})") }
}

/// The names in the environment that begin with GASNET_ and that the library does not read, each with the name in the table that
/// it resembles, if there is one.
pub fn unknown() -> Vec<(String, Option<&'static str>)> {
    let mut names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|n| n.starts_with("GASNET_") && TABLE.iter().all(|v| v.name != n))
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|n| {
            let near = resembling(&n);
            (n, near)
        })
        .collect()
}

/// The name in the table that was probably meant: the one that takes the fewest changes of a letter, at most a third of
/// the letters after GASNET_.
fn resembling(name: &str) -> Option<&'static str> {
    let tail = |n: &str| n.trim_start_matches("GASNET_").len();
    TABLE
        .iter()
        .map(|v| (changes(name, v.name), v.name))
        .filter(|(n, known)| *n <= (tail(name).min(tail(known)) / 3).max(1))
        .min()
        .map(|(_, known)| known)
}

/// How many letters must be inserted, removed or replaced to make `b` of `a` (Levenshtein's distance).
fn changes(a: &str, b: &str) -> usize {
    let b = b.as_bytes();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// Bytes of a size such as `2KB`, `0x1000`, `1.5G`.
fn parse_mem(text: &str) -> Option<u64> {
    let t = text.trim().to_ascii_uppercase();
    if let Some(hex) = t.strip_prefix("0X") {
        return u64::from_str_radix(hex, 16).ok();
    }
    let t = t.strip_suffix('B').unwrap_or(&t);
    let (number, shift) = match t.chars().last()? {
        'K' => (&t[..t.len() - 1], 10),
        'M' => (&t[..t.len() - 1], 20),
        'G' => (&t[..t.len() - 1], 30),
        'T' => (&t[..t.len() - 1], 40),
        _ => (t, 0),
    };
    if let Ok(n) = number.trim().parse::<u64>() {
        return n.checked_mul(1 << shift);
    }
    let n = number.trim().parse::<f64>().ok()?;
    let bytes = n * (1u64 << shift) as f64;
    (bytes >= 0.0 && bytes < u64::MAX as f64).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_mem("4096"), Some(4096));
        assert_eq!(parse_mem("2KB"), Some(2048));
        assert_eq!(parse_mem("2k"), Some(2048));
        assert_eq!(parse_mem("1.5M"), Some(3 << 19));
        assert_eq!(parse_mem("0x10"), Some(16));
        assert_eq!(parse_mem("16B"), Some(16));
        assert_eq!(parse_mem(""), None);
        assert_eq!(parse_mem("lots"), None);
        assert_eq!(parse_mem("99999999999T"), None);
    }

    #[test]
    fn defaults_are_accepted_by_their_own_kind() {
        for v in TABLE.iter().filter(|v| !v.default.is_empty()) {
            assert!(parse(v.kind, v.default).is_some(), "{}", v.name);
        }
    }

    #[test]
    fn values_that_are_refused() {
        let wrong = [
            (Kind::Bool, "maybe"),
            (Kind::Bool, "2"),
            (Kind::Int(1, 9), "0"),
            (Kind::Int(1, 9), "10"),
            (Kind::Int(1, 9), "3x"),
            (Kind::Int(i64::MIN, i64::MAX), "99999999999999999999"),
            (Kind::Mem(1, 1 << 20), "2MB"),
            (Kind::Mem(1, 1 << 20), "-1"),
            (Kind::Mem(1, 1 << 20), "1 parsec"),
            (Kind::Seconds, "-1"),
            (Kind::Seconds, "1/0"),
            (Kind::Seconds, "inf"),
            (Kind::Word(&["SPIN", "BLOCK"]), "spinning"),
            (Kind::Ranks, "0,x"),
            (Kind::Ranks, "4-2"),
            (Kind::Signals, "SEGV,NOSUCH"),
            (Kind::Letters, "GPQ"),
        ];
        for (kind, text) in wrong {
            assert!(parse(kind, text).is_none(), "{kind:?} {text}");
        }
        let right = [
            (Kind::Bool, "yes"),
            (Kind::Int(1, 9), " 9 "),
            (Kind::Mem(1, 1 << 20), "0.5m"),
            (Kind::Seconds, "1/4"),
            (Kind::Word(&["SPIN", "BLOCK"]), "block"),
            (Kind::Ranks, "0, 2-4"),
            (Kind::Ranks, "*"),
            (Kind::Signals, "SIGSEGV,7"),
            (Kind::Letters, "^XD"),
        ];
        for (kind, text) in right {
            assert!(parse(kind, text).is_some(), "{kind:?} {text}");
        }
    }

    #[test]
    fn misspelt_names() {
        assert_eq!(resembling("GASNET_PORTALS_MSG_LIMIT"), Some("GASNET_PORTAL_MSG_LIMIT"));
        assert_eq!(resembling("GASNET_MAXSEGSIZE"), Some("GASNET_MAX_SEGSIZE"));
        assert_eq!(resembling("GASNET_QUEIT"), None);
        assert_eq!(resembling("GASNET_QUIT"), Some("GASNET_QUIET"));
        assert_eq!(resembling("GASNET_SPAWNER"), None);
        assert_eq!(resembling("GASNET_PHYSMEM_MAX"), None);
    }

    #[test]
    fn changes_of_letters() {
        assert_eq!(changes("", "abc"), 3);
        assert_eq!(changes("kitten", "sitting"), 3);
        assert_eq!(changes("same", "same"), 0);
    }
}
