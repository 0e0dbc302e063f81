//! One environment for all ranks of a job.
//!
//! Called by `runtime::start` before anything is read that all ranks must agree on. Invariant:
//! where the environments differ, all ranks adopt the environment block with the most bytes,
//! of several such the one of the lowest rank. They may differ by variables for one program
//! of several, or by a script in front of it. `gasnet_getenv`, `gasnett_getenv` and the library's
//! own variables read it; `getenv` does not. Variables by which launchers distinguish ranks
//! are not compared.

use super::scratch;
use crate::boot::bootstrap::Bootstrap;
use crate::boot::host_memory::HostMemory;
use crate::{env, report};
use core::hash::{Hash, Hasher};
use std::fs::File;
use std::hash::DefaultHasher;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// Agrees on one environment. Collective. `function` names the caller in messages.
pub fn agree(function: &str, boot: &Bootstrap) {
    if boot.placement.size() == 1 || boot.one_environment {
        return;
    }
    let mine = env::snapshot();
    let mut hasher = DefaultHasher::new();
    mine.hash(&mut hasher);
    let summary = [hasher.finish(), mine.len() as u64].map(u64::to_ne_bytes).concat();
    let all = boot.exchange.exchange(&summary);
    if all.iter().all(|other| *other == summary) {
        return;
    }
    let length = |b: &[u8]| u64::from_ne_bytes(b[8..16].try_into().unwrap_or_default());
    // The first of several of the same length.
    let lengths = all.ranked().map(|(rank, b)| (rank, length(b)));
    let Some((giver, bytes)) = lengths.reduce(|a, b| if b.1 > a.1 { b } else { a }) else {
        return;
    };
    let given = (boot.placement.rank() == giver).then_some(&*mine);
    let is_one_host = boot.placement.hosts().len() == 1;
    let block = match &boot.host_memory {
        Some(memory) if is_one_host => through_memory(boot, memory, given, bytes as usize),
        _ => Ok(boot.exchange.hand_over(given, giver, bytes as usize)),
    };
    match block {
        Ok(block) => env::adopt(block),
        Err(e) => report::fatal(
            format_args!(
                "{function}(): the environment of rank {giver} cannot be handed over: {e}"
            ),
            format_args!("Free memory, or give all ranks the same environment."),
        ),
    }
}

/// A copy of the block that one rank gives, through the scratch file of the host, behind the part
/// that the job maps.
fn through_memory(
    boot: &Bootstrap,
    memory: &HostMemory,
    given: Option<&[u8]>,
    bytes: usize,
) -> io::Result<Vec<u8>> {
    let begin = scratch::bytes(boot.placement.local_size()) as u64;
    let file = File::from(memory.scratch.as_fd().try_clone_to_owned()?);
    if let Some(block) = given {
        sys::memory::reserve(memory.scratch.as_fd(), begin, bytes.max(1) as u64)?;
        file.write_all_at(block, begin)?;
    }
    boot.barrier.barrier();
    let mut block = vec![0; bytes];
    file.read_exact_at(&mut block, begin)?;
    Ok(block)
}
