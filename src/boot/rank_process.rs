//! One rank as its supervisor sees it: its processes, its control socket, how it ended. Used by `boot::supervisor`.

use super::control::JobControl;
use super::message::Assembly;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;
use sys::child::Ended;
use sys::process::{self, CpuTime};
use sys::{clock, socket};

/// How long it may take to learn how a rank ended that is gone but was not our child, in nanoseconds.
pub(super) const SETTLE: u64 = 200_000_000;
/// How often the system is asked meanwhile.
const ASK: u64 = 5_000_000;

/// One rank.
#[derive(Debug)]
pub(super) struct RankProcess {
    pub(super) rank: u32,
    control: &'static JobControl,
    /// The process that we started, or that has joined a job that a foreign launcher started; 0 for one that has not.
    pub(super) child: u32,
    /// Whether the process is a child of the supervisor.
    pub(super) ours: bool,
    /// The process that started it, if that is not the supervisor.
    pub(super) launcher: Option<u32>,
    /// How it ended, if it has.
    pub(super) ended: Option<Ended>,
    /// The process that became the rank: usually the child, sometimes a process that the child started.
    pub(super) rank_pid: Option<u32>,
    /// Watches `rank_pid` if that is not our child.
    pub(super) watch: Option<OwnedFd>,
    /// When `rank_pid` ended, if we watch it.
    pub(super) rank_gone: Option<u64>,
    pub(super) socket: Option<OwnedFd>,
    /// Messages for which the socket had no room.
    pub(super) outgoing: VecDeque<Rc<Vec<u8>>>,
    pub(super) in_barrier: bool,
    pub(super) giving: Assembly,
    pub(super) given: Option<Vec<u8>>,
    pub(super) killed_by_us: bool,
    /// How its threads had fared when that was last looked at.
    fared: Option<CpuTime>,
}

impl RankProcess {
    /// A rank whose process is a child of the supervisor.
    pub(super) fn of_child(
        rank: u32,
        control: &'static JobControl,
        child: u32,
        socket: OwnedFd,
    ) -> RankProcess {
        RankProcess {
            child,
            ours: true,
            socket: Some(socket),
            ..RankProcess::expected(rank, control)
        }
    }

    /// A rank that is to connect.
    pub(super) fn expected(rank: u32, control: &'static JobControl) -> RankProcess {
        RankProcess {
            rank,
            control,
            child: 0,
            ours: false,
            launcher: None,
            ended: None,
            rank_pid: None,
            watch: None,
            rank_gone: None,
            socket: None,
            outgoing: VecDeque::new(),
            in_barrier: false,
            giving: Assembly::default(),
            given: None,
            killed_by_us: false,
            fared: None,
        }
    }

    /// No process of it is left.
    pub(super) fn gone(&self) -> bool {
        match self.ours {
            true => self.ended.is_some() && (self.watch.is_none() || self.rank_gone.is_some()),
            false => self.child == 0 || self.rank_gone.is_some(),
        }
    }

    pub(super) fn send(&mut self, message: Rc<Vec<u8>>) {
        self.outgoing.push_back(message);
        self.flush();
    }

    pub(super) fn flush(&mut self) {
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
    pub(super) fn pid(&self) -> u32 {
        self.rank_pid.unwrap_or(self.child)
    }

    /// What to poll for the end of a process that is not our child.
    pub(super) fn watched(&self) -> Option<&OwnedFd> {
        self.watch.as_ref().filter(|_| self.rank_gone.is_none())
    }

    /// Whether its threads have waited for a CPU for longer than they have had one, since the last look if this is not the first.
    pub(super) fn starves(&mut self) -> bool {
        let now = process::cpu_time(self.pid());
        let before = self.fared.replace(now).unwrap_or_default();
        now.waited.saturating_sub(before.waited) > now.ran.saturating_sub(before.ran)
    }

    /// Notes when the watched process has ended.
    pub(super) fn look(&mut self) {
        if self.watched().is_some_and(|w| sys::poll::readable(w.as_fd())) {
            self.rank_gone = Some(clock::now_ns());
        }
    }

    /// When to look again at the rank, which was found gone at `gone`.
    pub(super) fn settled_at(&self, gone: u64, now: u64) -> u64 {
        if self.ours { gone + SETTLE } else { (now + ASK).min(gone + SETTLE) }
    }

    /// How a process that is not our child ended, as far as the system tells.
    pub(super) fn foreign_end(&self) -> Option<Ended> {
        self.watch
            .as_ref()
            .filter(|_| self.rank_gone.is_some())
            .and_then(|w| sys::child::ended(w, self.pid()))
    }
}
