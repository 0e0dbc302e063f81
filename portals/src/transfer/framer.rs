//! Messages cut into frames, for peers whose memory cannot be reached.
//!
//! The calls submit a message for a peer with [`crate::nal::Route::Wire`]. They also submit one
//! for a mapped peer if its descriptor lies in private memory that cross-memory attach cannot
//! reach. While such a message is in flight ([`Framer::busy`]), every later message of the pair is
//! submitted too. So messages match in the order in which they were sent. [`Framer::progress`]
//! runs inside the calls that look at event queues.
//!
//! The peers are divided among the lanes of the NAL ([`crate::nal::Nal::lane_of`]). Each lane has
//! a lock of its own, so that several threads send and take frames at once. A thread that has the
//! lock of a lane takes that of no other one. Within it come the locks of the network, and the
//! lock of the exposures ([`OwnExposures`]) within those.
//!
//! A message is one or more frames with the same [`FrameHeader`], each with its part of the
//! payload. The target matches it when the first frame arrives, and posts START; END follows the
//! last accepted byte. A [`crate::nal::Nal`] must deliver the first frame of a message before its
//! others. It must deliver the first frames of the requests of a pair in order
//! ([`FrameTag::precedes`](crate::FrameTag::precedes)). Any other order is allowed. What cannot
//! leave at once waits in a queue of messages, not of frames: the bytes stay in place, held by the
//! message's [`FramedTransfer`].
//!
//! Invariant: nothing that a peer wrote is used before it is checked. The NAL names the sender
//! of a frame; lengths and offsets are compared with what was accepted; handles are looked up.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::{mem, ptr};

use super::exposures::{ExposureNotice, OwnExposure, OwnExposures};
use super::framed::FramedTransfer;
use super::lane::{
    FramerLane, IncomingMessage, OutgoingMessage, OutgoingPayload, own_lane, send_frame,
};
use super::submission::Submission;
use crate::arena::{IOVECS, doorbell};
use crate::base::lock::{SpinGuard, SpinLock};
use crate::message::OpKind;
use crate::nal::frame::{FrameHeader, FrameRole};
use crate::nal::{FrameSent, FrameSink};
use crate::tables::NiState;
use crate::types::*;
use sys::{clock, thread};

/// Frames that one call of [`Framer::progress`] takes from a lane, at most; of frames that share a
/// message, it takes all.
const TAKEN_AT_ONCE: usize = 64;

/// Most blocks that it registers: that may take a millisecond each.
const BLOCKS_AT_ONCE: usize = 4;

/// How long a first message waits for its target, and all first messages together.
const MEETING_NS: u64 = 5_000_000;
const MEETINGS_NS: u64 = 100_000_000;

/// The framing state of one interface.
#[derive(Debug)]
pub(crate) struct Framer {
    /// Requests to mapped peers that the peer has not confirmed, by peer of this host. Written
    /// under the lock of the peer's lane.
    busy: Box<[AtomicU32]>,
    /// Messages in `outgoing`, and those by remote access that wait. Written under the lock of
    /// their lane.
    waiting: AtomicU32,
    /// A descriptor is exposed. Written under the lock of `own`.
    exposes: AtomicBool,
    /// Blocks that peers have accessed are to be registered. Written under the lock of `own`.
    must_register: AtomicBool,
    /// Held by the thread that registers them.
    registering: SpinLock<()>,
    own: SpinLock<OwnExposures>,
    /// Messages by remote access.
    remote: AtomicU64,
    /// Nanoseconds that [`Framer::meet`] has taken.
    met_ns: AtomicU64,
    /// How many threads collect messages that are to leave together.
    held: AtomicU32,
    sent: AtomicU64,
    taken: AtomicU64,
    lanes: Box<[SpinLock<FramerLane>]>,
}

impl Framer {
    /// For `size` processes of this host, and the lanes of a NAL.
    pub(crate) fn new(size: u32, lanes: usize) -> Framer {
        Framer {
            busy: (0..size).map(|_| AtomicU32::new(0)).collect(),
            waiting: AtomicU32::new(0),
            exposes: AtomicBool::new(false),
            must_register: AtomicBool::new(false),
            registering: SpinLock::new(()),
            own: SpinLock::new(OwnExposures::default()),
            remote: AtomicU64::new(0),
            met_ns: AtomicU64::new(0),
            held: AtomicU32::new(0),
            sent: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            lanes: (0..lanes).map(|_| SpinLock::new(FramerLane::default())).collect(),
        }
    }

