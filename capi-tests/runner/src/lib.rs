//! Runs the C test programs of `capi-tests` over a built library.
//!
//! | file | what it owns |
//! |---|---|
//! | `build_trees` | the build trees, and how a C program is compiled against one |
//! | `compile_ahead` | compiles the programs of cases to come |
//! | `program` | the test programs and the settings in their head lines |
//! | `test_job` | one command under a watchdog |
//! | `job_launcher` | the launchers that start jobs |
//! | `test_library` | a built library and the environment of its jobs |
//! | `outcome` | how a job ended, and what its ranks counted |
//! | `processes` | the processes of a job, and what it may not leave behind |
//! | `matrix` | programs x modes x paths x launchers x ranks, and planted faults |
//! | `floods` | active messages that never overflow: `testflood` |
//! | `exit_pipe` | the pipe through which processes report their exit |
//! | `exits` | how jobs end: the cases of `testexit` |
//! | `kills` | jobs of which one process is killed |
//! | `killer` | random jobs with a random fault at a random moment |
//! | `kernels` | jobs as on older kernels |
//! | `reports` | what SIGUSR1 to a launcher prints |
//! | `injector` | faults that hit a job from outside |
//! | `misuse` | the cases of `testbad` and `testbadex` |
//! | `refusals` | what a machine may refuse to a job, and a job to other users |
//! | `environments` | ranks of one job with different environments |
//! | `checks` | debug checks: programs that pass with them, clients compiled with them |
//! | `tools` | stack traces, signals that print or freeze, heap reports |
//! | `tracing` | traces and statistics of a program with known calls |
//! | `mismatch` | thread modes, segment modes and header versions that must not be combined |
//! | `libportals` | the programs over a libportals that is bound by its header |
//! | `network` | the tests of crate `portals3`, with more repetitions |
//! | `sanitizers` | fuzzing; tests under sanitizers and valgrind |
//! | `simulations` | the simulators of credits and firehoses |
//! | `cross` | builds for the targets of `cross/`, and what can be run of them; all headers |
//! | `segments` | pages of segments that are touched, or not available: cases of `testsegment` |
//! | `created_segments` | programs of GASNet-EX in segments of `gex_Segment_Create` |
//! | `everything` | programs compiled for EVERYTHING and LARGE |
//! | `install` | what the libraries of a tree export |
//! | `case_end` | whether a case passed, failed or could not run |
//! | `full_stderr` | jobs whose standard error is a pipe that no process reads |
//! | `held_streams` | processes that end while another thread holds a C stream, or fails |
//! | `build_scripts` | the scripts behind `make`, `make install` and `make cross`, in a small project |
//! | `installation` | what `make install` and `make uninstall` do |
//! | `packaging` | the scripts that make releases and packages |
//! | `clients` | programs built against an installed tree, by each build system and in each language |
//! | `ex_clients` | programs with the names that clients of GASNet-EX use |
//! | `mpi` | MPI and GASNet in one process: `testmpi` |
//! | `configuration` | strings in objects, shown and rejected environment variables |
//! | `variables` | variables of the portals-conduit at and beyond the ends of their ranges |
//! | `waits` | many more ranks than CPUs |
//! | `starts` | odd starts: closed descriptors, threads, signals, limits, namespaces |
//! | `scribbles` | jobs whose shared memory is overwritten: `testscribble` |
//! | `scribbled_words` | the words that are, and their names |
//! | `sample` | which of all cases a short run takes |
//!
//! Callers: `tests/programs.rs` (`cargo test`, nextest; one entry per case) and `bin/soak.rs`.
//! Every case is one [`TestCase`]. Jobs spin, so no two run at the same time.

pub mod build_scripts;
pub mod build_trees;
pub mod case_end;
pub mod checks;
pub mod clients;
pub mod compile_ahead;
pub mod configuration;
pub mod created_segments;
pub mod cross;
pub mod environments;
pub mod everything;
pub mod ex_clients;
pub mod exit_pipe;
pub mod exits;
pub mod floods;
pub mod full_stderr;
pub mod held_streams;
pub mod hosts;
pub mod injector;
pub mod install;
pub mod installation;
pub mod job_launcher;
pub mod kernels;
pub mod killer;
pub mod kills;
pub mod libportals;
pub mod losses;
pub mod matrix;
pub mod mismatch;
pub mod misuse;
pub mod mpi;
pub mod network;
pub mod outcome;
pub mod packaging;
mod processes;
pub mod program;
pub mod progress;
pub mod refusals;
pub mod reports;
pub mod sample;
pub mod sanitizers;
pub mod scribbled_words;
pub mod scribbles;
pub mod segments;
pub mod simulations;
pub mod starts;
pub mod test_job;
pub mod test_library;
pub mod tools;
pub mod tracing;
pub mod variables;
pub mod waits;

