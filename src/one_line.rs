//! Text of others on one line: its control characters as escapes, possibly its begin only.
//!
//! Used for lines that programs read: those of the trace and of the statistics, and those of
//! `gasnet_info`. Imports nothing. Invariant: what is written has no control character. Nothing is
//! allocated.

use core::fmt::{self, Write};

/// Shown with each control character as an escape of Rust: `\n`, `\t`, `\u{1b}`.
#[derive(Clone, Copy, Debug)]
pub struct OneLine<T>(pub T);

/// The begin of a text on one line, so that what follows it in a message has its place too.
#[derive(Clone, Copy, Debug)]
pub struct LineBegin<'a>(pub &'a str);

/// Most characters of a [`LineBegin`].
const BEGIN: usize = 200;

impl fmt::Display for LineBegin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(BEGIN) {
            Some((end, _)) => write!(f, "{}...", OneLine(&self.0[..end])),
            None => OneLine(self.0).fmt(f),
        }
    }
}

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
        let long = "\u{e9}".repeat(BEGIN);
        assert_eq!(LineBegin(&long).to_string(), long);
        assert_eq!(LineBegin(&format!("{long}x")).to_string(), format!("{long}..."));
        for whole in ["", "a \\n b", "\u{e9}\u{6f22}"] {
            assert_eq!(shown(whole), whole);
        }
    }
}
