//! The portals3 emulation as the conduit sees it.
//!
//! Owns the translation between [`super::Portals`] and [`portals3::NetworkInterface`], and the
//! size of the arena; nothing else. Opened by `conduit::network`, used by the conduit.
//! Invariant: names and meanings on both sides are the specification's: a method is one call.

use super::emulation_descriptors::{NO_PIECE, expose_remotely, md, md_of_pieces};
use super::emulation_error::{error, no_memory};
use super::emulation_limits::{arena_bytes, limits};
use super::rank_table::{RankTable, refused};
use super::remote_ranks::{self, RemoteRanks};
use super::{
    Direct, EntryPosition, EqResult, InlineBody, MOST_PIECES, MdEvent, MdEventKind, MdPart,
    MdRegion, MdSpec, NextEvent, OpenError, Portals, PortalsError, PortalsId, SCATTERED,
    ScatteredRma, SharedHost, Target, TrafficCounters,
};
use crate::boot::bootstrap::WireStart;
use crate::client_memory::{Dst, Src};
use crate::conduit::{Config, SegmentBlocks};
use crate::env::WireKind;
use crate::rank::LocalRank;
use crate::{fault, report};
use portals3::nal::shm::{AttachPolicy, Fabric, FabricSpec};
use portals3::{
    AckReq, Damage, EqWatch, InsPos, MdHandle, MdIovec, MeHandle, NetworkInterface, NiFail,
    ScatteredPiece, Unlink,
};
use std::os::fd::{AsFd, OwnedFd};
use sys::memory;

/// One interface of the emulation.
pub struct Emulation {
    interface: NetworkInterface,
    /// Whether peers may target any memory that is registered.
    registers: bool,
    others: Option<RemoteRanks>,
}

impl core::fmt::Debug for Emulation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Emulation").field("id", &self.interface.id()).finish_non_exhaustive()
    }
}

impl Emulation {
    /// The interface of the process with this rank among those on this host, whose arenas share
    /// the file `arena`. Peers can be addressed once they have returned from this too; those of
    /// other hosts once [`Emulation::connect`] was called. `hosts`: the ranks of each host;
    /// `own`: the number of this one.
    ///
    /// # Errors
    /// There is no memory for the arena, or no network to the other hosts.
    pub fn open(
        arena: OwnedFd,
        rank: LocalRank,
        (hosts, own): (&[u32], u32),
        wire: Option<WireStart>,
        config: &Config,
    ) -> Result<Emulation, OpenError> {
        let size = hosts[own as usize];
        let bytes = arena_bytes(config);
        let no_arena = |e| no_memory(format_args!("no arena for Portals: {e}"));
        // Arenas get pages when they are touched: then the kernel would kill for lack of one.
        if rank == LocalRank(0) {
            let bytes = bytes as u64 * u64::from(size);
            memory::check_available(arena.as_fd(), bytes).map_err(no_arena)?;
        }
        let spec = FabricSpec {
            arena,
            index: rank.0,
            size,
            bytes,
            nid: own,
            jid: 0,
            attach: match fault::on("frames") {
                true => AttachPolicy::Denied,
                false => AttachPolicy::Allowed,
            },
        };
        let fabric = Fabric::join(spec).map_err(no_arena)?;
        let limits = Some(limits(config));
        let Some(wire) = wire else {
            return Self::over(
                NetworkInterface::shm(fabric, limits),
                config,
                RankTable::default(),
            )
            .map_err(no_memory);
        };
        let (wire, others) = RemoteRanks::open(wire, hosts.iter().sum())?;
        let interface = NetworkInterface::joined(fabric, hosts, wire, limits);
        let emulation = Self::over(interface, config, others.ranks()).map_err(no_memory)?;
        remote_ranks::admit_all_users(&emulation.interface, ANY_PROCESS).map_err(no_memory)?;
        Ok(Emulation { others: Some(others), ..emulation })
    }

    /// What connects this process with ranks of other hosts, if there are such.
    pub fn wire_kind(&self) -> Option<WireKind> {
        self.others.as_ref().map(RemoteRanks::kind)
    }

    /// Where this process listens for ranks of other hosts; empty if there are none.
    pub fn wire_address(&self) -> &[u8] {
        self.others.as_ref().map_or(&[], RemoteRanks::address)
    }

