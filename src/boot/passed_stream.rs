//! Output that is passed on line by line: of a rank, with the rank in front (`gasnetrun
//! --prefix`), and of another host.
//!
//! Owned by the supervisor and `hosts::ssh`. Invariants: nothing that was written is lost or
//! reordered within its stream, but for what standard output does not take, which is reported. A
//! line without an end is passed on when it is very long, and at the end of the job. A line is
//! printed whole, before those of other streams, as long as its reader takes it. A reader that
//! takes nothing, such as a pager, does not keep the supervisor: lines wait here, and then in the
//! pipe from which they come. At the end, lines for standard error wait as
//! [`sys::stdio::write_stderr`] does, and are then lost.
//!
//! A reader that has ended, such as `head`, wants no more: then those that write get `SIGPIPE`.

use crate::report;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use sys::poll::{self, PollEntry};
use sys::{bounded_stderr, clock};

/// A longer line is broken, in bytes.
const LONGEST: usize = 64 << 10;

/// Bytes of lines after which no more are taken at a time.
const MOST_TAKEN: usize = 256 << 10;

/// Bytes of lines after which no more are taken at the end: more than a pipe holds. A process that
/// writes on has outlived the rank.
const MOST_LEFT: usize = 1 << 20;

/// Bytes that a pipe takes at once if it can be written.
const ATOMIC: usize = 4096;

/// Lines of standard output could not be written.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// Whether lines of standard output are lost, other than those that its reader did not want.
pub(super) fn is_lost() -> bool {
    IS_LOST.load(Ordering::Relaxed)
}

/// Reports once that lines of standard output are lost.
fn lose(why: &dyn fmt::Display) {
    if !IS_LOST.swap(true, Ordering::Relaxed) {
        report::warn(
            format_args!("output of the ranks is lost: standard output cannot be written: {why}"),
            format_args!("Make room there, or send it elsewhere."),
        );
    }
}

/// By descriptor: the stream of which a line has been begun there.
static BEGUN: Mutex<BTreeMap<RawFd, u64>> = Mutex::new(BTreeMap::new());

/// Streams that were made.
static STREAMS: AtomicU64 = AtomicU64::new(0);

/// One output stream.
#[derive(Debug)]
pub(super) struct PrefixedStream {
    /// No other stream of this process has it.
    number: u64,
    prefix: String,
    /// 1 or 2.
    standard: RawFd,
    from: Option<OwnedFd>,
    begun: Vec<u8>,
    /// What comes next is the rest of a line that was broken.
    is_broken: bool,
    /// Lines that have not been printed yet.
    unprinted: Vec<u8>,
    /// What it prints to has ended.
    has_no_reader: bool,
}

impl PrefixedStream {
    /// A stream that passes output on to the descriptor `standard`, and the end to write to.
    pub(super) fn new(prefix: &str, standard: RawFd) -> io::Result<(PrefixedStream, OwnedFd)> {
        let (from, to) = sys::descriptor::pipe()?;
        let prefix = prefix.to_string();
        Ok((
            PrefixedStream {
                number: 1 + STREAMS.fetch_add(1, Ordering::Relaxed),
                prefix,
                standard,
                from: Some(from),
                begun: Vec::new(),
                is_broken: false,
                unprinted: Vec::new(),
                has_no_reader: false,
            },
            to,
        ))
    }

    /// What to poll.
    pub(super) fn poll_entry(&self) -> PollEntry {
        match self.unprinted.is_empty() {
            true => PollEntry::reading(self.from.as_ref().map(AsFd::as_fd)),
            false => PollEntry::writing_number(self.standard),
        }
    }

    /// Whether lines wait for their reader.
    pub(super) fn waits(&self) -> bool {
        !self.unprinted.is_empty()
    }

    /// Passes on lines that have arrived, without waiting for more.
    pub(super) fn pass_on(&mut self) {
        let lines = self.take_lines();
        self.print(&lines);
    }

    /// Prints where this stream goes, as far as there is room.
    pub(super) fn print(&mut self, lines: &[u8]) {
        self.unprinted.extend_from_slice(lines);
        let mut opened = None;
        while !self.unprinted.is_empty() && self.may_print() {
            let most = &self.unprinted[..self.unprinted.len().min(ATOMIC)];
            let whole = most.iter().rposition(|&c| c == b'\n').map(|i| i + 1);
            let length = whole.unwrap_or(most.len());
            let opened = opened.get_or_insert_with(|| bounded_stderr::nonblocking(self.standard));
            let to = opened.as_ref().map_or(self.standard, AsRawFd::as_raw_fd);
            match sys::descriptor::write(to, &self.unprinted[..length]) {
                Ok(0) => self.end(&io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    match self.unprinted[n - 1] {
                        b'\n' => BEGUN.lock().remove(&self.standard),
                        _ => BEGUN.lock().insert(self.standard, self.number),
                    };
                    drop(self.unprinted.drain(..n));
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    // `poll` reports a terminal that has less room than the text needs.
                    return clock::sleep_ns(1_000_000);
                }
                Err(e) => self.end(&e),
            }
        }
    }

