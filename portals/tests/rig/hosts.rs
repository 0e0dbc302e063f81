//! A test network: interfaces of this process, each on a host of its own, joined by TCP.
//!
//! Used by [`super::RigKind::Tcp`]. Invariant: the interfaces share no memory, so that every
//! message between two of them crosses the wire.

use std::net::{IpAddr, Ipv4Addr};

use portals3::nal::shm::AttachPolicy;
use portals3::nal::tcp::{JobSecret, LibraryVersion, TcpSpec, TcpWire};
use portals3::{NetworkInterface, NiLimits};

use super::process;

/// Opens the interfaces of `count` hosts.
pub(super) fn join(count: usize, limits: Option<NiLimits>) -> Vec<NetworkInterface> {
    let secret = JobSecret::random().expect("a secret");
    let hosts = vec![1; count];
    let mut addresses = Vec::new();
    let open = |nid: usize| {
        let wire = TcpWire::open(TcpSpec {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            ports: 0..=0,
            secret: secret.clone(),
            library: LibraryVersion::new("rig"),
            // A node that is closed looks like a process that has ended.
            on_failure: Box::new(|failure| assert!(failure.closed, "{failure}")),
        });
        let wire = wire.expect("a wire");
        addresses.extend(wire.address());
        let fabric =
            process::fabric_on(&process::memory_file(), nid as u32, 0, 1, AttachPolicy::Allowed);
        NetworkInterface::joined(fabric, &hosts, Box::new(wire), limits).expect("joined")
    };
    let nodes: Vec<_> = (0..count).map(open).collect();
    for node in &nodes {
        node.connect(addresses.clone().into()).expect("addresses");
    }
    nodes
}