    /// Says where the ranks of other hosts listen: the addresses of all ranks, by rank, and what
    /// each has as [`Emulation::wire_address`].
    ///
    /// # Errors
    /// These are not the ranks of the hosts of [`Emulation::open`].
    pub fn connect(&self, ranks: &[PortalsId], addresses: &[Vec<u8>]) -> Result<(), PortalsError> {
        let Some(others) = &self.others else { return Ok(()) };
        others.check_providers(addresses);
        let mut all: Vec<_> = ranks.iter().map(|id| (id.nid, id.pid)).zip(addresses).collect();
        all.sort_unstable();
        let all: Vec<u8> = all.into_iter().flat_map(|(_, address)| address).copied().collect();
        others.set_ranks(ranks.to_vec());
        self.interface.connect(all.into()).map_err(|e| error("PtlNIInit", e))
    }

    /// The interface of the only process of a job, whose arena no other process can map.
    ///
    /// # Errors
    /// There is no memory for the arena.
    pub fn loopback(config: &Config) -> Result<Emulation, OpenError> {
        let interface = NetworkInterface::loopback(Some(limits(config)));
        Self::over(interface, config, RankTable::default()).map_err(no_memory)
    }

    /// An interface of the limits that `config` needs, made ready for its threads. `ranks` will
    /// say which processes have which ranks.
    fn over(
        interface: Result<NetworkInterface, portals3::PtlError>,
        config: &Config,
        ranks: RankTable,
    ) -> Result<Emulation, PortalsError> {
        let mut interface = interface.map_err(|e| error("PtlNIInit", e))?;
        interface.set_damage_handler(damaged);
        interface.set_access_handler(Box::new(move |fault| refused(fault, &ranks)));
        // Credits and tickets bound what is sent to each descriptor and queue.
        interface.expect_no_loss();
        if config.registers {
            interface.demand_registration(config.pt_rar.max(config.pt_am) + 1);
        }
        if config.threads == 1 && !config.wire_thread {
            // SAFETY: a conduit that is configured for one thread is never called by two at once,
            // and no thread of the library calls the interface.
            unsafe { interface.set_single_threaded() };
        }
        Ok(Emulation { interface, registers: config.registers, others: None })
    }

    /// Starts the thread that delivers what other hosts send.
    ///
    /// # Errors
    /// The system allows no further thread.
    pub fn start_wire_thread(&'static self) -> std::io::Result<()> {
        remote_ranks::start_thread(&self.interface)
    }

    /// The interface itself.
    pub fn interface(&self) -> &NetworkInterface {
        &self.interface
    }
}

/// Ends the job: memory that the ranks of this host share was overwritten.
#[cold]
fn damaged(damage: &Damage) {
    report::damaged(format_args!(
        "the memory that this rank shares with the ranks of its host is damaged: {damage}"
    ))
}

#[inline]
fn from_ptl(id: portals3::PtlProcessId) -> PortalsId {
    PortalsId { nid: id.nid, pid: id.pid }
}

#[inline]
fn to_ptl(id: PortalsId) -> portals3::PtlProcessId {
    portals3::PtlProcessId { nid: id.nid, pid: id.pid }
}

fn unlink(yes: bool) -> Unlink {
    if yes { Unlink::Unlink } else { Unlink::Retain }
}

/// Access control entry 0 admits every process of the job.
const ANY_PROCESS: u32 = 0;

impl Portals for Emulation {
    type Eq = EqWatch;
    type Me = MeHandle;
    type Md = MdHandle;
    type Direct = Emulation;

    fn id(&self) -> PortalsId {
        from_ptl(self.interface.id())
    }

    fn posts_further_kinds(&self) -> bool {
        false
    }

    fn together(&self, send: &mut dyn FnMut()) {
        self.interface.together(send);
    }

    fn has_remote_bypass(&self) -> bool {
        self.interface.has_remote_bypass()
    }

    fn eq_alloc(&self, count: usize) -> Result<EqWatch, PortalsError> {
        let eq = self.interface.eq_alloc(count as u64, None);
        eq.and_then(|eq| self.interface.eq_watch(eq)).map_err(|e| error("PtlEQAlloc", e))
    }

    fn eq_free(&self, eq: EqWatch) -> Result<(), PortalsError> {
        self.interface.eq_free(eq.eq()).map_err(|e| error("PtlEQFree", e))
    }

