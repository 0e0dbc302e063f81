//! The messages of an exit among ranks without a supervisor, over the system queue of the conduit.
//!
//! Connected by `start`; called by `boot::exit_notice` and by the conduit. Invariant: a job with a
//! supervisor has none of these messages.
//!
//! | system message | words |
//! |---|---|
//! | 0x40 | a notice: the decision |
//! | 0x41 + k | round k: the decision |

use super::job::{Ctx, GasnetJob};
use crate::boot::exit_protocol::{ExitMessage, ExitWire};
use crate::conduit::SystemMessage;
use crate::rank::JobRank;

const NOTICE: u8 = 0x40;
const FIRST_ROUND: u8 = NOTICE + 1;
const LAST_ROUND: u8 = FIRST_ROUND + 31;

fn packed(message: ExitMessage) -> SystemMessage {
    let id = message.round.map_or(NOTICE, |round| FIRST_ROUND + round);
    SystemMessage { id, args: [message.word as u32, (message.word >> 32) as u32] }
}

fn unpacked(message: SystemMessage) -> Option<ExitMessage> {
    let round = match message.id {
        NOTICE => None,
        FIRST_ROUND..=LAST_ROUND => Some(message.id - FIRST_ROUND),
        _ => return None,
    };
    let [low, high] = message.args.map(u64::from);
    Some(ExitMessage { round, word: low | high << 32 })
}

/// A job as the exit sees it.
#[derive(Debug)]
pub(super) struct JobExitWire(pub(super) &'static GasnetJob);

impl ExitWire for JobExitWire {
    fn send(&self, to: JobRank, message: ExitMessage) {
        self.0.endpoint.conduit.send_system(to, packed(message));
    }

    fn take(&self, into: &mut dyn FnMut(ExitMessage)) -> bool {
        self.0.endpoint.conduit.take_system(&mut |_, message| {
            if let Some(message) = unpacked(message) {
                into(message);
            }
        })
    }

    fn serve(&self) {
        self.0.endpoint.conduit.poll_system(self.0.ctx());
    }
}

impl Ctx {
    /// A message of the library of another rank.
    #[cold]
    pub(super) fn system_message(self, message: SystemMessage) {
        if let Some(message) = unpacked(message) {
            self.job.boot.exit.receive(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        for round in [None, Some(0), Some(31)] {
            let message = ExitMessage { round, word: 0x8123_4567_89ab_cdef };
            assert_eq!(unpacked(packed(message)), Some(message));
            assert!(packed(message).id < 0x80);
        }
        assert_eq!(unpacked(SystemMessage { id: 0x3f, args: [0; 2] }), None);
        assert_eq!(unpacked(SystemMessage { id: LAST_ROUND + 1, args: [0; 2] }), None);
    }
}
