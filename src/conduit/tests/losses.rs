//! What proves a message lost, and what does not: threads and peers that are slow or stopped at
//! any point. All tests of this folder look for lost messages in their waits ([`Up::pause_at`]).

use super::hold::Hold;
use super::loss_search::LostMessage;
use super::match_bits::{AmForm, AmHeader};
use super::traffic::{pair, up};
use super::*;

/// A time later than all before it, by two seconds.
pub(super) fn moment() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(2_000_000_000, Ordering::SeqCst) + 2_000_000_000
}

/// The stage of a wait for what `need` says.
pub(super) fn stage_of(need: ResourceNeed) -> WaitStage {
    if need.all_sent { WaitStage::Sent } else { WaitStage::Sending }
}

impl<P: Portals> WaitingProcess for Rank<P> {
    fn stage_since(&self, since_ns: u64) -> Option<WaitStage> {
        let stage = |(seen, stage): &(AtomicU64, AtomicU8)| {
            let waited = seen.load(Ordering::Acquire) > since_ns;
            waited.then(|| WaitStage::of(stage.load(Ordering::Relaxed)))
        };
        self.waits.iter().map(stage).min().flatten()
    }

    fn incomplete(&self) -> u64 {
        // The last is a counter of `traffic`.
        self.ops[..63].iter().map(|op| u64::from(op.load(Ordering::Relaxed))).sum()
    }
}

impl<P: Portals> Up<'_, P> {
    /// A round of a wait. Sometimes it looks for lost messages, as if a second had passed: no
    /// test loses any unless it says so.
    pub(super) fn pause_at(self, round: u32, stage: WaitStage) {
        self.note_wait(stage);
        if round % 16 == 15 {
            assert_eq!(self.look_for_lost(), None, "rank {} thread {}", self.rank, self.thread);
        }
        match round {
            0..16 => core::hint::spin_loop(),
            16..256 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
    }

    /// This thread waits, in this stage.
    pub(super) fn note_wait(self, stage: WaitStage) {
        let (seen, at) = &self.rank().waits[self.thread];
        let now = moment();
        at.store(stage as u8, Ordering::Relaxed);
        seen.store(now, Ordering::Release);
    }

    /// One look of this rank.
    pub(super) fn look_for_lost(self) -> Option<LostMessage> {
        let c = self.conduit();
        let mut search = c.lost.try_lock()?;
        let under_way = c.under_way(self.rank());
        search.look(under_way, moment(), self.rank(), |rank, number| c.ask_handled(rank, number))
    }
}

/// What rank 1 finds in eight looks, while it waits in this stage and serves its queues. Rank 0
/// serves its own if `served`.
fn looks(world: &World<Emulation>, stage: WaitStage, served: bool) -> Option<LostMessage> {
    let up = |rank| up(world, rank, traffic::nothing);
    (0..8).find_map(|_| {
        up(1).note_wait(stage);
        let lost = up(1).look_for_lost();
        if served {
            while up(0).conduit().poll(up(0)) {}
        }
        while up(1).conduit().poll(up(1)) {}
        lost
    })
}

const STAGES: [WaitStage; 3] = [WaitStage::Sending, WaitStage::Sent, WaitStage::Idle];

/// In which of the stages the same is proved lost; nothing else is.
fn proved(world: &World<Emulation>, lost: LostMessage) -> [bool; 3] {
    STAGES.map(|stage| {
        let found = looks(world, stage, true);
        assert!(found.is_none() || found == Some(lost), "{found:?} instead of {lost:?}");
        found.is_some()
    })
}

#[test]
fn nothing_is_lost_where_nothing_is_under_way() {
    for threads in [1, 2] {
        let world = pair(threads);
        (1..threads).for_each(|thread| {
            Up { thread, ..up(&world, 1, traffic::nothing) }.note_wait(WaitStage::Idle)
        });
        assert_eq!(STAGES.map(|stage| looks(&world, stage, true)), [None; 3]);
    }
}

/// Credits and a chunk are taken, but the request never leaves.
#[test]
fn a_request_that_its_target_has_not() {
    let world = pair(1);
    let c = &world.ranks[1].conduit;
    c.credits.take(JobRank(0), 2).expect("credits");
    c.reqsb.take(Hold::REQUEST).expect("a chunk");
    // The target does not answer.
    assert_eq!(looks(&world, WaitStage::Idle, false), None);
    assert_eq!(proved(&world, LostMessage::Request(JobRank(0), 2)), [false, true, true]);
}

