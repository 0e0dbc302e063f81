//! The launcher: `gasnetrun -n N [options] [--] program [arguments]` starts N processes of a program on this machine
//! as one job, and ends with its exit code. `gasnetrun_portals` is the same program.
//!
//! The ranks inherit the environment and the output streams; rank 0 inherits standard input, the others read nothing.
//! With `-spawner=mpi` or `-spawner=pmi` it becomes another launcher, which starts the processes in its place.

use gasnet::boot::gasnetrun::{CpuBinding, LaunchPlan, run};
use gasnet::limits::MAX_RANKS;
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};
use sys::signal;
use sys::signal::Signal;

const USAGE: &str = "\
usage: gasnetrun -n N [options] [--] program [arguments]

  -n N, -np N   number of processes
  -N N          number of machines to use (this launcher uses one)
  -c N          CPUs per process: cores of each with --bind core
  -E A,B,...    variables of the environment to pass on besides GASNET_* (all are, on one machine)
  -v            show what is run, the processes, and the end of the job
  -t            show what would be run, and run nothing
  -k            keep temporary files (this launcher makes none)
  -spawner=S    who starts the processes: fork (this launcher itself, the default), mpi, pmi
  --bind B      bind each process to CPUs: none (the default), core, numa
  --prefix      put [rank] in front of each line that a process prints
  --no-aslr     load the processes at the same addresses
  -h, --help    show this text
  --version     show the version

A signal USR1 to gasnetrun prints what each process is waiting for.
Variables: GASNET_SPAWN_TIMEOUT, GASNET_EXITTIMEOUT, and for -spawner=mpi and pmi the templates MPIRUN_CMD (by default
mpirun -np %N %C) and PMIRUN_CMD (srun --mpi=pmi2 -n %N %C): %N processes, %M machines, %P program, %A arguments,
%C both, %D this directory.
";

/// Who starts the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartMethod {
    Fork,
    Mpi,
    Pmi,
}

#[derive(Debug)]
struct Options {
    processes: Option<u32>,
    machines: Option<u32>,
    cores: u32,
    verbose: bool,
    dry: bool,
    spawner: StartMethod,
    bind: CpuBinding,
    prefix: bool,
    fixed_addresses: bool,
    program: Option<OsString>,
    args: Vec<OsString>,
}

/// Tells what was asked for, and ends; quietly if nobody reads it.
fn tell(text: &str) -> ! {
    signal::set_default(Signal::PIPE);
    sys::stdio::write("gasnetrun", text);
    exit(0)
}

/// Tells what is wrong and what to do, and ends with the code for wrong usage.
fn refuse(cause: &str, remedy: &str) -> ! {
    signal::set_default(Signal::PIPE);
    eprintln!("*** gasnetrun: {cause}\n***   {remedy}");
    exit(2)
}

fn number(what: &str, value: &OsString, most: u32) -> u32 {
    match value.to_str().and_then(|v| v.parse::<u32>().ok()) {
        Some(n) if (1..=most).contains(&n) => n,
        _ => refuse(
            &format!("{what} {} is not a number from 1 to {most}", value.to_string_lossy()),
            match what {
                "-N" => "Say how many machines, or leave it out: this launcher uses one.",
                "-c" => "Say how many cores each process is to have with --bind core.",
                _ => "Say how many processes the job is to have; GASNET_MAXNODES is the most.",
            },
        ),
    }
}

fn spawner(value: &OsStr) -> StartMethod {
    match value.to_string_lossy().to_ascii_lowercase().as_str() {
        "fork" | "local" => StartMethod::Fork,
        "mpi" => StartMethod::Mpi,
        "pmi" => StartMethod::Pmi,
        "ssh" => refuse(
            "-spawner=ssh: this library does not reach other machines yet",
            "Leave it out: all processes are started on this machine.",
        ),
        other => refuse(&format!("-spawner={other} is not known"), "Give fork, mpi or pmi."),
    }
}

