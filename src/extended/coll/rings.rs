//! Rings of short messages between ranks that map each other's memory, in place of active
//! messages.
//!
//! Used by `engine` under its lock, so the ring between two ranks has one writer and one reader.
//! Invariant: nothing that a peer wrote is used as a length before it was checked.
//!
//! A ring is a row of cache lines in the page of its reader. A line is free (its first word is
//! 0) or holds one message; a writer that finds the next line taken sends an active message
//! instead, since the messages of collectives may arrive in any order.
//!
//! ```text
//!   word 0   taken (bit 63), handler (bits 16..24), arguments (8..16), bytes of payload (0..8)
//!   word 1   payload, 8 bytes a word, then arguments, 2 a word
//!   ...
//! ```

use crate::client_memory::{Dst, Src};
use crate::extended::scratch::{RING_LINES, ScratchPages, WordLine};
use crate::rank::JobRank;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, Ordering};
use sys::peer::Peer;

/// Words of a line after the first.
const WORDS: usize = 7;
/// Most bytes of payload.
const BYTES: usize = 8 * WORDS;
/// Most arguments of a message.
const ARGS: usize = 8;
/// Fewest lines of a ring: a message may be written while another is read.
const MIN_LINES: usize = 2;

/// In the first word of a line that is not free.
const TAKEN: u64 = 1 << 63;

/// A message that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortMessage {
    /// The handler.
    pub(super) handler: u8,
    args: [i32; ARGS],
    numargs: usize,
    bytes: [u8; BYTES],
    nbytes: usize,
}

impl ShortMessage {
    /// Its arguments.
    pub(super) fn args(&self) -> &[i32] {
        &self.args[..self.numargs]
    }

