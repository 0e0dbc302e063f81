//! The addresses of this host that other hosts of the job reach.
//!
//! Called by `launch` and the supervisor. Invariant: an address that is used is one of an
//! interface that is up; the user's choice comes first.

use super::names::HostAddresses;
use crate::boot::error::BootError;
use crate::env;
use crate::tools::this_process::hostname;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use sys::interface::{self, InterfaceAddress};

/// The address that the user names by `GASNET_NETWORK_INTERFACE`; `None` if none is named.
///
/// # Errors
/// This host has no such interface, address or network.
pub(in crate::boot) fn wanted() -> Result<Option<IpAddr>, BootError> {
    let Some(text) = env::NETWORK_INTERFACE.get() else { return Ok(None) };
    let all = all()?;
    let matching = || all.iter().filter(|a| matches(a, &text));
    // A network may have the loopback device too, which other hosts do not reach.
    let found = matching().find(|a| !a.is_loopback).or_else(|| matching().next());
    if let Some(found) = found {
        return Ok(Some(found.address));
    }
    let known: Vec<String> =
        all.iter().map(|a| format!("{} ({})", a.interface, a.address)).collect();
    Err(BootError::new(
        format!(
            "GASNET_NETWORK_INTERFACE={text}: host {} has no such interface, address or network",
            hostname()
        ),
        format!("Name one of {}, or a network such as 10.0.0.0/8.", known.join(", ")),
    ))
}

fn all() -> Result<Vec<InterfaceAddress>, BootError> {
    interface::addresses().map_err(|e| BootError::system("cannot list the network interfaces", &e))
}

/// Whether an address is of the interface with this name, is this address, or is of this network.
fn matches(a: &InterfaceAddress, text: &str) -> bool {
    if a.interface == text || text.parse() == Ok(a.address) {
        return true;
    }
    let Some((network, bits)) = text.split_once('/') else { return false };
    match (network.parse::<IpAddr>(), bits.parse::<u32>(), a.address) {
        (Ok(IpAddr::V4(network)), Ok(bits @ 0..=32), IpAddr::V4(address)) => {
            let differ = u32::from(network) ^ u32::from(address);
            differ.checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (Ok(IpAddr::V6(network)), Ok(bits @ 0..=128), IpAddr::V6(address)) => {
            let differ = u128::from(network) ^ u128::from(address);
            differ.checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// The addresses of this host from which packets to these hosts leave, by their addresses. Where a
/// name is unknown here (only ssh may know it), all addresses that other hosts can reach.
///
/// # Errors
/// This host has no network.
pub(in crate::boot) fn toward(
    hosts: &[&str],
    addresses: &HostAddresses,
) -> Result<Vec<IpAddr>, BootError> {
    if let Some(address) = wanted()? {
        return Ok(vec![address]);
    }
    let mut found: Vec<IpAddr> = Vec::new();
    for host in hosts {
        let Some(address) = route_to(addresses.of(host)) else { return toward_any() };
        if !found.contains(&address) {
            found.push(address);
        }
    }
    Ok(found)
}

/// The addresses of this host that other hosts can reach.
///
/// # Errors
/// This host has no network.
pub(in crate::boot) fn toward_any() -> Result<Vec<IpAddr>, BootError> {
    if let Some(address) = wanted()? {
        return Ok(vec![address]);
    }
    let all = all()?.into_iter().filter(|a| !a.is_loopback);
    let found: Vec<IpAddr> = all.map(|a| a.address).collect();
    if found.is_empty() {
        return Err(BootError::new(
            "this host has no network interface that other hosts reach",
            "Connect it to a network, or start all ranks on this host.",
        ));
    }
    Ok(found)
}

/// The address of this host from which packets to a host with these addresses leave. Nothing is
/// sent.
fn route_to(host: &[SocketAddr]) -> Option<IpAddr> {
    host.iter().find_map(|to| {
        let any = match to {
            SocketAddr::V4(_) => "0.0.0.0:0",
            SocketAddr::V6(_) => "[::]:0",
        };
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    })
}

/// The ports that the user allows by `GASNET_NETWORK_PORTS`; any otherwise.
pub(in crate::boot) fn ports() -> RangeInclusive<u16> {
    env::NETWORK_PORTS.get().unwrap_or(0..=0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_named_in_three_ways() {
        let of = |address: &str| InterfaceAddress {
            interface: "eth0".into(),
            address: address.parse().unwrap(),
            is_loopback: false,
        };
        let four = of("10.1.2.3");
        for right in ["eth0", "10.1.2.3", "10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0"] {
            assert!(matches(&four, right), "{right}");
        }
        for wrong in ["eth", "10.1.2.4", "10.2.0.0/16", "10.1.0.0/33", "::/0", "10.1.2.2/32"] {
            assert!(!matches(&four, wrong), "{wrong}");
        }
        assert!(matches(&of("fd00::1"), "fd00::/8") && !matches(&of("fd00::1"), "fe00::/8"));
    }

    #[test]
    fn the_route_to_this_host_is_loopback() {
        assert!(route_to(&[([127, 0, 0, 1], 9).into()]).unwrap().is_loopback());
        assert_eq!(route_to(&[]), None);
    }
}
