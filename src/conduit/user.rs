//! Which descriptor an event is about: the user word of each descriptor, which its events
//! return.
//!
//! Packed by the files that attach or bind descriptors, unpacked by `safe` and `request_recv`.
//! Invariant: each descriptor of the conduit that has events has its own word.

/// A descriptor of the conduit that has events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descriptor {
    /// The segment as the target of the data of request Longs.
    RarAm,
    /// The segment as a local side, and as the target of the data of reply Longs.
    RarSrc,
    /// Request send buffer.
    ReqSb,
    /// Reply send buffer.
    RplSb,
    /// Request receive buffer with this number.
    ReqRb(u32),
    /// The catch basin behind the request receive buffers.
    CatchBasin,
    /// Temporary descriptor with this number.
    TmpMd(u32),
    /// System messages.
    Sys,
    /// Requests that need no space in a buffer.
    ReqHdr,
    /// A region of registered memory as a local side.
    Region,
}

impl Descriptor {
    #[inline]
    pub(super) const fn pack(self) -> usize {
        match self {
            Descriptor::RarAm => 0,
            Descriptor::RarSrc => 1,
            Descriptor::ReqSb => 2,
            Descriptor::RplSb => 3,
            Descriptor::ReqRb(i) => 4 | (i as usize) << 4,
            Descriptor::CatchBasin => 5,
            Descriptor::TmpMd(i) => 6 | (i as usize) << 4,
            Descriptor::Sys => 7,
            Descriptor::ReqHdr => 8,
            Descriptor::Region => 9,
        }
    }

    #[inline]
    pub(super) fn unpack(user: usize) -> Descriptor {
        let i = (user >> 4) as u32;
        match user & 0xf {
            0 => Descriptor::RarAm,
            1 => Descriptor::RarSrc,
            2 => Descriptor::ReqSb,
            3 => Descriptor::RplSb,
            4 => Descriptor::ReqRb(i),
            5 => Descriptor::CatchBasin,
            6 => Descriptor::TmpMd(i),
            7 => Descriptor::Sys,
            8 => Descriptor::ReqHdr,
            _ => Descriptor::Region,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Descriptor::{self, *};

    #[test]
    fn what_is_packed_is_unpacked() {
        for d in
            [RarAm, RarSrc, ReqSb, RplSb, ReqRb(77), CatchBasin, TmpMd(32767), Sys, ReqHdr, Region]
        {
            assert_eq!(Descriptor::unpack(d.pack()), d);
        }
    }
}
