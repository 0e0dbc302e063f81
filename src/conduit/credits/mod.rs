//! Flow control of requests. A credit is the right to 256 bytes of a peer's request receive
//! buffers and one slot of its AM event queue.
//!
//! Used by the files that send and receive active messages, and by `system_messages`. A
//! rank's *bank* holds the credits that it has not lent. Invariant: its receive buffers
//! have space for all credits that it has lent, plus its bank.
//!
//! Each rank holds a number of credits of every rank, itself included. All compute it
//! from the same parameters ([`sizing`]), so no message agrees on it. A request takes the
//! credits that it needs; its reply gives them back. With dynamic credits a reply may lend
//! more, and CREDIT_REVOKE and CREDIT_RETURN messages take credits back ([`policy`]). Without
//! them the same code lends nothing.

pub mod policy;
pub mod sizing;
pub mod stats;
mod store;
#[cfg(test)]
mod tests;

pub use sizing::{CREDIT_BYTES, MIN_CREDITS};

use crate::rank::JobRank;
use crate::report;
use alloc::vec::Vec;
use policy::{CreditField, CreditLimits, CreditPolicy, CreditReturn, CreditStore};
use sys::hint::cold_path;

use stats::CreditStats;
use store::CreditTable;

/// Bytes of state that a process keeps for each peer.
pub const STATE_BYTES: usize = store::RECORD_BYTES;

/// Most credits that the header of a request or reply can carry.
pub(super) const MOST_USED: u32 = CreditField::MOST_USED as u32;

/// Credits that a request of `len` bytes uses.
#[inline]
pub(super) fn needed(len: usize) -> u32 {
    (len.div_ceil(CREDIT_BYTES) as u32).max(1)
}

/// Credits that the request used which carried this field.
#[inline]
pub(super) fn used(field: u16) -> u32 {
    CreditField(field).used().into()
}

/// The credit field of the first of several requests that use these credits one after the other;
/// the last one carries [`last_of_several`].
pub(super) fn first_of_several(field: u16) -> u16 {
    CreditField(field).unused().0
}

/// The credit field of the last of several requests that use `used` credits.
pub(super) fn last_of_several(used: u16) -> u16 {
    CreditField::new(false, 0, used).0
}

/// Credits taken for a request, whether its header says that an epoch of ours has ended, and how
/// many credits are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    used: u32,
    epoch: bool,
    left: u16,
}

impl Taken {
    /// Credits that are left to us; as many as there can be without flow control.
    #[inline]
    pub(super) fn left(self) -> u16 {
        self.left
    }

    /// The credit field of the request, which lacked `short` credits at first.
    #[inline]
    pub(super) fn field(self, short: u32) -> u16 {
        CreditField::new(self.epoch, short.min(u16::MAX.into()) as u16, self.used as u16).0
    }
}

/// What all processes of a job start from.
#[derive(Clone, Copy, Debug)]
pub(super) struct CreditSetup {
    /// Several threads call.
    pub(super) par: bool,
    /// Processes of the job.
    pub(super) ranks: u32,
    pub(super) limits: CreditLimits,
    /// Credits that each process holds of each process.
    pub(super) each: u32,
    /// How many processes, from rank 0, hold one credit more.
    pub(super) extra: u32,
    /// Credits in the bank of each process.
    pub(super) bank: u32,
    /// Whether movements of credits are kept.
    pub(super) stats: bool,
}

impl CreditSetup {
    /// Credits that the process with this rank holds of each process.
    pub(super) fn held_by(&self, rank: JobRank) -> u32 {
        self.each + u32::from(rank.0 < self.extra)
    }
}

/// Our credits of every process, and those that we have lent; `None` without flow control.
pub(super) struct Credits(Option<CreditPolicy<CreditTable>>);

/// Ends the job: memory that carries the credits of replies was overwritten.
#[cold]
fn too_many_credits(rank: JobRank, field: CreditField) -> ! {
    report::damaged(format_args!(
        "a reply of rank {rank} returns {} credits, more than are in use there",
        field.used()
    ))
}

impl Credits {
    /// Those of this process, `me`; without flow control there is no `setup`.
    pub(super) fn new(setup: Option<CreditSetup>, me: JobRank) -> Self {
        Credits(setup.map(|setup| {
            let CreditSetup { par, ranks, limits, bank, .. } = setup;
            let each = setup.held_by(me) as u16;
            let store = CreditTable::new(
                par,
                ranks as usize,
                each,
                |rank| setup.held_by(rank) as u16,
                limits.min,
                bank,
                setup.stats.then(|| CreditStats::new(par, me, ranks, each, bank)),
            );
            CreditPolicy { limits, store }
        }))
    }

    /// Takes `n` credits of this process, or none.
    #[inline(always)]
    pub(super) fn take(&self, rank: JobRank, n: u32) -> Option<Taken> {
        match &self.0 {
            Some(policy) => {
                policy.take(rank, n as u16).map(|(epoch, left)| Taken { used: n, epoch, left })
            }
            None => {
                cold_path();
                Some(Taken { used: n, epoch: false, left: u16::MAX })
            }
        }
    }

