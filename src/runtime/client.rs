//! A client: the program or runtime that calls GASNet, as the library knows it.
//!
//! Named by `capi` when it starts a job; calls reach it through
//! [`Ctx::client`](super::Ctx::client). Invariant: it does not change.

/// How many client threads may call at a time (`GASNET_SEQ`, `GASNET_PARSYNC`, `GASNET_PAR`).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadMode {
    /// One thread in the whole process.
    Seq = 1,
    /// Several threads, one of them at a time.
    Parsync = 2,
    /// Several threads at once.
    Par = 3,
}

/// What a client chose when it called `gasnet_init`.
#[derive(Clone, Copy, Debug)]
pub struct GasnetClient {
    /// Its thread mode.
    pub threads: ThreadMode,
    /// Bound of the segment that the client's `gasnet_max_segsize` sets, in bytes; 0 for none.
    pub max_segsize: u64,
}
