//! What gasnetrun is to start, and how.
//!
//! Made by the program gasnetrun, read by `launch` and, for other hosts, `hosts::remote_plan`.

use crate::env::RankSet;
use std::ffi::OsString;
use std::path::PathBuf;

/// Which CPUs each rank is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuBinding {
    /// The CPUs that the launcher may use.
    None,
    /// Cores of its own, assigned in turn.
    Core,
    /// The CPUs of one NUMA node, neighbouring ranks together.
    Numa,
}

/// What to start, and how.
#[derive(Clone, Debug)]
pub struct LaunchPlan {
    /// Ranks.
    pub size: u32,
    /// On which hosts; `None` for this one alone.
    pub hosts: Option<HostPlan>,
    /// Which program; found through PATH unless the name has a slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Which CPUs each rank is bound to.
    pub bind: CpuBinding,
    /// Cores per rank, with [`CpuBinding::Core`].
    pub cores: u32,
    /// Prints the rank in front of each line of its output.
    pub prefix: bool,
    /// Loads the ranks at the same addresses, without randomisation.
    pub fixed_addresses: bool,
    /// Prints the process of each rank, and how the job ended.
    pub verbose: bool,
    /// Seconds after which the job ends.
    pub timeout: Option<f64>,
    /// The folder of a file for each rank and stream.
    pub output: Option<PathBuf>,
    /// The ranks that gdb starts.
    pub gdb: Option<RankSet>,
}

/// The hosts of a job that have ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Their names.
    pub names: Vec<String>,
    /// The number of the host of each rank, by rank.
    pub host_of: Vec<u32>,
}
