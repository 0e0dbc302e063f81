//! The process that starts the supervisor of another host: `ssh`, or what GASNET_SSH_CMD names.
//!
//! Owned by `supervisor::other_hosts`. Invariants: it ends with this process, and gets no signal
//! of the terminal. The secret of the job goes by its standard input, never by its arguments. What
//! the other host prints is passed on line by line.

use super::error_stream::{ErrorStream, IsNews};
use super::root_address::RootAddress;
use crate::boot::error::BootError;
use crate::boot::passed_stream::PrefixedStream;
use crate::env;
use crate::tools::shell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;
use sys::clock;
use sys::poll::{self, PollEntry};
use sys::process;
use sys::signal::{self, Signal, SignalSet};
use sys::watch::{self, ProcessWatch};

/// What the supervisor of another host reads from its standard input before anything else. The
/// rest of the input is that of rank 0, if it is there.
#[derive(Debug, PartialEq)]
pub(super) struct RemoteGreeting {
    pub(super) host: u32,
    pub(super) root: RootAddress,
}

impl RemoteGreeting {
    /// As a line.
    pub(super) fn line(&self) -> String {
        format!("gasnet {} {}\n", self.host, self.root.text())
    }

    pub(super) fn parse(line: &str) -> Option<RemoteGreeting> {
        let words: Vec<&str> = line.trim_end().split(' ').collect();
        let ["gasnet", host, root] = words[..] else { return None };
        Some(RemoteGreeting { host: host.parse().ok()?, root: RootAddress::parse(root)? })
    }
}

/// The process that runs the supervisor of another host.
#[derive(Debug)]
pub(in crate::boot) struct RemoteShell {
    child: Child,
    /// Standard output and standard error of the other host.
    output: PrefixedStream,
    errors: ErrorStream,
    input: Option<ForwardedInput>,
    /// Reports the end of `child`; `None` if it had ended at once.
    watch: Option<ProcessWatch>,
    ended: Option<String>,
}

