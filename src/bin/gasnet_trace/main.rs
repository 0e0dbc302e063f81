//! Summarises or draws the files that the ranks of a job wrote.
//!
//! `credits`, `firehose`, `perfetto` and `summary` hold a subcommand each; this file runs the one
//! that the user names. `files` and `lines` read what they are given.

mod credits;
mod files;
mod firehose;
mod lines;
mod perfetto;
mod summary;
mod svg;

use command_line::GASNET_TRACE;
use lexopt::{Arg, Parser};
use std::process::exit;
use sys::stdio;

/// A subcommand.
struct Subcommand {
    name: &'static str,
    /// Runs it with the rest of the command line.
    run: fn(&mut Parser) -> Result<(), Failure>,
}

const SUBCOMMANDS: &[Subcommand] =
    &[summary::SUBCOMMAND, perfetto::SUBCOMMAND, credits::SUBCOMMAND, firehose::SUBCOMMAND];

/// Why a subcommand did not do its work.
enum Failure {
    /// The user wants to read the usage.
    Help,
    /// The command line is wrong.
    Usage(String),
    /// Cause and remedy.
    Work(String, String),
}

impl From<lexopt::Error> for Failure {
    fn from(e: lexopt::Error) -> Failure {
        Failure::Usage(e.to_string())
    }
}

fn chosen(args: &mut Parser) -> Result<(), Failure> {
    let name = match args.next()? {
        Some(Arg::Short('h') | Arg::Long("help")) => return Err(Failure::Help),
        Some(Arg::Long("version")) => {
            stdio::write(GASNET_TRACE.name, &GASNET_TRACE.version());
            return Ok(());
        }
        Some(Arg::Value(name)) => name,
        Some(other) => return Err(other.unexpected().into()),
        None => return Err(Failure::Usage("no subcommand was given".to_string())),
    };
    match SUBCOMMANDS.iter().find(|s| name == s.name) {
        Some(s) => (s.run)(args),
        None => Err(Failure::Usage(format!("{} is not a subcommand", name.to_string_lossy()))),
    }
}

fn main() {
    stdio::end_on_closed_pipe();
    match chosen(&mut Parser::from_env()) {
        Ok(()) => {}
        Err(Failure::Help) => stdio::write(GASNET_TRACE.name, &GASNET_TRACE.usage()),
        Err(Failure::Usage(why)) => {
            eprintln!("*** gasnet_trace: {why}\n***   {}", GASNET_TRACE.remedy());
            exit(2)
        }
        Err(Failure::Work(what, advice)) => {
            eprintln!("*** gasnet_trace: {what}\n***   {advice}");
            exit(1)
        }
    }
}
