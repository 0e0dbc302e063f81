//! The records of transfers, and of their pieces under way.
//!
//! Used by `pinned_transfer`, `pinned_messages` and `pinned_events`. Invariants: a transfer counts
//! its pieces and its owner, the call that begins it, and is complete when none is left. A flight
//! is free again when its event has been taken, once.

use super::super::OpId;
use super::super::hold::Hold;
use super::super::sync::{self, FreeList, ParLock};
use crate::client_memory::Dst;
use crate::rank::JobRank;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crossbeam_utils::atomic::AtomicCell;
use sys::peer::Peer;

/// Transfers at once.
const TRANSFERS: u32 = 1024;
/// The owner of a transfer among its pieces.
const OWNER: u32 = 1 << 31;
/// Stands for no region, in [`Flight::remote`].
pub(in crate::conduit) const NO_REGION: u32 = u32::MAX;
/// Stands for no operation.
const NO_OP: u64 = u64::MAX;

#[derive(Debug)]
struct TransferSlot {
    /// The operation that it completes.
    op: AtomicU64,
    /// Pieces that are not complete; the owner counts as [`OWNER`].
    left: AtomicU32,
    /// The destination of a get.
    to: AtomicCell<Dst<'static>>,
}

/// The transfers of a process.
pub(in crate::conduit) struct Transfers {
    par: bool,
    free: FreeList,
    slots: Box<[TransferSlot]>,
}

impl Transfers {
    pub(in crate::conduit) fn new(par: bool) -> Transfers {
        let slot = || TransferSlot {
            op: AtomicU64::new(NO_OP),
            left: AtomicU32::new(0),
            to: AtomicCell::new(Dst::empty()),
        };
        let slots = (0..TRANSFERS).map(|_| slot()).collect();
        Transfers { par, free: FreeList::new(par, TRANSFERS), slots }
    }

    /// Begins a transfer; the caller is its owner. `None`: too many are under way.
    pub(in crate::conduit) fn begin(&self, op: Option<OpId>, to: Dst<'static>) -> Option<u32> {
        let index = self.free.take(Hold::HERE)?;
        let slot = &self.slots[index as usize];
        slot.op.store(op.map_or(NO_OP, |op| op.0.into()), Ordering::Relaxed);
        slot.to.store(to);
        slot.left.store(OWNER, Ordering::Relaxed);
        Some(index)
    }

    /// Counts a piece that its owner is about to start.
    pub(in crate::conduit) fn add_piece(&self, index: u32) {
        sync::count(self.par, &self.slots[index as usize].left, 1);
    }

    /// Whether all pieces that were started are complete.
    pub(in crate::conduit) fn is_quiet(&self, index: u32) -> bool {
        // Acquire pairs with the Release in `count`: what the pieces brought is seen.
        self.slots[index as usize].left.load(Ordering::Acquire) == OWNER
    }

    /// The owner has started all pieces.
    #[must_use]
    pub(in crate::conduit) fn disown(&self, index: u32) -> Option<OpId> {
        self.lower(index, OWNER)
    }

    /// A piece is complete. `Err`: none is under way.
    pub(in crate::conduit) fn piece_done(&self, index: u32) -> Result<Option<OpId>, NoSuchPiece> {
        let slot = self.slots.get(index as usize).ok_or(NoSuchPiece)?;
        if slot.left.load(Ordering::Relaxed) % OWNER == 0 {
            return Err(NoSuchPiece);
        }
        Ok(self.lower(index, 1))
    }

    /// Takes off what is complete: the operation, if that was all.
    fn lower(&self, index: u32, n: u32) -> Option<OpId> {
        let slot = &self.slots[index as usize];
        if sync::count(self.par, &slot.left, n.wrapping_neg() as i32) != 0 {
            return None;
        }
        let op = slot.op.swap(NO_OP, Ordering::Relaxed);
        self.free.give(index);
        (op != NO_OP).then_some(OpId(op as u32))
    }

