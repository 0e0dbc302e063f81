//! Which launcher's service (PMI-1 or PMIx) this process should use, judged by its environment.
//!
//! Called by `join` and `foreign`. Invariant: a program that a rank starts
//! inherits the rank's variables and descriptors, but never uses the rank's service. That
//! would disturb or end the rank's job. So a rank leaves a variable that names the services it
//! has used. A launcher that such a program starts offers new services, which that variable
//! does not name.

use super::error::BootError;
use super::launcher_variables::{self, LaunchSize};
use super::linked_launcher::LinkedLaunchers;
use super::{pmi, pmix};
use std::ffi::{CStr, CString};
use sys::process;

/// The process of a rank, then each service it used, separated by blanks.
const USED: &CStr = c"GASNETI_SPAWN_TAKEN";

/// The variable as an ancestor of this process left it.
fn used_by_ancestor() -> Option<String> {
    let word = launcher_variables::variable(&USED.to_string_lossy())?;
    // A rank that executes another program is still the same process, and its rank is lost.
    (word.split(' ').next()? != process::pid().to_string()).then_some(word)
}

/// Whether there is such a service, and no ancestor has used it.
pub(super) fn is_new(service: Option<String>) -> bool {
    service.is_some_and(|s| used_by_ancestor().is_none_or(|w| w.split(' ').all(|used| used != s)))
}

/// Whether a launcher offers PMI-1 to this process.
pub(super) fn has_pmi() -> bool {
    is_new(pmi::service())
}

/// Whether a launcher offers PMIx to this process.
pub(super) fn has_pmix() -> bool {
    is_new(pmix::service())
}

/// Whether this process was started by a rank, without a launcher between them.
pub(super) fn started_by_rank() -> bool {
    used_by_ancestor().is_some() && !has_pmi() && !has_pmix()
}

/// Records the services of this process as used, for the programs that it starts; `linked` are
/// those that are functions.
pub(super) fn mark_used(linked: &LinkedLaunchers) {
    let linked = [linked.cnos, linked.pmi].map(|l| l.and_then(|l| l.service()));
    let services = [pmi::service(), pmix::service()].into_iter().chain(linked).flatten();
    let word = services.fold(process::pid().to_string(), |word, service| word + " " + &service);
    if let Ok(word) = CString::new(word) {
        // SAFETY: no other thread uses the environment during gasnet_init, as its description
        // demands.
        unsafe { sys::environment::set(USED, &word) };
    }
}

/// Rejects a job of one rank where a launcher started several processes, which would each be one.
pub(super) fn reject_single() -> Result<(), BootError> {
    if started_by_rank() {
        return Ok(());
    }
    let several = launcher_variables::launch_size().filter(|launch| launch.processes > 1);
    let (launcher, started) = match (several, launcher_variables::number_behind_port()) {
        (Some(LaunchSize { processes, variable, launcher }), _) => {
            (launcher, format!("{processes} processes ({variable}={processes})"))
        }
        (None, Some(number)) => ("mpiexec", format!("several processes (PMI_ID={number})")),
        (None, None) => return Ok(()),
    };
    let single = "or set GASNET_SPAWN_CONTROL=ALONE for jobs of one process each";
    let instead = match launcher {
        "srun" => "srun --mpi=pmi2 or --mpi=pmix",
        "mpiexec" => "mpiexec without -pmi-port, or with gasnetrun -n N",
        _ => "gasnetrun -n N",
    };
    Err(BootError::new(
        format!(
            "{launcher} has started {started}, but offers no PMI or PMIx by which they could find \
             each other"
        ),
        format!("Start the job with {instead}; {single}."),
    ))
}
