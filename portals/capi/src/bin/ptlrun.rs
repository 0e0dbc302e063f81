//! Starts the processes of a job over libportals3 on this host, and waits for them.
//!
//! `ptlrun -n N program [arguments]`. Each process gets the variables that `job` lists, and in
//! `PTL_BARRIER_FD` one end of a socket for barriers before the network exists. In a barrier it
//! writes a byte, and reads one after all have written (`cnos_barrier` of libcnos does it). When
//! a process fails, the others are killed, as by a Cray XT's aprun. The exit code is that of the
//! first that failed, or 128 plus the number of its signal.

use command_line::PTLRUN;
use lexopt::{Arg, Parser};
use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use sys::child::{self, Ended, Forked};
use sys::memory::MemFd;
use sys::signal::{self, Signal};
use sys::{descriptor, process, socket};

/// What the user wants.
enum PtlrunRequest {
    Run { count: u32, program: Vec<OsString> },
    Print(String),
}

/// Reads the command line.
fn request() -> Result<PtlrunRequest, String> {
    let mut parser = Parser::from_env();
    let mut count = None;
    while let Some(arg) = parser.next().map_err(|e| e.to_string())? {
        match arg {
            Arg::Short('n') => {
                let value = parser.value().map_err(|e| e.to_string())?;
                let number = value.to_str().and_then(|n| n.parse().ok());
                count = Some(number.filter(|n| (1..=MOST).contains(n)).ok_or_else(|| {
                    format!("-n {} is not a number from 1 to {MOST}", value.to_string_lossy())
                })?);
            }
            Arg::Short('h') | Arg::Long("help") => {
                return Ok(PtlrunRequest::Print(PTLRUN.usage()));
            }
            Arg::Long("version") => return Ok(PtlrunRequest::Print(PTLRUN.version())),
            Arg::Value(program) => {
                let rest = parser.raw_args().map_err(|e| e.to_string())?;
                let count = count.ok_or("the number of processes is missing: -n N")?;
                let program = std::iter::once(program).chain(rest).collect();
                return Ok(PtlrunRequest::Run { count, program });
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    Err("the program is missing".to_string())
}

/// Processes of a job.
const MOST: u32 = 1024;

fn main() -> ExitCode {
    let (count, program) = match request() {
        Ok(PtlrunRequest::Run { count, program }) => (count, program),
        Ok(PtlrunRequest::Print(text)) => {
            sys::stdio::end_on_closed_pipe();
            sys::stdio::write(PTLRUN.name, &text);
            return ExitCode::SUCCESS;
        }
        Err(cause) => {
            eprintln!("*** ptlrun: {cause}\n***   {}", PTLRUN.remedy());
            return ExitCode::from(2);
        }
    };
    match run(count, &program) {
        Ok(code) => ExitCode::from(code),
        Err(PtlrunError { cause, remedy, code }) => {
            eprintln!("*** ptlrun: {cause}\n***   {remedy}");
            ExitCode::from(code)
        }
    }
}

/// Why a job does not run.
struct PtlrunError {
    cause: String,
    remedy: &'static str,
    /// As of a shell: 127 for a program that is not found, 126 for one that cannot be run.
    code: u8,
}

impl From<io::Error> for PtlrunError {
    fn from(error: io::Error) -> PtlrunError {
        let cause = format!("the job cannot be started: {error}");
        let remedy = "Start fewer processes, or raise the limits (ulimit -a).";
        PtlrunError { cause, remedy, code: 1 }
    }
}

fn run(count: u32, program: &[OsString]) -> Result<u8, PtlrunError> {
    let text = |word: &OsString| CString::new(word.as_bytes()).map_err(io::Error::from);
    let program = program.iter().map(text).collect::<io::Result<Vec<_>>>()?;
    let file = OwnedFd::from(MemFd::create(c"portals3")?);
    let launcher = process::pid();
    let nids = vec!["0".to_string(); count as usize].join(":");
    let pids = (0..count).map(|pid| pid.to_string()).collect::<Vec<_>>().join(":");
    let (mut children, mut sockets) = (PtlrunJob(Vec::new()), Vec::new());
    for rank in 0..count {
        let (ours, theirs) = socket::pair()?;
        let passed = [file.as_raw_fd(), theirs.as_raw_fd()];
        let variables = [
            format!("PTL_MY_RID={rank}"),
            format!("PTL_NIDMAP={nids}"),
            format!("PTL_PIDMAP={pids}"),
            format!("PTL_FABRIC_FD={}", passed[0]),
            format!("PTL_BARRIER_FD={}", passed[1]),
            format!("PTL_LAUNCHER={launcher}"),
        ];
        let variables = variables.map(|v| CString::new(v).unwrap_or_default());
        // The program closes its end, unless the child writes there why it could not be run.
        let (failure, report) = descriptor::pipe()?;
        // SAFETY: this process has one thread.
        match unsafe { child::fork() }? {
            Forked::Child => {
                let error = become_rank(launcher, passed, &program, &variables);
                let number = error.raw_os_error().unwrap_or_default().to_ne_bytes();
                let _ = descriptor::write(report.as_raw_fd(), &number);
                sys::exit_now(127)
            }
            Forked::Parent(pid) => children.0.push((rank, pid)),
        }
        drop(report);
        let mut number = [0; 4];
        if descriptor::read(failure.as_raw_fd(), &mut number)? == number.len() {
            let error = io::Error::from_raw_os_error(i32::from_ne_bytes(number));
            let cause = format!("{} cannot be run: {error}", program[0].to_string_lossy());
            let remedy = "Check the name or the path of the program.";
            let is_missing =
                matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
            return Err(PtlrunError { cause, remedy, code: if is_missing { 127 } else { 126 } });
        }
        sockets.push(ours);
    }
    std::thread::spawn(move || while barrier(&sockets).is_ok() {});
    Ok(children.wait()?)
}

/// Makes a new process a rank of the job. Returns only if that fails.
fn become_rank(
    launcher: u32,
    passed: [i32; 2],
    program: &[CString],
    variables: &[CString],
) -> io::Error {
    // The processes of the job end with the launcher, however it ends.
    if !child::die_with_parent(launcher) {
        return io::ErrorKind::NotFound.into();
    }
    for passed in passed {
        if let Err(error) = descriptor::close_on_exec(passed, false) {
            return error;
        }
    }
    // A Rust program starts with SIGPIPE ignored; the ranks must not inherit that.
    signal::set_default(Signal::PIPE);
    child::exec(&program[0], program, variables)
}

/// One barrier. A process that exits or never arrives ends the job's barriers.
fn barrier(sockets: &[OwnedFd]) -> io::Result<()> {
    let mut byte = [0];
    for socket in sockets {
        if socket::receive(socket.as_fd(), &mut byte, true)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    sockets.iter().try_for_each(|socket| socket::send(socket.as_fd(), &byte, true))
}

/// The processes of the ranks, which are killed unless they are waited for.
struct PtlrunJob(Vec<(u32, u32)>);

impl PtlrunJob {
    /// Waits until all have exited, or one has failed: the exit code.
    fn wait(&mut self) -> io::Result<u8> {
        while !self.0.is_empty() {
            let (pid, ended) = child::await_any()?;
            let ended_rank = self.0.iter().position(|&(_, child)| child == pid);
            let ended_rank = ended_rank.map(|at| self.0.remove(at).0);
            let code = match ended {
                Ended::Exited(code) => code,
                Ended::Killed(signal) => {
                    if let Some(rank) = ended_rank {
                        eprintln!(
                            "ptlrun: rank {rank} (process {pid}) was killed by signal {}, so the \
                             job ends",
                            signal.number()
                        );
                    }
                    128 + signal.number()
                }
            };
            if code != 0 {
                return Ok(code as u8);
            }
        }
        Ok(0)
    }
}

impl Drop for PtlrunJob {
    fn drop(&mut self) {
        for &(_, child) in &self.0 {
            process::kill(child, Signal::KILL);
        }
        for &(_, child) in &self.0 {
            child::await_child(child);
        }
    }
}
