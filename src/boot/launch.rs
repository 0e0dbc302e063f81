//! The launcher `gasnetrun`: starts a program as the ranks of a job, on this host and on others.
//!
//! Called by the program `gasnetrun`. Invariant: what distinguishes a rank is its CPUs, its
//! addresses and its [`RankId`]. It is set up in the new process, after the fork and before
//! the program runs.

use super::control_message::{ControlHead, ControlKind};
use super::debugger::{self, Debugger};
use super::decision::is_success;
use super::error::BootError;
use super::host_share::HostShare;
use super::hosts::names::HostAddresses;
use super::hosts::remote::RemoteHost;
use super::hosts::remote_plan::{HostToStart, RemotePlan};
use super::launch_plan::{CpuBinding, LaunchPlan};
use super::options::BootOptions;
use super::passed_stream;
use super::rank_id::RankId;
use super::rank_variables;
use super::supervisor::{ProcessRole, SignalSource, Supervisor};
use crate::report;
use crate::tools::this_process::hostname;
use std::ffi::{CString, OsString};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use sys::cpu::{self, CpuMask};
use sys::signal::Signal;
use sys::{clock, process, signal, socket};

/// Runs a program as the ranks of a job; returns the exit code of the job, or 1 if that is a
/// success and output of the ranks is lost.
///
/// # Errors
/// If the program cannot be run, or the processes cannot be started.
pub fn run(plan: &LaunchPlan, options: &BootOptions) -> Result<i32, BootError> {
    let began = clock::now_ns();
    let code = match run_on_hosts(plan, options)? {
        code if is_success(code) && passed_stream::is_lost() => 1,
        code => code,
    };
    if plan.verbose {
        let seconds = (clock::now_ns() - began) as f64 / 1e9;
        let text =
            format!("gasnetrun: the job ended after {seconds:.3} s with exit code {code}\n");
        sys::stdio::write_stderr(text.as_bytes());
    }
    Ok(code)
}

/// Runs the ranks of this host, and starts the other hosts.
fn run_on_hosts(plan: &LaunchPlan, options: &BootOptions) -> Result<i32, BootError> {
    let Some(hosts) = &plan.hosts else {
        return run_share(plan, options, HostShare::whole(plan.size), Ok);
    };
    // Before signals are taken over: a name server may take long.
    let mut addresses = HostAddresses::default();
    let own = addresses.position_of_this_host(&hosts.names);
    if hosts.names.len() == 1 && own == Some(0) {
        return run_share(plan, options, HostShare::whole(plan.size), Ok);
    }
    if plan.gdb.is_some() {
        return Err(BootError::new(
            "--gdb needs a terminal for its ranks, which other hosts do not have",
            "Start all ranks on this host, or omit --gdb.",
        ));
    }
    let own = own.map(|own| own as u32);
    let others: Vec<HostToStart> = (0..)
        .zip(&hosts.names)
        .filter(|(number, _)| Some(*number) != own)
        .map(|(number, name)| HostToStart { number, name: name.clone() })
        .collect();
    let share = HostShare::of_host(own.unwrap_or(u32::MAX), &hosts.host_of);
    addresses.look_up_branches(&others);
    let remote = RemotePlan::of_here(hosts.host_of.clone(), plan.clone());
    run_share(plan, options, share, |supervisor| {
        supervisor.start_hosts(&others, &remote, &addresses, options.spawn_timeout)
    })
}

/// Runs the ranks of this host, on which gasnetrun has been started by that of another host;
/// returns the exit code of the job.
///
/// # Errors
/// As [`run`]; the other hosts know of it.
pub fn run_remote(remote: RemoteHost, options: &BootOptions) -> Result<i32, BootError> {
    let RemoteHost { host, plan, secret, mut link } = remote;
    check(&plan.launch.program, true).inspect_err(|e| link.fail(e.code))?;
    let share = HostShare::of_host(host, &plan.host_of);
    let mut link = Some(link);
    let mut addresses = HostAddresses::default();
    addresses.look_up_branches(&plan.below);
    let ended = run_share(&plan.launch, options, share, |supervisor| {
        let supervisor = supervisor.below(&mut link, secret)?;
        supervisor.start_hosts(&plan.below, &plan, &addresses, options.spawn_timeout)
    });
    ended.inspect_err(|e| {
        if let Some(link) = &mut link {
            link.fail(e.code);
        }
    })
}

