//! Starts the processes of a job over libportals3 on this host, and waits for them.
//!
//! `ptlrun -n N program [arguments]`. Each process gets the variables that `job` lists, and in
//! `PTL_BARRIER_FD` one end of a socket for barriers before the network exists: it writes a
//! byte, and reads one after all have written (`cnos_barrier` of libcnos does it). When a process
//! fails, the others are killed, as by a Cray XT's aprun; the exit code is that of the first that
//! failed, or 128 and the number of its signal.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode};

use sys::child::{self, Ended};
use sys::memory::MemFd;
use sys::{descriptor, process};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let count = match &arguments[..] {
        [option, count, _, ..] if option == "-n" => {
            count.to_str().and_then(|count| count.parse().ok())
        }
        _ => None,
    };
    let Some(count) = count.filter(|count| (1..=1024).contains(count)) else {
        eprintln!("usage: ptlrun -n <1 to 1024> program [arguments]");
        return ExitCode::from(2);
    };
    match run(count, &arguments[2..]) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("ptlrun: {}: {error}", arguments[2].to_string_lossy());
            ExitCode::from(127)
        }
    }
}

fn run(count: u32, program: &[std::ffi::OsString]) -> io::Result<u8> {
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
