//! The memory that the processes of a host share: one arena per process, addressed by
//! offsets, never by pointers.
//!
//! The process that owns an arena lays it out; every process that delivers to it reads it and
//! writes parts of it. [`cells`] holds the shared structures, [`view`] their addresses. The other
//! files hold the algorithms on single words. These are [`ring`] (slots with many producers),
//! [`hazard`] (what is in use), [`doorbell`] (sleep and wake-up) and [`access`] (access control).
//!
//! | words | written by | read by |
//! |---|---|---|
//! | [`Ident`], [`MeCell`], [`MdCell`] but its state, [`PtEntry`], [`AcEntry`], [`EqCell::shape`] | owner | all |
//! | [`MdCell::state`] | owner and deliverers, by compare-and-swap | all |
//! | [`EqCell::head`] | owner, when it consumes | producers, when their cached copy says "full" |
//! | [`EqCell::losses`] | producers that found no room | owner |
//! | [`EventSlot`] | producers | owner, when it consumes |
//! | [`Hazards`] | owner, as an initiator | every process that removes a descriptor |
//! | [`ArenaHeader::drops`], [`ArenaHeader::doorbell`], [`ArenaHeader::swap_lock`] | deliverers and owner | all |
//!
//! Invariant: nothing that a peer wrote is used as a pointer or as an unchecked index. Any process
//! of the fabric can write any word, so the owner keeps private copies of what only it writes
//! ([`words`]). The table above says what correct processes do.

pub(crate) mod access;
mod cells;
pub(crate) mod doorbell;
pub(crate) mod hazard;
mod primitive;
pub(crate) mod ring;
mod view;
mod words;

pub use cells::PROCESSES;
pub(crate) use cells::*;
pub(crate) use view::*;
pub(crate) use words::*;
