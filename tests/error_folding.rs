//! The same error of many ranks is printed once, with the ranks that have it.
//!
//! Run by cargo. Invariant: no test asserts a time.

mod jobs;

use jobs::ProbeLauncher::{Fork, Run};
use jobs::{ProbeOutcome, many_hosts, new_mark, on_hosts, probe, run, spawn, with};
use std::process::Command;

/// How often a text is on standard error.
fn count(o: &ProbeOutcome, text: &str) -> usize {
    o.err.matches(text).count()
}

#[test]
fn a_fatal_error_of_all_ranks_is_printed_once() {
    for launcher in [Fork, Run] {
        for n in [2, 9, 33] {
            let o = run(launcher, n, &["all", "fatal:1", "-"]);
            o.gives(1).says(&format!("*** ranks 0-{}: the same error, printed by rank ", n - 1));
            assert_eq!(count(&o, "part 0 is wrong\n***   Mend it.\n"), 1, "{o:#?}");
            assert_eq!(count(&o, "the same error"), 1, "{o:#?}");
        }
        // Of one rank alone there is nothing to fold.
        let o = run(launcher, 3, &["1", "fatal:1", "spin"]);
        o.gives(1).says("*** FATAL ERROR (proc 1): part 0 is wrong").never_says("the same error");
    }
}

#[test]
fn different_errors_are_printed() {
    for launcher in [Fork, Run] {
        let o = run(launcher, 6, &["all", "warn:2", "-"]);
        for (part, ranks) in [(0, "0, 2, 4"), (1, "1, 3, 5")] {
            assert_eq!(
                count(&o, &format!("part {part} is odd\n***   Look at it.\n")),
                1,
                "{o:#?}"
            );
            assert_eq!(
                count(&o, &format!("*** ranks {ranks}: the same error, printed by rank ")),
                1,
                "{o:#?}"
            );
        }
        o.gives(0);
        let o = run(launcher, 4, &["all", "warn:4", "-"]);
        o.gives(0).never_says("the same error");
        assert_eq!(count(&o, " is odd\n"), 4, "{o:#?}");
    }
}

/// How many ranks crash before the first of them ends the job is up to the scheduler.
#[test]
fn a_crash_of_many_ranks_is_printed_once() {
    for launcher in [Fork, Run] {
        let jobs: Vec<_> = (0..10).map(|_| run(launcher, 9, &["all", "null", "-"])).collect();
        for o in &jobs {
            o.gives(139);
            assert_eq!(count(o, "*** Caught a fatal signal: SIGSEGV(11) on rank "), 1, "{o:#?}");
        }
        let folded = |o: &&ProbeOutcome| count(o, ": the same error, printed by rank ") == 1;
        assert!(jobs.iter().any(|o| folded(&o)), "{jobs:#?}");
    }
}

/// Jobs of several hosts: ranks, and the command.
fn on_several_hosts() -> Vec<(u32, Command)> {
    let mut tree = many_hosts(7, 2);
    tree.env("GASNET_SSH_OUT_DEGREE", "2");
    let mut chain = many_hosts(4, 1);
    chain.env("GASNET_SSH_OUT_DEGREE", "1");
    vec![
        (6, many_hosts(2, 3)),
        (6, many_hosts(3, 2)),
        // gasnetrun has no ranks.
        (8, on_hosts(8, "h1.invalid:4,h2.invalid:4")),
        (14, tree),
        (4, chain),
    ]
}

fn finish(mut c: Command, args: &[&str]) -> ProbeOutcome {
    let mark = new_mark();
    c.arg(probe()).args(args).env("PROBE_MARK", &mark);
    let mut job = spawn(c, mark, format!("hosts {args:?}"));
    job.hasty = true;
    job.finish()
}

#[test]
fn an_error_of_ranks_on_several_hosts_is_printed_once() {
    for (n, c) in on_several_hosts() {
        let o = finish(c, &["all", "fatal:1", "-"]);
        o.gives(1).says(&format!("*** ranks 0-{}: the same error, printed by rank ", n - 1));
        assert_eq!(count(&o, "part 0 is wrong\n***   Mend it.\n"), 1, "{o:#?}");
        assert_eq!(count(&o, "the same error"), 1, "{o:#?}");
    }
}

#[test]
fn a_crash_of_ranks_on_several_hosts_is_printed_once() {
    for (_, c) in on_several_hosts() {
        let o = finish(c, &["all", "null", "-"]);
        o.gives(139);
        assert_eq!(count(&o, "*** Caught a fatal signal: SIGSEGV(11) on rank "), 1, "{o:#?}");
    }
}

#[test]
fn different_errors_of_several_hosts_are_printed() {
    for (n, c) in on_several_hosts() {
        let o = finish(c, &["all", "warn:2", "-"]);
        o.gives(0);
        for part in 0..2 {
            let text = format!("part {part} is odd\n***   Look at it.\n");
            assert_eq!(count(&o, &text), 1, "{o:#?}");
            let ranks: Vec<String> = (part..n).step_by(2).map(|r| r.to_string()).collect();
            let ranks =
                format!("*** ranks {}: the same error, printed by rank ", ranks.join(", "));
            assert_eq!(count(&o, &ranks), 1, "{o:#?}");
        }
    }
    // Each has its own.
    for (n, c) in on_several_hosts() {
        let o = finish(c, &["all", &format!("warn:{n}"), "-"]);
        o.gives(0).never_says("the same error");
        assert_eq!(count(&o, " is odd\n"), n as usize, "{o:#?}");
    }
}

/// Ranks that print to different files have their own errors there.
#[test]
fn each_file_has_the_error_of_its_rank() {
    let probe = probe().display().to_string();
    let words = [probe.as_str(), "all", "warn:1", "-"];
    let o = with(&["-n", "3", "--prefix"], &words);
    o.gives(0).never_says("the same error");
    assert_eq!(count(&o, "part 0 is odd\n"), 3, "{o:#?}");
    let folder = std::env::temp_dir().join(format!("gasnet-folding-{}", std::process::id()));
    let to = folder.display().to_string();
    with(&["-n", "3", "--output", &to], &words).gives(0).never_says("part 0 is odd");
    for rank in 0..3 {
        let text = std::fs::read_to_string(folder.join(format!("rank-{rank}.err"))).unwrap();
        assert!(text.contains(&format!("(proc {rank}): part 0 is odd\n")), "{text}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
