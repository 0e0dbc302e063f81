//! The launcher: `gasnetrun -n N [options] [--] program [arguments]` starts a program as a job
//! of N ranks on this host, and exits with the job's exit code. `gasnetrun_portals` is the same
//! program.
//!
//! The ranks inherit the environment and the output streams; rank 0 inherits standard input, the
//! others read an empty one. With `-spawner=mpi` or `-spawner=pmi` another launcher replaces this
//! process and starts the ranks.

use gasnet::boot::launch::{CpuBinding, LaunchPlan, run};
use gasnet::boot::options::BootOptions;
use gasnet::env;
use gasnet::limits::MAX_RANKS;
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};
use sys::signal;
use sys::signal::Signal;

const USAGE: &str = "\
usage: gasnetrun -n N [options] [--] program [arguments]

Starts the program as a job of N ranks on this host.

  -n N, -np N   number of ranks
  -N N          number of hosts (all ranks run on this host)
  -c N          CPUs per rank: cores of each rank with --bind core
  -E A,B,...    variables to pass on besides GASNET_* (ranks inherit all variables)
  -v            print what is run, the process of each rank, and how the job ended
  -t            print what would be run, and run nothing
  -k            keep temporary files (there are none)
  -spawner=S    what starts the ranks: fork (gasnetrun itself, the default), mpi, pmi
  --bind B      bind each rank to CPUs: none (the default), core, numa
  --prefix      print [rank] in front of each line of output
  --no-aslr     load all ranks at the same addresses
  -h, --help    print this text
  --version     print the version

SIGUSR1 to gasnetrun prints what each rank is waiting for.

Environment: GASNET_SPAWN_TIMEOUT, GASNET_EXITTIMEOUT; for -spawner=mpi and pmi the command
templates MPIRUN_CMD (default: mpirun -np %N %C) and PMIRUN_CMD (default: srun --mpi=pmi2 -n %N %C),
where %N is the number of ranks, %M of hosts, %P the program, %A its arguments, %C both, %D the
current directory.
";

/// What starts the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartMethod {
    Fork,
    Mpi,
    Pmi,
}

#[derive(Debug)]
struct Options {
    ranks: Option<u32>,
    hosts: Option<u32>,
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

/// Prints a text and exits; silently if the reader has closed the pipe.
fn print_and_exit(text: &str) -> ! {
    signal::set_default(Signal::PIPE);
    sys::stdio::write("gasnetrun", text);
    exit(0)
}

/// Prints what is wrong and what to do, and exits with the code for wrong usage.
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
                "-N" => "Give the number of hosts, or omit it: all ranks run on this host.",
                "-c" => "Give the number of cores of each rank with --bind core.",
                _ => "Give the number of ranks, at most GASNET_MAXNODES.",
            },
        ),
    }
}

fn spawner(value: &OsStr) -> StartMethod {
    match value.to_string_lossy().to_ascii_lowercase().as_str() {
        "fork" | "local" => StartMethod::Fork,
        "mpi" => StartMethod::Mpi,
        "pmi" => StartMethod::Pmi,
        "ssh" => refuse("-spawner=ssh: gasnetrun starts processes on this host only", "Omit it."),
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

/// The value of the long option `-name`, if it is the next word: after `=`, or in the word after.
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
        ranks: None,
        hosts: None,
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
            o.ranks = Some(number("-np", &value, MAX_RANKS));
            continue;
        }
        // The word of the next option; a word of several letters is read in several steps.
        if let Some(next) =
            parser.try_raw_args().and_then(|words| words.peek().map(OsStr::to_os_string))
        {
            word = next;
        }
        let Some(arg) = parser.next()? else { break };
        match arg {
            Arg::Short('n') => o.ranks = Some(number("-n", &parser.value()?, MAX_RANKS)),
            Arg::Short('N') => o.hosts = Some(number("-N", &parser.value()?, MAX_RANKS)),
            Arg::Short('c') => o.cores = number("-c", &parser.value()?, MAX_RANKS),
            Arg::Short('E') => look_for(&parser.value()?.string()?),
            Arg::Short('v') => o.verbose = true,
            Arg::Short('t') => o.dry = true,
            Arg::Short('k') => {}
            Arg::Long("bind") => o.bind = bind(&parser.value()?),
            Arg::Long("prefix") => o.prefix = true,
            Arg::Long("no-aslr") => o.fixed_addresses = true,
            Arg::Short('h') if word != "-h" => unknown(&word),
            Arg::Short('h') | Arg::Long("help") => print_and_exit(USAGE),
            Arg::Long("version") => {
                print_and_exit(concat!("gasnetrun ", env!("CARGO_PKG_VERSION"), "\n"))
            }
            Arg::Value(program) => {
                o.program = Some(program);
                o.args = parser.raw_args()?.collect();
            }
            Arg::Short(_) | Arg::Long(_) => unknown(&word),
        }
    }
    Ok(o)
}

