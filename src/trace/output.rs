//! The file that the lines of a process go to, and how they get there at every way out.
//!
//! Lines are put together elsewhere and copied into the buffer whole, under a lock that is held for the copy, or the write,
//! only. Invariant: what is below `len` is whole lines that are not in the file yet, unless a write is under way. So a
//! process that leaves from a signal handler can write them without the lock, if the thread that has it does not come
//! to an end of its work.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::ffi::CString;
use std::io;

/// Bytes of the buffer.
const ROOM: usize = 1 << 16;

/// Where lines go.
pub struct TraceOutput {
    fd: i32,
    /// Each line is written at once.
    at_once: bool,
    /// The thread that has the lock, as [`super::source::thread`] numbers it, plus 1; 0 if none has.
    owner: AtomicU32,
    writing: AtomicBool,
    len: AtomicUsize,
    buffer: UnsafeCell<Box<[u8]>>,
}

// SAFETY: the buffer is written by the owner of the lock only, beyond `len`, and read below `len`; `len` is published
// after the bytes (Release) and goes back to 0 under the lock, after they are written.
unsafe impl Sync for TraceOutput {}
// SAFETY: no part of it is bound to a thread.
unsafe impl Send for TraceOutput {}

impl TraceOutput {
    /// The file of this name; `stdout`, `stderr` and `-` are what they say. What it held is gone; each write appends, so that
    /// several processes may have one file.
    ///
    /// # Errors
    /// That of the system.
    pub fn open(name: &str, at_once: bool) -> io::Result<TraceOutput> {
        let fd = match name {
            "stdout" => 1,
            "stderr" | "-" => 2,
            _ => sys::file::open_for_lines(&CString::new(name)?)?,
        };
        Ok(TraceOutput {
            fd,
            at_once,
            owner: AtomicU32::new(0),
            writing: AtomicBool::new(false),
            len: AtomicUsize::new(0),
            buffer: UnsafeCell::new(vec![0; ROOM].into_boxed_slice()),
        })
    }

    fn take(&self, me: u32) -> bool {
        self.owner.compare_exchange(0, me + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn let_go(&self) {
        self.owner.store(0, Ordering::Release);
    }

    /// Writes what the buffer has.
    fn write_out(&self) {
        self.writing.store(true, Ordering::Release);
        let n = self.len.load(Ordering::Acquire);
        // SAFETY: see `Sync`; nobody changes what is below `len`.
        sys::file::write_all(self.fd, unsafe { &(&*self.buffer.get())[..n] });
        self.len.store(0, Ordering::Release);
        self.writing.store(false, Ordering::Release);
    }

    /// Adds a line, of at most `ROOM` bytes. Nothing if the calling thread was interrupted while it added one.
    pub fn add(&self, me: u32, line: &[u8]) {
        while !self.take(me) {
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
        // SAFETY: the lock is ours, and nobody reads beyond `len`.
        unsafe { (&mut *self.buffer.get())[n..n + line.len()].copy_from_slice(line) };
        self.len.store(n + line.len(), Ordering::Release);
        if self.at_once {
            self.write_out();
        }
        self.let_go();
    }

    /// Writes what is left, in a process that leaves; async-signal-safe. A thread that has the lock is given a moment; it may
    /// never go on, if it is the one that was interrupted.
    pub fn finish(&self, me: u32) {
        const TRIES: u32 = 100;
        for _ in 0..TRIES {
            if self.take(me) {
                self.write_out();
                self.let_go();
                return;
            }
            if self.owner.load(Ordering::Relaxed) == me + 1 {
                break;
            }
            sys::clock::sleep_ns(1_000_000);
        }
        // What is being written must not be written twice.
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
        let output = TraceOutput::open(&name, false).unwrap();
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
        let output = TraceOutput::open(&name, false).unwrap();
        output.add(0, b"whole\n");
        assert!(output.take(3));
        output.add(3, b"interrupted\n");
        output.finish(3);
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "whole\n");
        output.finish(1);
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "whole\n");
        std::fs::remove_file(&name).unwrap();
    }
}
