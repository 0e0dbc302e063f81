//! The Portals 3.3 calls that the conduit makes: trait [`Portals`], two optional traits beyond
//! it, and one implementation for each network.
//!
//! The conduit is generic over [`Portals`], the verbs of the specification. What a network does
//! beyond them for a peer whose memory it has mapped is [`Direct`]; the conduit requests it per
//! peer. What it shares with the processes of this host (memory, a doorbell) is [`SharedHost`],
//! which the upper layers use too. Over a real libportals both are absent and everything works.
//!
//! | file | what it owns |
//! |---|---|
//! | `direct` | the traits beyond the specification |
//! | `emulation` | all three traits over crate `portals3` (feature `emulation`) |
//! | `binding` | `Portals` over a libportals that was found when this library was built (feature `libportals`) |
//! | `trial` | what an unknown library must do before the conduit relies on it |

#[cfg(feature = "libportals")]
pub mod binding;
mod direct;
#[cfg(feature = "emulation")]
pub mod emulation;
#[cfg(feature = "emulation")]
mod emulation_descriptors;
#[cfg(feature = "emulation")]
mod emulation_error;
#[cfg(feature = "emulation")]
mod emulation_limits;
#[cfg(feature = "emulation")]
mod rank_table;
#[cfg(feature = "emulation")]
mod remote_ranks;
#[cfg(any(feature = "libportals", test))]
pub mod trial;
#[cfg(feature = "emulation")]
pub(in crate::conduit) mod wire_choice;

use super::pinned_config::SegmentBlocks;
use crate::client_memory::{AddressSpace, Dst, Src};
use alloc::string::String;
#[cfg(any(feature = "libportals", test))]
pub use direct::NoDirect;
pub use direct::{Direct, InlineBody, NextEvent, SCATTERED, ScatteredRma, SharedHost};
use sys::peer::Peer;

/// Address of a process (`ptl_process_id_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortalsId {
    /// Node id.
    pub nid: u32,
    /// Process id.
    pub pid: u32,
}

/// Where a put or get goes, and what travels with it. Access control index 0 is meant.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The process.
    pub process: PortalsId,
    /// Its portal table entry.
    pub portal: u32,
    /// Match bits.
    pub bits: u64,
    /// Offset in the descriptor that matches, in bytes, if the initiator manages it.
    pub offset: usize,
    /// Immediate data of a put; a get has none.
    pub hdr_data: u64,
}

/// Part of a memory descriptor: the local side of a put or get.
#[derive(Clone, Copy, Debug)]
pub struct MdPart<Md> {
    /// The descriptor.
    pub md: Md,
    /// First byte, as an offset in it.
    pub offset: usize,
    /// Bytes.
    pub len: usize,
}

/// The bits of a memory descriptor's options that the conduit uses, by their names in the
/// specification.
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

impl MdFlags {
    /// Of a descriptor without bytes that matches every put and get, and refuses it: it accepts
    /// none of its bytes, and the acknowledgement or the reply says so.
    pub fn refusing() -> MdFlags {
        MdFlags {
            op_put: true,
            op_get: true,
            truncate: true,
            event_start_disable: true,
            event_end_disable: true,
            ..MdFlags::default()
        }
    }

    /// Of a descriptor that puts of peers land in, at the offset that they name. Each leaves one
    /// event; none is acknowledged.
    pub fn landing() -> MdFlags {
        MdFlags {
            op_put: true,
            manage_remote: true,
            ack_disable: true,
            event_start_disable: true,
            ..MdFlags::default()
        }
    }
}

