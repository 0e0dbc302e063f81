//! The network interface (`PtlNIInit`): identity, limits, peers, and the calls of the specification.

use alloc::boxed::Box;
use core::ptr::NonNull;

use crate::deliver::{Header, Transfer};
use crate::nal::shm::Fabric;
use crate::nal::{Nal, PeerState};
use crate::types::*;

/// One network interface of the specification.
pub struct Interface {
    _private: (),
}

#[allow(dead_code)]
impl Interface {
    /// Opens an interface of one process, whose arena is on the heap.
    pub fn loopback(limits: Option<Limits>) -> Result<Interface, Error> {
        let _ = limits;
        unimplemented!()
    }

    /// Opens the interface of one process of a shared memory fabric. Peers can be addressed once they have
    /// called this too.
    pub fn shm(fabric: Fabric, limits: Option<Limits>) -> Result<Interface, Error> {
        let _ = (fabric, limits);
        unimplemented!()
    }

    /// Opens an interface over any NAL.
    pub fn with_nal(nal: Box<dyn Nal>, limits: Option<Limits>) -> Result<Interface, Error> {
        let _ = (nal, limits);
        unimplemented!()
    }

    /// Promises that only one thread at a time calls the interface; locks between threads are skipped from
    /// then on.
    ///
    /// # Safety
    ///
    /// The promise must be kept for as long as the interface lives.
    pub unsafe fn set_single_threaded(&mut self) {
        unimplemented!()
    }

    /// The limits that were granted.
    pub fn limits(&self) -> Limits {
        unimplemented!()
    }

    /// `PtlGetId`
    pub fn id(&self) -> ProcessId {
        unimplemented!()
    }

    /// `PtlGetUid`
    pub fn uid(&self) -> Uid {
        unimplemented!()
    }

    /// `PtlGetJid`
    pub fn jid(&self) -> Jid {
        unimplemented!()
    }

    /// `PtlNIStatus`
    pub fn status(&self, register: StatusRegister) -> u64 {
        let _ = register;
        unimplemented!()
    }

    /// `PtlNIDist`: 0 to ourselves, 1 to the others of the host.
    pub fn distance(&self, target: ProcessId) -> Result<u64, Error> {
        let _ = target;
        unimplemented!()
    }

    /// `PtlEQAlloc`: room for at least `count` events (rounded up to a power of two). A `handler` is run
    /// with every event, by the thread that takes it from the queue.
    pub fn eq_alloc(&self, count: Size, handler: Option<EqHandler>) -> Result<EqHandle, Error> {
        let _ = (count, handler);
        unimplemented!()
    }

    /// `PtlEQFree`
    pub fn eq_free(&self, eq: EqHandle) -> Result<(), Error> {
        let _ = eq;
        unimplemented!()
    }

    /// `PtlEQGet`: `None` is `PTL_EQ_EMPTY`.
    pub fn eq_get(&self, eq: EqHandle) -> Result<Option<Fetched>, Error> {
        let _ = eq;
        unimplemented!()
    }

    /// `PtlEQGet` without the descriptor's snapshot and the fields that hardly anybody reads; runs no
    /// handler.
    pub fn eq_next(&self, eq: EqHandle) -> Result<Option<BriefEvent>, Error> {
        let _ = eq;
        unimplemented!()
    }

    /// `PtlEQWait`
    pub fn eq_wait(&self, eq: EqHandle) -> Result<Fetched, Error> {
        let _ = eq;
        unimplemented!()
    }

    /// `PtlEQPoll`: the first event of any of these queues, looked through in order. No timeout is
    /// `PTL_TIME_FOREVER`; `Ok(None)` is `PTL_EQ_EMPTY`.
    pub fn eq_poll(
        &self,
        eqs: &[EqHandle],
        timeout_ms: Option<u32>,
    ) -> Result<Option<(usize, Fetched)>, Error> {
        let _ = (eqs, timeout_ms);
        unimplemented!()
    }

    /// `PtlMEAttach`: before the head or after the tail of the list.
    pub fn me_attach(
        &self,
        pt_index: PtIndex,
        match_id: ProcessId,
        match_bits: MatchBits,
        ignore_bits: MatchBits,
        unlink: Unlink,
        position: InsPos,
    ) -> Result<MeHandle, Error> {
        let _ = (pt_index, match_id, match_bits, ignore_bits, unlink, position);
        unimplemented!()
    }

    /// `PtlMEAttachAny`: on a portal table entry that was never used.
    pub fn me_attach_any(
        &self,
        match_id: ProcessId,
        match_bits: MatchBits,
        ignore_bits: MatchBits,
        unlink: Unlink,
    ) -> Result<(PtIndex, MeHandle), Error> {
        let _ = (match_id, match_bits, ignore_bits, unlink);
        unimplemented!()
    }

