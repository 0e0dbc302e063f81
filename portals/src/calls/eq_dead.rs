//! Queues that a dead process holds up: it claimed the slot of an event, and never published it.
//!
//! Called where a wait for events finds none. Invariant: a slot is given up only by the thread
//! that has the turn at its queue, and only if its producer is a process of this host that has
//! exited.

use core::sync::atomic::Ordering;

use super::NetworkInterface;
use crate::event::record::pass;
use crate::nal::PeerState;
use crate::types::*;
use sys::hint::cold_path;

impl NetworkInterface {
    /// [`NetworkInterface::eq_get`]. An event that a process had begun to post when it died counts
    /// as lost; with `eq_get` alone it blocks the queue
    /// ([`blocked_by`](NetworkInterface::blocked_by)).
    pub fn eq_get_past_dead(&self, eq: EqHandle) -> Result<Option<FetchedEvent>, PtlError> {
        loop {
            let fetched = self.eq_get(eq)?;
            if fetched.is_some() || !self.pass_dead(eq) {
                return Ok(fetched);
            }
        }
    }

    /// The process of this host that has begun to post the next event of a queue.
    pub(super) fn eq_held_by(&self, eq: EqHandle) -> Option<u32> {
        let index = self.state.eq_index(eq).ok()? as usize;
        let position = self.state.eqs[index].next.load(Ordering::Relaxed);
        let producer = self.state.peers.own.rings[index].reserved_by(position)?;
        (producer < self.state.peers.size).then_some(producer)
    }

    /// Passes the next event of a queue if its producer is dead. Whether to look again.
    fn pass_dead(&self, eq: EqHandle) -> bool {
        let Some(producer) = self.eq_held_by(eq) else { return false };
        cold_path();
        if self.peer_state(producer) != PeerState::Dead {
            return false;
        }
        let index = eq.0 & 0xffff;
        let (record, cell) = (&self.state.eqs[index as usize], self.state.eq_cell(index));
        if !record.try_consume() {
            return false;
        }
        let position = record.next.load(Ordering::Relaxed);
        let ring = &self.state.peers.own.rings[index as usize];
        let passed = record.is_of(eq, Ordering::Relaxed) && ring.give_up(cell, position, producer);
        if passed {
            pass(record, cell, position.wrapping_add(1));
        }
        self.leave_queue(record);
        // It may have published the event before it died, and rung no bell.
        passed || ring.holds(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::ring::{published, reserved};
    use crate::nal::shm::AttachPolicy;
    use crate::nal::shm::tests::fabric;
    use sys::process;

    /// The events behind that of a dead process arrive, the first of them with the report of a
    /// loss; and the ring goes on around its slots.
    #[test]
    fn a_queue_goes_on_after_the_death_of_a_producer() {
        let nodes = fabric(2, AttachPolicy::Denied);
        let ni = &nodes[0];
        let eq = ni.eq_alloc(4, None).unwrap();
        let index = ni.state.eq_index(eq).unwrap();
        let (ring, cell) = (&ni.state.peers.own.rings[index as usize], ni.state.eq_cell(index));
        ring.slots().at(8).control.store(reserved(8, 1), Ordering::Release);
        ring.slots().at(9).control.store(published(9), Ordering::Release);
        let next = || ni.eq_poll(&[eq], Some(1)).unwrap().map(|(_, fetched)| fetched);
        assert!(next().is_none(), "its producer is alive");
        let os_pid = &nodes[1].state.peers.own.view.header().ident.os_pid;
        os_pid.store(i32::MAX as u32, Ordering::Relaxed);
        assert_eq!(ni.peer_state(1), PeerState::Dead);
        assert!(ni.eq_get(eq).unwrap().is_none() && ni.blocked_by() == Some(1));
        let fetched = next().unwrap();
        assert!(fetched.dropped && fetched.event.sequence == 9);
        for lap in 0..3 {
            assert!((0..4).all(|_| ring.post_words(ring.slots(), cell, 0, [0; 7]).is_some()));
            assert!((0..4).all(|_| next().is_some_and(|fetched| !fetched.dropped)), "{lap}");
        }
        os_pid.store(process::pid(), Ordering::Relaxed);
    }
}
