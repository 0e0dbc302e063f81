//! Jobs of many hosts, whose supervisors form a tree. Whatever dies, the job ends with the right
//! code and leaves nothing on any host.
//!
//! Run by cargo. Invariant: no test asserts a time.

mod jobs;

use jobs::{ProbeJob, ProbeOutcome, many_hosts, marked, new_mark, on_hosts, probe, spawn};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use sys::process;
use sys::signal::Signal;

/// Hosts, ranks of each, and the hosts that a host starts: `None` for the default.
const TREES: [(u32, u32, Option<u32>); 4] =
    [(20, 1, None), (40, 1, Some(2)), (40, 1, Some(6)), (6, 2, Some(1))];

/// One host starts all others, more than it may doubt at a time.
const FLAT: (u32, u32, Option<u32>) = (100, 1, Some(0));

fn start((hosts, each, degree): (u32, u32, Option<u32>), args: &[&str]) -> ProbeJob {
    let mark = new_mark();
    let mut c = many_hosts(hosts, each);
    c.arg(probe()).args(args).env("PROBE_MARK", &mark);
    if let Some(degree) = degree {
        c.env("GASNET_SSH_OUT_DEGREE", degree.to_string());
    }
    let mut job = spawn(c, mark, format!("{hosts} hosts by {degree:?} {args:?}"));
    // Supervisors of other hosts learn of the end at the same time as the launcher.
    job.hasty = true;
    job
}

/// A rank that ends before gasnet_init ends the job, wherever it is: others wait for it.
#[test]
fn ranks_that_never_join() {
    let script = r#"[ $GASNET_RANK = $MISSING ] && exit 0; exec "$0" all exchange -"#;
    for degree in ["1", "4"] {
        for missing in 0..4 {
            let mark = new_mark();
            let mut c = many_hosts(4, 1);
            c.args(["sh", "-c", script]).arg(probe()).env("PROBE_MARK", &mark);
            c.env("MISSING", missing.to_string()).env("GASNET_SSH_OUT_DEGREE", degree);
            let mut job = spawn(c, mark, format!("{degree} {missing}"));
            job.hasty = true;
            job.finish().gives(1).says("before gasnet_init, which other ranks have called");
        }
    }
}

/// Ranks that all run on one other host need no others.
#[test]
fn all_ranks_may_run_on_one_other_host() {
    for (n, hosts) in [(1, "h1.invalid"), (3, "h1.invalid:3"), (2, "h1.invalid:4,h2.invalid:4")] {
        let mark = new_mark();
        let mut c = on_hosts(n, hosts);
        c.arg(probe()).args(["all", "exchange", "-"]).env("PROBE_MARK", &mark);
        let mut job = spawn(c, mark, format!("{n} ranks on {hosts}"));
        job.hasty = true;
        job.finish().gives(0).never_says("***");
    }
}

/// The supervisors of other hosts, each with the hosts that it has started.
fn supervisors(job: &ProbeJob) -> Vec<(u32, usize)> {
    let is_shell = |pid: &&u32| process::name_of(**pid) == "setsid";
    let all = marked(&job.mark);
    let remote =
        all.iter().filter(|pid| **pid != job.pid() && process::name_of(**pid) == "gasnetrun");
    let shells: Vec<u32> =
        all.iter().filter(is_shell).filter_map(|pid| process::parent_of(*pid)).collect();
    remote.map(|pid| (*pid, shells.iter().filter(|parent| *parent == pid).count())).collect()
}

#[test]
fn all_hosts_end_with_one_code() {
    for tree in TREES.into_iter().chain([FLAT]) {
        let n = tree.0 * tree.1;
        let o = start(tree, &["all", "return:0", "-"]).finish();
        o.gives(0).never_says("***");
        assert_eq!(o.out.matches(" runs\n").count() as u32, n, "{o:#?}");
        let last = (n - 1).to_string();
        start(tree, &[&last, "gasnet_exit:5", "spin"])
            .finish()
            .gives(5)
            .says(&format!("rank {last} of {n} "))
            .says("called gasnet_exit(5); the job ends");
        start(tree, &["all", "exchange", "-"]).finish().gives(0).never_says("***");
    }
}

#[test]
fn the_death_of_a_rank_ends_all_hosts() {
    for tree in TREES {
        let job = start(tree, &["none", "-", "sleep"]);
        let ranks = job.wait_for_ranks((tree.0 * tree.1) as usize);
        process::kill(ranks[ranks.len() / 2], Signal::KILL);
        job.finish().gives(137).says("was killed by signal 9");
    }
}

/// Which host is lost is printed. Its ranks and those of the hosts below it end too.
#[test]
fn the_death_of_a_supervisor_ends_all_hosts() {
    for tree in TREES {
        for is_inner in [true, false] {
            let job = start(tree, &["none", "-", "sleep"]);
            job.wait_for_ranks((tree.0 * tree.1) as usize);
            let found = supervisors(&job);
            assert_eq!(found.len() as u32, tree.0 - 1);
            let victim = found.iter().find(|(_, starts)| (*starts > 0) == is_inner).unwrap();
            process::kill(victim.0, Signal::KILL);
            job.finish().gives(1).says(".invalid is lost: ");
        }
    }
}