    fn eq_get(&self, eq: &EqWatch, inline: &mut InlineBody) -> Result<EqResult, PortalsError> {
        let Some(e) = self.interface.eq_next(eq, inline) else { return Ok(EqResult::Empty) };
        if e.ni_fail != NiFail::Ok {
            if let Some(others) = &self.others {
                others.end_if_lost();
            }
            return Err(PortalsError::TRANSFER);
        }
        let event = MdEvent {
            kind: match e.kind {
                portals3::PtlEventKind::PutEnd => MdEventKind::PutEnd,
                portals3::PtlEventKind::GetEnd => MdEventKind::GetEnd,
                portals3::PtlEventKind::ReplyEnd => MdEventKind::ReplyEnd,
                portals3::PtlEventKind::SendEnd => MdEventKind::SendEnd,
                portals3::PtlEventKind::Ack => MdEventKind::Ack,
                portals3::PtlEventKind::Unlink => MdEventKind::Unlink,
                _ => MdEventKind::Other,
            },
            user: e.user_ptr.addr(),
            match_bits: e.match_bits,
            hdr_data: e.hdr_data,
            start: e.start.addr(),
            offset: e.offset.map(|offset| offset as usize),
            mlength: e.mlength.map(|length| length as usize),
            inline: e.inline,
        };
        Ok(if e.dropped { EqResult::AfterLoss(event) } else { EqResult::Event(event) })
    }

    fn me_attach(
        &self,
        position: EntryPosition<MeHandle>,
        match_bits: u64,
        ignore_bits: u64,
        unlink_with_md: bool,
    ) -> Result<MeHandle, PortalsError> {
        let (any, unlink) = (portals3::PtlProcessId::ANY, unlink(unlink_with_md));
        let attach = |pt, position| {
            self.interface.me_attach(pt, any, match_bits, ignore_bits, unlink, position)
        };
        match position {
            EntryPosition::Head(pt) => {
                attach(pt, InsPos::Before).map_err(|e| error("PtlMEAttach", e))
            }
            EntryPosition::Tail(pt) => {
                attach(pt, InsPos::After).map_err(|e| error("PtlMEAttach", e))
            }
            EntryPosition::Before(me) => self
                .interface
                .me_insert(me, any, match_bits, ignore_bits, unlink, InsPos::Before)
                .map_err(|e| error("PtlMEInsert", e)),
        }
    }

    fn me_unlink(&self, me: MeHandle) -> Result<(), PortalsError> {
        self.interface.me_unlink(me).map_err(|e| error("PtlMEUnlink", e))
    }

    fn md_attach(
        &self,
        me: MeHandle,
        spec: &MdSpec<'_, EqWatch>,
        auto: bool,
    ) -> Result<MdHandle, PortalsError> {
        // What peers target completes without our help.
        let (start, bytes) = (spec.region.start(), spec.region.bytes());
        assert!(
            self.registers
                || matches!(spec.region, MdRegion::Unshared(_) | MdRegion::AddressSpace)
                || self.interface.is_shared(start, bytes as u64),
            "{bytes} bytes at {start:p} that peers target are neither arena nor segment",
        );
        // SAFETY: the region stays valid and may be written, by the invariant of `MdRegion`.
        unsafe { self.interface.md_attach(me, &md(spec), unlink(auto)) }
            .map_err(|e| error("PtlMDAttach", e))
    }

    fn md_bind(&self, spec: &MdSpec<'_, EqWatch>) -> Result<MdHandle, PortalsError> {
        // SAFETY: the region stays valid until its operations are complete, by the invariant of
        // `MdRegion`.
        unsafe { self.interface.md_bind(&md(spec), Unlink::Retain) }
            .map_err(|e| error("PtlMDBind", e))
    }

