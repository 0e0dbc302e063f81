//! Short messages between processes that map each other's memory: cache lines in shared pages instead of active messages.
//!
//! Used by `engine` under its lock, so that the row of lines between two processes has one writer and one reader. A line is
//! free or holds one message; who finds the next line of a row taken sends an active message instead, since the messages
//! of collectives may come in any order. Invariant: nothing that a peer wrote is used as a length before it was checked.

use crate::runtime::GasnetJob;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Where the rows begin in each process's page; the barrier and `direct` have what is before.
pub(super) const OFFSET: usize = 1024;
/// Bytes of all rows of a page.
const ROOM: usize = crate::runtime::job::SCRATCH_BYTES - OFFSET;
const LINE: usize = 64;
/// Words of a line beside the first.
const WORDS: usize = LINE / 8 - 1;
/// Most arguments of a message.
pub(super) const ARGS: usize = 8;
/// A row has at least so many lines, so that a message may be written while another is read.
const FEWEST: usize = 2;

/// A line that is not free; above 8 bits each of handler, number of arguments, and bytes of payload.
const TAKEN: u64 = 1 << 63;

/// A message that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortMessage {
    /// Which function handles it.
    pub(super) handler: u8,
    args: [i32; ARGS],
    numargs: usize,
    /// The payload comes first.
    pub(super) payload: [u64; WORDS],
    /// Bytes of payload.
    pub(super) nbytes: usize,
}

