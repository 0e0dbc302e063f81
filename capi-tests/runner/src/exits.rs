//! How jobs end: every case of `testexit`, from each rank, over launchers, numbers of ranks,
//! modes and paths. The first exit of a job decides its code, so the expected code is one
//! number. A crash gives any code but 0. SIGQUIT handlers run where GASNet specifies it. No
//! process hangs or stays, no file is left, and all our processes end soon after the first
//! exit.
//!
//! Each run appends a line to `soak/exits.tsv`. Its columns are launcher, mode, path, ranks,
//! rank, case and exit code. Then follow the milliseconds from the first exit to the end of
//! our last process, and those of the whole job. `soak exits` prints tables of them.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::program::{self, TestProgram};
use crate::sample::{self, SampleRandom};
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// The end that a case of testexit must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Code(i32),
    NotZero,
}
use Expected::{Code, NotZero};

impl Expected {
    fn met(self, code: i32) -> bool {
        match self {
            Code(c) => code == c,
            NotZero => code != 0,
        }
    }
}

/// The ranks on which the client's SIGQUIT handler must have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quit {
    /// No rank.
    Nowhere,
    /// All ranks but the last, which exits on its own.
    Others,
    /// All ranks but rank 0, which exits on its own.
    OthersOf0,
    /// All ranks.
    Everywhere,
    /// The last rank, which raises the signal.
    Last,
    /// Undetermined: all ranks exit at the same time.
    Anywhere,
}
use Quit::{Anywhere, Everywhere, Last, Nowhere, Others, OthersOf0};

/// A case: its number, its expected end, where handlers run, whether only PAR has it, whether
/// it matters which rank is the last.
type Row = (u32, Expected, Quit, bool, bool);

const ROWS: &[Row] = &[
    (1, Code(1), Anywhere, false, false),
    (2, Code(2), Anywhere, false, false),
    (3, Code(3), Others, false, true),
    (4, Code(4), Everywhere, false, true),
    (5, Code(5), Others, false, true),
    (6, Code(6), Nowhere, false, false),
    (7, Code(7), Nowhere, false, true),
    (8, Code(8), Others, false, true),
    (9, Code(9), Others, false, true),
    (10, Code(10), Anywhere, false, false),
    (11, Code(11), Others, false, true),
    (12, Code(12), Others, false, true),
    (13, Code(13), Others, false, true),
    (14, Code(14), Anywhere, true, false),
    (15, Code(15), OthersOf0, true, true),
    (16, Code(16), Others, true, true),
    (17, Code(17), Others, true, true),
    (18, Code(18), Others, true, true),
    (100, Code(0), Nowhere, false, true),
    (101, Code(0), Last, false, true),
    (102, NotZero, Others, false, true),
    (103, NotZero, Others, false, true),
    (104, NotZero, Others, false, true),
    (105, NotZero, Others, false, true),
    (106, NotZero, Others, false, true),
    (107, Code(0), Nowhere, true, true),
    (108, Code(0), Last, true, true),
    (109, NotZero, Others, true, true),
    (110, NotZero, Others, true, true),
    (111, NotZero, Others, true, true),
    (112, NotZero, Others, true, true),
    (113, NotZero, Others, true, true),
    (120, Code(20), Others, false, true),
    (121, NotZero, Others, false, true),
    (122, Code(22), Others, false, true),
    (123, Code(23), Anywhere, false, true),
];

/// Messages of testexit that must not occur.
const FAILED: &str = "TEST FAILED";
const PROCESSES: [u32; 5] = [1, 2, 3, 8, 32];

#[derive(Clone, Copy, Debug)]
struct CaseSetting {
    mode: ClientMode,
    portals: bool,
    launcher: JobLauncher,
    nodes: u32,
    /// The rank that acts as the last rank.
    rank: u32,
    row: Row,
}

impl CaseSetting {
    fn path(self) -> &'static str {
        if self.portals { "portals" } else { "cross-mapped" }
    }

    fn name(self) -> String {
        format!(
            "testexit::{}::{}::{}::n{}::rank{}::case{:02}",
            self.mode.name(),
            self.path(),
            self.launcher.name(),
            self.nodes,
            self.rank,
            self.row.0
        )
    }
}

