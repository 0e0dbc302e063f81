//! `check-programs DIR [NP] [MODE]`: compiles each C or C++ program of a folder against an
//! installed library and runs it as a job. It prints one verdict per program and a sum.
//! `make check-programs` calls it.
//!
//! A program is a source with a `main`. The other C sources of the folder go into an archive,
//! which each program links. The first of these that mentions a program says how to run it:
//! - the table in the variable ARGS
//! - the first lines of the source (`capi-tests/check.h`)
//! - the table `capi-tests/programs.tsv`
//!
//! A program fails in each of these cases:
//! - It does not end with exit code 0 (or the code of its row).
//! - It prints ERROR or `fatal signal`.
//! - The watchdog ends it.
//! - It leaves a process or a file.
//!
//! | variable | holds |
//! |---|---|
//! | TREE | the installed prefix (default: build) |
//! | ONLY | names of programs |
//! | SECONDS | the watchdog's time |
//! | BUILT | a folder with the compiled programs |
//! | THROUGH | a command that runs them, an emulator: then GASNET_PSHM_NODES starts the ranks |
//! | GASNET_* | what the programs get |

use capi_tests::Failure;
use capi_tests::build_trees::{self, ClientMode, succeed};
use capi_tests::job_launcher::JobLauncher;
use capi_tests::program::{self, Nodes, words};
use capi_tests::test_job::TestJob;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, exit};
use std::time::Duration;

/// Compiles a program for that segment mode.
const EVERYTHING: &str = "-DGASNET_SEGMENT_EVERYTHING";

/// How a program is compiled and run.
#[derive(Clone, Debug)]
struct Plan {
    /// `None`: not as a job, and with the tools library alone.
    nodes: Option<Nodes>,
    /// Empty: all modes.
    modes: Vec<String>,
    flags: Vec<String>,
    env: Vec<(String, String)>,
    expect: i32,
    skip: bool,
    args: Vec<String>,
}

impl Plan {
    fn new() -> Plan {
        Plan {
            nodes: Some(Nodes::Any),
            modes: Vec::new(),
            flags: Vec::new(),
            env: Vec::new(),
            expect: 0,
            skip: false,
            args: Vec::new(),
        }
    }
}

/// The verdict of a program.
enum Verdict {
    Passed(Duration, u32),
    Failed(String),
    NotCompiled(String),
    Skipped(String),
}

fn refuse(cause: &str) -> ! {
    eprintln!(
        "*** check-programs: {cause}\n***   make check-programs DIR=<folder> [NP=2] [MODE=seq|par|parsync] [TREE=<prefix>] \
         [ARGS=<table>] [ONLY=\"name ...\"] [SECONDS=120]"
    );
    exit(2)
}

/// The row of a program in a table; an invalid row is rejected.
fn row(table: &Path, name: &str) -> Option<Plan> {
    let text =
        fs::read_to_string(table).unwrap_or_else(|e| refuse(&format!("{}: {e}", table.display())));
    let line = text.lines().find(|l| l.split('\t').next() == Some(name))?;
    let mut columns = line.split('\t').skip(1);
    let (options, args) = (columns.next().unwrap_or("-"), columns.next().unwrap_or(""));
    let mut plan = Plan { args: words(args), ..Plan::new() };
    for option in words(options) {
        let (key, value) = option.split_once('=').unwrap_or((&option, ""));
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n > 0);
        let known = match key {
            "-" => true,
            "skip" => {
                plan.skip = true;
                true
            }
            "nodes" => {
                plan.nodes = match value {
                    "none" => None,
                    "any" => Some(Nodes::Any),
                    "even" => Some(Nodes::Even),
                    _ => match value.strip_suffix('+') {
                        Some(least) => number(least).map(Nodes::From),
                        None => number(value).map(Nodes::Exactly),
                    },
                };
                value == "none" || plan.nodes.is_some()
            }
            "modes" => {
                plan.modes = value.split(',').map(str::to_string).collect();
                true
            }
            "flags" => {
                plan.flags.push(value.to_string());
                true
            }
            "env" => {
                plan.env
                    .extend(value.split_once('=').map(|(k, v)| (k.to_string(), v.to_string())));
                value.contains('=')
            }
            "expect" => value.parse().map(|code| plan.expect = code).is_ok(),
            _ => false,
        };
        if !known {
            refuse(&format!("{}: the row of {name} has the option {option}", table.display()));
        }
    }
    Some(plan)
}

