//! The events of puts and gets of registered memory.
//!
//! Called by `safe`. Invariant: the last event of a piece releases what the piece held, once. A
//! piece of which nothing was accepted was refused by its target, which has undone the pin.

use super::firehose::{LocalHold, RemoteHold};
use super::pinned::bits::PinnedBits;
use super::pinned::flights::{Flight, FlightSide, Flights, NO_REGION, RejectedPiece};
use super::portals::{MdEvent, Portals};
use super::{Conduit, Upcall};
use crate::client_memory::{Dst, Src};
use crate::fault;
use alloc::boxed::Box;
use alloc::vec;
use sys::peer::Peer;

impl<P: Portals> Conduit<P> {
    /// The last event of a piece: releases what it held. False if it is not awaited.
    pub(super) fn pinned_ended<U: Upcall>(&self, up: U, e: &MdEvent, put: bool) -> bool {
        let Some(pinned) = self.pinned.get() else { return false };
        let bits = PinnedBits::unpack(e.match_bits);
        let Some(flight) = pinned.flights.end(bits.flight, put) else { return false };
        let (Some(firehose), true) = (&pinned.firehose, self.tickets.give_for_event()) else {
            return false;
        };
        let rejected = flight.remote != NO_REGION && e.mlength.equals(0);
        let mut copied = None;
        match flight.local {
            FlightSide::Chunk(chunk) => {
                let hold = Flights::hold(put, flight.transfer);
                let Some(chunk) = self.reqsb.end_hold(Peer::new(chunk as usize), hold) else {
                    return false;
                };
                match (put, rejected) {
                    (true, true) => copied = Some(self.copy_of(chunk, &flight)),
                    (false, false) => self.reqsb.finish_get(chunk),
                    _ => {}
                }
                self.reqsb.give(chunk);
            }
            FlightSide::Region(hold) => firehose.release_local(LocalHold::of_number(hold)),
        }
        if rejected {
            firehose.rejected(RemoteHold::of_number(flight.remote));
            let Flight { transfer, piece, .. } = flight;
            pinned.rejected.add(RejectedPiece { transfer, put, piece, copied });
            return true;
        }
        if flight.remote != NO_REGION {
            firehose.release_remote(RemoteHold::of_number(flight.remote));
        }
        if !put
            && fault::on("flip_get")
            && let Some(to) = pinned.transfers.destination(flight.transfer, 0, 1)
        {
            to.flip(0);
        }
        match pinned.transfers.piece_done(flight.transfer) {
            Ok(Some(op)) => up.op_done(op),
            Ok(None) => {}
            Err(_) => return false,
        }
        true
    }

    /// The data of a put in its chunk.
    #[cold]
    fn copy_of(&self, chunk: u32, flight: &Flight) -> Box<[u8]> {
        let from = self.reqsb.chunks.part(chunk, flight.piece.len);
        let mut bytes = vec![0; from.len()].into_boxed_slice();
        Dst::from(&mut *bytes).copy_from(Src::from(from));
        bytes
    }

    /// The departure of a piece, which changes nothing; another thread may have handled its last
    /// event. False if there can be no such piece.
    pub(super) fn pinned_left(&self, bits: u64) -> bool {
        let flight = PinnedBits::unpack(bits).flight;
        self.pinned.get().is_some_and(|pinned| pinned.flights.has(flight))
    }
}
