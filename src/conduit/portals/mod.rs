//! The Portals 3.3 calls that the conduit makes: one trait, and one file or folder for each implementation.
//!
//! The conduit is generic over [`Portals`] and names nothing else of Portals, so it cannot tell whose library it
//! runs on. What the standard lacks and one machine's emulation can give is [`Extension`]; over a real libportals it
//! is absent and everything still works, only with ordinary memory and without a doorbell to sleep on.
//!
//! | file | what it owns |
//! |---|---|
//! | `emulation` | the trait over crate `portals3` (feature `emulation`) |
//! | `binding` | the trait over a libportals that was found when this library was built (feature `libportals`) |
//! | `trial` | what an unknown library must show of itself before it is trusted |

#[cfg(feature = "libportals")]
pub mod binding;
#[cfg(feature = "emulation")]
pub mod emulation;
#[cfg(any(feature = "libportals", test))]
pub mod trial;

/// Address of a process (`ptl_process_id_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortalsId {
    /// Node id.
    pub nid: u32,
    /// Process id.
    pub pid: u32,
}

/// The bits of a memory descriptor's options that the conduit uses, by their names in the specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MdFlags {
    /// `PTL_MD_OP_PUT`
    pub op_put: bool,
    /// `PTL_MD_OP_GET`
    pub op_get: bool,
    /// `PTL_MD_MANAGE_REMOTE`
    pub manage_remote: bool,
    /// `PTL_MD_TRUNCATE`
    pub truncate: bool,
    /// `PTL_MD_ACK_DISABLE`
    pub ack_disable: bool,
    /// `PTL_MD_EVENT_START_DISABLE`
    pub event_start_disable: bool,
    /// `PTL_MD_EVENT_END_DISABLE`
    pub event_end_disable: bool,
}

/// What a memory descriptor covers (`ptl_md_t`); its threshold is always infinite.
#[derive(Clone, Copy, Debug)]
pub struct MdSpec<Eq> {
    /// First byte.
    pub start: *mut u8,
    /// Bytes.
    pub length: usize,
    /// `PTL_MD_MAX_SIZE` with this size: less room than this makes the descriptor inactive.
    pub max_size: Option<usize>,
    /// Options.
    pub flags: MdFlags,
    /// Comes back in [`MdEvent::user`]: tells which kind of descriptor an event is about.
    pub user: usize,
    /// Event queue, if any.
    pub eq: Option<Eq>,
}

/// Where a match entry goes.
#[derive(Clone, Copy, Debug)]
pub enum EntryPosition<Me> {
    /// At the head of the list of this portal table entry (`PtlMEAttach` with `PTL_INS_BEFORE`).
    Head(u32),
    /// At the tail of the list of this portal table entry (`PtlMEAttach` with `PTL_INS_AFTER`).
    Tail(u32),
    /// Just before this entry (`PtlMEInsert` with `PTL_INS_BEFORE`).
    Before(Me),
}

/// The kinds of events that the conduit acts upon; START events are disabled on all its descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MdEventKind {
    /// A put of somebody arrived here.
    PutEnd,
    /// A get of somebody was answered here.
    GetEnd,
    /// The answer to our get arrived.
    ReplyEnd,
    /// Our put left: its source may be reused.
    SendEnd,
    /// Our put reached its target.
    Ack,
    /// A locally managed descriptor was full and is gone.
    Unlink,
    /// Anything else; ignored.
    Other,
}

/// The part of `ptl_event_t` that the conduit uses.
#[derive(Clone, Copy, Debug)]
pub struct MdEvent {
    /// What happened.
    pub kind: MdEventKind,
    /// [`MdSpec::user`] of the descriptor.
    pub user: usize,
    /// The match bits as sent.
    pub match_bits: u64,
    /// Immediate data of a put.
    pub hdr_data: u64,
    /// First byte of the descriptor.
    pub start: *mut u8,
    /// Where in the descriptor, in bytes.
    pub offset: usize,
    /// Bytes accepted.
    pub mlength: usize,
    /// Whether bytes travelled in the event itself, by [`Portals::put_inline`].
    pub inline: bool,
}

/// Bytes that travel in the event of their put, by words.
pub type InlineBody = [u64; 4];

/// What an event queue had.
#[derive(Clone, Copy, Debug)]
pub enum EqResult {
    /// `PTL_EQ_EMPTY`.
    Empty,
    /// `PTL_OK`.
    Event(MdEvent),
    /// `PTL_EQ_DROPPED`: this event, and at least one was lost before it.
    AfterLoss(MdEvent),
}

/// What an event queue has next, where that can be told cheaply.
// With a tag of its own, not in a gap of the event: then compilers see which way it takes.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum NextEvent {
    /// `PTL_EQ_EMPTY`.
    Nothing,
    /// A put of somebody has arrived, and that is all: this event, of kind [`MdEventKind::PutEnd`].
    Arrival(MdEvent),
    /// Whatever [`Portals::eq_get`] gives.
    Other,
}

