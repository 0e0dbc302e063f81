//! A fabric of processes of one host that share one memory file.
//!
//! The file has one arena per process, at `index * bytes`. Each process reserves its own part, so that running out of memory is an
//! error of [`Fabric::join`] rather than a signal later, and maps the whole.

use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{Nal, PeerState, Route};
use crate::arena::{Header, MAGIC};

/// Whether memory outside of arenas and segments may be reached with `process_vm_readv` and `process_vm_writev`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPolicy {
    /// Yes, if the operating system allows it (found by a probe).
    Allowed,
    /// No: such messages are framed.
    Denied,
}

/// What [`Fabric::join`] needs.
#[derive(Debug)]
pub struct FabricSpec {
    /// The memory file that all processes of the fabric share; empty at first, each process reserves its own part.
    pub arena: OwnedFd,
    /// Our number.
    pub index: u32,
    /// How many processes there are.
    pub size: u32,
    /// Arena bytes per process; rounded up to whole pages. The same everywhere.
    pub bytes: usize,
    /// Node id of this host.
    pub nid: u32,
    /// Job id.
    pub jid: u32,
    /// Cross-memory attach.
    pub attach: AttachPolicy,
}

/// One process's place in a shared memory file.
#[derive(Debug)]
pub struct Fabric {
    base: NonNull<u8>,
    /// Bytes of one arena.
    bytes: usize,
    index: u32,
    size: u32,
    nid: u32,
    jid: u32,
    attach: AttachPolicy,
}

// SAFETY: the pointer leads to a shared mapping that lives as long as the value.
unsafe impl Send for Fabric {}
// SAFETY: as above.
unsafe impl Sync for Fabric {}

impl Fabric {
    /// Reserves our part of the file and maps the whole of it. Peers may be addressed once they have opened their
    /// interfaces ([`crate::Interface::shm`]); the caller arranges for a barrier after that.
    pub fn join(spec: FabricSpec) -> io::Result<Fabric> {
        // SAFETY: has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let bytes = spec.bytes.checked_next_multiple_of(page).filter(|&b| b > 0).ok_or_else(invalid)?;
        let total = bytes.checked_mul(spec.size as usize).filter(|&t| t < 1 << 47).ok_or_else(invalid)?;
        if spec.index >= spec.size {
            return Err(invalid());
        }
        let file = spec.arena.as_raw_fd();
        // All agree on the length, so it does not matter who comes first; a part that its owner has not reserved
        // yet reads as zeros.
        // SAFETY: these calls touch no memory of ours.
        unsafe {
            if libc::ftruncate(file, total as libc::off_t) != 0 {
                return Err(io::Error::last_os_error());
            }
            let start = (bytes * spec.index as usize) as libc::off_t;
            while libc::fallocate(file, 0, start, bytes as libc::off_t) != 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
        // SAFETY: a new mapping, wherever the system likes.
        let base = unsafe {
            libc::mmap(ptr::null_mut(), total, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(invalid)?;
        let FabricSpec { index, size, nid, jid, attach, .. } = spec;
        Ok(Fabric { base, bytes, index, size, nid, jid, attach })
    }

    /// The arena of a process.
    fn part(&self, index: u32) -> NonNull<u8> {
        debug_assert!(index < self.size);
        // SAFETY: inside the mapping.
        unsafe { self.base.add(self.bytes * index as usize) }
    }

    fn header(&self, index: u32) -> &Header {
        // SAFETY: a mapped header, which consists of atomics; arenas are never shorter (checked by `with_nal`).
        unsafe { self.part(index).cast().as_ref() }
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        // SAFETY: the mapping of `join`; the interface that used it is gone.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes * self.size as usize) };
    }
}

// SAFETY: arenas are parts of one shared mapping that lives as long as the value; a new memory file reads as zeros.
unsafe impl Nal for Fabric {
    fn nid(&self) -> u32 {
        self.nid
    }
    fn index(&self) -> u32 {
        self.index
    }
    fn size(&self) -> u32 {
        self.size
    }
    fn jid(&self) -> u32 {
        self.jid
    }
    fn arena(&self) -> NonNull<u8> {
        self.part(self.index)
    }
    fn arena_bytes(&self) -> usize {
        self.bytes
    }
    fn route(&self, peer: u32) -> Route {
        Route::Mapped(self.part(peer))
    }
    fn may_attach(&self) -> bool {
        self.attach == AttachPolicy::Allowed
    }

    /// From `/proc/<pid>/stat`; the process id is what the peer wrote into its arena.
    fn peer_state(&self, peer: u32) -> PeerState {
        let ident = &self.header(peer).ident;
        if ident.magic.load(Ordering::Acquire) != MAGIC {
            return PeerState::Alive;
        }
        process_state(ident.os_pid.load(Ordering::Relaxed))
    }

    fn max_frame(&self) -> usize {
        0
    }
    fn send(&self, _peer: u32, _frame: &[u8]) -> bool {
        false
    }
    fn has_frames(&self) -> bool {
        false
    }
    fn receive(&self, _max: usize, _sink: &mut dyn FnMut(u32, &[u8])) {}
}

/// The state letter comes after the command, which is in parentheses and may contain some itself.
fn process_state(pid: u32) -> PeerState {
    let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { return PeerState::Dead };
    let letter = stat.iter().rposition(|&byte| byte == b')').and_then(|at| stat.get(at + 2));
    match letter {
        Some(b'T' | b't') => PeerState::Stopped,
        Some(b'Z' | b'X' | b'x') | None => PeerState::Dead,
        Some(_) => PeerState::Alive,
    }
}
