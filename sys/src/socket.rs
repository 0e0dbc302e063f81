//! Sockets between two processes of one host that keep the bounds of messages, pipes, and waiting for descriptors.
//! Called by `boot`.
//!
//! A listening socket has a name that no file system knows (the abstract namespace), which vanishes with it. Whoever
//! knows the name can connect, so both sides look at the other's [`PeerCredentials`].

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Two connected ends (SOCK_SEQPACKET), both closed on exec.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors.
    let r = unsafe {
        libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC,
            0,
            fds.as_mut_ptr(),
        )
    };
    if r != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: two descriptors that were just opened and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// A pipe: the end to read from, the end to write to, both closed on exec.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: two descriptors that were just opened and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Whether this number is that of an open descriptor.
pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: plain query.
    fd >= 0 && unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0
}

/// The number that the system has given to what is open as this descriptor, and to nothing else that is open; `None` if it
/// is not open.
pub fn number(fd: RawFd) -> Option<u64> {
    // SAFETY: all-zero is a valid `stat`.
    let mut st: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: a live buffer; a descriptor that is not open is an error.
    (unsafe { libc::fstat(fd, &mut st) } == 0).then_some(st.st_ino)
}

/// Writes some of `bytes` to a stream and returns how many. A closed socket is an error, never SIGPIPE.
pub fn write(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length are those of a live slice.
    let mut n = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    if n < 0 && super::errno() == libc::ENOTSOCK {
        // SAFETY: as above.
        n = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    }
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Reads what is there, waiting for the first of it; 0 at the end.
pub fn read(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length are those of a live slice.
    match unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } {
        -1 => Err(io::Error::last_os_error()),
        n => Ok(n as usize),
    }
}

/// Whether there is something to be read, or the other side has hung up.
pub fn readable(fd: BorrowedFd<'_>) -> bool {
    let mut p = [libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
    poll(&mut p, Some(0));
    p[0].revents != 0
}

/// The address of this name in the abstract namespace, and its length.
fn address(name: &str) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: all-zero is a valid address; its path then starts with the zero that marks the abstract namespace.
    let mut a: libc::sockaddr_un = unsafe { core::mem::zeroed() };
    a.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if name.len() + 1 > a.sun_path.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (to, from) in a.sun_path[1..].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok((
        a,
        (core::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len()) as libc::socklen_t,
    ))
}

fn unconnected(flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: plain system call.
    let fd = unsafe {
        libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | flags, 0)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Listens under this name, with room for so many that have not been accepted yet.
pub fn listen(name: &str, room: u32) -> io::Result<OwnedFd> {
    let (a, len) = address(name)?;
    let fd = unconnected(libc::SOCK_NONBLOCK)?;
    // SAFETY: an address of the stated length.
    let bound = unsafe { libc::bind(fd.as_raw_fd(), (&raw const a).cast(), len) == 0 };
    // SAFETY: plain system call.
    if !bound || unsafe { libc::listen(fd.as_raw_fd(), room.min(i32::MAX as u32) as i32) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(fd)
}

/// The next one that has connected; an error of kind `WouldBlock` if there is none.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the address of the other side is not asked for.
    let fd = unsafe {
        libc::accept4(
            listener.as_raw_fd(),
            core::ptr::null_mut(),
            core::ptr::null_mut(),
            libc::SOCK_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Connects to whoever listens under this name.
pub fn connect(name: &str) -> io::Result<OwnedFd> {
    let (a, len) = address(name)?;
    let fd = unconnected(0)?;
    loop {
        // SAFETY: an address of the stated length.
        if unsafe { libc::connect(fd.as_raw_fd(), (&raw const a).cast(), len) } == 0 {
            return Ok(fd);
        }
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
}

/// Who is on the other side of a connection, as the kernel noted it when the connection was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Its process.
    pub pid: u32,
    /// Its effective user.
    pub uid: u32,
}

/// Who is on the other side.
pub fn credentials(fd: BorrowedFd<'_>) -> io::Result<PeerCredentials> {
    let mut c = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: a live structure of the stated size.
    let r = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut c).cast(),
            &mut len,
        )
    };
    if r != 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(PeerCredentials { pid: c.pid as u32, uid: c.uid })
    }
}

