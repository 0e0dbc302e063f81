//! Jobs whose ranks ask their system by functions that the program is linked with: CNOS (Cray XT,
//! libcnos), PMI as a library. There is no supervisor, and the ranks share no memory.
//!
//! Called by `join`; the functions are a [`LinkedLauncher`]. Invariant: nothing here
//! makes a descriptor, a process or a thread.
//!
//! | part of a job | where it comes from |
//! |---|---|
//! | rank, size | the functions |
//! | addresses | the functions, asked by the network when it is open |
//! | exchange, barrier | [`super::network_start`], after one barrier of the system |
//! | exit | [`super::exit_protocol`]; the launcher ends the job when a rank dies or fails |
//! | environment | the launcher: it gives all ranks the same |

use super::bootstrap::Bootstrap;
use super::error::BootError;
use super::exit_notice::ExitNotice;
use super::linked_launcher::LinkedLauncher;
use super::network_start::NetworkStart;
use super::options::BootOptions;
use super::placement::Placement;
use crate::limits::MAX_RANKS;
use crate::rank::JobRank;

/// Joins the job of CNOS.
///
/// # Errors
/// The program has no CNOS, or it fails.
pub(super) fn join_cnos(options: &BootOptions) -> Result<Bootstrap, BootError> {
    let cnos = options.linked.cnos.ok_or_else(|| {
        BootError::new(
            "GASNET_SPAWN_CONTROL=CNOS, but the program has no cnos_get_rank, or does not run on \
             a libportals",
            "Link the program with the system's library (pkg-config --libs cnos for that of \
             libportals3), use a libgasnet over that libportals, and unset GASNET_NETWORK.",
        )
    })?;
    join(cnos, options)
}

/// Joins the job of the PMI that is part of the program.
///
/// # Errors
/// It fails.
pub(super) fn join_pmi(options: &BootOptions) -> Result<Bootstrap, BootError> {
    let none = || BootError::new("the program has no PMI_Init", "Unset GASNET_SPAWN_CONTROL.");
    join(options.linked.pmi.ok_or_else(none)?, options)
}

/// Each of the processes of such a launcher would be a job of one.
///
/// # Errors
/// The library was built for a system whose launcher starts programs that have its functions, and
/// this program joins no job by them.
pub(super) fn refuse_alone(options: &BootOptions) -> Result<(), BootError> {
    let Some(launcher) = options.linked.expected_by else { return Ok(()) };
    Err(BootError::new(
        format!(
            "{launcher} starts the programs of this libgasnet, but this one joins no job by \
             functions of CNOS or PMI"
        ),
        "Link it with those of the system (-Wl,-u,cnos_get_rank -lpct, or as the make fragment \
         says), or set GASNET_SPAWN_CONTROL: to ALONE for a job of one rank.",
    ))
}

fn join(
    launcher: &'static dyn LinkedLauncher,
    options: &BootOptions,
) -> Result<Bootstrap, BootError> {
    let name = launcher.name();
    let (rank, size) = launcher.rank_and_size().map_err(|why| {
        BootError::new(
            format!("{name} does not say which rank this is: {why}"),
            "Start the program with the launcher of the system (aprun, yod, ptlrun).",
        )
    })?;
    if size > MAX_RANKS || rank >= size {
        return Err(BootError::new(
            format!(
                "{name} says that this is rank {rank} of {size} (GASNET_MAXNODES is {MAX_RANKS})"
            ),
            format!("Start 1 to {MAX_RANKS} processes, each with a rank below their number."),
        ));
    }
    let rank = JobRank(rank);
    let exit = ExitNotice::join_without_supervisor(rank, size, options.exit_timeout(size))?;
    let start: &'static NetworkStart = Box::leak(Box::new(NetworkStart::new(launcher, exit)));
    Ok(Bootstrap {
        placement: Placement::apart(rank, size),
        exchange: start,
        barrier: start,
        exit,
        host_memory: None,
        #[cfg(feature = "hosted")]
        wire: None,
        one_environment: true,
        network_start: Some(start),
        release: Some(Box::new(|code| launcher.release(code))),
    })
}

#[cfg(test)]
mod tests {
    use super::super::linked_launcher::LinkedLaunchers;
    use super::*;

    #[test]
    fn a_program_without_the_functions_of_its_system_is_not_alone() {
        let options = BootOptions::from_env();
        assert!(refuse_alone(&options).is_ok());
        let linked = LinkedLaunchers { expected_by: Some("aprun"), ..LinkedLaunchers::default() };
        let refused = refuse_alone(&options.with_linked(linked)).unwrap_err();
        assert!(refused.cause.contains("aprun starts"), "{}", refused.cause);
        assert!(refused.remedy.contains("GASNET_SPAWN_CONTROL"), "{}", refused.remedy);
    }
}
