//! The networks of the build, and the one that a job runs on: the user's choice by
//! `GASNET_NETWORK`.
//!
//! Called by [`super`] when the interface is opened, by `runtime::start` for a message, and by the
//! program `gasnet_info`. Invariant: a network that the build lacks is never chosen.

use super::super::pinned::UnmapMonitor;
use super::super::pinned_config::RegisteredOnDemand;
use super::info::NetworkInfo;
use super::{emulation, libportals};
use crate::env::{self, Contradiction, NetworkChoice, NetworkKind};
use crate::report;
use alloc::format;
use alloc::vec::Vec;

impl NetworkKind {
    /// The one that is used if the user names none.
    pub const DEFAULT: NetworkKind =
        if libportals::BUILT { NetworkKind::Libportals } else { NetworkKind::Emulation };

    /// The one that the user's choice means.
    fn of(choice: Option<NetworkChoice>) -> NetworkKind {
        use NetworkChoice::*;
        match choice.unwrap_or(Auto) {
            Auto => NetworkKind::DEFAULT,
            Shm | Tcp | Ofi | Emulation => NetworkKind::Emulation,
            Libportals => NetworkKind::Libportals,
        }
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            NetworkKind::Emulation => emulation::NAME,
            NetworkKind::Libportals => libportals::NAME,
        }
    }

    /// What must be registered before a put or get uses it, if anything; `named`: what the client
    /// may name. Segments are registered whole where the firehose cannot serve them.
    pub fn registers(self, named: RegisteredOnDemand) -> Option<RegisteredOnDemand> {
        if self == NetworkKind::Emulation && !env::PORTAL_PIN.get() {
            return None;
        }
        let serves = || match self {
            NetworkKind::Emulation => true,
            NetworkKind::Libportals => env::DISABLE_MUNMAP.get() || UnmapMonitor::is_possible(),
        };
        let needed = match named {
            RegisteredOnDemand::Segments if !env::USE_FIREHOSE.get() || !serves() => {
                RegisteredOnDemand::LocalSides
            }
            named => named,
        };
        // A libportals registers segments, and what a temporary descriptor covers.
        let by_network =
            self == NetworkKind::Libportals && needed == RegisteredOnDemand::LocalSides;
        (!by_network).then_some(needed)
    }

    /// What the segments of a host may have together, in bytes, if the network registers them
    /// whole and the user bounds it.
    pub fn most_registered(self, named: RegisteredOnDemand) -> Option<u64> {
        if self != NetworkKind::Libportals || self.registers(named).is_some() {
            return None;
        }
        env::PHYSMEM_MAX.get().map(|bytes| bytes as u64)
    }

    /// Most regions of registered memory that a rank has by default for its peers, and for itself:
    /// each has a match entry and two descriptors.
    pub fn most_regions(self) -> u32 {
        match self {
            NetworkKind::Emulation => 16384,
            NetworkKind::Libportals => 1024,
        }
    }

    /// What else a user may do when it cannot be opened: nothing, or a sentence after a space.
    pub fn alternative(self) -> &'static str {
        match self {
            NetworkKind::Libportals if emulation::BUILT => " Or set GASNET_NETWORK=EMULATION.",
            _ => "",
        }
    }
}

/// The network that this process is to use. Ends the process with a line if the user names one
/// that the build lacks.
pub fn chosen() -> NetworkKind {
    let kind = NetworkKind::of(env::NETWORK.get());
    if let Some(wrong) = not_built() {
        report::fatal(format_args!("{}", wrong.cause), format_args!("{}", wrong.remedy));
    }
    kind
}

/// What is wrong if the user names a network that the build lacks.
pub fn not_built() -> Option<Contradiction> {
    let (built, remedy) = match NetworkKind::of(env::NETWORK.read().ok()?) {
        NetworkKind::Emulation => (emulation::BUILT, emulation::NOT_BUILT),
        NetworkKind::Libportals => (libportals::BUILT, libportals::NOT_BUILT),
    };
    let name = env::NETWORK.name();
    let wanted = || env::lookup(name).unwrap_or_default();
    (!built).then(|| Contradiction {
        variable: name,
        cause: format!("{name}={}: this library was built without that network", wanted()),
        remedy: remedy.into(),
    })
}

/// All networks of this library, the preferred one first. `may_attach`: whether processes of one
/// user may copy from and to each other's memory (`process_vm_readv`).
pub fn networks(may_attach: bool) -> Vec<NetworkInfo> {
    let wanted = env::NETWORK.read().ok().map(|choice| choice.unwrap_or(NetworkChoice::Auto));
    let chosen =
        |kind: NetworkKind| wanted.is_some_and(|choice| NetworkKind::of(Some(choice)) == kind);
    #[cfg(not(feature = "emulation"))]
    let _ = may_attach;
    #[cfg(feature = "libportals")]
    let libportals = [libportals::info(chosen(NetworkKind::Libportals))];
    #[cfg(not(feature = "libportals"))]
    let libportals = [];
    #[cfg(feature = "emulation")]
    let ours = emulation::infos(wanted.filter(|_| chosen(NetworkKind::Emulation)), may_attach);
    #[cfg(not(feature = "emulation"))]
    let ours = [];
    libportals.into_iter().chain(ours).collect()
}
