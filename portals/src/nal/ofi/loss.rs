//! Which frames of a peer are lost, though the provider reports nothing.
//!
//! Used by [`super::receiving`], under the lock of the network. A provider reports no loss of what
//! it keeps. If its connection breaks, such frames are lost, and later ones may travel on a new
//! one.
//!
//! Invariant: no peer fails because it, or this process, makes no calls.
//!
//! ```text
//! sender                                    receiver
//! 7, kept by the provider  --- x
//! a check: it has sent data
//! 8, an ask  ------------------------->     answers; its checks, once a second:
//!            <-------------------------     7 is missing: asks
//! 9, an answer  ---------------------->     7 is missing: asks
//! 10, an answer  --------------------->     7 is missing: asks
//! 11, an answer  --------------------->     7 is missing after three answers: it is lost
//! ```
//!
//! - A process that has sent frames of data asks its peer: an ask is a frame of one byte, an
//!   answer one without bytes. So a lost frame has one behind it, which shows the loss.
//! - A frame may be late without a loss: some providers need calls of its sender to move a long
//!   one, and a shorter one overtakes it. A sender that answers makes calls. What is missing after
//!   some answers, each to an ask that was sent after the answer before, is lost.
//! - A peer that does not answer may compute. It is asked a few times, and gets no more asks until
//!   a frame of it arrives.

use super::batch::MARK;
use super::limits::{ASKS_OF_A_LOSS, CHECK_NS, LOOKS_PER_CLOCK, MOST_UNANSWERED};
use sys::clock;

/// The bytes of an ask. No frame of data is as short.
pub(super) const ASK: [u8; 1] = [MARK];

/// Whether a frame of this many bytes has data: it is no greeting, answer or ask.
pub(super) fn has_data(bytes: usize) -> bool {
    bytes > ASK.len()
}

/// When peers are checked.
#[derive(Debug, Default)]
pub(super) struct LossClock {
    /// Looks until the clock is read.
    looks: u32,
    /// When the next check is.
    next: u64,
}

impl LossClock {
    /// Notes a look: whether peers are to be checked now.
    pub(super) fn is_due(&mut self) -> bool {
        if self.looks != 0 {
            self.looks -= 1;
            return false;
        }
        self.looks = LOOKS_PER_CLOCK;
        let now = clock::now_ns();
        let is_due = now >= self.next;
        if is_due {
            self.next = now.saturating_add(CHECK_NS);
        }
        is_due
    }

    /// The process may sleep: the next look reads the clock.
    pub(super) fn sleeps(&mut self) {
        self.looks = 0;
    }

    /// The next look is a check.
    #[cfg(test)]
    pub(super) fn check_now(&mut self) {
        (self.looks, self.next) = (0, 0);
    }
}

/// What a check of a peer finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossCheck {
    Nothing,
    /// It is to be asked.
    Ask,
    /// A frame of it is lost.
    Lost,
}

/// What was asked of a peer.
#[derive(Debug, Default)]
pub(super) struct LossWatch {
    /// Frames of data that were sent to it before the last ask.
    asked: u64,
    /// Asks since a frame of it last arrived.
    unanswered: u32,
    /// The number of its frame that is missing while later ones are here.
    missing: Option<u64>,
    /// Asks since that was seen, each after a frame of it had arrived.
    asks: u32,
}

impl LossWatch {
    /// A frame of it has arrived.
    pub(super) fn arrived(&mut self) {
        self.unanswered = 0;
    }

    /// A check: frames of data `sent` to it in all, and the number of its frame that is
    /// missing.
    pub(super) fn check(&mut self, sent: u64, missing: Option<u64>) -> LossCheck {
        if self.missing != missing {
            (self.missing, self.asks) = (missing, 0);
        }
        let is_answered = self.unanswered == 0;
        match missing {
            _ if self.unanswered == MOST_UNANSWERED => LossCheck::Nothing,
            Some(_) if is_answered && self.asks == ASKS_OF_A_LOSS => LossCheck::Lost,
            None if is_answered && self.asked == sent => LossCheck::Nothing,
            _ => LossCheck::Ask,
        }
    }

    /// It was asked.
    pub(super) fn has_asked(&mut self, sent: u64) {
        self.asks += u32::from(self.unanswered == 0);
        self.unanswered += 1;
        self.asked = sent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks, and asks if that is found.
    fn check(watch: &mut LossWatch, sent: u64, missing: Option<u64>) -> LossCheck {
        let found = watch.check(sent, missing);
        if found == LossCheck::Ask {
            watch.has_asked(sent);
        }
        found
    }

    #[test]
    fn what_is_missing_after_some_answers_is_lost() {
        let mut watch = LossWatch::default();
        for _ in 0..ASKS_OF_A_LOSS {
            assert_eq!(check(&mut watch, 0, Some(7)), LossCheck::Ask);
            watch.arrived();
        }
        assert_eq!(check(&mut watch, 0, Some(7)), LossCheck::Lost);
        // It comes, and another one is missing.
        assert_eq!(check(&mut watch, 0, Some(8)), LossCheck::Ask);
        // It comes. What is asked now is no ask of the next one that is missing.
        watch.arrived();
        (1..9).for_each(|sent| {
            assert_eq!(check(&mut watch, sent, None), LossCheck::Ask);
            watch.arrived();
        });
        assert_eq!(check(&mut watch, 8, Some(9)), LossCheck::Ask);
    }

    /// It computes, or its answers are on their way.
    #[test]
    fn a_peer_that_does_not_answer_loses_nothing() {
        let mut watch = LossWatch::default();
        for _ in 0..MOST_UNANSWERED {
            assert_eq!(check(&mut watch, 0, Some(7)), LossCheck::Ask);
        }
        (0..1000).for_each(|_| assert_eq!(check(&mut watch, 0, Some(7)), LossCheck::Nothing));
        // All these asks were before its first call.
        watch.arrived();
        assert_eq!(check(&mut watch, 0, Some(7)), LossCheck::Ask);
    }

    #[test]
    fn only_data_is_asked_for() {
        let mut watch = LossWatch::default();
        assert_eq!(check(&mut watch, 0, None), LossCheck::Nothing);
        assert_eq!(check(&mut watch, 3, None), LossCheck::Ask);
        // The ask, or the answer, may be lost.
        assert_eq!(check(&mut watch, 3, None), LossCheck::Ask);
        watch.arrived();
        assert_eq!(check(&mut watch, 3, None), LossCheck::Nothing);
        assert_eq!(check(&mut watch, 4, None), LossCheck::Ask);
    }
}
