//! Jobs that another launcher starts (mpiexec, mpirun, srun). The ranks find each other through
//! the launcher's key-value space, and then have a supervisor of ours like any other job.
//!
//! Called by `join`. Invariant: the supervisor is not a child of any rank, since clients
//! may wait for any child. It holds no descriptor of the client but standard error, and ends when
//! all ranks have exited.
//!
//! On each host, the lowest rank listens under a random name and publishes the name with a
//! cookie. It forks the supervisor of the host, which takes over the listening socket. The ranks
//! of the host connect to it and receive the memory files. The launcher's service is released
//! before that. The end of the job needs nothing of the launcher, since every rank exits with the
//! agreed code and any launcher returns that.
//!
//! In a job of several hosts, the supervisor of rank 0's host is the root ([`super::hosts`]).
//! Rank 0 listens for the others by TCP, and publishes the addresses and the secret of the job.
//! Most launchers say which ranks a host has, so a rank reads one text, and a lowest rank one
//! more for each rank of its host. Where a launcher does not, any rank may be a lowest one, and
//! all read the names of all hosts.
//!
//! Which process detects an exit before the job has formed:
//!
//! | what exits | detected by |
//! |---|---|
//! | a rank before or in the exchange | every rank of its host that waits there ([`super::siblings`]); that has the launcher end those of other hosts |
//! | a rank after the exchange | its supervisor, to which the lowest rank hands all processes of the host |
//! | a lowest rank before its supervisor runs | the ranks that connect: the connection fails or ends; the root, with which it is connected soon after the exchange |
//! | a supervisor | its ranks and the other supervisors, by the end of the connection |

use super::bootstrap::Bootstrap;
use super::control_message::{self, ControlHead, ControlKind};
use super::error::BootError;
use super::host_memory::HostMemory;
use super::host_share::{HostShare, RankPlace};
use super::hosts::interface;
use super::hosts::link::HostLink;
use super::hosts::listener::HostListener;
use super::hosts::message::HostMessage;
use super::hosts::root_address::RootAddress;
use super::key_value::KeyValueSpace;
use super::member::{Member, namespace, shown};
use super::options::BootOptions;
use super::rank_id::RankId;
use super::supervisor::Supervisor;
use super::{detect, single, supervisor_link};
use crate::limits::MAX_RANKS;
use crate::rank::JobRank;
use crate::report;
use crate::tools::this_process::hostname;
use handshake::JobSecret;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use sys::child::Forked;
use sys::{clock, process, socket};

/// How long the launcher may take to pass on what a process prints, and to end a job.
const PRINTED: u64 = 200_000_000;
const ABORTED: u64 = 1_000_000_000;
/// Key of the text of the lowest rank of a host: where to connect.
const JOB: &str = "gasnet-job";
/// Key of the text of rank 0: where the lowest ranks of the other hosts connect. The text is long
/// where the host has many addresses ([`put_long`]).
const ROOT: &str = "gasnet-root";
/// Characters of a piece of a long text: every launcher keeps values of this length whole.
const PIECE: usize = 200;
/// Key of the text of each rank: its process.
const PROCESS: &str = "gasnet-process";
/// Key of the text of each rank: its host.
const HOST: &str = "gasnet-host";

/// Joins the job of the key-value space.
///
/// # Errors
/// The ranks cannot find each other.
pub(super) fn join(
    mut space: Box<dyn KeyValueSpace>,
    options: &BootOptions,
) -> Result<Bootstrap, BootError> {
    let (rank, size) = (space.rank(), space.size());
    if size > MAX_RANKS {
        space.finish();
        return Err(BootError::new(
            format!(
                "the launcher has started {size} processes, more than a job can have \
                 (GASNET_MAXNODES is {MAX_RANKS})"
            ),
            format!("Start at most {MAX_RANKS} processes."),
        ));
    }
    if rank >= size {
        space.finish();
        return Err(BootError::new(
            format!("the launcher says that this is rank {rank} of {size}"),
            "Start the job with gasnetrun -n N, or select another kind of PMI.",
        ));
    }
    if size == 1 {
        let release = space.finish();
        detect::reject_single()?;
        return Ok(Bootstrap { release, ..single::start()? });
    }
    let said = space.host_share();
    let has_others = !matches!(&said, Ok(Some(share)) if share.hosts == 1);
    let found = said.and_then(|said| find_host(&mut *space, said));
    let FoundHost { share, supervisor, host, socket } = found.inspect_err(|e| {
        if e.is_loss && has_others {
            // Those of other hosts wait, and the launcher may let them. It ends this one too.
            report::fatal_line(format_args!("gasnet_init(): {}", e.cause));
            report::line(format_args!("  {}", e.remedy));
            clock::sleep_ns(PRINTED);
            space.abort();
            clock::sleep_ns(ABORTED);
        }
    })?;
    let release = space.finish();
    if let Some(supervisor) = supervisor {
        supervisor.start(options)?;
    }
    let local =
        share.local_rank_of(JobRank(rank)).ok_or_else(|| invalid("the ranks of a host"))?;
    let id = connect(share.place(local), share.leader().0, &host, &socket)?;
    Ok(Bootstrap { release, ..supervisor_link::join(id, "the supervisor (process gasnet-job)")? })
}

