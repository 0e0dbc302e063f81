//! Numbers of bytes in messages.
//!
//! Called by every layer that prints a size. Invariant: the text says the exact number;
//! it allocates nothing, since a signal handler may print it.

use core::fmt;

/// Units of memory, the largest first.
const UNITS: [(u32, &str); 4] = [(40, "TB"), (30, "GB"), (20, "MB"), (10, "KB")];

/// An exact count is read as easily up to this one.
const READABLE: u64 = 10_000;

/// A number of bytes as users write it: `40 bytes`, `64MB`, `1.50GB (1610612737 bytes)`.
#[derive(Clone, Copy, Debug)]
pub struct ByteCount(pub u64);

impl ByteCount {
    /// With the largest unit that expresses it exactly; `None` if only bytes do.
    pub fn in_units(self) -> Option<(u64, &'static str)> {
        let exact =
            |&(shift, _): &(u32, _)| self.0 >> shift != 0 && self.0.is_multiple_of(1 << shift);
        UNITS.into_iter().find(exact).map(|(shift, unit)| (self.0 >> shift, unit))
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        if let Some((count, unit)) = self.in_units().filter(|&(count, _)| count < READABLE) {
            return write!(f, "{count}{unit}");
        }
        match UNITS.into_iter().find(|(shift, _)| bytes >> shift != 0 && bytes >= READABLE) {
            Some((shift, unit)) => {
                let part = u128::from(bytes & ((1 << shift) - 1));
                let hundredths = (part * 100) >> shift;
                write!(f, "{}.{hundredths:02}{unit} ({bytes} bytes)", bytes >> shift)
            }
            None => write!(f, "{bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ByteCount;

    #[test]
    fn sizes_have_units_and_stay_exact() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (40, "40 bytes"),
            (4096, "4KB"),
            (4097, "4097 bytes"),
            (64 << 20, "64MB"),
            (12345, "12.05KB (12345 bytes)"),
            (200_000 << 10, "195.31MB (204800000 bytes)"),
            ((3 << 29) + 1, "1.50GB (1610612737 bytes)"),
            ((1 << 40) - 1, "1023.99GB (1099511627775 bytes)"),
            (1 << 47, "128TB"),
            (u64::MAX, "16777215.99TB (18446744073709551615 bytes)"),
        ] {
            assert_eq!(ByteCount(bytes).to_string(), text);
        }
    }
}
