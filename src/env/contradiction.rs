//! Valid values that cannot be used: a type for messages. Imports nothing.
//!
//! Made by `check` and by the modules that know the build and the program; printed by
//! `gasnet_init` and `gasnet_info`.

/// Values that are valid one by one and cannot be used together, or in this build or program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The variable that `gasnet_info` refuses.
    pub variable: &'static str,
    /// What is wrong.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}
