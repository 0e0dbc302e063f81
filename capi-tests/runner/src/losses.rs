//! Lost messages: a job that loses one ends with a message that says so. No job ends because a
//! peer stays in a handler, computes or is stopped.
//!
//! The program is `capi-tests/slowpeers.c`; with PAR a rank has eight threads. The library in
//! `build-faults` loses messages: `drop_am` requests, `drop_op` completions of puts and gets.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::starts;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::time::Duration;

const RANKS: u32 = 4;
/// Milliseconds for which peers are late: longer than any wait needs to prove a loss.
const LATE: &str = "2500";
/// Time within which a job that has lost a message ends.
const WATCHDOG: Duration = Duration::from_secs(20);

/// Variables that lead traffic through events, so that completions can be lost.
const EVENTS: [(&str, &str); 2] =
    [("GASNET_SUPERNODE_MAXSIZE", "1"), ("GASNET_PORTAL_AT_ONCE", "0")];

/// What is lost: nothing, or as a planted fault says; and words of the message.
const LOSSES: [(Option<&str>, &[&str]); 3] = [
    (None, &[]),
    (Some("drop_am"), &["an active message to rank ", "has handled all that it has received"]),
    (Some("drop_op"), &["the completion of "]),
];

/// Losses x paths x modes.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    for (fault, words) in LOSSES {
        for mode in [ClientMode::Seq, ClientMode::Par] {
            for events in [false, true] {
                if fault == Some("drop_op") && !events {
                    continue;
                }
                let name = format!(
                    "losses::{}::{}::{}",
                    fault.unwrap_or("none"),
                    mode.name(),
                    if events { "events" } else { "cross-mapped" },
                );
                let sampled = events || fault.is_none();
                all.push(TestCase::new(name, sampled, move || one(fault, words, mode, events)));
            }
        }
    }
    all
}

fn one(
    fault: Option<&str>,
    words: &[&str],
    mode: ClientMode,
    events: bool,
) -> Result<(), Failure> {
    let tree = match fault {
        None => build_trees::build(),
        Some(_) => build_trees::build_faults(),
    };
    build_trees::require(&tree)?;
    let program =
        build_trees::compiled(&build_trees::root().join("capi-tests/slowpeers.c"), mode)?;
    let threads = if mode == ClientMode::Par { "8" } else { "1" };
    let args = [threads, "40", LATE].map(str::to_string);
    let mut job = TestJob::new(&tree, &program, &args, JobLauncher::Gasnetrun, RANKS);
    for (name, value) in EVENTS.iter().filter(|_| events) {
        job = job.env(name, value);
    }
    if let Some(fault) = fault {
        job = job.env("GASNET_TEST_FAULT", fault).watchdog(WATCHDOG);
    }
    let ended = job.run()?;
    ended.tidy()?;
    let right = match fault {
        None => ended.code == Some(0) && ended.says("slowpeers: PASS"),
        Some(_) => {
            ended.code == Some(1)
                && starts::is_refusal(&ended.output)
                && words.iter().all(|words| ended.output.contains(words))
        }
    };
    if right { Ok(()) } else { Err(ended.failure("it did not end as it should")) }
}