/// All settings of these launchers. Through Portals, only the last rank of 2 and of 8 ends
/// first: which rank ends first and how segments are reached are independent.
fn settings(launchers: &[JobLauncher]) -> Vec<CaseSetting> {
    let mut all = Vec::new();
    for &launcher in launchers {
        for mode in [ClientMode::Seq, ClientMode::Par] {
            for &nodes in
                PROCESSES.iter().filter(|&&n| n > 1 || launcher != JobLauncher::PshmNodes)
            {
                for &row in ROWS.iter().filter(|r| mode == ClientMode::Par || !r.3) {
                    let ranks = if row.4 { 0..nodes } else { nodes - 1..nodes };
                    for rank in ranks {
                        all.push(CaseSetting { mode, portals: false, launcher, nodes, rank, row });
                    }
                    if nodes == 2 || nodes == 8 {
                        all.push(CaseSetting {
                            mode,
                            portals: true,
                            launcher,
                            nodes,
                            rank: nodes - 1,
                            row,
                        });
                    }
                }
            }
        }
    }
    all
}

/// One entry per setting. The sample:
/// - cases 1 to 13 in SEQ, cross-mapped, with 2 ranks under both of our launchers
/// - enough other settings to meet each trait
/// - each case under some of the usable launchers of other job systems
pub fn cases(seed: u64) -> Vec<TestCase> {
    let Some(program) = program::named("testexit") else { return Vec::new() };
    let mut all = Vec::new();
    let mut random = SampleRandom::new(seed, "testexit");
    for launchers in [vec![JobLauncher::Gasnetrun, JobLauncher::PshmNodes], JobLauncher::foreign()]
    {
        let settings = settings(&launchers);
        let taken = sample::cover(&settings, &mut random, |s| {
            let place = if s.rank + 1 == s.nodes { 2 } else { u64::from(s.rank.min(1)) };
            let number = u64::from(s.row.0);
            [
                s.mode as u64,
                u64::from(s.portals),
                s.launcher as u64,
                u64::from(s.nodes),
                place,
                number,
            ]
        });
        for (i, &s) in settings.iter().enumerate() {
            let plain = !s.launcher.is_foreign()
                && (s.mode, s.portals, s.nodes, s.rank) == (ClientMode::Seq, false, 2, 1)
                && s.row.0 <= 13;
            let p = program.clone();
            all.push(TestCase::new(s.name(), plain || taken.contains(&i), move || {
                right(&TestLibrary::of(build_trees::build()), &p, s, |ended| {
                    note(ended, s).map_err(|e| format!("{}: {e}", times().display()))
                })
            }));
        }
    }
    for fault in &program.faults {
        let (p, f) = (program.clone(), fault.name.clone());
        all.push(TestCase::new(format!("testexit::fault::{f}"), true, move || noticed(&p, &f)));
    }
    all
}

/// The cases with another library, under our launchers: the first and the last of 2 and of 8
/// ranks end first.
pub(crate) fn over(library: &TestLibrary, prefix: &str) -> Vec<TestCase> {
    let Some(program) = program::named("testexit") else { return Vec::new() };
    let all = settings(&[JobLauncher::Gasnetrun, JobLauncher::PshmNodes]).into_iter();
    all.filter(|s| [2, 8].contains(&s.nodes) && [0, s.nodes - 1].contains(&s.rank))
        .map(|s| {
            let (l, p) = (library.clone(), program.clone());
            TestCase::new(format!("{prefix}{}", s.name()), false, move || {
                right(&l, &p, s, |_| Ok(()))
            })
        })
        .collect()
}

/// The cases without a supervisor, started by ptlrun: the first and the last of 1 to 8 ranks end
/// first. The sample: the cases in `always`, with two ranks in SEQ.
pub(crate) fn over_ptlrun(library: &TestLibrary, prefix: &str, always: &[u32]) -> Vec<TestCase> {
    let Some(program) = program::named("testexit") else { return Vec::new() };
    let all = settings(&[JobLauncher::Ptlrun]).into_iter();
    all.filter(|s| !s.portals && s.nodes <= 8 && [0, s.nodes - 1].contains(&s.rank))
        .map(|s| {
            let s = CaseSetting { portals: true, ..s };
            let (l, p) = (library.clone(), program.clone());
            let plain = (s.mode, s.nodes, s.rank) == (ClientMode::Seq, 2, 1);
            let sampled = plain && always.contains(&s.row.0);
            TestCase::new(format!("{prefix}{}", s.name()), sampled, move || {
                right(&l, &p, s, |_| Ok(()))
            })
        })
        .collect()
}

