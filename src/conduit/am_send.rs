//! Sending active messages: requests, which need credits, a ReqSB chunk and, for data that goes apart, a send ticket, and
//! replies, which need nothing that is not in their token already.
//!
//! Order of taking: credits, chunk (waiting for either with full polls, since both come back through replies, which
//! peers that wait like us send from their full polls), then TMPMD, then the ticket (SAFE polls, since both come back
//! through our own events). Whoever holds a later one never waits for an earlier one, so no circle can close.
//!
//! Only what has to say when it has left has an event at its sender: the data of a Long, and a reply that leaves a RplSB chunk, unless
//! the network sends it within the call. A request's reply says as much of the request, and a reply without arguments is all header.
//!
//! Layout of a message: arguments, payload, destination address (a Long whose payload is packed), each padded to 8
//! bytes. So a payload is as much aligned as its message, and the next request in a receive buffer is aligned. Up to 32 bytes of arguments and
//! payload travel in the message's event, where the network can do that: to ReqHdr or, a reply, to a chunk that the header names.

use super::credits;
use super::match_bits::{self, AmForm, AmHeader, LENGTHS, PLACES, REPLY_LID, TargetMd};
use super::portals::{InlineBody, Portals, PortalsId};
use super::queue::broken;
use super::rar::Rar;
use super::{CHUNK, Category, Conduit, MAX_ARGS, Outgoing, ReplyToken, ResourceNeed, Upcall};
use crate::client_memory::{RemoteRange, Src};
use crate::fault;
use crate::rank::JobRank;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use sys::hint::cold_path;

/// Largest Medium: what a chunk holds beside the most arguments.
const MAX_MEDIUM: usize = CHUNK - MAX_ARGS * size_of::<i32>();

/// The least payload of a Long, in bytes, for which a put of its own through Portals costs less than to copy it out of a receive buffer.
const PUT_APART: usize = 256;

/// Bytes of the arguments, padded.
#[inline]
pub(super) const fn args_bytes(numargs: usize) -> usize {
    (numargs * size_of::<i32>()).next_multiple_of(8)
}

/// Bytes of the address that a packed Long carries.
pub(super) const ADDRESS: usize = size_of::<u64>();

/// How a message travels.
#[derive(Clone, Copy)]
struct SendPlan {
    form: AmForm,
    /// Bytes of its header message.
    len: usize,
    /// [`AmHeader::place`]
    place: u64,
}

impl<P: Portals> Conduit<P> {
    /// Largest Medium payload in bytes.
    pub fn max_medium(&self) -> usize {
        MAX_MEDIUM
    }

    /// Largest Long request payload in bytes.
    pub fn max_long_request(&self) -> usize {
        self.config.max_transfer
    }

    /// Largest Long reply payload in bytes.
    pub fn max_long_reply(&self) -> usize {
        self.config.max_transfer
    }

    /// How a message travels whose payload is not at its place. A Long without payload has nothing to send apart.
    #[inline(always)]
    fn way(&self, m: &Outgoing<'_>) -> SendPlan {
        let args = args_bytes(m.args.len());
        let (form, len) = match m.category {
            Category::Short => (AmForm::Short, args),
            Category::Medium => (AmForm::Medium, args + m.nbytes),
            Category::Long => {
                let packed = args + m.nbytes.next_multiple_of(8) + ADDRESS;
                if m.nbytes == 0 || (m.nbytes <= self.config.packed_limit && packed <= CHUNK) {
                    (AmForm::Packed, packed)
                } else {
                    (AmForm::Unpacked, args)
                }
            }
        };
        SendPlan { form, len, place: 0 }
    }

    /// How a message travels, its payload being on its way. Where a put is complete when its call returns, the header of a Long says where its
    /// payload belongs. A short one travels in the event; any other is put to its place at once: between processes that map each other's
    /// segments by a plain copy, as any put is. Payloads of 16 MB and more, and places from 64 GB on, no header tells of.
    ///
    /// # Safety
    /// As [`Conduit::request`].
    #[inline(always)]
    unsafe fn place(&self, node: u32, m: &Outgoing<'_>) -> SendPlan {
        if m.category == Category::Long && self.config.at_once {
            let near = !m.near.is_null();
            let lands = m.nbytes != 0
                && m.nbytes <= self.config.packed_limit
                && node != self.me
                && Self::fits_inline(AmForm::Landing, m);
            let least = if near || lands { 1 } else { PUT_APART };
            if (least..LENGTHS).contains(&m.nbytes) {
                let (args, place) =
                    (args_bytes(m.args.len()), self.rar().remote(node, m.dest, m.nbytes) as u64);
                if place < PLACES && lands {
                    return SendPlan { form: AmForm::Landing, len: args + m.nbytes, place };
                }
                // SAFETY: as the caller vouches, the source is readable, and the destination lies in a segment. The message that tells
                // of the bytes is published after them.
                if place < PLACES && unsafe { self.put_to_place(near, node, m) } {
                    return SendPlan { form: AmForm::Placed, len: args, place };
                }
            }
        }
        self.way(m)
    }

