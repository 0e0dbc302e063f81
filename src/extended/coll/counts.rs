//! How far each rank of a job is in its movements in shared memory: counts, and offsets in
//! segments.
//!
//! Used by `direct`. Invariant: a slot stays until all ranks have left its movement.
//!
//! Each rank has a ring of *slots* and two counts, which only this rank writes: how many slots
//! it has published (it has entered the movements with these), and how many it no longer needs (it
//! has left them). A slot is an offset and a cache line of data. A movement takes one slot or
//! several in a row, at all ranks the same ones; it skips what is left of the ring if they do not
//! fit there. Its number is the count after its slots. The offsets are in the first slots, a copy
//! of the source is in all of them, so small ones let many movements be under way.
//!
//! ```text
//!   counts:   entered, left
//!   data:     slot 0 | slot 1 | ...    a cache line each
//!   offsets:  slot 0 | slot 1 | ...    a word each
//! ```
//!
//! Any rank can overwrite these words. A rank that waits for long compares its own with what it
//! stored, and those of the others with what they may store now.

use super::roles::AwaitedRanks;
use crate::client_memory::Dst;
use crate::extended::scratch::{ScratchPages, WordPair};
use crate::report;
use crate::runtime::scratch::{EAGER_RANKS, slots};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};
use once_cell::race::OnceBox;
use sys::peer::Peer;

/// The word that counts the slots that a rank has published.
pub(super) const ENTERED: usize = 0;
/// The word that counts the slots that it no longer needs.
pub(super) const LEFT: usize = 1;
/// Bytes of the data of a slot: a cache line.
const LINE_BYTES: usize = 64;
/// The same in words.
const LINE_WORDS: usize = LINE_BYTES / 8;
/// In place of the offset of a source: it was copied to the slots.
pub(super) const IN_SLOTS: u64 = 1 << 63;

/// How many slots a copy of this many bytes takes.
pub(super) fn slots_of(bytes: usize) -> usize {
    bytes.div_ceil(LINE_BYTES).max(1)
}

/// The number of a movement: how many slots a rank has published with it and before it.
pub(super) type MovementNumber = u64;

/// No offset in a segment, and no count.
const CHANGING: u64 = u64::MAX;

/// A count that a rank has not reached: its rank, which of its counts, and the number.
///
/// ```text
///   63      58      57                                  0
///   | rank   | count | number                           |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AwaitedCount(pub(super) u64);

/// Bits of the number of an awaited count: at a slot each nanosecond, enough for four years.
const NUMBER_BITS: u32 = 57;
const _: () = assert!(EAGER_RANKS <= 1 << (63 - NUMBER_BITS));

impl AwaitedCount {
    /// One that has been reached.
    pub(super) const REACHED: AwaitedCount = AwaitedCount(0);

    fn new(rank: usize, word: usize, number: MovementNumber) -> AwaitedCount {
        let place = ((rank as u64) << 1 | word as u64) << NUMBER_BITS;
        AwaitedCount(place | number)
    }

