//! A ring of slots in shared memory with many producers and one consumer: event queues, and
//! inboxes of frames.
//!
//! Producers [`claim`] a slot, fill it, and publish it; the consumer reads the slots in order.
//! Invariants: positions are claimed without gaps; a producer writes only to its slot; the
//! consumer writes nothing that producers write, only its own head.
//!
//! A *position* counts the entries since the ring was made. It begins at `2 size`, where `size` is
//! the number of slots (a power of two). The entry at position `p` is in the slot that the user of
//! the ring gives for it, the same for `p + size`. A *lap* is one pass over the ring. The first 8
//! bytes of a slot are its *control*:
//!
//! ```text
//! bits      63 ........... 24   23 ......... 4   3 ..... 0
//! control   code                producer         phase
//!
//! code       107 p, without its bits above 2^40
//! producer   in phase 1 the process that has reserved the slot, else 0
//! phase      0 published, 1 reserved
//! ```
//!
//! A position is *claimed* once its slot is reserved or published. A slot is *free* for position
//! `p` while its control says "published `p - size`", the entry of the lap before. The code shows
//! a control that was overwritten. The control of another slot has another code. The codes of two
//! entries of a slot differ by a multiple of `107 size`, in two bits at least.
//!
//! A ring begins as zeros, and its memory is touched only where it is used. In the first lap a
//! control of zero means free as well, if the consumer has not passed its position. The producer
//! that finds it sets up a block of slots: their controls become those of free slots. So the slots
//! of the first lap that are in use have controls other than zero.
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
//! that a control, which holds a position modulo 2^40, does not show how far it is behind restarts
//! at the consumer's head. Where other processes post too,
//! hints are always stale. There the control is read before the compare-and-swap, which would
//! otherwise take the cache line from its reader and fail. The control holds the lap, so a
//! compare-and-swap with an old value cannot succeed a lap later. For that, its producer would
//! have to stand still through 2^40 positions.
//!
//! A producer that dies or stops between claim and publication leaves a reserved slot. The
//! consumer stops there, and `blocked_by` names the producer. Before the claim and after the
//! publication a producer holds nothing.

use super::primitive::{AtomicBool, AtomicU64, Ordering};
use sys::hint::cold_path;

const RESERVED: u64 = 1;

/// The factor of a position in its code. It is a prime: codes are unique, and no single changed
/// bit leads from a code to that of another entry of the slot. For this one compilers multiply;
/// smaller ones become sums, which cost more instructions.
const CODE: u64 = 107;
/// `CODE * CODE_INVERSE` is 1 modulo 2^40.
const CODE_INVERSE: u64 = 0x8f_8d28_ac43;

/// How far a control shows a position to be ahead, at most.
const MOST_LEAD: i64 = 1 << 39;

/// The first position of a ring: no control of a slot is zero, that of the lap before included.
pub(crate) const fn first(size: u64) -> u64 {
    2 * size
}

/// The control of a position's slot when the slot is published.
#[inline(always)]
pub(crate) fn published(position: u64) -> u64 {
    // Drops the bits above 2^40.
    position.wrapping_mul(CODE << 24)
}

/// The control of a position's slot when it is free for that position: published in the lap
/// before. `size` is a power of two, here and below.
#[inline(always)]
fn free(position: u64, size: u64) -> u64 {
    published(position.wrapping_sub(size))
}

/// Whether this control says that the slot of the position is free. It does so in the first lap
/// also where it is zero, provided that the consumer has not passed the position.
fn is_free(control: u64, position: u64, size: u64) -> bool {
    control == free(position, size) || is_unused(control, position, size)
}

/// Whether this control is that of a slot that no producer has set up.
fn is_unused(control: u64, position: u64, size: u64) -> bool {
    control == 0 && position.wrapping_sub(first(size)) < size
}

/// The control of a position's slot when `producer` has reserved it.
#[inline(always)]
pub(crate) fn reserved(position: u64, producer: u32) -> u64 {
    published(position) | u64::from(producer & 0xfffff) << 4 | RESERVED
}

/// The producer that has reserved a position's slot, if the control says so.
#[inline(always)]
pub(crate) fn reserved_by(control: u64, position: u64) -> Option<u32> {
    let producer = (control >> 4 & 0xfffff) as u32;
    (control == reserved(position, producer)).then_some(producer)
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
    /// It holds this control, which no producer stores while the consumer is at this position. Or
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
    let claimed_later = size > 1 && ahead(later, after) >= 0;
    let now = control_of(position).load(Ordering::Acquire);
    if now == published(position) {
        NextSlot::Published
    } else if let Some(producer) = reserved_by(now, position) {
        NextSlot::Reserved(producer)
    } else if is_free(now, position, size) && !claimed_later {
        NextSlot::Free
    } else {
        NextSlot::Damaged(now)
    }
}

/// Whether no producer has claimed the position that the consumer is at, and so none behind it.
pub(crate) fn is_unclaimed<'a>(
    control_of: impl Fn(u64) -> &'a AtomicU64,
    size: u64,
    position: u64,
) -> bool {
    next_slot(control_of, size, position) == NextSlot::Free
}

/// Damage of the slot that the consumer is at, if its position is `next`: that position and the
/// control. `delivers` says whether a producer may be between its claim and its publication now.
/// `claimed` says whether it is known that a producer has claimed a position.
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
        NextSlot::Free if claimed => control_of(position).load(Ordering::Relaxed),
        NextSlot::Published | NextSlot::Free => return None,
        NextSlot::Damaged(control) => control,
        NextSlot::Reserved(producer) if delivers(producer) => return None,
        NextSlot::Reserved(producer) => reserved(position, producer),
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