    /// Puts the payload of a Long to its place, by a plain copy if that is `near`; false, and nothing done, if there is no such way.
    ///
    /// # Safety
    /// As [`Conduit::request`].
    #[inline(always)]
    unsafe fn put_to_place(&self, near: bool, node: u32, m: &Outgoing<'_>) -> bool {
        if near {
            // SAFETY: as the caller vouches.
            unsafe { core::ptr::copy(m.src, m.near, m.nbytes) };
            return true;
        }
        let offset = self.rar().remote(node, m.dest, m.nbytes);
        let dst = RemoteRange::unmapped(JobRank(node), offset, m.nbytes);
        // SAFETY: as above.
        self.put_at_once(dst, unsafe { Src::new(m.src, m.nbytes) })
    }

    /// Sends a request. Waits for credits, a chunk and tickets, running handlers meanwhile; never from inside a
    /// handler.
    ///
    /// # Safety
    /// `m.src` must be readable for `m.nbytes` bytes; with `source_stays`, until the job knows that the message has
    /// been handled. The destination of a Long must lie in the segment of `node`.
    // What goes out of line takes a copy of the message: so the message itself is never put together in memory.
    #[inline(always)]
    pub unsafe fn request<U: Upcall>(&self, up: U, node: u32, m: &Outgoing<'_>) {
        debug_assert!(
            m.args.len() <= MAX_ARGS && (m.category != Category::Medium || m.nbytes <= MAX_MEDIUM)
        );
        debug_assert!(!self.in_handler(up), "a request from inside a handler");
        if m.category == Category::Medium && m.nbytes >= self.outbox.least {
            // SAFETY: as the caller vouches.
            return unsafe { self.request_large(up, node, &{ *m }) };
        }
        // SAFETY: as the caller vouches.
        unsafe { self.request_along(up, node, m) }
    }

    /// Sends a request whose payload stays in the outbox if it can.
    ///
    /// # Safety
    /// As [`Conduit::request`].
    #[inline(never)]
    unsafe fn request_large<U: Upcall>(&self, up: U, node: u32, m: &Outgoing<'_>) {
        // SAFETY: as the caller vouches.
        match unsafe { self.leave(node, m.src, m.nbytes) } {
            Some(place) => {
                let way = SendPlan { form: AmForm::Outbox, len: args_bytes(m.args.len()), place };
                // SAFETY: as the caller vouches.
                unsafe { self.request_this_way(up, node, m, way) }
            }
            // SAFETY: as the caller vouches.
            None => unsafe { self.request_along(up, node, m) },
        }
    }

    /// Sends a request, the payload of a Medium with it.
    ///
    /// # Safety
    /// As [`Conduit::request`].
    #[inline(always)]
    unsafe fn request_along<U: Upcall>(&self, up: U, node: u32, m: &Outgoing<'_>) {
        // To ask for the line of arguments alone gains nothing, and a Long in one message is seldom.
        if m.category == Category::Medium && !Self::fits_inline(AmForm::Medium, m) {
            let bytes = args_bytes(m.args.len()) + m.nbytes;
            self.portals.about_to_put(
                self.peers[node as usize],
                self.config.pt_am,
                TargetMd::ReqRb as u64,
                bytes,
            );
        }
        // SAFETY: as the caller vouches.
        unsafe { self.request_this_way(up, node, m, self.place(node, m)) }
    }

    /// Sends a request.
    ///
    /// # Safety
    /// As [`Conduit::request`].
    #[inline(always)]
    unsafe fn request_this_way<U: Upcall>(
        &self,
        up: U,
        node: u32,
        m: &Outgoing<'_>,
        way: SendPlan,
    ) {
        match self.credits.take(node, credits_for(way.form, way.len)) {
            // SAFETY: as the caller vouches.
            Some(taken) => unsafe {
                self.send_request(
                    up,
                    node,
                    m,
                    way,
                    taken.byte(0),
                    self.implicit.may_wait(taken.left()),
                )
            },
            // SAFETY: as above.
            None => unsafe { self.request_later(up, node, &{ *m }, way) },
        }
    }

