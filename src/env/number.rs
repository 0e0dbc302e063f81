//! Numbers as users write and read them: sizes with a suffix, fractions, hexadecimal, yes and
//! no. Called by the kinds of variables, `tools::client_variables` and the `gasnett_*` functions;
//! imports nothing.

/// Units of memory, the largest first.
const UNITS: [(u32, &str); 5] = [(40, "TB"), (30, "GB"), (20, "MB"), (10, "KB"), (0, "B")];

/// A number as a user would write it, such that [`parse`] returns the number. A size in bytes
/// carries the largest unit that expresses it exactly; from 2^50 on it is hexadecimal.
pub fn format(value: i64, is_mem: bool) -> String {
    if !is_mem {
        return value.to_string();
    }
    let sign = if value < 0 { "-" } else { "" };
    let magnitude = value.unsigned_abs();
    if magnitude >= 1 << 50 {
        return format!("{sign}{magnitude:#x}");
    }
    let exact = |shift: u32| magnitude != 0 && magnitude.trailing_zeros() >= shift;
    let (shift, unit) = UNITS.into_iter().find(|&(shift, _)| exact(shift)).unwrap_or((0, "B"));
    format!("{sign}{} {unit}", magnitude >> shift)
}

/// Why a text stands for no number of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// It is not a number.
    Malformed,
    /// It is a number that 64 bits cannot hold.
    TooLarge,
}

/// The number that a text stands for; `None` if [`read`] fails.
pub fn parse(text: &str, mult: u64) -> Option<i64> {
    read(text, mult).ok()
}

/// The number that a text stands for.
///
/// The text is an optional sign and decimal digits, possibly with a fraction, or hexadecimal
/// ones after `0x`. If `mult` is not 0, a suffix B, K, M, G or T (or KB ...) may follow, in
/// either case. A number without suffix counts units of `mult` bytes. Hexadecimal digits alone may
/// be all 64 bits of a word: `0xffffffffffffffff` is -1.
///
/// # Errors
/// Why it is none.
pub fn read(text: &str, mult: u64) -> Result<i64, NumberError> {
    use NumberError::{Malformed, TooLarge};
    let text = text.trim();
    let (negative, text) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let text = text.trim_start();
    let unit = mult.max(1);
    let magnitude = if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
    {
        // `b` is a digit here, so that a hexadecimal number has no suffix B.
        let digits = hex.len() - hex.trim_start_matches(|c: char| c.is_ascii_hexdigit()).len();
        let (number, suffix) = hex.split_at(digits);
        let scale = scale(suffix, mult).ok_or(Malformed)?.unwrap_or(unit);
        if number.is_empty() {
            return Err(Malformed);
        }
        let number = u64::from_str_radix(number, 16).map_err(|_| TooLarge)?;
        match scale {
            // All 64 bits of a word.
            1 if !negative => return Ok(number as i64),
            scale => number.checked_mul(scale).ok_or(TooLarge)?,
        }
    } else {
        let digits =
            text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (number, suffix) = text.split_at(digits);
        let scale = scale(suffix, mult).ok_or(Malformed)?.unwrap_or(unit);
        match number.parse::<u64>() {
            Ok(n) => n.checked_mul(scale).ok_or(TooLarge)?,
            Err(_) => {
                let n = number.parse::<f64>().map_err(|_| Malformed)? * scale as f64;
                (n < i64::MAX as f64).then_some(n as u64).ok_or(TooLarge)?
            }
        }
    };
    match negative {
        true => 0i64.checked_sub_unsigned(magnitude).ok_or(TooLarge),
        false => magnitude.try_into().map_err(|_| TooLarge),
    }
}

/// Bytes of a suffix; `Some(None)` for no suffix, `None` for one that is not allowed.
fn scale(suffix: &str, mult: u64) -> Option<Option<u64>> {
    let suffix = suffix.trim().to_ascii_uppercase();
    let shift = match (suffix.as_str(), mult) {
        ("", _) => return Some(None),
        (_, 0) => return None,
        ("B", _) => 0,
        ("K" | "KB", _) => 10,
        ("M" | "MB", _) => 20,
        ("G" | "GB", _) => 30,
        ("T" | "TB", _) => 40,
        _ => return None,
    };
    Some(Some(1 << shift))
}

/// A decimal number, or a fraction a/b of two.
pub fn parse_fraction(text: &str) -> Option<f64> {
    let one = |t: &str| t.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    let number = match text.split_once('/') {
        Some((a, b)) => one(a)? / one(b).filter(|b| *b != 0.0)?,
        None => one(text)?,
    };
    number.is_finite().then_some(number)
}

/// Y, YES, 1 or N, NO, 0, in either case.
pub fn parse_yes(text: &str) -> Option<bool> {
    match text.trim().to_ascii_uppercase().as_str() {
        "Y" | "YES" | "1" => Some(true),
        "N" | "NO" | "0" => Some(false),
        _ => None,
    }
}