/// Runs the ranks of this host. `connect` connects its supervisor with other hosts.
fn run_share(
    plan: &LaunchPlan,
    options: &BootOptions,
    share: HostShare,
    connect: impl FnOnce(Supervisor) -> Result<Supervisor, BootError>,
) -> Result<i32, BootError> {
    if share.local_size() > 0 {
        check(&plan.program, share.hosts > 1)?;
    }
    let text = |s: &OsString| {
        CString::new(s.as_bytes())
            .map_err(|_| BootError::new("an argument contains a zero byte", "Remove it."))
    };
    let mut argv = vec![text(&plan.program)?];
    for a in &plan.args {
        argv.push(text(a)?);
    }
    // The Rust runtime's handlers ignore the first of these when a process sends it.
    signal::set_default(Signal::SEGV);
    signal::set_default(Signal::BUS);
    let masks = cpu_masks(plan, share.local_size() as usize);
    let debugger = plan.gdb.as_ref().map(|ranks| Debugger::new(ranks, plan.size)).transpose()?;
    let is_alone = share.hosts == 1;
    let supervisor = supervisor(plan, options, share, debugger.as_ref())?;
    let mut supervisor = connect(supervisor)?;
    let guard = supervisor.guard()?;
    match supervisor.start()? {
        ProcessRole::Supervisor(supervisor) => {
            sys::bounded_stderr::bound();
            if plan.verbose {
                for (local, (rank, pid)) in supervisor.processes().iter().enumerate() {
                    let mask = masks.get(local % masks.len().max(1));
                    let cpus = mask.map_or(String::new(), |m| format!(" on CPUs {m:?}"));
                    let host =
                        if is_alone { String::new() } else { format!(" of {}", hostname()) };
                    let text = format!("gasnetrun: rank {rank} is process {pid}{host}{cpus}\n");
                    sys::stdio::write_stderr(text.as_bytes());
                }
            }
            let code = supervisor.watch();
            guard.end();
            Ok(code)
        }
        ProcessRole::Rank(id) => {
            if let Some(m) = masks.get(id.place.local_rank.index() % masks.len().max(1)) {
                m.bind();
            }
            if plan.fixed_addresses && !process::fix_addresses() {
                report::line(format_args!(
                    "rank {}: the system does not allow fixed addresses (--no-aslr)",
                    id.place.rank
                ));
            }
            let under = debugger.and_then(|debugger| debugger.command(id.place.rank, &argv));
            let argv = under.unwrap_or(argv);
            become_program(&id, &argv)
        }
    }
}

/// The supervisor of the plan's job.
fn supervisor(
    plan: &LaunchPlan,
    options: &BootOptions,
    share: HostShare,
    debugger: Option<&Debugger>,
) -> Result<Supervisor, BootError> {
    if debugger.and_then(Debugger::at_terminal).is_some() {
        // Ctrl-C is the debugger's.
        signal::ignore(Signal::INT);
    }
    let mut options = options.clone();
    if debugger.is_some() {
        // A rank at the prompt of its debugger has all the time that the user takes.
        (options.spawn_timeout, options.no_cut_off) = (None, true);
    }
    let mut supervisor = Supervisor::new(share, SignalSource::Own, &options)?;
    if let Some(debugger) = debugger {
        supervisor = supervisor.debugged(debugger.ranks.clone(), debugger.at_terminal());
    }
    if plan.prefix {
        supervisor = supervisor.prefix();
    }
    if let Some(folder) = &plan.output {
        supervisor = supervisor.output(folder)?;
    }
    Ok(match plan.timeout {
        Some(seconds) => supervisor.timeout(seconds),
        None => supervisor,
    })
}

