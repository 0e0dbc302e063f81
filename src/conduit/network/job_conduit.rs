//! The conduit of the job, over its network.
//!
//! Made by `runtime::start`; the layers above call the conduit through [`JobConduit`]. Invariant:
//! each method calls that of the same name of the conduit, which says what it does.

use super::OpenInterface;
use crate::client_memory::{Dst, RemoteRange, Src};
use crate::conduit::firehose::FirehoseStats;
#[cfg(feature = "libportals")]
use crate::conduit::portals::binding::Binding;
#[cfg(feature = "emulation")]
use crate::conduit::portals::emulation::Emulation;
use crate::conduit::portals::{
    PortalsError, PortalsId, ScatteredRma, SharedHost, TrafficCounters,
};
use crate::conduit::{
    AmMessage, Conduit, ConduitStats, Config, ExposedMemory, NegotiatedPayload, OpId, Outgoing,
    PayloadArea, ReplyToken, RmaClaim, SegmentBlocks, SystemMessage, Upcall, WaitingProcess,
};
use crate::rank::{ByJobRank, JobRank};
use alloc::vec::Vec;

/// The conduit over the network of the job.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // there is one of it
pub enum JobConduit {
    /// The emulation.
    #[cfg(feature = "emulation")]
    Emulation(Conduit<Emulation>),
    /// A libportals.
    #[cfg(feature = "libportals")]
    Libportals(Conduit<Binding>),
}

/// Does the same with the conduit of either network.
macro_rules! over {
    ($network:expr, $conduit:ident => $call:expr) => {
        match $network {
            #[cfg(feature = "emulation")]
            JobConduit::Emulation($conduit) => $call,
            #[cfg(feature = "libportals")]
            JobConduit::Libportals($conduit) => $call,
        }
    };
}

impl JobConduit {
    /// [`Conduit::open`]
    ///
    /// # Errors
    /// The Portals call that failed.
    pub fn open(
        interface: OpenInterface,
        config: Config,
        me: JobRank,
        peers: Vec<PortalsId>,
    ) -> Result<JobConduit, PortalsError> {
        Ok(match interface {
            #[cfg(feature = "emulation")]
            OpenInterface::Emulation(p) => {
                JobConduit::Emulation(Conduit::open(p, config, me, peers)?)
            }
            #[cfg(feature = "libportals")]
            OpenInterface::Libportals(p) => {
                JobConduit::Libportals(Conduit::open(p, config, me, peers)?)
            }
        })
    }

    /// Starts a thread that delivers what other hosts send while no thread of the client does.
    ///
    /// # Errors
    /// The system allows no further thread.
    pub fn start_wire_thread(&'static self) -> std::io::Result<()> {
        match self {
            #[cfg(feature = "emulation")]
            JobConduit::Emulation(c) => c.portals.start_wire_thread(),
            #[cfg(feature = "libportals")]
            JobConduit::Libportals(_) => Ok(()),
        }
    }

    /// [`Conduit::expose`]
    ///
    /// # Errors
    /// The Portals call that failed.
    pub fn expose(&self, memory: ExposedMemory) -> Result<(), PortalsError> {
        over!(self, c => c.expose(memory))
    }

    /// [`Conduit::expose_registered`]
    ///
    /// # Errors
    /// The Portals call that failed.
    pub fn expose_registered(
        &'static self,
        memory: ExposedMemory,
        region_bytes: Option<usize>,
        addresses: impl FnOnce() -> ByJobRank<usize>,
    ) -> Result<(), PortalsError> {
        over!(self, c => c.expose_registered(memory, region_bytes, addresses))
    }

    /// [`Conduit::firehose_stats`]
    pub fn firehose_stats(&self) -> Option<FirehoseStats> {
        over!(self, c => c.firehose_stats())
    }

    /// [`Conduit::notices_unmapping`]
    pub fn notices_unmapping(&self) -> bool {
        over!(self, c => c.notices_unmapping())
    }

    /// [`Conduit::undo_unmapped`]
    pub fn undo_unmapped(&self) {
        over!(self, c => c.undo_unmapped())
    }

    /// [`Conduit::progress_pinned`]
    pub fn progress_pinned<U: Upcall>(&self, up: U) {
        over!(self, c => c.progress_pinned(up))
    }

