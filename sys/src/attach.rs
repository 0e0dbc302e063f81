//! Cross-memory attach: copying to and from the memory of another process. Called by
//! `portals3`, for memory that is not shared, and by the program `gasnet_info`, which tests
//! whether the system allows it. [`peek`] copies memory of this process itself; called by
//! `trace` and `tools`.
//!
//! The caller must pass valid local memory. The kernel refuses a wrong remote address, and the
//! call returns that as a failure.

use crate::child::{self, Ended, Forked};
use crate::descriptor;
use crate::process;
use crate::signal::{self, Signal};
use std::os::fd::AsRawFd;

/// Copies `length` bytes from address `from` of process `pid` to `to`. Whether all bytes were
/// copied.
///
/// # Safety
/// `to` must be valid for writes of `length` bytes.
pub unsafe fn read(pid: u32, from: u64, to: *mut u8, length: usize) -> bool {
    until_all(length, |done| {
        let local = libc::iovec { iov_base: to.wrapping_add(done).cast(), iov_len: length - done };
        let remote = remote(from, done, length);
        // SAFETY: the kernel writes within `local`, which the caller has made sure of, and
        // checks `remote`.
        unsafe { transfer(libc::SYS_process_vm_readv, pid, &local, &remote) }
    })
}

/// Copies `length` bytes at `from` to address `to` of process `pid`. Whether all bytes were
/// copied.
///
/// # Safety
/// `from` must be valid for reads of `length` bytes.
pub unsafe fn write(pid: u32, to: u64, from: *const u8, length: usize) -> bool {
    until_all(length, |done| {
        let from = from.wrapping_add(done).cast_mut().cast();
        let local = libc::iovec { iov_base: from, iov_len: length - done };
        let remote = remote(to, done, length);
        // SAFETY: the kernel reads within `local`, which the caller has made sure of, and
        // checks `remote`.
        unsafe { transfer(libc::SYS_process_vm_writev, pid, &local, &remote) }
    })
}

/// One of the two system calls. They fail on Linux before 3.2: peers are then sent frames, and
/// [`peek`] uses a pipe.
///
/// # Safety
/// The kernel must be allowed to copy from or to `local`.
unsafe fn transfer(
    call: libc::c_long,
    pid: u32,
    local: &libc::iovec,
    remote: &libc::iovec,
) -> isize {
    let one: libc::c_ulong = 1;
    // SAFETY: two live descriptions of memory; the caller answers for `local`, the kernel checks
    // `remote`.
    unsafe { libc::syscall(call, pid, local, one, remote, one, 0 as libc::c_ulong) as isize }
}

/// What is left of a remote range after `done` bytes.
fn remote(address: u64, done: usize, length: usize) -> libc::iovec {
    let at = (address as usize).wrapping_add(done);
    libc::iovec { iov_base: core::ptr::without_provenance_mut(at), iov_len: length - done }
}

/// Repeats a system call, which is given the number of bytes copied so far and returns how many
/// more it copied.
fn until_all(length: usize, mut call: impl FnMut(usize) -> isize) -> bool {
    let mut done = 0;
    while done < length {
        match call(done) {
            n if n > 0 => done += n as usize,
            _ => return false,
        }
    }
    true
}

/// Copies memory of this process that it may not be allowed to read, as an address that the client
/// passed. Returns how many bytes, from the first on, were copied. Needs a pipe where the system
/// denies cross-memory attach.
pub fn peek(from: *const u8, to: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: to.len() };
    let me = process::pid();
    // SAFETY: `local` is a live slice; the kernel checks `remote`.
    let n = unsafe { transfer(libc::SYS_process_vm_readv, me, &local, &remote) };
    match usize::try_from(n) {
        Ok(n) => n,
        Err(_) if crate::errno() == libc::EFAULT => 0,
        Err(_) => peek_through_pipe(from, to),
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

/// Whether two processes with a common parent may read each other's memory, as the ranks of a
/// job do: found by trying.
pub fn allowed_between_siblings() -> bool {
    static WORD: u32 = 0x600D;
    // SAFETY: the child makes system calls only, which need no lock.
    let one = match unsafe { child::fork() } {
        Ok(Forked::Parent(one)) => one,
        Ok(Forked::Child) => loop {
            signal::pause();
        },
        Err(_) => return false,
    };
    // SAFETY: as above.
    let two = unsafe { child::fork() };
    if matches!(two, Ok(Forked::Child)) {
        let mut copy = 0u32;
        // SAFETY: `copy` is live and has four bytes.
        let read =
            unsafe { read(one, (&raw const WORD).addr() as u64, (&raw mut copy).cast(), 4) };
        crate::exit_now(i32::from(!read || copy != WORD));
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
        assert!(unsafe { read(process::pid(), address, near.as_mut_ptr(), 3) });
        assert_eq!(near, [1, 2, 3]);
        // SAFETY: as above.
        assert!(unsafe { write(process::pid(), address, [4u8, 5].as_ptr(), 2) });
        assert_eq!(far, [4, 5, 3]);
        // SAFETY: as above; address 0 is refused.
        assert!(!unsafe { read(process::pid(), 0, near.as_mut_ptr(), 3) });
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