/// Why a Portals call failed: the call and the specification's name of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortalsError {
    /// `PtlMDBind`, say.
    pub call: &'static str,
    /// `PTL_NO_SPACE`, say.
    pub code: &'static str,
}

/// [`PortalsError::code`] of a put or get that was started and did not arrive.
pub const NI_FAIL: &str = "PTL_NI_FAIL";

impl PortalsError {
    /// What the event of such a transfer tells.
    pub const TRANSFER: PortalsError = PortalsError { call: "a put or get", code: NI_FAIL };
}

/// Why an interface cannot be opened: text for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError(pub alloc::string::String);

impl core::fmt::Display for OpenError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::fmt::Display for PortalsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} failed: {}", self.call, self.code)
    }
}

/// One Portals 3.3 network interface.
///
/// All calls may be made from several threads at once. Handles are used with the interface that gave them, queues until they are freed.
pub trait Portals: Send + Sync + 'static {
    /// `ptl_handle_eq_t`
    type Eq: Copy + Send + Sync + core::fmt::Debug;
    /// `ptl_handle_me_t`
    type Me: Copy + Send + Sync + core::fmt::Debug;
    /// `ptl_handle_md_t`
    type Md: Copy + Send + Sync + PartialEq + core::fmt::Debug;

    /// `PtlGetId`
    fn id(&self) -> PortalsId;

    /// `PtlEQAlloc` with room for at least `count` events, without a handler.
    fn eq_alloc(&self, count: usize) -> Result<Self::Eq, PortalsError>;
    /// `PtlEQFree`
    fn eq_free(&self, eq: Self::Eq) -> Result<(), PortalsError>;
    /// `PtlEQGet`. Of one queue, no two threads take at a time. Bytes that travelled in the event are written to `inline`, here and below.
    fn eq_get(&self, eq: Self::Eq, inline: &mut InlineBody) -> Result<EqResult, PortalsError>;
    /// What [`Portals::eq_get`] may do before it looks, for the two calls that follow, which do not.
    #[inline(always)]
    fn progress(&self) {}
    /// [`Portals::eq_get`] for the most frequent event alone.
    #[inline(always)]
    fn eq_next(&self, eq: Self::Eq, inline: &mut InlineBody) -> NextEvent {
        let _ = (eq, inline);
        NextEvent::Other
    }
    /// Whether [`Portals::eq_get`] would find nothing in this queue, where that can be told for less than the call costs.
    #[inline(always)]
    fn eq_is_quiet(&self, eq: Self::Eq) -> bool {
        let _ = eq;
        false
    }
    /// A hint: what is sent next is no part of a burst that was sent before. Who polls waits for something, or answers.
    #[inline(always)]
    fn burst_ends(&self) {}

    /// `PtlMEAttach` or `PtlMEInsert` for messages of any process; `PTL_UNLINK` if `unlink`.
    fn me_attach(
        &self,
        place: EntryPosition<Self::Me>,
        match_bits: u64,
        ignore_bits: u64,
        unlink: bool,
    ) -> Result<Self::Me, PortalsError>;
    /// `PtlMEUnlink`
    fn me_unlink(&self, me: Self::Me) -> Result<(), PortalsError>;
    /// `PtlMDAttach`
    ///
    /// # Safety
    /// The memory must stay valid until the descriptor is gone; peers write it (`op_put`) and read it (`op_get`).
    unsafe fn md_attach(
        &self,
        me: Self::Me,
        md: &MdSpec<Self::Eq>,
        unlink: bool,
    ) -> Result<Self::Md, PortalsError>;
    /// `PtlMDBind`: a free-floating descriptor, never a target.
    ///
    /// # Safety
    /// The memory must stay valid until the last event of the last operation with the descriptor; gets write it.
    unsafe fn md_bind(&self, md: &MdSpec<Self::Eq>) -> Result<Self::Md, PortalsError>;
    /// `PtlMDUnlink`; a descriptor that is gone already (`PTL_MD_INVALID`) counts as success.
    fn md_unlink(&self, md: Self::Md) -> Result<(), PortalsError>;

    /// `PtlPutRegion` (access control index 0).
    #[allow(clippy::too_many_arguments)]
    fn put(
        &self,
        md: Self::Md,
        local_offset: usize,
        length: usize,
        ack: bool,
        target: PortalsId,
        pt_index: u32,
        match_bits: u64,
        remote_offset: usize,
        hdr_data: u64,
    ) -> Result<(), PortalsError>;
    /// `PtlGetRegion` (access control index 0).
    #[allow(clippy::too_many_arguments)]
    fn get(
        &self,
        md: Self::Md,
        local_offset: usize,
        length: usize,
        target: PortalsId,
        pt_index: u32,
        match_bits: u64,
        remote_offset: usize,
    ) -> Result<(), PortalsError>;

    /// A put from plain memory that is complete, without an event here, when this returns; with `false` nothing was done, and
    /// [`Portals::put`] is the way. Its bytes are those of the pieces, each a first byte and a length, one after the other. Beyond
    /// the standard: only a network that reaches the target's memory from here can know.
    ///
    /// # Safety
    /// The pieces must be readable.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    unsafe fn put_at_once<const N: usize>(
        &self,
        from: [(*const u8, usize); N],
        target: PortalsId,
        pt_index: u32,
        match_bits: u64,
        remote_offset: usize,
        hdr_data: u64,
    ) -> bool {
        let _ = (from, target, pt_index, match_bits, remote_offset, hdr_data);
        false
    }

    /// Whether [`Portals::put_inline`] may give anything but `false`.
    const INLINES: bool = false;

    /// A put whose bytes travel in its event, and otherwise an empty put at offset 0. It is complete, without an event here, when this
    /// returns; with `false` nothing was done. Beyond the standard: some networks do the same with the entries of their completion
    /// queues.
    #[inline(always)]
    fn put_inline(
        &self,
        inline: &InlineBody,
        target: PortalsId,
        pt_index: u32,
        match_bits: u64,
        hdr_data: u64,
    ) -> bool {
        let _ = (inline, target, pt_index, match_bits, hdr_data);
        false
    }

    /// A hint: a put of so many bytes to this process, with such match bits, will follow soon.
    #[inline(always)]
    fn about_to_put(&self, target: PortalsId, pt_index: u32, match_bits: u64, bytes: usize) {
        let _ = (target, pt_index, match_bits, bytes);
    }

    /// A get to plain memory, as [`Portals::put_at_once`].
    ///
    /// # Safety
    /// `to` must be writable for `length` bytes.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    unsafe fn get_at_once(
        &self,
        to: *mut u8,
        length: usize,
        target: PortalsId,
        pt_index: u32,
        match_bits: u64,
        remote_offset: usize,
    ) -> bool {
        let _ = (to, length, target, pt_index, match_bits, remote_offset);
        false
    }

    /// Whether a REPLY event has the match bits of its get, as the specification demands. Where it has not, the conduit
    /// knows its gets by a descriptor for each.
    fn echoes_match_bits(&self) -> bool {
        true
    }

    /// Largest message in bytes.
    fn max_transfer(&self) -> usize {
        usize::MAX
    }

    /// What travelled, for checks that say that traffic really went this way.
    fn counters(&self) -> TrafficCounters;

    /// What this library has beyond the standard, if anything.
    fn extension(&self) -> Option<&dyn Extension>;
}

