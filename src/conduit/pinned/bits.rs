//! The match bits of puts and gets of registered memory.
//!
//! Used by `pinner`, which attaches match entries, and by `pinned_transfer`, which sends. All bits
//! of a region's name decide; the entry ignores what the initiator needs when its own events
//! return.
//! Invariant: [`PinnedBits::unpack`] reads what [`PinnedBits::pack`] writes.
//!
//! | bits | what |
//! |---|---|
//! | 3:0 | 8: a region |
//! | 7:4 | kind of the message |
//! | 23:8 | flight of the initiator |
//! | 39:24 | slot of the region |
//! | 63:40 | generation of the slot |

use super::super::firehose::PinId;
use super::super::match_bits::{PINNED, TargetMd};

/// The match bits of a put or get to a segment, whose local side is registered.
pub(in crate::conduit) fn to_segment(flight: u16) -> u64 {
    TargetMd::Rar as u64 | PINNED | u64::from(flight) << FLIGHT_SHIFT
}

/// The low four bits of regions.
const REGION: u64 = 8;
const FLIGHT_SHIFT: u32 = 8;
const NAME_SHIFT: u32 = 24;
const GENERATION_SHIFT: u32 = 16;
/// What match entries of regions ignore.
pub(in crate::conduit) const IGNORE: u64 = ((1 << NAME_SHIFT) - 1) & !0xff;
/// Generations of a slot.
pub(in crate::conduit) const GENERATIONS: u32 = 1 << (64 - NAME_SHIFT - GENERATION_SHIFT);

/// The name of a region: its slot and its generation.
pub(in crate::conduit) fn name_of(id: PinId) -> u64 {
    u64::from(id.slot & 0xffff) | u64::from(id.generation % GENERATIONS) << GENERATION_SHIFT
}

/// The match bits of a put or get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conduit) struct PinnedBits {
    /// Names the record of the initiator.
    pub(in crate::conduit) flight: u16,
    /// Names the region of the target ([`name_of`]).
    pub(in crate::conduit) name: u64,
}

impl PinnedBits {
    #[inline]
    pub(in crate::conduit) fn pack(self) -> u64 {
        REGION | PINNED | u64::from(self.flight) << FLIGHT_SHIFT | self.name << NAME_SHIFT
    }

    pub(in crate::conduit) fn unpack(bits: u64) -> PinnedBits {
        PinnedBits { flight: (bits >> FLIGHT_SHIFT) as u16, name: bits >> NAME_SHIFT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let id = PinId { slot: 0xfedc, generation: GENERATIONS - 1 };
        let bits = PinnedBits { flight: 0xba98, name: name_of(id) };
        assert_eq!(PinnedBits::unpack(bits.pack()), bits);
        assert_eq!(bits.pack(), 0xffff_fffe_dcba_9838);
    }

    #[test]
    fn generations_differ_where_it_counts_and_flights_do_not() {
        let bits = |generation, flight| {
            let name = name_of(PinId { slot: 3, generation });
            PinnedBits { flight, name }.pack() & !IGNORE
        };
        assert_eq!(bits(1, 7), bits(1, 8));
        assert_ne!(bits(1, 7), bits(2, 7));
        assert_eq!(name_of(PinId { slot: 67, generation: GENERATIONS - 1 }) as u16, 67);
    }
}
