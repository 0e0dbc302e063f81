//! What the Portals interface of this process carried, written to a file when the process leaves, for tests that claim
//! that traffic went one way or another (`GASNET_TEST_COUNTERS`). Set up by `job`; nothing is written if it is not set.
//!
//! One line: rank, puts, gets, bytes of both, messages framed, messages to us that found no match entry.

use super::Job;
use super::exit;
use crate::{env, os};
use alloc::boxed::Box;
use alloc::ffi::CString;
use core::fmt::Write;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The job and the path; null if nothing is to be written.
static WANTED: AtomicPtr<(&'static Job, CString)> = AtomicPtr::new(core::ptr::null_mut());

/// Has the counters written when this process leaves, if the user wants that.
pub fn open(job: &'static Job) {
    let Some(prefix) = env::text("GASNET_TEST_COUNTERS") else { return };
    let Ok(path) = CString::new(alloc::format!("{prefix}.{}", job.mynode)) else { return };
    WANTED.store(Box::into_raw(Box::new((job, path))), Ordering::Release);
    exit::set_closing(write);
}

/// Async-signal-safe: nothing is allocated or locked.
fn write() {
    let wanted = WANTED.load(Ordering::Acquire);
    // SAFETY: null, or the leaked box of `open`.
    let Some((job, path)) = (unsafe { wanted.as_ref() }) else { return };
    let Some(c) = job.conduit.extension().map(|x| x.counters()) else { return };
    let mut line = crate::report::Line::new();
    let _ = writeln!(line, "{} {} {} {} {} {}", job.mynode, c.puts, c.gets, c.bytes, c.framed, c.dropped);
    os::write_file(path, line.bytes());
}
