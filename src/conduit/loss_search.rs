//! Messages that are proved lost: their event was overwritten with values that are valid but
//! belong to another message, or was never posted.
//!
//! Used by `lost`, which fills in an [`UnderWay`] at each look, and by `system_messages`.
//! Invariant: slowness proves nothing, whichever thread or process is slow or stopped, and
//! wherever. `docs/internals/shared-words.md` says why.
//!
//! ```text
//!   look ── what is under way ── look: the same? ──no──> from the start
//!             │                    │ yes, for a second, and all threads have sent theirs
//!             │                    ├──> what no event can return any more: lost
//!             │                    └──> requests: HANDLED_QUERY ──> the target: none is here
//!             │                                                       │ HANDLED_ANSWER
//!             └──────────────────── look: still the same ─────────────┴──> lost
//! ```

use crate::rank::JobRank;
use alloc::vec::Vec;
use core::fmt;

/// For so long what is under way must have stayed the same before anything is concluded.
const UNCHANGED_NS: u64 = 1_000_000_000;

/// The stage of the call in which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum WaitStage {
    /// The thread has taken resources for a message that has not left.
    Sending,
    /// All messages that it has taken resources for have left.
    Sent,
    /// The same, and it has initiated all of each operation that it has begun.
    Idle,
}

impl WaitStage {
    /// The stage with this number.
    pub fn of(number: u8) -> WaitStage {
        match number {
            1 => WaitStage::Sent,
            2 => WaitStage::Idle,
            _ => WaitStage::Sending,
        }
    }
}

/// What the layers above know of this process.
pub trait WaitingProcess {
    /// The earliest stage in which any thread of the process was after this time of the monotonic
    /// clock, in nanoseconds. `None` if a thread was in no wait since.
    fn stage_since(&self, since_ns: u64) -> Option<WaitStage>;
    /// Operations that are incomplete; 0 if some may complete without an event.
    fn incomplete(&self) -> u64;
}

/// What a look finds under way. What is the same at two looks was not touched between them: no
/// event was taken, and each list has changed with whatever was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnderWay {
    /// Events taken from SAFE_EQ and AM_EQ, both of which are empty.
    pub(super) taken: [u64; 2],
    /// The state of the lists of ReqSB, RplSB and TMPMD.
    pub(super) lists: [u64; 3],
    /// Send tickets out, except those of the reply kit.
    pub(super) tickets: u32,
    /// Puts and Longs whose departure threads wait for.
    pub(super) leaving: u32,
    /// Chunks and temporary descriptors that events of transfers return.
    pub(super) transfers: usize,
    /// Chunks that replies return.
    pub(super) requests: usize,
    /// Chunks that are held for another reason.
    pub(super) kept: usize,
    /// Targets of unanswered requests, and the credits in use for them; `None` without flow
    /// control.
    pub(super) credits: Option<Vec<(JobRank, u16)>>,
    /// The source of a Long whose header waits for its data.
    pub(super) header: Option<JobRank>,
    /// [`WaitingProcess::incomplete`]
    pub(super) operations: u64,
    /// Whether messages were framed: then transfers also end by frames of their targets.
    pub(super) framed: bool,
}

/// What is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LostMessage {
    /// The header of a Long of this rank waits for its data. The sender sends the data first, and
    /// networks with [`SharedHost`](super::portals::SharedHost) deliver in order.
    LongData(JobRank),
    /// A chunk waits for the reply to its request, but all credits have been returned. Both are
    /// returned by the reply, the credits not before the chunk.
    Chunk,
    /// This many credits of this rank are in use, but no chunk waits for a reply.
    Credits(JobRank, u16),
    /// Puts, gets or data of Longs have not ended, but their events, which this process posts
    /// itself when it sends them, have been taken.
    Transfer,
    /// Operations are incomplete, but nothing is under way that could complete them.
    Operation,
    /// This many credits are in use for requests to this rank, which has handled all requests of
    /// this process and sent the replies.
    Request(JobRank, u16),
}

