//! What a chunk or a temporary descriptor is held for, in one word: which event ends the hold.
//!
//! Written by the file that takes the resource, compared by the file that receives the event.
//! Invariant: an event that a peer has damaged ends no hold but one of its own kind or
//! operation, and ends it once. What it may return twice is refused.

/// What ends the hold of a resource. Never a number below 2^31, never [`u32::MAX`]: the list of
/// free numbers keeps it where a free number has its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Hold(u32);

const HELD: u32 = 1 << 31;
const KIND_SHIFT: u32 = 28;
/// Bits of an operation that are compared.
const NAME: u32 = (1 << KIND_SHIFT) - 1;

impl Hold {
    /// No event: code of this process has it.
    pub(super) const HERE: Hold = Hold(HELD);
    /// The SEND event of a reply that leaves the chunk.
    pub(super) const REPLY: Hold = Hold(HELD | 1 << KIND_SHIFT);
    /// The SEND event of the data of a Long.
    pub(super) const DATA: Hold = Hold(HELD | 2 << KIND_SHIFT);
    /// The reply to the request that left from the chunk. Which rank replies is not compared: that
    /// costs 1 % of `one_way_request`.
    pub(super) const REQUEST: Hold = Hold(HELD | 3 << KIND_SHIFT);

    /// The events of a put of the operation with this id.
    #[inline(always)]
    pub(super) const fn put(op: u32) -> Hold {
        Hold(HELD | 4 << KIND_SHIFT | op & NAME)
    }

    /// The REPLY event of a get of the operation with this id.
    #[inline(always)]
    pub(super) const fn get(op: u32) -> Hold {
        Hold(HELD | 5 << KIND_SHIFT | op & NAME)
    }

    /// The hold that this word of a list says; `None` for a link.
    pub(super) fn of_word(word: u32) -> Option<Hold> {
        (word & HELD != 0 && word != u32::MAX).then_some(Hold(word))
    }

    /// Whether an event ends it that is not the reply to a request.
    pub(super) fn is_of_transfer(self) -> bool {
        self != Hold::HERE && self != Hold::REQUEST
    }

    /// The word.
    #[inline(always)]
    pub(super) const fn word(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_differ_from_each_other_and_from_links() {
        let op = 7;
        let all =
            [Hold::HERE, Hold::REPLY, Hold::DATA, Hold::REQUEST, Hold::put(op), Hold::get(op)];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b) && a.word() >= HELD);
        }
        assert_ne!(Hold::get(u32::MAX).word(), u32::MAX);
        assert_eq!([7, u32::MAX].map(Hold::of_word), [None, None]);
        assert!(all.iter().all(|&hold| Hold::of_word(hold.word()) == Some(hold)));
        assert_eq!(all.map(Hold::is_of_transfer), [false, true, true, false, true, true]);
        assert_ne!(Hold::put(op), Hold::put(8));
    }
}
