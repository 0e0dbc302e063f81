//! The process that starts the ranks of a host, carries their barriers and exchanges, watches them, and ends the job.
//! Used by `boot::fork` and `boot::gasnetrun`.
//!
//! Invariants: [`Supervisor::watch`] returns only when every rank is gone (or cannot be killed); it waits for
//! processes, never for descriptors, which children of ranks may keep open. No rank is waited for without a deadline
//! once the exit word is set, however that came about.
//!
//! How a job ends: a rank that leaves sets the exit word. The others get some grace to come to their own end. Then the
//! leave word is set, which a rank that polls sees by itself; a knock on the control socket interrupts one that does
//! not. Who is still there some time later is killed.

use super::Error;
use super::control::{Cause, Decision, JobControl};
use super::rank::Seat;
use super::wire::{self, Assembly, Head, Kind};
use crate::os::memory::MemFd;
use crate::os::process::{Ended, Forked, Liveness};
use crate::os::signal::{Action, Arrived, Queue, Set};
use crate::os::{self, clock, process, signal, socket};
use crate::{env, report};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;

const MS: u64 = 1_000_000;
/// Grace after an exit with code 0, which usually means that the others are about to finish as well.
const GRACE_GOOD: u64 = 1000 * MS;
/// Grace after an exit with another code.
const GRACE_BAD: u64 = 250 * MS;
/// How long ranks may take to leave when told to, unless GASNET_EXITTIMEOUT says otherwise.
const LEAVING: u64 = 700 * MS;
/// How long the status of a process is waited for whose child, the rank, is gone.
const SETTLE: u64 = 200 * MS;
/// How long a killed process may take to vanish.
const KILLED: u64 = 5000 * MS;

/// Signals that ask the job to end.
const REQUESTS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Signals that are passed on to the ranks as they are.
const PASSED_ON: [i32; 2] = [libc::SIGUSR1, libc::SIGUSR2];

/// Who returns from [`Supervisor::start`].
#[derive(Debug)]
pub enum Role {
    /// A new process, to become this rank.
    Rank(Seat),
    /// The process that called; it goes on with [`Supervisor::watch`].
    Supervisor(Box<Supervisor>),
}

/// One rank as its supervisor sees it.
#[derive(Debug)]
struct Ward {
    rank: u32,
    control: &'static JobControl,
    /// The process that we started.
    child: u32,
    /// How it ended, if it has.
    ended: Option<Ended>,
    /// The process that became the rank: usually the child, sometimes a process that the child started.
    rank_pid: Option<u32>,
    /// Watches `rank_pid` if that is not the child.
    watch: Option<OwnedFd>,
    /// When `rank_pid` ended, if we watch it.
    rank_gone: Option<u64>,
    socket: Option<OwnedFd>,
    /// Messages for which the socket had no room.
    outgoing: VecDeque<Rc<Vec<u8>>>,
    in_barrier: bool,
    giving: Assembly,
    given: Option<Vec<u8>>,
    killed_by_us: bool,
}

impl Ward {
    fn gone(&self) -> bool {
        self.ended.is_some() && (self.watch.is_none() || self.rank_gone.is_some())
    }

    fn send(&mut self, message: Rc<Vec<u8>>) {
        self.outgoing.push_back(message);
        self.flush();
    }

    fn flush(&mut self) {
        let Some(fd) = &self.socket else { return self.outgoing.clear() };
        while let Some(message) = self.outgoing.front() {
            match socket::send(fd.as_raw_fd(), message, false) {
                Ok(()) => {
                    self.control.count_sent(self.rank);
                    self.outgoing.pop_front();
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.outgoing.clear(),
            }
        }
    }

    /// The process that is to be named to the user.
    fn pid(&self) -> u32 {
        self.rank_pid.unwrap_or(self.child)
    }
}

/// How far the end of the job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nobody has left.
    Running,
    /// The exit word is set; the leave word will be at this time.
    Grace(u64),
    /// The leave word is set; who is still there at this time is killed.
    Leaving(u64),
    /// Everybody was killed; at this time we go without them.
    Killed(u64),
}