#[test]
fn the_death_of_gasnetrun_ends_all_hosts() {
    for tree in TREES {
        let job = start(tree, &["none", "-", "sleep"]);
        job.wait_for_ranks((tree.0 * tree.1) as usize);
        process::kill(job.pid(), Signal::KILL);
        job.finish().gives(137);
    }
}

/// Also while the job starts.
#[test]
fn a_request_to_end_reaches_all_hosts() {
    for tree in TREES {
        for signal in [Signal::TERM, Signal::INT] {
            let job = start(tree, &["none", "-", "sleep"]);
            if signal == Signal::TERM {
                job.wait_for_ranks((tree.0 * tree.1) as usize);
            }
            process::kill(job.pid(), signal);
            let o = job.finish();
            // INT may come before gasnetrun expects it.
            assert!(signal == Signal::INT || o.code == 143, "{o:#?}");
            assert!(o.left.is_empty(), "{o:#?}");
        }
    }
}

/// A job whose other hosts this command is to start, in the place of ssh.
fn by_command(hosts: u32, command: &str) -> ProbeJob {
    let mark = new_mark();
    let mut c = many_hosts(hosts, 1);
    c.args(["sleep", "60"]).env("PROBE_MARK", &mark).env("GASNET_SSH_CMD", command);
    let mut job = spawn(c, mark, format!("{hosts} hosts by {command}"));
    job.hasty = true;
    job
}

/// The ranks that a success cuts off are reported once, whichever hosts they run on.
#[test]
fn ranks_of_all_hosts_that_are_cut_off_are_one_report() {
    for tree in [(4, 1, Some(1)), (3, 2, None)] {
        let n = tree.0 * tree.1;
        let o = start(tree, &["1", "return:0", "spin"]).finish();
        let named = format!("before the others: the job ends and cuts off ranks 0, 2-{}", n - 1);
        o.gives(0).says("*** rank 1 of ").says(&named);
        for once in ["cuts off", "Call a barrier before the end of main"] {
            assert_eq!(o.err.matches(once).count(), 1, "{o:#?}");
        }
        assert_eq!(o.err.matches("***   rank ").count() as u32, n - 1, "{o:#?}");
    }
}

/// A job of two hosts. On the second one this part of a shell script stands for a login.
fn with_login(login: &str, words: &[&str]) -> ProbeOutcome {
    let mark = new_mark();
    let folder = std::env::temp_dir().join(format!("gasnet-login-{mark}"));
    let below = folder.join("below");
    fs::create_dir_all(&below).unwrap();
    let enter = folder.join("enter");
    let text =
        format!("#!/bin/sh\n{login}\nfor last; do :; done\nexec setsid -w sh -c \"$last\"\n");
    fs::write(&enter, text).unwrap();
    fs::set_permissions(&enter, fs::Permissions::from_mode(0o755)).unwrap();
    let mut c = many_hosts(2, 1);
    c.args(words).env("PROBE_MARK", &mark).env("GASNET_SSH_CMD", &enter);
    c.env("HOSTNAME", "first").current_dir(&below).env("PWD", &below);
    let mut job = spawn(c, mark, login.to_string());
    job.hasty = true;
    let o = job.finish();
    let _ = fs::remove_dir_all(&folder);
    o
}

/// A host that fails after it has connected says why; that it has hung up is no news.
#[test]
fn a_host_without_the_folder_says_so_alone() {
    let o = with_login("rm -r ../below", &["sleep", "60"]);
    o.gives(1).says("has no folder ").never_says("is lost");
    let is_first = |l: &&str| l.starts_with("*** ") && !l.starts_with("***   ");
    assert_eq!(o.err.lines().filter(is_first).count(), 1, "{o:#?}");
}

/// What a login sets is not what the user of gasnetrun has set, but for the names of its host.
#[test]
fn the_environment_is_that_of_gasnetrun() {
    let login = "export GASNET_BARRIER=AMDISSEM OF_LOGIN=1 HOSTNAME=second";
    let script = "echo rank $GASNET_RANK: $GASNET_BARRIER $OF_LOGIN $HOSTNAME";
    let o = with_login(login, &["sh", "-c", script]);
    o.gives(0).says("rank 0: first\n").says("rank 1: second\n");
}

/// Hosts that cannot be reached: the first is reported with a remedy, the others together.
#[test]
fn hosts_that_do_not_start_are_reported_together() {
    let o = by_command(6, "false").finish();
    o.gives(1).says("did not start its ranks (exit status: 1)").says("*** nor did h");
    assert_eq!(o.err.matches("gasnetrun must be installed there").count(), 1, "{o:#?}");
    assert_eq!(o.err.lines().count(), 3, "{o:#?}");
    for host in 1..6 {
        o.says(&format!("h{host}.invalid"));
    }
}

/// The job ends before a host has connected. Its shell hangs, and so does a child of that.
#[test]
fn a_shell_that_hangs_ends_with_the_job() {
    let job = by_command(2, "timeout 60 tail -f /dev/null");
    let hangs = || marked(&job.mark).into_iter().any(|pid| process::name_of(pid) == "tail");
    let until = Instant::now() + Duration::from_secs(60);
    while !hangs() {
        assert!(Instant::now() < until, "nothing hangs");
        std::thread::sleep(Duration::from_millis(5));
    }
    process::kill(job.pid(), Signal::TERM);
    job.finish().gives(143).never_says("GASNET_SPAWN_TIMEOUT").never_says("is left behind");
}