    /// The lane of a peer.
    fn lane(&self, ni: &NiState, peer: u32) -> SpinGuard<'_, FramerLane> {
        self.lanes[ni.peers.nal.lane_of(peer)].lock()
    }

    /// Peers may use this descriptor by remote access from now on.
    pub(crate) fn expose(&self, exposure: OwnExposure) {
        let mut own = self.own.lock();
        own.expose(exposure);
        self.exposes.store(true, Ordering::Relaxed);
    }

    /// Messages by remote access.
    pub(crate) fn remote_messages(&self) -> u64 {
        self.remote.load(Ordering::Relaxed)
    }

    /// Accepts a message. It is sent at once or by a later [`Framer::progress`].
    pub(crate) fn submit(&self, ni: &NiState, message: Submission) {
        let target = message.target;
        let mut lane = self.lane(ni, target);
        let Some(message) = lane.remote.submit(ni, &self.waiting, message) else {
            self.remote.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let mut frame = first_frame(&message);
        let is_mapped = ni.peers.is_mapped(target);
        frame.confirm = is_mapped;
        let payload = message.source.map_or(OutgoingPayload::None, OutgoingPayload::Memory);
        if frame.confirm
            && let Some(busy) = self.busy.get(target as usize)
        {
            busy.fetch_add(1, Ordering::Relaxed);
        }
        self.enqueue(ni, &mut lane, target, frame, payload);
        let is_held = self.held.load(Ordering::Relaxed) != 0;
        if !is_held && (is_mapped || !lane.waits_for_more(target)) {
            self.pump(ni, &mut lane, target);
        }
    }

    /// Lets a first message to a process of another host leave, if that process answers soon. This
    /// one may not call again for long. `submit` came before, and its caller holds nothing.
    pub(crate) fn meet(&self, ni: &NiState, peer: u32) {
        if is_here(ni, peer) || !self.is_waiting() || !ni.peers.nal.is_meeting(peer) {
            return;
        }
        let begun = clock::now_ns();
        let until = begun.saturating_add(MEETING_NS);
        let has_time = || self.met_ns.load(Ordering::Relaxed) < MEETINGS_NS;
        while has_time() && ni.peers.nal.is_meeting(peer) && clock::now_ns() < until {
            ni.peers.nal.look_soon();
            self.progress_lanes(ni);
            thread::yield_now();
        }
        self.met_ns.fetch_add(clock::now_ns().saturating_sub(begun), Ordering::Relaxed);
    }

    /// Messages that are submitted from now on wait for a call of [`Framer::progress`] or
    /// [`Framer::release`], so that many leave together.
    pub(crate) fn hold(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends what [`Framer::hold`] began, and sends what waits.
    pub(crate) fn release(&self, ni: &NiState) {
        self.held.fetch_sub(1, Ordering::Relaxed);
        for lane in &self.lanes {
            // A thread that submits has the lock: what it left is seen here, or it sees this
            // release.
            let mut lane = lane.lock();
            if self.is_waiting() {
                self.pump_all(ni, &mut lane);
            }
        }
    }

    /// Sends to all peers of a lane for which something waits.
    fn pump_all(&self, ni: &NiState, lane: &mut FramerLane) {
        let mut turn = mem::take(&mut lane.turn);
        turn.extend(lane.outgoing.keys());
        for peer in turn.drain(..) {
            self.pump(ni, lane, peer);
        }
        lane.turn = turn;
    }

    /// Whether a framed message from us to `target` has not been confirmed yet.
    pub(crate) fn busy(&self, target: u32) -> bool {
        // Acquire pairs with the Release in `take`: the next message finds the list as the
        // confirmed one left it.
        self.busy.get(target as usize).is_some_and(|busy| busy.load(Ordering::Acquire) != 0)
    }

    /// Whether messages wait for room.
    #[inline(always)]
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Frames of our messages, sent or waiting; and frames that arrived.
    pub(crate) fn counters(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.taken.load(Ordering::Relaxed))
    }

    /// Sends what waits and takes what has arrived. Called often; returns at once if there is
    /// nothing to do or other threads are doing it.
    pub(crate) fn progress(&self, ni: &NiState) {
        if self.waiting.load(Ordering::Relaxed) == 0
            && !ni.peers.has_frames()
            && !self.must_register.load(Ordering::Relaxed)
        {
            return;
        }
        self.progress_lanes(ni);
        if self.must_register.load(Ordering::Relaxed) {
            self.register(ni);
        }
    }

    /// The same, but for the registration of memory. For a process that ends: it waits
    /// for no lock of a lane.
    pub(crate) fn progress_lanes(&self, ni: &NiState) {
        let count = self.lanes.len();
        let first = if count == 1 { 0 } else { own_lane(count) };
        for number in (first..count).chain(0..first) {
            self.progress_lane(ni, number);
        }
    }

    fn progress_lane(&self, ni: &NiState, number: usize) {
        let Some(mut guard) = self.lanes[number].try_lock() else {
            doorbell::stay_awake(ni.peers.own.view.header()); // the other thread may leave some
            return;
        };
        let lane = &mut *guard;
        if lane.looks() {
            lane.end_those_of_dead(ni);
        }
        ni.peers.nal.receive(number, TAKEN_AT_ONCE, &mut FramesFor { framer: self, ni, lane });
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.pump_all(ni, lane);
            lane.remote.pump_all(ni, &self.waiting);
        }
    }

    /// Registers some of the blocks that peers have accessed. That may take a millisecond each, so
    /// no lock of a lane is held here meanwhile. A network with one lane holds its own lock.
    #[cold]
    fn register(&self, ni: &NiState) {
        let Some(_registering) = self.registering.try_lock() else { return };
        let Some(remote) = super::exposed::memory(ni) else { return };
        for _ in 0..BLOCKS_AT_ONCE {
            let mut notices = Vec::new();
            let block = self.own.lock().next_block(&mut notices);
            for (peer, notice) in notices {
                let mut lane = self.lane(ni, peer);
                self.notify(ni, &mut lane, peer, &notice);
                self.pump(ni, &mut lane, peer);
            }
            let Some(block) = block else { break };
            // SAFETY: memory of an exposed descriptor, by the contract of `expose_remotely`.
            let region = unsafe { block.register(remote) };
            self.own.lock().registered(&block, region);
        }
        let own = self.own.lock();
        self.must_register.store(own.has_accesses(), Ordering::Relaxed);
    }

    /// Sends a notice.
    fn notify(&self, ni: &NiState, lane: &mut FramerLane, peer: u32, notice: &ExposureNotice) {
        let mlength = ExposureNotice::BYTES as Size;
        let frame = FrameHeader { mlength, ..FrameHeader::of(FrameRole::Exposed) };
        self.enqueue(ni, lane, peer, frame, OutgoingPayload::Bytes(notice.encode()));
    }

    fn enqueue(
        &self,
        ni: &NiState,
        lane: &mut FramerLane,
        peer: u32,
        mut frame: FrameHeader,
        payload: OutgoingPayload,
    ) {
        lane.next_message = lane.next_message.wrapping_add(1);
        frame.message = lane.next_message;
        frame.at = 0;
        let frames = frame.length().div_ceil(payload_room(ni, peer, &frame)).max(1);
        self.sent.fetch_add(frames, Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let queue = lane.outgoing.entry(peer).or_insert_with(|| mem::take(&mut lane.spare));
        queue.push_back(OutgoingMessage { frame, payload });
    }

    /// Sends to one peer until the network has no room or nothing waits.
    fn pump(&self, ni: &NiState, lane: &mut FramerLane, peer: u32) {
        let mut left = false;
        let FramerLane { outgoing, head, scratch, .. } = lane;
        let Some(queue) = outgoing.get_mut(&peer) else { return };
        loop {
            let are_more = queue.len() > 1;
            let Some(message) = queue.front_mut() else { break };
            let rest = message.frame.length() - message.frame.at;
            let piece = rest.min(payload_room(ni, peer, &message.frame));
            let follows = are_more && piece == rest;
            match send_frame(ni, peer, message, (piece, follows), (&mut *head, &mut *scratch)) {
                FrameSent::Full => break,
                FrameSent::Gone => {
                    message.frame.failed = true;
                    if message.frame.awaits_reply() {
                        ni.reply_fails(message.frame.md);
                    }
                }
                FrameSent::Sent => {
                    left = true;
                    message.frame.at += piece;
                    if message.frame.at != message.frame.length() {
                        continue;
                    }
                }
            }
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            if let Some(OutgoingMessage { payload: OutgoingPayload::Memory(transfer), frame }) =
                queue.pop_front()
            {
                ni.transfer_end(transfer, !frame.failed);
            }
        }
        if queue.is_empty()
            && let Some(empty) = outgoing.remove(&peer)
        {
            lane.spare = empty;
        }
        if left {
            ni.peers.wake(peer);
        }
    }

    /// Takes one frame.
    fn take(
        &self,
        ni: &NiState,
        lane: &mut FramerLane,
        peer: u32,
        frame: FrameHeader,
        payload: &[u8],
    ) {
        if peer >= ni.peers.total() {
            return;
        }
        match (frame.role, frame.op) {
            (FrameRole::Taken, op) => {
                if frame.failed && op != OpKind::Put {
                    ni.reply_fails(frame.md);
                }
                // A peer that confirms too often only loses its own order of arrival.
                if let Some(word) = self.busy.get(peer as usize) {
                    let less = |n: u32| n.checked_sub(1);
                    let _ = word.fetch_update(Ordering::Release, Ordering::Relaxed, less);
                }
            }
            (FrameRole::Exposed, _) if is_here(ni, peer) => {}
            (FrameRole::Exposed, _) => lane.remote.learn(ni, peer, payload),
            (FrameRole::Ack, _) => {
                let (offset, mlength, header) =
                    (frame.remote_offset, frame.mlength, frame.header(peer));
                ni.ack_arrived(frame.md, offset, mlength, &header, !frame.failed);
            }
            (FrameRole::Request, OpKind::Get) => self.take_get(ni, lane, peer, &frame),
            (FrameRole::Request, OpKind::GetPut) => {
                self.take_get_put(ni, lane, peer, &frame, payload)
            }
            (FrameRole::Request, OpKind::Put) | (FrameRole::Reply, _) => {
                self.take_bytes(ni, lane, peer, frame, payload);
            }
        }
    }

    fn take_get(&self, ni: &NiState, lane: &mut FramerLane, peer: u32, frame: &FrameHeader) {
        if let Some(transfer) = self.match_request(ni, lane, peer, frame) {
            let answer =
                FrameHeader { role: FrameRole::Reply, mlength: transfer.mlength, ..*frame };
            self.enqueue(ni, lane, peer, answer, OutgoingPayload::Memory(transfer));
        }
    }

    /// A get-put is never longer than one frame; this library sends no longer one, so one that
    /// arrives is ignored.
    fn take_get_put(
        &self,
        ni: &NiState,
        lane: &mut FramerLane,
        peer: u32,
        frame: &FrameHeader,
        payload: &[u8],
    ) {
        if payload.len() as Size != frame.rlength {
            return;
        }
        if let Some(transfer) = self.match_request(ni, lane, peer, frame) {
            let mlength = transfer.mlength;
            let mut bytes = payload[..mlength as usize].to_vec();
            let ok = ni.transfer_swap(&transfer, &mut bytes);
            ni.transfer_end(transfer, ok);
            let answer = FrameHeader { role: FrameRole::Reply, failed: !ok, mlength, ..*frame };
            self.enqueue(ni, lane, peer, answer, OutgoingPayload::Bytes(bytes));
        }
    }

    /// Matches a request whose first frame has arrived.
    fn match_request(
        &self,
        ni: &NiState,
        lane: &mut FramerLane,
        peer: u32,
        frame: &FrameHeader,
    ) -> Option<FramedTransfer> {
        let transfer = ni.arrival_begin(&frame.header(peer));
        if self.exposes.load(Ordering::Relaxed)
            && let Some(transfer) = transfer.as_ref().filter(|_| !is_here(ni, peer))
        {
            let notices = {
                let mut own = self.own.lock();
                let notices = own.accessed(peer, transfer, frame.ac_index);
                self.must_register.store(own.has_accesses(), Ordering::Relaxed);
                notices
            };
            for notice in notices {
                self.notify(ni, lane, peer, &notice);
            }
        }
        if frame.confirm {
            self.enqueue(
                ni,
                lane,
                peer,
                FrameHeader { role: FrameRole::Taken, failed: transfer.is_none(), ..*frame },
                OutgoingPayload::None,
            );
        }
        transfer
    }

    /// A frame of a put or of a reply. A frame that is not the first of its message, and whose
    /// message is not in progress, belongs to one that was dropped or truncated.
    fn take_bytes(
        &self,
        ni: &NiState,
        lane: &mut FramerLane,
        peer: u32,
        frame: FrameHeader,
        payload: &[u8],
    ) {
        let key = (peer, frame.message);
        if frame.at == 0 && !lane.incoming.contains_key(&key) {
            let transfer = match frame.role {
                FrameRole::Reply => ni.reply_begin(
                    frame.md,
                    frame.local_offset,
                    frame.mlength,
                    &frame.header(peer),
                    ni.peers.is_mapped(peer),
                ),
                FrameRole::Request | FrameRole::Ack | FrameRole::Taken | FrameRole::Exposed => {
                    self.match_request(ni, lane, peer, &frame)
                }
            };
            let Some(transfer) = transfer else { return };
            let missing = transfer.mlength;
            lane.incoming.insert(key, IncomingMessage { transfer, frame, missing, ok: true });
        }
        let Some(message) = lane.incoming.get(&key) else { return };
        let accepted =
            message.transfer.mlength.saturating_sub(frame.at).min(payload.len() as Size);
        let ok = accepted == 0
            || !frame.failed
                && ni.transfer_write(&message.transfer, frame.at, &payload[..accepted as usize]);
        self.arrived(ni, lane, key, accepted, ok);
    }

    /// Bytes of a message have been written to their place, or not if they are not `ok`.
    fn arrived(
        &self,
        ni: &NiState,
        lane: &mut FramerLane,
        key: (u32, u32),
        accepted: Size,
        ok: bool,
    ) {
        let Some(message) = lane.incoming.get_mut(&key) else { return };
        message.ok &= ok;
        message.missing = message.missing.saturating_sub(accepted);
        if message.missing == 0
            && let Some(message) = lane.incoming.remove(&key)
        {
            self.finish(ni, lane, key.0, message);
        }
    }

    /// Ends a put or reply whose accepted bytes have all arrived.
    fn finish(&self, ni: &NiState, lane: &mut FramerLane, peer: u32, message: IncomingMessage) {
        let IncomingMessage { transfer, frame, ok, .. } = message;
        let (offset, mlength, acknowledge) =
            (transfer.offset, transfer.mlength, transfer.ack_allowed && frame.ack);
        ni.transfer_end(transfer, ok);
        if acknowledge && frame.role == FrameRole::Request {
            let (role, failed) = (FrameRole::Ack, !ok);
            let answer = FrameHeader { role, failed, remote_offset: offset, mlength, ..frame };
            self.enqueue(ni, lane, peer, answer, OutgoingPayload::None);
        }
    }
}

