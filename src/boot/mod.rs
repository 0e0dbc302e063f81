//! How the ranks of a job find each other, synchronise during start, and exit.
//!
//! Called by `runtime::start`, by `process` and by the program `gasnetrun`. Invariant: no two
//! files import each other; `ci/imports.sh` checks it.
//!
//! | file | what it owns |
//! |---|---|
//! | [`launch`] | the launcher: starts a program as the ranks of a job |
//! | [`launch_plan`] | what it starts, and how |
//! | `orphan_guard` | the process that ends what ranks have started if the launcher is killed |
//! | `passed_stream` | output that is passed on line by line |
//! | `debugger` | gdb for some of them |
//! | `fork` | GASNET_PSHM_NODES: the process that is started forks the ranks and becomes their supervisor, or stands in front of it |
//! | `foreign` | mpiexec, mpirun, srun: the ranks find each other by PMI or PMIx, then get a supervisor |
//! | [`single`] | a job of one rank |
//! | `join` | which of those a process becomes a rank of |
//! | `detect` | which of those launchers started this process |
//! | `pmi`, `pmix` | the key-value spaces (`key_value`) of those launchers |
//! | `siblings`, `member`, `launcher_variables`, `mpi_state` | the launcher's processes on this host, their names, its variables, MPI |
//! | [`supervisor`] | the process that starts or accepts the ranks, carries their barriers, and ends the job |
//! | `supervisor_link` | a rank's conversation with its supervisor |
//! | [`bootstrap`] | what a process has when it has become a rank |
//! | [`collective`], [`network_start`] | exchange and barrier at start: the traits; over nothing but the network |
//! | `linked`, [`linked_launcher`] | cnos, PMI as functions of the program: ranks that have nothing but the network |
//! | [`exit_notice`] | how a rank makes and receives the decision to end the job |
//! | [`exit_protocol`] | the messages by which ranks without a supervisor carry it |
//! | [`control_memory`] | that decision and one record per rank, in shared memory; [`decision`] |
//! | `error_folds` | the same error of many ranks, printed once |
//! | `poll_times`, `wait_record` | since when a rank does nothing but poll, and waits |
//! | [`control_message`] | the messages between a rank and its supervisor |
//! | `control_socket` | a rank's end of the socket to its supervisor |
//! | [`host_memory`] | the memory files that the ranks of a host share |
//! | [`rank_id`] | what makes a process a rank: numbers and descriptors |
//! | [`rank_variables`] | GASNET_RANK, GASNET_SIZE, GASNET_LOCAL_RANK |
//! | `host_share` | the ranks that one host has |
//! | [`placement`] | which ranks share a host, and which a supernode |
//! | [`hosts`] | the other hosts of a job: their names, their ranks, the connections |
//! | [`options`], [`error`] | the user's choices; errors |

#[cfg(feature = "hosted")]
mod debugger;
#[cfg(feature = "hosted")]
mod detect;
#[cfg(feature = "hosted")]
mod foreign;
#[cfg(feature = "hosted")]
mod fork;
#[cfg(feature = "hosted")]
pub mod host_share;
#[cfg(feature = "hosted")]
pub mod hosts;
#[cfg(feature = "hosted")]
pub mod launch;
#[cfg(feature = "hosted")]
pub mod launch_plan;
#[cfg(feature = "hosted")]
mod launcher_variables;
#[cfg(feature = "hosted")]
mod member;
#[cfg(feature = "hosted")]
mod mpi_state;
#[cfg(feature = "hosted")]
mod orphan_guard;
#[cfg(feature = "hosted")]
mod passed_stream;
#[cfg(feature = "hosted")]
mod pmi;
#[cfg(feature = "hosted")]
mod pmix;
#[cfg(feature = "hosted")]
pub mod rank_id;
#[cfg(feature = "hosted")]
mod siblings;
#[cfg(feature = "hosted")]
pub mod supervisor;
#[cfg(feature = "hosted")]
mod supervisor_link;

pub mod bootstrap;
pub mod collective;
pub mod control_memory;
pub mod control_message;
#[cfg_attr(not(feature = "hosted"), path = "lightweight/control_socket.rs")]
mod control_socket;
pub mod decision;
pub mod error;
mod error_folds;
pub mod exit_notice;
pub mod exit_protocol;
pub mod host_memory;
#[cfg_attr(not(feature = "hosted"), path = "lightweight/join.rs")]
mod join;
pub mod key_value;
mod linked;
pub mod linked_launcher;
pub mod network_start;
pub mod options;
pub mod placement;
mod poll_times;
pub mod rank_variables;
pub mod single;
mod wait_record;

pub use join::start;
