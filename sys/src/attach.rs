//! Cross-memory attach: copying to and from the memory of another process. Called by
//! `portals3`, for memory that is not shared, and by the program `gasnet_info`, which tests
//! whether the system allows it. [`peek`] copies memory of this process itself; called by
//! `trace` and `tools`.
//!
//! The caller must pass valid local memory. The kernel refuses a wrong remote address, and the
//! call returns that as a failure. The process may be the calling one: then a pipe copies where
//! the system denies cross-memory attach.

use crate::child::{self, Ended, Forked};
use crate::clock;
use crate::descriptor;
use crate::process;
use crate::signal::{self, Signal};
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

/// Why bytes could not be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachFailure {
    /// An address names no memory, or memory that may not be read, or not be written.
    Address,
    /// The system denies access to the memory of the process.
    Denied,
    /// The process has ended, or the system lacks the call.
    Process,
}

/// Copies `length` bytes from address `from` of process `pid` to `to`.
///
/// # Errors
/// Not all bytes were copied.
///
/// # Safety
/// `to` must be valid for writes of `length` bytes.
#[inline]
pub unsafe fn read(pid: u32, from: u64, to: *mut u8, length: usize) -> Result<(), AttachFailure> {
    // SAFETY: the kernel writes `length` bytes at `to` (`# Safety`).
    unsafe { copy(false, pid, to, from, length) }
}

/// Copies `length` bytes at `from` to address `to` of process `pid`.
///
/// # Errors
/// Not all bytes were copied.
///
/// # Safety
/// `from` must be valid for reads of `length` bytes.
#[inline]
pub unsafe fn write(
    pid: u32,
    to: u64,
    from: *const u8,
    length: usize,
) -> Result<(), AttachFailure> {
    // SAFETY: the kernel reads `length` bytes at `from` (`# Safety`).
    unsafe { copy(true, pid, from.cast_mut(), to, length) }
}

/// Copies to address `remote` of a process if `write`, else from there.
///
/// # Safety
/// `local` must be valid for `length` bytes: for reads if `write`, else for writes.
#[inline(always)]
unsafe fn copy(
    write: bool,
    pid: u32,
    local: *mut u8,
    remote: u64,
    length: usize,
) -> Result<(), AttachFailure> {
    let here = [iovec(local.expose_provenance() as u64, length)];
    // SAFETY: the bytes at `local` are valid (`# Safety`).
    let moved = unsafe { transfer(write, pid, &here, &[iovec(remote, length)]) };
    match usize::try_from(moved) == Ok(length) {
        true => Ok(()),
        // SAFETY: as above.
        false => unsafe { copy_rest(write, pid, local, remote, length, moved) },
    }
}

/// [`copy`], of which a first system call has moved some bytes or failed.
///
/// # Safety
/// As [`copy`].
#[cold]
#[inline(never)]
unsafe fn copy_rest(
    write: bool,
    pid: u32,
    local: *mut u8,
    remote: u64,
    length: usize,
    mut moved: isize,
) -> Result<(), AttachFailure> {
    let (here, mut done) = (local.expose_provenance() as u64, 0);
    let failure = loop {
        match usize::try_from(moved) {
            Ok(n) if n > 0 => done += n,
            _ => break failure(),
        }
        if done == length {
            return Ok(());
        }
        let (local, remote) = (here.wrapping_add(done as u64), remote.wrapping_add(done as u64));
        let (local, remote) = (iovec(local, length - done), iovec(remote, length - done));
        // SAFETY: what is left of the bytes at `local`, which are valid (`# Safety`).
        moved = unsafe { transfer(write, pid, &[local], &[remote]) };
    };
    if failure != AttachFailure::Address && pid == process::pid() {
        let (from, to) = if write { (here, remote) } else { (remote, here) };
        // SAFETY: the bytes at `local` are valid (`# Safety`); the other side is that of a remote
        // operation.
        return unsafe { through_pipe(length, from, to) }.1;
    }
    Err(failure)
}

/// A piece of memory of this process, and where it goes to or comes from.
#[derive(Clone, Copy, Debug)]
pub struct AttachPiece {
    /// First byte here.
    pub local: *mut u8,
    /// First byte in the other process.
    pub remote: u64,
    /// Bytes.
    pub length: usize,
}

/// Pieces that one system call moves; the kernel takes 1,024.
pub const PIECES_PER_CALL: usize = 256;

