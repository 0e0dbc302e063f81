//! Flow control of requests: a credit is the right to 256 bytes of a peer's request receive buffers and one slot of
//! its AM event queue.
//!
//! The static scheme: each process holds a fixed number of credits of every process, itself included, agreed without a
//! message because all compute it from the same figures. A request takes what it needs; its reply brings that back.
//! Used by `am_send` (take), `am_recv` (what the reply returns) and the SAFE queue (give). Invariant: what a process
//! holds of a peer, plus what its unanswered requests to that peer carry, is what it was given at start.
//!
//! Every active message carries a credit byte EXXXNNNN: E, the sender has ended an epoch; XXX, credits that it was
//! short of (request) or that it is lent beyond its own (reply); NNNN, credits that the request used. The static scheme
//! fills in XXX of requests and NNNN, and lends nothing.

use super::sync;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, Ordering};

/// Bytes of receive buffer that one credit stands for.
pub(super) const CREDIT_BYTES: usize = 256;
/// Credits of a largest request: a process that holds fewer of a peer could never send it one.
pub const MIN_CREDITS: u32 = (super::CHUNK / CREDIT_BYTES) as u32;

/// Credits that a request of `len` bytes uses.
#[inline]
pub(super) fn needed(len: usize) -> u32 {
    (len.div_ceil(CREDIT_BYTES) as u32).max(1)
}

/// The credit byte of a request that uses `used` credits and was `short` of some.
#[inline]
pub(super) fn request_byte(used: u32, short: u32) -> u8 {
    (short.min(7) << 4 | used) as u8
}

/// The credit byte of the reply to a request that carried `byte`.
#[inline]
pub(super) fn reply_byte(byte: u8) -> u8 {
    byte & 0xf
}

/// Credits that the request used which carried this byte, or whose reply carries it.
#[inline]
pub(super) fn used(byte: u8) -> u32 {
    u32::from(byte & 0xf)
}

/// Our credits of every process.
pub(super) struct Credits {
    par: bool,
    /// `None` without flow control.
    peers: Option<Box<[AtomicU32]>>,
}

impl Credits {
    pub(super) fn new(par: bool, flow_control: bool, nodes: usize, each: u32) -> Self {
        Credits { par, peers: flow_control.then(|| (0..nodes).map(|_| AtomicU32::new(each)).collect()) }
    }

    /// Takes `n` credits of this process, or none.
    #[inline]
    pub(super) fn take(&self, node: u32, n: u32) -> bool {
        self.peers.as_ref().is_none_or(|p| sync::take(self.par, &p[node as usize], n))
    }

    /// What is left of each process.
    #[cfg(test)]
    pub(super) fn left(&self) -> Option<impl Iterator<Item = u32>> {
        self.peers.as_ref().map(|p| p.iter().map(|c| c.load(Ordering::Acquire)))
    }

    /// How many of `n` credits of this process are missing.
    pub(super) fn short_of(&self, node: u32, n: u32) -> u32 {
        self.peers.as_ref().map_or(0, |p| n.saturating_sub(p[node as usize].load(Ordering::Relaxed)))
    }

    /// Takes in the credit byte of a reply of this process.
    #[inline]
    pub(super) fn give(&self, node: u32, byte: u8) {
        if let Some(p) = &self.peers {
            sync::give(self.par, &p[node as usize], used(byte));
        }
    }
}

/// Nodes, credits of each of them, credits in the bank.
const TABLE: [(u64, u64, u64); 9] = [
    (1, 200, 200),
    (64, 170, 12800),
    (128, 170, 25600),
    (512, 64, 25600),
    (1024, 32, 25600),
    (2048, 16, 25600),
    (3072, 12, 25600),
    (4096, 8, 25600),
    (20480, 8, 25600),
];

/// What a process of a job of this size gives to each process and keeps in its bank at first, where the environment
/// does not say: interpolated between the rows of the table, the difference truncated towards zero.
pub(super) fn initial(nodes: u64) -> (u64, u64) {
    let last = TABLE[TABLE.len() - 1];
    let Some(i) = TABLE.iter().position(|row| nodes <= row.0) else {
        return (last.1, last.2);
    };
    let (n1, c1, b1) = TABLE[i];
    if i == 0 {
        return (c1, b1);
    }
    let (n0, c0, b0) = TABLE[i - 1];
    let between = |a: u64, b: u64| {
        let step = (b as i64 - a as i64) * (nodes - n0) as i64 / (n1 - n0) as i64;
        (a as i64 + step) as u64
    };
    (between(c0, c1), between(b0, b1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_interpolated() {
        assert_eq!(initial(1), (200, 200));
        assert_eq!(initial(2), (200, 400));
        assert_eq!(initial(64), (170, 12800));
        assert_eq!(initial(128), (170, 25600));
        assert_eq!(initial(320), (117, 25600));
        assert_eq!(initial(4096), (8, 25600));
        assert_eq!(initial(1 << 20), (8, 25600));
    }

    #[test]
    fn bytes() {
        assert_eq!((needed(0), needed(256), needed(257), needed(2048)), (1, 1, 2, 8));
        assert_eq!(request_byte(8, 100), 0x78);
        assert_eq!(reply_byte(0xf5), 5);
        assert_eq!(used(0xf5), 5);
        let c = Credits::new(false, true, 2, 9);
        assert!(c.take(1, 8) && !c.take(1, 2) && c.take(0, 9));
        c.give(1, 0x08);
        assert!(c.take(1, 9));
        assert!(Credits::new(true, false, 2, 0).take(0, 15));
    }
}
