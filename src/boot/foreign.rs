//! Jobs that a foreign launcher starts (mpiexec, mpirun, srun): the processes find each other through the launcher's
//! own means, and from then on have a supervisor of ours like any other job. Called by [`super::start`].
//!
//! Rank 0 listens under a name that nobody can guess, publishes it together with the cookie of the job, and forks the
//! supervisor, which takes over the listening socket; all ranks connect to it and get the memory files. The launcher's
//! means are given back before that, so that nothing of theirs is in the way later: the end of the job needs none of
//! them, since each rank leaves with the agreed code and any launcher returns that.
//!
//! Who notices that a process ends before the job has come together:
//!
//! | it ends | noticed by |
//! |---|---|
//! | before it has joined the exchange, or in it | everybody who waits there ([`super::siblings`]) |
//! | after the exchange | the supervisor, which rank 0 tells all processes that have taken part |
//! | rank 0, before the supervisor is there | everybody who connects, since nobody listens, or the connection is cut |
//! | the supervisor | everybody, by the end of the connection |
//!
//! Invariant: the supervisor is nobody's child (clients may wait for any child), holds no descriptor of the client
//! but standard error, and ends when all ranks are gone.

use super::message::{MessageHead, MessageKind};
use super::supervised::{RankId, SupervisedRank};
use super::supervisor::Supervisor;
use super::{BootError, detect, pmi, pmix};
use crate::limits::MAX_RANKS;
use crate::report;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use sys::child::{Ended, Forked};
use sys::process::ProcessIdentity;
use sys::{process, socket};

/// What a launcher offers to the processes that it has started: a place where each can leave words for all.
pub(super) trait KeyValueSpace {
    /// Rank of this process.
    fn rank(&self) -> u32;
    /// Processes that the launcher has started.
    fn size(&self) -> u32;
    /// Leaves a word, without blanks, for all.
    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError>;
    /// Waits until all processes are here; what they have left before can be read after.
    fn fence(&mut self) -> Result<(), BootError>;
    /// A word that this rank has left.
    fn get(&mut self, rank: u32, key: &str) -> Result<String, BootError>;
    /// Gives the offer back.
    fn finish(self: Box<Self>);
}

/// Key of the word that rank 0 leaves.
const KEY: &str = "gasnet-job";
/// Key of the word that each rank leaves of itself.
const PROCESS: &str = "gasnet-process";

/// Joins the job by PMI.
pub(super) fn by_pmi() -> Result<Option<SupervisedRank>, BootError> {
    join(Box::new(pmi::Pmi::open()?))
}

/// Joins the job by PMIx.
pub(super) fn by_pmix() -> Result<Option<SupervisedRank>, BootError> {
    join(Box::new(pmix::Pmix::open()?))
}

/// Joins the job; `None` if it has one process.
fn join(mut offer: Box<dyn KeyValueSpace>) -> Result<Option<SupervisedRank>, BootError> {
    let (rank, size) = (offer.rank(), offer.size());
    if size == 0 || rank >= size || size > MAX_RANKS {
        offer.finish();
        return Err(if size > MAX_RANKS {
            BootError::new(
                format!(
                    "the launcher has started {size} processes, more than a job can have (GASNET_MAXNODES is {MAX_RANKS})"
                ),
                format!("Start at most {MAX_RANKS} processes."),
            )
        } else {
            BootError::new(
                format!("the launcher says that this is process {rank} of {size}"),
                "Start the job with gasnetrun -n N, or tell the launcher another kind of PMI.",
            )
        });
    }
    if size == 1 {
        offer.finish();
        detect::not_alone()?;
        return Ok(None);
    }
    let mut listener = None;
    if rank == 0 {
        let l = Listener::new(size)
            .map_err(|e| BootError::system("cannot listen for the other processes", &e))?;
        offer.put(KEY, &l.word())?;
        listener = Some(l);
    }
    offer.put(PROCESS, &Member::here().map_or("-".to_string(), Member::word))?;
    offer.fence()?;
    let word = offer.get(0, KEY)?;
    let mut members = Vec::new();
    if listener.is_some() {
        for rank in 0..size {
            members.push(Member::read(&offer.get(rank, PROCESS)?));
        }
    }
    offer.finish();
    if let Some(l) = listener {
        l.supervise(members)?;
    }
    let id = connect(rank, size, &word)?;
    Ok(Some(SupervisedRank::join(id)?))
}

/// A process that takes part in the exchange, and the one that has started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) process: ProcessIdentity,
    /// `None` if it is process 1, which takes over whose parent has ended.
    pub(super) launcher: Option<ProcessIdentity>,
}

impl Member {
    /// This process; `None` if the system does not tell.
    fn here() -> Option<Member> {
        let launcher = ProcessIdentity::of(process::parent()).filter(|l| l.pid > 1);
        Some(Member { process: ProcessIdentity::of(process::pid())?, launcher })
    }

    /// What tells it to those who share its numbers of processes.
    fn word(self) -> String {
        let p = self.process;
        let l = self.launcher.unwrap_or(ProcessIdentity { pid: 0, start: 0 });
        format!("{}.{}.{}.{}.{}", numbering(), p.pid, p.start, l.pid, l.start)
    }

    /// Whom this word tells of, if this process can find it by that.
    fn read(word: &str) -> Option<Member> {
        let mut parts = word.split('.');
        (parts.next()? == numbering()).then_some(())?;
        let mut identity = || {
            Some(ProcessIdentity {
                pid: parts.next()?.parse().ok()?,
                start: parts.next()?.parse().ok()?,
            })
        };
        let (process, launcher) = (identity()?, identity()?);
        Some(Member { process, launcher: (launcher.pid > 0).then_some(launcher) })
    }
}

