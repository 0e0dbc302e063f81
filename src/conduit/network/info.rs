//! A network for a reader: what `gasnet_info -n` prints of it.
//!
//! Filled by `emulation` and `libportals`. Invariant: plain text, made on request.

use alloc::string::String;
use alloc::vec::Vec;

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub what: &'static str,
    /// Whether `gasnet_init` opens this one.
    pub chosen: bool,
    /// What a user should know of it, as pairs of a name and a text.
    pub facts: Vec<(&'static str, String)>,
}
