//! The life of a job: `gasnet_init`, `gasnet_attach`, `gasnet_exit`, and the queries about the
//! job.
//!
//! Called by clients. Invariant: this file alone stores the job where the other calls find it.

use super::client::{self, ABI, Client};
use super::rma::job;
use super::{
    ATTACHED, JOB, OK, THREAD_MODE, WATCHED, code, early_job, forget_job, has_rows, initialized,
    refuse_forked, refused,
};
use crate::env::{self, WaitMode};
use crate::process::exit;
use crate::rank::JobRank;
use crate::runtime::am::{FreeIndex, HandlerEntry};
use crate::runtime::client::{GasnetClient, SegmentMode};
use crate::runtime::records::record_exit;
use crate::runtime::{GasnetError, GasnetJob, GasnetResult, ThreadMode, checks, hsl};
use crate::trace::span;
use crate::{extended, fault, report, trace};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering;

/// What `gasnet_init` of the headers calls: [`gasnet_init`] for what the client was compiled for.
///
/// - `client`: modes, interface number and segment bound of the client; read before the call
///   returns.
///
/// # Safety
/// `client` must point to a [`Client`], whose first field is right whatever its interface.
/// `argc` and `argv` are not used; they may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_init(
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    client: *const Client,
) -> c_int {
    // Objects that include gasnet.h were checked when they were loaded. Other callers were not,
    // nor was one that calls earlier, in a constructor of its own.
    // SAFETY: as this function requires.
    let client = unsafe { client::read(client) };
    match start("gasnet_init", &client) {
        Some(_) => OK,
        None => GasnetError::NotInit as c_int,
    }
}

/// Starts the job of this process; `None`, after a message, the second time. `function` names the
/// caller in messages.
pub(super) fn start(function: &str, client: &Client) -> Option<&'static GasnetJob> {
    let known = SegmentMode::ALL.into_iter().find(|&mode| mode as u32 == client.segment_mode);
    let Some(segments) = known else {
        report::fatal(
            format_args!("{function}(): segment mode {} is unknown", client.segment_mode),
            format_args!(
                "Compile with one of GASNET_SEGMENT_FAST, GASNET_SEGMENT_LARGE and \
                 GASNET_SEGMENT_EVERYTHING."
            ),
        );
    };
    let threads = match client.thread_mode {
        1 => ThreadMode::Seq,
        2 => ThreadMode::Parsync,
        3 => ThreadMode::Par,
        m => report::fatal(
            format_args!("{function}(): thread mode {m} is unknown"),
            format_args!("Compile with one of GASNET_SEQ, GASNET_PARSYNC or GASNET_PAR."),
        ),
    };
    if threads != ThreadMode::Seq && !cfg!(feature = "hosted") {
        report::fatal(
            format_args!("{function}(): this library is built for a system without threads"),
            format_args!("Compile the program with GASNET_SEQ."),
        );
    }
    client::check(client);
    if initialized().is_some() {
        report::warn(
            format_args!(
                "{function}(): this process has joined a job before; this call changes nothing"
            ),
            format_args!("Call it once, or check the code that it returns, GASNET_ERR_NOT_INIT."),
        );
        return None;
    }
    refuse_forked(function);
    std::panic::set_hook(Box::new(|p| {
        let payload = p.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text =
            text.or(payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a bug");
        let (file, line) = p.location().map_or(("?", 0), |l| (l.file(), l.line()));
        report::fatal(
            format_args!("libgasnet failed at {file}:{line}: {text}"),
            format_args!("This is a mistake in the library; please report it with these lines."),
        )
    }));
    THREAD_MODE.store(threads as u8, Ordering::Relaxed);
    env::check_all();
    let max_segsize = client.max_segsize;
    let job = GasnetJob::start(function, GasnetClient { threads, segments, max_segsize });
    JOB.store(core::ptr::from_ref(job).cast_mut(), Ordering::Release);
    sys::process::on_fork(forget_job);
    super::tools::debug::open();
    if checks_wanted(client.debug != 0) {
        checks::switch_on(threads == ThreadMode::Seq);
    }
    super::tracing::open(job);
    hsl::open(threads);
    Some(job)
}

/// Whether GASNET_DEBUG_CHECKS requests debug checks, or, where it is not set, a client that
/// was compiled for them.
fn checks_wanted(debug_client: bool) -> bool {
    env::DEBUG_CHECKS.get().unwrap_or(debug_client)
}

