//! RAR, RARAM, RARSRC: the three descriptors over our segment, and where everybody's segment lies.
//!
//! RAR is what puts and gets of peers target: no event queue, so that a delivery writes nothing but the data. RARAM
//! takes the data of request Longs, with events on AM_EQ; RARSRC that of reply Longs, with events on SAFE_EQ, and is
//! the local side of our own puts, gets and Longs whose local memory lies in the segment.

use super::match_bits::{IGNORE, TargetMd};
use super::portals::{EntryPosition, MdFlags, MdSpec, Portals, PortalsError};
use super::user::Descriptor;
use crate::report;
use alloc::boxed::Box;

pub(super) struct Rar<P: Portals> {
    /// RARSRC
    pub(super) src: P::Md,
    /// Address and length of our segment.
    base: usize,
    len: usize,
    /// Address, in its owner, and length of each segment.
    segments: Box<[(usize, usize)]>,
}

impl<P: Portals> Rar<P> {
    pub(super) fn attach(
        portals: &P,
        pt: u32,
        me: u32,
        segments: &[(*mut u8, usize)],
        safe: P::Eq,
        am: P::Eq,
    ) -> Result<Self, PortalsError> {
        let (base, len) = segments[me as usize];
        let attach = |target: TargetMd, user: Descriptor, flags: MdFlags, eq: Option<P::Eq>| {
            let entry =
                portals.me_attach(EntryPosition::Tail(pt), target as u64, IGNORE, false)?;
            let spec =
                MdSpec { start: base, length: len, max_size: None, flags, user: user.pack(), eq };
            // SAFETY: the segment stays mapped until the process ends, and peers may write it: that is what it is for.
            unsafe { portals.md_attach(entry, &spec, false) }
        };
        let put = MdFlags {
            op_put: true,
            manage_remote: true,
            event_start_disable: true,
            ..MdFlags::default()
        };
        let rma = MdFlags { op_get: true, event_end_disable: true, ..put };
        attach(TargetMd::Rar, Descriptor::RarSrc, rma, None)?;
        attach(TargetMd::RarAm, Descriptor::RarAm, put, Some(am))?;
        let src = attach(TargetMd::RarSrc, Descriptor::RarSrc, put, Some(safe))?;
        let segments = segments.iter().map(|&(p, n)| (p as usize, n)).collect();
        Ok(Rar { src, base: base as usize, len, segments })
    }

    /// Where in our segment these `n` bytes lie, if they do.
    #[inline]
    pub(super) fn local(&self, p: *const u8, n: usize) -> Option<usize> {
        let offset = (p as usize).wrapping_sub(self.base);
        inside(offset, n, self.len).then_some(offset)
    }

    /// An address as far behind the begin of our segment, whether it is inside or not.
    #[inline]
    pub(super) fn near(&self, offset: usize) -> *const u8 {
        core::ptr::without_provenance(self.base.wrapping_add(offset))
    }

    /// Where `n` bytes of our segment are from this offset on, if they are in it.
    #[inline]
    pub(super) fn at(&self, offset: usize, n: usize) -> Option<*mut u8> {
        inside(offset, n, self.len).then(|| (self.base + offset) as *mut u8)
    }

    /// Where in the segment of `node` these `n` bytes lie. Ends the job if they do not: the callers have checked.
    #[inline]
    pub(super) fn remote(&self, node: u32, p: *const u8, n: usize) -> usize {
        let (base, len) = self.segments[node as usize];
        let offset = (p as usize).wrapping_sub(base);
        if !inside(offset, n, len) {
            outside(node, p as usize, n, base, len);
        }
        offset
    }
}

/// Whether `n` bytes from this offset on are in a segment of `len` bytes.
#[inline]
fn inside(offset: usize, n: usize, len: usize) -> bool {
    offset <= len && n <= len - offset
}

#[cold]
fn outside(node: u32, p: usize, n: usize, base: usize, len: usize) -> ! {
    report::fatal(
        format_args!(
            "{n} bytes at {p:#x} are not in the segment of process {node}, {len} bytes at {base:#x}"
        ),
        format_args!(
            "Remote addresses must lie in the segment that gasnet_getSegmentInfo tells of."
        ),
    )
}
