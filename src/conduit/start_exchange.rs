//! The exchange of bytes among all ranks while a job starts, over Portals alone: for jobs whose
//! ranks share no memory and have no supervisor.
//!
//! Opened by `network`, used through [`NetworkCollective`]. Invariant: a rank is at most one
//! exchange ahead of another, so two landing buffers that take turns suffice.
//!
//! Bruck's algorithm (Bruck, Ho, Kipnis, Upfal, Weathersby 1997). In round k a rank puts the
//! blocks that it has, at most 2^k, to the rank 2^k below it. They go behind those that the
//! target has. After log2 N rounds each rank has the blocks of all, its own first. Without
//! bytes it is a dissemination barrier. The data of a round and its arrival are one message.
//!
//! ```text
//! rank r, 5 ranks     own   round 0   round 1    round 2
//! landing buffer      r     r+1       r+2 r+3    r+4
//! comes from                r+1       r+2        r+4
//! ```

use super::match_bits::{IGNORE, TargetMd};
use super::memory;
use super::portals::{
    EntryPosition, EqResult, InlineBody, MdEventKind, MdFlags, MdPart, MdSpec, Portals,
    PortalsError, PortalsId, Target,
};
use super::queue::broken;
use crate::boot::network_start::NetworkCollective;
use crate::client_memory::{Dst, Src};
use crate::rank::JobRank;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use std::sync::{Mutex, PoisonError};

/// Most bytes of a rank in one exchange; more travel in several.
const BLOCK: usize = 64;
/// Events of an exchange and the next: an arrival and a departure per round.
const EVENTS: usize = 4 * 32;

/// [`MdSpec::user`] of the two descriptors.
const LANDING: usize = 0x51;
const SOURCE: usize = 0x52;

/// What only the thread in an exchange touches.
#[derive(Debug, Default)]
struct Progress {
    /// Exchanges before this one.
    number: u64,
    /// The rounds that have arrived, a bit each, of exchanges with even and odd numbers.
    arrived: [u32; 2],
    /// Our messages of this exchange whose bytes have left.
    departed: u32,
}

/// The exchange of a rank with all others.
pub(super) struct StartExchange<P: Portals> {
    portals: P,
    pt: u32,
    me: u32,
    peers: Box<[PortalsId]>,
    eq: P::Eq,
    source: P::Md,
    /// The two landing buffers, of a block for each rank.
    memory: Dst<'static>,
    progress: Mutex<Progress>,
}

impl<P: Portals> core::fmt::Debug for StartExchange<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StartExchange").field("me", &self.me).finish_non_exhaustive()
    }
}

impl<P: Portals> StartExchange<P> {
    /// Makes this rank ready for the messages of the others, over a portal table entry; `peers` is
    /// indexed by rank.
    ///
    /// # Errors
    /// The Portals call that failed.
    pub(super) fn open(
        portals: P,
        pt: u32,
        me: JobRank,
        peers: &[PortalsId],
    ) -> Result<Self, PortalsError> {
        let eq = portals.eq_alloc(EVENTS)?;
        let memory = memory::targeted(&portals, 2 * BLOCK * peers.len())?;
        let me_handle =
            portals.me_attach(EntryPosition::Tail(pt), TargetMd::Start as u64, IGNORE, false)?;
        let landing = MdSpec {
            region: memory.into(),
            max_size: None,
            flags: MdFlags::landing(),
            user: LANDING,
            eq: Some(&eq),
        };
        let flags = MdFlags { event_start_disable: true, ..MdFlags::default() };
        let source = portals.md_bind(&MdSpec { flags, user: SOURCE, ..landing })?;
        portals.md_attach(me_handle, &landing, false)?;
        Ok(StartExchange {
            portals,
            pt,
            me: me.0,
            peers: peers.into(),
            eq,
            source,
            memory,
            progress: Mutex::default(),
        })
    }

    fn size(&self) -> usize {
        self.peers.len()
    }

    /// Takes an event, if there is one.
    fn take(&self, progress: &mut Progress) -> bool {
        let event = match self.portals.eq_get(&self.eq, &mut InlineBody::default()) {
            Ok(EqResult::Empty) => return false,
            Ok(EqResult::Event(event)) => event,
            Ok(EqResult::AfterLoss(_)) => {
                broken(PortalsError { call: "PtlEQGet at start", code: "PTL_EQ_DROPPED" })
            }
            Err(e) => broken(e),
        };
        match (event.user, event.kind) {
            (LANDING, MdEventKind::PutEnd) => {
                let (number, round) = (event.hdr_data >> 8, event.hdr_data as u8);
                if number.wrapping_sub(progress.number) > 1 || round >= 32 {
                    broken(PortalsError { call: "an exchange at start", code: "PTL_FAIL" });
                }
                progress.arrived[number as usize % 2] |= 1 << round;
            }
            (SOURCE, MdEventKind::SendEnd) => progress.departed += 1,
            _ => {}
        }
        true
    }

    /// Takes events until `done`.
    fn wait(&self, progress: &mut Progress, idle: &dyn Fn(u32), done: impl Fn(&Progress) -> bool) {
        let mut round = 0u32;
        while !done(progress) {
            if !self.take(progress) {
                idle(round);
                round = round.saturating_add(1);
            }
        }
    }

    /// One exchange of at most [`BLOCK`] bytes of each rank; `all` gets them by rank, `stride`
    /// bytes apart.
    fn exchange_block(&self, mine: &[u8], idle: &dyn Fn(u32), all: &mut [u8], stride: usize) {
        let progress = &mut *self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (size, len, parity) = (self.size(), mine.len(), progress.number as usize % 2);
        let base = parity * size * BLOCK;
        self.memory.part(base, len).copy_from(Src::from(mine));
        let mut rounds = 0u32;
        while 1 << rounds < size {
            let have = 1usize << rounds;
            let to = (self.me as usize + size - have) % size;
            let from = MdPart { md: self.source, offset: base, len: have.min(size - have) * len };
            let to = Target {
                process: self.peers[to],
                portal: self.pt,
                bits: TargetMd::Start as u64,
                offset: base + have * len,
                hdr_data: progress.number << 8 | u64::from(rounds),
            };
            self.portals.put(from, false, &to).unwrap_or_else(|e| broken(e));
            self.wait(progress, idle, |p| p.arrived[parity] & 1 << rounds != 0);
            rounds += 1;
        }
        self.wait(progress, idle, |p| p.departed == rounds);
        progress.arrived[parity] = 0;
        progress.departed = 0;
        progress.number += 1;
        if len == 0 {
            return;
        }
        for block in 0..size {
            let rank = (self.me as usize + block) % size;
            let to = Dst::from(&mut all[rank * stride..rank * stride + len]);
            to.copy_from(self.memory.part(base + block * len, len).into());
        }
    }
}

impl<P: Portals> NetworkCollective for StartExchange<P> {
    fn exchange_bytes(&self, mine: &[u8], idle: &dyn Fn(u32)) -> Vec<u8> {
        let mut all = vec![0; mine.len() * self.size()];
        if mine.is_empty() {
            self.exchange_block(mine, idle, &mut all, 0);
        }
        for (i, part) in mine.chunks(BLOCK).enumerate() {
            self.exchange_block(part, idle, &mut all[i * BLOCK..], mine.len());
        }
        all
    }
}
