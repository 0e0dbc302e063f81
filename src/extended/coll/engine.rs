//! Carries out plans: sends and receives their messages, round by round, as messages arrive.
//!
//! Called by the last image of a process that calls a collective, and by polls through
//! [`CollEngine::progress`]. Invariants: an operation that waits, for images of this process or
//! for messages, is in the table. One thread at a time advances plans, under the lock of the
//! table.
//! Handlers fill the inbox and never take that lock, so a send, which may poll, is safe under it.
//!
//! ```text
//!   small message    a cache line of the ring if it fits and one is free, else Short or Medium
//!   large message    after the notice of its receiver: a copy if the destination is mapped,
//!                    else Longs if it lies in the segment, else Mediums
//! ```

use super::CollCall;
use super::choice;
use super::counts::AwaitedCount;
use super::direct::{DirectMovement, MovementStep};
use super::inbox::{
    CollInbox, CollMessage, MessageId, ReadyNotice, halves, ready_args, sizes_differ,
    with_checksum,
};
use super::movements::{Movements, PlannedShare, StartedMovement};
use super::plan::{CollPlan, CollTransfer, TransferMemory};
use super::request::{CollBuffers, CollId, CollRequest, CollStatus};
use super::rings::ShortRings;
use super::roles::MovementRoles;
use super::team::TeamRef;
use super::tuning::CollTuning;
use super::view::TeamView;
use crate::client_memory::{RemoteRange, Src};
use crate::conduit::{Category, MAX_EAGER, Outgoing};
use crate::extended::handler_ids::{COLL_PIECE, COLL_READY, COLL_SMALL};
use crate::extended::messages;
use crate::extended::scratch::STREAMS;
use crate::rank::JobRank;
use crate::report;
use crate::runtime::Ctx;
use crate::runtime::activity::WaitReason;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::array;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use parking_lot::{Mutex, MutexGuard};

/// A large message to be sent when its receiver is ready.
#[derive(Clone, Copy, Debug)]
struct LargeSend {
    id: MessageId,
    data: Src<'static>,
}

/// A collective in progress in this process.
#[derive(Debug)]
struct ActiveColl {
    team: TeamRef,
    by_process: bool,
    request: CollRequest,
    function: WaitReason,
    /// Of an operation that waits.
    status: Option<Arc<CollStatus>>,
    /// The settings of the team when the first image of this process called.
    tuning: CollTuning,
    /// By image of this process.
    buffers: Box<[CollBuffers]>,
    /// Images of this process that have not called.
    missing: usize,
    plan: CollPlan,
    /// The round in progress.
    round: usize,
    begun: bool,
    /// Large messages whose receivers are not ready.
    sends: Vec<LargeSend>,
    /// Slots whose messages have not arrived.
    receives: Vec<u32>,
}

/// No awaited count.
const NONE: u64 = u64::MAX;

/// The collectives in progress.
#[derive(Debug, Default)]
struct CollTable {
    active: BTreeMap<CollId, ActiveColl>,
    /// By stream.
    movements: [Movements; STREAMS],
}

/// See the module.
#[derive(Debug)]
pub(super) struct CollEngine {
    table: Mutex<CollTable>,
    /// Whether `table` has movements of a stream. Changed under its lock.
    has_movements: [AtomicBool; STREAMS],
    /// By stream: what [`Movements::awaited`] said when the movements last went on, or [`NONE`].
    awaited: [[AtomicU64; 3]; STREAMS],
    pub(super) inbox: CollInbox,
    rings: Option<ShortRings>,
    /// What carries out movements in shared memory, by stream.
    pub(super) direct: [Option<DirectMovement>; STREAMS],
}

impl CollEngine {
    pub(super) fn new(
        rings: Option<ShortRings>,
        direct: [Option<DirectMovement>; STREAMS],
    ) -> CollEngine {
        CollEngine {
            table: Mutex::default(),
            has_movements: Default::default(),
            awaited: Default::default(),
            inbox: CollInbox::default(),
            rings,
            direct,
        }
    }

    /// Moves the messages of the rings into the inbox; the caller holds the lock of the table.
    fn read_rings(&self, rings: &ShortRings) {
        rings.read(|source, short| {
            let payload = Src::from(short.payload());
            let m = CollMessage { source, category: Category::Short, args: short.args(), payload };
            match short.handler {
                COLL_SMALL => self.inbox.on_small(&m),
                COLL_READY => self.inbox.on_ready(&m),
                _ => self.inbox.on_piece(&m),
            }
        });
    }

