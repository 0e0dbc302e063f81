//! The types and constants of the Portals 3.3 interface (specification chapter 3), in Rust
//! spelling.
//!
//! Handles are plain numbers, as in the specification: they may be compared, copied and stored
//! anywhere. The numeric values of the enumerations are this library's own; nothing outside it
//! may depend on them.

use core::ffi::c_void;

use sys::peer::Peer;

/// `ptl_size_t`: a length or an offset in bytes.
pub type Size = u64;
/// `ptl_match_bits_t`.
pub type MatchBits = u64;
/// `ptl_hdr_data_t`: 64 bits of immediate data that travel with a put.
pub type HdrData = u64;
/// `ptl_pt_index_t`: an index into the portal table of an interface.
pub type PtIndex = u32;
/// `ptl_ac_index_t`: an index into the access control table of an interface.
pub type AcIndex = u32;
/// `ptl_uid_t`.
pub type Uid = u32;
/// `ptl_jid_t`.
pub type Jid = u32;
/// `ptl_seq_t`: numbers the events of one event queue; wraps.
pub type Seq = u32;

/// `PTL_NID_ANY`: a wild card for node ids.
pub const NID_ANY: u32 = u32::MAX;
/// `PTL_PID_ANY`: a wild card for process ids.
pub const PID_ANY: u32 = u32::MAX;
/// `PTL_UID_ANY`: a wild card for user ids.
pub const UID_ANY: Uid = u32::MAX;
/// `PTL_JID_ANY`: a wild card for job ids.
pub const JID_ANY: Jid = u32::MAX;
/// `PTL_PT_INDEX_ANY`: a wild card for portal table indices, in access control entries.
pub const PT_INDEX_ANY: PtIndex = u32::MAX;
/// `PTL_MD_THRESH_INF`: a threshold that never moves.
pub const THRESH_INF: i32 = -1;

/// `ptl_process_id_t`: the address of a process.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PtlProcessId {
    /// Node id.
    pub nid: u32,
    /// Process id on that node.
    pub pid: u32,
}

impl PtlProcessId {
    /// Matches every process.
    pub const ANY: PtlProcessId = PtlProcessId { nid: NID_ANY, pid: PID_ANY };
}

/// `ptl_handle_me_t`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MeHandle(pub u32);

/// `ptl_handle_md_t`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MdHandle(pub u32);

/// `ptl_handle_eq_t`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EqHandle(pub u32);

impl EqHandle {
    /// `PTL_EQ_NONE`: the memory descriptor logs no events.
    pub const NONE: EqHandle = EqHandle(0xbfff_ffff);
}

/// The bits of `ptl_md_t.options`.
pub mod md_options {
    /// `PTL_MD_OP_PUT`: responds to puts.
    pub const OP_PUT: u32 = 0x001;
    /// `PTL_MD_OP_GET`: responds to gets.
    pub const OP_GET: u32 = 0x002;
    /// `PTL_MD_MANAGE_REMOTE`: the initiator supplies the offset.
    pub const MANAGE_REMOTE: u32 = 0x004;
    /// `PTL_MD_TRUNCATE`: a message that is too long is cut.
    pub const TRUNCATE: u32 = 0x008;
    /// `PTL_MD_ACK_DISABLE`: no acknowledgement is sent, even if the initiator requests one.
    pub const ACK_DISABLE: u32 = 0x010;
    /// `PTL_MD_IOVEC`: `start` points to an array of [`super::MdIovec`], `length` counts its
    /// entries.
    pub const IOVEC: u32 = 0x020;
    /// `PTL_MD_MAX_SIZE`: `max_size` applies.
    pub const MAX_SIZE: u32 = 0x040;
    /// `PTL_MD_EVENT_START_DISABLE`: no start events.
    pub const EVENT_START_DISABLE: u32 = 0x080;
    /// `PTL_MD_EVENT_END_DISABLE`: no end events.
    pub const EVENT_END_DISABLE: u32 = 0x100;
    /// An extension: the region is the address space of this process, of which pages may be
    /// missing. The kernel checks every access.
    pub const ADDRESS_SPACE: u32 = 0x200;
}

