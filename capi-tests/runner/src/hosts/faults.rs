//! What can happen to a job on several hosts: a process or a host dies, a process is stopped, the
//! network is interrupted. The job ends with the right code, or goes on, and leaves nothing on
//! any host.

use super::{
    OFI_PROVIDERS, PLACEMENTS, in_case_name, missing_provider, over, servers, with_hosts,
};
use crate::build_trees::{self, ClientMode};
use crate::case_end;
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::program;
use crate::sample::SampleRandom;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What happens to a job that runs on hosts 1 and 2: the name of the case, the shell command in
/// host 1, where $job is the process of gasnetrun, the exit code of the job, and words that it
/// prints, or "" for a job that reports no loss. A process of host 2 is reached by
/// $GASNET_SSH_CMD.
const FAULTS: [(&str, &str, i32, &str); 14] = [
    ("rank_here", KILL_RANK_HERE, 137, "SIGKILL"),
    ("rank_there", KILL_RANK_THERE, 137, "SIGKILL"),
    ("supervisor_there", KILL_SUPERVISOR_THERE, 1, "host host2 is lost"),
    ("shell", "pkill -9 -P $job nsenter", 1, "the ranks of host host2 has ended"),
    ("gasnetrun", KILL_GASNETRUN, 137, ""),
    ("request", "kill -TERM $job", 143, ""),
    ("host", KILL_HOST, 1, "host host2 is lost"),
    ("link_1_s", "link_down 1 && sleep 6 && kill -TERM $job", 143, ""),
    ("link_10_s", "link_down 10", 1, "host host2 is lost"),
    ("rank_stopped", "$there 'pkill -STOP -o testflood' && sleep 6 && kill -TERM $job", 143, ""),
    (
        "supervisor_stopped",
        "$there 'pkill -STOP gasnetrun' && sleep 6 && kill -TERM $job",
        143,
        "host2",
    ),
    (
        "gasnetrun_stopped",
        "kill -STOP $job && sleep 6 && kill -CONT $job && kill -TERM $job",
        143,
        "",
    ),
    (
        "stopped_host",
        "$there 'pkill -STOP gasnetrun' && sleep 6 && $KILL_HOST host2",
        1,
        "host host2 is lost",
    ),
    ("bad_network", "bad_network && sleep 6 && kill -TERM $job", 143, ""),
];

/// How a line of a script begins that says why this machine cannot do it.
const CANNOT: &str = "cannot: ";

/// The same for a job on hosts 1 to 3, where host 1 starts host 2, and that starts host 3.
const CHAIN_FAULTS: [(&str, &str, i32, &str); 5] = [
    ("inner_host", KILL_HOST, 1, "host host2 is lost"),
    ("inner_supervisor", KILL_SUPERVISOR_THERE, 1, "host host2 is lost"),
    ("inner_link_10_s", "link_down 10", 1, "host host2 is lost"),
    ("leaf_host", "$KILL_HOST host3", 1, "host host3 is lost"),
    ("leaf_rank", "$GASNET_SSH_CMD host3 'pkill -9 -o testflood'", 137, "SIGKILL"),
];

const KILL_RANK_HERE: &str = "kill -9 $(pgrep -n -P $job testflood)";
const KILL_RANK_THERE: &str = "$there 'pkill -9 -o testflood'";
const KILL_SUPERVISOR_THERE: &str = "$there 'pkill -9 gasnetrun'";
const KILL_GASNETRUN: &str = "kill -9 $job";
const KILL_HOST: &str = "$KILL_HOST host2";

/// What dies at any time, also while the job starts: the name, the command, the exit code.
const DEATHS: [(&str, &str, i32); 5] = [
    ("rank_here", KILL_RANK_HERE, 137),
    ("rank_there", KILL_RANK_THERE, 137),
    ("supervisor_there", KILL_SUPERVISOR_THERE, 1),
    ("gasnetrun", KILL_GASNETRUN, 137),
    ("host", KILL_HOST, 1),
];