unsafe extern "C" {
    /// In shim.c, or defined by the client: bound of the segment, bytes; 0 for none.
    static gasnet_max_segsize: u64;
}

/// Joins the job. Collective.
///
/// On return the process has its rank, the environment of the job and handlers for fatal
/// signals. Of GASNet only `gasnet_mynode`, `gasnet_nodes`, `gasnet_getenv`,
/// `gasnet_getNodeInfo`, the segment limits, `gasnet_set_waitmode`, `gasnet_exit` and locks may
/// be used before `gasnet_attach`. A failure to start ends the process with a message.
///
/// In C and C++, gasnet.h has a macro of this name that passes the modes that the client was
/// compiled for. The symbol, for `dlsym`, Fortran and ctypes, means thread mode PAR and segment
/// mode FAST.
///
/// - `argc`, `argv`: not used; may be null.
/// - Returns `GASNET_OK`, or `GASNET_ERR_NOT_INIT` the second time, which changes nothing.
/// - Context: once, before any other function of GASNet, and not in a process that a rank has
///   forked. No other thread may use the environment (`getenv`, `setenv`) meanwhile.
///
/// # Safety
/// As [`gasneti_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    let client = Client {
        abi: ABI,
        thread_mode: ThreadMode::Par as u32,
        segment_mode: SegmentMode::Fast as u32,
        debug: 0,
        // SAFETY: a word that the client may set before this call, which is the first.
        max_segsize: unsafe { gasnet_max_segsize },
    };
    // SAFETY: the record is alive, and of our interface.
    unsafe { gasneti_init(argc, argv, &client) }
}

/// Registers the handlers of active messages and attaches the segments. Collective, and a
/// barrier of all ranks.
///
/// On return all functions of GASNet may be used. The segment is zeroed on demand: no page of
/// it is touched here.
///
/// - `table`: `numentries` rows of index and function. Explicit indices are 128 to 255; rows
///   with index 0 get the lowest free one from 128 upwards, in table order, which is written
///   back. The table stays the client's.
/// - `numentries`: rows; 0 if there are no handlers.
/// - `segsize`: bytes of the segment of this rank, a multiple of `GASNET_PAGESIZE`, at most
///   `gasnet_getMaxLocalSegmentSize()`; 0 for none. Not used in EVERYTHING.
/// - `minheapoffset`: not used.
/// - Returns `GASNET_OK`; `GASNET_ERR_NOT_INIT` before `gasnet_init` or the second time,
///   `GASNET_ERR_BAD_ARG` for an invalid table or size, both after a message.
/// - Context: once, after `gasnet_init`.
///
/// # Safety
/// `table` must hold `numentries` rows that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_attach(
    table: *mut HandlerEntry,
    numentries: c_int,
    segsize: usize,
    _minheapoffset: usize,
) -> c_int {
    let Some(job) = initialized() else {
        refuse_forked("gasnet_attach");
        return refused(
            GasnetError::NotInit,
            format_args!("gasnet_attach() was called before gasnet_init()"),
            "Call gasnet_init, then gasnet_attach, before anything else.",
        );
    };
    if !has_rows("gasnet_attach", table.is_null(), numentries) {
        return GasnetError::BadArg as c_int;
    }
    let rows = match numentries as usize {
        0 => &mut [],
        // SAFETY: the specification of gasnet_attach demands a table of `numentries` rows, in
        // which it writes indices; it is not null.
        n => unsafe { core::slice::from_raw_parts_mut(table, n) },
    };
    let mut span = span!(I "gasnet_attach");
    let result = job
        .check_segment("gasnet_attach", segsize)
        .and_then(|()| job.endpoint.handlers.register("gasnet_attach", rows, FreeIndex::Lowest))
        .and_then(|()| attach_segment(job, "gasnet_attach", segsize));
    if result.is_ok() {
        job.record_segment(rows.len());
    }
    span.result(code(result))
}

/// Attaches the segments, and lets all calls of the client in. Collective, a barrier.
pub(super) fn attach_segment(
    job: &'static GasnetJob,
    function: &str,
    segsize: usize,
) -> GasnetResult {
    // Here, so that variables which a GASNet-1 program sets before it attaches count.
    extended::open(job);
    job.attach_segment(function, segsize)?;
    extended::attached(job);
    super::fast::open(job);
    admit(job);
    extended::connect(job);
    let own = job.endpoint.segments().info(job.endpoint.rank);
    // SAFETY: the hook of shim.c is called with the segment of this process, as
    // gasnet_client_attach_hook wants.
    unsafe { gasneti_call_attach_hook(own.base.cast(), own.len) };
    Ok(())
}