    /// Whether there is room, and no other stream is within a line.
    fn may_print(&self) -> bool {
        let begun = BEGUN.lock().get(&self.standard).copied();
        begun.is_none_or(|stream| stream == self.number) && poll::writable_number(self.standard)
    }

    /// What it prints to takes no more.
    fn end(&mut self, why: &io::Error) {
        if self.standard == 1 {
            match why.kind() {
                // It has seen enough, and so have those that write.
                io::ErrorKind::BrokenPipe => (self.from, self.has_no_reader) = (None, true),
                _ => lose(why),
            }
        }
        self.forget();
    }

    /// Prints nothing of what waits.
    fn forget(&mut self) {
        self.unprinted.clear();
        BEGUN.lock().retain(|_, stream| *stream != self.number);
    }

    /// Lines that still wait for their reader are lost: the job is to end.
    pub(super) fn give_up(&mut self) {
        if self.waits() {
            self.note_cut();
            self.forget();
        }
    }

    /// What still comes is lost, if its reader takes nothing.
    pub(super) fn note_cut(&self) {
        if self.standard == 1 && self.waits() {
            lose(&"its reader takes nothing, and the job is to end");
        }
    }

    /// Whether what it prints to has ended, which wants no more.
    pub(super) fn has_no_reader(&self) -> bool {
        self.has_no_reader
    }

    /// Prints the last lines of standard error, and waits until all are printed, as
    /// [`sys::bounded_stderr::bound`] says. Those of standard output wait for their reader.
    pub(super) fn print_rest(&mut self, lines: &[u8]) {
        self.print(lines);
        if self.standard == 2 && self.waits() {
            sys::stdio::write_stderr(&self.unprinted);
            self.forget();
        }
    }

    /// Takes lines that have arrived, some at a time, without waiting for more. None while others
    /// have not been printed yet.
    pub(super) fn take_lines(&mut self) -> Vec<u8> {
        match self.unprinted.is_empty() {
            true => self.take_some(),
            false => Vec::new(),
        }
    }

    fn take_some(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        // Not on the stack, which may be small (`ulimit -s`).
        let mut buffer = Vec::new();
        while lines.len() < MOST_TAKEN
            && let Some(from) = self.readable()
        {
            buffer.resize(16 << 10, 0);
            match sys::descriptor::read(from.as_raw_fd(), &mut buffer) {
                Ok(n @ 1..) => self.add(&buffer[..n], &mut lines),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => self.from = None,
            }
        }
        lines
    }

    /// Takes the rest, when those that wrote have exited, and passes it on as
    /// [`PrefixedStream::print_rest`] does.
    pub(super) fn finish(&mut self) {
        let lines = self.take_rest();
        self.print_rest(&lines);
    }

    /// Takes the rest, when those that wrote have exited.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        while lines.len() < MOST_LEFT && self.readable().is_some() {
            lines.extend(self.take_some());
        }
        if !self.begun.is_empty() {
            self.add(b"\n", &mut lines);
        }
        lines
    }

    /// The descriptor, if it has something to read or has ended.
    fn readable(&self) -> Option<&OwnedFd> {
        self.from.as_ref().filter(|from| poll::readable(from.as_fd()))
    }

    /// Adds the lines to `out` that these bytes complete.
    fn add(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let was_broken = std::mem::take(&mut self.is_broken);
        let bytes = bytes.strip_prefix(b"\n").filter(|_| was_broken).unwrap_or(bytes);
        self.begun.extend_from_slice(bytes);
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
            self.is_broken = true;
        }
        let rest = rest.to_vec();
        self.begun = rest;
    }
}

impl Drop for PrefixedStream {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_broken_and_ends_once() {
        let (mut stream, _end) = PrefixedStream::new("", 1).expect("a pipe");
        let long = vec![b'x'; LONGEST + 1];
        let mut out = Vec::new();
        stream.add(&long, &mut out);
        stream.add(b"\nnext\n", &mut out);
        stream.add(&long, &mut out);
        stream.add(b"rest\n\n", &mut out);
        let line = String::from_utf8(long).expect("ASCII");
        assert_eq!(
            String::from_utf8(out).expect("ASCII"),
            format!("{line}\nnext\n{line}\nrest\n\n")
        );
    }

