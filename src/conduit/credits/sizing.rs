//! How many credits a rank can give, how they are shared out at start, and what receive buffers
//! they need.
//!
//! Used by [`crate::conduit::Config`] and by the simulator of credits. A credit is the right
//! to [`CREDIT_BYTES`] of receive buffer and one slot of the AM event queue. Invariant: the
//! receive buffers, spare buffers not counted, have space for all credits.

use crate::conduit::CHUNK;

/// Bytes of receive buffer for one credit.
pub const CREDIT_BYTES: usize = 256;
/// Credits of a largest request: a process that holds fewer of a peer could never send it one.
pub const MIN_CREDITS: u32 = (CHUNK / CREDIT_BYTES) as u32;
/// Bytes of an event: a slot of the AM event queue.
pub const EVENT_BYTES: usize = 64;

/// A row of the table: processes, credits of each of them, credits in the bank.
type Row = (u64, u64, u64);

const TABLE_2048: [Row; 9] = [
    (1, 200, 200),
    (64, 170, 12800),
    (128, 170, 25600),
    (512, 64, 25600),
    (1024, 32, 25600),
    (2048, 16, 25600),
    (3072, 12, 25600),
    (4096, 8, 25600),
    (20480, 8, 25600),
];

const TABLE_1024: [Row; 10] = [
    (1, 200, 400),
    (64, 170, 25600),
    (128, 170, 51200),
    (512, 64, 51200),
    (1024, 32, 51200),
    (2048, 16, 51200),
    (3072, 12, 51200),
    (4096, 8, 51200),
    (5120, 4, 51200),
    (20480, 4, 51200),
];

/// What a process gives to each process and keeps in its bank at first, where the environment
/// does not say. It depends on the size of the job. It is interpolated between the rows of the
/// table for this chunk, the difference truncated towards zero.
pub fn initial(nodes: u64, chunk: usize) -> (u64, u64) {
    let table: &[Row] = if chunk > 1024 { &TABLE_2048 } else { &TABLE_1024 };
    let last = table[table.len() - 1];
    let Some(i) = table.iter().position(|row| nodes <= row.0) else {
        return (last.1, last.2);
    };
    let (n1, c1, b1) = table[i];
    if i == 0 {
        return (c1, b1);
    }
    let (n0, c0, b0) = table[i - 1];
    let between = |a: u64, b: u64| {
        let step = (b as i64 - a as i64) * (nodes - n0) as i64 / (n1 - n0) as i64;
        (a as i64 + step) as u64
    };
    (between(c0, c1), between(b0, b1))
}

/// The parameters that credits are shared out by.
#[derive(Clone, Copy, Debug)]
pub struct CreditDemand {
    /// Processes of the job.
    pub nodes: u64,
    /// Bytes of a chunk, the largest message.
    pub chunk: usize,
    /// Chunks of a receive buffer.
    pub buffer_chunks: usize,
    /// Buffers beyond those that the credits fill; one if `space` has no more.
    pub spares: u64,
    /// Credits of each process, if the user sets them.
    pub each: Option<u64>,
    /// Credits in the bank, if the user sets them.
    pub bank: Option<u64>,
    /// Bytes of receive buffers, if the user sets them; both numbers of credits together override
    /// it.
    pub space: Option<u64>,
    /// Most credits of each process.
    pub most_each: u64,
    /// Whether the bank is lent from; else nothing stays in it unless `each` is said.
    pub dynamic: bool,
}

/// How credits are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditShare {
    /// Credits of each process.
    pub each: u64,
    /// How many processes, from rank 0, have one credit more.
    pub extra: u64,
    /// Credits in the bank.
    pub bank: u64,
    /// Receive buffers, spares included.
    pub buffers: u64,
}

/// The receive buffers are too small: the credits of each process that they must have space for,
/// and the bytes that these need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewBuffers {
    /// Credits of each process.
    pub each: u64,
    /// Credits that there is space for.
    pub total: u64,
    /// Bytes of receive buffers for them.
    pub bytes: u64,
}

