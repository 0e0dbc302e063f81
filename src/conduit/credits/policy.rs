//! How credits are used, lent and taken back: the "Scheme for credit balancing and
//! re-distribution" of the portals-conduit README, free of I/O. `docs/internals/credits.md` says
//! where that text is unclear and what is done here.
//!
//! Called by `Credits` and by the simulator `credit-sim`. Invariant, for each pair: what X has
//! lent to Y is what Y holds of X, in use or free, plus what is under way. Under way is what was
//! granted in a reply, or given back in a CREDIT_RETURN. What X has lent to all and what is in
//! its bank make a constant sum.
//!
//! A rank is a *lender* and a *borrower* at once. It lends its receive buffers, to each peer
//! as `Loan` credits; the rest is in its [`CreditBank`]. It borrows the `Send` credits that each
//! peer has lent to it. What happens to a rank is a call of [`CreditPolicy`]; what it must
//! send is what the call returns. A [`CreditStore`] keeps the state of peers: the conduit has an
//! array, the simulator only records that differ from the initial one. So the state of a peer is
//! brought up to the present epoch when it is used, never that of all peers at once.

use crate::rank::JobRank;
use sys::hint::cold_path;

/// The parameters of the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditLimits {
    /// Whether credits move at all.
    pub dynamic: bool,
    /// Credits that every peer keeps: those of a largest request.
    pub min: u16,
    /// Most credits that are lent to one peer, those at start included.
    pub max_per_node: u16,
    /// Most credits that are lent to one peer in an epoch.
    pub lender: u16,
    /// Most credits that are given back to one lender in an epoch.
    pub revoke: u16,
    /// Most CREDIT_REVOKE messages of a lender that are unanswered.
    pub targets: u16,
    /// CREDIT_REVOKE messages of a lender in an epoch that may be answered with nothing; then it
    /// waits for the next one.
    pub vain: u16,
    /// Credits below which the bank is low.
    pub low: u32,
    /// Requests received that make an epoch.
    pub epoch: u32,
}

impl CreditLimits {
    /// The scheme's own parameters, which no variable sets.
    pub const fn new(min: u16, max_per_node: u16, epoch: u32) -> CreditLimits {
        CreditLimits {
            dynamic: true,
            min,
            max_per_node,
            lender: 32,
            revoke: 32,
            targets: 6,
            vain: 32,
            low: 32,
            epoch,
        }
    }
}

/// What a process knows of one peer. Fields of `Send` are about our requests to it, fields of
/// `Loan` about its requests to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredits {
    /// Credits that the peer has lent to us.
    pub send_credits: u16,
    /// Those of them that our unanswered requests use.
    pub send_inuse: u16,
    /// Most of them in use lately; never below `send_inuse`. Decays.
    pub send_max: u16,
    /// How often we lacked credits lately. Decays.
    pub send_stalls: u16,
    /// Credits that we gave back lately. Decays.
    pub send_revoked: u16,
    /// Credits that we have lent to the peer.
    pub loan_credits: u16,
    /// How often the peer requested more lately. Decays.
    pub loan_requested: u16,
    /// Credits that we lent to it beyond the first ones lately. Decays.
    pub loan_given: u16,
    /// Our epoch that the `Loan` fields belong to.
    pub epoch: u32,
    flags: u8,
}

/// A CREDIT_REVOKE to the peer is unanswered.
const REVOKING: u8 = 1;
/// The peer gave nothing back in this epoch.
const ZERO_REPLY: u8 = 2;
/// An epoch of ours has ended, and the peer has not been notified.
const REACHED_EPOCH: u8 = 4;
/// A request of ours to the peer waits for credits.
const WAITING: u8 = 8;
/// We lacked credits in the peer's last epoch.
const STALLED_LAST: u8 = 16;

/// At most this many bytes of state for each peer: 400 KB in a job of 10,000.
pub const PEER_LIMIT: usize = 40;
const _: () = assert!(size_of::<PeerCredits>() <= PEER_LIMIT);

/// A decaying count loses three quarters at the end of an epoch.
fn decayed(n: u16, epochs: u32) -> u16 {
    n.checked_shr(epochs.saturating_mul(2)).unwrap_or(0)
}

