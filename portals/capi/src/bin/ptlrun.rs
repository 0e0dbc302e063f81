//! Starts the processes of a job over libportals3 on this host, and waits for them.
//!
//! `ptlrun -n N program [arguments]`. Each process gets the variables that `job` lists, and in
//! `PTL_BARRIER_FD` one end of a socket for barriers before the network exists: it writes a
//! byte, and reads one after all have written (`cnos_barrier` of libcnos does it). When a process
//! fails, the others are killed, as by a Cray XT's aprun; the exit code is that of the first that
//! failed, or 128 and the number of its signal.

use command_line::PTLRUN;
use lexopt::{Arg, Parser};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode};

use sys::child::{self, Ended};
use sys::memory::MemFd;
use sys::{descriptor, process};

/// What the user wants.
enum PtlrunWish {
    Run { count: u32, program: Vec<OsString> },
    Print(String),
}

/// Reads the command line.
fn wish() -> Result<PtlrunWish, String> {
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
            Arg::Short('h') | Arg::Long("help") => return Ok(PtlrunWish::Print(PTLRUN.usage())),
            Arg::Long("version") => return Ok(PtlrunWish::Print(PTLRUN.version())),
            Arg::Value(program) => {
                let rest = parser.raw_args().map_err(|e| e.to_string())?;
                let count = count.ok_or("the number of processes is missing: -n N")?;
                let program = std::iter::once(program).chain(rest).collect();
                return Ok(PtlrunWish::Run { count, program });
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    Err("the program is missing".to_string())
}

/// Processes of a job.
const MOST: u32 = 1024;

fn main() -> ExitCode {
    let (count, program) = match wish() {
        Ok(PtlrunWish::Run { count, program }) => (count, program),
        Ok(PtlrunWish::Print(text)) => {
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
        Err(error) => {
            eprintln!("ptlrun: {}: {error}", program[0].to_string_lossy());
            ExitCode::from(127)
        }
    }
}

fn run(count: u32, program: &[OsString]) -> io::Result<u8> {
    let file = OwnedFd::from(MemFd::create(c"portals3")?);
    let launcher = process::pid();
    let nids = vec!["0".to_string(); count as usize].join(":");
    let pids = (0..count).map(|pid| pid.to_string()).collect::<Vec<_>>().join(":");
    let (mut children, mut sockets) = (PtlrunJob(Vec::new()), Vec::new());
    for rank in 0..count {
        let (ours, theirs) = UnixStream::pair()?;
        let passed = [file.as_raw_fd(), theirs.as_raw_fd()];
        let mut command = Command::new(&program[0]);
        command
            .args(&program[1..])
            .env("PTL_MY_RID", rank.to_string())
            .env("PTL_NIDMAP", &nids)
            .env("PTL_PIDMAP", &pids)
            .env("PTL_FABRIC_FD", passed[0].to_string())
            .env("PTL_BARRIER_FD", passed[1].to_string());
        // SAFETY: the closure makes system calls only, which is what is allowed between fork and
        // exec.
        unsafe {
            command.pre_exec(move || {
                // The processes of the job end with the launcher, however it ends.
                if !child::die_with_parent(launcher) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                for passed in passed {
                    descriptor::close_on_exec(passed, false)?;
                }
                Ok(())
            });
        }
        children.0.push((rank, command.spawn()?));
        sockets.push(ours);
    }
    std::thread::spawn(move || while barrier(&mut sockets).is_ok() {});
    children.wait()
}

/// One barrier. A process that exits or never arrives ends the job's barriers.
fn barrier(sockets: &mut [UnixStream]) -> io::Result<()> {
    let mut byte = [0];
    for socket in sockets.iter_mut() {
        socket.read_exact(&mut byte)?;
    }
    for socket in sockets.iter_mut() {
        socket.write_all(&byte)?;
    }
    Ok(())
}

/// Processes that are killed unless they are waited for.
struct PtlrunJob(Vec<(u32, Child)>);

impl PtlrunJob {
    /// Waits until all have exited, or one has failed: the exit code.
    fn wait(&mut self) -> io::Result<u8> {
        while !self.0.is_empty() {
            let (pid, ended) = child::await_any()?;
            let ended_rank = self.0.iter().position(|(_, child)| child.id() == pid);
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
        for (_, child) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
