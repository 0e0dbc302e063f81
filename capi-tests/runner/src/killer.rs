//! The random killer. It takes a random job and, at a random moment, hits a random process of
//! it, possibly the launcher. The process is killed, crashes, is asked to end, or is stopped
//! for a while. Or the job's terminal is closed, or Ctrl-C is typed twice. The job must end
//! soon, without success, and leave nothing. A job that was only stopped for a while must
//! succeed.
//!
//! `killer::0001` and so on are cases like others, each with its own seed. `soak killer N` runs
//! N of them and prints a tally.

use crate::build_trees::{self, ClientMode};
use crate::injector::{FaultKind, InjectedFault};
use crate::job_launcher::JobLauncher;
use crate::kills;
use crate::outcome::JobOutcome;
use crate::program;
use crate::progress::{WorkExtent, WorkProgress};
use crate::sample::SampleRandom;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::collections::BTreeMap;
use std::time::Duration;
use sys::signal::Signal;

/// Cases of one soak round; the first of them are the sample.
const CASES: u64 = 1000;
const SAMPLED: u64 = 8;

/// A program, its arguments, whether it needs PAR, and the milliseconds after its start within
/// which the fault comes.
type Victim = (&'static str, &'static [&'static str], bool, u64);

/// The first two never end without a fault.
const VICTIMS: &[Victim] = &[
    (ENDLESS, &[], false, 600),
    (ENDLESS, &[], false, 60),
    ("testhello", &[], false, 15),
    ("testbarrier", &["3000"], false, 200),
    ("testam", &["40", "64K"], false, 200),
    ("testmedium", &["20000"], true, 200),
    ("testcoll", &["10", "1"], false, 200),
    ("testvis", &["100", "1"], false, 200),
    ("testlarge", &["-m", "20", "1M"], false, 200),
    ("testthreads", &["4", "100"], true, 200),
];
const ENDLESS: &str = "traffic";
const NODES: [u32; 5] = [2, 2, 3, 4, 8];
const SIGNALS: [Signal; 4] = [Signal::KILL, Signal::SEGV, Signal::TERM, Signal::INT];

/// The verdict of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Correct.
    Right,
    /// The job ended before the fault, or was about to.
    Missed,
    /// The watchdog ended it.
    Hang,
    /// All our processes ended in time, but another job system's launcher hung.
    Theirs,
    /// It ended late.
    Slow,
    /// A process was left.
    Orphan,
    /// A name or a file was left.
    Leftover,
    /// It returned success, or failed although it was only stopped for a while.
    Wrong,
}

/// One run, drawn but not yet executed.
#[derive(Debug)]
struct Run {
    victim: Victim,
    mode: ClientMode,
    launcher: JobLauncher,
    nodes: u32,
    portals: bool,
    fault: InjectedFault,
}

/// One entry per number.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let one = |n: u64| move || hits(seed, n);
    (0..CASES).map(|n| TestCase::new(format!("killer::{n:04}"), n < SAMPLED, one(n))).collect()
}

/// Run `n`; while its job ends before the fault, further ones instead of it.
fn hits(seed: u64, n: u64) -> Result<(), Failure> {
    const TRIES: u64 = 10;
    for other in 0..TRIES {
        let run = Run::draw(seed, n + other * CASES);
        let (outcome, result, _) = run.done();
        if outcome != Outcome::Missed {
            return result.map_err(|e| {
                format!(
                    "{e}
  run {}",
                    n + other * CASES
                )
            });
        }
    }
    Err(format!("{TRIES} jobs in a row ended before the fault"))
}

/// Runs the first `count` runs that match these words (`Pause`, or the name of a program, for
/// example). Prints what went wrong and the sum; returns whether all were correct.
pub fn tally(seed: u64, count: usize, like: &[String], mut say: impl FnMut(String)) -> bool {
    let mut sums: BTreeMap<Outcome, u64> = BTreeMap::new();
    let (mut longest, mut all_right) = (Duration::ZERO, true);
    // Words that match nothing end the search.
    let drawn = (0..1000 * count as u64).map(|n| (n, Run::draw(seed, n)));
    let fitting = drawn
        .filter(|(_, run)| like.iter().all(|word| format!("{run:?}").contains(word.as_str())));
    let mut progress = WorkProgress::new(WorkExtent::Pieces(count));
    for (n, run) in fitting.take(count) {
        progress.begin(&format!("{run:?}"));
        let (outcome, result, time) = run.done();
        progress.end();
        *sums.entry(outcome).or_default() += 1;
        if outcome != Outcome::Theirs {
            longest = longest.max(time.unwrap_or_default());
        }
        if let Err(failure) = result {
            all_right = false;
            say(format!("killer::{n:04} SEED={seed}: {failure}"));
        }
    }
    drop(progress);
    let sum = |o| sums.get(&o).copied().unwrap_or(0);
    let theirs = match sum(Outcome::Theirs) {
        0 => String::new(),
        n => format!("; {n} times another launcher hung, with no process of ours left"),
    };
    let hit = sums.values().sum::<u64>() - sum(Outcome::Missed);
    let like = like.iter().map(|word| format!(" {word}")).collect::<String>();
    let again = crate::job_launcher::started_again();
    say(format!(
        "random killer{like}, SEED={seed}: {count} runs, {hit} hit, {} hangs, {} orphans, {} leftovers, {} late, {} with a \
         wrong code; the last process was gone at most {:.2} s after the fault{theirs}{again}",
        sum(Outcome::Hang),
        sum(Outcome::Orphan),
        sum(Outcome::Leftover),
        sum(Outcome::Slow),
        sum(Outcome::Wrong),
        longest.as_secs_f64()
    ));
    all_right
}

