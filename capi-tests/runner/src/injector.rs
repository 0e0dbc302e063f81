//! Faults that hit a job from outside at a given moment. They are a signal to a process, a
//! pause of a process, a hang-up of the terminal, and Ctrl-C typed twice. Another is a
//! debugger that resumes frozen ranks. Used by `test_job`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use sys::signal::Signal;

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A signal to the process with this index, modulo the number of processes of the job.
    Signal(Signal, usize),
    /// One process is stopped and continues after this time.
    Pause(Duration, usize),
    /// The terminal of the job is closed.
    HangUp,
    /// Ctrl-C is typed twice, with this time between.
    Interrupts(Duration),
    /// A debugger sets `gasnet_frozen` to 0 in each process that has the library.
    Thaw,
}

/// A fault and its time after the start.
#[derive(Clone, Copy, Debug)]
pub struct InjectedFault {
    /// Time after the start.
    pub after: Duration,
    /// The kind.
    pub kind: FaultKind,
}

/// Injects one fault.
pub(crate) struct FaultInjector {
    fault: InjectedFault,
    /// The user's end of the terminal.
    terminal: Option<File>,
    /// The next step and its time.
    then: Option<(Duration, Step)>,
    /// The process that was hit.
    pub(crate) hit: String,
    /// Whether it belongs to another job system's launcher.
    pub(crate) hit_theirs: bool,
}

#[derive(Clone, Copy)]
enum Step {
    Inject,
    Continue(i32),
    TypeAgain,
}

const CTRL_C: &[u8] = b"\x03";
/// Our supervisor under other launchers.
const SUPERVISOR: &str = "gasnet-job";
/// The process between MPICH's mpiexec and the ranks.
const HELPER: &str = "hydra_pmi_proxy";
/// A process of gasnetrun without which the job goes on.
const GUARD: &str = "gasnet-guard";
const SRUN: &str = "srun";
/// Names of the processes of other launchers.
const THEIRS: [&str; 8] =
    ["mpiexec", HELPER, "mpirun", "orterun", "orted", "prterun", "prted", SRUN];

/// Whether a process of this name belongs to another launcher.
pub(crate) fn is_theirs(name: &str) -> bool {
    THEIRS.iter().any(|t| name.starts_with(t))
}

impl FaultInjector {
    /// Prepares the command of the job.
    pub(crate) fn new(fault: InjectedFault, command: &mut Command) -> io::Result<FaultInjector> {
        let terminal = match fault.kind {
            FaultKind::HangUp | FaultKind::Interrupts(_) => Some(give_terminal(command)?),
            _ => None,
        };
        Ok(FaultInjector {
            fault,
            terminal,
            then: Some((fault.after, Step::Inject)),
            hit: String::new(),
            hit_theirs: false,
        })
    }

    /// Takes the step that is due; true if it injected the fault. `processes` are those of the
    /// job, including the launcher.
    pub(crate) fn look(
        &mut self,
        elapsed: Duration,
        processes: impl FnOnce() -> Vec<i32>,
    ) -> bool {
        let Some((_, step)) = self.then.filter(|(at, _)| elapsed >= *at) else { return false };
        self.then = None;
        match step {
            Step::Inject => self.inject(elapsed, processes()),
            Step::Continue(pid) => {
                send(pid, Signal::CONT);
                false
            }
            Step::TypeAgain => {
                self.interrupt();
                false
            }
        }
    }