/// See the module.
#[derive(Debug)]
pub struct Supervisor {
    control: &'static JobControl,
    cookie: u64,
    /// Job control, arena, segments, scratch.
    files: [MemFd; 4],
    wards: Vec<Ward>,
    size: u32,
    signals: Queue,
    old_mask: Set,
    old_actions: [(i32, Action); 2],
    leaving: u64,
    stage: Stage,
    /// A request to end has been passed on.
    requested: bool,
    /// A crash that came after an exit with code 0.
    late_crash: Option<i32>,
}

impl Supervisor {
    /// Prepares a job of `size` ranks, and takes over the signals of this process.
    pub fn new(size: u32) -> Result<Supervisor, Error> {
        let leaving = env::seconds("GASNET_EXITTIMEOUT").map_or(LEAVING, |s| (s * 1e9) as u64);
        let cookie = clock::now_ns() ^ u64::from(process::pid()) << 40 ^ clock::tick() << 8;
        process::maximize_descriptors();
        let (file, control) = JobControl::create(size, cookie)?;
        let memory = |name| MemFd::create(name).map_err(|e| Error::system("cannot create a memory file", &e));
        let files = [file, memory(c"gasnet-arena")?, memory(c"gasnet-segments")?, memory(c"gasnet-scratch")?];
        // Ignored signals stay ignored, as nohup and its like want it.
        let mut ours = vec![libc::SIGCHLD];
        ours.extend(
            REQUESTS
                .into_iter()
                .chain(PASSED_ON)
                .filter(|&s| signal::disposition(s) != signal::Disposition::Ignore),
        );
        let ours = Set::of(&ours);
        let old_actions = [libc::SIGCHLD, libc::SIGPIPE].map(|s| (s, signal::action(s)));
        // An ignored SIGCHLD would have the system reap our children.
        signal::set_default(libc::SIGCHLD);
        signal::ignore(libc::SIGPIPE);
        let old_mask = signal::block(&ours);
        let signals =
            Queue::new(&ours).map_err(|e| Error::system("cannot create a descriptor for signals", &e))?;
        Ok(Supervisor {
            control,
            cookie,
            files,
            wards: Vec::new(),
            size,
            signals,
            old_mask,
            old_actions,
            leaving,
            stage: Stage::Running,
            requested: false,
            late_crash: None,
        })
    }

    /// Starts all ranks.
    ///
    /// # Errors
    /// If not all can be started; those that were are killed.
    pub fn start(mut self) -> Result<Role, Error> {
        let own = process::pid();
        for rank in 0..self.size {
            let (here, there) = match socket::pair() {
                Ok(pair) => pair,
                Err(e) => return Err(self.give_up(rank, &e)),
            };
            // SAFETY: the child goes on with what needs no lock of another thread, or, where the program has other
            // threads, was warned of them (`report_many_threads`).
            match unsafe { process::fork() } {
                Err(e) => return Err(self.give_up(rank, &e)),
                Ok(Forked::Parent(child)) => self.wards.push(Ward {
                    rank,
                    control: self.control,
                    child,
                    ended: None,
                    rank_pid: None,
                    watch: None,
                    rank_gone: None,
                    socket: Some(here),
                    outgoing: VecDeque::new(),
                    in_barrier: false,
                    giving: Assembly::default(),
                    given: None,
                    killed_by_us: false,
                }),
                Ok(Forked::Child) => {
                    if !process::die_with_parent(own) {
                        os::exit_now(1);
                    }
                    drop(here);
                    return Ok(Role::Rank(self.into_seat(rank, there)));
                }
            }
        }
        Ok(Role::Supervisor(Box::new(self)))
    }

