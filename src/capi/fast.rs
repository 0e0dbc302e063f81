//! Fills the record that the inline paths of the headers read.
//!
//! Opened by `gasnet_attach`, once; closed in forked children. Invariant: a path is open only to a peer whose segment is
//! mapped here and may be used directly, and only while nothing wants to see every put and get.

use super::abi::{gasneti_abi, gasneti_peer_t};
use crate::core::Job;
use crate::core::checks;
use crate::core::segment::Segment;
use crate::{fault, trace};
use alloc::boxed::Box;

/// The inline paths' view of one segment.
fn peer(s: &Segment, open: bool) -> gasneti_peer_t {
    if s.local.is_null() || !open {
        return gasneti_peer_t { base: s.base as usize, span: 0, delta: 0, starts: 0 };
    }
    gasneti_peer_t {
        base: s.base as usize,
        span: s.len,
        delta: (s.local as usize).wrapping_sub(s.base as usize),
        starts: s.len.saturating_sub(7),
    }
}

/// Opens the paths.
pub(super) fn open(job: &'static Job) {
    let open = !fault::any() && !checks::on() && !trace::on();
    let peers: Box<[gasneti_peer_t]> = (0..job.nodes).map(|rank| peer(&job.segments()[rank], open)).collect();
    let peers = Box::leak(peers);
    let record = &raw mut gasneti_abi;
    // SAFETY: written only here, once, inside gasnet_attach, which no other call may overlap; `nodes` comes last, and
    // while it is 0 the inline paths read nothing else.
    unsafe {
        (*record).peers = peers.as_ptr();
        (*record).mynode = job.mynode;
        (*record).implicit = if open { job.ops.syncs().as_ptr() } else { core::ptr::null() };
        (*record).nodes = job.nodes;
    }
}

/// Has the headers tell where calls come from, if anything is watched. Called by `gasnet_init`.
pub(super) fn watch() {
    let record = &raw mut gasneti_abi;
    // SAFETY: written inside gasnet_init, which no other call may overlap.
    unsafe { (*record).watched = usize::from(trace::on()) };
}

/// Closes the paths, in a forked child.
pub(super) fn close() {
    let record = &raw mut gasneti_abi;
    // SAFETY: called in a process that has just been forked and has only the calling thread.
    unsafe {
        (*record).nodes = 0;
        (*record).watched = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr;

    #[test]
    fn closed_where_there_is_no_mapping() {
        let base = ptr::without_provenance_mut(0x7000_0000);
        let local = ptr::without_provenance_mut(0x1000_0000);
        let s = Segment { base, len: 0x1000, local };
        let p = peer(&s, true);
        assert_eq!((p.span, p.starts), (0x1000, 0x0ff9));
        assert_eq!(peer(&Segment { len: 7, ..s }, true).starts, 0);
        assert_eq!(0x7000_0010usize.wrapping_add(p.delta), 0x1000_0010);
        for closed in [peer(&s, false), peer(&Segment { local: ptr::null_mut(), ..s }, true)] {
            assert_eq!((closed.span, closed.starts), (0, 0));
        }
    }
}
