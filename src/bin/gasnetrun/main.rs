//! The launcher: `gasnetrun -n N [options] [--] program [arguments]` starts a program as a job
//! of N ranks on this host, and exits with the job's exit code. `gasnetrun_portals` is the same
//! program.
//!
//! The ranks inherit the environment and the output streams; rank 0 inherits standard input, the
//! others read an empty one. With `-spawner=mpi` or `-spawner=pmi` another launcher starts the
//! ranks, and replaces this process unless there is a time limit.

mod options;
mod other_launcher;

use command_line::GASNETRUN;
use gasnet::boot::error::BootError;
use gasnet::boot::hosts::list::HostList;
use gasnet::boot::hosts::mapping::{self, RankMapping};
use gasnet::boot::hosts::remote;
use gasnet::boot::launch::{run, run_remote};
use gasnet::boot::launch_plan::{HostPlan, LaunchPlan};
use gasnet::boot::options::BootOptions;
use gasnet::env;
use gasnet::tools::shell;
use gasnet::tools::this_process::working_folder;
use lexopt::Parser;
use options::{GasnetrunRequest, Options, Refusal, StartMethod};
use std::ffi::{CString, OsString};
use std::fmt;
use std::path::Path;
use std::process::exit;
use sys::signal;
use sys::signal::Signal;

/// Prints a text and exits; silently if the reader has closed the pipe.
fn print_and_exit(text: &str) -> ! {
    signal::set_default(Signal::PIPE);
    sys::stdio::write("gasnetrun", text);
    exit(0)
}

/// Prints text on standard error, whose reader need not take it.
fn say(text: fmt::Arguments<'_>) {
    sys::stdio::write_stderr(format!("{text}\n").as_bytes());
}

/// Prints what is wrong and what to do, and exits with the code for wrong usage.
fn refuse(cause: &str, remedy: &str) -> ! {
    say(format_args!("*** gasnetrun: {cause}\n***   {remedy}"));
    exit(2)
}

/// Warns of variables that should be passed on but are not set.
fn look_for(names: &[String]) {
    for name in names.iter().filter(|n| std::env::var_os(n).is_none()) {
        say(format_args!("*** gasnetrun: {name} is to be passed on, but is not set"));
    }
}

fn shown(arguments: &[OsString]) -> String {
    arguments.iter().map(|word| shell::quoted(word)).collect::<Vec<_>>().join(" ")
}

/// The arguments of another launcher's command, from the template in a variable.
fn command(
    variable: &str,
    default: &str,
    plan: &LaunchPlan,
    hosts: u32,
) -> Result<Vec<OsString>, Refusal> {
    let template = std::env::var(variable).ok().filter(|t| !t.trim().is_empty());
    options::command(variable, template.as_deref().unwrap_or(default), plan, hosts)
}

/// Makes this the working directory, from which the ranks inherit it, and PWD its path as the user
/// names it. Ends the process with a message if that fails.
fn enter(folder: &Path) {
    let path = working_folder().map_or_else(|_| folder.to_path_buf(), |here| here.join(folder));
    if let Err(e) = std::env::set_current_dir(folder) {
        say(format_args!(
            "*** gasnetrun: --wdir {} cannot be entered: {e}\n***   Name a folder that exists.",
            folder.display()
        ));
        exit(1)
    }
    set_pwd(&path);
    if let Ok(path) = working_folder() {
        set_pwd(&path);
    }
}

fn set_pwd(path: &Path) {
    if let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) {
        // SAFETY: this process has one thread.
        unsafe { sys::environment::set(c"PWD", &path) };
    }
}

/// The hosts that the user names, and the ranks of each; `None` for this host alone.
fn host_plan(o: &Options, size: u32) -> Result<Option<HostPlan>, Refusal> {
    let named = match (&o.host_names, &o.host_file, o.spawner) {
        (Some(_), Some(_), _) => {
            return Err(Refusal::new("-H and --hostfile both name hosts", "Give one of them."));
        }
        (Some(_), None, Some(StartMethod::Fork)) | (None, Some(_), Some(StartMethod::Fork)) => {
            return Err(Refusal::new(
                "-spawner=fork starts all ranks on this host, but hosts are named",
                "Omit -spawner, or -H and --hostfile.",
            ));
        }
        (None, None, Some(StartMethod::Fork | StartMethod::Mpi | StartMethod::Pmi)) => None,
        (Some(names), None, _) => Some(HostList::of_names("-H", names)?),
        (None, Some(file), _) => Some(HostList::of_file("--hostfile", file)?),
        (None, None, _) => HostList::from_env()?,
    };
    let Some(mut named) = named else {
        return match o.spawner {
            Some(StartMethod::Ssh) => Err(Refusal::new(
                "-spawner=ssh: no hosts are named",
                "Name them with -H or --hostfile, or in GASNET_SSH_SERVERS.",
            )),
            _ => Ok(None),
        };
    };
    named.hosts.truncate(o.hosts.map_or(usize::MAX, |n| n as usize));
    let order = o.mapping.unwrap_or(RankMapping::Core);
    Ok(Some(mapping::map(&named, size, order, o.ranks_per_host)?))
}