    /// In a new process: puts back what the supervisor changed, and keeps only what a rank needs.
    fn into_seat(self, rank: u32, socket: OwnedFd) -> Seat {
        for (signal, action) in &self.old_actions {
            signal::restore(*signal, action);
        }
        signal::set_mask(&self.old_mask);
        if rank != 0 {
            process::null_stdin();
        }
        let [control, arena, segments, scratch] = self.files.map(OwnedFd::from);
        Seat { rank, size: self.size, cookie: self.cookie, control, arena, segments, scratch, socket }
    }

    fn give_up(&mut self, rank: u32, e: &std::io::Error) -> Error {
        for w in &self.wards {
            process::kill(w.child, libc::SIGKILL);
        }
        signal::set_mask(&self.old_mask);
        Error::system(&format!("cannot start process {rank} of {}", self.size), e)
    }

    /// Watches the job until everybody is gone; returns its exit code.
    pub fn watch(mut self) -> i32 {
        let mut polled = Vec::new();
        loop {
            let now = clock::now_ns();
            self.advance(now);
            if self.wards.iter().all(Ward::gone) {
                break;
            }
            if matches!(self.stage, Stage::Killed(until) if now >= until) {
                self.abandon();
                break;
            }
            self.wait(&mut polled, now);
            while let Some(arrived) = self.signals.next() {
                self.on_signal(arrived);
            }
            for i in 0..self.wards.len() {
                self.serve(i);
            }
        }
        let code = self.control.decision().map_or(0, |d| d.code);
        match self.late_crash {
            Some(crash) if code == 0 => crash,
            _ => code,
        }
    }

    /// Sleeps until a signal, a message, the end of a watched process, or the next deadline.
    fn wait(&self, polled: &mut Vec<libc::pollfd>, now: u64) {
        let entry = |fd: Option<&OwnedFd>, more: i16| libc::pollfd {
            fd: fd.map_or(-1, AsRawFd::as_raw_fd),
            events: libc::POLLIN | more,
            revents: 0,
        };
        polled.clear();
        polled.push(libc::pollfd { fd: self.signals.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 });
        for w in &self.wards {
            let more = if w.outgoing.is_empty() { 0 } else { libc::POLLOUT };
            polled.push(entry(w.socket.as_ref(), more));
            polled.push(entry(w.watch.as_ref().filter(|_| w.rank_gone.is_none()), 0));
        }
        let stage = match self.stage {
            Stage::Running => None,
            Stage::Grace(t) | Stage::Leaving(t) | Stage::Killed(t) => Some(t),
        };
        let settle = match self.stage {
            Stage::Running => self.wards.iter().filter_map(|w| w.rank_gone).map(|t| t + SETTLE).min(),
            _ => None,
        };
        let until = stage.into_iter().chain(settle).min();
        let ms = until.map(|t| t.saturating_sub(now).div_ceil(MS).min(60_000) as u32);
        socket::poll(polled, ms);
    }

    /// Goes on to the next stage of the end, if it is time.
    fn advance(&mut self, now: u64) {
        if self.stage == Stage::Running {
            self.settle(now);
            let Some(d) = self.control.decision() else { return };
            let grace = match d {
                Decision { cause: Cause::Killed | Cause::Supervisor, .. } => 0,
                Decision { code: 0, .. } => GRACE_GOOD,
                _ => GRACE_BAD,
            };
            self.stage = Stage::Grace(now.saturating_add(grace));
        }
        if matches!(self.stage, Stage::Grace(t) if now >= t) {
            self.control.let_leave();
            let knock = Rc::new(Head::new(Kind::Leave).bytes().to_vec());
            for w in self.wards.iter_mut().filter(|w| !w.gone()) {
                // Whatever else was meant for the rank does not matter any more.
                w.outgoing.clear();
                w.send(knock.clone());
                // Who has not called gasnet_init hears no knock.
                if w.rank_pid.is_none() && w.ended.is_none() {
                    w.killed_by_us = true;
                    process::kill(w.child, libc::SIGTERM);
                }
            }
            self.stage = Stage::Leaving(now.saturating_add(self.leaving));
        }
        if matches!(self.stage, Stage::Leaving(t) if now >= t) {
            self.kill_the_rest();
            self.stage = Stage::Killed(now + KILLED);
        }
    }

