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
use std::os::fd::AsRawFd;

/// Why bytes could not be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachFailure {
    /// An address names no memory, or memory that may not be read, or not be written.
    Address,
    /// The process has ended, or the system denies access to its memory.
    Process,
}

/// Copies `length` bytes from address `from` of process `pid` to `to`.
///
/// # Errors
/// Not all bytes were copied.
///
/// # Safety
/// `to` must be valid for writes of `length` bytes.
pub unsafe fn read(pid: u32, from: u64, to: *mut u8, length: usize) -> Result<(), AttachFailure> {
    let copied = until_all(length, |done| {
        let local = libc::iovec { iov_base: to.wrapping_add(done).cast(), iov_len: length - done };
        let remote = remote(from, done, length);
        // SAFETY: the kernel writes within `local`, which the caller has made sure of, and
        // checks `remote`.
        unsafe { transfer(libc::SYS_process_vm_readv, pid, &[local], &[remote]) }
    });
    match copied {
        Err(AttachFailure::Process) if pid == process::pid() => {
            through_pipe(length, |done| (from as usize + done, to.wrapping_add(done).addr()))
        }
        copied => copied,
    }
}

/// Copies `length` bytes at `from` to address `to` of process `pid`.
///
/// # Errors
/// Not all bytes were copied.
///
/// # Safety
/// `from` must be valid for reads of `length` bytes.
pub unsafe fn write(
    pid: u32,
    to: u64,
    from: *const u8,
    length: usize,
) -> Result<(), AttachFailure> {
    let copied = until_all(length, |done| {
        let from = from.wrapping_add(done).cast_mut().cast();
        let local = libc::iovec { iov_base: from, iov_len: length - done };
        let remote = remote(to, done, length);
        // SAFETY: the kernel reads within `local`, which the caller has made sure of, and
        // checks `remote`.
        unsafe { transfer(libc::SYS_process_vm_writev, pid, &[local], &[remote]) }
    });
    match copied {
        Err(AttachFailure::Process) if pid == process::pid() => {
            through_pipe(length, |done| (from.wrapping_add(done).addr(), to as usize + done))
        }
        copied => copied,
    }
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
const AT_ONCE: usize = 256;

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
    let call = if write { libc::SYS_process_vm_writev } else { libc::SYS_process_vm_readv };
    let none = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
    let (mut here, mut there) = ([none; AT_ONCE], [none; AT_ONCE]);
    let mut before = 0;
    loop {
        let (mut count, mut bytes) = (0, 0);
        for piece in pieces.by_ref().take(AT_ONCE) {
            here[count] = libc::iovec { iov_base: piece.local.cast(), iov_len: piece.length };
            there[count] = remote(piece.remote, 0, piece.length);
            bytes += piece.length;
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        // SAFETY: the caller answers for the local side, the kernel checks the other one.
        let moved = unsafe { transfer(call, pid, &here[..count], &there[..count]) };
        // A call that has moved fewer ends at an address that is wrong, or at 2 GiB: one by one.
        if usize::try_from(moved) != Ok(bytes) {
            for (i, (here, there)) in here[..count].iter().zip(&there[..count]).enumerate() {
                let (local, n) = (here.iov_base.cast::<u8>(), here.iov_len);
                let remote = there.iov_base.addr() as u64;
                let moved = match write {
                    // SAFETY: as above.
                    true => unsafe { self::write(pid, remote, local, n) },
                    // SAFETY: as above.
                    false => unsafe { read(pid, remote, local, n) },
                };
                moved.map_err(|failure| (failure, before + i))?;
            }
        }
        before += count;
    }
}

/// Copies `length` bytes of this process, from and to the addresses that `at` returns for the
/// number of bytes copied before: the kernel checks both. A pipe takes a page at least.
fn through_pipe(length: usize, at: impl Fn(usize) -> (usize, usize)) -> Result<(), AttachFailure> {
    let (end, start) = descriptor::pipe().map_err(|_| AttachFailure::Process)?;
    let mut done = 0;
    while done < length {
        let n = (length - done).min(4096);
        let (from, to) = at(done);
        let (from, to) = (core::ptr::without_provenance_mut(from), to);
        // SAFETY: the kernel checks the memory, which it only reads.
        let n = unsafe { libc::write(start.as_raw_fd(), from, n) };
        let Ok(n) = usize::try_from(n) else { return Err(failure()) };
        let to = core::ptr::without_provenance_mut(to);
        // SAFETY: the kernel checks the memory. It is that of an operation of a client, which
        // answers for it as for a store of its own.
        let taken = unsafe { libc::read(end.as_raw_fd(), to, n) };
        if usize::try_from(taken) != Ok(n) {
            return Err(failure());
        }
        done += n;
    }
    Ok(())
}

/// What the last system call failed of.
fn failure() -> AttachFailure {
    match crate::errno() {
        libc::EFAULT => AttachFailure::Address,
        _ => AttachFailure::Process,
    }
}

/// One of the two system calls. They fail on Linux before 3.2: peers are then sent frames, and
/// [`peek`] uses a pipe.
///
/// # Safety
/// The kernel must be allowed to copy from or to `local`.
unsafe fn transfer(
    call: libc::c_long,
    pid: u32,
    local: &[libc::iovec],
    remote: &[libc::iovec],
) -> isize {
    let (here, there) = (local.len() as libc::c_ulong, remote.len() as libc::c_ulong);
    let (local, remote) = (local.as_ptr(), remote.as_ptr());
    // SAFETY: live descriptions of memory; the caller answers for `local`, the kernel checks
    // `remote`.
    unsafe { libc::syscall(call, pid, local, here, remote, there, 0 as libc::c_ulong) as isize }
}

/// What is left of a remote range after `done` bytes.
fn remote(address: u64, done: usize, length: usize) -> libc::iovec {
    let at = (address as usize).wrapping_add(done);
    libc::iovec { iov_base: core::ptr::without_provenance_mut(at), iov_len: length - done }
}

/// Repeats a system call, which is given the number of bytes copied so far and returns how many
/// more it copied.
fn until_all(length: usize, mut call: impl FnMut(usize) -> isize) -> Result<(), AttachFailure> {
    let mut done = 0;
    while done < length {
        match call(done) {
            n if n > 0 => done += n as usize,
            _ => return Err(failure()),
        }
    }
    Ok(())
}

/// Copies memory of this process that it may not be allowed to read, as an address that the client
/// passed. Returns how many bytes, from the first on, were copied. Needs a pipe where the system
/// denies cross-memory attach.
pub fn peek(from: *const u8, to: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: to.len() };
    let me = process::pid();
    // SAFETY: `local` is a live slice; the kernel checks `remote`.
    let n = unsafe { transfer(libc::SYS_process_vm_readv, me, &[local], &[remote]) };
    match usize::try_from(n) {
        Ok(n) => n,
        Err(_) if crate::errno() == libc::EFAULT => 0,
        Err(_) => peek_through_pipe(from, to),
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

/// As [`peek`]: a pipe, which holds a page at least, takes what can be read.
fn peek_through_pipe(from: *const u8, to: &mut [u8]) -> usize {
    let Ok((end, start)) = descriptor::pipe() else { return 0 };
    let mut done = 0;
    for part in to.chunks_mut(4096) {
        let at = from.wrapping_add(done).cast();
        // SAFETY: the kernel checks the memory, which it only reads.
        let n = unsafe { libc::write(start.as_raw_fd(), at, part.len()) };
        let Ok(n) = usize::try_from(n) else { break };
        let Ok(n) = descriptor::read(end.as_raw_fd(), &mut part[..n]) else { break };
        done += n;
        if n < part.len() {
            break;
        }
    }
    done
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
    let local = libc::iovec { iov_base: (&raw mut to).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: (&raw mut from).cast(), iov_len: 1 };
    // SAFETY: two live bytes.
    let own = unsafe { transfer(libc::SYS_process_vm_readv, process::pid(), &[local], &[remote]) };
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
        let copy = |from: usize, to: usize, n| through_pipe(n, |done| (from + done, to + done));
        assert_eq!(copy(from.as_ptr().addr(), to_at, 10_000), Ok(()));
        assert_eq!(from, to);
        for (from, to) in [(0, to_at), (to_at, 0), (to_at, READ_ONLY.as_ptr().addr())] {
            assert_eq!(copy(from, to, 4), Err(AttachFailure::Address));
        }
    }

    #[test]
    fn peeks_at_what_can_be_read() {
        let page = crate::memory::page_size();
        let file = crate::memory::MemFd::create(c"peek").unwrap();
        file.set_len(page as u64).unwrap();
        // The second page is beyond the end of the file.
        let mapping = file.map(0, 2 * page).unwrap();
        let end = mapping.as_ptr().wrapping_add(page - 2);
        for peek in [peek, peek_through_pipe] {
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
