//! Waiting for events: `PtlEQWait` and `PtlEQPoll`.
//!
//! A wait spins, then yields, then sleeps on the doorbell. Invariant: a wait never sleeps
//! over an event. It looks at the queues once more after it has taken the doorbell's count
//! and before it sleeps.

use super::NetworkInterface;
use crate::types::*;
use sys::{clock, thread};

/// Longest sleep while a process has begun to post the next event of a queue.
const HELD_SLEEP_NS: u64 = 1_000_000;

impl NetworkInterface {
    /// `PtlEQWait`
    pub fn eq_wait(&self, eq: EqHandle) -> Result<FetchedEvent, PtlError> {
        loop {
            if let Some((_, fetched)) = self.eq_poll(&[eq], None)? {
                return Ok(fetched);
            }
        }
    }

    /// `PtlEQPoll`: the first event of any of these queues, in the order of `eqs`. No timeout is
    /// `PTL_TIME_FOREVER`; `Ok(None)` is `PTL_EQ_EMPTY`.
    pub fn eq_poll(
        &self,
        eqs: &[EqHandle],
        timeout_ms: Option<u32>,
    ) -> Result<Option<(usize, FetchedEvent)>, PtlError> {
        let look = || {
            for (which, &eq) in eqs.iter().enumerate() {
                if let Some(fetched) = self.eq_get_past_dead(eq)? {
                    return Ok(Some((which, fetched)));
                }
            }
            Ok(None)
        };
        if timeout_ms == Some(0) {
            return look();
        }
        for round in 0..200 {
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            thread::relax(round);
        }
        let end = timeout_ms.map(|ms| clock::now_ns().saturating_add(u64::from(ms) * 1_000_000));
        loop {
            let seen = self.doorbell();
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            let left = match end {
                None => u64::MAX,
                Some(end) => match end.checked_sub(clock::now_ns()) {
                    None | Some(0) => return Ok(None),
                    Some(left) => left,
                },
            };
            // The process that holds a queue up may die, which rings no doorbell.
            let is_held = eqs.iter().any(|&eq| self.eq_held_by(eq).is_some());
            self.sleep(seen, if is_held { left.min(HELD_SLEEP_NS) } else { left });
        }
    }
}
