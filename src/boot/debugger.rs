//! gdb for some ranks of a job: `gasnetrun --gdb RANKS`.
//!
//! Called by `launch`. Invariant: gdb and, where it is used, xterm were found before any rank is
//! started.
//!
//! | | each of the ranks |
//! |---|---|
//! | DISPLAY is set and xterm is installed | has gdb in a window of its own |
//! | otherwise, one rank | has gdb in the terminal of gasnetrun, with its standard input |
//! | otherwise, several | is refused |

use super::error::BootError;
use crate::env::RankSet;
use crate::rank::JobRank;
use std::ffi::{CString, OsStr};

/// Where the debugger of a rank reads and prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DebuggerPlace {
    Window,
    Terminal,
}

/// The ranks that gdb starts.
#[derive(Clone, Debug)]
pub(super) struct Debugger {
    pub(super) ranks: RankSet,
    place: DebuggerPlace,
    size: u32,
}

/// Whether a folder of PATH has this program.
pub(super) fn is_in_path(program: &OsStr) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&path).any(|dir| {
        std::fs::metadata(dir.join(program))
            .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    })
}

impl Debugger {
    /// gdb for these ranks of a job of `size`.
    ///
    /// # Errors
    /// The job has no such rank; gdb is missing; several ranks, and no windows.
    pub(super) fn new(ranks: &RankSet, size: u32) -> Result<Debugger, BootError> {
        let named: Vec<u32> = (0..size).filter(|rank| ranks.has(*rank)).collect();
        if named.is_empty() {
            return Err(BootError::new(
                format!("--gdb names no rank of this job, which has ranks 0 to {}", size - 1),
                "Give ranks such as 0,2-3, or * for all.",
            )
            .with_code(2));
        }
        if !is_in_path(OsStr::new("gdb")) {
            return Err(BootError::new(
                "--gdb: no directory of PATH has gdb",
                "Install gdb, or omit --gdb.",
            )
            .with_code(127));
        }
        let has_display = std::env::var_os("DISPLAY").is_some_and(|d| !d.is_empty());
        let has_xterm = is_in_path(OsStr::new("xterm"));
        let place = match (has_display && has_xterm, named.len()) {
            (true, _) => DebuggerPlace::Window,
            (false, 1) => DebuggerPlace::Terminal,
            (false, n) => {
                let lacks = match has_display {
                    true => "xterm is not installed",
                    false => "DISPLAY is not set",
                };
                return Err(BootError::new(
                    format!("--gdb: {n} ranks need a window each, but {lacks}"),
                    "Set DISPLAY and install xterm, or name one rank, which has gdb in this \
                     terminal.",
                ));
            }
        };
        Ok(Debugger { ranks: ranks.clone(), place, size })
    }

    /// The rank whose gdb uses the terminal.
    pub(super) fn at_terminal(&self) -> Option<JobRank> {
        let first = (0..self.size).find(|rank| self.ranks.has(*rank)).map(JobRank);
        first.filter(|_| self.place == DebuggerPlace::Terminal)
    }

    /// What to execute in place of a program with these arguments, the first of which is its name,
    /// if this rank has a debugger.
    pub(super) fn command(&self, rank: JobRank, argv: &[CString]) -> Option<Vec<CString>> {
        if !self.ranks.has(rank.0) {
            return None;
        }
        let title = format!("rank {rank} of {}", self.size);
        let mut words: Vec<CString> = Vec::new();
        if self.place == DebuggerPlace::Window {
            let title = CString::new(title).unwrap_or_default();
            words.extend([c"xterm".into(), c"-T".into(), title, c"-e".into()]);
        }
        words.extend([c"gdb".into(), c"-q".into(), c"--args".into()]);
        words.extend_from_slice(argv);
        Some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let ranks = RankSet::parse("1").unwrap();
        let debugger = Debugger { ranks, place: DebuggerPlace::Terminal, size: 2 };
        let argv = [c"./prog".into(), c"a b".into()];
        let words = debugger.command(JobRank(1), &argv).unwrap();
        assert_eq!(words, [c"gdb", c"-q", c"--args", c"./prog", c"a b"].map(CString::from));
        assert_eq!(debugger.command(JobRank(0), &argv), None);
        assert_eq!(debugger.at_terminal(), Some(JobRank(1)));
        let debugger = Debugger { place: DebuggerPlace::Window, ..debugger };
        assert_eq!(debugger.command(JobRank(1), &argv).unwrap()[0].as_c_str(), c"xterm");
        assert_eq!(debugger.at_terminal(), None);
    }
}