    /// Rank, count and number.
    fn parts(self) -> (usize, usize, MovementNumber) {
        let place = self.0 >> NUMBER_BITS;
        ((place >> 1) as usize, (place & 1) as usize, self.0 & ((1 << NUMBER_BITS) - 1))
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct MovementCounts {
    pages: ScratchPages,
    /// Which of the streams of movements.
    stream: usize,
    /// Slots for which a rank has room.
    slots: u64,
    /// What the own counts and offsets hold; [`CHANGING`] while they change.
    own: [AtomicU64; 2],
    /// Made when this rank publishes its first offset.
    own_offsets: OnceBox<Box<[AtomicU64]>>,
    /// The last movement of which this rank knows that all have left it.
    all_left: AtomicU64,
}

impl MovementCounts {
    /// For a stream of a job with these pages.
    pub(super) fn new(pages: &ScratchPages, stream: usize) -> MovementCounts {
        let slots = slots(pages.ranks());
        MovementCounts {
            pages: pages.clone(),
            stream,
            slots: slots as u64,
            own: Default::default(),
            own_offsets: OnceBox::new(),
            all_left: AtomicU64::new(0),
        }
    }

    /// The counts of a rank.
    #[inline(always)]
    fn counts(&self, rank: usize) -> &'static WordPair {
        self.pages.page(rank).movement(self.stream)
    }

    /// Where in the ring the slot lies that follows the first `number` ones.
    #[inline(always)]
    fn place(&self, number: MovementNumber) -> usize {
        // A power of two.
        (number & (self.slots - 1)) as usize
    }

    /// The data of all slots of a rank, and the offsets behind them.
    #[inline(always)]
    fn ring(&self, rank: usize) -> (&'static [AtomicU64], &'static [AtomicU64]) {
        self.pages.page(rank).eager(self.stream).split_at(self.slots as usize * LINE_WORDS)
    }

    /// How many ranks there are.
    pub(super) fn ranks(&self) -> usize {
        self.pages.ranks()
    }

    /// This rank.
    pub(super) fn me(&self) -> usize {
        self.pages.me()
    }

    /// The number of the next movement of this rank, which takes this many slots, if there is room
    /// for them.
    pub(super) fn next(&self, slots: usize) -> Option<MovementNumber> {
        let (number, overwritten) = self.next_without_room(slots);
        self.all_left(overwritten).then_some(number)
    }

    /// The number of the next movement, and of the last whose slots it overwrites.
    fn next_without_room(&self, slots: usize) -> (MovementNumber, MovementNumber) {
        let (entered, slots) = (self.own[ENTERED].load(Ordering::Relaxed), slots as u64);
        let before_end = self.slots - self.place(entered) as u64;
        let skipped = if slots > before_end { before_end } else { 0 };
        let number = entered + skipped + slots;
        (number, number.saturating_sub(self.slots))
    }

    /// A count without which there is no room for the next movement.
    pub(super) fn awaited_for_room(&self, slots: usize) -> AwaitedCount {
        self.awaited(LEFT, AwaitedRanks::All, self.next_without_room(slots).1)
    }

    /// Publishes offsets in the first of the slots of the next movement, for which there is room,
    /// and enters it.
    pub(super) fn publish(&self, number: MovementNumber, slots: usize, offsets: &[u64]) {
        if !offsets.is_empty() {
            let (first, me) = (self.place(number - slots as u64), self.pages.me());
            let own = self
                .own_offsets
                .get_or_init(|| Box::new((0..self.slots).map(|_| AtomicU64::new(0)).collect()));
            for (at, &offset) in (first..).zip(offsets) {
                store(&own[at], &self.ring(me).1[at], offset);
            }
        }
        self.store(ENTERED, number);
    }

    /// Leaves the movement that this rank has entered first of those that it has not left.
    pub(super) fn leave(&self, number: MovementNumber) {
        self.store(LEFT, number);
    }

    /// Stores an own count.
    fn store(&self, count: usize, value: u64) {
        store(&self.own[count], &self.counts(self.pages.me())[count], value);
    }

    /// The number that this word of a rank holds, if it has reached one that this rank has
    /// entered. Acquire pairs with the Release of [`MovementCounts::store`].
    #[inline(always)]
    fn reached(&self, rank: usize, word: usize, number: MovementNumber) -> Option<MovementNumber> {
        let value = self.counts(rank)[word].load(Ordering::Acquire);
        // None is further ahead than the room for slots allows: such a word was overwritten.
        (number..=self.most()).contains(&value).then_some(value)
    }

    /// The furthest that another rank can be: all have left the movement whose slots it
    /// overwrites.
    #[inline(always)]
    fn most(&self) -> MovementNumber {
        self.own[LEFT].load(Ordering::Relaxed).saturating_add(self.slots)
    }

    /// A count of a rank that is awaited in a movement and has not taken the step.
    pub(super) fn awaited(
        &self,
        word: usize,
        awaited: AwaitedRanks,
        number: MovementNumber,
    ) -> AwaitedCount {
        let lags = |rank: &usize| self.reached(*rank, word, number).is_none();
        let rank = match awaited {
            AwaitedRanks::None => None,
            AwaitedRanks::Rank(rank) => Some(rank).filter(lags),
            AwaitedRanks::All if word == LEFT && number <= self.known_left() => None,
            AwaitedRanks::All => (0..self.pages.ranks()).find(lags),
        };
        rank.map_or(AwaitedCount::REACHED, |rank| AwaitedCount::new(rank, word, number))
    }

    /// Whether an awaited count has been reached. Acquire as in [`MovementCounts::have_reached`].
    #[inline(always)]
    pub(super) fn is_reached(&self, awaited: AwaitedCount) -> bool {
        let (rank, word, number) = awaited.parts();
        self.reached(rank, word, number).is_some()
    }

    /// Whether all ranks have entered a movement that this rank has entered.
    fn all_entered(&self, number: MovementNumber) -> bool {
        (0..self.pages.ranks()).all(|rank| self.reached(rank, ENTERED, number).is_some())
    }

    /// The last movement of which this rank knows that all have left it.
    fn known_left(&self) -> MovementNumber {
        // Relaxed: this thread, or the one that had the lock before, has read the words.
        self.all_left.load(Ordering::Relaxed)
    }

    /// Whether all ranks have left a movement, or one that has this slot, that this rank has
    /// entered.
    pub(super) fn all_left(&self, number: MovementNumber) -> bool {
        if number <= self.known_left() {
            return true;
        }
        let ranks = 0..self.pages.ranks();
        let first =
            ranks.map(|rank| self.reached(rank, LEFT, number)).reduce(|a, b| Some(a?.min(b?)));
        if let Some(first) = first.flatten() {
            // Release: a thread that reads this does not read older words after it.
            self.all_left.store(first, Ordering::Release);
            return true;
        }
        false
    }

    /// Whether those that a rank awaits have taken a step in a movement.
    #[inline(always)]
    pub(super) fn have_reached(
        &self,
        word: usize,
        awaited: AwaitedRanks,
        number: MovementNumber,
    ) -> bool {
        match awaited {
            AwaitedRanks::None => true,
            AwaitedRanks::Rank(rank) => self.reached(rank, word, number).is_some(),
            AwaitedRanks::All if word == LEFT => self.all_left(number),
            AwaitedRanks::All => self.all_entered(number),
        }
    }

    /// The offset in slot `at` of those of a movement that takes this many.
    #[inline(always)]
    pub(super) fn offset(
        &self,
        rank: usize,
        number: MovementNumber,
        (slots, at): (usize, usize),
    ) -> Peer<u64> {
        let first = self.place(number.wrapping_sub(slots as u64));
        Peer::new(self.ring(rank).1[first + at].load(Ordering::Relaxed))
    }

    /// The data of the slots of a movement that takes this many.
    #[inline(always)]
    pub(super) fn data(&self, rank: usize, number: MovementNumber, slots: usize) -> Dst<'static> {
        let first = self.place(number.wrapping_sub(slots as u64));
        Dst::from(self.ring(rank).0).part(first * LINE_BYTES, slots * LINE_BYTES)
    }

