//! Sending replies: those of handlers, and implicit ones.
//!
//! Called by the upper layers through `JobConduit`, and by `request_recv` and `poll` for replies
//! that handlers did not send. Invariant: a reply acquires nothing, since its token holds all
//! that it needs. The steps are drawn in `am_send`.

use super::am_body::write_body;
use super::am_plan::{SendPlan, extent};
use super::am_recv::bad_message;
use super::am_send::check_sizes;
use super::implicit::KeptReplies;
use super::large_areas::PayloadArea;
use super::match_bits::{AmForm, AmHeader, REPLY_LID, TargetMd};
use super::pieces::StashedReply;
use super::portals::{Portals, Target};
use super::queue::broken;
use super::{CHUNK, Category, Conduit, MAX_EAGER, Outgoing, ReplyToken, Upcall};
use crate::client_memory::Src;
use sys::hint::cold_path;

impl<P: Portals> Conduit<P> {
    /// Sends the reply of the request handler that holds `token`. Waits for nothing but, without
    /// `source_stays`, the departure of a Long's data, and runs no handler meanwhile.
    ///
    /// # Panics
    /// The second time with the same token.
    #[inline(always)]
    pub fn reply<U: Upcall>(&self, up: U, token: &mut ReplyToken, m: &Outgoing<'_>) {
        check_sizes(m);
        assert!(!token.replied, "a request handler replies once");
        token.replied = true;
        if token.is_own {
            cold_path();
            return self.reply_own(up, token, &{ *m });
        }
        if m.category == Category::Medium && m.payload.len() > MAX_EAGER {
            return self.reply_large(token, &{ *m });
        }
        let plan = self.plan(token.source, m);
        self.transmit_reply(up, token, m, plan);
    }

    /// Sends a reply with what its token holds.
    #[inline(always)]
    fn transmit_reply<U: Upcall>(
        &self,
        up: U,
        token: &mut ReplyToken,
        m: &Outgoing<'_>,
        plan: SendPlan,
    ) {
        let SendPlan { form, len, offset } = plan;
        let chunk = token.kit.chunk.expect("a request comes with a chunk for its reply");
        let mut extent = extent(form, offset, m);
        if form == AmForm::Unpacked {
            cold_path();
            extent = self.put_data_of_reply(up, token, &{ *m }).into();
        }
        let (credit, low) = self.credits.reply_field(token.source, token.credit);
        let header = AmHeader {
            form,
            request: false,
            may_wait: false,
            copy: false,
            handler: m.handler,
            numargs: m.args.len() as u8,
            chunk,
            source: self.me,
            extent,
            credit,
        };
        let (bits, data) = header.pack();
        let to = self.am_target(token.source, bits, token.chunk as usize * CHUNK, data);
        let inline = Target { bits: AmHeader::inline_reply(bits, token.chunk), ..to };
        if !(self.send_inline(form, len, offset, m, &inline)
            || self.send_at_once(form, offset, m, &to))
        {
            self.reply_from_chunk(form, offset, &{ *m }, token, chunk, &{ to });
        }
        if low {
            cold_path();
            self.scavenge();
        }
        if form == AmForm::Unpacked && !m.source_stays {
            self.wait_local(up);
        }
    }

    /// Sends a reply from its chunk, which goes with a ticket until the SEND event.
    #[cold]
    #[inline(never)]
    fn reply_from_chunk(
        &self,
        form: AmForm,
        offset: u64,
        m: &Outgoing<'_>,
        token: &mut ReplyToken,
        chunk: u32,
        to: &Target,
    ) {
        let len = write_body(self.rplsb.chunks.part(chunk, CHUNK), form, offset, m);
        let from = if len == 0 {
            self.reqsb.silent_part(0, 0)
        } else {
            token.kit.chunk = None;
            token.kit.tickets -= 1;
            self.rplsb.leaves(chunk);
            self.rplsb.part(chunk, len)
        };
        self.portals.put(from, false, to).unwrap_or_else(|e| broken(e));
    }

    /// As [`Conduit::reply`], of a Medium whose payload, the first bytes of an area, stays there
    /// until its handler has returned.
    pub fn reply_area<U: Upcall>(
        &self,
        up: U,
        token: &mut ReplyToken,
        m: &Outgoing<'_>,
        area: PayloadArea,
    ) {
        if m.payload.len() <= MAX_EAGER || token.is_own {
            self.reply(up, token, m);
            return self.give_area(area);
        }
        assert!(!token.replied, "a request handler replies once");
        self.reply_in_area(token, m, &area);
    }