/// Lets calls of the client in.
pub(super) fn admit(job: &'static GasnetJob) {
    let watched = checks::on() || trace::on() || job.endpoint.conduit.notices_unmapping();
    let (way, other) = if watched { (&WATCHED, &ATTACHED) } else { (&ATTACHED, &WATCHED) };
    other.store(core::ptr::null_mut(), Ordering::Release);
    way.store(core::ptr::from_ref(job).cast_mut(), Ordering::Release);
}

unsafe extern "C" {
    /// In shim.c: calls `gasnet_client_attach_hook` if the client has set it.
    fn gasneti_call_attach_hook(base: *mut c_void, size: usize);
}

/// Ends the job: all ranks leave with one of the exit codes that ranks passed. Does not return.
/// Not collective. The first code other than 0 decides; 0 decides only if no other code follows
/// within the grace (How a job ends).
///
/// - `exitcode`: the exit code; its low-order 8 bits are seen by the launcher.
/// - Context: from `gasnet_init` on, in any thread, in handlers and signal handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_exit(exitcode: c_int) -> ! {
    record_exit(exitcode);
    exit::exit(exitcode)
}

/// Returns the rank of this process, from 0.
///
/// - Context: from `gasnet_init` on, in any thread, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_mynode() -> u32 {
    early_job("gasnet_mynode").endpoint.rank.0
}

/// Returns the number of ranks of the job.
///
/// - Context: from `gasnet_init` on, in any thread, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_nodes() -> u32 {
    early_job("gasnet_nodes").team.size()
}

/// Returns the value that an environment variable had where the job was started.
///
/// - `name`: its name, NUL-terminated.
/// - Returns the value, NUL-terminated, or null if it was not set. The string is the library's
///   and may not be changed.
/// - Context: from `gasnet_init` on, in any thread, in handlers too.
///
/// # Safety
/// `name` must be a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_getenv(name: *const c_char) -> *mut c_char {
    if fault::on("lose_env") {
        return core::ptr::null_mut();
    }
    // SAFETY: the specification of gasnet_getenv demands the name as a string.
    env::raw(unsafe { CStr::from_ptr(name) })
}

/// Returns the largest segment that this rank may attach, in bytes: a multiple of the page
/// size; in EVERYTHING the largest `uintptr_t`.
///
/// - Context: from `gasnet_init` on, in any thread, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_getMaxLocalSegmentSize() -> usize {
    early_job("gasnet_getMaxLocalSegmentSize").limits.local
}

/// Returns the largest segment that every rank may attach, in bytes: the minimum of
/// `gasnet_getMaxLocalSegmentSize` over all ranks.
///
/// - Context: from `gasnet_init` on, in any thread, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_getMaxGlobalSegmentSize() -> usize {
    early_job("gasnet_getMaxGlobalSegmentSize").limits.global
}

/// `gasnet_seginfo_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegInfo {
    /// First byte of the segment, as its owner addresses it.
    pub addr: *mut c_void,
    /// Bytes.
    pub size: usize,
}

/// Reports address and size of the segments, by rank.
///
/// - `table`: array of the client; the first `numentries` rows, or as many as there are ranks
///   if these are fewer, are filled. Addresses are those of the owner. In EVERYTHING the address
///   is null and the size is the largest `uintptr_t`.
/// - `numentries`: rows of the array.
/// - Returns `GASNET_OK`; `GASNET_ERR_BAD_ARG`, after a message, for a negative number or a null
///   array.
/// - Context: after `gasnet_attach`, in handlers too.
///
/// # Safety
/// `table` must hold `numentries` rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_getSegmentInfo(table: *mut SegInfo, numentries: c_int) -> c_int {
    let function = "gasnet_getSegmentInfo";
    let job = job(function);
    if !has_rows(function, table.is_null(), numentries) {
        return GasnetError::BadArg as c_int;
    }
    for rank in (0..(numentries as u32).min(job.team.size())).map(JobRank) {
        let s = job.endpoint.segments_for(function).info(rank);
        let row = SegInfo { addr: s.base.cast(), size: s.len };
        // SAFETY: the specification demands a table of `numentries` rows.
        unsafe { table.add(rank.index()).write(row) };
    }
    OK
}

/// `gasnet_nodeinfo_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NodeInfo {
    /// Number of the compute node.
    pub host: u32,
    /// Number of the group that maps each other's segments.
    pub supernode: u32,
    /// Added to an address in the segment of that process, it leads to the same byte here. It is
    /// meaningful after `gasnet_attach`, for processes of our supernode.
    pub offset: usize,
}

