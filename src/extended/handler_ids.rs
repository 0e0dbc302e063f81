//! The indices of the extended layer's handlers; `super::HANDLERS` lists the functions in this
//! order.

use crate::conduit::PINNED_HANDLERS;
use crate::runtime::am::EXTENDED_BASE;

pub(super) const MEMSET_REQUEST: u8 = EXTENDED_BASE;
pub(super) const MEMSET_REPLY: u8 = EXTENDED_BASE + 1;
pub(super) const BARRIER_ARRIVAL: u8 = EXTENDED_BASE + 2;
pub(super) const COLL_SMALL: u8 = EXTENDED_BASE + 3;
pub(super) const COLL_READY: u8 = EXTENDED_BASE + 4;
pub(super) const COLL_PIECE: u8 = EXTENDED_BASE + 5;
pub(super) const VIS_PUT_REQUEST: u8 = EXTENDED_BASE + 6;
pub(super) const VIS_PUT_REPLY: u8 = EXTENDED_BASE + 7;
pub(super) const VIS_GET_REQUEST: u8 = EXTENDED_BASE + 8;
pub(super) const VIS_GET_REPLY: u8 = EXTENDED_BASE + 9;

pub(super) const ATOMIC_REQUEST: u8 = EXTENDED_BASE + 16;
pub(super) const ATOMIC_REPLY: u8 = EXTENDED_BASE + 17;
pub(super) const VIS_NOTICE: u8 = EXTENDED_BASE + 18;
pub(super) const COLL_CALLED: u8 = EXTENDED_BASE + 19;

const _: () = assert!(PINNED_HANDLERS == EXTENDED_BASE + 10);