/// How far the position in a control is ahead of `position`.
#[inline(always)]
fn ahead(control: u64, position: u64) -> i64 {
    // The difference is in the top bits, where its sign is right.
    (control >> 24).wrapping_mul(CODE_INVERSE).wrapping_sub(position).wrapping_shl(24) as i64 >> 24
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
    let (before, mine) = (free(position, size), reserved(position, producer));
    // Acquire keeps the filling of the slot after the claim; for Release see the table above.
    let claimed = word.compare_exchange(before, mine, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if claimed {
        memo.hint.store(position.wrapping_add(1), Ordering::Release);
    }
    claimed
}

/// Claims the first free position. If the ring is full, `Err` returns the position that would have
/// been claimed. `control_of` gives the control of a position's slot; `head` is the consumer's.
/// `block` slots are set up at once: a power of two.
#[inline(always)]
pub(crate) fn claim<'a>(
    control_of: impl Fn(u64) -> &'a AtomicU64,
    size: u64,
    block: u64,
    memo: &Memo,
    head: &AtomicU64,
    producer: u32,
) -> Result<u64, u64> {
    let position = memo.hint();
    match claim_hinted(control_of(position), position, size, memo, producer) {
        true => Ok(position),
        false => search(control_of, size, block, memo, head, producer),
    }
}

/// [`claim`] where the hint does not lead to the first free position.
#[cold]
#[inline(never)]
pub(crate) fn search<'a>(
    control_of: impl Fn(u64) -> &'a AtomicU64,
    size: u64,
    block: u64,
    memo: &Memo,
    head: &AtomicU64,
    producer: u32,
) -> Result<u64, u64> {
    let mut position = memo.hint();
    let mut moved = false;
    // Only nonsense that a peer wrote makes a producer look so often.
    for _ in 0..1 << 20 {
        let word = control_of(position);
        let now = word.load(Ordering::Acquire);
        if is_unused(now, position, size) {
            let passed = head.load(Ordering::Acquire).wrapping_sub(position);
            if passed as i64 > 0 {
                // Zero is no control of a slot that the consumer has passed: a peer wrote it.
                position = position.wrapping_add(passed);
                moved = true;
            } else if set_up_passed(&control_of, size, block, position) {
                return Err(position);
            } else {
                set_up(&control_of, size, block, position);
            }
            continue;
        }
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
                memo.others.store(moved, Ordering::Relaxed);
                return Ok(position);
            }
            continue;
        }
        moved = true;
        let lead = ahead(now, position);
        // Of an entry of another slot, or one for which there is no room yet: a peer wrote it.
        let claimed = position.wrapping_add(lead as u64);
        let nonsense = |head: u64| {
            !(lead as u64).is_multiple_of(size)
                || lead > 0 && claimed.wrapping_sub(head) as i64 >= size as i64
        };
        // Acquire, both: see the table above. The consumer's head is read only if what we know of
        // it does not suffice.
        if lead < 0 || nonsense(memo.head.load(Ordering::Acquire)) {
            let head = head.load(Ordering::Acquire);
            let passed = head.wrapping_sub(position) as i64;
            let is_useless = lead < 0 || nonsense(head) || passed > MOST_LEAD;
            // Our position is behind by more than a control shows. Or it is nonsense that the
            // consumer has passed, which stops no producer.
            if is_useless && passed > 0 {
                position = head;
                continue;
            }
            // Behind: reserved a lap ago and not published yet, so the ring is full.
            if is_useless {
                return Err(position);
            }
        }
        // Claimed in this lap or a later one: so are all positions before it.
        position = position.wrapping_add(lead as u64 + 1);
        if lead == 0 {
            position = skip(&control_of, size, position);
        }
    }
    Err(position)
}

/// Whether the slot of a position whose control is zero has been set up: a peer wrote the zero.
/// The slots of a block are set up in order.
fn set_up_passed<'a>(
    control_of: &impl Fn(u64) -> &'a AtomicU64,
    size: u64,
    block: u64,
    position: u64,
) -> bool {
    let next = position.wrapping_add(1);
    // Acquire pairs with the Release in `set_up`: the slot before is seen as set up.
    next & (block.min(size) - 1) != 0
        && control_of(next).load(Ordering::Acquire) != 0
        && control_of(position).load(Ordering::Relaxed) == 0
}

/// Sets up the slots of the first lap from `position` to the end of its block.
pub(crate) fn set_up<'a>(
    control_of: &impl Fn(u64) -> &'a AtomicU64,
    size: u64,
    block: u64,
    position: u64,
) {
    let end = (position | (block - 1)).min(first(size) + size - 1);
    for next in position..=end {
        // Fails if another producer has set the slot up, or claimed it.
        let word = control_of(next);
        let _ = word.compare_exchange(0, free(next, size), Ordering::Release, Ordering::Relaxed);
    }
}

/// A position at or after `position`, not after the first free one, when other producers have
/// claimed a few since the hint. Searches with steps that double, then with a binary search.
#[inline(never)]
fn skip<'a>(control_of: &impl Fn(u64) -> &'a AtomicU64, size: u64, position: u64) -> u64 {
    // Counted from `position`, so that no sum overflows where a peer has overwritten a control.
    let claimed = |n: u64| {
        let t = position.wrapping_add(n);
        ahead(control_of(t).load(Ordering::Acquire), t) >= 0
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
        let lead = ahead(control_of(position).load(Ordering::Acquire), position);
        if lead < 0 {
            break;
        }
        position = position.wrapping_add(lead as u64 + 1);
    }
    position
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