/// Copies pieces to process `pid`, or from it unless `write`, in as few system calls as possible.
///
/// # Errors
/// Not all were copied: why, and the number of the first that was not.
///
/// # Safety
/// The pieces must be readable if they are written there, else writable.
pub unsafe fn move_pieces(
    pid: u32,
    write: bool,
    mut pieces: impl Iterator<Item = AttachPiece>,
) -> Result<(), (AttachFailure, usize)> {
    let (mut here, mut there) = ([iovec(0, 0); PIECES_PER_CALL], [iovec(0, 0); PIECES_PER_CALL]);
    let mut before = 0;
    loop {
        let (mut count, mut bytes) = (0, 0);
        for piece in pieces.by_ref().take(PIECES_PER_CALL) {
            here[count] = iovec(piece.local.expose_provenance() as u64, piece.length);
            there[count] = iovec(piece.remote, piece.length);
            bytes += piece.length;
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        // SAFETY: the local sides are valid (`# Safety`), the kernel checks the others.
        let moved = unsafe { transfer(write, pid, &here[..count], &there[..count]) };
        // A call that has moved fewer ends at an address that is wrong, or at 2 GiB: one by one.
        if usize::try_from(moved) != Ok(bytes) {
            for (i, (here, there)) in here[..count].iter().zip(&there[..count]).enumerate() {
                let (local, n) = (here.iov_base.cast::<u8>(), here.iov_len);
                // SAFETY: as above.
                let moved = unsafe { copy(write, pid, local, there.iov_base.addr() as u64, n) };
                moved.map_err(|failure| (failure, before + i))?;
            }
        }
        before += count;
    }
}

/// A pipe that copies bytes of the process that made it.
struct OwnPipe {
    /// Process that made it: a forked child makes its own.
    maker: u32,
    /// What tells it from all other files.
    identity: [u64; 2],
    end: OwnedFd,
    start: OwnedFd,
}

impl OwnPipe {
    /// `None` if the system has none.
    fn new() -> Option<OwnPipe> {
        let (end, start) = descriptor::pipe().ok()?;
        let identity = descriptor::identity(end.as_raw_fd())?;
        Some(OwnPipe { maker: process::pid(), identity, end, start })
    }

    /// The pipe, if both ends are open and this process made it. The program may have closed
    /// their numbers, and have opened others there, which stay open.
    fn still_open(self) -> Option<OwnPipe> {
        let is_ours = |fd: &OwnedFd| descriptor::identity(fd.as_raw_fd()) == Some(self.identity);
        match (is_ours(&self.end), is_ours(&self.start)) {
            (true, true) => Some(self).filter(|pipe| pipe.maker == process::pid()),
            (end, start) => {
                for (fd, is_ours) in [(self.end, end), (self.start, start)] {
                    if !is_ours {
                        let _ = fd.into_raw_fd();
                    }
                }
                None
            }
        }
    }
}

/// The pipe of this process, empty between two uses.
static OWN_PIPE: Mutex<Option<OwnPipe>> = Mutex::new(None);

/// Copies bytes of this process: the kernel checks both addresses. Returns how many, from the
/// first on, were copied.
///
/// # Safety
/// As far as the kernel can write the `length` bytes at `to`, they must be those of a live slice,
/// or the remote side of an operation.
unsafe fn through_pipe(length: usize, from: u64, to: u64) -> (usize, Result<(), AttachFailure>) {
    // Where another thread uses it, or a signal handler interrupted its user, a pipe is made.
    let mut kept = OWN_PIPE.try_lock().ok();
    let own = kept.as_mut().and_then(|kept| kept.take());
    let Some(pipe) = own.and_then(OwnPipe::still_open).or_else(OwnPipe::new) else {
        return (0, Err(AttachFailure::Process));
    };
    let (end, start) = (pipe.end.as_raw_fd(), pipe.start.as_raw_fd());
    // SAFETY: as here (`# Safety`).
    let (done, copied) = unsafe { copy_by(end, start, length, from, to) };
    // After a failure the pipe may hold bytes.
    if copied.is_ok()
        && let Some(kept) = &mut kept
    {
        **kept = Some(pipe);
    }
    (done, copied)
}

/// [`through_pipe`], through this one, which takes a page at least.
///
/// # Safety
/// As [`through_pipe`].
unsafe fn copy_by(
    end: RawFd,
    start: RawFd,
    length: usize,
    from: u64,
    to: u64,
) -> (usize, Result<(), AttachFailure>) {
    let at = |address: u64, done| iovec(address.wrapping_add(done as u64), 0).iov_base;
    let mut done = 0;
    while done < length {
        let n = (length - done).min(4096);
        // SAFETY: the kernel checks the memory, which it only reads.
        let n = unsafe { libc::write(start, at(from, done), n) };
        let Ok(n) = usize::try_from(n) else { return (done, Err(failure())) };
        // SAFETY: the kernel checks the memory, which may be written (`# Safety`).
        let taken = unsafe { libc::read(end, at(to, done), n) };
        if usize::try_from(taken) != Ok(n) {
            return (done, Err(failure()));
        }
        done += n;
    }
    (done, Ok(()))
}

/// What the last system call failed of.
fn failure() -> AttachFailure {
    match crate::errno() {
        libc::EFAULT => AttachFailure::Address,
        libc::EPERM => AttachFailure::Denied,
        _ => AttachFailure::Process,
    }
}

/// One of the two system calls. They fail on Linux before 3.2: peers are then sent frames, and
/// [`peek`] uses a pipe.
///
/// # Safety
/// The kernel must be allowed to copy from `local` if `write`, else to it.
#[inline(always)]
unsafe fn transfer(write: bool, pid: u32, local: &[libc::iovec], remote: &[libc::iovec]) -> isize {
    let call = if write { libc::SYS_process_vm_writev } else { libc::SYS_process_vm_readv };
    let (here, there) = (local.len() as libc::c_ulong, remote.len() as libc::c_ulong);
    let (local, remote) = (local.as_ptr(), remote.as_ptr());
    // SAFETY: live descriptions of memory. The kernel may use `local` (`# Safety`) and checks
    // `remote`.
    unsafe { libc::syscall(call, pid, local, here, remote, there, 0 as libc::c_ulong) as isize }
}

/// Bytes at an address that the kernel checks, or that is a pointer's.
#[inline(always)]
fn iovec(address: u64, length: usize) -> libc::iovec {
    let at = core::ptr::with_exposed_provenance_mut(address as usize);
    libc::iovec { iov_base: at, iov_len: length }
}

/// Copies memory of this process that it may not be allowed to read, as an address that the client
/// passed. Returns how many bytes, from the first on, were copied. Needs a pipe where the system
/// denies cross-memory attach.
pub fn peek(from: *const u8, to: &mut [u8]) -> usize {
    let (from, here) = (from.addr() as u64, to.as_mut_ptr().expose_provenance() as u64);
    let (local, remote) = (iovec(here, to.len()), iovec(from, to.len()));
    // SAFETY: `local` is a live slice.
    let n = unsafe { transfer(false, process::pid(), &[local], &[remote]) };
    match usize::try_from(n) {
        Ok(n) => n,
        Err(_) if crate::errno() == libc::EFAULT => 0,
        // SAFETY: a live slice.
        Err(_) => unsafe { through_pipe(to.len(), from, here) }.0,
    }
}

/// Whether this process may read, or also write, all of the `length` bytes from address `at` on. A
/// byte of each page is tried; with `write` it is stored again.
pub fn is_accessible(at: u64, length: u64, write: bool) -> bool {
    let (me, page) = (process::pid(), 4096);
    let Some(last) = length.checked_sub(1).and_then(|rest| at.checked_add(rest)) else {
        return length == 0;
    };
    let mut next = at;
    loop {
        let mut byte = 0u8;
        // SAFETY: a live byte.
        let mut tried = unsafe { read(me, next, &raw mut byte, 1) };
        if write && tried.is_ok() {
            // SAFETY: as above.
            tried = unsafe { self::write(me, next, &raw const byte, 1) };
        }
        if tried.is_err() {
            return false;
        }
        next = match (next / page + 1).checked_mul(page) {
            Some(start) if start <= last => start,
            _ => return true,
        };
    }
}

/// Which processes may trace this one, and so copy from and to its memory, where the system has
/// them ask (Yama's `ptrace_scope` 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracers {
    /// The descendants of this process.
    Descendants(u32),
    /// Every process of this user.
    All,
}

