//! How far each rank of a job is in its movements in shared memory: counts, and offsets in
//! segments.
//!
//! Used by `direct`. Invariant: an offset stays until all ranks have left its movement.
//!
//! Two cache lines of each rank, which only this rank writes: how many offsets it has published
//! (it has entered the movements with these), how many it no longer needs (it has left them), and
//! the last offsets. All ranks publish as many for each movement. The number of a movement is the
//! count after its own offsets. Each offset has a *slot*, for a copy of
//! the source.
//!
//! ```text
//!   word 0         1      2                     ...   15
//!        entered   left   offset 1, 15, 29 ...  ...   offset 14, 28 ...
//! ```
//!
//! Any rank can overwrite these words. A rank that waits for long compares its own with what it
//! stored, and those of the others with what they may store now.

use super::roles::AwaitedRanks;
use crate::client_memory::Dst;
use crate::extended::scratch::{ScratchPages, WordPair};
use crate::report;
use crate::runtime::scratch::EAGER_WORDS;
use core::sync::atomic::{AtomicU64, Ordering};
use sys::peer::Peer;

/// The word that counts the offsets that a rank has published.
pub(super) const ENTERED: usize = 0;
/// The word that counts the offsets that it no longer needs.
pub(super) const LEFT: usize = 1;
/// The first word of an offset: that of a rank's source, or of its result, in its segment, plus 1;
/// 0 for what is elsewhere, [`IN_SLOT`] for a source that was copied.
const FIRST_OFFSET: usize = 2;
/// Offsets for which a rank has room.
pub(super) const OFFSETS: u64 = 14;
/// In place of the offset of a source: it was copied to the slot.
pub(super) const IN_SLOT: u64 = 1 << 63;
/// Bytes of a slot.
pub(super) const SLOT_BYTES: usize = 4096;
/// From one slot to the next: their first cache lines compete for no place in a cache.
const SLOT_STRIDE: usize = SLOT_BYTES + LINE;
/// Bytes of a slot of a small source. These slots follow each other, so a processor fetches the
/// next one while a rank reads the one before.
const LINE: usize = 64;
/// Where the large slots begin.
const FIRST_LARGE: usize = OFFSETS as usize * LINE;

const _: () = assert!(
    FIRST_LARGE + OFFSETS as usize * SLOT_STRIDE + size_of::<WordPair>() <= EAGER_WORDS * 8
);

/// The number of a movement: how many offsets a rank has published with it and before it.
pub(super) type MovementNumber = u64;

/// No offset in a segment, and no count.
const CHANGING: u64 = u64::MAX;

/// See the module.
#[derive(Debug)]
pub(super) struct MovementCounts {
    pages: ScratchPages,
    /// Which of the streams of movements.
    stream: usize,
    /// What the own words hold; [`CHANGING`] while they change.
    own: WordPair,
    /// The last movement of which this rank knows that all have left it.
    all_left: AtomicU64,
}

impl MovementCounts {
    /// For a stream of a job with these pages.
    pub(super) fn new(pages: &ScratchPages, stream: usize) -> MovementCounts {
        MovementCounts {
            pages: pages.clone(),
            stream,
            own: Default::default(),
            all_left: AtomicU64::new(0),
        }
    }

