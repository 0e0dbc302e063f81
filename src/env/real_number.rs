//! The kind of a value that is a part of a whole.
//!
//! Used by the declarations in the table. Invariant: as of all kinds.

use super::kinds::ValueKind;
use super::number;

/// A number above 0 and not above 1, possibly a fraction a/b.
#[derive(Clone, Copy, Debug)]
pub struct Fraction;

impl Fraction {
    pub(super) const fn admits(&self, default: f64) -> bool {
        default > 0.0 && default <= 1.0
    }
}

impl ValueKind for Fraction {
    type Value = f64;
    type Default = f64;

    fn parse(&self, text: &str) -> Option<f64> {
        number::parse_fraction(text).filter(|share| self.admits(*share))
    }

    fn accepted(&self) -> String {
        "a number above 0 that is at most 1, or such a fraction a/b".to_string()
    }

    fn values(&self) -> String {
        "number above 0, at most 1, or a fraction a/b".to_string()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_whole() {
        assert_eq!(Fraction.parse("2/3"), Some(2.0 / 3.0));
        assert_eq!(Fraction.parse("1"), Some(1.0));
        for bad in ["0", "1.01", "-1", "3/2", "1/0", "most"] {
            assert_eq!(Fraction.parse(bad), None, "{bad}");
        }
    }
}
