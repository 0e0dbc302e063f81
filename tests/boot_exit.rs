//! Jobs of tests/jobs/exit_probe.rs that end in every manner, under the launchers of this
//! library. Each test checks the exit code, the output, the time, and that nothing is left.
//!
//! A time fails a test only where the interface guarantees one. It guarantees 2 seconds from the
//! first exit to the end; the tests add an allowance for a busy machine.

mod jobs;

use jobs::ProbeLauncher::{Fork, Hosts, Run};
use jobs::{
    ProbeLauncher, gasnetrun, last, marked, new_mark, probe, run, skip, spawn, start, with,
};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use sys::signal::Signal;

const OURS: [ProbeLauncher; 3] = [Fork, Run, Hosts];

#[test]
fn all_leave_with_one_code() {
    for launcher in OURS {
        for n in [1, 2, 4] {
            for (way, code) in [
                ("return:0", 0),
                ("return:2", 2),
                ("exit:3", 3),
                ("gasnet_exit:6", 6),
                ("_exit:7", 7),
                ("_exit:0", 0),
            ] {
                let o = run(launcher, n, &["all", way, "spin"]);
                o.gives(code);
                // Without gasnetrun, a job of one rank has no supervisor.
                match way.split_once(':') {
                    _ if code == 0 || (launcher, n) == (Fork, 1) => o.never_says("***"),
                    Some(("gasnet_exit", _)) => o.says("called gasnet_exit(6); the job ends"),
                    _ => o.says(&format!("exited with {code} before gasnet_exit; the job ends")),
                };
                // Ranks that end at the same time on two hosts are named by both.
                let most = if launcher == Hosts { 2 } else { 1 };
                assert!(o.err.matches("***").count() <= most, "{o:#?}");
                if !way.starts_with('_') {
                    for rank in 0..n {
                        o.says(&format!("rank {rank} runs"));
                    }
                }
                // Output from before the fork must come out once.
                if launcher == Fork && !(n == 1 && way.starts_with('_')) {
                    assert_eq!(o.out.matches("before").count(), 1, "{o:#?}");
                }
            }
        }
    }
}

#[test]
fn one_leaves_and_the_others_follow() {
    for launcher in OURS {
        for n in [2, 4] {
            for rest in ["barrier", "poll", "spin", "sleep", "masked"] {
                let way = if n == 2 { "gasnet_exit:5" } else { "return:5" };
                let o = run(launcher, n, &[&last(n), way, rest]);
                o.gives(5).never_says("killed by signal");
                assert_eq!(o.err.contains("did not exit"), rest == "masked", "{o:#?}");
                if rest != "masked" {
                    o.says("rank 0 runs");
                }
            }
        }
    }
}

#[test]
fn vanished_without_a_word() {
    for launcher in OURS {
        run(launcher, 2, &["0", "_exit:9", "sleep"])
            .gives(9)
            .says("rank 0 of 2 (pid ")
            .says(") exited with 9 before gasnet_exit; the job ends");
        run(launcher, 2, &["1", "_exit:0", "poll"]).gives(0);
    }
}

#[test]
fn those_about_to_finish_may() {
    for launcher in OURS {
        for way in ["gasnet_exit:0", "gasnet_exit:3"] {
            let code = way[12..].parse().unwrap();
            run(launcher, 3, &["1", way, "finish"])
                .gives(code)
                .says("rank 0 finishes")
                .says("rank 2 finishes");
        }
    }
}

#[test]
fn the_clients_quit_handler_runs_only_where_due() {
    for launcher in OURS {
        for rest in ["spin", "poll", "barrier"] {
            let o =
                start(launcher, 2, &["1", "gasnet_exit:3", rest], &[("PROBE_QUIT", "1")]).finish();
            o.gives(3);
            assert_eq!(o.err.matches("client's SIGQUIT handler").count(), 1, "{o:#?}");
        }
        let o = start(launcher, 2, &["all", "gasnet_exit:3", "sleep"], &[("PROBE_QUIT", "1")])
            .finish();
        o.gives(3).never_says("client's SIGQUIT handler");
        start(launcher, 2, &["1", "kill:2", "sleep"], &[("PROBE_QUIT", "1")])
            .finish()
            .gives(4)
            .says("Caught a signal: SIGINT(2) on rank 1/2 (pid ")
            .says("client's SIGQUIT handler");
    }
}

