//! The portals3 emulation as the conduit sees it.
//!
//! Owns the translation between [`super::Portals`] and [`portals3::NetworkInterface`], and the size of the arena; nothing else.
//! Made by the core room, used by the conduit. Invariant: names and meanings on both sides are the specification's,
//! so every method is one call.

use super::{
    EntryPosition, EqResult, Extension, InlineBody, MdEvent, MdEventKind, MdSpec, NextEvent,
    OpenError, Portals, PortalsError, PortalsId, TrafficCounters,
};
use crate::conduit::Config;
use portals3::nal::shm::{AttachPolicy, Fabric, FabricSpec};
use portals3::{
    AckReq, EqHandle, EqWatch, InsPos, MdHandle, MdIovec, MeHandle, MemoryDescriptor,
    NetworkInterface, NiFail, NiLimits, THRESH_INF, Unlink, md_options,
};
use std::os::fd::OwnedFd;
use sys::memory;

/// One interface of the emulation.
pub struct Emulation {
    interface: NetworkInterface,
}

impl core::fmt::Debug for Emulation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Emulation").field("id", &self.interface.id()).finish_non_exhaustive()
    }
}

impl Emulation {
    /// The interface of process `index` of the `size` on this host, whose arenas share the file `arena`. Peers can be
    /// addressed once they have returned from this too.
    ///
    /// # Errors
    /// There is no memory for the arena.
    pub fn open(
        arena: OwnedFd,
        index: u32,
        size: u32,
        config: &Config,
    ) -> Result<Emulation, OpenError> {
        let bytes = arena_bytes(config);
        let no_arena = |e| OpenError(format!("no arena for Portals: {e}"));
        // Arenas get their pages when they are first touched, and then the kernel would kill for want of some.
        if index == 0 {
            memory::look_for(bytes as u64 * u64::from(size)).map_err(no_arena)?;
        }
        let spec = FabricSpec {
            arena,
            index,
            size,
            bytes,
            nid: 0,
            jid: 0,
            attach: AttachPolicy::Allowed,
        };
        let fabric = Fabric::join(spec).map_err(no_arena)?;
        Self::over(NetworkInterface::shm(fabric, Some(limits(config))), config)
            .map_err(|e| OpenError(e.to_string()))
    }

    /// An interface of the limits that `config` needs, made ready for its threads.
    fn over(
        interface: Result<NetworkInterface, portals3::PtlError>,
        config: &Config,
    ) -> Result<Emulation, PortalsError> {
        let mut interface = interface.map_err(|e| error("PtlNIInit", e))?;
        if config.threads == 1 {
            // SAFETY: a conduit that is configured for one thread is never called by two at once.
            unsafe { interface.set_single_threaded() };
        }
        Ok(Emulation { interface })
    }

    /// The interface itself.
    pub fn interface(&self) -> &NetworkInterface {
        &self.interface
    }
}

/// What the conduit uses; entries and descriptors of refreshed buffers may be given back late.
fn limits(config: &Config) -> NiLimits {
    NiLimits {
        max_mes: 16 + 2 * config.match_entries() as u32,
        max_mds: 16 + config.reqrb_buffers + config.descriptors() as u32,
        max_eqs: 4,
        max_pt_index: config.pt_rar.max(config.pt_am),
        ..NiLimits::DEFAULT
    }
}

/// Bytes of the arena of one process: tables, event queues, the conduit's buffers, and room for what the emulation
/// keeps there itself.
fn arena_bytes(config: &Config) -> usize {
    const OWN: usize = 512 << 10;
    const ENTRY: usize = 64;
    const DESCRIPTOR: usize = 128;
    const EVENT: usize = 64;
    let limits = limits(config);
    let events: usize = config.event_counts().iter().map(|n| n.next_power_of_two()).sum();
    OWN + limits.max_mes as usize * ENTRY
        + limits.max_mds as usize * DESCRIPTOR
        + events * EVENT
        + config.library_bytes()
}

