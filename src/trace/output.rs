//! The buffer and the file that receive the lines of a process.
//!
//! `trace_files` adds whole lines and writes the rest at exit. Invariant: the bytes below `len`
//! are whole lines that are not in the file yet, unless a write is in progress. So a process that
//! exits from a signal handler can write them without the lock if the owner of the lock does
//! not go on.
//!
//! ```text
//!   lock: owner 0 -> thread + 1 (Acquire) ... 0 (Release); 100 ms at most if the process leaves
//!   add:  lock; copy the line beyond len; len += n (Release); unlock
//!   write_out: writing = true; write the bytes below len (Acquire); len = 0; writing = false
//!   finish: lock, or go on without it; write_out unless one is in progress; write the last line
//! ```

use crate::one_line::LineBegin;
use crate::report;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::ffi::CStr;
use std::io;
use sys::file::WriteError;

/// Bytes of the buffer.
const ROOM: usize = 1 << 16;

/// A file and its buffer.
pub(super) struct TraceOutput {
    /// The variable that names the file, and the file, for an error.
    name: (&'static str, String),
    fd: i32,
    /// Whether that is a regular file.
    is_regular: bool,
    /// Whether each line is written at once.
    at_once: bool,
    /// The thread that holds the lock, numbered as by [`super::source::thread`], plus 1; 0 for
    /// none.
    owner: AtomicU32,
    /// Whether a write is in progress.
    writing: AtomicBool,
    /// This process leaves: the owner of the lock may never go on.
    is_leaving: AtomicBool,
    /// It does not: no thread waits for it any more.
    is_stuck: AtomicBool,
    /// The file has not taken all bytes, and an error has said so.
    failed: AtomicBool,
    len: AtomicUsize,
    /// Only the owner of the lock writes it, beyond `len`.
    buffer: Box<[AtomicU8]>,
}

impl TraceOutput {
    /// Opens the file that this variable names, and empties it; `stdout`, `stderr` and `-`
    /// (standard error) are not files. Each write appends, so that several ranks may share a
    /// file.
    ///
    /// # Errors
    /// That of the system.
    pub(super) fn open(
        variable: &'static str,
        path: &CStr,
        at_once: bool,
    ) -> io::Result<TraceOutput> {
        let fd = match path.to_bytes() {
            b"stdout" => 1,
            b"stderr" | b"-" => 2,
            _ => sys::file::open_for_lines(path)?,
        };
        Ok(TraceOutput {
            name: (variable, path.to_string_lossy().into_owned()),
            fd,
            is_regular: sys::file::is_regular(fd),
            at_once,
            owner: AtomicU32::new(0),
            writing: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            is_stuck: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            len: AtomicUsize::new(0),
            buffer: (0..ROOM).map(|_| AtomicU8::new(0)).collect(),
        })
    }