    fn reply_in_area(&self, token: &mut ReplyToken, m: &Outgoing<'_>, area: &PayloadArea) {
        let extent = self.extent_in_area(m, area);
        let head = Outgoing { payload: Src::empty(), ..*m };
        self.reply_part(token, &head, extent, Some(token.credit));
        self.large_areas.prefetch_next(m.payload.len());
    }

    /// Sends a large reply.
    #[cold]
    #[inline(never)]
    fn reply_large(&self, token: &mut ReplyToken, m: &Outgoing<'_>) {
        if let Some(area) = self.stash_large(token.source, m) {
            return self.reply_in_area(token, m, &area);
        }
        let first = StashedReply::new(token.source, token.chunk, token.credit, m);
        if !self.stashed_replies.keep(first.after_this()) {
            bad_message(token.source);
        }
        self.reply_piece(token, &first, None);
    }

    /// Answers a NEXT: the next piece of the reply to the request from the chunk `base`. With the
    /// `last` one to that chunk the credits of the request return. Another chunk has credits of
    /// its own, which its NEXT names when they return.
    pub(super) fn reply_next(&self, token: &mut ReplyToken, base: u32, last: bool) {
        let Some(reply) = self.stashed_replies.next(token.source, base) else {
            bad_message(token.source)
        };
        let credit = match token.chunk == base {
            true => last.then_some(reply.credit),
            false => Some(token.credit),
        };
        self.reply_piece(token, &reply, credit);
    }

    /// Sends the next piece of a reply.
    fn reply_piece(&self, token: &mut ReplyToken, reply: &StashedReply, credit: Option<u16>) {
        let extent = AmHeader::piece(reply.total, reply.offset);
        self.reply_part(token, &reply.piece(), extent, credit);
    }

    /// Sends a large reply, or a piece of it, whose header has this extent. It returns the credits
    /// of the request whose field was `credit`.
    fn reply_part(
        &self,
        token: &mut ReplyToken,
        m: &Outgoing<'_>,
        extent: u64,
        credit: Option<u16>,
    ) {
        token.replied = true;
        let chunk = token.kit.chunk.expect("a request comes with a chunk for its reply");
        let (credit, low) = match credit {
            Some(credit) => self.credits.reply_field(token.source, credit),
            None => (0, false),
        };
        let (bits, data) = self.large_header(false, m, chunk, extent, credit).pack();
        let to = self.am_target(token.source, bits, token.chunk as usize * CHUNK, data);
        if !self.send_at_once(AmForm::Medium, 0, m, &to) {
            self.reply_from_chunk(AmForm::Medium, 0, m, token, chunk, &to);
        }
        if low {
            self.scavenge();
        }
    }

    /// Sends the data of a reply Long: its long id.
    #[cold]
    #[inline(never)]
    fn put_data_of_reply<U: Upcall>(
        &self,
        up: U,
        token: &mut ReplyToken,
        m: &Outgoing<'_>,
    ) -> u32 {
        let lid = token.chunk | REPLY_LID;
        let outside = self.own_part(m.payload).is_none();
        let slot = if outside { token.kit.tmpmd.take() } else { None };
        token.kit.tickets -= 1;
        self.put_data(up, token.source, TargetMd::RarSrc, m, lid, slot);
        lid
    }

    /// What sends a batch of implicit replies.
    #[inline(always)]
    pub(super) fn kept_sender(&self) -> impl Fn(&KeptReplies) + Copy {
        |kept| self.send_kept(kept)
    }

    /// Sends a batch of implicit replies: as one message if the network takes it within the
    /// call, otherwise as messages that leave together.
    #[inline(always)]
    fn send_kept(&self, kept: &KeptReplies) {
        let Some((&first, others)) = kept.chunks().split_first() else { return };
        let (credit, _) = self.credits.reply_field(kept.to, kept.credits as u16);
        let header = |args: &[i32], credit| {
            AmHeader {
                form: AmForm::Short,
                request: false,
                may_wait: false,
                copy: false,
                handler: 0,
                numargs: args.len() as u8,
                chunk: 0,
                source: self.me,
                extent: 0,
                credit,
            }
            .pack()
        };
        let to = |(bits, data), chunk: i32| {
            self.am_target(kept.to, bits, chunk as u32 as usize * CHUNK, data)
        };
        let m = Outgoing::short(0, others);
        if self.send_at_once(AmForm::Short, 0, &m, &to(header(others, credit), first)) {
            return;
        }
        self.together(&mut || {
            // The credits come last: they are in use as long as any of the chunks.
            for (i, &chunk) in kept.chunks().iter().enumerate().rev() {
                let to = to(header(&[], if i == 0 { credit } else { 0 }), chunk);
                let nothing = self.reqsb.silent_part(0, 0);
                self.portals.put(nothing, false, &to).unwrap_or_else(|e| broken(e));
            }
        });
    }
}