fn run(
    library: &TestLibrary,
    program: &TestProgram,
    s: CaseSetting,
) -> Result<JobOutcome, Failure> {
    let compiled = library.compiled(&program.source, s.mode)?;
    let mut args = vec!["-l".to_string(), s.rank.to_string(), s.row.0.to_string()];
    if s.mode == ClientMode::Par {
        args.push("2".to_string());
    }
    let watchdog = Duration::from_secs(60 + 4 * u64::from(s.nodes));
    let mut job =
        library.job(&compiled, &args, s.launcher, s.nodes)?.watchdog(watchdog).exit_times();
    if s.portals {
        job = job.env("GASNET_SUPERNODE_MAXSIZE", "1");
    }
    job.run()
}

/// Runs a case and records its result. A run is repeated if it is late, or ends differently
/// after the time that jobs and launchers grant. A busy machine delays a run now and then, a
/// defect delays every run.
fn right(
    library: &TestLibrary,
    program: &TestProgram,
    s: CaseSetting,
    note: impl Fn(&JobOutcome) -> Result<(), String>,
) -> Result<(), Failure> {
    const RUNS: u32 = 3;
    // The grace after an exit with 0; 0.25 s otherwise, and two more for srun.
    const ALLOWED: Duration = Duration::from_secs(1);
    let mut late = Ok(());
    for _ in 0..RUNS {
        let ended = run(library, program, s)?;
        note(&ended)?;
        ended.tidy()?;
        late = as_expected(&ended, s)
            .and_then(|()| handled(&ended, s))
            .and_then(|()| soon(&ended, s));
        let in_time = ended.exit_times.gone.is_none_or(|gone| gone < ALLOWED);
        let Err(why) = &late else { break };
        if in_time || ended.output.contains(FAILED) {
            break;
        }
        eprintln!("{} is run again: {why}", s.name());
    }
    late
}

fn as_expected(ended: &JobOutcome, s: CaseSetting) -> Result<(), Failure> {
    if !ended.code.is_some_and(|c| s.row.1.met(c)) {
        return Err(ended.failure(format!("expected {:?}", s.row.1)));
    }
    if ended.output.contains(FAILED) {
        return Err(ended.failure("it says TEST FAILED"));
    }
    if ended.exit_times.left.is_empty() {
        return Err(ended.failure("no process reported that it leaves"));
    }
    Ok(())
}

/// Whether the handlers ran where expected, and only there. Another job system's launcher, and
/// ptlrun, may kill the other ranks when one fails, and may leave no time for handlers.
fn handled(ended: &JobOutcome, s: CaseSetting) -> Result<(), Failure> {
    let kills = s.launcher.is_foreign() || s.launcher == JobLauncher::Ptlrun;
    let (nodes, failed) = (s.nodes, kills && s.row.1 != Code(0));
    let due: Vec<u32> = match s.row.2 {
        Nowhere => Vec::new(),
        Others => (0..nodes - 1).collect(),
        OthersOf0 => (1..nodes).collect(),
        Everywhere => (0..nodes).collect(),
        Last => vec![nodes - 1],
        Anywhere => return Ok(()),
    };
    let quit = &ended.exit_times.quit;
    let right = if failed { quit.iter().all(|n| due.contains(n)) } else { *quit == due };
    if right {
        return Ok(());
    }
    Err(ended.failure(format!("SIGQUIT handlers ran on {quit:?}, but were due on {due:?}")))
}

/// Whether all processes ended soon enough.
fn soon(ended: &JobOutcome, s: CaseSetting) -> Result<(), Failure> {
    let late =
        |why| ended.failure(format!("our last process was gone late after the first exit: {why}"));
    ended.exit_times.gone.map_or(Ok(()), |gone| s.launcher.soon(s.nodes, gone)).map_err(late)
}

/// With the planted fault, at least one of the plain cases ends with a wrong code.
fn noticed(program: &TestProgram, fault: &str) -> Result<(), Failure> {
    for &row in ROWS.iter().filter(|r| [1, 3, 10].contains(&r.0)) {
        let (mode, launcher) = (ClientMode::Seq, JobLauncher::Gasnetrun);
        let s = CaseSetting { mode, portals: false, launcher, nodes: 2, rank: 1, row };
        let library = TestLibrary::of(build_trees::build_faults());
        as_expected(&run(&library, program, s)?, s)
            .map_err(|e| format!("without the fault: {e}"))?;
        let faulty = library.with_env("GASNET_TEST_FAULT", fault);
        let ended = run(&faulty, program, s)?;
        ended.tidy()?;
        if ended.exit_times.left.is_empty() {
            return Err(ended.failure("no process reported that it leaves"));
        }
        if ended.code.is_some_and(|code| !s.row.1.met(code)) {
            return Ok(());
        }
    }
    Err(format!("testexit passed its cases 1, 3 and 10 with the fault {fault}"))
}