    fn md_bind_pieces(
        &self,
        pieces: &[Dst<'static>],
        spec: &MdSpec<'_, EqWatch>,
    ) -> Result<MdHandle, PortalsError> {
        let mut entries = [NO_PIECE; MOST_PIECES];
        let md = md_of_pieces(pieces, &mut entries, spec);
        // SAFETY: the entries are readable during the call; the pieces stay valid until the
        // operations of the descriptor are complete, by the invariant of `Dst`.
        unsafe { self.interface.md_bind(&md, Unlink::Retain) }.map_err(|e| error("PtlMDBind", e))
    }

    fn most_pieces(&self) -> usize {
        MOST_PIECES.min(self.interface.limits().max_md_iovecs as usize)
    }

    fn md_try_unlink(&self, md: MdHandle) -> Result<(), PortalsError> {
        match self.interface.md_unlink(md) {
            Ok(()) | Err(portals3::PtlError::MdInvalid) => Ok(()),
            Err(e) => Err(error("PtlMDUnlink", e)),
        }
    }

    fn expose_remotely(
        &self,
        md: MdHandle,
        blocks: impl FnOnce() -> SegmentBlocks,
    ) -> Result<(), PortalsError> {
        expose_remotely(&self.interface, md, blocks)
    }

    #[inline]
    fn put(&self, from: MdPart<MdHandle>, ack: bool, to: &Target) -> Result<(), PortalsError> {
        let ack = if ack { AckReq::Ack } else { AckReq::NoAck };
        self.interface
            .put_region(
                from.md,
                from.offset as u64,
                from.len as u64,
                ack,
                to_ptl(to.process),
                to.portal,
                ANY_PROCESS,
                to.bits,
                to.offset as u64,
                to.hdr_data,
            )
            .map_err(|e| error("PtlPutRegion", e))
    }

    #[inline]
    fn get(&self, to: MdPart<MdHandle>, from: &Target) -> Result<(), PortalsError> {
        self.interface
            .get_region(
                to.md,
                to.offset as u64,
                to.len as u64,
                to_ptl(from.process),
                from.portal,
                ANY_PROCESS,
                from.bits,
                from.offset as u64,
            )
            .map_err(|e| error("PtlGetRegion", e))
    }

    fn counters(&self) -> TrafficCounters {
        let c = self.interface.counters();
        TrafficCounters {
            puts: c.puts,
            gets: c.gets,
            bytes: c.bytes,
            framed: c.framed,
            remote: c.remote,
            dropped: c.dropped,
        }
    }

    /// All processes of the interface are on this host and mapped.
    #[inline(always)]
    fn direct(&self, _: PortalsId) -> Option<&Emulation> {
        Some(self)
    }

    #[inline(always)]
    fn direct_to_self(&self) -> Option<&Emulation> {
        Some(self)
    }

    #[inline(always)]
    fn shared_host(&self) -> Option<&dyn SharedHost> {
        Some(self)
    }
}

impl Direct for Emulation {
    type Eq = EqWatch;

    #[inline(always)]
    fn put_inline(&self, inline: &InlineBody, to: &Target) -> bool {
        let process = to_ptl(to.process);
        self.interface.put_inline(inline, process, to.portal, ANY_PROCESS, to.bits, to.hdr_data)
    }

    #[inline(always)]
    fn put_at_once<const N: usize>(&self, from: [Src<'_>; N], to: &Target) -> bool {
        let from = from.map(|piece| MdIovec {
            base: piece.as_ptr().cast_mut().cast(),
            len: piece.len() as u64,
        });
        let (process, offset) = (to_ptl(to.process), to.offset as u64);
        let length = from.iter().map(|piece| piece.len).sum();
        // SAFETY: the pieces are readable, by the invariant of `Src`.
        let accepted = unsafe {
            self.interface.put_at_once(
                from,
                process,
                to.portal,
                ANY_PROCESS,
                to.bits,
                offset,
                to.hdr_data,
            )
        };
        accepted == Ok(Some(length))
    }

    #[inline]
    fn get_at_once(&self, to: Dst<'_>, from: &Target) -> bool {
        let (at, n) = (to.as_ptr(), to.len() as u64);
        let (process, offset) = (to_ptl(from.process), from.offset as u64);
        // SAFETY: the bytes are writable, by the invariant of `Dst`.
        let accepted = unsafe {
            self.interface.get_at_once(at, n, process, from.portal, ANY_PROCESS, from.bits, offset)
        };
        accepted == Ok(Some(n))
    }

    #[inline(always)]
    fn put_mapped(&self, from: Src<'_>, to: &Target) -> bool {
        let from = MdIovec { base: from.as_ptr().cast_mut().cast(), len: from.len() as u64 };
        let (process, offset) = (to_ptl(to.process), to.offset as u64);
        // SAFETY: the bytes are readable, by the invariant of `Src`.
        unsafe {
            self.interface.put_mapped(from, process, to.portal, ANY_PROCESS, to.bits, offset)
        }
    }

    #[inline]
    fn get_mapped(&self, to: Dst<'_>, from: &Target) -> bool {
        let to = MdIovec { base: to.as_ptr().cast(), len: to.len() as u64 };
        let (process, offset) = (to_ptl(from.process), from.offset as u64);
        // SAFETY: the bytes are writable, by the invariant of `Dst`.
        unsafe {
            self.interface.get_mapped(to, process, from.portal, ANY_PROCESS, from.bits, offset)
        }
    }

    fn scattered_at_once(&self, put: bool, pieces: &[ScatteredRma], to: &Target) -> bool {
        const { assert!(SCATTERED <= portals3::PIECES_PER_CALL, "a system call moves them") };
        let pieces = pieces.iter().map(|piece| ScatteredPiece {
            local: piece.local.as_ptr().cast(),
            length: piece.local.len() as u64,
            remote_offset: piece.offset as u64,
        });
        let (process, portal, bits) = (to_ptl(to.process), to.portal, to.bits);
        // SAFETY: the pieces are readable and writable, by the invariant of `Dst`, and a put only
        // reads them.
        unsafe {
            self.interface.scattered_at_once(put, pieces, process, portal, ANY_PROCESS, bits)
        }
    }

    #[inline(always)]
    fn prefetch_target(&self, to: &Target, bytes: usize) {
        self.interface.about_to_put(to_ptl(to.process), to.portal, to.bits, bytes as u64);
    }

    #[inline(always)]
    fn progress(&self) {
        self.interface.progress();
    }

    #[inline(always)]
    fn eq_next(&self, eq: &EqWatch, inline: &mut InlineBody) -> NextEvent {
        match self.interface.eq_next_arrival(eq, inline) {
            portals3::EqNext::Nothing => NextEvent::Nothing,
            portals3::EqNext::Other => NextEvent::Other,
            portals3::EqNext::Arrival(e) => NextEvent::Arrival(MdEvent {
                kind: MdEventKind::PutEnd,
                user: e.user_ptr.addr(),
                match_bits: e.match_bits,
                hdr_data: e.hdr_data,
                start: e.start.addr(),
                offset: e.offset.map(|offset| offset as usize),
                mlength: e.mlength.map(|length| length as usize),
                inline: e.inline,
            }),
        }
    }

    #[inline(always)]
    fn eq_is_quiet(&self, eq: &EqWatch) -> bool {
        self.interface.eq_is_quiet(eq)
    }

    fn eq_drained(&self, eq: &EqWatch) -> Option<u64> {
        self.interface.eq_drained(eq)
    }

    #[inline(always)]
    fn burst_ends(&self) {
        self.interface.burst_ends();
    }

    #[inline(always)]
    fn is_in_burst(&self) -> bool {
        self.interface.is_in_burst()
    }
}

impl SharedHost for Emulation {
    fn alloc_library_memory(&self, bytes: usize, align: usize) -> Option<Dst<'static>> {
        let start = self.interface.alloc(bytes, align)?.addr().get();
        let own = self.library_memory(self.id())?;
        own.try_part(start.wrapping_sub(own.as_ptr().addr()), bytes)
    }

