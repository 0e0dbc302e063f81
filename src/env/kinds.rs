//! The kinds of values that variables have: how each is parsed, shown and described.
//!
//! Used by the declarations in the table. Invariant: if `admits(default)`, then
//! `parse(default_text(default))` succeeds.

use super::letters::{Letter, LetterMask};
use super::number;
use super::tree::Tree;
use core::ops::RangeInclusive;
use sys::byte_count::ByteCount;

/// What the values of a variable look like.
pub trait ValueKind {
    /// What a reader gets.
    type Value;
    /// What the declaration gives as the default.
    type Default: Copy;

    /// The value that a text stands for; `None` if the kind has no such value.
    fn parse(&self, text: &str) -> Option<Self::Value>;
    /// The accepted values, for a user that gave another one.
    fn accepted(&self) -> String;
    /// The accepted values, in a few words for a table.
    fn values(&self) -> String;
    /// The least and the greatest value, if there are such.
    fn bounds(&self) -> Option<(i64, i64)> {
        None
    }
    /// The value of a default.
    fn default_value(&self, default: Self::Default) -> Self::Value;
    /// A default as a user would write it.
    fn default_text(&self, default: Self::Default) -> String;
    /// How the library writes a value; `None` for kinds that are shown as the user wrote them.
    fn understood(&self, _value: &Self::Value) -> Option<String> {
        None
    }
    /// A value from the environment as an `ENV parameter:` line shows it.
    fn shown(&self, raw: &str, value: &Self::Value) -> String {
        match self.understood(value) {
            Some(understood) => number::explained(raw, &understood),
            None => raw.to_string(),
        }
    }
}

/// Y, YES, 1, N, NO or 0 in either case.
#[derive(Clone, Copy, Debug)]
pub struct YesNo;

impl YesNo {
    pub(super) const fn admits(&self, _default: bool) -> bool {
        true
    }
}

impl ValueKind for YesNo {
    type Value = bool;
    type Default = bool;

    fn parse(&self, text: &str) -> Option<bool> {
        number::parse_yes(text)
    }

    fn accepted(&self) -> String {
        "Y, YES, 1, N, NO or 0".to_string()
    }

    fn values(&self) -> String {
        "yes or no".to_string()
    }

    fn bounds(&self) -> Option<(i64, i64)> {
        Some((0, 1))
    }

    fn default_value(&self, default: bool) -> bool {
        default
    }

    fn default_text(&self, default: bool) -> String {
        if default { "yes" } else { "no" }.to_string()
    }

    fn understood(&self, value: &bool) -> Option<String> {
        Some(if *value { "YES" } else { "NO" }.to_string())
    }

    fn shown(&self, _raw: &str, value: &bool) -> String {
        if *value { "YES" } else { "NO" }.to_string()
    }
}

/// A whole number in a range. A range that ends at `u32::MAX` has no upper bound; larger
/// numbers count as that one.
#[derive(Clone, Debug)]
pub struct Integer(pub RangeInclusive<u32>);

impl Integer {
    pub(super) const fn admits(&self, default: u32) -> bool {
        *self.0.start() <= default && default <= *self.0.end()
    }

    /// The greatest value.
    pub const fn highest(&self) -> u32 {
        *self.0.end()
    }
}

impl ValueKind for Integer {
    type Value = u32;
    type Default = u32;

    fn parse(&self, text: &str) -> Option<u32> {
        let n = text.trim().parse::<i64>().ok()?;
        let bounded = if self.highest() == u32::MAX { n.min(u32::MAX.into()) } else { n };
        u32::try_from(bounded).ok().filter(|n| self.0.contains(n))
    }

    fn accepted(&self) -> String {
        match (*self.0.start(), *self.0.end()) {
            (lowest, u32::MAX) => format!("a whole number, at least {lowest}"),
            (lowest, highest) if lowest == highest => lowest.to_string(),
            (lowest, highest) => format!("a whole number from {lowest} to {highest}"),
        }
    }

    fn values(&self) -> String {
        match (*self.0.start(), *self.0.end()) {
            (lowest, u32::MAX) => format!("number, at least {lowest}"),
            (lowest, highest) => format!("number, {lowest} to {highest}"),
        }
    }

    fn bounds(&self) -> Option<(i64, i64)> {
        Some(((*self.0.start()).into(), (*self.0.end()).into()))
    }