/// `ptl_md_iovec_t`: one piece of a scattered memory descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MdIovec {
    /// First byte.
    pub base: *mut c_void,
    /// Length in bytes.
    pub len: Size,
}

/// `ptl_md_t`: a memory region as its user describes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryDescriptor {
    /// First byte (or the vector, with [`md_options::IOVEC`]).
    pub start: *mut c_void,
    /// Bytes (or entries of the vector).
    pub length: Size,
    /// Operations before it becomes inactive; [`THRESH_INF`]: unlimited.
    pub threshold: i32,
    /// With [`md_options::MAX_SIZE`]: becomes inactive when less room than this is left.
    pub max_size: Size,
    /// [`md_options`].
    pub options: u32,
    /// The user's own pointer, returned in events.
    pub user_ptr: *mut c_void,
    /// The queue of its events, or [`EqHandle::NONE`].
    pub eq: EqHandle,
}

/// `ptl_unlink_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlink {
    /// `PTL_RETAIN`.
    Retain,
    /// `PTL_UNLINK`.
    Unlink,
}

/// `ptl_ins_pos_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsPos {
    /// `PTL_INS_BEFORE`.
    Before,
    /// `PTL_INS_AFTER`.
    After,
}

/// `ptl_ack_req_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckReq {
    /// `PTL_ACK_REQ`.
    Ack,
    /// `PTL_NO_ACK_REQ`.
    NoAck,
}

/// `ptl_event_kind_t`.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtlEventKind {
    /// `PTL_EVENT_GET_START`.
    GetStart = 0,
    /// `PTL_EVENT_GET_END`.
    GetEnd,
    /// `PTL_EVENT_PUT_START`.
    PutStart,
    /// `PTL_EVENT_PUT_END`.
    PutEnd,
    /// `PTL_EVENT_GETPUT_START`.
    GetPutStart,
    /// `PTL_EVENT_GETPUT_END`.
    GetPutEnd,
    /// `PTL_EVENT_REPLY_START`.
    ReplyStart,
    /// `PTL_EVENT_REPLY_END`.
    ReplyEnd,
    /// `PTL_EVENT_SEND_START`.
    SendStart,
    /// `PTL_EVENT_SEND_END`.
    SendEnd,
    /// `PTL_EVENT_ACK`.
    Ack,
    /// `PTL_EVENT_UNLINK`.
    Unlink,
}

/// `ptl_ni_fail_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NiFail {
    /// `PTL_NI_OK`.
    Ok,
    /// `PTL_NI_FAIL`.
    Fail,
}

/// `ptl_event_t`.
#[derive(Clone, Copy, Debug)]
pub struct PtlEvent {
    /// What happened.
    pub kind: PtlEventKind,
    /// The process that initiated the operation (of an ACK or REPLY: the target).
    pub initiator: PtlProcessId,
    /// User id of the initiator.
    pub uid: Uid,
    /// Job id of the initiator.
    pub jid: Jid,
    /// The portal table entry that the message named.
    pub pt_index: PtIndex,
    /// The match bits as sent.
    pub match_bits: MatchBits,
    /// Requested length, in bytes.
    pub rlength: Size,
    /// Accepted length, in bytes.
    pub mlength: Size,
    /// Offset in the memory descriptor, in bytes.
    pub offset: Size,
    /// The memory descriptor.
    pub md_handle: MdHandle,
    /// Its state at the time of the event.
    pub md: MemoryDescriptor,
    /// Immediate data of a put.
    pub hdr_data: HdrData,
    /// Ties an END event to its START.
    pub link: Seq,
    /// Whether the operation succeeded.
    pub ni_fail: NiFail,
    /// Position in its event queue.
    pub sequence: Seq,
}

