//! Jobs of which one process is killed (SIGKILL) during traffic, at any time or at a named
//! point of a delivery. The rest of the job ends soon, with a non-zero code and a message that
//! names the rank. This holds also when a process had forked a child that lives on.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::sample::SampleRandom;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, program};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// All ranks send, put and get forever; with the argument `fork`, each has forked a child that
/// sleeps. Prints a line per rank when the traffic runs. Another argument names the one rank to
/// which GASNET_TEST_PAUSE applies.
const TRAFFIC: &str = "#include <gasnet.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    #include <string.h>\n#include <unistd.h>\n\
    static volatile int pongs;\n\
    static void ping(gasnet_token_t t, void *b, size_t n) { gasnet_AMReplyMedium0(t, 202, b, n); }\n\
    static void pong(gasnet_token_t t, void *b, size_t n) { (void)t; (void)b; (void)n; pongs = pongs + 1; }\n\
    int main(int argc, char **argv) {\n\
    \x20   gasnet_handlerentry_t h[] = {{201, ping}, {202, pong}};\n\
    \x20   static char data[4096];\n\
    \x20   gasnet_seginfo_t seg[64];\n\
    \x20   unsigned me, n, i;\n\
    \x20   if (gasnet_init(&argc, &argv)) return 1;\n\
    \x20   me = gasnet_mynode(); n = gasnet_nodes();\n\
    \x20   if (argc > 2 && (unsigned)atoi(argv[2]) != me) unsetenv(\"GASNET_TEST_PAUSE\");\n\
    \x20   if (gasnet_attach(h, 2, 1 << 20, 0)) return 1;\n\
    \x20   gasnet_getSegmentInfo(seg, 64);\n\
    \x20   if (argc > 1 && !strcmp(argv[1], \"fork\") && fork() == 0) { execlp(\"sleep\", \"sleep\", \"20\", (char *)NULL); _exit(1); }\n\
    \x20   gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   printf(\"rank %u is process %d\\n\", me, (int)getpid()); fflush(stdout);\n\
    \x20   for (i = 0;; i++) {\n\
    \x20       unsigned to = (me + 1 + i % (n - 1)) % n;\n\
    \x20       int before = pongs;\n\
    \x20       gasnet_put(to, (char *)seg[to].addr + 4096 * me, data, sizeof data);\n\
    \x20       gasnet_get(data, to, seg[to].addr, 64);\n\
    \x20       gasnet_AMRequestMedium0(to, 201, data, 500);\n\
    \x20       GASNET_BLOCKUNTIL(pongs > before);\n\
    \x20   }\n\
    }\n";
const NODES: u32 = 3;

/// The points of a delivery (`fault::point` of portals3) that the traffic passes, and the pass
/// at which it ends there. The pass is late enough for the traffic to run, since the set-up
/// passes the last two as well.
const POINTS: &[(&str, u32)] = &[
    ("put.matched", 500),
    ("put.held", 500),
    ("put.claimed", 500),
    ("put.copied", 500),
    ("event.reserved", 500),
    ("event.published", 500),
    ("put.ended", 500),
    ("put.unlinked", 1),
    ("put.sent", 500),
    ("put.cleared", 500),
    ("get.claimed", 100),
    ("doorbell.changed", 5),
    ("list.odd", 16),
    ("unlink.closing", 100),
];

/// Points passed only where events report completions.
const WITH_EVENTS: &[&str] = &["put.sent", "get.claimed", "unlink.closing"];

/// Points of a delivery, with living children; and over the ordinary library. The sample meets
/// each point once.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let mut random = SampleRandom::new(seed, "kills");
    let mut all = Vec::new();
    for &(point, passage) in POINTS {
        let taken = random.below(2) == 1 && !WITH_EVENTS.contains(&point);
        for at_once in
            [false, true].into_iter().take(1 + usize::from(!WITH_EVENTS.contains(&point)))
        {
            let path = if at_once { "portals" } else { "events" };
            let name = format!("kill::point::{point}::{path}");
            all.push(TestCase::new(name, at_once == taken, move || {
                killed_at(point, passage, at_once)
            }));
        }
    }
    for &(point, passage) in REGISTERED {
        let name = format!("kill::registered::{point}");
        all.push(TestCase::new(name, true, move || killed_while_registering(point, passage)));
    }
    all.extend(over(&TestLibrary::of(build_trees::build()), ""));
    all
}

/// As `POINTS`, of deliveries to registered memory, and of the ends of registrations.
const REGISTERED: &[(&str, u32)] = &[
    ("put.held", 300),
    ("put.claimed", 300),
    ("put.copied", 300),
    ("get.claimed", 100),
    ("list.odd", 100),
    ("unlink.closing", 100),
];

