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
            let own = self.own_offsets.get().into_iter().flatten();
            own.zip(self.ring(me).1).find_map(|(own, word)| {
                let value = overwritten(own, word)?;
                Some(MovementDamage { rank: me, word: "an offset", value })
            })
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

/// What an own word holds, if this rank did not store it.
fn overwritten(own: &AtomicU64, word: &AtomicU64) -> Option<u64> {
    let before = own.load(Ordering::Acquire);
    let value = word.load(Ordering::Acquire);
    let is_other = before != CHANGING && value != before && own.load(Ordering::Acquire) == before;
    // An offset may have changed, and changed back, since the first look.
    (is_other && word.load(Ordering::Acquire) == value).then_some(value)
}

/// A word of a rank's that was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MovementDamage {
    rank: usize,
    word: &'static str,
    value: u64,
}

#[cfg(test)]
mod tests {
    use super::super::request::{CollOperation, CollRequest};
    use super::super::roles::MovementRoles;
    use super::super::shape::MovementShape;
    use super::*;
    use crate::client_memory::Src;
    use alloc::vec::Vec;
    use core::ops::Range;

    fn enter(rank: &MovementCounts, slots: usize, offsets: &[u64]) -> Option<MovementNumber> {
        let number = rank.next(slots)?;
        rank.publish(number, slots, offsets);
        Some(number)
    }

    /// Slots among three ranks.
    const SLOTS: u64 = slots(3) as u64;
    /// Its slot lies where the first was.
    const LAST: u64 = SLOTS + 1;

    /// Movements that all ranks have entered and left, but for the last one.
    fn entered_by_two_of_three(pages: &[ScratchPages]) -> Vec<MovementCounts> {
        let ranks: Vec<MovementCounts> =
            pages.iter().map(|pages| MovementCounts::new(pages, 1)).collect();
        for (rank, number) in
            (1..=LAST).flat_map(|n| [(0, n), (1, n), (2, n)]).take(3 * LAST as usize - 1)
        {
            if rank == 0 && number > 1 {
                ranks.iter().for_each(|r| r.leave(number - 1));
                assert!(ranks.iter().all(|r| r.all_left(number - 1)));
            }
            assert_eq!(enter(&ranks[rank], 1, &[number + 100]), Some(number));
        }
        assert!(ranks.iter().all(|r| r.damage().is_none()));
        ranks
    }

    #[test]
    fn an_awaited_count_is_one_that_lags() {
        let pages = ScratchPages::for_test(3);
        let ranks = entered_by_two_of_three(&pages);
        let number = LAST;
        assert_eq!(
            ranks[0].awaited(ENTERED, AwaitedRanks::Rank(1), number),
            AwaitedCount::REACHED
        );
        let awaited = ranks[0].awaited(ENTERED, AwaitedRanks::All, number);
        assert_eq!(awaited.parts(), (2, ENTERED, number));
        assert!(!ranks[0].is_reached(awaited) && ranks[0].is_reached(AwaitedCount::REACHED));
        assert_eq!(enter(&ranks[2], 1, &[]), Some(number));
        assert!(ranks[0].is_reached(awaited));
        let most = AwaitedCount::new(EAGER_RANKS - 1, LEFT, (1 << NUMBER_BITS) - 1);
        assert_eq!(most.parts(), (EAGER_RANKS - 1, LEFT, (1 << NUMBER_BITS) - 1));
    }

    #[test]
    fn overwritten_words_are_found() {
        let pages = ScratchPages::for_test(3);
        let ranks = entered_by_two_of_three(&pages);
        for rank in 0..3 {
            let offsets = ranks[0].ring(rank).1.iter().take(SLOTS as usize).step_by(65);
            for word in ranks[0].counts(rank)[..2].iter().chain(offsets) {
                let whole = word.load(Ordering::Relaxed);
                for value in [0, u64::MAX, whole ^ 8, whole + 1, whole << 32] {
                    word.store(value, Ordering::Relaxed);
                    let found = ranks.iter().find_map(MovementCounts::damage).unwrap();
                    assert_eq!((found.rank, found.value), (rank, value));
                    word.store(whole, Ordering::Relaxed);
                }
            }
        }
    }

