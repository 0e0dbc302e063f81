//! The memory descriptors of the conduit, as crate `portals3` takes them and exposes them.
//!
//! Called by `emulation`.

use super::emulation_error::error;
use super::{MOST_PIECES, MdRegion, MdSpec, PortalsError, wire_choice};
use crate::client_memory::Dst;
use crate::conduit::SegmentBlocks;
use portals3::nal::remote::ExposedBlocks;
use portals3::{
    EqHandle, EqWatch, MdHandle, MdIovec, MemoryDescriptor, NetworkInterface, NotExposed,
    THRESH_INF, md_options,
};

/// No bytes.
pub(super) const NO_PIECE: MdIovec = MdIovec { base: core::ptr::null_mut(), len: 0 };

/// A descriptor of a region.
pub(super) fn md(spec: &MdSpec<'_, EqWatch>) -> MemoryDescriptor {
    use md_options as o;
    let f = spec.flags;
    let options = [
        (f.op_put, o::OP_PUT),
        (f.op_get, o::OP_GET),
        (f.manage_remote, o::MANAGE_REMOTE),
        (f.truncate, o::TRUNCATE),
        (f.ack_disable, o::ACK_DISABLE),
        (f.event_start_disable, o::EVENT_START_DISABLE),
        (f.event_end_disable, o::EVENT_END_DISABLE),
        (spec.max_size.is_some(), o::MAX_SIZE),
        (matches!(spec.region, MdRegion::AddressSpace), o::ADDRESS_SPACE),
    ];
    MemoryDescriptor {
        start: spec.region.start().cast(),
        length: spec.region.bytes() as u64,
        threshold: THRESH_INF,
        max_size: spec.max_size.unwrap_or(0) as u64,
        options: options.iter().filter(|o| o.0).fold(0, |all, o| all | o.1),
        user_ptr: core::ptr::without_provenance_mut(spec.user),
        eq: spec.eq.map_or(EqHandle::NONE, EqWatch::eq),
    }
}

/// As [`super::Portals::expose_remotely`].
pub(super) fn expose_remotely(
    interface: &NetworkInterface,
    md: MdHandle,
    blocks: impl FnOnce() -> SegmentBlocks,
) -> Result<(), PortalsError> {
    if !interface.has_remote_access() {
        return Ok(());
    }
    let SegmentBlocks { bytes, most } = blocks();
    let blocks = ExposedBlocks { bytes: bytes as u64, most };
    // SAFETY: static memory, and the first descriptor that matches, by the contract of the trait.
    match unsafe { interface.expose_remotely(md, blocks) } {
        Ok(_) => Ok(()),
        Err(NotExposed::Illegal(e)) => Err(error("PtlMDAttach", e)),
        Err(NotExposed::Refused(why)) => {
            wire_choice::not_registered(&why);
            Ok(())
        }
    }
}

/// A descriptor of several pieces, whose list is written to `entries`.
pub(super) fn md_of_pieces(
    pieces: &[Dst<'static>],
    entries: &mut [MdIovec; MOST_PIECES],
    spec: &MdSpec<'_, EqWatch>,
) -> MemoryDescriptor {
    for (entry, piece) in entries.iter_mut().zip(pieces) {
        *entry = MdIovec { base: piece.as_ptr().cast(), len: piece.len() as u64 };
    }
    let all = md(spec);
    MemoryDescriptor {
        start: entries.as_mut_ptr().cast(),
        length: pieces.len() as u64,
        options: all.options | md_options::IOVEC,
        ..all
    }
}
