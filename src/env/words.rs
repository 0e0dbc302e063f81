//! The words of variables that accept one of a few. Used by the table and by the readers; imports
//! nothing.

/// How the ranks of a job find each other (GASNET_SPAWN_CONTROL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnControl {
    /// The process is a job of one rank.
    Alone,
    /// `gasnet_init` forks the ranks.
    Fork,
    /// By the functions of an XT-class system that the program is linked with.
    Cnos,
    /// Through the launcher's PMI.
    Pmi,
    /// Through the launcher's PMIx.
    Pmix,
}

/// How a rank waits (GASNET_WAITMODE); the values are those of `GASNET_WAIT_*`.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// `GASNET_WAIT_SPIN`: contend for the CPU.
    Spin = 0,
    /// `GASNET_WAIT_BLOCK`: give the CPU away at once.
    Block = 1,
    /// `GASNET_WAIT_SPINBLOCK`: spin a while, then give it away.
    SpinBlock = 2,
}

/// The networks that a user wants (GASNET_NETWORK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkChoice {
    /// What suits the build and the hosts.
    Auto,
    /// Shared memory of one host alone.
    Shm,
    /// Shared memory, and TCP between hosts.
    Tcp,
    /// Shared memory, and libfabric between hosts.
    Ofi,
    /// Shared memory, and what suits between hosts.
    Emulation,
    /// The libportals that the library was built with.
    Libportals,
}

/// Where libfabric carries sender and seal of a frame (GASNET_OFI_TAG_MODE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagModeChoice {
    /// Where the provider allows it.
    Auto,
    /// In its tag and its remote CQ data.
    Full,
    /// In its tag and in the message.
    One,
    /// In the message.
    Two,
}

/// Whether puts and gets use remote memory access of libfabric (GASNET_OFI_RMA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmaChoice {
    /// With a provider of hardware.
    Auto,
    /// Always.
    Yes,
    /// Never.
    No,
}

/// What connects ranks of different hosts. The numbers travel between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireKind {
    /// TCP of this project.
    Tcp = 0,
    /// libfabric.
    Ofi = 1,
}

/// The Portals below the conduit. The numbers travel between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkKind {
    /// The one of this project, crate `portals3`.
    Emulation = 0,
    /// The libportals that the library was built with.
    Libportals = 1,
}

/// What delivers puts and gets of other hosts (GASNET_PROGRESS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireProgress {
    /// A thread of the library, while no thread of the client polls.
    Thread,
    /// The calls of the client.
    Poll,
}