/// Where the ranks of a plan run.
fn placed(plan: &LaunchPlan) -> String {
    let Some(hosts) = &plan.hosts else { return format!("{} ranks on this host", plan.size) };
    let of_host = |host: u32| hosts.host_of.iter().filter(|h| **h == host).count();
    let each: Vec<String> = (0..)
        .zip(&hosts.names)
        .map(|(host, name)| format!("{} on {name}", of_host(host)))
        .collect();
    format!("{} ranks, {}", plan.size, each.join(", "))
}

/// Runs the ranks of this host, as gasnetrun on another one says.
fn run_below() -> i32 {
    let run = || {
        let remote = remote::connect()?;
        env::check_all();
        run_remote(remote, &BootOptions::from_env())
    };
    run().unwrap_or_else(|e| failed(&e))
}

/// Prints what is wrong and what to do; the exit code.
fn failed(e: &BootError) -> i32 {
    say(format_args!("*** gasnetrun: {}\n***   {}", e.cause, e.remedy));
    e.code
}

fn main() {
    // Whatever the job has to print, its end does not depend on a reader.
    sys::bounded_stderr::bound();
    match run_command() {
        Ok(code) => exit(code),
        Err(Refusal { cause, remedy }) => refuse(&cause, &remedy),
    }
}

/// The exit code of the job.
fn run_command() -> Result<i32, Refusal> {
    let o = match options::parse(Parser::from_env())? {
        GasnetrunRequest::Run(options) => options,
        GasnetrunRequest::Remote => return Ok(run_below()),
        GasnetrunRequest::Usage => print_and_exit(&GASNETRUN.usage()),
        GasnetrunRequest::Version => print_and_exit(&GASNETRUN.version()),
    };
    // The variable reaches the supervisors of all hosts and of other launchers' jobs.
    let no_cut_off = (c"GASNET_NO_CUT_OFF".to_owned(), c"1".to_owned());
    for (name, value) in o.set.iter().chain(o.no_cut_off.then_some(&no_cut_off)) {
        // SAFETY: this process has one thread.
        unsafe { sys::environment::set(name, value) };
    }
    look_for(&o.pass_on);
    let size = o.ranks.ok_or_else(|| {
        Refusal::new("the number of ranks is missing", "Give it: gasnetrun -n N program")
    })?;
    let program = o.program.clone().ok_or_else(|| {
        Refusal::new("the program is missing", "Give it: gasnetrun -n N program [arguments]")
    })?;
    let mut plan = o.plan(size, program);
    let hosts = o.hosts.unwrap_or(1);
    let foreign = matches!(o.spawner, Some(StartMethod::Mpi | StartMethod::Pmi));
    if foreign {
        match o.first_of_own_ranks() {
            Some("--gdb") => {
                return Err(Refusal::new(
                    "--gdb needs a terminal for its ranks, which another launcher does not give \
                     them",
                    "Omit -spawner, or have MPIRUN_CMD or PMIRUN_CMD start `xterm -e gdb --args \
                     %C`.",
                ));
            }
            Some(option) => {
                return Err(Refusal::new(
                    format!(
                        "{option} is for ranks that gasnetrun starts, but -spawner names \
                             another launcher"
                    ),
                    "Omit one of them, or name that launcher's own option in MPIRUN_CMD or \
                     PMIRUN_CMD.",
                ));
            }
            None => {}
        }
        if let Some(folder) = plan.output.take().filter(|_| !o.dry) {
            (plan.program, plan.args) =
                other_launcher::redirected(&folder, &plan.program, &plan.args);
        }
    }
    plan.hosts = host_plan(&o, size)?;
    let command_of_other = match o.spawner {
        None | Some(StartMethod::Fork | StartMethod::Ssh) => None,
        Some(StartMethod::Mpi) => Some(command("MPIRUN_CMD", "mpirun -np %N %C", &plan, hosts)?),
        Some(StartMethod::Pmi) => {
            Some(command("PMIRUN_CMD", "srun --mpi=pmi2 -n %N %C", &plan, hosts)?)
        }
    };
    if hosts > 1 && command_of_other.is_none() && plan.hosts.is_none() {
        say(format_args!(
            "*** gasnetrun: -N {hosts}: all ranks run on this host; -H names others"
        ));
    }
    if let Some(most) = o.ranks_per_host.filter(|_| plan.hosts.is_none()) {
        say(format_args!(
            "*** gasnetrun: --ranks-per-host {most}: all ranks run on this host; -H names others"
        ));
    }
    if plan.prefix && plan.output.is_some() {
        say(format_args!(
            "*** gasnetrun: --prefix has no effect on the files of --output, whose names have the \
             rank"
        ));
    }
    if o.verbose || o.dry {
        match &command_of_other {
            Some(arguments) => say(format_args!("gasnetrun: {}", shown(arguments))),
            None => {
                let arguments: Vec<OsString> =
                    std::iter::once(&plan.program).chain(&plan.args).cloned().collect();
                say(format_args!("gasnetrun: {}: {}", placed(&plan), shown(&arguments)));
            }
        }
    }
    if o.dry {
        return Ok(0);
    }
    if let Some(folder) = &o.folder {
        enter(folder);
    }
    if let Some(arguments) = command_of_other {
        match plan.timeout {
            Some(seconds) => return Ok(other_launcher::run_within(&arguments, seconds)),
            None => other_launcher::replace(&arguments),
        }
    }
    env::check_all();
    Ok(run(&plan, &BootOptions::from_env()).unwrap_or_else(|e| failed(&e)))
}
