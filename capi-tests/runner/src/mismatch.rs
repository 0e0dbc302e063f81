//! Parts of a program that must not be combined. Objects of different thread or segment modes
//! fail to link. gasnet_init rejects shared objects of different modes, headers of another
//! interface. Each message must name the difference.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const MAIN: &str = "#include <gasnet.h>\n\
    int other(void);\n\
    int main(int argc, char **argv) {\n\
    \x20   int rc = gasnet_init(&argc, &argv);\n\
    \x20   if (rc == GASNET_OK) gasnet_exit(other() ? 0 : 3);\n\
    \x20   return 1;\n\
    }\n";
const OTHER: &str = "#include <gasnet.h>\n\
    int other(void) { return gasnet_nodes() > 0; }\n";
const ALONE: &str = "#include <gasnet.h>\n\
    int main(int argc, char **argv) {\n\
    \x20   return gasnet_init(&argc, &argv);\n\
    }\n";
/// Headers of interface 999; the number is the first word of the record in every version.
const FOREIGN: &str = "#include <string.h>\n\
    extern int gasneti_init(int *, char ***, const void *);\n\
    int main(int argc, char **argv) {\n\
    \x20   unsigned record[64];\n\
    \x20   memset(record, 0, sizeof record);\n\
    \x20   record[0] = 999;\n\
    \x20   return gasneti_init(&argc, &argv, record);\n\
    }\n";

/// What a part of a program is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    /// Its name in case names.
    name: &'static str,
    /// Its name in a message of gasnet_init.
    message_name: &'static str,
    defines: &'static [&'static str],
}

const fn threads(mode: ClientMode, name: &'static str, message_name: &'static str) -> Kind {
    Kind { name, message_name, defines: mode.defines() }
}

/// Pairs that differ in the thread mode only, and the word in the name of the symbol that must
/// not be defined twice.
const THREADS: (&str, &[Kind]) = (
    "thread_mode",
    &[
        threads(ClientMode::Seq, "seq", "GASNET_SEQ"),
        threads(ClientMode::Parsync, "parsync", "GASNET_PARSYNC"),
        threads(ClientMode::Par, "par", "GASNET_PAR"),
    ],
);

/// The same for the segment mode; a part that names no segment mode is for FAST.
const SEGMENTS: (&str, &[Kind]) = (
    "segment_mode",
    &[
        Kind {
            name: "fast",
            message_name: "GASNET_SEGMENT_FAST",
            defines: &["-D_GNU_SOURCE=1", "-DGASNET_SEQ", "-DGASNET_SEGMENT_FAST"],
        },
        Kind {
            name: "large",
            message_name: "GASNET_SEGMENT_LARGE",
            defines: &["-D_GNU_SOURCE=1", "-DGASNET_SEQ", "-DGASNET_SEGMENT_LARGE"],
        },
        Kind {
            name: "everything",
            message_name: "GASNET_SEGMENT_EVERYTHING",
            defines: &["-D_GNU_SOURCE=1", "-DGASNET_SEQ", "-DGASNET_SEGMENT_EVERYTHING"],
        },
    ],
);

/// Each pair of differing modes, linked and as shared objects; a control with equal modes; the
/// two numbers. The sample links a pair in one order and loads it in the other.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    for (symbol, kinds) in [THREADS, SEGMENTS] {
        for (i, &a) in kinds.iter().enumerate() {
            for (j, &b) in kinds.iter().enumerate() {
                let pair = format!("{}_{}", a.name, b.name);
                let name = format!("mismatch::link::{pair}");
                all.push(TestCase::new(name, i <= j, move || link(a, b, symbol)));
                let name = format!("mismatch::load::{pair}");
                all.push(TestCase::new(name, i >= j, move || load(a, b)));
            }
        }
    }
    all.push(TestCase::new("mismatch::interface".to_string(), true, || {
        refused("interface", FOREIGN, &[], &["999"])
    }));
    all.push(TestCase::new("mismatch::no_thread_mode".to_string(), true, no_thread_mode));
    for (i, a) in SEGMENTS.1.iter().enumerate() {
        for b in &SEGMENTS.1[..i] {
            let name = format!("mismatch::ranks::{}_{}", a.name, b.name);
            all.push(TestCase::new(name, true, move || ranks(*a, *b)));
        }
    }
    all
}

fn dir(name: &str) -> Result<PathBuf, Failure> {
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/mismatch").join(name);
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(dir)
}

