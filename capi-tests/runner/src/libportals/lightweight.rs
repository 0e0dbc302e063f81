//! The library for lightweight kernels, such as Catamount of the Cray XT3. Tested are the
//! outside names of its archive, and static programs over it, libcnos and libportals3. A filter
//! of system calls allows what the functions of these names need
//! (`capi-tests/underlightweight.c`).
//!
//! Invariant: the list refuses the archive of a whole library, the filter a program over it.

use super::static_programs::runs;
use crate::build_trees::{self, ClientMode, StartFunctions};
use crate::job_launcher::JobLauncher;
use crate::program;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, exits};
use std::path::Path;
use std::process::Command;

/// Programs that a short run takes, each with one number of ranks.
const OFTEN: &[&str] = &["testsmall", "testam", "testcore1", "testbarrier"];
/// Ends that a short run takes.
const ENDS: &[u32] = &[1, 7, 100, 121];

fn library() -> TestLibrary {
    TestLibrary::of(build_trees::build_lightweight())
        .in_static_programs(StartFunctions::Cnos)
        .under_lightweight()
}

pub(super) fn cases(seed: u64) -> Vec<TestCase> {
    let mut all = runs(&library(), "lightweight::", OFTEN, seed);
    all.extend(exits::over_ptlrun(&library(), "lightweight::", ENDS));
    // A lightweight kernel has no threads, no timer (case 122) and no children (case 123).
    all.retain(|case| case.name.contains("::seq::"));
    all.retain(|case| !["case122", "case123"].iter().any(|row| case.name.ends_with(row)));
    // It maps no memory for the program (testpieces), and the filter has no `dup2` (testtuning).
    all.retain(|case| !["::testpieces::", "::testtuning::"].iter().any(|p| case.name.contains(p)));
    let mut add = |name: &str, run: fn() -> Result<(), Failure>| {
        all.push(TestCase::new(format!("lightweight::{name}"), true, run));
    };
    add("outside_names", outside_names);
    add("the_filter_refuses_the_whole_library", the_filter_refuses_the_whole_library);
    add("what_is_left_out_is_refused", what_is_left_out_is_refused);
    add("segments_of_unknown_memory", segments_of_unknown_memory);
    if !build_trees::has_static_libc() {
        all.iter_mut()
            .for_each(|case| case.missing = Some("libc.a (Debian package libc6-dev)".into()));
    }
    all
}

/// The C library of Catamount cannot say how much memory there is. This program has a function of
/// the C library that says so.
fn segments_of_unknown_memory() -> Result<(), Failure> {
    const UNKNOWN: &str = "\
#include <gasnet.h>
#include <stdio.h>
#include <unistd.h>
long __sysconf(int name);
long sysconf(int name) { return name == _SC_PHYS_PAGES ? -1 : __sysconf(name); }
int main(int argc, char **argv) {
    if (gasnet_init(&argc, &argv)) return 99;
    printf(\"at most %lu MB\\n\", (unsigned long)gasnet_getMaxGlobalSegmentSize() >> 20);
    if (gasnet_attach(0, 0, 8 << 20, 0)) return 98;
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    return 0;
}
";
    let binary =
        library().compiled(&super::write("unknown-memory.c", UNKNOWN)?, ClientMode::Seq)?;
    for (bound, says) in
        [("", "at most 100 MB"), ("300MB", "at most 300 MB"), ("0.5", "at most 100 MB")]
    {
        let job = library().job(&binary, &[], JobLauncher::Ptlrun, 2)?;
        let ended = if bound.is_empty() { job } else { job.env("GASNET_MAX_SEGSIZE", bound) };
        let ended = ended.run()?;
        ended.tidy()?;
        if ended.code != Some(0) || !ended.says(says) {
            return Err(ended.failure(format!("GASNET_MAX_SEGSIZE={bound}: expected {says:?}")));
        }
    }
    Ok(())
}

/// What the list of the Cray XT3 says of an archive.
fn listed(tree: &Path) -> Result<(bool, String), Failure> {
    let mut names = Command::new(build_trees::root().join("ci/cross/names.sh"));
    let out = names.arg("crayxt-catamount").arg(tree.join("lib/libgasnet.a")).output();
    let out = out.map_err(|e| format!("ci/cross/names.sh: {e}"))?;
    Ok((out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned()))
}

/// The archive needs no name but those of the list; that of the whole library does.
fn outside_names() -> Result<(), Failure> {
    let (is_listed, more) = listed(&build_trees::build_lightweight())?;
    if !is_listed {
        return Err(more);
    }
    let (is_listed, more) = listed(&build_trees::build_libportals())?;
    const MISSING: [&str; 6] = ["socket", "fork", "mmap", "dlopen", "execv", "syscall"];
    match MISSING.iter().find(|name| !more.contains(&format!("it needs {name} "))) {
        None if !is_listed => Ok(()),
        name => Err(format!("the whole library would be accepted: {name:?} {more}")),
    }
}

/// A program over the whole library needs what the filter refuses.
fn the_filter_refuses_the_whole_library() -> Result<(), Failure> {
    let library =
        TestLibrary::of(build_trees::build_libportals()).in_static_programs(StartFunctions::Cnos);
    let hello = program::named("testhello").ok_or("testhello.c is missing")?;
    let binary = library.compiled(&hello.source, ClientMode::Seq)?;
    let ended = library.under_lightweight().job(&binary, &[], JobLauncher::Ptlrun, 2)?.run()?;
    ended.tidy()?;
    match ended.code {
        Some(0) => Err(ended.failure("it runs on a lightweight kernel")),
        _ => Ok(()),
    }
}

/// Threads, forked ranks, and launchers of other systems.
fn what_is_left_out_is_refused() -> Result<(), Failure> {
    let hello = program::named("testhello").ok_or("testhello.c is missing")?;
    let cases = [
        (ClientMode::Par, "GASNET_QUIET", "1", "a system without threads"),
        (ClientMode::Seq, "GASNET_PSHM_NODES", "2", "a system that forks no processes"),
        (ClientMode::Seq, "GASNET_SPAWN_CONTROL", "FORK", "this libgasnet is built without"),
    ];
    for (mode, variable, value, line) in cases {
        let binary = library().compiled(&hello.source, mode)?;
        let job = library().job(&binary, &[], JobLauncher::Ptlrun, 1)?;
        super::fails(&job.env(variable, value).run()?, &[line])?;
    }
    Ok(())
}