fn bind(value: &OsStr) -> CpuBinding {
    match value.to_string_lossy().to_ascii_lowercase().as_str() {
        "none" => CpuBinding::None,
        "core" => CpuBinding::Core,
        "numa" => CpuBinding::Numa,
        other => refuse(&format!("--bind {other} is not known"), "Give none, core or numa."),
    }
}

/// The value of a long option with a single dash, which is next if `name` is: after `=`, or in the next word.
fn single_dash(parser: &mut Parser, name: &str) -> Result<Option<OsString>, lexopt::Error> {
    let Some(mut raw) = parser.try_raw_args() else { return Ok(None) };
    let Some(word) = raw.peek().and_then(OsStr::to_str).and_then(|w| w.strip_prefix(name)) else {
        return Ok(None);
    };
    let after = match word.strip_prefix('=') {
        Some(value) => Some(OsString::from(value)),
        None if word.is_empty() => None,
        None => return Ok(None),
    };
    raw.next();
    match after.or_else(|| raw.next()) {
        Some(value) => Ok(Some(value)),
        None => Err(lexopt::Error::MissingValue { option: Some(name.to_string()) }),
    }
}

fn parse() -> Result<Options, lexopt::Error> {
    let mut o = Options {
        processes: None,
        machines: None,
        cores: 1,
        verbose: false,
        dry: false,
        spawner: StartMethod::Fork,
        bind: CpuBinding::None,
        prefix: false,
        fixed_addresses: false,
        program: None,
        args: Vec::new(),
    };
    let mut parser = Parser::from_env();
    let mut word = OsString::new();
    loop {
        if let Some(value) = single_dash(&mut parser, "-spawner")? {
            o.spawner = spawner(&value);
            continue;
        }
        if let Some(value) = single_dash(&mut parser, "-np")? {
            o.processes = Some(number("-np", &value, MAX_RANKS));
            continue;
        }
        // Of several letters in one word, the first finds it.
        if let Some(next) =
            parser.try_raw_args().and_then(|words| words.peek().map(OsStr::to_os_string))
        {
            word = next;
        }
        let Some(arg) = parser.next()? else { break };
        match arg {
            Arg::Short('n') => o.processes = Some(number("-n", &parser.value()?, MAX_RANKS)),
            Arg::Short('N') => o.machines = Some(number("-N", &parser.value()?, MAX_RANKS)),
            Arg::Short('c') => o.cores = number("-c", &parser.value()?, MAX_RANKS),
            Arg::Short('E') => look_for(&parser.value()?.string()?),
            Arg::Short('v') => o.verbose = true,
            Arg::Short('t') => o.dry = true,
            Arg::Short('k') => {}
            Arg::Long("bind") => o.bind = bind(&parser.value()?),
            Arg::Long("prefix") => o.prefix = true,
            Arg::Long("no-aslr") => o.fixed_addresses = true,
            Arg::Short('h') if word != "-h" => unknown(&word),
            Arg::Short('h') | Arg::Long("help") => tell(USAGE),
            Arg::Long("version") => tell(concat!("gasnetrun ", env!("CARGO_PKG_VERSION"), "\n")),
            Arg::Value(program) => {
                o.program = Some(program);
                o.args = parser.raw_args()?.collect();
            }
            Arg::Short(_) | Arg::Long(_) => unknown(&word),
        }
    }
    Ok(o)
}

/// Refuses an option.
fn unknown(word: &OsStr) -> ! {
    let word = word.to_string_lossy();
    let name = word.trim_start_matches('-');
    let long = ["bind", "prefix", "no-aslr", "version", "help"];
    let remedy = match name.split('=').next().unwrap_or_default() {
        "H" | "f" | "host" | "hosts" | "hostfile" | "machinefile" | "nodefile" => {
            "Leave it out: all processes are started on this machine.".to_string()
        }
        name if long.contains(&name) => format!("Write two dashes: --{name}"),
        _ => "Try gasnetrun --help.".to_string(),
    };
    refuse(&format!("the option {word} is not known"), &remedy)
}

