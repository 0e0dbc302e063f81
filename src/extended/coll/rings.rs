//! Rings of short messages between ranks that map each other's memory, in place of active
//! messages.
//!
//! Used by `engine` under its lock, so the ring between two ranks has one writer and one reader.
//! Invariant: nothing that a peer wrote is used as a length before it was checked.
//!
//! A ring is a row of cache lines in the page of its reader. A cache line is free or holds one
//! message. A writer that finds the next cache line taken sends an active message instead, since
//! the messages of collectives may arrive in any order. The first 8-byte word names the lap, the
//! number of passes over the ring, and a message has a checksum. So an overwritten cache line is
//! found; it ends the job.
//!
//! ```text
//!   word 0   taken (bit 63), lap (48..63), checksum (24..48), handler (16..24),
//!            number of arguments (8..16), bytes of payload (0..8); only the lap if it is free
//!   word 1   payload, 8 bytes a word, then arguments, 2 a word
//!   ...
//! ```

use crate::client_memory::{Dst, Src};
use crate::extended::scratch::{RING_LINES, ScratchPages, WordLine};
use crate::rank::JobRank;
use crate::report;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, Ordering};
use sys::peer::Peer;

/// 8-byte words of a cache line after the first.
const WORDS: usize = 7;
/// Most bytes of payload.
const BYTES: usize = 8 * WORDS;
/// Most arguments of a message.
const ARGS: usize = 8;
/// Fewest cache lines of a ring: a message may be written while another is read.
const MIN_LINES: usize = 2;

/// In the first word of a cache line that is not free.
const TAKEN: u64 = 1 << 63;
/// Where the checksum is in it, and the bits that it covers in addition to the used words.
const CHECKSUM_SHIFT: u32 = 24;
const HEAD_BITS: u64 = (1 << CHECKSUM_SHIFT) - 1;
const CHECKSUM_BITS: u64 = HEAD_BITS << CHECKSUM_SHIFT;

/// The next cache line that a rank writes or reads, and its lap, in one word.
#[derive(Clone, Copy, Debug)]
struct RingTurn(u32);

impl RingTurn {
    const LINE_BITS: u32 = 8;

    fn line(self) -> usize {
        (self.0 & ((1 << RingTurn::LINE_BITS) - 1)) as usize
    }

    /// The first word of its cache line when that is free. Memory that is zero is free for the
    /// first lap.
    fn free(self) -> u64 {
        u64::from(self.0 >> RingTurn::LINE_BITS & 0x7fff) << 48
    }

    /// The same cache line in the lap before.
    fn last_lap(self) -> RingTurn {
        RingTurn(self.0.wrapping_sub(1 << RingTurn::LINE_BITS))
    }

    /// The same cache line in the next lap.
    fn next_lap(self) -> RingTurn {
        RingTurn(self.0.wrapping_add(1 << RingTurn::LINE_BITS))
    }

    /// The cache line after it, in a ring of `lines` cache lines.
    fn next(self, lines: usize) -> RingTurn {
        if self.line() + 1 == lines {
            RingTurn(self.next_lap().0 - self.line() as u32)
        } else {
            RingTurn(self.0 + 1)
        }
    }

    /// The first word of its cache line when that holds this message.
    fn taken(self, head: u64, words: impl Iterator<Item = u64>) -> u64 {
        TAKEN | self.free() | checksum(head, words) << CHECKSUM_SHIFT | head
    }
}

const _: () = assert!(RING_LINES < 1 << RingTurn::LINE_BITS);

/// The checksum of a message: the low bits of its first word, and the words in use.
fn checksum(head: u64, words: impl Iterator<Item = u64>) -> u64 {
    words.fold(sys::checksum::add(0, head & HEAD_BITS), sys::checksum::add) >> 40
}

/// Words that a message uses after the first.
fn words_of(numargs: usize, nbytes: usize) -> usize {
    numargs.div_ceil(2) + nbytes.div_ceil(8)
}

