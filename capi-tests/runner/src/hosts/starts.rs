//! How the supervisors of several hosts begin, wait, and end before the ranks call `gasnet_init`.
//!
//! Called by the list of cases of several hosts. Invariant: each case asserts a bound of time or
//! of wake-ups that does not depend on the load of the machine.

use super::{servers, with_hosts};
use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase};
use std::path::Path;
use std::time::Duration;

/// The name of a case, what is killed while the ranks are shells, and the exit code of the job.
const ORPHANS: [(&str, &str, i32); 2] =
    [("gasnetrun", "kill -9 $job", 137), ("supervisor_there", "$there 'pkill -9 gasnetrun'", 1)];

/// Ranks are shells that run a program each. What the second argument says is done to the job,
/// whose gasnetrun is the first. Host 1 sees the processes of all hosts.
const ORPHANS_SCRIPT: &str = r#"
there="$GASNET_SSH_CMD host2"
left() { pgrep -fc "^sleep $mark"; }
# Of this job only: the jobs of others sleep as long.
mark=998.0$$
"$1" -n 4 sh -c "sleep $mark; :" &
job=$!
tries=0
until [ "$(left)" -ge 4 ] || [ $tries -gt 600 ]; do
    tries=$((tries + 1)); sleep 0.05
done
echo "began $(left)"
eval "$2"
wait $job
code=$?
tries=0
until [ "$(left)" = 0 ] || [ $tries -gt 100 ]; do
    tries=$((tries + 1)); sleep 0.05
done
echo "code $code left $(left)"
"#;

/// How often gasnetrun wakes within 2 s of a job in which nothing happens.
const IDLE_SCRIPT: &str = r#"
woken() { awk '/^voluntary_ctxt_switches/ { print $2 }' /proc/$job/status; }
"$1" -n 4 sh -c 'sleep 6' &
job=$!
sleep 2
before=$(woken)
sleep 2
echo "woken $(($(woken) - before))"
wait $job
"#;

/// Lines that each of four ranks prints.
const LINES: u64 = 400_000;

/// The reader of the output, such as a pager, takes nothing before the ranks have ended for long.
/// Then the shell of the other host still has most of it. Prints how many lines it has read. The
/// ranks of that host print them, then all run another program.
const SLOW_READER_SCRIPT: &str = r#"
cat >enter <<'END'
#!/bin/sh
$ENTER "$@" | tac | tac
END
chmod +x enter
ranks='[ "$GASNET_RANK" -lt 2 ] || seq "$1"; exec "$2" >/dev/null'
ENTER=$GASNET_SSH_CMD GASNET_SSH_CMD=$PWD/enter "$1" -n 4 sh -c "$ranks" sh "$2" "$3" |
    { sleep 13; wc -l; } >read
echo "read $(cat read)"
"#;

/// gasnetrun stops before the other supervisor connects, and then the network fails. Prints for
/// how many milliseconds that supervisor waits for a proof.
const HALF_OPEN_SCRIPT: &str = r#"
there="$GASNET_SSH_CMD host2"
cat >enter <<'END'
#!/bin/sh
read -r line
kill -STOP $PPID
printf '%s\n' "$line" | $ENTER "$@"
END
chmod +x enter
ENTER=$GASNET_SSH_CMD GASNET_SSH_CMD=$PWD/enter "$1" -n 4 true &
job=$!
connected() { $there 'ss -Htn state established' | grep -q .; }
tries=0
until connected || [ $tries -gt 600 ]; do
    tries=$((tries + 1)); sleep 0.02
done
$there 'ip link set eth0 down'
began=$(date +%s%N)
tries=0
while $there 'pgrep gasnetrun' >/dev/null && [ $tries -lt 1000 ]; do
    tries=$((tries + 1)); sleep 0.05
done
echo "waited $((($(date +%s%N) - began) / 1000000))"
kill -CONT $job
wait $job
echo "code $?"
"#;

pub(super) fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    for (case, command, code) in ORPHANS {
        let name = format!("hosts::orphans::{case}");
        all.push(TestCase::new(name, true, move || orphans(command, code)));
    }
    all.push(TestCase::new("hosts::idle".to_string(), true, idle));
    all.push(TestCase::new("hosts::half_open".to_string(), true, half_open));
    let of_job = build_trees::root().join("capi-tests/testhello.c");
    for (name, source) in [("command", None), ("rank", Some(of_job))] {
        let name = format!("hosts::slow_reader::{name}");
        all.push(TestCase::new(name, true, move || slow_reader(source.as_deref())));
    }
    all
}

/// Runs a script on the first of two hosts.
fn run(script: &str, more: &[&str]) -> Result<JobOutcome, Failure> {
    let library = TestLibrary::of(build_trees::build());
    let gasnetrun = build_trees::build().join("bin/gasnetrun").display().to_string();
    let args = [&["-c", script, "sh", &gasnetrun], more].concat();
    let args: Vec<String> = args.into_iter().map(String::from).collect();
    let job = library.job(Path::new("/bin/sh"), &args, JobLauncher::Alone, 1)?;
    let job = job.env("GASNET_SSH_SERVERS", servers(0)).in_own_folder();
    let ended = job.below(&with_hosts(), "2").watchdog(Duration::from_secs(120)).run()?;
    ended.tidy()?;
    Ok(ended)
}

/// The number behind a word that begins a line.
fn number(ended: &JobOutcome, word: &str) -> Option<u64> {
    let rest = ended.output.lines().find_map(|l| l.strip_prefix(word))?;
    rest.trim().parse().ok()
}

/// What ranks have started before `gasnet_init` ends, on all hosts.
fn orphans(command: &str, code: i32) -> Result<(), Failure> {
    let ended = run(ORPHANS_SCRIPT, &[command])?;
    let last = format!("code {code} left 0");
    match ended.output.lines().any(|l| l == "began 4") && ended.output.lines().any(|l| l == last) {
        true => Ok(()),
        false => Err(ended.failure("programs of the ranks are left")),
    }
}

/// Shells, links and ranks report what happens. The supervisor does not look for it.
fn idle() -> Result<(), Failure> {
    let ended = run(IDLE_SCRIPT, &[])?;
    match number(&ended, "woken ") {
        Some(0..10) => Ok(()),
        _ => Err(ended.failure("gasnetrun wakes although nothing happens")),
    }
}

/// What waits for its reader is not lost with the shell of another host. At the end all ranks run
/// the program of this source, or a command that is no rank.
fn slow_reader(source: Option<&Path>) -> Result<(), Failure> {
    let program = match source {
        Some(source) => TestLibrary::of(build_trees::build()).compiled(source, ClientMode::Seq)?,
        None => "true".into(),
    };
    let lines = LINES.to_string();
    let ended = run(SLOW_READER_SCRIPT, &[&lines, &program.display().to_string()])?;
    match number(&ended, "read ") == Some(2 * LINES) {
        true => Ok(()),
        false => Err(ended.failure("lines of the ranks are lost")),
    }
}

/// The host of gasnetrun is lost when a supervisor has connected to it and awaits its proof.
fn half_open() -> Result<(), Failure> {
    let ended = run(HALF_OPEN_SCRIPT, &[])?;
    match number(&ended, "waited ") {
        Some(0..12_000) if ended.output.lines().any(|l| l == "code 1") => Ok(()),
        _ => Err(ended.failure("a supervisor waits long for a host that is lost")),
    }
}
