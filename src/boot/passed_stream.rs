//! Output that is passed on line by line: of a rank, with the rank in front (`gasnetrun
//! --prefix`), and of another host.
//!
//! Owned by the supervisor and `hosts::ssh`. Invariant: nothing that was written is lost or
//! reordered within its stream. A line without an end is passed on when it is very long, and at
//! the end of the job.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

/// A longer line is broken, in bytes.
const LONGEST: usize = 64 << 10;

/// One output stream.
#[derive(Debug)]
pub(super) struct PrefixedStream {
    prefix: String,
    /// 1 or 2.
    standard: RawFd,
    from: Option<OwnedFd>,
    begun: Vec<u8>,
}

impl PrefixedStream {
    /// A stream that passes output on to the descriptor `standard`, and the end to write to.
    pub(super) fn new(prefix: &str, standard: RawFd) -> io::Result<(PrefixedStream, OwnedFd)> {
        let (from, to) = sys::descriptor::pipe()?;
        let prefix = prefix.to_string();
        Ok((PrefixedStream { prefix, standard, from: Some(from), begun: Vec::new() }, to))
    }

    /// The descriptor to poll; `None` after the end of the stream.
    pub(super) fn fd(&self) -> Option<&OwnedFd> {
        self.from.as_ref()
    }

    /// Passes on the lines that have arrived, without waiting for more.
    pub(super) fn pass_on(&mut self) {
        let mut buffer = [0; 16 << 10];
        while let Some(from) = self.from.as_ref().filter(|f| sys::poll::readable(f.as_fd())) {
            match sys::descriptor::read(from.as_raw_fd(), &mut buffer) {
                Ok(n @ 1..) => self.add(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => self.from = None,
            }
        }
    }

    /// Passes on the rest, when those that wrote have exited.
    pub(super) fn finish(&mut self) {
        self.pass_on();
        if !self.begun.is_empty() {
            self.add(b"\n");
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        let mut out = Vec::new();
        let mut rest = &self.begun[..];
        while let Some(end) = rest.iter().position(|&c| c == b'\n').map(|i| i + 1) {
            out.extend_from_slice(self.prefix.as_bytes());
            out.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
        }
        if rest.len() > LONGEST {
            out.extend_from_slice(self.prefix.as_bytes());
            out.extend_from_slice(rest);
            out.push(b'\n');
            rest = &[];
        }
        let rest = rest.to_vec();
        self.begun = rest;
        sys::file::write_all(self.standard, &out);
    }
}
