//! Every variable of the portals-conduit at both ends of its range: a flood of every kind of
//! message must pass in SEQ and in PAR. One step beyond either end, gasnet_init rejects the
//! value and names the range. It also rejects more memory than exists. The library's own tests
//! show the effect of each value.

use crate::build_trees::{self, ClientMode, root};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::test_job::TestJob;
use crate::{Failure, TestCase, matrix, program};
use std::fs;
use std::time::Duration;

/// A variable: its range, and other variables that a value at its upper end needs.
struct Range {
    name: &'static str,
    least: u64,
    most: u64,
    with_most: &'static [(&'static str, &'static str)],
}

/// More bytes than any machine has: a terabyte in each rank.
const NOT_TO_BE_HAD: u64 = 1 << 40;

const fn range(name: &'static str, least: u64, most: u64) -> Range {
    Range { name, least, most, with_most: &[] }
}

const RANGES: &[Range] = &[
    range("GASNET_PORTAL_MSG_LIMIT", 12, 65535),
    range("GASNET_PORTAL_NUM_TMPMD", 2, 32768),
    range("GASNET_PORTAL_PACKED_LONG", 0, 1),
    range("GASNET_PACKEDLONG_LIMIT", 0, 2048),
    range("GASNET_PORTAL_AT_ONCE", 0, 1),
    range("GASNET_PORTAL_FLOW_CONTROL", 0, 1),
    range("GASNET_PORTAL_DYNAMIC_CREDITS", 0, 1),
    range("GASNET_PORTAL_CREDIT_STATS", 0, 1),
    range("GASNET_PORTAL_EPOCH_DURATION", 1, 1 << 30),
    range("GASNET_PORTAL_SB_CHUNKS", 2, 4096),
    range("GASNET_AM_MAX_MEDIUM", 512, 65_408),
    range("GASNET_PORTAL_OUTBOX_AREAS", 0, 4096),
    range("GASNET_OFI_PROGRESS_EVENTS", 1, 1000),
    range("GASNET_PORTAL_RPL_CHUNKS", 2, 4096),
    range("GASNET_PORTAL_SAFE_LIMIT", 0, 65535),
    range("GASNET_PORTAL_AM_LIMIT", 0, 65535),
    range("GASNET_PORTAL_SYS_LIMIT", 0, 65535),
    range("GASNET_PORTAL_MAX_CRED_PER_NODE", 8, 65535),
    Range {
        name: "GASNET_PORTAL_CRED_PER_NODE",
        least: 8,
        most: 65535,
        with_most: &[("GASNET_PORTAL_MAX_CRED_PER_NODE", "65535")],
    },
    range("GASNET_PORTAL_BANKED_CREDITS", 0, 65535),
    range("GASNET_PORTAL_AMRECV_SPACE", 4 << 20, NOT_TO_BE_HAD),
    range("GASNET_PORTAL_PUTGET_BOUNCE_LIMIT", 0, 2048),
    range("GASNET_PORTAL_PUT_BOUNCE_LIMIT", 0, 2048),
    range("GASNET_PORTAL_GET_BOUNCE_LIMIT", 0, 2040),
    range("GASNET_PORTAL_ACCEL", 0, 0),
    range("GASNET_PORTAL_THREADSAFE", 0, 1),
    range("GASNET_PORTAL_BYPASS", 0, 1),
    range("GASNET_PORTAL_PTE_RAR", 0, 255),
    range("GASNET_PORTAL_PTE_AM", 0, 255),
    range("GASNET_PORTAL_PIN", 0, 1),
];

/// The position of a value in its range, or beyond it.
#[derive(Clone, Copy, Debug)]
enum Place {
    Least,
    Most,
    Below,
    Above,
}

/// Each variable and position; and the table against the documentation.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    for range in RANGES {
        let name = |place: Place, mode: ClientMode| {
            format!("variables::{}::{place:?}::{}", range.name, mode.name()).to_lowercase()
        };
        for place in [Place::Least, Place::Most] {
            for mode in [ClientMode::Seq, ClientMode::Par] {
                all.push(TestCase::new(name(place, mode), true, move || {
                    range.passes(place, mode)
                }));
            }
        }
        for place in [Place::Below, Place::Above] {
            all.push(TestCase::new(name(place, ClientMode::Seq), true, move || {
                range.is_refused(place)
            }));
        }
    }
    all.push(TestCase::new("variables::all_are_tried".to_string(), true, all_are_tried));
    all
}

