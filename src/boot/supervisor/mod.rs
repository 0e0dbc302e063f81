//! The supervisor: the process that starts or accepts the ranks of a host, carries their barriers
//! and exchanges, watches them, and ends the job.
//!
//! Used by `boot::launch` and `boot::fork` for ranks that it starts, by `boot::foreign` for
//! ranks that connect. Invariants: [`Supervisor::watch`] returns only when every rank has
//! exited or cannot be killed.
//!
//! | file | what it owns |
//! |---|---|
//! | `job` | what the supervisor owns, and how it starts |
//! | `watch` | what it does until all ranks have exited |
//! | `rank_process` | one rank: its processes, its control socket |
//! | `rank_ends` | how ranks ended, and what that decides |
//! | `exit_progress` | the steps of the end, and their deadlines |
//! | `barrier_exchange` | barriers and exchanges |
//! | `connections` | ranks that connect |
//! | `rank_parents` | the processes that started those |
//! | `other_hosts` | the supervisors of the job's other hosts |
//! | `shell_end` | when the shells that run those are ended by force |
//! | `unstarted_hosts` | hosts that did not start their ranks |
//! | `late_ranks` | ranks that have not called `gasnet_init` |
//! | `status_request` | what the ranks are doing, for SIGUSR1 |
//! | `cut_off`, `cut_off_report` | which ranks a success cuts off, in one report of all hosts |
//! | `job_timeout` | how long the job may run |
//! | `job_signals` | the signals of the supervisor |
//! | `rank_output`, `last_output` | where the ranks print; their last lines |
//! | `folded_errors` | which ranks have an error that one has printed |

mod barrier_exchange;
mod connections;
mod cut_off;
mod cut_off_report;
mod exit_progress;
mod folded_errors;
mod job;
mod job_signals;
mod job_timeout;
mod last_output;
mod late_ranks;
mod other_hosts;
mod rank_ends;
mod rank_output;
mod rank_parents;
mod rank_process;
mod shell_end;
mod status_request;
mod unstarted_hosts;
mod watch;

pub use job::{ProcessRole, Supervisor};
pub(super) use job_signals::OF_FRONT;
pub use job_signals::SignalSource;
