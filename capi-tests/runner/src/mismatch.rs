//! Parts of a program that must not meet: objects of different thread modes fail to link, shared objects of different
//! thread modes, headers of another interface and a segment mode that the library does not have are refused by
//! gasnet_init. Each refusal must name what differs.

use crate::job::{Job, Launcher};
use crate::layout::{self, Mode};
use crate::{Case, Trouble};
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

const MODES: [Mode; 3] = [Mode::Seq, Mode::Parsync, Mode::Par];

/// Each pair of modes that differ, both ways of meeting; their control with equal modes; the two numbers.
pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for a in MODES {
        for b in MODES {
            let pair = format!("{}_{}", a.name(), b.name());
            all.push(Case::new(format!("mismatch::link::{pair}"), true, move || link(a, b)));
            all.push(Case::new(format!("mismatch::load::{pair}"), true, move || load(a, b)));
        }
    }
    all.push(Case::new("mismatch::interface".to_string(), true, || {
        refused("interface", FOREIGN, &[], &["999"])
    }));
    all.push(Case::new("mismatch::everything".to_string(), true, || {
        refused("everything", ALONE, &["-DGASNET_SEGMENT_EVERYTHING"], &["EVERYTHING"])
    }));
    all.push(Case::new("mismatch::no_thread_mode".to_string(), true, no_thread_mode));
    all
}

fn dir(name: &str) -> Result<PathBuf, Trouble> {
    layout::require(&layout::build())?;
    let dir = layout::build().join("capi-tests/mismatch").join(name);
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(dir)
}

fn source(dir: &Path, name: &str, text: &str) -> Result<PathBuf, Trouble> {
    let path = dir.join(name);
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

fn compile(mode: Option<Mode>, flags: &[&str], files: &[&Path], to: &Path) -> Command {
    let mut cc = layout::compiler();
    cc.args(mode.map_or(&[][..], |m| m.defines())).args(flags).arg("-I").arg(layout::build().join("include"));
    cc.args(files).arg("-o").arg(to);
    cc
}

fn link_with_library(mut cc: Command) -> Command {
    let lib = layout::build().join("lib");
    cc.arg("-L").arg(&lib).arg(format!("-Wl,-rpath,{}", lib.display())).args(["-lgasnet", "-lpthread"]);
    cc
}

/// Two objects of one program.
fn link(a: Mode, b: Mode) -> Result<(), Trouble> {
    let dir = dir(&format!("link_{}_{}", a.name(), b.name()))?;
    let (one, two) = (dir.join("main.o"), dir.join("other.o"));
    layout::succeed(compile(Some(a), &["-c"], &[&source(&dir, "main.c", MAIN)?], &one))?;
    layout::succeed(compile(Some(b), &["-c"], &[&source(&dir, "other.c", OTHER)?], &two))?;
    let linked = layout::succeed(link_with_library(compile(None, &[], &[&one, &two], &dir.join("program"))));
    match linked {
        Ok(_) if a == b => Ok(()),
        Err(e) if a == b => Err(e),
        Ok(_) => Err(format!("objects for {} and {} were linked into one program", a.name(), b.name())),
        Err(e) if e.contains("gasneti_") && e.contains("thread_mode") => Ok(()),
        Err(e) => Err(format!("the link failed for another reason: {e}")),
    }
}

/// A program and a shared object that it uses.
fn load(a: Mode, b: Mode) -> Result<(), Trouble> {
    let dir = dir(&format!("load_{}_{}", a.name(), b.name()))?;
    let (object, program) = (dir.join("libother.so"), dir.join("program"));
    let flags = ["-shared", "-fPIC"];
    layout::succeed(link_with_library(compile(
        Some(b),
        &flags,
        &[&source(&dir, "other.c", OTHER)?],
        &object,
    )))?;
    let mut cc = compile(Some(a), &[], &[&source(&dir, "main.c", MAIN)?, &object], &program);
    cc.arg(format!("-Wl,-rpath,{}", dir.display()));
    layout::succeed(link_with_library(cc))?;
    let ended = Job::new(&layout::build(), &program, &[], Launcher::Alone, 1)
        .watchdog(Duration::from_secs(30))
        .run()?;
    ended.tidy()?;
    let names = |m: Mode| format!("GASNET_{}", m.name().to_uppercase());
    match ended.code {
        Some(0) if a == b => Ok(()),
        Some(0) => Err(ended.trouble(format!("{} and {} ran together", a.name(), b.name()))),
        _ if a == b => Err(ended.trouble("equal modes were refused")),
        _ if ended.output.contains(&names(a)) && ended.output.contains(&names(b)) => Ok(()),
        _ => Err(ended.trouble("it was refused without a line that names both modes")),
    }
}

/// A program that gasnet_init must refuse with all of `words`.
fn refused(name: &str, text: &str, flags: &[&str], words: &[&str]) -> Result<(), Trouble> {
    let dir = dir(name)?;
    let program = dir.join("program");
    layout::succeed(link_with_library(compile(
        Some(Mode::Seq),
        flags,
        &[&source(&dir, "main.c", text)?],
        &program,
    )))?;
    let ended = Job::new(&layout::build(), &program, &[], Launcher::Alone, 1)
        .watchdog(Duration::from_secs(30))
        .run()?;
    ended.tidy()?;
    if ended.code == Some(0) {
        return Err(ended.trouble("it was accepted"));
    }
    match words.iter().find(|w| !ended.output.contains(**w)) {
        Some(w) => Err(ended.trouble(format!("the refusal does not say {w}"))),
        None => Ok(()),
    }
}

/// A client that names no thread mode does not compile, and is told so.
fn no_thread_mode() -> Result<(), Trouble> {
    let dir = dir("no_thread_mode")?;
    match layout::succeed(compile(None, &["-c"], &[&source(&dir, "main.c", ALONE)?], &dir.join("main.o"))) {
        Ok(_) => Err("a client without a thread mode compiled".to_string()),
        Err(e) if e.contains("GASNET_SEQ") && e.contains("GASNET_PAR") => Ok(()),
        Err(e) => Err(format!("the error does not name the modes: {e}")),
    }
}
