//! A ring of slots in shared memory with many producers and one consumer: event queues, and
//! inboxes of frames.
//!
//! Producers [`claim`] a slot, fill it, and publish it; the consumer reads the slots in order.
//! Invariants: positions are claimed without gaps; a producer writes only to its slot; the
//! consumer writes nothing that producers write, only its own head.
//!
//! A *position* counts the entries since the ring was made. It begins at `size`, the number of
//! slots (a power of two). The entry at position `p` is in slot `p mod size`. A *lap* is one pass
//! over the ring. The first 8 bytes of a slot are its *control*:
//!
//! ```text
//! bits      63 ........... 24   23 ......... 4   3 ..... 0
//! control   lap                 producer         phase
//!
//! lap        the first position of the lap, p - p mod size, without its bits above 2^40
//! producer   in phase 1 the process that has reserved the slot, else 0
//! phase      0 published, 1 reserved
//! ```
//!
//! Lap and slot together identify the position. A position is *claimed* once its slot is reserved
//! or published. A slot is *free* for position `p` while its control says "published `p - size`",
//! the entry of the lap before. Since positions begin at `size`, a control of zero means free: a
//! ring in zeroed memory needs no set-up.
//!
//! 1. A producer starts from a private hint (a position below which all are claimed) and moves up
//!    while slots are claimed.
//! 2. It may claim `p` if the consumer has passed `p - size` and the slot is free for `p`. One
//!    compare-and-swap changes the control to "reserved `p` by me".
//! 3. It fills the slot and publishes it with a Release store.
//!
//! The expected control follows from the position, so the compare-and-swap can be the producer's
//! first access to the cache line. A load before it would fetch the cache line twice: once to
//! read, once to write.
//!
//! | access | pairs with |
//! |---|---|
//! | consumer's Acquire load of a control that says "published" | the producer's Release store: the slot is filled |
//! | producer's Acquire load of the head | the consumer's Release store: it has read the slot |
//! | producer's Acquire load of a control that says "claimed", or of its hint | the Release of that claim, or of the hint by a sibling thread: the head that made room for the claim is then visible. Without it, a producer that looks at later positions could report a full ring |
//! | producer's Acquire load of its cached head | the Release store that cached it: the same, through a sibling thread |
//!
//! A stale hint is harmless. A control with a later position of the same slot shows how far the
//! ring has advanced. Since there are no gaps, all positions before it are claimed. A hint so old
//! that it seems to lie ahead restarts at the consumer's head. Where other processes post too,
//! hints are always stale. There the control is read before the compare-and-swap, which would
//! otherwise take the cache line from its reader and fail. The control holds the lap, so a
//! compare-and-swap with an old value cannot succeed a lap later: its producer would have to stand
//! still through 2^40 positions.
//!
//! A producer that dies or stops between claim and publication leaves a reserved slot. The
//! consumer stops there, and `blocked_by` names the producer. Before the claim and after the
//! publication a producer holds nothing.

use super::primitive::{AtomicBool, AtomicU64, Ordering};
use sys::hint::cold_path;

const PUBLISHED: u64 = 0;
const RESERVED: u64 = 1;

/// The lap of a position, in the bits of a control. The shift drops the bits above 2^40.
#[inline(always)]
fn lap(position: u64, size: u64) -> u64 {
    (position & size.wrapping_neg()) << 24
}

/// The control of a position's slot when the slot is published. `size` is a power of two, here and
/// below.
#[inline(always)]
pub(crate) fn published(position: u64, size: u64) -> u64 {
    lap(position, size) | PUBLISHED
}

/// The control of a position's slot when it is free for that position: published in the lap
/// before. Computed as one lap less, so that the lap is computed once for this and the others.
#[inline(always)]
fn free(position: u64, size: u64) -> u64 {
    published(position, size).wrapping_sub(size << 24)
}

/// The control of a position's slot when `producer` has reserved it.
#[inline(always)]
pub(crate) fn reserved(position: u64, size: u64, producer: u32) -> u64 {
    lap(position, size) | u64::from(producer & 0xfffff) << 4 | RESERVED
}

/// The producer that has reserved a position's slot, if the control says so.
#[inline(always)]
pub(crate) fn reserved_by(control: u64, position: u64, size: u64) -> Option<u32> {
    let producer = (control >> 4 & 0xfffff) as u32;
    (control == reserved(position, size, producer)).then_some(producer)
}