    /// Neither a rank that waits for all nor one with no record of the word goes on with it.
    #[test]
    fn counts_that_no_rank_can_have_are_no_movement() {
        let pages = ScratchPages::for_test(3);
        let ranks = entered_by_two_of_three(&pages);
        let word = &ranks[0].counts(2)[ENTERED];
        assert!(!ranks[0].all_entered(LAST));
        for (value, is_entered) in
            [(LAST, true), (LAST - 1 + SLOTS, true), (LAST + SLOTS, false), (u64::MAX, false)]
        {
            word.store(value, Ordering::Relaxed);
            assert_eq!(ranks[0].all_entered(LAST), is_entered, "{value}");
        }
        let theirs = ranks[0].damage().expect("rank 0 knows how far rank 2 can be");
        assert_eq!((theirs.rank, theirs.value), (2, u64::MAX));
    }

    #[test]
    fn slots_stay_until_all_can_have_read_them() {
        let pages = ScratchPages::for_test(2);
        let ranks: Vec<MovementCounts> =
            pages.iter().map(|pages| MovementCounts::new(pages, 1)).collect();
        for number in 1..=SLOTS {
            assert_eq!(enter(&ranks[0], 1, &[number * 10]), Some(number));
        }
        assert_eq!((enter(&ranks[0], 1, &[70]), enter(&ranks[1], 2, &[9, 8])), (None, Some(2)));
        assert!(ranks[0].all_entered(1) && ranks[0].all_entered(2) && !ranks[0].all_entered(3));
        ranks[0].leave(1);
        assert_eq!(enter(&ranks[0], 1, &[70]), None);
        ranks[1].leave(1);
        // Room for one, but not for two.
        assert_eq!(enter(&ranks[0], 2, &[70, 80]), None);
        assert_eq!(enter(&ranks[0], 1, &[70]), Some(SLOTS + 1));
        for (number, offset) in [(SLOTS + 1, 70), (2, 20), (3, 30)] {
            assert!(ranks[1].offset(0, number, (1, 0)).equals(offset));
        }
    }

    /// A movement that does not fit in the rest of the ring begins at its start.
    #[test]
    fn the_slots_of_a_movement_follow_each_other() {
        let pages = ScratchPages::for_test(2);
        let ranks: Vec<MovementCounts> =
            pages.iter().map(|pages| MovementCounts::new(pages, 0)).collect();
        let most = SLOTS as usize / 2 - 1;
        for (slots, number) in [
            (most, most as u64),
            (most, 2 * most as u64),
            (2, SLOTS),
            (most, SLOTS + most as u64),
            (most, SLOTS + 2 * most as u64),
            (3, 2 * SLOTS + 3),
            (most, 2 * SLOTS + 3 + most as u64),
        ] {
            for rank in &ranks {
                assert_eq!(enter(rank, slots, &[number]), Some(number));
            }
            let data = ranks[1].data(0, number, slots);
            let first = ((number - slots as u64) % SLOTS) as usize;
            let begin = ranks[1].data(0, 1, 1);
            assert_eq!(data.as_ptr().addr() - begin.as_ptr().addr(), first * LINE_BYTES);
            assert!(ranks[1].offset(0, number, (slots, 0)).equals(number));
            ranks.iter().for_each(|r| r.leave(number));
        }
    }

    /// The movement with this number, of any kind.
    fn movement(number: u64, ranks: usize) -> CollRequest {
        let bits = number.wrapping_mul(6_364_136_223_846_793_005) >> 32;
        let set = |bit: u32| bits & 1 << bit != 0;
        let operation = [
            CollOperation::Broadcast,
            CollOperation::Gather,
            CollOperation::Exchange,
            CollOperation::Scatter,
        ][bits as usize & 3];
        CollRequest {
            root: (bits >> 8) as u32 % ranks as u32,
            in_allsync: set(2) && set(3),
            out_allsync: set(4) && set(5),
            out_nosync: set(6) && !(set(4) && set(5)),
            // The second takes many slots.
            ..CollRequest::new(operation, [8, 2000, 8000, 8000][(bits >> 16) as usize & 3])
        }
    }

    /// The ranks whose sources a rank reads.
    fn sources(request: &CollRequest, rank: usize, ranks: usize) -> Range<usize> {
        let root = request.root as usize;
        match request.operation {
            CollOperation::Broadcast | CollOperation::Scatter if rank == root => 0..0,
            CollOperation::Broadcast | CollOperation::Scatter => root..root + 1,
            CollOperation::Gather if rank != root => 0..0,
            _ => 0..ranks,
        }
    }

