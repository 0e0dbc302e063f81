//! The body of an active message: its layout, and how it is written.
//!
//! Written by the files that send, read by `am_recv`. Invariant: arguments, payload and
//! destination follow each other, each written in whole 8-byte words. So a payload is as much
//! aligned as its message, and the next request in a receive buffer is aligned.
//!
//! ```text
//!   Short, Unpacked,
//!   Outbox            arguments
//!   Medium, Landing   arguments | payload
//!   Packed            arguments | payload | offset in the segment of the target;
//!                                         | of an empty payload: its address
//!   Placed            arguments | offset in the segment of the target
//! ```

use super::match_bits::AmForm;
use super::memory::{bytes_of, word_at};
use super::message::{MAX_ARGS, Outgoing};
use super::portals::InlineBody;
use crate::client_memory::{Dst, Src};
use core::mem::MaybeUninit;

/// Bytes of the arguments, padded.
#[inline]
pub(super) const fn args_bytes(numargs: usize) -> usize {
    (numargs * size_of::<i32>()).next_multiple_of(8)
}

/// Bytes of the destination that ends the body of some forms.
pub(super) const DESTINATION_BYTES: usize = size_of::<u64>();

/// Bytes of a body with arguments of this length, this payload, and a destination after it.
#[inline(always)]
pub(super) const fn addressed_bytes(args: usize, payload: usize) -> usize {
    args + payload.next_multiple_of(8) + DESTINATION_BYTES
}

/// Whether the payload travels in the body.
#[inline(always)]
pub(super) fn has_payload(form: AmForm) -> bool {
    matches!(form, AmForm::Medium | AmForm::Packed | AmForm::Landing)
}

/// Whether the body ends with the destination of the payload.
#[inline(always)]
pub(super) fn has_destination(form: AmForm) -> bool {
    matches!(form, AmForm::Packed | AmForm::Placed)
}

/// Two arguments, or one and padding, as they stand in memory.
#[inline(always)]
fn pair(args: &[i32]) -> u64 {
    let [first, second] = [args[0], if args.len() == 2 { args[1] } else { 0 }];
    let [first, second] = [u64::from(first as u32), u64::from(second as u32)];
    if cfg!(target_endian = "big") { first << 32 | second } else { second << 32 | first }
}

/// Arguments as they stand in a body, and a destination after them.
pub(super) struct HeadWords {
    words: [MaybeUninit<u64>; MAX_ARGS / 2 + 1],
    /// Words that are initialised.
    len: usize,
}

impl HeadWords {
    #[inline(always)]
    pub(super) const fn new() -> HeadWords {
        HeadWords { words: [const { MaybeUninit::uninit() }; _], len: 0 }
    }

    /// Appends arguments, in place. Words returned by value would be copied right after they
    /// were written, which stalls the copy (22 % of the row `medium_window` at 512 B).
    #[inline(always)]
    pub(super) fn push_args(&mut self, args: &[i32]) {
        for args in args.chunks(2) {
            // SAFETY: a word of the array. Volatile, or else the loop becomes a call of memcpy,
            // which costs more than so few words.
            unsafe { self.words[self.len].as_mut_ptr().write_volatile(pair(args)) };
            self.len += 1;
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, word: u64) {
        self.words[self.len].write(word);
        self.len += 1;
    }

    #[inline(always)]
    pub(super) fn bytes(&self) -> Src<'_> {
        // SAFETY: this many words are initialised; they are borrowed.
        unsafe { Src::new(self.words.as_ptr().cast(), self.len * size_of::<u64>()) }
    }
}

/// A body of at most this many words. They stay in registers. Through memory, there and back, they
/// would cost 56 instructions and 8 % of the time of a Short with 8 arguments (row `short-8`).
#[inline(always)]
pub(super) fn inline_body(form: AmForm, offset: u64, m: &Outgoing<'_>) -> InlineBody {
    let mut body = InlineBody::default();
    let mut words = body.iter_mut();
    for (args, word) in m.args.chunks(2).zip(&mut words) {
        *word = pair(args);
    }
    if has_payload(form) {
        for (at, word) in (0..m.payload.len()).step_by(size_of::<u64>()).zip(&mut words) {
            *word = word_at(m.payload, at);
        }
    }
    if has_destination(form)
        && let Some(word) = words.next()
    {
        *word = offset;
    }
    body
}

/// Writes a body into a chunk that the caller holds: its bytes; padding is zero.
#[inline(always)]
pub(super) fn write_body(chunk: Dst<'_>, form: AmForm, offset: u64, m: &Outgoing<'_>) -> usize {
    let mut len = 0;
    let mut push = |word| {
        chunk.part(len, 8).copy_from(bytes_of(&[word]));
        len += 8;
    };
    m.args.chunks(2).for_each(|args| push(pair(args)));
    let n = m.payload.len();
    if has_payload(form) && n != 0 {
        let padded = n.next_multiple_of(8);
        if padded != n {
            chunk.part(len + padded - 8, 8).fill(0);
        }
        chunk.part(len, n).copy_from(m.payload);
        len += padded;
    }
    if has_destination(form) {
        chunk.part(len, DESTINATION_BYTES).copy_from(bytes_of(&[offset]));
        len += DESTINATION_BYTES;
    }
    len
}
