//! The network interfaces of this host, and their addresses. Called by `boot`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of an interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Name of the interface.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// Other hosts do not reach it.
    pub is_loopback: bool,
}

/// The addresses of this host. Those of IPv6 that hold on one link only are left out.
///
/// # Errors
/// That of the system.
pub fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    let mut first = core::ptr::null_mut();
    // SAFETY: a live pointer, which the call sets.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut all = Vec::new();
    let mut next = first;
    // SAFETY: a list that the call above has made, which ends with a null pointer.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        let flags = entry.ifa_flags as i32;
        if flags & libc::IFF_UP == 0 {
            continue;
        }
        // SAFETY: null, or an address of the list.
        let Some(address) = (unsafe { ip_of(entry.ifa_addr) }) else { continue };
        // SAFETY: a text of the list that ends with a zero.
        let name = unsafe { core::ffi::CStr::from_ptr(entry.ifa_name) };
        all.push(InterfaceAddress {
            interface: name.to_string_lossy().into_owned(),
            address,
            is_loopback: flags & libc::IFF_LOOPBACK != 0,
        });
    }
    // SAFETY: the list of the call above, which nothing refers to any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(all)
}

/// The IP address in a socket address.
///
/// # Safety
/// The pointer is null, or to a socket address that is as long as its family says.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the contract.
    match unsafe { address.as_ref() }?.sa_family.into() {
        libc::AF_INET => {
            // SAFETY: the contract: an address of this family.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            let address = Ipv6Addr::from(address.sin6_addr.s6_addr);
            (!address.is_unicast_link_local()).then_some(address.into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_loopback() {
        let all = match addresses() {
            Ok(all) => all,
            // A C library that is newer than its kernel uses what this kernel lacks.
            Err(e) => return assert_eq!(e.raw_os_error(), Some(libc::EINVAL)),
        };
        let loopback = all.iter().find(|a| a.address == IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert!(loopback.is_none_or(|a| a.is_loopback && !a.interface.is_empty()));
    }
}