    /// What a rank publishes as the offset of a movement, and stores in its slots.
    fn stamp(rank: usize, number: u64) -> u64 {
        number * 100 + rank as u64
    }

    /// The number of a movement behind another one, among this many ranks.
    fn number_after(last: u64, slots: u64, ranks: usize) -> u64 {
        let all = super::slots(ranks) as u64;
        let lap = (last + slots - 1) / all * all;
        last.max(lap) + slots
    }

    /// Ranks enter, leave and look in any order, each as far as it can. They find the offsets and
    /// slots of those whose sources they need, and no memory is free that others still read.
    #[test]
    fn every_movement_ends() {
        const MANY: usize = 2000;
        let mut state = 1u64;
        for all in [2, 3, 8, 40] {
            let pages = ScratchPages::for_test(all);
            let ranks: Vec<MovementCounts> =
                pages.iter().map(|pages| MovementCounts::new(pages, 1)).collect();
            let mut last = 0;
            let movements: Vec<(u64, CollRequest, MovementShape)> = (0..MANY as u64)
                .map(|i| {
                    let request = movement(i, all);
                    let shape = MovementShape::of(&request, all).expect("a movement");
                    last = number_after(last, shape.slots as u64, all);
                    (last, request, shape)
                })
                .collect();
            let roles = |rank: usize, i: usize| {
                let (_, request, shape) = &movements[i];
                MovementRoles::new(request, *shape, rank == request.root as usize)
            };
            // The movements that each rank has entered, has left, and knows to be done.
            let mut at = alloc::vec![[0; 3]; all];
            for step in 0.. {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (rank, kind) = ((state >> 33) as usize % all, state >> 61);
                let [entered, left, done] = &mut at[rank];
                let r = &ranks[rank];
                match kind % 3 {
                    0 => {
                        while *entered < MANY {
                            let (number, _, shape) = &movements[*entered];
                            let Some(next) = r.next(shape.slots) else { break };
                            assert_eq!(next, *number);
                            let stamp = stamp(rank, *number);
                            let data = r.data(rank, *number, shape.slots);
                            for slot in 0..shape.slots {
                                let slot = data.part(slot * LINE_BYTES, 8);
                                slot.copy_array::<8>(Src::from(&stamp.to_ne_bytes()[..]));
                            }
                            r.publish(*number, shape.slots, &[stamp]);
                            *entered += 1;
                        }
                    }
                    1 => {
                        while left < entered {
                            let (number, request, shape) = &movements[*left];
                            if !r.have_reached(ENTERED, roles(rank, *left).entered, *number) {
                                break;
                            }
                            for source in sources(request, rank, all) {
                                let stamp = stamp(source, *number);
                                assert!(r.offset(source, *number, (shape.slots, 0)).equals(stamp));
                                let data = r.data(source, *number, shape.slots);
                                for slot in 0..shape.slots {
                                    let slot = data.part(slot * LINE_BYTES, 8);
                                    let mut found = [0; 8];
                                    Dst::from(&mut found[..]).copy_array::<8>(slot.into());
                                    assert_eq!(u64::from_ne_bytes(found), stamp);
                                }
                            }
                            *left += 1;
                            r.leave(*number);
                        }
                    }
                    _ => {
                        while done < left {
                            let number = movements[*done].0;
                            if !r.have_reached(LEFT, roles(rank, *done).left, number) {
                                break;
                            }
                            *done += 1;
                        }
                    }
                }
                assert!(r.damage().is_none());
                if let Some(last) = at[rank][2].checked_sub(1) {
                    let (_, request, shape) = &movements[last];
                    let mut others = (0..all).filter(|&other| other != rank);
                    let is_free = others.all(|other| {
                        let reads = sources(request, other, all).contains(&rank);
                        at[other][1] > last || !reads && !request.out_allsync
                    });
                    assert!(
                        is_free || request.out_nosync || shape.is_eager && !request.out_allsync
                    );
                }
                if at.iter().all(|a| a[2] == MANY) {
                    break;
                }
                assert!(step < 10_000_000, "{at:?}");
            }
        }
    }
}
