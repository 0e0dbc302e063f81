//! The extended API: puts and gets, explicit and implicit operations, access regions, value forms, memset, barrier;
//! vector, indexed and strided puts and gets; collectives.
//!
//! Called by `capi`, which has checked the arguments; calls core, and the conduit for peers whose segment is not mapped
//! here. Among cross-mapped processes everything is a plain memory operation and complete at once.
#![cfg_attr(not(test), deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc))]

pub mod barrier;
pub mod coll;
pub mod memset;
#[cfg(test)]
mod random;
pub mod rma;
pub mod sync;
pub mod value;
pub mod vis;

use crate::runtime::am::{EXTENDED_BASE, InternalHandler};
use crate::runtime::subsystem::Subsystem;
use crate::runtime::{Ctx, GasnetJob};
use alloc::boxed::Box;
use core::any::Any;

/// Handlers of this room, at indices from [`EXTENDED_BASE`] upwards in this order.
pub const HANDLERS: &[InternalHandler] = &[
    memset::on_request,
    memset::on_reply,
    barrier::on_arrival,
    coll::on_small,
    coll::on_ready,
    coll::on_piece,
    vis::packing::on_put,
    vis::packing::on_put_reply,
    vis::packing::on_get,
    vis::packing::on_get_reply,
];

const MEMSET_REQUEST: u8 = EXTENDED_BASE;
const MEMSET_REPLY: u8 = EXTENDED_BASE + 1;
const BARRIER_ARRIVAL: u8 = EXTENDED_BASE + 2;
const COLL_SMALL: u8 = EXTENDED_BASE + 3;
const COLL_READY: u8 = EXTENDED_BASE + 4;
const COLL_PIECE: u8 = EXTENDED_BASE + 5;
const VIS_PUT_REQUEST: u8 = EXTENDED_BASE + 6;
const VIS_PUT_REPLY: u8 = EXTENDED_BASE + 7;
const VIS_GET_REQUEST: u8 = EXTENDED_BASE + 8;
const VIS_GET_REPLY: u8 = EXTENDED_BASE + 9;

/// What this room keeps for a job.
#[derive(Debug)]
struct Extended {
    barrier: barrier::Barrier,
    coll: coll::Coll,
    vis: vis::Vis,
}

impl Subsystem for Extended {
    fn progress(&self, ctx: Ctx) {
        self.barrier.progress(ctx);
        self.coll.progress(ctx);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Makes the extended API ready for a job whose segments are attached. Nothing of this room may be called, and no active
/// message served, before.
pub fn open(job: &'static GasnetJob) {
    job.subsystem.set(Box::new(Extended {
        barrier: barrier::Barrier::new(job),
        coll: coll::Coll::new(job),
        vis: vis::Vis::new(job),
    }));
}
