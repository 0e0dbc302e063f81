//! [`Peer`]: a word that another process can write. `portals3`, `conduit` and `extended` wrap
//! what they read from shared memory or from a message in it.
//!
//! Such a word is no index, length, offset or pointer before a check that names its bound. The
//! checks are here, so that one word finds all unchecked uses: [`Peer::data`].

use core::ops::Range;

/// A value that another process wrote or can write. It costs nothing: it is the value itself.
///
/// A copy of the value was read once, so a later write of the other process does not change
/// what was checked.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Peer<T>(T);

impl<T: Copy> Peer<T> {
    /// Marks a value that was just read.
    pub const fn new(value: T) -> Peer<T> {
        Peer(value)
    }

    /// A part or a conversion of the value, which is as little trusted as the whole: a bit
    /// field, a wider type.
    pub fn map<U: Copy>(self, part: impl FnOnce(T) -> U) -> Peer<U> {
        Peer(part(self.0))
    }

    /// What `known` makes of the value: for enumerations and sets of flags. `known` returns
    /// `None` for a value that it does not know.
    pub fn decode<U>(self, known: impl FnOnce(T) -> Option<U>) -> Option<U> {
        known(self.0)
    }

    /// Whether it is exactly this value.
    pub fn equals(self, value: T) -> bool
    where
        T: PartialEq,
    {
        self.0 == value
    }

    /// The value, if it is at most `limit`: for lengths and counts.
    pub fn at_most(self, limit: T) -> Option<T>
    where
        T: PartialOrd,
    {
        if self.0 <= limit { Some(self.0) } else { None }
    }

    /// The value, or `limit` if it is more: for lengths of what is cut off there.
    pub fn clamped(self, limit: T) -> T
    where
        T: Ord,
    {
        self.0.min(limit)
    }

    /// The value as an index into `bound` elements, if it is one.
    pub fn below(self, bound: usize) -> Option<usize>
    where
        T: TryInto<usize>,
    {
        self.0.try_into().ok().filter(|&index| index < bound)
    }

    /// The `length` elements that begin at this offset, if all of them are among the first
    /// `bound`.
    pub fn range<L>(self, length: Peer<L>, bound: usize) -> Option<Range<usize>>
    where
        T: TryInto<usize>,
        L: Copy + TryInto<usize>,
    {
        let start = self.0.try_into().ok()?;
        let end = start.checked_add(length.0.try_into().ok()?)?;
        (end <= bound).then_some(start..end)
    }

    /// The value as it is, for what this process only hands on, compares or prints: user data,
    /// match bits, statistics. It must not become an index, a length or an address.
    pub const fn data(self) -> T {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_below_its_bound() {
        assert_eq!(Peer::new(3u32).below(4), Some(3));
        assert_eq!(Peer::new(4u32).below(4), None);
        assert_eq!(Peer::new(0u8).below(0), None);
        assert_eq!(Peer::new(u64::MAX).below(usize::MAX), None);
        assert_eq!(Peer::new(-1i32).below(usize::MAX), None);
    }

    #[test]
    fn a_length_is_at_most_its_limit() {
        assert_eq!(Peer::new(8u32).at_most(8), Some(8));
        assert_eq!(Peer::new(9u32).at_most(8), None);
        assert_eq!([7, 8, 9].map(|n: u32| Peer::new(n).clamped(8)), [7, 8, 8]);
    }

    #[test]
    fn a_range_lies_within_its_bound() {
        let range =
            |start: u64, length: u64, bound| Peer::new(start).range(Peer::new(length), bound);
        assert_eq!(range(2, 3, 5), Some(2..5));
        assert_eq!(range(5, 0, 5), Some(5..5));
        assert_eq!(range(6, 0, 5), None);
        assert_eq!(range(2, 4, 5), None);
        assert_eq!(range(u64::MAX, 1, 5), None);
        assert_eq!(range(1, u64::MAX, usize::MAX), None);
    }

    #[test]
    fn known_values_and_parts() {
        let kind = |value| match value {
            0 => Some("put"),
            1 => Some("get"),
            _ => None,
        };
        assert_eq!(Peer::new(0x0100u32).map(|word| word >> 8).decode(kind), Some("get"));
        assert_eq!(Peer::new(2).decode(kind), None);
        assert!(Peer::new(7u64).equals(7) && !Peer::new(7u64).equals(8));
        assert_eq!(Peer::new(7u64).data(), 7);
        assert_eq!(size_of::<Peer<u32>>(), 4);
    }
}