/// Rejects an option.
fn unknown(word: &OsStr) -> ! {
    let word = word.to_string_lossy();
    let name = word.trim_start_matches('-');
    let long = ["bind", "prefix", "no-aslr", "version", "help"];
    let remedy = match name.split('=').next().unwrap_or_default() {
        "H" | "f" | "host" | "hosts" | "hostfile" | "machinefile" | "nodefile" => {
            "Omit it: gasnetrun starts all processes on this host.".to_string()
        }
        name if long.contains(&name) => format!("Write two dashes: --{name}"),
        _ => "Try gasnetrun --help.".to_string(),
    };
    refuse(&format!("the option {word} is not known"), &remedy)
}

/// Warns of variables that should be passed on but are not set.
fn look_for(names: &str) {
    for name in names.split(',').filter(|n| !n.is_empty() && std::env::var_os(n).is_none()) {
        eprintln!("*** gasnetrun: -E {name}: the variable is not set");
    }
}

/// A word quoted for a shell.
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
fn command(variable: &str, default: &str, plan: &LaunchPlan, hosts: u32) -> Vec<OsString> {
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
                let word =
                    word.replace("%N", &plan.size.to_string()).replace("%M", &hosts.to_string());
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

/// Replaces this process by another launcher.
fn become_launcher(words: &[OsString]) -> ! {
    let e = Command::new(&words[0]).args(&words[1..]).exec();
    refuse(
        &format!("{} cannot be run: {e}", words[0].to_string_lossy()),
        "Install that launcher, name another in MPIRUN_CMD or PMIRUN_CMD, or omit -spawner.",
    )
}

fn main() {
    let o = parse().unwrap_or_else(|e| refuse(&e.to_string(), "Try gasnetrun --help."));
    let Some(size) = o.ranks else {
        refuse("the number of ranks is missing", "Give it: gasnetrun -n N program")
    };
    let Some(program) = o.program else {
        refuse("the program is missing", "Give it: gasnetrun -n N program [arguments]")
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
    let hosts = o.hosts.unwrap_or(1);
    let foreign = match o.spawner {
        StartMethod::Fork => None,
        StartMethod::Mpi => Some(command("MPIRUN_CMD", "mpirun -np %N %C", &plan, hosts)),
        StartMethod::Pmi => Some(command("PMIRUN_CMD", "srun --mpi=pmi2 -n %N %C", &plan, hosts)),
    };
    if hosts > 1 && foreign.is_none() {
        eprintln!("*** gasnetrun: -N {hosts}: all ranks run on this host");
    }
    if o.verbose || o.dry {
        match &foreign {
            Some(words) => eprintln!("gasnetrun: {}", shown(words)),
            None => {
                let words: Vec<OsString> =
                    std::iter::once(&plan.program).chain(&plan.args).cloned().collect();
                eprintln!("gasnetrun: {size} ranks on this host: {}", shown(&words));
            }
        }
    }
    if o.dry {
        exit(0);
    }
    if let Some(words) = foreign {
        become_launcher(&words);
    }
    env::check_all();
    match run(&plan, &BootOptions::from_env()) {
        Ok(code) => exit(code),
        Err(e) => {
            eprintln!("*** gasnetrun: {}\n***   {}", e.cause, e.remedy);
            exit(1)
        }
    }
}