impl CreditDemand {
    /// Credits of a largest message; a process needs as many to send one.
    pub fn least_each(&self) -> u64 {
        (self.chunk / CREDIT_BYTES) as u64
    }

    /// Bytes of one receive buffer.
    pub fn buffer_bytes(&self) -> u64 {
        (self.buffer_chunks * self.chunk) as u64
    }

    /// Credits that one buffer is good for. It goes out of use when less than a chunk is left, so
    /// its last chunk does not count.
    pub fn credits_per_buffer(&self) -> u64 {
        (self.buffer_bytes() - self.chunk as u64) / CREDIT_BYTES as u64
    }

    /// Decides: the credits of all and of the bank make a number of buffers, rounded up. What the
    /// rounding gains goes to the bank unless its size is said.
    ///
    /// # Errors
    /// If `space` is too small for `each`, or for the least that each process must have.
    pub fn share(&self) -> Result<CreditShare, TooFewBuffers> {
        let (table_each, table_bank) = initial(self.nodes, self.chunk);
        let per_buffer = self.credits_per_buffer();
        let least = self.least_each();
        let mut each = self.each.unwrap_or(table_each.min(self.most_each)).max(least);
        let wanted = each * self.nodes + self.bank.unwrap_or(table_bank);
        let mut buffers = wanted.div_ceil(per_buffer);
        let mut spares = self.spares;
        if let (Some(space), false) = (self.space, self.each.is_some() && self.bank.is_some()) {
            let fit = space / self.buffer_bytes();
            spares = spares.min(fit.saturating_sub(1)).max(1);
            buffers = fit.saturating_sub(spares).max(1);
        }
        let total = buffers * per_buffer;
        if self.each.is_none() && each * self.nodes > total {
            each = (total / self.nodes).max(least);
        }
        if self.each.is_some_and(|e| e < least) || each * self.nodes > total {
            let buffers = (each * self.nodes).div_ceil(per_buffer) + self.spares;
            return Err(TooFewBuffers { each, total, bytes: buffers * self.buffer_bytes() });
        }
        let buffers = buffers + spares;
        let rest = total - each * self.nodes;
        Ok(match (self.dynamic, self.each) {
            (true, _) => CreditShare {
                each,
                extra: 0,
                bank: self.bank.map_or(rest, |b| b.min(rest)).min(u32::MAX.into()),
                buffers,
            },
            (false, Some(_)) => CreditShare { each, extra: 0, bank: 0, buffers },
            // Nothing would ever leave the bank.
            (false, None) if total / self.nodes >= self.most_each => {
                CreditShare { each: self.most_each, extra: 0, bank: 0, buffers }
            }
            (false, None) => CreditShare {
                each: total / self.nodes,
                extra: total % self.nodes,
                bank: 0,
                buffers,
            },
        })
    }
}

impl CreditShare {
    /// All credits of a process: those of its peers, itself included, and of its bank.
    pub fn total(&self, nodes: u64) -> u64 {
        self.each * nodes + self.extra + self.bank
    }
}

