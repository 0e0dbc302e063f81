//! Words of a command line for a shell. Called by the program gasnetrun and by `boot::hosts`.

use std::ffi::OsStr;

/// A word quoted for a shell, if it must be.
pub fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one() {
        assert_eq!(quoted("/a/b-c".as_ref()), "/a/b-c");
        assert_eq!(quoted("/a b/it's".as_ref()), "'/a b/it'\\''s'");
        assert_eq!(quoted("".as_ref()), "''");
    }
}
