//! The kinds of values that are real numbers, possibly written as a fraction a/b.
//!
//! Used by the declarations in the table. Invariant: as of all kinds.

use super::kinds::ValueKind;
use super::number;

/// Defines a kind: which numbers it admits, and how it says that.
macro_rules! real_number {
    ($(#[$doc:meta])* $name:ident, |$number:ident| $admitted:expr, $accepted:expr, $values:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl $name {
            pub(super) const fn admits(&self, $number: f64) -> bool {
                $admitted
            }
        }

        impl ValueKind for $name {
            type Value = f64;
            type Default = f64;

            fn parse(&self, text: &str) -> Option<f64> {
                number::parse_fraction(text).filter(|number| self.admits(*number))
            }

            fn accepted(&self) -> String {
                $accepted.to_string()
            }

            fn values(&self) -> String {
                $values.to_string()
            }

            fn default_value(&self, default: f64) -> f64 {
                default
            }

            fn default_text(&self, default: f64) -> String {
                default.to_string()
            }

            fn understood(&self, value: &f64) -> Option<String> {
                Some(value.to_string())
            }
        }
    };
}

real_number! {
    /// A number of seconds, not negative.
    Seconds,
    |number| number >= 0.0,
    "a number of seconds that is not negative, or a fraction a/b",
    "seconds, or a fraction a/b"
}

real_number! {
    /// A part of a whole: above 0 and not above 1.
    Fraction,
    |number| number > 0.0 && number <= 1.0,
    "a number above 0 that is at most 1, or such a fraction a/b",
    "number above 0, at most 1, or a fraction a/b"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds() {
        assert_eq!(Seconds.parse("1/4"), Some(0.25));
        for bad in ["-1", "1/0", "inf", "soon"] {
            assert_eq!(Seconds.parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn parts_of_a_whole() {
        assert_eq!(Fraction.parse("2/3"), Some(2.0 / 3.0));
        assert_eq!(Fraction.parse("1"), Some(1.0));
        for bad in ["0", "1.01", "-1", "3/2", "1/0", "most"] {
            assert_eq!(Fraction.parse(bad), None, "{bad}");
        }
    }
}
