//! Segments that clients of GASNet-EX make of memory (`gex_Segment_Create`): the programs of
//! GASNet-EX use them instead of attached ones. Peers reach them by cross-memory attach and, as on
//! a kernel that lacks it, in frames.

use crate::build_trees::{self, ClientMode};
use crate::everything::WITHOUT_ATTACH;
use crate::job_launcher::JobLauncher;
use crate::program::{self, TestProgram};
use crate::sample::{self, SampleRandom};
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase};
use std::time::Duration;

/// What the segments are made of (checkex.h).
const KINDS: [&str; 3] = ["own", "mapped", "mixed"];
const PROGRAMS: [&str; 7] = [
    "testexam",
    "testexatomic",
    "testexcoll",
    "testexcore",
    "testeximm",
    "testexsegment",
    "testexvis",
];

#[derive(Clone, Copy)]
struct CaseSetting {
    mode: ClientMode,
    kind: &'static str,
    attaches: bool,
    nodes: u32,
}

/// Per program, the sample meets both means and each kind of memory.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let mut all = Vec::new();
    for p in PROGRAMS.into_iter().filter_map(program::named) {
        let mut settings = Vec::new();
        for mode in [ClientMode::Seq, ClientMode::Par] {
            for kind in KINDS {
                for attaches in [true, false] {
                    for nodes in [1, 2, 4] {
                        settings.push(CaseSetting { mode, kind, attaches, nodes });
                    }
                }
            }
        }
        let mut random = SampleRandom::new(seed, &format!("created segments {}", p.name));
        let kind_of = |s: &CaseSetting| KINDS.iter().position(|&kind| kind == s.kind);
        let taken = sample::cover(&settings, &mut random, |s| {
            [kind_of(s).unwrap_or(0) as u64, u64::from(s.attaches)]
        });
        for (i, &s) in settings.iter().enumerate() {
            let means = if s.attaches { "attach" } else { "frames" };
            let (mode, kind, nodes) = (s.mode.name(), s.kind, s.nodes);
            let name = format!("{}::created::{mode}::{kind}::{means}::n{nodes}", p.name);
            let p = p.clone();
            all.push(TestCase::new(name, taken.contains(&i), move || passes(&p, s)));
        }
    }
    all
}

/// A run that must pass, by the means of its setting: frames are counted.
fn passes(p: &TestProgram, s: CaseSetting) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build());
    let library = if s.attaches { library } else { library.under(WITHOUT_ATTACH) };
    let compiled = library.compiled(&p.source, s.mode)?;
    let job = library.job(&compiled, &p.args, JobLauncher::Gasnetrun, s.nodes)?;
    let job = job.env("GASNET_TEST_SEGMENT", s.kind);
    let ended = job.watchdog(Duration::from_secs(300)).run()?;
    ended.tidy()?;
    ended.passed(&p.name)?;
    let framed: u64 = ended.counters.iter().map(|c| c.framed).sum();
    let is_put = p.name == "testexsegment" && s.nodes > 1;
    match framed {
        1.. if s.attaches => Err(ended.failure(format!("{framed} messages went in frames"))),
        0 if !s.attaches && is_put => Err(ended.failure("no message went in frames")),
        _ => Ok(()),
    }
}
