//! A test network: interfaces of one process that know each other by frames only, delayed and reordered by a seed.
//!
//! It keeps what `crate::wire` asks of a network (the first frame of a message before its others, the first frames
//! of the requests of a pair in order) and otherwise hands frames over in an order drawn by lot. It also refuses
//! frames now and then, and holds frames back, as a network that is full or slow would.
//!
//! Invariant: a frame that was accepted is handed over once, however often a receiver has to ask.

use alloc::sync::Arc;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::NetworkInterface;
use crate::nal::{Nal, Route};
use crate::types::{NiLimits, PtlError};
use crate::wire::{FrameHeader, FrameRole};
use sys::memory::Mapping;

/// Bytes of arena of each interface.
const ARENA: usize = 4 << 20;
/// Longest frame: short, so that most messages take several.
const FRAME: usize = 512;
/// Frames that wait for one receiver before the network is full.
const ROOM: usize = 64;

/// A network of up to `size` interfaces of this process.
#[derive(Clone, Debug)]
pub struct FramedNetwork {
    shared: Arc<FramedNetworkShared>,
}

#[derive(Debug)]
struct FramedNetworkShared {
    size: u32,
    state: Mutex<FramedNetworkState>,
    /// Frames under way, by receiver.
    waiting: Box<[AtomicUsize]>,
}

#[derive(Debug)]
struct FramedNetworkState {
    joined: u32,
    lot: u64,
    flights: Box<[Vec<Flight>]>,
}

#[derive(Debug)]
struct Flight {
    from: u32,
    role: FrameRole,
    message: u64,
    first: bool,
    bytes: Vec<u8>,
}

impl FramedNetwork {
    /// A network whose order of delivery is drawn by `seed`.
    pub fn new(size: u32, seed: u64) -> FramedNetwork {
        let state = FramedNetworkState {
            joined: 0,
            lot: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            flights: (0..size).map(|_| Vec::new()).collect(),
        };
        let waiting = (0..size).map(|_| AtomicUsize::new(0)).collect();
        FramedNetwork {
            shared: Arc::new(FramedNetworkShared { size, state: Mutex::new(state), waiting }),
        }
    }
}

impl NetworkInterface {
    /// Opens the next interface of a test network. `PTL_NO_SPACE` if all of its places are taken.
    pub fn framed(
        network: &FramedNetwork,
        limits: Option<NiLimits>,
    ) -> Result<NetworkInterface, PtlError> {
        let mut state = network.shared.lock();
        if state.joined == network.shared.size {
            return Err(PtlError::NoSpace);
        }
        let index = state.joined;
        state.joined += 1;
        drop(state);
        let arena = Mapping::anonymous(ARENA).map_err(|_| PtlError::NoSpace)?;
        NetworkInterface::with_nal(
            Box::new(Port { shared: Arc::clone(&network.shared), index, arena }),
            limits,
        )
    }
}

impl FramedNetworkShared {
    fn lock(&self) -> MutexGuard<'_, FramedNetworkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FramedNetworkState {
    /// A number below `below`, drawn by xorshift (G. Marsaglia, "Xorshift RNGs", 2003).
    fn draw(&mut self, below: usize) -> usize {
        self.lot ^= self.lot << 13;
        self.lot ^= self.lot >> 7;
        self.lot ^= self.lot << 17;
        ((self.lot >> 33) as usize) % below
    }

    /// One of the frames that may come next, if the lot wants one to come now.
    fn next(&mut self, index: usize) -> Option<Flight> {
        let flights = &self.flights[index];
        let ready: Vec<usize> = (0..flights.len())
            .filter(|&at| !flights[..at].iter().any(|f| f.precedes(&flights[at])))
            .collect();
        if ready.is_empty() || self.draw(4) == 0 {
            return None;
        }
        let chosen = ready[self.draw(ready.len())];
        Some(self.flights[index].remove(chosen))
    }
}

impl Flight {
    /// Whether this frame, which was sent earlier, must arrive before `later`.
    fn precedes(&self, later: &Flight) -> bool {
        let ordered =
            self.role == FrameRole::Request && later.role == FrameRole::Request && later.first;
        self.from == later.from && self.first && (ordered || self.message == later.message)
    }
}

/// One interface's place in a network.
#[derive(Debug)]
struct Port {
    shared: Arc<FramedNetworkShared>,
    index: u32,
    arena: Mapping,
}

// SAFETY: the arena is zeroed when the port is made, aligned to a page, and goes when the port is dropped.
unsafe impl Nal for Port {
    fn nid(&self) -> u32 {
        0
    }

    fn index(&self) -> u32 {
        self.index
    }

    fn size(&self) -> u32 {
        self.shared.size
    }

    fn jid(&self) -> u32 {
        77
    }

    fn arena(&self) -> NonNull<u8> {
        self.arena.base()
    }

    fn arena_bytes(&self) -> usize {
        ARENA
    }

    fn route(&self, _peer: u32) -> Route {
        Route::Wire
    }

    fn max_frame(&self) -> usize {
        FRAME
    }

    fn send(&self, peer: u32, frame: &[u8]) -> bool {
        let mut state = self.shared.lock();
        if state.flights[peer as usize].len() == ROOM || state.draw(8) == 0 {
            return false;
        }
        let Some((header, _)) = FrameHeader::decode(frame) else { return false };
        let (role, message, first) = (header.role, header.message, header.at == 0);
        let flight = Flight { from: self.index, role, message, first, bytes: frame.to_vec() };
        state.flights[peer as usize].push(flight);
        self.shared.waiting[peer as usize].fetch_add(1, Ordering::Relaxed);
        true
    }

    fn has_frames(&self) -> bool {
        self.shared.waiting[self.index as usize].load(Ordering::Relaxed) != 0
    }

    fn receive(&self, max: usize, sink: &mut dyn FnMut(u32, &[u8])) {
        for _ in 0..max {
            let next = self.shared.lock().next(self.index as usize);
            let Some(flight) = next else { return };
            self.shared.waiting[self.index as usize].fetch_sub(1, Ordering::Relaxed);
            sink(flight.from, &flight.bytes);
        }
    }
}
