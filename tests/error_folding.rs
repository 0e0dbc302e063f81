//! The same error of many ranks is printed once, with the ranks that have it.
//!
//! Run by cargo. Invariant: no test asserts a time.

mod jobs;

use jobs::ProbeLauncher::{Fork, Run};
use jobs::{ProbeOutcome, probe, run, with};

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