/// The slot of the consumer's next position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextSlot {
    /// The event is published.
    Published,
    /// No producer has claimed it.
    Free,
    /// This producer has claimed it.
    Reserved(u32),
    /// It holds this control, which no producer stores while the consumer is at this position; or
    /// the slot is free although a later position was claimed.
    Damaged(u64),
}

/// What the consumer, which is at `position`, finds there. If another thread has advanced the
/// consumer meanwhile, the result means nothing.
fn next_slot<'a>(control_of: impl Fn(u64) -> &'a AtomicU64, size: u64, position: u64) -> NextSlot {
    // Positions are claimed without gaps, and a claim makes those before it visible (Acquire): so
    // the later slot is read first.
    let after = position.wrapping_add(1);
    let later = control_of(after).load(Ordering::Acquire);
    let claimed_later = size > 1 && ahead(later, after, size) >= 0;
    let now = control_of(position).load(Ordering::Acquire);
    if now == published(position, size) {
        NextSlot::Published
    } else if let Some(producer) = reserved_by(now, position, size) {
        NextSlot::Reserved(producer)
    } else if now == free(position, size) && !claimed_later {
        NextSlot::Free
    } else {
        NextSlot::Damaged(now)
    }
}

/// Damage of the slot that the consumer is at, if its position is `next`: that position and the
/// control. `delivers` tells whether a producer may be between its claim and its publication now,
/// `claimed` whether it is known that a producer has claimed a position.
pub(crate) fn damage<'a>(
    control_of: impl Fn(u64) -> &'a AtomicU64,
    size: u64,
    next: &AtomicU64,
    delivers: impl Fn(u32) -> bool,
    claimed: impl Fn(u64) -> bool,
) -> Option<(u64, u64)> {
    let position = next.load(Ordering::Acquire);
    // Before the looks: they find a claim that is known.
    let claimed = claimed(position);
    let look = || next_slot(&control_of, size, position);
    let first = look();
    let control = match first {
        NextSlot::Free if claimed => free(position, size),
        NextSlot::Published | NextSlot::Free => return None,
        NextSlot::Damaged(control) => control,
        NextSlot::Reserved(producer) if delivers(producer) => return None,
        NextSlot::Reserved(producer) => reserved(position, size, producer),
    };
    // The same at the second look, and no other thread has advanced the consumer meanwhile.
    (look() == first && next.load(Ordering::Acquire) == position).then_some((position, control))
}

/// The consumer's position and the head that it publishes, if a peer has overwritten the head. The
/// consumer stores `next`, then the head; both only grow.
pub(crate) fn head_damage(next: &AtomicU64, head: &AtomicU64) -> Option<(u64, u64)> {
    let expected = next.load(Ordering::Acquire);
    let found = head.load(Ordering::Acquire);
    let same = next.load(Ordering::Acquire) == expected;
    (same && expected.wrapping_sub(found) > 1).then_some((expected, found))
}

/// How far the position in a control is ahead of `position`, which has the same slot.
#[inline(always)]
fn ahead(control: u64, position: u64, size: u64) -> i64 {
    // The difference is in the top bits, where its sign is right.
    (control & !0xff_ffff).wrapping_sub(lap(position, size)) as i64 >> 24
}

/// What a process remembers of a ring that it produces into. Private; any of its threads may use
/// it.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// All positions below are claimed.
    hint: AtomicU64,
    /// The consumer had come at least this far.
    head: AtomicU64,
    /// Other producers had claimed positions since our last.
    others: AtomicBool,
}

impl Memo {
    /// A position below which all are claimed.
    #[inline(always)]
    pub(crate) fn hint(&self) -> u64 {
        self.hint.load(Ordering::Acquire)
    }

    /// Restarts at the consumer's head.
    pub(crate) fn restart(&self, head: u64) {
        self.hint.store(head, Ordering::Release);
        self.head.store(head, Ordering::Release);
    }
}

/// Claims the position of the hint, if it is the first free one and the ring had room for it at
/// the last look. `word` is the control of its slot. Usually it succeeds: the position follows our
/// last one, and the consumer was not far behind.
#[inline(always)]
pub(crate) fn claim_hinted(
    word: &AtomicU64,
    position: u64,
    size: u64,
    memo: &Memo,
    producer: u32,
) -> bool {
    // Acquire: see the table above.
    if (position.wrapping_sub(memo.head.load(Ordering::Acquire)) as i64) >= size as i64 {
        return false;
    }
    let others = memo.others.load(Ordering::Relaxed);
    if others {
        cold_path();
        if word.load(Ordering::Relaxed) != free(position, size) {
            return false;
        }
    }
    let claimed = try_claim(word, position, size, memo, producer);
    if claimed && others {
        memo.others.store(false, Ordering::Relaxed);
    }
    claimed
}

