//! Jobs under other launchers (mpiexec, mpirun, srun) that end in every manner, checked as in
//! boot_exit.rs.
//!
//! Below `ci/with-hosts.sh`, the ranks run on all test hosts.
//!
//! `ci/launchers.sh NAME cargo test --test launchers -- --ignored NAME::` runs the tests of one
//! launcher, if it is available. The time that a launcher itself takes is measured with
//! /bin/true and subtracted.

mod jobs;

use jobs::ProbeLauncher::{self, Hydra, OpenMpi, Slurm, SlurmPmix};
use jobs::{foreign, gasnetrun, last, new_mark, probe, run, spawn};
use std::time::{Duration, Instant};
use sys::process;

/// Within this time after the first exit no rank is left; the launcher may take longer.
const SOON: Duration = Duration::from_secs(2);

/// Whether to run all cases, as `make soak` does, or a sample.
fn all() -> bool {
    std::env::var_os("LAUNCHERS_ALL").is_some()
}

fn codes(launcher: ProbeLauncher) {
    let ways =
        [("return:2", 2), ("_exit:0", 0), ("return:0", 0), ("gasnet_exit:6", 6), ("_exit:7", 7)];
    for (n, ways) in [(1, &ways[..1]), (3, &ways[..]), (8, &ways[..1])] {
        for &(way, code) in ways {
            let o = run(launcher, n, &["all", way, "spin"]);
            o.gives(code).never_says("Caught a fatal signal").never_says("cannot");
            if way == "return:0" {
                for rank in 0..n {
                    o.says(&format!("rank {rank} runs"));
                }
            }
        }
    }
}

fn one_leaves(launcher: ProbeLauncher) {
    let bare = scripted(launcher, &[], "exit 5");
    bare.gives(5);
    let rests: &[&str] =
        if all() { &["barrier", "spin", "poll", "sleep"] } else { &["barrier", "spin"] };
    for rest in rests {
        for (n, rank) in [(2, "0"), (3, "2")] {
            let o = run(launcher, n, &[rank, "gasnet_exit:5", rest]);
            o.gives(5);
            // Longer on a busy machine, where the launcher is slower too.
            let own = o.took.saturating_sub(bare.took);
            assert!(own < SOON * 3, "{launcher:?} {n} {rest}: {own:?} more than {:?}", bare.took);
        }
        run(launcher, 2, &["1", "return:0", rest]).gives(0);
        run(launcher, 2, &["1", "_exit:0", rest]).gives(0);
        if all() {
            run(launcher, 2, &["0", "_exit:9", rest]).gives(9);
        }
    }
}

fn crashes(launcher: ProbeLauncher) {
    for way in ["kill:9", "null"] {
        for rest in ["spin", "barrier"] {
            let o = run(launcher, 3, &[&last(3), way, rest]);
            assert_ne!(o.code, 0, "{o:#?}");
            assert_eq!(o.left, [0u32; 0], "{o:#?}");
        }
    }
}

fn exchanges(launcher: ProbeLauncher) {
    for n in [2, 8] {
        run(launcher, n, &["all", "exchange", "-"]).gives(0).never_says("panicked");
    }
}

/// Each rank has its numbers in the environment, also if it inherits others.
fn numbers(launcher: ProbeLauncher) {
    let script = "GASNET_RANK=9 \"$0\" all numbers:0 -";
    let o = scripted(launcher, &[], &format!("{script}; code=$?; {LINGER} exit $code"));
    for rank in 0..2 {
        let local = if jobs::test_hosts() > 1 { 0 } else { rank };
        o.gives(0).says(&format!("numbers [\"{rank}\", \"2\", \"{local}\"]"));
    }
}

/// MPICH's mpiexec loses output, or dies of SIGPIPE, when processes end within a few
/// milliseconds.
const LINGER: &str = "sleep 0.3;";

/// The messages of two processes that run this script, in which $0 is the probe, and fail. They
/// go to a file: a launcher can lose output when one process fails while another speaks PMI.
fn refused(launcher: ProbeLauncher, options: &[&str], script: &str) -> String {
    let file = std::env::temp_dir().join(format!("launchers-{}", new_mark()));
    let o = scripted(launcher, options, &format!("exec 2>>{}; {script}", file.display()));
    assert_ne!(o.code, 0, "{o:#?}");
    let output = std::fs::read_to_string(&file).expect("the messages");
    std::fs::remove_file(&file).expect("the file can be removed");
    output
}