    /// The words of a rank.
    #[inline(always)]
    fn words(&self, rank: usize) -> &'static WordPair {
        self.pages.page(rank).movement(self.stream)
    }

    /// How many ranks there are.
    pub(super) fn ranks(&self) -> usize {
        self.pages.ranks()
    }

    /// This rank.
    pub(super) fn me(&self) -> usize {
        self.pages.me()
    }

    /// The number of the next movement of this rank, if there is room for its offsets.
    pub(super) fn next(&self, offsets: usize) -> Option<MovementNumber> {
        let number = self.own[ENTERED].load(Ordering::Relaxed) + offsets as u64;
        self.all_left(number.saturating_sub(OFFSETS)).then_some(number)
    }

    /// Publishes the offsets of the next movement, for which there is room, and enters it.
    pub(super) fn publish(&self, number: MovementNumber, offsets: &[u64]) {
        for (at, &offset) in (number - offsets.len() as u64..number).zip(offsets) {
            self.store(FIRST_OFFSET + (at % OFFSETS) as usize, offset);
        }
        self.store(ENTERED, number);
    }

    /// Leaves the movement that this rank has entered first of those that it has not left.
    pub(super) fn leave(&self, number: MovementNumber) {
        self.store(LEFT, number);
    }

    /// Stores an own word. Release: what this rank wrote, and read, before.
    fn store(&self, word: usize, value: u64) {
        let own = &self.own[word];
        if own.load(Ordering::Relaxed) != value {
            own.store(CHANGING, Ordering::Relaxed);
            // Release: a thread that reads the new word does not read the old record after it.
            self.words(self.pages.me())[word].store(value, Ordering::Release);
            own.store(value, Ordering::Release);
        }
    }

    /// The number that this word of a rank holds, if it has reached one that this rank has
    /// entered. Acquire pairs with the Release of [`MovementCounts::store`].
    #[inline(always)]
    fn reached(&self, rank: usize, word: usize, number: MovementNumber) -> Option<MovementNumber> {
        let value = self.words(rank)[word].load(Ordering::Acquire);
        // None is further ahead than the room for offsets allows: such a word was overwritten.
        (number..=self.most()).contains(&value).then_some(value)
    }

    /// The furthest that another rank can be: all have left the movement whose offsets it
    /// overwrites.
    #[inline(always)]
    fn most(&self) -> MovementNumber {
        self.own[LEFT].load(Ordering::Relaxed).saturating_add(OFFSETS)
    }

    /// The steps that all ranks have taken: another number whenever one has taken a step, unless
    /// words were overwritten. Acquire as in [`MovementCounts::have_reached`].
    pub(super) fn steps(&self) -> u64 {
        let of = |rank: usize, word: usize| self.words(rank)[word].load(Ordering::Acquire);
        let ranks = 0..self.pages.ranks();
        ranks.fold(0, |all, rank| all.wrapping_add(of(rank, ENTERED)).wrapping_add(of(rank, LEFT)))
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

    /// Whether all ranks have left a movement, or one that has this offset, that this rank has
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

    /// An offset that a rank has published, the last of those up to `number`.
    #[inline(always)]
    pub(super) fn offset(&self, rank: usize, number: MovementNumber) -> Peer<u64> {
        let at = number.wrapping_sub(1) % OFFSETS;
        let word = &self.words(rank)[FIRST_OFFSET + at as usize];
        Peer::new(word.load(Ordering::Relaxed))
    }

    /// The slot of that offset, in a movement with sources of `bytes`.
    #[inline(always)]
    pub(super) fn slot(&self, rank: usize, number: MovementNumber, bytes: usize) -> Dst<'static> {
        let at = (number.wrapping_sub(1) % OFFSETS) as usize;
        let (offset, len) = match bytes <= LINE {
            true => (at * LINE, LINE),
            false => (FIRST_LARGE + at * SLOT_STRIDE, SLOT_BYTES),
        };
        self.pages.page(rank).eager(self.stream).part(offset, len)
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
        let word = |rank: usize, word: usize| self.words(rank)[word].load(Ordering::Acquire);
        let name = |word: usize| match word {
            ENTERED => "the count of the movements that it entered",
            LEFT => "the count of the movements that it left",
            _ => "an offset",
        };
        let mine = (0..self.own.len()).find_map(|at| {
            let before = own(at);
            let value = word(me, at);
            let is_other = before != CHANGING && value != before && own(at) == before;
            // An offset may have changed, and changed back, since the first look.
            let is_other = is_other && word(me, at) == value;
            is_other.then_some(MovementDamage { rank: me, word: name(at), value })
        });
        let left = own(LEFT);
        let all_left = self.all_left.load(Ordering::Acquire);
        let others = (0..self.pages.ranks()).filter(|&rank| rank != me);
        let theirs = others.flat_map(|rank| {
            // It entered none without room, and left none that it has not entered.
            [ENTERED, LEFT].map(|at| {
                let value = word(rank, at);
                let is_other = !(all_left..=left.saturating_add(OFFSETS)).contains(&value);
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

/// A word of a rank's cache line that was overwritten.
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

    fn enter(rank: &MovementCounts, offsets: &[u64]) -> Option<MovementNumber> {
        let number = rank.next(offsets.len())?;
        rank.publish(number, offsets);
        Some(number)
    }

    /// Its offset lies where the first was.
    const LAST: u64 = OFFSETS + 1;

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
            assert_eq!(enter(&ranks[rank], &[number + 100]), Some(number));
            assert!(ranks.iter().all(|r| r.damage().is_none()));
        }
        ranks
    }

    #[test]
    fn overwritten_words_are_found() {
        let pages = ScratchPages::for_test(3);
        let ranks = entered_by_two_of_three(&pages);
        let words = |rank: usize| pages[0].page(rank).movement(1).iter().map(move |w| (rank, w));
        for (rank, word) in (0..3).flat_map(words) {
            let whole = word.load(Ordering::Relaxed);
            for value in [0, u64::MAX, whole ^ 8, whole + 1, whole << 32] {
                word.store(value, Ordering::Relaxed);
                let found = ranks.iter().find_map(MovementCounts::damage).unwrap();
                assert_eq!((found.rank, found.value), (rank, value));
                word.store(whole, Ordering::Relaxed);
            }
        }
    }

    /// Neither a rank that waits for all nor one with no record of the word goes on with it.
    #[test]
    fn counts_that_no_rank_can_have_are_no_movement() {
        let pages = ScratchPages::for_test(3);
        let ranks = entered_by_two_of_three(&pages);
        let word = &pages[0].page(2).movement(1)[ENTERED];
        assert!(!ranks[0].all_entered(LAST));
        for (value, is_entered) in
            [(LAST, true), (LAST - 1 + OFFSETS, true), (LAST + OFFSETS, false), (u64::MAX, false)]
        {
            word.store(value, Ordering::Relaxed);
            assert_eq!(ranks[0].all_entered(LAST), is_entered, "{value}");
        }
        let theirs = ranks[0].damage().expect("rank 0 knows how far rank 2 can be");
        assert_eq!((theirs.rank, theirs.value), (2, u64::MAX));
    }

    #[test]
    fn offsets_stay_until_all_can_have_read_them() {
        let pages = ScratchPages::for_test(2);
        let ranks: Vec<MovementCounts> =
            pages.iter().map(|pages| MovementCounts::new(pages, 1)).collect();
        for number in 1..=OFFSETS {
            assert_eq!(enter(&ranks[0], &[number * 10]), Some(number));
        }
        assert_eq!((enter(&ranks[0], &[70]), enter(&ranks[1], &[9, 8])), (None, Some(2)));
        assert!(ranks[0].all_entered(1) && ranks[0].all_entered(2) && !ranks[0].all_entered(3));
        ranks[0].leave(1);
        assert_eq!(enter(&ranks[0], &[70]), None);
        ranks[1].leave(1);
        // Room for one, but not for two.
        assert_eq!(enter(&ranks[0], &[70, 80]), None);
        assert_eq!(enter(&ranks[0], &[70]), Some(OFFSETS + 1));
        for (number, offset) in [(OFFSETS + 1, 70), (2, 20), (3, 30)] {
            assert!(ranks[1].offset(0, number).equals(offset));
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
            // The second takes several slots, if it is scattered among few ranks.
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

    /// What a rank publishes for an offset, and stores in its slot.
    fn stamp(rank: usize, offset: u64) -> u64 {
        offset * 10 + rank as u64
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
                    last += shape.offsets as u64;
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
                            let Some(next) = r.next(shape.offsets) else { break };
                            assert_eq!(next, *number);
                            let own = number + 1 - shape.offsets as u64..number + 1;
                            let stamps: Vec<u64> = own.clone().map(|o| stamp(rank, o)).collect();
                            for (offset, stamp) in own.zip(&stamps) {
                                let slot = r.slot(rank, offset, shape.source).part(0, 8);
                                slot.copy_array::<8>(Src::from(&stamp.to_ne_bytes()[..]));
                            }
                            r.publish(*number, &stamps);
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
                                for offset in number + 1 - shape.offsets as u64..number + 1 {
                                    let stamp = stamp(source, offset);
                                    assert!(r.offset(source, offset).equals(stamp));
                                    let slot = r.slot(source, offset, shape.source).part(0, 8);
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