    /// Its payload.
    pub(super) fn payload(&self) -> &[u8] {
        &self.bytes[..self.nbytes]
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct ShortRings {
    pages: ScratchPages,
    /// Lines of a ring.
    lines: usize,
    /// By peer: lines written, and lines read.
    written: Box<[AtomicU32]>,
    read: Box<[AtomicU32]>,
}

impl ShortRings {
    /// The rings of a job with these pages; `None` if it has no peer, or too many for the pages.
    pub(super) fn new(pages: &ScratchPages) -> Option<ShortRings> {
        let ranks = pages.ranks();
        let lines = RING_LINES / ranks;
        let none = || (0..ranks).map(|_| AtomicU32::new(0)).collect();
        (ranks > 1 && lines >= MIN_LINES).then(|| ShortRings {
            pages: pages.clone(),
            lines,
            written: none(),
            read: none(),
        })
    }

    /// A line of the ring from one rank to another.
    fn line(&self, from: usize, to: usize, number: u32) -> &'static WordLine {
        &self.pages.page(to).rings()[from * self.lines + number as usize % self.lines]
    }

    /// Whether a message of so many arguments and bytes fits into a line.
    pub(super) fn fits(numargs: usize, nbytes: usize) -> bool {
        numargs <= ARGS && numargs.div_ceil(2) + nbytes.div_ceil(8) <= WORDS
    }

    /// Writes a message that fits; false if no line is free.
    pub(super) fn write(&self, to: JobRank, handler: u8, args: &[i32], payload: Src<'_>) -> bool {
        let number = self.written[to.index()].load(Ordering::Relaxed);
        let [first, words @ ..] = self.line(self.pages.me(), to.index(), number);
        // Acquire pairs with the Release of the reader that freed the line.
        if first.load(Ordering::Acquire) != 0 {
            return false;
        }
        let eight = |i: usize| {
            let mut bytes = [0; 8];
            let part = payload.part(8 * i, 8.min(payload.len() - 8 * i));
            Dst::from(&mut bytes[..part.len()]).copy_from(part);
            u64::from_ne_bytes(bytes)
        };
        let pair = |p: &[i32]| {
            u64::from(p[0] as u32) | u64::from(p.get(1).map_or(0, |&a| a as u32)) << 32
        };
        let values = (0..payload.len().div_ceil(8)).map(eight).chain(args.chunks(2).map(pair));
        for (word, value) in words.iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
        let head =
            TAKEN | u64::from(handler) << 16 | (args.len() as u64) << 8 | payload.len() as u64;
        // Release pairs with the Acquire in `read`; it publishes earlier writes elsewhere, too.
        first.store(head, Ordering::Release);
        self.written[to.index()].store(number.wrapping_add(1), Ordering::Relaxed);
        true
    }

    /// Whether a message has arrived.
    pub(super) fn any(&self) -> bool {
        let me = self.pages.me();
        (0..self.pages.ranks()).any(|peer| {
            let number = self.read[peer].load(Ordering::Relaxed);
            peer != me && self.line(peer, me, number)[0].load(Ordering::Relaxed) != 0
        })
    }

    /// Calls `f` with all messages that have arrived, and their senders. A count that is out of
    /// range is read as 0.
    pub(super) fn read(&self, mut f: impl FnMut(JobRank, ShortMessage)) {
        let me = self.pages.me();
        for peer in (0..self.pages.ranks()).filter(|&p| p != me) {
            loop {
                let number = self.read[peer].load(Ordering::Relaxed);
                let [first, words @ ..] = self.line(peer, me, number);
                let head = Peer::new(first.load(Ordering::Acquire));
                if head.equals(0) {
                    break;
                }
                let count = |shift: u32, most: usize| {
                    head.map(|h| h >> shift & 0xff).below(most + 1).unwrap_or(0)
                };
                let mut message = ShortMessage {
                    handler: head.map(|h| (h >> 16) as u8).data(),
                    args: [0; ARGS],
                    numargs: count(8, ARGS),
                    bytes: [0; BYTES],
                    nbytes: count(0, BYTES),
                };
                let mut values = [0; WORDS];
                for ((value, word), bytes) in
                    values.iter_mut().zip(words).zip(message.bytes.chunks_exact_mut(8))
                {
                    *value = word.load(Ordering::Relaxed);
                    bytes.copy_from_slice(&value.to_ne_bytes());
                }
                let pairs = values
                    .iter()
                    .skip(message.nbytes.div_ceil(8))
                    .flat_map(|w| [*w as i32, (*w >> 32) as i32]);
                for (arg, value) in message.args.iter_mut().zip(pairs) {
                    *arg = value;
                }
                // Release pairs with the Acquire in `write`.
                first.store(0, Ordering::Release);
                self.read[peer].store(number.wrapping_add(1), Ordering::Relaxed);
                f(JobRank(peer as u32), message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn all(n: usize) -> Vec<ShortRings> {
        ScratchPages::for_test(n).iter().filter_map(ShortRings::new).collect()
    }

    #[test]
    fn every_pair_every_size_and_full_rows() {
        for n in [2, 3, 24] {
            let rings = all(n);
            let text: Vec<u8> = (1..=40).collect();
            for round in 0..60 {
                let (numargs, nbytes) = if round % 3 == 0 { (8, 0) } else { (3, round % 41) };
                assert!(ShortRings::fits(numargs, nbytes));
                let args: Vec<i32> = (0..numargs as i32).map(|a| -a * 77 - round as i32).collect();
                for (from, ring) in rings.iter().enumerate() {
                    for to in (0..n).filter(|&to| to != from) {
                        let mut written = 0;
                        while ring.write(JobRank(to as u32), 67, &args, Src::from(&text[..nbytes]))
                        {
                            written += 1;
                        }
                        assert_eq!(written, ring.lines);
                    }
                }
                for (me, ring) in rings.iter().enumerate() {
                    let mut seen = alloc::vec![0; n];
                    assert!(ring.any());
                    ring.read(|peer, m| {
                        seen[peer.index()] += 1;
                        assert_eq!((m.handler, m.args()), (67, args.as_slice()));
                        assert_eq!(m.payload(), &text[..nbytes]);
                    });
                    assert!(!ring.any());
                    seen[me] += ring.lines;
                    assert!(seen.iter().all(|&s| s == ring.lines));
                }
            }
        }
    }

    #[test]
    fn what_has_no_room() {
        assert!(all(25).is_empty() && all(1).is_empty());
        assert!(!ShortRings::fits(3, 41) && !ShortRings::fits(9, 0) && !ShortRings::fits(8, 25));
    }

    #[test]
    fn a_writer_and_a_reader_at_once() {
        extern crate std;
        let rings = all(2);
        std::thread::scope(|s| {
            s.spawn(|| {
                for i in 0..2000i32 {
                    let data = i.to_ne_bytes();
                    while !rings[0].write(JobRank(1), 1, &[i, -i], Src::from(&data[..])) {
                        std::thread::yield_now();
                    }
                }
            });
            let mut next = 0;
            while next < 2000 {
                rings[1].read(|_, short| {
                    assert_eq!(short.args(), [next, -next]);
                    assert_eq!(short.payload(), next.to_ne_bytes());
                    next += 1;
                });
                std::thread::yield_now();
            }
        });
    }
}
