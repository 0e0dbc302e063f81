//! All cases of the C test programs as one entry each, for `cargo test` and nextest. Cases
//! outside the sample of this seed (variable SEED) are ignored; `--include-ignored` runs them
//! too.

use capi_tests::case_end::CaseEnd;
use capi_tests::{TestCase, sample};
use libtest_mimic::{Arguments, Failed, Trial};
use std::io::Write;

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
    let trials = cases
        .into_iter()
        .map(|c| {
            let (name, sampled) = (c.name.clone(), c.sampled);
            Trial::test(name, || run(c)).with_ignored_flag(!sampled)
        })
        .collect();
    libtest_mimic::run(&args, trials).exit();
}

/// Runs a case. One that finds that it cannot run counts as passed here; `ci/check.sh` subtracts
/// the lines of the file CHECK_SKIPPED.
fn run(case: TestCase) -> Result<(), Failed> {
    let name = case.name.clone();
    match case.end() {
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
