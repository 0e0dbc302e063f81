//! Active messages that never overflow: `testflood` with every pattern, 2 to 64 ranks and the
//! smallest limits. With flow control the counters of every rank show that the catch basin was
//! never reached, and that requests were held back. Without flow control the same flood
//! overflows: the library detects it and ends the job.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::sample::{self, SampleRandom};
use crate::test_job::TestJob;
use crate::{Failure, TestCase, matrix, program};
use std::fs;
use std::process::Command;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    EveryToOne,
    OneToEvery,
    Pairs,
    SampleRandom,
}

impl Pattern {
    const ALL: [Pattern; 4] =
        [Pattern::EveryToOne, Pattern::OneToEvery, Pattern::Pairs, Pattern::SampleRandom];

    /// The program's name of it.
    fn name(self) -> &'static str {
        match self {
            Pattern::EveryToOne => "every-to-one",
            Pattern::OneToEvery => "one-to-every",
            Pattern::Pairs => "pairs",
            Pattern::SampleRandom => "random",
        }
    }
}

/// How small the resources are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limits {
    /// The credits of one maximal request and no bank, two chunks, the shortest queues, one
    /// event per poll, an epoch for each request. Every completion is reported by an event.
    Least,
    /// The same credits, which never move; no payload stays at its sender.
    Fixed,
    /// The minimum for each rank, and a bank so small that loans are revoked constantly;
    /// completions by events.
    Lending,
    /// All credits of one receive buffer lent to all ranks, one spare buffer, no payload at its
    /// sender.
    Full,
    /// The defaults.
    Default,
}

impl Limits {
    const ALL: [Limits; 5] =
        [Limits::Least, Limits::Fixed, Limits::Lending, Limits::Full, Limits::Default];

    fn name(self) -> &'static str {
        match self {
            Limits::Least => "least",
            Limits::Fixed => "fixed",
            Limits::Lending => "lending",
            Limits::Full => "full",
            Limits::Default => "default",
        }
    }

    fn variables(self, nodes: u32) -> Vec<(&'static str, String)> {
        // The credits of one buffer of 1024 chunks.
        let all = (8184 / nodes).to_string();
        let set: &[(&str, &str)] = match self {
            Limits::Least => &[
                ("CRED_PER_NODE", "8"),
                ("BANKED_CREDITS", "0"),
                ("SB_CHUNKS", "2"),
                ("RPL_CHUNKS", "2"),
                ("MSG_LIMIT", "12"),
                ("NUM_TMPMD", "2"),
                ("SAFE_LIMIT", "1"),
                ("AM_LIMIT", "1"),
                ("SYS_LIMIT", "1"),
                ("EPOCH_DURATION", "1"),
                ("AT_ONCE", "0"),
            ],
            Limits::Fixed => &[
                ("CRED_PER_NODE", "8"),
                ("DYNAMIC_CREDITS", "0"),
                ("MSG_LIMIT", "12"),
                ("RPL_CHUNKS", "2"),
                ("OUTBOX_AREAS", "0"),
            ],
            Limits::Lending => &[
                ("CRED_PER_NODE", "8"),
                ("BANKED_CREDITS", "40"),
                ("EPOCH_DURATION", "16"),
                ("SB_CHUNKS", "64"),
                ("NUM_TMPMD", "2"),
                ("AT_ONCE", "0"),
            ],
            Limits::Full => &[
                ("CRED_PER_NODE", &all),
                ("MAX_CRED_PER_NODE", &all),
                ("AMRECV_SPACE", "4M"),
                ("OUTBOX_AREAS", "0"),
            ],
            Limits::Default => &[],
        };
        set.iter().map(|(name, value)| (*name, value.to_string())).collect()
    }
}

/// What ranks do besides sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Nothing.
    Brisk,
    /// Handlers sleep.
    Slow,
    /// Each rank stops polling for seconds.
    Stopping,
}

impl Manner {
    const ALL: [Manner; 3] = [Manner::Brisk, Manner::Slow, Manner::Stopping];

    fn name(self) -> &'static str {
        match self {
            Manner::Brisk => "brisk",
            Manner::Slow => "slow",
            Manner::Stopping => "stopping",
        }
    }

    fn args(self) -> &'static [&'static str] {
        match self {
            Manner::Brisk => &[],
            Manner::Slow => &["-w", "3000"],
            Manner::Stopping => &["-s", "2000"],
        }
    }
}

const PROCESSES: [u32; 7] = [2, 3, 4, 8, 16, 32, 64];

#[derive(Clone, Copy, Debug)]
struct Flood {
    pattern: Pattern,
    nodes: u32,
    limits: Limits,
    mode: ClientMode,
    manner: Manner,
    seed: u64,
}

impl Flood {
    fn name(self) -> String {
        format!(
            "floods::{}::n{}::{}::{}::{}",
            self.pattern.name(),
            self.nodes,
            self.limits.name(),
            self.mode.name(),
            self.manner.name()
        )
    }