    fn default_value(&self, default: u32) -> u32 {
        default
    }

    fn default_text(&self, default: u32) -> String {
        default.to_string()
    }

    fn understood(&self, value: &u32) -> Option<String> {
        Some(value.to_string())
    }
}

/// A number of bytes in a range, with an optional suffix B, K, M, G or T, or KB, MB, GB or TB.
#[derive(Clone, Debug)]
pub struct Bytes(pub RangeInclusive<usize>);

impl Bytes {
    pub(super) const fn admits(&self, default: usize) -> bool {
        *self.0.start() <= default && default <= *self.0.end()
    }

    /// The greatest value.
    pub const fn highest(&self) -> usize {
        *self.0.end()
    }
}

/// A size with the largest unit that expresses it exactly, as users write it.
fn size_text(bytes: usize) -> String {
    match ByteCount(bytes as u64).in_units() {
        Some((count, unit)) => format!("{count}{unit}"),
        None => format!("{bytes}B"),
    }
}

impl ValueKind for Bytes {
    type Value = usize;
    type Default = usize;

    fn parse(&self, text: &str) -> Option<usize> {
        let n = number::parse(text, 1).and_then(|n| usize::try_from(n).ok());
        n.filter(|n| self.0.contains(n))
    }

    fn accepted(&self) -> String {
        let (lowest, highest) = (size_text(*self.0.start()), size_text(*self.0.end()));
        format!("a size from {lowest} to {highest}")
    }

    fn values(&self) -> String {
        format!("size, {} to {}", size_text(*self.0.start()), size_text(*self.0.end()))
    }

    fn bounds(&self) -> Option<(i64, i64)> {
        Some((*self.0.start() as i64, *self.0.end() as i64))
    }

    fn default_value(&self, default: usize) -> usize {
        default
    }

    fn default_text(&self, default: usize) -> String {
        size_text(default)
    }

    fn understood(&self, value: &usize) -> Option<String> {
        Some(number::format(*value as i64, true))
    }
}

