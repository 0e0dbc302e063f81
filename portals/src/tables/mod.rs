//! The state of an interface except its network layer: peers, descriptors, queues, match lists.
//!
//! Used by `transfer` and `calls` as [`NiState`]. Its methods are in the file of their table:
//! The files are:
//! - [`free_indexes`]: records that can be used again
//! - [`owner`]: data under the owner lock
//! - [`queues`]: event queues
//! - [`lists`]: portal table and match lists
//! - [`registration`]: memory that descriptors lock
//! - [`descriptors`]: look-up, checks, contents
//! - [`removal`]: operations that use a descriptor, and its removal
//! - [`check`]: damage of the arena
//!
//! Invariant: a file uses the tables of the files named before it, never of those after.

mod check;
mod descriptors;
mod free_indexes;
mod lists;
mod owner;
mod queues;
mod registration;
mod removal;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::arena::hazard::HazardHold;
use crate::arena::{AcWords, HAZARDS, MAGIC, access};
use crate::base::lock::SpinLock;
use crate::descriptor::record::MdRecord;
use crate::event::record::EqRecord;
use crate::message::{MessageHeader, OpKind, TargetAddress};
use crate::peer::{MappedPeer, Peers};
use crate::types::*;
use sys::zeroed::Zeroed;
use sys::{clock, random};

pub(crate) use descriptors::Examined;
pub(crate) use owner::{OldPieces, OwnerTables};

/// Counters of one hazard slot, changed only by the thread that holds it.
#[repr(align(64))]
#[derive(Debug, Default)]
struct SlotCounts {
    pub(crate) puts: AtomicU64,
    pub(crate) gets: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// An open interface, apart from its wire.
pub(crate) struct NiState {
    pub(crate) peers: Peers,
    pub(crate) uid: Uid,
    pub(crate) jid: Jid,
    pub(crate) limits: NiLimits,
    pub(crate) mds: Zeroed<MdRecord>,
    /// Shared with the watches of queues.
    pub(crate) eqs: Arc<[EqRecord]>,
    counts: Box<[SlotCounts; HAZARDS]>,
    /// Index + 1 of the descriptor that was last found to be in use.
    found_busy: AtomicU32,
    pub(crate) owner: SpinLock<OwnerTables>,
    /// A random number in private memory, which peers read by cross-memory attach.
    pub(crate) secret: Box<AtomicU64>,
    /// See [`crate::NetworkInterface::expect_no_loss`].
    pub(crate) loses_nothing: bool,
    /// See [`crate::NetworkInterface::demand_registration`].
    pub(crate) registers: bool,
    /// The first portal table entry to which messages may come late.
    pub(crate) revocable: PtIndex,
}

impl NiState {
    /// `limits` were granted, and the tables for them fit the arena of `peers.own`.
    pub(crate) fn new(peers: Peers, limits: NiLimits) -> NiState {
        let owner = OwnerTables::new(&limits, peers.own.view.tables_end());
        NiState {
            uid: sys::process::real_user(),
            jid: peers.nal.jid(),
            limits,
            mds: Zeroed::new(limits.max_mds as usize),
            eqs: (0..limits.max_eqs).map(|_| EqRecord::default()).collect(),
            counts: Box::new(core::array::from_fn(|_| SlotCounts::default())),
            found_busy: AtomicU32::new(0),
            owner: SpinLock::new(owner),
            // Without a number of the system: one that other processes hardly have.
            secret: Box::new(AtomicU64::new(random::number().unwrap_or_else(|_| clock::now_ns()))),
            loses_nothing: false,
            registers: false,
            revocable: PtIndex::MAX,
            peers,
        }
    }

    /// Calls the handler of damage.
    #[cold]
    pub(crate) fn report(&self, damage: &Damage) {
        self.peers.report(damage);
    }

    /// Counts a dropped message at the process that drops it, and reports it if none may be.
    #[cold]
    #[inline(never)]
    pub(crate) fn dropped(&self, at: &MappedPeer, pt_index: PtIndex, match_bits: MatchBits) {
        at.view.header().drops.0.fetch_add(1, Ordering::Relaxed);
        // A process that closes its interface drops what arrives later.
        let open = at.view.header().ident.magic.load(Ordering::Relaxed) == MAGIC;
        if self.loses_nothing && open && pt_index < self.revocable {
            self.report(&Damage::Dropped { process: at.index, pt_index, match_bits });
        }
    }

    #[inline(always)]
    pub(crate) fn header(&self, kind: OpKind, to: &TargetAddress, rlength: Size) -> MessageHeader {
        MessageHeader {
            kind,
            initiator: self.peers.index,
            uid: self.uid,
            jid: self.jid,
            pt_index: to.pt_index,
            ac_index: to.ac_index,
            match_bits: to.match_bits,
            remote_offset: to.remote_offset,
            rlength,
            hdr_data: to.hdr_data,
        }
    }

    /// Counts an operation. The slot of the hold belongs to this thread alone, and so do the
    /// counters of the same number.
    #[inline(always)]
    pub(crate) fn count(&self, hold: &HazardHold<'_>, kind: OpKind, bytes: Size) {
        // The number is below HAZARDS; the remainder shows this to the compiler.
        let counts = &self.counts[hold.number % HAZARDS];
        let add = |counter: &AtomicU64, n: u64| {
            counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        };
        if kind != OpKind::Get {
            add(&counts.puts, 1);
        }
        if kind != OpKind::Put {
            add(&counts.gets, 1);
        }
        add(&counts.bytes, bytes);
    }

    /// The sums over all hazard slots: puts, gets, bytes.
    pub(crate) fn counted(&self) -> (u64, u64, u64) {
        let sum = |which: fn(&SlotCounts) -> &AtomicU64| {
            self.counts.iter().map(|c| which(c).load(Ordering::Relaxed)).sum()
        };
        (sum(|c| &c.puts), sum(|c| &c.gets), sum(|c| &c.bytes))
    }

    /// Writes our access control entry with this index.
    pub(crate) fn admit(
        &self,
        owner: &mut OwnerTables,
        index: AcIndex,
        words: AcWords,
    ) -> Result<(), PtlError> {
        let entry = self.peers.own.view.ac(index).ok_or(PtlError::AcIndexInvalid)?;
        owner.admissions[index as usize] = words;
        access::write(entry, &self.peers.own_versions.entries[index as usize], &words);
        Ok(())
    }

    /// Takes bytes of the arena permanently: their offset.
    pub(crate) fn bump(&self, owner: &mut OwnerTables, bytes: usize, align: usize) -> Option<u64> {
        let base = self.peers.own.view.base().as_ptr() as usize;
        let address = (base + owner.next_byte).checked_next_multiple_of(align)?;
        let offset = address - base;
        let end = offset.checked_add(bytes)?;
        if end > self.peers.own.view.bytes() {
            return None;
        }
        owner.next_byte = end;
        Some(offset as u64)
    }
}

impl Drop for NiState {
    fn drop(&mut self) {
        for record in self.mds.iter() {
            let pieces = record.pieces.load(Ordering::Acquire);
            if !pieces.is_null() {
                // SAFETY: made by `Box::into_raw` in `NiState::write`; nothing refers to it any
                // more.
                drop(unsafe { Box::from_raw(pieces) });
            }
        }
    }
}
