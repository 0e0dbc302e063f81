//! The state word of a descriptor: cursor, threshold, operations in flight, and two flags.
//!
//! Deliverers and the owner change it by compare-and-swap. One word holds the cursor (locally
//! managed descriptors), the threshold (finite ones) and the flags. It also holds the number of
//! operations in flight (descriptors that may unlink themselves). So accepting a message is one
//! compare-and-swap. A descriptor that has nothing to count ([`Traits::counts`] is false) has no
//! state: a delivery neither reads nor writes it.
//!
//! ```text
//! 63        62        53..61   ..52        0..
//! INACTIVE  UNLINKED  FLIGHTS  threshold   cursor    (widths of the last two: see `Traits`)
//! ```
//!
//! Framed messages may take long, and there may be more than FLIGHTS can count. So all framed
//! messages of a descriptor share one operation in flight. Its process counts them in private
//! memory ([`MdRecord::sharing`](crate::descriptor::record::MdRecord)): see [`join`] and [`part`].
//! All other operations last as long as a call.
//!
//! Invariant: exactly one party that gives a claim back sees it become the last and sets
//! UNLINKED.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::arena::MdCell;
use crate::descriptor::traits::Traits;
use crate::types::THRESH_INF;
use crate::types::md_options::*;

/// The descriptor accepts no more operations.
pub(crate) const INACTIVE: u64 = 1 << 63;
/// It has unlinked itself: no operation is in flight, and none will be.
pub(crate) const UNLINKED: u64 = 1 << 62;
/// One operation in flight.
pub(crate) const FLIGHT: u64 = 1 << 53;
/// The field of the operations in flight.
pub(crate) const FLIGHTS: u64 = UNLINKED - FLIGHT;
/// Bits that are left for threshold and cursor.
pub(crate) const COUNTING_BITS: u32 = 53;

/// How a descriptor accepts a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) offset: u64,
    pub(crate) mlength: u64,
    /// After this message.
    pub(crate) threshold: i32,
}

/// Whether a descriptor in this state accepts a message, and the state afterwards.
#[inline(always)]
pub(crate) fn accept(
    traits: Traits,
    length: u64,
    max_size: u64,
    state: u64,
    remote_offset: u64,
    rlength: u64,
) -> Option<(Accepted, u64)> {
    if state & INACTIVE != 0 {
        return None;
    }
    let remote = traits.has(MANAGE_REMOTE);
    let cursor = state & traits.cursor_mask();
    let offset = if remote { remote_offset } else { cursor };
    let room = length.checked_sub(offset)?;
    let mlength = if rlength <= room {
        rlength
    } else if traits.has(TRUNCATE) {
        room
    } else {
        return None;
    };
    if !traits.counts() {
        return Some((Accepted { offset, mlength, threshold: THRESH_INF }, state));
    }
    let (threshold, mut next) = spend(traits, state)?;
    if !remote {
        next += mlength;
        if traits.has(MAX_SIZE) && room - mlength < max_size {
            next |= INACTIVE;
        }
    }
    Some((Accepted { offset, mlength, threshold }, next))
}

/// Takes one from a finite threshold and counts one operation in flight, if the descriptor
/// counts them. `None` if it is inactive or cannot count one more.
#[inline(always)]
fn spend(traits: Traits, state: u64) -> Option<(i32, u64)> {
    if state & INACTIVE != 0 {
        return None;
    }
    let mut next = state;
    let mut threshold = THRESH_INF;
    if traits.threshold_mask() != 0 {
        let shift = traits.threshold_shift();
        let left = (state >> shift & traits.threshold_mask()).checked_sub(1)?;
        next -= 1 << shift;
        threshold = left as i32;
        if left == 0 {
            next |= INACTIVE;
        }
    }
    if traits.unlinks() {
        if state & FLIGHTS == FLIGHTS {
            return None;
        }
        next += FLIGHT;
    }
    Some((threshold, next))
}

/// Claims room for a message. `None` if the descriptor does not accept it now.
#[inline(always)]
pub(crate) fn claim(
    cell: &MdCell,
    traits: Traits,
    length: u64,
    max_size: u64,
    remote_offset: u64,
    rlength: u64,
) -> Option<Accepted> {
    if !traits.counts() {
        return accept(traits, length, max_size, 0, remote_offset, rlength)
            .map(|(accepted, _)| accepted);
    }
    let mut now = cell.state.0.load(Ordering::Relaxed);
    loop {
        let (accepted, next) = accept(traits, length, max_size, now, remote_offset, rlength)?;
        // Acquire pairs with the Release of earlier claims and returns: their data are
        // elsewhere, but an update that revives the descriptor must be seen whole.
        match cell.state.0.compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Some(accepted),
            Err(other) => now = other,
        }
    }
}

/// Claims one operation of the initiator's own (SEND, ACK, REPLY): the threshold afterwards.
#[inline(always)]
pub(crate) fn claim_own(cell: &MdCell, traits: Traits) -> Option<i32> {
    if !traits.counts() {
        return Some(THRESH_INF);
    }
    claim_own_counted(cell, traits)
}