/// Most descriptors that go with one message.
const MOST_FDS: usize = 4;
/// Bytes of the control message that carries them.
const CONTROL: usize = 64;

/// Sends one message together with descriptors, at most 4, without waiting.
pub fn send_fds(fd: BorrowedFd<'_>, message: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = size_of_val(fds) as u32;
    // SAFETY: computes a size.
    let space = unsafe { libc::CMSG_SPACE(bytes) } as usize;
    if fds.len() > MOST_FDS || space > CONTROL {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // Of words, so that it is aligned for the header of a control message.
    let mut control = [0u64; CONTROL / 8];
    let mut piece =
        libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
    // SAFETY: all-zero is a valid header.
    let mut m: libc::msghdr = unsafe { core::mem::zeroed() };
    m.msg_iov = &mut piece;
    m.msg_iovlen = 1;
    m.msg_control = control.as_mut_ptr().cast();
    m.msg_controllen = space as _;
    // SAFETY: the control buffer has room for one message with `bytes` bytes of data; a BorrowedFd is a descriptor.
    let r = unsafe {
        let c = libc::CMSG_FIRSTHDR(&m);
        (*c).cmsg_level = libc::SOL_SOCKET;
        (*c).cmsg_type = libc::SCM_RIGHTS;
        (*c).cmsg_len = libc::CMSG_LEN(bytes) as _;
        core::ptr::copy_nonoverlapping(
            fds.as_ptr().cast::<u8>(),
            libc::CMSG_DATA(c),
            bytes as usize,
        );
        libc::sendmsg(fd.as_raw_fd(), &m, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
    };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits for one message and the descriptors that come with it, which are closed on exec. Its length is 0 if the peer
/// has hung up.
pub fn receive_fds(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut control = [0u64; CONTROL / 8];
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero is a valid header.
    let mut m: libc::msghdr = unsafe { core::mem::zeroed() };
    m.msg_iov = &mut piece;
    m.msg_iovlen = 1;
    m.msg_control = control.as_mut_ptr().cast();
    m.msg_controllen = CONTROL as _;
    // SAFETY: the header names live buffers and their sizes.
    let n = unsafe { libc::recvmsg(fd.as_raw_fd(), &mut m, libc::MSG_CMSG_CLOEXEC) };
    if n < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut fds = Vec::new();
    // SAFETY: the kernel has filled the control buffer; the lengths that it wrote bound the data.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(&m);
        while !c.is_null() {
            if (*c).cmsg_level == libc::SOL_SOCKET && (*c).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(c);
                let bytes = (*c).cmsg_len as usize - (data as usize - c as usize);
                for i in 0..bytes / size_of::<RawFd>() {
                    fds.push(OwnedFd::from_raw_fd(data.cast::<RawFd>().add(i).read_unaligned()));
                }
            }
            c = libc::CMSG_NXTHDR(&m, c);
        }
    }
    Ok((n as usize, fds))
}

/// Sends one message; with `wait`, until there is room. A closed peer is an error, never SIGPIPE.
/// Async-signal-safe.
pub fn send(fd: RawFd, message: &[u8], wait: bool) -> io::Result<()> {
    let flags = libc::MSG_NOSIGNAL | if wait { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: the pointer and length are those of a live slice.
    match unsafe { libc::send(fd, message.as_ptr().cast(), message.len(), flags) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Receives one message and returns its length; 0 if the peer has hung up.
pub fn receive(fd: RawFd, buffer: &mut [u8], wait: bool) -> io::Result<usize> {
    let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: the pointer and length are those of a live slice.
    match unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), flags) } {
        -1 => Err(io::Error::last_os_error()),
        n => Ok(n as usize),
    }
}

/// Has the kernel send a signal to this process whenever something happens on the socket; `None`: no longer.
pub fn signal_on_event(fd: BorrowedFd<'_>, signal: Option<i32>) -> io::Result<()> {
    let fd = fd.as_raw_fd();
    // SAFETY: plain system calls on a live descriptor.
    let ok = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        match signal {
            None => libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_ASYNC) == 0,
            Some(signal) => {
                libc::fcntl(fd, libc::F_SETOWN, libc::getpid()) == 0
                    && libc::fcntl(fd, F_SETSIG, signal) == 0
                    && libc::fcntl(fd, libc::F_SETFL, flags | libc::O_ASYNC) == 0
            }
        }
    };
    if ok { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The same number on every architecture of Linux.
const F_SETSIG: i32 = 10;

/// Whether the peer has hung up. Async-signal-safe.
pub fn hung_up(fd: RawFd) -> bool {
    let mut p = libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: one live entry.
    let n = unsafe { libc::poll(&mut p, 1, 0) };
    n == 1 && p.revents & (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR) != 0
}

/// Marks a descriptor to be closed, or to stay open, on exec.
pub fn close_on_exec(fd: BorrowedFd<'_>, close: bool) -> io::Result<()> {
    // SAFETY: plain system call on a live descriptor.
    match unsafe {
        libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, if close { libc::FD_CLOEXEC } else { 0 })
    } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Takes over a descriptor that this process inherited; `None` if there is none of this number.
///
/// # Safety
/// Nobody else in this process uses the number as a descriptor of his own.
pub unsafe fn inherited(fd: RawFd) -> Option<OwnedFd> {
    if !is_open(fd) {
        return None;
    }
    // SAFETY: it is open, and nobody else's by the caller's promise.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits until one of the descriptors has something, or for `timeout_ms` (`None`: forever). Entries with a negative
/// descriptor are passed over.
pub fn poll(fds: &mut [libc::pollfd], timeout_ms: Option<u32>) {
    let timeout = timeout_ms.map_or(-1, |t| t.min(i32::MAX as u32) as i32);
    // SAFETY: the pointer and length are those of a live slice.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_hang_up() {
        let (a, b) = pair().unwrap();
        send(a.as_raw_fd(), b"one", true).unwrap();
        send(a.as_raw_fd(), b"three", false).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(receive(b.as_raw_fd(), &mut buffer, true).unwrap(), 3);
        assert_eq!(receive(b.as_raw_fd(), &mut buffer, true).unwrap(), 5);
        assert_eq!(
            receive(b.as_raw_fd(), &mut buffer, false).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        assert!(!hung_up(b.as_raw_fd()));
        drop(a);
        assert!(hung_up(b.as_raw_fd()));
        assert_eq!(receive(b.as_raw_fd(), &mut buffer, true).unwrap(), 0);
        assert!(send(b.as_raw_fd(), b"x", true).is_err());
    }

    #[test]
    fn descriptors_travel_and_peers_are_known() {
        use std::os::fd::AsFd;
        let name = format!("gasnet-test-{}", crate::process::pid());
        let listener = listen(&name, 1).unwrap();
        assert_eq!(accept(listener.as_fd()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let a = connect(&name).unwrap();
        let b = accept(listener.as_fd()).unwrap();
        // SAFETY: plain query.
        let uid = unsafe { libc::geteuid() };
        assert_eq!(
            credentials(a.as_fd()).unwrap(),
            PeerCredentials { pid: crate::process::pid(), uid }
        );
        let (from, to) = pipe().unwrap();
        send_fds(b.as_fd(), b"here", &[to.as_fd()]).unwrap();
        drop(to);
        let mut buffer = [0; 8];
        let (n, mut fds) = receive_fds(a.as_fd(), &mut buffer).unwrap();
        assert_eq!((&buffer[..n], fds.len()), (&b"here"[..], 1));
        assert!(!readable(from.as_fd()));
        drop(fds.pop());
        assert_eq!(read(from.as_raw_fd(), &mut buffer).unwrap(), 0);
        drop(listener);
        assert!(connect(&name).is_err());
    }
}