impl Range {
    fn value(&self, place: Place) -> String {
        match place {
            Place::Least => self.least.to_string(),
            Place::Most => self.most.to_string(),
            Place::Below => (self.least as i64 - 1).to_string(),
            Place::Above => (self.most + 1).to_string(),
        }
    }

    fn flood(&self, place: Place, mode: ClientMode) -> Result<JobOutcome, Failure> {
        let more = if matches!(place, Place::Most) { self.with_most } else { &[] };
        // Most variables limit what events need.
        let events = [("GASNET_PORTAL_AT_ONCE", "0")];
        flood(&[&events, &[(self.name, self.value(place).as_str())], more].concat(), mode)
    }

    fn passes(&self, place: Place, mode: ClientMode) -> Result<(), Failure> {
        let ended = self.flood(place, mode)?;
        if matches!(place, Place::Most) && self.most == NOT_TO_BE_HAD {
            let advice = format!("lower GASNET_PORTAL_SB_CHUNKS and {}.", self.name);
            if ended.code != Some(1) || ended.output.matches(&advice).count() != 1 {
                return Err(ended.failure(format!("expected exit code 1, and once {advice:?}")));
            }
            return Ok(());
        }
        ended.passed("testflood")?;
        matrix::delivered(&ended, 3)
    }

    fn is_refused(&self, place: Place) -> Result<(), Failure> {
        let (ended, value) = (self.flood(place, ClientMode::Seq)?, self.value(place));
        let is_said_once =
            ended.output.matches(&format!("{}={value} cannot be used\n", self.name)).count() == 1;
        let bounds = match (self.least, self.most) {
            (0, 1) => "Give Y, YES, 1, N, NO or 0".to_string(),
            (least, most) if least == most => format!("Give {least},"),
            (least, most) => format!("from {least} to {most}"),
        };
        let in_units = format!("from {} to {}", size(self.least), size(self.most));
        let is_named = ended.output.contains(&bounds) || ended.output.contains(&in_units);
        if ended.code != Some(1) || !is_said_once || !is_named {
            return Err(ended.failure(format!(
                "expected exit code 1, once that it cannot be used, and {bounds:?}"
            )));
        }
        Ok(())
    }
}

/// A size with the largest unit that expresses it exactly.
fn size(bytes: u64) -> String {
    let units = [(40, "TB"), (30, "GB"), (20, "MB"), (10, "KB"), (0, "B")];
    let fits = |shift: u32| bytes >> shift > 0 && bytes.is_multiple_of(1 << shift);
    let (shift, unit) = units.into_iter().find(|(shift, _)| fits(*shift)).unwrap_or((0, "B"));
    format!("{}{unit}", bytes >> shift)
}

/// Few enough concurrent messages for receive buffers without flow control.
fn flood(vars: &[(&str, &str)], mode: ClientMode) -> Result<JobOutcome, Failure> {
    build_trees::require(&build_trees::build())?;
    let program = program::named("testflood").ok_or("capi-tests/testflood.c is missing")?;
    let args = ["-r", "150", "random"].map(String::from);
    let compiled = build_trees::compiled(&program.source, mode)?;
    let mut job = TestJob::new(&build_trees::build(), &compiled, &args, JobLauncher::Gasnetrun, 3)
        .watchdog(Duration::from_secs(300))
        .in_own_folder();
    for (name, value) in vars {
        job = job.env(name, value);
    }
    let ended = job.run()?;
    ended.tidy()?;
    Ok(ended)
}

/// The documentation has no other variable of the conduit.
fn all_are_tried() -> Result<(), Failure> {
    let path = root().join("docs/ENVIRONMENT.md");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let names = text.lines().filter_map(|l| l.strip_prefix("| `")?.split('`').next());
    let of_messages =
        ["GASNET_PACKEDLONG_LIMIT", "GASNET_AM_MAX_MEDIUM", "GASNET_OFI_PROGRESS_EVENTS"];
    let ours = names.filter(|n| n.starts_with("GASNET_PORTAL_") || of_messages.contains(n));
    let (tried, missing): (Vec<_>, Vec<_>) =
        ours.partition(|n| RANGES.iter().any(|r| r.name == *n));
    if missing.is_empty() && tried.len() == RANGES.len() {
        Ok(())
    } else {
        Err(format!(
            "{} of {} are documented, and in addition {missing:?}",
            tried.len(),
            RANGES.len()
        ))
    }
}