/// Tells processes that number processes in the same way from others.
fn numbering() -> String {
    digits("/proc/self/ns/pid")
}

/// The digits of what this link leads to.
fn digits(link: &str) -> String {
    let to = std::fs::read_link(link).unwrap_or_default();
    to.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

/// Where the ranks will connect.
struct Listener {
    socket: OwnedFd,
    name: String,
    cookie: u64,
}

impl Listener {
    fn new(size: u32) -> io::Result<Listener> {
        let name =
            format!("gasnet-{:016x}{:016x}", sys::random::number()?, sys::random::number()?);
        let cookie = sys::random::number()?;
        Ok(Listener { socket: socket::listen(&name, size)?, name, cookie })
    }

    /// What the others need to know: the machine, the name, the cookie.
    fn word(&self) -> String {
        format!("{}:{}:{:016x}", machine(), self.name, self.cookie)
    }

    /// Starts the supervisor, which takes over the socket.
    fn supervise(self, members: Vec<Option<Member>>) -> Result<(), BootError> {
        // SAFETY: the child is to become the supervisor, which needs nothing that other threads of this process may
        // hold but the allocator, which the C library keeps usable in a forked child.
        match unsafe { sys::child::fork() } {
            Err(e) => {
                Err(BootError::system("cannot start the process that keeps the job together", &e))
            }
            Ok(Forked::Parent(child)) => match sys::child::await_child(child) {
                Ended::Exited(0) => Ok(()),
                _ => Err(BootError::new(
                    "cannot start the process that keeps the job together",
                    "See ulimit -u, or start fewer processes.",
                )),
            },
            Ok(Forked::Child) => {
                // SAFETY: this process has one thread and is about to become the supervisor.
                unsafe { sys::child::detach() };
                self.become_supervisor(&members)
            }
        }
    }

    fn become_supervisor(self, members: &[Option<Member>]) -> ! {
        sys::descriptor::close_all_but(self.socket.as_raw_fd());
        process::set_name(c"gasnet-job");
        match Supervisor::adopt(self.cookie, self.socket, members) {
            Ok(s) => sys::exit_now(s.watch()),
            Err(e) => {
                report::line(format_args!("{}", e.cause));
                report::line(format_args!("  {}", e.remedy));
                sys::exit_now(1)
            }
        }
    }
}

/// Tells this machine, and its network, from others.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{}/{}", boot.trim(), digits("/proc/self/ns/net"))
}

/// Takes the seat of `rank` with the supervisor that rank 0 has left word of.
fn connect(rank: u32, size: u32, word: &str) -> Result<RankId, BootError> {
    let parts: Vec<&str> = word.split(':').collect();
    let [host, name, cookie] = parts[..] else {
        return Err(unreachable_supervisor("what process 0 has left is not a word of ours"));
    };
    if host != machine() {
        return Err(BootError::new(
            format!(
                "process {rank} runs on another machine than process 0, or in another container"
            ),
            "Start all processes of the job on one machine: this library does not reach further yet.",
        ));
    }
    let cookie =
        u64::from_str_radix(cookie, 16).map_err(|e| unreachable_supervisor(&e.to_string()))?;
    let socket = socket::connect(name).map_err(|e| unreachable_supervisor(&e.to_string()))?;
    let peer =
        socket::credentials(socket.as_fd()).map_err(|e| unreachable_supervisor(&e.to_string()))?;
    if peer.uid != process::user() {
        return Err(unreachable_supervisor(&format!("it belongs to user {}", peer.uid)));
    }
    let mut hello = MessageHead { kind: MessageKind::JoinRequest, a: rank, b: 0 }.bytes().to_vec();
    hello.extend_from_slice(&cookie.to_ne_bytes());
    socket::send(socket.as_raw_fd(), &hello, true)
        .map_err(|e| unreachable_supervisor(&e.to_string()))?;
    let mut answer = [0; super::message::HEAD_BYTES];
    let (n, files) = loop {
        match socket::receive_fds(socket.as_fd(), &mut answer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            r => break r.map_err(|e| unreachable_supervisor(&e.to_string()))?,
        }
    };
    let seated = MessageHead::parse(&answer[..n])
        .is_some_and(|(h, _)| h.kind == MessageKind::JoinReply && h.a == size);
    let Ok([control, arena, segments, scratch]) = <[OwnedFd; 4]>::try_from(files) else {
        return Err(unreachable_supervisor("it hung up"));
    };
    if !seated {
        return Err(unreachable_supervisor("it did not answer as expected"));
    }
    Ok(RankId { rank, size, cookie, control, arena, segments, scratch, socket })
}

fn unreachable_supervisor(why: &str) -> BootError {
    BootError::new(
        format!("cannot reach the process that keeps the job together: {why}"),
        "See whether another process of the job has ended or told of trouble.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_members() {
        let here = Member::here().unwrap();
        assert_eq!(here.process.pid, process::pid());
        assert_eq!(Member::read(&here.word()), Some(here));
        let alone = Member { launcher: None, ..here };
        assert_eq!(Member::read(&alone.word()), Some(alone));
        let elsewhere = here.word().replacen('.', "0.", 1);
        for bad in ["", "-", elsewhere.as_str(), &here.word()[..here.word().rfind('.').unwrap()]] {
            assert_eq!(Member::read(bad), None, "{bad}");
        }
    }
}