#[inline(never)]
fn claim_own_counted(cell: &MdCell, traits: Traits) -> Option<i32> {
    let mut now = cell.state.0.load(Ordering::Relaxed);
    loop {
        let (threshold, next) = spend(traits, now)?;
        match cell.state.0.compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Some(threshold),
            Err(other) => now = other,
        }
    }
}

/// Gives a claim back after its END event has been posted. True for the caller that must post
/// UNLINK.
#[inline(always)]
pub(crate) fn give_back(cell: &MdCell, traits: Traits) -> bool {
    traits.unlinks() && give_back_counted(cell)
}

/// [`give_back`] of a descriptor that counts operations in flight.
#[inline(always)]
pub(crate) fn give_back_counted(cell: &MdCell) -> bool {
    // Release: our END event is posted before the count falls, so the UNLINK of the last one
    // comes after it.
    let before = cell.state.0.fetch_sub(FLIGHT, Ordering::AcqRel);
    let last = before & (FLIGHTS | INACTIVE) == FLIGHT | INACTIVE;
    (last || before & FLIGHTS == 0) && last_given_back(cell, last)
}

/// A claimed operation will end later, in another call. It joins those that share one operation in
/// flight: the first of them keeps its own, a later one gives its own back. The caller's hazard
/// names the descriptor.
pub(crate) fn join(cell: &MdCell, traits: Traits, sharing: &AtomicU32) {
    // Acquire pairs with the Release of the one that joined before: the shared operation is in
    // the state word already, so ours is never the last there.
    if traits.unlinks() && sharing.fetch_add(1, Ordering::AcqRel) != 0 {
        give_back_counted(cell);
    }
}

/// An operation that has joined has posted its END event. True for the last one: it gives the
/// shared claim back.
pub(crate) fn part(traits: Traits, sharing: &AtomicU32) -> bool {
    // Release: our END event is posted before the last one gives the claim back (Acquire).
    !traits.unlinks() || sharing.fetch_sub(1, Ordering::AcqRel) == 1
}

/// No operation is in flight any more, and none will be; `last`: the caller ended the last one.
/// Sets UNLINKED and returns true, unless an update has revived the descriptor since, or another
/// caller was last once more. Otherwise no operation was in flight: a peer wrote nonsense, which
/// is left as it was.
#[cold]
#[inline(never)]
fn last_given_back(cell: &MdCell, last: bool) -> bool {
    if !last {
        cell.state.0.fetch_add(FLIGHT, Ordering::Relaxed);
        return false;
    }
    let through = |now| {
        let same = now & (FLIGHTS | INACTIVE | UNLINKED) == INACTIVE;
        same.then_some(now | UNLINKED)
    };
    cell.state.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, through).is_ok()
}

/// Whether a descriptor that counts can be in this state: no claim, return or update leaves it in
/// another. `threshold` is the one it was attached or updated with.
pub(crate) fn is_possible(
    traits: Traits,
    length: u64,
    max_size: u64,
    threshold: i32,
    state: u64,
) -> bool {
    let (inactive, unlinked) = (state & INACTIVE != 0, state & UNLINKED != 0);
    let flights = state & FLIGHTS != 0;
    let cursor = state & traits.cursor_mask();
    let left = threshold_of(traits, state);
    let rest = state & (FLIGHT - 1) & !traits.cursor_mask();
    let finite = traits.threshold_mask() != 0;
    let used_up = finite && left == 0;
    let Some(room) = length.checked_sub(cursor) else { return false };
    let too_small = traits.has(MAX_SIZE) && !traits.has(MANAGE_REMOTE) && room < max_size;
    rest & !(traits.threshold_mask() << traits.threshold_shift()) == 0
        && (!finite || left <= threshold)
        // A descriptor that was too small from the start accepts one message.
        && if inactive { used_up || too_small } else { !(used_up || too_small && cursor != 0) }
        && (traits.unlinks() || !unlinked && !flights)
        && (!unlinked || inactive && !flights)
}

/// The threshold in a state word.
pub(crate) fn threshold_of(traits: Traits, state: u64) -> i32 {
    if traits.threshold_mask() == 0 {
        return THRESH_INF;
    }
    (state >> traits.threshold_shift() & traits.threshold_mask()) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetworkInterface;

    /// Between the two steps of the party that gives the last claim back, an update may revive
    /// the descriptor.
    #[test]
    fn who_was_last_unlinks_only_what_is_still_through() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let state = &ni.state.own_cell(0).state.0;
        let through = INACTIVE;
        for (now, unlinks) in
            [(through, true), (through | UNLINKED, false), (through | FLIGHT, false), (5, false)]
        {
            state.store(now, Ordering::Relaxed);
            assert_eq!(last_given_back(ni.state.own_cell(0), true), unlinks);
            let after = if unlinks { now | UNLINKED } else { now };
            assert_eq!(state.load(Ordering::Relaxed), after);
        }
    }
}
