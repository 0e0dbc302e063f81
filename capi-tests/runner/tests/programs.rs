//! All cases of the C test programs as one entry each, for `cargo test` and nextest. Cases
//! outside the sample of this seed (variable SEED) are ignored; `--include-ignored` runs them
//! too.

use capi_tests::case_end::CaseEnd;
use capi_tests::{TestCase, compile_ahead, sample};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long each case took.
static TIMES: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());
/// Cases, and groups of cases, whose times are printed at the end.
const SLOWEST: usize = 12;

fn main() {
    let mut args = Arguments::from_args();
    // Jobs spin: one at a time.
    args.test_threads = Some(1);
    let (cannot, cases): (Vec<_>, Vec<_>) =
        capi_tests::cases(sample::seed()).into_iter().partition(|c| c.missing.is_some());
    // ci/check.sh counts these lines.
    for c in cannot.iter().filter(|c| c.sampled && !args.list) {
        println!("skipped {}: needs {}", c.name, c.missing.as_deref().unwrap_or_default());
    }
    let is_sample = args.filter.is_none() && !args.list && !args.ignored && !args.include_ignored;
    if is_sample {
        let sampled = cases.iter().filter(|c| c.sampled).map(|c| c.name.clone());
        compile_ahead::start(sampled.collect());
    }
    let trials = cases
        .into_iter()
        .map(|c| {
            let (name, sampled) = (c.name.clone(), c.sampled);
            Trial::test(name, || run(c)).with_ignored_flag(!sampled)
        })
        .collect();
    let conclusion = libtest_mimic::run(&args, trials);
    print_times();
    conclusion.exit();
}

/// Prints the slowest cases, and the slowest groups: those whose names begin alike.
fn print_times() {
    let mut cases = std::mem::take(&mut *TIMES.lock().expect("no case panics with the lock"));
    if cases.len() <= SLOWEST {
        return;
    }
    let mut groups = BTreeMap::<String, (Duration, usize)>::new();
    for (time, name) in &cases {
        let group = name.split("::").next().unwrap_or(name).to_string();
        let (total, count) = groups.entry(group).or_default();
        *total += *time;
        *count += 1;
    }
    let mut groups: Vec<_> = groups.into_iter().map(|(name, (t, n))| (t, n, name)).collect();
    groups.sort_unstable_by(|a, b| b.cmp(a));
    cases.sort_unstable_by(|a, b| b.cmp(a));
    println!("seconds of the slowest groups, and of the slowest cases:");
    for (time, count, name) in groups.iter().take(SLOWEST) {
        println!("{:8.1}  {name} ({count} cases)", time.as_secs_f64());
    }
    for (time, name) in cases.iter().take(SLOWEST) {
        println!("{:8.1}  {name}", time.as_secs_f64());
    }
}

/// Runs a case. One that finds that it cannot run counts as passed here; `ci/check.sh` subtracts
/// the lines of the file CHECK_SKIPPED.
fn run(case: TestCase) -> Result<(), Failed> {
    let name = case.name.clone();
    let begin = Instant::now();
    let end = case.end();
    TIMES.lock().expect("no case panics with the lock").push((begin.elapsed(), name.clone()));
    match end {
        CaseEnd::Passed => Ok(()),
        CaseEnd::Failed(failure) => Err(failure.into()),
        CaseEnd::Skipped(reason) => {
            let line = format!("skipped {name}: {}", reason.replace('\n', " "));
            match std::env::var_os("CHECK_SKIPPED") {
                None => println!("{line}"),
                Some(path) => {
                    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
                    file.and_then(|mut file| writeln!(file, "{line}"))?;
                }
            }
            Ok(())
        }
    }
}
