//! The portals-conduit: GASNet's puts, gets and active messages in terms of Portals 3.3.
//!
//! One file per noun of the portals-conduit README. Generic over [`portals::Portals`]; what comes up from the
//! network goes to the [`Upcall`] that every call is handed.

pub mod portals;

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
pub struct Conduit<P: portals::Portals> {
    portals: P,
}

/// Figures of the conduit; see `GASNET_PORTAL_*` in [`crate::env::TABLE`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Threads that may call at the same time.
    pub threads: usize,
}
