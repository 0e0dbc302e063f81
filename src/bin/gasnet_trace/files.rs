//! The files of a command line: inputs, each once, and an output that is none of them.
//!
//! Called by the subcommands. Invariant: no input is overwritten, or read twice.

use crate::Failure;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The output that means standard output.
const STANDARD: &str = "-";

/// Device and number of a file, whatever its name; `None` if there is none.
fn identity(file: &Path) -> Option<(u64, u64)> {
    fs::metadata(file).ok().map(|m| (m.dev(), m.ino()))
}

/// The inputs without those that are given again, of which a line says so.
pub(crate) fn distinct(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<(PathBuf, Option<(u64, u64)>)> = Vec::new();
    for file in files {
        let found = identity(&file);
        match kept.iter().find(|(_, id)| found.is_some() && *id == found) {
            Some((first, _)) if *first == file => {
                eprintln!("gasnet_trace: {} is given twice; it is read once", file.display());
            }
            Some((first, _)) => eprintln!(
                "gasnet_trace: {} and {} are the same file; it is read once",
                first.display(),
                file.display()
            ),
            None => kept.push((file, found)),
        }
    }
    kept.into_iter().map(|(file, _)| file).collect()
}

/// Refuses an output that is one of the inputs.
pub(crate) fn check_output(out: &Path, files: &[PathBuf]) -> Result<(), Failure> {
    let found = identity(out).filter(|_| out != Path::new(STANDARD));
    match files.iter().find(|file| found.is_some() && identity(file) == found) {
        Some(file) => Err(Failure::Work(
            format!("-o {} would overwrite the input {}", out.display(), file.display()),
            "Name another file after -o, or - for standard output.".to_string(),
        )),
        None => Ok(()),
    }
}

/// Writes the output: a file, or standard output if it is `-`.
pub(crate) fn write(out: &Path, text: &str) -> Result<(), Failure> {
    if out == Path::new(STANDARD) {
        sys::stdio::write("gasnet_trace", text);
        return Ok(());
    }
    fs::write(out, text).map_err(|e| {
        Failure::Work(
            format!("{} cannot be written: {e}", out.display()),
            "Name a file in a directory where you may write.".to_string(),
        )
    })
}
