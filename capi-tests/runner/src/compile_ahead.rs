//! Compiles the programs of cases to come, at the lowest priority, while the case that runs waits
//! or sleeps. Called by `tests/programs.rs`.
//!
//! Invariant: a case behaves as without this; it finds its program compiled, or waits for it.

use crate::build_trees::{self, ClientMode};
use crate::program;
use std::path::PathBuf;

/// Cases with these parts in front link their programs otherwise.
const STATIC: [&str; 2] = ["static", "lightweight"];

const MODES: [ClientMode; 7] = [
    ClientMode::Seq,
    ClientMode::Par,
    ClientMode::Parsync,
    ClientMode::LargeSeq,
    ClientMode::EverythingSeq,
    ClientMode::EverythingPar,
    ClientMode::EverythingParsync,
];

/// Starts to compile what the cases with these names run, in their order. A failure is reported
/// by the case.
pub fn start(names: Vec<String>) {
    std::thread::spawn(move || {
        let programs: Vec<_> = program::all().into_iter().map(|p| (p.name, p.source)).collect();
        for name in names {
            if let Some((source, mode)) = program_of(&name, &programs) {
                let _ = build_trees::compiled_patiently(&source, mode);
            }
        }
    });
}

/// The program that a case runs, by the parts of its name, if they say it.
fn program_of(case: &str, programs: &[(String, PathBuf)]) -> Option<(PathBuf, ClientMode)> {
    let parts: Vec<&str> = case.split("::").collect();
    if STATIC.contains(&parts[0]) {
        return None;
    }
    let (_, source) = programs.iter().find(|(name, _)| parts.contains(&name.as_str()))?;
    let mode = MODES.into_iter().find(|mode| parts.contains(&mode.name()))?;
    Some((source.clone(), mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_programs_and_modes() {
        let programs = [("testam".to_string(), PathBuf::from("testam.c"))];
        let of = |name| program_of(name, &programs);
        let found = Some((PathBuf::from("testam.c"), ClientMode::Par));
        assert_eq!(of("testam::par::events::alone::n1"), found);
        assert_eq!(of("hosts::testam::two_by_two::par"), found);
        assert_eq!(of("static::testam::par::ptlrun::n1"), None);
        assert_eq!(of("testother::par::events::alone::n1"), None);
        assert_eq!(of("tools::heap::report"), None);
    }
}