#[test]
fn signals_of_one_rank() {
    for launcher in OURS {
        run(launcher, 2, &["1", "kill:9", "poll"])
            .gives(137)
            .says("rank 1 of 2 (pid ")
            .says("signal 9 (SIGKILL)");
        run(launcher, 2, &["1", "kill:6", "sleep"])
            .gives(134)
            .says("fatal signal: SIGABRT(6) on rank 1/2");
        run(launcher, 2, &["0", "null", "sleep"])
            .gives(139)
            .says("fatal signal: SIGSEGV(11) on rank 0/2");
        run(launcher, 2, &["0", "kill:15", "poll"])
            .gives(143)
            .says("Caught a signal: SIGTERM(15) on rank 0/2 (pid ");
        let o = run(launcher, 2, &["1", "kill:3", "sleep"]);
        o.gives(131).says("Caught a signal: SIGQUIT(3) on rank 1/2 (pid ");
        assert_eq!(o.err.matches("***").count(), 1, "{o:#?}");
        start(launcher, 2, &["0", "kill:15", "poll"], &[("GASNET_NO_CATCH_SIGNAL", "FPE, TERM")])
            .finish()
            .gives(143)
            .never_says("Caught");
    }
    run(Fork, 1, &["0", "null", "-"]).gives(139).says("fatal signal: SIGSEGV(11) on rank 0/1");
}

#[test]
fn a_killed_rank_ends_the_job_soon() {
    for launcher in OURS {
        let job = start(launcher, 4, &["none", "-", "sleep"], &[]);
        let ranks = job.wait_for_ranks(4);
        let killed = Instant::now();
        sys::process::kill(ranks[2], Signal::KILL);
        job.finish()
            .gives(137)
            .says(&format!("rank 2 of 4 (pid {}, ", ranks[2]))
            .says(") was killed by signal 9");
        assert!(killed.elapsed() < Duration::from_secs(3), "{:?}", killed.elapsed());
    }
}

#[test]
fn a_killed_supervisor_takes_the_ranks_along() {
    for launcher in OURS {
        for rest in ["spin", "barrier", "masked"] {
            let job = start(launcher, 3, &["none", "-", rest], &[]);
            job.wait_for_ranks(3);
            sys::process::kill(job.pid(), Signal::KILL);
            job.finish().gives(137);
        }
    }
    // Ranks that are not children of the launcher detect the hang-up.
    let mark = new_mark();
    let mut c = Command::new(gasnetrun());
    c.args(["-n", "2", "sh", "-c", "\"$0\" none - spin; true"])
        .arg(probe())
        .env("PROBE_MARK", &mark);
    let job = spawn(c, mark, "wrapped ranks".into());
    job.wait_for_ranks(4);
    sys::process::kill(job.pid(), Signal::KILL);
    job.finish().gives(137).says("gasnetrun has exited, so the job ends");
}

/// The job goes on without the process that would end what its ranks have started.
#[test]
fn a_killed_guard_does_not_end_the_job() {
    let job = start(Run, 2, &["none", "-", "sleep"], &[]);
    let ranks = job.wait_for_ranks(2);
    let is_guard = |pid: &u32| sys::process::name_of(*pid) == "gasnet-guard";
    let guards: Vec<u32> = marked(&job.mark).into_iter().filter(is_guard).collect();
    assert_eq!(guards.len(), 1, "gasnetrun has one guard");
    sys::process::kill(guards[0], Signal::KILL);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(job.wait_for_ranks(2), ranks);
    sys::process::kill(job.pid(), Signal::TERM);
    job.finish().gives(143);
}

