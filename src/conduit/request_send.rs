//! Sending requests.
//!
//! Called by `request` and, for the conduit's own messages, by `pinned_messages`. Invariant:
//! resources are acquired in the
//! order credits, chunk, TMPMD, ticket. A thread that holds a later one never waits for an
//! earlier one, so there is no deadlock. The steps are drawn in `am_send`.

use super::am_body::{args_bytes, write_body};
use super::am_plan::{SendPlan, credits_for, extent};
use super::am_send::check_sizes;
use super::hold::Hold;
use super::match_bits::{self, AmForm, AmHeader, TargetMd};
use super::portals::{Direct, Portals, Target};
use super::queue::broken;
use super::{CHUNK, Category, Conduit, Outgoing, ResourceNeed, Upcall};
use crate::fault;
use crate::rank::JobRank;
use core::sync::atomic::{AtomicU32, Ordering};
use sys::hint::cold_path;

/// What a request holds when it is transmitted.
struct ReservedSend {
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
    pub(super) fn request_message<U: Upcall>(&self, up: U, rank: JobRank, m: &Outgoing<'_>) {
        debug_assert!(!self.in_handler(up), "a request from inside a handler");
        check_sizes(m);
        if m.category == Category::Medium && m.payload.len() >= self.outbox.least {
            return self.request_stashed(up, rank, &{ *m });
        }
        self.request_along(up, rank, m);
    }

    /// Sends a request whose payload stays in the outbox if it can.
    #[inline(never)]
    fn request_stashed<U: Upcall>(&self, up: U, rank: JobRank, m: &Outgoing<'_>) {
        // The target reads it there if it maps our library memory, as we map its own.
        let stashed = self.library_memory(rank).and_then(|_| self.outbox.stash(m.payload));
        match stashed {
            Some(offset) => {
                let plan = SendPlan::new(AmForm::Outbox, args_bytes(m.args.len()), offset);
                if let Some(reserved) = self.reserve(up, rank, m, plan) {
                    self.transmit_request(up, rank, m, plan, reserved);
                    self.outbox.prefetch_next(m.payload.len());
                }
            }
            None => self.request_along(up, rank, m),
        }
    }

    /// Sends a request, the payload of a Medium with it.
    #[inline(always)]
    fn request_along<U: Upcall>(&self, up: U, rank: JobRank, m: &Outgoing<'_>) {
        // To prefetch the cache line of arguments alone gains nothing, and a Long in one message
        // is rare.
        self.request_planned(up, rank, m, self.plan(rank, m));
    }

    /// Sends a request whose plan is made.
    #[inline(always)]
    pub(super) fn request_planned<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
        plan: SendPlan,
    ) {
        if m.category == Category::Medium && !Self::fits_inline(plan.form, plan.len) {
            let to = self.am_target(rank, TargetMd::ReqRb as u64, 0, 0);
            if let Some(direct) = self.portals.direct(to.process) {
                direct.prefetch_target(&to, plan.len);
            }
        }
        if let Some(reserved) = self.reserve(up, rank, m, plan) {
            self.transmit_request(up, rank, m, plan, reserved);
        }
    }

    // ---- reserve

    /// Takes what a request needs, waiting for it if it must. `None` if the request has been sent:
    /// as two messages, since that needed fewer credits.
    #[inline(always)]
    fn reserve<U: Upcall>(
        &self,
        up: U,
        rank: JobRank,
        m: &Outgoing<'_>,
        plan: SendPlan,
    ) -> Option<ReservedSend> {
        let (credit, may_wait) = match self.credits.take(rank, credits_for(plan)) {
            Some(taken) => (taken.field(0), self.implicit.may_wait(taken.left())),
            None => (self.wait_for_credits(up, rank, &{ *m }, plan)?, false),
        };
        Some(self.reserve_chunk(up, m, plan.form, credit, may_wait))
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
            whole.or_else(|| {
                splits.then(|| self.credits.take(rank, fewer).map(|taken| (taken, true))).flatten()
            })
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
        let outside = self.rar().local(m.payload).is_none();
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
    fn transmit_request<U: Upcall>(
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

/// Requests sent, for a planted fault.
static REQUESTS_SENT: AtomicU32 = AtomicU32::new(0);
