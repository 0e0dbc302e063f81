//! Jobs whose shared memory is overwritten. The ranks of `testscribble` exchange traffic of every
//! kind. Meanwhile up to 64 words of one structure that any of them can write get other values.
//! Segments are excepted.
//!
//! Allowed:
//! - the job is unharmed
//! - a payload in shared memory is wrong
//! - a barrier ends early, since its word got a valid value
//! - the job ends within 5 s with a line that says what happened and one that says what to do
//!
//! Not allowed: a signal, changed private memory, a lost operation, a hang.
//!
//! The traffic takes one of the three paths, or path `portals` without an outbox or with frames. A
//! planted fault of the library makes the frames. The rings of frames are overwritten there.
//!
//! `scribbles::0000` and so on are cases of 5 runs; all together are 10,000. At least one run of
//! a case overwrites a word before its job ends. They leave out what events say of their messages:
//! a value that is valid for another message can lose one.
//! `soak scribbles N [FILTER...]` makes N runs that match the filters, these words included, and
//! prints a tally.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::program;
use crate::progress::{WorkExtent, WorkProgress};
use crate::sample::SampleRandom;
use crate::scribbled_words::{CLASSES, JobMemory, WordClass};
use crate::starts;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

/// Runs of a case, and cases.
const RUNS: u64 = 5;
const CASES: u64 = 2000;
/// The cases of the sample, two for each turn.
const SAMPLED: u64 = 14;
/// A job that ends because of a write does so within this time after it.
const SOON: Duration = Duration::from_secs(5);
/// Time from the start within which the watchdog ends the job: the traffic runs after a moment.
const WATCHDOG: Duration = Duration::from_millis(6500);
/// Microseconds from the start of the traffic within which the write comes.
const WITHIN: u64 = 10_000;

/// The path that the traffic takes: its name, and the variables that lead there.
type TrafficPath = (&'static str, &'static [(&'static str, &'static str)]);

const PATHS: [TrafficPath; 5] = [
    ("cross-mapped", &[]),
    ("portals", &[("GASNET_SUPERNODE_MAXSIZE", "1")]),
    ("events", &[("GASNET_SUPERNODE_MAXSIZE", "1"), ("GASNET_PORTAL_AT_ONCE", "0")]),
    ("no_outbox", &[("GASNET_SUPERNODE_MAXSIZE", "1"), ("GASNET_PORTAL_OUTBOX_AREAS", "0")]),
    FRAMES,
];
/// Segments of peers are neither mapped nor reached by cross-memory attach, which no variable
/// does: a planted fault of the library. Traffic to them is framed.
const FRAMES: TrafficPath =
    ("frames", &[("GASNET_SUPERNODE_MAXSIZE", "1"), ("GASNET_TEST_FAULT", "frames")]);
/// Writes of one run, all of one class.
const WRITES: [u32; 4] = [1, 4, 16, 64];
/// The class without a check that finds all damage: a case draws from the others.
const UNCHECKED: WordClass = WordClass::EventMessage;
/// Microseconds between two writes, at most.
const APART: u64 = 400;
/// Ranks, and the steps of their traffic: a tenth of a second on 2 CPUs.
const SIZES: [(u32, u32); 3] = [(2, 60), (3, 100), (9, 12)];
/// One run of this many is of the last size, the first with a tree of barriers.
const LARGE: u64 = 12;

/// The words that were overwritten, with their values, and how the last attempt ended.
type Scribbled = (Vec<String>, Result<(), Failure>);

/// What the new value of a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WordChange {
    FlippedBit,
    Zero,
    Ones,
    Random,
    Small,
    /// The value of another word of the same class.
    Copy,
}

const CHANGES: [WordChange; 6] = [
    WordChange::FlippedBit,
    WordChange::Zero,
    WordChange::Ones,
    WordChange::Random,
    WordChange::Small,
    WordChange::Copy,
];

/// What a write led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ScribbleEffect {
    /// The job ended before the write, or the class has no word.
    Missed,
    /// The job passed.
    Unharmed,
    /// The traffic found a payload that no rank sent.
    WrongPayload,
    /// The library ended the job with its two lines.
    Reported,
    /// A rank went on before the puts of another had come: a word of the barrier got the value
    /// that another step has, which is a valid one.
    EarlyBarrier,
    /// The traffic found an operation lost.
    Lost,
    /// Private memory changed.
    Canary,
    /// A signal killed a process.
    Signal,
    /// The watchdog ended it.
    Hang,
    /// It ended more than [`SOON`] after the write.
    Late,
    /// It ended in another manner, or left something behind.
    Other,
}
use ScribbleEffect::{
    Canary, EarlyBarrier, Hang, Late, Lost, Missed, Other, Reported, Signal, Unharmed,
    WrongPayload,
};

impl ScribbleEffect {
    fn is_allowed(self) -> bool {
        matches!(self, Missed | Unharmed | WrongPayload | EarlyBarrier | Reported)
    }
}