/// Claims this position, if its slot is free and no other producer is faster.
#[inline(always)]
fn try_claim(word: &AtomicU64, position: u64, size: u64, memo: &Memo, producer: u32) -> bool {
    let (before, mine) = (free(position, size), reserved(position, size, producer));
    // Acquire keeps the filling of the slot after the claim; for Release see the table above.
    let claimed = word.compare_exchange(before, mine, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if claimed {
        memo.hint.store(position.wrapping_add(1), Ordering::Release);
    }
    claimed
}

/// Claims the first free position. If the ring is full, `Err` returns the position that would have
/// been claimed. `control_of` gives the control of a position's slot; `head` is the consumer's.
#[inline(always)]
pub(crate) fn claim<'a>(
    control_of: impl Fn(u64) -> &'a AtomicU64,
    size: u64,
    memo: &Memo,
    head: &AtomicU64,
    producer: u32,
) -> Result<u64, u64> {
    let position = memo.hint();
    match claim_hinted(control_of(position), position, size, memo, producer) {
        true => Ok(position),
        false => search(control_of, size, memo, head, producer),
    }
}

/// [`claim`] where the hint does not lead to the first free position.
#[cold]
#[inline(never)]
pub(crate) fn search<'a>(
    control_of: impl Fn(u64) -> &'a AtomicU64,
    size: u64,
    memo: &Memo,
    head: &AtomicU64,
    producer: u32,
) -> Result<u64, u64> {
    let mut position = memo.hint();
    let mut moves = 0u32;
    loop {
        let word = control_of(position);
        let now = word.load(Ordering::Acquire);
        if now == free(position, size) {
            // Acquire, both: see the table above.
            if position.wrapping_sub(memo.head.load(Ordering::Acquire)) as i64 >= size as i64 {
                let head = head.load(Ordering::Acquire);
                memo.head.store(head, Ordering::Release);
                if position.wrapping_sub(head) as i64 >= size as i64 {
                    return Err(position);
                }
            }
            if try_claim(word, position, size, memo, producer) {
                memo.others.store(moves != 0, Ordering::Relaxed);
                return Ok(position);
            }
            continue;
        }
        // Only nonsense that a peer wrote makes a producer move on so often.
        if moves > 1 << 20 {
            return Err(position);
        }
        let lead = ahead(now, position, size);
        // Behind: reserved a lap ago and not published yet, so the ring is full, unless our
        // position is behind by half of all that a control can distinguish.
        if lead < 0 {
            // Acquire: see the table above.
            let head = head.load(Ordering::Acquire);
            if head.wrapping_sub(position) as i64 <= 0 {
                return Err(position);
            }
            position = head;
            moves += 1;
            continue;
        }
        // Claimed in this lap or a later one: so are all positions before it.
        position = position.wrapping_add(lead as u64 + 1);
        if lead == 0 {
            position = skip(&control_of, size, position);
        }
        moves += 1;
    }
}

