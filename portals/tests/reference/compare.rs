//! What the library did against what the model says: events, memory, drop counters.
//!
//! Called by [`super::driver`] after every step. A difference fails the property.

use portals3::{PtlEvent, PtlEventKind};
use proptest::prelude::*;

use crate::driver::{Driver, PlayResult};
use crate::model::Due;

impl Driver<'_> {
    pub(crate) fn compare(&mut self, at: usize, eq: usize, event: &PtlEvent) -> PlayResult {
        let names = &mut self.names[at];
        let dues = &mut self.model.processes[at].eqs[eq];
        // Events of one operation may arrive in any order that its parts permit; events of
        // different operations in order.
        let Some(operation) =
            dues.iter().find(|due| !due.optional || due.kind == event.kind).map(|d| d.operation)
        else {
            return Err(TestCaseError::fail(format!("nothing was due: {event:?}")));
        };
        dues.retain(|due| due.operation >= operation);
        let candidate = dues.iter().position(|due| {
            let ready = |other: &Due| {
                other.operation == due.operation
                    && other.md == due.md
                    && !other.optional
                    && due.after.contains(&other.kind)
            };
            due.operation == operation
                && due.kind == event.kind
                && names.mds[due.md].0 == event.md_handle
                && !dues.iter().any(ready)
        });
        let Some(candidate) = candidate else {
            return Err(TestCaseError::fail(format!("{event:?} came, due were {dues:?}")));
        };
        let due = dues.remove(candidate);
        if let Some(last) = names.sequences[eq] {
            prop_assert_eq!(event.sequence, last.wrapping_add(1));
        }
        names.sequences[eq] = Some(event.sequence);
        if due.kind == PtlEventKind::Unlink {
            return Ok(());
        }
        prop_assert_eq!(event.match_bits, due.bits);
        prop_assert_eq!(event.mlength, due.mlength as u64);
        use PtlEventKind::{
            Ack, GetEnd, GetPutEnd, GetPutStart, GetStart, PutEnd, PutStart, ReplyEnd, ReplyStart,
            SendEnd, SendStart,
        };
        match due.kind {
            PutStart | PutEnd | GetPutStart | GetPutEnd => {
                prop_assert_eq!(event.hdr_data, due.hdr);
                prop_assert_eq!(
                    (event.rlength, event.offset),
                    (due.rlength as u64, due.offset as u64)
                );
                prop_assert_eq!(event.initiator, due.peer);
            }
            GetStart | GetEnd => {
                prop_assert_eq!(
                    (event.rlength, event.offset),
                    (due.rlength as u64, due.offset as u64)
                );
                prop_assert_eq!(event.initiator, due.peer);
            }
            ReplyStart | ReplyEnd => {
                prop_assert_eq!(event.offset, due.offset as u64);
                prop_assert_eq!(event.initiator, due.peer);
            }
            Ack => prop_assert_eq!(event.initiator, due.peer),
            SendStart | SendEnd | PtlEventKind::Unlink => {}
        }
        match due.kind {
            PutStart | GetStart | GetPutStart | SendStart | ReplyStart => {
                names.starts.push((due.operation, due.md, due.kind, event.sequence));
            }
            PutEnd | GetEnd | GetPutEnd | SendEnd | ReplyEnd => {
                let start = due.after[0];
                let known = names
                    .starts
                    .iter()
                    .find(|s| (s.0, s.1, s.2) == (due.operation, due.md, start));
                if let Some(start) = known {
                    prop_assert_eq!(
                        event.link,
                        start.3,
                        "the link of an END is the sequence of its START"
                    );
                }
            }
            Ack | PtlEventKind::Unlink => {}
        }
        Ok(())
    }

    pub(crate) fn compare_memory(&self) -> PlayResult {
        for (at, process) in self.model.processes.iter().enumerate() {
            for (md, (_, buffer)) in process.mds.iter().zip(&self.names[at].mds) {
                if let Some(md) = md {
                    prop_assert!(self.rig.nodes()[at].read(*buffer) == md.bytes, "memory differs");
                }
            }
        }
        self.compare_drops()
    }

    pub(crate) fn compare_drops(&self) -> PlayResult {
        for (process, node) in self.model.processes.iter().zip(self.rig.nodes()) {
            let (fewest, most) = process.drops;
            prop_assert!(
                (fewest..=most).contains(&node.dropped()),
                "{} of {fewest}..={most}",
                node.dropped()
            );
        }
        Ok(())
    }
}
