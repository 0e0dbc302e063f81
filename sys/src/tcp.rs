//! TCP connections that are never waited for. Called by the network `tcp` of `portals3`.
//!
//! Invariant: every socket that is made here is non-blocking, closed on exec, and sends no
//! SIGPIPE.

use crate::{descriptor, socket};
use core::fmt;
use core::mem;
use core::ops::RangeInclusive;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// An address as the system wants it.
#[repr(C)]
union RawAddress {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl RawAddress {
    fn new(address: SocketAddr) -> (RawAddress, libc::socklen_t) {
        match address {
            SocketAddr::V4(a) => {
                // SAFETY: all-zero is valid: integers.
                let mut v4: libc::sockaddr_in = unsafe { mem::zeroed() };
                v4.sin_family = libc::AF_INET as libc::sa_family_t;
                v4.sin_port = a.port().to_be();
                v4.sin_addr.s_addr = u32::from(*a.ip()).to_be();
                (RawAddress { v4 }, size_of::<libc::sockaddr_in>() as libc::socklen_t)
            }
            SocketAddr::V6(a) => {
                // SAFETY: all-zero is valid: integers.
                let mut v6: libc::sockaddr_in6 = unsafe { mem::zeroed() };
                v6.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                v6.sin6_port = a.port().to_be();
                v6.sin6_addr.s6_addr = a.ip().octets();
                v6.sin6_scope_id = a.scope_id();
                (RawAddress { v6 }, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
            }
        }
    }
}

fn new_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: touches no memory.
    let made = |kind| unsafe { libc::socket(family, kind, 0) };
    let fd = match made(libc::SOCK_STREAM | libc::SOCK_CLOEXEC) {
        // Linux before 2.6.27.
        -1 if crate::errno() == libc::EINVAL => made(libc::SOCK_STREAM),
        fd => fd,
    };
    // SAFETY: the descriptor was just opened, so nothing else owns it.
    let fd = unsafe { descriptor::opened(fd) }?;
    socket::set_nonblocking(fd.as_fd())?;
    Ok(fd)
}

/// A socket that listens at this address; port 0 lets the system choose one. At most `backlog`
/// connections wait to be accepted.
///
/// # Errors
/// That of the system.
pub fn listen(address: SocketAddr, backlog: u32) -> io::Result<OwnedFd> {
    let fd = new_socket(address)?;
    // A port of a range is wanted again at once by the next job.
    option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    bind(fd.as_fd(), address)?;
    // SAFETY: touches no memory.
    match unsafe { libc::listen(fd.as_raw_fd(), backlog.min(i32::MAX as u32) as i32) } {
        0 => Ok(fd),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A socket that listens at the first port of these that is free; `0..=0` lets the system choose.
///
/// # Errors
/// That of the system; `AddrInUse` if none is free.
pub fn listen_on(
    address: IpAddr,
    ports: RangeInclusive<u16>,
    backlog: u32,
) -> io::Result<OwnedFd> {
    let mut listener = Err(io::ErrorKind::AddrInUse.into());
    for port in ports {
        listener = listen(SocketAddr::new(address, port), backlog);
        if !matches!(&listener, Err(e) if e.kind() == io::ErrorKind::AddrInUse) {
            break;
        }
    }
    listener
}

fn bind(fd: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    let (raw, length) = RawAddress::new(address);
    // SAFETY: an address of the stated length.
    match unsafe { libc::bind(fd.as_raw_fd(), (&raw const raw).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The address of this side of a socket.
///
/// # Errors
/// That of the system.
pub fn local_address(fd: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    // SAFETY: a buffer of the stated length.
    address(|raw, length| unsafe { libc::getsockname(fd.as_raw_fd(), raw, length) })
}

/// The address of the other side of a connection.
///
/// # Errors
/// That of the system.
pub fn peer_address(fd: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    // SAFETY: a buffer of the stated length.
    address(|raw, length| unsafe { libc::getpeername(fd.as_raw_fd(), raw, length) })
}

/// The address that a call of the system writes into a buffer of this length.
fn address(
    write: impl FnOnce(*mut libc::sockaddr, &mut libc::socklen_t) -> i32,
) -> io::Result<SocketAddr> {
    // SAFETY: all-zero is valid: integers.
    let mut raw: RawAddress = unsafe { mem::zeroed() };
    let mut length = size_of::<RawAddress>() as libc::socklen_t;
    if write((&raw mut raw).cast(), &mut length) != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the family is the first field of both, and zero was valid for either.
    let family = i32::from(unsafe { raw.v4.sin_family });
    match family {
        libc::AF_INET => {
            // SAFETY: the family says so.
            let v4 = unsafe { raw.v4 };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Ok(SocketAddr::new(IpAddr::V4(ip), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says so.
            let v6 = unsafe { raw.v6 };
            let (ip, port) = (Ipv6Addr::from(v6.sin6_addr.s6_addr), u16::from_be(v6.sin6_port));
            Ok(SocketAddr::V6(SocketAddrV6::new(ip, port, 0, v6.sin6_scope_id)))
        }
        _ => Err(io::Error::from(io::ErrorKind::Unsupported)),
    }
}

/// The next connection of a listening socket.
///
/// # Errors
/// That of the system; `WouldBlock` if there is none.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let fd = socket::accept(listener)?;
    socket::set_nonblocking(fd.as_fd())?;
    Ok(fd)
}

/// Begins to connect from this local address to a peer. The socket can be written once it is
/// connected, or once that has failed ([`error`]).
///
/// # Errors
/// That of the system.
pub fn connect(from: IpAddr, to: SocketAddr) -> io::Result<OwnedFd> {
    let fd = new_socket(to)?;
    // A host that does not answer is given up after 15 seconds.
    option(fd.as_fd(), libc::IPPROTO_TCP, libc::TCP_SYNCNT, 3)?;
    // The port is chosen with the address of the peer: then connections to different peers may
    // have the same one. Kernels before Linux 4.2 choose it at once.
    let _ = option(fd.as_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
    bind(fd.as_fd(), SocketAddr::new(from, 0))?;
    let (raw, length) = RawAddress::new(to);
    // SAFETY: an address of the stated length.
    if unsafe { libc::connect(fd.as_raw_fd(), (&raw const raw).cast(), length) } != 0 {
        match crate::errno() {
            libc::EINPROGRESS | libc::EINTR => {}
            other => return Err(io::Error::from_raw_os_error(other)),
        }
    }
    Ok(fd)
}

/// The pending error of a socket.
///
/// # Errors
/// That error.
pub fn error(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut pending = 0i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: a live int of the stated size.
    let r = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut pending).cast(),
            &mut length,
        )
    };
    match (r, pending) {
        (0, 0) => Ok(()),
        (0, errno) => Err(io::Error::from_raw_os_error(errno)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn option(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: a live int and its size.
    let r = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if r == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends small messages at once. Reports a host that is lost within about `lost_ms` milliseconds,
/// whether bytes are on their way to it or not. A peer that has no room for bytes for so long is
/// reported too.
///
/// # Errors
/// That of the system. Kernels before Linux 2.6.37 have no limit for bytes on their way.
pub fn tune(fd: BorrowedFd<'_>, lost_ms: u32) -> io::Result<()> {
    keep_alive(fd, lost_ms)?;
    match option(fd, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, lost_ms as i32) {
        Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        set => set,
    }
}

/// Sends small messages at once. Reports a host that is lost within about `lost_ms` milliseconds,
/// if no bytes are on their way to it: keepalive from the first second on, each second. If some
/// are, [`unanswered`] tells.
///
/// # Errors
/// That of the system.
pub fn keep_alive(fd: BorrowedFd<'_>, lost_ms: u32) -> io::Result<()> {
    option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    option(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 1)?;
    option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 1)?;
    option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, (lost_ms / 1000).clamp(1, 127) as i32)
}

/// How long the host of a peer has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unanswered {
    /// For this many milliseconds.
    Ms(u32),
    /// It has never answered.
    Ever,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unanswered::Ever => f.write_str("has never answered"),
            Unanswered::Ms(ms) => write!(f, "has not answered for {} s", ms / 1000),
        }
    }
}

/// How long the host of the peer has not answered, if it should have: bytes or the request for a
/// connection are sent again, or it is asked again for room. A peer without room answers such a
/// question.
///
/// # Errors
/// That of the system.
pub fn unanswered(fd: BorrowedFd<'_>) -> io::Result<Option<Unanswered>> {
    // The beginning of `tcp_info`, which only ever grows at its end.
    const STATE: usize = 0;
    const SYN_SENT: u8 = 2;
    const RETRANSMITS: usize = 2;
    const PROBES: usize = 3;
    const LAST_ACK_RECEIVED: usize = 56;
    let mut info = [0u8; LAST_ACK_RECEIVED + 4];
    let mut length = size_of_val(&info) as libc::socklen_t;
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: a live buffer of the stated length.
    let r = unsafe {
        let buffer = info.as_mut_ptr().cast();
        libc::getsockopt(fd.as_raw_fd(), level, name, buffer, &mut length)
    };
    if r != 0 {
        return Err(io::Error::last_os_error());
    }
    // One question may have been asked just now, and some bytes may have been lost.
    let unanswered = info[RETRANSMITS] > 2 || info[PROBES] > 1;
    let since = info[LAST_ACK_RECEIVED..].first_chunk().map(|&bytes| u32::from_ne_bytes(bytes));
    let since = match info[STATE] {
        SYN_SENT => Some(Unanswered::Ever),
        _ => since.map(Unanswered::Ms),
    };
    Ok(since.filter(|_| unanswered))
}

/// Bytes to be sent: where they are, and how many.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct SendPiece(libc::iovec);

impl SendPiece {
    /// No bytes.
    pub const EMPTY: SendPiece = SendPiece::new(core::ptr::null(), 0);

    /// `length` bytes from `base`.
    pub const fn new(base: *const u8, length: usize) -> SendPiece {
        SendPiece(libc::iovec { iov_base: base.cast_mut().cast(), iov_len: length })
    }
}

/// Sends the bytes of these pieces, one after the other, as far as there is room. Returns how
/// many were sent.
///
/// # Errors
/// That of the system; `WouldBlock` if there is no room. If memory cannot be read, an error with
/// the number `EFAULT`.
///
/// # Safety
/// The pieces are not written to meanwhile, unless any bytes may be sent. The kernel checks that
/// they can be read.
pub unsafe fn send(fd: BorrowedFd<'_>, pieces: &[SendPiece]) -> io::Result<usize> {
    // SAFETY: all-zero is a valid header.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = pieces.as_ptr().cast_mut().cast();
    header.msg_iovlen = pieces.len() as _;
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the header names live pieces; what they name is only read, and checked by the
    // kernel.
    let n = unsafe { libc::sendmsg(fd.as_raw_fd(), &header, flags) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// As [`send`], of bytes in one piece: the system takes them sooner than pieces.
///
/// # Errors
/// As [`send`].
pub fn send_bytes(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: a live slice.
    let n = unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Receives bytes: the first `length` go to `to`, the others to `rest`. Returns how many there
/// were, 0 if the peer has hung up.
///
/// # Errors
/// That of the system; `WouldBlock` if there are none.
///
/// # Safety
/// `to` is valid for writes of `length` bytes.
pub unsafe fn receive(
    fd: BorrowedFd<'_>,
    to: *mut u8,
    length: usize,
    rest: &mut [u8],
) -> io::Result<usize> {
    let pieces = [
        libc::iovec { iov_base: to.cast(), iov_len: length },
        libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() },
    ];
    // SAFETY: both are valid for writes of their lengths.
    let n = unsafe { libc::readv(fd.as_raw_fd(), pieces.as_ptr(), pieces.len() as i32) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{self, PollEntry};

    #[track_caller]
    fn until(mut done: impl FnMut() -> bool) {
        for _ in 0..10_000 {
            if done() {
                return;
            }
            crate::clock::sleep_ns(1_000_000);
        }
        panic!("nothing happened");
    }

    #[test]
    fn a_connection_carries_pieces() {
        for host in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let Ok(listener) = listen(SocketAddr::new(host, 0), 4) else {
                assert!(host.is_ipv6(), "IPv4 always exists");
                continue;
            };
            let address = local_address(listener.as_fd()).unwrap();
            assert_eq!(address.ip(), host);
            let a = connect(host, address).unwrap();
            let mut b = accept(listener.as_fd());
            until(|| {
                if b.is_err() {
                    b = accept(listener.as_fd());
                }
                b.is_ok()
            });
            let b = b.unwrap();
            poll::wait(&mut [PollEntry::writing(a.as_fd())], None);
            error(a.as_fd()).unwrap();
            tune(a.as_fd(), 3000).unwrap();
            assert_eq!(unanswered(a.as_fd()).unwrap(), None);
            let mut buffer = [0; 16];
            let nothing = socket::receive(b.as_fd(), &mut buffer, false).unwrap_err();
            assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
            let piece = |bytes: &[u8]| SendPiece::new(bytes.as_ptr(), bytes.len());
            // SAFETY: constants.
            let sent = unsafe { send(a.as_fd(), &[piece(b"one"), piece(b""), piece(b"two")]) };
            assert_eq!(sent.unwrap(), 6);
            until(|| socket::receive(b.as_fd(), &mut buffer, false).is_ok_and(|n| n == 6));
            assert_eq!(&buffer[..6], b"onetwo");
            // SAFETY: the kernel refuses the address.
            let refused =
                unsafe { send(a.as_fd(), &[SendPiece::new(core::ptr::without_provenance(8), 8)]) };
            assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EFAULT));
            // SAFETY: a constant.
            unsafe { send(a.as_fd(), &[piece(b"parted")]) }.unwrap();
            let (mut to, mut rest) = ([0u8; 4], [0u8; 4]);
            // SAFETY: a live buffer of this length.
            let mut read = || unsafe { receive(b.as_fd(), to.as_mut_ptr(), 4, &mut rest) };
            until(|| read().is_ok_and(|n| n == 6));
            assert_eq!((&to, &rest), (b"part", b"ed\0\0"));
            drop(a);
            until(|| socket::receive(b.as_fd(), &mut buffer, false).is_ok_and(|n| n == 0));
        }
    }

    /// A host that has taken a connection, but has no room for it at its end, drops what arrives
    /// on it. What is sent counts as not answered, until there is room.
    #[test]
    fn a_connection_without_room_is_not_answered() {
        let listener = listen(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0), 2).unwrap();
        let address = local_address(listener.as_fd()).unwrap();
        // Each connection takes room, of which three have some, with its first byte only.
        option(listener.as_fd(), libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, 30).unwrap();
        let made = || {
            let made = connect(address.ip(), address).unwrap();
            poll::wait(&mut [PollEntry::writing(made.as_fd())], None);
            error(made.as_fd()).unwrap();
            made
        };
        let send = |socket: &OwnedFd| assert_eq!(send_bytes(socket.as_fd(), b"1").unwrap(), 1);
        let before = [made(), made()];
        before.iter().for_each(send);
        let [late, last] = [made(), made()];
        [&last, &late].into_iter().for_each(send);
        let unanswered = || unanswered(late.as_fd()).unwrap();
        until(|| unanswered().is_some_and(|since| since >= Unanswered::Ms(1000)));
        assert_ne!(unanswered(), Some(Unanswered::Ever));
        let mut taken = Vec::new();
        until(|| {
            taken.extend(accept(listener.as_fd()));
            taken.len() == 4
        });
        until(|| unanswered().is_none());
    }

    #[test]
    fn nobody_listens() {
        let host = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let gone = listen(SocketAddr::new(host, 0), 4).unwrap();
        let address = local_address(gone.as_fd()).unwrap();
        drop(gone);
        match connect(host, address) {
            Err(e) => assert_eq!(e.kind(), io::ErrorKind::ConnectionRefused),
            Ok(socket) => until(|| error(socket.as_fd()).is_err()),
        }
    }
}
