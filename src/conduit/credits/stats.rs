//! What `GASNET_PORTAL_CREDIT_STATS` writes: each movement of credits with its time, and sums for
//! each peer.
//!
//! Kept in memory by `store` and by the simulator, and written as text when the rank ends;
//! `gasnet_trace credits` draws it. It slows a run down. Invariant: writing neither allocates nor
//! waits, so that a signal handler may do it.

use super::policy::{CreditChange, PeerCredits};
use crate::conduit::sync::ParLock;
use crate::rank::JobRank;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// Most movements that are kept.
const MOST: usize = 1 << 18;

#[derive(Clone, Copy)]
struct Movement {
    at_ns: u64,
    epoch: u32,
    rank: JobRank,
    loan: u16,
    send: u16,
    change: CreditChange,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    stalls: u64,
    lent: u64,
    returned: u64,
    borrowed: u64,
    gave_back: u64,
    /// CREDIT_RETURN messages without a credit.
    empty: u64,
    /// Most credits that the peer held of us, and we of it.
    high_loan: u16,
    high_send: u16,
    /// Most of the peer's credits that were in use at a time when something moved.
    high_inuse: u16,
}

struct Kept {
    movements: Vec<Movement>,
    left_out: u64,
    sums: Box<[Sums]>,
}

/// The movements of one process, and where they began.
pub struct CreditStats {
    rank: JobRank,
    each: u16,
    bank: u32,
    kept: ParLock<Kept>,
}

impl core::fmt::Debug for CreditStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stats").field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl CreditStats {
    /// For the process with this rank, one of `ranks`. At first they hold `each` credits of each
    /// other, and `bank` is in the bank. `par` if several threads call.
    pub fn new(par: bool, rank: JobRank, ranks: u32, each: u16, bank: u32) -> CreditStats {
        let first = Sums { high_loan: each, high_send: each, ..Sums::default() };
        let sums = (0..ranks).map(|_| first).collect();
        let kept = Kept { movements: Vec::new(), left_out: 0, sums };
        CreditStats { rank, each, bank, kept: ParLock::new(par, kept) }
    }

    /// Keeps a movement, `at_ns` nanoseconds after the first could have been.
    #[cold]
    pub fn note(
        &self,
        at_ns: u64,
        rank: JobRank,
        epoch: u32,
        p: &PeerCredits,
        change: CreditChange,
    ) {
        let mut kept = self.kept.lock();
        let s = &mut kept.sums[rank.index()];
        match change {
            CreditChange::Lent(n) => s.lent += u64::from(n),
            CreditChange::Returned(0) => s.empty += 1,
            CreditChange::Returned(n) => s.returned += u64::from(n),
            CreditChange::Borrowed(n) => s.borrowed += u64::from(n),
            CreditChange::GaveBack(n) => s.gave_back += u64::from(n),
            CreditChange::Stalled(_) => s.stalls += 1,
        }
        s.high_loan = s.high_loan.max(p.loan_credits);
        s.high_send = s.high_send.max(p.send_credits);
        s.high_inuse = s.high_inuse.max(p.send_max);
        if kept.movements.len() == MOST {
            kept.left_out += 1;
            return;
        }
        let (loan, send) = (p.loan_credits, p.send_credits);
        kept.movements.push(Movement { at_ns, epoch, rank, loan, send, change });
    }

    /// Writes all as text; nothing if a thread is just adding to it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let Some(kept) = self.kept.try_lock() else { return Ok(()) };
        writeln!(
            out,
            "# process, processes, credits of each at first, credits in the bank at first"
        )?;
        writeln!(out, "process {} {} {} {}", self.rank, kept.sums.len(), self.each, self.bank)?;
        writeln!(
            out,
            "# peer: stalls, lent to it, returned by it, empty returns, borrowed of it, given back to it,"
        )?;
        writeln!(
            out,
            "# most of ours that it held, most of its that we held, most of its that were in use"
        )?;
        for (rank, s) in kept.sums.iter().enumerate() {
            writeln!(
                out,
                "peer {rank} {} {} {} {} {} {} {} {} {}",
                s.stalls,
                s.lent,
                s.returned,
                s.empty,
                s.borrowed,
                s.gave_back,
                s.high_loan,
                s.high_send,
                s.high_inuse
            )?;
        }
        writeln!(
            out,
            "# movements: seconds, epoch, what, peer, credits, then what it holds of us, what we hold of it"
        )?;
        for m in &kept.movements {
            let (what, n) = match m.change {
                CreditChange::Lent(n) => ("lent", n),
                CreditChange::Returned(n) => ("returned", n),
                CreditChange::Borrowed(n) => ("borrowed", n),
                CreditChange::GaveBack(n) => ("gave-back", n),
                CreditChange::Stalled(n) => ("stalled", n),
            };
            let (s, us) = (m.at_ns / 1_000_000_000, m.at_ns / 1000 % 1_000_000);
            writeln!(out, "{s}.{us:06} {} {what} {} {n} {} {}", m.epoch, m.rank, m.loan, m.send)?;
        }
        writeln!(out, "# {} movements left out", kept.left_out)
    }
}