/// What a rank knows of its host after the exchange.
struct FoundHost {
    share: HostShare,
    /// To be started by this rank.
    supervisor: Option<NewSupervisor>,
    /// [`host`].
    host: String,
    /// Where the ranks of this host connect, as the lowest one has published it.
    socket: String,
}

/// Exchanges with the others what is needed to connect. `said`: what the launcher says of this
/// host.
fn find_host(
    space: &mut dyn KeyValueSpace,
    said: Option<HostShare>,
) -> Result<FoundHost, BootError> {
    let (rank, size) = (space.rank(), space.size());
    let host = host()?;
    let may_lead = said.as_ref().is_none_or(|share| share.leader().0 == rank);
    let mut host_socket = None;
    if may_lead {
        let s = HostSocket::new(size, &host)
            .map_err(|e| BootError::system("cannot listen for the other processes", &e))?;
        space.put(JOB, &s.text)?;
        host_socket = Some(s);
    }
    let mut root = None;
    if rank == 0 && said.as_ref().is_none_or(|share| share.hosts > 1) {
        let opened = interface::toward_any().and_then(|all| HostListener::open(&all));
        let text = opened.as_ref().map_or("-".to_string(), |l| l.root_address().text());
        put_long(space, ROOT, &text)?;
        root = Some(opened);
    }
    if said.is_none() {
        space.put(HOST, &host)?;
    }
    space.put(PROCESS, &Member::this_process().map_or("-".to_string(), Member::text))?;
    space.fence()?;
    let share = match said {
        Some(share) => share,
        None => share_of_texts(space)?,
    };
    let leader = share.leader().0;
    let mut supervisor = None;
    if let Some(socket) = host_socket.filter(|_| leader == rank) {
        let others = match root {
            _ if share.hosts == 1 => OtherSupervisors::None,
            Some(listener) => OtherSupervisors::Below(listener?),
            // From now on the root notices that this host does not come.
            None => above(&get_long(space, 0, ROOT)?, share.host)?,
        };
        let read = |r: &JobRank| Ok(Member::read(&space.get(r.0, PROCESS)?));
        let members = share.ranks().iter().map(read).collect::<Result<_, BootError>>()?;
        supervisor = Some(NewSupervisor { socket, share: share.clone(), members, others });
    }
    let socket = space.get(leader, JOB)?;
    Ok(FoundHost { share, supervisor, host, socket })
}

/// Stores an ASCII text in pieces, each behind the number of all pieces.
fn put_long(space: &mut dyn KeyValueSpace, key: &str, text: &str) -> Result<(), BootError> {
    let pieces = text.len().div_ceil(PIECE);
    for i in 0..pieces {
        let piece = &text[i * PIECE..text.len().min((i + 1) * PIECE)];
        space.put(&format!("{key}-{i}"), &format!("{pieces}:{piece}"))?;
    }
    Ok(())
}

/// The text that a rank has stored by [`put_long`].
fn get_long(space: &mut dyn KeyValueSpace, rank: u32, key: &str) -> Result<String, BootError> {
    let mut text = String::new();
    for i in 0.. {
        let value = space.get(rank, &format!("{key}-{i}"))?;
        let (pieces, piece) = value.split_once(':').ok_or_else(|| invalid("a text in pieces"))?;
        text += piece;
        if pieces.parse().ok().is_none_or(|pieces: u32| i + 1 >= pieces) {
            break;
        }
    }
    Ok(text)
}