    /// The `n` bytes at an offset of the destination of a get that is under way, if it has them.
    pub(in crate::conduit) fn destination(
        &self,
        index: u32,
        offset: usize,
        n: usize,
    ) -> Option<Dst<'static>> {
        let slot = self.slots.get(index as usize)?;
        if slot.left.load(Ordering::Relaxed) == 0 {
            return None;
        }
        slot.to.load().try_part(offset, n)
    }
}

/// A message completes a piece that is not under way.
#[derive(Debug)]
pub(in crate::conduit) struct NoSuchPiece;

/// The local side of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conduit) enum FlightSide {
    /// A chunk of ReqSB.
    Chunk(u32),
    /// A region of this rank, by the number of its hold.
    Region(u32),
}

/// What a piece under way holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conduit) struct Flight {
    pub(in crate::conduit) transfer: u32,
    /// The number of the hold of the target's region, or [`NO_REGION`].
    pub(in crate::conduit) remote: u32,
    pub(in crate::conduit) local: FlightSide,
    /// Its bytes.
    pub(in crate::conduit) piece: Piece,
}

/// Where the bytes of a piece are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conduit) struct Piece {
    pub(in crate::conduit) rank: JobRank,
    /// At the target: an offset in what it exposes.
    pub(in crate::conduit) offset: usize,
    /// Bytes of the transfer before it.
    pub(in crate::conduit) at: usize,
    /// Here.
    pub(in crate::conduit) address: usize,
    pub(in crate::conduit) len: usize,
}

/// A piece that its target has refused, since the memory of its region was unmapped.
pub(in crate::conduit) struct RejectedPiece {
    pub(in crate::conduit) transfer: u32,
    pub(in crate::conduit) put: bool,
    pub(in crate::conduit) piece: Piece,
    /// The data of a put whose source may have been reused.
    pub(in crate::conduit) copied: Option<Box<[u8]>>,
}

/// The pieces that were refused and have not been sent otherwise. They hold nothing.
pub(in crate::conduit) struct RejectedPieces {
    any: AtomicBool,
    pieces: ParLock<VecDeque<RejectedPiece>>,
}

impl RejectedPieces {
    pub(in crate::conduit) fn new(par: bool) -> RejectedPieces {
        let pieces = ParLock::new(par, VecDeque::new());
        RejectedPieces { any: AtomicBool::new(false), pieces }
    }

    pub(in crate::conduit) fn add(&self, piece: RejectedPiece) {
        let mut pieces = self.pieces.lock();
        pieces.push_back(piece);
        self.any.store(true, Ordering::Relaxed);
    }

    /// The one that was refused first. One load if there is none.
    #[inline]
    pub(in crate::conduit) fn next(&self) -> Option<RejectedPiece> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let mut pieces = self.pieces.lock();
        let next = pieces.pop_front();
        self.any.store(!pieces.is_empty(), Ordering::Relaxed);
        next
    }
}

/// The record of a flight, in words: the events of the network order their accesses.
#[derive(Default)]
struct FlightSlot {
    /// The transfer; above it, the number of the hold of the target's region.
    transfer: AtomicU64,
    /// The chunk or the region; above it, 1 for a region.
    local: AtomicU64,
    rank: AtomicU32,
    /// Offset, bytes before it, address and length of the piece.
    piece: [AtomicUsize; 4],
}

impl FlightSlot {
    #[inline]
    fn store(&self, flight: Flight) {
        let Flight { transfer, remote, local, piece } = flight;
        let (number, is_region) = match local {
            FlightSide::Chunk(chunk) => (chunk, 0),
            FlightSide::Region(hold) => (hold, 1 << 32),
        };
        self.transfer.store(u64::from(remote) << 32 | u64::from(transfer), Ordering::Relaxed);
        self.local.store(is_region | u64::from(number), Ordering::Relaxed);
        self.rank.store(piece.rank.0, Ordering::Relaxed);
        let Piece { offset, at, address, len, .. } = piece;
        for (word, value) in self.piece.iter().zip([offset, at, address, len]) {
            word.store(value, Ordering::Relaxed);
        }
    }

