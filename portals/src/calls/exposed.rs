//! Descriptors that processes of other hosts reach without calls of this one.
//!
//! An extension of this crate. Called by the users of this crate. Invariant: an exposed descriptor
//! and its match entry stay as they are until the interface is closed.

use alloc::string::String;
use core::sync::atomic::Ordering;

use super::NetworkInterface;
use crate::arena::pack_id;
use crate::descriptor::traits::MemoryKind;
use crate::nal::remote::ExposedBlocks;
use crate::nal::wire::Wire;
use crate::transfer::exposures::{ExposedEntry, OwnExposure};
use crate::types::md_options::*;
use crate::types::*;

/// Why a descriptor is not exposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotExposed {
    /// It cannot be.
    Illegal(PtlError),
    /// The network has refused its memory: what it says.
    Refused(String),
}

impl NetworkInterface {
    /// Whether the network of other hosts can access memory of this process without its calls.
    pub fn has_remote_access(&self) -> bool {
        self.state.peers.nal.wire().and_then(Wire::remote_memory).is_some()
    }

    /// Whether puts and gets of processes of other hosts complete in exposed memory while this
    /// process makes no call.
    pub fn has_remote_bypass(&self) -> bool {
        let remote = self.state.peers.nal.wire().and_then(Wire::remote_memory);
        remote.is_some_and(|remote| remote.limits().by_hardware)
    }

    /// Lets processes of other hosts put to this descriptor, and get from it, without calls of
    /// this process, if the network can. Returns whether it can; else messages go on arriving as
    /// before. The first block is registered with the network now, the others when a peer first
    /// accesses them.
    ///
    /// Puts and gets that fall into the descriptor as a whole may overtake other messages of the
    /// pair from now on. The events of the initiator are the same: ACK means that the bytes have
    /// arrived. Such operations are not counted here, and access control no longer stops a process
    /// that it has admitted once. Until the interface is closed, the descriptor is in use: it can
    /// be neither unlinked nor updated.
    ///
    /// `PTL_MD_ILLEGAL`: it must be attached, for every process, and never change by a message. It
    /// has no event queue, an infinite threshold, one piece of memory, and the options `OP_PUT`,
    /// `OP_GET` and `MANAGE_REMOTE`, without `ACK_DISABLE`.
    ///
    /// # Safety
    /// The memory stays readable and writable until the interface is closed, and lies in no other
    /// exposed descriptor. No match entry before that of the descriptor matches a message that
    /// this one matches.
    pub unsafe fn expose_remotely(
        &self,
        md: MdHandle,
        blocks: ExposedBlocks,
    ) -> Result<bool, NotExposed> {
        let owner = self.state.owner.lock();
        let local = self.state.local(md).map_err(NotExposed::Illegal)?;
        let (traits, record) = (local.traits(), local.record);
        let memory = record.memory();
        let me = record.me.load(Ordering::Relaxed).checked_sub(1);
        let needed = [OP_PUT, OP_GET, MANAGE_REMOTE];
        let is_silent = traits.eq().is_none() && !traits.counts() && !traits.has(ACK_DISABLE);
        let (Some(me), true) = (me, is_silent && needed.into_iter().all(|o| traits.has(o))) else {
            return Err(NotExposed::Illegal(PtlError::MdIllegal));
        };
        let me = owner.mes[me as usize];
        let is_plain = memory.pieces.is_null() && traits.kind() != MemoryKind::AddressSpace;
        if !is_plain || me.words.match_id != pack_id(PtlProcessId::ANY) {
            return Err(NotExposed::Illegal(PtlError::MdIllegal));
        }
        let wire = self.state.peers.nal.wire();
        let Some(remote) = wire.and_then(Wire::remote_memory) else { return Ok(false) };
        let length = local.length();
        if length == 0 || record.exposed.load(Ordering::Relaxed) {
            return Ok(length != 0);
        }
        let entry = ExposedEntry {
            pt_index: me.pt,
            ac_index: 0,
            match_bits: me.words.match_bits,
            ignore_bits: me.words.ignore_bits,
        };
        let mut own = OwnExposure::new(local.handle(), entry, (memory, length), blocks);
        // SAFETY: the same contract; the wire is closed with the interface.
        unsafe { own.register_first(remote) }.map_err(NotExposed::Refused)?;
        record.exposed.store(true, Ordering::Relaxed);
        drop(owner);
        self.framer.expose(own);
        Ok(true)
    }
}
