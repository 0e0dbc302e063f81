//! The memory of segments. `testsegment touch` must detect the pages that it touches itself, or
//! its passes in the matrix would prove nothing. A write to an unavailable page ends the job
//! with lines that name the rank, the limit and the remedy. Under the limits of a shell
//! (`ulimit`), the largest segment still fits, or a line that names the limit rejects the job.
//! Segments of ranks that have no free range of addresses in common: `testaddresses apart`.

use crate::build_trees::{self, ClientMode};
use crate::case_end;
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::program::{self, TestProgram};
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::path::Path;
use std::time::Duration;

/// 128 + SIGBUS.
const BUS: i32 = 135;

#[derive(Clone, Copy)]
struct CaseSetting {
    mode: ClientMode,
    portals: bool,
    launcher: JobLauncher,
    nodes: u32,
}

/// One entry per case and setting; the sample takes each case once per path, and the job of one
/// rank.
pub fn cases() -> Vec<TestCase> {
    let Some(program) = program::named("testsegment") else { return Vec::new() };
    let mut all = Vec::new();
    for mode in [ClientMode::Seq, ClientMode::Par] {
        for portals in [false, true] {
            for (launcher, nodes) in [
                (JobLauncher::Alone, 1),
                (JobLauncher::Gasnetrun, 2),
                (JobLauncher::PshmNodes, 2),
                (JobLauncher::Gasnetrun, 4),
            ] {
                let s = CaseSetting { mode, portals, launcher, nodes };
                let sampled = mode == ClientMode::Seq && nodes <= 2 && (nodes == 2 || !portals);
                let path = if portals { "portals" } else { "cross-mapped" };
                let place = format!("{}::{path}::{}::n{nodes}", mode.name(), launcher.name());
                let mut add =
                    |case: &str, run: fn(&TestProgram, CaseSetting) -> Result<(), Failure>| {
                        let p = program.clone();
                        all.push(TestCase::new(
                            format!("testsegment::{case}::{place}"),
                            sampled,
                            move || run(&p, s),
                        ));
                    };
                add("touch", touch);
                add("huge", huge);
                add("lack_own", |p, s| lack(p, s, "own"));
                add("lack_peer", |p, s| lack(p, s, "peer"));
            }
        }
    }
    for (launcher, nodes) in [(JobLauncher::Gasnetrun, 2), (JobLauncher::PshmNodes, 4)] {
        for portals in [false, true] {
            let s = CaseSetting { mode: ClientMode::Seq, portals, launcher, nodes };
            let path = if portals { "portals" } else { "cross-mapped" };
            let name = format!("testaddresses::apart::{path}::{}::n{nodes}", launcher.name());
            all.push(TestCase::new(name, true, move || apart(s)));
        }
    }
    for (launcher, nodes) in
        [(JobLauncher::Alone, 1), (JobLauncher::Gasnetrun, 2), (JobLauncher::PshmNodes, 3)]
    {
        let place = format!("{}::n{nodes}", launcher.name());
        all.push(TestCase::new(format!("ulimit::address_space::{place}"), true, move || {
            let ended = limited("ulimit -v 2000000", launcher, nodes)?;
            if ended.code == Some(0) && ended.says("testhello: PASS") {
                return Ok(());
            }
            Err(ended
                .failure("the largest segment does not fit into the address space that is left"))
        }));
        all.push(TestCase::new(format!("ulimit::file_size::{place}"), true, move || {
            let ended = limited("ulimit -f 100", launcher, nodes)?;
            if ended.code == Some(1)
                && ended.output.lines().any(|l| l.starts_with("***") && l.contains("ulimit -f"))
            {
                return Ok(());
            }
            Err(ended.failure("it was not refused by a line that names ulimit -f"))
        }));
    }
    all
}

/// `testhello -m`, which attaches the largest segment, in a shell that has set `limit`.
fn limited(limit: &str, launcher: JobLauncher, nodes: u32) -> Result<JobOutcome, Failure> {
    let hello = program::named("testhello").ok_or("there is no testhello")?;
    let compiled = build_trees::compiled(&hello.source, ClientMode::Par)?;
    let args = ["-c".to_string(), format!("{limit}; exec {} -m", compiled.display())];
    let ended = TestJob::new(&build_trees::build(), Path::new("/bin/sh"), &args, launcher, nodes)
        .watchdog(Duration::from_secs(60))
        .run()?;
    ended.tidy()?;
    Ok(ended)
}

fn run(program: &TestProgram, s: CaseSetting, args: &[&str]) -> Result<JobOutcome, Failure> {
    run_with(program, s, args, &[])
}

fn run_with(
    program: &TestProgram,
    s: CaseSetting,
    args: &[&str],
    env: &[(&str, &str)],
) -> Result<JobOutcome, Failure> {
    let compiled = build_trees::compiled(&program.source, s.mode)?;
    let args: Vec<String> = args.iter().map(|a| a.to_string()).collect();
    let mut job = TestJob::new(&build_trees::build(), &compiled, &args, s.launcher, s.nodes)
        .watchdog(Duration::from_secs(60));
    if s.portals {
        job = job.env("GASNET_SUPERNODE_MAXSIZE", "1");
    }
    for (name, value) in env {
        job = job.env(name, value);
    }
    let ended = job.run()?;
    ended.tidy()?;
    Ok(ended)
}

