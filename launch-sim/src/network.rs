//! The simulated network between supervisors: a message takes a hop, and its bytes pass through
//! the links of its sender and its receiver one after the other.
//!
//! Owned by `SimulatedHosts`. Invariant: messages arrive in the order of their times; those of one
//! sender to one receiver in the order in which they were sent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a network costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkCosts {
    /// Nanoseconds from one host to another.
    pub(crate) hop: u64,
    /// Bytes that a link of a host carries in a microsecond, each way; `None` for any number.
    pub(crate) link: Option<u64>,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArrivedMessage<M> {
    /// Nanoseconds since the beginning.
    pub(crate) at: u64,
    number: u64,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) message: M,
}

/// What one host has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostTraffic {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    sends_until: u64,
    receives_until: u64,
}

/// Messages under way.
#[derive(Debug)]
pub(crate) struct SimulatedNetwork<M> {
    costs: NetworkCosts,
    queue: BinaryHeap<Reverse<ArrivedMessage<M>>>,
    sent: u64,
    /// Of each host.
    pub(crate) traffic: Vec<HostTraffic>,
}

impl<M: Ord> SimulatedNetwork<M> {
    pub(crate) fn new(hosts: usize, costs: NetworkCosts) -> SimulatedNetwork<M> {
        let traffic = vec![HostTraffic::default(); hosts];
        SimulatedNetwork { costs, queue: BinaryHeap::new(), sent: 0, traffic }
    }

    /// All messages that were sent.
    pub(crate) fn messages(&self) -> u64 {
        self.sent
    }

    /// `from` sends a message of this many bytes now.
    pub(crate) fn send(&mut self, now: u64, from: u32, to: u32, bytes: usize, message: M) {
        let bytes = bytes as u64;
        let passes = self.costs.link.map_or(0, |link| bytes * 1000 / link);
        let sender = &mut self.traffic[from as usize];
        sender.messages += 1;
        sender.bytes += bytes;
        sender.sends_until = sender.sends_until.max(now) + passes;
        let begins = sender.sends_until - passes + self.costs.hop;
        let receiver = &mut self.traffic[to as usize];
        receiver.messages += 1;
        receiver.bytes += bytes;
        receiver.receives_until = receiver.receives_until.max(begins) + passes;
        let at = receiver.receives_until;
        self.sent += 1;
        self.queue.push(Reverse(ArrivedMessage { at, number: self.sent, from, to, message }));
    }

    /// The message that arrives next.
    pub(crate) fn next(&mut self) -> Option<ArrivedMessage<M>> {
        self.queue.pop().map(|Reverse(arrived)| arrived)
    }
}