/// The CPUs of the ranks of this host, in turn; empty if they are not bound.
fn cpu_masks(plan: &LaunchPlan, size: usize) -> Vec<CpuMask> {
    let Some(all) = CpuMask::of_thread() else { return Vec::new() };
    match plan.bind {
        CpuBinding::None => Vec::new(),
        CpuBinding::Core => {
            let cores = cpu::cores(&all);
            let wanted = size * plan.cores as usize;
            if wanted > cores.len() {
                report::line(format_args!(
                    "gasnetrun: --bind core needs {wanted} cores, but this host has {}; some ranks share \
                     theirs",
                    cores.len()
                ));
            }
            let each = (plan.cores as usize).min(cores.len());
            (0..size)
                .map(|rank| {
                    (0..each).fold(CpuMask::of([]), |m, i| {
                        m.or(&cores[(rank * each + i) % cores.len()])
                    })
                })
                .collect()
        }
        CpuBinding::Numa => {
            let nodes = cpu::numa_nodes(&all);
            (0..size).map(|rank| nodes[rank * nodes.len() / size].clone()).collect()
        }
    }
}

/// In a new process of the launcher: executes the program, with the rank's identity and
/// numbers in its environment.
fn become_program(id: &RankId, argv: &[CString]) -> ! {
    let mut variables = vec![id.for_program()];
    variables.extend(rank_variables::for_program(id.place));
    // A Rust program starts with SIGPIPE ignored; the ranks must not inherit that.
    signal::set_default(Signal::PIPE);
    let e = sys::child::exec(&argv[0], argv, &variables);
    let failed = ControlHead {
        kind: ControlKind::ExecFailed,
        a: e.raw_os_error().unwrap_or(0) as u32,
        b: 0,
    };
    let _ = socket::send(id.socket.as_fd(), &failed.bytes(), true);
    sys::exit_now(127)
}

/// The exit codes of shells for a program that does not exist, and for one that is not executable.
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;

/// Rejects a program that certainly cannot be run, before any process is started. The message
/// names this host if the job has several.
fn check(program: &OsString, several_hosts: bool) -> Result<(), BootError> {
    use std::os::unix::fs::PermissionsExt;
    let shown = program.to_string_lossy();
    let place = if several_hosts { format!(" on {}", hostname()) } else { String::new() };
    let runnable = |m: &std::fs::Metadata| m.is_file() && m.permissions().mode() & 0o111 != 0;
    if program.as_bytes().contains(&b'/') {
        return match std::fs::metadata(program) {
            Err(e) => Err(BootError::new(
                format!("{shown} cannot be run{place}: {e}"),
                "Check the path of the program.",
            )
            .with_code(match e.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => NOT_FOUND,
                _ => NOT_EXECUTABLE,
            })),
            Ok(m) if m.is_dir() => Err(BootError::new(
                format!("{shown} cannot be run{place}: it is a directory"),
                "Name a program.",
            )
            .with_code(NOT_EXECUTABLE)),
            Ok(m) if !runnable(&m) => Err(BootError::new(
                format!("{shown} cannot be run{place}: it is not executable"),
                format!("Make it executable: chmod +x {shown}"),
            )
            .with_code(NOT_EXECUTABLE)),
            Ok(_) => Ok(()),
        };
    }
    if debugger::is_in_path(program) {
        return Ok(());
    }
    let here = std::fs::metadata(program).is_ok();
    Err(BootError::new(
        format!("{shown} cannot be run{place}: no directory of PATH has it"),
        if here {
            format!("Write ./{shown} for the file in this directory.")
        } else {
            "Check its name, or give a path.".into()
        },
    )
    .with_code(NOT_FOUND))
}