    /// `PtlMEInsert`: before or after `base`.
    pub fn me_insert(
        &self,
        base: MeHandle,
        match_id: ProcessId,
        match_bits: MatchBits,
        ignore_bits: MatchBits,
        unlink: Unlink,
        position: InsPos,
    ) -> Result<MeHandle, Error> {
        let _ = (base, match_id, match_bits, ignore_bits, unlink, position);
        unimplemented!()
    }

    /// `PtlMEUnlink`
    pub fn me_unlink(&self, me: MeHandle) -> Result<(), Error> {
        let _ = me;
        unimplemented!()
    }

    /// `PtlMDAttach`
    ///
    /// # Safety
    ///
    /// The memory that `md` tells of must stay readable and writable until the descriptor is gone:
    /// unlinked, or its UNLINK event read.
    pub unsafe fn md_attach(&self, me: MeHandle, md: &Md, unlink: Unlink) -> Result<MdHandle, Error> {
        let _ = (me, md, unlink);
        unimplemented!()
    }

    /// `PtlMDBind`
    ///
    /// # Safety
    ///
    /// As for [`Interface::md_attach`].
    pub unsafe fn md_bind(&self, md: &Md, unlink: Unlink) -> Result<MdHandle, Error> {
        let _ = (md, unlink);
        unimplemented!()
    }

    /// `PtlMDUnlink`
    pub fn md_unlink(&self, md: MdHandle) -> Result<(), Error> {
        let _ = md;
        unimplemented!()
    }

    /// `PtlMDUpdate`: tells the present state in `old`; then, if nothing is unread in `test_eq` nor about
    /// to be posted to it, replaces it by `new`. With [`EqHandle::NONE`] it does so in any case.
    ///
    /// # Safety
    ///
    /// As for [`Interface::md_attach`]; with [`EqHandle::NONE`], the old memory must stay valid until
    /// operations that had begun are complete.
    pub unsafe fn md_update(
        &self,
        md: MdHandle,
        old: Option<&mut Md>,
        new: Option<&Md>,
        test_eq: EqHandle,
    ) -> Result<(), Error> {
        let _ = (md, old, new, test_eq);
        unimplemented!()
    }

    /// `PtlACEntry`
    pub fn ac_entry(
        &self,
        ac_index: AcIndex,
        match_id: ProcessId,
        uid: Uid,
        jid: Jid,
        pt_index: PtIndex,
    ) -> Result<(), Error> {
        let _ = (ac_index, match_id, uid, jid, pt_index);
        unimplemented!()
    }

    /// `PtlPut`
    #[allow(clippy::too_many_arguments)]
    pub fn put(
        &self,
        md: MdHandle,
        ack: AckReq,
        target: ProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
        hdr_data: HdrData,
    ) -> Result<(), Error> {
        let _ = (md, ack, target, pt_index, ac_index, match_bits, remote_offset, hdr_data);
        unimplemented!()
    }

    /// `PtlPutRegion`
    #[allow(clippy::too_many_arguments)]
    pub fn put_region(
        &self,
        md: MdHandle,
        local_offset: Size,
        length: Size,
        ack: AckReq,
        target: ProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
        hdr_data: HdrData,
    ) -> Result<(), Error> {
        let _ =
            (md, local_offset, length, ack, target, pt_index, ac_index, match_bits, remote_offset, hdr_data);
        unimplemented!()
    }

    /// `PtlGet`
    pub fn get(
        &self,
        md: MdHandle,
        target: ProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
    ) -> Result<(), Error> {
        let _ = (md, target, pt_index, ac_index, match_bits, remote_offset);
        unimplemented!()
    }

    /// `PtlGetRegion`
    #[allow(clippy::too_many_arguments)]
    pub fn get_region(
        &self,
        md: MdHandle,
        local_offset: Size,
        length: Size,
        target: ProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
    ) -> Result<(), Error> {
        let _ = (md, local_offset, length, target, pt_index, ac_index, match_bits, remote_offset);
        unimplemented!()
    }

    /// `PtlGetPut`: what was at the target goes to `get_md`, what is in `put_md` goes to the target,
    /// atomically with other get-puts.
    #[allow(clippy::too_many_arguments)]
    pub fn get_put(
        &self,
        get_md: MdHandle,
        put_md: MdHandle,
        target: ProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
        hdr_data: HdrData,
    ) -> Result<(), Error> {
        let _ = (get_md, put_md, target, pt_index, ac_index, match_bits, remote_offset, hdr_data);
        unimplemented!()
    }

