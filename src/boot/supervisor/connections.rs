//! Ranks of other launchers that connect to the supervisor.
//!
//! Owned by [`super::Supervisor`]. Invariant: a connection is accepted from the same user with the
//! cookie of the job; a connection that sends nothing delays no other.

use crate::boot::control_message::{self, ControlHead, ControlKind};
use crate::rank::JobRank;
use crate::report;
use std::os::fd::{AsFd, OwnedFd};
use sys::accept::AcceptPause;
use sys::{process, socket};

/// Nanoseconds in which a connection must say which rank it is.
const INTRODUCTION: u64 = 5_000_000_000;
/// Connections that are accepted at a time.
const AT_ONCE: usize = 256;

/// Where ranks connect, and connections that have not said which rank they are.
#[derive(Debug, Default)]
pub(super) struct Connections {
    listener: Option<OwnedFd>,
    /// Each with its deadline.
    pending: Vec<(OwnedFd, u64)>,
    pause: AcceptPause,
}

/// A process that asks to be a rank of this job.
#[derive(Debug)]
pub(super) struct JoinRequest {
    pub(super) rank: JobRank,
    pub(super) pid: u32,
    pub(super) socket: OwnedFd,
}

impl Connections {
    pub(super) fn listen(&mut self, listener: OwnedFd) {
        self.listener = Some(listener);
    }

    /// Whether ranks can still connect.
    pub(super) fn is_open(&self) -> bool {
        self.listener.is_some()
    }

    /// Refuses all further connections.
    pub(super) fn close(&mut self) {
        *self = Connections::default();
    }

    /// The descriptors to poll.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        let listener = self.listener.iter().filter(|_| self.pause.until().is_none());
        listener.chain(self.pending.iter().map(|(fd, _)| fd))
    }

    /// When [`Connections::accept`] must be called at the latest.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.pending.iter().map(|&(_, until)| until).chain(self.pause.until()).min()
    }

    /// Accepts connections; returns the requests of those that know the cookie.
    pub(super) fn accept(&mut self, now: u64, cookie: u64) -> Vec<JoinRequest> {
        let Connections { listener, pending, pause } = self;
        let take = |new: OwnedFd| match socket::credentials(new.as_fd()) {
            Ok(peer) if peer.uid != process::user() => report::line(format_args!(
                "process {} of user {} tried to join this job and was rejected",
                peer.pid, peer.uid
            )),
            Ok(_) => pending.push((new, now + INTRODUCTION)),
            Err(_) => {}
        };
        if let Some(listener) = listener
            && let Some(e) = pause.accept(now, AT_ONCE, || socket::accept(listener.as_fd()), take)
        {
            report::line(format_args!(
                "ranks cannot be accepted until the supervisor has what it lacks: {e}"
            ));
            report::line(format_args!(
                "  Raise the limit (of descriptors: ulimit -n), or start fewer ranks on this host."
            ));
        }
        let mut requests = Vec::new();
        for (fd, until) in core::mem::take(&mut self.pending) {
            if sys::poll::readable(fd.as_fd()) {
                requests.extend(request(fd, cookie));
            } else if now < until {
                self.pending.push((fd, until));
            } else if let Ok(peer) = socket::credentials(fd.as_fd()) {
                report::line(format_args!(
                    "process {} connected to this job but sent nothing; it was disconnected",
                    peer.pid
                ));
            }
        }
        requests
    }
}

/// The request that a connection has sent; reports one without the cookie.
fn request(fd: OwnedFd, cookie: u64) -> Option<JoinRequest> {
    let peer = socket::credentials(fd.as_fd()).ok()?;
    let mut buffer = [0; control_message::HEAD_BYTES + 8];
    let received = socket::receive(fd.as_fd(), &mut buffer, false);
    match received.ok().and_then(|n| ControlHead::parse(&buffer[..n])) {
        Some((ControlHead { kind: ControlKind::JoinRequest, a, .. }, data))
            if data == cookie.to_ne_bytes() =>
        {
            Some(JoinRequest { rank: JobRank(a), pid: peer.pid, socket: fd })
        }
        _ => {
            report::line(format_args!(
                "process {} tried to join this job without its cookie and was rejected",
                peer.pid
            ));
            None
        }
    }
}