    fn kill_the_rest(&mut self) {
        let ms = self.leaving / MS;
        for (rank, w) in self.wards.iter_mut().enumerate().filter(|(_, w)| !w.gone()) {
            let pid = w.pid();
            let what = match process::liveness(pid) {
                Liveness::Stopped => "is stopped and cannot leave the job".to_string(),
                _ => format!("did not leave the job within {ms} ms"),
            };
            say(&format!("rank {rank} (pid {pid}) {what}; it is killed"));
            w.killed_by_us = true;
            process::kill(w.child, libc::SIGKILL);
            if pid != w.child {
                process::kill(pid, libc::SIGKILL);
            }
        }
    }

    fn abandon(&self) {
        for (rank, w) in self.wards.iter().enumerate().filter(|(_, w)| !w.gone()) {
            say(&format!("rank {rank} (pid {}) was killed but does not vanish; it is left behind", w.pid()));
        }
    }

    /// Decides about ranks that are gone while the process that started them lives on.
    fn settle(&mut self, now: u64) {
        for i in 0..self.wards.len() {
            if self.wards[i].rank_gone.is_some_and(|t| now >= t + SETTLE) && self.control.decision().is_none()
            {
                say(&format!("rank {i} (pid {}) ended without leaving the job", self.wards[i].pid()));
                self.decide(i, 1, Cause::Vanished);
            }
        }
    }

    fn decide(&self, rank: usize, code: i32, cause: Cause) {
        self.control.decide(Decision { code, cause, rank: Some(rank as u32) });
    }

    fn fail(&self, code: i32) {
        self.control.decide(Decision { code, cause: Cause::Supervisor, rank: None });
    }

    fn on_signal(&mut self, Arrived { signal, sent }: Arrived) {
        if signal == libc::SIGCHLD {
            for i in 0..self.wards.len() {
                self.reap(i);
            }
            return;
        }
        if REQUESTS.contains(&signal) {
            if self.requested {
                say(&format!("second {} or the like: the job ends", signal::name(signal)));
                self.fail(128 + signal);
                return;
            }
            self.requested = true;
        }
        // What a terminal raised it has raised for the ranks as well.
        if sent {
            for w in self.wards.iter().filter(|w| !w.gone()) {
                process::kill(w.pid(), signal);
            }
        }
    }

