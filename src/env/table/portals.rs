//! Variables of the network and of the portals-conduit.

use crate::env::kinds::{Bytes, FreeText, Integer, OneOf, YesNo};
use crate::env::variable::variables;
use crate::env::words::{NetworkChoice, RmaChoice, TagModeChoice};

/// Bytes of a chunk of the conduit.
const CHUNK: usize = 2048;
/// Most bytes of a Medium: 64 KiB less two cache lines.
const MAX_MEDIUM: usize = 65_408;

variables! {
    /// The networks. SHM: the shared memory of one host alone. TCP: shared memory, and TCP between
    /// hosts. OFI: shared memory, and libfabric between hosts. EMULATION: SHM on one host; on
    /// several OFI if libfabric has a provider of hardware (cxi, verbs, psm2, psm3, efa, opx),
    /// else TCP. LIBPORTALS: the libportals that the library was built with. AUTO, the default, is
    /// LIBPORTALS if there is one, else EMULATION. All ranks must have the same.
    NETWORK: OneOf<NetworkChoice>(&[
        ("AUTO", NetworkChoice::Auto),
        ("SHM", NetworkChoice::Shm),
        ("TCP", NetworkChoice::Tcp),
        ("OFI", NetworkChoice::Ofi),
        ("EMULATION", NetworkChoice::Emulation),
        ("LIBPORTALS", NetworkChoice::Libportals),
    ]);

    /// The providers of libfabric that may be used, the preferred one first, with commas between
    /// them. `tcp` names each provider whose first part it is, such as `tcp;ofi_rxm`. Only one of
    /// this and GASNET_OFI_PROVIDER_EXCLUDE may be set.
    OFI_PROVIDER_INCLUDE: FreeText;

    /// The providers of libfabric that must not be used, as in GASNET_OFI_PROVIDER_INCLUDE.
    OFI_PROVIDER_EXCLUDE: FreeText;

    /// Where libfabric carries the sender and the seal of each frame. FULL: in its tag and its
    /// remote CQ data. 1: the seal in the message. 2: both in the message. AUTO, the default, is
    /// the first that the provider allows.
    OFI_TAG_MODE: OneOf<TagModeChoice>(&[
        ("AUTO", TagModeChoice::Auto),
        ("FULL", TagModeChoice::Full),
        ("1", TagModeChoice::One),
        ("2", TagModeChoice::Two),
    ]);

    /// Whether puts and gets of other hosts in segments use remote memory access of
    /// libfabric's provider, without the target. It trusts the network: what reaches the provider
    /// with the key of a segment changes memory. YES: a provider without it is not used. NO: all
    /// messages go in frames. AUTO, the default, is YES with a provider of hardware that has it,
    /// and NO with others.
    OFI_RMA: OneOf<RmaChoice>(&[
        ("AUTO", RmaChoice::Auto),
        ("YES", RmaChoice::Yes),
        ("NO", RmaChoice::No),
    ]);

    /// Whether threads use several transmit and receive contexts of libfabric at once, where the
    /// provider has scalable endpoints: `sockets` does. The ranks of other hosts are divided among
    /// up to 16 contexts, each with a lock and a completion queue of its own.
    OFI_THREAD_GROUPING: YesNo = false;

    /// The most completions that are read from the queue of libfabric's provider at a time.
    OFI_PROGRESS_EVENTS: Integer(1..=1000) = 16;

    /// Whether several threads may be inside the libportals at once. The default is what the
    /// library says; for a library that says nothing it is no, and its calls are made one at a
    /// time.
    PORTAL_THREADSAFE: YesNo;

    /// Whether puts and gets of peers complete while their target does not call the libportals.
    /// The default is what the library says. For a library that says nothing it is no: then a
    /// waiting rank yields the CPU between polls and never sleeps.
    PORTAL_BYPASS: YesNo;

    /// Portal table entry for puts and gets. All ranks must have the same. The default is 38; in a
    /// smaller table it is the last entry but one.
    PORTAL_PTE_RAR: Integer(0..=255);

    /// Portal table entry for active messages. All ranks must have the same. It may be that of
    /// GASNET_PORTAL_PTE_RAR. The default is 39; in a smaller table it is the last entry.
    PORTAL_PTE_AM: Integer(0..=255);

    /// Number of messages in flight from one rank (send tickets).
    PORTAL_MSG_LIMIT: Integer(12..=65535) = 250;

    /// Number of temporary memory descriptors.
    PORTAL_NUM_TMPMD: Integer(2..=32768) = 1024;

    /// Send small Longs as one message.
    PORTAL_PACKED_LONG: YesNo = true;

    /// Largest payload of a Long that travels in the same message. 0 sends each payload as a
    /// message of its own. While GASNET_PORTAL_AT_ONCE is on, a payload that does not fit into the
    /// event (32 B with the arguments) is put to its destination first.
    PACKEDLONG_LIMIT: Bytes(0..=CHUNK) = CHUNK;

    /// Flow control of active messages. Without it, the job ends if a rank receives more
    /// messages at once than it has buffers for.
    PORTAL_FLOW_CONTROL: YesNo = true;

    /// Complete puts, gets and sends within the call if the network reaches the target's memory,
    /// without waiting for events.
    PORTAL_AT_ONCE: YesNo = true;

    /// Move credits to the ranks that need them. Has no effect without flow control.
    PORTAL_DYNAMIC_CREDITS: YesNo = true;

    /// At exit each rank writes the movements of its credits to gasnet_credits.RANK in the folder
    /// in which it calls gasnet_init.
    PORTAL_CREDIT_STATS: YesNo = false;

    /// Number of received requests that make an epoch. Demand from earlier epochs counts less.
    PORTAL_EPOCH_DURATION: Integer(1..=1 << 30) = 1024;

    /// Number of 2 KiB chunks for requests and bounce buffers.
    PORTAL_SB_CHUNKS: Integer(2..=4096) = 2048;

    /// Number of areas for Medium request payloads of 320 to 1984 bytes. With threads they take
    /// those of 512 and more, without threads also those of 33 while requests follow each other.
    /// Without threads half as many areas take payloads of up to 8 KiB. An area holds a payload
    /// until a rank of this host has read it there; each such rank may keep one longer. A payload
    /// that finds no area free travels as between hosts, or has other memory. 0 is none.
    PORTAL_OUTBOX_AREAS: Integer(0..=4096) = 512;

    /// Largest payload of a Medium. Payloads above 1984 B take up to 4.1 MiB of memory in each
    /// rank that sends such, unless GASNET_PORTAL_OUTBOX_AREAS is 0; more if that is above 512.
    AM_MAX_MEDIUM: Bytes(512..=MAX_MEDIUM) = MAX_MEDIUM;

    /// Number of 2 KiB chunks for replies.
    PORTAL_RPL_CHUNKS: Integer(2..=4096) = 256;

    /// Number of events that one poll takes from the SAFE queue. 0 means all.
    PORTAL_SAFE_LIMIT: Integer(0..=65535) = 12;

    /// Number of events that one poll takes from the AM queue. 0 means all.
    PORTAL_AM_LIMIT: Integer(0..=65535) = 8;

    /// Number of events that one poll takes from the SYS queue. 0 means all.
    PORTAL_SYS_LIMIT: Integer(0..=65535) = 0;

    /// Largest number of credits that one rank may hold of another while credits move.
    PORTAL_MAX_CRED_PER_NODE: Integer(8..=65535) = 400;

    /// Number of credits that each rank has of each other at start, while credits move at most
    /// GASNET_PORTAL_MAX_CRED_PER_NODE. The default depends on the size of the job.
    PORTAL_CRED_PER_NODE: Integer(8..=65535);

    /// Number of credits that each rank keeps at start. The default depends on the size of the
    /// job.
    PORTAL_BANKED_CREDITS: Integer(0..=65535);

    /// Size of the request receive buffers together. The default follows from the credits. Ignored
    /// if GASNET_PORTAL_CRED_PER_NODE and GASNET_PORTAL_BANKED_CREDITS are both set.
    PORTAL_AMRECV_SPACE: Bytes(4 << 20..=1 << 40);

    /// Largest put or get that goes through a bounce buffer. A get through one is limited to 2040
    /// bytes.
    PORTAL_PUTGET_BOUNCE_LIMIT: Bytes(0..=CHUNK) = CHUNK;

    /// Largest put that goes through a bounce buffer. The default is
    /// GASNET_PORTAL_PUTGET_BOUNCE_LIMIT.
    PORTAL_PUT_BOUNCE_LIMIT: Bytes(0..=CHUNK);

    /// Largest get that goes through a bounce buffer. The default is
    /// GASNET_PORTAL_PUTGET_BOUNCE_LIMIT.
    PORTAL_GET_BOUNCE_LIMIT: Bytes(0..=CHUNK - 8);

    /// Accelerated Portals of Catamount, which this library does not support.
    PORTAL_ACCEL: Integer(0..=0) = 0;
}
