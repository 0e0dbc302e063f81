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
pub(super) mod firehose;
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
    Subject { title: "Registered memory", variables: firehose::ALL },
    Subject {
        title: "Vector, indexed, strided and collective operations",
        variables: collectives::ALL,
    },
];

/// All variables that the library reads.
pub fn all() -> impl Iterator<Item = &'static dyn AnyVariable> {
    SUBJECTS.iter().flat_map(|subject| subject.variables.iter().copied())
}

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
            include_str!("firehose.rs"),
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