    /// Sends a request when there are credits for it. A packed Long that cannot be sent goes as two messages if that needs fewer.
    ///
    /// # Safety
    /// As [`Conduit::request`].
    #[cold]
    #[inline(never)]
    unsafe fn request_later<U: Upcall>(&self, up: U, node: u32, m: &Outgoing<'_>, way: SendPlan) {
        let credits = credits_for(way.form, way.len);
        let short = self.credits.stall(node, credits);
        self.stats.credit_stalls.fetch_add(1, Ordering::Relaxed);
        let args = args_bytes(m.args.len());
        let need = ResourceNeed { what: &"a request for credits", peer: Some(node) };
        let (way, taken) = self.wait_full(up, need, || {
            if let Some(taken) = self.credits.take(node, credits) {
                return Some((way, taken));
            }
            let fewer = credits_for(AmForm::Unpacked, args);
            if way.form != AmForm::Packed || m.nbytes == 0 || fewer >= credits {
                return None;
            }
            let apart = SendPlan { form: AmForm::Unpacked, len: args, place: 0 };
            self.credits.take(node, fewer).map(|taken| (apart, taken))
        });
        // SAFETY: as the caller vouches.
        unsafe { self.send_request(up, node, m, way, taken.byte(short), false) };
    }

    /// Sends a request that has its credits, which the byte tells of, and whose implicit reply may wait or not.
    ///
    /// # Safety
    /// As [`Conduit::request`].
    #[inline(always)]
    unsafe fn send_request<U: Upcall>(
        &self,
        up: U,
        node: u32,
        m: &Outgoing<'_>,
        SendPlan { form, len, place }: SendPlan,
        credit: u8,
        may_wait: bool,
    ) {
        let chunk = self.reqsb.take().unwrap_or_else(|| self.wait_chunk(up));
        let offset = chunk * CHUNK as u32;
        let length = if form == AmForm::Unpacked {
            cold_path();
            // SAFETY: as the caller vouches.
            unsafe { self.data_of_request(up, node, &{ *m }, offset) };
            offset
        } else {
            m.nbytes as u32
        };
        if form == AmForm::Outbox {
            self.outbox.note(chunk, place);
        }
        let header = AmHeader {
            form,
            request: true,
            may_wait,
            copy: form == AmForm::Outbox && self.config.par(),
            handler: m.handler,
            numargs: m.args.len() as u8,
            chunk: offset,
            source: self.me,
            length,
            credit,
            place,
        };
        let (bits, data) = header.pack();
        debug_assert!(len == 0 || bits & !match_bits::IGNORE != TargetMd::ReqHdr as u64);
        self.reply_prefetch.expect_at(self.reqsb.at(chunk));
        if !(fault::on("drop_am") && every_64th()) {
            let to = self.peers[node as usize];
            // SAFETY: the payload is readable, as the caller vouches.
            if !unsafe {
                self.send_inline(form, m, to, AmHeader::inline_request(bits), data)
                    || self.send_at_once(form, m, to, bits, 0, data)
            } {
                // SAFETY: `form` keeps the message within a chunk, and this one is ours; the payload is readable.
                unsafe {
                    self.send_from_chunk(
                        form,
                        &{ *m },
                        to,
                        chunk,
                        len.next_multiple_of(8),
                        bits,
                        data,
                    )
                };
            }
        }
        if form == AmForm::Unpacked && !m.source_stays {
            self.wait_local(up);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_chunk<U: Upcall>(&self, up: U) -> u32 {
        self.wait_full(up, ResourceNeed::of(&"a request for a send buffer"), || self.reqsb.take())
    }

    /// Whether a message has a body that may travel in its event.
    #[inline(always)]
    fn fits_inline(form: AmForm, m: &Outgoing<'_>) -> bool {
        let (args, room) = (args_bytes(m.args.len()), size_of::<InlineBody>());
        P::INLINES
            && match form {
                AmForm::Short | AmForm::Placed | AmForm::Outbox => args != 0 && args <= room,
                AmForm::Medium | AmForm::Landing => args + m.nbytes <= room,
                AmForm::Packed | AmForm::Unpacked => false,
            }
    }

    /// Sends the body of a message in its event, if there is one that fits and the network can; false, and nothing done, otherwise.
    ///
    /// # Safety
    /// The payload is readable.
    #[inline(always)]
    pub(super) unsafe fn send_inline(
        &self,
        form: AmForm,
        m: &Outgoing<'_>,
        to: PortalsId,
        bits: u64,
        data: u64,
    ) -> bool {
        if !Self::fits_inline(form, m) {
            return false;
        }
        if !self.config.at_once {
            cold_path();
            return false;
        }
        // SAFETY: it fits; the payload is readable, as the caller vouches.
        let body = unsafe { inline_body(form, m) };
        self.portals.put_inline(&body, to, self.config.pt_am, bits, data)
    }

    /// Sends the body of a message within the call, from where its parts are, if that is possible; false, and nothing done,
    /// otherwise. It is as long as [`write_body`] makes it, or up to 7 bytes longer, so that the next one in a receive buffer is
    /// aligned.
    ///
    /// # Safety
    /// The payload is readable.
    #[inline(always)]
    pub(super) unsafe fn send_at_once(
        &self,
        form: AmForm,
        m: &Outgoing<'_>,
        to: PortalsId,
        bits: u64,
        at: usize,
        data: u64,
    ) -> bool {
        if !self.config.at_once {
            cold_path();
            return false;
        }
        let mut words = [MaybeUninit::<u64>::uninit(); MAX_ARGS / 2 + 1];
        // SAFETY: there is room for the most arguments and an address.
        unsafe { write_body(words.as_mut_ptr().cast(), form, &Outgoing { nbytes: 0, ..*m }) };
        // A packed address stands behind the payload; where there is none, behind the arguments.
        let packed = form == AmForm::Packed;
        let address = if packed && m.nbytes == 0 { ADDRESS } else { 0 };
        let head = (words.as_ptr().cast(), args_bytes(m.args.len()) + address);
        let pt = self.config.pt_am;
        if !has_payload(form) || m.nbytes == 0 {
            // SAFETY: an array of ours, so many words of which have been written.
            return unsafe { self.portals.put_at_once([head], to, pt, bits, at, data) };
        }
        let (whole, rest) = (m.nbytes & !7, m.nbytes & 7);
        let mut last = [0u64; 2];
        let mut filled = 0;
        if rest != 0 {
            // SAFETY: the bytes of the payload behind its last whole word.
            unsafe {
                core::ptr::copy_nonoverlapping(m.src.add(whole), last.as_mut_ptr().cast(), rest)
            };
            filled = 1;
        }
        if packed {
            last[filled] = m.dest as u64;
            filled += 1;
        }
        let last = (last.as_ptr().cast(), filled * size_of::<u64>());
        // SAFETY: as above, and the payload.
        unsafe { self.portals.put_at_once([head, (m.src, whole), last], to, pt, bits, at, data) }
    }

    /// Sends `bytes` bytes of a request from its chunk.
    ///
    /// # Safety
    /// We hold the chunk, and the message has room in it; the payload is readable.
    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn send_from_chunk(
        &self,
        form: AmForm,
        m: &Outgoing<'_>,
        to: PortalsId,
        chunk: u32,
        bytes: usize,
        bits: u64,
        data: u64,
    ) {
        // SAFETY: as the caller vouches.
        unsafe { write_body(self.reqsb.at(chunk), form, m) };
        let (md, offset) = (self.reqsb.silent, chunk as usize * CHUNK);
        self.portals
            .put(md, offset, bytes, false, to, self.config.pt_am, bits, 0, data)
            .unwrap_or_else(|e| broken(e));
    }

    /// Sends the data of a request Long.
    ///
    /// # Safety
    /// As [`Conduit::request`].
    #[inline(never)]
    unsafe fn data_of_request<U: Upcall>(&self, up: U, node: u32, m: &Outgoing<'_>, lid: u32) {
        let rar = self.rar();
        let slot = match rar.local(m.src, m.nbytes) {
            Some(_) => None,
            None => Some(self.wait_safe(
                up,
                ResourceNeed::of(&"a request for a memory descriptor"),
                || self.tmpmd.take(),
            )),
        };
        self.wait_safe(up, ResourceNeed::of(&"a request for a send ticket"), || {
            self.tickets.take(1)
        });
        // SAFETY: as the caller vouches.
        unsafe { self.send_data(up, rar, node, TargetMd::RarAm, m, lid, slot) };
    }

    /// Sends the data of a Long; the caller has a ticket for it, and a TMPMD if the source is outside the segment.
    ///
    /// # Safety
    /// As [`Conduit::request`].
    #[allow(clippy::too_many_arguments)]
    unsafe fn send_data<U: Upcall>(
        &self,
        up: U,
        rar: &Rar<P>,
        node: u32,
        target: TargetMd,
        m: &Outgoing<'_>,
        lid: u32,
        slot: Option<u32>,
    ) {
        let local = (!m.source_stays).then(|| up.thread() as u8);
        if local.is_some() {
            self.expect_local(up);
        }
        let (md, offset) = match slot {
            // SAFETY: the source stays until the SEND event, the only one of this descriptor, which is only a source.
            Some(s) => {
                (unsafe { self.tmpmd.bind(&self.portals, s, m.src.cast_mut(), m.nbytes, 1) }, 0)
            }
            None => (rar.src, rar.remote(self.me, m.src, m.nbytes)),
        };
        let remote = rar.remote(node, m.dest, m.nbytes);
        let bits = match_bits::am_data(target, local);
        let data = match_bits::lid(self.me, lid);
        self.portals
            .put(
                md,
                offset,
                m.nbytes,
                false,
                self.peers[node as usize],
                self.config.pt_rar,
                bits,
                remote,
                data,
            )
            .unwrap_or_else(|e| broken(e));
        if let Some(s) = slot {
            self.tmpmd.done(&self.portals, s);
        }
    }

    /// Sends the reply of the request handler that holds `token`. Waits for nothing but, without `source_stays`, the
    /// departure of a Long's data, and runs no handler meanwhile.
    ///
    /// # Safety
    /// As [`Conduit::request`].
    ///
    /// # Panics
    /// The second time with the same token.
    #[inline(always)]
    pub unsafe fn reply<U: Upcall>(&self, up: U, token: &mut ReplyToken, m: &Outgoing<'_>) {
        debug_assert!(
            m.args.len() <= MAX_ARGS && (m.category != Category::Medium || m.nbytes <= MAX_MEDIUM)
        );
        assert!(!token.replied, "a request handler replies once");
        token.replied = true;
        // SAFETY: as the caller vouches.
        let SendPlan { form, len, place } = unsafe { self.place(token.source, m) };
        let chunk = token.kit.chunk.expect("a request comes with a chunk for its reply");
        let length = if form == AmForm::Unpacked {
            cold_path();
            // SAFETY: as the caller vouches.
            unsafe { self.data_of_reply(up, token, &{ *m }) }
        } else {
            m.nbytes as u32
        };
        let (credit, low) = self.credits.reply_byte(token.source, token.credit);
        let header = AmHeader {
            form,
            request: false,
            may_wait: false,
            copy: false,
            handler: m.handler,
            numargs: m.args.len() as u8,
            chunk: chunk * CHUNK as u32,
            source: self.me,
            length,
            credit,
            place,
        };
        let (bits, data) = header.pack();
        let (to, at) = (self.peers[token.source as usize], token.chunk as usize);
        // SAFETY: the payload is readable, as the caller vouches.
        if !unsafe {
            self.send_inline(form, m, to, AmHeader::inline_reply(bits, token.chunk), data)
                || self.send_at_once(form, m, to, bits, at, data)
        } {
            // SAFETY: `form` keeps the message within a chunk, and this one is ours; the payload is readable.
            unsafe { self.reply_from_chunk(form, len, &{ *m }, token, chunk, bits, data) };
        }
        if low {
            cold_path();
            self.scavenge();
        }
        if form == AmForm::Unpacked && !m.source_stays {
            self.wait_local(up);
        }
    }
}

impl<P: Portals> Conduit<P> {
    /// Sends the data of a reply Long: its long id.
    ///
    /// # Safety
    /// As [`Conduit::request`].
    #[inline(never)]
    unsafe fn data_of_reply<U: Upcall>(
        &self,
        up: U,
        token: &mut ReplyToken,
        m: &Outgoing<'_>,
    ) -> u32 {
        let rar = self.rar();
        let lid = token.chunk | REPLY_LID;
        let slot =
            if rar.local(m.src, m.nbytes).is_some() { None } else { token.kit.tmpmd.take() };
        token.kit.tickets -= 1;
        // SAFETY: as the caller vouches.
        unsafe { self.send_data(up, rar, token.source, TargetMd::RarSrc, m, lid, slot) };
        lid
    }

    /// Sends a reply of `len` bytes from its chunk, which goes with a ticket until the SEND event.
    ///
    /// # Safety
    /// The chunk is that of the token's kit, and the message has room in it; the payload is readable.
    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn reply_from_chunk(
        &self,
        form: AmForm,
        len: usize,
        m: &Outgoing<'_>,
        token: &mut ReplyToken,
        chunk: u32,
        bits: u64,
        data: u64,
    ) {
        // SAFETY: as the caller vouches.
        unsafe { write_body(self.rplsb.at(chunk), form, m) };
        let (md, from) = if len == 0 {
            (self.reqsb.silent, 0)
        } else {
            token.kit.chunk = None;
            token.kit.tickets -= 1;
            (self.rplsb.md, chunk as usize * CHUNK)
        };
        let (to, at) = (self.peers[token.source as usize], token.chunk as usize);
        self.portals
            .put(md, from, len, false, to, self.config.pt_am, bits, at, data)
            .unwrap_or_else(|e| broken(e));
    }
}

/// Credits that a request uses: its header's, and one for the event of a Long's data.
#[inline(always)]
fn credits_for(form: AmForm, len: usize) -> u32 {
    const { assert!(args_bytes(MAX_ARGS) <= credits::CREDIT_BYTES) };
    match form {
        AmForm::Short => 1,
        _ => credits::needed(len) + u32::from(form == AmForm::Unpacked),
    }
}

/// Whether the payload travels in the body.
#[inline(always)]
fn has_payload(form: AmForm) -> bool {
    matches!(form, AmForm::Medium | AmForm::Packed | AmForm::Landing)
}

/// The arguments, and the payload if that travels with them, behind each other as in any body. What [`write_body`] writes goes through
/// memory, which costs 56 instructions and 8 % of the time of a Short with 8 arguments, there and back; this stays in registers.
///
/// # Safety
/// [`Conduit::fits_inline`] says so; the payload is readable.
#[inline(always)]
unsafe fn inline_body(form: AmForm, m: &Outgoing<'_>) -> InlineBody {
    let mut body = InlineBody::default();
    let mut words = body.iter_mut();
    for (pair, word) in m.args.chunks(2).zip(&mut words) {
        let second = if pair.len() == 2 { pair[1] } else { 0 };
        // SAFETY: as many bytes, of which any are a number.
        *word = unsafe { core::mem::transmute::<[i32; 2], u64>([pair[0], second]) };
    }
    if has_payload(form) {
        let (whole, rest) = (m.nbytes & !7, m.nbytes & 7);
        for (i, word) in (0..whole).step_by(size_of::<u64>()).zip(&mut words) {
            // SAFETY: a word of the payload.
            *word = unsafe { m.src.add(i).cast::<u64>().read_unaligned() };
        }
        if rest != 0
            && let Some(word) = words.next()
        {
            // SAFETY: the bytes of the payload behind its last whole word, of which there are fewer than eight.
            unsafe {
                core::ptr::copy_nonoverlapping(m.src.add(whole), ptr::from_mut(word).cast(), rest)
            };
        }
    }
    body
}

/// Writes the arguments, and what follows them in this form, at `to`; padding is zero.
///
/// # Safety
/// `to` is 8-byte aligned and has room for the message and its padding; the payload is readable.
#[inline(always)]
unsafe fn write_body(to: *mut u8, form: AmForm, m: &Outgoing<'_>) {
    // SAFETY: there is room for it all, as the caller says, and neither arguments nor payload lie in a chunk that the
    // caller has just taken.
    unsafe {
        let mut to = to;
        for pair in m.args.chunks(2) {
            // Volatile, or else it is a call of memcpy, which costs more than so few words.
            to.cast::<[i32; 2]>()
                .write_volatile([pair[0], if pair.len() == 2 { pair[1] } else { 0 }]);
            to = to.add(size_of::<[i32; 2]>());
        }
        if has_payload(form) && m.nbytes != 0 {
            to.add((m.nbytes - 1) & !7).cast::<u64>().write(0);
            core::ptr::copy_nonoverlapping(m.src, to, m.nbytes);
            to = to.add(m.nbytes.next_multiple_of(8));
        }
        if form == AmForm::Packed {
            to.cast::<u64>().write(m.dest as u64);
        }
    }
}

/// A planted fault's clock.
fn every_64th() -> bool {
    static SENT: AtomicU32 = AtomicU32::new(0);
    SENT.fetch_add(1, Ordering::Relaxed) % 64 == 63
}