fn plan(source: &Path, text: &str, name: &str) -> Plan {
    if let Some(table) = std::env::var_os("ARGS").filter(|t| !t.is_empty())
        && let Some(plan) = row(Path::new(&table), name)
    {
        return plan;
    }
    let listed = row(&build_trees::root().join("capi-tests/programs.tsv"), name);
    if !text.contains("check.h") {
        return listed.unwrap_or_else(Plan::new);
    }
    // A program of ours: what its lines cannot express is in the table.
    let program = program::parse(source, text);
    let modes = match program.modes[..] {
        [only] => vec![only.name().to_string()],
        _ => Vec::new(),
    };
    match listed {
        Some(row) if row.skip || row.expect != 0 => row,
        _ => Plan {
            nodes: Some(program.nodes),
            modes,
            flags: if program.everything { vec![EVERYTHING.to_string()] } else { Vec::new() },
            env: program.env,
            args: program.args,
            ..Plan::new()
        },
    }
}

/// The installed library, and what all programs share.
struct Bench {
    tree: PathBuf,
    dir: PathBuf,
    out: PathBuf,
    mode: ClientMode,
    np: u32,
    watchdog: Duration,
    helpers: Option<PathBuf>,
    built: Option<PathBuf>,
    through: Option<String>,
}

impl Bench {
    fn pkg(&self, package: &str, what: &[&str]) -> Result<Vec<String>, Failure> {
        let mut pkg = Command::new("pkg-config");
        pkg.env("PKG_CONFIG_PATH", self.tree.join("lib/pkgconfig")).args(what).arg(package);
        Ok(succeed(pkg)?.split_whitespace().map(str::to_string).collect())
    }

    fn package(&self, plan: &Plan) -> String {
        match (plan.nodes, self.mode) {
            (Some(_), mode) => format!("gasnet-portals-{}", mode.name()),
            (None, ClientMode::Seq) => "gasnet_tools-seq".to_string(),
            (None, _) => "gasnet_tools-par".to_string(),
        }
    }

    /// The compiler that the installed library names, with the options of every source.
    fn compiler(&self, source: &Path, plan: &Plan) -> Result<Command, Failure> {
        let package = self.package(plan);
        let prefix = if plan.nodes.is_some() { "GASNET" } else { "GASNETTOOLS" };
        let is_c = source.extension().is_some_and(|e| e == "c");
        let variable = format!("--variable={prefix}_{}", if is_c { "CC" } else { "CXX" });
        let words = self.pkg(&package, &[&variable])?;
        let (program, options) =
            words.split_first().ok_or_else(|| format!("{package} names no compiler"))?;
        let mut cc = Command::new(program);
        cc.args(options)
            .args(["-O2", "-w"])
            .args(self.pkg(&package, &["--cflags"])?)
            .args(&plan.flags);
        cc.arg("-I").arg(&self.dir).arg("-I").arg(self.dir.join(".."));
        Ok(cc)
    }

    /// An archive of the sources without a `main`. Sources that do not compile are left out;
    /// the link of a program that needs them reports it.
    fn collect(&mut self, sources: &[(String, PathBuf)]) -> Result<(), Failure> {
        let mut objects = Vec::new();
        for (text, source) in sources {
            let name = stem(source);
            let plan = plan(source, text, &name);
            let object = self.out.join(format!("{name}.o"));
            let mut cc = self.compiler(source, &plan)?;
            cc.arg("-c").arg(source).arg("-o").arg(&object);
            if succeed(cc).is_ok() {
                objects.push(object);
            }
        }
        if !objects.is_empty() {
            let archive = self.out.join("libhelpers.a");
            let _ = fs::remove_file(&archive);
            let mut ar = Command::new("ar");
            ar.arg("crs").arg(&archive).args(objects);
            succeed(ar)?;
            self.helpers = Some(archive);
        }
        Ok(())
    }

    /// Compiles a program, if no folder of compiled programs is given.
    fn compiled(&self, source: &Path, plan: &Plan, program: &Path) -> Result<(), Failure> {
        if self.built.is_some() {
            return Ok(());
        }
        let mut cc = self.compiler(source, plan)?;
        cc.arg(source).args(&self.helpers).arg("-o").arg(program);
        cc.args(self.pkg(&self.package(plan), &["--libs"])?);
        succeed(cc).map(drop)
    }

