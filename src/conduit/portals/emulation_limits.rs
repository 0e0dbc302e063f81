//! What an interface of the emulation must hold for a conduit, and the memory for it.
//!
//! Used by `emulation`. Invariant: the arena has space for what the limits allow.

use super::MOST_PIECES;
use crate::conduit::Config;
use portals3::NiLimits;

/// What the conduit uses; entries and descriptors of refreshed buffers may be given back late.
pub(super) fn limits(config: &Config) -> NiLimits {
    NiLimits {
        max_mes: 16 + 2 * config.match_entries() as u32,
        max_mds: 16 + config.reqrb_buffers + config.descriptors() as u32,
        max_eqs: 4,
        max_pt_index: config.last_list(),
        ..NiLimits::DEFAULT
    }
}

/// Bytes of the arena of one process: tables, event queues, the conduit's buffers, and room for
/// what the emulation keeps there itself.
pub(super) fn arena_bytes(config: &Config) -> usize {
    const OWN: usize = 512 << 10;
    const ENTRY: usize = 64;
    const DESCRIPTOR: usize = 128;
    const EVENT: usize = 64;
    const PIECES: usize = 64 + 32 * MOST_PIECES;
    let limits = limits(config);
    let events: usize = config.event_counts().iter().map(|n| n.next_power_of_two()).sum();
    OWN + limits.max_mes as usize * ENTRY
        + limits.max_mds as usize * DESCRIPTOR
        + events * EVENT
        + config.num_tmpmd as usize * PIECES
        + config.library_bytes()
}