/// Deaths at random times, and those of them that the sample meets.
const RANDOM_DEATHS: usize = 1000;
const RANDOM_SAMPLE: usize = 5;
/// Milliseconds from the start in which they happen.
const RANDOM_MS: u64 = 1500;

/// Runs a flood of as many ranks as the fifth argument says. If the fourth is empty, waits until
/// it runs on all hosts, then does what the third says. Otherwise does it after that many
/// seconds, or as soon as it can be done. Prints the exit code of the job, the processes that are
/// left, and the milliseconds that it took. If it cannot do it, kills the job and says so.
const FAULT_SCRIPT: &str = r#"
there="$GASNET_SSH_CMD host2"
link_down() {
    $there "ip link set eth0 down && sleep $1 && ip link set eth0 up"
}
bad_network() {
    for host in host1 host2; do
        $GASNET_SSH_CMD $host 'tc qdisc add dev eth0 root netem loss 1% delay 2ms 1ms' 2>said && continue
        echo "cannot: $(cat said)"
        return 1
    done
}
give_up() {
    kill -KILL $job
    wait $job
    echo "not done: $1"
    exit 1
}
"$1" -n "$5" "$2" -r 100000000 all >out 2>&1 &
job=$!
tries=0
if [ "$4" ]; then
    sleep "$4"
    until eval "$3" 2>>said || ! kill -0 $job || [ $tries -gt 600 ]; do
        tries=$((tries + 1)); sleep 0.02
    done
    [ $tries -le 600 ] || give_up "$3"
    began=$(date +%s%N)
else
    for host in $(echo "$HOSTS" | tr , ' '); do
        until [ "$($GASNET_SSH_CMD $host 'pgrep -c testflood')" -ge 2 ] || [ $tries -gt 600 ]; do
            tries=$((tries + 1)); sleep 0.05
        done
    done
    [ $tries -le 600 ] || give_up "the job does not run on all hosts"
    sleep 0.5
    began=$(date +%s%N)
    eval "$3" || give_up "$3"
fi
wait $job
code=$?
took=$((($(date +%s%N) - began) / 1000000))
$there 'pkill -CONT gasnetrun' 2>>said
tries=0
while pgrep -f "^($1|$2) " >left && [ $tries -lt 200 ]; do
    tries=$((tries + 1)); sleep 0.05
done
sed 's/^/said: /' out
ps -o pid,args -p "$(paste -sd, left)" 2>/dev/null
echo "code $code left $(wc -l <left) after $took ms"
"#;

/// Ranks of two hosts meet first while the link of host 2 is down.
const FIRST_MESSAGES_SCRIPT: &str = r#"
"$1" -n 4 "$2" go &
tries=0
until [ "$($GASNET_SSH_CMD host2 'pgrep -c firstputs')" -ge 2 ] || [ $tries -gt 600 ]; do
    tries=$((tries + 1)); sleep 0.05
done
sleep 0.5
$GASNET_SSH_CMD host2 'ip link set eth0 down && : >go && sleep 1 && ip link set eth0 up' ||
    kill $!
wait $!
echo "code $?"
"#;

/// Longest time until a job has ended, on a machine that does other work too.
const LONGEST_MS: u64 = 25_000;

/// Each fault, and deaths at random times. The sample has every other fault.
pub(super) fn cases(seed: u64) -> Vec<TestCase> {
    let mut all = Vec::new();
    let mut random = SampleRandom::new(seed, "hosts faults");
    for (case, command, code, words) in FAULTS {
        let name = format!("hosts::fault::{case}");
        let fails = move || says(&run(command, "", code, false)?, words);
        all.push(TestCase::new(name, random.half(), fails));
    }
    for (case, command, code, words) in CHAIN_FAULTS {
        let name = format!("hosts::fault::chain::{case}");
        let fails = move || says(&run(command, "", code, true)?, words);
        all.push(TestCase::new(name, random.half(), fails));
    }
    let name = String::from("hosts::fault::first_messages");
    all.push(TestCase::new(name, true, || first_messages(None)));
    for provider in OFI_PROVIDERS {
        let name = format!("hosts::fault::first_messages::{}", in_case_name(provider));
        let mut case = TestCase::new(name, true, move || first_messages(Some(provider)));
        case.missing = missing_provider(provider);
        all.push(case);
    }
    let mut random = SampleRandom::new(seed, "hosts random deaths");
    for n in 0..RANDOM_DEATHS {
        let (victim, command, code) = DEATHS[n % DEATHS.len()];
        let ms = random.below(RANDOM_MS);
        let name = format!("hosts::random::{victim}::{n}");
        all.push(TestCase::new(name, n < RANDOM_SAMPLE, move || {
            run(command, &format!("{}.{:03}", ms / 1000, ms % 1000), code, false).map(drop)
        }));
    }
    all
}

