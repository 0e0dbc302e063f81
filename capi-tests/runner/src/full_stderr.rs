//! Jobs whose standard error is a full pipe that no process reads. They end, with their code.
//! Called by the list of cases.
//!
//! Invariant: the pipe stays open and full until the job has ended.

use crate::build_trees;
use crate::{Failure, TestCase};
use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
    let io = |e: std::io::Error| e.to_string();
    let (reader, writer) = full_pipe().map_err(io)?;
    let mut command = Command::new(build_trees::build().join("bin/gasnetrun"));
    command.args(options).args(["-n", "2", "sh", "-c", script]);
    command.stdin(Stdio::null()).stdout(File::create("/dev/null").map_err(io)?).stderr(writer);
    let mut job = command.spawn().map_err(io)?;
    drop(command);
    let began = Instant::now();
    let ended = loop {
        match job.try_wait().map_err(io)? {
            Some(status) => break Some(status),
            None if began.elapsed() > HANG => break None,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    // Releases what hangs: its writes fail.
    drop(reader);
    let Some(ended) = ended else {
        _ = job.kill();
        _ = job.wait();
        return Err(format!("the job had not ended after {HANG:?}"));
    };
    match ended.code() == Some(code) {
        true => Ok(()),
        false => Err(format!("the job ended with {ended}, not with exit code {code}")),
    }
}
