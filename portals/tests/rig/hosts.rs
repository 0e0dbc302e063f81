//! Test networks: interfaces of this process, each on a host of its own, joined by a wire.
//!
//! Used by [`super::RigKind`]. Invariant: the interfaces share no memory, so that every
//! message between two of them crosses the wire.

use std::net::{IpAddr, Ipv4Addr};

use portals3::nal::ofi::{self, OfiRemoteAccess, OfiSpec, OfiTagMode, OfiWire, ProviderChoice};
use portals3::nal::shm::AttachPolicy;
use portals3::nal::tcp::{JobSecret, LibraryVersion, TcpSpec, TcpWire};
use portals3::nal::wire::{PeerEnd, PeerFailure, Wire};
use portals3::{NetworkInterface, NiLimits};

use super::{OfiRig, process};

/// Contexts of each endpoint, where there are several.
const CONTEXTS: u32 = 4;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A node that is closed looks like a process that has ended.
fn failed(failure: &PeerFailure) {
    assert_eq!(failure.end, PeerEnd::Closed, "{failure}");
}

/// The name of a provider, and the mode.
fn provider(rig: OfiRig, all: &[String]) -> (&str, Option<OfiTagMode>) {
    match rig {
        OfiRig::Native if all.iter().any(|name| name == "net") => ("net", None),
        OfiRig::Native => ("tcp", None),
        OfiRig::Rxm(mode) => ("tcp;ofi_rxm", Some(mode)),
        OfiRig::Sockets | OfiRig::Contexts => ("sockets", None),
    }
}

/// Names of the providers of this machine.
fn providers() -> Result<Vec<String>, String> {
    ofi::providers().map(|(_, all)| all.into_iter().map(|provider| provider.name).collect())
}

/// Why this machine has no such wire.
pub(super) fn missing(rig: OfiRig) -> Option<String> {
    let all = match providers() {
        Ok(all) => all,
        Err(why) => return Some(format!("libfabric: {why}")),
    };
    let (name, _) = provider(rig, &all);
    (!all.iter().any(|known| known == name)).then(|| format!("no provider {name} of libfabric"))
}

fn ofi_wire(rig: OfiRig, secret: JobSecret, processes: u32) -> OfiWire {
    let all = providers().expect("libfabric");
    let (name, tag_mode) = provider(rig, &all);
    let wire = OfiWire::open(OfiSpec {
        address: HERE,
        ports: 0..=0,
        secret,
        providers: ProviderChoice::Include(vec![name.into()]),
        tag_mode,
        remote: OfiRemoteAccess::Never,
        thread_grouping: rig == OfiRig::Contexts,
        events: 16,
        processes: processes.max(CONTEXTS + 1),
        on_failure: Box::new(failed),
    });
    wire.expect("a wire")
}

/// Opens the interfaces of `count` hosts, joined by a provider of libfabric or by TCP.
pub(super) fn join(
    count: usize,
    limits: Option<NiLimits>,
    ofi: Option<OfiRig>,
) -> Vec<NetworkInterface> {
    let secret = JobSecret::random().expect("a secret");
    let hosts = vec![1; count];
    let mut addresses = Vec::new();
    let open = |nid: usize| {
        let wire: Box<dyn Wire> = match ofi {
            Some(rig) => {
                let wire = ofi_wire(rig, secret.clone(), count as u32);
                addresses.extend(wire.address());
                Box::new(wire)
            }
            None => {
                let wire = TcpWire::open(TcpSpec {
                    address: HERE,
                    ports: 0..=0,
                    secret: secret.clone(),
                    library: LibraryVersion::new("rig"),
                    on_failure: Box::new(failed),
                    on_lack: |e| panic!("{e}"),
                });
                let wire = wire.expect("a wire");
                addresses.extend(wire.address());
                Box::new(wire)
            }
        };
        let fabric =
            process::fabric_on(&process::memory_file(), nid as u32, 0, 1, AttachPolicy::Allowed);
        NetworkInterface::joined(fabric, &hosts, wire, limits).expect("joined")
    };
    let nodes: Vec<_> = (0..count).map(open).collect();
    for node in &nodes {
        node.connect(addresses.clone().into()).expect("addresses");
    }
    nodes
}
