//! The arguments of gasnetrun's command line, and those of another launcher's command.
//!
//! Called by `main`. Invariant: nothing is printed here and no process ends; invalid arguments are
//! a [`Refusal`].

use command_line::GASNETRUN;
use gasnet::boot::error::BootError;
use gasnet::boot::hosts::mapping::RankMapping;
use gasnet::boot::launch_plan::{CpuBinding, LaunchPlan};
use gasnet::env::{RankSet, number};
use gasnet::limits::MAX_RANKS;
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What starts the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartMethod {
    Fork,
    Ssh,
    Mpi,
    Pmi,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) ranks: Option<u32>,
    pub(crate) hosts: Option<u32>,
    pub(crate) cores: u32,
    /// Names of variables to pass on.
    pub(crate) pass_on: Vec<String>,
    pub(crate) verbose: bool,
    pub(crate) dry: bool,
    /// `None`: gasnetrun, on the hosts that are named.
    pub(crate) spawner: Option<StartMethod>,
    /// The hosts of -H.
    pub(crate) host_names: Option<String>,
    pub(crate) host_file: Option<PathBuf>,
    pub(crate) ranks_per_host: Option<u32>,
    pub(crate) mapping: Option<RankMapping>,
    pub(crate) bind: CpuBinding,
    pub(crate) prefix: bool,
    pub(crate) fixed_addresses: bool,
    pub(crate) no_cut_off: bool,
    /// Seconds after which the job ends.
    pub(crate) timeout: Option<f64>,
    /// The folder of a file for each rank and stream.
    pub(crate) output: Option<PathBuf>,
    /// Names and values of variables to set for the ranks.
    pub(crate) set: Vec<(CString, CString)>,
    /// Where the ranks begin.
    pub(crate) folder: Option<PathBuf>,
    /// The ranks that gdb starts.
    pub(crate) gdb: Option<RankSet>,
    pub(crate) program: Option<OsString>,
    pub(crate) args: Vec<OsString>,
}

impl Options {
    /// How to start `size` ranks of this program.
    pub(crate) fn plan(&self, size: u32, program: OsString) -> LaunchPlan {
        LaunchPlan {
            size,
            hosts: None,
            program,
            args: self.args.clone(),
            bind: self.bind,
            cores: self.cores,
            prefix: self.prefix,
            fixed_addresses: self.fixed_addresses,
            verbose: self.verbose,
            timeout: self.timeout,
            output: self.output.clone(),
            gdb: self.gdb.clone(),
        }
    }
}

