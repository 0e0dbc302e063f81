//! The launcher `gasnetrun` for one machine: starts a program as the ranks of a job, and on the other side finds the
//! seat that the launcher left for this process. Called by the program `gasnetrun` and by [`super::start`].

use super::Error;
use super::rank::Seat;
use super::supervisor::{Role, Supervisor};
use super::wire::{Head, Kind};
use crate::env;
use crate::os::{self, process, signal, socket};
use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;

/// Where a rank finds its seat: rank, size, cookie, then the descriptors of the job-control memory, arena, segments,
/// scratch and control socket.
const SPAWN_FDS: &str = "GASNET_SPAWN_FDS";

/// The seat that gasnetrun left for this process; `None` if it did not start this process.
pub(super) fn seat() -> Result<Option<Seat>, Error> {
    let Some(text) = env::lookup(SPAWN_FDS) else { return Ok(None) };
    let bad = || {
        Error::new(
            format!("{SPAWN_FDS}={text} is not what gasnetrun sets, or its descriptors are closed"),
            format!(
                "Unset {SPAWN_FDS}; start ranks only by gasnetrun, and close no inherited descriptor before gasnet_init."
            ),
        )
    };
    let numbers: Option<Vec<u64>> = text.split(',').map(|n| n.parse().ok()).collect();
    let Some([rank, size, cookie, fds @ ..]) = numbers.as_deref() else { return Err(bad()) };
    let (Ok(rank), Ok(size)) = (u32::try_from(*rank), u32::try_from(*size)) else { return Err(bad()) };
    let mut fds = fds.iter().map(|&n| {
        // SAFETY: the launcher opened these descriptors for this purpose; before gasnet_init nobody else uses them.
        i32::try_from(n).ok().and_then(|n| unsafe { socket::inherited(n) }).ok_or_else(bad)
    });
    let mut next = || fds.next().unwrap_or_else(|| Err(bad()));
    let seat = Seat {
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
    unsafe { process::unset_env(c"GASNET_SPAWN_FDS") };
    Ok(Some(seat))
}

/// Runs `program` with `args` as a job of `size` ranks on this machine; returns the exit code of the job.
///
/// # Errors
/// If the program cannot be run, or the processes cannot be started.
pub fn run(size: u32, program: &OsString, args: &[OsString]) -> Result<i32, Error> {
    check(program)?;
    env::check_all();
    let text = |s: &OsString| {
        CString::new(s.as_bytes()).map_err(|_| Error::new("an argument contains a zero byte", "Remove it."))
    };
    let name = text(program)?;
    let mut argv = vec![name.clone()];
    for a in args {
        argv.push(text(a)?);
    }
    match Supervisor::new(size)?.start()? {
        Role::Supervisor(supervisor) => Ok(supervisor.watch()),
        Role::Rank(seat) => become_program(seat, &name, &argv),
    }
}

/// In a new process of the launcher: leaves the seat for the program, and becomes it.
fn become_program(seat: Seat, name: &CString, argv: &[CString]) -> ! {
    let fds = [&seat.control, &seat.arena, &seat.segments, &seat.scratch, &seat.socket];
    let mut value = format!("{},{},{}", seat.rank, seat.size, seat.cookie);
    for fd in fds {
        value += &format!(",{}", fd.as_raw_fd());
        let _ = socket::close_on_exec(fd.as_fd(), false);
    }
    // A Rust program starts with SIGPIPE ignored, which is not meant for the ranks.
    signal::set_default(libc::SIGPIPE);
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: this process was just forked from one that has a single thread.
    unsafe { process::set_env(c"GASNET_SPAWN_FDS", &value) };
    let e = process::exec(name, argv);
    let failed = Head { kind: Kind::ExecFailed, a: e.raw_os_error().unwrap_or(0) as u32, b: 0 };
    let _ = socket::send(seat.socket.as_raw_fd(), &failed.bytes(), true);
    os::exit_now(127)
}

/// Whether the program can be run, as far as can be told before trying.
fn check(program: &OsString) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let shown = program.to_string_lossy();
    let runnable = |m: &std::fs::Metadata| m.is_file() && m.permissions().mode() & 0o111 != 0;
    if program.as_bytes().contains(&b'/') {
        return match std::fs::metadata(program) {
            Err(e) => {
                Err(Error::new(format!("{shown} cannot be run: {e}"), "Check the path of the program."))
            }
            Ok(m) if m.is_dir() => {
                Err(Error::new(format!("{shown} cannot be run: it is a directory"), "Name a program."))
            }
            Ok(m) if !runnable(&m) => Err(Error::new(
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
    Err(Error::new(
        format!("{shown} cannot be run: no directory of PATH has it"),
        if here {
            format!("Write ./{shown} for the one in this directory.")
        } else {
            "Check its name, or give a path.".into()
        },
    ))
}