fn times() -> PathBuf {
    build_trees::root().join("soak/exits.tsv")
}

/// Records how long it took.
fn note(ended: &JobOutcome, s: CaseSetting) -> std::io::Result<()> {
    let Some(code) = ended.code else { return Ok(()) };
    let Some(gone) = ended.exit_times.gone else { return Ok(()) };
    fs::create_dir_all(build_trees::root().join("soak"))?;
    let mut file = OpenOptions::new().create(true).append(true).open(times())?;
    let (launcher, mode, path) = (s.launcher.name(), s.mode.name(), s.path());
    let (gone, whole) = (gone.as_millis(), ended.time.as_millis());
    let line = format!(
        "{launcher}\t{mode}\t{path}\t{}\t{}\t{}\t{code}\t{gone}\t{whole}\n",
        s.nodes, s.rank, s.row.0
    );
    file.write_all(line.as_bytes())
}

/// One line of the recorded times.
struct Kept {
    launcher: String,
    nodes: u32,
    case: u32,
    code: i32,
    gone: u32,
}

/// The recorded times as two Markdown tables, a column per launcher. First table, a row per
/// case: number of runs, exit codes, median and longest time to the end of our last process.
/// Second table, a row per number of ranks: number of runs, the time within which 99 % ended,
/// and the longest.
pub fn table() -> String {
    let text = fs::read_to_string(times()).unwrap_or_default();
    let runs: Vec<Kept> = text
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split('\t').collect();
            let [launcher, _, _, nodes, _, case, code, gone, _] = words[..] else { return None };
            Some(Kept {
                launcher: launcher.to_string(),
                nodes: nodes.parse().ok()?,
                case: case.parse().ok()?,
                code: code.parse().ok()?,
                gone: gone.parse().ok()?,
            })
        })
        .collect();
    let cases = grid(
        &runs,
        "case",
        |run| run.case,
        |codes, gone| {
            let codes: Vec<String> = codes.iter().map(i32::to_string).collect();
            let (median, longest) = (gone[gone.len() / 2], gone[gone.len() - 1]);
            format!("{} x {}: {median}, {longest}", gone.len(), codes.join(" "))
        },
    );
    let processes = grid(
        &runs,
        "processes",
        |run| run.nodes,
        |_, gone| {
            let (most, longest) =
                (gone[(gone.len() * 99).div_ceil(100) - 1], gone[gone.len() - 1]);
            format!("{}: {most}, {longest}", gone.len())
        },
    );
    format!("{cases}\n{processes}")
}

/// A table of runs: a row per value of `row`, a column per launcher. `cell` gets the exit codes
/// and the times, both sorted.
fn grid(
    runs: &[Kept],
    heading: &str,
    row: impl Fn(&Kept) -> u32,
    cell: impl Fn(&BTreeSet<i32>, &[u32]) -> String,
) -> String {
    type Cell = (BTreeSet<i32>, Vec<u32>);
    let mut cells: BTreeMap<(u32, &str), Cell> = BTreeMap::new();
    for run in runs {
        let (codes, gone) = cells.entry((row(run), run.launcher.as_str())).or_default();
        codes.insert(run.code);
        gone.push(run.gone);
    }
    let rows: BTreeSet<u32> = cells.keys().map(|&(row, _)| row).collect();
    let launchers: BTreeSet<&str> = cells.keys().map(|&(_, launcher)| launcher).collect();
    let mut table = format!("| {heading} |");
    for launcher in &launchers {
        table += &format!(" {launcher} |");
    }
    table += &format!("\n|---|{}\n", "---|".repeat(launchers.len()));
    for row in rows {
        table += &format!("| {row} |");
        for &launcher in &launchers {
            table += &match cells.get_mut(&(row, launcher)) {
                Some((codes, gone)) => {
                    gone.sort_unstable();
                    format!(" {} |", cell(codes, gone))
                }
                None => " |".to_string(),
            };
        }
        table += "\n";
    }
    table
}