impl PeerCredits {
    /// The state at start: each has lent this many credits to the other.
    pub const fn initial(credits: u16) -> PeerCredits {
        PeerCredits {
            send_credits: credits,
            send_inuse: 0,
            send_max: 0,
            send_stalls: 0,
            send_revoked: 0,
            loan_credits: credits,
            loan_requested: 0,
            loan_given: 0,
            epoch: 0,
            flags: 0,
        }
    }

    /// Whether a CREDIT_REVOKE to the peer is unanswered.
    pub fn is_revoking(&self) -> bool {
        self.flags & REVOKING != 0
    }

    /// Takes `n` credits for a request, or none.
    #[inline]
    fn take(&mut self, n: u16) -> bool {
        let inuse = self.send_inuse + n;
        if inuse > self.send_credits {
            return false;
        }
        self.send_inuse = inuse;
        if inuse > self.send_max {
            cold_path();
            self.send_max = inuse;
        }
        self.flags &= !WAITING;
        true
    }

    /// The peer has ended an epoch.
    fn decay_send(&mut self) {
        self.flags =
            self.flags & !STALLED_LAST | if self.send_stalls != 0 { STALLED_LAST } else { 0 };
        // What is in use was in use lately: else it could be given back.
        self.send_max = decayed(self.send_max, 1).max(self.send_inuse);
        // A request that waits now is short of credits, however many epochs end meanwhile.
        self.send_stalls = decayed(self.send_stalls, 1).max((self.flags & WAITING != 0).into());
        self.send_revoked = decayed(self.send_revoked, 1);
    }

    /// Credits that may go back to the peer. None may if we lacked some in this or the last of
    /// its epochs. Credits that we used lately are not among them. `min` stay in addition to
    /// those in use, which may all be those of requests whose implicit replies wait because we
    /// had as many left.
    fn spare(&self, min: u16) -> u16 {
        if self.send_stalls != 0 || self.flags & STALLED_LAST != 0 {
            return 0;
        }
        self.send_credits.saturating_sub(self.send_max.max(self.send_inuse.saturating_add(min)))
    }

    /// Our epochs that have ended since the record was looked at.
    #[inline]
    fn catch_up(&mut self, epoch: u32) {
        if self.epoch != epoch {
            self.end_epochs(epoch);
        }
    }

    #[cold]
    fn end_epochs(&mut self, epoch: u32) {
        let epochs = epoch.wrapping_sub(self.epoch);
        self.loan_requested = decayed(self.loan_requested, epochs);
        self.loan_given = decayed(self.loan_given, epochs);
        self.flags = self.flags & !ZERO_REPLY | REACHED_EPOCH;
        self.epoch = epoch;
    }

    /// Whether a message that is about to leave for the peer says that an epoch of ours has ended.
    #[inline]
    fn take_epoch_flag(&mut self, epoch: u32) -> bool {
        self.catch_up(epoch);
        let ended = self.flags & REACHED_EPOCH != 0;
        if ended {
            cold_path();
            self.flags &= !REACHED_EPOCH;
        }
        ended
    }
}

/// What a lender has not lent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreditBank {
    /// Credits.
    pub credits: u32,
    /// CREDIT_REVOKE messages that are unanswered.
    revoking: u16,
    /// Those that were answered with nothing in the epoch `vain_in`.
    vain: u16,
    vain_in: u32,
    /// The peer after which the next search begins.
    cursor: JobRank,
}

impl CreditBank {
    /// A bank with these credits.
    pub const fn new(credits: u32) -> CreditBank {
        CreditBank { credits, revoking: 0, vain: 0, vain_in: 0, cursor: JobRank(0) }
    }
}

/// How many credits moved, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditChange {
    /// We lent the peer this many more.
    Lent(u16),
    /// The peer gave this many back to us; 0 if it could spare none.
    Returned(u16),
    /// The peer lent us this many more.
    Borrowed(u16),
    /// We gave this many back to the peer.
    GaveBack(u16),
    /// We were short of this many.
    Stalled(u16),
}

