//! Indexed shapes: lists of addresses, where all pieces of a side have one length.
//!
//! Made by `capi` from the lists of a client. Invariant: the lists are read before the call
//! returns and not kept.

use super::pieces::{VisPiece, VisRun, VisShape, each_run};

/// The pieces of one side.
#[derive(Clone, Copy, Debug)]
pub struct AddressList<'a> {
    /// First byte of each.
    pub list: &'a [*mut u8],
    /// Bytes of each.
    pub len: usize,
}

impl AddressList<'_> {
    /// The pieces.
    pub fn pieces(&self) -> impl Iterator<Item = VisPiece> + Clone {
        self.list.iter().map(|&addr| (addr, self.len))
    }

    /// Bytes of all.
    pub fn total(&self) -> usize {
        self.list.len().saturating_mul(self.len)
    }
}

/// A transfer between two lists of addresses.
#[derive(Clone, Copy, Debug)]
pub struct IndexedTransfer<'a> {
    remote: AddressList<'a>,
    local: AddressList<'a>,
}

impl<'a> IndexedTransfer<'a> {
    /// Between lists of the same total.
    ///
    /// # Safety
    /// The pieces of `local` must be accessible until the operation is synced.
    pub unsafe fn new(remote: AddressList<'a>, local: AddressList<'a>) -> IndexedTransfer<'a> {
        IndexedTransfer { remote, local }
    }
}

impl VisShape for IndexedTransfer<'_> {
    fn each(&self, f: impl FnMut(VisRun)) {
        each_run(self.remote.pieces(), self.local.pieces(), f);
    }

    fn run_len(&self) -> Option<usize> {
        (self.remote.len == self.local.len).then_some(self.remote.len)
    }

    fn each_pair(&self, mut f: impl FnMut(VisRun)) {
        let n = self.remote.len;
        let both = self.remote.list.iter().zip(self.local.list);
        both.for_each(|(&remote, &local)| f(VisRun::new(remote, local, n)));
    }

    fn remote_pieces(&self) -> impl Iterator<Item = VisPiece> {
        self.remote.pieces()
    }
}
