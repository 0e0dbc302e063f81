//! Nodes that are processes: this test program started again, joined through one memory file,
//! controlled over a socket.
//!
//! Used by [`super::node`]. Calls and answers travel as the bytes of plain `Copy` values: both
//! ends are the same executable, so both agree on every layout. Invariant: the first thing a
//! process does is to join the fabric and confirm it.

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use portals3::nal::shm::{AttachPolicy, Fabric, FabricSpec};
use portals3::{NetworkInterface, NiLimits};
use sys::memory::MemFd;

use super::ARENA;
use super::agent::{Agent, AgentAnswer, AgentCall};
use super::node::NodeReply;

const VARIABLE: &str = "PORTALS3_TEST_NODE";
const SECONDS_TO_LIVE: u32 = 300;

/// What a process needs to become a node.
#[derive(Clone, Copy)]
struct Birth {
    index: u32,
    size: u32,
    denied: bool,
    limits: Option<NiLimits>,
}

/// An empty memory file for arenas.
pub(super) fn memory_file() -> OwnedFd {
    MemFd::create(c"portals3-test").expect("memfd_create").into()
}

/// Joins as process `index` of `size`.
pub(super) fn fabric(file: &OwnedFd, index: u32, size: u32, attach: AttachPolicy) -> Fabric {
    fabric_on(file, 0, index, size, attach)
}

/// Joins as process `index` of `size` on host `nid`.
pub(super) fn fabric_on(
    file: &OwnedFd,
    nid: u32,
    index: u32,
    size: u32,
    attach: AttachPolicy,
) -> Fabric {
    let arena = file.try_clone().expect("dup");
    Fabric::join(FabricSpec { arena, index, size, bytes: ARENA, nid, jid: 77, attach })
        .expect("join")
}

/// A node in another process.
pub(super) struct NodeProcess {
    child: std::cell::RefCell<Child>,
    socket: UnixStream,
}

impl NodeProcess {
    /// Starts the process and waits until it has joined.
    pub(super) fn start(
        file: &OwnedFd,
        index: u32,
        size: u32,
        attach: AttachPolicy,
        limits: Option<NiLimits>,
        pause: Option<&str>,
    ) -> NodeProcess {
        let (socket, theirs) = UnixStream::pair().expect("socketpair");
        let passed = [file.as_raw_fd(), theirs.as_raw_fd()];
        let mut command = Command::new(std::env::current_exe().expect("current_exe"));
        command
            .args(["--exact", "rig::agent::serves_a_node", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, format!("{},{}", passed[0], passed[1]))
            .envs(pause.map(|pause| ("GASNET_TEST_PAUSE", pause)))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // SAFETY: the closure makes system calls only, which is what is allowed between fork and
        // exec.
        unsafe {
            command.pre_exec(move || {
                for fd in passed {
                    sys::descriptor::close_on_exec(fd, false)?;
                }
                sys::signal::alarm_us(u64::from(SECONDS_TO_LIVE) * 1_000_000);
                Ok(())
            });
        }
        let child = command.spawn().expect("spawn");
        let remote = NodeProcess { child: child.into(), socket };
        let birth = Birth { index, size, denied: attach == AttachPolicy::Denied, limits };
        send(&remote.socket, &birth);
        let joined: u32 = receive(&remote.socket).expect("the process of a node did not start");
        assert_eq!(joined, index);
        remote
    }

    pub(super) fn os_pid(&self) -> i32 {
        self.child.borrow().id() as i32
    }

    pub(super) fn send(&self, call: AgentCall, payload: &[u8]) {
        send(&self.socket, &call);
        send_bytes(&self.socket, payload);
    }

    /// Whether an answer can be received.
    pub(super) fn has_answered(&self) -> bool {
        sys::poll::readable(self.socket.as_fd())
    }

    pub(super) fn receive(&self) -> NodeReply {
        let gone = "the process of a node has exited";
        let result: Result<AgentAnswer, portals3::PtlError> = receive(&self.socket).expect(gone);
        let payload = receive_bytes(&self.socket).expect(gone);
        result.map(|answer| (answer, payload))
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let mut child = self.child.borrow_mut();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Serves as a node if this process was started as one, else returns.
pub(super) fn serve_if_asked() {
    let Ok(numbers) = std::env::var(VARIABLE) else { return };
    let mut numbers = numbers.split(',').map(|n| n.parse::<RawFd>().expect("a descriptor"));
    let mut next = || {
        let fd = numbers.next().expect("two descriptors");
        // SAFETY: the descriptor was passed to this process for this purpose and has no other
        // owner.
        unsafe { OwnedFd::from_raw_fd(fd) }
    };
    let (file, socket) = (next(), UnixStream::from(next()));
    let birth: Birth = receive(&socket).expect("birth");
    let attach = if birth.denied { AttachPolicy::Denied } else { AttachPolicy::Allowed };
    let fabric = fabric(&file, birth.index, birth.size, attach);
    let agent = Agent::new(NetworkInterface::shm(fabric, birth.limits).expect("shm"));
    send(&socket, &birth.index);
    while let Some(call) = receive::<AgentCall>(&socket) {
        let payload = receive_bytes(&socket).expect("payload");
        let (result, bytes) = match agent.serve(call, &payload) {
            Ok((answer, bytes)) => (Ok(answer), bytes),
            Err(error) => (Err(error), Vec::new()),
        };
        send::<Result<AgentAnswer, portals3::PtlError>>(&socket, &result);
        send_bytes(&socket, &bytes);
    }
    std::process::exit(0);
}

fn send<T: Copy>(mut socket: &UnixStream, value: &T) {
    // SAFETY: `value` is `size_of::<T>()` bytes; padding is copied along and never read.
    let bytes = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>())
    };
    socket.write_all(bytes).expect("the other end of a node's socket is closed");
}

fn receive<T: Copy>(mut socket: &UnixStream) -> Option<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: the slice covers `value` exactly, which is initialised with zeros.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(value.as_mut_ptr().cast::<u8>(), size_of::<T>()) };
    socket.read_exact(bytes).ok()?;
    // SAFETY: the bytes are those of a `T` that the same executable sent.
    Some(unsafe { value.assume_init() })
}

fn send_bytes(mut socket: &UnixStream, bytes: &[u8]) {
    send(socket, &bytes.len());
    socket.write_all(bytes).expect("the other end of a node's socket is closed");
}

fn receive_bytes(mut socket: &UnixStream) -> Option<Vec<u8>> {
    let len: usize = receive(socket)?;
    let mut bytes = vec![0; len];
    socket.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
