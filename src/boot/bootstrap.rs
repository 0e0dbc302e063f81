//! What a process has when it has become a rank: the parts that the runtime starts from.
//!
//! Made in the rank by `supervisor_link`, `single` and `linked`, used by `runtime::start`,
//! `runtime::segment` and `process::exit`. Invariant: every part exists except
//! [`Bootstrap::host_memory`] (without it no rank maps memory of another), [`Bootstrap::wire`],
//! [`Bootstrap::network_start`] and [`Bootstrap::release`].
//!
//! | part | what it is for |
//! |---|---|
//! | [`Placement`] | which ranks there are, and which of them share this host |
//! | [`Exchange`] | each rank gives bytes and gets those of all |
//! | [`JobBarrier`] | waiting for all ranks before messages can be sent |
//! | [`ExitNotice`] | the decision to end the job |
//! | [`HostMemory`] | memory files that the ranks of this host share |
//! | [`WireStart`] | secret and address for connections with ranks of other hosts |
//! | `one_environment` | whether all ranks have the same environment, so that none is exchanged |
//! | [`NetworkStart`] | exchange and barrier of ranks that have nothing but the network: to be connected first |
//! | `release` | ends the use of the launcher's service when the process exits |

use super::collective::{Exchange, JobBarrier};
use super::exit_notice::ExitNotice;
use super::host_memory::HostMemory;
use super::key_value::LauncherRelease;
use super::network_start::NetworkStart;
use super::placement::Placement;

/// What a process has when it has become a rank.
pub struct Bootstrap {
    /// Where the ranks run.
    pub placement: Placement,
    /// Exchange of bytes.
    pub exchange: &'static dyn Exchange,
    /// Barrier.
    pub barrier: &'static dyn JobBarrier,
    /// The exit of the job.
    pub exit: &'static ExitNotice,
    /// The memory files of this host, if its ranks can share memory.
    pub host_memory: Option<HostMemory>,
    /// What a rank needs to reach those of other hosts, if the job has such.
    #[cfg(feature = "hosted")]
    pub wire: Option<WireStart>,
    /// All ranks have been forked from one process, so they have one environment.
    pub one_environment: bool,
    /// Exchange and barrier need the network, and work once this is connected with it.
    pub network_start: Option<&'static NetworkStart>,
    /// Must be called once when this process exits, if the launcher wants it.
    pub release: Option<LauncherRelease>,
}

/// What a rank of a job of several hosts needs to reach those of other hosts.
#[cfg(feature = "hosted")]
#[derive(Clone, Debug)]
pub struct WireStart {
    /// Proves that a connection belongs to the job.
    pub secret: handshake::JobSecret,
    /// The address of this host for the others.
    pub address: std::net::IpAddr,
    /// The ports to listen on; `0..=0` for any.
    pub ports: core::ops::RangeInclusive<u16>,
}

impl core::fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bootstrap").field("placement", &self.placement).finish_non_exhaustive()
    }
}
