//! Shows what a job wrote about itself. Each subcommand is a file beside this one, which only chooses among them.

mod credits;
mod lines;
mod perfetto;
mod summary;
mod svg;

use lexopt::{Arg, Parser};
use std::process::exit;
use sys::stdio;

/// What can be done with files that a job wrote.
struct Subcommand {
    name: &'static str,
    /// What follows the name, and what it does.
    usage: &'static str,
    /// Takes the rest of the command line.
    run: fn(&mut Parser) -> Result<(), Failure>,
}

const SUBCOMMANDS: &[Subcommand] =
    &[summary::SUBCOMMAND, perfetto::SUBCOMMAND, credits::SUBCOMMAND];

/// Why a subcommand did not do its work.
enum Failure {
    /// The command line makes no sense.
    Usage(String),
    /// What happened, and what to do.
    Work(String, String),
}

impl From<lexopt::Error> for Failure {
    fn from(e: lexopt::Error) -> Failure {
        Failure::Usage(e.to_string())
    }
}

fn usage() -> String {
    let mut text = String::from("usage: gasnet_trace SUBCOMMAND ...\n\n");
    for s in SUBCOMMANDS {
        text += &format!("  {} {}\n", s.name, s.usage);
    }
    text + "\n  -h, --help  show this text\n"
}

fn chosen(args: &mut Parser) -> Result<(), Failure> {
    let name = match args.next()? {
        Some(Arg::Short('h') | Arg::Long("help")) => {
            stdio::write("gasnet_trace", &usage());
            return Ok(());
        }
        Some(Arg::Value(name)) => name,
        Some(other) => return Err(other.unexpected().into()),
        None => return Err(Failure::Usage("no subcommand was given".to_string())),
    };
    match SUBCOMMANDS.iter().find(|s| name == s.name) {
        Some(s) => (s.run)(args),
        None => Err(Failure::Usage(format!("there is no subcommand {}", name.to_string_lossy()))),
    }
}

fn main() {
    stdio::end_on_closed_pipe();
    match chosen(&mut Parser::from_env()) {
        Ok(()) => {}
        Err(Failure::Usage(why)) => {
            eprint!("*** gasnet_trace: {why}\n{}", usage());
            exit(2)
        }
        Err(Failure::Work(what, advice)) => {
            eprintln!("*** gasnet_trace: {what}\n***   {advice}");
            exit(1)
        }
    }
}