    fn library_memory(&self, of: PortalsId) -> Option<Dst<'static>> {
        let (base, bytes) = self.interface.arena_of(to_ptl(of))?;
        // SAFETY: an arena stays mapped until the process ends; there are no references to it.
        Some(unsafe { Dst::new(base.as_ptr(), bytes) })
    }

    fn expose_segments(&self, own: Dst<'static>, peers: &[Option<Dst<'static>>]) {
        let base_of = |peer: &Option<Dst<'_>>| match peer {
            Some(segment) if !fault::on("frames") => segment.as_ptr(),
            _ => core::ptr::null_mut(),
        };
        let bases: Vec<*mut u8> = peers.iter().map(base_of).collect();
        let lens: Vec<usize> = peers.iter().map(|peer| peer.map_or(0, Dst::len)).collect();
        // SAFETY: a `Dst<'static>` is mapped until the process ends.
        unsafe { self.interface.expose(own.as_ptr(), own.len(), &bases, &lens) };
    }

    fn attaches(&self, to: PortalsId) -> bool {
        self.interface.attaches(to_ptl(to))
    }

    fn mapped(&self) -> (*mut u8, usize) {
        let (base, bytes) = self.interface.mapped();
        (base.as_ptr(), bytes)
    }

    #[inline]
    fn doorbell(&self) -> u32 {
        self.interface.doorbell()
    }

    fn sleep(&self, seen: u32, timeout_ns: u64) {
        self.interface.sleep(seen, timeout_ns);
    }

    fn ring_peers(&self) {
        self.interface.ring_peers();
    }

    #[inline]
    fn peers_sleep(&self) -> bool {
        self.interface.peers_sleep()
    }

    #[inline]
    fn ring_self(&self) {
        self.interface.ring_self();
    }

    fn blocked_by(&self) -> Option<u32> {
        self.interface.blocked_by()
    }

    fn flush_wire(&self, timeout_ns: u64) {
        self.interface.flush_wire(timeout_ns);
    }

    fn check_memory(&self) {
        self.interface.check_arena();
        if let Some(others) = &self.others {
            others.check();
            others.warn_of_silence(|ns| self.interface.silent_peer(ns));
        }
    }
}