    /// Threads of a rank that send; with many ranks, one each.
    fn threads(self) -> u32 {
        if self.mode == ClientMode::Par && self.nodes <= 8 { 3 } else { 1 }
    }

    /// Requests of each thread: some thousands for the rank that receives most.
    fn requests(self) -> u32 {
        // A receive buffer holds about 2000 Mediums, and most requests are Mediums then
        // (`kinds`).
        let most =
            if self.manner == Manner::Slow && self.limits != Limits::Full { 3000 } else { 8000 };
        match self.pattern {
            Pattern::OneToEvery => most / 2,
            Pattern::Pairs => most / 4,
            Pattern::EveryToOne | Pattern::SampleRandom => {
                (most / (self.nodes * self.threads())).max(100)
            }
        }
    }

    /// The mix of request kinds, if they differ. Most Longs leave nothing in a receive buffer.
    fn kinds(self) -> &'static [&'static str] {
        if self.limits == Limits::Full { &["-k", "MMMMMSLA"] } else { &[] }
    }

    fn job(self, more: &[&str]) -> Result<TestJob, Failure> {
        build_trees::require(&build_trees::build())?;
        let program = program::named("testflood").ok_or("capi-tests/testflood.c is missing")?;
        let compiled = build_trees::compiled(&program.source, self.mode)?;
        let mut args: Vec<String> =
            ["-r", &self.requests().to_string(), "-t", &self.threads().to_string()]
                .iter()
                .chain(&["-x", &self.seed.to_string()])
                .map(ToString::to_string)
                .collect();
        args.extend(
            self.manner.args().iter().chain(self.kinds()).chain(more).map(ToString::to_string),
        );
        args.push(self.pattern.name().to_string());
        let mut job = TestJob::new(
            &build_trees::build(),
            &compiled,
            &args,
            JobLauncher::Gasnetrun,
            self.nodes,
        )
        .watchdog(Duration::from_secs(400));
        for (name, value) in self.limits.variables(self.nodes) {
            job = job.env(&format!("GASNET_PORTAL_{name}"), value);
        }
        Ok(job)
    }

    fn held(self) -> Result<(), Failure> {
        let ended = self.job(&[])?.run()?;
        passed(&ended, self.nodes)?;
        let stalls: u64 = ended.counters.iter().map(|c| c.stalls).sum();
        if matches!(self.limits, Limits::Least | Limits::Fixed | Limits::Lending) && stalls == 0 {
            return Err(ended.failure("no request lacked credits, so nothing was tried"));
        }
        let refreshes: u64 = ended.counters.iter().map(|c| c.refreshes).sum();
        if self.limits == Limits::Full && self.pattern == Pattern::EveryToOne && refreshes == 0 {
            return Err(ended.failure("no receive buffer was ever full, so nothing was tried"));
        }
        Ok(())
    }
}

/// It passed, and no request reached the catch basin on any rank.
fn passed(ended: &JobOutcome, nodes: u32) -> Result<(), Failure> {
    ended.tidy()?;
    ended.passed("testflood")?;
    matrix::delivered(ended, nodes)
}

/// The resource that overflows.
#[derive(Clone, Copy, Debug)]
enum Overflow {
    /// The receive buffers: few large requests.
    Buffers,
    /// The event queue: many small requests.
    Events,
}

impl Overflow {
    /// The arguments of testflood that cause the overflow while rank 0 does not poll, the
    /// number of ranks, and the message.
    fn how(self) -> (&'static [&'static str], u32, &'static str) {
        match self {
            Overflow::Buffers => {
                (&["-k", "M", "-z"], 3, "found no room in the request receive buffers")
            }
            Overflow::Events => (&["-k", "S"], 20, "the event queue AM_EQ has overflowed"),
        }
    }

    /// Without flow control, the flood ends the job at the rank that overflows. With flow
    /// control, the same flood passes.
    fn noticed(self, mode: ClientMode) -> Result<(), Failure> {
        let (args, nodes, message) = self.how();
        let flood = Flood {
            pattern: Pattern::EveryToOne,
            nodes,
            limits: Limits::Default,
            mode,
            manner: Manner::Stopping,
            seed: 1,
        };
        let more = [args, &["-r", "4000", "-t", "1"]].concat();
        let job = || {
            let job = flood.job(&more)?.env("GASNET_PORTAL_SB_CHUNKS", "4096");
            Ok::<_, Failure>(job.env("GASNET_PORTAL_AMRECV_SPACE", "4M"))
        };
        passed(&job()?.run()?, nodes)?;
        let ended = job()?.env("GASNET_PORTAL_FLOW_CONTROL", "0").run()?;
        ended.tidy()?;
        let advice = "Leave GASNET_PORTAL_FLOW_CONTROL on, or raise GASNET_PORTAL_AMRECV_SPACE.";
        let reported = ended.output.matches(message).count() == 1 && ended.output.contains(advice);
        if ended.code != Some(1) || !reported {
            return Err(
                ended.failure(format!("expected exit code 1, once {message:?}, and {advice:?}"))
            );
        }
        let caught: Vec<u64> =
            ended.counters.iter().filter(|c| c.caught != 0).map(|c| c.rank).collect();
        match self {
            Overflow::Buffers if caught != [0] => Err(ended.failure(format!(
                "the catch basins of {caught:?} were reached, expected that of 0"
            ))),
            _ => Ok(()),
        }
    }
}

