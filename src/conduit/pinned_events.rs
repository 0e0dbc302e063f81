//! The events of puts and gets of registered memory.
//!
//! Called by `safe`. Invariant: the last event of a piece releases what the piece held, once.

use super::firehose::{LocalHold, RemoteHold};
use super::pinned::bits::PinnedBits;
use super::pinned::flights::{FlightSide, Flights, NO_REGION};
use super::portals::Portals;
use super::{Conduit, Upcall};
use crate::fault;
use sys::peer::Peer;

impl<P: Portals> Conduit<P> {
    /// The last event of a piece: releases what it held. False if it is not awaited.
    pub(super) fn pinned_ended<U: Upcall>(&self, up: U, bits: u64, put: bool) -> bool {
        let Some(pinned) = self.pinned.get() else { return false };
        let bits = PinnedBits::unpack(bits);
        let Some(flight) = pinned.flights.end(bits.flight, put) else { return false };
        let (Some(firehose), true) = (&pinned.firehose, self.tickets.give_for_event()) else {
            return false;
        };
        match flight.local {
            FlightSide::Chunk(chunk) => {
                let hold = Flights::hold(put, flight.transfer);
                let Some(chunk) = self.reqsb.end_hold(Peer::new(chunk as usize), hold) else {
                    return false;
                };
                if !put {
                    self.reqsb.finish_get(chunk);
                }
                self.reqsb.give(chunk);
            }
            FlightSide::Region(hold) => firehose.release_local(LocalHold::of_number(hold)),
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

    /// The departure of a piece, which changes nothing; another thread may have handled its last
    /// event. False if there can be no such piece.
    pub(super) fn pinned_left(&self, bits: u64) -> bool {
        let flight = PinnedBits::unpack(bits).flight;
        self.pinned.get().is_some_and(|pinned| pinned.flights.has(flight))
    }
}
