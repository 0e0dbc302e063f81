//! A team as its collectives see it: the members of a view are the team's images or, for calls
//! with `GASNET_COLL_NO_IMAGES`, its processes.
//!
//! Made by `team`, two for each team; read by `engine` and `choice`. Invariant: only the
//! counters of the images and the tuning of a view change while the team exists.

use super::request::CollStatus;
use super::tuning::TeamTuning;
use crate::extended::members::TeamMembers;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use parking_lot::Mutex;
use smallvec::SmallVec;

/// An image of this process, in a team.
#[derive(Debug, Default)]
pub(super) struct TeamImage {
    calls: AtomicU32,
    /// The collectives whose handle will be that of a later call.
    aggregate: Mutex<SmallVec<[Arc<CollStatus>; 1]>>,
    /// There are some.
    has_aggregate: AtomicBool,
    /// Number of the barrier of images that it has notified last.
    pub(super) notified: AtomicU64,
}

impl TeamImage {
    /// The number of its next collective, which begins. An image calls one after the other.
    pub(super) fn next(&self) -> u32 {
        let number = self.calls.load(Ordering::Relaxed);
        self.calls.store(number.wrapping_add(1), Ordering::Relaxed);
        number
    }

    /// The handle of a later call will stand for this collective too.
    pub(super) fn add_to_aggregate(&self, status: Arc<CollStatus>) {
        self.aggregate.lock().push(status);
        self.has_aggregate.store(true, Ordering::Relaxed);
    }

    /// The collectives for which the handle of this call stands too.
    pub(super) fn take_aggregate(&self) -> SmallVec<[Arc<CollStatus>; 1]> {
        if !self.has_aggregate.load(Ordering::Relaxed) {
            return SmallVec::new();
        }
        self.has_aggregate.store(false, Ordering::Relaxed);
        core::mem::take(&mut *self.aggregate.lock())
    }

    /// How many collectives it has called.
    pub(super) fn called(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct TeamView {
    /// Names it in messages.
    pub(super) context: u32,
    pub(super) members: TeamMembers,
    /// Image number of the first image of each process, and the number of all.
    pub(super) first: Box<[u32]>,
    /// The images of this process.
    pub(super) images: Box<[TeamImage]>,
    pub(super) tuning: Arc<TeamTuning>,
}

impl TeamView {
    /// With `counts[rank]` images on each process.
    pub(super) fn new(
        context: u32,
        members: TeamMembers,
        counts: &[u32],
        tuning: Arc<TeamTuning>,
    ) -> TeamView {
        let mut first = alloc::vec![0];
        for count in counts {
            first.push(first[first.len() - 1] + count);
        }
        let mine = counts[members.me().index()];
        let images = (0..mine).map(|_| TeamImage::default()).collect();
        TeamView { context, members, first: first.into(), images, tuning }
    }

    /// The stream of movements that its collectives are: those of all processes, each with one
    /// image, which call in one order.
    pub(super) fn stream(&self) -> Option<usize> {
        const OF_RANKS: u32 = 2 * super::RANKS + 1;
        match self.context {
            0 if self.all() == self.members.size() => Some(0),
            OF_RANKS => Some(1),
            _ => None,
        }
    }

    /// Images of all processes.
    pub(super) fn all(&self) -> u32 {
        self.first[self.first.len() - 1]
    }

    /// Image number, in the team, of an image of this process.
    pub(super) fn number(&self, image: usize) -> u32 {
        self.first[self.members.me().index()] + image as u32
    }
}
