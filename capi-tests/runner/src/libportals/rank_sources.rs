//! The sources of the ranks' addresses, if the ranks need not exchange them. They are the
//! system of an XT-class machine (`capi-tests/contrary/system.c` has its functions), or the
//! rank map of a launcher. A source that contradicts PtlGetId is rejected.

use super::{EVERY_HABIT, fails, hello, include, network, passes, place, with_habits, write};
use crate::build_trees::{self, ClientMode, compiler, succeed};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::test_job::TestJob;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, program};
use std::path::{Path, PathBuf};

/// Cases of the build with both networks.
pub(super) fn cases() -> Vec<TestCase> {
    vec![
        TestCase::new("libportals::addresses_from_the_system".into(), true, || {
            from_the_system(
                &network("libportals"),
                &build_trees::build_libportals(),
                AddressRange::Low,
            )
        }),
        TestCase::new("libportals::addresses_from_a_rank_map".into(), true, || {
            from_a_rank_map(&network("libportals"))
        }),
    ]
}

/// Cases of the build over libportals-contrary, whose addresses are the highest possible.
pub(super) fn cases_of_contrary() -> Vec<TestCase> {
    vec![
        TestCase::new("contrary::addresses_from_the_system".into(), true, || {
            from_the_system(
                &with_habits("high"),
                &build_trees::build_contrary(),
                AddressRange::High,
            )
        }),
        TestCase::new("contrary::addresses_from_a_rank_map".into(), true, || {
            from_a_rank_map(&with_habits(""))
        }),
        TestCase::new("contrary::jobs_of_cnos".into(), true, jobs_of_cnos),
    ]
}

/// Which addresses a libportals has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressRange {
    /// Nid 0, pids from 0 upwards.
    Low,
    /// Those of libportals-contrary with the habit "high".
    High,
}

impl AddressRange {
    /// The nids and pids of a number of ranks of a host, as lists of C.
    fn lists(self, ranks: u32) -> (String, String) {
        let (nid, pid): (u32, fn(u32) -> u32) = match self {
            AddressRange::Low => (0, |rank| rank),
            AddressRange::High => (0xffff_fff0, |rank| 0xfffe - rank),
        };
        let list = |f: &dyn Fn(u32) -> u32| {
            (0..ranks).map(|rank| format!("{:#x}", f(rank))).collect::<Vec<_>>().join(", ")
        };
        (list(&|_| nid), list(&pid))
    }
}