    fn try_lock(&self, me: u32) -> bool {
        self.owner.compare_exchange(0, me + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn unlock(&self) {
        self.owner.store(0, Ordering::Release);
    }

    /// Takes the lock. False if the calling thread holds it, which a signal has interrupted there;
    /// also if this process leaves, and another thread does not release it.
    fn lock(&self, me: u32) -> bool {
        const TRIES: u32 = 100;
        let mut tries = 0;
        while !self.try_lock(me) {
            if self.owner.load(Ordering::Relaxed) == me + 1
                || self.is_stuck.load(Ordering::Relaxed)
            {
                return false;
            }
            if !self.is_leaving.load(Ordering::Relaxed) {
                sys::thread::yield_now();
                continue;
            }
            tries += 1;
            if tries == TRIES {
                self.is_stuck.store(true, Ordering::Relaxed);
            }
            sys::clock::sleep_ns(1_000_000);
        }
        true
    }

    /// Reports the first error of a write.
    fn check(&self, written: Result<(), WriteError>) {
        if let Err(e) = written
            && !self.failed.swap(true, Ordering::Relaxed)
        {
            let (variable, name) = &self.name;
            report::incomplete_file(variable, LineBegin(name), e);
        }
    }

    /// Writes the buffer to the file.
    fn write_out(&self) {
        self.writing.store(true, Ordering::Release);
        let n = self.len.load(Ordering::Acquire);
        self.check(sys::thread::without_cancellation(|| {
            sys::file::write_all_atomic(self.fd, &self.buffer[..n])
        }));
        self.len.store(0, Ordering::Release);
        self.writing.store(false, Ordering::Release);
    }

    /// Adds a line of at most `ROOM` bytes to the buffer; the calling thread holds the lock.
    fn append(&self, line: &[u8]) {
        let mut n = self.len.load(Ordering::Relaxed);
        if n + line.len() > ROOM {
            self.write_out();
            n = 0;
        }
        for (to, &byte) in self.buffer[n..].iter().zip(line) {
            to.store(byte, Ordering::Relaxed);
        }
        self.len.store(n + line.len(), Ordering::Release);
    }

    /// Adds a line of at most `ROOM` bytes, unless the lock cannot be had.
    pub(super) fn add(&self, me: u32, line: &[u8]) {
        if self.lock(me) {
            self.append(line);
            if self.at_once {
                self.write_out();
            }
            self.unlock();
        }
    }

    /// From now on no thread waits long for another. The process is about to exit.
    pub(super) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Writes the rest and a `last` line, which may be empty, when the process exits;
    /// async-signal-safe. A write in progress that is never completed may have cut a line, unless
    /// it goes to a regular file: then no line follows it.
    pub(super) fn finish(&self, me: u32, last: &[u8]) {
        self.leave();
        if self.lock(me) {
            self.append(last);
            self.write_out();
            self.unlock();
            return;
        }
        // Without the lock: lines that are being written must not be written twice.
        let is_writing = self.writing.load(Ordering::Acquire);
        if !is_writing {
            self.write_out();
        }
        if !is_writing || self.is_regular {
            self.check(sys::file::write_line(self.fd, last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str) -> String {
        std::env::temp_dir()
            .join(format!("gasnet-{name}-{}", std::process::id()))
            .display()
            .to_string()
    }

    fn open(name: &str) -> TraceOutput {
        let path = std::ffi::CString::new(name).unwrap();
        TraceOutput::open("GASNET_TRACEFILE", &path, false).unwrap()
    }

    #[test]
    fn lines_of_all_threads_arrive_whole() {
        let name = temporary("lines");
        let output = open(&name);
        std::thread::scope(|s| {
            for t in 0..4u32 {
                let output = &output;
                s.spawn(move || {
                    for i in 0..5000 {
                        output.add(t, format!("{t} {i}\n").as_bytes());
                    }
                });
            }
        });
        output.finish(0, b"");
        let text = std::fs::read_to_string(&name).unwrap();
        std::fs::remove_file(&name).unwrap();
        let mut next = [0; 4];
        for line in text.lines() {
            let (t, i) = line.split_once(' ').unwrap();
            let t: usize = t.parse().unwrap();
            assert_eq!(i.parse(), Ok(next[t]));
            next[t] += 1;
        }
        assert_eq!(next, [5000; 4]);
    }

    #[test]
    fn a_held_lock_does_not_keep_a_leaving_process() {
        let name = temporary("held");
        let output = open(&name);
        output.add(0, b"whole\n");
        assert!(output.try_lock(3));
        output.add(3, b"interrupted\n");
        output.finish(3, b"last\n");
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "whole\nlast\n");
        // The thread that holds the lock does not go on.
        output.add(1, b"late\n");
        output.finish(1, b"");
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "whole\nlast\n");
        // Nor does it within a write.
        output.writing.store(true, Ordering::Relaxed);
        output.finish(3, b"end\n");
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "whole\nlast\nend\n");
        std::fs::remove_file(&name).unwrap();
    }
}