    /// Records the call of one image of this process, and starts the collective if it is the
    /// last. `None` if it is done at once.
    pub(super) fn call(
        &self,
        ctx: Ctx,
        call: &CollCall,
        (id, image): (CollId, usize),
    ) -> Option<Arc<CollStatus>> {
        let request = call.request;
        let mut table = self.table.lock();
        let active = &mut table.active;
        let mut coll = match active.remove(&id) {
            Some(coll) if coll.request != request => disagree(call.function, coll.function),
            Some(coll) => coll,
            None => ActiveColl::new(call, request),
        };
        coll.buffers[image] = call.buffers;
        coll.missing -= 1;
        if coll.missing == 0 {
            return self.begin(ctx, id, coll, active);
        }
        let status = coll.status.get_or_insert_default().clone();
        active.insert(id, coll);
        Some(status)
    }

    /// Starts a collective that all images of this process have called. `None` if it is done.
    fn begin(
        &self,
        ctx: Ctx,
        id: CollId,
        mut coll: ActiveColl,
        active: &mut BTreeMap<CollId, ActiveColl>,
    ) -> Option<Arc<CollStatus>> {
        coll.plan = choice::plan(ctx, coll.view(), &coll.request, (&coll.buffers, &coll.tuning));
        self.carry_out(ctx, id, coll, active)
    }

    /// Starts the plan of a collective. `None` if it is done.
    fn carry_out(
        &self,
        ctx: Ctx,
        id: CollId,
        mut coll: ActiveColl,
        active: &mut BTreeMap<CollId, ActiveColl>,
    ) -> Option<Arc<CollStatus>> {
        if let Some(rings) = &self.rings {
            self.read_rings(rings);
        }
        if coll.advance(ctx, id, self) {
            coll.finish(ctx);
            // Without a collective that polls carry on, none of them takes the news.
            if active.values().all(|coll| coll.missing > 0) {
                self.inbox.drop_news();
            }
            return None;
        }
        ctx.job.subsystem.want(true);
        let status = coll.status.get_or_insert_default().clone();
        active.insert(id, coll);
        Some(status)
    }

    /// Carries out a movement of a stream in shared memory. `None` if it is done; otherwise polls
    /// carry it on.
    pub(super) fn movement(
        &self,
        ctx: Ctx,
        call: &CollCall,
        id: CollId,
        (stream, direct, roles): (usize, &DirectMovement, MovementRoles),
        awaits: bool,
    ) -> Option<Arc<CollStatus>> {
        let step = if roles.is_alone {
            direct.carry_out_alone(ctx, call, &roles);
            MovementStep::Done
        } else if self.has_movements(stream) {
            MovementStep::Called
        } else {
            direct.carry_out(ctx, call, &roles, awaits)
        };
        if step == MovementStep::Done {
            return None;
        }
        let started = StartedMovement::new(call, id, roles, step);
        let status = started.status.clone();
        let mut table = self.table.lock();
        table.movements[stream].add(started);
        ctx.job.subsystem.want(true);
        self.has_movements[stream].store(true, Ordering::Relaxed);
        self.advance_movements(ctx, stream, &mut table);
        Some(status)
    }

    /// Whether movements of a stream are in progress that no call awaits.
    fn has_movements(&self, stream: usize) -> bool {
        // Acquire pairs with the Release of `advance_movements`: their ends.
        self.has_movements[stream].load(Ordering::Acquire)
    }

    /// Whether movements of a stream may go on, when polls carry them on.
    fn may_advance(&self, stream: usize) -> bool {
        let Some(direct) = self.direct[stream].as_ref().filter(|_| self.has_movements(stream))
        else {
            return false;
        };
        // Acquire pairs with the Release of `advance_movements`: this thread reads counts that are
        // as new as those that were not reached there, or newer.
        self.awaited[stream].iter().any(|awaited| match awaited.load(Ordering::Acquire) {
            NONE => false,
            awaited => direct.is_reached(AwaitedCount(awaited)),
        })
    }

