//! Jobs whose ranks get different environments, by a script in front of the program.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::{Failure, TestCase, refusals};
use std::path::Path;
use std::time::Duration;

/// Prints the rank's own value, and the value that the job agreed on.
const PROGRAM: &str = r#"
#include <gasnet.h>
#include <gasnet_tools.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const char *or_none(const char *text) { return text ? text : "none"; }
int main(int argc, char **argv) {
    gasnet_seginfo_t seg[64];
    unsigned char got = 0, mine = 1;
    char own[64];
    snprintf(own, sizeof own, "%s", or_none(getenv("TEST_ODD")));
    if (gasnet_init(&argc, &argv) || gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0)) return 1;
    if (gasnet_getSegmentInfo(seg, 64) != GASNET_OK) return 1;
    if (strcmp(own, or_none(getenv("TEST_ODD")))) gasnet_exit(2);
    if (strcmp(or_none(gasnet_getenv("TEST_ODD")), or_none(gasnett_getenv("TEST_ODD")))) gasnet_exit(3);
    printf("own %s, all %s, chunks %s\n", own, or_none(gasnet_getenv("TEST_ODD")),
           or_none(gasnet_getenv("GASNET_PORTAL_SB_CHUNKS")));
    fflush(stdout);
    gasnet_put((gasnet_mynode() + 1) % gasnet_nodes(), seg[(gasnet_mynode() + 1) % gasnet_nodes()].addr, &mine, 1);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_get(&got, gasnet_mynode(), seg[gasnet_mynode()].addr, 1);
    gasnet_exit(got == 1 ? 0 : 4);
}
"#;

/// One rank gets more variables than the others.
const ODD: &str = r#"if mkdir "$TMPDIR/../odd" 2>/dev/null; then
    export TEST_ODD="not for all" GASNET_PORTAL_SB_CHUNKS=512
fi
exec "$@""#;

/// All ranks get the same variables.
const EVEN: &str = r#"export TEST_ODD="for all" GASNET_PORTAL_SB_CHUNKS=512
exec "$@""#;

/// Both paths, since the ranks must agree on the library's own variables.
pub fn cases() -> Vec<TestCase> {
    let odd = ["own none, all not for all, chunks 512"; 2]
        .into_iter()
        .chain(["own not for all, all not for all, chunks 512"]);
    let odd: Vec<&'static str> = odd.collect();
    let even = vec!["own for all, all for all, chunks 512"; 3];
    let mut all = Vec::new();
    for (name, script, lines) in [("differing", ODD, odd), ("equal", EVEN, even)] {
        for (path, size) in [("cross-mapped", "0"), ("portals", "1")] {
            let lines = lines.clone();
            let run = move || one(script, size, &lines);
            all.push(TestCase::new(format!("environments::{name}::{path}"), true, run));
        }
    }
    all
}

fn one(script: &str, supernode: &str, lines: &[&str]) -> Result<(), Failure> {
    let program = refusals::compiled("environments", PROGRAM, ClientMode::Par)?;
    let args = ["-c", script, "sh", &program.display().to_string()].map(str::to_string);
    let job = TestJob::new(
        &build_trees::build(),
        Path::new("/bin/sh"),
        &args,
        JobLauncher::Gasnetrun,
        3,
    );
    let ended =
        job.env("GASNET_SUPERNODE_MAXSIZE", supernode).watchdog(Duration::from_secs(60)).run()?;
    if ended.code != Some(0) {
        return Err(ended.failure("it did not end with 0".to_string()));
    }
    let mut printed: Vec<&str> = ended.output.lines().filter(|l| l.starts_with("own ")).collect();
    printed.sort();
    if printed != lines {
        return Err(ended.failure(format!("the processes say {printed:?}")));
    }
    ended.tidy()
}
