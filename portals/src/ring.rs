//! A ring of slots in shared memory, filled by many processes and emptied by one: event queues, and inboxes
//! of frames.
//!
//! What goes into a slot is numbered by a ticket. Ticket `t` lives in slot `t mod size`, so that a slot's first
//! word, its control, need only tell the lap, that of the ticket of its first slot: `t - t mod size`, mod 2^40,
//! is in bits 24-63, the producer's index in 4-23 and a phase in 0-3. The first ticket is `size`, and memory of
//! zeros says of each slot "published `t - size`", and it counts as consumed: a new ring is not written to.
//!
//! A producer finds the first free ticket: it starts from a private hint (a ticket below which all are
//! claimed), and moves up while it sees slots claimed. It may claim `t` if the consumer has passed `t - size`
//! and the control still says "published `t - size`": one compare-and-swap to "reserved `t` by me". It fills
//! the slot and publishes with a Release store. So tickets are claimed without gaps, a producer dirties
//! nothing but its slot, and the consumer writes nothing that producers write: only its own head.
//!
//! | access | pairs with |
//! |---|---|
//! | consumer's Acquire load of a control that says "published" | the producer's Release store: the slot is filled |
//! | producer's Acquire load of the head | the consumer's Release store: it has read the slot and may lose it |
//! | producer's Acquire load of its cached head | the Release store that cached it: the same, through a sibling thread |
//!
//! A stale hint is harmless: a control with a later ticket for the same slot says how far the ring has come,
//! and by the absence of gaps all tickets before it are claimed. The control holds the lap, so that a
//! compare-and-swap with an old value cannot succeed a lap later (it would have to sleep through 2^40
//! tickets).
//!
//! A producer that dies or stops between claim and publication leaves a slot that names it. Before the claim
//! or after the publication nothing is held.

use core::sync::atomic::{AtomicU64, Ordering};

pub(crate) const PUBLISHED: u64 = 0;
pub(crate) const RESERVED: u64 = 1;

/// The lap of a ticket, in its place in a control. The shift drops what is beyond 2^40.
#[inline(always)]
fn lap(ticket: u64, size: u64) -> u64 {
    (ticket & size.wrapping_neg()) << 24
}

/// A control word. `size` is a power of two, here and below.
#[inline(always)]
pub(crate) fn control(ticket: u64, size: u64, producer: u32, phase: u64) -> u64 {
    lap(ticket, size) | u64::from(producer & 0xfffff) << 4 | phase
}

/// A control without the producer.
#[inline(always)]
pub(crate) fn of_anybody(control: u64) -> u64 {
    control & !0xff_fff0
}

/// What the control of a ticket's slot says, [`of_anybody`], when it is published.
#[inline(always)]
pub(crate) fn published(ticket: u64, size: u64) -> u64 {
    lap(ticket, size) | PUBLISHED
}

/// Whether the control of a ticket's slot says this of it, whoever the producer is.
#[inline(always)]
pub(crate) fn says(control: u64, ticket: u64, size: u64, phase: u64) -> bool {
    of_anybody(control) == lap(ticket, size) | phase
}

/// The producer's index.
#[inline(always)]
pub(crate) fn producer(control: u64) -> u32 {
    (control >> 4 & 0xfffff) as u32
}

/// How far the ticket that the control of a ticket's slot tells of is ahead of it.
#[inline(always)]
fn ahead(control: u64, ticket: u64, size: u64) -> i64 {
    // The difference is at the top, where it has the right sign.
    (control & !0xff_ffff).wrapping_sub(lap(ticket, size)) as i64 >> 24
}

/// What a process remembers of a ring that it produces into. Private; any thread may use it.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// All tickets below are claimed.
    hint: AtomicU64,
    /// The consumer had come at least so far.
    head: AtomicU64,
}

impl Memo {
    /// A ticket below which all are claimed.
    #[inline(always)]
    pub(crate) fn hint(&self) -> u64 {
        self.hint.load(Ordering::Relaxed)
    }

    /// Begins anew where the consumer is.
    pub(crate) fn restart(&self, head: u64) {
        self.hint.store(head, Ordering::Relaxed);
        self.head.store(head, Ordering::Release);
    }
}

/// What the control of a slot that its producer has reserved will say when he has filled it.
#[inline(always)]
pub(crate) fn filled(reserved: u64) -> u64 {
    reserved ^ RESERVED ^ PUBLISHED
}

/// Claims the ticket of the hint, if it is the first free one and the ring had room for it when we last looked: what the control of
/// its slot, `word`, says from now on. Mostly it does: the ticket is the one after our last, and the consumer was not far behind.
#[inline(always)]
pub(crate) fn claim_hinted(
    word: &AtomicU64,
    ticket: u64,
    size: u64,
    memo: &Memo,
    producer: u32,
) -> Option<u64> {
    let now = word.load(Ordering::Relaxed);
    // Acquire: see the table above.
    if !says(now, ticket.wrapping_sub(size), size, PUBLISHED)
        || (ticket.wrapping_sub(memo.head.load(Ordering::Acquire)) as i64) >= size as i64
    {
        return None;
    }
    let mine = control(ticket, size, producer, RESERVED);
    // Acquire keeps the filling of the slot after the claim.
    word.compare_exchange(now, mine, Ordering::Acquire, Ordering::Relaxed).ok()?;
    memo.hint.store(ticket.wrapping_add(1), Ordering::Relaxed);
    Some(mine)
}

