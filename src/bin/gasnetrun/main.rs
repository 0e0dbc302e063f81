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
use gasnet::boot::launch::{LaunchPlan, run};
use gasnet::boot::options::BootOptions;
use gasnet::env;
use lexopt::Parser;
use options::{GasnetrunRequest, Refusal, StartMethod};
use std::ffi::{CString, OsString};
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

/// Prints what is wrong and what to do, and exits with the code for wrong usage.
fn refuse(cause: &str, remedy: &str) -> ! {
    signal::set_default(Signal::PIPE);
    eprintln!("*** gasnetrun: {cause}\n***   {remedy}");
    exit(2)
}

/// Warns of variables that should be passed on but are not set.
fn look_for(names: &[String]) {
    for name in names.iter().filter(|n| std::env::var_os(n).is_none()) {
        eprintln!("*** gasnetrun: -E {name}: the variable is not set");
    }
}

/// An argument quoted for a shell.
fn quoted(argument: &OsString) -> String {
    let text = argument.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn shown(arguments: &[OsString]) -> String {
    arguments.iter().map(quoted).collect::<Vec<_>>().join(" ")
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

/// Makes this the working directory, from which the ranks inherit it. Ends the process with a
/// message if that fails.
fn enter(folder: &Path) {
    if let Err(e) = std::env::set_current_dir(folder) {
        signal::set_default(Signal::PIPE);
        eprintln!(
            "*** gasnetrun: --wdir {} cannot be entered: {e}\n***   Name a folder that exists.",
            folder.display()
        );
        exit(1)
    }
    if let Ok(path) = std::env::current_dir()
        && let Ok(path) = CString::new(path.into_os_string().into_encoded_bytes())
    {
        // SAFETY: this process has one thread.
        unsafe { sys::environment::set(c"PWD", &path) };
    }
}

fn main() {
    match run_command() {
        Ok(code) => exit(code),
        Err(Refusal { cause, remedy }) => refuse(&cause, &remedy),
    }
}

/// The exit code of the job.
fn run_command() -> Result<i32, Refusal> {
    let o = match options::parse(Parser::from_env())? {
        GasnetrunRequest::Run(options) => options,
        GasnetrunRequest::Usage => print_and_exit(&GASNETRUN.usage()),
        GasnetrunRequest::Version => print_and_exit(&GASNETRUN.version()),
    };
    for (name, value) in &o.set {
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
    if o.spawner != StartMethod::Fork {
        if plan.gdb.is_some() {
            return Err(Refusal::new(
                "--gdb needs a terminal for its ranks, which another launcher does not give them",
                "Omit -spawner, or have MPIRUN_CMD or PMIRUN_CMD start `xterm -e gdb --args %C`.",
            ));
        }
        if let Some(folder) = plan.output.take().filter(|_| !o.dry) {
            (plan.program, plan.args) =
                other_launcher::redirected(&folder, &plan.program, &plan.args);
        }
    }
    let foreign = match o.spawner {
        StartMethod::Fork => None,
        StartMethod::Mpi => Some(command("MPIRUN_CMD", "mpirun -np %N %C", &plan, hosts)?),
        StartMethod::Pmi => Some(command("PMIRUN_CMD", "srun --mpi=pmi2 -n %N %C", &plan, hosts)?),
    };
    if hosts > 1 && foreign.is_none() {
        eprintln!("*** gasnetrun: -N {hosts}: all ranks run on this host");
    }
    if o.verbose || o.dry {
        match &foreign {
            Some(arguments) => eprintln!("gasnetrun: {}", shown(arguments)),
            None => {
                let arguments: Vec<OsString> =
                    std::iter::once(&plan.program).chain(&plan.args).cloned().collect();
                eprintln!("gasnetrun: {size} ranks on this host: {}", shown(&arguments));
            }
        }
    }
    if o.dry {
        return Ok(0);
    }
    if let Some(folder) = &o.folder {
        enter(folder);
    }
    if let Some(arguments) = foreign {
        match plan.timeout {
            Some(seconds) => return Ok(other_launcher::run_within(&arguments, seconds)),
            None => other_launcher::replace(&arguments),
        }
    }
    env::check_all();
    let mut options = BootOptions::from_env();
    options.no_cut_off |= o.no_cut_off;
    match run(&plan, &options) {
        Ok(code) => Ok(code),
        Err(e) => {
            eprintln!("*** gasnetrun: {}\n***   {}", e.cause, e.remedy);
            exit(e.code)
        }
    }
}