/// Where no range of addresses is free in all ranks, segments have different addresses, and
/// GASNET_VERBOSEENV says so. Each rank can reserve addresses on x86-64 only.
fn apart(s: CaseSetting) -> Result<(), Failure> {
    if !cfg!(target_arch = "x86_64") {
        return case_end::skip("only on x86-64 can each rank reserve addresses");
    }
    let program = program::named("testaddresses").ok_or("there is no testaddresses")?;
    let ended = run_with(&program, s, &["apart"], &[("GASNET_VERBOSEENV", "1")])?;
    let message = "gasnet_attach(): the segments have different addresses in different ranks";
    if ended.code != Some(0) || !ended.output.contains(message) {
        return Err(ended.failure(format!("it should pass and say {message:?}")));
    }
    Ok(())
}

/// Both measurements must see the 8 MiB.
fn touch(program: &TestProgram, s: CaseSetting) -> Result<(), Failure> {
    let ended = run(program, s, &["touch"])?;
    if ended.code != Some(1) || !ended.says("testsegment: FAIL") {
        return Err(ended.failure("it did not fail, though it touched pages"));
    }
    for message in ["rank 0: RssShmem grew", "rank 0: the memory file of the segments has"] {
        if !ended.output.contains(message) {
            return Err(ended.failure(format!("it does not say {message:?}")));
        }
    }
    Ok(())
}

/// A rank gets huge pages by default where the kernel gives them on request, and none if the
/// library must not request them.
fn huge(program: &TestProgram, s: CaseSetting) -> Result<(), Failure> {
    let kernel = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
        .unwrap_or_default();
    let gives = !kernel.is_empty() && !kernel.contains("[never]") && !kernel.contains("[deny]");
    let always = ["[always]", "[within_size]", "[force]"].iter().any(|w| kernel.contains(w));
    for (value, asks) in [("1", true), ("0", false)] {
        let ended = run_with(program, s, &["huge"], &[("GASNET_USE_HUGEPAGES", value)])?;
        let printed =
            ended.output.lines().filter_map(|l| l.strip_prefix("testsegment: huge pages: "));
        let printed: Vec<bool> = printed.map(|l| l != "0 kB").collect();
        let expected = always || asks && kernel.contains("[advise]");
        if ended.code != Some(0)
            || printed.len() != s.nodes as usize
            || printed.iter().any(|&huge| huge != expected)
        {
            return Err(ended.failure(format!(
                "with GASNET_USE_HUGEPAGES={value}, where the kernel says {kernel:?}, huge pages should be {expected}"
            )));
        }
    }
    if gives { Ok(()) } else { case_end::skip("the kernel gives shared memory no huge pages") }
}

fn lack(program: &TestProgram, s: CaseSetting, whose: &str) -> Result<(), Failure> {
    let ended = run(program, s, &["lack", whose])?;
    if ended.code != Some(BUS) {
        return Err(ended.failure(format!("expected {BUS}")));
    }
    let toucher = if whose == "own" { s.nodes - 1 } else { 0 };
    let Some(limit) = page_limit(&ended.output, toucher) else {
        return Err(ended.failure("no lines name the rank, the limit and the variable to change"));
    };
    if limit == 0 || limit > physical() {
        return Err(ended.failure(format!("the machine does not have {limit} bytes")));
    }
    Ok(())
}

/// The bytes that the library names in its message about a page that this rank has touched.
fn page_limit(output: &str, rank: u32) -> Option<u64> {
    let crash = format!("*** Caught a fatal signal: SIGBUS(7) on rank {rank}/");
    let mut lines = output.lines().skip_while(|l| !l.starts_with(crash.as_str())).skip(1);
    let begin = "***   No memory for a page of a segment: ";
    let (limits, remedy) = lines.next()?.strip_prefix(begin)?.split_once(". ")?;
    remedy.contains("GASNET_MAX_SEGSIZE").then(|| bytes(limits.rsplit_once(" at most ")?.1))?
}

/// The number in `25 bytes`, `64MB` or `1.50GB (1610612737 bytes)`.
fn bytes(text: &str) -> Option<u64> {
    let exact = text.rsplit_once('(').map_or(text, |(_, exact)| exact.trim_end_matches(')'));
    let digits = exact.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = exact.split_at(digits);
    let units = [(" bytes", 0), ("KB", 10), ("MB", 20), ("GB", 30), ("TB", 40)];
    let (_, shift) = units.into_iter().find(|(name, _)| *name == unit)?;
    Some(number.parse::<u64>().ok()? << shift)
}

/// Bytes of memory of this machine.
fn physical() -> u64 {
    sys::memory::limits().physical
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line() {
        let lines = "x\n*** Caught a fatal signal: SIGBUS(7) on rank 1/2\n***   No memory for \
                     a page of a segment: all have at most 25 bytes. Use GASNET_MAX_SEGSIZE.\n";
        assert_eq!(page_limit(lines, 1), Some(25));
        assert_eq!(page_limit(lines, 0), None);
        assert_eq!(bytes("64MB"), Some(64 << 20));
        assert_eq!(bytes("1.50GB (1610612737 bytes)"), Some(1610612737));
    }
}