impl ShortMessage {
    pub(super) fn args(&self) -> &[i32] {
        &self.args[..self.numargs]
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct ShortRings {
    /// The page of each process, as it is mapped here.
    pages: Box<[*mut u8]>,
    me: usize,
    /// Lines of a row.
    count: usize,
    /// By peer: lines written, and lines read.
    written: Box<[AtomicU32]>,
    read: Box<[AtomicU32]>,
}

// SAFETY: the pages are shared mappings that live as long as the process; all access is through atomics.
unsafe impl Send for ShortRings {}
// SAFETY: as above.
unsafe impl Sync for ShortRings {}

impl ShortRings {
    /// For a job whose processes all map each other's memory, if there are few enough for the pages; else `None`.
    pub(super) fn of(job: &GasnetJob) -> Option<ShortRings> {
        let pages = job.common_scratch().filter(|pages| pages.len() > 1)?;
        ShortRings::new(pages, job.mynode as usize)
    }

    /// For the process `me` of those with these pages, each of `SCRATCH_BYTES`, zero at start and shared by all.
    fn new(pages: Box<[*mut u8]>, me: usize) -> Option<ShortRings> {
        let count = ROOM / pages.len() / LINE;
        let none = || (0..pages.len()).map(|_| AtomicU32::new(0)).collect();
        let (written, read) = (none(), none());
        (count >= FEWEST).then_some(ShortRings { pages, me, count, written, read })
    }

    /// The words of a line of the row from one process to another.
    fn line(&self, from: usize, to: usize, number: u32) -> &[AtomicU64; WORDS + 1] {
        let line = from * self.count + number as usize % self.count;
        // SAFETY: within the page, since each process has a row of `count` lines there; aligned; only used as atomics.
        unsafe { &*self.pages[to].add(OFFSET + line * LINE).cast() }
    }

    /// Whether a message of so many arguments and bytes fits into a line.
    pub(super) fn fits(numargs: usize, nbytes: usize) -> bool {
        numargs <= ARGS && numargs.div_ceil(2) + nbytes.div_ceil(8) <= WORDS
    }

    /// Writes a message that fits; false if no line is free.
    pub(super) fn write(&self, to: usize, handler: u8, args: &[i32], payload: &[u8]) -> bool {
        let number = self.written[to].load(Ordering::Relaxed);
        let [first, words @ ..] = self.line(self.me, to, number);
        // Acquire pairs with the Release of the reader, who is done with the line.
        if first.load(Ordering::Acquire) != 0 {
            return false;
        }
        let pair = |p: &[i32]| {
            u64::from(p[0] as u32) | u64::from(p.get(1).map_or(0, |&a| a as u32)) << 32
        };
        let eight = |p: &[u8]| {
            let mut bytes = [0; 8];
            bytes[..p.len()].copy_from_slice(p);
            u64::from_ne_bytes(bytes)
        };
        let values = payload.chunks(8).map(eight).chain(args.chunks(2).map(pair));
        for (word, value) in words.iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
        let head =
            TAKEN | u64::from(handler) << 16 | (args.len() as u64) << 8 | payload.len() as u64;
        // Release pairs with the Acquire in `read`, also for what was written elsewhere before.
        first.store(head, Ordering::Release);
        self.written[to].store(number.wrapping_add(1), Ordering::Relaxed);
        true
    }

    /// Whether a message has come.
    #[inline]
    pub(super) fn any(&self) -> bool {
        (0..self.pages.len()).any(|peer| {
            let number = self.read[peer].load(Ordering::Relaxed);
            peer != self.me && self.line(peer, self.me, number)[0].load(Ordering::Relaxed) != 0
        })
    }

    /// Hands all messages that have come to `f`, with their senders.
    pub(super) fn read(&self, mut f: impl FnMut(usize, ShortMessage)) {
        for peer in (0..self.pages.len()).filter(|&p| p != self.me) {
            loop {
                let number = self.read[peer].load(Ordering::Relaxed);
                let [first, words @ ..] = self.line(peer, self.me, number);
                let head = first.load(Ordering::Acquire);
                if head == 0 {
                    break;
                }
                let numargs = ((head >> 8) as usize & 0xff).min(ARGS);
                let nbytes = (head as usize & 0xff).min(WORDS * 8);
                let mut short = ShortMessage {
                    handler: (head >> 16) as u8,
                    args: [0; ARGS],
                    numargs,
                    payload: [0; WORDS],
                    nbytes,
                };
                for (value, word) in short.payload.iter_mut().zip(words) {
                    *value = word.load(Ordering::Relaxed);
                }
                let pairs = short
                    .payload
                    .iter()
                    .skip(nbytes.div_ceil(8))
                    .flat_map(|w| [*w as i32, (*w >> 32) as i32]);
                for (arg, value) in short.args.iter_mut().zip(pairs) {
                    *arg = value;
                }
                first.store(0, Ordering::Release);
                self.read[peer].store(number.wrapping_add(1), Ordering::Relaxed);
                f(peer, short);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::cell::UnsafeCell;

    #[repr(C, align(4096))]
    struct Page(UnsafeCell<[u8; 4096]>);

    fn all(n: usize) -> (Vec<Page>, Vec<Option<ShortRings>>) {
        let pages: Vec<Page> = (0..n).map(|_| Page(UnsafeCell::new([0; 4096]))).collect();
        let lines = (0..n)
            .map(|me| ShortRings::new(pages.iter().map(|p| p.0.get().cast()).collect(), me))
            .collect();
        (pages, lines)
    }

    #[test]
    fn every_pair_every_size_and_full_rows() {
        for n in [2, 3, 24] {
            let (_pages, lines) = all(n);
            let lines: Vec<ShortRings> = lines.into_iter().flatten().collect();
            let text: Vec<u8> = (1..=40).collect();
            for round in 0..60 {
                let (numargs, nbytes) = if round % 3 == 0 { (8, 0) } else { (3, round % 41) };
                assert!(ShortRings::fits(numargs, nbytes));
                let args: Vec<i32> = (0..numargs as i32).map(|a| -a * 77 - round as i32).collect();
                for (from, line) in lines.iter().enumerate() {
                    for to in (0..n).filter(|&to| to != from) {
                        let mut written = 0;
                        while line.write(to, 67, &args, &text[..nbytes]) {
                            written += 1;
                        }
                        assert_eq!(written, line.count);
                    }
                }
                for (me, line) in lines.iter().enumerate() {
                    let mut seen = alloc::vec![0; n];
                    assert!(line.any());
                    line.read(|peer, s| {
                        seen[peer] += 1;
                        assert_eq!((s.handler, s.args(), s.nbytes), (67, args.as_slice(), nbytes));
                        let bytes: Vec<u8> =
                            s.payload.iter().flat_map(|w| w.to_ne_bytes()).collect();
                        assert_eq!(bytes[..nbytes], text[..nbytes]);
                    });
                    assert!(!line.any());
                    seen[me] += line.count;
                    assert!(seen.iter().all(|&s| s == line.count));
                }
            }
        }
    }

    #[test]
    fn what_has_no_room() {
        assert!(all(25).1.iter().all(Option::is_none));
        assert!(!ShortRings::fits(3, 41) && !ShortRings::fits(9, 0) && !ShortRings::fits(8, 25));
    }

    #[test]
    fn a_writer_and_a_reader_at_once() {
        extern crate std;
        let (_pages, lines) = all(2);
        let lines: Vec<ShortRings> = lines.into_iter().flatten().collect();
        std::thread::scope(|s| {
            s.spawn(|| {
                for i in 0..2000i32 {
                    while !lines[0].write(1, 1, &[i, -i], &i.to_ne_bytes()) {
                        std::thread::yield_now();
                    }
                }
            });
            let mut next = 0;
            while next < 2000 {
                lines[1].read(|_, short| {
                    assert_eq!(short.args(), [next, -next]);
                    assert_eq!(short.payload[0] as i32, next);
                    next += 1;
                });
                std::thread::yield_now();
            }
        });
    }
}
