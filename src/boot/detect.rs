//! What the launchers of others offer to this process through its environment: ways to find the other processes, and how
//! many of those there are. Called by [`super::start`] and `boot::foreign`.
//!
//! A program that a rank starts inherits the rank's environment and descriptors, but it is no rank: if it took up what was
//! offered to the rank, it would disturb or end the rank's job. So a rank leaves word of what it has taken. A launcher that
//! such a program starts makes offers of its own, which are not in that word.

use super::{BootError, pmi, pmix};
use crate::env;
use std::ffi::{CStr, CString};
use sys::process;

/// Where a rank leaves word: its process, then each offer, with blanks between.
const TAKEN: &CStr = c"GASNETI_SPAWN_TAKEN";

/// The variables in which launchers tell how many processes they have started, and the launchers. The last is all that
/// MPICH's tells with -pmi-port.
const SIZES: &[(&str, &str)] = &[
    ("PMI_SIZE", "mpiexec"),
    ("OMPI_COMM_WORLD_SIZE", "mpirun"),
    ("SLURM_STEP_NUM_TASKS", "srun"),
    ("MPI_LOCALNRANKS", "mpiexec"),
];

/// The word that an ancestor of this process has left.
fn word() -> Option<String> {
    let word = env::lookup(&TAKEN.to_string_lossy())?;
    // A rank that becomes another program is a rank that is lost, not somebody else.
    (word.split(' ').next()? != process::pid().to_string()).then_some(word)
}

/// Whether there is such an offer, and it is for this process.
fn new(offer: Option<String>) -> bool {
    offer.is_some_and(|o| word().is_none_or(|w| w.split(' ').all(|taken| taken != o)))
}

/// Whether a launcher offers PMI to this process.
pub(super) fn pmi() -> bool {
    new(pmi::offer())
}

/// Whether a launcher offers PMIx to this process.
pub(super) fn pmix() -> bool {
    new(pmix::offer())
}

/// Whether this process was started by a rank, and no launcher has come between.
pub(super) fn taken() -> bool {
    word().is_some() && !pmi() && !pmix()
}

/// Has the programs that this process starts leave alone what was offered to this process.
pub(super) fn take() {
    let offers = [pmi::offer(), pmix::offer()].into_iter().flatten();
    let word = offers.fold(process::pid().to_string(), |word, offer| word + " " + &offer);
    if let Ok(word) = CString::new(word) {
        // SAFETY: gasnet_init is called before the program has other threads.
        unsafe { sys::environment::set(TAKEN, &word) };
    }
}

/// How many processes a launcher says that it has started, the variable that says so, and the launcher.
pub(super) fn expected() -> Option<(u32, &'static str, &'static str)> {
    SIZES.iter().find_map(|&(name, launcher)| {
        Some((env::lookup(name)?.trim().parse().ok()?, name, launcher))
    })
}

/// Refuses to be a job of one where a launcher has started several processes, which would each be one.
pub(super) fn not_alone() -> Result<(), BootError> {
    match expected() {
        Some((n, name, launcher)) if n > 1 && !taken() => Err(BootError::new(
            format!(
                "{launcher} has started {n} processes ({name}={n}), but offers this one no way to find the others"
            ),
            match launcher {
                "srun" => {
                    "Start the job with srun --mpi=pmi2; or set GASNET_SPAWN_CONTROL=ALONE for a job of one process each."
                }
                "mpiexec" => {
                    "Start the job with mpiexec without -pmi-port, or with gasnetrun -n N; or set GASNET_SPAWN_CONTROL=ALONE for a job of one process each."
                }
                _ => {
                    "Start the job with gasnetrun -n N; or set GASNET_SPAWN_CONTROL=ALONE for a job of one process each."
                }
            },
        )),
        _ => Ok(()),
    }
}
