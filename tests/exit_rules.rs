//! Which exit decides the code of a job, and which rank a message names. Also the codes of
//! programs that cannot be run ("How a job ends" in the guide). The jobs:
//! tests/jobs/exit_probe.rs.
//!
//! Run by cargo. Invariant: a time is compared only with that of another job of the same test.

mod jobs;

use jobs::ProbeLauncher::{Fork, Run};
use jobs::{ProbeLauncher, gasnetrun, new_mark, probe, run, several_hosts, spawn, start, with};
use std::process::Command;
use std::time::Duration;
use sys::signal::Signal;

const BOTH: [ProbeLauncher; 2] = [Fork, Run];

/// The rank is named whose exit with 0 ends the job, and what the ranks do that it cuts off.
#[test]
fn ranks_that_are_cut_off_are_named() {
    for launcher in BOTH {
        for rest in if launcher == Run { ["sleep", "masked"] } else { ["spin", "barrier"] } {
            let o = run(launcher, 4, &["2", "return:0", rest]);
            o.gives(0)
                .says("rank 2 of 4 (pid ")
                .says(") exited with 0 before the others: the job ends and cuts off ranks 0-1, 3");
            let what = if rest == "masked" { "does not answer" } else { "in gasnet_init" };
            assert_eq!(o.err.matches(what).count(), 3, "{o:#?}");
        }
        // The signal that asks what a rank does ends its sleep, but the client does not go on.
        run(launcher, 4, &["2", "return:0", "doze"])
            .gives(0)
            .says("cuts off ranks 0-1, 3")
            .never_says("woke");
        run(launcher, 2, &["0", "return:0", "finish"]).gives(0).never_says("***");
    }
}

/// The kernel sends another signal to a rank where the user's queue of signals is full.
#[test]
fn ranks_obey_where_no_signal_can_be_queued() {
    let limited = |words: &[&str], ranks: &str| {
        let mark = new_mark();
        let mut c = Command::new("bash");
        c.args(["-c", "ulimit -i 0; exec \"$@\"", "bash"]).args(words).arg(probe());
        c.args(["0", "gasnet_exit:0", "spin"]).env("PROBE_MARK", &mark);
        c.env("GASNET_PSHM_NODES", ranks);
        spawn(c, mark, format!("no queue of signals {words:?}")).finish()
    };
    limited(&[], "3").gives(0).says("cuts off ranks 1-2");
    let gasnetrun = gasnetrun().display().to_string();
    limited(&[&gasnetrun, "-n", "3"], "0").gives(0).says("cuts off ranks 1-2");
}

#[test]
fn ranks_are_waited_for_on_request() {
    let wait = [("GASNET_NO_CUT_OFF", "1")];
    for launcher in BOTH {
        let words = ["1", "return:0", "after:1200:7"];
        start(launcher, 3, &words, &wait)
            .finish()
            .gives(7)
            .says("exited with 7 before gasnet_exit");
        let words = ["1", "return:0", "after:1200:0"];
        start(launcher, 3, &words, &wait).finish().gives(0).never_says("***");
        start(launcher, 3, &words, &[]).finish().gives(0).says("cuts off ranks 0, 2");
        start(launcher, 3, &["1", "gasnet_exit:4", "sleep"], &wait).finish().gives(4);
    }
    let words = ["1", "return:0", "after:1200:7"];
    let probe = probe().display().to_string();
    let words: Vec<&str> = [probe.as_str()].into_iter().chain(words).collect();
    with(&["-n", "3", "--no-cut-off"], &words).gives(7);
    // The rank that is waited for is on another host.
    let mark = new_mark();
    let mut c = several_hosts(2);
    c.args(["--no-cut-off", words[0], "0", "return:0", "after:1200:7"]).env("PROBE_MARK", &mark);
    let mut job = spawn(c, mark, "two hosts".into());
    job.hasty = true;
    job.finish().gives(7).never_says("cuts off");
}

/// A failure that comes within the grace after a success is the end of the job.
#[test]
fn a_failure_wins_over_a_success() {
    for launcher in BOTH {
        for _ in 0..5 {
            let o = run(launcher, 4, &["all", "own", "-"]);
            assert!((1..4).contains(&o.code), "{o:#?}");
            let named = format!("rank {} of 4 (pid ", o.code);
            o.gives(o.code).says(&named).says("before gasnet_exit; the job ends");
        }
        run(launcher, 3, &["1", "return:0", "after:300:6"]).gives(6);
        run(launcher, 3, &["1", "_exit:0", "after:300:6"]).gives(6);
        // The first failure, though the lower rank fails too.
        run(launcher, 2, &["1", "return:3", "after:100:6"]).gives(3).says("rank 1 of 2");
    }
}