/// One run, drawn but not yet executed.
#[derive(Clone, Copy, Debug)]
struct ScribbleRun {
    number: u64,
    seed: u64,
    class: WordClass,
    writes: u32,
    path: TrafficPath,
    mode: ClientMode,
    launcher: JobLauncher,
    nodes: u32,
    steps: u32,
    scribbler: u32,
    after: Duration,
}

/// The cases; the first are the sample. Each seed draws other runs.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let case = |n: u64| {
        TestCase::new(format!("scribbles::{n:04}"), n < SAMPLED, move || {
            let mut failures = String::new();
            let numbers = n * 1000 * RUNS..(n + 1) * 1000 * RUNS;
            let runs = numbers.map(|number| ScribbleRun::draw(seed, number));
            let checked = runs.filter(|run| run.class != UNCHECKED).take(RUNS as usize);
            let (_, missed, sum) = run_all(checked, WorkProgress::hidden(), |failure| {
                failures += &format!("{failure}\n")
            });
            if missed == RUNS {
                failures += "every job ended before a word was overwritten\n";
            }
            if failures.is_empty() { Ok(()) } else { Err(format!("{failures}{sum}")) }
        })
    };
    (0..CASES).map(case).collect()
}

/// Runs the first `count` runs that match these words (`EventMessage` or `events`, for example; a
/// number of a run with `#`). Prints what went wrong and the sum; returns whether all ended as
/// they may.
pub fn tally(seed: u64, count: usize, like: &[String], mut say: impl FnMut(String)) -> bool {
    let named = like.iter().filter_map(|word| word.strip_prefix('#')?.parse::<u64>().ok()).max();
    let last = named.unwrap_or(1000 * count as u64);
    let drawn = (0..=last).map(|number| ScribbleRun::draw(seed, number));
    let fitting = drawn.filter(|run| like.iter().all(|word| run.matches(word))).take(count);
    let mut all_right = true;
    let progress = WorkProgress::new(WorkExtent::Pieces(count));
    let (runs, _, sum) = run_all(fitting, progress, |failure| {
        all_right = false;
        say(failure);
    });
    let like = like.iter().map(|word| format!(" {word}")).collect::<String>();
    say(format!("scribbles{like}, SEED={seed}: {sum}"));
    all_right && runs > 0
}

/// Runs them; passes on each failure, returns their number, that of runs without a write, and the
/// sum in words.
fn run_all(
    runs: impl Iterator<Item = ScribbleRun>,
    mut progress: WorkProgress,
    mut failure: impl FnMut(String),
) -> (u64, u64, String) {
    let mut sums: BTreeMap<ScribbleEffect, u64> = BTreeMap::new();
    let mut longest = Duration::ZERO;
    for run in runs {
        progress.begin(&format!("#{} {:?} {:?}", run.number, run.class, run.launcher));
        let (effect, text, time) = run.done();
        progress.end();
        *sums.entry(effect).or_default() += 1;
        if effect == Reported {
            longest = longest.max(time.unwrap_or_default());
        }
        if !effect.is_allowed() {
            failure(format!(
                "{effect:?}: {text}\n  again: SEED={} cargo run -p capi-tests --bin soak -- scribbles 1 '#{}'",
                run.seed, run.number
            ));
        }
    }
    let runs: u64 = sums.values().sum();
    let parts: Vec<String> = sums.iter().map(|(effect, n)| format!("{n} {effect:?}")).collect();
    let longest = longest.as_secs_f64();
    let missed = sums.get(&Missed).copied().unwrap_or_default();
    (runs, missed, format!("{runs} runs: {}; reported within {longest:.2} s", parts.join(", ")))
}

impl ScribbleRun {
    fn draw(seed: u64, number: u64) -> ScribbleRun {
        let mut random = SampleRandom::new(seed, &format!("scribble {number}"));
        let large = random.below(LARGE) == 0;
        let (nodes, steps) = if large { SIZES[2] } else { *random.pick(&SIZES[..2]) };
        let class = *random.pick(&CLASSES);
        let path = match class {
            WordClass::Inbox => FRAMES,
            _ => *random.pick(if class.is_of_mapped() { &PATHS[..1] } else { &PATHS }),
        };
        ScribbleRun {
            number,
            seed,
            class,
            writes: *random.pick(&WRITES),
            path,
            mode: *random.pick(&[ClientMode::Seq, ClientMode::Par]),
            launcher: *random.pick(&[JobLauncher::Gasnetrun, JobLauncher::PshmNodes]),
            nodes,
            steps,
            scribbler: random.below(nodes.into()) as u32,
            after: Duration::from_micros(random.below(WITHIN)),
        }
    }

    fn matches(&self, word: &str) -> bool {
        match word.strip_prefix('#') {
            Some(number) => number.parse() == Ok(self.number),
            None => format!("{self:?}").contains(word),
        }
    }

