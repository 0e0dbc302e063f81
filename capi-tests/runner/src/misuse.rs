//! Wrong calls: the cases that `testbad -list` and `testbadex -list` name, each as a job of two
//! ranks. A case passes, or ends the job with a fatal message; the message contains the words of
//! the list.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::program::{self, TestProgram};
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::process::Command;
use std::time::Duration;

/// A row of the list.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    modes: Vec<ClientMode>,
    dies: bool,
    words: String,
}

/// Ranks of each job.
const RANKS: u32 = 2;

/// The programs whose cases these are.
pub const PROGRAMS: [&str; 2] = ["testbad", "testbadex"];

/// One entry per case, mode and path; the sample takes each once. If a list is not available,
/// one entry that says why.
pub fn cases() -> Vec<TestCase> {
    PROGRAMS.iter().filter_map(|name| program::named(name)).flat_map(cases_of).collect()
}

fn cases_of(program: TestProgram) -> Vec<TestCase> {
    let rows = match list(&program) {
        Ok(rows) => rows,
        Err(failure) => {
            let name = format!("{}::list", program.name);
            return vec![TestCase::new(name, true, move || Err(failure))];
        }
    };
    let mut all = Vec::new();
    for row in rows {
        for (i, &mode) in row.modes.iter().enumerate() {
            for portals in [false, true] {
                let path = if portals { "portals" } else { "cross-mapped" };
                let name = format!("{}::{}::{path}::{}", program.name, mode.name(), row.name);
                let (p, r) = (program.clone(), row.clone());
                all.push(TestCase::new(name, i == 0 && !portals, move || {
                    answered(&p, &r, mode, portals)
                }));
            }
        }
    }
    all
}

fn list(program: &TestProgram) -> Result<Vec<Row>, Failure> {
    let compiled = build_trees::compiled(&program.source, ClientMode::Seq)?;
    let mut command = Command::new(compiled);
    command.arg("-list").env("LD_LIBRARY_PATH", build_trees::build().join("lib"));
    build_trees::succeed(command)?.lines().map(row).collect()
}

fn row(line: &str) -> Result<Row, Failure> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [name, threads, outcome, rest @ ..] = columns.as_slice() else {
        return Err(format!("testbad -list: {line:?} has too few columns"));
    };
    let modes = match *threads {
        "both" => vec![ClientMode::Seq, ClientMode::Par],
        "par" => vec![ClientMode::Par],
        "seq" => vec![ClientMode::Seq],
        _ => return Err(format!("testbad -list: {threads:?} in {line:?}")),
    };
    let dies = match *outcome {
        "dies" => true,
        "passes" => false,
        _ => return Err(format!("testbad -list: {outcome:?} in {line:?}")),
    };
    Ok(Row { name: name.to_string(), modes, dies, words: rest.first().unwrap_or(&"").to_string() })
}

fn answered(
    program: &TestProgram,
    row: &Row,
    mode: ClientMode,
    portals: bool,
) -> Result<(), Failure> {
    let compiled = build_trees::compiled(&program.source, mode)?;
    let mut job = TestJob::new(
        &build_trees::build(),
        &compiled,
        std::slice::from_ref(&row.name),
        JobLauncher::Gasnetrun,
        RANKS,
    )
    .watchdog(Duration::from_secs(60));
    if portals {
        job = job.env("GASNET_SUPERNODE_MAXSIZE", "1");
    }
    let ended = job.run()?;
    ended.tidy()?;
    if row.dies && ended.code == Some(0) {
        return Err(ended.failure("the wrong call was accepted"));
    }
    if !row.dies {
        ended.passed(&program.name)?;
    }
    // The case prints words with numbers that are known only in the job.
    let words = ended
        .output
        .lines()
        .find_map(|l| l.strip_prefix("testbad: expects: "))
        .unwrap_or(&row.words);
    let fatal: Vec<&str> = ended.output.lines().filter(|l| l.starts_with("***")).collect();
    // Several threads of a rank may make the same wrong call. Before gasnet_init a line does not
    // say which rank has printed it.
    let errors: Vec<&&str> = fatal.iter().filter(|l| l.contains("FATAL ERROR")).collect();
    let most = |line: &str| if line.contains("(proc ") { 1 } else { RANKS as usize };
    if errors.iter().any(|e| errors.iter().filter(|other| *other == e).count() > most(e)) {
        return Err(ended.failure("a rank printed an error twice"));
    }
    match words
        .split('|')
        .filter(|w| !w.is_empty())
        .find(|word| !fatal.iter().any(|l| l.contains(word)))
    {
        Some(word) => Err(ended.failure(format!("no line that begins with *** says {word:?}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows() {
        let r = row("put_node\tboth\tdies\tgasnet_put|1000000").unwrap();
        assert_eq!(r.name, "put_node");
        assert!(r.dies && r.modes.len() == 2);
        assert_eq!(r.words, "gasnet_put|1000000");
        assert!(!row("init_twice\tseq\tpasses\t").unwrap().dies);
        assert!(row("x\tall\tpasses\t").is_err());
    }
}
