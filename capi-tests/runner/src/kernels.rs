//! Jobs as on older kernels: a filter (`capi-tests/underkernel.c`) answers system calls and flags
//! that are younger as that kernel would. The whole job is below it, launcher included.
//!
//! On each kernel:
//! - the programs x paths x launchers x ranks
//! - exits
//! - jobs of which a rank or the launcher is killed
//! - signals
//! - folders for memory files that are full, small or missing
//! - the tests of the crates `sys` and `portals3`

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::matrix::{self, CaseSetting, SegmentPath};
use crate::outcome::JobOutcome;
use crate::program::{self, TestProgram};
use crate::sample::{self, SampleRandom};
use crate::starts::is_refusal;
use crate::test_job::TestJob;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, exits, kills, refusals};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A kernel, and the thread mode that the C library of this machine can run there.
type OldKernel = (&'static str, ClientMode);

const KERNELS: [OldKernel; 2] = [("2.6.16", ClientMode::Seq), ("2.6.27", ClientMode::Par)];

const PATHS: [SegmentPath; 3] =
    [SegmentPath::CrossMapped, SegmentPath::Portals, SegmentPath::Events];

/// All cases; the sample of the programs meets each path, each launcher, and one, two and more
/// ranks, once per kernel.
pub fn cases(seed: u64) -> Vec<TestCase> {
    KERNELS.into_iter().flat_map(|kernel| on(kernel, seed)).collect()
}

fn on(kernel: OldKernel, seed: u64) -> Vec<TestCase> {
    let (version, mode) = kernel;
    let prefix = format!("kernels::{version}::");
    let library = TestLibrary::of(build_trees::build()).under(version);
    let mut runs: Vec<(TestProgram, CaseSetting)> = Vec::new();
    for program in program::all().into_iter().filter(matrix::has_settings) {
        let settings = matrix::settings(&program, &PATHS).into_iter();
        runs.extend(settings.filter(|s| s.mode == mode).map(|s| (program.clone(), s)));
    }
    let mut random = SampleRandom::new(seed, &prefix);
    let taken = sample::cover(&runs, &mut random, |(_, s)| {
        [s.path as u64, s.launcher as u64, matrix::ranks_trait(s.nodes)]
    });
    let mut all = Vec::new();
    for (i, (program, setting)) in runs.into_iter().enumerate() {
        let name = format!("{prefix}{}::{}", program.name, setting.name());
        let library = library.clone();
        all.push(TestCase::new(name, taken.contains(&i), move || {
            matrix::sound(&library, &program, setting)
        }));
    }
    let mut exits = exits::over(&library, &prefix);
    exits.retain(|case| case.name.contains(&format!("::{}::", mode.name())));
    for mut table in [exits, kills::over(&library, &prefix)] {
        random.shuffle(&mut table);
        for (i, case) in table.iter_mut().enumerate() {
            case.sampled = i < 2;
        }
        all.extend(table);
    }
    for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes] {
        for place in PLACES {
            let name = format!("{prefix}memory_files::{}::{}", place.name, launcher.name());
            let mut case =
                TestCase::new(name, true, move || memory_files(kernel, launcher, place));
            case.missing = refusals::lacks_mounts().map(str::to_string);
            all.push(case);
        }
    }
    for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes] {
        let name = format!("{prefix}signals::{}", launcher.name());
        all.push(TestCase::new(name, true, move || signals(kernel, launcher)));
        let name = format!("{prefix}killed_starts::{}", launcher.name());
        all.push(TestCase::new(name, true, move || killed_starts(kernel, launcher)));
    }
    all.push(TestCase::new(format!("{prefix}info"), true, move || info(kernel)));
    // The C library of today aborts on 2.6.16 when threads wait for each other.
    let sys = "--lib -- --test-threads 1 --skip copies_to_and_from_a_process --skip limits::";
    all.push(TestCase::new(format!("{prefix}sys"), true, move || rust_tests(version, "sys", sys)));
    if mode == ClientMode::Par {
        let tests = "--test conformance --test stress --test reference -- --skip shm_attach";
        let run = move || rust_tests(version, "portals3", tests);
        all.push(TestCase::new(format!("{prefix}portals3"), false, run));
    }
    all
}