fn error(call: &'static str, e: portals3::PtlError) -> PortalsError {
    use portals3::PtlError as E;
    let code = match e {
        E::AcIndexInvalid => "PTL_AC_INDEX_INVALID",
        E::EqInvalid => "PTL_EQ_INVALID",
        E::Fail => "PTL_FAIL",
        E::HandleInvalid => "PTL_HANDLE_INVALID",
        E::IfaceInvalid => "PTL_IFACE_INVALID",
        E::MdIllegal => "PTL_MD_ILLEGAL",
        E::MdInvalid => "PTL_MD_INVALID",
        E::MdInUse => "PTL_MD_IN_USE",
        E::MdNoUpdate => "PTL_MD_NO_UPDATE",
        E::MeInvalid => "PTL_ME_INVALID",
        E::MeInUse => "PTL_ME_IN_USE",
        E::MeListTooLong => "PTL_ME_LIST_TOO_LONG",
        E::NiInvalid => "PTL_NI_INVALID",
        E::NoSpace => "PTL_NO_SPACE",
        E::PidInvalid => "PTL_PID_INVALID",
        E::ProcessInvalid => "PTL_PROCESS_INVALID",
        E::PtFull => "PTL_PT_FULL",
        E::PtIndexInvalid => "PTL_PT_INDEX_INVALID",
        E::Segv => "PTL_SEGV",
        E::SrIndexInvalid => "PTL_SR_INDEX_INVALID",
    };
    PortalsError { call, code }
}

#[inline]
fn out(id: portals3::PtlProcessId) -> PortalsId {
    PortalsId { nid: id.nid, pid: id.pid }
}

#[inline]
fn peer(id: PortalsId) -> portals3::PtlProcessId {
    portals3::PtlProcessId { nid: id.nid, pid: id.pid }
}

fn unlink(yes: bool) -> Unlink {
    if yes { Unlink::Unlink } else { Unlink::Retain }
}

fn md(spec: &MdSpec<EqWatch>) -> MemoryDescriptor {
    use md_options as o;
    let f = spec.flags;
    let options = [
        (f.op_put, o::OP_PUT),
        (f.op_get, o::OP_GET),
        (f.manage_remote, o::MANAGE_REMOTE),
        (f.truncate, o::TRUNCATE),
        (f.ack_disable, o::ACK_DISABLE),
        (f.event_start_disable, o::EVENT_START_DISABLE),
        (f.event_end_disable, o::EVENT_END_DISABLE),
        (spec.max_size.is_some(), o::MAX_SIZE),
    ];
    MemoryDescriptor {
        start: spec.start.cast(),
        length: spec.length as u64,
        threshold: THRESH_INF,
        max_size: spec.max_size.unwrap_or(0) as u64,
        options: options.iter().filter(|o| o.0).fold(0, |all, o| all | o.1),
        user_ptr: core::ptr::without_provenance_mut(spec.user),
        eq: spec.eq.map_or(EqHandle::NONE, EqWatch::eq),
    }
}

impl Portals for Emulation {
    type Eq = EqWatch;
    type Me = MeHandle;
    type Md = MdHandle;

    fn id(&self) -> PortalsId {
        out(self.interface.id())
    }

    fn eq_alloc(&self, count: usize) -> Result<EqWatch, PortalsError> {
        let eq = self.interface.eq_alloc(count as u64, None);
        eq.and_then(|eq| self.interface.eq_watch(eq)).map_err(|e| error("PtlEQAlloc", e))
    }

    fn eq_free(&self, eq: EqWatch) -> Result<(), PortalsError> {
        self.interface.eq_free(eq.eq()).map_err(|e| error("PtlEQFree", e))
    }