/// A debugger that a rank has started to print its stack stops the rank while the job ends.
#[test]
fn a_rank_may_finish_its_own_stack() {
    if !sys::helper::may_run(c"/usr/bin/gdb") {
        return skip("a_rank_may_finish_its_own_stack", "gdb");
    }
    let mut job = start(Run, 3, &["2", "delayed:5", "traced"], &[]);
    // The kernel ends the debuggers with their ranks, and takes a moment.
    job.hasty = true;
    job.finish().gives(5).never_says("killed");
}

#[test]
fn a_stopped_rank_is_reported_and_killed() {
    for launcher in OURS {
        let job = start(launcher, 3, &["2", "alarm:5", "stop"], &[]);
        job.finish().gives(5).says("is stopped and cannot exit; it is killed");
    }
}

#[test]
fn children_of_ranks_do_not_count() {
    for launcher in OURS {
        run(launcher, 2, &["0", "childexit:3", "sleep"])
            .gives(0)
            .says("exited with 0 before")
            .never_says("exited with 3");
        // The child that still runs keeps the control socket and the memory files open.
        let began = Instant::now();
        let o = run(launcher, 2, &["1", "orphan:8", "sleep"]);
        assert!(began.elapsed() < Duration::from_secs(10), "{o:#?}");
        assert_eq!((o.code, o.left.len()), (8, 1), "{o:#?}");
        for pid in o.left {
            sys::process::kill(pid, Signal::KILL);
        }
    }
}

#[test]
fn programs_of_ranks_are_jobs_of_their_own() {
    for launcher in OURS {
        jobs::programs_of_ranks(launcher);
    }
}

#[test]
fn threads_and_interrupting_handlers() {
    for launcher in OURS {
        run(launcher, 2, &["1", "thread:14", "poll"]).gives(14);
        run(launcher, 2, &["all", "thread:14", "-"]).gives(14);
        for _ in 0..5 {
            run(launcher, 2, &["all", "alarm:11", "-"]).gives(11);
            run(launcher, 2, &["0", "alarm:11", "sleep"]).gives(11);
        }
    }
}

#[test]
fn exchange_and_barrier() {
    for launcher in OURS {
        for n in [1, 2, 3, 8] {
            run(launcher, n, &["all", "exchange", "-"]).gives(0).never_says("panicked");
            run(launcher, n, &["all", "nap", "-"]).gives(0);
        }
    }
}

#[test]
fn programs_that_never_join() {
    let job = |n: u32, words: &[&str]| {
        let mark = new_mark();
        let mut c = Command::new(gasnetrun());
        c.arg("-n").arg(n.to_string()).args(words).env("PROBE_MARK", &mark);
        spawn(c, mark, format!("{n} {words:?}")).finish()
    };
    let o = job(3, &["echo", "a  b", "-n", "--", "$HOME"]);
    o.gives(0);
    assert_eq!(o.out, "a  b -n -- $HOME\n".repeat(3));
    job(2, &["--", "true"]).gives(0);
    job(2, &["false"]).gives(1).says("exited with 1 before gasnet_init; the job ends");
    let script =
        r#"if [ "${GASNET_SPAWN_FDS%%,*}" = 1 ]; then exit 0; fi; exec "$0" all return:0 -"#;
    job(2, &["sh", "-c", script, probe().to_str().unwrap()])
        .gives(1)
        .says("rank 1 (pid ")
        .says("before gasnet_init, which other ranks have called");
    // A wrapper that waits: the rank is not the process that was started.
    let wrapped = r#""$0" 0 kill:9 spin; while :; do :; done"#;
    job(2, &["sh", "-c", wrapped, probe().to_str().unwrap()])
        .gives(1)
        .says("ended without leaving the job");
    let wrapped = r#""$0" all return:5 -; exit $?"#;
    job(2, &["sh", "-c", wrapped, probe().to_str().unwrap()]).gives(5);
}