/// Where memory files may be, and whether a job runs there or is refused.
struct FilePlace {
    name: &'static str,
    /// A script that prepares /dev/shm and TMPDIR, in a mount namespace.
    script: &'static str,
    runs: bool,
}

const PLACES: &[FilePlace] = &[
    FilePlace {
        name: "full",
        script: "mount -t tmpfs -o size=4k none /dev/shm && echo 1 >/dev/shm/1",
        runs: false,
    },
    FilePlace {
        name: "nearly_full",
        script: "mount -t tmpfs -o size=1m none /dev/shm",
        runs: false,
    },
    FilePlace { name: "small", script: "mount -t tmpfs -o size=64m none /dev/shm", runs: true },
    FilePlace {
        name: "temporary_folder",
        script: "mount -t tmpfs -o ro none /dev/shm",
        runs: true,
    },
    FilePlace {
        name: "missing",
        script: "mount -t tmpfs -o ro none /dev/shm && export TMPDIR=/dev/shm/missing",
        runs: false,
    },
];

/// Attaches the largest segments and touches every page.
const WHOLE: &str = "#include <gasnet.h>\n#include <stdio.h>\n#include <string.h>\n\
    int main(int argc, char **argv) {\n\
    \x20   gasnet_seginfo_t seg[2];\n\
    \x20   gasnet_node_t me;\n\
    \x20   size_t most;\n\
    \x20   if (gasnet_init(&argc, &argv)) return 9;\n\
    \x20   most = gasnet_getMaxGlobalSegmentSize();\n\
    \x20   if (most > (size_t)1 << 26) most = (size_t)1 << 26;\n\
    \x20   if (gasnet_attach(NULL, 0, most, 0)) return 9;\n\
    \x20   me = gasnet_mynode();\n\
    \x20   gasnet_getSegmentInfo(seg, 2);\n\
    \x20   memset(seg[me].addr, 1, seg[me].size);\n\
    \x20   gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   if (me == 0) printf(\"whole: PASS\\n\");\n\
    \x20   gasnet_exit(0);\n\
    }\n";

/// The largest segments can be used whole, or the job is refused before any page is missing.
fn memory_files(
    kernel: OldKernel,
    launcher: JobLauncher,
    place: &FilePlace,
) -> Result<(), Failure> {
    let program = refusals::compiled("whole", WHOLE, kernel.1)?;
    let script = format!(
        "exec unshare -m sh -c 'mount --make-rprivate / && {} && exec \"$@\"' \"$0\" \"$@\"",
        place.script
    );
    let ended = by_script(&script, kernel, launcher, &program)?;
    judge(&ended, place.runs)
}

fn judge(ended: &JobOutcome, runs: bool) -> Result<(), Failure> {
    match runs {
        true => ended.passed("whole"),
        false if ended.code == Some(1) && is_refusal(&ended.output) => Ok(()),
        false => Err(ended.failure("it was not refused by a line with a remedy")),
    }
}

/// Runs a script whose arguments are the command of a job of two ranks.
fn by_script(
    script: &str,
    (version, _): OldKernel,
    launcher: JobLauncher,
    program: &Path,
) -> Result<JobOutcome, Failure> {
    let tree = build_trees::build();
    let mut args = ["-c", script, "sh"].map(str::to_string).to_vec();
    args.extend([build_trees::underkernel()?.display().to_string(), version.to_string()]);
    if launcher == JobLauncher::Gasnetrun {
        args.push(tree.join("bin/gasnetrun").display().to_string());
        args.extend(["-n", "2"].map(str::to_string));
    }
    args.push(program.display().to_string());
    let mut job = TestJob::new(&tree, Path::new("/bin/sh"), &args, JobLauncher::Alone, 1);
    if launcher == JobLauncher::PshmNodes {
        job = job.env("GASNET_PSHM_NODES", "2");
    }
    let ended = job.in_own_folder().watchdog(Duration::from_secs(60)).run()?;
    ended.tidy()?;
    Ok(ended)
}

