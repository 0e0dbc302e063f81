//! Which job a process of a lightweight kernel becomes part of: that of its system, or one of its
//! own. In place of `join`.
//!
//! Called by `gasnet_init`. Invariant: nothing here makes a descriptor, a process or a thread.

use super::bootstrap::Bootstrap;
use super::error::BootError;
use super::options::BootOptions;
use super::{linked, rank_variables, single};
use crate::env::SpawnControl;

/// Makes this process a rank of the job of CNOS, or of PMI, if it is linked with them, else a job
/// of one rank.
///
/// Afterwards `process::exit::install` connects the exit of this process with that of the job.
/// Called once per process.
///
/// # Errors
/// The job cannot be formed.
pub fn start(options: &BootOptions) -> Result<Bootstrap, BootError> {
    let started = join(options)?;
    rank_variables::set(&started.placement);
    Ok(started)
}

fn join(options: &BootOptions) -> Result<Bootstrap, BootError> {
    if options.fork_ranks > 1 {
        return Err(BootError::new(
            format!(
                "GASNET_PSHM_NODES={}: this libgasnet is built for a system that forks no processes",
                options.fork_ranks
            ),
            "Unset it, and start the program with the launcher of the system.",
        ));
    }
    match options.spawn_control {
        Some(SpawnControl::Cnos) => linked::join_cnos(options),
        Some(SpawnControl::Pmi) => linked::join_pmi(options),
        Some(SpawnControl::Alone) => single::start(),
        Some(SpawnControl::Pmix | SpawnControl::Fork) => Err(BootError::new(
            "GASNET_SPAWN_CONTROL names a way to start that this libgasnet is built without",
            "Give CNOS, PMI or ALONE, or unset it.",
        )),
        None if options.linked.cnos.is_some() => linked::join_cnos(options),
        None if options.linked.pmi.is_some() => linked::join_pmi(options),
        None => {
            linked::refuse_alone(options)?;
            single::start()
        }
    }
}