/// Reports the host and the supernode of each rank. The ranks of a supernode map each other's
/// segments.
///
/// - `table`: array of the client; the first `numentries` rows, or as many as there are ranks if
///   these are fewer, are filled. `offset`, added to an address in the segment of a rank of the
///   own supernode, leads to the same byte in this process. It is 0 before `gasnet_attach`.
/// - `numentries`: rows of the array.
/// - Returns `GASNET_OK`; `GASNET_ERR_BAD_ARG`, after a message, for a negative number or a null
///   array.
/// - Context: from `gasnet_init` on, in any thread, in handlers too.
///
/// # Safety
/// `table` must hold `numentries` rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_getNodeInfo(table: *mut NodeInfo, numentries: c_int) -> c_int {
    let job = early_job("gasnet_getNodeInfo");
    let attached = job.endpoint.is_attached();
    if !has_rows("gasnet_getNodeInfo", table.is_null(), numentries) {
        return GasnetError::BadArg as c_int;
    }
    let placement = job.placement();
    let supernodes = placement.supernodes();
    for rank in (0..(numentries as u32).min(job.team.size())).map(JobRank) {
        let (host, supernode) = (placement.place_of(rank).host, supernodes[rank]);
        let mut info = NodeInfo { host, supernode, offset: 0 };
        if attached {
            info.offset = job.endpoint.segments()[rank].distance().unwrap_or(0);
        }
        // SAFETY: the specification demands a table of `numentries` rows.
        unsafe { table.add(rank.index()).write(info) };
    }
    OK
}

/// Chooses how this process waits. A hint: where ranks outnumber CPUs, `GASNET_WAIT_SPIN`
/// counts as `GASNET_WAIT_SPINBLOCK` unless the variable `GASNET_WAITMODE` is `spin`.
///
/// - `wait_mode`: `GASNET_WAIT_SPIN`, `GASNET_WAIT_BLOCK` or `GASNET_WAIT_SPINBLOCK`.
/// - Returns `GASNET_OK`; `GASNET_ERR_BAD_ARG`, after a message, for another value.
/// - Context: from `gasnet_init` on, in any thread, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_set_waitmode(wait_mode: c_int) -> c_int {
    let mode = match wait_mode {
        0 => WaitMode::Spin,
        1 => WaitMode::Block,
        2 => WaitMode::SpinBlock,
        _ => {
            return refused(
                GasnetError::BadArg,
                format_args!("gasnet_set_waitmode(): {wait_mode} is no wait mode"),
                "Pass GASNET_WAIT_SPIN, GASNET_WAIT_BLOCK or GASNET_WAIT_SPINBLOCK.",
            );
        }
    };
    early_job("gasnet_set_waitmode").waiting.set(mode);
    OK
}

/// Returns the name of a code, such as `GASNET_ERR_BAD_ARG`.
///
/// - `errval`: a code that a function of GASNet returned.
/// - Returns a constant string; `*unknown*` for other codes. Never null.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_ErrorName(errval: c_int) -> *const c_char {
    describe(errval).0.as_ptr()
}

/// Returns what a code means, as a sentence.
///
/// - `errval`: a code that a function of GASNet returned.
/// - Returns a constant string, for other codes too. Never null.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_ErrorDesc(errval: c_int) -> *const c_char {
    describe(errval).1.as_ptr()
}

fn describe(errval: c_int) -> (&'static CStr, &'static CStr) {
    let is = |e: GasnetError| errval == e as c_int;
    if errval == OK {
        (c"GASNET_OK", c"No error")
    } else if is(GasnetError::NotInit) {
        (c"GASNET_ERR_NOT_INIT", c"GASNet is not initialized, or was initialized before")
    } else if is(GasnetError::Resource) {
        (c"GASNET_ERR_RESOURCE", c"A resource that was needed is not available")
    } else if is(GasnetError::BadArg) {
        (c"GASNET_ERR_BAD_ARG", c"An argument is not valid")
    } else if is(GasnetError::NotReady) {
        (c"GASNET_ERR_NOT_READY", c"The operation is not complete yet")
    } else if is(GasnetError::BarrierMismatch) {
        (c"GASNET_ERR_BARRIER_MISMATCH", c"The processes passed different barrier names")
    } else {
        (c"*unknown*", c"This is no error code of GASNet")
    }
}
