//! The launcher `gasnetrun` for one machine: starts a program as the ranks of a job, and on the other side finds the
//! seat that the launcher left for this process. Called by the program `gasnetrun` and by [`super::start`].
//!
//! Whatever is special to a rank (its CPUs, its addresses, its seat) is arranged in the new process, after the fork and
//! before the program takes over.

use super::message::{MessageHead, MessageKind};
use super::supervised::RankId;
use super::supervisor::{ProcessRole, Supervisor};
use super::{BootError, hosts};
use crate::{env, report};
use std::ffi::{CString, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use sys::cpu::{self, CpuMask};
use sys::signal::Signal;
use sys::{clock, process, signal, socket};

/// Where a rank finds its seat: rank, size, cookie, then the descriptors of the job-control memory, arena, segments,
/// scratch and control socket.
const SPAWN_FDS: &str = "GASNET_SPAWN_FDS";

/// The seat that gasnetrun left for this process; `None` if it did not start this process.
pub(super) fn id() -> Result<Option<RankId>, BootError> {
    let Some(text) = env::lookup(SPAWN_FDS) else { return Ok(None) };
    let bad = || {
        BootError::new(
            format!(
                "{SPAWN_FDS}={text} is not what gasnetrun sets, or its descriptors are closed"
            ),
            format!(
                "Unset {SPAWN_FDS}; start ranks only by gasnetrun, and close no inherited descriptor before gasnet_init."
            ),
        )
    };
    let numbers: Option<Vec<u64>> = text.split(',').map(|n| n.parse().ok()).collect();
    let Some([rank, size, cookie, fds @ ..]) = numbers.as_deref() else { return Err(bad()) };
    let (Ok(rank), Ok(size)) = (u32::try_from(*rank), u32::try_from(*size)) else {
        return Err(bad());
    };
    let mut fds = fds.iter().map(|&n| {
        // SAFETY: the launcher opened these descriptors for this purpose; before gasnet_init nobody else uses them.
        i32::try_from(n)
            .ok()
            .and_then(|n| unsafe { sys::descriptor::inherited(n) })
            .ok_or_else(bad)
    });
    let mut next = || fds.next().unwrap_or_else(|| Err(bad()));
    let id = RankId {
        rank,
        size,
        cookie: *cookie,
        control: next()?,
        arena: next()?,
        segments: next()?,
        scratch: next()?,
        socket: next()?,
    };
    // A GASNet program that this process may start is not a rank of this job.
    // SAFETY: gasnet_init is called before the program has other threads.
    unsafe { sys::environment::unset(c"GASNET_SPAWN_FDS") };
    Ok(Some(id))
}

/// Which CPUs each rank is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuBinding {
    /// Those that the launcher may use.
    None,
    /// Cores of its own, in turn.
    Core,
    /// Those near one memory, neighbouring ranks together.
    Numa,
}

/// What is to be started, and how.
#[derive(Clone, Debug)]
pub struct LaunchPlan {
    /// Ranks.
    pub size: u32,
    /// Which program; found through PATH unless the name has a slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Which CPUs each rank is bound to.
    pub bind: CpuBinding,
    /// Cores per rank, with [`CpuBinding::Core`].
    pub cores: u32,
    /// Puts the rank in front of each line that it prints.
    pub prefix: bool,
    /// Has the ranks loaded at the same addresses, without randomisation.
    pub fixed_addresses: bool,
    /// Tells the processes of the ranks, and how the job ended.
    pub verbose: bool,
}

/// Runs a program as a job of ranks on this machine; returns the exit code of the job.
///
/// # Errors
/// If the program cannot be run, or the processes cannot be started.
pub fn run(plan: &LaunchPlan) -> Result<i32, BootError> {
    check(&plan.program)?;
    env::check_all();
    hosts::check()?;
    let text = |s: &OsString| {
        CString::new(s.as_bytes())
            .map_err(|_| BootError::new("an argument contains a zero byte", "Remove it."))
    };
    let name = text(&plan.program)?;
    let mut argv = vec![name.clone()];
    for a in &plan.args {
        argv.push(text(a)?);
    }
    // The Rust runtime's handlers let the first of these pass when somebody sends it.
    signal::set_default(Signal::SEGV);
    signal::set_default(Signal::BUS);
    let places = places(plan);
    let supervisor = Supervisor::new(plan.size)?;
    let began = clock::now_ns();
    match if plan.prefix { supervisor.prefix() } else { supervisor }.start()? {
        ProcessRole::Supervisor(supervisor) => {
            if plan.verbose {
                for (rank, pid) in supervisor.pids().iter().enumerate() {
                    let place = places.get(rank % places.len().max(1));
                    let cpus = place.map_or(String::new(), |m| format!(" on CPUs {m:?}"));
                    eprintln!("gasnetrun: rank {rank} is process {pid}{cpus}");
                }
            }
            let code = supervisor.watch();
            if plan.verbose {
                let seconds = (clock::now_ns() - began) as f64 / 1e9;
                eprintln!("gasnetrun: the job ended after {seconds:.3} s with exit code {code}");
            }
            Ok(code)
        }
        ProcessRole::Rank(id) => {
            if let Some(m) = places.get(id.rank as usize % places.len().max(1)) {
                m.bind();
            }
            if plan.fixed_addresses && !process::fix_addresses() {
                report::line(format_args!(
                    "rank {}: the system does not let addresses be fixed (--no-aslr)",
                    id.rank
                ));
            }
            become_program(id, &name, &argv)
        }
    }
}