/// Whether [`admit`] was called.
static ADMITTED: AtomicBool = AtomicBool::new(false);

/// Admits processes, which keep the permission until this one ends.
pub fn admit(tracers: Tracers) {
    let tracer = match tracers {
        Tracers::Descendants(pid) => libc::c_ulong::from(pid),
        Tracers::All => libc::PR_SET_PTRACER_ANY,
    };
    // SAFETY: touches no memory; it fails on systems that need no permission.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, tracer, 0, 0, 0) };
    ADMITTED.store(true, Ordering::Relaxed);
}

/// Admits a child, unless [`admit`] has admitted others, and with them the children. Async-signal-
/// safe.
pub(crate) fn admit_child(pid: u32) {
    if !ADMITTED.load(Ordering::Relaxed) {
        // SAFETY: as in `admit`.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(pid), 0, 0, 0) };
    }
}

/// Why the system denies cross-memory attach between processes of a user, as far as this process
/// can find out.
pub fn denial() -> String {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let scope = scope.ok().and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0);
    let (mut from, mut to) = (1u8, 0u8);
    let byte = |at: &mut u8| iovec((at as *mut u8).expose_provenance() as u64, 1);
    let (local, remote) = (byte(&mut to), byte(&mut from));
    // SAFETY: two live bytes.
    let own = unsafe { transfer(false, process::pid(), &[local], &[remote]) };
    match (own, scope) {
        (1, 1..) => format!("ptrace_scope is {scope}"),
        (1, 0) => "the ranks are in different user namespaces, or of different users".into(),
        _ if crate::errno() == libc::ENOSYS => {
            "this kernel has no process_vm_readv, or a filter of \
            system calls (seccomp) says so"
                .into()
        }
        _ => "a filter of system calls (seccomp) denies process_vm_readv".into(),
    }
}