/// The ranks of this host, by what all ranks have published.
fn share_of_texts(space: &mut dyn KeyValueSpace) -> Result<HostShare, BootError> {
    let rank = space.rank();
    let texts = (0..space.size()).map(|r| space.get(r, HOST));
    let texts = texts.collect::<Result<Vec<String>, BootError>>()?;
    HostShare::of_names(rank, &texts).ok_or_else(|| invalid("the names of the hosts"))
}

/// The socket to which the ranks of this host connect.
struct HostSocket {
    socket: OwnedFd,
    cookie: u64,
    /// What the other ranks must know: the host, the name, the cookie.
    text: String,
}

impl HostSocket {
    fn new(size: u32, host: &str) -> io::Result<HostSocket> {
        let name =
            format!("gasnet-{:016x}{:016x}", sys::random::number()?, sys::random::number()?);
        let cookie = sys::random::number()?;
        let text = format!("{host}:{name}:{cookie:016x}");
        Ok(HostSocket { socket: socket::listen(&name, size)?, cookie, text })
    }
}

/// The supervisors of the other hosts, as that of one host sees them.
enum OtherSupervisors {
    /// This is the only host.
    None,
    /// This is the root, to which the others connect.
    Below(HostListener),
    /// The root, which this host is connected with, and the secret of the job.
    Above(HostLink, JobSecret),
}

/// Connects the host with this number to the root, which the text names.
fn above(text: &str, host: u32) -> Result<OtherSupervisors, BootError> {
    let root = RootAddress::parse(text).ok_or_else(|| invalid("the addresses of the root"))?;
    let mut link = root.connect(host).map_err(|why| {
        BootError::new(
            format!("host {} cannot connect to that of rank 0: {why}", hostname()),
            "Name the network that all hosts have in GASNET_NETWORK_INTERFACE, or allow the \
             connection in the firewall (GASNET_NETWORK_PORTS bounds the ports).",
        )
    })?;
    link.send(&HostMessage::Name(hostname().to_string()));
    Ok(OtherSupervisors::Above(link, root.secret))
}

/// A supervisor to be started.
struct NewSupervisor {
    socket: HostSocket,
    share: HostShare,
    members: Vec<Option<Member>>,
    others: OtherSupervisors,
}

impl NewSupervisor {
    /// Starts it in a process of its own, which takes over the sockets.
    fn start(self, options: &BootOptions) -> Result<(), BootError> {
        // SAFETY: the child becomes the supervisor. It needs nothing that other threads of this
        // process may hold except the allocator, which the C library keeps usable after a fork.
        match unsafe { sys::child::fork_detached() } {
            Err(e) => Err(BootError::system("cannot start the supervisor of the job", &e)),
            Ok(Forked::Parent(_)) => Ok(()),
            Ok(Forked::Child) => match self.prepare(options) {
                Ok(supervisor) => sys::exit_now(supervisor.watch()),
                Err(e) => {
                    report::line(format_args!("{}", e.cause));
                    report::line(format_args!("  {}", e.remedy));
                    sys::exit_now(1)
                }
            },
        }
    }

    /// In the new process: keeps nothing of the client but standard error.
    fn prepare(self, options: &BootOptions) -> Result<Supervisor, BootError> {
        let NewSupervisor { socket: HostSocket { socket, cookie, .. }, share, members, others } =
            self;
        let mut keep = vec![socket.as_raw_fd()];
        match &others {
            OtherSupervisors::None => {}
            OtherSupervisors::Below(listener) => {
                keep.extend(listener.descriptors().map(|fd| fd.as_raw_fd()));
            }
            OtherSupervisors::Above(link, _) => keep.push(link.as_fd().as_raw_fd()),
        }
        sys::descriptor::close_all_but(&keep);
        process::set_name(c"gasnet-job");
        let hosts = share.hosts;
        let supervisor = Supervisor::adopt(cookie, socket, share, &members, options)?;
        match others {
            OtherSupervisors::None => Ok(supervisor),
            OtherSupervisors::Below(listener) => {
                Ok(supervisor.launched(listener, hosts - 1, options.spawn_timeout))
            }
            OtherSupervisors::Above(link, secret) => supervisor.below(&mut Some(link), secret),
        }
    }
}

/// This host and its network namespace.
fn host() -> Result<String, BootError> {
    let boot = shown(std::fs::read_to_string("/proc/sys/kernel/random/boot_id"));
    let read = boot.and_then(|boot| Ok(format!("{}/{}", boot.trim(), namespace("net")?)));
    read.map_err(|e| BootError::system("cannot read /proc for the name of this host", &e))
}