/// What the Portals standard lacks and an emulation on one machine can give.
pub trait Extension: Send + Sync {
    /// Zeroed memory for a descriptor that peers target, where they can reach it without our help; never freed.
    /// `None` when the space set aside at start is used up.
    fn alloc_library_memory(&self, bytes: usize, align: usize) -> Option<*mut u8>;

    /// Where the memory of which [`Extension::alloc_library_memory`] gives is mapped here, of a process that is open: first byte, and
    /// bytes, which are as many in all processes. `None` where it is not.
    fn library_memory(&self, of: PortalsId) -> Option<(*mut u8, usize)>;

    /// Tells that `len` bytes from `base` are shared with the processes of this host; `peers[pid]` is where the
    /// same bytes of the segment of process `pid` (on this host) are mapped here, null where they are not, and
    /// `lens[pid]` their length.
    ///
    /// # Safety
    /// The mappings must stay until the process ends.
    unsafe fn expose_segments(&self, base: *mut u8, len: usize, peers: &[*mut u8], lens: &[usize]);

    /// Where the memory lies that the processes of this host share for the network itself: first byte, bytes.
    fn mapped(&self) -> (*mut u8, usize);

    /// The doorbell's count: changes whenever an event has been posted to any queue of ours since the last
    /// [`Extension::sleep`] armed it. Taken before the last look at the queues.
    fn doorbell(&self) -> u32;

    /// Sleeps until an event is posted to any queue of ours, `seen` is no longer [`Extension::doorbell`], or
    /// `timeout_ns` has passed.
    fn sleep(&self, seen: u32, timeout_ns: u64);

    /// Wakes the processes of this host that sleep on their doorbells, because something in memory that we share with
    /// them has changed; the change must have been made before the call.
    fn ring_peers(&self);

    /// Wakes the threads of this process that sleep on the doorbell, because this thread has served what one of them may
    /// be waiting for. One that is just falling asleep may be missed.
    fn ring_self(&self);

    /// The rank-on-host of a process that holds something we have been waiting for (an unpublished slot, a lock
    /// word), if there is one now.
    fn blocked_by(&self) -> Option<u32>;
}

/// What travelled through an interface since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounters {
    /// Puts that were initiated here.
    pub puts: u64,
    /// Gets that were initiated here.
    pub gets: u64,
    /// Bytes of both; of a put whose bytes travelled in its event as many as an event has room for.
    pub bytes: u64,
    /// Messages that had to be framed for the target's own progress, as far as the library tells.
    pub framed: u64,
    /// Messages to this interface that found no match entry (`PTL_SR_DROP_COUNT`).
    pub dropped: u64,
}
