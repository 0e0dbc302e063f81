//! What the user's variables say about starting and ending a job, as values.
//!
//! Made once by `gasnet_init` and by the program `gasnetrun`, handed to every part of `boot`.
//! Invariant: this file and `hosts` alone read the table of variables.

use super::linked_launcher::LinkedLaunchers;
use crate::env::{self, SpawnControl};

/// The user's choices about starting and ending a job.
#[derive(Clone, Debug)]
pub struct BootOptions {
    pub(super) spawn_control: Option<SpawnControl>,
    /// GASNET_PSHM_NODES: how many ranks `gasnet_init` forks; 1 for none.
    pub(super) fork_ranks: u32,
    /// GASNET_SPAWN_TIMEOUT in nanoseconds; `None` without a limit.
    pub spawn_timeout: Option<u64>,
    /// GASNET_QUIET: no warnings.
    pub quiet: bool,
    /// What the system of this process offers as functions.
    pub(super) linked: LinkedLaunchers,
    /// A rank that ends with success waits for the others.
    pub no_cut_off: bool,
    exit_timeout: Option<f64>,
    exit_timeout_min: f64,
    exit_timeout_max: f64,
    exit_timeout_factor: f64,
}

/// More than 30 years, in seconds. Deadlines of that length do not overflow.
const LONGEST: f64 = 1e9;

fn nanoseconds(seconds: f64) -> u64 {
    (seconds.min(LONGEST) * 1e9) as u64
}

/// GASNET_SPAWN_TIMEOUT in nanoseconds; `None` without a limit.
pub(super) fn spawn_timeout() -> Option<u64> {
    let seconds = env::SPAWN_TIMEOUT.get();
    (seconds > 0.0).then(|| nanoseconds(seconds))
}

impl BootOptions {
    /// The choices in the environment of this process. Ends the process with a message if a value
    /// is invalid.
    pub fn from_env() -> BootOptions {
        BootOptions {
            spawn_control: env::SPAWN_CONTROL.get(),
            fork_ranks: env::PSHM_NODES.get().max(1),
            spawn_timeout: spawn_timeout(),
            quiet: env::QUIET.get(),
            linked: LinkedLaunchers::default(),
            no_cut_off: env::NO_CUT_OFF.get(),
            exit_timeout: env::EXITTIMEOUT.get(),
            exit_timeout_min: env::EXITTIMEOUT_MIN.get(),
            exit_timeout_max: env::EXITTIMEOUT_MAX.get(),
            exit_timeout_factor: env::EXITTIMEOUT_FACTOR.get(),
        }
    }

    /// The same with what the system offers as functions.
    pub fn with_linked(self, linked: LinkedLaunchers) -> BootOptions {
        BootOptions { linked, ..self }
    }

    /// Nanoseconds that the ranks of a job of this size may take to exit after the order to exit.
    pub(super) fn exit_timeout(&self, size: u32) -> u64 {
        let by_size = self.exit_timeout_min + f64::from(size) * self.exit_timeout_factor;
        let seconds = self.exit_timeout.unwrap_or_else(|| by_size.min(self.exit_timeout_max));
        nanoseconds(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_timeout_grows_with_the_job_up_to_its_maximum() {
        let mut options = BootOptions {
            exit_timeout: None,
            exit_timeout_min: 2.0,
            exit_timeout_max: 3.0,
            exit_timeout_factor: 0.25,
            ..BootOptions::from_env()
        };
        assert_eq!(options.exit_timeout(2), 2_500_000_000);
        assert_eq!(options.exit_timeout(400), 3_000_000_000);
        options.exit_timeout = Some(0.5);
        assert_eq!(options.exit_timeout(400), 500_000_000);
        options.exit_timeout = Some(f64::INFINITY);
        assert_eq!(options.exit_timeout(400), 1_000_000_000_000_000_000);
    }
}
