//! Systems that start jobs by functions of the program: CNOS (libcnos over ptlrun), PMI as a
//! library (`capi-tests/contrary/pmi.c`). What they may say wrong, and what a user may demand.

use super::{fails, network, passes, place, write};
use crate::build_trees::{self, ClientMode, compiler, succeed};
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, program};
use std::path::{Path, PathBuf};

pub(super) fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    let mut add = |name: &str, run: fn() -> Result<(), Failure>| {
        all.push(TestCase::new(format!("libportals::{name}"), true, run));
    };
    add("pmi_functions_start_jobs", pmi_functions_start_jobs);
    add("a_shared_libcnos_starts_jobs", a_shared_libcnos_starts_jobs);
    add("a_program_that_a_rank_starts_is_alone", a_program_that_a_rank_starts_is_alone);
    add("systems_that_are_missing_are_named", systems_that_are_missing_are_named);
    all
}

/// A program, linked with the shared libraries of the tree and with these.
fn linked_with(source: &Path, more: &[&str], name: &str) -> Result<PathBuf, Failure> {
    let tree = build_trees::build_libportals();
    let binary = place()?.join(name);
    let mut cc = compiler();
    cc.args(["-std=gnu99", "-O2"]).args(ClientMode::Seq.defines()).arg("-I");
    cc.arg(tree.join("include")).arg("-I").arg(tree.join("portals/include"));
    cc.arg("-I").arg(build_trees::root().join("capi-tests")).arg(source).arg("-o").arg(&binary);
    for lib in [tree.join("lib"), tree.join("portals/lib")] {
        cc.arg(format!("-L{}", lib.display())).arg(format!("-Wl,-rpath,{}", lib.display()));
    }
    cc.arg("-lgasnet").args(more).args(["-lpthread", "-lm"]);
    succeed(cc)?;
    Ok(binary)
}

/// What cnos.pc says.
fn cnos() -> Result<Vec<String>, Failure> {
    let mut pkg_config = std::process::Command::new("pkg-config");
    pkg_config.args(["--libs", "cnos"]);
    let place = build_trees::build_libportals().join("portals/lib/pkgconfig");
    Ok(succeed(pkg_config_path(pkg_config, &place))?
        .split_whitespace()
        .map(String::from)
        .collect())
}

fn pkg_config_path(mut command: std::process::Command, place: &Path) -> std::process::Command {
    command.env("PKG_CONFIG_PATH", place);
    command
}

fn hello() -> Result<PathBuf, Failure> {
    Ok(program::named("testhello").ok_or("testhello.c is missing")?.source)
}

fn library() -> TestLibrary {
    network("libportals")
}

/// The PMI-only path: rank, size, barrier and key-value space of PMI, no CNOS.
fn pmi_functions_start_jobs() -> Result<(), Failure> {
    let pmi = build_trees::root().join("capi-tests/contrary/pmi.c").display().to_string();
    let binary = linked_with(&hello()?, &[&pmi], "hello-pmi")?;
    let job = |nodes: u32| -> Result<TestJob, Failure> {
        let space = place()?.join("pmi-space");
        let _ = std::fs::remove_dir_all(&space);
        Ok(library()
            .job(&binary, &[], JobLauncher::Ptlrun, nodes)?
            .env("PMI_DIR", space.display().to_string()))
    };
    for (nodes, control) in [(1, None), (2, None), (5, None), (3, Some("PMI"))] {
        let job = job(nodes)?;
        let job = control.iter().fold(job, |job, c| job.env("GASNET_SPAWN_CONTROL", c));
        let ended = job.run()?;
        passes(&ended, "testhello")?;
        if ended.output.matches("PMI_Finalize").count() != nodes as usize {
            return Err(ended.failure("PMI is not finalised once by each rank"));
        }
    }
    for (fault, says) in [
        ("PMI_Init", "PMI does not say which rank this is: PMI_Init returned 1"),
        ("PMI_KVS_Put", "PMI_KVS_Put returned 1"),
        ("PMI_Barrier", "PMI_Barrier returned 1"),
        ("address", "PMI_KVS_Get: the address of rank 0 is \"nowhere\""),
    ] {
        fails(&job(2)?.env("PMI_FAULT", fault).run()?, &[says])?;
    }
    Ok(())
}

/// A dynamic program finds CNOS under ptlrun; under our launchers it is no part of the start.
fn a_shared_libcnos_starts_jobs() -> Result<(), Failure> {
    let more = cnos()?;
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let binary = linked_with(&hello()?, &more, "hello-cnos")?;
    for (launcher, nodes) in
        [(JobLauncher::Ptlrun, 3), (JobLauncher::Gasnetrun, 2), (JobLauncher::PshmNodes, 2)]
    {
        let ended = library().job(&binary, &[], launcher, nodes)?.run()?;
        passes(&ended, "testhello")?;
        if !ended.says(&format!("Hello from rank {} of {nodes}", nodes - 1)) {
            return Err(ended.failure(format!("it is no job of {nodes} ranks")));
        }
    }
    let alone = library().job(&binary, &[], JobLauncher::Alone, 1)?;
    passes(&alone.env("GASNET_SPAWN_CONTROL", "CNOS").run()?, "testhello")?;
    let emulation = network("emulation").job(&binary, &[], JobLauncher::Alone, 1)?;
    passes(&emulation.run()?, "testhello")
}

/// It inherits the variables of ptlrun, but no descriptor.
fn a_program_that_a_rank_starts_is_alone() -> Result<(), Failure> {
    const STARTS: &str = "\
#include <gasnet.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    if (gasnet_init(&argc, &argv) || gasnet_attach(0, 0, 0, 0)) return 99;
    int code = gasnet_mynode() == 1 ? system(argv[1]) : 0;
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    return code != 0;
}
";
    let more = cnos()?;
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let hello = linked_with(&hello()?, &more, "hello-started")?;
    let starter = linked_with(&write("starts.c", STARTS)?, &more, "starts")?;
    let args = [hello.display().to_string()];
    let ended = library().job(&starter, &args, JobLauncher::Ptlrun, 2)?.run()?;
    passes(&ended, "testhello")?;
    if ended.says("Hello from rank 0 of 1") {
        return Ok(());
    }
    Err(ended.failure("the program that a rank started is no job of one"))
}

fn systems_that_are_missing_are_named() -> Result<(), Failure> {
    let plain = build_trees::compiled(&hello()?, ClientMode::Seq)?;
    let demanded = |library: TestLibrary, binary: &Path| -> Result<TestJob, Failure> {
        let job = library.job(binary, &[], JobLauncher::Alone, 1)?;
        Ok(job.env("GASNET_SPAWN_CONTROL", "CNOS"))
    };
    let line = "GASNET_SPAWN_CONTROL=CNOS, but the program has no cnos_get_rank";
    fails(&demanded(library(), &plain)?.run()?, &[line])?;
    let more = cnos()?;
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let cnos = linked_with(&hello()?, &more, "hello-demanded")?;
    fails(&demanded(network("emulation"), &cnos)?.run()?, &[line, "unset GASNET_NETWORK"])?;
    // ptlrun without libcnos: each process is a rank of ptlrun's job, and does not know it.
    let ended = library().job(&plain, &[], JobLauncher::Ptlrun, 2)?.run()?;
    fails(&ended, &["link the program with libcnos"])
}