    fn eq_get(&self, eq: EqWatch, inline: &mut InlineBody) -> Result<EqResult, PortalsError> {
        // SAFETY: handles are used with the interface that gave them.
        let Some(e) = (unsafe { self.interface.eq_next(eq, inline) }) else {
            return Ok(EqResult::Empty);
        };
        if e.ni_fail != NiFail::Ok {
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
            start: e.start.cast(),
            offset: e.offset as usize,
            mlength: e.mlength as usize,
            inline: e.inline,
        };
        Ok(if e.dropped { EqResult::AfterLoss(event) } else { EqResult::Event(event) })
    }

    #[inline(always)]
    fn progress(&self) {
        self.interface.progress();
    }

    #[inline(always)]
    fn eq_next(&self, eq: EqWatch, inline: &mut InlineBody) -> NextEvent {
        // SAFETY: as above.
        match unsafe { self.interface.eq_next_arrival(eq, inline) } {
            portals3::EqNext::Nothing => NextEvent::Nothing,
            portals3::EqNext::Other => NextEvent::Other,
            portals3::EqNext::Arrival(e) => NextEvent::Arrival(MdEvent {
                kind: MdEventKind::PutEnd,
                user: e.user_ptr.addr(),
                match_bits: e.match_bits,
                hdr_data: e.hdr_data,
                start: e.start.cast(),
                offset: e.offset as usize,
                mlength: e.mlength as usize,
                inline: e.inline,
            }),
        }
    }

    #[inline(always)]
    fn eq_is_quiet(&self, eq: EqWatch) -> bool {
        // SAFETY: as above.
        unsafe { self.interface.eq_is_quiet(eq) }
    }

    #[inline(always)]
    fn burst_ends(&self) {
        self.interface.burst_ends();
    }

    fn me_attach(
        &self,
        place: EntryPosition<MeHandle>,
        match_bits: u64,
        ignore_bits: u64,
        unlink_with_md: bool,
    ) -> Result<MeHandle, PortalsError> {
        let (any, gone) = (portals3::PtlProcessId::ANY, unlink(unlink_with_md));
        let attach = |pt, position| {
            self.interface.me_attach(pt, any, match_bits, ignore_bits, gone, position)
        };
        match place {
            EntryPosition::Head(pt) => {
                attach(pt, InsPos::Before).map_err(|e| error("PtlMEAttach", e))
            }
            EntryPosition::Tail(pt) => {
                attach(pt, InsPos::After).map_err(|e| error("PtlMEAttach", e))
            }
            EntryPosition::Before(me) => self
                .interface
                .me_insert(me, any, match_bits, ignore_bits, gone, InsPos::Before)
                .map_err(|e| error("PtlMEInsert", e)),
        }
    }

    fn me_unlink(&self, me: MeHandle) -> Result<(), PortalsError> {
        self.interface.me_unlink(me).map_err(|e| error("PtlMEUnlink", e))
    }

    unsafe fn md_attach(
        &self,
        me: MeHandle,
        spec: &MdSpec<EqWatch>,
        auto: bool,
    ) -> Result<MdHandle, PortalsError> {
        // What peers target completes without our help.
        assert!(
            self.interface.is_shared(spec.start, spec.length as u64),
            "{} bytes at {:p} that peers target are neither arena nor segment",
            spec.length,
            spec.start
        );
        // SAFETY: as the caller vouches.
        unsafe { self.interface.md_attach(me, &md(spec), unlink(auto)) }
            .map_err(|e| error("PtlMDAttach", e))
    }

    unsafe fn md_bind(&self, spec: &MdSpec<EqWatch>) -> Result<MdHandle, PortalsError> {
        // SAFETY: as the caller vouches.
        unsafe { self.interface.md_bind(&md(spec), Unlink::Retain) }
            .map_err(|e| error("PtlMDBind", e))
    }

    fn md_unlink(&self, md: MdHandle) -> Result<(), PortalsError> {
        match self.interface.md_unlink(md) {
            Ok(()) | Err(portals3::PtlError::MdInvalid) => Ok(()),
            Err(e) => Err(error("PtlMDUnlink", e)),
        }
    }