impl RemoteShell {
    /// Starts the supervisor of a host. `mask`: the signal mask that programs are to have.
    /// `reads`: whether it gets the standard input of this process.
    ///
    /// # Errors
    /// The command cannot be run.
    pub(in crate::boot) fn start(
        host: &str,
        number: u32,
        root: &RootAddress,
        mask: &SignalSet,
        reads: bool,
    ) -> Result<RemoteShell, BootError> {
        let words = command(host)?;
        let failed = |e: &io::Error| {
            BootError::new(
                format!("{} cannot be run: {e}", words[0].to_string_lossy()),
                match e.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                        "Install ssh, or name another command in GASNET_SSH_CMD."
                    }
                    _ => "Raise the limits of this process (ulimit -n, ulimit -u).",
                },
            )
        };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).process_group(0);
        command.stdin(Stdio::piped());
        let (output, output_end) = PrefixedStream::new("", 1).map_err(|e| failed(&e))?;
        let (errors, errors_end) = ErrorStream::new().map_err(|e| failed(&e))?;
        command.stdout(Stdio::from(output_end)).stderr(Stdio::from(errors_end));
        let (mask, own) = (*mask, process::pid());
        // SAFETY: the closure makes system calls only, which are async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                signal::set_mask(&mask);
                match sys::child::die_with_parent(own) {
                    true => Ok(()),
                    false => Err(io::ErrorKind::BrokenPipe.into()),
                }
            });
        }
        let mut child = command.spawn().map_err(|e| failed(&e))?;
        let greeting = RemoteGreeting { host: number, root: root.clone() };
        let mut input = child.stdin.take();
        if let Some(input) = &mut input {
            // A pipe has room for it. If the process has ended, its end is noticed.
            let _ = input.write_all(greeting.line().as_bytes());
        }
        let input = input.filter(|_| reads).map(ForwardedInput::new);
        let watch = ProcessWatch::new(child.id()).ok();
        Ok(RemoteShell { child, output, errors, input, watch, ended: None })
    }

    /// What to poll.
    pub(in crate::boot) fn poll_entries(&self) -> impl Iterator<Item = PollEntry> {
        let streams = [self.output.poll_entry(), self.errors.poll_entry()].into_iter();
        let watch = self.watch.as_ref().filter(|_| self.ended.is_none());
        let end = watch.and_then(ProcessWatch::fd).map(|fd| PollEntry::reading(Some(fd.as_fd())));
        streams.chain(self.input.iter().map(ForwardedInput::poll_entry)).chain(end)
    }

    /// When [`RemoteShell::serve`] must be called at the latest.
    pub(in crate::boot) fn deadline(&self, now: u64) -> Option<u64> {
        let is_watched = self.watch.as_ref().is_some_and(|watch| watch.fd().is_some());
        let look = (!is_watched && self.ended.is_none()).then_some(now + watch::LOOK_NS);
        let input = self.input.as_ref().and_then(|input| input.again_at);
        [self.errors.deadline(), look, input].into_iter().flatten().min()
    }

    /// Its standard output.
    pub(in crate::boot) fn output_mut(&mut self) -> &mut PrefixedStream {
        &mut self.output
    }

    /// Whether the reader of its standard output has ended, which may end it too.
    pub(in crate::boot) fn has_no_reader(&self) -> bool {
        self.output.has_no_reader()
    }

    /// Whether lines of standard output wait for their reader. Those of standard error do not
    /// wait for long.
    pub(in crate::boot) fn output_waits(&self) -> bool {
        self.output.waits()
    }

    /// Passes on what has arrived, and looks whether the process has ended.
    pub(in crate::boot) fn serve(&mut self, now: u64, is_news: &mut IsNews<'_>) {
        self.output.pass_on();
        self.errors.pass_on(now, is_news);
        if self.input.as_mut().is_some_and(|input| !input.pass_on(now)) {
            self.input = None;
        }
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.finish(status.to_string(), is_news);
        }
    }

    fn finish(&mut self, ended: String, is_news: &mut IsNews<'_>) {
        self.output.finish();
        self.errors.finish(is_news);
        self.ended = Some(ended);
    }

    /// How the process has ended, if it has. What it printed has been passed on then, but for
    /// lines of standard output that wait for their reader.
    pub(in crate::boot) fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// Ends the process and those that descend from it.
    pub(in crate::boot) fn kill(&mut self, is_news: &mut IsNews<'_>) {
        if self.ended.is_none() {
            self.output.note_cut();
            process::kill_tree(self.child.id(), Signal::KILL);
            // It fails only if the process has ended.
            let _ = self.child.wait();
            self.finish("killed".to_string(), is_news);
        }
    }
}

/// The words of the command that starts the supervisor of a host.
fn command(host: &str) -> Result<Vec<OsString>, BootError> {
    let program = std::env::current_exe()
        .map_err(|e| BootError::system("cannot find the file of this program", &e))?;
    let text = env::SSH_CMD.get().unwrap_or_else(|| "ssh".to_string());
    let options = env::SSH_OPTIONS.get().unwrap_or_default();
    let words = with_options(&text, &options);
    if words.is_empty() {
        return Err(BootError::new("GASNET_SSH_CMD is empty", "Name a command, or unset it."));
    }
    let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    words.push(host.into());
    // The shell of the other host reads it.
    words.push(format!("exec {} --remote", shell::quoted(program.as_os_str())).into());
    Ok(words)
}

/// The words of a command and its options. Of several values of one option ssh takes the first.
fn with_options<'a>(command: &'a str, options: &'a str) -> Vec<&'a str> {
    let mut words: Vec<&str> = command.split_ascii_whitespace().collect();
    let is_ssh = words.first().is_some_and(|c| Path::new(c).file_name() == Some("ssh".as_ref()));
    if is_ssh {
        // No question could be answered.
        words.extend(["-x", "-T", "-o", "BatchMode=yes"]);
    }
    if !words.is_empty() {
        words.extend(options.split_ascii_whitespace());
    }
    if is_ssh {
        // A host that is lost before its supervisor connects: 30 s.
        words.extend(["-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"]);
    }
    words
}

/// Nanoseconds until standard input that cannot be read now is read again.
const INPUT_AGAIN: u64 = 300_000_000;

/// The standard input of this process, passed on to rank 0 of another host.
#[derive(Debug)]
struct ForwardedInput {
    to: ChildStdin,
    waiting: Vec<u8>,
    is_over: bool,
    /// It is not read before: this process is in the background of its terminal, or another one
    /// reads it too.
    again_at: Option<u64>,
}