/// Whether two processes with a common parent may read each other's memory once they have admitted
/// each other, as the ranks of a job do. Found by trying.
pub fn allowed_between_siblings() -> bool {
    const TRIES: u32 = 50;
    static WORD: u32 = 0x600D;
    // SAFETY: the child makes system calls only, which need no lock.
    let one = match unsafe { child::fork() } {
        Ok(Forked::Parent(one)) => one,
        Ok(Forked::Child) => {
            admit(Tracers::Descendants(process::parent()));
            loop {
                signal::pause();
            }
        }
        Err(_) => return false,
    };
    // SAFETY: as above.
    let two = unsafe { child::fork() };
    if matches!(two, Ok(Forked::Child)) {
        let mut copy = 0u32;
        // SAFETY: `copy` is live and has four bytes.
        let mut read =
            || unsafe { read(one, (&raw const WORD).addr() as u64, (&raw mut copy).cast(), 4) };
        // The other may not have admitted this one yet.
        let mut tries = 0;
        while read().is_err() && tries < TRIES {
            clock::sleep_ns(1_000_000);
            tries += 1;
        }
        crate::exit_now(i32::from(copy != WORD));
    }
    let allowed = match two {
        Ok(Forked::Parent(two)) => child::await_child(two) == Ended::Exited(0),
        _ => false,
    };
    process::kill(one, Signal::KILL);
    child::await_child(one);
    allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_to_and_from_a_process() {
        let (mut far, mut near) = ([1u8, 2, 3], [0u8; 3]);
        let address = far.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: a live array of three bytes.
        assert_eq!(unsafe { read(process::pid(), address, near.as_mut_ptr(), 3) }, Ok(()));
        assert_eq!(near, [1, 2, 3]);
        // SAFETY: as above.
        assert_eq!(unsafe { write(process::pid(), address, [4u8, 5].as_ptr(), 2) }, Ok(()));
        assert_eq!(far, [4, 5, 3]);
        let nowhere = Err(AttachFailure::Address);
        // SAFETY: as above; address 0 is refused.
        assert_eq!(unsafe { read(process::pid(), 0, near.as_mut_ptr(), 3) }, nowhere);
        // SAFETY: as above; no process has number 0.
        let no_process = unsafe { read(0, address, near.as_mut_ptr(), 3) };
        assert_eq!(no_process, Err(AttachFailure::Process));
    }

    #[test]
    fn pieces_are_moved_until_one_is_refused() {
        let (from, mut to) = ((0..600u16).collect::<Vec<_>>(), vec![0u16; 600]);
        let to_at = to.as_mut_ptr().expose_provenance() as u64;
        let piece = |i: usize, at: u64| AttachPiece {
            local: from.as_ptr().wrapping_add(i).cast_mut().cast(),
            remote: at + 2 * i as u64,
            length: 2,
        };
        let all = (0..600).rev().map(|i| piece(i, to_at));
        // SAFETY: words of two live lists.
        assert_eq!(unsafe { move_pieces(process::pid(), true, all) }, Ok(()));
        assert_eq!(from, to);
        let wrong = (0..600).map(|i| piece(i, if i == 300 { 0 } else { to_at }));
        // SAFETY: as above; the kernel refuses the low address.
        let refused = unsafe { move_pieces(process::pid(), true, wrong) };
        assert_eq!(refused, Err((AttachFailure::Address, 300)));
    }

    #[test]
    fn a_pipe_copies_and_checks_as_the_kernel_does() {
        static READ_ONLY: [u8; 4] = [9; 4];
        let (from, mut to) = (vec![7u8; 10_000], vec![0u8; 10_000]);
        let to_at = to.as_mut_ptr().expose_provenance();
        // SAFETY: a live list, or memory that the kernel does not write.
        let copy = |from: usize, to: usize, n| unsafe { through_pipe(n, from as u64, to as u64) };
        assert_eq!(copy(from.as_ptr().addr(), to_at, 10_000), (10_000, Ok(())));
        assert_eq!(from, to);
        for (from, to) in [(0, to_at), (to_at, 0), (to_at, READ_ONLY.as_ptr().addr())] {
            assert_eq!(copy(from, to, 4), (0, Err(AttachFailure::Address)));
        }
    }

    /// In a child, since other tests open descriptors.
    #[test]
    fn a_pipe_that_the_program_has_closed_is_made_anew() {
        // SAFETY: the child makes descriptors, touches its own memory and ends.
        let Forked::Parent(child) = unsafe { child::fork() }.unwrap() else {
            crate::exit_now(copies_after_closing());
        };
        assert_eq!(child::await_child(child), Ended::Exited(0));
    }

    /// 0, or what went wrong.
    fn copies_after_closing() -> i32 {
        // Another thread may have held it at the fork.
        let Ok(mut kept) = OWN_PIPE.try_lock() else { return 0 };
        *kept = None;
        drop(kept);
        let copy = || {
            let (from, mut to) = ([5u8; 9], [0u8; 9]);
            let to_at = to.as_mut_ptr().expose_provenance() as u64;
            // SAFETY: two live arrays.
            let copied = unsafe { through_pipe(9, from.as_ptr().addr() as u64, to_at) };
            copied == (9, Ok(())) && to == from
        };
        let numbers = || {
            let kept = OWN_PIPE.lock().unwrap();
            kept.as_ref().map(|p| [p.end.as_raw_fd(), p.start.as_raw_fd()]).unwrap()
        };
        if !copy() {
            return 1;
        }
        for closed in [[true, true], [true, false], [false, true]] {
            let fds = numbers();
            let (own_end, own_start) = descriptor::pipe().unwrap();
            for (fd, closed) in fds.into_iter().zip(closed) {
                if closed {
                    // SAFETY: the program's mistake that is tested; another file has the number.
                    unsafe { libc::dup2(own_end.as_raw_fd(), fd) };
                }
            }
            let (id, others) = (descriptor::identity(own_start.as_raw_fd()), numbers());
            if !copy() || numbers() == others {
                return 2;
            }
            // The program's descriptors are open, and the other end of the old pipe is not.
            for (fd, closed) in fds.into_iter().zip(closed) {
                let now = descriptor::identity(fd);
                if closed && now != id || !closed && now.is_some() && !numbers().contains(&fd) {
                    return 3;
                }
            }
        }
        0
    }

    #[test]
    fn peeks_at_what_can_be_read() {
        let page = crate::memory::page_size();
        let file = crate::memory::MemFd::create(c"peek").unwrap();
        file.set_len(page as u64).unwrap();
        // The second page is beyond the end of the file.
        let mapping = file.map(0, 2 * page).unwrap();
        let end = mapping.as_ptr().wrapping_add(page - 2);
        let by_pipe = |from: *const u8, to: &mut [u8]| {
            let here = to.as_mut_ptr().expose_provenance();
            // SAFETY: a live slice.
            unsafe { through_pipe(to.len(), from.addr() as u64, here as u64) }.0
        };
        for peek in [peek, by_pipe] {
            let (bytes, mut copy) = ([7u8; 5000], [1; 5000]);
            assert_eq!(peek(bytes.as_ptr(), &mut copy), bytes.len());
            assert_eq!(copy, bytes);
            assert_eq!(peek(core::ptr::null(), &mut copy[..4]), 0);
            assert_eq!(peek(bytes.as_ptr(), &mut []), 0);
            let n = peek(end, &mut copy[..4]);
            assert!(n <= 2 && copy[..4] == [[7, 7, 7, 7], [0, 7, 7, 7], [0, 0, 7, 7]][n]);
        }
    }
}
