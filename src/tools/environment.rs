//! Environment variables of clients: `gasnett_getenv_*` and the lines that GASNET_VERBOSEENV asks for. Called by
//! `capi::tools`. (The library's own variables are in [`crate::env`].)

use super::number;
use crate::{env, report};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Whether process 0 prints the variables that are looked at; false in the others.
pub fn verbose() -> bool {
    env::lookup("GASNET_VERBOSEENV").is_some() && report::rank().is_none_or(|r| r == 0)
}

/// Prints a variable that was looked at, once for each name.
pub fn display(key: &str, value: &str, is_default: bool) {
    static SHOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if verbose() && SHOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_string()) {
        let mark = if is_default { "   (default)" } else { "" };
        eprintln!("ENV parameter: {key} = {value}{mark}");
    }
}

fn refuse(key: &str, value: &str, accepted: &str) -> ! {
    report::fatal(format_args!("{key}={value} cannot be used"), format_args!("Give {accepted}, or unset it."))
}

/// A yes or no, or `default` if the variable is not set or empty.
pub fn yes(key: &str, default: bool) -> bool {
    let set = env::lookup(key).filter(|v| !v.is_empty());
    let value = match &set {
        Some(v) => number::parse_yes(v).unwrap_or_else(|| refuse(key, v, "Y, YES, 1, N, NO or 0")),
        None => default,
    };
    display(key, if value { "YES" } else { "NO" }, set.is_none());
    value
}

/// A whole number, or `default`; see [`number::parse`] for `mult`.
pub fn int(key: &str, default: i64, mult: u64) -> i64 {
    let set = env::lookup(key).filter(|v| !v.is_empty());
    let accepted =
        if mult == 0 { "a whole number" } else { "a number with or without a suffix B, KB, MB, GB or TB" };
    let value = match &set {
        Some(v) => number::parse(v, mult).unwrap_or_else(|| refuse(key, v, accepted)),
        None => default,
    };
    display(key, &number::format(value, mult != 0), set.is_none());
    value
}

/// A decimal number or a fraction a/b, or `default`.
pub fn float(key: &str, default: f64) -> f64 {
    let set = env::lookup(key).filter(|v| !v.is_empty());
    let value = match &set {
        Some(v) => number::parse_fraction(v).unwrap_or_else(|| refuse(key, v, "a number or a fraction a/b")),
        None => default,
    };
    display(key, &value.to_string(), set.is_none());
    value
}