    /// Lines wait for a reader that takes nothing, whole and in order. The supervisor does not.
    #[test]
    fn lines_wait_for_room() {
        let (room, to) = sys::descriptor::pipe().expect("a pipe");
        let (mut stream, end) = PrefixedStream::new("> ", to.as_raw_fd()).expect("a pipe");
        let line = |n: usize| format!("{n} {}\n", "x".repeat(n % 200));
        let (all, mut begun) = (20_000, 0);
        let mut read = Vec::new();
        let mut buffer = [0; 64 << 10];
        let mut is_full = false;
        while begun < all {
            // No more than the pipe has room for: it is empty whenever lines are passed on.
            for _ in 0..100 {
                sys::file::write_all(end.as_raw_fd(), line(begun).as_bytes());
                begun += 1;
            }
            while stream.readable().is_some() {
                stream.pass_on();
                if !stream.unprinted.is_empty() {
                    is_full = true;
                    let n = sys::descriptor::read(room.as_raw_fd(), &mut buffer).expect("lines");
                    read.extend_from_slice(&buffer[..n]);
                    stream.pass_on();
                }
            }
        }
        let reader = std::thread::spawn(move || {
            let mut room = std::fs::File::from(room);
            std::io::Read::read_to_end(&mut room, &mut read).expect("the rest");
            read
        });
        drop(end);
        stream.finish();
        while stream.waits() {
            stream.print(&[]);
            std::thread::yield_now();
        }
        drop((stream, to));
        let expected: String = (0..all).map(|n| format!("> {}", line(n))).collect();
        assert!(is_full && reader.join().expect("no panic") == expected.as_bytes());
    }

    /// A line that is longer than what a pipe takes does not keep the supervisor. Other streams
    /// print nothing within it.
    #[test]
    fn a_long_line_waits_for_room_in_one_piece() {
        let (room, to) = sys::descriptor::pipe().expect("a pipe");
        let [(mut long, _end), (mut other, _other_end)] =
            [0, 1].map(|_| PrefixedStream::new("", to.as_raw_fd()).expect("a pipe"));
        let line = format!("{}\n", "x".repeat(200_000));
        long.print(line.as_bytes());
        other.print(b"other\n");
        assert!(long.waits() && other.waits());
        let mut read = Vec::new();
        let mut buffer = [0; 64 << 10];
        while long.waits() || other.waits() {
            let n = sys::descriptor::read(room.as_raw_fd(), &mut buffer).expect("lines");
            read.extend_from_slice(&buffer[..n]);
            other.print(&[]);
            long.print(&[]);
        }
        other.print(&[]);
        drop((long, other, to));
        std::io::Read::read_to_end(&mut std::fs::File::from(room), &mut read).expect("the rest");
        assert_eq!(String::from_utf8(read).expect("ASCII"), line + "other\n");
    }

    /// Nor does a terminal keep the supervisor that has room for a byte, but not for a line.
    #[test]
    fn lines_wait_for_a_terminal() {
        let (user, programs) = sys::terminal::open().expect("a terminal");
        let [(mut stream, _end), (mut other, _other_end)] =
            [0, 1].map(|_| PrefixedStream::new("", programs.as_raw_fd()).expect("a pipe"));
        let line = format!("{}\n", "x".repeat(200));
        stream.print(line.repeat(1000).as_bytes());
        other.print(b"other\n");
        assert!(stream.waits() && other.waits());
        let mut read = Vec::new();
        let mut buffer = [0; 64 << 10];
        while !read.ends_with(b"other\r\n") {
            let n = sys::descriptor::read(user.as_raw_fd(), &mut buffer).expect("lines");
            read.extend_from_slice(&buffer[..n]);
            stream.print(&[]);
            other.print(&[]);
        }
        let expected = line.repeat(1000).replace('\n', "\r\n") + "other\r\n";
        assert_eq!(String::from_utf8(read).expect("ASCII"), expected);
    }

    /// What writes gets `SIGPIPE` when the reader has ended.
    #[test]
    fn who_has_no_reader_writes_no_more() {
        let (mut stream, end) = PrefixedStream::new("", 1).expect("a pipe");
        let mut end = std::fs::File::from(end);
        assert!(std::io::Write::write_all(&mut end, b"read\n").is_ok());
        stream.end(&io::ErrorKind::BrokenPipe.into());
        let e = std::io::Write::write_all(&mut end, b"not read\n").unwrap_err();
        assert_eq!((e.kind(), is_lost()), (io::ErrorKind::BrokenPipe, false));
    }

    /// A process that has outlived its rank and writes on does not keep the supervisor.
    #[test]
    fn the_rest_has_an_end() {
        let (mut stream, end) = PrefixedStream::new("", 1).expect("a pipe");
        let writer = std::thread::spawn(move || {
            let mut end = std::fs::File::from(end);
            while std::io::Write::write_all(&mut end, b"more\n").is_ok() {}
        });
        while stream.readable().is_none() {
            std::thread::yield_now();
        }
        let rest = stream.take_rest();
        assert!(!rest.is_empty() && rest.len() < 2 * MOST_LEFT);
        drop(stream);
        writer.join().expect("no panic");
    }
}