/// Claims the first free ticket; `Err` tells which one it would have been if the ring is full. `control_of`
/// gives the control of a ticket's slot; `size` is a power of two; `head` is the consumer's.
#[inline(always)]
pub(crate) fn claim<'a>(
    control_of: impl Fn(u64) -> &'a AtomicU64,
    size: u64,
    memo: &Memo,
    head: &AtomicU64,
    producer: u32,
) -> Result<u64, u64> {
    let ticket = memo.hint();
    match claim_hinted(control_of(ticket), ticket, size, memo, producer) {
        Some(_) => Ok(ticket),
        None => search(control_of, size, memo, head, producer),
    }
}

/// [`claim`], wherever the first free ticket is.
#[cold]
#[inline(never)]
pub(crate) fn search<'a>(
    control_of: impl Fn(u64) -> &'a AtomicU64,
    size: u64,
    memo: &Memo,
    head: &AtomicU64,
    producer: u32,
) -> Result<u64, u64> {
    let mut ticket = memo.hint();
    let mut moves = 0u32;
    loop {
        let word = control_of(ticket);
        let now = word.load(Ordering::Relaxed);
        if says(now, ticket.wrapping_sub(size), size, PUBLISHED) {
            // Acquire, both: see the table above.
            if ticket.wrapping_sub(memo.head.load(Ordering::Acquire)) as i64 >= size as i64 {
                let head = head.load(Ordering::Acquire);
                memo.head.store(head, Ordering::Release);
                if ticket.wrapping_sub(head) as i64 >= size as i64 {
                    return Err(ticket);
                }
            }
            let mine = control(ticket, size, producer, RESERVED);
            // Acquire keeps the filling of the slot after the claim.
            if word.compare_exchange(now, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                memo.hint.store(ticket.wrapping_add(1), Ordering::Relaxed);
                return Ok(ticket);
            }
            continue;
        }
        let lead = ahead(now, ticket, size);
        // Behind: reserved a lap ago and not published yet, so the ring is full (or a peer wrote nonsense, as
        // it must have to make us move on so often).
        if lead < 0 || moves > 1 << 20 {
            return Err(ticket);
        }
        // Claimed, by somebody in this lap or in a later one: so are all before it.
        ticket = ticket.wrapping_add(lead as u64 + 1);
        if lead == 0 {
            ticket = skip(&control_of, size, ticket);
        }
        moves += 1;
    }
}

/// A ticket at or after `ticket`, not after the first free one, when others have claimed a few since the
/// hint: steps that double, then halves.
#[inline(never)]
fn skip<'a>(control_of: &impl Fn(u64) -> &'a AtomicU64, size: u64, ticket: u64) -> u64 {
    let claimed = |t: u64| ahead(control_of(t).load(Ordering::Relaxed), t, size) >= 0;
    // Everything below `low` is claimed.
    let mut low = ticket;
    let mut step = 1;
    while step < size && claimed(low + step - 1) {
        low += step;
        step *= 2;
    }
    // Below `low + step - 1` something may be free: halve until it is found.
    let mut high = low + step - 1;
    while low < high {
        let middle = low + (high - low) / 2;
        if claimed(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// A ticket that nothing that was claimed before this call has reached; all before `from` are claimed.
pub(crate) fn tail<'a>(control_of: impl Fn(u64) -> &'a AtomicU64, size: u64, from: u64) -> u64 {
    let mut ticket = from;
    // No more can be claimed, unless a peer wrote nonsense.
    for _ in 0..size {
        let lead = ahead(control_of(ticket).load(Ordering::Acquire), ticket, size);
        if lead < 0 {
            break;
        }
        ticket = ticket.wrapping_add(lead as u64 + 1);
    }
    ticket
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `others` events were claimed and consumed behind our back: a stale hint finds the first free ticket.
    #[test]
    fn stale_hints_find_the_first_free_ticket() {
        for size in [1u64, 2, 4, 64] {
            for others in 0..300u64 {
                let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
                let of = |t: u64| &slots[(t & (size - 1)) as usize];
                let (head, theirs, ours) = (AtomicU64::new(size), Memo::default(), Memo::default());
                theirs.restart(size);
                ours.restart(size);
                for n in 0..others {
                    let ticket = claim(of, size, &theirs, &head, 1).unwrap();
                    assert_eq!((ticket, theirs.hint()), (size + n, size + n + 1));
                    of(ticket).store(control(ticket, size, 1, PUBLISHED), Ordering::Release);
                    // The consumer lags by half a ring.
                    head.store((ticket + 1 - size / 2).max(size), Ordering::Release);
                }
                let consumed = head.load(Ordering::Relaxed);
                assert_eq!(tail(of, size, consumed), size + others);
                assert_eq!(claim(of, size, &ours, &head, 2), Ok(size + others), "{size} {others}");
            }
        }
    }

    /// Tickets are compared rightly when their 40 bits wrap.
    #[test]
    fn tickets_wrap() {
        let size = 4u64;
        let first = (1u64 << 40) - 2;
        let slots: Vec<AtomicU64> = (0..size).map(|_| AtomicU64::new(0)).collect();
        let of = |t: u64| &slots[(t & (size - 1)) as usize];
        for t in first - size..first {
            of(t).store(control(t, size, 0, PUBLISHED), Ordering::Relaxed);
        }
        let (head, memo, stale) = (AtomicU64::new(first), Memo::default(), Memo::default());
        memo.restart(first);
        stale.restart(first);
        for n in 0..10 {
            assert_eq!(claim(of, size, &memo, &head, 1), Ok(first + n));
            of(first + n).store(control(first + n, size, 1, PUBLISHED), Ordering::Release);
            head.store(first + n + 1, Ordering::Release);
        }
        assert_eq!(claim(of, size, &stale, &head, 1), Ok(first + 10));
    }
}