/// Tells of variables that are to be passed on, but are not there.
fn look_for(names: &str) {
    for name in names.split(',').filter(|n| !n.is_empty() && std::env::var_os(n).is_none()) {
        eprintln!("*** gasnetrun: -E {name}: this variable is not set, so no process will see it");
    }
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

fn shown(words: &[OsString]) -> String {
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The words of another launcher's command, from the template in a variable.
fn command(variable: &str, default: &str, plan: &LaunchPlan, machines: u32) -> Vec<OsString> {
    let template = std::env::var(variable).ok().filter(|t| !t.trim().is_empty());
    let template = template.unwrap_or_else(|| default.to_string());
    let mut words: Vec<OsString> = Vec::new();
    for word in template.split_ascii_whitespace() {
        let program = std::iter::once(&plan.program);
        match word {
            "%C" => words.extend(program.chain(&plan.args).cloned()),
            "%A" => words.extend(plan.args.iter().cloned()),
            "%P" => words.extend(program.cloned()),
            "%D" => words.extend(std::env::current_dir().map(OsString::from)),
            _ => {
                let word = word
                    .replace("%N", &plan.size.to_string())
                    .replace("%M", &machines.to_string());
                if let Some(at) = word.find('%').filter(|_| !word.contains("%%")) {
                    refuse(
                        &format!(
                            "{variable}: {} cannot be filled in",
                            word[at..].chars().take(2).collect::<String>()
                        ),
                        "Use %N, %M, %P, %A, %C and %D, the last four as words of their own.",
                    );
                }
                words.push(word.replace("%%", "%").into());
            }
        }
    }
    words
}

/// Becomes another launcher.
fn become_launcher(words: &[OsString]) -> ! {
    let e = Command::new(&words[0]).args(&words[1..]).exec();
    refuse(
        &format!("{} cannot be run: {e}", words[0].to_string_lossy()),
        "Install that launcher, name another in MPIRUN_CMD or PMIRUN_CMD, or leave -spawner out.",
    )
}

fn main() {
    let o = parse().unwrap_or_else(|e| refuse(&e.to_string(), "Try gasnetrun --help."));
    let Some(size) = o.processes else {
        refuse("the number of processes is missing", "Say how many: gasnetrun -n N program")
    };
    let Some(program) = o.program else {
        refuse("the program is missing", "Say what to run: gasnetrun -n N program [arguments]")
    };
    let plan = LaunchPlan {
        size,
        program,
        args: o.args,
        bind: o.bind,
        cores: o.cores,
        prefix: o.prefix,
        fixed_addresses: o.fixed_addresses,
        verbose: o.verbose,
    };
    let machines = o.machines.unwrap_or(1);
    let foreign = match o.spawner {
        StartMethod::Fork => None,
        StartMethod::Mpi => Some(command("MPIRUN_CMD", "mpirun -np %N %C", &plan, machines)),
        StartMethod::Pmi => {
            Some(command("PMIRUN_CMD", "srun --mpi=pmi2 -n %N %C", &plan, machines))
        }
    };
    if machines > 1 && foreign.is_none() {
        eprintln!("*** gasnetrun: -N {machines}: all processes run on this one machine");
    }
    if o.verbose || o.dry {
        match &foreign {
            Some(words) => eprintln!("gasnetrun: {}", shown(words)),
            None => {
                let words: Vec<OsString> =
                    std::iter::once(&plan.program).chain(&plan.args).cloned().collect();
                eprintln!("gasnetrun: {size} processes on this machine: {}", shown(&words));
            }
        }
    }
    if o.dry {
        exit(0);
    }
    if let Some(words) = foreign {
        become_launcher(&words);
    }
    match run(&plan) {
        Ok(code) => exit(code),
        Err(e) => {
            eprintln!("*** gasnetrun: {}\n***   {}", e.cause, e.remedy);
            exit(1)
        }
    }
}