    /// A script that runs a program through the emulator, or the program where there is none.
    fn started(&self, program: &Path) -> Result<PathBuf, Failure> {
        let Some(through) = &self.through else { return Ok(program.to_path_buf()) };
        let script = self.out.join(format!("{}.through", stem(program)));
        let text = format!("#!/bin/sh\nexec {through} '{}' \"$@\"\n", program.display());
        fs::write(&script, text)
            .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
            .map_err(|e| format!("{}: {e}", script.display()))?;
        Ok(script)
    }

    fn check(&self, source: &Path, text: &str) -> Result<Verdict, Failure> {
        let name = stem(source);
        let plan = plan(source, text, &name);
        if plan.skip {
            return Ok(Verdict::Skipped(plan.args.join(" ")));
        }
        if !plan.modes.is_empty() && !plan.modes.iter().any(|m| m == self.mode.name()) {
            return Ok(Verdict::Skipped(format!("is for {} only", plan.modes.join(", "))));
        }
        let (program, log) = (self.out.join(&name), self.out.join(format!("{name}.log")));
        let program = match &self.built {
            Some(built) => built.join(&name),
            None => program,
        };
        if self.built.is_some() && !program.exists() {
            return Ok(Verdict::NotCompiled(format!("{} is missing", program.display())));
        }
        if let Err(output) = self.compiled(source, &plan, &program) {
            fs::write(&log, &output).map_err(|e| format!("{}: {e}", log.display()))?;
            let is_error = |l: &&str| l.contains("error") || l.contains("undefined reference");
            let line = output
                .lines()
                .skip(1)
                .find(is_error)
                .unwrap_or_else(|| output.lines().last().unwrap_or_default());
            return Ok(Verdict::NotCompiled(
                line.trim().trim_start_matches("exit status: 1: ").to_string(),
            ));
        }
        let (launcher, nodes) = match plan.nodes {
            None => (JobLauncher::Alone, 1),
            Some(nodes) => (
                match self.through {
                    Some(_) => JobLauncher::PshmNodes,
                    None => JobLauncher::Gasnetrun,
                },
                (1..=1024).map(|more| self.np + more - 1).find(|n| nodes.allow(*n)).unwrap_or(1),
            ),
        };
        let mut job =
            TestJob::new(&self.tree, &self.started(&program)?, &plan.args, launcher, nodes)
                .without_library_path();
        for (key, value) in
            std::env::vars().filter(|(k, _)| k.starts_with("GASNET_")).chain(plan.env)
        {
            job = job.env(&key, value);
        }
        let ended = job.watchdog(self.watchdog).run()?;
        fs::write(&log, &ended.output).map_err(|e| format!("{}: {e}", log.display()))?;
        let bad = ["ERROR", "fatal signal"].into_iter().find(|w| ended.output.contains(w));
        let why = match (ended.code, bad) {
            (None, _) => "ended by the watchdog".to_string(),
            (Some(code), _) if code != plan.expect => format!("exit code {code}"),
            (Some(_), Some(word)) => format!("printed {word}"),
            _ if !ended.left.is_empty() => format!("left behind: {}", ended.left.join(", ")),
            _ => return Ok(Verdict::Passed(ended.time, nodes)),
        };
        Ok(Verdict::Failed(format!("{why}, {nodes} processes; see {}", log.display())))
    }
}