/// A rank that polls does not wait for the end of the grace, also where each CPU has four.
#[test]
fn polling_ranks_follow_a_failure_soon() {
    let crowd = 4 * std::thread::available_parallelism().unwrap().get() as u32;
    for (launcher, n) in BOTH.into_iter().flat_map(|launcher| [(launcher, 2), (launcher, crowd)]) {
        let shortest = |rest| {
            (0..8).map(|_| run(launcher, n, &["1", "gasnet_exit:5", rest]).gives(5).took).min()
        };
        let (poll, spin) = (shortest("poll").unwrap(), shortest("spin").unwrap());
        assert!(poll + Duration::from_millis(150) < spin, "{n} ranks: {poll:?} {spin:?}");
    }
}

/// After a success the grace ends when all ranks that are left poll, and not before. The code of
/// a rank that works meanwhile still counts.
#[test]
fn a_success_ends_ranks_that_all_poll_soon() {
    let shortest = |launcher, rest| {
        let run = |_| run(launcher, 3, &["1", "gasnet_exit:0", rest]).gives(0).took;
        (0..4).map(run).min().unwrap()
    };
    for launcher in BOTH {
        let (poll, spin) = (shortest(launcher, "poll"), shortest(launcher, "spin"));
        assert!(poll + Duration::from_millis(700) < spin, "{poll:?} {spin:?}");
        run(launcher, 3, &["1", "gasnet_exit:0", "poll"]).gives(0).says("cuts off ranks 0, 2");
        for code in [0, 6] {
            let rest = format!("poll_but_last:after:400:{code}");
            run(launcher, 4, &["1", "gasnet_exit:0", &rest]).gives(code);
        }
        let took = shortest(launcher, "poll_but_last:after:400:0");
        assert!(took > poll + Duration::from_millis(200), "{poll:?} {took:?}");
        let wait = [("GASNET_NO_CUT_OFF", "1")];
        start(launcher, 3, &["1", "gasnet_exit:0", "poll_but_last:after:400:7"], &wait)
            .finish()
            .gives(7);
    }
}

/// What a script does after its program is no part of the job, but its failure is.
#[test]
fn scripts_go_on_after_their_programs() {
    let probe = probe().display().to_string();
    for (rest, code) in [("echo rest", 0), ("echo rest; exit 3", 3)] {
        let script = format!("{probe} all return:0 -; sleep 3; {rest}");
        let o = with(&["-n", "2"], &["sh", "-c", &script]);
        assert_eq!(o.gives(code).out.matches("rest").count(), 2, "{o:#?}");
        assert_eq!(o.err.contains("the script around it exited with 3"), code == 3, "{o:#?}");
    }
    // It ends with the time of the job, and at the user's request.
    let script = format!("{probe} all return:0 -; sleep 60; echo rest");
    let o = with(&["-n", "2", "--timeout", "3"], &["sh", "-c", &script]);
    assert!(!o.gives(124).out.contains("rest"), "{o:#?}");
    let mut c = Command::new(gasnetrun());
    let mark = new_mark();
    c.args(["-n", "2", "sh", "-c", &script]).env("PROBE_MARK", &mark);
    let job = spawn(c, mark, "a script".into());
    std::thread::sleep(Duration::from_secs(3));
    sys::process::kill(job.pid(), Signal::TERM);
    let o = job.finish();
    assert!(!o.gives(143).out.contains("rest"), "{o:#?}");
    // After a failure it is cut off.
    let script = format!("{probe} all gasnet_exit:5 -; sleep 60; echo rest");
    let o = with(&["-n", "2"], &["sh", "-c", &script]);
    assert!(!o.gives(5).out.contains("rest"), "{o:#?}");
}

/// Exit handlers poll, and wait for threads that do.
#[test]
fn exit_handlers_and_their_threads_poll() {
    let handler = [("PROBE_HANDLER", "1")];
    for (launcher, n) in [(Fork, 1), (Fork, 2), (Run, 1), (Run, 3)] {
        let o = start(launcher, n, &["all", "return:0", "-"], &handler).finish();
        let handled = o.gives(0).never_says("***").out.matches("handled").count();
        assert_eq!(handled, n as usize, "{o:#?}");
    }
}

/// The job gets the code of a handler that ends its rank after a success, and that rank is named.
#[test]
fn a_rank_is_named_that_fails_after_it_has_left_the_job() {
    let handler = [("PROBE_HANDLER", "exits")];
    // Both codes are a success.
    for end in ["return:0", "return:256"] {
        let o = start(Run, 3, &["all", end, "-"], &handler).finish();
        o.gives(7).says("exited with 7 after it had left the job with success");
        assert_eq!(o.err.matches("***").count(), 1, "{o:#?}");
    }
}

