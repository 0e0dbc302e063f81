//! The messages between the libraries of two ranks, which go through SYS.
//!
//! Served by `poll` first; sent by `reply_send`, when the bank of credits is low, and by the upper
//! layer. Invariant: at most six messages of a rank to a peer are not served yet (`system`).
//! These are a CREDIT_REVOKE and a HANDLED_QUERY, which are answered once each, a CREDIT_RETURN, a
//! HANDLED_ANSWER, and two of the upper layer.
//! Ids below 0x80 belong to the upper layer and go to [`Upcall::system`]; the others are the
//! conduit's own:
//!
//! | message | words | answer |
//! |---|---|---|
//! | CREDIT_REVOKE | epoch has ended | CREDIT_RETURN |
//! | CREDIT_RETURN | credits, epoch has ended | |
//! | HANDLED_QUERY | number | HANDLED_ANSWER |
//! | HANDLED_ANSWER | the number, all requests of the target were handled | |

use super::credits::policy::CreditReturn;
use super::match_bits;
use super::portals::{InlineBody, MdEventKind, Portals};
use super::system::HANDLED_QUERY;
use super::{Conduit, SystemMessage, Upcall};
use crate::rank::JobRank;
use crate::report;

/// Asks a borrower for credits that it does not need.
const CREDIT_REVOKE: u8 = 0x80;
/// Its answer.
const CREDIT_RETURN: u8 = 0x81;
/// Its answer.
const HANDLED_ANSWER: u8 = 0x83;

impl<P: Portals> Conduit<P> {
    /// Sends a system message; arrives at [`Upcall::system`]. At most two to a rank may be under
    /// way.
    ///
    /// # Panics
    /// If the id is not below 0x80.
    pub fn send_system(&self, rank: JobRank, m: SystemMessage) {
        assert!(m.id < 0x80);
        self.send_own(rank, m);
    }

    /// Serves SYS_EQ and nothing else: for a rank that waits without polling.
    pub fn poll_system<U: Upcall>(&self, up: U) {
        self.serve_sys(up);
    }

    /// Takes the messages of the upper layer off SYS_EQ, and drops the conduit's own: for a rank
    /// that exits. Waits for no lock: false if that of the queue is held. It is held while `into`
    /// runs, which takes no event itself.
    pub fn take_system(&self, into: &mut dyn FnMut(JobRank, SystemMessage)) -> bool {
        let Some(_taker) = self.sys.queue.taker.try_lock() else { return false };
        while let Some(e) = self.sys.queue.get(&self.portals, &mut InlineBody::default()) {
            let (source, message) = match_bits::unpack_system(e.match_bits, e.hdr_data);
            if e.kind == MdEventKind::PutEnd && message.id < 0x80 {
                into(source, message);
            }
        }
        true
    }

    /// Serves SYS_EQ.
    #[cold]
    pub(super) fn serve_sys<U: Upcall>(&self, up: U) -> bool {
        let mut served = 0;
        while let Some(e) = self.sys.queue.take(&self.portals, &mut InlineBody::default()) {
            served += 1;
            if e.kind == MdEventKind::PutEnd {
                let (source, message) = match_bits::unpack_system(e.match_bits, e.hdr_data);
                self.system_arrived(up, source, message);
            } else {
                self.further_kind(&e);
            }
            if served == self.config.sys_limit {
                break;
            }
        }
        served != 0
    }

    #[cold]
    fn system_arrived<U: Upcall>(&self, up: U, source: JobRank, m: SystemMessage) {
        if source.0 >= self.config.nodes {
            unknown(source, m);
        }
        match m.id {
            CREDIT_REVOKE => {
                let back = self.credits.revoke_arrived(source, m.args[0] != 0);
                let args = [back.credits.into(), back.epoch.into()];
                self.send_own(source, SystemMessage { id: CREDIT_RETURN, args });
            }
            CREDIT_RETURN => {
                let back = CreditReturn { credits: m.args[0] as u16, epoch: m.args[1] != 0 };
                self.credits.return_arrived(source, back);
            }
            HANDLED_QUERY => {
                let args = [m.args[0], self.has_handled(source).into()];
                self.send_own(source, SystemMessage { id: HANDLED_ANSWER, args });
            }
            HANDLED_ANSWER => self.lost.lock().answered(source, m.args[0], m.args[1] != 0),
            id if id < 0x80 => up.system(source, m),
            _ => unknown(source, m),
        }
    }

    /// Asks borrowers for credits that they do not need.
    #[cold]
    pub(super) fn scavenge(&self) {
        self.credits.scavenge(|rank, epoch| {
            self.send_own(rank, SystemMessage { id: CREDIT_REVOKE, args: [epoch.into(), 0] });
        });
    }

    fn send_own(&self, rank: JobRank, m: SystemMessage) {
        self.sys.send(&self.portals, self.me, self.peers[rank.index()], m);
    }
}

/// Ends the job over a system message that this library does not send.
#[cold]
fn unknown(source: JobRank, m: SystemMessage) -> ! {
    report::damaged(format_args!(
        "system message {:#x} of rank {source} has a number or a rank that does not exist",
        m.id
    ))
}
