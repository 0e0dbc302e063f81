//! Memory of the library's own buffers.
//!
//! Where the network has the extension, what peers target comes from it, so that they can reach it without our help;
//! otherwise, and for what nobody targets, it is ordinary memory. Either is zeroed, page aligned and never freed:
//! descriptors and peers' messages may refer to it until the process ends.

use super::PAGE;
use super::portals::{Portals, PortalsError};
use alloc::alloc::{Layout, alloc_zeroed};

/// Memory that only we read and write.
pub(super) fn private(bytes: usize) -> Result<*mut u8, PortalsError> {
    let none = PortalsError { call: "allocation of send buffers", code: "PTL_NO_SPACE" };
    // Aligned by us, since an allocator that must align to more than 16 bytes touches all of it to clear it.
    let layout = bytes
        .checked_add(PAGE)
        .and_then(|room| Layout::from_size_align(room, 16).ok())
        .ok_or(none)?;
    // SAFETY: the layout has a size.
    let p = unsafe { alloc_zeroed(layout) };
    // SAFETY: the block is a page longer than what is used of it.
    if p.is_null() { Err(none) } else { Ok(unsafe { p.add(p.align_offset(PAGE)) }) }
}

/// Memory that peers target.
pub(super) fn targeted<P: Portals>(portals: &P, bytes: usize) -> Result<*mut u8, PortalsError> {
    match portals.extension() {
        Some(x) => x
            .alloc_library_memory(bytes, PAGE)
            .ok_or(PortalsError { call: "allocation of shared buffers", code: "PTL_NO_SPACE" }),
        None => private(bytes),
    }
}