    /// Takes back the credits of a request with this credit field, which has not left.
    pub(super) fn untake(&self, rank: JobRank, field: u16) {
        if let Some(policy) = &self.0 {
            policy.untake(rank, CreditField(field));
        }
    }

    /// Credits of this process that are free, and those in use; none limit us without flow
    /// control.
    pub(super) fn held(&self, rank: JobRank) -> (u32, u32) {
        self.0.as_ref().map_or((u32::MAX, 0), |policy| {
            policy
                .store
                .peer(rank, |p| ((p.send_credits - p.send_inuse).into(), p.send_inuse.into()))
        })
    }

    /// A request that needs `n` credits could not take them: how many it lacks.
    pub(super) fn stall(&self, rank: JobRank, n: u32) -> u32 {
        self.0.as_ref().map_or(0, |policy| policy.stall(rank, n as u16).into())
    }

    /// A request that has stalled could not take its credits again.
    pub(super) fn stall_goes_on(&self, rank: JobRank) {
        if let Some(policy) = &self.0 {
            policy.stall_goes_on(rank);
        }
    }

    /// A request with this credit field has been taken off AM_EQ.
    #[inline]
    pub(super) fn request_arrived(&self, rank: JobRank, field: u16) {
        if let Some(policy) = &self.0 {
            policy.request_arrived(rank, CreditField(field));
        }
    }

    /// The credit field of the reply to a request that carried `field`, and whether to
    /// [`Credits::scavenge`] when it has left.
    #[inline(always)]
    pub(super) fn reply_field(&self, rank: JobRank, field: u16) -> (u16, bool) {
        match &self.0 {
            Some(policy) => {
                let (field, low) = policy.reply_field(rank, CreditField(field));
                (field.0, low)
            }
            None => {
                cold_path();
                (CreditField(field).used(), false)
            }
        }
    }

    /// Takes in the credit field of a reply of this process.
    #[inline]
    pub(super) fn reply_arrived(&self, rank: JobRank, field: u16) {
        if let Some(policy) = &self.0
            && !policy.reply_arrived(rank, CreditField(field))
        {
            too_many_credits(rank, CreditField(field));
        }
    }

    /// Picks peers to send a CREDIT_REVOKE to, with the flag that an epoch has ended.
    pub(super) fn scavenge(&self, revoke: impl FnMut(JobRank, bool)) {
        if let Some(policy) = &self.0 {
            policy.scavenge(revoke);
        }
    }

    /// The answer to a CREDIT_REVOKE of this process.
    pub(super) fn revoke_arrived(&self, rank: JobRank, epoch: bool) -> CreditReturn {
        let nothing = CreditReturn { credits: 0, epoch: false };
        self.0.as_ref().map_or(nothing, |policy| policy.revoke_arrived(rank, epoch))
    }

    /// A CREDIT_RETURN of this process has arrived.
    pub(super) fn return_arrived(&self, rank: JobRank, back: CreditReturn) {
        if let Some(policy) = &self.0
            && !policy.return_arrived(rank, back)
        {
            report::damaged(format_args!(
                "rank {rank} returns {} credits, unasked or more than it has",
                back.credits
            ))
        }
    }

    /// The processes to which requests are unanswered, and the credits in use for them; `None`
    /// without flow control.
    pub(super) fn in_use(&self) -> Option<Vec<(JobRank, u16)>> {
        let store = &self.0.as_ref()?.store;
        let ranks = (0..store.ranks() as u32).map(JobRank);
        let used = ranks.map(|rank| (rank, store.peer(rank, |p| p.send_inuse)));
        Some(used.filter(|&(_, credits)| credits != 0).collect())
    }

    /// Credits that this process has lent to us, if no thread holds the record.
    pub(super) fn lent_by(&self, rank: JobRank) -> Option<u32> {
        self.0.as_ref()?.store.lent_by(rank).map(u32::from)
    }

    /// Writes the movements of credits if [`CreditSetup::stats`] is set; neither allocates nor
    /// waits.
    pub(super) fn write_stats(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        match self.0.as_ref().and_then(|policy| policy.store.stats.as_ref()) {
            Some((stats, _)) => stats.write(out),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
impl Credits {
    /// What we know of each process; empty without flow control.
    pub(super) fn peers(&self) -> Vec<policy::PeerCredits> {
        let each = |p: &CreditPolicy<CreditTable>| {
            (0..p.store.ranks() as u32)
                .map(|rank| p.store.peer(JobRank(rank), |peer| *peer))
                .collect()
        };
        self.0.as_ref().map(each).unwrap_or_default()
    }

    /// Epochs that have ended.
    pub(super) fn epochs(&self) -> u32 {
        self.0.as_ref().map_or(0, |p| p.store.epoch())
    }

    /// Credits in the bank.
    pub(super) fn banked(&self) -> u32 {
        self.0.as_ref().map_or(0, |p| p.store.bank(|b| b.credits))
    }
}