/// Where a process keeps what it knows of its peers. Several threads may call if the store is
/// `Sync`.
///
/// A closure that is given to [`CreditStore::peer`] may call [`CreditStore::bank`], not the other
/// way round, and neither is called from inside itself.
pub trait CreditStore {
    /// Reads and changes the record of one peer.
    fn peer<R>(&self, rank: JobRank, f: impl FnOnce(&mut PeerCredits) -> R) -> R;
    /// Reads and changes the bank.
    fn bank<R>(&self, f: impl FnOnce(&mut CreditBank) -> R) -> R;
    /// Notes whether a peer holds more than the least that every peer keeps.
    fn note_spare(&self, rank: JobRank, spare: bool);
    /// The first peer after this one that holds more than the least, in the order of ranks and
    /// round the end. The peer itself if there is no other.
    fn next_spare(&self, after: JobRank) -> Option<JobRank>;
    /// The epochs that have ended.
    fn epoch(&self) -> u32;
    /// Counts a request that was received; `length` of them make an epoch. Calls do not overlap.
    fn count_request(&self, length: u32);
    /// Called for each movement, under the lock of the peer's record; for statistics.
    #[inline]
    fn changed(&self, rank: JobRank, peer: &PeerCredits, change: CreditChange) {
        let _ = (rank, peer, change);
    }
}

/// The credit field of an active message: E (bit 12), XXX (11:9), N (8:0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditField(pub u16);

impl CreditField {
    /// Bits of the field.
    pub const BITS: u32 = 13;
    /// Largest value of XXX.
    pub const MOST_EXTRA: u16 = 7;
    /// Largest value of N.
    pub const MOST_USED: u16 = 511;

    /// E, the sender has ended an epoch; XXX, credits that it lacked (request) or lends (reply),
    /// 7 for more; N, credits that the request uses.
    #[inline]
    pub fn new(epoch: bool, extra: u16, used: u16) -> CreditField {
        debug_assert!(used <= Self::MOST_USED);
        CreditField(u16::from(epoch) << 12 | extra.min(Self::MOST_EXTRA) << 9 | used)
    }

    /// E
    #[inline]
    pub fn epoch(self) -> bool {
        self.0 & 1 << 12 != 0
    }

    /// XXX
    #[inline]
    pub fn extra(self) -> u16 {
        self.0 >> 9 & Self::MOST_EXTRA
    }

    /// The field without N.
    pub fn unused(self) -> CreditField {
        CreditField(self.0 & !Self::MOST_USED)
    }

    /// N
    #[inline]
    pub fn used(self) -> u16 {
        self.0 & Self::MOST_USED
    }
}

/// A CREDIT_RETURN: credits for the lender's bank, and whether an epoch of the sender has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditReturn {
    /// Credits.
    pub credits: u16,
    /// E
    pub epoch: bool,
}

/// The scheme over what one process knows.
#[derive(Debug)]
pub struct CreditPolicy<S> {
    /// Its parameters.
    pub limits: CreditLimits,
    /// What the process knows.
    pub store: S,
}

impl<S: CreditStore> CreditPolicy<S> {
    /// Takes `n` credits for a request to this peer, or none. Returns whether the request says
    /// that an epoch of ours has ended, and how many credits are left.
    #[inline(always)]
    pub fn take(&self, rank: JobRank, n: u16) -> Option<(bool, u16)> {
        let epoch = self.store.epoch();
        self.store.peer(rank, |p| {
            p.take(n).then(|| (p.take_epoch_flag(epoch), p.send_credits - p.send_inuse))
        })
    }

    /// Takes back what [`CreditPolicy::take`] gave for a request with this credit field, which has
    /// not left.
    #[cold]
    pub fn untake(&self, rank: JobRank, field: CreditField) {
        self.store.peer(rank, |p| {
            p.send_inuse -= field.used();
            if field.epoch() {
                p.flags |= REACHED_EPOCH;
            }
        });
    }

