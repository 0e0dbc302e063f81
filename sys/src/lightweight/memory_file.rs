//! A system without memory files: in place of `memory_file`.
//!
//! Called as part of `memory`. Invariant: there is no value of [`MemFd`].

use super::mapping::Mapping;
use core::convert::Infallible;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Whether this system has memory files.
pub const HAS_FILES: bool = false;

/// A memory file, of which there is none.
#[derive(Debug)]
pub struct MemFd(Infallible);

impl AsFd for MemFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

impl From<MemFd> for OwnedFd {
    fn from(file: MemFd) -> OwnedFd {
        match file.0 {}
    }
}

impl MemFd {
    /// There are none.
    ///
    /// # Errors
    /// Always.
    pub fn create(_name: &CStr) -> io::Result<MemFd> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// See [`set_len`].
    pub fn set_len(&self, _bytes: u64) -> io::Result<()> {
        match self.0 {}
    }

    /// See [`reserve`].
    pub fn reserve(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        match self.0 {}
    }

    /// See [`Mapping::shared`].
    pub fn map(&self, _offset: u64, _bytes: usize) -> io::Result<Mapping> {
        match self.0 {}
    }
}

/// Of a memory file.
///
/// # Errors
/// Always.
pub fn len(_file: BorrowedFd<'_>) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Of a memory file.
///
/// # Errors
/// Always.
pub fn set_len(_file: BorrowedFd<'_>, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Of a memory file.
///
/// # Errors
/// Always.
pub fn reserve(_file: BorrowedFd<'_>, _offset: u64, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Of the file system of a memory file.
pub(super) fn file_system(_file: BorrowedFd<'_>) -> Option<(u64, u64)> {
    None
}