/// One of these words, in either case, and the value that each stands for.
#[derive(Clone, Copy, Debug)]
pub struct OneOf<T: 'static>(pub &'static [(&'static str, T)]);

impl<T> OneOf<T> {
    fn words(&self) -> String {
        self.0.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
    }
}

impl<T: Copy> ValueKind for OneOf<T> {
    type Value = T;
    type Default = T;

    fn parse(&self, text: &str) -> Option<T> {
        let found = self.0.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
        found.map(|(_, value)| *value)
    }

    fn accepted(&self) -> String {
        format!("one of {}", self.words())
    }

    fn values(&self) -> String {
        self.words()
    }

    fn default_value(&self, default: T) -> T {
        default
    }

    fn default_text(&self, _default: T) -> String {
        unreachable!("no variable of this kind has a default")
    }
}

/// A range of TCP ports such as `50000-50100`, or one.
#[derive(Clone, Copy, Debug)]
pub struct Ports;

/// The ports that a text names; 0 is none.
fn parse_ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (1 <= first && first <= last).then_some(first..=last)
}

/// Ranks such as `0,2-4`, or `*` for all.
#[derive(Clone, Copy, Debug)]
pub struct Ranks;

/// The ranks that a list names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankSet(Vec<RangeInclusive<u32>>);

impl RankSet {
    /// The set of a list such as `0,2-4` or `*`; `None` if it is not such a list.
    pub fn parse(text: &str) -> Option<RankSet> {
        let rank = |t: &str| t.trim().parse::<u32>().ok();
        let range = |item: &str| match item.split_once('-') {
            _ if item == "*" => Some(0..=u32::MAX),
            Some((a, b)) => Some(rank(a)?..=rank(b)?).filter(|r| !r.is_empty()),
            None => rank(item).map(|r| r..=r),
        };
        text.split(',').map(str::trim).map(range).collect::<Option<_>>().map(RankSet)
    }

    /// Whether the list names a rank of a job of `size` ranks.
    pub fn has_below(&self, size: u32) -> bool {
        self.0.iter().any(|range| *range.start() < size)
    }

    /// Whether the list names this rank.
    pub fn has(&self, rank: u32) -> bool {
        self.0.iter().any(|range| range.contains(&rank))
    }
}

/// Letters of events, or `^` and those to leave out.
#[derive(Clone, Copy, Debug)]
pub struct Letters;

/// A byte, or a word of 64 bits, that memory is filled with.
#[derive(Clone, Copy, Debug)]
pub struct FillPattern;

impl FillPattern {
    pub(super) const fn admits(&self, _default: &str) -> bool {
        true
    }
}

/// Any text.
#[derive(Clone, Copy, Debug)]
pub struct FreeText;

/// The tree of a collective.
#[derive(Clone, Copy, Debug)]
pub struct TreeName;

/// A planted fault, which only a test build has.
#[derive(Clone, Copy, Debug)]
pub struct FaultName;

/// A kind whose values are shown as the user wrote them.
macro_rules! shown_as_written {
    ($kind:ty, $value:ty, $parse:expr, $accepted:expr, $values:literal) => {
        impl $crate::env::ValueKind for $kind {
            type Value = $value;
            type Default = &'static str;

            fn parse(&self, text: &str) -> Option<$value> {
                $parse(text)
            }

            fn accepted(&self) -> String {
                $accepted.to_string()
            }

            fn values(&self) -> String {
                $values.to_string()
            }

            fn default_value(&self, default: &'static str) -> $value {
                self.parse(default)
                    .unwrap_or_else(|| unreachable!("the default {default} is valid"))
            }

            fn default_text(&self, default: &'static str) -> String {
                default.to_string()
            }
        }
    };
}
pub(super) use shown_as_written;

shown_as_written!(
    Ports,
    RangeInclusive<u16>,
    parse_ports,
    "ports from 1 to 65535, such as 50000-50100",
    "a port, or a range of ports"
);
shown_as_written!(
    Ranks,
    RankSet,
    RankSet::parse,
    "ranks separated by commas, such as 0,2-4, or *",
    "ranks"
);
shown_as_written!(
    Letters,
    LetterMask,
    |text| LetterMask::parse(text).ok(),
    format!(
        "letters out of {}, or ^ and those to leave out",
        Letter::ALL.map(Letter::as_str).concat()
    ),
    "letters"
);
shown_as_written!(
    FillPattern,
    u64,
    number::parse_fill,
    "a whole number, NAN, qNAN or sNAN",
    "a byte (0 to 255), a number of 64 bits, NAN, qNAN or sNAN"
);
shown_as_written!(
    TreeName,
    Tree,
    Tree::parse,
    "FLAT_TREE, NARY_TREE,n (n at least 1) or KNOMIAL_TREE,n (n at least 2)",
    "FLAT_TREE, NARY_TREE,n or KNOMIAL_TREE,n"
);
shown_as_written!(
    FaultName,
    String,
    |text: &str| cfg!(feature = "faults").then(|| text.to_string()),
    "it only to a library with planted faults (make faults)",
    "text"
);
shown_as_written!(FreeText, String, |text: &str| Some(text.to_string()), "any text", "text");

#[cfg(test)]
mod tests {
    use super::super::real_number::Seconds;
    use super::super::signal_list::HandledSignals;
    use super::*;

    #[test]
    fn ports_are_a_range() {
        assert_eq!(Ports.parse("50000-50100"), Some(50000..=50100));
        assert_eq!(Ports.parse(" 7 "), Some(7..=7));
        for wrong in ["", "zz", "0", "0-9", "9-8", "1-65536", "1-2-3", "-1", "+"] {
            assert_eq!(Ports.parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn yes_or_no() {
        assert_eq!(YesNo.parse("yes"), Some(true));
        assert_eq!(YesNo.parse("n"), Some(false));
        assert_eq!(YesNo.parse("maybe"), None);
        assert_eq!(YesNo.parse("2"), None);
        assert_eq!(YesNo.shown("1", &true), "YES");
    }

    #[test]
    fn integers() {
        let digit = Integer(1..=9);
        assert_eq!(digit.parse(" 9 "), Some(9));
        for bad in ["0", "10", "3x", "-1", "", "99999999999999999999"] {
            assert_eq!(digit.parse(bad), None, "{bad}");
        }
        assert_eq!(digit.shown(" 9", &9), " 9 (9)");
        assert_eq!(digit.accepted(), "a whole number from 1 to 9");
        assert_eq!(Integer(0..=0).accepted(), "0");
        let unbounded = Integer(2..=u32::MAX);
        assert_eq!(unbounded.parse("9999999999"), Some(u32::MAX));
        assert_eq!(unbounded.parse("99999999999999999999"), None);
        assert_eq!(unbounded.accepted(), "a whole number, at least 2");
    }

    #[test]
    fn sizes() {
        let any = Bytes(0..=1 << 40);
        for (text, bytes) in [
            ("4096", 4096),
            ("2KB", 2048),
            ("2k", 2048),
            ("1.5M", 3 << 19),
            ("0x10", 16),
            ("16B", 16),
        ] {
            assert_eq!(any.parse(text), Some(bytes), "{text}");
        }
        for bad in ["", "lots", "-1", "1 parsec", "2TB", "99999999999T", "inf"] {
            assert_eq!(any.parse(bad), None, "{bad}");
        }
        assert_eq!(any.shown("64M", &(64 << 20)), "64M (64 MB)");
        assert_eq!(any.values(), "size, 0B to 1TB");
        assert_eq!(Bytes(4096..=1 << 47).accepted(), "a size from 4KB to 128TB");
    }

    #[test]
    fn words() {
        let kind = OneOf(&[("SPIN", 1), ("BLOCK", 2)]);
        assert_eq!(kind.parse("block"), Some(2));
        assert_eq!(kind.parse("spinning"), None);
        assert_eq!(kind.accepted(), "one of SPIN, BLOCK");
    }

    #[test]
    fn lists_of_ranks() {
        let has = |list: &str, rank| RankSet::parse(list).map(|set| set.has(rank));
        assert_eq!(has("0, 2-4", 3), Some(true));
        assert_eq!(has("0,2-4", 0), Some(true));
        assert_eq!(has("0,2-4", 1), Some(false));
        assert_eq!(has("*", 9), Some(true));
        let has_below = |list: &str, size| RankSet::parse(list).map(|set| set.has_below(size));
        assert_eq!([has_below("7,4-9", 4), has_below("7,3-9", 4)], [Some(false), Some(true)]);
        for bad in ["0,x", "4-2", "none", "0,", ""] {
            assert_eq!(RankSet::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn other_kinds() {
        assert!(Letters.parse("^XD").is_some() && Letters.parse("GPQ").is_none());
        assert_eq!(FreeText.parse("a").as_deref(), Some("a"));
        assert_eq!(FillPattern.default_value("255"), 255);
        assert!(FillPattern.parse("zz").is_none());
        assert!(TreeName.parse("nary_tree,3").is_some() && TreeName.parse("zz").is_none());
        assert_eq!(FaultName.parse("lose_env").is_some(), cfg!(feature = "faults"));
    }

    /// The value of a text is one that the kind has, and reads the same when it is written.
    fn any_value(input: &[u8]) {
        let (&which, text) = input.split_first().unwrap_or((&0, &[]));
        let text = &*String::from_utf8_lossy(text);
        fn again<K: ValueKind>(kind: K, text: &str, same: impl Fn(&K::Value, &K::Value) -> bool) {
            let Some(value) = kind.parse(text) else { return };
            assert!(!kind.shown(text, &value).is_empty() || text.is_empty());
            let Some(written) = kind.understood(&value) else { return };
            assert!(kind.parse(&written).is_some_and(|n| same(&n, &value)), "{text} {written}");
        }
        match which % 10 {
            0 => again(YesNo, text, bool::eq),
            1 => again(Integer(2..=99), text, |a, b| a == b && (2..=99).contains(a)),
            2 => again(Integer(0..=u32::MAX), text, u32::eq),
            3 => again(Bytes(64..=1 << 40), text, |a, b| a == b && (64..=1 << 40).contains(a)),
            4 => again(Seconds, text, |a, b| a == b && *a >= 0.0 && a.is_finite()),
            5 => again(OneOf(&[("SPIN", 1), ("BLOCK", 2)]), text, i32::eq),
            6 => {
                let set = RankSet::parse(text);
                assert!(set.is_none_or(|set| !set.0.is_empty() && set.has(*set.0[0].start())));
            }
            7 => {
                let list = HandledSignals.parse(text).unwrap_or_default();
                assert!(list.iter().all(|s| (1..=64).contains(&s.number())));
            }
            8 => {
                let mask = LetterMask::parse(text);
                assert_eq!(mask.map(|m| LetterMask::parse(&m.to_string())), mask.map(|_| mask));
            }
            _ => again(FillPattern, text, u64::eq),
        }
    }

    #[test]
    fn fuzz_environment() {
        fuzz::check("environment", 20_000, any_value);
    }
}