/// The result of `PtlEQGet`, `PtlEQWait` and `PtlEQPoll`.
#[derive(Clone, Copy, Debug)]
pub struct FetchedEvent {
    /// The event.
    pub event: PtlEvent,
    /// `PTL_EQ_DROPPED`: at least one event between this and the previous one was lost.
    pub dropped: bool,
}

/// `ptl_ni_limits_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NiLimits {
    /// Match list entries.
    pub max_mes: u32,
    /// Memory descriptors.
    pub max_mds: u32,
    /// Event queues.
    pub max_eqs: u32,
    /// Highest access control index.
    pub max_ac_index: u32,
    /// Highest portal table index.
    pub max_pt_index: u32,
    /// Entries of a scattered memory descriptor.
    pub max_md_iovecs: u32,
    /// Match list entries on one portal table entry.
    pub max_me_list: u32,
    /// Bytes that `PtlGetPut` swaps.
    pub max_getput_md: u32,
}

/// The errors of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtlError {
    /// `PTL_AC_INDEX_INVALID`
    AcIndexInvalid,
    /// `PTL_EQ_INVALID`
    EqInvalid,
    /// `PTL_FAIL`
    Fail,
    /// `PTL_HANDLE_INVALID`
    HandleInvalid,
    /// `PTL_IFACE_INVALID`
    IfaceInvalid,
    /// `PTL_MD_ILLEGAL`
    MdIllegal,
    /// `PTL_MD_INVALID`
    MdInvalid,
    /// `PTL_MD_IN_USE`
    MdInUse,
    /// `PTL_MD_NO_UPDATE`
    MdNoUpdate,
    /// `PTL_ME_INVALID`
    MeInvalid,
    /// `PTL_ME_IN_USE`
    MeInUse,
    /// `PTL_ME_LIST_TOO_LONG`
    MeListTooLong,
    /// `PTL_NI_INVALID`
    NiInvalid,
    /// `PTL_NO_SPACE`
    NoSpace,
    /// `PTL_PID_INVALID`
    PidInvalid,
    /// `PTL_PROCESS_INVALID`
    ProcessInvalid,
    /// `PTL_PT_FULL`
    PtFull,
    /// `PTL_PT_INDEX_INVALID`
    PtIndexInvalid,
    /// `PTL_SEGV`
    Segv,
    /// `PTL_SR_INDEX_INVALID`
    SrIndexInvalid,
}

/// `ptl_sr_index_t`: the status registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusRegister {
    /// `PTL_SR_DROP_COUNT`: messages to this interface that no descriptor accepted.
    DropCount,
}