    /// Ends the job if a word was overwritten.
    pub(super) fn check_words(&self) {
        if let Some(MovementDamage { rank, word, value }) = self.damage() {
            report::damaged(format_args!(
                "the shared memory of the collectives is damaged: {word} of rank {rank} holds {value:#x}"
            ));
        }
    }

    /// A word that was overwritten.
    fn damage(&self) -> Option<MovementDamage> {
        let me = self.pages.me();
        let own = |word: usize| self.own[word].load(Ordering::Acquire);
        let word = |rank: usize, word: usize| self.counts(rank)[word].load(Ordering::Acquire);
        let name = |word: usize| match word {
            ENTERED => "the count of the movements that it entered",
            _ => "the count of the movements that it left",
        };
        let mine = [ENTERED, LEFT].into_iter().find_map(|at| {
            let value = overwritten(&self.own[at], &self.counts(me)[at])?;
            Some(MovementDamage { rank: me, word: name(at), value })
        });
        let mine = mine.or_else(|| {
            let entered = own(ENTERED);
            let offsets = self.own_offsets.get().into_iter().flatten();
            let other = offsets.zip(self.ring(me).1).find_map(|(own, word)| {
                let value = overwritten(own, word)?;
                Some(MovementDamage { rank: me, word: "an offset", value })
            });
            // An offset may change, and change back, in the movements that it enters meanwhile.
            other.filter(|_| entered != CHANGING && own(ENTERED) == entered)
        });
        let left = own(LEFT);
        let all_left = self.all_left.load(Ordering::Acquire);
        let others = (0..self.pages.ranks()).filter(|&rank| rank != me);
        let theirs = others.flat_map(|rank| {
            // It entered none without room, and left none that it has not entered.
            [ENTERED, LEFT].map(|at| {
                let value = word(rank, at);
                let is_other = !(all_left..=left.saturating_add(self.slots)).contains(&value);
                is_other.then_some(MovementDamage { rank, word: name(at), value })
            })
        });
        let theirs = theirs.flatten().next();
        // The words were read with Acquire: if they answer to later ones of this rank, so is what
        // is recorded of those.
        let is_current = left != CHANGING && own(LEFT) == left;
        mine.or(theirs.filter(|_| is_current))
    }
}

/// Stores an own word, and what it holds. Release: what this rank wrote, and read, before.
fn store(own: &AtomicU64, word: &AtomicU64, value: u64) {
    if own.load(Ordering::Relaxed) != value {
        own.store(CHANGING, Ordering::Relaxed);
        // Release: a thread that reads the new word does not read the old record after it.
        word.store(value, Ordering::Release);
        own.store(value, Ordering::Release);
    }
}

/// What an own word holds, if this rank did not store it. The word must not have changed, and
/// changed back, meanwhile.
fn overwritten(own: &AtomicU64, word: &AtomicU64) -> Option<u64> {
    let before = own.load(Ordering::Acquire);
    let value = word.load(Ordering::Acquire);
    let is_other = before != CHANGING && value != before && own.load(Ordering::Acquire) == before;
    is_other.then_some(value)
}

/// A word of a rank's that was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MovementDamage {
    rank: usize,
    word: &'static str,
    value: u64,
}

#[cfg(test)]
mod tests;