/// The CPUs of the ranks, in turn; none if they are not bound.
fn places(plan: &LaunchPlan) -> Vec<CpuMask> {
    let Some(all) = CpuMask::of_thread() else { return Vec::new() };
    match plan.bind {
        CpuBinding::None => Vec::new(),
        CpuBinding::Core => {
            let cores = cpu::cores(&all);
            let wanted = plan.size as usize * plan.cores as usize;
            if wanted > cores.len() {
                report::line(format_args!(
                    "gasnetrun: --bind core: {wanted} cores are wanted, but there are {}; some ranks share theirs",
                    cores.len()
                ));
            }
            let each = (plan.cores as usize).min(cores.len());
            (0..plan.size as usize)
                .map(|rank| {
                    (0..each).fold(CpuMask::of([]), |m, i| {
                        m.or(&cores[(rank * each + i) % cores.len()])
                    })
                })
                .collect()
        }
        CpuBinding::Numa => {
            let nodes = cpu::numa_nodes(&all);
            (0..plan.size as usize)
                .map(|rank| nodes[rank * nodes.len() / plan.size as usize].clone())
                .collect()
        }
    }
}

/// In a new process of the launcher: leaves the seat for the program, and becomes it.
fn become_program(id: RankId, name: &CString, argv: &[CString]) -> ! {
    let fds = [&id.control, &id.arena, &id.segments, &id.scratch, &id.socket];
    let mut value = format!("{},{},{}", id.rank, id.size, id.cookie);
    for fd in fds {
        value += &format!(",{}", fd.as_raw_fd());
        let _ = sys::descriptor::close_on_exec(fd.as_raw_fd(), false);
    }
    // A Rust program starts with SIGPIPE ignored, which is not meant for the ranks.
    signal::set_default(Signal::PIPE);
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: this process was just forked from one that has a single thread.
    unsafe { sys::environment::set(c"GASNET_SPAWN_FDS", &value) };
    let e = sys::child::exec(name, argv);
    let failed = MessageHead {
        kind: MessageKind::ExecFailed,
        a: e.raw_os_error().unwrap_or(0) as u32,
        b: 0,
    };
    let _ = socket::send(id.socket.as_raw_fd(), &failed.bytes(), true);
    sys::exit_now(127)
}

/// Whether the program can be run, as far as can be told before trying.
fn check(program: &OsString) -> Result<(), BootError> {
    use std::os::unix::fs::PermissionsExt;
    let shown = program.to_string_lossy();
    let runnable = |m: &std::fs::Metadata| m.is_file() && m.permissions().mode() & 0o111 != 0;
    if program.as_bytes().contains(&b'/') {
        return match std::fs::metadata(program) {
            Err(e) => Err(BootError::new(
                format!("{shown} cannot be run: {e}"),
                "Check the path of the program.",
            )),
            Ok(m) if m.is_dir() => Err(BootError::new(
                format!("{shown} cannot be run: it is a directory"),
                "Name a program.",
            )),
            Ok(m) if !runnable(&m) => Err(BootError::new(
                format!("{shown} cannot be run: it is not executable"),
                format!("Make it executable: chmod +x {shown}"),
            )),
            Ok(_) => Ok(()),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    if std::env::split_paths(&path)
        .any(|dir| std::fs::metadata(dir.join(program)).is_ok_and(|m| runnable(&m)))
    {
        return Ok(());
    }
    let here = std::fs::metadata(program).is_ok();
    Err(BootError::new(
        format!("{shown} cannot be run: no directory of PATH has it"),
        if here {
            format!("Write ./{shown} for the one in this directory.")
        } else {
            "Check its name, or give a path.".into()
        },
    ))
}