    /// Takes what rank `i` has sent, and sees whether its process has ended.
    fn serve(&mut self, i: usize) {
        self.drain(i);
        let w = &mut self.wards[i];
        w.flush();
        if let Some(watch) = w.watch.as_ref().filter(|_| w.rank_gone.is_none()) {
            let mut p = [libc::pollfd { fd: watch.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
            socket::poll(&mut p, Some(0));
            if p[0].revents != 0 {
                w.rank_gone = Some(clock::now_ns());
            }
        }
    }

    fn reap(&mut self, i: usize) {
        if self.wards[i].ended.is_some() {
            return;
        }
        let Some(ended) = process::reap(self.wards[i].child) else { return };
        self.drain(i);
        let w = &mut self.wards[i];
        w.ended = Some(ended);
        let (pid, joined) = (w.child, w.rank_pid.is_some());
        let decided = self.control.decision().is_some();
        match ended {
            Ended::Killed(signal) => {
                if w.killed_by_us {
                    return;
                }
                let code = 128 + signal;
                if decided {
                    self.late_crash.get_or_insert(code);
                    return;
                }
                say(&format!(
                    "rank {i} (pid {pid}) was killed by signal {signal} ({}); the job ends with exit code {code}",
                    signal::name(signal)
                ));
                self.decide(i, code, Cause::Killed);
            }
            Ended::Exited(_) if decided => {}
            // The rank is another process and lives on.
            Ended::Exited(0) if self.wards[i].watch.is_some() => {}
            Ended::Exited(code) if joined => self.decide(i, code, Cause::Vanished),
            Ended::Exited(0) => self.missing(),
            Ended::Exited(code) => {
                say(&format!("rank {i} (pid {pid}) ended with exit code {code} before gasnet_init"));
                self.decide(i, code, Cause::Vanished);
            }
        }
    }

    /// Ends a job of which some ranks wait for one that ended before it called `gasnet_init`.
    fn missing(&self) {
        let Some(i) = self.wards.iter().position(|w| w.ended.is_some() && w.rank_pid.is_none()) else {
            return;
        };
        if self.wards.iter().any(|w| w.rank_pid.is_some()) && self.control.decision().is_none() {
            say(&format!(
                "rank {i} (pid {}) ended with exit code 0 before gasnet_init, which other ranks have called",
                self.wards[i].child
            ));
            self.fail(1);
        }
    }

    /// Takes all messages that rank `i` has sent.
    fn drain(&mut self, i: usize) {
        let mut buffer = [0; wire::HEAD + wire::DATA];
        loop {
            let Some(fd) = self.wards[i].socket.as_ref().map(AsRawFd::as_raw_fd) else { return };
            match socket::receive(fd, &mut buffer, false) {
                Ok(0) => self.wards[i].socket = None,
                Ok(n) => match Head::parse(&buffer[..n]) {
                    Some((head, data)) => self.on_message(i, head, data),
                    None => self.nonsense(i),
                },
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.wards[i].socket = None,
            }
        }
    }

    fn nonsense(&self, i: usize) {
        say(&format!("rank {i} (pid {}) sent what cannot be understood; the job ends", self.wards[i].pid()));
        self.fail(1);
    }

    fn on_message(&mut self, i: usize, head: Head, data: &[u8]) {
        let w = &mut self.wards[i];
        match head.kind {
            Kind::Hello => {
                w.rank_pid = Some(head.a);
                if head.a != w.child {
                    w.watch = process::pidfd(head.a).ok();
                }
                self.missing();
            }
            Kind::Barrier => {
                w.in_barrier = true;
                if self.wards.iter().all(|w| w.in_barrier) {
                    let go = Rc::new(Head::new(Kind::Go).bytes().to_vec());
                    for w in &mut self.wards {
                        w.in_barrier = false;
                        w.send(go.clone());
                    }
                }
            }
            Kind::Part => match w.giving.add(head, data) {
                None => self.nonsense(i),
                Some(false) => {}
                Some(true) => {
                    w.given = Some(w.giving.take());
                    self.exchange();
                }
            },
            // The exit word is looked at in every round.
            Kind::Exit => {}
            Kind::ExecFailed => {
                let e = std::io::Error::from_raw_os_error(head.a as i32);
                if self.control.decision().is_none() {
                    say(&format!("rank {i} cannot be started: {e}"));
                }
                self.fail(if head.a as i32 == libc::ENOENT { 127 } else { 126 });
            }
            Kind::Go | Kind::Leave => self.nonsense(i),
        }
    }

    /// Hands out what all ranks have given, once all have.
    fn exchange(&mut self) {
        if !self.wards.iter().all(|w| w.given.is_some()) {
            return;
        }
        let given: Vec<Vec<u8>> = self.wards.iter_mut().filter_map(|w| w.given.take()).collect();
        if let Some(odd) = given.iter().position(|g| g.len() != given[0].len()) {
            return self.nonsense(odd);
        }
        for part in wire::parts(&given.concat()) {
            let part = Rc::new(part);
            for w in &mut self.wards {
                w.send(part.clone());
            }
        }
    }
}

/// Tells the user one line.
fn say(line: &str) {
    report::line(format_args!("{line}"));
}
