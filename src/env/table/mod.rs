//! THE table: every variable that the library reads, by subject, one file each.
//!
//! A declaration is `NAME: Kind(range) = default;` under the description that users read;
//! GASNET_ is put in front of the name. Without a default the variable is an
//! [`OptionalVariable`]. The macro adds each declaration to the table, so that none can be
//! missing from it.
//!
//! [`OptionalVariable`]: super::variable::OptionalVariable

pub(super) mod collectives;
pub(super) mod debugging;
pub(super) mod launch;
pub(super) mod portals;
pub(super) mod tracing;

use super::variable::AnyVariable;

/// Variables that belong together.
pub struct Subject {
    /// What they are about.
    pub title: &'static str,
    /// The variables.
    pub variables: &'static [&'static dyn AnyVariable],
}

/// All variables that the library reads, by subject.
pub const SUBJECTS: &[Subject] = &[
    Subject { title: "Jobs, memory and exit", variables: launch::ALL },
    Subject { title: "Debugging", variables: debugging::ALL },
    Subject { title: "Tracing and statistics", variables: tracing::ALL },
    Subject { title: "Network and active messages", variables: portals::ALL },
    Subject {
        title: "Vector, indexed, strided and collective operations",
        variables: collectives::ALL,
    },
];

/// All variables that the library reads.
pub fn all() -> impl Iterator<Item = &'static dyn AnyVariable> {
    SUBJECTS.iter().flat_map(|subject| subject.variables.iter().copied())
}

/// Ends the job if any variable has an invalid value, whether or not this job would read it.
/// Called before the job has more than one process, so that the user reads the message once.
pub fn check_all() {
    all().for_each(|v| v.check());
}

/// How the ranks of a job find each other (GASNET_SPAWN_CONTROL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnControl {
    /// The process is a job of one rank.
    Alone,
    /// `gasnet_init` forks the ranks.
    Fork,
    /// Through the launcher's PMI.
    Pmi,
    /// Through the launcher's PMIx.
    Pmix,
}

/// How a rank waits (GASNET_WAITMODE); the values are those of `GASNET_WAIT_*`.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// `GASNET_WAIT_SPIN`: contend for the CPU.
    Spin = 0,
    /// `GASNET_WAIT_BLOCK`: give the CPU away at once.
    Block = 1,
    /// `GASNET_WAIT_SPINBLOCK`: spin a while, then give it away.
    SpinBlock = 2,
}

/// The Portals below the conduit (GASNET_NETWORK). The numbers travel between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkKind {
    /// The one of this project, crate `portals3`.
    Emulation = 0,
    /// The libportals that the library was built with.
    Libportals = 1,
}

/// Declares variables, and `ALL`, which lists them.
macro_rules! variables {
    (@one [$($help:literal)+] $name:ident [$kind:ty] [$new:expr]) => {
        #[doc = concat!($($help, "\n"),+)]
        pub const $name: $crate::env::OptionalVariable<$kind> =
            $crate::env::OptionalVariable::new(
                concat!("GASNET_", stringify!($name)), concat!($($help),+), $new,
            );
    };
    (@one [$($help:literal)+] $name:ident [$kind:ty] [$new:expr] $default:expr) => {
        #[doc = concat!($($help, "\n"),+)]
        pub const $name: $crate::env::Variable<$kind> = {
            assert!($new.admits($default), "the default is out of range");
            $crate::env::Variable::new(
                concat!("GASNET_", stringify!($name)), concat!($($help),+), $new, $default,
            )
        };
    };
    ($(
        $(#[doc = $help:literal])+
        $name:ident: $kind:ident $(<$of:ident>)? $(($range:expr))? $(= $default:expr)?;
    )+) => {
        $(variables!(@one [$($help)+] $name [$kind $(<$of>)?] [$kind $(($range))?] $($default)?);)+

        /// The variables of this file.
        pub(super) const ALL: &[&dyn $crate::env::AnyVariable] = &[$(&$name),+];
    };
}
use variables;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_declared_once() {
        let names: BTreeSet<_> = all().map(|v| v.name()).collect();
        assert_eq!(names.len(), all().count());
        assert!(names.iter().all(|n| n.starts_with("GASNET_") && n.len() > 7));
    }

    /// A line of a table file that begins a declaration names a variable that `all` lists.
    #[test]
    fn every_declaration_is_listed() {
        let texts = [
            include_str!("collectives.rs"),
            include_str!("debugging.rs"),
            include_str!("launch.rs"),
            include_str!("portals.rs"),
            include_str!("tracing.rs"),
        ];
        let declared: Vec<String> = texts
            .iter()
            .flat_map(|text| text.lines())
            .filter_map(|line| line.strip_prefix("    ")?.split_once(": "))
            .map(|(name, _)| name)
            .filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
            .map(|name| format!("GASNET_{name}"))
            .collect();
        for name in &declared {
            assert_eq!(all().filter(|v| v.name() == name).count(), 1, "{name}");
        }
        assert_eq!(declared.len(), all().count());
    }

    #[test]
    fn defaults_are_read_as_values() {
        for v in all() {
            let (state, text) = (v.state(), v.default());
            assert!(state.is_set || state.shown.is_some() == text.is_some(), "{}", v.name());
            assert!(!v.values().is_empty() && v.help().ends_with('.'), "{}", v.name());
        }
    }
}