use sys::unmap_watch::{UnmapWatch, WatchKinds};

/// The reason why a case failed, for people to read.
pub type Failure = String;

/// One entry of the test list.
pub struct TestCase {
    /// Its name, with `::` between the parts.
    pub name: String,
    /// Whether the short run (`cargo test`, `make check`) takes it.
    pub sampled: bool,
    /// What it needs and this machine lacks, with the package that has it: the case cannot run.
    pub missing: Option<String>,
    /// Runs it.
    pub run: Box<dyn FnOnce() -> Result<(), Failure> + Send>,
}

impl TestCase {
    fn new(
        name: String,
        sampled: bool,
        run: impl FnOnce() -> Result<(), Failure> + Send + 'static,
    ) -> TestCase {
        TestCase { name, sampled, missing: None, run: Box::new(run) }
    }

    /// The same case, which cannot run without this program.
    fn needs(mut self, program: &'static str) -> TestCase {
        if !have(program) {
            self.missing = Some(with_package(program));
        }
        self
    }

    /// The same case, which cannot run without a userfaultfd.
    fn needs_userfaultfd(mut self) -> TestCase {
        self.missing = lack_of_userfaultfd().or(self.missing);
        self
    }
}

/// What is missing where the library cannot notice that memory is unmapped.
fn lack_of_userfaultfd() -> Option<String> {
    let refused = UnmapWatch::open(WatchKinds::All).err()?;
    Some(format!("a userfaultfd, which this system refuses: {refused}"))
}

/// Programs whose Debian packages have other names.
const PACKAGES: &[(&str, &str)] = &[
    ("groff", "groff-base"),
    ("mpicc.mpich", "libmpich-dev"),
    ("mpicc.openmpi", "libopenmpi-dev"),
    ("mpiexec.hydra", "mpich"),
    ("mpirun.openmpi", "openmpi-bin"),
    ("rpmbuild", "rpm"),
];

/// A program, with the Debian package that has it.
fn with_package(program: &str) -> String {
    let package = PACKAGES.iter().find(|(name, _)| *name == program).map_or(program, |p| p.1);
    format!("{program} (Debian package {package})")
}

/// Whether a program is found by its name.
fn have(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// All cases, with the sample of `seed` marked.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let mut all = matrix::cases(seed);
    all.extend(floods::cases(seed));
    all.extend(exits::cases(seed));
    all.extend(kills::cases(seed));
    all.extend(killer::cases(seed));
    all.extend(reports::cases());
    all.extend(misuse::cases());
    all.extend(refusals::cases());
    all.extend(environments::cases());
    all.extend(checks::cases());
    all.extend(tools::cases());
    all.extend(tracing::cases());
    all.extend(segments::cases());
    all.extend(created_segments::cases(seed));
    all.extend(everything::cases(seed));
    all.extend(hosts::cases(seed));
    all.extend(starts::cases(seed));
    all.extend(full_stderr::cases());
    all.extend(held_streams::cases());
    all.extend(kernels::cases(seed));
    all.extend(scribbles::cases(seed));
    all.extend(mismatch::cases());
    all.extend(install::cases());
    all.extend(installation::cases());
    all.extend(build_scripts::cases());
    all.extend(network::cases());
    all.extend(sanitizers::cases());
    all.extend(simulations::cases(seed));
    all.extend(cross::cases());
    all.extend(packaging::cases());
    all.extend(clients::cases());
    all.extend(ex_clients::cases());
    all.extend(mpi::cases());
    all.extend(configuration::cases());
    all.extend(variables::cases());
    all.extend(waits::cases(seed));
    all.extend(losses::cases());
    all.extend(libportals::cases(seed));
    sample::take_turns(&mut all, seed);
    all
}