impl Options {
    /// The first option that another launcher, which starts the ranks, does not get.
    pub(crate) fn first_of_own_ranks(&self) -> Option<&'static str> {
        let given = [
            ("--gdb", self.gdb.is_some()),
            ("--prefix", self.prefix),
            ("--bind", self.bind != CpuBinding::None),
            ("--no-aslr", self.fixed_addresses),
            ("-H", self.host_names.is_some()),
            ("--hostfile", self.host_file.is_some()),
            ("--map-by", self.mapping.is_some()),
            ("--ranks-per-host", self.ranks_per_host.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}

/// What the user wants.
#[derive(Debug)]
pub(crate) enum GasnetrunRequest {
    Run(Box<Options>),
    /// Start the ranks of this host, as gasnetrun on another one says.
    Remote,
    Usage,
    Version,
}

/// What is wrong, and what to do.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) cause: String,
    pub(crate) remedy: String,
}

impl Refusal {
    pub(crate) fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Refusal {
        Refusal { cause: cause.into(), remedy: remedy.into() }
    }
}

impl From<BootError> for Refusal {
    fn from(e: BootError) -> Refusal {
        Refusal::new(e.cause, e.remedy)
    }
}

impl From<lexopt::Error> for Refusal {
    fn from(e: lexopt::Error) -> Refusal {
        Refusal::new(e.to_string(), GASNETRUN.remedy())
    }
}

fn count(what: &str, value: &OsString, most: u32) -> Result<u32, Refusal> {
    let n = value.to_str().and_then(|v| v.parse::<u32>().ok());
    n.filter(|n| (1..=most).contains(n)).ok_or_else(|| {
        Refusal::new(
            format!("{what} {} is not a number from 1 to {most}", value.to_string_lossy()),
            match what {
                "-N" => "Give the number of hosts, or omit it: all ranks run on this host.",
                "-c" => "Give the number of cores of each rank with --bind core.",
                _ => "Give the number of ranks, at most GASNET_MAXNODES.",
            },
        )
    })
}

fn spawner(value: &OsStr) -> Result<StartMethod, Refusal> {
    match value.to_string_lossy().to_ascii_lowercase().as_str() {
        "fork" | "local" => Ok(StartMethod::Fork),
        "mpi" => Ok(StartMethod::Mpi),
        "pmi" => Ok(StartMethod::Pmi),
        "ssh" => Ok(StartMethod::Ssh),
        other => Err(Refusal::new(
            format!("-spawner={other} is not known"),
            "Give fork, ssh, mpi or pmi.",
        )),
    }
}

fn mapping(value: &OsStr) -> Result<RankMapping, Refusal> {
    match value.to_string_lossy().to_ascii_lowercase().as_str() {
        "core" => Ok(RankMapping::Core),
        "host" => Ok(RankMapping::Host),
        other => Err(Refusal::new(
            format!("--map-by {other} is not known"),
            "Give core (fill the slots of a host first) or host (take the hosts in turn).",
        )),
    }
}

fn bind(value: &OsStr) -> Result<CpuBinding, Refusal> {
    match value.to_string_lossy().to_ascii_lowercase().as_str() {
        "none" => Ok(CpuBinding::None),
        "core" => Ok(CpuBinding::Core),
        "numa" => Ok(CpuBinding::Numa),
        other => {
            Err(Refusal::new(format!("--bind {other} is not known"), "Give none, core or numa."))
        }
    }
}

/// The longest time limit: more than 30 years. Deadlines of that length do not overflow.
const MOST_SECONDS: f64 = 1e9;

fn seconds(value: &OsStr) -> Result<f64, Refusal> {
    let text = value.to_string_lossy();
    number::parse_fraction(&text).filter(|s| *s > 0.0 && *s <= MOST_SECONDS).ok_or_else(|| {
        Refusal::new(
            format!("--timeout {text} is not a number of seconds above 0 and up to 10^9"),
            "Give such a number, as 300 or 0.5, or omit --timeout.",
        )
    })
}

/// A path that means the same in any working directory.
fn absolute(value: &OsStr) -> Result<PathBuf, Refusal> {
    std::path::absolute(value).map_err(|e| {
        Refusal::new(
            format!("--output {} cannot be used: {e}", value.to_string_lossy()),
            "Name a folder.",
        )
    })
}

/// A name, and the value behind it.
fn assignment(value: &OsStr) -> Result<(CString, Option<CString>), Refusal> {
    let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
    let bytes = value.as_bytes();
    let (name, value) = match bytes.iter().position(|b| *b == b'=') {
        Some(at) => (text(&bytes[..at]), Some(text(&bytes[at + 1..]))),
        None => (text(bytes), None),
    };
    if name.is_empty() {
        return Err(Refusal::new(
            format!("--env {} has no name", String::from_utf8_lossy(bytes)),
            "Give NAME=VALUE, or NAME.",
        ));
    }
    Ok((name, value))
}

fn ranks(value: &OsStr) -> Result<RankSet, Refusal> {
    let text = value.to_string_lossy();
    RankSet::parse(&text).ok_or_else(|| {
        Refusal::new(
            format!("--gdb {text} is not a list of ranks"),
            "Give ranks such as 0,2-3, or * for all.",
        )
    })
}

/// The value of the long option `-name`, if it is the next argument: after `=`, or in the argument
/// after.
fn single_dash(parser: &mut Parser, name: &str) -> Result<Option<OsString>, lexopt::Error> {
    let Some(mut raw) = parser.try_raw_args() else { return Ok(None) };
    let Some(argument) = raw.peek().and_then(OsStr::to_str).and_then(|w| w.strip_prefix(name))
    else {
        return Ok(None);
    };
    let after = match argument.strip_prefix('=') {
        Some(value) => Some(OsString::from(value)),
        None if argument.is_empty() => None,
        None => return Ok(None),
    };
    raw.next();
    match after.or_else(|| raw.next()) {
        Some(value) => Ok(Some(value)),
        None => Err(lexopt::Error::MissingValue { option: Some(name.to_string()) }),
    }
}

/// Reads a command line.
pub(crate) fn parse(mut parser: Parser) -> Result<GasnetrunRequest, Refusal> {
    let mut o = Options {
        ranks: None,
        hosts: None,
        cores: 1,
        pass_on: Vec::new(),
        verbose: false,
        dry: false,
        spawner: None,
        host_names: None,
        host_file: None,
        ranks_per_host: None,
        mapping: None,
        bind: CpuBinding::None,
        prefix: false,
        fixed_addresses: false,
        no_cut_off: false,
        timeout: None,
        output: None,
        set: Vec::new(),
        folder: None,
        gdb: None,
        program: None,
        args: Vec::new(),
    };
    let mut argument = OsString::new();
    loop {
        if let Some(value) = single_dash(&mut parser, "-spawner")? {
            o.spawner = Some(spawner(&value)?);
            continue;
        }
        if let Some(value) = single_dash(&mut parser, "-np")? {
            o.ranks = Some(count("-np", &value, MAX_RANKS)?);
            continue;
        }
        // The argument of the next option; one of several letters is read in several steps.
        if let Some(next) =
            parser.try_raw_args().and_then(|arguments| arguments.peek().map(OsStr::to_os_string))
        {
            argument = next;
        }
        let Some(arg) = parser.next()? else { break };
        match arg {
            Arg::Short('n') => o.ranks = Some(count("-n", &parser.value()?, MAX_RANKS)?),
            Arg::Short('N') => o.hosts = Some(count("-N", &parser.value()?, MAX_RANKS)?),
            Arg::Short('c') => o.cores = count("-c", &parser.value()?, MAX_RANKS)?,
            Arg::Short('E') => {
                let names = parser.value()?.string()?;
                o.pass_on.extend(names.split(',').filter(|n| !n.is_empty()).map(String::from));
            }
            Arg::Short('H') | Arg::Long("host") => {
                once(&mut o.host_names, parser.value()?.string()?, "-H")?;
            }
            Arg::Long("hostfile") => {
                once(&mut o.host_file, parser.value()?.into(), "--hostfile")?;
            }
            Arg::Long("ranks-per-host") => {
                o.ranks_per_host = Some(count("--ranks-per-host", &parser.value()?, MAX_RANKS)?);
            }
            Arg::Long("map-by") => o.mapping = Some(mapping(&parser.value()?)?),
            Arg::Long("remote") => return Ok(GasnetrunRequest::Remote),
            Arg::Short('v') => o.verbose = true,
            Arg::Short('t') => o.dry = true,
            Arg::Short('k') => {}
            Arg::Long("bind") => o.bind = bind(&parser.value()?)?,
            Arg::Long("prefix") => o.prefix = true,
            Arg::Long("no-aslr") => o.fixed_addresses = true,
            Arg::Long("no-cut-off") => o.no_cut_off = true,
            Arg::Long("timeout") => o.timeout = Some(seconds(&parser.value()?)?),
            Arg::Long("output") => o.output = Some(absolute(&parser.value()?)?),
            Arg::Long("env") => match assignment(&parser.value()?)? {
                (name, Some(value)) => o.set.push((name, value)),
                (name, None) => o.pass_on.push(name.to_string_lossy().into_owned()),
            },
            Arg::Long("wdir") => o.folder = Some(parser.value()?.into()),
            Arg::Long("gdb") => o.gdb = Some(ranks(&parser.value()?)?),
            Arg::Short('h') if argument != "-h" => return Err(unknown(&argument)),
            Arg::Short('h') | Arg::Long("help") => return Ok(GasnetrunRequest::Usage),
            Arg::Long("version") => return Ok(GasnetrunRequest::Version),
            Arg::Value(program) => {
                o.program = Some(program);
                o.args = parser.raw_args()?.collect();
            }
            Arg::Short(_) | Arg::Long(_) => return Err(unknown(&argument)),
        }
    }
    Ok(GasnetrunRequest::Run(Box::new(o)))
}

/// Sets what only one of an option may say.
fn once<T>(to: &mut Option<T>, value: T, name: &str) -> Result<(), Refusal> {
    match to.replace(value) {
        None => Ok(()),
        Some(_) => Err(Refusal::new(
            format!("{name} is given twice"),
            "Name all hosts in one: -H node1,node2, or a line for each host in a file.",
        )),
    }
}

/// Rejects an option.
fn unknown(argument: &OsStr) -> Refusal {
    let argument = argument.to_string_lossy();
    let name = argument.trim_start_matches('-');
    let remedy = match name.split('=').next().unwrap_or_default() {
        "f" | "hosts" | "machinefile" | "nodefile" => {
            "Name hosts with -H or --hostfile.".to_string()
        }
        "envall" | "genv" | "genvall" => "Omit it: ranks inherit all variables.".to_string(),
        name if GASNETRUN.long_names().any(|long| long == name) => {
            format!("Write two dashes: --{name}")
        }
        _ => GASNETRUN.remedy(),
    };
    Refusal::new(format!("the option {argument} is not known"), remedy)
}

/// The arguments of another launcher's command, from the template in a variable.
pub(crate) fn command(
    variable: &str,
    template: &str,
    plan: &LaunchPlan,
    hosts: u32,
) -> Result<Vec<OsString>, Refusal> {
    let mut arguments: Vec<OsString> = Vec::new();
    for argument in template.split_ascii_whitespace() {
        let program = std::iter::once(&plan.program);
        match argument {
            "%C" => arguments.extend(program.chain(&plan.args).cloned()),
            "%A" => arguments.extend(plan.args.iter().cloned()),
            "%P" => arguments.extend(program.cloned()),
            "%D" => arguments.extend(std::env::current_dir().map(OsString::from)),
            _ => {
                let argument = argument
                    .replace("%N", &plan.size.to_string())
                    .replace("%M", &hosts.to_string());
                if let Some(at) = argument.find('%').filter(|_| !argument.contains("%%")) {
                    return Err(Refusal::new(
                        format!(
                            "{variable}: {} cannot be filled in",
                            argument[at..].chars().take(2).collect::<String>()
                        ),
                        "Use %N, %M, %P, %A, %C and %D, the last four as arguments of their own.",
                    ));
                }
                arguments.push(argument.replace("%%", "%").into());
            }
        }
    }
    if arguments.is_empty() {
        return Err(Refusal::new(
            format!("{variable}: the command is empty"),
            "Name the program of the launcher first.",
        ));
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    /// An input is a template of a command, a NUL, and the arguments of a command line, each
    /// before a NUL.
    fn any_words(input: &[u8]) {
        let mut arguments = input.split(|&c| c == 0).map(|w| OsString::from_vec(w.to_vec()));
        let template = arguments.next().unwrap_or_default();
        let request = match parse(Parser::from_args(arguments)) {
            Ok(request) => request,
            Err(Refusal { cause, remedy }) => {
                assert!(!cause.is_empty() && !remedy.is_empty());
                return;
            }
        };
        let GasnetrunRequest::Run(o) = request else { return };
        assert!(o.ranks.is_none_or(|n| (1..=MAX_RANKS).contains(&n)));
        assert!(o.hosts.is_none_or(|n| (1..=MAX_RANKS).contains(&n)));
        assert!(o.cores >= 1 && (o.program.is_some() || o.args.is_empty()));
        let (Some(size), Some(program)) = (o.ranks, o.program.clone()) else { return };
        let plan = o.plan(size, program);
        if let Ok(arguments) = command("MPIRUN_CMD", &template.to_string_lossy(), &plan, 1) {
            assert!(!arguments.is_empty(), "a command has a program");
        }
    }

    /// Every option of the table is read, and what it says of values holds.
    #[test]
    fn the_options_of_the_table_are_read() {
        use command_line::OptionValue;
        for option in GASNETRUN.options {
            let value = match option.value {
                OptionValue::OneOf(_, words) => words[0],
                OptionValue::Any("A=B") => "A=B",
                _ => "1",
            };
            for name in option.names {
                let words = match (option.value, name.ends_with('=')) {
                    (OptionValue::Nothing, _) => vec![name.to_string()],
                    (_, true) => vec![format!("{name}{value}")],
                    (_, false) => vec![name.to_string(), value.to_string()],
                };
                let read = parse(Parser::from_args(words.into_iter().chain(["prog".into()])));
                if *name == "--remote" {
                    assert!(matches!(read, Ok(GasnetrunRequest::Remote)), "{read:?}");
                    continue;
                }
                let Ok(GasnetrunRequest::Run(o)) = read else { panic!("{name}: {read:?}") };
                assert_eq!(o.program, Some("prog".into()), "{name}");
            }
        }
    }

    #[test]
    fn hosts_are_named_by_one_option() {
        for words in [["-H", "a", "--host", "b"], ["--hostfile", "a", "--hostfile", "a"]] {
            let read = parse(Parser::from_args(words.iter().chain(&["prog"])));
            assert!(read.is_err_and(|refusal| refusal.cause.ends_with("is given twice")));
        }
    }

    #[test]
    fn fuzz_options() {
        fuzz::check("options", 20_000, any_words);
    }
}
