//! Threads, sleeps and connections over a libportals. What the library does about a lack of that
//! libportals has its counterexample: a job that ignores the lack must fail.

use super::{fails, include, network, passes, place, shared_library, with_habits};
use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, program};
use std::thread;

/// Cases of the build over libportals-contrary.
pub(super) fn cases() -> Vec<TestCase> {
    let mut all = vec![TestCase::new("contrary::one_thread_at_a_time".into(), true, || {
        let library = with_habits("unthreaded");
        for ranks in [2, 3, 4] {
            passes(&threads(&library, ranks, |job| job)?, "testthreads")?;
        }
        let threadsafe = library.with_env("GASNET_PORTAL_THREADSAFE", "1");
        fails(
            &threads(&threadsafe, 2, |job| job)?,
            &["a second thread entered a library without threads"],
        )
    })];
    for habits in ["in_calls", "connects", "connects,in_calls"] {
        let name = format!("contrary::ranks_do_not_sleep::{habits}");
        all.push(TestCase::new(name, true, move || {
            let library = with_habits(habits);
            for mode in ["BLOCK", "SPINBLOCK"] {
                naps(&library.clone().with_env("GASNET_WAITMODE", mode), "none")?;
            }
            naps(&library, "none")?;
            naps(&library.with_env("GASNET_PORTAL_BYPASS", "1"), "some")
        }));
    }
    all.push(TestCase::new("contrary::barriers_find_connections".into(), true, || {
        let library = with_habits("connects,in_calls");
        let leave = |how: &[String], ranks: u32| program_of(&library, "leavebarrier", how, ranks);
        passes(&leave(&[], 4)?, "leavebarrier")?;
        for _ in 0..10 {
            passes(&leave(&["first".to_string()], 4)?, "leavebarrier")?;
        }
        fails(
            &leave(&["stranger".to_string()], 6)?,
            &["the request arrived", "us after rank 0 called again"],
        )
    }));
    all
}

/// Cases of the build over libportals3, which states the properties of its interface.
pub(super) fn cases_of_libportals3() -> Vec<TestCase> {
    vec![
        TestCase::new("libportals::threads_enter_together".into(), true, || {
            let tree = build_trees::build_libportals();
            let source = build_trees::root().join("portals/capi-tests/plant.c");
            let plant = shared_library(&source, &include(&tree), "plant-threads.so")?;
            let library = network("libportals");
            let job = |library: &TestLibrary| {
                threads(library, 2, |job| job.env("LD_PRELOAD", &plant).env("PLANT", "threads"))
            };
            fails(&job(&library)?, &["two threads are inside the library"])?;
            passes(&job(&library.with_env("GASNET_PORTAL_THREADSAFE", "0"))?, "testthreads")
        }),
        TestCase::new("libportals::ranks_sleep_where_puts_need_no_call".into(), true, || {
            naps(&network("libportals"), "some")?;
            naps(&network("libportals").with_env("PTL_ATTACH", "0"), "none")
        }),
    ]
}

/// testthreads, all of whose traffic goes through Portals.
fn threads(
    library: &TestLibrary,
    ranks: u32,
    adapt: impl FnOnce(crate::test_job::TestJob) -> crate::test_job::TestJob,
) -> Result<JobOutcome, Failure> {
    let p = program::named("testthreads").ok_or("testthreads.c is missing")?;
    let binary = build_trees::compiled(&p.source, ClientMode::Par)?;
    let job = library.job(&binary, &p.args, JobLauncher::Gasnetrun, ranks)?;
    adapt(job.env("GASNET_SUPERNODE_MAXSIZE", "1")).run()
}

/// `naps.c` with more ranks than CPUs.
fn naps(library: &TestLibrary, expected: &str) -> Result<(), Failure> {
    let ranks = thread::available_parallelism().map_or(1, usize::from) as u32 + 2;
    passes(&program_of(library, "naps", &[expected.to_string()], ranks)?, "naps")
}

/// A program of `capi-tests/contrary`, all of whose traffic goes through Portals.
fn program_of(
    library: &TestLibrary,
    program: &str,
    args: &[String],
    ranks: u32,
) -> Result<JobOutcome, Failure> {
    let source = build_trees::root().join(format!("capi-tests/contrary/{program}.c"));
    place()?;
    let binary = build_trees::compiled(&source, ClientMode::Seq)?;
    let job = library.job(&binary, args, JobLauncher::Gasnetrun, ranks)?;
    job.env("GASNET_SUPERNODE_MAXSIZE", "1").run()
}
