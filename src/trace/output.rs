//! The buffer and the file that receive the lines of a process.
//!
//! `trace_files` adds whole lines and writes the rest at exit. Invariant: the bytes below `len`
//! are whole lines that are not in the file yet, unless a write is in progress. So a process that
//! exits from a signal handler can write them without the lock if the owner of the lock does
//! not go on.
//!
//! ```text
//!   lock: owner 0 -> thread + 1 (Acquire) ... 0 (Release)
//!   add:  lock; copy the line beyond len; len += n (Release); unlock
//!   write_out: writing = true; write the bytes below len (Acquire); len = 0; writing = false
//!   finish: lock within 100 ms, or go on without it; write_out unless one is in progress
//! ```

use crate::report;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::ffi::CString;
use std::io;

/// Bytes of the buffer.
const ROOM: usize = 1 << 16;

/// A file and its buffer.
pub(super) struct TraceOutput {
    /// The variable that names the file, and the file, for an error.
    name: (&'static str, String),
    fd: i32,
    /// Whether each line is written at once.
    at_once: bool,
    /// The thread that holds the lock, numbered as by [`super::source::thread`], plus 1; 0 for
    /// none.
    owner: AtomicU32,
    /// Whether a write is in progress.
    writing: AtomicBool,
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
        name: &str,
        at_once: bool,
    ) -> io::Result<TraceOutput> {
        let fd = match name {
            "stdout" => 1,
            "stderr" | "-" => 2,
            _ => sys::file::open_for_lines(&CString::new(name)?)?,
        };
        Ok(TraceOutput {
            name: (variable, String::from(name)),
            fd,
            at_once,
            owner: AtomicU32::new(0),
            writing: AtomicBool::new(false),
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

    /// Writes the buffer to the file.
    fn write_out(&self) {
        self.writing.store(true, Ordering::Release);
        let n = self.len.load(Ordering::Acquire);
        let written = sys::file::write_all_atomic(self.fd, &self.buffer[..n]);
        if let Err(e) = written
            && !self.failed.swap(true, Ordering::Relaxed)
        {
            let (variable, name) = &self.name;
            report::incomplete_file(variable, name, e);
        }
        self.len.store(0, Ordering::Release);
        self.writing.store(false, Ordering::Release);
    }

    /// Adds a line of at most `ROOM` bytes. Does nothing if the calling thread, now in a signal
    /// handler, was interrupted while it added one.
    pub(super) fn add(&self, me: u32, line: &[u8]) {
        while !self.try_lock(me) {
            if self.owner.load(Ordering::Relaxed) == me + 1 {
                return;
            }
            sys::thread::yield_now();
        }
        let mut n = self.len.load(Ordering::Relaxed);
        if n + line.len() > ROOM {
            self.write_out();
            n = 0;
        }
        for (to, &byte) in self.buffer[n..].iter().zip(line) {
            to.store(byte, Ordering::Relaxed);
        }
        self.len.store(n + line.len(), Ordering::Release);
        if self.at_once {
            self.write_out();
        }
        self.unlock();
    }

    /// Writes the rest when the process exits; async-signal-safe. Waits a moment for a thread
    /// that holds the lock; the interrupted thread may hold it and never go on.
    pub(super) fn finish(&self, me: u32) {
        const TRIES: u32 = 100;
        for _ in 0..TRIES {
            if self.try_lock(me) {
                self.write_out();
                self.unlock();
                return;
            }
            if self.owner.load(Ordering::Relaxed) == me + 1 {
                break;
            }
            sys::clock::sleep_ns(1_000_000);
        }
        // Without the lock: lines that are being written must not be written twice.
        if !self.writing.load(Ordering::Acquire) {
            self.write_out();
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

    #[test]
    fn lines_of_all_threads_arrive_whole() {
        let name = temporary("lines");
        let output = TraceOutput::open("GASNET_TRACEFILE", &name, false).unwrap();
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
        output.finish(0);
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
        let output = TraceOutput::open("GASNET_TRACEFILE", &name, false).unwrap();
        output.add(0, b"whole\n");
        assert!(output.try_lock(3));
        output.add(3, b"interrupted\n");
        output.finish(3);
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "whole\n");
        output.finish(1);
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "whole\n");
        std::fs::remove_file(&name).unwrap();
    }
}
