//! What the program does to memory that is watched: in place of `unmap_watch`, where the system
//! does not say.
//!
//! Used by the conduit. Invariant: there is no [`UnmapWatch`].

use core::convert::Infallible;
use core::ops::Range;
use std::io;

/// Watches memory of this process.
#[derive(Debug)]
pub struct UnmapWatch(Infallible);

/// The memory that can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchKinds {
    /// See there.
    All,
    /// See there.
    NoFiles,
}

/// A change of watched memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedChange {
    /// See there.
    pub range: Range<usize>,
    /// See there.
    pub ahead: bool,
}

impl UnmapWatch {
    /// Nothing is watched.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: WatchKinds) -> io::Result<UnmapWatch> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// See there.
    pub fn watch(&self, _: Range<usize>) -> Vec<Range<usize>> {
        match self.0 {}
    }

    /// See there.
    pub fn is_watching(&self, _: Range<usize>) -> bool {
        match self.0 {}
    }

    /// See there.
    pub fn unwatch(&self, _: Range<usize>) {
        match self.0 {}
    }

    /// Nothing is read.
    ///
    /// # Errors
    /// Always.
    pub fn start_reader<T: Sync + 'static>(
        _: fn(&'static T) -> !,
        _: &'static T,
    ) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// See there.
    pub fn keep_open(&self) -> bool {
        match self.0 {}
    }

    /// See there.
    pub fn wait(&self) -> bool {
        match self.0 {}
    }

    /// See there.
    pub fn next(&self) -> Option<WatchedChange> {
        match self.0 {}
    }
}
