//! How a job ended, and what its ranks counted. Made by `test_job`, judged by the cases.

use crate::Failure;
use crate::exit_pipe::ExitTimes;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How a job ended.
pub struct JobOutcome {
    /// Its exit code, 128 + signal if a signal ended it; `None` if the watchdog ended it.
    pub code: Option<i32>,
    /// Everything that it wrote to both streams.
    pub output: String,
    /// How long it ran.
    pub time: Duration,
    /// How long it lived after [`crate::test_job::TestJob::kill`], or after the death of
    /// [`crate::test_job::TestJob::death`]'s process; after an injected fault, until its last
    /// process had ended.
    pub after_kill: Option<Duration>,
    /// The process that the injected fault hit, and whether it belongs to another launcher.
    pub hit: String,
    /// Whether that process belongs to another job system's launcher.
    pub hit_theirs: bool,
    /// The exits that its processes reported, if asked to.
    pub exit_times: ExitTimes,
    /// Set if the watchdog found no process of ours, but another job system's launcher: how
    /// long after the fault our last process had ended.
    pub launcher_hangs: Option<Duration>,
    /// What it left behind, one line each.
    pub left: Vec<String>,
    /// The processes that existed when its launcher had ended, and how much later the last of
    /// them ended, in words.
    pub outlived: String,
    /// The counters of each rank, if requested.
    pub counters: Vec<RankCounters>,
    /// Name and text of each file in the folder of [`crate::test_job::TestJob::in_own_folder`], by
    /// name.
    pub files: Vec<(String, String)>,
    pub(crate) shown: String,
}

/// The counters of a rank's network interface, from the file that the library writes at exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankCounters {
    /// The rank.
    pub rank: u64,
    /// Puts started.
    pub puts: u64,
    /// Gets started.
    pub gets: u64,
    /// Bytes moved by them.
    pub bytes: u64,
    /// Of these messages, the number that went as frames over a wire.
    pub framed: u64,
    /// Of these, the number that went by remote memory access instead.
    pub remote: u64,
    /// Messages that arrived and matched nothing.
    pub dropped: u64,
    /// Requests that waited for credits.
    pub stalls: u64,
    /// Requests whose handlers waited for a receive buffer.
    pub waited: u64,
    /// Receive buffers that were attached again.
    pub refreshes: u64,
    /// Requests that reached the catch basin.
    pub caught: u64,
}

impl JobOutcome {
    /// A failure of this job: `why`, the command line and the end of its output.
    pub fn failure(&self, why: impl std::fmt::Display) -> Failure {
        let lines: Vec<&str> = self.output.lines().collect();
        let tail = &lines[lines.len().saturating_sub(60)..];
        format!(
            "{why}\n  command: {}\n  ended: {} after {:.1} s\n{}",
            self.shown,
            match self.code {
                Some(c) => format!("exit code {c}"),
                None => "by the watchdog".to_string(),
            },
            self.time.as_secs_f64(),
            tail.iter().map(|l| format!("  | {l}")).collect::<Vec<_>>().join("\n"),
        )
    }

    /// Fails if the watchdog ended it, or if it left something behind.
    pub fn tidy(&self) -> Result<(), Failure> {
        if self.code.is_none() {
            return Err(self.failure("the watchdog ended it"));
        }
        if !self.left.is_empty() {
            return Err(self.failure(format!("it left behind: {}", self.left.join(", "))));
        }
        Ok(())
    }

    /// Fails unless the program says that it has passed, and the exit code is 0.
    pub fn passed(&self, program: &str) -> Result<(), Failure> {
        match self.code == Some(0) && self.says(&format!("{program}: PASS")) {
            true => Ok(()),
            false => Err(self.failure("it did not pass")),
        }
    }

    /// Whether a line of the output begins with `word`.
    pub fn says(&self, word: &str) -> bool {
        self.output.lines().any(|l| l.trim_start().starts_with(word))
    }
}

/// The counters files of a folder, by rank.
pub(crate) fn counters(dir: &Path) -> Vec<RankCounters> {
    let Ok(files) = fs::read_dir(dir) else { return Vec::new() };
    let mut all: Vec<RankCounters> = files
        .flatten()
        .filter_map(|f| fs::read_to_string(f.path()).ok())
        .filter_map(|text| {
            let n: Vec<u64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
            let [
                rank,
                puts,
                gets,
                bytes,
                framed,
                dropped,
                stalls,
                waited,
                refreshes,
                caught,
                remote,
            ] = n.try_into().ok()?;
            Some(RankCounters {
                rank,
                puts,
                gets,
                bytes,
                framed,
                remote,
                dropped,
                stalls,
                waited,
                refreshes,
                caught,
            })
        })
        .collect();
    all.sort_by_key(|c| c.rank);
    all
}
