//! Puts and gets of registered memory: each is a transfer, cut at the borders of regions.
//!
//! Called by `put`, `get` and `request` on their cold paths.
//! Invariant: a piece takes the region of the target first, then its local side, and its send
//! ticket last; it waits with full polls for the first two. So it waits for no peer that waits for
//! what it holds.

use super::firehose::{
    HoldState, LocalAccess, LocalHold, MemoryExtent, MissTurn, Mover, PinError, RegionName,
    RemoteAccess, RemoteHold,
};
use super::pinned::bits;
use super::pinned::flights::{Flight, FlightSide, Flights, NO_REGION, Piece, RejectedPiece};
use super::pinned::{PinnedMemory, RegionFirehose};
use super::pinned_messages::AmMover;
use super::portals::{MdPart, Portals};
use super::queue::broken;
use super::refused::RefusedAccess;
use super::{Conduit, OpId, ResourceNeed, Upcall};
use crate::client_memory::{AddressSpace, Dst, RemoteRange, Src};
use crate::rank::JobRank;
use crate::{report, trace};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

/// The local side of a transfer.
#[derive(Clone, Copy)]
pub(super) enum LocalBytes<'a> {
    /// Of a put.
    From(Src<'a>),
    /// Of a get.
    To(Dst<'static>),
}

impl<'a> LocalBytes<'a> {
    fn len(self) -> usize {
        match self {
            LocalBytes::From(src) => src.len(),
            LocalBytes::To(dst) => dst.len(),
        }
    }

    fn address(self) -> usize {
        match self {
            LocalBytes::From(src) => src.as_ptr().addr(),
            LocalBytes::To(dst) => dst.as_ptr().addr(),
        }
    }

    fn is_put(self) -> bool {
        matches!(self, LocalBytes::From(_))
    }

    fn part(self, at: usize, len: usize) -> LocalBytes<'a> {
        match self {
            LocalBytes::From(src) => LocalBytes::From(src.part(at, len)),
            LocalBytes::To(dst) => LocalBytes::To(dst.part(at, len)),
        }
    }
}

/// A transfer that its owner is starting.
struct TransferStart<'a, P: Portals, U> {
    conduit: &'a Conduit<P>,
    up: U,
    pinned: &'a PinnedMemory<P>,
    rank: JobRank,
    transfer: u32,
    /// A piece under way reads or writes memory of the client: its local side is a region.
    uses_local: Cell<bool>,
}

/// A part of a transfer.
#[derive(Clone, Copy)]
struct TransferPart<'a> {
    /// Where it begins in the segment of the target, or in its address space.
    offset: usize,
    /// The address of that where memory of the target is registered on demand.
    base: usize,
    /// Bytes of the transfer before it.
    at: usize,
    local: LocalBytes<'a>,
}

impl<'a> TransferPart<'a> {
    fn first(self, len: usize) -> TransferPart<'a> {
        TransferPart { local: self.local.part(0, len), ..self }
    }

    fn without(self, len: usize) -> TransferPart<'a> {
        let TransferPart { offset, at, local, .. } = self;
        let local = local.part(len, local.len() - len);
        TransferPart { offset: offset.wrapping_add(len), at: at + len, local, ..self }
    }

    /// Its address at the target, where that registers on demand.
    fn address(self) -> usize {
        self.base.wrapping_add(self.offset)
    }
}

/// Where a piece goes at its target.
enum PieceTarget {
    /// To an offset of the segment.
    Segment(usize),
    /// To a region that this rank holds, under its name, at an offset.
    Region(RemoteHold, u64, usize),
    /// The data have arrived with the request to register.
    Arrived,
}