/// The bytes that a memory descriptor covers. They stay valid until the last operation with the
/// descriptor is complete, which the types ensure.
#[derive(Clone, Copy, Debug)]
pub enum MdRegion {
    /// Nothing writes them: the descriptor is only the source of puts.
    Source(Src<'static>),
    /// Operations read and write them.
    Target(Dst<'static>),
    /// The same in memory that ranks do not share. Peers reach it where the kernel lets them
    /// attach to this process. Elsewhere its calls serve them.
    Unshared(Dst<'static>),
    /// All memory of this process: operations read and write what clients name.
    AddressSpace,
}

impl MdRegion {
    /// No bytes.
    pub const EMPTY: MdRegion = MdRegion::Target(Dst::empty());

    /// First byte.
    #[inline]
    pub const fn start(self) -> *mut u8 {
        match self {
            MdRegion::Source(bytes) => bytes.as_ptr().cast_mut(),
            MdRegion::Target(bytes) | MdRegion::Unshared(bytes) => bytes.as_ptr(),
            MdRegion::AddressSpace => AddressSpace::here().as_ptr(),
        }
    }

    /// Bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            MdRegion::Source(bytes) => bytes.len(),
            MdRegion::Target(bytes) | MdRegion::Unshared(bytes) => bytes.len(),
            MdRegion::AddressSpace => AddressSpace::BYTES,
        }
    }

    /// Inverts a bit of the byte at `offset`, where a get has just written: a planted fault.
    pub(super) fn flip(self, offset: usize) {
        if let MdRegion::Target(bytes) | MdRegion::Unshared(bytes) = self {
            bytes.flip(offset);
        }
    }
}

impl From<Dst<'static>> for MdRegion {
    #[inline]
    fn from(memory: Dst<'static>) -> MdRegion {
        MdRegion::Target(memory)
    }
}

impl From<Src<'static>> for MdRegion {
    #[inline]
    fn from(memory: Src<'static>) -> MdRegion {
        MdRegion::Source(memory)
    }
}

/// Pieces of [`Portals::md_bind_pieces`] that a caller collects.
pub const MOST_PIECES: usize = 16;

/// What a memory descriptor is (`ptl_md_t`); its threshold is always infinite.
#[derive(Clone, Copy, Debug)]
pub struct MdSpec<'a, Eq> {
    /// What it covers.
    pub region: MdRegion,
    /// `PTL_MD_MAX_SIZE` with this size: less space than this makes the descriptor inactive.
    pub max_size: Option<usize>,
    /// Options.
    pub flags: MdFlags,
    /// Comes back in [`MdEvent::user`]: names the descriptor of an event.
    pub user: usize,
    /// Event queue, if any.
    pub eq: Option<&'a Eq>,
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

/// The kinds of events that the conduit handles; START events are disabled on all its
/// descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MdEventKind {
    /// A put of a peer arrived here.
    PutEnd,
    /// A get of a peer was answered here.
    GetEnd,
    /// The answer to our get arrived.
    ReplyEnd,
    /// Our put left: its source may be reused.
    SendEnd,
    /// Our put reached its target.
    Ack,
    /// A locally managed descriptor was full and has been unlinked.
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
    /// Address of the first byte of the descriptor: to be compared, not to be used.
    pub start: usize,
    /// Where in the descriptor, in bytes. Other processes can write the events of some networks.
    pub offset: Peer<usize>,
    /// Bytes accepted.
    pub mlength: Peer<usize>,
    /// Whether the bytes travelled in the event itself, by [`Direct::put_inline`].
    pub inline: bool,
}

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

/// Why a Portals call failed: the call and the specification's name of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortalsError {
    /// `PtlMDBind`, say.
    pub call: &'static str,
    /// `PTL_NO_SPACE`, say.
    pub code: &'static str,
}

/// [`PortalsError::code`] of an unlink of a descriptor that the network uses.
pub const IN_USE: &str = "PTL_MD_IN_USE";

/// How often a descriptor is found in use before that is an error; a minute at least.
const TRIES_TO_UNLINK: u32 = 600_000;
/// Tries before each one follows a sleep of 0.1 ms.
const QUICK_TRIES: u32 = 1000;

#[cold]
#[inline(never)]
fn unlink_later(try_unlink: impl Fn() -> Result<(), PortalsError>) -> Result<(), PortalsError> {
    let mut tries = 0;
    loop {
        sys::thread::yield_or_sleep(tries, QUICK_TRIES);
        match try_unlink() {
            Err(e) if e.code == IN_USE && tries < TRIES_TO_UNLINK => tries += 1,
            ended => return ended,
        }
    }
}

/// [`PortalsError::code`] of a put or get that was started and did not arrive.
pub const NI_FAIL: &str = "PTL_NI_FAIL";

