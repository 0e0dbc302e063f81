//! The processes of a team, their images and the blocks of these, as plans see them.
//!
//! Made by `choice`, read by the plan makers (`movement`, `all_to_all`, `compute`). Invariant:
//! image numbers count through the processes in the order of the team; a process is its rank
//! in the team.

use super::request::CollBuffers;
use crate::client_memory::{Dst, Src};

/// The processes of a team and their images, as one of them sees them.
#[derive(Clone, Copy, Debug)]
pub(super) struct TeamLayout<'a> {
    /// The rank of this process.
    pub(super) me: usize,
    /// Image number of the first image of each process; the last entry is the number of images.
    pub(super) first: &'a [u32],
}

impl TeamLayout<'_> {
    /// How many processes the team has.
    pub(super) fn n(&self) -> usize {
        self.first.len() - 1
    }

    /// Image number of the first image of a process.
    pub(super) fn first(&self, rank: usize) -> usize {
        self.first[rank] as usize
    }

    /// Images of a process.
    pub(super) fn images(&self, rank: usize) -> usize {
        self.first(rank + 1) - self.first(rank)
    }

    /// Images of the team.
    pub(super) fn all(&self) -> usize {
        self.first(self.n())
    }

    /// The process of an image.
    pub(super) fn process_of(&self, image: usize) -> usize {
        self.first.partition_point(|&f| f as usize <= image) - 1
    }

    /// The process that is `distance` ranks ahead of this one, around the ring.
    pub(super) fn ahead(&self, distance: usize) -> usize {
        (self.me + distance) % self.n()
    }

    /// The process that is `distance` ranks behind this one, around the ring.
    pub(super) fn behind(&self, distance: usize) -> usize {
        (self.me + self.n() - distance) % self.n()
    }

    /// Whether all processes have the same number of images.
    pub(super) fn even(&self) -> bool {
        (1..self.n()).all(|r| self.images(r) == self.images(0))
    }
}

/// Where the blocks of this process's images are.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalBlocks<'a> {
    /// By image of this process.
    pub(super) images: &'a [CollBuffers],
    /// Bytes of a block.
    pub(super) nbytes: usize,
}

impl LocalBlocks<'_> {
    /// `count` blocks of `to` from block `i` on.
    pub(super) fn to(&self, to: Dst<'static>, i: usize, count: usize) -> Dst<'static> {
        to.part(i * self.nbytes, count * self.nbytes)
    }

    /// `count` blocks of `from` from block `i` on.
    pub(super) fn from(&self, from: Src<'static>, i: usize, count: usize) -> Src<'static> {
        from.part(i * self.nbytes, count * self.nbytes)
    }
}
