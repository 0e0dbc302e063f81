//! Processes that end while another thread holds a C stream, or fails. They end soon, with their
//! code, and lose no output without a word. Called by the list of cases.
//!
//! Invariant: what a thread reads from never has input, and never ends.

use crate::build_trees;
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::tools::compiled;
use crate::{Failure, TestCase};
use std::time::Duration;

/// A process that takes longer waits for the stream.
const HANG: Duration = Duration::from_secs(30);
/// What one takes at most that does not wait for standard input until its alarm.
const SOON: Duration = Duration::from_secs(10);

/// Ends as its first argument says. A thread reads from the stream that its second one names, or
/// fails as that says while the first thread exits.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <gasnet.h>
#include <gasnet_tools.h>
static const char *state;
static int *volatile nowhere;
static void *reads(void *stream) {
    fgetc((FILE *)stream);
    return NULL;
}
static void *fails(void *p) {
    usleep(500000);
    if (!strcmp(state, "crashes")) *nowhere = 1;
    if (!strcmp(state, "aborts")) abort();
    gasnett_fatalerror("it fails");
    return p;
}
int main(int argc, char **argv) {
    pthread_t thread;
    const char *how = argv[1];
    int ends[2];
    state = argv[2];
    if (pipe(ends)) return 9;
    if (!strncmp(how, "job_", 4)) {
        gasnet_init(&argc, &argv);
        gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0);
        how += 4;
    }
    if (!strcmp(state, "input")) {
        dup2(ends[0], 0);
        pthread_create(&thread, NULL, reads, stdin);
    } else if (!strcmp(state, "other")) {
        pthread_create(&thread, NULL, reads, fdopen(ends[0], "r"));
    } else {
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        while (write(ends[1], ends, 1) > 0) continue;
        fcntl(ends[1], F_SETFL, 0);
        dup2(ends[1], 1);
        pthread_create(&thread, NULL, fails, NULL);
    }
    usleep(100000);
    printf("last words\n");
    if (!strcmp(how, "fatal")) gasnett_fatalerror("it is over");
    gasnet_exit(atoi(how));
    return 9;
}
"#;

/// A name, the arguments of the program, its exit code, what it prints.
type Row = (&'static str, [&'static str; 2], i32, &'static [&'static str]);

const LAST_WORDS: &str = "last words\n";
const WARNING: &str = "output may be lost";

const ROWS: &[Row] = &[
    ("fatal", ["fatal", "input"], 128 + 6, &[LAST_WORDS]),
    ("fatal_of_a_rank", ["job_fatal", "input"], 128 + 6, &[LAST_WORDS]),
    ("fatal_other", ["job_fatal", "other"], 128 + 6, &[LAST_WORDS, WARNING]),
    ("early_exit", ["3", "input"], 3, &[LAST_WORDS]),
    ("early_exit_other", ["3", "other"], 3, &[LAST_WORDS, WARNING]),
    ("exit", ["job_0", "input"], 0, &[LAST_WORDS]),
    ("exit_other", ["job_0", "other"], 1, &[LAST_WORDS, WARNING]),
    ("crash_in_exit", ["job_0", "crashes"], 128 + 11, &["Caught a fatal signal: SIGSEGV(11)"]),
    ("abort_in_exit", ["job_0", "aborts"], 128 + 6, &["Caught a fatal signal: SIGABRT(6)"]),
    ("fatal_in_exit", ["job_0", "fatal"], 128 + 6, &["it fails", "output is lost"]),
];

/// One case for each row.
pub fn cases() -> Vec<TestCase> {
    let case = |row: &'static Row| {
        TestCase::new(format!("held_streams::{}", row.0), true, move || ends(row))
    };
    ROWS.iter().map(case).collect()
}

fn ends(&(_, args, code, words): &Row) -> Result<(), Failure> {
    let program = compiled("held_streams", PROGRAM, false)?;
    let args = args.map(String::from);
    let tree = build_trees::build();
    let mut job = TestJob::new(&tree, &program, &args, JobLauncher::Alone, 1).watchdog(HANG);
    let reads_input = args[1] == "input";
    if reads_input {
        job = job.env("GASNET_EXITTIMEOUT", "20");
    }
    let ended = job.run()?;
    ended.tidy()?;
    if reads_input && ended.time > SOON {
        return Err(ended.failure("it waits for the thread that reads"));
    }
    if ended.code != Some(code) {
        return Err(ended.failure(format!("{code} was due")));
    }
    if let Some(word) = words.iter().find(|word| !ended.output.contains(**word)) {
        return Err(ended.failure(format!("it does not say {word:?}")));
    }
    match ended.output.contains(WARNING) == words.contains(&WARNING) {
        true => Ok(()),
        false => Err(ended.failure(format!("it says {WARNING:?}"))),
    }
}