/// A job whose launcher is killed at any time of its start leaves nothing behind, once the next
/// job has run.
fn killed_starts(kernel: OldKernel, launcher: JobLauncher) -> Result<(), Failure> {
    const SCRIPT: &str = "for ms in 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9
        do \"$@\" & sleep 0.00$ms; kill -KILL $!; wait $!; done >/dev/null 2>&1; exec \"$@\"";
    let hello = program::named("testhello").ok_or("there is no testhello")?;
    let program = build_trees::compiled(&hello.source, kernel.1)?;
    let ended = by_script(SCRIPT, kernel, launcher, &program)?;
    match ended.code == Some(0) && ended.says("testhello: PASS") {
        true => Ok(()),
        false => Err(ended.failure("the job after the killed ones did not pass")),
    }
}

/// SIGUSR1 and SIGTERM reach the supervisor: it prints what the ranks do, and ends the job.
fn signals(kernel: OldKernel, launcher: JobLauncher) -> Result<(), Failure> {
    const SCRIPT: &str =
        "\"$@\" >out 2>&1 & until grep -q 'rank 0 is' out && grep -q 'rank 1 is' out
        do sleep 0.05; done; kill -USR1 $!; until grep -q 'rank 1 (pid ' out; do sleep 0.05; done
        kill -TERM $!; wait $!; code=$?; cat out; exit $code";
    let program = build_trees::compiled(&kills::traffic_source()?, kernel.1)?;
    let ended = by_script(SCRIPT, kernel, launcher, &program)?;
    match ended.code == Some(143) && ended.output.contains("SIGTERM") {
        true => Ok(()),
        false => Err(ended.failure("SIGTERM did not end the job with code 143")),
    }
}

/// The fallbacks are in use: `gasnet_info` prints what memory files are, and how far a put
/// reaches.
fn info((version, _): OldKernel) -> Result<(), Failure> {
    let tree = build_trees::build();
    let args = [version.to_string(), tree.join("bin/gasnet_info").display().to_string()];
    let filter = build_trees::underkernel()?;
    let ended = TestJob::new(&tree, &filter, &args, JobLauncher::Alone, 1).run()?;
    ended.tidy()?;
    let lines = [
        "memory files: files without a name in ",
        "processes may copy from each other's memory: no",
    ];
    match lines.into_iter().find(|line| !ended.says(line)) {
        Some(line) => Err(ended.failure(format!("it does not say {line:?}"))),
        None => Ok(()),
    }
}

/// Tests of a crate, without those of what no kernel of that age, or no C library of today on it,
/// can do.
fn rust_tests(version: &str, package: &str, tests: &str) -> Result<(), Failure> {
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let filter = build_trees::underkernel()?.display().to_string();
    let runner = format!("target.'cfg(all())'.runner=['{filter}','{version}']");
    let manifest = build_trees::root().join("Cargo.toml").display().to_string();
    let command = ["--config", &runner, "test", "--quiet", "--manifest-path", &manifest];
    let command = command.into_iter().chain(["-p", package]).chain(tests.split(' '));
    let args: Vec<String> = command.map(str::to_string).collect();
    let tree = build_trees::build();
    let ended = TestJob::new(&tree, &cargo, &args, JobLauncher::Alone, 1)
        .watchdog(Duration::from_secs(600))
        .run()?;
    ended.tidy()?;
    match ended.code == Some(0) && ended.says("test result: ok") {
        true => Ok(()),
        false => Err(ended.failure(format!("a test of {package} failed"))),
    }
}