    #[inline]
    fn put(
        &self,
        md: MdHandle,
        local_offset: usize,
        length: usize,
        ack: bool,
        target: PortalsId,
        pt_index: u32,
        match_bits: u64,
        remote_offset: usize,
        hdr_data: u64,
    ) -> Result<(), PortalsError> {
        let ack = if ack { AckReq::Ack } else { AckReq::NoAck };
        let (from, n, to) = (local_offset as u64, length as u64, remote_offset as u64);
        self.interface
            .put_region(md, from, n, ack, peer(target), pt_index, 0, match_bits, to, hdr_data)
            .map_err(|e| error("PtlPutRegion", e))
    }

    #[inline]
    fn get(
        &self,
        md: MdHandle,
        local_offset: usize,
        length: usize,
        target: PortalsId,
        pt_index: u32,
        match_bits: u64,
        remote_offset: usize,
    ) -> Result<(), PortalsError> {
        let (to, n, from) = (local_offset as u64, length as u64, remote_offset as u64);
        self.interface
            .get_region(md, to, n, peer(target), pt_index, 0, match_bits, from)
            .map_err(|e| error("PtlGetRegion", e))
    }

    #[inline(always)]
    fn about_to_put(&self, target: PortalsId, pt_index: u32, match_bits: u64, bytes: usize) {
        self.interface.about_to_put(peer(target), pt_index, match_bits, bytes as u64);
    }

    const INLINES: bool = true;

    #[inline(always)]
    fn put_inline(
        &self,
        inline: &InlineBody,
        target: PortalsId,
        pt_index: u32,
        match_bits: u64,
        hdr_data: u64,
    ) -> bool {
        self.interface.put_inline(inline, peer(target), pt_index, 0, match_bits, hdr_data)
    }

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
        let from =
            from.map(|(base, len)| MdIovec { base: base.cast_mut().cast(), len: len as u64 });
        let (to, offset) = (peer(target), remote_offset as u64);
        // SAFETY: as the caller vouches.
        unsafe { self.interface.put_at_once(from, to, pt_index, 0, match_bits, offset, hdr_data) }
            .unwrap_or(false)
    }

    #[inline]
    unsafe fn get_at_once(
        &self,
        to: *mut u8,
        length: usize,
        target: PortalsId,
        pt_index: u32,
        match_bits: u64,
        remote_offset: usize,
    ) -> bool {
        let (n, from, offset) = (length as u64, peer(target), remote_offset as u64);
        // SAFETY: as the caller vouches.
        unsafe { self.interface.get_at_once(to, n, from, pt_index, 0, match_bits, offset) }
            .unwrap_or(false)
    }

    fn counters(&self) -> TrafficCounters {
        let c = self.interface.counters();
        TrafficCounters {
            puts: c.puts,
            gets: c.gets,
            bytes: c.bytes,
            framed: c.framed,
            dropped: c.dropped,
        }
    }

    fn extension(&self) -> Option<&dyn Extension> {
        Some(self)
    }
}

impl Extension for Emulation {
    fn alloc_library_memory(&self, bytes: usize, align: usize) -> Option<*mut u8> {
        self.interface.alloc(bytes, align).map(|p| p.as_ptr())
    }

    fn library_memory(&self, of: PortalsId) -> Option<(*mut u8, usize)> {
        self.interface.arena_of(peer(of)).map(|(base, bytes)| (base.as_ptr(), bytes))
    }

    unsafe fn expose_segments(
        &self,
        base: *mut u8,
        len: usize,
        peers: &[*mut u8],
        lens: &[usize],
    ) {
        // SAFETY: as the caller vouches.
        unsafe { self.interface.expose(base, len, peers, lens) };
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
    fn ring_self(&self) {
        self.interface.ring_self();
    }

    fn blocked_by(&self) -> Option<u32> {
        self.interface.blocked_by()
    }
}
