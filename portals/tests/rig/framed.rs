//! A test network: interfaces of this process that reach each other by frames only.
//!
//! Used by [`super::RigKind::Framed`]. A seed decides how frames are delayed and reordered. Now
//! and then the network refuses a frame or holds one back, as a full or slow network would.
//! Invariants: frames keep the order that [`FrameTag::precedes`] demands, and a frame that was
//! accepted is delivered exactly once.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portals3::nal::{FrameSent, FrameSink, FrameWatch, Nal, Route, gathered};
use portals3::{FrameTag, MdIovec, NetworkInterface, NiLimits, PtlError, Size};
use sys::memory::Mapping;

/// Arena bytes of each interface.
const ARENA: usize = 4 << 20;
/// Longest frame: short, so that most messages take several.
const FRAME: usize = 512;
/// Frames in flight to one receiver when the network is full.
const ROOM: usize = 64;
/// Lanes of each interface.
const LANES: u32 = 3;

/// The lane of two interfaces.
fn lane_of(one: u32, other: u32) -> usize {
    ((one + other) % LANES) as usize
}

/// A network of up to `size` interfaces of this process.
#[derive(Debug)]
pub struct FramedNetwork {
    shared: Arc<FramedNetworkShared>,
}

#[derive(Debug)]
struct FramedNetworkShared {
    size: u32,
    state: Mutex<FramedNetworkState>,
    /// Frames in flight, by receiver.
    waiting: Box<[AtomicU32]>,
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
    tag: FrameTag,
    bytes: Vec<u8>,
}

impl FramedNetwork {
    /// A network whose order of delivery follows from `seed`.
    pub fn new(size: u32, seed: u64) -> FramedNetwork {
        let state = FramedNetworkState {
            joined: 0,
            lot: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            flights: (0..size).map(|_| Vec::new()).collect(),
        };
        let waiting = (0..size).map(|_| AtomicU32::new(0)).collect();
        FramedNetwork {
            shared: Arc::new(FramedNetworkShared { size, state: Mutex::new(state), waiting }),
        }
    }

    /// Opens the next interface of the network. `PTL_NO_SPACE` if `size` interfaces are open
    /// already.
    pub fn join(&self, limits: Option<NiLimits>) -> Result<NetworkInterface, PtlError> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if state.joined == shared.size {
            return Err(PtlError::NoSpace);
        }
        let index = state.joined;
        state.joined += 1;
        drop(state);
        let arena = Mapping::anonymous(ARENA).map_err(|_| PtlError::NoSpace)?;
        NetworkInterface::with_nal(Box::new(Port { shared, index, arena }), limits)
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

    /// One of the frames that may be delivered next in a lane, or none, as the random number says.
    fn next(&mut self, index: u32, lane: usize) -> Option<Flight> {
        let flights = &self.flights[index as usize];
        let ready: Vec<usize> = (0..flights.len())
            .filter(|&at| lane_of(index, flights[at].from) == lane)
            .filter(|&at| {
                !flights[..at]
                    .iter()
                    .any(|f| f.from == flights[at].from && f.tag.precedes(flights[at].tag))
            })
            .collect();
        if ready.is_empty() || self.draw(4) == 0 {
            return None;
        }
        let chosen = ready[self.draw(ready.len())];
        Some(self.flights[index as usize].remove(chosen))
    }
}

/// One interface of a network.
#[derive(Debug)]
struct Port {
    shared: Arc<FramedNetworkShared>,
    index: u32,
    arena: Mapping,
}

// SAFETY: the arena is zeroed when the port is made, aligned to a page, and freed when the port
// is dropped.
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

    fn lanes(&self) -> usize {
        LANES as usize
    }

    fn lane_of(&self, peer: u32) -> usize {
        lane_of(self.index, peer)
    }

    fn max_frame(&self, _peer: u32, _payload: Size) -> usize {
        FRAME
    }

    unsafe fn send(&self, peer: u32, header: &[u8], payload: &[MdIovec], _: bool) -> FrameSent {
        let mut state = self.shared.lock();
        if state.flights[peer as usize].len() == ROOM || state.draw(8) == 0 {
            return FrameSent::Full;
        }
        // SAFETY: the pieces are readable (`# Safety`).
        let bytes = unsafe { gathered(header, payload) };
        let Some(tag) = FrameTag::of(&bytes) else { return FrameSent::Full };
        state.flights[peer as usize].push(Flight { from: self.index, tag, bytes });
        self.shared.waiting[peer as usize].fetch_add(1, Ordering::Relaxed);
        FrameSent::Sent
    }

    fn frame_watch(&self) -> FrameWatch<'_> {
        FrameWatch { arrived: &self.shared.waiting[self.index as usize], countdown: None }
    }

    fn receive(&self, lane: usize, max: usize, sink: &mut dyn FrameSink) {
        for _ in 0..max {
            let next = self.shared.lock().next(self.index, lane);
            let Some(flight) = next else { return };
            self.shared.waiting[self.index as usize].fetch_sub(1, Ordering::Relaxed);
            sink.frame(flight.from, &flight.bytes);
        }
    }
}
