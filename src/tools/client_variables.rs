//! Environment variables of clients (`gasnett_getenv_*`), the `ENV parameter:` lines of
//! GASNET_VERBOSEENV, and the warnings of misspelt names. Called by `capi::tools`. The library's
//! own variables are in [`crate::env`].

use crate::env::number::{self, NumberError};
use crate::env::{self, Likeness, UnknownVariable};
use crate::one_line::LineBegin;
use crate::report;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Whether this rank prints the variables that are read: rank 0 does, if GASNET_VERBOSEENV is set.
pub fn verbose() -> bool {
    env::VERBOSEENV.is_present() && report::rank().is_none_or(|r| r == 0)
}

/// Prints a variable that was read, once per name; `None` is one without value.
pub fn display(key: &str, value: Option<&str>, is_default: bool) {
    static SHOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if verbose() && SHOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_string()) {
        // Unlike a macro of std, this ends no process whose stderr takes nothing.
        sys::stdio::write_stderr(parameter(key, value, is_default).as_bytes());
    }
}

/// The text line of a variable, in the columns of GASNet, which scripts read.
fn parameter(key: &str, value: Option<&str>, is_default: bool) -> String {
    let value = match value {
        None => "*not set*",
        Some("") => "*empty*",
        Some(text) => text,
    };
    let width = 55usize.saturating_sub(key.len() + value.len()).max(12);
    let source = if is_default { "(default)" } else { "" };
    format!("ENV parameter: {key} = {value}{source:>width$}\n")
}

/// Prints the library's own variables, if GASNET_VERBOSEENV is set; and, unless GASNET_QUIET is,
/// names in the environment that are probably misspelt. Rank 0 does.
pub fn display_all() {
    let verbose = verbose();
    if verbose {
        for v in env::all() {
            let state = v.state();
            display(v.name(), state.shown.as_deref(), !state.is_set);
        }
    }
    if report::rank().is_some_and(|rank| rank != 0) || (env::QUIET.get() && !verbose) {
        return;
    }
    for UnknownVariable { name, likeness } in env::unknown() {
        match likeness {
            Likeness::Misspelt(near) => report::warn(
                format_args!("{name} is not a variable of this library; did you mean {near}?"),
                format_args!("Correct or unset it; GASNET_QUIET=1 silences this warning."),
            ),
            Likeness::Upstream if verbose => report::note(format_args!(
                "{name} is a variable of other implementations of GASNet, without effect here"
            )),
            Likeness::None if verbose => {
                report::note(format_args!("{name} is not a variable of this library"));
            }
            _ => {}
        }
    }
}

fn refuse(key: &str, value: &str, accepted: &str) -> ! {
    report::fatal(
        format_args!("{key}={} cannot be used", LineBegin(value)),
        format_args!("Give {accepted}, or unset it."),
    )
}

/// A yes or no; `default` if the variable is not set or empty. Ends the job if the value is
/// invalid.
pub fn yes(key: &str, default: bool) -> bool {
    let set = env::lookup(key).filter(|v| !v.is_empty());
    let value = match &set {
        Some(v) => number::parse_yes(v).unwrap_or_else(|| refuse(key, v, "Y, YES, 1, N, NO or 0")),
        None => default,
    };
    display(key, Some(if value { "YES" } else { "NO" }), set.is_none());
    value
}

/// A whole number, or `default`; [`number::parse`] describes `mult`. Ends the job if it is
/// invalid.
pub fn int(key: &str, default: i64, mult: u64) -> i64 {
    let set = env::lookup(key).filter(|v| !v.is_empty());
    let accepted = |error| match error {
        NumberError::TooLarge => "a number that 64 bits hold, from -2^63 to 2^63 - 1",
        NumberError::Malformed if mult == 0 => "a whole number",
        NumberError::Malformed => "a number with or without a suffix B, KB, MB, GB or TB",
    };
    let value = match &set {
        Some(v) => number::read(v, mult).unwrap_or_else(|e| refuse(key, v, accepted(e))),
        None => default,
    };
    display_number(key, set.as_deref(), &number::format(value, mult != 0));
    value
}

/// A decimal number or a fraction a/b, or `default`. Ends the job if it is invalid.
pub fn float(key: &str, default: f64) -> f64 {
    let set = env::lookup(key).filter(|v| !v.is_empty());
    let value = match &set {
        Some(v) => number::parse_fraction(v)
            .unwrap_or_else(|| refuse(key, v, "a number or a fraction a/b")),
        None => default,
    };
    display_number(key, set.as_deref(), &value.to_string());
    value
}

fn display_number(key: &str, set: Option<&str>, formatted: &str) {
    let shown = set.map_or_else(|| formatted.to_string(), |raw| number::explained(raw, formatted));
    display(key, Some(&shown), set.is_none());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_columns_of_gasnet() {
        let columns = 15 + 55 + 3 + 1;
        for (key, value, is_default) in [
            ("MYINT", Some("8K (8 KB)"), false),
            ("MYSTR", None, true),
            ("MYSTR2", Some(""), true),
        ] {
            let line = parameter(key, value, is_default);
            assert_eq!(line.len(), columns, "{line:?}");
            assert_eq!(line.ends_with("(default)\n"), is_default);
        }
        assert_eq!(
            parameter("A_NAME_THAT_LEAVES_NO_ROOM_FOR_WHAT_FOLLOWS_IT", Some("abcdefghij"), true),
            "ENV parameter: A_NAME_THAT_LEAVES_NO_ROOM_FOR_WHAT_FOLLOWS_IT = abcdefghij   (default)\n"
        );
        assert!(parameter("K", None, true).starts_with("ENV parameter: K = *not set* "));
        assert!(parameter("K", Some(""), false).starts_with("ENV parameter: K = *empty* "));
    }
}