impl PortalsError {
    /// What the event of such a transfer reports.
    pub const TRANSFER: PortalsError = PortalsError { call: "a put or get", code: NI_FAIL };
}

/// Why an interface cannot be opened: text for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// What happened.
    pub cause: String,
    /// What to do: a sentence.
    pub remedy: String,
}

impl OpenError {
    /// An error of these words.
    pub fn new(cause: impl Into<String>, remedy: impl Into<String>) -> OpenError {
        OpenError { cause: cause.into(), remedy: remedy.into() }
    }
}

impl core::fmt::Display for PortalsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} failed: {}", self.call, self.code)
    }
}

/// One Portals 3.3 network interface: the verbs of the specification.
///
/// All calls may be made from several threads at once. Handles are used with the interface that
/// gave them, queues until they are freed.
pub trait Portals: Send + Sync + 'static {
    /// `ptl_handle_eq_t`, and what it takes to look at the queue often.
    type Eq: Clone + Send + Sync + core::fmt::Debug;
    /// `ptl_handle_me_t`
    type Me: Copy + Send + Sync + core::fmt::Debug;
    /// `ptl_handle_md_t`
    type Md: Copy + Send + Sync + PartialEq + core::fmt::Debug;
    /// The fast path of this network.
    type Direct: Direct<Eq = Self::Eq>;

    /// `PtlGetId`
    fn id(&self) -> PortalsId;

    /// `PtlEQAlloc` with space for at least `count` events, without a handler.
    fn eq_alloc(&self, count: usize) -> Result<Self::Eq, PortalsError>;
    /// `PtlEQFree`
    fn eq_free(&self, eq: Self::Eq) -> Result<(), PortalsError>;
    /// `PtlEQGet`. No two threads take from one queue at a time. Bytes that travelled in the event
    /// are written to `inline`.
    fn eq_get(&self, eq: &Self::Eq, inline: &mut InlineBody) -> Result<EqResult, PortalsError>;

    /// `PtlMEAttach` or `PtlMEInsert` for messages of any process; `PTL_UNLINK` if `unlink`.
    fn me_attach(
        &self,
        position: EntryPosition<Self::Me>,
        match_bits: u64,
        ignore_bits: u64,
        unlink: bool,
    ) -> Result<Self::Me, PortalsError>;
    /// `PtlMEUnlink`
    fn me_unlink(&self, me: Self::Me) -> Result<(), PortalsError>;
    /// `PtlMDAttach`: peers write the memory (`op_put`) and read it (`op_get`).
    fn md_attach(
        &self,
        me: Self::Me,
        md: &MdSpec<'_, Self::Eq>,
        unlink: bool,
    ) -> Result<Self::Md, PortalsError>;
    /// `PtlMDBind`: a free-floating descriptor, never a target.
    fn md_bind(&self, md: &MdSpec<'_, Self::Eq>) -> Result<Self::Md, PortalsError>;
    /// `PtlMDBind` with `PTL_MD_IOVEC`: as [`Portals::md_bind`], but the bytes are those of these
    /// pieces, [`Portals::most_pieces`] at most, instead of those of a region.
    fn md_bind_pieces(
        &self,
        pieces: &[Dst<'static>],
        md: &MdSpec<'_, Self::Eq>,
    ) -> Result<Self::Md, PortalsError> {
        let _ = (pieces, md);
        Err(PortalsError { call: "PtlMDBind", code: "PTL_MD_ILLEGAL" })
    }
    /// `max_md_iovecs` of the interface, as far as the conduit uses them.
    fn most_pieces(&self) -> usize {
        1
    }
    /// `PtlMDUnlink`; a descriptor that no longer exists (`PTL_MD_INVALID`) counts as success.
    /// Waits while it is in use: its last event may come before the library, or the process or
    /// thread that delivers, has let go of it.
    fn md_unlink(&self, md: Self::Md) -> Result<(), PortalsError> {
        match self.md_try_unlink(md) {
            Err(e) if e.code == IN_USE => unlink_later(|| self.md_try_unlink(md)),
            ended => ended,
        }
    }

    /// `PtlMDUnlink`, which fails with `PTL_MD_IN_USE` where [`Portals::md_unlink`] waits.
    fn md_try_unlink(&self, md: Self::Md) -> Result<(), PortalsError>;

    /// An extension: peers of other hosts may put to this descriptor, and get from it, without
    /// events and calls of this process, if the network can. Then such messages may overtake
    /// others of the pair, and the descriptor stays as it is. It covers static memory, has no
    /// queue, and is the first of its list that matches what it matches.
    fn expose_remotely(
        &self,
        md: Self::Md,
        blocks: impl FnOnce() -> SegmentBlocks,
    ) -> Result<(), PortalsError> {
        let _ = (md, blocks);
        Ok(())
    }

    /// `PtlPutRegion`
    fn put(&self, from: MdPart<Self::Md>, ack: bool, to: &Target) -> Result<(), PortalsError>;
    /// `PtlGetRegion`
    fn get(&self, to: MdPart<Self::Md>, from: &Target) -> Result<(), PortalsError>;

    /// Whether a REPLY event has the match bits of its get, as the specification demands. Where it
    /// has not, the conduit gives each get a descriptor of its own.
    fn echoes_match_bits(&self) -> bool {
        true
    }
    /// Whether a descriptor of memory that is missing is refused (`PTL_SEGV`), and a put to memory
    /// that is read-only fails.
    fn checks_memory(&self) -> bool {
        true
    }
    /// Whether queues may hold events of kinds that the specification does not name for a
    /// descriptor, or that its flags disable. Some Portals post such events; they are ignored.
    fn posts_further_kinds(&self) -> bool {
        true
    }
    /// Whether puts and gets of peers complete here while this process does not call the network,
    /// as far as that is known. Also true if a doorbell wakes it for them. All processes have
    /// opened their interfaces.
    fn has_bypass(&self) -> bool {
        true
    }
    /// Calls `send`, which initiates several messages to a process of another host. A network that
    /// can sends them together.
    fn together(&self, send: &mut dyn FnMut()) {
        send();
    }
    /// Whether puts and gets of processes of other hosts complete in segments that are exposed
    /// ([`Portals::expose_remotely`]) while this process does not call the network.
    fn has_remote_bypass(&self) -> bool {
        true
    }
    /// Largest message in bytes.
    fn max_transfer(&self) -> usize {
        usize::MAX
    }
    /// What travelled through the interface.
    fn counters(&self) -> TrafficCounters;

    /// The fast path to this process; `None` if the network has not mapped its memory.
    fn direct(&self, peer: PortalsId) -> Option<&Self::Direct>;
    /// The fast path to the queues of this process itself, if the network has one.
    fn direct_to_self(&self) -> Option<&Self::Direct>;
    /// What the network shares with the processes of this host, if anything.
    fn shared_host(&self) -> Option<&dyn SharedHost>;
}

/// What travelled through an interface since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounters {
    /// Puts that were initiated here.
    pub puts: u64,
    /// Gets that were initiated here.
    pub gets: u64,
    /// Bytes of both; a put whose bytes travel in its event counts as a full [`InlineBody`].
    pub bytes: u64,
    /// Messages that had to be framed for the target's own progress, as far as the library
    /// reports.
    pub framed: u64,
    /// Of these, those that went by remote access to memory instead, without the target.
    pub remote: u64,
    /// Messages to this interface that found no match entry (`PTL_SR_DROP_COUNT`).
    pub dropped: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn a_descriptor_that_is_let_go_late_is_unlinked() {
        let error = |code| Err(PortalsError { call: "PtlMDUnlink", code });
        let tries = Cell::new(0);
        let until = |last: u32, then: Result<(), PortalsError>| {
            tries.set(0);
            let ended = unlink_later(|| {
                tries.set(tries.get() + 1);
                if tries.get() < last { error(IN_USE) } else { then }
            });
            (ended.map_err(|e| e.code), tries.get())
        };
        assert_eq!(until(QUICK_TRIES + 20, Ok(())), (Ok(()), QUICK_TRIES + 20));
        assert_eq!(until(1, error("PTL_FAIL")), (Err("PTL_FAIL"), 1));
    }
}