/// The question to a rank whether it has handled all requests of this one.
#[derive(Clone, Copy, Debug)]
struct HandledQuestion {
    rank: JobRank,
    number: u32,
    answer: HandledAnswer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandledAnswer {
    /// None yet.
    Awaited,
    /// Not all requests, or the question was not asked.
    No,
    Yes,
    /// Yes, and a look has seen that: the next one finds a reply that was sent before the answer,
    /// also where that became visible later.
    YesBefore,
}

/// What is kept from one look to the next.
#[derive(Debug, Default)]
pub(super) struct LossSearch {
    under_way: Option<UnderWay>,
    /// Since when it is known to be the same.
    pub(super) since_ns: u64,
    /// Changes with `under_way`; the questions carry it.
    number: u32,
    /// At most one for each rank.
    questions: Vec<HandledQuestion>,
}

impl UnderWay {
    /// What is lost for certain, if this has been the same for long. All threads were in a wait
    /// meanwhile, in this stage at least.
    fn lost(&self, stage: WaitStage) -> Option<LostMessage> {
        if let Some(rank) = self.header {
            return Some(LostMessage::LongData(rank));
        }
        match self.credits.as_deref() {
            Some([]) if self.requests != 0 => return Some(LostMessage::Chunk),
            Some(&[(rank, credits), ..]) if self.requests == 0 && stage >= WaitStage::Sent => {
                return Some(LostMessage::Credits(rank, credits));
            }
            _ => {}
        }
        // A thread that waits has no ticket in its hands.
        let out = self.tickets != 0 || self.leaving != 0;
        if !self.framed && (out || self.transfers != 0 && stage >= WaitStage::Sent) {
            return Some(LostMessage::Transfer);
        }
        let busy = out || self.transfers + self.requests + self.kept != 0;
        (self.operations != 0 && !busy && stage == WaitStage::Idle)
            .then_some(LostMessage::Operation)
    }
}

use HandledAnswer::{Awaited, No, Yes, YesBefore};

impl LossSearch {
    /// One look: what is proved. `ask` sends a question.
    pub(super) fn look(
        &mut self,
        now: Option<UnderWay>,
        now_ns: u64,
        process: &dyn WaitingProcess,
        ask: impl Fn(JobRank, u32),
    ) -> Option<LostMessage> {
        if now.is_none() || now != self.under_way {
            self.under_way = now;
            self.since_ns = now_ns;
            self.number = self.number.wrapping_add(1);
            return None;
        }
        let under_way = self.under_way.as_ref()?;
        if now_ns.saturating_sub(self.since_ns) < UNCHANGED_NS {
            return None;
        }
        let stage = process.stage_since(self.since_ns)?;
        let lost = under_way.lost(stage);
        if lost.is_some() || stage < WaitStage::Sent || under_way.framed {
            return lost;
        }
        let waits = under_way.credits.as_deref().unwrap_or_default();
        let number = self.number;
        waits.iter().find_map(|&(rank, credits)| {
            let question = match self.questions.iter_mut().find(|q| q.rank == rank) {
                Some(question) => question,
                None => {
                    self.questions.push(HandledQuestion { rank, number, answer: No });
                    self.questions.last_mut()?
                }
            };
            match question.answer {
                // One unanswered question of a rank, also where it is an old one.
                Awaited => return None,
                Yes if question.number == number => question.answer = YesBefore,
                YesBefore if question.number == number => {
                    return Some(LostMessage::Request(rank, credits));
                }
                _ => {
                    *question = HandledQuestion { rank, number, answer: Awaited };
                    ask(rank, number);
                }
            }
            None
        })
    }

    /// A rank has answered.
    pub(super) fn answered(&mut self, rank: JobRank, number: u32, all_handled: bool) {
        if let Some(question) = self.questions.iter_mut().find(|q| q.rank == rank)
            && question.number == number
        {
            question.answer = if all_handled { Yes } else { No };
        }
    }
}

impl fmt::Display for LostMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LostMessage::LongData(rank) => write!(
                f,
                "the data of a Long active message of rank {rank} was lost: its header has arrived"
            ),
            LostMessage::Chunk => write!(
                f,
                "the reply to an active message was lost: all credits have been returned, but its \
                 chunk has not"
            ),
            LostMessage::Credits(rank, credits) => write!(
                f,
                "{credits} credits of rank {rank} were lost: no active message is unanswered"
            ),
            LostMessage::Transfer => write!(
                f,
                "the completion of a put, a get or the data of an active message was lost: all \
                 events have been taken"
            ),
            LostMessage::Operation => write!(
                f,
                "the completion of an operation was lost: no message is under way, but it is \
                 incomplete"
            ),
            LostMessage::Request(rank, credits) => write!(
                f,
                "an active message to rank {rank} or its reply was lost: that rank has handled \
                 all that it has received, but {credits} of its credits are in use"
            ),
        }
    }
}
