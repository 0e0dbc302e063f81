//! The remote operations of the wire that are under way.
//!
//! Owned by [`super::network`], under its lock. Invariant: each that has begun ends once.

use alloc::vec::Vec;

/// An operation that is under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RemoteFlight {
    pub(super) peer: u32,
    pub(super) token: u64,
}

/// All operations.
#[derive(Debug, Default)]
pub(super) struct RemoteFlights {
    /// By the number of the operation.
    flights: Vec<RemoteFlight>,
    /// Begun, and not yet reported.
    pub(super) count: usize,
}

impl RemoteFlights {
    /// The endpoint has begun the operation of this number.
    pub(super) fn begun(&mut self, number: usize, flight: RemoteFlight) {
        if self.flights.len() <= number {
            self.flights.resize(number + 1, RemoteFlight::default());
        }
        self.flights[number] = flight;
        self.count += 1;
    }

    /// It has ended.
    pub(super) fn ended(&mut self, number: usize) -> RemoteFlight {
        self.count -= 1;
        self.flights[number]
    }
}