    /// Overwrites words through the process of rank `scribbler` until the process ends or all are
    /// written; adds them and their values to `written`.
    fn scribble(&self, processes: &[u32], written: &mut Vec<String>) -> Result<(), Failure> {
        let random = &mut SampleRandom::new(self.seed, &format!("writes {}", self.number));
        let pid = processes[self.scribbler as usize];
        sleep(self.after);
        // An error of a process that has begun to exit is none.
        let unless_ended = |e| if JobMemory::is_mapped_by(pid) { Err(e) } else { Ok(()) };
        let memory = match JobMemory::open(pid, processes) {
            Ok(memory) => memory,
            Err(e) => return unless_ended(e),
        };
        for _ in 0..self.writes {
            match self.scribble_once(&memory, random) {
                Ok(text) => written.extend(text),
                Err(e) => return unless_ended(e),
            }
            sleep(Duration::from_micros(random.below(APART)));
        }
        Ok(())
    }

    /// Changes one word, unless the new value is the old one.
    fn scribble_once(
        &self,
        memory: &JobMemory,
        random: &mut SampleRandom,
    ) -> Result<Option<String>, Failure> {
        let Some(word) = memory.pick(self.class, random)? else { return Ok(None) };
        let other = memory.pick(self.class, random)?;
        let old = memory.value(&word)?;
        let new = match *random.pick(&CHANGES) {
            WordChange::FlippedBit => old ^ 1 << random.below(8 * word.bytes as u64),
            WordChange::Zero => 0,
            WordChange::Ones => u64::MAX,
            WordChange::Random => random.below(u64::MAX),
            WordChange::Small => random.below(64),
            WordChange::Copy => other.map_or(Ok(0), |other| memory.value(&other))?,
        };
        if new == old {
            return Ok(None);
        }
        memory.overwrite(&word, new)?;
        Ok(Some(format!("{}: {old:#x} -> {new:#x}", word.name)))
    }

    fn run(&self) -> Result<(JobOutcome, Vec<String>), Failure> {
        let tree = match self.path == FRAMES {
            true => build_trees::build_faults(),
            false => build_trees::build(),
        };
        build_trees::require(&tree)?;
        let source = program::named("testscribble").ok_or("testscribble is missing")?.source;
        let compiled = build_trees::compiled(&source, self.mode)?;
        let args = [self.steps.to_string()];
        let scribbled: Arc<Mutex<Scribbled>> = Arc::new(Mutex::new((Vec::new(), Ok(()))));
        let (run, note) = (*self, scribbled.clone());
        let mut job = TestJob::new(&tree, &compiled, &args, self.launcher, self.nodes)
            .watchdog(WATCHDOG)
            .act(move |output| {
                let Some(processes) = processes(output, run.nodes) else { return false };
                let (written, end) = &mut *note.lock().unwrap_or_else(PoisonError::into_inner);
                *end = run.scribble(&processes, written);
                true
            });
        for (name, value) in self.path.1 {
            job = job.env(name, value);
        }
        let ended = job.run()?;
        let (written, end) = scribbled.lock().unwrap_or_else(PoisonError::into_inner).clone();
        end.map_err(|e| format!("{self:?}: {e}"))?;
        Ok((ended, written))
    }

    /// Runs it: the effect, what there is to say of it, and how long the job lived after the
    /// writes.
    fn done(&self) -> (ScribbleEffect, String, Option<Duration>) {
        match self.run() {
            Ok((ended, written)) => {
                let effect = match effect(&ended, !written.is_empty()) {
                    Unharmed if self.path == FRAMES && !is_framed(&ended) => Other,
                    Lost if self.class == WordClass::Barrier => EarlyBarrier,
                    effect => effect,
                };
                let text = format!("{self:?}\n  wrote: {}", written.join("; "));
                (effect, ended.failure(text), ended.after_kill)
            }
            Err(failure) => (Other, failure, None),
        }
    }
}

/// The processes by rank, once all ranks have said which one they are.
fn processes(output: &str, nodes: u32) -> Option<Vec<u32>> {
    let named = |rank: u32| {
        let start = format!("rank {rank} is process ");
        output.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
    };
    (0..nodes).map(named).collect()
}

/// Whether every rank has framed messages.
fn is_framed(ended: &JobOutcome) -> bool {
    !ended.counters.is_empty() && ended.counters.iter().all(|rank| rank.framed != 0)
}

fn effect(ended: &JobOutcome, written: bool) -> ScribbleEffect {
    let says = |word: &str| ended.output.contains(&format!("testscribble: {word}"));
    let Some(code) = ended.code else { return Hang };
    if says("CANARY") || code == 12 {
        return Canary;
    }
    if code > 128 || ended.output.contains("killed by signal") {
        return Signal;
    }
    if !ended.left.is_empty() {
        return Other;
    }
    if code != 0 && ended.after_kill.is_some_and(|time| time > SOON) {
        return Late;
    }
    match code {
        0 if says("PASS") => match written {
            true => Unharmed,
            false => Missed,
        },
        10 if says("WRONG") => WrongPayload,
        11 => Lost,
        _ if code != 0 && starts::is_refusal(&ended.output) => Reported,
        _ => Other,
    }
}
