//! The standard error of another host, without the errors that another rank has printed.
//!
//! Owned by [`super::ssh`]. Invariants: text lines keep their order; one is kept back for at most
//! [`HELD`], until the remedy of an error has arrived.

use crate::boot::passed_stream::PrefixedStream;
use crate::report::{PrintedError, PrintedLine};
use std::io;
use std::os::fd::OwnedFd;
use sys::poll::PollEntry;

/// Nanoseconds that the second text line of an error may take after the first.
const HELD: u64 = 50_000_000;

/// Whether an error is to be printed; false if another rank has printed the same.
pub(in crate::boot) type IsNews<'a> = dyn FnMut(PrintedError) -> bool + 'a;

/// The stream, and what is kept back.
#[derive(Debug)]
pub(super) struct ErrorStream {
    stream: PrefixedStream,
    held: Vec<u8>,
    held_until: u64,
}

impl ErrorStream {
    /// A stream that is passed on to standard error, and the end to write to.
    pub(super) fn new() -> io::Result<(ErrorStream, OwnedFd)> {
        let (stream, end) = PrefixedStream::new("", 2)?;
        Ok((ErrorStream { stream, held: Vec::new(), held_until: 0 }, end))
    }

    /// What to poll.
    pub(super) fn poll_entry(&self) -> PollEntry {
        self.stream.poll_entry()
    }

    /// When [`ErrorStream::pass_on`] must be called at the latest.
    pub(super) fn deadline(&self) -> Option<u64> {
        (!self.held.is_empty()).then_some(self.held_until)
    }

    /// Passes on what has arrived.
    pub(super) fn pass_on(&mut self, now: u64, is_news: &mut IsNews<'_>) {
        let arrived = self.stream.take_lines();
        if !arrived.is_empty() {
            self.held_until = now + HELD;
        }
        self.held.extend(arrived);
        let printed = take_news(&mut self.held, now >= self.held_until, is_news);
        self.stream.print(&printed);
    }

    /// Passes on the rest, when those that wrote have exited.
    pub(super) fn finish(&mut self, is_news: &mut IsNews<'_>) {
        self.held.extend(self.stream.take_rest());
        let printed = take_news(&mut self.held, true, is_news);
        self.stream.print_rest(&printed);
    }
}

/// Takes text lines to print, all but errors that are not. Unless these lines are `all`, leaves an
/// error at the end that may have a remedy.
fn take_news(lines: &mut Vec<u8>, all: bool, is_news: &mut IsNews<'_>) -> Vec<u8> {
    let mut printed = Vec::new();
    let mut rest = &lines[..];
    while let Some(line) = PrintedLine::first(rest) {
        let (len, passes) = match line {
            PrintedLine::Other(len) => (len, true),
            PrintedLine::Error(error) if error.len == rest.len() && !error.has_remedy && !all => {
                break;
            }
            PrintedLine::Error(error) => (error.len, is_news(error)),
        };
        if passes {
            printed.extend_from_slice(&rest[..len]);
        }
        rest = &rest[len..];
    }
    *lines = rest.to_vec();
    printed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the pieces are in which the text arrives, the second of the same errors is left
    /// out, and all else keeps its order.
    #[test]
    fn an_error_that_was_printed_is_left_out() {
        let [first, again] = [5, 6]
            .map(|rank| format!("*** FATAL ERROR (proc {rank}): it fails\n***   Mend it.\n"));
        let text = format!("before\n{first}between\n{again}after\n*** FATAL ERROR (proc 7): x\n");
        let expected = format!("before\n{first}between\nafter\n*** FATAL ERROR (proc 7): x\n");
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for piece in 1..=lines.len() {
            let mut seen = Vec::new();
            let mut is_news = |error: PrintedError| {
                let is_new = seen.iter().all(|hash| *hash != error.hash);
                seen.push(error.hash);
                is_new
            };
            let (mut held, mut printed) = (Vec::new(), Vec::new());
            for lines in lines.chunks(piece) {
                held.extend(lines.concat().into_bytes());
                printed.extend(take_news(&mut held, false, &mut is_news));
            }
            assert_eq!(held, b"*** FATAL ERROR (proc 7): x\n");
            printed.extend(take_news(&mut held, true, &mut is_news));
            assert_eq!(String::from_utf8(printed).unwrap(), expected);
        }
    }
}
