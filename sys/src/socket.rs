//! Sockets between two processes of one host that keep the bounds of messages (SOCK_SEQPACKET).
//! Called by `boot` and by the launcher `ptlrun`.
//!
//! A listening socket has a name in the abstract namespace: no file system holds it, and it
//! vanishes with the socket. Any process that knows the name can connect, so each side checks
//! the other's [`PeerCredentials`].

use crate::descriptor;
use crate::signal::Signal;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Two connected sockets, both closed on exec.
///
/// # Errors
/// That of the system.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: space for two descriptors.
    let mut made = |kind| unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) };
    if with_flags(libc::SOCK_CLOEXEC, &mut made) != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptors were just opened, so nothing else owns them.
    unsafe { descriptor::opened_pair(fds) }
}

/// The address of this name in the abstract namespace, and its length.
pub(crate) fn address(name: &str) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: all-zero is a valid address; its path then starts with the zero that marks the
    // abstract namespace.
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

/// What `made` returns for a type of sockets with these flags; without them where the kernel
/// knows none (Linux before 2.6.27), which fails with `EINVAL`.
fn with_flags(flags: i32, mut made: impl FnMut(i32) -> i32) -> i32 {
    match made(libc::SOCK_SEQPACKET | flags) {
        -1 if crate::errno() == libc::EINVAL => made(libc::SOCK_SEQPACKET),
        returned => returned,
    }
}

/// A socket, closed on exec.
fn unconnected() -> io::Result<OwnedFd> {
    // SAFETY: touches no memory.
    let made = |kind| unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    // SAFETY: the descriptor was just opened, so nothing else owns it.
    unsafe { descriptor::opened(with_flags(libc::SOCK_CLOEXEC, made)) }
}

/// A socket that listens under this name, closed on exec, for at most `backlog` connections
/// that are not accepted yet.
///
/// # Errors
/// That of the system; `InvalidInput` if the name is too long.
pub fn listen(name: &str, backlog: u32) -> io::Result<OwnedFd> {
    let (a, len) = address(name)?;
    let fd = unconnected()?;
    set_nonblocking(fd.as_fd())?;
    // SAFETY: an address of the stated length.
    let bound = unsafe { libc::bind(fd.as_raw_fd(), (&raw const a).cast(), len) == 0 };
    let backlog = backlog.min(i32::MAX as u32) as i32;
    // SAFETY: touches no memory.
    if !bound || unsafe { libc::listen(fd.as_raw_fd(), backlog) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(fd)
}

/// What the program itself has done, if this error of a call on an open socket says so.
pub fn fault_of_program(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EFAULT => Some("has named memory that is not mapped"),
        libc::EBADF | libc::ENOTSOCK => Some("has closed a descriptor of this library"),
        _ => None,
    }
}

/// The next connection, closed on exec.
///
/// # Errors
/// That of the system; `WouldBlock` if there is no connection.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let (fd, null) = (listener.as_raw_fd(), core::ptr::null_mut::<libc::sockaddr>());
    let none = core::ptr::null_mut::<libc::socklen_t>();
    // SAFETY: null says that the address of the other side is not wanted.
    let new = unsafe { libc::syscall(libc::SYS_accept4, fd, null, none, libc::SOCK_CLOEXEC) };
    // Linux before 2.6.28. SAFETY: as above.
    let fd = descriptor::or_older(new, || unsafe { libc::accept(fd, null, none) });
    // SAFETY: the descriptor was just opened, so nothing else owns it.
    unsafe { descriptor::opened(fd) }
}

/// Connects to the process that listens under this name. The socket is closed on exec.
///
/// # Errors
/// That of the system; `ConnectionRefused` if no process listens.
pub fn connect(name: &str) -> io::Result<OwnedFd> {
    let (a, len) = address(name)?;
    let fd = unconnected()?;
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

/// The process at the other end of a connection, as the kernel recorded it when the connection
/// was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Its process.
    pub pid: u32,
    /// Its effective user.
    pub uid: u32,
}

/// The process at the other end.
///
/// # Errors
/// That of the system.
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

/// The control message that carries descriptors.
#[repr(C)]
struct Rights {
    head: libc::cmsghdr,
    fds: [RawFd; MOST_FDS],
}

/// Where the descriptors begin in [`Rights`], in bytes; C's `CMSG_LEN(0)`.
const RIGHTS_HEAD: usize = core::mem::offset_of!(Rights, fds);

/// The control message that names the sender of a message.
#[repr(C)]
struct Sender {
    head: libc::cmsghdr,
    credentials: libc::ucred,
}

/// Calls `call` with the header of a message that has these bytes and, as its control message,
/// the first `length` bytes of `control`.
fn with_header<C, R>(
    control: &mut C,
    bytes: &mut libc::iovec,
    length: usize,
    call: impl FnOnce(&mut libc::msghdr) -> R,
) -> R {
    // SAFETY: all-zero is a valid header.
    let mut header: libc::msghdr = unsafe { core::mem::zeroed() };
    header.msg_iov = bytes;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut *control).cast();
    header.msg_controllen = length as _;
    call(&mut header)
}

