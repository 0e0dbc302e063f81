//! One environment for all processes of a job.
//!
//! Called by `job` at start. Invariant: `gasnet_getenv`, `gasnett_getenv` and the library's own
//! variables give the same values in all processes; `getenv` gives each process its own. If the
//! environments differ (variables for one program of several, a script in front of it), the
//! largest one counts. Variables that launchers set differently per process are left out.

use crate::boot::Bootstrap;
use crate::{env, report};
use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;
use std::io;
use std::os::fd::AsFd;
use sys::memory::{self, Mapping};

/// Chooses one environment, before any variable is looked up that all processes must agree on.
/// Collective.
pub fn settle(boot: &dyn Bootstrap) {
    if boot.size() == 1 || env::is_shared() {
        return;
    }
    let mine = env::snapshot();
    let mut hasher = DefaultHasher::new();
    mine.hash(&mut hasher);
    let told = [hasher.finish(), mine.len() as u64].map(u64::to_ne_bytes).concat();
    let all = boot.exchange(&told);
    if all.iter().all(|other| *other == told) {
        return;
    }
    let length = |b: &[u8]| u64::from_ne_bytes(b[8..16].try_into().unwrap_or_default());
    // Of several that are equally large, the first.
    let Some((giver, bytes)) =
        (0..).zip(all.iter().map(|b| length(b))).reduce(|a, b| if b.1 > a.1 { b } else { a })
    else {
        return;
    };
    let result = hand_over(boot, (boot.rank() == giver).then_some(&*mine), bytes as usize);
    match result {
        Ok(block) => env::adopt(block),
        Err(e) => report::fatal(
            format_args!(
                "gasnet_init(): the environment of process {giver} cannot be handed over: {e}"
            ),
            format_args!("Free memory, or give all processes the same environment."),
        ),
    }
}

/// A copy, in every process, of the block that one process gives. The block stays behind the
/// scratch areas in their file.
fn hand_over(boot: &dyn Bootstrap, given: Option<&[u8]>, bytes: usize) -> io::Result<Vec<u8>> {
    let host = boot.host();
    let begin = (host.local_size as usize * super::job::SCRATCH_BYTES)
        .next_multiple_of(memory::page_size());
    let map = || Mapping::shared(host.scratch.as_fd(), begin as u64, bytes.max(1));
    if let Some(block) = given {
        memory::reserve(host.scratch.as_fd(), begin as u64, bytes.max(1) as u64)?;
        // SAFETY: the mapping is as long as the block, and no other process reads it before the
        // barrier.
        unsafe { core::ptr::copy_nonoverlapping(block.as_ptr(), map()?.as_ptr(), block.len()) };
    }
    boot.barrier();
    let there = map()?;
    // SAFETY: bytes of the mapping, which no process writes after the barrier.
    Ok(unsafe { core::slice::from_raw_parts(there.as_ptr(), bytes) }.to_vec())
}