impl Run {
    fn draw(seed: u64, n: u64) -> Run {
        let mut random = SampleRandom::new(seed, &format!("killer {n}"));
        let mut launchers = vec![JobLauncher::Gasnetrun, JobLauncher::PshmNodes];
        launchers.extend(JobLauncher::foreign());
        let launcher = *random.pick(&launchers);
        let kind = match random.below(10) {
            0 => FaultKind::HangUp,
            1 => FaultKind::Interrupts(Duration::from_millis(random.below(300))),
            2 => FaultKind::Pause(
                Duration::from_millis(random.below(600)),
                random.below(1000) as usize,
            ),
            _ => FaultKind::Signal(*random.pick(&SIGNALS), random.below(1000) as usize),
        };
        // The result of Ctrl-C under srun depends on srun's own timing.
        let kind = match (launcher, kind) {
            (JobLauncher::SrunPmi2 | JobLauncher::SrunPmix, FaultKind::Interrupts(_)) => {
                FaultKind::Signal(Signal::TERM, 0)
            }
            _ => kind,
        };
        let victims = if matches!(kind, FaultKind::Pause(..)) { &VICTIMS[2..] } else { VICTIMS };
        let victim = *random.pick(victims);
        let mode =
            if victim.2 || random.below(2) == 1 { ClientMode::Par } else { ClientMode::Seq };
        let after = Duration::from_micros(random.below(1000 * victim.3));
        Run {
            victim,
            mode,
            launcher,
            nodes: *random.pick(&NODES),
            portals: random.below(3) == 0,
            fault: InjectedFault { after, kind },
        }
    }

    fn run(&self) -> Result<JobOutcome, Failure> {
        build_trees::require(&build_trees::build())?;
        let (name, args, ..) = self.victim;
        let source = match name {
            ENDLESS => kills::traffic_source()?,
            _ => program::named(name).ok_or_else(|| format!("{name} is missing"))?.source,
        };
        let compiled = build_trees::compiled(&source, self.mode)?;
        let args: Vec<String> = args.iter().map(|a| (*a).to_string()).collect();
        let mut job =
            TestJob::new(&build_trees::build(), &compiled, &args, self.launcher, self.nodes)
                .watchdog(Duration::from_secs(30))
                .fault(self.fault);
        if self.portals {
            job = job.env("GASNET_SUPERNODE_MAXSIZE", "1");
        }
        job.run()
    }

    fn done(&self) -> (Outcome, Result<(), Failure>, Option<Duration>) {
        match self.run() {
            Ok(ended) => {
                let (outcome, why) = self.judge(&ended);
                let result = match outcome {
                    Outcome::Right | Outcome::Missed | Outcome::Theirs => Ok(()),
                    _ => Err(ended.failure(format!(
                        "{outcome:?}: {why}; {:?} {}{}",
                        self.fault, ended.hit, ended.outlived
                    ))),
                };
                (outcome, result, ended.after_kill)
            }
            Err(failure) => (Outcome::Wrong, Err(failure), None),
        }
    }

    fn judge(&self, ended: &JobOutcome) -> (Outcome, String) {
        let none = String::new;
        if ended.code.is_none() {
            return match ended.launcher_hangs.map(|after| self.launcher.soon(self.nodes, after)) {
                None => (Outcome::Hang, none()),
                Some(Err(late)) => (Outcome::Slow, late),
                Some(Ok(())) => (Outcome::Theirs, none()),
            };
        }
        if ended.left.iter().any(|l| l.starts_with("process")) {
            return (Outcome::Orphan, ended.left.join(", "));
        }
        if !ended.left.is_empty() {
            return (Outcome::Leftover, ended.left.join(", "));
        }
        let Some(time) = ended.after_kill else {
            let outcome = if ended.code == Some(0) { Outcome::Missed } else { Outcome::Wrong };
            return (outcome, none());
        };
        let passed = ended.output.contains(": PASS");
        if matches!(self.fault.kind, FaultKind::Pause(..)) {
            return if ended.code == Some(0) {
                (Outcome::Right, none())
            } else {
                (Outcome::Wrong, none())
            };
        }
        // The exit code of another job system's launcher that is interrupted itself is not ours
        // to judge.
        let is_not_judged = self.launcher.is_foreign()
            && match self.fault.kind {
                FaultKind::Signal(signal, _) => {
                    ended.hit_theirs && matches!(signal, Signal::INT | Signal::TERM)
                }
                _ => true,
            };
        if ended.code == Some(0) && !is_not_judged {
            return if passed {
                (Outcome::Missed, none())
            } else {
                (Outcome::Wrong, "success".into())
            };
        }
        if let Err(late) = self.launcher.soon(self.nodes, time) {
            return (Outcome::Slow, late);
        }
        (Outcome::Right, none())
    }
}