/// The functions of a system that knows a number of ranks, in a library to be preloaded.
fn system(
    tree: &Path,
    functions: &[&str],
    range: AddressRange,
    ranks: u32,
) -> Result<PathBuf, Failure> {
    let name = tree.file_name().unwrap_or_default().to_string_lossy();
    let (nids, pids) = range.lists(ranks);
    let library =
        place()?.join(format!("system-{}-{range:?}-{ranks}-{name}.so", functions.concat()));
    let mut cc = compiler();
    cc.args(["-shared", "-fPIC", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(include(tree));
    cc.args(functions).arg(format!("-DNIDS={nids}")).arg(format!("-DPIDS={pids}"));
    cc.arg(build_trees::root().join("capi-tests/contrary/system.c")).arg("-o").arg(&library);
    succeed(cc)?;
    Ok(library)
}

fn from_the_system(
    library: &TestLibrary,
    tree: &Path,
    range: AddressRange,
) -> Result<(), Failure> {
    let p = program::named("testhello").ok_or("testhello.c is missing")?;
    let binary = build_trees::compiled(&p.source, ClientMode::Seq)?;
    let job_of = |launcher: JobLauncher, ranks: u32, functions: &[&str], fault: &str| {
        let preloaded = system(tree, functions, range, ranks)?;
        let job = library.job(&binary, &p.args, launcher, ranks)?;
        Ok::<TestJob, Failure>(
            job.env("LD_PRELOAD", preloaded)
                .env("SYSTEM", fault)
                .env("GASNET_SUPERNODE_MAXSIZE", "1"),
        )
    };
    let job = |ranks: u32, functions: &[&str], fault: &str| {
        job_of(JobLauncher::Ptlrun, ranks, functions, fault)
    };
    let (cnos, pmi, both): (&[&str], &[&str], &[&str]) =
        (&["-DCNOS"], &["-DPMI"], &["-DCNOS", "-DPMI"]);
    for ranks in [2, 3, 4, 8] {
        for functions in [cnos, pmi, both] {
            passes(&job(ranks, functions, "")?.run()?, "testhello")?;
        }
        // A job of our launcher calls neither.
        for fault in ["cnos_lies", "pmi_lies"] {
            let ended = job_of(JobLauncher::Gasnetrun, ranks, both, fault)?.run()?;
            passes(&ended, "testhello")?;
        }
        let refused: [(&[&str], &str, &[&str]); 7] = [
            (cnos, "cnos_lies", &["cnos_get_nidpid_map: rank", "but PtlGetId says"]),
            (cnos, "cnos_fails", &["cnos_get_nidpid_map names -1 processes"]),
            (cnos, "cnos_counts", &["cnos_get_nidpid_map names", "processes, but the job has"]),
            (pmi, "pmi_lies", &["PMI_CNOS_Get_nidpid_map: rank", "but PtlGetId says"]),
            (pmi, "pmi_fails", &["PMI_CNOS_Get_nidpid_map failed: 1"]),
            (pmi, "barrier_fails", &["the barrier of PMI failed: PMI_Barrier returned -1"]),
            // A program with MPI has both. CNOS has precedence, and PMI is not called.
            (both, "cnos_lies", &["cnos_get_nidpid_map: rank", "but PtlGetId says"]),
        ];
        for (functions, fault, lines) in refused {
            fails(&job(ranks, functions, fault)?.run()?, lines)?;
        }
        passes(&job(ranks, both, "pmi_lies")?.run()?, "testhello")?;
        // The user chooses PMI, and CNOS is not called.
        let by_pmi = |fault: &str| -> Result<JobOutcome, Failure> {
            job(ranks, both, fault)?.env("GASNET_SPAWN_CONTROL", "PMI").run()
        };
        passes(&by_pmi("cnos_lies")?, "testhello")?;
        fails(&by_pmi("pmi_lies")?, &["PMI_CNOS_Get_nidpid_map: rank", "but PtlGetId says"])?;
    }
    Ok(())
}

/// A program that ends as its argument says.
const ENDS: &str = "\
#include <gasnet.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    if (gasnet_init(&argc, &argv) || gasnet_attach(0, 0, 0, 0)) return 99;
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (strcmp(argv[1], \"exit\") == 0 && gasnet_mynode() == 1) gasnet_exit(3);
    if (strcmp(argv[1], \"abort\") == 0 && gasnet_mynode() == 1) abort();
    if (strcmp(argv[1], \"success\") == 0) gasnet_exit(0);
    if (strcmp(argv[1], \"return\") == 0) return 0;
    if (strcmp(argv[1], \"fail\") == 0) return 3;
    for (;;) gasnet_AMPoll();
}
";

/// Jobs that CNOS starts over another vendor's libportals: no supervisor, no memory file of ours.
/// The programs have PMI too, as those with MPI.
fn jobs_of_cnos() -> Result<(), Failure> {
    let tree = build_trees::build_contrary();
    let functions = ["-DCNOS", "-DPMI"];
    let job_of = |ranks: u32, name: &str, args: &[&str], habits: &str| {
        let p = program::named(name).ok_or_else(|| format!("{name}.c is missing"))?;
        let binary = build_trees::compiled(&p.source, ClientMode::Seq)?;
        let args: Vec<String> = args.iter().map(|a| a.to_string()).collect();
        let high = habits.contains("high");
        let range = if high { AddressRange::High } else { AddressRange::Low };
        let job = with_habits(habits).job(&binary, &args, JobLauncher::Ptlrun, ranks)?;
        Ok(job.env("LD_PRELOAD", system(&tree, &functions, range, ranks)?))
    };
    let job = |name: &str, args: &[&str], habits: &str| -> Result<TestJob, Failure> {
        job_of(2, name, args, habits)
    };
    for ranks in [3, 4] {
        for habits in ["", "high", "connects", "unranked,negated", "md_in_use", EVERY_HABIT] {
            for (name, args) in [("testhello", &[][..]), ("testam", &["10"])] {
                let ended = job_of(ranks, name, args, habits)?.run()?;
                passes(&ended, name)?;
                learns_of_success(&ended, ranks)?;
            }
        }
        let ended = job_of(ranks, "testexit", &["12"], EVERY_HABIT)?.run()?;
        ended.tidy()?;
        if ended.code != Some(12) || ended.output.contains("TEST FAILED") {
            return Err(ended.failure("expected 12"));
        }
        learns_of_success(&ended, 0)?;
    }
    for habits in ["", EVERY_HABIT] {
        for (name, args) in [("testhello", &[][..]), ("testam", &["10"]), ("testbarrier", &["10"])]
        {
            passes(&job(name, args, habits)?.run()?, name)?;
        }
        // The last exits in a handler; the last exits, the others attach.
        for (case, code) in [("12", 12), ("7", 7)] {
            let ended = job("testexit", &[case], habits)?.run()?;
            ended.tidy()?;
            if ended.code != Some(code) || ended.output.contains("TEST FAILED") {
                return Err(ended.failure(format!("expected {code}")));
            }
        }
    }
    let ends = write("ends.c", ENDS)?;
    let ends = build_trees::compiled(&ends, ClientMode::Seq)?;
    for (how, code, learning) in
        [("exit", 3, 0), ("abort", 134, 0), ("success", 0, 3), ("return", 0, 3), ("fail", 3, 0)]
    {
        let job = with_habits("").job(&ends, &[how.into()], JobLauncher::Ptlrun, 3)?;
        let job = job.env("LD_PRELOAD", system(&tree, &functions, AddressRange::Low, 3)?);
        let ended = job.run()?;
        ended.tidy()?;
        if ended.code != Some(code) {
            return Err(ended.failure(format!("{how}: expected {code}")));
        }
        learns_of_success(&ended, learning)?;
    }
    for (fault, line) in [
        ("barrier_fails", "the barrier of CNOS failed: cnos_barrier returned -1"),
        ("cnos_lies", "cnos_get_nidpid_map: rank"),
        ("cnos_fails", "cnos_get_nidpid_map names -1 processes"),
    ] {
        fails(&job("testhello", &[], "")?.env("SYSTEM", fault).run()?, &[line])?;
    }
    let job = job("testhello", &[], "")?.env("GASNET_SPAWN_CONTROL", "CNOS");
    fails(&job.env("SYSTEM", "no_rank").run()?, &["CNOS does not say which rank this is"])
}

/// CNOS learns of the end of each of `ranks` that ends with success, once, and of no other end.
fn learns_of_success(ended: &JobOutcome, ranks: u32) -> Result<(), Failure> {
    let calls = |of: &str| ended.output.matches(of).count();
    if calls("cnos_pm_barrier(1)") == ranks as usize && calls("cnos_pm_barrier") == ranks as usize
    {
        return Ok(());
    }
    Err(ended.failure(format!("expected {ranks} calls of cnos_pm_barrier(1)")))
}

/// A launcher that gives the library the address map: each rank starts the program with the
/// variables that the library reads. Its memory file is that of our launcher.
const LAUNCHER: &str = "\
    IFS=,; set -- \"$1\" $GASNET_SPAWN_FDS\n\
    export PTL_MY_RID=$2 PTL_NIDMAP=\"$NIDS\" PTL_PIDMAP=\"$PIDS\" PTL_FABRIC_FD=$6\n\
    exec \"$1\"\n";

fn from_a_rank_map(library: &TestLibrary) -> Result<(), Failure> {
    let script = write("launcher.sh", LAUNCHER)?;
    let p = program::named("testhello").ok_or("testhello.c is missing")?;
    let binary = build_trees::compiled(&p.source, ClientMode::Seq)?;
    let arguments = [script, binary].map(|path| path.display().to_string());
    let job = |nodes: u32, nids: &str, pids: &str| -> Result<TestJob, Failure> {
        Ok(library
            .job(Path::new("/bin/sh"), &arguments, JobLauncher::Gasnetrun, nodes)?
            .env("GASNET_SUPERNODE_MAXSIZE", "1")
            .env("NIDS", nids)
            .env("PIDS", pids))
    };
    passes(&job(3, "0:0:0", "0:1:2")?.run()?, "testhello")?;
    fails(
        &job(2, "0:0:0", "0:1:2")?.run()?,
        &["PTL_NIDMAP names 3 processes, but the job has 2"],
    )?;
    // A rank that differs from the launcher's.
    fails(
        &hello(library, 2)?.env("PTL_MY_RID", "7").run()?,
        &["PTL_MY_RID=7", "Start the job with gasnetrun"],
    )
}