/// A job of two processes that run this script, in which $0 is the probe.
fn scripted(launcher: ProbeLauncher, options: &[&str], script: &str) -> jobs::ProbeOutcome {
    let mark = new_mark();
    let mut c = foreign(launcher, 2);
    c.args(options)
        .args(["sh", "-c", &format!("{LINGER} {script}")])
        .arg(probe())
        .env("PROBE_MARK", &mark);
    spawn(c, mark, script.to_string()).finish()
}

/// A launcher that starts several processes, each of which would be a job of one.
fn singletons(launcher: ProbeLauncher) {
    let run = "\"$0\" all return:0 -";
    let o = scripted(launcher, &[], &format!("GASNET_SPAWN_CONTROL=ALONE {run}"));
    o.gives(0);
    assert_eq!(o.out.matches("rank 0 runs").count(), 2, "{o:#?}");
    let says = |output: &str, words: [&str; 2]| {
        assert!(words.iter().all(|w| output.contains(w)), "{words:?} in {output}");
    };
    let none = "offers no PMI or PMIx by which they could find each other";
    let output = refused(launcher, &[], &format!("unset PMI_FD PMIX_NAMESPACE; {run}"));
    says(&output, [none, "GASNET_SPAWN_CONTROL=ALONE"]);
    if launcher == Hydra {
        says(&refused(launcher, &["-pmi-port"], run), [none, "without -pmi-port"]);
    }
    if launcher != OpenMpi {
        // For the second program in each process the launcher has hung up.
        let output = refused(launcher, &[], &format!("{run} && {run}"));
        says(&output, ["the launcher's PMI does not work", "run one GASNet program"]);
        let output = refused(launcher, &[], &format!("PMI_SIZE=65537 {run}"));
        says(&output, ["started 65537 processes", "GASNET_MAXNODES is 65536"]);
    }
}

/// gasnetrun -spawner=mpi and pmi execute the launcher that a template names.
fn handed_over(launcher: ProbeLauncher) {
    let mark = new_mark();
    let words = foreign(launcher, 3);
    let mut template = words.get_program().to_string_lossy().into_owned();
    for w in words.get_args() {
        template += &format!(" {}", w.to_string_lossy());
    }
    template += " %C";
    let mut c = std::process::Command::new(gasnetrun());
    c.args(["-n", "3", "-spawner=mpi"]).arg(probe()).args(["1", "gasnet_exit:4", "barrier"]);
    c.env("PROBE_MARK", &mark).env("MPIRUN_CMD", template);
    spawn(c, mark, "handed over".into()).finish().gives(4);
}

/// One of the processes exits before they have found each other; the others do not wait for it,
/// even on other hosts. Each host has two at least: none could notice the end of a single one.
/// Some launchers end such a job; under the rest the processes print why the job ends.
fn ends_early(launcher: ProbeLauncher) {
    let launchers = if launcher == Slurm { vec![Slurm, SlurmPmix] } else { vec![launcher] };
    let n = if jobs::test_hosts() > 1 { 2 * jobs::test_hosts() } else { 3 };
    for launcher in launchers {
        let by_itself = |way: &str| match launcher {
            Slurm | SlurmPmix => false,
            Hydra => way.contains("kill"),
            // mpirun or the library detects it first.
            _ => true,
        };
        let run = "exec \"$0\" all return:0 -";
        // It exits before it calls gasnet_init, early or while the others wait already; or in
        // gasnet_init, while all but one wait.
        for (one, other) in [
            ("kill -9 $$", ";;"),
            ("exit 0", ";;"),
            ("sleep 0.7; kill -9 $$", ";;"),
            ("sleep 0.7; exit 0", ";;"),
            ("(sleep 0.7; kill -9 $$) &", "sleep 4 ;;"),
        ] {
            let script =
                format!("case ${{PMI_RANK:-$PMIX_RANK}} in 1) {one} ;; 2) {other} esac; {run}");
            let mark = new_mark();
            let mut c = foreign(launcher, n);
            c.args(["sh", "-c", &script]).arg(probe()).env("PROBE_MARK", &mark);
            let mut job = spawn(c, mark, format!("{launcher:?} {one}"));
            job.hasty = true;
            let o = job.finish();
            assert_ne!(o.code, 0, "{o:#?}");
            assert_eq!(o.left, [0u32; 0], "{o:#?}");
            o.never_says("rank 0 runs");
            if !by_itself(one) {
                o.says("before the processes had found each other")
                    .says("must live until gasnet_init has returned");
            }
        }
    }
}