impl ForwardedInput {
    fn new(to: ChildStdin) -> ForwardedInput {
        // A full pipe must not keep the supervisor.
        let is_over = sys::socket::set_nonblocking(to.as_fd()).is_err();
        ForwardedInput { to, waiting: Vec::new(), is_over, again_at: None }
    }

    fn poll_entry(&self) -> PollEntry {
        match (self.waiting.is_empty(), self.again_at) {
            (true, None) => PollEntry::reading(Some(io::stdin().as_fd())),
            (true, Some(_)) => PollEntry::reading(None),
            (false, _) => PollEntry::writing(self.to.as_fd()),
        }
    }

    /// False after the end of the input, when all was passed on.
    fn pass_on(&mut self, now: u64) -> bool {
        self.again_at = self.again_at.filter(|&at| now < at);
        loop {
            while !self.waiting.is_empty() {
                match sys::descriptor::write(self.to.as_raw_fd(), &self.waiting) {
                    Ok(n) => drop(self.waiting.drain(..n)),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => return true,
                    Err(_) => return false,
                }
            }
            if self.is_over {
                return false;
            }
            if self.again_at.is_some() || !poll::readable(io::stdin().as_fd()) {
                return true;
            }
            let mut buffer = vec![0; 16 << 10];
            match sys::descriptor::read(io::stdin().as_raw_fd(), &mut buffer) {
                Ok(n @ 1..) => self.waiting.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if sys::descriptor::may_be_read_later(&e) => {
                    self.again_at = Some(now + INPUT_AGAIN)
                }
                _ => self.is_over = true,
            }
        }
    }
}

/// Reads a line and nothing behind it. `None`: it ends before, or does not come within this time.
pub(super) fn read_line(from: BorrowedFd<'_>, within: Duration) -> Option<String> {
    const LONGEST: usize = 64 << 10;
    let until = clock::now_ns().saturating_add(within.as_nanos() as u64);
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LONGEST {
        let mut entry = [PollEntry::reading(Some(from))];
        let left = until.saturating_sub(clock::now_ns());
        poll::wait_ns(&mut entry, left);
        if !entry[0].happened() {
            match left {
                0 => return None,
                _ => continue,
            }
        }
        match sys::descriptor::read(from.as_raw_fd(), &mut byte) {
            Ok(1) if byte[0] == b'\n' => return String::from_utf8(line).ok(),
            Ok(1) => line.push(byte[0]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use handshake::JobSecret;

    /// The writer still has its end: the machine of gasnetrun was lost, for example.
    #[test]
    fn a_line_that_does_not_come_is_not_awaited_for_ever() {
        let (reader, writer) = sys::descriptor::pipe().expect("a pipe");
        let read = |within| read_line(reader.as_fd(), Duration::from_millis(within));
        assert_eq!(read(20), None);
        sys::file::write_all(writer.as_raw_fd(), b"one\ntwo");
        assert_eq!(read(10_000).as_deref(), Some("one"));
        assert_eq!(read(20), None, "the line has no end");
        drop(writer);
        assert_eq!(read(10_000), None);
    }

    #[test]
    fn options_of_the_user_come_before_those_that_have_another_default() {
        let words = with_options("/usr/bin/ssh -4", "-o ServerAliveInterval=60");
        let at = |word: &str| words.iter().position(|w| *w == word).unwrap();
        assert!(at("-4") < at("BatchMode=yes"));
        assert!(at("ServerAliveInterval=60") < at("ServerAliveInterval=10"));
        assert_eq!(with_options("enter x", "-a"), ["enter", "x", "-a"]);
        assert!(with_options(" ", "-a").is_empty());
    }

    #[test]
    fn a_greeting_is_a_line() {
        let greeting = RemoteGreeting {
            host: 3,
            root: RootAddress {
                secret: JobSecret::from_bytes([7; 16]),
                addresses: vec!["10.0.0.1:50".parse().unwrap()],
            },
        };
        let line = greeting.line();
        assert!(line.ends_with('\n') && !line.trim_end().contains('\n'));
        assert_eq!(RemoteGreeting::parse(&line), Some(greeting));
        for wrong in ["", "gasnet 3", "gasnet 3 00 10.0.0.1:50", "gasnet x 0 1"] {
            assert_eq!(RemoteGreeting::parse(wrong), None);
        }
    }
}
