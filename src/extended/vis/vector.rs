//! Vectors: lists of pieces, each with its own length.
//!
//! Made by `capi` from the lists of a client. Invariant: the lists are read before the call
//! returns and not kept.

use super::pieces::{VisPiece, VisRun, VisShape, each_run};

/// `gasnet_memvec_t`: a piece of memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemVec {
    /// First byte.
    pub addr: *mut u8,
    /// Bytes.
    pub len: usize,
}

/// A transfer between two lists of pieces.
#[derive(Clone, Copy, Debug)]
pub struct VectorTransfer<'a> {
    remote: &'a [MemVec],
    local: &'a [MemVec],
}

impl<'a> VectorTransfer<'a> {
    /// Between lists of the same total.
    ///
    /// # Safety
    /// The pieces of `local` must be accessible until the operation is synced.
    pub unsafe fn new(remote: &'a [MemVec], local: &'a [MemVec]) -> VectorTransfer<'a> {
        VectorTransfer { remote, local }
    }
}

/// The pieces of a list.
pub fn pieces(list: &[MemVec]) -> impl Iterator<Item = VisPiece> + Clone {
    list.iter().map(|v| (v.addr, v.len))
}

/// Bytes of a list.
pub fn total(list: &[MemVec]) -> usize {
    list.iter().fold(0, |sum: usize, v| sum.saturating_add(v.len))
}

impl VisShape for VectorTransfer<'_> {
    fn each(&self, f: impl FnMut(VisRun)) {
        each_run(pieces(self.remote), pieces(self.local), f);
    }

    fn has_pairs(&self) -> bool {
        let mut pairs = self.remote.iter().zip(self.local);
        self.remote.len() == self.local.len() && pairs.all(|(there, here)| there.len == here.len)
    }

    fn each_pair(&self, mut f: impl FnMut(VisRun)) {
        let pairs = self.remote.iter().zip(self.local).filter(|(there, _)| there.len != 0);
        pairs.for_each(|(there, here)| f(VisRun::new(there.addr, here.addr, there.len)));
    }

    fn remote_pieces(&self) -> impl Iterator<Item = VisPiece> {
        pieces(self.remote)
    }
}