/// A process is killed when the job has a supervisor, which some ranks may have joined.
fn ends_while_joining(launcher: ProbeLauncher) {
    let launchers = if launcher == Slurm { vec![Slurm, SlurmPmix] } else { vec![launcher] };
    for launcher in launchers {
        for victim in ["0", "1", "5"] {
            let mark = new_mark();
            let mut c = foreign(launcher, 6);
            c.arg(probe()).args(["none", "-", "barrier"]).env("PROBE_MARK", &mark);
            let mut job = spawn(c, mark.clone(), format!("{launcher:?} joining {victim}"));
            job.hasty = true;
            let deadline = Instant::now() + SOON * 30;
            let supervised =
                |all: &[u32]| all.iter().any(|&pid| process::name_of(pid) == "gasnet-job");
            let is =
                |pid: u32, name: &str| process::variable_of(pid, name).as_deref() == Some(victim);
            let is_victim = |pid: u32| {
                (is(pid, "PMI_RANK") || is(pid, "PMIX_RANK"))
                    && process::name_of(pid) == "exit_probe"
            };
            loop {
                assert!(Instant::now() < deadline, "{launcher:?}: no supervisor is seen");
                let all = jobs::marked(&mark);
                let found = all.iter().find(|&&pid| is_victim(pid));
                // Another host may have a supervisor before the victim runs.
                if let (true, Some(&pid)) = (supervised(&all), found) {
                    process::kill(pid, sys::signal::Signal::KILL);
                    break;
                }
            }
            let o = job.finish();
            assert_ne!(o.code, 0, "{o:#?}");
            assert_eq!(o.left, [0u32; 0], "{o:#?}");
            assert!(o.took < SOON * 10, "{o:#?}");
        }
    }
}

/// The supervisor is allowed fewer descriptors than two for each rank.
fn few_descriptors(launcher: ProbeLauncher) {
    // Ranks of the others have many descriptors of their launcher.
    if launcher == Hydra {
        let mark = new_mark();
        let mut c = foreign(launcher, 8);
        c.args(["sh", "-c", "ulimit -n 22; exec \"$0\" all return:0 -"]).arg(probe());
        c.env("PROBE_MARK", &mark).env("GASNET_SPAWN_TIMEOUT", "5");
        let o = spawn(c, mark, "few descriptors".into()).finish();
        o.gives(0).never_says("***");
    }
}

macro_rules! launcher {
    ($name:ident, $launcher:expr) => {
        mod $name {
            #[test]
            #[ignore = "wants a launcher: ci/launchers.sh"]
            fn codes() {
                super::codes($launcher);
            }
            #[test]
            #[ignore = "wants a launcher: ci/launchers.sh"]
            fn one_leaves() {
                super::one_leaves($launcher);
            }
            #[test]
            #[ignore = "wants a launcher: ci/launchers.sh"]
            fn crashes() {
                super::crashes($launcher);
            }
            #[test]
            #[ignore = "wants a launcher: ci/launchers.sh"]
            fn ends_early() {
                super::ends_early($launcher);
            }
            #[test]
            #[ignore = "wants a launcher: ci/launchers.sh"]
            fn ends_while_joining() {
                super::ends_while_joining($launcher);
            }
            #[test]
            #[ignore = "wants a launcher: ci/launchers.sh"]
            fn exchanges() {
                super::exchanges($launcher);
            }
            #[test]
            #[ignore = "wants a launcher: ci/launchers.sh"]
            fn few_descriptors() {
                super::few_descriptors($launcher);
            }
            #[test]
            #[ignore = "wants a launcher: ci/launchers.sh"]
            fn numbers() {
                super::numbers($launcher);
            }
            #[test]
            #[ignore = "wants a launcher: ci/launchers.sh"]
            fn singletons() {
                super::singletons($launcher);
            }
            #[test]
            #[ignore = "wants a launcher: ci/launchers.sh"]
            fn handed_over() {
                super::handed_over($launcher);
            }
            #[test]
            #[ignore = "wants a launcher: ci/launchers.sh"]
            fn programs_of_ranks() {
                super::jobs::programs_of_ranks($launcher);
            }
        }
    };
}

launcher!(hydra, super::Hydra);
launcher!(openmpi, super::OpenMpi);
launcher!(slurm, super::Slurm);