#[cold]
fn overwritten(from: usize, to: usize, head: u64) -> ! {
    report::damaged(format_args!(
        "the shared memory of the collectives is damaged: a message from rank {from} to rank {to} \
         begins with {head:#x}"
    ))
}

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
    /// By peer: the [`RingTurn`] of the next cache line to write, and to read.
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

    /// A cache line of the ring from one rank to another.
    fn line(&self, from: usize, to: usize, turn: RingTurn) -> &'static WordLine {
        &self.pages.page(to).rings()[from * self.lines + turn.line()]
    }

    /// Whether a message of this many arguments and bytes fits into a cache line.
    pub(super) fn fits(numargs: usize, nbytes: usize) -> bool {
        numargs <= ARGS && words_of(numargs, nbytes) <= WORDS
    }

    /// Writes a message that fits; false if no cache line is free.
    pub(super) fn write(&self, to: JobRank, handler: u8, args: &[i32], payload: Src<'_>) -> bool {
        let (me, to) = (self.pages.me(), to.index());
        let turn = RingTurn(self.written[to].load(Ordering::Relaxed));
        let [first, words @ ..] = self.line(me, to, turn);
        // Acquire pairs with the Release of the reader that freed the cache line.
        let now = first.load(Ordering::Acquire);
        if now != turn.free() {
            // A message of the lap before.
            if now & TAKEN == 0
                || (now ^ TAKEN) & !(CHECKSUM_BITS | HEAD_BITS) != turn.last_lap().free()
            {
                overwritten(me, to, now);
            }
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
        let head = u64::from(handler) << 16 | (args.len() as u64) << 8 | payload.len() as u64;
        let stored = words.iter().zip(values).map(|(word, value)| {
            word.store(value, Ordering::Relaxed);
            value
        });
        // Release pairs with the Acquire in `read`; it publishes earlier writes elsewhere, too.
        first.store(turn.taken(head, stored), Ordering::Release);
        // Release pairs with the Acquire in `lost`, for which the line is written.
        self.written[to].store(turn.next(self.lines).0, Ordering::Release);
        true
    }

    /// Ends the job if a message that this rank wrote was overwritten with the word of a free
    /// cache line. Then its reader waits for it, and its writer has gone on.
    pub(super) fn check_words(&self) {
        let me = self.pages.me();
        for to in (0..self.pages.ranks()).filter(|&to| to != me) {
            if let Some(turn) = self.lost(to) {
                overwritten(me, to, turn.free());
            }
        }
    }

    /// The turn of a message to a rank whose cache line is free, but not because it was read. The
    /// reader leaves the word of the next lap.
    fn lost(&self, to: usize) -> Option<RingTurn> {
        let mut turn = RingTurn(self.written[to].load(Ordering::Acquire)).last_lap();
        // The last lap of each line, where it has one: the word of lap -1 is in no ring.
        for _ in 0..self.lines {
            if self.line(self.pages.me(), to, turn)[0].load(Ordering::Relaxed) == turn.free() {
                return Some(turn);
            }
            turn = turn.next(self.lines);
        }
        None
    }

    /// Whether [`ShortRings::read`] would find something.
    pub(super) fn any(&self) -> bool {
        let me = self.pages.me();
        (0..self.pages.ranks()).any(|peer| {
            let turn = RingTurn(self.read[peer].load(Ordering::Relaxed));
            peer != me && self.line(peer, me, turn)[0].load(Ordering::Relaxed) != turn.free()
        })
    }

    /// Calls `f` with all messages that have arrived, and their senders. Ends the job if one was
    /// overwritten.
    pub(super) fn read(&self, mut f: impl FnMut(JobRank, ShortMessage)) {
        let me = self.pages.me();
        for peer in (0..self.pages.ranks()).filter(|&p| p != me) {
            loop {
                let turn = RingTurn(self.read[peer].load(Ordering::Relaxed));
                let [first, words @ ..] = self.line(peer, me, turn);
                let head = Peer::new(first.load(Ordering::Acquire));
                if head.equals(turn.free()) {
                    break;
                }
                let values = words.each_ref().map(|word| word.load(Ordering::Relaxed));
                let Some(message) = message_of(turn, head, values) else {
                    overwritten(peer, me, head.data())
                };
                // Release pairs with the Acquire in `write`.
                first.store(turn.next_lap().free(), Ordering::Release);
                self.read[peer].store(turn.next(self.lines).0, Ordering::Relaxed);
                f(JobRank(peer as u32), message);
            }
        }
    }
}