/// The job ends with this code, soon, and nothing is left, unless this machine cannot do it.
/// `is_chain`: its hosts are three.
fn run(command: &str, delay: &str, code: i32, is_chain: bool) -> Result<JobOutcome, Failure> {
    let library = TestLibrary::of(build_trees::build());
    let flood = program::named("testflood").ok_or("there is no testflood")?;
    let compiled = library.compiled(&flood.source, ClientMode::Par)?;
    let shell = PathBuf::from("/bin/sh");
    let gasnetrun = build_trees::build().join("bin/gasnetrun").display().to_string();
    let program = compiled.display().to_string();
    let placement = usize::from(is_chain);
    let (_, hosts, ranks) = PLACEMENTS[placement];
    let n = ranks.iter().sum::<u32>().to_string();
    let args = ["-c", FAULT_SCRIPT, "sh", &gasnetrun, &program, command, delay, &n];
    let job = library.job(&shell, &args.map(String::from), JobLauncher::Alone, 1)?;
    let mut job = job.env("GASNET_SSH_SERVERS", servers(placement)).in_own_folder();
    if is_chain {
        job = job.env("GASNET_SSH_OUT_DEGREE", "1");
    }
    let ended = job.below(&with_hosts(), hosts).watchdog(Duration::from_secs(120)).run()?;
    ended.tidy()?;
    if cannot(&ended).is_some() {
        return Ok(ended);
    }
    let last = ended.output.lines().last().unwrap_or_default();
    let numbers: Vec<u64> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [found, 0, took] if found == code as u64 && took < LONGEST_MS => Ok(ended),
        _ => Err(ended.failure(format!("{code} was due, nothing left, soon ({delay})"))),
    }
}

/// A connection that is begun while the network is away for a second is made.
fn first_messages(provider: Option<&'static str>) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build());
    let source = build_trees::root().join("capi-tests/firstputs.c");
    let compiled = library.compiled(&source, ClientMode::Seq)?;
    let gasnetrun = build_trees::build().join("bin/gasnetrun").display().to_string();
    let args = ["-c", FIRST_MESSAGES_SCRIPT, "sh", &gasnetrun, &compiled.display().to_string()];
    let job = library.job(Path::new("/bin/sh"), &args.map(String::from), JobLauncher::Alone, 1)?;
    let job = over(job, provider).env("GASNET_SSH_SERVERS", servers(0)).in_own_folder();
    let ended = job.below(&with_hosts(), "2").watchdog(Duration::from_secs(60)).run()?;
    ended.tidy()?;
    match ended.output.lines().filter(|line| line.ends_with(": 0 wrong")).count() {
        4 if ended.output.lines().any(|line| line == "code 0") => Ok(()),
        _ => Err(ended.failure("a first message was lost")),
    }
}

/// Why this machine could not do it to the job.
fn cannot(ended: &JobOutcome) -> Option<&str> {
    ended.output.lines().find_map(|line| line.strip_prefix(CANNOT))
}

/// It prints these words. If there are none, it reports no loss.
fn says(ended: &JobOutcome, words: &str) -> Result<(), Failure> {
    if let Some(why) = cannot(ended) {
        return case_end::skip(why);
    }
    match words {
        "" if ended.output.contains("lost") => Err(ended.failure("it reports a loss")),
        words if ended.output.contains(words) => Ok(()),
        words => Err(ended.failure(format!("it does not say {words:?}"))),
    }
}