/// Sends one message together with descriptors, at most 4, without waiting.
///
/// # Errors
/// That of the system; `InvalidInput` if there are more than 4.
pub fn send_fds(fd: BorrowedFd<'_>, message: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    if fds.len() > MOST_FDS {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: all-zero is valid: integers.
    let mut rights: Rights = unsafe { core::mem::zeroed() };
    let length = RIGHTS_HEAD + size_of_val(fds);
    rights.head.cmsg_level = libc::SOL_SOCKET;
    rights.head.cmsg_type = libc::SCM_RIGHTS;
    rights.head.cmsg_len = length as _;
    for (to, from) in rights.fds.iter_mut().zip(fds) {
        *to = from.as_raw_fd();
    }
    let base = message.as_ptr().cast_mut().cast();
    let mut bytes = libc::iovec { iov_base: base, iov_len: message.len() };
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    let sent = with_header(&mut rights, &mut bytes, length, |header| {
        // SAFETY: the header names live buffers and their lengths; they are only read.
        unsafe { libc::sendmsg(fd.as_raw_fd(), header, flags) }
    });
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits for one message and the descriptors that come with it, which are closed on exec. The
/// length is 0 if the peer has hung up.
///
/// # Errors
/// That of the system.
pub fn receive_fds(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    // SAFETY: all-zero is valid: integers.
    let mut rights: Rights = unsafe { core::mem::zeroed() };
    let base = buffer.as_mut_ptr().cast();
    let mut bytes = libc::iovec { iov_base: base, iov_len: buffer.len() };
    let (n, control) = with_header(&mut rights, &mut bytes, size_of::<Rights>(), |header| {
        // SAFETY: the header names live, writable buffers and their lengths.
        let n = unsafe { libc::recvmsg(fd.as_raw_fd(), header, libc::MSG_CMSG_CLOEXEC) };
        #[allow(clippy::unnecessary_cast, reason = "another type in other C libraries")]
        let control = header.msg_controllen as usize;
        (n, control)
    });
    let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    let head = &rights.head;
    let carries = control >= RIGHTS_HEAD
        && (head.cmsg_level, head.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS);
    let data = if carries { (head.cmsg_len as usize).saturating_sub(RIGHTS_HEAD) } else { 0 };
    let numbers = rights.fds.iter().take(data / size_of::<RawFd>());
    // SAFETY: the kernel has just opened these descriptors for this message, so nothing else
    // owns them.
    let fds: Vec<_> = numbers.map(|&fd| unsafe { descriptor::opened(fd) }).collect();
    Ok((n, fds.into_iter().collect::<io::Result<_>>()?))
}

/// Sends one message. With `wait`, waits while the peer's buffer is full. Async-signal-safe.
///
/// # Errors
/// That of the system, `WouldBlock` if the buffer is full. A peer that has closed its end is an
/// error, never SIGPIPE.
pub fn send(fd: BorrowedFd<'_>, message: &[u8], wait: bool) -> io::Result<()> {
    let flags = libc::MSG_NOSIGNAL | if wait { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: the pointer and length are those of a live slice.
    match unsafe { libc::send(fd.as_raw_fd(), message.as_ptr().cast(), message.len(), flags) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Receives one message and returns its length; 0 if the peer has hung up. With `wait`, waits
/// for one. Async-signal-safe.
///
/// # Errors
/// That of the system; `WouldBlock` if there is no message.
pub fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8], wait: bool) -> io::Result<usize> {
    let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: the pointer and length are those of a live slice.
    match unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) } {
        -1 => Err(io::Error::last_os_error()),
        n => Ok(n as usize),
    }
}

/// Has the kernel note the sender of each message that this socket receives.
///
/// # Errors
/// That of the system.
pub fn note_senders(fd: BorrowedFd<'_>) -> io::Result<()> {
    let on: i32 = 1;
    // SAFETY: a live int and its size.
    let r = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PASSCRED,
            (&raw const on).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if r != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives one message without waiting. Returns its length, 0 if the peer has hung up, and the
/// process that sent it, by the number that it has for this process. The number is 0 after no
/// [`note_senders`], and for a process that this one cannot see.
///
/// # Errors
/// That of the system; `WouldBlock` if there is no message.
pub fn receive_from(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, u32)> {
    // SAFETY: all-zero is valid: integers.
    let mut sender: Sender = unsafe { core::mem::zeroed() };
    let mut bytes = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let n = with_header(&mut sender, &mut bytes, size_of::<Sender>(), |header| {
        // SAFETY: the header names live, writable buffers and their lengths.
        unsafe { libc::recvmsg(fd.as_raw_fd(), header, libc::MSG_DONTWAIT) }
    });
    let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    let kind = (sender.head.cmsg_level, sender.head.cmsg_type);
    let is_known = kind == (libc::SOL_SOCKET, libc::SCM_CREDENTIALS);
    Ok((n, if is_known { sender.credentials.pid as u32 } else { 0 }))
}

/// Makes the kernel send a signal to this process whenever something happens on the socket;
/// `None` ends that. Async-signal-safe.
///
/// # Errors
/// That of the system.
pub fn signal_on_event(fd: BorrowedFd<'_>, signal: Option<Signal>) -> io::Result<()> {
    match signal {
        None => set_flags(fd, |flags| flags & !libc::O_ASYNC),
        Some(signal) => {
            control(fd, libc::F_SETOWN, crate::process::pid() as i32)?;
            control(fd, F_SETSIG, signal.number())?;
            set_flags(fd, |flags| flags | libc::O_ASYNC)
        }
    }
}

/// Makes calls on this descriptor return at once.
///
/// # Errors
/// That of the system.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_flags(fd, |flags| flags | libc::O_NONBLOCK)
}

