//! Jobs whose standard error is a full pipe that no process reads. They end, with their code.
//! Called by the list of cases.
//!
//! Invariant: the pipe stays open and full until the job has ended.

use crate::build_trees;
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::io::Write;
use std::time::Duration;

/// A job that takes longer depends on the reader.
const HANG: Duration = Duration::from_secs(60);

/// A name, options of gasnetrun, what a rank runs, the exit code of the job.
type Row = (&'static str, &'static [&'static str], &'static str, i32);

const ROWS: &[Row] = &[
    // The supervisor names the rank.
    ("message", &[], "exit 5", 5),
    // The last lines of ranks have not been printed yet.
    ("prefixed", &["--prefix"], "echo lines >&2; exit 5", 5),
    // Lines before the job starts, and an error.
    ("verbose", &["-v"], "exit 5", 5),
    ("warnings", &["-N", "2", "-E", "GASNET_TEST_UNSET"], "exit 5", 5),
    ("refused", &["--wdir", "/dev/null"], "exit 5", 1),
    // A request of the user, and the line that reports it.
    ("signal", &[], "kill -TERM $PPID; sleep 1000", 128 + 15),
];

/// One case for each row.
pub fn cases() -> Vec<TestCase> {
    let case = |row: &'static Row| {
        TestCase::new(format!("full_stderr::{}", row.0), true, move || ends(row))
    };
    ROWS.iter().map(case).collect()
}

/// A pipe that has no room.
fn full_pipe() -> std::io::Result<(std::io::PipeReader, std::io::PipeWriter)> {
    let (reader, mut writer) = std::io::pipe()?;
    while sys::poll::writable_number(std::os::fd::AsRawFd::as_raw_fd(&writer)) {
        writer.write_all(&[b'x'; 4096])?;
    }
    Ok((reader, writer))
}

fn ends(&(_, options, script, code): &Row) -> Result<(), Failure> {
    let (reader, writer) = full_pipe().map_err(|e| e.to_string())?;
    let args: Vec<String> = [options, &["-n", "2", "sh", "-c", script]]
        .concat()
        .into_iter()
        .map(String::from)
        .collect();
    let tree = build_trees::build();
    let job = TestJob::new(&tree, &tree.join("bin/gasnetrun"), &args, JobLauncher::Alone, 1);
    let ended = job.stderr(writer).watchdog(HANG).run()?;
    drop(reader);
    ended.tidy()?;
    match ended.code == Some(code) {
        true => Ok(()),
        false => Err(ended.failure(format!("{code} was due"))),
    }
}
