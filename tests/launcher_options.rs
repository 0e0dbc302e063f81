//! What gasnetrun gives to the programs that it starts, and its options. The jobs:
//! tests/jobs/exit_probe.rs, some behind a shell.
//!
//! Run by cargo. Invariant: no test asserts a time.

mod jobs;

use jobs::ProbeLauncher::{Fork, Run};
use jobs::{ProbeOutcome, probe, run, with};

/// A job of a script in which `$0` is the probe.
fn scripted(options: &[&str], script: &str) -> ProbeOutcome {
    with(options, &["sh", "-c", script, probe().to_str().unwrap()])
}

#[test]
fn each_rank_has_its_numbers() {
    for launcher in [Fork, Run] {
        let o = run(launcher, 3, &["all", "numbers:0", "-"]);
        for rank in 0..3 {
            o.gives(0).says(&format!("numbers [\"{rank}\", \"3\", \"{rank}\"]"));
        }
        run(launcher, 1, &["all", "numbers:0", "-"]).gives(0).says("numbers [\"0\", \"1\", \"0\"]");
    }
}

/// A script in front of the program has the numbers before gasnet_init; the program joins the job
/// through one shell, and through two.
#[test]
fn a_script_in_front_of_the_program_has_the_numbers() {
    let before = "echo before $GASNET_RANK $GASNET_SIZE $GASNET_LOCAL_RANK;";
    for script in [
        format!("{before} \"$0\" all numbers:0 -; exit $?"),
        format!("{before} sh -c '\"$0\" all numbers:0 -; exit $?' \"$0\"; exit $?"),
        format!("{before} exec \"$0\" all numbers:0 -"),
    ] {
        let o = scripted(&["-n", "4"], &script);
        for rank in 0..4 {
            o.gives(0)
                .says(&format!("before {rank} 4 {rank}\n"))
                .says(&format!("numbers [\"{rank}\", \"4\", \"{rank}\"]"))
                .says(&format!("rank {rank} runs"));
        }
    }
    // A job within the job has its own numbers.
    let script = "GASNET_RANK=7 \"$0\" all numbers:0 -";
    scripted(&["-n", "1"], script).gives(0).says("numbers [\"0\", \"1\", \"0\"]");
}
