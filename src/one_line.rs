//! Text of others on one line: its control characters as escapes.
//!
//! Used for lines that programs read: those of the trace and of the statistics, and those of
//! `gasnet_info`. Imports nothing. Invariant: what is written has no control character. Nothing is
//! allocated.

use core::fmt::{self, Write};

/// Shown with each control character as an escape of Rust: `\n`, `\t`, `\u{1b}`.
#[derive(Clone, Copy, Debug)]
pub struct OneLine<T>(pub T);

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| c.is_control()) {
            self.0.write_str(&rest[..at])?;
            write!(self.0, "{}", c.escape_default())?;
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

impl<T: fmt::Display> fmt::Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let shown = |text: &str| OneLine(text).to_string();
        assert_eq!(shown("a\nb\r\tc\u{1b}[1m\u{85}"), r"a\nb\r\tc\u{1b}[1m\u{85}");
        for whole in ["", "a \\n b", "\u{e9}\u{6f22}"] {
            assert_eq!(shown(whole), whole);
        }
    }
}
