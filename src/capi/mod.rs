//! The C interface: `extern "C"` functions that check their arguments, call one function, and
//! translate the error.
//!
//! Called by clients. Only this layer knows that a process has one job.
//! Invariant: no panic crosses the ABI. The library is built with `panic = "abort"`, and the
//! panic hook that `gasnet_init` installs ends the job with a message first.
//!
//! | file | what it owns |
//! |---|---|
//! | `abi`, `fast` | the types of the C ABI; the record that the inline paths of the headers read |
//! | `client` | what the objects of the program were compiled for |
//! | `init` | init, attach, exit, and the queries about the job |
//! | `am` | active messages |
//! | `hsl` | handler-safe locks and no-interrupt sections |
//! | `rma`, `value`, `vis` | puts, gets and memsets; value forms; vector, indexed and strided ones |
//! | `sync` | syncing of non-blocking operations; access regions |
//! | `barrier`, `coll` | the barrier; collectives and teams |
//! | `ex` | the interface of GASNet-EX |
//! | `tools`, `heap`, `tracing` | the `gasnett_*` functions; debug malloc; trace and statistics |

use crate::runtime::ops::OpHandle;
use crate::runtime::{Ctx, GasnetError, GasnetJob, ThreadMode, checks};
use crate::{report, trace};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

pub mod abi;
pub mod am;
pub mod barrier;
pub mod client;
pub mod coll;
pub mod ex;
mod fast;
pub mod heap;
pub mod hsl;
pub mod init;
pub mod rma;
pub mod sync;
pub mod tools;
pub mod tracing;
pub mod value;
pub mod vis;
mod vis_transfer;

/// The job, from `gasnet_init` on.
static JOB: AtomicPtr<GasnetJob> = AtomicPtr::new(core::ptr::null_mut());
/// The job, from `gasnet_attach` on.
static ATTACHED: AtomicPtr<GasnetJob> = AtomicPtr::new(core::ptr::null_mut());
/// The same instead of [`ATTACHED`], which is null then, while every call is checked or traced, or
/// must learn first what the program has unmapped. Then each call takes the cold path,
/// [`watched_job`], and the fast path has no test for it.
static WATCHED: AtomicPtr<GasnetJob> = AtomicPtr::new(core::ptr::null_mut());
/// Thread mode, 0 before `gasnet_init`.
static THREAD_MODE: AtomicU8 = AtomicU8::new(0);

/// A process of a job has forked this one.
static FORKED: AtomicBool = AtomicBool::new(false);

/// `GASNET_OK`
const OK: c_int = 0;

/// The thread mode of the client; PAR, which is right for all, before `gasnet_init`.
pub fn thread_mode() -> ThreadMode {
    match THREAD_MODE.load(Ordering::Relaxed) {
        m if m == ThreadMode::Seq as u8 => ThreadMode::Seq,
        m if m == ThreadMode::Parsync as u8 => ThreadMode::Parsync,
        _ => ThreadMode::Par,
    }
}

/// The job, if `gasnet_init` has been called.
pub fn initialized() -> Option<&'static GasnetJob> {
    let job = JOB.load(Ordering::Acquire);
    // SAFETY: null, or the leaked GasnetJob that gasnet_init stored.
    unsafe { job.as_ref() }
}

/// Reports a call that returns this error, and returns its number.
#[cold]
fn refused(error: GasnetError, cause: core::fmt::Arguments<'_>, remedy: &str) -> c_int {
    report::warn(cause, format_args!("{remedy}"));
    error as c_int
}

/// Whether a call can fill `numentries` rows of a table; reports it if not.
fn has_rows(function: &str, is_null: bool, numentries: c_int) -> bool {
    if numentries >= 0 && (!is_null || numentries == 0) {
        return true;
    }
    let what = if numentries < 0 { "numentries is" } else { "the table is null, numentries" };
    report::warn(
        format_args!("{function}(): {what} {numentries}"),
        format_args!("Pass a table and the number of its rows, or 0 rows."),
    );
    false
}

/// The job for a query that is legal from `gasnet_init` on, in any thread; ends the program
/// before.
pub fn early_job(function: &str) -> &'static GasnetJob {
    match initialized() {
        Some(job) => job,
        None => {
            refuse_forked(function);
            report::fatal(
                format_args!(
                    "{function}() was called before {}()",
                    report::remedy_of(function, "gasnet_init", "gex_Client_Init")
                ),
                format_args!(
                    "{}",
                    report::remedy_of(
                        function,
                        "Call gasnet_init, then gasnet_attach, before anything else.",
                        "Call gex_Client_Init before anything else."
                    )
                ),
            )
        }
    }
}

/// The context of a call that is legal from `gasnet_attach` on; ends the program before.
pub fn ctx(function: &str) -> Ctx {
    let job = ATTACHED.load(Ordering::Acquire);
    // SAFETY: null, or the leaked GasnetJob that gasnet_attach stored.
    match unsafe { job.as_ref() } {
        Some(job) => job.ctx(),
        None => watched_job(function).ctx(),
    }
}

/// Checks a call that has nothing to do, where calls are checked, and refuses it in a forked
/// child.
fn check_empty_call(function: &str) {
    if ATTACHED.load(Ordering::Relaxed).is_null() {
        check_watched_empty_call(function);
    }
}

#[cold]
#[inline(never)]
fn check_watched_empty_call(function: &str) {
    if checks::on() {
        _ = ctx(function);
    }
    refuse_forked(function);
}

/// The job for a call that found no [`ATTACHED`] one: checks the call if it is [`WATCHED`];
/// ends the program before `gasnet_attach`.
#[cold]
#[inline(never)]
fn watched_job(function: &str) -> &'static GasnetJob {
    let job = WATCHED.load(Ordering::Acquire);
    // SAFETY: null, or the leaked GasnetJob that gasnet_attach stored.
    if let Some(job) = unsafe { job.as_ref() } {
        if checks::on() {
            job.ctx().check_call(function);
        }
        // Before a peer can learn from this call that other memory is there now.
        job.endpoint.conduit.undo_unmapped();
        return job;
    }
    early_job(function);
    report::fatal(
        format_args!("{function}() was called before gasnet_attach()"),
        format_args!("Call gasnet_attach first, in all processes."),
    )
}

/// Ends this process alone if a process of a job has forked it.
#[cold]
fn refuse_forked(function: &str) {
    if FORKED.load(Ordering::Relaxed) {
        report::line(format_args!(
            "{function}() was called in process {}, but only its parent, which forked it, is part of the job; it ends \
             alone with exit code 1",
            sys::process::pid()
        ));
        sys::exit_now(1);
    }
}

/// Called first in a forked child, which has no job.
extern "C" fn forget_job() {
    JOB.store(core::ptr::null_mut(), Ordering::Relaxed);
    ATTACHED.store(core::ptr::null_mut(), Ordering::Relaxed);
    WATCHED.store(core::ptr::null_mut(), Ordering::Relaxed);
    FORKED.store(true, Ordering::Relaxed);
    trace::forget();
    fast::close();
    crate::runtime::hsl::close();
}

/// The handle that a client gets for an explicit operation of the calling thread.
#[inline(always)]
fn explicit(job: &'static GasnetJob, handle: OpHandle) -> abi::gasnet_handle_t {
    let handle = if checks::on() || trace::on() { job.ctx().real_handle(handle) } else { handle };
    handle.0 as abi::gasnet_handle_t
}

/// The code of a result.
fn code(result: crate::runtime::GasnetResult) -> c_int {
    match result {
        Ok(()) => OK,
        Err(e) => e as c_int,
    }
}