impl<P: Portals> Conduit<P> {
    /// Puts to memory of a rank, or gets from it; ends with [`Upcall::op_done`], once, if there is
    /// an operation. With `stays` the source of a put may be read until then, otherwise it may be
    /// reused when this returns; without an operation the transfer is complete then.
    #[cold]
    pub(super) fn transfer<U: Upcall>(
        &self,
        up: U,
        remote: RemoteRange,
        local: LocalBytes<'_>,
        op: Option<OpId>,
        stays: bool,
    ) {
        let Some(pinned) = self.pinned.get() else { self.not_exposed() };
        if let Some(own) = self.own_registered(pinned, remote) {
            match local {
                LocalBytes::From(src) => own.copy_from(src),
                LocalBytes::To(dst) => dst.copy_from(own.into()),
            }
            return op.into_iter().for_each(|op| up.op_done(op));
        }
        let to = match local {
            LocalBytes::From(_) => Dst::empty(),
            LocalBytes::To(dst) => dst,
        };
        let need = ResourceNeed::of(&"a put or get for its record");
        let transfer = self.wait_full(up, need, || {
            self.send_rejected(up);
            pinned.transfers.begin(op, to)
        });
        let start = TransferStart {
            conduit: self,
            up,
            pinned,
            rank: remote.rank(),
            transfer,
            uses_local: Cell::new(false),
        };
        let base = pinned.base_of(remote.rank());
        start.start(TransferPart { offset: remote.offset(), base, at: 0, local });
        if op.is_none() || !stays && start.uses_local.get() {
            let need = ResourceNeed::of(&"the pieces of a put");
            self.wait_full(up, need, || {
                self.send_rejected(up);
                pinned.transfers.is_quiet(transfer).then_some(())
            });
        }
        if let Some(op) = pinned.transfers.disown(transfer) {
            up.op_done(op);
        }
    }

    /// Sends what the firehose has to send. Part of each poll outside handlers, where memory is
    /// registered on demand.
    pub fn progress_pinned<U: Upcall>(&self, up: U) {
        let Some(pinned) = self.pinned.get() else { return };
        if let Some(firehose) = &pinned.firehose {
            firehose.progress(&AmMover { conduit: self, up, address: 0 });
            self.send_rejected(up);
            if trace::on() {
                pinned.stats_trace.write(|| firehose.stats());
            }
        }
    }

    /// Sends the pieces that their targets have refused, in active messages: the next access to
    /// their memory has it registered anew.
    #[inline]
    fn send_rejected<U: Upcall>(&self, up: U) {
        let Some(pinned) = self.pinned.get() else { return };
        while let Some(rejected) = pinned.rejected.next() {
            self.send_in_messages(up, pinned, &rejected);
        }
    }

    #[cold]
    fn send_in_messages<U: Upcall>(
        &self,
        up: U,
        pinned: &PinnedMemory<P>,
        rejected: &RejectedPiece,
    ) {
        let &RejectedPiece { transfer, put, piece, ref copied } = rejected;
        let Piece { rank, offset, at, address, len } = piece;
        let here = AddressSpace::extent(address, len);
        let local = match copied {
            Some(bytes) => LocalBytes::From(Src::from(&**bytes)),
            None if put => LocalBytes::From(here.into()),
            None => LocalBytes::To(here),
        };
        let uses_local = Cell::new(false);
        let start = TransferStart { conduit: self, up, pinned, rank, transfer, uses_local };
        start.copy(TransferPart { offset, base: pinned.base_of(rank), at, local });
        // It stands for the messages.
        match pinned.transfers.piece_done(transfer) {
            Ok(Some(op)) => up.op_done(op),
            Ok(None) => {}
            Err(_) => unreachable!("a piece that was refused is under way"),
        }
    }

    /// A chunk as the local side of a piece.
    fn bounce(&self, chunk: u32, local: LocalBytes<'_>) -> MdPart<P::Md> {
        match local {
            LocalBytes::From(src) => self.reqsb.chunks.part(chunk, src.len()).copy_from(src),
            LocalBytes::To(dst) => self.reqsb.note_get(chunk, dst),
        }
        self.reqsb.part(chunk, local.len())
    }
}

