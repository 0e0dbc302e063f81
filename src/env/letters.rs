//! The types of events of the trace and the statistics, one letter each, and sets of them.
//!
//! Used by the kinds of variables (GASNET_TRACEMASK, GASNET_STATSMASK) and by `trace`; imports
//! nothing.

use core::fmt;

/// The type of an event.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letter {
    /// Gets.
    G,
    /// Puts.
    P,
    /// Syncs of non-blocking operations.
    S,
    /// Collectives other than barriers.
    W,
    /// Polls.
    X,
    /// Barriers.
    B,
    /// Handler-safe locks.
    L,
    /// Active messages: requests, replies, and their handlers.
    A,
    /// The job and its settings.
    I,
    /// The library's own messages, the network's counters.
    C,
    /// Addresses, arguments and the first bytes of the data of puts and messages.
    D,
    /// Lines of the client's source.
    N,
    /// Messages of the client.
    H,
    /// Messages of the client that no mask excludes.
    U,
}

impl Letter {
    /// All letters, in the order in which masks are written.
    pub const ALL: [Letter; 14] = {
        use Letter::{A, B, C, D, G, H, I, L, N, P, S, U, W, X};
        [G, P, S, W, X, B, L, A, I, C, D, N, H, U]
    };

    /// The letter itself.
    pub fn as_str(self) -> &'static str {
        const TEXT: &str = "GPSWXBLAICDNHU";
        &TEXT[self as usize..][..1]
    }

    fn of(c: char) -> Option<Letter> {
        Letter::ALL.into_iter().find(|l| l.as_str().starts_with(c))
    }
}

/// A set of letters. Each set contains U.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterMask(pub u32);

impl LetterMask {
    /// All letters.
    pub const ALL: LetterMask = LetterMask((1 << Letter::ALL.len()) - 1);
    /// U alone.
    pub const NONE: LetterMask = LetterMask(1 << Letter::U as u32);

    /// The set that a text names: its letters, or all others if it begins with `^`.
    ///
    /// # Errors
    /// The first character that is no letter of a type of events.
    pub fn parse(text: &str) -> Result<LetterMask, char> {
        let text = text.trim();
        let (letters, inverted) = match text.strip_prefix('^') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let mut bits = 0;
        for c in letters.chars() {
            bits |= 1 << Letter::of(c).ok_or(c)? as u32;
        }
        let bits = if inverted { !bits & LetterMask::ALL.0 } else { bits };
        Ok(LetterMask(bits | LetterMask::NONE.0))
    }

    /// Whether the set contains this letter.
    pub fn has(self, letter: Letter) -> bool {
        self.0 & 1 << letter as u32 != 0
    }
}

impl fmt::Display for LetterMask {
    /// The letters that a user would write: all but U.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = Letter::ALL.into_iter().filter(|l| *l != Letter::U && self.has(*l));
        shown.try_for_each(|l| f.write_str(l.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        assert_eq!(LetterMask::parse("GPU").map(|m| m.to_string()).as_deref(), Ok("GP"));
        assert_eq!(LetterMask::parse("^XDG").map(|m| m.to_string()).as_deref(), Ok("PSWBLAICNH"));
        assert_eq!(LetterMask::parse(""), Ok(LetterMask::NONE));
        assert_eq!(LetterMask::parse("^"), Ok(LetterMask::ALL));
        assert_eq!(LetterMask::parse("GQ"), Err('Q'));
        assert_eq!(LetterMask::parse("G^"), Err('^'));
        assert!(LetterMask::NONE.has(Letter::U) && !LetterMask::NONE.has(Letter::G));
    }

    #[test]
    fn letters_are_in_their_order() {
        assert!(Letter::ALL.into_iter().enumerate().all(|(i, l)| l as usize == i));
        assert_eq!(Letter::U.as_str(), "U");
    }
}