/// One rank of testfirehose ends at a point; no other waits for it.
fn killed_while_registering(point: &str, passage: u32) -> Result<(), Failure> {
    const VICTIM: u32 = 1;
    let program = program::named("testfirehose").ok_or("there is no testfirehose")?;
    let compiled = build_trees::compiled(&program.source, ClientMode::EverythingSeq)?;
    let args = ["forever".to_string(), VICTIM.to_string()];
    let job = TestLibrary::of(build_trees::build_faults())
        .job(&compiled, &args, JobLauncher::Gasnetrun, NODES)?
        .env("GASNET_PORTAL_PIN", "1")
        .env("GASNET_PHYSMEM_MAX", "3MB")
        .env("GASNET_TEST_PAUSE", format!("{point}:kill:{passage}"));
    let ended = job.death(printed_pid(VICTIM)).watchdog(Duration::from_secs(60)).run()?;
    soon_over(&ended, JobLauncher::Gasnetrun, VICTIM, false)
}

/// Launchers x paths x victims, and the same with living children.
pub(crate) fn over(library: &TestLibrary, prefix: &str) -> Vec<TestCase> {
    let mut all = Vec::new();
    for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes] {
        for portals in [false, true] {
            for victim in [0, NODES - 1] {
                for children in [false, true] {
                    let name = format!(
                        "{prefix}kill::{}::{}::rank{victim}{}",
                        if portals { "portals" } else { "cross-mapped" },
                        launcher.name(),
                        if children { "::with_children" } else { "" }
                    );
                    let l = library.clone();
                    all.push(TestCase::new(name, true, move || {
                        killed(&l, launcher, portals, victim, children)
                    }));
                }
            }
        }
    }
    all
}

fn killed(
    library: &TestLibrary,
    launcher: JobLauncher,
    portals: bool,
    victim: u32,
    children: bool,
) -> Result<(), Failure> {
    let args: Vec<String> = if children { vec!["fork".to_string()] } else { Vec::new() };
    let mut job = library.job(&traffic()?, &args, launcher, NODES)?;
    if portals {
        job = job.env("GASNET_SUPERNODE_MAXSIZE", "1");
    }
    // The traffic runs once the victim has printed its line; shortly after, it is at full rate.
    let ended = job.kill(printed_pid(victim)).watchdog(Duration::from_secs(30)).run()?;
    soon_over(&ended, launcher, victim, children)
}

fn killed_at(point: &str, passage: u32, at_once: bool) -> Result<(), Failure> {
    const VICTIM: u32 = 1;
    let args = ["fork".to_string(), VICTIM.to_string()];
    let job = TestLibrary::of(build_trees::build_faults())
        .job(&traffic()?, &args, JobLauncher::Gasnetrun, NODES)?
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        .env("GASNET_PORTAL_AT_ONCE", if at_once { "1" } else { "0" })
        // Payloads go through receive buffers, so that one fills up.
        .env("GASNET_PORTAL_OUTBOX_AREAS", "0")
        // Waiting ranks sleep, so that doorbells ring.
        .env("GASNET_WAITMODE", "BLOCK")
        .env("GASNET_TEST_PAUSE", format!("{point}:kill:{passage}"));
    let ended = job.death(printed_pid(VICTIM)).watchdog(Duration::from_secs(60)).run()?;
    soon_over(&ended, JobLauncher::Gasnetrun, VICTIM, true)
}

/// The program that makes the traffic, in SEQ.
fn traffic() -> Result<PathBuf, Failure> {
    build_trees::compiled(&traffic_source()?, ClientMode::Seq)
}

/// The source of the program that makes the traffic.
pub(crate) fn traffic_source() -> Result<PathBuf, Failure> {
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/kill");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let source = dir.join("traffic.c");
    if fs::read_to_string(&source).ok().as_deref() != Some(TRAFFIC) {
        fs::write(&source, TRAFFIC).map_err(|e| format!("{}: {e}", source.display()))?;
    }
    Ok(source)
}

/// The process id of a rank, from its line.
fn printed_pid(rank: u32) -> impl Fn(&str) -> Option<i32> {
    move |output| {
        let line = format!("rank {rank} is process ");
        let at = output.find(&line)? + line.len();
        output[at..].lines().next()?.parse().ok()
    }
}

/// Whether the job ended correctly after this rank was killed.
fn soon_over(
    ended: &JobOutcome,
    launcher: JobLauncher,
    victim: u32,
    children: bool,
) -> Result<(), Failure> {
    let Some(after) = ended.after_kill else {
        return Err(ended.failure("the job ended before a process was killed"));
    };
    if ended.code.is_none_or(|c| c == 0) {
        return Err(ended.failure("the job did not end with an error"));
    }
    launcher
        .soon(NODES, after)
        .map_err(|why| ended.failure(format!("the job lived on for {why}")))?;
    let is_named =
        ["rank", "process"].iter().any(|w| ended.output.contains(&format!("{w} {victim} ")))
            && ended.output.to_lowercase().contains("killed");
    if !is_named {
        return Err(ended.failure(format!("no message says that rank {victim} was killed")));
    }
    let foreign = ended.left.iter().filter(|l| !(children && l.contains("(sleep)"))).count();
    if foreign != 0 {
        return Err(ended.failure(format!("it left behind: {}", ended.left.join(", "))));
    }
    Ok(())
}