fn stem(source: &Path) -> String {
    source.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a source defines `main`.
fn has_main(text: &str) -> bool {
    text.match_indices("main").any(|(at, word)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].trim_start();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_') && after.starts_with('(')
    })
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).filter(|a| !a.is_empty());
    let Some(dir) = args.next().map(PathBuf::from) else { refuse("the folder is missing") };
    let np = args.next().unwrap_or_else(|| "2".to_string());
    let Some(np) = np.parse::<u32>().ok().filter(|n| (1..=1024).contains(n)) else {
        refuse(&format!("NP={np} is not a number from 1 to 1024"))
    };
    let mode = args.next().unwrap_or_else(|| "par".to_string());
    let Some(mode) = [ClientMode::Seq, ClientMode::Par, ClientMode::Parsync]
        .into_iter()
        .find(|m| m.name() == mode)
    else {
        refuse(&format!("MODE={mode} is none of seq, par, parsync"))
    };
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let seconds = variable("SECONDS").unwrap_or_else(|| "120".to_string());
    let Ok(seconds) = seconds.parse() else {
        refuse(&format!("SECONDS={seconds} is not a number"))
    };
    let tree = variable("TREE").map_or_else(build_trees::build, PathBuf::from);
    let only: Vec<String> = words(&variable("ONLY").unwrap_or_default());
    let canonical =
        |p: &Path| p.canonicalize().unwrap_or_else(|e| refuse(&format!("{}: {e}", p.display())));
    let (dir, tree) = (canonical(&dir), canonical(&tree));
    if !tree.join("lib/pkgconfig/gasnet-portals-seq.pc").exists() {
        refuse(&format!("{} is no installed libgasnet", tree.display()));
    }

    let out = build_trees::build().join("check-programs").join(mode.name());
    if let Err(e) = fs::create_dir_all(&out) {
        refuse(&format!("{}: {e}", out.display()));
    }
    let endings = ["c", "cc", "cpp", "cxx", "C"];
    let mut sources: Vec<PathBuf> = fs::read_dir(&dir)
        .unwrap_or_else(|e| refuse(&format!("{}: {e}", dir.display())))
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| endings.iter().any(|x| e == *x)))
        .collect();
    sources.sort();
    let read =
        |p: &PathBuf| String::from_utf8_lossy(&fs::read(p).unwrap_or_default()).into_owned();
    // A program that includes another program's source has that one's main.
    let includes_program =
        |text: &str| text.lines().any(|l| l.starts_with("#include \"") && l.contains(".c\""));
    let (programs, helpers): (Vec<_>, Vec<_>) = sources
        .into_iter()
        .map(|p| (read(&p), p))
        .partition(|(text, _)| has_main(text) || includes_program(text));
    let programs: Vec<_> =
        programs.into_iter().filter(|(_, p)| only.is_empty() || only.contains(&stem(p))).collect();
    if programs.is_empty() {
        refuse(&format!("no program in {}", dir.display()));
    }

    let watchdog = Duration::from_secs(seconds);
    let built = variable("BUILT").map(|folder| canonical(Path::new(&folder)));
    let through = variable("THROUGH");
    let mut bench = Bench { tree, dir, out, mode, np, watchdog, helpers: None, built, through };
    let helpers: Vec<_> =
        helpers.into_iter().filter(|(_, p)| p.extension().is_some_and(|e| e == "c")).collect();
    if bench.built.is_none()
        && let Err(e) = bench.collect(&helpers)
    {
        refuse(&e);
    }
    let (mut passed, mut failed, mut refused, mut skipped) = (0, 0, 0, 0);
    for (text, source) in &programs {
        let name = stem(source);
        match bench.check(source, text).unwrap_or_else(Verdict::Failed) {
            Verdict::Passed(time, nodes) => {
                passed += 1;
                println!(
                    "PASS          {name:<18} {nodes} processes, {:.1} s",
                    time.as_secs_f64()
                );
            }
            Verdict::Failed(why) => {
                failed += 1;
                println!("FAIL          {name:<18} {why}");
            }
            Verdict::NotCompiled(why) => {
                refused += 1;
                println!("NOT COMPILED  {name:<18} {why}");
            }
            Verdict::Skipped(why) => {
                skipped += 1;
                println!("skipped       {name:<18} {why}");
            }
        }
    }
    println!(
        "check-programs {}, {np} processes: {passed} passed, {failed} failed, {refused} not compiled, {skipped} skipped",
        mode.name()
    );
    ExitCode::from(u8::from(failed + refused > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_with_a_main() {
        assert!(has_main("int main(int argc, char **argv) {"));
        assert!(has_main("int\nmain ()"));
        assert!(!has_main("int domain(void);"));
        assert!(!has_main("/* the main thing */"));
    }

    #[test]
    fn the_table_makes_sense() {
        let table = build_trees::root().join("capi-tests/programs.tsv");
        let text = fs::read_to_string(&table).expect("the table is there");
        for line in text.lines().filter(|l| !l.starts_with('#')) {
            let name = line.split('\t').next().unwrap_or_default();
            assert!(row(&table, name).is_some(), "{name}");
        }
        let plan = row(&table, "testenv").expect("it has a row");
        assert_eq!(plan.args, ["GASNet", "is", "Global Address Space Networking"]);
        assert_eq!(plan.env, [("GASNET_DUMMY".to_string(), "GASNet dummy value".to_string())]);
    }
}