/// A position at or after `position`, not after the first free one, when other producers have
/// claimed a few since the hint: steps that double, then a binary search.
#[inline(never)]
fn skip<'a>(control_of: &impl Fn(u64) -> &'a AtomicU64, size: u64, position: u64) -> u64 {
    // Counted from `position`, so that no sum overflows where a peer has overwritten a control.
    let claimed = |n: u64| {
        let t = position.wrapping_add(n);
        ahead(control_of(t).load(Ordering::Acquire), t, size) >= 0
    };
    // Everything below `low` is claimed.
    let mut low = 0;
    let mut step = 1;
    while step < size && claimed(low + step - 1) {
        low += step;
        step *= 2;
    }
    // Below `low + step - 1` a position may be free: binary search.
    let mut high = low + step - 1;
    while low < high {
        let middle = low + (high - low) / 2;
        if claimed(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    position.wrapping_add(low)
}

/// A position that no claim made before this call has reached; all before `from` are claimed.
pub(crate) fn tail<'a>(control_of: impl Fn(u64) -> &'a AtomicU64, size: u64, from: u64) -> u64 {
    let mut position = from;
    // No more can be claimed, unless a peer wrote nonsense.
    for _ in 0..size {
        let lead = ahead(control_of(position).load(Ordering::Acquire), position, size);
        if lead < 0 {
            break;
        }
        position = position.wrapping_add(lead as u64 + 1);
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another producer's `others` events were claimed and consumed meanwhile: a stale hint
    /// finds the first free position.
    #[test]
    fn stale_hints_find_the_first_free_position() {
        for size in [1u64, 2, 4, 64] {
            for others in 0..300u64 {
                let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
                let of = |t: u64| &slots[(t & (size - 1)) as usize];
                let (head, theirs, ours) =
                    (AtomicU64::new(size), Memo::default(), Memo::default());
                theirs.restart(size);
                ours.restart(size);
                for n in 0..others {
                    let position = claim(of, size, &theirs, &head, 1).unwrap();
                    assert_eq!((position, theirs.hint()), (size + n, size + n + 1));
                    of(position).store(published(position, size), Ordering::Release);
                    // The consumer lags by half a ring.
                    head.store((position + 1 - size / 2).max(size), Ordering::Release);
                }
                let consumed = head.load(Ordering::Relaxed);
                assert_eq!(tail(of, size, consumed), size + others);
                assert_eq!(claim(of, size, &ours, &head, 2), Ok(size + others), "{size} {others}");
            }
        }
    }

    /// A producer that has stood still for most of the positions that a control can distinguish
    /// finds the first free one.
    #[test]
    fn very_old_hints_find_it_too() {
        let size = 4u64;
        for passed in [1u64 << 38, (1 << 39) - 8, (1 << 39) + 8, (1 << 40) - 8] {
            let first = passed + size;
            let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
            let of = |t: u64| &slots[(t & (size - 1)) as usize];
            for t in first - size..first {
                of(t).store(published(t, size), Ordering::Relaxed);
            }
            let (head, memo) = (AtomicU64::new(first), Memo::default());
            memo.restart(size);
            for n in 0..6 {
                assert_eq!(claim(of, size, &memo, &head, 1), Ok(first + n), "{passed:#x}");
                of(first + n).store(published(first + n, size), Ordering::Release);
                head.store(first + n + 1, Ordering::Release);
            }
        }
    }

    /// Where another producer posts too, a slot that it has claimed is read and not swapped.
    #[test]
    fn who_is_not_alone_looks_first() {
        let size = 8u64;
        let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
        let of = |t: u64| &slots[(t & (size - 1)) as usize];
        let (head, ours, theirs) = (AtomicU64::new(size), Memo::default(), Memo::default());
        ours.restart(size);
        theirs.restart(size);
        assert_eq!(claim(of, size, &ours, &head, 1), Ok(8));
        assert!(!ours.others.load(Ordering::Relaxed));
        assert_eq!(claim(of, size, &theirs, &head, 2), Ok(9));
        assert!(theirs.others.load(Ordering::Relaxed));
        assert_eq!(claim(of, size, &ours, &head, 1), Ok(10));
        assert!(ours.others.load(Ordering::Relaxed));
        // The next is free and is the position of the hint: no other producer since.
        assert_eq!(claim(of, size, &ours, &head, 1), Ok(11));
        assert!(!ours.others.load(Ordering::Relaxed));
    }

    /// The producer is named while the slot is reserved, and only by the control of that position.
    #[test]
    fn a_reserved_slot_names_its_producer() {
        let (word, memo) = (AtomicU64::new(0), Memo::default());
        memo.restart(4);
        assert_eq!(reserved_by(0, 4, 4), None);
        assert!(claim_hinted(&word, 4, 4, &memo, 0xfffff));
        let now = word.load(Ordering::Relaxed);
        assert_eq!((reserved_by(now, 4, 4), reserved_by(now, 8, 4)), (Some(0xfffff), None));
        assert!(!claim_hinted(&word, 4, 4, &memo, 1) && !claim_hinted(&word, 8, 4, &memo, 1));
        word.store(published(4, 4), Ordering::Release);
        assert_eq!(reserved_by(published(4, 4), 4, 4), None);
        // A lap later the slot is free, but the ring has room only after the consumer has passed
        // it.
        assert!(!claim_hinted(&word, 8, 4, &memo, 1));
        memo.restart(5);
        assert!(claim_hinted(&word, 8, 4, &memo, 1));
    }

    /// The consumer tells a slot that no producer has left so from one that it waits for.
    #[test]
    fn a_damaged_slot_is_neither_free_nor_claimed() {
        let size = 4u64;
        let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
        let of = |t: u64| &slots[(t & (size - 1)) as usize];
        let (head, memo) = (AtomicU64::new(size), Memo::default());
        memo.restart(size);
        let next = |position| next_slot(of, size, position);
        assert_eq!(next(4), NextSlot::Free);
        assert_eq!(claim(of, size, &memo, &head, 7), Ok(4));
        assert_eq!((next(4), next(5)), (NextSlot::Reserved(7), NextSlot::Free));
        of(4).store(published(4, size), Ordering::Release);
        assert_eq!((next(4), next(5)), (NextSlot::Published, NextSlot::Free));
        assert_eq!(claim(of, size, &memo, &head, 7), Ok(5));
        // The event of position 4 was published, then its slot was overwritten.
        for word in [0, published(8, size), 0xdead_beef, u64::MAX] {
            of(4).store(word, Ordering::Relaxed);
            assert_eq!(next(4), NextSlot::Damaged(word));
        }
        // In a full ring the slot after the last position is that of the first one.
        for position in 4..8 {
            of(position).store(published(position, size), Ordering::Relaxed);
        }
        assert_eq!(
            (next(4), next(7), next(8)),
            (NextSlot::Published, NextSlot::Published, NextSlot::Free)
        );
        // Rings of one slot.
        let one = AtomicU64::new(0);
        assert_eq!(next_slot(|_| &one, 1, 1), NextSlot::Free);
        one.store(published(1, 1), Ordering::Relaxed);
        assert_eq!(next_slot(|_| &one, 1, 1), NextSlot::Published);
    }

    /// Positions are compared correctly when their 40 bits wrap.
    #[test]
    fn positions_wrap() {
        let size = 4u64;
        let first = (1u64 << 40) - 2;
        let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
        let of = |t: u64| &slots[(t & (size - 1)) as usize];
        for t in first - size..first {
            of(t).store(published(t, size), Ordering::Relaxed);
        }
        let (head, memo, stale) = (AtomicU64::new(first), Memo::default(), Memo::default());
        memo.restart(first);
        stale.restart(first);
        for n in 0..10 {
            assert_eq!(claim(of, size, &memo, &head, 1), Ok(first + n));
            of(first + n).store(published(first + n, size), Ordering::Release);
            head.store(first + n + 1, Ordering::Release);
        }
        assert_eq!(claim(of, size, &stale, &head, 1), Ok(first + 10));
    }

    /// Whatever peers have written to the controls and to the head, a producer's search ends, and
    /// what it claims is its own; what the consumer finds is one thing.
    fn any_controls(input: &[u8]) {
        let mut input = fuzz::InputReader::new(input);
        let size = 1u64 << (input.byte() % 5);
        let (at, hint) = (input.number(), input.number());
        let slots: Vec<AtomicU64> = (0..size)
            .map(|slot| {
                let position = (at & size.wrapping_neg() | slot).wrapping_add(input.number());
                AtomicU64::new(match input.byte() % 4 {
                    0 => input.number(),
                    1 => published(position, size),
                    2 => reserved(position, size, input.byte().into()),
                    _ => free(position, size),
                })
            })
            .collect();
        let of = |t: u64| &slots[(t & (size - 1)) as usize];
        let control = |t| of(t).load(Ordering::Relaxed);
        let (head, memo) = (AtomicU64::new(at), Memo::default());
        let next = next_slot(of, size, at);
        assert_eq!(next == NextSlot::Published, control(at) == published(at, size));
        if let NextSlot::Reserved(producer) = next {
            assert_eq!(control(at), reserved(at, size, producer));
        }
        let damaged = damage(of, size, &head, |_| false, |_| false);
        assert_eq!(damaged.is_none(), matches!(next, NextSlot::Published | NextSlot::Free));
        tail(of, size, hint);
        memo.restart(hint);
        head.store(input.number(), Ordering::Relaxed);
        for _ in 0..3 {
            if let Ok(position) = claim(of, size, &memo, &head, 0xabcd) {
                assert_eq!(control(position), reserved(position, size, 0xabcd));
            }
        }
    }

    #[test]
    fn fuzz_ring() {
        fuzz::check("ring", 5_000, any_controls);
    }
}