/// What is wrong with words that the processes of a host share: one of them has written what no
/// correct process writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The match list leads a message of this process, or a framed one, to a wrong offset. The
    /// descriptor is no target of the message, or the message reaches beyond its end.
    Descriptor {
        /// Index of the descriptor.
        md: u32,
    },
    /// An event of a queue names a descriptor that does not exist here. `initiator` is the
    /// process that the event names.
    Event {
        /// Index of the queue.
        queue: u32,
        /// Number of the event.
        position: u64,
        /// Index of a process, as a peer wrote it.
        initiator: u32,
    },
    /// The slot of a queue's next event is neither free, nor claimed by a process that is
    /// delivering, nor holds that event.
    Slot {
        /// Index of the queue.
        queue: u32,
        /// Number of the event that is due.
        position: u64,
        /// What the control word of the slot holds.
        control: u64,
    },
    /// As [`Damage::Slot`], of the ring that frames arrive in.
    Frame {
        /// Number of the frame that is due.
        position: u64,
        /// What the control word of the slot holds.
        control: u64,
    },
    /// A word of the arena of this process does not hold what this process wrote, or holds what
    /// no correct process writes.
    Word {
        /// What the word is part of.
        table: ArenaTable,
        /// Index in the table.
        index: u32,
        /// Name of the word.
        word: &'static str,
        /// The value that this process wrote, if only this process writes the word.
        expected: Option<u64>,
        /// The value that was found.
        found: u64,
    },
    /// The addresses of a peer's descriptor, which lie in private memory of that peer, are not the
    /// ones that it wrote: no byte was moved.
    Address {
        /// Index of the process.
        process: u32,
        /// Index of its descriptor.
        md: u32,
    },
    /// The state of a peer's descriptor counts operations in flight that do not exist: as many as
    /// it can count, and none has ended for long.
    Full {
        /// Index of the process.
        process: u32,
        /// Index of its descriptor.
        md: u32,
    },
    /// A queue has lost events, or a peer has overwritten the count; reported after
    /// [`crate::NetworkInterface::expect_no_loss`] only.
    Lost {
        /// Index of the queue.
        queue: u32,
        /// The count.
        lost: u64,
    },
    /// A process has no descriptor for a message of this process, or this process none for what
    /// has arrived; reported after [`crate::NetworkInterface::expect_no_loss`] only.
    Dropped {
        /// Index of the process that has dropped it.
        process: u32,
        /// The portal table entry that the message names.
        pt_index: PtIndex,
        /// The match bits of the message.
        match_bits: MatchBits,
    },
}

/// A table of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArenaTable {
    /// The owner and the layout.
    Ident,
    /// Other words at the start.
    Header,
    /// The descriptors that threads are using.
    Hazards,
    /// Portal table.
    Pt,
    /// Access control.
    Ac,
    /// Match entries.
    Me,
    /// Descriptors.
    Md,
    /// Pieces of a scattered descriptor; the index is that of the descriptor.
    Iov,
    /// Event queues.
    Eq,
    /// The ring of frames behind the arena.
    Frames,
}

impl ArenaTable {
    fn name(self) -> &'static str {
        match self {
            ArenaTable::Ident => "ident",
            ArenaTable::Header => "header",
            ArenaTable::Hazards => "hazard slot",
            ArenaTable::Pt => "portal table entry",
            ArenaTable::Ac => "access control entry",
            ArenaTable::Me => "match entry",
            ArenaTable::Md => "descriptor",
            ArenaTable::Iov => "vector of descriptor",
            ArenaTable::Eq => "event queue",
            ArenaTable::Frames => "ring of frames",
        }
    }
}

impl core::fmt::Display for Damage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Damage::Descriptor { md } => write!(
                f,
                "descriptor {md} of this process accepted a message that it has no place for"
            ),
            Damage::Event { queue, position, initiator } => write!(
                f,
                "event {position} of event queue {queue}, from process {initiator}, names a descriptor that does not exist"
            ),
            Damage::Slot { queue, position, control } => write!(
                f,
                "the slot of event {position} of event queue {queue} holds the control word {control:#018x}, which no delivery leaves there"
            ),
            Damage::Frame { position, control } => write!(
                f,
                "the slot of frame {position} holds the control word {control:#018x}, which no sender leaves there"
            ),
            Damage::Word { table, index, word, expected: Some(expected), found } => write!(
                f,
                "word `{word}` of {} {index} of this process holds {found:#x}, not {expected:#x}",
                table.name()
            ),
            Damage::Word { table, index, word, expected: None, found } => write!(
                f,
                "word `{word}` of {} {index} of this process holds {found:#x}, which no correct process leaves there",
                table.name()
            ),
            Damage::Address { process, md } => write!(
                f,
                "the addresses of descriptor {md} of process {process} of this host are not the ones that it wrote"
            ),
            Damage::Full { process, md } => write!(
                f,
                "descriptor {md} of process {process} of this host counts operations in flight that do not exist"
            ),
            Damage::Lost { queue, lost } => {
                write!(f, "event queue {queue} of this process counts {lost} lost events")
            }
            Damage::Dropped { process, pt_index, match_bits } => write!(
                f,
                "process {process} of this host has no descriptor for a message with match bits {match_bits:#018x} to portal table entry {pt_index}"
            ),
        }
    }
}