#[test]
fn stdin_goes_to_rank_0() {
    use std::io::Write;
    let mut child = Command::new(gasnetrun())
        .args(["-np", "3", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one line\n").unwrap();
    let o = child.wait_with_output().unwrap();
    assert!(o.status.success());
    assert_eq!(o.stdout, b"one line\n");
}

#[test]
fn bad_usage_is_reported() {
    let plain = std::env::temp_dir().join(format!("boot_exit-{}", std::process::id()));
    std::fs::write(&plain, "not a program").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["true"], "the number of ranks is missing"),
        (&["-n", "0", "true"], "-n 0 is not a number from 1"),
        (&["-n", "lots", "true"], "-n lots is not a number from 1"),
        (&["-n", "2"], "the program is missing"),
        (&["-n", "2", "--frobnicate", "true"], "frobnicate"),
        (&["-n", "2", "./does-not-exist"], "cannot be run"),
        (&["-n", "2", "does-not-exist"], "no directory of PATH has it"),
        (&["-n", "2", plain.to_str().unwrap()], "not executable"),
        (&["-n", "2", "/etc"], "is a directory"),
        (&["-n", "2", "--bind", "socket", "true"], "--bind socket is not known"),
        (&["-n", "2", "-spawner=rsh", "true"], "-spawner=rsh is not known"),
        (&["-n", "2", "-spawner", "ssh", "true"], "no hosts are named"),
        (&["-n", "2", "-H", "a:x", "true"], "-H: a:x is not a host"),
        (&["-n", "2", "-H", "a:1", "true"], "2 ranks need 2 slots, but -H has 1"),
        (&["-n", "2", "-H", "a", "--hostfile", "b", "true"], "both name hosts"),
        (&["-spawner=fork", "-n", "2", "-H", "a,b", "true"], "but hosts are named"),
        (&["-n", "2", "--hostfile", "/no/file", "true"], "/no/file cannot be read"),
        (&["-n", "2", "--map-by", "socket", "true"], "--map-by socket is not known"),
        (&["-n", "2", "-spawner"], "missing argument for option '-spawner'"),
        (&["-n", "65537", "true"], "-n 65537 is not a number from 1 to 65536"),
        (&["-n", "4097", "true"], "4097 ranks are more than one host can have (4096)"),
        (&["-n", "2", "-N", "0", "true"], "-N 0 is not a number"),
        (&["-n", "2", "-c", "many", "true"], "-c many is not a number"),
        (&["-n", "2", "-x", "true"], "the option -x is not known"),
        (&["-n", "2", "-verbose", "true"], "the option -verbose is not known"),
        (&["-n", "2", "-bind", "core", "true"], "the option -bind is not known"),
        (&["-n", "2", "-hostfile", "hosts", "true"], "the option -hostfile is not known"),
        (&["-n", "2", "--prefix=3", "true"], "unexpected argument for option '--prefix'"),
        (&["-n", "2", "--", "-v"], "-v cannot be run"),
    ];
    for (args, text) in cases {
        let o = Command::new(gasnetrun()).args(*args).stdin(Stdio::null()).output().unwrap();
        let err = String::from_utf8_lossy(&o.stderr);
        assert!(!o.status.success(), "{args:?}");
        assert!(err.contains(text), "{args:?}: {err}");
        assert_eq!(err.lines().count(), 2, "one line of cause, one of remedy: {err}");
    }
    // Other hosts.
    std::fs::write(&plain, "# two\nlocalhost\n192.0.2.1 slots=none\n").unwrap();
    let plain_name = plain.to_str().unwrap();
    for (name, value, text) in [
        ("GASNET_SSH_SERVERS", "localhost,-oX", "GASNET_SSH_SERVERS: -oX is not a host"),
        ("GASNET_SSH_NODEFILE", plain_name, "192.0.2.1 slots=none is not a host"),
        ("GASNET_NODEFILE", "/no/such/file", "GASNET_NODEFILE /no/such/file cannot be read"),
    ] {
        let o =
            Command::new(gasnetrun()).args(["-n", "2", "true"]).env(name, value).output().unwrap();
        let err = String::from_utf8_lossy(&o.stderr);
        assert_eq!(o.status.code(), Some(2), "{name}={value}");
        assert!(err.contains(text) && err.lines().count() == 2, "{err}");
    }
    let o = Command::new(gasnetrun())
        .args(["-n", "2", "true"])
        .env("GASNET_SSH_SERVERS", "localhost")
        .status();
    assert!(o.unwrap().success());
    // An executable file that is no program.
    std::fs::write(&plain, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&plain, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mark = new_mark();
    let mut c = Command::new(gasnetrun());
    c.args(["-n", "2"]).arg(&plain).env("PROBE_MARK", &mark);
    spawn(c, mark, "no interpreter".into())
        .finish()
        .gives(127)
        .says("cannot be started: No such file");
    std::fs::remove_file(&plain).unwrap();
    // The variable of a job without the job: descriptors that are closed, standard, or equal.
    for fds in ["50,51,52,53,54", "0,1,2,1,2", "0,0,0,0,0", "0,1,2,3,4,5,6", "5"] {
        let o = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4<&0 5<&0 6<&0 7<&0"])
            .arg(probe())
            .args(["all", "return:0", "-"])
            .env("GASNET_SPAWN_FDS", format!("0,2,5,{fds}"))
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&o.stderr);
        assert_eq!(o.status.code(), Some(9), "{fds}: {err}");
        let five = "five different descriptors, open and not 0, 1 or 2";
        assert!(err.contains(five), "{fds}: {err}");
        assert!(err.contains("Unset GASNET_SPAWN_FDS"), "{fds}: {err}");
    }
    // Open, but not those of the job: a script uses the number of one for a file of its own.
    let own = std::env::temp_dir().join(format!("own-{}", new_mark()));
    std::fs::write(&own, "mine").unwrap();
    for i in 0..5 {
        let script = format!(
            r#"IFS=,; set -- $GASNET_SPAWN_FDS; shift {}; eval "exec $1<>{}"; exec "$0" all return:0 -"#,
            i + 3,
            own.display()
        );
        let o = with(&["-n", "2"], &["bash", "-c", &script, &probe().display().to_string()]);
        assert!(o.code != 0 && o.err.contains("Unset GASNET_SPAWN_FDS"), "{o:#?}");
        assert_eq!(std::fs::read(&own).unwrap(), b"mine");
    }
    std::fs::remove_file(&own).unwrap();
}