    /// Delivers what has come in frames and sends what waits to be sent in frames. The calls that look at
    /// event queues do so by themselves.
    pub fn progress(&self) {
        unimplemented!()
    }

    /// Zeroed memory in the arena, where peers reach it without our help; never freed. `None` if the arena
    /// is used up.
    pub fn alloc(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        let _ = (bytes, align);
        unimplemented!()
    }

    /// Tells that `len` bytes from `base` are shared: `peers[i]` is where the same bytes of the segment of
    /// process `i` are mapped here (null: nowhere), `lens[i]` their length. Descriptors made later inside
    /// of it are reached without our help.
    ///
    /// # Safety
    ///
    /// The mappings must stay valid while the interface lives.
    pub unsafe fn expose(&self, base: *mut u8, len: usize, peers: &[*mut u8], lens: &[usize]) {
        let _ = (base, len, peers, lens);
        unimplemented!()
    }

    /// The doorbell's count, to be taken before the last look at the queues before a [`Interface::sleep`].
    /// It changes when an event is posted to any queue of ours after this call.
    pub fn doorbell(&self) -> u32 {
        unimplemented!()
    }

    /// Sleeps until `seen` is no longer the doorbell's count or `timeout_ns` have passed; may wake for no
    /// reason.
    pub fn sleep(&self, seen: u32, timeout_ns: u64) {
        let _ = (seen, timeout_ns);
        unimplemented!()
    }

    /// The index of a process that holds something that we have been waiting for (a slot that it reserved
    /// and did not publish, a lock word), if there is one now.
    pub fn blocked_by(&self) -> Option<u32> {
        unimplemented!()
    }

    /// What the operating system says of the process with this index.
    pub fn peer_state(&self, index: u32) -> PeerState {
        let _ = index;
        unimplemented!()
    }

    /// What has travelled so far.
    pub fn counters(&self) -> Counters {
        unimplemented!()
    }

    /// Target's side of a framed message: matches it, claims its descriptor, posts START. `None`: dropped
    /// and counted.
    pub(crate) fn arrival_begin(&self, header: &Header) -> Option<Transfer> {
        let _ = header;
        unimplemented!()
    }

    /// Initiator's side, when the first bytes of a reply come in: claims the descriptor of the get, posts
    /// REPLY_START. `None`: it is gone, inactive or too short; dropped and counted. `header` is the get's,
    /// with `initiator` the target.
    pub(crate) fn reply_begin(
        &self,
        md: MdHandle,
        local_offset: Size,
        mlength: Size,
        header: &Header,
    ) -> Option<Transfer> {
        let _ = (md, local_offset, mlength, header);
        unimplemented!()
    }

    /// Initiator's side: an acknowledgement came. Claims the descriptor and posts ACK; if it is gone,
    /// counts a drop. `header` is the put's, with `initiator` the target.
    pub(crate) fn ack_arrived(&self, md: MdHandle, remote_offset: Size, mlength: Size, header: &Header) {
        let _ = (md, remote_offset, mlength, header);
        unimplemented!()
    }

    /// Copies bytes out of the memory of a transfer, `at` bytes from its start. False: the memory cannot be
    /// read.
    pub(crate) fn transfer_read(&self, transfer: &Transfer, at: Size, to: &mut [u8]) -> bool {
        let _ = (transfer, at, to);
        unimplemented!()
    }

    /// Copies bytes into the memory of a transfer, `at` bytes from its start.
    pub(crate) fn transfer_write(&self, transfer: &Transfer, at: Size, from: &[u8]) -> bool {
        let _ = (transfer, at, from);
        unimplemented!()
    }

    /// Swaps the bytes of a get-put arrival, atomically with other get-puts: `bytes` goes in and comes back
    /// as what was there.
    pub(crate) fn transfer_swap(&self, transfer: &Transfer, bytes: &mut [u8]) -> bool {
        let _ = (transfer, bytes);
        unimplemented!()
    }

    /// Posts END (and UNLINK, if it is the descriptor's last), and lets go of the descriptor.
    pub(crate) fn transfer_end(&self, transfer: Transfer, ok: bool) {
        let _ = (transfer, ok);
        unimplemented!()
    }
}

/// What `wire` needs of the interface besides transfers.
impl Interface {
    /// The network below.
    pub(crate) fn nal(&self) -> &dyn Nal {
        unimplemented!()
    }

    /// Whether the peer's arena is mapped here.
    pub(crate) fn is_mapped(&self, peer: u32) -> bool {
        let _ = peer;
        unimplemented!()
    }

    /// Wakes a mapped peer that sleeps on its doorbell, because a frame was put where it will look; anything else
    /// is woken by its NAL.
    pub(crate) fn wake(&self, peer: u32) {
        let _ = peer;
        unimplemented!()
    }
}