/// A thread that an exit handler awaits may fail: the job fails then, and does not hang.
#[test]
fn a_thread_may_fail_that_an_exit_handler_awaits() {
    for (launcher, n) in [(Fork, 1), (Fork, 2), (Run, 1), (Run, 3)] {
        let o = start(launcher, n, &["all", "return:0", "-"], &[("PROBE_HANDLER", "fails")]);
        o.finish().gives(5).never_says("killed");
    }
}

/// A handler that awaits a thread which polls is cut off after GASNET_EXITTIMEOUT, and the process
/// ends as it has decided.
#[test]
fn exit_handlers_have_a_limit() {
    let handler = [("PROBE_HANDLER", "late"), ("GASNET_EXITTIMEOUT", "0.3")];
    for (launcher, n) in [(Fork, 2), (Run, 2)] {
        let o = start(launcher, n, &["all", "return:0", "-"], &handler).finish();
        assert_eq!(o.gives(0).says("exit handlers").out.matches("handled").count(), 0, "{o:#?}");
    }
}

/// Signals that the program has blocked do not keep output from being flushed.
#[test]
fn pending_signals_cost_no_output() {
    // A failure of one rank may end the other before it prints.
    for (launcher, n, code) in [(Fork, 1, 0), (Fork, 1, 3), (Run, 1, 3), (Fork, 2, 0), (Run, 2, 0)]
    {
        let o = run(launcher, n, &["all", &format!("long_pending:{code}"), "-"]);
        // The lines of two ranks mix.
        let bytes = o.gives(code).out.matches(' ').count();
        assert!(bytes >= n as usize * 67_999, "{launcher:?} {n} {code}: {bytes}");
    }
}

/// Output that its reader takes late is there if nothing waits for the process, and else missed.
#[test]
fn no_output_is_lost_unnoticed() {
    let piped = |job: &str, seconds: u32| {
        let reader = format!("(sleep {seconds}; wc -c)");
        let pipe = format!("{job} all long:0 - | {reader}; exit ${{PIPESTATUS[0]}}");
        Command::new("bash").args(["-c", &pipe]).output().expect("a shell")
    };
    let probe = probe().display().to_string();
    let o = piped(&probe, 4);
    let bytes: usize = String::from_utf8_lossy(&o.stdout).trim().parse().unwrap();
    assert!(o.status.success() && bytes > 68_000 && o.stderr.is_empty(), "{o:?}");
    let o = piped(&format!("{} -n 2 {probe}", gasnetrun().display()), 12);
    let said = String::from_utf8_lossy(&o.stderr);
    assert!(o.status.code() == Some(1) && said.contains("output is lost"), "{o:?}");
}

/// Output that passes through gasnetrun waits for a reader that takes nothing until the user wants
/// no more.
#[test]
fn a_reader_that_takes_nothing_keeps_no_job() {
    let job = format!("{} -n 2 --prefix {}", gasnetrun().display(), probe().display());
    // Both codes are a success.
    let jobs = ["long:0", "long:256"].map(|end| {
        let script = format!(
            "{{ {job} all {end} - & sleep 2; kill $!; wait $!; echo code $? >&2; }} | sleep 8"
        );
        let bash = move || Command::new("bash").args(["-c", &script]).output().expect("a shell");
        std::thread::spawn(bash)
    });
    for o in jobs.map(|job| job.join().unwrap()) {
        let said = String::from_utf8_lossy(&o.stderr);
        assert!(
            said.contains("output of the ranks is lost") && said.contains("code 1\n"),
            "{o:?}"
        );
    }
    // One that has ended wants no more.
    let script = format!("{job} all long:0 - | head -c 9; exit ${{PIPESTATUS[0]}}");
    let o = Command::new("bash").args(["-c", &script]).output().expect("a shell");
    assert!(o.stdout.len() == 9 && !String::from_utf8_lossy(&o.stderr).contains("lost"), "{o:?}");
}

#[test]
fn programs_that_cannot_be_run() {
    let dir = std::env::temp_dir().join(format!("gasnet-ends-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let plain = dir.join("plain");
    std::fs::write(&plain, "no program\n").unwrap();
    let plain = plain.display().to_string();
    let below = format!("{plain}/below");
    let of_dir = dir.display().to_string();
    for (program, code) in [
        ("/no/such/program", 127),
        ("no_such_program", 127),
        (below.as_str(), 127),
        (plain.as_str(), 126),
        (of_dir.as_str(), 126),
    ] {
        with(&["-n", "2"], &[program]).gives(code).says("cannot be run");
    }
    let mark = new_mark();
    let mut c = Command::new(gasnetrun());
    c.args(["-n", "2", "-spawner=mpi", "prog"]).env("MPIRUN_CMD", "no_such_launcher %C");
    spawn(c, mark, "no launcher".into()).finish().gives(127).says("cannot be run");
    std::fs::remove_dir_all(&dir).unwrap();
}