/// Bytes for this many credits, in receive buffers and in the AM event queue.
pub fn credit_space(credits: u64) -> u64 {
    credits * (CREDIT_BYTES + EVENT_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: CreditDemand = CreditDemand {
        nodes: 2,
        chunk: 2048,
        buffer_chunks: 1024,
        spares: 1,
        each: None,
        bank: None,
        space: None,
        most_each: 400,
        dynamic: true,
    };

    #[test]
    fn the_tables_are_interpolated() {
        let big = |n| initial(n, 2048);
        assert_eq!((big(1), big(2), big(64)), ((200, 200), (200, 400), (170, 12800)));
        assert_eq!((big(128), big(320), big(4096)), ((170, 25600), (117, 25600), (8, 25600)));
        assert_eq!(big(1 << 20), (8, 25600));
        let small = |n| initial(n, 1024);
        assert_eq!((small(1), small(4096), small(10_000)), ((200, 400), (8, 51200), (4, 51200)));
    }

    #[test]
    fn the_worked_figures() {
        // One buffer of 8184 credits, and a spare.
        assert_eq!(
            DEMAND.share(),
            Ok(CreditShare { each: 200, extra: 0, bank: 7784, buffers: 2 })
        );
        let fixed =
            CreditDemand { dynamic: false, most_each: 65535, nodes: 5, spares: 2, ..DEMAND };
        assert_eq!(fixed.share(), Ok(CreditShare { each: 1636, extra: 4, bank: 0, buffers: 3 }));
        let said = CreditDemand { each: Some(8), ..fixed };
        assert_eq!(said.share(), Ok(CreditShare { each: 8, extra: 0, bank: 0, buffers: 3 }));
        // 8 MiB are four buffers, two of them spare.
        let space = CreditDemand { space: Some(8 << 20), ..fixed };
        assert_eq!(space.share().map(|s| (s.buffers, s.total(5))), Ok((4, 2 * 8184)));
        // The least space has one spare, however many are wanted.
        let least = CreditDemand { space: Some(4 << 20), ..fixed };
        assert_eq!(least.share().map(|s| (s.buffers, s.total(5))), Ok((2, 8184)));
        // Both numbers of credits take precedence over the space.
        let both = CreditDemand { each: Some(10), bank: Some(10), space: Some(8 << 20), ..DEMAND };
        assert_eq!(both.share(), Ok(CreditShare { each: 10, extra: 0, bank: 10, buffers: 2 }));
    }

    #[test]
    fn extremes() {
        // The least space: all credits that one buffer is good for.
        let least = CreditDemand { nodes: 1000, space: Some(4 << 20), ..DEMAND };
        assert_eq!(least.share(), Ok(CreditShare { each: 8, extra: 0, bank: 184, buffers: 2 }));
        let small = CreditDemand { nodes: 2000, ..least };
        assert_eq!(
            small.share(),
            Err(TooFewBuffers { each: 8, total: 8184, bytes: 3 * (2 << 20) })
        );
        let enough = CreditDemand { space: Some(3 * (2 << 20)), ..small };
        assert_eq!(enough.share().map(|s| s.each), Ok(8));
        let more = CreditDemand { each: Some(10), ..least };
        assert_eq!(
            more.share(),
            Err(TooFewBuffers { each: 10, total: 8184, bytes: 3 * (2 << 20) })
        );
        // No bank; a large one.
        let none = CreditDemand { bank: Some(0), ..DEMAND };
        assert_eq!(none.share().map(|s| s.bank), Ok(0));
        let large = CreditDemand { bank: Some(65535), ..DEMAND };
        assert_eq!(large.share().map(|s| (s.bank, s.buffers)), Ok((65535, 10)));
        // No process gets more than the most.
        let most = CreditDemand { most_each: 8, ..DEMAND };
        assert_eq!(most.share().map(|s| s.each), Ok(8));
    }

    /// The README's sums, by its 384 bytes a credit and by ours.
    #[test]
    fn memory_of_10_000_processes() {
        let readme =
            CreditDemand { nodes: 10_000, chunk: 1024, each: Some(6), bank: Some(0), ..DEMAND };
        let share = readme.share().expect("it fits");
        let total = share.total(10_000);
        assert_eq!(total, 60_000);
        assert!(total * 384 <= 22 << 20 && credit_space(total) <= 22 << 20);
        let table = CreditDemand { nodes: 10_000, ..DEMAND };
        let share = table.share().expect("it fits");
        let total = share.total(10_000);
        assert!(total * 384 <= 44 << 20, "{total}");
        // All of it, the spare buffer too.
        assert!(share.buffers * table.buffer_bytes() + total * EVENT_BYTES as u64 <= 44 << 20);
        const { assert!(super::super::STATE_BYTES * 10_000 <= 400_000) };
    }
}
