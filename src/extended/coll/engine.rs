//! Carries out plans: sends and receives their messages, round by round, whenever something has arrived.
//!
//! Called when the last image of a process has called, and by polls through [`CollEngine::progress`]. One thread at a time
//! advances plans, under the lock of the table; handlers only fill the inbox and never take that lock, so that sends,
//! which may poll, are safe under it. Invariant: an operation is in the table from the call of its first image until its
//! plan is done.

use super::inbox::{CollInbox, MessageId, ReadyNotice, halves, sizes_differ};
use super::lines::ShortRings;
use super::plan::{CollPlan, CollTransfer, TransferDirection};
use super::team::TeamView;
use super::{CollRequest, choice};
use crate::client_memory::{Dst, Src};
use crate::conduit::{AmMessage, Category, Outgoing};
use crate::extended::{COLL_PIECE, COLL_READY, COLL_SMALL};
use crate::report;
use crate::runtime::{Ctx, GasnetJob};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering, fence};
use parking_lot::Mutex;

/// Names a collective: the context of its team, and how many came before it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CollId {
    pub(super) context: u32,
    pub(super) number: u32,
}

/// Whether a collective is done, for those who wait for it.
#[derive(Debug, Default)]
pub struct CollStatus(AtomicBool);

impl CollStatus {
    /// Whether it is; what it wrote is seen afterwards.
    #[inline]
    pub fn done(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The addresses that one image passed.
#[derive(Clone, Copy, Debug)]
pub struct ImageBuffers {
    /// Where its result goes; null where it has none.
    pub dst: *mut u8,
    /// Where its operand is; null where it has none.
    pub src: *mut u8,
}

/// A collective under way in this process.
#[derive(Debug)]
struct ActiveColl {
    view: &'static TeamView,
    request: CollRequest,
    function: &'static str,
    status: Arc<CollStatus>,
    /// By image of this process.
    places: Vec<Option<ImageBuffers>>,
    missing: usize,
    plan: CollPlan,
    /// The round that is under way.
    round: usize,
    begun: bool,
    /// Large messages whose receivers are not ready.
    sends: Vec<CollTransfer>,
    /// Slots that are not done.
    receives: Vec<u32>,
}

// SAFETY: the addresses are of memory that the client lends from the call until the sync, in whichever threads.
unsafe impl Send for ActiveColl {}

/// See the module.
#[derive(Debug)]
pub(super) struct CollEngine {
    ops: Mutex<BTreeMap<CollId, ActiveColl>>,
    pub(super) inbox: CollInbox,
    lines: Option<ShortRings>,
}

impl CollEngine {
    pub(super) fn new(job: &GasnetJob) -> CollEngine {
        CollEngine {
            ops: Mutex::default(),
            inbox: CollInbox::default(),
            lines: ShortRings::of(job),
        }
    }

    /// Takes what has come in lines into the inbox; the caller holds the lock of the table.
    fn read_lines(&self, lines: &ShortRings) {
        lines.read(|source, short| {
            let mut words = short.payload;
            // SAFETY: bytes of the array, which it has so many of.
            let payload = unsafe { Dst::new(words.as_mut_ptr().cast(), short.nbytes) };
            let m = AmMessage {
                source: source as u32,
                category: Category::Short,
                handler: short.handler,
                args: short.args(),
                payload,
            };
            match m.handler {
                COLL_SMALL => self.inbox.on_small(&m),
                COLL_READY => self.inbox.on_ready(&m),
                _ => self.inbox.on_piece(&m),
            }
        });
    }

    /// Notes the call of one image of this process, and starts the collective if it is the last.
    ///
    /// # Safety
    /// The memory at `places` must be accessible until the collective is done.
    pub(super) unsafe fn call(
        &self,
        ctx: Ctx,
        function: &'static str,
        view: &'static TeamView,
        image: usize,
        request: CollRequest,
        places: ImageBuffers,
    ) -> Arc<CollStatus> {
        let key = CollId { context: view.context, number: view.images[image].next() };
        let mut ops = self.ops.lock();
        let op = ops.entry(key).or_insert_with(|| ActiveColl {
            view,
            request,
            function,
            status: Arc::default(),
            places: alloc::vec![None; view.images.len()],
            missing: view.images.len(),
            plan: CollPlan::default(),
            round: 0,
            begun: false,
            sends: Vec::new(),
            receives: Vec::new(),
        });
        if op.request != request {
            disagree(function, op.function);
        }
        let status = op.status.clone();
        op.places[image] = Some(places);
        op.missing -= 1;
        if op.missing == 0 {
            let all: Vec<ImageBuffers> = op.places.iter().flatten().copied().collect();
            op.plan = choice::plan(ctx, view, &op.request, &all);
            if let Some(lines) = &self.lines {
                self.read_lines(lines);
            }
            // SAFETY: the caller's promise, and that of the callers before.
            if unsafe { op.advance(ctx, key, self) } {
                ops.remove(&key);
            } else {
                ctx.job.subsystem.want(true);
            }
        }
        status
    }

    /// Goes on with what something has arrived for. Returns at once if another thread is doing it.
    pub(super) fn progress(&self, ctx: Ctx) {
        let lines = self.lines.as_ref().filter(|lines| lines.any());
        if lines.is_none() && !self.inbox.has_news() {
            return;
        }
        let Some(mut ops) = self.ops.try_lock() else { return };
        if let Some(lines) = lines {
            self.read_lines(lines);
        }
        for key in self.inbox.take_news() {
            let Some(op) = ops.get_mut(&key).filter(|op| op.missing == 0) else { continue };
            // SAFETY: the promise of those who called.
            if unsafe { op.advance(ctx, key, self) } {
                ops.remove(&key);
                ctx.job.subsystem.want(false);
            }
        }
    }
}

impl ActiveColl {
    /// Goes on as far as possible; true if the collective is done.
    ///
    /// # Safety
    /// The memory that the images named must be accessible.
    unsafe fn advance(&mut self, ctx: Ctx, key: CollId, engine: &CollEngine) -> bool {
        let inbox = &engine.inbox;
        while self.round < self.plan.rounds.len() {
            if !self.begun {
                self.begun = true;
                // SAFETY: the caller's promise.
                unsafe {
                    self.plan.work(self.round);
                    self.begin(ctx, key, engine);
                }
            }
            self.receives.retain(|&slot| !inbox.take_done(slot));
            let mut sends = core::mem::take(&mut self.sends);
            sends.retain(|t| {
                let name = self.name(key, t);
                let Some(ready) = inbox.take_ready(name) else { return true };
                // SAFETY: the caller's promise.
                unsafe { self.write(ctx, engine, name, t, ready) };
                false
            });
            self.sends = sends;
            if !(self.receives.is_empty() && self.sends.is_empty()) {
                return false;
            }
            self.round += 1;
            self.begun = false;
        }
        // Release pairs with the Acquire of `done`.
        self.status.0.store(true, Ordering::Release);
        if self.view.images.len() > 1 {
            // Threads of other images may sleep until this.
            if let Some(extension) = ctx.job.conduit.shared_host() {
                extension.ring_self();
            }
        }
        true
    }

    fn name(&self, key: CollId, t: &CollTransfer) -> MessageId {
        MessageId { key, node: self.view.members[t.peer], tag: t.tag }
    }

    /// Starts the messages of the round: receives first.
    ///
    /// # Safety
    /// As [`ActiveColl::advance`].
    unsafe fn begin(&mut self, ctx: Ctx, key: CollId, engine: &CollEngine) {
        let inbox = &engine.inbox;
        let small = ctx.job.conduit.max_medium();
        let transfers = core::mem::take(&mut self.plan.rounds[self.round].transfers);
        for t in transfers.iter().filter(|t| t.way == TransferDirection::Receive) {
            let name = self.name(key, t);
            if t.n <= small {
                // SAFETY: the caller's promise.
                self.receives.extend(unsafe { inbox.want_small(name, t.at, t.n) });
                continue;
            }
            let slot = inbox.want_large(name, t.at, t.n);
            self.receives.push(slot);
            let ([ah, al], [nh, nl]) = (halves(t.at.expose_provenance()), halves(t.n));
            let (context, number) = (key.context as i32, key.number as i32);
            let args = [context, number, t.tag as i32, slot as i32, ah, al, nh, nl];
            self.send(
                ctx,
                engine,
                name.node,
                Category::Short,
                COLL_READY,
                &args,
                ptr::null(),
                0,
                ptr::null_mut(),
            );
        }
        for t in transfers.into_iter().filter(|t| t.way == TransferDirection::Send) {
            if t.n > small {
                self.sends.push(t);
                continue;
            }
            let args = [key.context as i32, key.number as i32, t.tag as i32];
            let category = if t.n == 0 { Category::Short } else { Category::Medium };
            let node = self.view.members[t.peer];
            self.send(ctx, engine, node, category, COLL_SMALL, &args, t.at, t.n, ptr::null_mut());
        }
    }

    /// Moves a large message to where its receiver wants it.
    ///
    /// # Safety
    /// As [`ActiveColl::advance`].
    unsafe fn write(
        &self,
        ctx: Ctx,
        engine: &CollEngine,
        name: MessageId,
        t: &CollTransfer,
        ready: ReadyNotice,
    ) {
        if ready.n != t.n {
            sizes_differ(name, ready.n, t.n);
        }
        let segment = &ctx.job.segments()[name.node];
        let offset = segment.offset(ready.at, t.n);
        if let (Some(offset), Some(mapped)) = (offset, segment.mapped()) {
            // SAFETY: the source is the caller's promise.
            mapped.part(offset, t.n).copy_from(unsafe { Src::new(t.at, t.n) });
            fence(Ordering::Release);
            let [high, low] = halves(t.n);
            let args = [ready.slot as i32, high, low];
            self.send(
                ctx,
                engine,
                name.node,
                Category::Short,
                COLL_PIECE,
                &args,
                ptr::null(),
                0,
                ptr::null_mut(),
            );
            return;
        }
        let (category, most) = match offset {
            Some(_) => (Category::Long, ctx.job.conduit.max_long_request()),
            None => (Category::Medium, ctx.job.conduit.max_medium()),
        };
        let mut at = 0;
        while at < t.n {
            let n = most.min(t.n - at);
            let [high, low] = halves(at);
            let args = [ready.slot as i32, high, low];
            let dest = ready.at.wrapping_add(at);
            self.send(
                ctx,
                engine,
                name.node,
                category,
                COLL_PIECE,
                &args,
                t.at.wrapping_add(at),
                n,
                dest,
            );
            at += n;
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn send(
        &self,
        ctx: Ctx,
        engine: &CollEngine,
        node: u32,
        category: Category,
        handler: u8,
        args: &[i32],
        src: *const u8,
        nbytes: usize,
        dest: *mut u8,
    ) {
        // A line carries no piece of a large message, whose category says how it comes.
        let short = category == Category::Short || handler == COLL_SMALL;
        if let Some(lines) =
            engine.lines.as_ref().filter(|_| short && ShortRings::fits(args.len(), nbytes))
        {
            let payload = match nbytes {
                0 => &[],
                // SAFETY: memory that the client lends, or scratch memory of the plan.
                _ => unsafe { core::slice::from_raw_parts(src, nbytes) },
            };
            if lines.write(node as usize, handler, args, payload) {
                if let Some(extension) = ctx.job.conduit.shared_host() {
                    extension.ring_peers();
                }
                return;
            }
        }
        // SAFETY: memory that the client lends, or scratch memory of the plan.
        let payload = unsafe { Src::new(src, nbytes) };
        let m = match category {
            Category::Short => Outgoing::short(handler, args),
            Category::Medium => Outgoing::medium(handler, args, payload),
            Category::Long => {
                let to = ctx.job.long_destination(self.function, node, dest, nbytes);
                Outgoing::long(handler, args, payload, to, dest.addr())
            }
        };
        ctx.request(self.function, node, &m);
    }
}

#[cold]
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
