//! How a case ended. Called by the programs that run cases.
//!
//! Invariant: a case that finds out at run time that this machine cannot run it has not passed. It
//! says so with `skip`, on the thread that runs it.

use crate::{Failure, TestCase};
use std::cell::Cell;

thread_local! {
    /// Why the case of this thread cannot run, once it has found out.
    static SKIPPED: Cell<Option<String>> = const { Cell::new(None) };
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseEnd {
    /// It has tried what it tries, and found nothing wrong.
    Passed,
    /// It could not run here, for this reason.
    Skipped(String),
    /// It found something wrong.
    Failed(Failure),
}

/// What a case returns that cannot run here.
///
/// # Errors
/// None; the type is that of cases.
pub(crate) fn skip(reason: &str) -> Result<(), Failure> {
    SKIPPED.set(Some(reason.to_string()));
    Ok(())
}

/// Why a script ended with exit code 77: its last line says so.
pub(crate) fn reason_of(printed: &[u8]) -> String {
    let printed = String::from_utf8_lossy(printed);
    let last = printed.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.unwrap_or("its script ended with exit code 77").to_string()
}

impl TestCase {
    /// Runs the case.
    pub fn end(self) -> CaseEnd {
        SKIPPED.set(None);
        match ((self.run)(), SKIPPED.take()) {
            (Err(failure), _) => CaseEnd::Failed(failure),
            (Ok(()), Some(reason)) => CaseEnd::Skipped(reason),
            (Ok(()), None) => CaseEnd::Passed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_cannot_run_has_not_passed() {
        let end = |run: fn() -> Result<(), Failure>| TestCase::new(String::new(), true, run).end();
        assert_eq!(end(|| skip("no disk")), CaseEnd::Skipped("no disk".into()));
        assert_eq!(end(|| Ok(())), CaseEnd::Passed);
        let both = || skip("no disk").and(Err("wrong".to_string()));
        assert_eq!(end(both), CaseEnd::Failed("wrong".into()));
        assert_eq!(end(|| Ok(())), CaseEnd::Passed);
    }

    #[test]
    fn the_last_line_is_the_reason() {
        assert_eq!(reason_of(b"building\nno mirror\n\n"), "no mirror");
        assert_eq!(reason_of(b""), "its script ended with exit code 77");
    }
}
