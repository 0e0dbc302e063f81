//! What gasnetrun gives to the programs that it starts, and its options. The jobs:
//! tests/jobs/exit_probe.rs, some behind a shell.
//!
//! Run by cargo. Invariant: no test asserts a time.

mod jobs;

use jobs::ProbeLauncher::{Fork, Run};
use jobs::{ProbeOutcome, gasnetrun, new_mark, probe, run, spawn, with};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{self, Command};

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
        run(launcher, 1, &["all", "numbers:0", "-"])
            .gives(0)
            .says("numbers [\"0\", \"1\", \"0\"]");
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

/// A folder of a test, removed at its end.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> TestFolder {
        let folder = std::env::temp_dir().join(format!("gasnetrun-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        TestFolder(fs::canonicalize(folder).unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn words<'a>(probe: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    [&[probe], words].concat()
}

#[test]
fn a_job_that_runs_too_long_ends_with_124_after_a_report() {
    let probe = probe().display().to_string();
    for rest in ["barrier", "spin", "masked", "sleep"] {
        let o = with(&["-n", "3", "--timeout", "1/2"], &words(&probe, &["9", "-", rest]));
        o.gives(124).says("*** the job has run for 0.5 s (--timeout) and ends with exit code 124");
        for rank in 0..3 {
            let named = format!("*** rank {rank} (pid ");
            assert!(o.err.contains(&named), "{o:#?}");
        }
    }
    // A job that ends in time has its own code.
    let options = ["-n", "3", "--timeout", "30"];
    with(&options, &words(&probe, &["0", "return:5", "spin"])).gives(5).never_says("--timeout");
    // A program that is none of GASNet, and a job that --no-cut-off keeps.
    with(&["-n", "2", "--timeout", "0.3"], &["sleep", "30"])
        .gives(124)
        .says("has not called gasnet_init");
    // What a shell runs ends with it.
    for script in ["sleep 1000; :", "(sleep 1000; :); :"] {
        let mark = new_mark();
        let mut c = Command::new(gasnetrun());
        c.args(["-n", "2", "--timeout", "0.3", "sh", "-c", script]).env("PROBE_MARK", &mark);
        let mut job = spawn(c, mark, script.to_string());
        job.hasty = true;
        job.finish().gives(124).says("has not called gasnet_init");
    }
    let options = ["-n", "2", "--timeout", "1", "--no-cut-off"];
    with(&options, &words(&probe, &["0", "return:0", "spin"])).gives(124).says("has ended");
    for bad in ["0", "-1", "soon", "1e20"] {
        with(&["-n", "2", "--timeout", bad], &["true"])
            .gives(2)
            .says("is not a number of seconds");
    }
}

/// Under another launcher, in whose place a script starts the processes.
#[test]
fn a_time_limit_and_files_of_output_under_another_launcher() {
    let folder = TestFolder::new("other");
    let launcher = folder.0.join("launcher");
    let start = |text: &str, options: &[&str], words: &[&str]| {
        fs::write(&launcher, format!("#!/bin/sh\n{text}")).unwrap();
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
        let mut c = Command::new(jobs::gasnetrun());
        let mark = jobs::new_mark();
        c.args(["-n", "2", "-spawner=mpi"]).args(options).args(words);
        c.env("PROBE_MARK", &mark).env("MPIRUN_CMD", format!("{} %C", launcher.display()));
        for rank in ["PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"] {
            c.env_remove(rank);
        }
        jobs::spawn(c, mark, format!("{text} {options:?}")).finish()
    };
    let limit = ["--timeout", "0.3"];
    let report = "*** the job has run for 0.3 s (--timeout) and ends with exit code 124";
    start("exec \"$@\"", &limit, &["sleep", "60"]).gives(124).says(report);
    // A launcher that ends in time has its own code; signals reach it.
    let limit = ["--timeout", "60"];
    start("exec \"$@\"", &limit, &["sh", "-c", "exit 7"]).gives(7).never_says("--timeout");
    start("kill -TERM $PPID; exec sleep 60", &limit, &["true"]).gives(143).never_says("--timeout");
    // The supervisor of the ranks is asked what they do; a script has its name.
    let job = "trap 'echo asked >&2; kill $!; wait; exit' USR1; sleep 60 & wait";
    let job_path = folder.0.join("gasnet-job");
    fs::write(&job_path, format!("#!/bin/sh\n{job}\n")).unwrap();
    fs::set_permissions(&job_path, fs::Permissions::from_mode(0o755)).unwrap();
    let limit = ["--timeout", "1"];
    start("\"$@\"; exit 0", &limit, &[&folder.path("gasnet-job")]).gives(124).says("asked\n");
    // One that its launcher leaves behind has ended when gasnetrun ends, however slow it is: it
    // has this job's mark, which must go.
    let job = "trap '' USR1; trap 'sleep 0.3; kill $!; wait; exit' TERM; sleep 60 & wait; wait";
    fs::write(&job_path, format!("#!/bin/sh\n{job}\n")).unwrap();
    start("\"$@\" & wait", &limit, &[&folder.path("gasnet-job")]).gives(124);

    let to = folder.path("deep/er");
    let all = "for r in 0 1; do PMI_RANK=$r \"$@\" & done; wait";
    let script = "echo out $PMI_RANK $0; echo err >&2";
    let o = start(all, &["--output", &to], &["sh", "-c", script, "a b"]);
    o.gives(0);
    assert_eq!((o.out.as_str(), o.err.as_str()), ("", ""));
    for rank in 0..2 {
        assert_eq!(folder.text(&format!("deep/er/rank-{rank}.out")), format!("out {rank} a b\n"));
        assert_eq!(folder.text(&format!("deep/er/rank-{rank}.err")), "err\n");
    }
    start("exec \"$@\"", &["--output", &to], &["echo", "runs"])
        .gives(1)
        .says("the launcher does not say which rank a process is")
        .never_says("runs");
    let below = folder.path("launcher/below");
    start("exec \"$@\"", &["--output", &below], &["true"]).gives(1).says("cannot be made");
    start("exec \"$@\"", &["--gdb", "0"], &["true"]).gives(2).says("--gdb needs a terminal");
    // What gasnetrun does for its own ranks alone.
    for options in [&["--prefix"][..], &["--bind", "core"], &["-H", "a"], &["--map-by", "core"]] {
        let refused = format!("{} is for ranks that gasnetrun starts", options[0]);
        start("exec \"$@\"", options, &["true"]).gives(2).says(&refused);
    }
    // A parent may have had SIGCHLD ignored: then the system reaps the launcher.
    fs::write(&launcher, "#!/bin/sh\nexec \"$@\"").unwrap();
    let mut c = Command::new("sh");
    let mark = jobs::new_mark();
    c.args(["-c", "trap '' CHLD; exec \"$@\"", "sh"]).arg(jobs::gasnetrun());
    c.args(["-n", "2", "-spawner=mpi", "--timeout", "5", "sh", "-c", "exit 7"]);
    c.env("PROBE_MARK", &mark).env("MPIRUN_CMD", format!("{} %C", launcher.display()));
    jobs::spawn(c, mark, "SIGCHLD ignored".into()).finish().gives(7).never_says("--timeout");
}

#[test]
fn output_goes_to_a_file_per_rank_and_stream() {
    let folder = TestFolder::new("output");
    let to = folder.path("deep/er");
    let script = "echo out $GASNET_RANK; echo err $GASNET_RANK >&2; exec \"$0\" all return:0 -";
    let o = scripted(&["-n", "3", "--output", &to], script);
    o.gives(0);
    assert_eq!((o.out.as_str(), o.err.as_str()), ("", ""));
    for rank in 0..3 {
        let out = folder.text(&format!("deep/er/rank-{rank}.out"));
        assert_eq!(out, format!("out {rank}\nbefore\nrank {rank} runs\n"));
        assert_eq!(folder.text(&format!("deep/er/rank-{rank}.err")), format!("err {rank}\n"));
    }
    // A second job begins the files anew; the path is that of the launcher's folder.
    let probe = probe().display().to_string();
    let options = ["-n", "2", "--output", to.as_str(), "--wdir", "/"];
    with(&options, &words(&probe, &["0", "return:3", "spin"])).gives(3).says("*** rank 0 of 2");
    assert_eq!(folder.text("deep/er/rank-1.out"), "before\nrank 1 runs\n");
    assert_eq!(folder.text("deep/er/rank-0.err"), "");
}

/// Options that have no effect are named.
#[test]
fn options_that_do_nothing_say_so() {
    let folder = TestFolder::new("nothing");
    with(&["-n", "2", "--ranks-per-host", "1"], &["true"])
        .gives(0)
        .says("--ranks-per-host 1: all ranks run on this host; -H names others");
    with(&["-n", "2", "--prefix", "--output", &folder.path("")], &["true"])
        .gives(0)
        .says("--prefix has no effect on the files of --output");
    with(&["-n", "2", "-H", "a", "-H", "b"], &["true"]).gives(2).says("-H is given twice");
}

/// The launcher needs little stack; its ranks give themselves more.
#[test]
fn a_launcher_with_a_small_stack() {
    let mut c = Command::new("sh");
    let mark = new_mark();
    c.args(["-c", "ulimit -S -s 64; exec \"$@\"", "sh"]).arg(gasnetrun());
    c.args(["-n", "2", "sh", "-c", "ulimit -S -s 8192; exec \"$0\" all exchange -"]).arg(probe());
    c.env("PROBE_MARK", &mark);
    spawn(c, mark, "a small stack".into()).finish().gives(0).never_says("***");
}

/// A time limit that no clock reaches is none.
#[test]
fn a_spawn_timeout_of_centuries() {
    let long = ["-n", "2", "--env", "GASNET_SPAWN_TIMEOUT=99999999999"];
    let script = "[ $GASNET_RANK = 0 ] || sleep 0.3; exec \"$0\" all exchange -";
    scripted(&long, script).gives(0).never_says("***");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let folder = TestFolder::new("no-output");
    fs::write(folder.0.join("file"), "").unwrap();
    let below = folder.path("file/below");
    with(&["-n", "2", "--output", &below], &["true"])
        .gives(1)
        .says("the folder")
        .says("cannot be made");
    fs::create_dir_all(folder.0.join("rank-1.err")).unwrap();
    with(&["-n", "2", "--output", &folder.path("")], &["echo", "started"])
        .gives(1)
        .says("rank-1.err cannot be made")
        .says("Name a folder that you may write to")
        .never_says("started");
}

#[test]
fn variables_and_working_directory_of_the_ranks() {
    let folder = TestFolder::new("wdir");
    let script = "echo $PROBE_A-$PROBE_B-$PWD; pwd -P";
    let to = folder.path("");
    let options = ["-n", "2", "--env", "PROBE_A=1=2", "--env", "PROBE_B=", "--wdir", &to];
    let o = scripted(&options, script);
    let at = folder.0.display();
    o.gives(0);
    for line in [format!("1=2--{at}"), format!("{at}")] {
        assert_eq!(o.out.lines().filter(|l| *l == line).count(), 2, "{o:#?}");
    }
    // The library and the launcher see them too.
    with(&["-n", "2", "--env", "GASNET_EXITTIMEOUT=soon"], &["true"])
        .gives(1)
        .says("GASNET_EXITTIMEOUT=soon cannot be used");
    with(&["-n", "1", "--env", "PROBE_NONE"], &["true"])
        .gives(0)
        .says("PROBE_NONE is to be passed on, but is not set");
    with(&["-n", "1", "--env", "=3"], &["true"]).gives(2).says("has no name");
    with(&["-n", "1", "--wdir", &folder.path("none")], &["true"])
        .gives(1)
        .says("cannot be entered");
    // The path is as the user names it: a symbolic link may lead elsewhere on other hosts.
    let link = folder.path("link");
    std::os::unix::fs::symlink(folder.path(""), &link).unwrap();
    let o = scripted(&["-n", "1", "--wdir", &link], "echo $PWD; pwd -P");
    o.gives(0);
    assert_eq!(o.out, format!("{link}\n{at}\n"));
    // A relative program is that of the folder.
    fs::write(folder.0.join("here.sh"), "#!/bin/sh\necho found\n").unwrap();
    fs::set_permissions(folder.0.join("here.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    with(&["-n", "1", "--wdir", &folder.path("")], &["./here.sh"]).gives(0).says("found");
}

/// A script in place of gdb prints how it was called, then runs the program.
#[test]
fn a_debugger_for_some_ranks() {
    let folder = TestFolder::new("gdb");
    let probe = probe().display().to_string();
    let bin = folder.0.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let install = |name: &str, text: &str| {
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    let start = |options: &[&str], display: &str| {
        let mut c = Command::new(jobs::gasnetrun());
        let mark = jobs::new_mark();
        c.args(["-n", "2"]).args(options).arg(&probe).args(["all", "return:0", "-"]);
        c.env("PROBE_MARK", &mark).env("DISPLAY", display).env("PATH", &bin);
        jobs::spawn(c, mark, format!("{options:?}")).finish()
    };
    start(&["--gdb", "0"], "").gives(127).says("no directory of PATH has gdb");
    install("gdb", "#!/bin/sh\necho \"debugger $GASNET_RANK $1 $2\"\nshift 2\n\"$@\"\n");
    let o = start(&["--gdb", "1"], "");
    o.gives(0).says("debugger 1 -q --args\n").says("rank 1 runs").never_says("debugger 0");
    // A debugger that goes on after the program; the launcher sleeps meanwhile.
    install("slow", "#!/bin/sh\nexec /bin/sleep 1.5\n");
    let ticks = "read -r line </proc/$PPID/stat; set -- $line; echo \"ticks $((${14} + ${15}))\"";
    install("gdb", &format!("#!/bin/sh\nshift 2\n\"$@\"\nslow\n{ticks}\n"));
    let o = start(&["--gdb", "1"], "");
    o.gives(0).never_says("***");
    let used = o.out.lines().find_map(|l| l.strip_prefix("ticks ")?.parse::<u32>().ok());
    assert!(used.is_some_and(|ticks| ticks < 20), "{o:#?}");
    install("gdb", "#!/bin/sh\necho \"debugger $GASNET_RANK $1 $2\"\nshift 2\n\"$@\"\n");
    // Its output is not sent elsewhere.
    let to = folder.path("out");
    start(&["--gdb", "1", "--output", &to], "")
        .gives(0)
        .says("rank 1 runs")
        .never_says("rank 0 runs");
    start(&["--gdb", "*"], "").gives(1).says("2 ranks need a window each, but DISPLAY is not set");
    start(&["--gdb", "*"], ":1").gives(1).says("but xterm is not installed");
    start(&["--gdb", "5"], "").gives(2).says("names no rank of this job, which has ranks 0 to 1");
    start(&["--gdb", "x"], "").gives(2).says("is not a list of ranks");
    install("xterm", "#!/bin/sh\necho \"window $1 $2 $3\"\nshift 3\nexec \"$@\"\n");
    let o = start(&["--gdb", "*"], ":1");
    for rank in 0..2 {
        o.gives(0)
            .says(&format!("window -T rank {rank} of 2 -e\n"))
            .says(&format!("debugger {rank} -q --args\n"))
            .says(&format!("rank {rank} runs"));
    }
}
