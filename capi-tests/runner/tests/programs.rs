//! All cases of the C test programs as one entry each, for `cargo test` and nextest. Cases
//! outside the sample of this seed (variable SEED) are ignored; `--include-ignored` runs them
//! too.

use capi_tests::sample;
use libtest_mimic::{Arguments, Trial};

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
            Trial::test(c.name, || (c.run)().map_err(Into::into)).with_ignored_flag(!c.sampled)
        })
        .collect();
    libtest_mimic::run(&args, trials).exit();
}