impl<P: Portals, U: Upcall> TransferStart<'_, P, U> {
    /// Starts all of a transfer.
    fn start(&self, all: TransferPart<'_>) {
        let config = &self.pinned.config;
        let reads = config.rdma_gets && self.conduit.portals.echoes_match_bits();
        let Some(firehose) = &self.pinned.firehose else { return self.copy(all) };
        if config.targets_regions() && !all.local.is_put() && !reads {
            return self.copy(all);
        }
        let mut rest = all;
        while rest.local.len() != 0 {
            rest = rest.without(self.start_piece(firehose, rest));
        }
    }

    /// Sends data in active messages, to an address of the target.
    fn copy(&self, part: TransferPart<'_>) {
        let &TransferStart { conduit, up, pinned, rank, transfer, .. } = self;
        let (to, at) = ((rank, part.address()), part.at);
        match part.local {
            LocalBytes::From(src) => conduit.send_copies(up, pinned, to, src, transfer),
            LocalBytes::To(dst) => {
                conduit.ask_copies(up, pinned, to, (at, dst.len()), transfer);
            }
        }
    }

    /// Starts the first piece of what is left: its length.
    fn start_piece(&self, firehose: &RegionFirehose<P>, rest: TransferPart<'_>) -> usize {
        let &TransferStart { conduit, pinned, rank, transfer, .. } = self;
        let (limits, put) = (firehose.limits(), rest.local.is_put());
        let mut len = rest.local.len();
        if pinned.config.targets_regions() {
            len = limits.piece(rest.address(), len);
        }
        let most = if put { conduit.config.put_bounce } else { conduit.config.get_bounce };
        let bounces = len <= most;
        if !bounces {
            len = limits.piece(rest.local.address(), len);
        }
        let piece = rest.first(len);
        let target = match self.find_target(firehose, piece, rest.local.len() - len) {
            Ok(PieceTarget::Arrived) => return len,
            Ok(target) => target,
            Err(error) => {
                self.not_pinned(rank, piece.address(), error, piece.local);
                self.copy(piece);
                return len;
            }
        };
        let hold = Flights::hold(put, transfer);
        let chunk = bounces.then(|| conduit.reqsb.take(hold)).flatten();
        let (local, from) = match chunk {
            Some(chunk) => (FlightSide::Chunk(chunk), conduit.bounce(chunk, piece.local)),
            None => {
                let address = piece.local.address();
                len = limits.piece(address, len);
                let piece = piece.first(len);
                match self.hold_local(firehose, piece.local) {
                    Ok(local) => {
                        self.uses_local.set(true);
                        let part = pinned.pinner.local(firehose.pin_id(local), address, len);
                        (FlightSide::Region(local.number()), part)
                    }
                    Err(error) => {
                        if let PieceTarget::Region(hold, ..) = target {
                            firehose.release_remote(hold);
                        }
                        self.not_pinned(conduit.me, address, error, piece.local);
                        self.copy(piece);
                        return len;
                    }
                }
            }
        };
        let piece = Piece {
            rank,
            offset: piece.offset,
            at: piece.at,
            address: piece.local.address(),
            len,
        };
        self.send(target, from, (local, piece), put);
        len
    }

    /// Starts the put or get of a piece.
    fn send(
        &self,
        target: PieceTarget,
        from: MdPart<P::Md>,
        (local, piece): (FlightSide, Piece),
        put: bool,
    ) {
        let &TransferStart { conduit, up, pinned, rank, transfer, .. } = self;
        let need = ResourceNeed::of(&"a put or get for a send ticket");
        conduit.wait_safe(up, need, || conduit.tickets.take(1));
        pinned.transfers.add_piece(transfer);
        let flight = |remote| pinned.flights.begin(put, Flight { transfer, remote, local, piece });
        let to = match target {
            PieceTarget::Region(hold, name, offset) => {
                conduit.in_pinned_region(pinned, rank, flight(hold.number()), name, offset)
            }
            PieceTarget::Segment(offset) => {
                conduit.in_segment(rank, offset, bits::to_segment(flight(NO_REGION)))
            }
            PieceTarget::Arrived => unreachable!("it needs nothing more"),
        };
        let sent = match put {
            true => conduit.portals.put(from, true, &to),
            false => conduit.portals.get(from, &to),
        };
        sent.unwrap_or_else(|e| broken(e));
    }

    /// Waits until this rank holds the region of a piece, or the piece has arrived with the
    /// request for it. `ahead` more bytes of the transfer follow.
    fn find_target(
        &self,
        firehose: &RegionFirehose<P>,
        piece: TransferPart<'_>,
        ahead: usize,
    ) -> Result<PieceTarget, PinError> {
        let &TransferStart { conduit, up, pinned, rank, .. } = self;
        if !pinned.config.targets_regions() {
            return Ok(PieceTarget::Segment(piece.offset));
        }
        let (start, len) = (piece.address(), piece.local.len());
        let extent = MemoryExtent { start, end: start + len };
        let rides = piece.local.is_put() && len <= pinned.config.put_in_move;
        let mover = AmMover { conduit, up, address: start };
        let need = ResourceNeed::of(&"a put or get for registered memory of a peer");
        let mut turn: Option<MissTurn> = None;
        let access = conduit.wait_full(up, need, || {
            match firehose.remote(rank, extent, ahead, rides, turn) {
                RemoteAccess::Full(mine) => {
                    turn = Some(mine);
                    self.send_waiting(firehose, &mover);
                    None
                }
                access => Some(access),
            }
        });
        let in_region =
            |hold, region: RegionName| PieceTarget::Region(hold, region.key, start - region.start);
        let (hold, rode) = match access {
            RemoteAccess::Ready(hold, region) => return Ok(in_region(hold, region)),
            RemoteAccess::Pending(hold) => (hold, false),
            RemoteAccess::Riding(hold, message) => {
                if let LocalBytes::From(src) = piece.local {
                    mover.send(rank, message.as_bytes(), src);
                }
                (hold, true)
            }
            RemoteAccess::Full(_) => unreachable!("waited for"),
        };
        let state = conduit.wait_full(up, need, || {
            self.send_waiting(firehose, &mover);
            Some(firehose.state(hold)).filter(|state| *state != HoldState::Pending)
        });
        match state {
            _ if rode => {
                firehose.release_remote(hold);
                Ok(PieceTarget::Arrived)
            }
            HoldState::Failed(error) => {
                firehose.release_remote(hold);
                Err(error)
            }
            _ => Ok(in_region(hold, firehose.name(hold))),
        }
    }

    /// Sends what peers wait for, and what keeps records and regions in use, while a piece waits.
    fn send_waiting(&self, firehose: &RegionFirehose<P>, mover: &AmMover<'_, P, U>) {
        firehose.progress(mover);
        self.conduit.send_rejected(self.up);
    }

    /// Waits until the local side of a piece is registered.
    fn hold_local(
        &self,
        firehose: &RegionFirehose<P>,
        local: LocalBytes<'_>,
    ) -> Result<LocalHold, PinError> {
        let &TransferStart { conduit, up, .. } = self;
        let start = local.address();
        let extent = MemoryExtent { start, end: start + local.len() };
        let need = ResourceNeed::of(&"a put or get for registered memory of its own");
        let mover = AmMover { conduit, up, address: 0 };
        let mut turn: Option<MissTurn> = None;
        conduit.wait_full(up, need, || match firehose.local(extent, turn) {
            LocalAccess::Full(mine) => {
                turn = Some(mine);
                self.send_waiting(firehose, &mover);
                None
            }
            LocalAccess::Ready(hold) => Some(Ok(hold)),
            LocalAccess::Failed(error) => Some(Err(error)),
        })
    }

    /// Memory of a rank, at an address, could not be registered. Ends the job if it is missing, or
    /// if the target exposes a segment; otherwise a line says, once, that such data travel in
    /// active messages.
    #[cold]
    fn not_pinned(&self, rank: JobRank, address: usize, error: PinError, local: LocalBytes<'_>) {
        static WARNED: AtomicBool = AtomicBool::new(false);
        let (bytes, put, me) = (local.len(), local.is_put(), self.conduit.me);
        let (operation, can) = if put { ("put", "read") } else { ("get", "written") };
        let (why, remedy) = match error {
            PinError::Refused => (
                "its network refuses that memory",
                "Pass other memory, or set GASNET_USE_FIREHOSE=0.",
            ),
            PinError::Mappings => (
                "its system allows it no more mappings",
                "Raise the sysctl vm.max_map_count or GASNET_FIREHOSE_MAXREGION_SIZE, or lower \
                 GASNET_PHYSMEM_MAX.",
            ),
            _ => (
                "its system lets it lock no more memory",
                "Lower GASNET_PHYSMEM_MAX, or raise `ulimit -l`.",
            ),
        };
        match error {
            PinError::Unmapped if rank == me => report::fatal(
                format_args!(
                    "{bytes} bytes of a {operation} failed: at {address:#x} this rank has no \
                     memory that can be {can}"
                ),
                format_args!("Pass memory of this rank as the local side, from end to end."),
            ),
            PinError::Unmapped => RefusedAccess {
                operation: if put { "a put" } else { "a get" },
                bytes,
                piece: true,
                initiator: me,
                target: rank,
                address,
                writes: put,
            }
            .report(),
            // The data travel in active messages. Its owner pins it for its own transfers.
            PinError::Unwatched => {}
            _ if !self.pinned.config.targets_regions() => report::fatal(
                format_args!(
                    "rank {rank} cannot register {bytes} bytes at {address:#x}, as {why}"
                ),
                format_args!("{remedy}"),
            ),
            _ if WARNED.swap(true, Ordering::Relaxed) => {}
            _ => report::warn(
                format_args!(
                    "rank {rank} cannot register {bytes} bytes at {address:#x}, as {why}: such \
                     data travel in active messages"
                ),
                format_args!("{remedy}"),
            ),
        }
    }
}