    /// Carries on the movements of a stream; whether any has ended. Plans move what they cannot.
    fn advance_movements(&self, ctx: Ctx, stream: usize, table: &mut CollTable) -> bool {
        let Some(direct) = &self.direct[stream] else { return false };
        let mut any_ended = false;
        let CollTable { active, movements } = table;
        let movements = &mut movements[stream];
        let mut plan = |movement: &StartedMovement, share: PlannedShare| {
            let (call, status) = (&movement.call, Arc::<CollStatus>::default());
            let mut coll = ActiveColl::new(call, call.request);
            coll.buffers[0] = call.buffers;
            coll.missing = 0;
            coll.status = Some(status.clone());
            match share {
                PlannedShare::All(request) => {
                    coll.request = request;
                    // As they were when it was called: other settings leave it to plans.
                    coll.tuning.leave_open(request.operation);
                    self.begin(ctx, movement.id, coll, active);
                }
                PlannedShare::Rest(rest) => {
                    coll.plan = rest;
                    self.carry_out(ctx, movement.id, coll, active);
                }
            }
            status
        };
        while let Some(ended) = movements.advance(ctx, direct, &mut plan) {
            ctx.job.subsystem.want(false);
            ended.status.finish(&ctx.job.ops);
            any_ended = true;
        }
        for (place, awaited) in self.awaited[stream].iter().zip(movements.awaited(direct)) {
            place.store(awaited.map_or(NONE, |awaited| awaited.0), Ordering::Release);
        }
        if movements.is_empty() {
            self.has_movements[stream].store(false, Ordering::Release);
        }
        any_ended
    }

    /// Ends the job if a word of the rings or of the movements was overwritten.
    pub(super) fn check_words(&self) {
        self.direct.iter().flatten().for_each(DirectMovement::check_words);
        self.rings.iter().for_each(ShortRings::check_words);
    }

    /// Whether a collective is incomplete, or another thread is changing that.
    pub(super) fn is_active(&self) -> bool {
        let is_active = |t: MutexGuard<'_, CollTable>| {
            !t.active.is_empty() || !t.movements.iter().all(Movements::is_empty)
        };
        self.table.try_lock().is_none_or(is_active)
    }

    /// Advances the collectives for which something has arrived; whether any has ended. Returns at
    /// once if another thread does it.
    pub(super) fn progress(&self, ctx: Ctx) -> bool {
        let rings = self.rings.as_ref().filter(|rings| rings.any());
        let may_advance: [bool; STREAMS] = array::from_fn(|stream| self.may_advance(stream));
        if rings.is_none() && !self.inbox.has_news() && may_advance == [false; STREAMS] {
            return false;
        }
        let Some(mut table) = self.table.try_lock() else { return false };
        let mut any_ended = false;
        if let Some(rings) = rings {
            self.read_rings(rings);
        }
        let active = &mut table.active;
        for id in self.inbox.take_news() {
            let Some(coll) = active.get_mut(&id).filter(|coll| coll.missing == 0) else {
                continue;
            };
            if coll.advance(ctx, id, self)
                && let Some(coll) = active.remove(&id)
            {
                coll.finish(ctx);
                ctx.job.subsystem.want(false);
                any_ended = true;
            }
        }
        for stream in (0..STREAMS).filter(|&stream| may_advance[stream]) {
            any_ended |= self.advance_movements(ctx, stream, &mut table);
        }
        any_ended
    }
}

impl ActiveColl {
    fn new(call: &CollCall, request: CollRequest) -> ActiveColl {
        let images = call.view().images.len();
        ActiveColl {
            team: call.team.clone(),
            by_process: call.by_process,
            request,
            function: call.function,
            status: None,
            tuning: call.team.tuning().settings().clone(),
            buffers: (0..images).map(|_| CollBuffers::none()).collect(),
            missing: images,
            plan: CollPlan::default(),
            round: 0,
            begun: false,
            sends: Vec::new(),
            receives: Vec::new(),
        }
    }

    fn view(&self) -> &TeamView {
        self.team.view(self.by_process)
    }

    /// Reports the end to the images that wait for it.
    fn finish(self, ctx: Ctx) {
        if let Some(status) = &self.status {
            status.finish(&ctx.job.ops);
        }
        if self.view().images.len() > 1 {
            // Threads of other images may sleep until this.
            if let Some(host) = ctx.endpoint().conduit.shared_host() {
                host.ring_self();
            }
        }
    }

    /// Goes on until messages are missing; true if the collective is done.
    fn advance(&mut self, ctx: Ctx, id: CollId, engine: &CollEngine) -> bool {
        let inbox = &engine.inbox;
        while self.round < self.plan.rounds.len() {
            if !self.begun {
                self.begun = true;
                self.plan.work(self.round);
                self.begin(ctx, id, engine);
            }
            self.receives.retain(|&slot| !inbox.take_done(slot));
            let mut sends = core::mem::take(&mut self.sends);
            sends.retain(|send| {
                let Some(ready) = inbox.take_ready(send.id) else { return true };
                self.send_large(ctx, engine, *send, ready);
                false
            });
            self.sends = sends;
            if !(self.receives.is_empty() && self.sends.is_empty()) {
                return false;
            }
            self.round += 1;
            self.begun = false;
        }
        true
    }