/// A request is not lost while it is in the queue of its target, or in a batch of implicit
/// replies. It may be due at the target's next poll. Nothing is lost once it is answered.
#[test]
fn a_request_under_way() {
    let world = pair(1);
    let [up0, up1] = [0, 1].map(|rank| up(&world, rank, traffic::nothing));
    up1.conduit().request(up1, JobRank(0), &Outgoing::short(200, &[]));
    assert_eq!(looks(&world, WaitStage::Idle, false), None);
    // The question has arrived: it is answered while the request is in the queue.
    up0.conduit().poll_system(up0);
    assert_eq!(looks(&world, WaitStage::Idle, false), None);
    // The request is handled, and its reply is in the batch.
    let handled = || world.ranks[0].requests.load(Ordering::Relaxed);
    while handled() == 0 {
        up0.conduit().poll(up0);
    }
    for _ in 0..5 {
        assert_eq!(looks(&world, WaitStage::Idle, false), None);
        up0.conduit().poll_system(up0);
    }
    assert!(!up0.conduit().has_handled(JobRank(1)));
    assert_eq!(looks(&world, WaitStage::Idle, true), None);
    world.serve_until(up0, || up0.conduit().has_handled(JobRank(1)));
}

/// Another thread of the requester is in no wait, or in one of an earlier stage. It may be about
/// to send what it has taken.
#[test]
fn a_request_that_another_thread_may_be_sending() {
    let world = pair(2);
    let c = &world.ranks[1].conduit;
    c.credits.take(JobRank(0), 1).expect("credits");
    c.reqsb.take(Hold::REQUEST).expect("a chunk");
    let other = Up { thread: 1, ..up(&world, 1, traffic::nothing) };
    let look = || looks(&world, WaitStage::Idle, true);
    // A wait that ended before the first look says nothing.
    other.note_wait(WaitStage::Sent);
    assert_eq!(look(), None);
    other.note_wait(WaitStage::Sending);
    assert_eq!(look(), None);
    other.note_wait(WaitStage::Sent);
    assert_eq!(look(), Some(LostMessage::Request(JobRank(0), 1)));
}

/// The handler of the target asks, for the requester, whether the request is handled: not before
/// the handler has returned.
#[test]
fn a_request_in_its_handler() {
    fn handler<P: Portals>(up: Up<'_, P>, _: Option<&mut ReplyToken>, _: AmMessage<'_>) {
        assert!(!up.conduit().has_handled(JobRank(1)));
    }
    for threads in [1, 2] {
        let world = pair(threads);
        let [up0, up1] = [0, 1].map(|rank| up(&world, rank, handler));
        up1.conduit().request(up1, JobRank(0), &Outgoing::short(200, &[]));
        world.serve_until(up0, || world.ranks[0].requests.load(Ordering::Relaxed) == 1);
        world.serve_until(up0, || up0.conduit().has_handled(JobRank(1)));
    }
}

#[test]
fn chunks_and_credits_that_go_apart() {
    let world_with = |credits: u32, chunk: bool| {
        let world = pair(1);
        let c = &world.ranks[1].conduit;
        if credits != 0 {
            c.credits.take(JobRank(0), credits).expect("credits");
        }
        if chunk {
            c.reqsb.take(Hold::REQUEST).expect("a chunk");
        }
        world
    };
    assert_eq!(proved(&world_with(0, true), LostMessage::Chunk), [true; 3]);
    let lost = LostMessage::Credits(JobRank(0), 3);
    assert_eq!(proved(&world_with(3, false), lost), [false, true, true]);
}

#[test]
fn transfers_whose_events_never_came() {
    type Take = fn(&Conduit<Emulation>);
    let takes: [(Take, [bool; 3]); 5] = [
        (|c| c.tickets.take(1).expect("a ticket"), [true; 3]),
        (|c| c.threads[0].expect_local(false), [true; 3]),
        (|c| _ = c.reqsb.take(Hold::put(7)).expect("a chunk"), [false, true, true]),
        (|c| c.rplsb.leaves(c.rplsb.take().expect("a chunk")), [false, true, true]),
        // No event is awaited yet.
        (|c| _ = c.tmpmd.take().expect("a slot"), [false; 3]),
    ];
    for (take, stages) in takes {
        let world = pair(1);
        take(&world.ranks[1].conduit);
        assert_eq!(proved(&world, LostMessage::Transfer), stages);
    }
}

/// An operation is lost only if nothing is under way that could complete it.
#[test]
fn operations_that_nothing_completes() {
    let world = pair(1);
    world.ranks[1].ops[3].store(1, Ordering::Relaxed);
    assert_eq!(proved(&world, LostMessage::Operation), [false, false, true]);
    world.ranks[1].conduit.reqsb.take(Hold::HERE).expect("a chunk");
    assert_eq!(proved(&world, LostMessage::Operation), [false; 3]);
}

/// The header of a Long whose data never came.
#[test]
fn a_header_without_its_data() {
    let world = pair(1);
    let am = AmHeader { extent: 0, ..AmHeader::plain(AmForm::Unpacked, false) };
    let c = &world.ranks[1].conduit;
    let chunk = c.reqsb.take(Hold::HERE).expect("a chunk");
    let reply =
        super::arrived::ArrivedReply { am, chunk, len: sys::peer::Peer::new(0), data: None };
    assert!(c.reply_lids.header(JobRank(0), chunk, || reply).is_none());
    assert_eq!(proved(&world, LostMessage::LongData(JobRank(0))), [true; 3]);
}