    /// A request that needs `n` credits could not take them: how many it lacks. Called once for
    /// each such request.
    #[cold]
    pub fn stall(&self, rank: JobRank, n: u16) -> u16 {
        self.store.peer(rank, |p| {
            p.send_stalls = p.send_stalls.saturating_add(1);
            p.flags |= WAITING;
            let lacks = n.saturating_sub(p.send_credits - p.send_inuse);
            self.store.changed(rank, p, CreditChange::Stalled(lacks));
            lacks
        })
    }

    /// A request that has stalled could not take its credits again. Another request may have taken
    /// fewer meanwhile.
    #[cold]
    pub fn stall_goes_on(&self, rank: JobRank) {
        self.store.peer(rank, |p| p.flags |= WAITING);
    }

    /// A request of this peer with this credit field has been received. Calls do not overlap.
    #[inline]
    pub fn request_arrived(&self, rank: JobRank, field: CreditField) {
        if self.limits.dynamic {
            self.store.count_request(self.limits.epoch);
            if field.epoch() {
                cold_path();
                self.store.peer(rank, PeerCredits::decay_send);
            }
        }
    }

    /// The credit field of the reply to a request of this peer that carried `field`. Also
    /// whether the peer requested more while the bank is low. If so, the caller calls
    /// [`CreditPolicy::scavenge`] when the reply has left.
    #[inline(always)]
    pub fn reply_field(&self, rank: JobRank, field: CreditField) -> (CreditField, bool) {
        let epoch = self.store.epoch();
        if field.extra() == 0 || !self.limits.dynamic {
            let ended = self.store.peer(rank, |p| p.take_epoch_flag(epoch));
            return (CreditField::new(ended, 0, field.used()), false);
        }
        self.reply_field_with_more(rank, field, epoch)
    }

    #[cold]
    #[inline(never)]
    fn reply_field_with_more(
        &self,
        rank: JobRank,
        field: CreditField,
        epoch: u32,
    ) -> (CreditField, bool) {
        let (ended, extra, low) = self.store.peer(rank, |p| {
            let ended = p.take_epoch_flag(epoch);
            let (extra, low) = self.grant(rank, p, field.extra());
            (ended, extra, low)
        });
        (CreditField::new(ended, extra, field.used()), low)
    }

    /// Lends up to `wanted` more credits; how many, and whether the bank is low.
    #[cold]
    fn grant(&self, rank: JobRank, p: &mut PeerCredits, wanted: u16) -> (u16, bool) {
        p.loan_requested = p.loan_requested.saturating_add(1);
        let room = self.limits.max_per_node.saturating_sub(p.loan_credits);
        if room == 0 {
            // One that may not have more anyway is no reason to take from others.
            return (0, false);
        }
        let pace = self.limits.lender.saturating_sub(p.loan_given);
        let most = wanted.min(room).min(pace);
        let (extra, low) = self.store.bank(|b| {
            let extra = most.min(b.credits.min(u16::MAX.into()) as u16);
            b.credits -= u32::from(extra);
            (extra, b.credits < self.limits.low)
        });
        if extra != 0 {
            p.loan_credits += extra;
            p.loan_given += extra;
            self.store.note_spare(rank, p.loan_credits > self.limits.min);
            self.store.changed(rank, p, CreditChange::Lent(extra));
        }
        (extra, low)
    }

    /// A reply of this peer with this credit field has been received. False, and nothing is
    /// changed, if it returns more credits than are in use: no correct peer sends that.
    #[inline]
    #[must_use]
    pub fn reply_arrived(&self, rank: JobRank, field: CreditField) -> bool {
        let are_in_use = self.store.peer(rank, |p| match p.send_inuse.checked_sub(field.used()) {
            Some(left) => {
                p.send_inuse = left;
                true
            }
            None => false,
        });
        if !are_in_use {
            return false;
        }
        // E or XXX: rare, so it takes the record again. Until then the credits that come with it
        // count as under way.
        if field.0 & !CreditField::MOST_USED != 0 {
            self.more_of_reply(rank, field);
        }
        true
    }

    #[cold]
    fn more_of_reply(&self, rank: JobRank, field: CreditField) {
        self.store.peer(rank, |p| {
            if field.epoch() {
                p.decay_send();
            }
            if field.extra() != 0 {
                p.send_credits += field.extra();
                self.store.changed(rank, p, CreditChange::Borrowed(field.extra()));
            }
        });
    }

