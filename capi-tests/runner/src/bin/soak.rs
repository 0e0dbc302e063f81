//! Walks the cases of all tests.
//!
//! | command | what it does |
//! |---|---|
//! | `soak MINUTES` | visits all cases in random order, round after round, from where the last soak stopped |
//! | `soak MINUTES WORD` | visits only cases with that word in their names; leaves the round's position alone |
//! | `soak exits` | prints the tables of how jobs ended |
//! | `soak killer N [WORD...]` | runs the random killer N times; with words, only runs that match them |
//! | `soak scribbles N [WORD...]` | overwrites shared memory of N jobs; with words, only runs that match them |
//! | `soak walk N WORD...` | visits, N at a time, every case with all the words that was not visited on this commit |
//! | `soak repeat COUNT N WORD...` | repeats those cases, COUNT times in all, N at a time |
//!
//! Commit, counts and failures are appended to `soak/tally.txt`. `soak/place.txt` holds the
//! round and the number of cases done; a round visits every case once. `soak/walk-COMMIT.txt`
//! holds the names that a walk visited. Of cases that differ only in the rank, a walk visits
//! one each before a second of any. So a walk that was cut off early has seen every case from
//! some rank. The variable SOAK_FOLDER names another folder for the tally and the names.

use capi_tests::case_end::CaseEnd;
use capi_tests::progress::{WorkExtent, WorkProgress};
use capi_tests::sample::{self, SampleRandom};
use capi_tests::{TestCase, build_trees, cases, exits, job_launcher, killer, scribbles, test_job};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (first, word) = (args.next().unwrap_or_default(), args.next());
    if first == "exits" {
        print!("{}", exits::table());
        return ExitCode::SUCCESS;
    }
    let number = |text: Option<String>| text.and_then(|n| n.parse::<usize>().ok()).unwrap_or(1);
    if first == "walk" {
        return walk(number(word), &args.collect::<Vec<_>>());
    }
    if first == "repeat" {
        let at_once = number(args.next());
        return repeat(number(word), at_once, &args.collect::<Vec<_>>());
    }
    let random = ["killer", "scribbles"].contains(&first.as_str());
    let times = word.as_ref().and_then(|w| w.parse::<usize>().ok()).filter(|_| random);
    let minutes = first.parse::<f64>().ok();
    if minutes.or(times.map(|t| t as f64)).is_none() {
        eprintln!(
            "usage: soak MINUTES [WORD] | soak exits | soak killer N [WORD...] | \
             soak scribbles N [WORD...] | soak walk N WORD... | soak repeat COUNT N WORD..."
        );
        return ExitCode::from(2);
    }
    let place = build_trees::root().join("soak/place.txt");
    let mut tally = appended("tally.txt");
    let mut say = |line: String| {
        println!("{line}");
        writeln!(tally, "{line}").expect("the tally can be written");
    };
    if let Some(times) = times {
        let like: Vec<String> = args.collect();
        let say = |line| say(format!("{} commit {} {line}", now(), commit()));
        let right = match first.as_str() {
            "killer" => killer::tally(sample::seed(), times, &like, say),
            _ => scribbles::tally(sample::seed(), times, &like, say),
        };
        return if right { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let (mut round, mut done) = match word {
        None => read(&fs::read_to_string(&place).unwrap_or_default()),
        Some(_) => (sample::seed(), 0),
    };
    let end = Instant::now() + Duration::from_secs_f64(60.0 * minutes.unwrap_or_default());
    let start = Instant::now();
    let mut progress = WorkProgress::new(WorkExtent::Time(end - start));
    let (mut passed, mut failed) = (0u64, 0u64);
    // The cases that cannot run.
    let mut skipped: Vec<String>;
    // The runs that found out that they cannot.
    let mut unable: Vec<String> = Vec::new();
    let from = match &word {
        None => format!("round {round} case {done}"),
        Some(w) => format!("{w} round {round} case {done}"),
    };
    'soak: loop {
        let words: Vec<&str> = word.iter().map(String::as_str).collect();
        let (mut all, cannot) = fitting(&words, round);
        skipped = cannot;
        SampleRandom::new(round, "soak").shuffle(&mut all);
        for case in all.into_iter().skip(done) {
            if Instant::now() >= end {
                break 'soak;
            }
            progress.begin(&case.name);
            let name = case.name.clone();
            let end = case.end();
            progress.end();
            match end {
                CaseEnd::Passed => passed += 1,
                CaseEnd::Skipped(why) => unable.push(format!("skipped {name}: {why}")),
                CaseEnd::Failed(failure) => {
                    failed += 1;
                    say(format!("FAILED {name} on {}\n{failure}", commit()));
                }
            }
            done += 1;
            if word.is_some() {
                continue;
            }
            fs::write(&place, format!("round {round} done {done}\n"))
                .expect("the place can be written");
        }
        round += 1;
        done = 0;
    }
    drop(progress);
    skipped.append(&mut unable);
    skipped.iter().for_each(|line| say(line.clone()));
    say(format!(
        "{} commit {} from {from} to round {round} case {done}: {} cases in {:.0} minutes, {passed} passed, {failed} failed, {} skipped{}",
        now(),
        commit(),
        passed + failed,
        start.elapsed().as_secs_f64() / 60.0,
        skipped.len(),
        job_launcher::started_again(),
    ));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The cases with all these words in their names: those that can run, and one line for each that
/// cannot.
fn fitting(words: &[impl AsRef<str>], seed: u64) -> (Vec<TestCase>, Vec<String>) {
    let mut all = cases(seed);
    all.retain(|c| words.iter().all(|w| c.name.contains(w.as_ref())));
    let (able, cannot): (Vec<_>, Vec<_>) = all.into_iter().partition(|c| c.missing.is_none());
    let line = |c: &TestCase| {
        format!("skipped {}: needs {}", c.name, c.missing.as_deref().unwrap_or_default())
    };
    (able, cannot.iter().map(line).collect())
}

/// The cases with these words that can run, in the random order of this round.
fn shuffled(words: &[String], round: u64) -> Vec<TestCase> {
    let (mut all, cannot) = fitting(words, sample::seed());
    if round == 0 {
        cannot.iter().for_each(|line| println!("{line}"));
    }
    SampleRandom::new(round, "walk").shuffle(&mut all);
    all
}

/// Visits the cases with these words that were not visited on this commit, some at a time.
fn walk(at_once: usize, words: &[String]) -> ExitCode {
    let list = format!("walk-{}.txt", commit());
    let done =
        fs::read_to_string(build_trees::root().join("soak").join(&list)).unwrap_or_default();
    let done: BTreeSet<&str> = done.lines().filter_map(|l| l.split(' ').next_back()).collect();
    let mut all = shuffled(words, 0);
    let there_are = all.len();
    all = spread(all);
    all.retain(|c| !done.contains(c.name.as_str()));
    println!("{} of {there_are} cases have been visited", there_are - all.len());
    let mut list = appended(&list);
    visit("walk", at_once, words, all, |name, word| {
        writeln!(list, "{word} {name}").expect("the list can be written");
    })
}

/// A case's name without its rank, and the rank.
fn but_for_rank(name: &str) -> (String, u32) {
    let mut rank = 0;
    let rest: Vec<&str> = name
        .split("::")
        .filter(|part| match part.strip_prefix("rank").and_then(|r| r.parse().ok()) {
            Some(r) => {
                rank = r;
                false
            }
            None => true,
        })
        .collect();
    (rest.join("::"), rank)
}

/// Orders cases for [`visit`], which begins at the end. The order is: first all from the
/// first rank, then from the last, the second, the middle, and then from any.
fn spread(cases: Vec<TestCase>) -> Vec<TestCase> {
    let mut kinds: BTreeMap<String, Vec<(u32, TestCase)>> = BTreeMap::new();
    for case in cases {
        let (kind, rank) = but_for_rank(&case.name);
        kinds.entry(kind).or_default().push((rank, case));
    }
    let mut turns = Vec::new();
    for mut kind in kinds.into_values() {
        let last = kind.iter().map(|&(rank, _)| rank).max().unwrap_or_default();
        let wanted = [0, last, 1, last / 2];
        kind.sort_by_key(|(rank, _)| {
            wanted.iter().position(|w| w == rank).unwrap_or(wanted.len())
        });
        turns.extend(kind.into_iter().enumerate().map(|(turn, (_, case))| (turn, case)));
    }
    SampleRandom::new(sample::seed(), "turns").shuffle(&mut turns);
    turns.sort_by_key(|&(turn, _)| std::cmp::Reverse(turn));
    turns.into_iter().map(|(_, case)| case).collect()
}

/// Repeats the cases with these words: a total number of runs, some at a time.
fn repeat(count: usize, at_once: usize, words: &[String]) -> ExitCode {
    let mut all = Vec::new();
    for round in 0.. {
        let more = shuffled(words, round);
        if more.is_empty() || all.len() >= count {
            break;
        }
        all.extend(more);
    }
    all.truncate(count);
    visit("repeat", at_once, words, all, |_, _| ())
}

/// Runs these cases, some at a time, passes each result to `note`, and writes the sum to the
/// tally.
fn visit(
    what: &str,
    at_once: usize,
    words: &[String],
    cases: Vec<TestCase>,
    note: impl FnMut(&str, &str) + Send,
) -> ExitCode {
    if at_once > 1 {
        test_job::together();
    }
    let start = Instant::now();
    let progress = Mutex::new(WorkProgress::new(WorkExtent::Pieces(cases.len())));
    let show = || progress.lock().unwrap_or_else(PoisonError::into_inner);
    let cases = Mutex::new(cases);
    let sums = Mutex::new(([0u64; 3], note, appended("tally.txt")));
    let next = || cases.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let work = || {
        while let Some(case) = next() {
            let name = case.name.clone();
            show().begin(&name);
            let end = case.end();
            show().end();
            let ([passed, failed, skipped], note, tally) =
                &mut *sums.lock().unwrap_or_else(PoisonError::into_inner);
            match end {
                CaseEnd::Passed => {
                    *passed += 1;
                    note(&name, "passed");
                }
                CaseEnd::Skipped(why) => {
                    *skipped += 1;
                    note(&name, "skipped");
                    println!("skipped {name}: {why}");
                }
                CaseEnd::Failed(failure) => {
                    note(&name, "FAILED");
                    *failed += 1;
                    println!("FAILED {name}\n{failure}");
                    writeln!(tally, "FAILED {name} on {}\n{failure}", commit())
                        .expect("the tally can be written");
                }
            }
        }
    };
    std::thread::scope(|s| (0..at_once).for_each(|_| drop(s.spawn(work))));
    let ([passed, failed, skipped], _, mut tally) =
        sums.into_inner().unwrap_or_else(PoisonError::into_inner);
    let sum = format!(
        "{} commit {} {what} {}: {} cases in {:.0} minutes, {at_once} at once, {passed} passed, {failed} failed, {skipped} skipped{}",
        now(),
        commit(),
        words.join(" "),
        passed + failed + skipped,
        start.elapsed().as_secs_f64() / 60.0,
        job_launcher::started_again()
    );
    println!("{sum}");
    writeln!(tally, "{sum}").expect("the tally can be written");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Opens a file of the soak folder for appending.
fn appended(name: &str) -> File {
    let other = std::env::var_os("SOAK_FOLDER").map(PathBuf::from);
    let dir = other.unwrap_or_else(|| build_trees::root().join("soak"));
    fs::create_dir_all(&dir).expect("the soak directory can be made");
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join(name))
        .expect("a file of soaks can be opened")
}

/// Round and cases done, from the place file; zeros if it does not exist.
fn read(text: &str) -> (u64, usize) {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["round", r, "done", d] => (r.parse().unwrap_or(1), d.parse().unwrap_or(0)),
        _ => (1, 0),
    }
}

fn commit() -> String {
    let out = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .current_dir(build_trees::root())
        .output();
    out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
}

/// Date and time, in UTC.
fn now() -> String {
    let out = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%MZ"]).output();
    out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
}
