//! Sending requests.
//!
//! Called by `request` and, for the conduit's own messages, by `pinned_messages`. Invariant:
//! resources are acquired in the order area, credits, chunk, TMPMD, ticket. A thread that holds a
//! later one never waits for an earlier one, so there is no deadlock. The steps are drawn in
//! `am_send`.

use super::am_body::{addressed_bytes, args_bytes, write_body};
use super::am_plan::{SendPlan, credits_for, extent};
use super::am_send::check_sizes;
use super::hold::Hold;
use super::large_areas::PayloadArea;
use super::match_bits::{self, AmForm, AmHeader, TargetMd};
use super::message::{LARGEST_STASH, PIECE};
use super::portals::{Direct, Portals, Target};
use super::queue::broken;
use super::{CHUNK, Category, Conduit, MAX_EAGER, Outgoing, ResourceNeed, Upcall};
use crate::client_memory::Src;
use crate::fault;
use crate::rank::JobRank;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use sys::clock;
use sys::hint::cold_path;

/// How long a large request waits for an area before it goes in pieces. In a flood, a reader that
/// has a CPU gives one back much sooner.
const AREA_WAIT_NS: u64 = 100_000;

/// What a request holds when it is transmitted.
pub(super) struct ReservedSend {
    /// The chunk of ReqSB.
    chunk: u32,
    /// The credit field of its header.
    credit: u16,
    /// [`AmHeader::may_wait`]
    may_wait: bool,
    /// Of [`AmForm::Unpacked`]: the TMPMD, if the payload is outside the segment.
    slot: Option<u32>,
}