    /// The bank is low. Picks the peers that may have credits to spare. Has `revoke` send
    /// each of them a CREDIT_REVOKE, whose flag says whether an epoch has ended.
    ///
    /// A peer is skipped in each of these cases:
    /// - It has the least that every peer keeps.
    /// - It has an unanswered CREDIT_REVOKE.
    /// - It had nothing to spare when last asked in this epoch.
    /// - It has requested more itself lately.
    ///
    /// The search goes once round at most and goes on, the next time, where it left off.
    #[cold]
    pub fn scavenge(&self, mut revoke: impl FnMut(JobRank, bool)) {
        let epoch = self.store.epoch();
        let start = self.store.bank(|b| b.cursor);
        let mut rank = start;
        // Place in a round that begins behind `start` and ends with it.
        let place = |n: JobRank| (n <= start, n);
        let mut last = None;
        while let Some(next) = self.store.next_spare(rank) {
            let here = Some(place(next));
            if here <= last {
                break;
            }
            last = here;
            let more = self.store.bank(|b| {
                let in_vain = b.vain_in == epoch && b.vain >= self.limits.vain;
                let more =
                    b.revoking < self.limits.targets && b.credits < self.limits.low && !in_vain;
                if more {
                    b.revoking += 1;
                    b.cursor = next;
                }
                more
            });
            if !more {
                break;
            }
            match self.store.peer(next, |p| self.may_revoke(p, epoch)) {
                Some(ended) => revoke(next, ended),
                None => self.store.bank(|b| b.revoking -= 1),
            }
            rank = next;
        }
    }

    /// Whether to send this peer a CREDIT_REVOKE, and with which flag.
    fn may_revoke(&self, p: &mut PeerCredits, epoch: u32) -> Option<bool> {
        p.catch_up(epoch);
        if p.flags & (REVOKING | ZERO_REPLY) != 0
            || p.loan_credits <= self.limits.min
            || p.loan_requested != 0
        {
            return None;
        }
        p.flags |= REVOKING;
        Some(p.take_epoch_flag(epoch))
    }

    /// A CREDIT_REVOKE of this peer has arrived: the CREDIT_RETURN to send.
    pub fn revoke_arrived(&self, rank: JobRank, ended: bool) -> CreditReturn {
        let epoch = self.store.epoch();
        self.store.peer(rank, |p| {
            if ended {
                p.decay_send();
            }
            let pace = self.limits.revoke.saturating_sub(p.send_revoked);
            let credits = p.spare(self.limits.min).min(pace);
            p.send_credits -= credits;
            p.send_revoked += credits;
            self.store.changed(rank, p, CreditChange::GaveBack(credits));
            CreditReturn { credits, epoch: p.take_epoch_flag(epoch) }
        })
    }

    /// A CREDIT_RETURN of this peer has arrived. False, and nothing done, if it answers no
    /// CREDIT_REVOKE, or returns more than was lent.
    #[must_use]
    pub fn return_arrived(&self, rank: JobRank, back: CreditReturn) -> bool {
        let epoch = self.store.epoch();
        self.store.peer(rank, |p| {
            let spare = p.loan_credits.saturating_sub(self.limits.min);
            if p.flags & REVOKING == 0 || back.credits > spare {
                return false;
            }
            p.catch_up(epoch);
            p.flags &= !REVOKING;
            if back.epoch {
                p.decay_send();
            }
            if back.credits == 0 {
                p.flags |= ZERO_REPLY;
            }
            p.loan_credits -= back.credits;
            self.store.note_spare(rank, p.loan_credits > self.limits.min);
            self.store.bank(|b| {
                b.revoking -= 1;
                b.credits += u32::from(back.credits);
                if back.credits == 0 {
                    b.vain = if b.vain_in == epoch { b.vain.saturating_add(1) } else { 1 };
                    b.vain_in = epoch;
                }
            });
            self.store.changed(rank, p, CreditChange::Returned(back.credits));
            true
        })
    }
}