/// Becomes a rank of the supervisor that the text of `leader` names. `host` is this host.
fn connect(place: RankPlace, leader: u32, host: &str, text: &str) -> Result<RankId, BootError> {
    let RankPlace { rank, size, .. } = place;
    let parts: Vec<&str> = text.split(':').collect();
    let [host_of_leader, name, cookie] = parts[..] else {
        return Err(unreachable_supervisor(&format!("what rank {leader} published is invalid")));
    };
    if host_of_leader != host {
        return Err(BootError::new(
            format!(
                "rank {rank} runs in another container than rank {leader}, but the launcher says \
                 that both are on one host"
            ),
            "Start all processes of a host in one container, or each container by a daemon of its \
             own.",
        ));
    }
    let failed = |e: io::Error| unreachable_supervisor(&e.to_string());
    let cookie =
        u64::from_str_radix(cookie, 16).map_err(|e| unreachable_supervisor(&e.to_string()))?;
    let socket = socket::connect(name).map_err(failed)?;
    let peer = socket::credentials(socket.as_fd()).map_err(failed)?;
    if peer.uid != process::user() {
        return Err(unreachable_supervisor(&format!("it belongs to user {}", peer.uid)));
    }
    let head = ControlHead { kind: ControlKind::JoinRequest, a: rank.0, b: 0 };
    let request = [&head.bytes()[..], &cookie.to_ne_bytes()].concat();
    socket::send(socket.as_fd(), &request, true).map_err(failed)?;
    let mut answer = [0; control_message::HEAD_BYTES];
    let (n, files) = loop {
        match socket::receive_fds(socket.as_fd(), &mut answer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            r => break r.map_err(failed)?,
        }
    };
    let joined = ControlHead::parse(&answer[..n])
        .is_some_and(|(h, _)| h.kind == ControlKind::JoinReply && h.a == size);
    let Ok([control, arena, segments, scratch]) = <[OwnedFd; 4]>::try_from(files) else {
        let why = if joined { "this process lacks descriptors (ulimit -n)" } else { "it hung up" };
        return Err(unreachable_supervisor(why));
    };
    if !joined {
        return Err(unreachable_supervisor("its answer is invalid"));
    }
    let memory =
        HostMemory { arena: arena.into(), segments: segments.into(), scratch: scratch.into() };
    Ok(RankId { place, cookie, control, memory, socket })
}

/// What a rank has published, or the launcher, is not usable.
fn invalid(what: &str) -> BootError {
    BootError::new(
        format!("the processes of the job cannot find each other: {what} are invalid"),
        "Start all processes with one library and one launcher, or the job with gasnetrun -n N.",
    )
}

fn unreachable_supervisor(why: &str) -> BootError {
    BootError::new(
        format!("cannot reach the supervisor of the job: {why}"),
        "See whether another process of the job has exited or printed an error.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::key_value::LauncherRelease;
    use std::collections::HashMap;

    /// Texts by rank and key.
    #[derive(Default)]
    struct Texts(HashMap<String, String>);

    impl KeyValueSpace for Texts {
        fn rank(&self) -> u32 {
            0
        }

        fn size(&self) -> u32 {
            1
        }

        fn host_share(&mut self) -> Result<Option<HostShare>, BootError> {
            Ok(None)
        }

        fn put(&mut self, key: &str, value: &str) -> Result<(), BootError> {
            assert!(value.len() <= PIECE + 8, "{value}");
            self.0.insert(key.to_string(), value.to_string());
            Ok(())
        }

        fn fence(&mut self) -> Result<(), BootError> {
            Ok(())
        }

        fn get(&mut self, rank: u32, key: &str) -> Result<String, BootError> {
            self.0.get(key).cloned().ok_or_else(|| invalid(&format!("{key} of {rank}")))
        }

        fn abort(&self) {}

        fn finish(self: Box<Self>) -> Option<LauncherRelease> {
            None
        }
    }

    #[test]
    fn long_texts_come_back() {
        for length in [1, PIECE, PIECE + 1, 5 * PIECE, 10_000] {
            let text: String = (0..length).map(|i| char::from(b'a' + (i % 26) as u8)).collect();
            let mut space = Texts::default();
            put_long(&mut space, ROOT, &text).unwrap();
            assert_eq!(get_long(&mut space, 0, ROOT).unwrap(), text);
            assert_eq!(space.0.len(), length.div_ceil(PIECE));
        }
    }
}