/// Changes the status flags of a descriptor. Async-signal-safe.
fn set_flags(fd: BorrowedFd<'_>, change: impl FnOnce(i32) -> i32) -> io::Result<()> {
    let flags = control(fd, libc::F_GETFL, 0)?;
    control(fd, libc::F_SETFL, change(flags)).map(drop)
}

/// Calls fcntl with a command that takes an int.
fn control(fd: BorrowedFd<'_>, command: i32, value: i32) -> io::Result<i32> {
    // SAFETY: touches no memory: the commands that are passed here take an int.
    match unsafe { libc::fcntl(fd.as_raw_fd(), command, value) } {
        -1 => Err(io::Error::last_os_error()),
        returned => Ok(returned),
    }
}

/// The same number on every architecture of Linux.
const F_SETSIG: i32 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll;
    use std::os::fd::AsFd;

    #[test]
    fn descriptors_begin_where_c_says() {
        // SAFETY: computes a size.
        assert_eq!(RIGHTS_HEAD, unsafe { libc::CMSG_LEN(0) } as usize);
    }

    #[test]
    fn messages_and_hang_up() {
        let (a, b) = pair().unwrap();
        send(a.as_fd(), b"one", true).unwrap();
        send(a.as_fd(), b"three", false).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(receive(b.as_fd(), &mut buffer, true).unwrap(), 3);
        assert_eq!(receive(b.as_fd(), &mut buffer, true).unwrap(), 5);
        assert_eq!(
            receive(b.as_fd(), &mut buffer, false).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        assert!(!poll::hung_up(b.as_fd()));
        drop(a);
        assert!(poll::hung_up(b.as_fd()));
        assert_eq!(receive(b.as_fd(), &mut buffer, true).unwrap(), 0);
        assert!(send(b.as_fd(), b"x", true).is_err());
    }

    #[test]
    fn a_message_has_a_sender() {
        let (a, b) = pair().unwrap();
        let mut buffer = [0; 8];
        send(a.as_fd(), b"one", true).unwrap();
        assert_eq!(receive_from(b.as_fd(), &mut buffer).unwrap(), (3, 0));
        note_senders(b.as_fd()).unwrap();
        // SAFETY: the child makes system calls only.
        let crate::child::Forked::Parent(child) = unsafe { crate::child::fork() }.unwrap() else {
            let sent = send(a.as_fd(), b"four", true);
            crate::exit_now(i32::from(sent.is_err()))
        };
        crate::child::await_child(child);
        assert_eq!(receive_from(b.as_fd(), &mut buffer).unwrap(), (4, child));
        drop(a);
        assert_eq!(receive_from(b.as_fd(), &mut buffer).unwrap().0, 0);
    }

    #[test]
    fn descriptors_travel_and_peers_are_known() {
        let name = format!("gasnet-test-{}", crate::process::pid());
        let listener = listen(&name, 1).unwrap();
        assert_eq!(accept(listener.as_fd()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let a = connect(&name).unwrap();
        let b = accept(listener.as_fd()).unwrap();
        assert_eq!(
            credentials(a.as_fd()).unwrap(),
            PeerCredentials { pid: crate::process::pid(), uid: crate::process::user() }
        );
        let (from, to) = descriptor::pipe().unwrap();
        send_fds(b.as_fd(), b"here", &[to.as_fd()]).unwrap();
        drop(to);
        let mut buffer = [0; 8];
        let (n, mut fds) = receive_fds(a.as_fd(), &mut buffer).unwrap();
        assert_eq!((&buffer[..n], fds.len()), (&b"here"[..], 1));
        assert!(!poll::readable(from.as_fd()));
        drop(fds.pop());
        assert_eq!(descriptor::read(from.as_raw_fd(), &mut buffer).unwrap(), 0);
        drop(listener);
        assert!(connect(&name).is_err());
    }
}