/// Takes the frames that a NAL passes on.
struct FramesFor<'a> {
    framer: &'a Framer,
    ni: &'a NiState,
    lane: &'a mut FramerLane,
}

impl FrameSink for FramesFor<'_> {
    fn frame(&mut self, peer: u32, frame: &[u8]) {
        self.framer.taken.fetch_add(1, Ordering::Relaxed);
        if let Some((frame, payload)) = FrameHeader::decode(frame) {
            self.lane.takes(peer, &frame);
            self.framer.take(self.ni, self.lane, peer, frame, payload);
        }
    }

    fn place(&mut self, peer: u32, header: &[u8]) -> Option<(*mut u8, usize)> {
        let (frame, _) = FrameHeader::decode(header)?;
        let message = self.lane.incoming.get(&(peer, frame.message))?;
        let length = message.transfer.mlength.checked_sub(frame.at).filter(|&n| n != 0)?;
        if frame.failed {
            return None;
        }
        let mut pieces = [MdIovec { base: ptr::null_mut(), len: 0 }; IOVECS];
        self.ni.transfer_pieces(&message.transfer, frame.at, length, &mut pieces)?;
        Some((pieces[0].base.cast(), pieces[0].len as usize))
    }

    fn placed(&mut self, peer: u32, header: &[u8], length: usize) {
        self.framer.taken.fetch_add(1, Ordering::Relaxed);
        if let Some((frame, _)) = FrameHeader::decode(header) {
            self.lane.takes(peer, &frame);
            let key = (peer, frame.message);
            self.framer.arrived(self.ni, self.lane, key, length as Size, true);
        }
    }

    fn completed(&mut self, token: u64, ok: bool) {
        self.lane.remote.completed(self.ni, token, ok);
    }
}

/// The header of the first frame of a message.
fn first_frame(message: &Submission) -> FrameHeader {
    let header = &message.header;
    FrameHeader {
        role: FrameRole::Request,
        op: header.kind,
        ack: message.ack,
        confirm: false,
        failed: false,
        message: 0,
        at: 0,
        uid: header.uid,
        jid: header.jid,
        pt_index: header.pt_index,
        ac_index: header.ac_index,
        match_bits: header.match_bits,
        remote_offset: header.remote_offset,
        rlength: header.rlength,
        hdr_data: header.hdr_data,
        md: message.md,
        local_offset: message.local_offset,
        mlength: 0,
    }
}

/// Whether a peer is a process of this host, which no wire reaches.
fn is_here(ni: &NiState, peer: u32) -> bool {
    peer < ni.peers.nal.size()
}

/// Payload bytes of a frame to this peer of the message that `frame` belongs to, whatever its
/// header.
fn payload_room(ni: &NiState, peer: u32, frame: &FrameHeader) -> Size {
    (ni.peers.nal.max_frame(peer, frame.length()) - FrameHeader::MOST_BYTES) as Size
}