/// The message in a cache line; `None` if it is not one of this turn.
fn message_of(turn: RingTurn, head: Peer<u64>, values: [u64; WORDS]) -> Option<ShortMessage> {
    let count = |shift: u32, most: usize| head.map(|h| h >> shift & 0xff).below(most + 1);
    let (numargs, nbytes) = (count(8, ARGS)?, count(0, BYTES)?);
    let used = values.get(..words_of(numargs, nbytes))?;
    let low = head.map(|h| h & HEAD_BITS).data();
    if !head.equals(turn.taken(low, used.iter().copied())) {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (eight, value) in bytes.chunks_exact_mut(8).zip(values) {
        eight.copy_from_slice(&value.to_ne_bytes());
    }
    let mut args = [0; ARGS];
    let pairs = values[nbytes.div_ceil(8)..].iter().flat_map(|w| [*w as i32, (*w >> 32) as i32]);
    for (arg, value) in args.iter_mut().zip(pairs) {
        *arg = value;
    }
    let handler = head.map(|h| (h >> 16) as u8).data();
    Some(ShortMessage { handler, args, numargs, bytes, nbytes })
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

    /// The words of a message, and the first of a free cache line, in the second lap.
    #[test]
    fn overwritten_lines_are_no_messages() {
        let lines = 24;
        let (mut turn, mut turns) = (RingTurn(0), 0);
        while turn.free() == 0 || turn.line() != 5 {
            turn = turn.next(lines);
            turns += 1;
        }
        assert_eq!((turns, turn.free()), (lines + 5, 1 << 48));
        let (mut values, low) = ([3, 5, 7, 11, 13, 17, 19], 67 << 16 | 3 << 8 | 20);
        let head = turn.taken(low, values[..5].iter().copied());
        let read = |head, values| message_of(turn, Peer::new(head), values);
        assert_eq!(read(head, values).unwrap().args(), [11, 0, 13]);
        for bit in 0..64 {
            assert!(read(head ^ 1 << bit, values).is_none());
            for word in 0..5 {
                values[word] ^= 1 << bit;
                assert!(read(head, values).is_none());
                values[word] ^= 1 << bit;
            }
        }
        for other in [0, u64::MAX, TAKEN, turn.next_lap().taken(low, values.into_iter())] {
            assert!(read(other, values).is_none());
        }
    }

    #[test]
    fn what_has_no_room() {
        assert!(all(25).is_empty() && all(1).is_empty());
        assert!(!ShortRings::fits(3, 41) && !ShortRings::fits(9, 0) && !ShortRings::fits(8, 25));
    }

    #[test]
    fn a_message_that_became_a_free_line_is_missed_by_its_writer() {
        let rings = all(2);
        let nothing = Src::from(&[0u8; 0][..]);
        let write = |value: i32| rings[0].write(JobRank(1), 1, &[value], nothing);
        let read = || rings[1].read(|_, _| {});
        let lines = rings[0].lines as i32;
        for i in 0..3 * lines {
            assert!(rings[0].lost(1).is_none());
            let turn = RingTurn(rings[0].written[1].load(Ordering::Relaxed));
            let first = &rings[0].line(0, 1, turn)[0];
            assert!(write(i));
            assert!(rings[0].lost(1).is_none());
            let message = first.swap(turn.free(), Ordering::Relaxed);
            assert_eq!(rings[0].lost(1).map(|t| t.0), Some(turn.0));
            first.store(message, Ordering::Relaxed);
            // Sometimes with several messages in the ring.
            if i % lines % 5 == 4 {
                read();
            }
        }
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