    /// [`Conduit::serve_pinned`]
    pub fn serve_pinned(&self, m: &AmMessage<'_>, reply: impl FnOnce(&Outgoing<'_>)) {
        over!(self, c => c.serve_pinned(m, reply))
    }

    /// [`Conduit::serve_pinned_reply`]
    pub fn serve_pinned_reply<U: Upcall>(&self, up: U, m: &AmMessage<'_>) {
        over!(self, c => c.serve_pinned_reply(up, m))
    }

    /// [`Conduit::attaches`]
    pub fn attaches(&self, rank: JobRank) -> Option<bool> {
        over!(self, c => c.attaches(rank))
    }

    /// [`Conduit::scattered_at_once`]
    pub fn scattered_at_once(&self, put: bool, rank: JobRank, pieces: &[ScatteredRma]) -> bool {
        over!(self, c => c.scattered_at_once(put, rank, pieces))
    }

    /// [`Conduit::put`]
    #[inline]
    pub fn put<U: Upcall>(&self, up: U, dst: RemoteRange, src: Src<'_>, op: OpId) {
        over!(self, c => c.put(up, dst, src, op))
    }

    /// [`Conduit::reports_departures`]
    #[inline]
    pub fn reports_departures(&self) -> bool {
        over!(self, c => c.reports_departures())
    }

    /// [`Conduit::put_bulk`]
    #[inline]
    pub fn put_bulk<U: Upcall>(&self, up: U, dst: RemoteRange, src: Src<'static>, op: OpId) {
        over!(self, c => c.put_bulk(up, dst, src, op))
    }

    /// [`Conduit::get`]
    #[inline]
    pub fn get<U: Upcall>(&self, up: U, dst: Dst<'static>, src: RemoteRange, op: OpId) {
        over!(self, c => c.get(up, dst, src, op))
    }

    /// [`Conduit::claim`]
    pub fn claim(&self) -> Option<RmaClaim> {
        over!(self, c => c.claim())
    }

    /// [`Conduit::put_claimed`]
    pub fn put_claimed<U: Upcall>(
        &self,
        up: U,
        dst: RemoteRange,
        src: Src<'_>,
        op: OpId,
        claim: RmaClaim,
    ) {
        over!(self, c => c.put_claimed(up, dst, src, op, claim))
    }

    /// [`Conduit::put_bulk_claimed`]
    pub fn put_bulk_claimed<U: Upcall>(
        &self,
        up: U,
        dst: RemoteRange,
        src: Src<'static>,
        op: OpId,
        claim: RmaClaim,
    ) {
        over!(self, c => c.put_bulk_claimed(up, dst, src, op, claim))
    }

    /// [`Conduit::get_claimed`]
    pub fn get_claimed<U: Upcall>(
        &self,
        up: U,
        dst: Dst<'static>,
        src: RemoteRange,
        op: OpId,
        claim: RmaClaim,
    ) {
        over!(self, c => c.get_claimed(up, dst, src, op, claim))
    }

    /// [`Conduit::put_at_once`]
    #[inline]
    pub fn put_at_once(&self, dst: RemoteRange, src: Src<'_>) -> bool {
        over!(self, c => c.put_at_once(dst, src))
    }

    /// [`Conduit::get_at_once`]
    #[inline]
    pub fn get_at_once(&self, dst: Dst<'_>, src: RemoteRange) -> bool {
        over!(self, c => c.get_at_once(dst, src))
    }

    /// [`Conduit::put_mapped`]
    #[inline(always)]
    pub fn put_mapped(&self, dst: RemoteRange, src: Src<'_>) -> bool {
        over!(self, c => c.put_mapped(dst, src))
    }

    /// [`Conduit::get_mapped`]
    #[inline]
    pub fn get_mapped(&self, dst: Dst<'_>, src: RemoteRange) -> bool {
        over!(self, c => c.get_mapped(dst, src))
    }

    /// [`Conduit::request`]
    #[inline(always)]
    pub fn request<U: Upcall>(&self, up: U, rank: JobRank, m: &Outgoing<'_>) -> bool {
        over!(self, c => c.request(up, rank, m))
    }

    /// [`Conduit::request_own`]
    pub fn request_own<U: Upcall>(&self, up: U, m: &Outgoing<'_>) {
        over!(self, c => c.request_own(up, m))
    }

    /// [`Conduit::reply`]
    #[inline(always)]
    pub fn reply<U: Upcall>(&self, up: U, token: &mut ReplyToken, m: &Outgoing<'_>) {
        over!(self, c => c.reply(up, token, m))
    }

    /// [`Conduit::may_request`]
    pub fn may_request(&self, rank: JobRank, payload: NegotiatedPayload, numargs: usize) -> bool {
        over!(self, c => c.may_request(rank, payload, numargs))
    }

    /// [`Conduit::take_area`]
    pub fn take_area(&self, rank: JobRank, n: usize, request: bool) -> Option<PayloadArea> {
        over!(self, c => c.take_area(rank, n, request))
    }

    /// [`Conduit::give_area`]
    pub fn give_area(&self, area: PayloadArea) {
        over!(self, c => c.give_area(area))
    }

    /// [`Conduit::request_area`]
    pub fn request_area<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
        area: PayloadArea,
    ) -> bool {
        over!(self, c => c.request_area(up, rank, m, area))
    }

    /// [`Conduit::reply_area`]
    pub fn reply_area<U: Upcall>(
        &self,
        up: U,
        token: &mut ReplyToken,
        m: &Outgoing<'_>,
        area: PayloadArea,
    ) {
        over!(self, c => c.reply_area(up, token, m, area))
    }

    /// [`Conduit::send_system`]
    #[cold]
    pub fn send_system(&self, rank: JobRank, message: SystemMessage) {
        over!(self, c => c.send_system(rank, message))
    }

    /// [`Conduit::poll_system`]
    #[cold]
    pub fn poll_system<U: Upcall>(&self, up: U) {
        over!(self, c => c.poll_system(up))
    }

    /// [`Conduit::take_system`]
    #[cold]
    pub fn take_system(&self, into: &mut dyn FnMut(JobRank, SystemMessage)) -> bool {
        over!(self, c => c.take_system(into))
    }

    /// [`Conduit::poll`]
    #[inline]
    pub fn poll<U: Upcall>(&self, up: U) -> bool {
        over!(self, c => c.poll(up))
    }

    /// [`Conduit::serve`]
    #[cold]
    pub fn serve<U: Upcall>(&self, up: U) -> bool {
        over!(self, c => c.serve(up))
    }

    /// [`Conduit::am_may_have`]
    #[inline]
    pub fn am_may_have(&self) -> bool {
        over!(self, c => c.am_may_have())
    }

    /// [`Conduit::fragments`]
    #[inline]
    pub fn fragments(&self, n: usize) -> u32 {
        over!(self, c => c.fragments(n))
    }

    /// [`Conduit::most_pieces`]
    pub fn most_pieces(&self) -> usize {
        over!(self, c => c.most_pieces())
    }

    /// [`Conduit::get_scattered`]
    pub fn get_scattered<U: Upcall>(
        &self,
        up: U,
        pieces: &[Dst<'static>],
        src: RemoteRange,
        op: OpId,
    ) {
        over!(self, c => c.get_scattered(up, pieces, src, op))
    }

    /// [`Conduit::put_scattered`]
    pub fn put_scattered<U: Upcall>(
        &self,
        up: U,
        dst: RemoteRange,
        pieces: &[Dst<'static>],
        op: OpId,
    ) {
        over!(self, c => c.put_scattered(up, dst, pieces, op))
    }

    /// [`Conduit::max_medium`]
    pub fn max_medium(&self) -> usize {
        over!(self, c => c.max_medium())
    }

    /// [`Conduit::max_long_request`]
    pub fn max_long_request(&self) -> usize {
        over!(self, c => c.max_long_request())
    }

    /// [`Conduit::max_long_reply`]
    pub fn max_long_reply(&self) -> usize {
        over!(self, c => c.max_long_reply())
    }

    /// [`Conduit::shared_host`]
    pub fn shared_host(&self) -> Option<&dyn SharedHost> {
        over!(self, c => c.shared_host())
    }

    /// [`Conduit::has_bypass`]
    pub fn has_bypass(&self) -> bool {
        over!(self, c => c.has_bypass())
    }

    /// [`Conduit::together`]
    pub fn together(&self, send: &mut dyn FnMut()) {
        over!(self, c => c.together(send));
    }

    /// [`Conduit::wire_waits_for_calls`]
    pub fn wire_waits_for_calls(&self, exposed: bool) -> bool {
        over!(self, c => c.wire_waits_for_calls(exposed))
    }

    /// [`Conduit::expose_remotely`]
    ///
    /// # Errors
    /// The Portals call that failed.
    pub fn expose_remotely(
        &self,
        blocks: impl FnOnce() -> SegmentBlocks,
    ) -> Result<(), PortalsError> {
        over!(self, c => c.expose_remotely(blocks))
    }

    /// [`Conduit::check_lost`]
    pub fn check_lost(&self, process: &dyn WaitingProcess) {
        over!(self, c => c.check_lost(process))
    }

    /// [`Conduit::credits`]
    pub fn credits(&self, rank: JobRank) -> Option<u32> {
        over!(self, c => c.credits(rank))
    }

    /// [`Conduit::counters`]
    pub fn counters(&self) -> TrafficCounters {
        over!(self, c => c.counters())
    }

    /// [`Conduit::stats`]
    pub fn stats(&self) -> ConduitStats {
        over!(self, c => c.stats())
    }

    /// [`Conduit::config`]
    pub fn config(&self) -> &Config {
        over!(self, c => c.config())
    }

    /// [`Conduit::write_credit_stats`]
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_credit_stats(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        over!(self, c => c.write_credit_stats(out))
    }
}