    /// Another launcher is spared until the job has its supervisor: before that, the test would
    /// see only how the launcher ends. It ignores signals on its helpers, and its own crash is
    /// not under test. srun forks itself, and waits forever for its copy if the copy is killed.
    /// A single SIGINT only makes srun report its tasks.
    fn inject(&mut self, now: Duration, mut processes: Vec<i32>) -> bool {
        processes.sort_unstable();
        let mut processes: Vec<(i32, String)> =
            processes.into_iter().map(|pid| (pid, name(pid))).collect();
        processes.retain(|(pid, n)| n != SRUN || name(parent(*pid)) != SRUN);
        processes.retain(|(_, name)| name != GUARD);
        let foreign = processes.iter().any(|(_, name)| is_theirs(name));
        let supervised = !foreign || processes.iter().any(|(_, name)| name == SUPERVISOR);
        processes.retain(|(_, name)| match self.fault.kind {
            FaultKind::Signal(Signal::KILL, _) => true,
            FaultKind::Signal(Signal::SEGV, _) => !is_theirs(name),
            FaultKind::Signal(Signal::INT, _) if name == SRUN => false,
            // Under other launchers the supervisor leaves these signals to the ranks.
            FaultKind::Signal(..) => name != SUPERVISOR && name != HELPER,
            _ => true,
        });
        let nth = |n: usize| processes.get(n % processes.len().max(1));
        let victim = match self.fault.kind {
            FaultKind::Signal(_, n) | FaultKind::Pause(_, n) => nth(n),
            FaultKind::HangUp | FaultKind::Interrupts(_) | FaultKind::Thaw => None,
        };
        if !supervised && victim.is_none_or(|(_, name)| is_theirs(name)) {
            self.then = Some((now, Step::Inject));
            return false;
        }
        if let Some((pid, name)) = victim {
            self.hit = format!("process {pid} ({name})");
            self.hit_theirs = is_theirs(name);
        }
        match (self.fault.kind, victim) {
            (FaultKind::Signal(signal, _), Some(&(pid, _))) => send(pid, signal),
            (FaultKind::Pause(pause, _), Some(&(pid, _))) => {
                self.then = Some((now + pause, Step::Continue(pid)));
                send(pid, Signal::STOP)
            }
            (FaultKind::HangUp, _) => self.terminal.take().is_some(),
            (FaultKind::Interrupts(apart), _) => {
                self.then = Some((now + apart, Step::TypeAgain));
                self.interrupt()
            }
            (FaultKind::Thaw, _) => {
                processes.iter().filter(|(pid, _)| has_library(*pid) && thaw(*pid)).count() > 0
            }
            _ => false,
        }
    }

    fn interrupt(&mut self) -> bool {
        self.terminal.as_mut().is_some_and(|t| t.write_all(CTRL_C).is_ok())
    }
}

fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_string()
}

/// The parent process; 0 if it has exited.
fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may contain anything.
    let after = stat.rfind(')').map_or("", |end| &stat[end + 1..]);
    after.split_ascii_whitespace().nth(1).and_then(|p| p.parse().ok()).unwrap_or(0)
}

fn send(pid: i32, signal: Signal) -> bool {
    u32::try_from(pid).is_ok_and(|pid| sys::process::kill(pid, signal))
}

fn has_library(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/maps"))
        .is_ok_and(|maps| maps.contains("/libgasnet.so"))
}

/// What the message of a frozen process asks the user to do.
fn thaw(pid: i32) -> bool {
    let mut gdb = Command::new("timeout");
    gdb.args([
        "--signal=KILL",
        "60",
        "gdb",
        "-q",
        "-nx",
        "-batch",
        "-ex",
        "set variable gasnet_frozen = 0",
        "-p",
    ]);
    gdb.arg(pid.to_string()).stdin(Stdio::null()).output().is_ok_and(|out| out.status.success())
}

/// Gives the command a session and a terminal of its own; returns the terminal's user end.
fn give_terminal(command: &mut Command) -> io::Result<File> {
    let (here, there) = sys::terminal::open()?;
    sys::descriptor::close_on_exec(here.as_raw_fd(), true)?;
    let theirs = there.as_raw_fd();
    // SAFETY: the closure makes system calls only, all of them async-signal-safe.
    unsafe {
        command.pre_exec(move || sys::terminal::control(theirs));
    }
    command.stdin(there);
    Ok(here.into())
}
