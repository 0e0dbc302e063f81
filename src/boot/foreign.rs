//! Jobs that another launcher starts (mpiexec, mpirun, srun). The ranks find each other through
//! the launcher's key-value space, and then have a supervisor of ours like any other job.
//!
//! Called by `join`. Invariant: the supervisor is not a child of any rank, since clients
//! may wait for any child. It holds no descriptor of the client but standard error, and ends when
//! all ranks have exited.
//!
//! Rank 0 listens under a random name and publishes the name with the cookie of the job. It
//! forks the supervisor, which takes over the listening socket. All ranks connect to it and
//! receive the memory files. The launcher's service is released before that. The end of the job
//! needs nothing of the launcher, since every rank exits with the agreed code and any launcher
//! returns that.
//!
//! Which process detects an exit before the job has formed:
//!
//! | what exits | detected by |
//! |---|---|
//! | a rank before or in the exchange | every rank that waits there ([`super::siblings`]) |
//! | a rank after the exchange | the supervisor, to which rank 0 hands all processes of the exchange |
//! | rank 0 before the supervisor runs | every rank that connects: the connection fails or ends |
//! | the supervisor | every rank, by the end of the connection |

use super::bootstrap::Bootstrap;
use super::control_message::{self, ControlHead, ControlKind};
use super::error::BootError;
use super::host_memory::HostMemory;
use super::host_share::RankPlace;
use super::key_value::KeyValueSpace;
use super::member::{Member, namespace};
use super::options::BootOptions;
use super::rank_id::RankId;
use super::supervisor::Supervisor;
use super::{detect, single, supervisor_link};
use crate::limits::MAX_RANKS;
use crate::rank::JobRank;
use crate::report;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use sys::child::Forked;
use sys::process;
use sys::socket;

/// Key of the text of rank 0: where to connect.
const KEY: &str = "gasnet-job";
/// Key of the text of each rank: its process.
const PROCESS: &str = "gasnet-process";

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
    let mut listener = None;
    if rank == 0 {
        let l = Listener::new(size)
            .map_err(|e| BootError::system("cannot listen for the other processes", &e))?;
        space.put(KEY, &l.text())?;
        listener = Some(l);
    }
    space.put(PROCESS, &Member::this_process().map_or("-".to_string(), Member::text))?;
    space.fence()?;
    let address = space.get(0, KEY)?;
    let mut members = Vec::new();
    if listener.is_some() {
        for rank in 0..size {
            members.push(Member::read(&space.get(rank, PROCESS)?));
        }
    }
    let release = space.finish();
    if let Some(l) = listener {
        l.start_supervisor(&members, options)?;
    }
    let id = connect(JobRank(rank), size, &address)?;
    Ok(Bootstrap { release, ..supervisor_link::join(id, "the supervisor (process gasnet-job)")? })
}

/// The socket to which the ranks connect.
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

    /// What the other ranks must know: the host, the name, the cookie.
    fn text(&self) -> String {
        format!("{}:{}:{:016x}", host(), self.name, self.cookie)
    }

    /// Starts the supervisor, which takes over the socket.
    fn start_supervisor(
        self,
        members: &[Option<Member>],
        options: &BootOptions,
    ) -> Result<(), BootError> {
        // SAFETY: the child becomes the supervisor. It needs nothing that other threads of this
        // process may hold except the allocator, which the C library keeps usable after a fork.
        match unsafe { sys::child::fork_detached() } {
            Err(e) => Err(BootError::system("cannot start the supervisor of the job", &e)),
            Ok(Forked::Parent(_)) => Ok(()),
            Ok(Forked::Child) => self.become_supervisor(members, options),
        }
    }

    fn become_supervisor(self, members: &[Option<Member>], options: &BootOptions) -> ! {
        sys::descriptor::close_all_but(self.socket.as_raw_fd());
        process::set_name(c"gasnet-job");
        match Supervisor::adopt(self.cookie, self.socket, members, options) {
            Ok(s) => sys::exit_now(s.watch()),
            Err(e) => {
                report::line(format_args!("{}", e.cause));
                report::line(format_args!("  {}", e.remedy));
                sys::exit_now(1)
            }
        }
    }
}

/// This host and its network namespace.
fn host() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{}/{}", boot.trim(), namespace("net"))
}

/// Becomes `rank` of the supervisor that the text of rank 0 names.
fn connect(rank: JobRank, size: u32, address: &str) -> Result<RankId, BootError> {
    let parts: Vec<&str> = address.split(':').collect();
    let [host_of_0, name, cookie] = parts[..] else {
        return Err(unreachable_supervisor("what rank 0 published is invalid"));
    };
    if host_of_0 != host() {
        return Err(BootError::new(
            format!("rank {rank} runs on another host than rank 0, or in another container"),
            "Start all processes on one host: jobs of several hosts are not supported.",
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
        return Err(unreachable_supervisor("it hung up"));
    };
    if !joined {
        return Err(unreachable_supervisor("its answer is invalid"));
    }
    let memory =
        HostMemory { arena: arena.into(), segments: segments.into(), scratch: scratch.into() };
    let place = RankPlace::on_one_host(rank, size);
    Ok(RankId { place, cookie, control, memory, socket })
}

fn unreachable_supervisor(why: &str) -> BootError {
    BootError::new(
        format!("cannot reach the supervisor of the job: {why}"),
        "See whether another process of the job has exited or printed an error.",
    )
}