#[test]
fn options_of_gasnetrun() {
    let dry = |options: &[&str]| {
        let o = Command::new(gasnetrun())
            .args(options)
            .args(["-t", "prog", "a b"])
            .env_remove("MPIRUN_CMD")
            .env("PMIRUN_CMD", "go %N%% -m %M %P -- %A")
            .output()
            .unwrap();
        assert!(o.status.success(), "{o:?}");
        String::from_utf8_lossy(&o.stderr).trim().to_string()
    };
    assert_eq!(dry(&["-n", "2"]), "gasnetrun: 2 ranks on this host: prog 'a b'");
    for options in [&["-np", "3"][..], &["-np=3"], &["-n3"], &["-n=3", "-spawner", "fork", "-k"]] {
        assert!(dry(options).contains("3 ranks on this host"), "{options:?}");
    }
    assert_eq!(dry(&["-n", "2", "-spawner=mpi"]), "gasnetrun: mpirun -np 2 prog 'a b'");
    assert!(
        dry(&["-n", "2", "-E", "PATH,PROBE_NOT_SET"])
            .starts_with("*** gasnetrun: PROBE_NOT_SET is to be passed on, but is not set")
    );
    assert_eq!(
        dry(&["-n", "2", "-N", "1", "-spawner", "pmi"]),
        "gasnetrun: go 2% -m 1 prog -- 'a b'"
    );

    let script = r#"printf 'one\n\ntwo'; echo three >&2; exit 3"#;
    let o = with(&["-n", "2", "--prefix"], &["sh", "-c", script]);
    o.gives(3);
    for rank in 0..2 {
        let lines: Vec<&str> =
            o.out.lines().filter(|l| l.starts_with(&format!("[{rank}] "))).collect();
        assert_eq!(
            lines,
            [format!("[{rank}] one"), format!("[{rank}] "), format!("[{rank}] two")],
            "{o:#?}"
        );
        o.says(&format!("[{rank}] three\n"));
    }
    // More output than a pipe holds is complete.
    let script = "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done";
    let o = with(&["-n", "2", "--prefix"], &["sh", "-c", script]);
    o.gives(0);
    for rank in 0..2 {
        let mark = format!("[{rank}] ");
        let numbers: Vec<u32> =
            o.out.lines().filter_map(|l| l.strip_prefix(mark.as_str())?.parse().ok()).collect();
        assert!(numbers.iter().copied().eq(0..20000), "{}", numbers.len());
    }
    // A full device is reported once. A reader that has seen enough ends the ranks, as without
    // the prefix.
    let run_to = |script: &str, end: &str| {
        let job = format!("{} -n 2 --prefix sh -c '{script}' {end}", gasnetrun().display());
        let o = Command::new("bash").args(["-c", &job]).output().expect("a shell");
        (o.status.code(), String::from_utf8_lossy(&o.stderr).into_owned())
    };
    let (code, said) = run_to(script, "> /dev/full");
    assert_eq!((code, said.lines().count()), (Some(1), 2), "{said}");
    assert!(said.contains("output of the ranks is lost"), "{said}");
    let endless = "while :; do echo more; done";
    let (code, said) = run_to(endless, "| head -1; exit ${PIPESTATUS[0]}");
    assert_eq!((code, said.lines().count()), (Some(141), 1), "{said}");
    assert!(said.contains("SIGPIPE"), "{said}");

    let allowed = "grep Cpus_allowed_list /proc/self/status";
    let all = with(&["-n", "1"], &["sh", "-c", allowed]).out;
    let many = sys::cpu::affinity() > 1;
    for (bind, same) in [("none", true), ("core", !many)] {
        let o = with(&["-n", "1", "--bind", bind], &["sh", "-c", allowed]);
        o.gives(0);
        assert_eq!(o.out == all, same, "{o:#?}");
    }
    with(&["-n", "2", "--bind", "numa", "-v"], &["true"])
        .gives(0)
        .says("rank 1 is process ")
        .says("exit code 0");
    let cores = sys::cpu::cores(&sys::cpu::CpuMask::of_thread().unwrap()).len();
    let n = (cores + 1).to_string();
    with(&["-n", &n, "--bind", "core"], &["true"]).gives(0).says("some ranks share theirs");

    let o = with(
        &["-n", "3", "--no-aslr"],
        &["sh", "-c", "grep stack /proc/self/maps; cat /proc/self/personality"],
    );
    o.gives(0);
    let stacks: Vec<&str> = o.out.lines().filter(|l| l.contains("[stack]")).collect();
    assert!(stacks.len() == 3 && stacks.iter().all(|l| l == &stacks[0]), "{o:#?}");
}

#[test]
fn late_ranks_are_named_and_not_waited_for_for_ever() {
    let script = r#"if [ "${GASNET_SPAWN_FDS%%,*}" = 1 ]; then exec sleep 60; fi; exec "$0" all return:0 -"#;
    let mark = new_mark();
    let mut c = Command::new(gasnetrun());
    c.args(["-n", "3", "sh", "-c", script])
        .arg(probe())
        .env("PROBE_MARK", &mark)
        .env("GASNET_SPAWN_TIMEOUT", "1.5");
    spawn(c, mark, "late".into())
        .finish()
        .gives(1)
        .says("1 s after the first, gasnet_init has not been called by 1 of 3 ranks of the job: rank 1 (pid ")
        .says("raise GASNET_SPAWN_TIMEOUT");
}