/// What to do about [`Damage`] that was found: report it and end the job. If it returns, the
/// damaged event is skipped.
pub type DamageHandler = fn(&Damage);

/// An event without what can be looked up again: the result of
/// [`crate::NetworkInterface::eq_next`].
#[derive(Clone, Copy, Debug)]
pub struct BriefEvent {
    /// What happened.
    pub kind: PtlEventKind,
    /// `PTL_EQ_DROPPED`: at least one event between this and the previous one was lost.
    pub dropped: bool,
    /// Whether the operation succeeded.
    pub ni_fail: NiFail,
    /// The memory descriptor.
    pub md_handle: MdHandle,
    /// [`MemoryDescriptor::user_ptr`] of the descriptor.
    pub user_ptr: *mut c_void,
    /// [`MemoryDescriptor::start`] of the descriptor.
    pub start: *mut c_void,
    /// The process that initiated the operation (of an ACK or REPLY: the target).
    pub initiator: PtlProcessId,
    /// The match bits as sent.
    pub match_bits: MatchBits,
    /// Immediate data of a put.
    pub hdr_data: HdrData,
    /// Offset in the memory descriptor, in bytes.
    pub offset: Peer<Size>,
    /// Accepted length, in bytes.
    pub mlength: Peer<Size>,
    /// Whether the event has an inline payload, of [`crate::NetworkInterface::put_inline`].
    pub inline: bool,
}

/// An inline payload: the bytes that travel in the event of their put, as words.
pub type InlineWords = [u64; 4];

/// A put that has arrived: the result of [`crate::NetworkInterface::eq_next_arrival`]. The
/// fields are those of [`BriefEvent`]. A peer that has damaged the event may have made it name
/// another descriptor of this process.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct PutArrival {
    pub user_ptr: *mut c_void,
    pub start: *mut c_void,
    pub match_bits: MatchBits,
    pub hdr_data: HdrData,
    pub offset: Peer<Size>,
    pub mlength: Peer<Size>,
    pub inline: bool,
}

/// The next entry of a queue.
#[derive(Clone, Copy, Debug)]
pub enum EqNext {
    /// `PTL_EQ_EMPTY`.
    Nothing,
    /// A put without loss or failure.
    Arrival(PutArrival),
    /// Any other event, or an event after a loss: call [`crate::NetworkInterface::eq_next`].
    Other,
}

/// `ptl_eq_handler_t`: called with every event that is taken from a queue, by the thread that
/// takes it.
pub type EqHandler = fn(&PtlEvent);

/// Traffic of an interface since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NiCounters {
    /// Puts initiated here (a get-put counts as one put and one get).
    pub puts: u64,
    /// Gets initiated here.
    pub gets: u64,
    /// Bytes that these requested.
    pub bytes: u64,
    /// Of these, the messages that were framed for the target's own progress.
    pub framed: u64,
    /// Of these, the messages that went by remote access to memory instead.
    pub remote: u64,
    /// Messages to this interface that no descriptor accepted (`PTL_SR_DROP_COUNT`).
    pub dropped: u64,
    /// Frames of messages from here, sent or waiting.
    pub frames_sent: u64,
    /// Frames that arrived.
    pub frames_taken: u64,
    /// Connections or messages that were refused, as those of strangers.
    pub refused: u64,
}

impl NiLimits {
    /// The limits of an interface that is opened without any.
    pub const DEFAULT: NiLimits = NiLimits {
        max_mes: 1024,
        max_mds: 4096,
        max_eqs: 64,
        max_ac_index: 7,
        max_pt_index: 63,
        max_md_iovecs: 16,
        max_me_list: 1024,
        max_getput_md: 64,
    };
}