    fn message_id(&self, coll: CollId, t: &CollTransfer) -> MessageId {
        MessageId { coll, peer: self.view().members.job_rank(t.peer), tag: t.tag }
    }

    /// Starts the messages of the round: receives first.
    fn begin(&mut self, ctx: Ctx, coll: CollId, engine: &CollEngine) {
        let inbox = &engine.inbox;
        let small = MAX_EAGER;
        let (context, number) = (coll.context as i32, coll.number as i32);
        let transfers = core::mem::take(&mut self.plan.rounds[self.round].transfers);
        for t in &transfers {
            let TransferMemory::Receive(to) = t.memory else { continue };
            let id = self.message_id(coll, t);
            if to.len() <= small {
                self.receives.extend(inbox.want_small(id, to));
                continue;
            }
            let slot = inbox.want_large(id, to);
            self.receives.push(slot);
            let ([ah, al], [nh, nl]) = (halves(to.as_ptr().addr()), halves(to.len()));
            let args = [context, number, t.tag as i32, slot as i32, ah, al, nh, nl];
            let args = ready_args(args);
            self.send(ctx, engine, id.peer, COLL_READY, &args, Src::empty());
        }
        for t in &transfers {
            let TransferMemory::Send(data) = t.memory else { continue };
            let id = self.message_id(coll, t);
            if data.len() > small {
                self.sends.push(LargeSend { id, data });
                continue;
            }
            let args = with_checksum([context, number, t.tag as i32]);
            self.send(ctx, engine, id.peer, COLL_SMALL, &args, data);
        }
    }

    /// Moves a large message to its destination.
    fn send_large(&self, ctx: Ctx, engine: &CollEngine, send: LargeSend, ready: ReadyNotice) {
        let (to, data) = (send.id.peer, send.data);
        if ready.n != data.len() {
            sizes_differ(send.id, ready.n, data.len());
        }
        let args = |word: usize| {
            let [high, low] = halves(word);
            with_checksum([ready.slot as i32, high, low])
        };
        let at = core::ptr::without_provenance_mut::<u8>(ready.at);
        let range = ctx.endpoint().segment_of(to).and_then(|s| s.resolve(at, data.len()));
        if let Some(mapped) = range.and_then(RemoteRange::mapped) {
            mapped.copy_from(data);
            fence(Ordering::Release);
            self.send(ctx, engine, to, COLL_PIECE, &args(data.len()), Src::empty());
            return;
        }
        let most = match range {
            Some(_) => ctx.endpoint().conduit.max_long_request(),
            None => MAX_EAGER,
        };
        for offset in (0..data.len()).step_by(most) {
            let piece = data.part(offset, most.min(data.len() - offset));
            let (args, at) = (args(offset), at.wrapping_add(offset));
            match range {
                Some(range) => {
                    let destination = range.part(offset, piece.len());
                    let m = Outgoing::long(COLL_PIECE, &args, piece, destination, at.addr());
                    ctx.request(self.function, to, &m);
                }
                // Not through a ring, whose messages count as Shorts.
                None => messages::request(ctx, self.function, to, COLL_PIECE, &args, piece),
            }
        }
    }

    /// Sends a small message, or one without payload, through a ring or as an active message.
    fn send(
        &self,
        ctx: Ctx,
        engine: &CollEngine,
        to: JobRank,
        handler: u8,
        args: &[i32],
        payload: Src<'static>,
    ) {
        let fits = ShortRings::fits(args.len(), payload.len());
        if let Some(rings) = engine.rings.as_ref().filter(|_| fits)
            && rings.write(to, handler, args, payload)
        {
            if let Some(host) = ctx.endpoint().conduit.shared_host() {
                host.ring_peers();
            }
            return;
        }
        messages::request(ctx, self.function, to, handler, args, payload);
    }
}

fn disagree(function: &str, first: &str) -> ! {
    report::fatal(
        format_args!(
            "{function}(): another image of this process called {first}() in its place, or with other arguments"
        ),
        format_args!(
            "All images must call the collectives of a team in the same order with the same root, size and flags."
        ),
    )
}