fn source(dir: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = dir.join(name);
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

fn compile(defines: &[&str], flags: &[&str], files: &[&Path], to: &Path) -> Command {
    let mut cc = build_trees::compiler();
    cc.args(defines).args(flags).arg("-I").arg(build_trees::build().join("include"));
    cc.args(files).arg("-o").arg(to);
    cc
}

fn link_with_library(mut cc: Command) -> Command {
    let lib = build_trees::build().join("lib");
    cc.arg("-L")
        .arg(&lib)
        .arg(format!("-Wl,-rpath,{}", lib.display()))
        .args(["-lgasnet", "-lpthread"]);
    cc
}

/// Two objects of one program.
fn link(a: Kind, b: Kind, symbol: &str) -> Result<(), Failure> {
    let dir = dir(&format!("link_{}_{}", a.name, b.name))?;
    let (one, two) = (dir.join("main.o"), dir.join("other.o"));
    build_trees::succeed(compile(a.defines, &["-c"], &[&source(&dir, "main.c", MAIN)?], &one))?;
    build_trees::succeed(compile(b.defines, &["-c"], &[&source(&dir, "other.c", OTHER)?], &two))?;
    let linked = build_trees::succeed(link_with_library(compile(
        &[],
        &[],
        &[&one, &two],
        &dir.join("program"),
    )));
    match linked {
        Ok(_) if a == b => Ok(()),
        Err(e) if a == b => Err(e),
        Ok(_) => {
            Err(format!("objects for {} and {} were linked into one program", a.name, b.name))
        }
        Err(e) if e.contains(&format!("gasneti_{symbol}")) => Ok(()),
        Err(e) => Err(format!("the link failed for another reason: {e}")),
    }
}

/// A program and a shared object that it uses.
fn load(a: Kind, b: Kind) -> Result<(), Failure> {
    let dir = dir(&format!("load_{}_{}", a.name, b.name))?;
    let (object, program) = (dir.join("libother.so"), dir.join("program"));
    let flags = ["-shared", "-fPIC"];
    build_trees::succeed(link_with_library(compile(
        b.defines,
        &flags,
        &[&source(&dir, "other.c", OTHER)?],
        &object,
    )))?;
    let mut cc = compile(a.defines, &[], &[&source(&dir, "main.c", MAIN)?, &object], &program);
    cc.arg(format!("-Wl,-rpath,{}", dir.display()));
    build_trees::succeed(link_with_library(cc))?;
    let ended = TestJob::new(&build_trees::build(), &program, &[], JobLauncher::Alone, 1)
        .watchdog(Duration::from_secs(30))
        .run()?;
    ended.tidy()?;
    // Whole words: the name of one mode is a prefix of another.
    let words: Vec<&str> =
        ended.output.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).collect();
    match ended.code {
        Some(0) if a == b => Ok(()),
        Some(0) => Err(ended.failure(format!("{} and {} ran together", a.name, b.name))),
        _ if a == b => Err(ended.failure("equal modes were refused")),
        _ if words.contains(&a.message_name) && words.contains(&b.message_name) => Ok(()),
        _ => Err(ended.failure("it was refused without a line that names both modes")),
    }
}

/// The ranks of one job.
fn ranks(a: Kind, b: Kind) -> Result<(), Failure> {
    let dir = dir(&format!("ranks_{}_{}", a.name, b.name))?;
    let alone = source(&dir, "main.c", ALONE)?;
    for kind in [a, b] {
        let program = dir.join(kind.name);
        build_trees::succeed(link_with_library(compile(kind.defines, &[], &[&alone], &program)))?;
    }
    let (a_program, b_program) = (dir.join(a.name), dir.join(b.name));
    let script = format!(
        "[ $GASNET_RANK = 1 ] && exec {}; exec {}",
        b_program.display(),
        a_program.display()
    );
    let args = ["-c".to_string(), script];
    let sh = Path::new("/bin/sh");
    let ended = TestJob::new(&build_trees::build(), sh, &args, JobLauncher::Gasnetrun, 2)
        .watchdog(Duration::from_secs(30))
        .run()?;
    ended.tidy()?;
    let line = |kind: Kind| {
        let mode = kind.message_name;
        ended.output.contains(&format!("this rank was compiled for {mode}, but rank "))
    };
    match ended.code {
        Some(1) if line(a) || line(b) => Ok(()),
        _ => Err(ended.failure("no line names the modes of the ranks")),
    }
}

/// A program that gasnet_init must reject with a message that contains all of `words`.
fn refused(name: &str, text: &str, flags: &[&str], words: &[&str]) -> Result<(), Failure> {
    let dir = dir(name)?;
    let program = dir.join("program");
    build_trees::succeed(link_with_library(compile(
        ClientMode::Seq.defines(),
        flags,
        &[&source(&dir, "main.c", text)?],
        &program,
    )))?;
    let ended = TestJob::new(&build_trees::build(), &program, &[], JobLauncher::Alone, 1)
        .watchdog(Duration::from_secs(30))
        .run()?;
    ended.tidy()?;
    if ended.code == Some(0) {
        return Err(ended.failure("it was accepted"));
    }
    match words.iter().find(|w| !ended.output.contains(**w)) {
        Some(w) => Err(ended.failure(format!("the refusal does not say {w}"))),
        None => Ok(()),
    }
}

/// A client that names no thread mode does not compile; the message says why.
fn no_thread_mode() -> Result<(), Failure> {
    let dir = dir("no_thread_mode")?;
    match build_trees::succeed(compile(
        &[],
        &["-c"],
        &[&source(&dir, "main.c", ALONE)?],
        &dir.join("main.o"),
    )) {
        Ok(_) => Err("a client without a thread mode compiled".to_string()),
        Err(e) if e.contains("GASNET_SEQ") && e.contains("GASNET_PAR") => Ok(()),
        Err(e) => Err(format!("the error does not name the modes: {e}")),
    }
}