/// GASNET_PORTAL_CREDIT_STATS: each rank writes its file, no rank borrowed what no rank lent,
/// and `gasnet_trace credits` draws the files. It rejects other files.
fn credit_stats() -> Result<(), Failure> {
    let flood = Flood {
        pattern: Pattern::EveryToOne,
        nodes: 4,
        limits: Limits::Lending,
        mode: ClientMode::Par,
        manner: Manner::Brisk,
        seed: 1,
    };
    let ended = flood.job(&[])?.env("GASNET_PORTAL_CREDIT_STATS", "1").in_own_folder().run()?;
    passed(&ended, flood.nodes)?;
    let dir = build_trees::build().join("capi-tests/credits");
    let failed = |e: std::io::Error| format!("{}: {e}", dir.display());
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).map_err(failed)?;
    let (mut lent, mut borrowed) = (0, 0);
    for rank in 0..flood.nodes {
        let name = format!("gasnet_credits.{rank}");
        let file = ended.files.iter().find(|f| f.0 == name);
        let Some((_, text)) = file.filter(|f| f.1.contains(&format!("process {rank} 4 8 40\n")))
        else {
            return Err(
                ended.failure(format!("{name} is missing or does not say whose it is: {file:?}"))
            );
        };
        for line in text.lines().filter(|l| l.starts_with("peer ")) {
            let numbers: Vec<u64> =
                line.split(' ').skip(1).filter_map(|w| w.parse().ok()).collect();
            let [_, _, to, _, _, from, _, _, _, _] = numbers[..] else {
                return Err(ended.failure(format!("{name} has the line {line:?}")));
            };
            lent += to;
            borrowed += from;
        }
        fs::write(dir.join(name), text).map_err(failed)?;
    }
    if lent == 0 || borrowed > lent {
        return Err(ended.failure(format!("{lent} credits were lent and {borrowed} borrowed")));
    }
    fs::write(dir.join("other"), "process 0 4 8 40\nnothing\n").map_err(failed)?;
    let trace = |args: &[&str]| {
        let mut trace = Command::new(build_trees::build().join("bin/gasnet_trace"));
        trace.args(args).current_dir(&dir);
        trace.output().map_err(failed)
    };
    let drawn = trace(&["credits", "gasnet_credits.1", "gasnet_credits.0", "-o", "out.svg"])?;
    let drawing = fs::read_to_string(dir.join("out.svg")).unwrap_or_default();
    let shown = [">rank 0 of 4: ", ">rank 1 of 4: ", "</svg>"];
    if !drawn.status.success() || shown.iter().any(|w| !drawing.contains(w)) {
        return Err(format!("gasnet_trace credits drew {drawing:?}: {drawn:?}"));
    }
    for (args, code, words) in [
        (&["credits", "other", "-o", "no.svg"][..], 1, "line 2: it is none of the lines"),
        (&["credits", "missing", "-o", "no.svg"], 1, "missing cannot be read"),
        (&["credits", "gasnet_credits.0"], 2, "-o with the drawing"),
    ] {
        let out = trace(args)?;
        if out.status.code() != Some(code) || !String::from_utf8_lossy(&out.stderr).contains(words)
        {
            return Err(format!(
                "gasnet_trace {args:?}: expected exit code {code} and {words:?}: {out:?}"
            ));
        }
    }
    Ok(())
}

/// Each pattern, number of ranks, limits and thread mode, in a combination that changes from
/// one soak round to the next; and the overflows.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let mut floods = Vec::new();
    for pattern in Pattern::ALL {
        for nodes in PROCESSES {
            for limits in Limits::ALL {
                for mode in [ClientMode::Seq, ClientMode::Par] {
                    let manner =
                        Manner::ALL[(floods.len() as u64).wrapping_add(seed) as usize % 3];
                    let seed = seed % 1_000_000;
                    floods.push(Flood { pattern, nodes, limits, mode, manner, seed });
                }
            }
        }
    }
    let taken = sample::cover(&floods, &mut SampleRandom::new(seed, "floods"), |f| {
        [f.pattern as u64, u64::from(f.nodes), f.limits as u64, f.mode as u64, f.manner as u64]
    });
    let mut all: Vec<TestCase> = floods
        .into_iter()
        .enumerate()
        .map(|(i, f)| TestCase::new(f.name(), taken.contains(&i), move || f.held()))
        .collect();
    all.push(TestCase::new("floods::credit_stats".to_string(), true, credit_stats));
    for (name, what) in [("buffers", Overflow::Buffers), ("events", Overflow::Events)] {
        for mode in [ClientMode::Seq, ClientMode::Par] {
            let name = format!("floods::overflow::{name}::{}", mode.name());
            all.push(TestCase::new(name, mode == ClientMode::Seq, move || what.noticed(mode)));
        }
    }
    all
}