impl<P: Portals> Conduit<P> {
    /// Sends a Short or a Medium, as [`Conduit::request`] does.
    #[inline(always)]
    pub(super) fn request_message<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
    ) -> bool {
        debug_assert!(!self.in_handler(up), "a request from inside a handler");
        check_sizes(m);
        if m.category == Category::Medium && self.goes_to_outbox(m.payload.len()) {
            return self.request_stashed(up, rank, &{ *m });
        }
        self.request_along(up, rank, m)
    }

    /// Whether a payload of `n` bytes stays in the outbox if it can.
    #[inline(always)]
    fn goes_to_outbox(&self, n: usize) -> bool {
        let is_in_burst = || self.portals.direct_to_self().is_some_and(Direct::is_in_burst);
        n >= self.outbox.least_in_burst && (n >= self.outbox.least || is_in_burst())
    }

    /// Sends a request whose payload stays in the outbox if it can.
    #[inline(never)]
    fn request_stashed<U: Upcall>(&self, up: U, rank: JobRank, m: &Outgoing<'_>) -> bool {
        let n = m.payload.len();
        if n > LARGEST_STASH {
            return self.request_large(up, rank, m);
        }
        // The target reads it there if it maps our library memory, as we map its own.
        let stashed = self.library_memory(rank).and_then(|_| self.outbox.stash(m.payload));
        match stashed {
            Some(offset) => {
                let sent = self.request_in_outbox(up, rank, m, offset);
                if !sent {
                    self.outbox.unstash(offset);
                }
                sent
            }
            None if n > MAX_EAGER => self.request_large(up, rank, m),
            None => self.request_along(up, rank, m),
        }
    }

    /// Sends a request whose payload is in the outbox.
    #[inline(always)]
    fn request_in_outbox<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
        offset: u64,
    ) -> bool {
        let plan = SendPlan::new(AmForm::Outbox, args_bytes(m.args.len()), offset);
        let sent = self.reserve_and_transmit(up, rank, m, plan);
        if sent {
            self.outbox.prefetch_next(m.payload.len());
        }
        sent
    }

    /// Sends a request, the payload of a Medium with it.
    #[inline(always)]
    fn request_along<U: Upcall>(&self, up: U, rank: JobRank, m: &Outgoing<'_>) -> bool {
        // To prefetch the cache line of arguments alone gains nothing, and a Long in one message
        // is rare.
        self.request_planned(up, rank, m, self.plan(rank, m))
    }

    /// Sends a request whose plan is made.
    #[inline(always)]
    pub(super) fn request_planned<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
        plan: SendPlan,
    ) -> bool {
        if m.category == Category::Medium && !Self::fits_inline(plan.form, plan.len) {
            let to = self.am_target(rank, TargetMd::ReqRb as u64, 0, 0);
            if let Some(direct) = self.portals.direct(to.process) {
                direct.prefetch_target(&to, plan.len);
            }
        }
        self.reserve_and_transmit(up, rank, m, plan)
    }

    /// Sends a request by its plan. False if it is immediate and refused.
    #[inline(always)]
    fn reserve_and_transmit<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
        plan: SendPlan,
    ) -> bool {
        match self.reserve(up, rank, m, plan) {
            Ok(reserved) => {
                self.transmit_request(up, rank, m, plan, reserved);
                true
            }
            Err(sent) => sent,
        }
    }

    // ---- reserve

    /// Takes what a request needs, waiting for it if it must. Otherwise, whether the request has
    /// been sent: as two messages, since that needed fewer credits. If not it is refused.
    #[inline(always)]
    fn reserve<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
        plan: SendPlan,
    ) -> Result<ReservedSend, bool> {
        if m.immediate {
            cold_path();
            return self.reserve_now(rank, &{ *m }, plan).ok_or(false);
        }
        let (credit, may_wait) = match self.credits.take(rank, credits_for(plan)) {
            Some(taken) => (taken.field(0), self.implicit.may_wait(taken.left())),
            None => (self.wait_for_credits(up, rank, &{ *m }, plan).ok_or(true)?, false),
        };
        Ok(self.reserve_chunk(up, m, plan.form, credit, may_wait))
    }

    /// [`Conduit::reserve`] of an immediate request: `None`, and nothing taken, if something is
    /// short.
    #[inline(never)]
    pub(super) fn reserve_now(
        &self,
        rank: JobRank,
        m: &Outgoing<'_>,
        plan: SendPlan,
    ) -> Option<ReservedSend> {
        let taken = self.credits.take(rank, credits_for(plan))?;
        let (credit, may_wait) = (taken.field(0), self.implicit.may_wait(taken.left()));
        let reserved = self.reqsb.take(Hold::REQUEST).and_then(|chunk| {
            let slot = match plan.form {
                AmForm::Unpacked => self.data_now(m),
                _ => Some(None),
            };
            if slot.is_none() {
                self.reqsb.give(chunk);
            }
            Some(ReservedSend { chunk, credit, may_wait, slot: slot? })
        });
        if reserved.is_none() {
            self.credits.untake(rank, credit);
        }
        reserved
    }

    /// [`Conduit::reserve_data`] of an immediate request; `None` if something is short.
    fn data_now(&self, m: &Outgoing<'_>) -> Option<Option<u32>> {
        let outside = self.own_part(m.payload).is_none();
        let slot = if outside { Some(self.tmpmd.take()?) } else { None };
        if self.tickets.take(1).is_none() {
            slot.into_iter().for_each(|slot| self.tmpmd.give(slot));
            return None;
        }
        Some(slot)
    }

    /// Gives back what [`Conduit::reserve_now`] has taken for a message without data of its own.
    #[cold]
    pub(super) fn unreserve(&self, rank: JobRank, reserved: ReservedSend) {
        self.reqsb.give(reserved.chunk);
        self.credits.untake(rank, reserved.credit);
    }

    /// What [`Conduit::reserve`] takes after the credits.
    #[inline(always)]
    fn reserve_chunk<U: Upcall>(
        &self,
        up: U,
        m: &Outgoing<'_>,
        form: AmForm,
        credit: u16,
        may_wait: bool,
    ) -> ReservedSend {
        let taken = self.reqsb.take(Hold::REQUEST);
        let chunk = taken.unwrap_or_else(|| self.wait_for_chunk(up));
        let slot = match form {
            AmForm::Unpacked => self.reserve_data(up, &{ *m }),
            _ => None,
        };
        ReservedSend { chunk, credit, may_wait, slot }
    }

    /// Waits for the credits of a request: its credit field. A packed Long that still has too few
    /// goes as two messages if that needs fewer. Then it has been sent, and there is no field.
    #[cold]
    #[inline(never)]
    fn wait_for_credits<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
        plan: SendPlan,
    ) -> Option<u16> {
        let credits = credits_for(plan);
        let short = self.credits.stall(rank, credits);
        self.stats.credit_stalls.fetch_add(1, Ordering::Relaxed);
        let apart = SendPlan::new(AmForm::Unpacked, args_bytes(m.args.len()), 0);
        let fewer = credits_for(apart);
        let splits = plan.form == AmForm::Packed
            && m.payload.len() != 0
            && fewer < credits
            && !self.config.targets_regions();
        let what = &"a request for credits";
        let need = ResourceNeed { what, peer: Some(rank), all_sent: true };
        let (taken, split) = self.wait_full(up, need, || {
            let whole = self.credits.take(rank, credits).map(|taken| (taken, false));
            let taken = whole.or_else(|| {
                splits.then(|| self.credits.take(rank, fewer).map(|taken| (taken, true))).flatten()
            });
            if taken.is_none() {
                self.credits.stall_goes_on(rank);
            }
            taken
        });
        let credit = taken.field(short);
        if !split {
            return Some(credit);
        }
        let reserved = self.reserve_chunk(up, m, apart.form, credit, false);
        self.transmit_request(up, rank, m, apart, reserved);
        None
    }

    #[cold]
    #[inline(never)]
    fn wait_for_chunk<U: Upcall>(&self, up: U) -> u32 {
        self.wait_full(up, ResourceNeed::of(&"a request for a send buffer"), || {
            self.reqsb.take(Hold::REQUEST)
        })
    }

    /// A ticket for the data of a request Long, and a TMPMD if they lie outside the segment.
    #[cold]
    #[inline(never)]
    fn reserve_data<U: Upcall>(&self, up: U, m: &Outgoing<'_>) -> Option<u32> {
        let outside = self.own_part(m.payload).is_none();
        let slot = outside.then(|| {
            let need = ResourceNeed::of(&"a request for a memory descriptor");
            self.wait_safe(up, need, || self.tmpmd.take())
        });
        let need = ResourceNeed::of(&"a request for a send ticket");
        self.wait_safe(up, need, || self.tickets.take(1));
        slot
    }

    // ---- transmit

    /// Sends a request with what it has reserved.
    #[inline(always)]
    pub(super) fn transmit_request<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
        plan: SendPlan,
        reserved: ReservedSend,
    ) {
        let SendPlan { form, len, offset } = plan;
        let ReservedSend { chunk, credit, may_wait, slot } = reserved;
        let mut extent = extent(form, offset, m);
        if form == AmForm::Unpacked {
            cold_path();
            self.put_data(up, rank, TargetMd::RarAm, &{ *m }, chunk, slot);
            extent = chunk.into();
        }
        if form == AmForm::Outbox {
            self.outbox.note(chunk, offset);
        }
        let header = AmHeader {
            form,
            request: true,
            may_wait,
            copy: form == AmForm::Outbox && self.config.par(),
            handler: m.handler,
            numargs: m.args.len() as u8,
            chunk,
            source: self.me,
            extent,
            credit,
        };
        let (bits, data) = header.pack();
        debug_assert!(plan.len == 0 || bits & !match_bits::IGNORE != TargetMd::ReqHdr as u64);
        if !(fault::on_every_64th("drop_am", &REQUESTS_SENT)) {
            let to = self.am_target(rank, bits, 0, data);
            let inline = Target { bits: AmHeader::inline_request(bits), ..to };
            if !(self.send_inline(form, len, offset, m, &inline)
                || self.send_at_once(form, offset, m, &to))
            {
                self.send_from_chunk(form, offset, &{ *m }, chunk, &{ to });
            }
        }
        if form == AmForm::Unpacked && !m.source_stays {
            self.wait_local(up);
        }
    }

    /// Sends a Medium request whose payload, the first bytes of an area, stays there until its
    /// handler has returned. False if it is immediate and refused: the caller has the area then.
    pub fn request_area<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
        area: PayloadArea,
    ) -> bool {
        debug_assert!(!self.in_handler(up), "a request from inside a handler");
        let n = m.payload.len();
        if !area.in_outbox && n > MAX_EAGER {
            let extent = self.extent_in_area(m, &area);
            let head = Outgoing { payload: Src::empty(), ..*m };
            let sent = self.request_part(up, rank, &head, extent, 0);
            self.large_areas.prefetch_next(n);
            return sent;
        }
        if area.in_outbox && n >= self.outbox.least {
            return self.request_in_outbox(up, rank, m, area.place as u64);
        }
        // Shorter than was negotiated: it travels as any other.
        let sent = self.request_message(up, rank, m);
        if sent {
            self.give_area(area);
        }
        sent
    }

    /// Sends a large request.
    #[cold]
    #[inline(never)]
    fn request_large<U: Upcall>(&self, up: U, rank: JobRank, m: &Outgoing<'_>) -> bool {
        let Some(area) = self.stash_large(rank, m).or_else(|| self.wait_for_area(up, rank, m))
        else {
            return self.request_pieces(up, rank, m);
        };
        let sent = self.request_area(up, rank, m, area);
        if !sent {
            self.give_area(area);
        }
        sent
    }

    /// Waits for space in an area, and copies the payload there. `None` if the payload is to
    /// travel: the target does not map our memory, or readers have left no area for a while. An
    /// immediate request does not wait.
    #[cold]
    #[inline(never)]
    fn wait_for_area<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
    ) -> Option<PayloadArea> {
        let n = m.payload.len();
        if m.immediate || !self.reads_areas(rank) || !self.large_areas.may_become_free(n) {
            return None;
        }
        let need = ResourceNeed::of(&"a request for memory that peers still read");
        let until = clock::now_ns().saturating_add(AREA_WAIT_NS);
        let area = self.wait_full(up, need, || match self.large_areas.take(n) {
            None if clock::now_ns() < until => None,
            area => Some(area),
        });
        match area {
            Some(area) => area.bytes.copy_from(m.payload),
            None => self.large_areas.give_up(n),
        }
        area
    }

    /// How many chunks are free, up to this many. Takes them for a moment.
    pub(super) fn free_chunks(&self, most: usize) -> usize {
        let chunks: Vec<_> = (0..most).map_while(|_| self.reqsb.take(Hold::REQUEST)).collect();
        chunks.into_iter().map(|chunk| self.reqsb.give(chunk)).count()
    }

    /// Sends a large request in pieces. An immediate one has what all of them need first. It waits
    /// only if that is more than what this rank holds when no request to the target is unanswered.
    fn request_pieces<U: Upcall>(&self, up: U, rank: JobRank, m: &Outgoing<'_>) -> bool {
        let total = m.payload.len();
        let pieces = (0..total).step_by(PIECE).map(|offset| {
            let len = PIECE.min(total - offset);
            let piece = m.payload.part(offset, len);
            (offset, Outgoing { payload: piece, immediate: false, ..*m })
        });
        let mut reserved = Vec::new();
        if m.immediate {
            for (_, piece) in pieces.clone() {
                let Some(taken) = self.reserve_now(rank, &piece, part_plan(&piece)) else { break };
                reserved.push(taken);
            }
            if reserved.len() != pieces.len() {
                let chunks = reserved.len() + self.free_chunks(pieces.len() - reserved.len());
                // Requests to other ranks have the other chunks, and may wait long for answers.
                let most = pieces.len().min(self.config.sb_chunks as usize);
                let short_of_chunks = chunks < most;
                reserved.drain(..).for_each(|taken| self.unreserve(rank, taken));
                if short_of_chunks || self.credits.held(rank).1 != 0 {
                    return false;
                }
            }
        }
        let id = self.payloads_sent.fetch_add(1, Ordering::Relaxed);
        let mut reserved = reserved.into_iter();
        for (offset, piece) in pieces {
            let extent = AmHeader::piece(total, offset);
            match reserved.next() {
                Some(taken) => self.transmit_part(rank, &piece, extent, id, taken),
                None => _ = self.request_part(up, rank, &piece, extent, id),
            }
        }
        true
    }

    /// Sends a large Medium, or a piece of it, whose header has this extent. The body has the
    /// arguments, the payload and the `id` of the large Medium.
    fn request_part<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
        extent: u64,
        id: u64,
    ) -> bool {
        match self.reserve(up, rank, m, part_plan(m)) {
            Ok(reserved) => {
                self.transmit_part(rank, m, extent, id, reserved);
                true
            }
            Err(sent) => sent,
        }
    }

    /// Sends what [`Conduit::request_part`] has reserved for.
    fn transmit_part(
        &self,
        rank: JobRank,
        m: &Outgoing<'_>,
        extent: u64,
        id: u64,
        reserved: ReservedSend,
    ) {
        let ReservedSend { chunk, credit, may_wait, .. } = reserved;
        let header = AmHeader { may_wait, ..self.large_header(true, m, chunk, extent, credit) };
        let (bits, data) = header.pack();
        let to = self.am_target(rank, bits, 0, data);
        if fault::on_every_64th("drop_am", &REQUESTS_SENT) {
            return;
        }
        // The id has the place of a destination.
        if !self.send_at_once(AmForm::Packed, id, m, &to) {
            self.send_from_chunk(AmForm::Packed, id, m, chunk, &to);
        }
    }

    /// Sends a request from its chunk.
    #[cold]
    #[inline(never)]
    fn send_from_chunk(
        &self,
        form: AmForm,
        offset: u64,
        m: &Outgoing<'_>,
        chunk: u32,
        to: &Target,
    ) {
        let len = match m.args.is_empty() && matches!(form, AmForm::Short | AmForm::Outbox) {
            true => 0,
            false => write_body(self.reqsb.chunks.part(chunk, CHUNK), form, offset, m),
        };
        let from = self.reqsb.silent_part(chunk, len);
        self.portals.put(from, false, to).unwrap_or_else(|e| broken(e));
    }
}

/// What a large Medium, or a piece of it, needs: as much as a Medium with its body.
fn part_plan(m: &Outgoing<'_>) -> SendPlan {
    let len = addressed_bytes(args_bytes(m.args.len()), m.payload.len());
    SendPlan::new(AmForm::Medium, len, 0)
}

/// Requests sent, for a planted fault.
static REQUESTS_SENT: AtomicU32 = AtomicU32::new(0);
