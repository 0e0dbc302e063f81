//! Another launcher, which starts the ranks for `-spawner=mpi` and `-spawner=pmi`.
//!
//! Called by `main`. Invariant: without `--timeout` it replaces this process; with it, this
//! process passes signals on to it, and ends with its code or after it.

use crate::say;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, exit};
use std::thread;
use std::time::{Duration, Instant};
use sys::poll::PollEntry;
use sys::signal::{self, Signal, SignalQueue, SignalSet};
use sys::{poll, process};

/// The exit code of a job that runs too long, as that of `timeout`.
const TIMED_OUT: i32 = 124;
/// How long the supervisors have to report what their ranks do.
const REPORT_TIME: Duration = Duration::from_secs(1);
/// How long the launcher has to end its job.
const END_TIME: Duration = Duration::from_secs(10);
/// Between two looks at whether supervisors that were asked to end have ended.
const LOOK: Duration = Duration::from_millis(10);
/// The name of the process that supervises the ranks of a host.
const SUPERVISOR: &str = "gasnet-job";
/// A variable by which the processes of this launcher's job are known: its process.
const STARTED_BY: &str = "GASNETI_STARTED_BY";
/// Sends the output of a rank to its files; `$0` is the folder. The variables are those of
/// PMIx, PMI, Open MPI and Slurm.
const REDIRECT: &str = "\
r=${PMIX_RANK-${PMI_RANK-${OMPI_COMM_WORLD_RANK-${SLURM_PROCID-}}}}
if [ -z \"$r\" ]; then
    echo '*** gasnetrun: --output: the launcher does not say which rank a process is' >&2
    echo '***   Use the option of that launcher, in MPIRUN_CMD or PMIRUN_CMD.' >&2
    exit 1
fi
exec \"$@\" >\"$0/rank-$r.out\" 2>\"$0/rank-$r.err\"";

/// A program and its arguments such that each rank prints to files of this folder. Makes it, or
/// ends the process with a message.
pub(crate) fn redirected(
    folder: &Path,
    program: &OsString,
    arguments: &[OsString],
) -> (OsString, Vec<OsString>) {
    let made = fs::create_dir_all(folder).and_then(|()| fs::canonicalize(folder));
    let folder = made.unwrap_or_else(|e| {
        say(format_args!(
            "*** gasnetrun: the folder {} cannot be made: {e}\n***   Name a folder that you may \
             write to: gasnetrun --output DIR.",
            folder.display()
        ));
        exit(1)
    });
    let mut all: Vec<OsString> = vec!["-c".into(), REDIRECT.into(), folder.into()];
    all.push(program.clone());
    all.extend(arguments.iter().cloned());
    ("/bin/sh".into(), all)
}

fn command(arguments: &[OsString]) -> Command {
    let mut command = Command::new(&arguments[0]);
    command.args(&arguments[1..]);
    command
}

fn cannot_run(program: &OsString, e: &std::io::Error) -> ! {
    say(format_args!(
        "*** gasnetrun: {} cannot be run: {e}\n***   Install that launcher, name another in \
         MPIRUN_CMD or PMIRUN_CMD, or omit -spawner.",
        program.to_string_lossy()
    ));
    exit(if e.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
}

/// Replaces this process by another launcher.
pub(crate) fn replace(arguments: &[OsString]) -> ! {
    let e = command(arguments).exec();
    cannot_run(&arguments[0], &e)
}

/// Runs another launcher for this many seconds at most; returns its code, or that of a job that
/// runs too long.
pub(crate) fn run_within(arguments: &[OsString], seconds: f64) -> i32 {
    let set = SignalSet::of(&[
        Signal::CHLD,
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::USR1,
    ]);
    let before = signal::block(&set);
    // With SIGCHLD ignored the system would reap the launcher, and its end would never be seen.
    let action = signal::action(Signal::CHLD);
    signal::set_default(Signal::CHLD);
    let queue = SignalQueue::new(&set).unwrap_or_else(|e| cannot_run(&arguments[0], &e));
    let mut launcher = command(arguments);
    launcher.env(STARTED_BY, process::pid().to_string());
    // SAFETY: the closure makes two system calls, which are async-signal-safe.
    unsafe {
        launcher.pre_exec(move || {
            signal::restore(Signal::CHLD, &action);
            signal::set_mask(&before);
            Ok(())
        });
    }
    let mut child = launcher.spawn().unwrap_or_else(|e| cannot_run(&arguments[0], &e));
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    if let Some(ended) = ended_by(&mut child, &queue, deadline) {
        return code(ended);
    }
    say(format_args!(
        "*** the job has run for {seconds} s (--timeout) and ends with exit code {TIMED_OUT}"
    ));
    to_supervisors(Signal::USR1);
    if ended_by(&mut child, &queue, after(REPORT_TIME)).is_some() {
        return TIMED_OUT;
    }
    process::kill(child.id(), Signal::TERM);
    let ended = ended_by(&mut child, &queue, after(END_TIME));
    // Of a launcher that leaves its processes behind.
    to_supervisors(Signal::TERM);
    if ended.is_none() {
        say(format_args!(
            "*** gasnetrun: {} has not ended its job within {} s of SIGTERM and is killed",
            arguments[0].to_string_lossy(),
            END_TIME.as_secs()
        ));
        // Both fail only if it has ended.
        let _ = child.kill();
        let _ = child.wait();
    }
    await_supervisors(after(END_TIME));
    TIMED_OUT
}

/// Waits until the supervisors of the job on this host have ended its ranks and themselves; kills
/// those that are left at the deadline.
fn await_supervisors(deadline: Instant) {
    while !supervisors().is_empty() {
        if Instant::now() >= deadline {
            return to_supervisors(Signal::KILL);
        }
        thread::sleep(LOOK);
    }
}

fn after(time: Duration) -> Instant {
    Instant::now() + time
}

/// Waits for the end of the launcher and passes on the signals that processes send here. Those of
/// a terminal reach it anyway, except its hang-up, and if it is in another group of processes.
/// `None` if it still runs at the deadline.
fn ended_by(child: &mut Child, queue: &SignalQueue, deadline: Instant) -> Option<ExitStatus> {
    loop {
        while let Some(received) = queue.next() {
            match received.signal {
                Signal::CHLD => {}
                Signal::USR1 => to_supervisors(Signal::USR1),
                signal => {
                    let is_passed_on = received.sent || signal == Signal::HUP;
                    if is_passed_on || process::is_of_other_group(child.id()) {
                        process::kill(child.id(), signal);
                    }
                }
            }
        }
        if let Ok(Some(ended)) = child.try_wait() {
            return Some(ended);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let ms = left.as_millis().saturating_add(1).min(1000) as u32;
        match queue.fd() {
            Some(fd) => poll::wait(&mut [PollEntry::reading(Some(fd))], Some(ms)),
            None => thread::sleep(Duration::from_millis(ms.min(20).into())),
        }
    }
}

fn code(ended: ExitStatus) -> i32 {
    ended.code().unwrap_or_else(|| 128 + ended.signal().unwrap_or_default())
}

/// Sends a signal to the supervisors of the job on this host: SIGUSR1 has them print what their
/// ranks do.
fn to_supervisors(signal: Signal) {
    supervisors().into_iter().for_each(|pid| _ = process::kill(pid, signal));
}

/// The supervisors of the job on this host. They are no descendants of the launcher, but have its
/// environment.
fn supervisors() -> Vec<u32> {
    let me = process::pid().to_string();
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let of_job = |pid: &u32| {
        process::name_of(*pid) == SUPERVISOR
            && process::variable_of(*pid, STARTED_BY).as_deref() == Some(&me)
    };
    numbers.filter(of_job).collect()
}
