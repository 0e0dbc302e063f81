//! The launcher: `gasnetrun -n N [options] [--] program [arguments]` starts N processes of a program on this machine
//! as one job, and ends with its exit code.
//!
//! The ranks inherit the environment and the output streams; rank 0 inherits standard input, the others read nothing.

use lexopt::{Arg, Parser, ValueExt};
use std::ffi::OsString;
use std::process::exit;

const USAGE: &str = "\
usage: gasnetrun -n N [options] [--] program [arguments]

  -n N, -np N   number of processes
  -N N          number of machines to use (this launcher uses one)
  -c N          CPUs per process (accepted; placement is left to the system)
  -E A,B,...    variables of the environment to pass on (all are, on one machine)
  -v            show what is run
  -t            show what would be run, and run nothing
  -h, --help    show this text
  --version     show the version
";

/// Largest number of processes on one machine.
const MOST: u32 = 4096;

#[derive(Debug)]
struct Options {
    processes: Option<u32>,
    verbose: bool,
    dry: bool,
    program: Option<OsString>,
    args: Vec<OsString>,
}

/// Tells what is wrong and what to do, and ends with the code for wrong usage.
fn refuse(cause: &str, remedy: &str) -> ! {
    eprintln!("*** gasnetrun: {cause}\n***   {remedy}");
    exit(2)
}

fn number(what: &str, value: &OsString, most: u32) -> u32 {
    match value.to_str().and_then(|v| v.parse::<u32>().ok()) {
        Some(n) if (1..=most).contains(&n) => n,
        _ => refuse(
            &format!("{what} {} is not a number from 1 to {most}", value.to_string_lossy()),
            "Try gasnetrun --help.",
        ),
    }
}

fn parse() -> Result<Options, lexopt::Error> {
    let mut o = Options { processes: None, verbose: false, dry: false, program: None, args: Vec::new() };
    let mut parser = Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('n') => {
                // -np N is spelt as one would spell -n with the value p.
                let value = match parser.optional_value() {
                    Some(v) if v == "p" => parser.value()?,
                    Some(v) => v,
                    None => parser.value()?,
                };
                o.processes = Some(number("-n", &value, MOST));
            }
            Arg::Short('N') => {
                let n = number("-N", &parser.value()?, u32::MAX);
                if n > 1 {
                    eprintln!("*** gasnetrun: -N {n}: all processes run on this one machine");
                }
            }
            Arg::Short('c') => drop(number("-c", &parser.value()?, u32::MAX)),
            Arg::Short('E') => drop(parser.value()?.string()?),
            Arg::Short('v') => o.verbose = true,
            Arg::Short('t') => o.dry = true,
            Arg::Short('h') | Arg::Long("help") => {
                print!("{USAGE}");
                exit(0)
            }
            Arg::Long("version") => {
                println!("gasnetrun {}", env!("CARGO_PKG_VERSION"));
                exit(0)
            }
            Arg::Value(program) => {
                o.program = Some(program);
                o.args = parser.raw_args()?.collect();
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(o)
}

/// A word as a shell would have to read it.
fn quoted(word: &OsString) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn main() {
    let o = parse().unwrap_or_else(|e| refuse(&e.to_string(), "Try gasnetrun --help."));
    let Some(processes) = o.processes else {
        refuse("the number of processes is missing", "Say how many: gasnetrun -n N program")
    };
    let Some(program) = o.program else {
        refuse("the program is missing", "Say what to run: gasnetrun -n N program [arguments]")
    };
    if o.verbose || o.dry {
        let words: Vec<String> = std::iter::once(&program).chain(&o.args).map(quoted).collect();
        eprintln!("gasnetrun: {processes} processes on this machine: {}", words.join(" "));
    }
    if o.dry {
        exit(0);
    }
    match gasnet::boot::gasnetrun::run(processes, &program, &o.args) {
        Ok(code) => exit(code),
        Err(e) => {
            eprintln!("*** gasnetrun: {}\n***   {}", e.cause, e.remedy);
            exit(1)
        }
    }
}