/// The byte or the word of 64 bits that a text asks memory to be filled with. The text is a
/// number, or names the bits of a quiet or a signalling NaN.
pub fn parse_fill(text: &str) -> Option<u64> {
    match text.trim().to_ascii_uppercase().as_str() {
        "NAN" | "QNAN" => Some(0x7FFA_5A5A_5A5A_5A5A),
        "SNAN" => Some(0x7FF5_5A5A_5A5A_5A5A),
        t => match t.strip_prefix("0X") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => t.parse::<i64>().ok().map(|n| n as u64).or_else(|| t.parse().ok()),
        },
    }
}

/// A value as the user wrote it, followed by what it was understood as if that looks different.
pub fn explained(raw: &str, understood: &str) -> String {
    if raw == understood { raw.to_string() } else { format!("{raw} ({understood})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        for shift in 0..62 {
            for delta in [-1, 0, 1] {
                for sign in [-1, 1] {
                    let v = sign * ((1i64 << shift) + delta);
                    assert_eq!(parse(&format(v, true), 1), Some(v), "{}", format(v, true));
                    assert_eq!(parse(&format(v, false), 0), Some(v), "{}", format(v, false));
                }
            }
        }
        for v in [i64::MAX, i64::MIN] {
            assert_eq!(parse(&format(v, true), 1), Some(v));
        }
    }

    #[test]
    fn written_sizes() {
        assert_eq!(format(0, true), "0 B");
        assert_eq!(format(4096, true), "4 KB");
        assert_eq!(format(3 << 19, true), "1536 KB");
        assert_eq!(format(1 << 50, true), "0x4000000000000");
        assert_eq!(format(-4096, false), "-4096");
    }

    #[test]
    fn read_sizes() {
        assert_eq!(parse("2 KB", 1), Some(2048));
        assert_eq!(parse("2k", 1), Some(2048));
        assert_eq!(parse("1.5M", 1), Some(3 << 19));
        assert_eq!(parse("3", 1 << 20), Some(3 << 20));
        assert_eq!(parse("0x10", 1), Some(16));
        assert_eq!(parse("-7", 0), Some(-7));
        for bad in ["", "x", "1Q", "1KB2", "0x", "99999999999T", "-", "--1"] {
            assert_eq!(parse(bad, 1), None, "{bad}");
        }
        assert_eq!(parse("1K", 0), None);
        for large in ["99999999999999999999", "0x10000000000000000", "9223372036854775808"] {
            assert_eq!(read(large, 0), Err(NumberError::TooLarge), "{large}");
        }
        assert_eq!(read("-99999999999999999999", 0), Err(NumberError::TooLarge));
        assert_eq!(read("99999999999T", 1), Err(NumberError::TooLarge));
        assert_eq!(read("0x", 0), Err(NumberError::Malformed));
    }

    #[test]
    fn fills() {
        assert_eq!(parse_fill("0x1F"), Some(31));
        assert_eq!(parse_fill("-1"), Some(u64::MAX));
        assert_eq!(parse_fill("255"), Some(255));
        assert!(parse_fill("NAN").is_some_and(|n| f64::from_bits(n).is_nan()));
        assert!(parse_fill("sNAN").is_some_and(|n| f64::from_bits(n).is_nan()));
        assert_eq!(parse_fill("x"), None);
    }

    #[test]
    fn other_texts() {
        assert_eq!(parse_fraction("1/4"), Some(0.25));
        assert_eq!(parse_fraction("2.5"), Some(2.5));
        assert_eq!(parse_fraction("1/0"), None);
        assert_eq!(parse_fraction("1e308/1e-308"), None);
        assert_eq!(parse_yes("yEs"), Some(true));
        assert_eq!(parse_yes("0"), Some(false));
        assert_eq!(parse_yes("maybe"), None);
    }

    /// A number is written so that it is read again; what a text is read as has the same text.
    fn any_number(input: &[u8]) {
        let n = fuzz::InputReader::new(input).number() as i64;
        for n in [n, n.wrapping_neg(), n.wrapping_mul(1 << 10), n.wrapping_mul(1 << 40)] {
            assert_eq!(parse(&format(n, true), 1), Some(n), "{}", format(n, true));
            assert_eq!(parse(&format(n, false), 0), Some(n), "{}", format(n, false));
        }
        let text = String::from_utf8_lossy(input);
        for mult in [0, 1, 1 << 20, u64::MAX] {
            if let Some(n) = parse(&text, mult) {
                assert_eq!(parse(&format(n, true), 1), Some(n), "{text}");
            }
        }
        assert!(parse_fraction(&text).is_none_or(f64::is_finite), "{text}");
        if let Some(n) = parse_fill(&text) {
            assert_eq!(parse_fill(&std::format!("{n:#x}")), Some(n));
        }
        assert!(parse_yes(&text).is_none() || text.trim().len() <= 3);
    }

    #[test]
    fn fuzz_number() {
        fuzz::check("number", 20_000, any_number);
    }
}
