//! Signals that jobs of tests/jobs/exit_probe.rs get: from other processes, from a terminal, and
//! from timers that the program has set before its job.
//!
//! Run by cargo. Invariant: nothing is left of a job that a signal ends.

mod jobs;

use jobs::ProbeLauncher::{Fork, Hosts, Run};
use jobs::{ProbeLauncher, gasnetrun, new_mark, probe, spawn, start};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;
use sys::signal::Signal;

const OURS: [ProbeLauncher; 3] = [Fork, Run, Hosts];

#[test]
fn signals_to_the_supervisor_reach_the_ranks() {
    for launcher in OURS {
        for (s, rest) in [
            (Signal::INT, "spin"),
            (Signal::TERM, "barrier"),
            (Signal::HUP, "poll"),
            (Signal::QUIT, "sleep"),
            (Signal::TERM, "blocks"),
        ] {
            let job = start(launcher, 2, &["none", "-", rest], &[]);
            job.wait_for_ranks(2);
            sys::process::kill(job.pid(), s);
            let code = 128 + s.number();
            let name = s.name();
            let o = job.finish();
            o.gives(code).says(&format!("Caught a signal: {name}({})", s.number()));
            assert_eq!(o.err.matches("***").count(), 1, "{o:#?}");
        }
        // All signals blocked: the second request kills the ranks.
        let job = start(launcher, 2, &["none", "-", "masked"], &[("GASNET_EXITTIMEOUT", "30")]);
        job.wait_for_ranks(2);
        sys::process::kill(job.pid(), Signal::TERM);
        std::thread::sleep(Duration::from_millis(200));
        sys::process::kill(job.pid(), Signal::TERM);
        job.finish().gives(143).says("second request to end (SIGTERM): the ranks are killed");
        // A client that handles the signal itself has time to finish.
        for code in [0, 5] {
            let own = format!("own_term:{code}");
            let job = start(launcher, 2, &["none", "-", &own], &[]);
            job.wait_for_ranks(2);
            sys::process::kill(job.pid(), Signal::TERM);
            let o = job.finish();
            o.gives(143).says("rank 0 saves").says("rank 1 saves");
        }
    }
}

/// As a shell without job control starts background jobs.
#[test]
fn a_job_that_ignores_quit_ends_on_request() {
    let mark = new_mark();
    let mut c = Command::new("sh");
    c.args(["-c", "trap '' INT QUIT; exec \"$0\" \"$@\""])
        .arg(gasnetrun())
        .args(["-n", "2"])
        .arg(probe());
    c.args(["none", "-", "sleep"]).env("PROBE_MARK", &mark);
    let job = spawn(c, mark, "QUIT ignored".to_string());
    job.wait_for_ranks(2);
    sys::process::kill(job.pid(), Signal::TERM);
    job.finish().gives(143).says("Caught a signal: SIGTERM");
}

/// A terminal signals the group of gasnetrun. `timeout` makes a group of its own for its program.
#[test]
fn interrupts_of_a_terminal_reach_ranks_of_other_groups() {
    const CTRL_C: &[u8] = b"\x03";
    let (user, programs) = sys::terminal::open().unwrap();
    let mut user = File::from(user);
    let theirs = programs.as_raw_fd();
    let mark = new_mark();
    let mut c = Command::new(gasnetrun());
    c.args(["-n", "2", "timeout", "60"]).arg(probe()).args(["none", "-", "own_term:0"]);
    c.env("PROBE_MARK", &mark);
    // SAFETY: the closure makes system calls only, all of them async-signal-safe.
    unsafe { c.pre_exec(move || sys::terminal::control(theirs)) };
    let job = spawn(c, mark, "Ctrl-C".to_string());
    // Two of them are `timeout`, and stay so.
    let processes = job.wait_for_ranks(4);
    let is_timeout =
        |pid: &&u32| fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"timeout\n");
    while processes.iter().filter(is_timeout).count() > 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    job.wait_for_ranks(4);
    user.write_all(CTRL_C).unwrap();
    job.finish().gives(130).says("rank 0 saves").says("rank 1 saves");
}

/// The process that forks the ranks, or stands in front of their supervisor, runs no handler.
#[test]
fn timers_and_handlers_are_those_of_the_ranks() {
    for (kind, processes) in [("alone", 2), ("thread", 3)] {
        let job = start(Fork, 2, &["none", "-", "spin"], &[("PROBE_ALARM", kind)]);
        job.wait_for_ranks(processes);
        sys::process::kill(job.pid(), Signal::ALRM);
        job.finish().gives(7).says("called gasnet_exit(7); the job ends");
    }
}
