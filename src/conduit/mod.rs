//! The portals-conduit: GASNet's puts, gets and active messages in terms of Portals 3.3.
//!
//! One file per noun of the portals-conduit README. Generic over [`portals::Portals`]; what comes up from the
//! network goes to the [`Upcall`] that every call is handed.

pub mod portals;

use portals::{Error, Portals, ProcessId};

/// Names an operation of the upper room: the conduit carries it in the ignored match bits of a put or get and hands
/// it back to [`Upcall::op_done`] when the operation is complete. All 32 bits belong to the upper room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpId(pub u32);

/// What an active message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Arguments only.
    Short,
    /// Arguments and a payload in a buffer of the library.
    Medium,
    /// Arguments and a payload in the target's segment.
    Long,
}

/// An active message on its way to its handler.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Rank of the sender.
    pub source: u32,
    /// Short, Medium or Long.
    pub category: Category,
    /// Handler index, 1 to 255.
    pub handler: u8,
    /// 0 to 16 arguments.
    pub args: &'a [i32],
    /// Medium: in a buffer that lives until the handler returns, 8-byte aligned; Long: in our segment; Short: null.
    pub payload: *mut u8,
    /// Bytes of payload.
    pub nbytes: usize,
}

/// An active message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Short, Medium or Long.
    pub category: Category,
    /// Handler index, 1 to 255.
    pub handler: u8,
    /// 0 to 16 arguments.
    pub args: &'a [i32],
    /// Payload; not read if `nbytes` is 0, whatever it points to.
    pub src: *const u8,
    /// Bytes of payload; within the limits of [`Conduit::max_medium`] and its like (checked by the caller).
    pub nbytes: usize,
    /// Long: address in the target's segment (checked by the caller).
    pub dest: *mut u8,
    /// Long: the source need not be reusable when the call returns (`LongAsync`).
    pub source_stays: bool,
}

/// What the upper room does for the conduit. Handed down with every call; a small `Copy` context.
pub trait Upcall: Copy {
    /// Index of the calling thread, below [`Config::threads`]; indexes per-thread caches.
    fn thread(self) -> usize;
    /// Runs the handler of a request. The handler may call [`Conduit::reply`] with `token` at most once; if it does
    /// not, the conduit sends the implicit reply afterwards.
    fn run_request(self, token: &mut ReplyToken, message: Message<'_>);
    /// Runs the handler of a reply.
    fn run_reply(self, message: Message<'_>);
    /// One of the [`Conduit::fragments`] of the put or get with this id is complete.
    fn op_done(self, op: OpId);
    /// A system message of process `source` that is not the conduit's own.
    fn system(self, source: u32, message: SystemMessage) {
        let _ = (source, message);
    }
    /// Called between two polls of a wait for resources, `round` counting from 0: checks whether the job is ending,
    /// and spins, yields or sleeps as the wait mode says.
    fn pause(self, round: u32);
}

/// What a request handler needs to send its reply; made by the conduit, one per request.
#[derive(Debug)]
pub struct ReplyToken {
    /// Rank of the requester.
    pub source: u32,
}

/// The conduit over one Portals interface.
#[derive(Debug)]
pub struct Conduit<P: Portals> {
    portals: P,
    config: Config,
    me: u32,
    peers: alloc::vec::Vec<ProcessId>,
}

#[allow(unused_variables, clippy::too_many_arguments)]
impl<P: Portals> Conduit<P> {
    /// Allocates queues, buffers and memory descriptors; `peers` is indexed by rank. Peers may send to us when this has
    /// returned in every process (the caller's barrier); active messages and system messages work from then on.
    ///
    /// # Errors
    /// The Portals call that failed; `PTL_NO_SPACE` mostly.
    pub fn open(portals: P, config: Config, me: u32, peers: alloc::vec::Vec<ProcessId>) -> Result<Self, Error> {
        Ok(Conduit { portals, config, me, peers })
    }
    /// Attaches the descriptors of our segment. `segments[rank]` is the address (in its owner) and length of each
    /// segment. Puts, gets and Longs work after a barrier by the caller. Once only.
    ///
    /// # Errors
    /// The Portals call that failed.
    pub fn attach_segments(&self, segments: &[(*mut u8, usize)]) -> Result<(), Error> {
        todo!()
    }
    /// Puts `n` bytes into the segment of `node`. Each of its [`Conduit::fragments`] ends with [`Upcall::op_done`].
    /// Unless `bulk`, the source may be reused when the call returns; with `bulk`, when the operation is done.
    ///
    /// # Safety
    /// `src` must be readable for `n` bytes until then; `dest` must lie in the segment of `node`.
    pub unsafe fn put<U: Upcall>(&self, up: U, node: u32, dest: *mut u8, src: *const u8, n: usize, op: OpId, bulk: bool) {
        todo!()
    }
    /// Gets `n` bytes from the segment of `node`. Each of its [`Conduit::fragments`] ends with [`Upcall::op_done`].
    ///
    /// # Safety
    /// `dest` must be writable for `n` bytes until then, and `src` must lie in the segment of `node`.
    pub unsafe fn get<U: Upcall>(&self, up: U, dest: *mut u8, node: u32, src: *const u8, n: usize, op: OpId) {
        todo!()
    }
    /// How many messages, and so completions, a put or get of `n` bytes takes; 0 for none.
    pub fn fragments(&self, n: usize) -> u32 {
        todo!()
    }
    /// Sends a request. Waits for credits, a chunk and tickets, running handlers meanwhile; never from inside a handler.
    pub fn request<U: Upcall>(&self, up: U, node: u32, m: &Outgoing<'_>) {
        todo!()
    }
    /// Sends the reply of the request handler that holds `token`; at most once.
    pub fn reply<U: Upcall>(&self, up: U, token: &mut ReplyToken, m: &Outgoing<'_>) {
        todo!()
    }
    /// Serves all queues; runs handlers. True if anything was there. Inside a handler it is [`Conduit::poll_safe`].
    pub fn poll<U: Upcall>(&self, up: U) -> bool {
        todo!()
    }
    /// Serves the queue of completions and replies only. True if anything was there. Inside a handler it runs no handler.
    pub fn poll_safe<U: Upcall>(&self, up: U) -> bool {
        todo!()
    }
    /// Sends a system message: 8 bits of kind and three words, without payload; arrives at [`Upcall::system`].
    pub fn send_system(&self, node: u32, m: SystemMessage) {
        todo!()
    }
    /// Largest Medium payload in bytes.
    pub fn max_medium(&self) -> usize {
        todo!()
    }
    /// Largest Long request payload in bytes.
    pub fn max_long_request(&self) -> usize {
        todo!()
    }
    /// Largest Long reply payload in bytes.
    pub fn max_long_reply(&self) -> usize {
        todo!()
    }
    /// What this Portals library has beyond the standard: doorbell, sleeping, counters.
    pub fn extension(&self) -> Option<&dyn portals::Extension> {
        self.portals.extension()
    }
}

/// A message of the system queue between the upper rooms of two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemMessage {
    /// What it is about; 0x00 to 0x7f belong to the upper room.
    pub id: u8,
    /// Three words.
    pub args: [u32; 3],
}

/// Figures of the conduit; see `GASNET_PORTAL_*` in [`crate::env::TABLE`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Threads that may call at the same time.
    pub threads: usize,
}

impl Config {
    /// The figures for a job of `nodes` processes with up to `threads` calling threads each, from the environment.
    pub fn from_env(nodes: u32, threads: usize) -> Config {
        let _ = nodes;
        Config { threads }
    }
}