    #[inline]
    fn load(&self) -> Flight {
        let word = self.transfer.load(Ordering::Relaxed);
        let local = self.local.load(Ordering::Relaxed);
        let number = local as u32;
        let local = match local >> 32 {
            0 => FlightSide::Chunk(number),
            _ => FlightSide::Region(number),
        };
        let rank = JobRank(self.rank.load(Ordering::Relaxed));
        let [offset, at, address, len] =
            [0, 1, 2, 3].map(|word: usize| self.piece[word].load(Ordering::Relaxed));
        let piece = Piece { rank, offset, at, address, len };
        Flight { transfer: word as u32, remote: (word >> 32) as u32, local, piece }
    }
}

/// The pieces under way, each with a send ticket.
pub(in crate::conduit) struct Flights {
    free: FreeList,
    slots: Box<[FlightSlot]>,
}

impl Flights {
    /// As many as there are send tickets.
    pub(in crate::conduit) fn new(par: bool, tickets: u32) -> Flights {
        let slots = (0..tickets).map(|_| FlightSlot::default()).collect();
        Flights { free: FreeList::new(par, tickets), slots }
    }

    /// What the event of a piece ends.
    pub(in crate::conduit) fn hold(put: bool, transfer: u32) -> Hold {
        if put { Hold::put(transfer) } else { Hold::get(transfer) }
    }

    /// A flight for a piece of which the caller has the ticket.
    pub(in crate::conduit) fn begin(&self, put: bool, flight: Flight) -> u16 {
        let index = self.free.take(Flights::hold(put, flight.transfer));
        let index = index.unwrap_or_else(|| unreachable!("each flight has a ticket"));
        self.slots[index as usize].store(flight);
        index as u16
    }

    /// The last event of a piece has arrived: what the piece held. `None` if it is not awaited.
    pub(in crate::conduit) fn end(&self, index: u16, put: bool) -> Option<Flight> {
        let flight = self.slots.get(usize::from(index))?.load();
        let number = Peer::new(usize::from(index));
        let index = self.free.end_hold(number, Flights::hold(put, flight.transfer))?;
        self.free.give(index);
        Some(flight)
    }

    /// Whether this is the number of a flight.
    pub(in crate::conduit) fn has(&self, index: u16) -> bool {
        usize::from(index) < self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_ends_with_its_last_piece_or_its_owner() {
        let transfers = Transfers::new(true);
        let index = transfers.begin(Some(OpId(7)), Dst::empty()).expect("a slot");
        transfers.add_piece(index);
        transfers.add_piece(index);
        assert_eq!(transfers.piece_done(index).expect("one is"), None);
        assert!(!transfers.is_quiet(index));
        assert_eq!(transfers.disown(index), None);
        assert_eq!(transfers.piece_done(index).expect("one is"), Some(OpId(7)));
        assert!(transfers.piece_done(index).is_err() && transfers.piece_done(1 << 20).is_err());
        let index = transfers.begin(None, Dst::empty()).expect("a slot");
        transfers.add_piece(index);
        assert_eq!(transfers.piece_done(index).expect("one is"), None);
        assert!(transfers.is_quiet(index) && transfers.piece_done(index).is_err());
        assert_eq!(transfers.disown(index), None);
    }

    #[test]
    fn a_flight_ends_once_and_by_its_own_event() {
        let flights = Flights::new(true, 2);
        let piece = Piece { rank: JobRank(1), offset: 2, at: 3, address: 4, len: 5 };
        let local = FlightSide::Region(3);
        let flight = Flight { transfer: 5, remote: NO_REGION, local, piece };
        let index = flights.begin(true, flight);
        assert!(flights.has(index) && flights.end(index, false).is_none());
        assert_eq!(flights.end(index, true), Some(flight));
        assert!(flights.end(index, true).is_none() && flights.end(9, true).is_none());
        assert!(!flights.has(9));
    }
}
