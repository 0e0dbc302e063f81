//! What an unknown Portals must show of itself before the conduit relies on it: a few bytes put to ourselves and fetched back,
//! over descriptors of each kind that the conduit has.
//!
//! Called when a libportals is opened, before anybody can send to us. What is merely a habit is found out and told
//! ([`Findings`]); what the conduit cannot work with, and what tells that the loaded library is not the one of the header
//! that it was compiled with, is refused with a line that says what is wrong.

use super::{
    EntryPosition, EqResult, InlineBody, MdEvent, MdEventKind, MdFlags, MdSpec, OpenError,
    Portals, PortalsError,
};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use sys::{clock, thread};

/// Habits of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Findings {
    /// Whether REPLY events have the match bits of their get.
    pub echoes_match_bits: bool,
}

/// Nothing takes that long between a process and itself.
const PATIENCE_NS: u64 = 10_000_000_000;
const EVENTS: usize = 64;
/// Where the bytes are in source and target, in words, where the initiator says so.
const SOURCE_WORD: usize = 1;
const TARGET_WORD: usize = 2;
const WORDS: usize = 4;
const WORD: usize = size_of::<u64>();
/// Match bits that count are the low ones; they tell which descriptors are meant.
const IGNORE: u64 = !0xf;
const BITS: u64 = 0x8123_4567_89ab_cd40;
const HDR_DATA: u64 = 0xf0e1_d2c3_b4a5_9687;
const VALUE: u64 = 0xa55a_1234_c33c_5678;

/// [`MdEvent::user`] of a descriptor: what it is for.
#[derive(Clone, Copy)]
enum User {
    /// Where our bytes are.
    Source = 0xa1,
    /// Is used up by the first put, and goes with an UNLINK event.
    Limited,
    /// Is behind `Limited` with the same match bits; takes what is there and acknowledges nothing.
    Basin,
    /// Takes puts only.
    Puts,
    /// Is behind `Puts` with the same match bits and takes gets only.
    Gets,
    /// Has a queue, and posts nothing.
    Silent,
    /// Has no queue.
    Queueless,
    /// Has no bytes.
    Empty,
}

/// The low match bits of the descriptors.
const LIMITED: u64 = 0xe;
const ONE_WAY: u64 = 0xd;
const SILENT: u64 = 0xb;
const QUEUELESS: u64 = 0x7;
const EMPTY: u64 = 0x6;

/// Puts a few bytes to ourselves and fetches them back, over this portal table entry.
///
/// # Errors
/// What the library does wrong.
pub fn run<P: Portals>(portals: &P, pt: u32) -> Result<Findings, OpenError> {
    let trial =
        Trial::open(portals, pt).map_err(|e| OpenError(format!("a trial of Portals: {e}")))?;
    let findings = trial.run().map_err(|e| OpenError(format!("a trial of Portals: {e}")))?;
    trial.close().map_err(|e| OpenError(format!("a trial of Portals: {e}")))?;
    Ok(findings)
}

/// A descriptor and its memory, [`WORDS`] long.
struct Piece<P: Portals> {
    md: P::Md,
    user: User,
    start: *mut u64,
}

struct Trial<'a, P: Portals> {
    portals: &'a P,
    pt: u32,
    eq: P::Eq,
    source: Piece<P>,
    targets: Vec<Piece<P>>,
}

fn words() -> *mut u64 {
    Box::into_raw(Box::new([0u64; WORDS])).cast()
}

impl<'a, P: Portals> Trial<'a, P> {
    fn open(portals: &'a P, pt: u32) -> Result<Self, PortalsError> {
        let eq = portals.eq_alloc(EVENTS)?;
        let flags = MdFlags { event_start_disable: true, ..MdFlags::default() };
        let remote = MdFlags { manage_remote: true, ..flags };
        let spec = |user: User, flags: MdFlags| MdSpec {
            start: words().cast(),
            length: WORDS * WORD,
            max_size: None,
            flags,
            user: user as usize,
            eq: Some(eq),
        };
        let from = spec(User::Source, flags);
        // SAFETY: the words are only freed after the descriptor is gone.
        let md = unsafe { portals.md_bind(&from)? };
        let source = Piece { md, user: User::Source, start: from.start.cast() };
        let mut this = Trial { portals, pt, eq, source, targets: Vec::new() };
        let basin = MdFlags { op_put: true, truncate: true, ack_disable: true, ..flags };
        let basin = MdSpec { length: WORD, ..spec(User::Basin, basin) };
        let basin = this.attach(EntryPosition::Tail(pt), LIMITED, User::Basin, &basin, false)?;
        let limited = spec(User::Limited, MdFlags { op_put: true, ..flags });
        let limited = MdSpec { length: 2 * WORD, max_size: Some(WORD + 1), ..limited };
        this.attach(EntryPosition::Before(basin), LIMITED, User::Limited, &limited, true)?;
        let puts = spec(User::Puts, MdFlags { op_put: true, ..remote });
        this.attach(EntryPosition::Head(pt), ONE_WAY, User::Puts, &puts, false)?;
        let gets = spec(User::Gets, MdFlags { op_get: true, ..remote });
        this.attach(EntryPosition::Tail(pt), ONE_WAY, User::Gets, &gets, false)?;
        let silent = MdFlags { op_put: true, event_end_disable: true, ..remote };
        this.attach(
            EntryPosition::Head(pt),
            SILENT,
            User::Silent,
            &spec(User::Silent, silent),
            false,
        )?;
        let queueless =
            MdSpec { eq: None, ..spec(User::Queueless, MdFlags { op_put: true, ..remote }) };
        this.attach(EntryPosition::Head(pt), QUEUELESS, User::Queueless, &queueless, false)?;
        let empty = spec(User::Empty, MdFlags { op_put: true, ack_disable: true, ..remote });
        this.attach(
            EntryPosition::Tail(pt),
            EMPTY,
            User::Empty,
            &MdSpec { length: 0, ..empty },
            false,
        )?;
        Ok(this)
    }

    fn attach(
        &mut self,
        place: EntryPosition<P::Me>,
        low_bits: u64,
        user: User,
        spec: &MdSpec<P::Eq>,
        unlink: bool,
    ) -> Result<P::Me, PortalsError> {
        let me = self.portals.me_attach(place, low_bits, IGNORE, true)?;
        // SAFETY: the words are only freed after the descriptor is gone.
        let md = unsafe { self.portals.md_attach(me, spec, unlink)? };
        self.targets.push(Piece { md, user, start: spec.start.cast() });
        Ok(me)
    }

    fn run(&self) -> Result<Findings, String> {
        use MdEventKind::{Ack, GetEnd, PutEnd, ReplyEnd, SendEnd, Unlink};
        let with = |what: &'static str| move |e: String| format!("with {what}: {e}");
        // SAFETY: no operation is under way.
        unsafe { self.source.start.add(SOURCE_WORD).write_volatile(VALUE) };

        let limited = "PTL_MD_MAX_SIZE and PTL_UNLINK, before another by PTL_INS_BEFORE";
        let [_, arrived, unlinked] =
            self.put(LIMITED, 1, false, [SendEnd, PutEnd, Unlink]).map_err(with(limited))?;
        self.arrived(&arrived, User::Limited, LIMITED, 0).map_err(with(limited))?;
        wants(&unlinked, "md.user_ptr", unlinked.user as u64, User::Limited as u64)
            .map_err(with(limited))?;

        let basin = "PTL_MD_TRUNCATE and PTL_MD_ACK_DISABLE";
        let [_, arrived] = self.put(LIMITED, 2, true, [SendEnd, PutEnd]).map_err(with(basin))?;
        self.arrived(&arrived, User::Basin, LIMITED, 0).map_err(with(basin))?;

        let puts = "PTL_MD_OP_PUT and PTL_MD_MANAGE_REMOTE";
        let [sent, arrived, ack] =
            self.put(ONE_WAY, 1, true, [SendEnd, PutEnd, Ack]).map_err(with(puts))?;
        self.arrived(&arrived, User::Puts, ONE_WAY, TARGET_WORD).map_err(with(puts))?;
        for e in [sent, ack] {
            self.came_of(&e, User::Source, ONE_WAY).map_err(with(puts))?;
        }
        wants(&ack, "mlength", ack.mlength as u64, WORD as u64).map_err(with(puts))?;

        for (what, user, bits) in [
            ("PTL_MD_EVENT_END_DISABLE", User::Silent, SILENT),
            ("PTL_EQ_NONE", User::Queueless, QUEUELESS),
        ] {
            self.put(bits, 1, true, [SendEnd, Ack]).map_err(with(what))?;
            self.same(self.target(user), TARGET_WORD, "put").map_err(with(what))?;
        }

        let empty = "a descriptor without bytes";
        self.portals
            .put(
                self.source.md,
                0,
                0,
                false,
                self.portals.id(),
                self.pt,
                BITS | EMPTY,
                0,
                HDR_DATA,
            )
            .map_err(|e| with(empty)(format!("{e}")))?;
        let [_, arrived] = self.events([SendEnd, PutEnd], None).map_err(with(empty))?;
        self.came_of(&arrived, User::Empty, EMPTY).map_err(with(empty))?;
        wants(&arrived, "hdr_data", arrived.hdr_data, HDR_DATA).map_err(with(empty))?;
        wants(&arrived, "mlength", arrived.mlength as u64, 0).map_err(with(empty))?;

        let gets = "PTL_MD_OP_GET";
        let (from, me) = (self.source.md, self.portals.id());
        // SAFETY: no operation is under way.
        unsafe {
            self.source.start.add(SOURCE_WORD).write_volatile(0);
            self.target(User::Gets).start.add(TARGET_WORD).write_volatile(VALUE);
        }
        self.portals
            .get(from, SOURCE_WORD * WORD, WORD, me, self.pt, BITS | ONE_WAY, TARGET_WORD * WORD)
            .map_err(|e| format!("{e}"))?;
        let [read, reply] = self.events([GetEnd, ReplyEnd], Some(SendEnd)).map_err(with(gets))?;
        self.came_of(&read, User::Gets, ONE_WAY).map_err(with(gets))?;
        wants(&reply, "md.user_ptr", reply.user as u64, User::Source as u64)
            .map_err(with(gets))?;
        wants(&reply, "mlength", reply.mlength as u64, WORD as u64).map_err(with(gets))?;
        self.same(&self.source, SOURCE_WORD, "get").map_err(with(gets))?;
        // A SEND event of the get, which the specification does not know, may come at any time or never.
        self.events([], Some(SendEnd))?;
        Ok(Findings { echoes_match_bits: reply.match_bits == BITS | ONE_WAY })
    }

    /// The target for this.
    fn target(&self, user: User) -> &Piece<P> {
        let found = self.targets.iter().find(|t| t.user as usize == user as usize);
        found.unwrap_or_else(|| unreachable!("all have been attached"))
    }

    /// Puts so many words, and waits for these events.
    fn put<const N: usize>(
        &self,
        low_bits: u64,
        words: usize,
        ack: bool,
        kinds: [MdEventKind; N],
    ) -> Result<[MdEvent; N], String> {
        let (from, to) = (SOURCE_WORD * WORD, TARGET_WORD * WORD);
        let (md, me, bits) = (self.source.md, self.portals.id(), BITS | low_bits);
        self.portals
            .put(md, from, words * WORD, ack, me, self.pt, bits, to, HDR_DATA)
            .map_err(|e| format!("{e}"))?;
        self.events(kinds, None)
    }

    /// These events, in any order, and no other, except `tolerated`. Of none: what is there now.
    fn events<const N: usize>(
        &self,
        kinds: [MdEventKind; N],
        tolerated: Option<MdEventKind>,
    ) -> Result<[MdEvent; N], String> {
        let mut seen = [None; N];
        let end = clock::now_ns() + PATIENCE_NS;
        loop {
            let missing = seen.iter().position(Option::is_none);
            let e = match (
                self.portals
                    .eq_get(self.eq, &mut InlineBody::default())
                    .map_err(|e| format!("{e}"))?,
                missing,
            ) {
                (EqResult::Event(e), _) => e,
                (EqResult::Empty, None) => break,
                (EqResult::Empty, Some(_)) if clock::now_ns() < end => {
                    thread::yield_now();
                    continue;
                }
                (EqResult::Empty, Some(i)) => return Err(format!("no event {:?} came", kinds[i])),
                (EqResult::AfterLoss(_), _) => {
                    return Err(format!("an event queue of {EVENTS} lost one of a few"));
                }
            };
            match kinds.iter().position(|k| *k == e.kind) {
                Some(i) if seen[i].is_none() => seen[i] = Some(e),
                _ if Some(e.kind) == tolerated => {}
                _ => return Err(format!("an event {:?} came that nobody caused", e.kind)),
            }
        }
        Ok(seen.map(|e| e.unwrap_or_else(|| unreachable!("all have been seen"))))
    }

    /// Whether it is the event of a word that was put to this descriptor.
    fn arrived(&self, e: &MdEvent, user: User, low_bits: u64, at: usize) -> Result<(), String> {
        let to = self.target(user);
        self.came_of(e, user, low_bits)?;
        wants(e, "hdr_data", e.hdr_data, HDR_DATA)?;
        wants(e, "mlength", e.mlength as u64, WORD as u64)?;
        wants(e, "offset", e.offset as u64, (at * WORD) as u64)?;
        wants(e, "md.start", e.start.addr() as u64, to.start.addr() as u64)?;
        self.same(to, at, "put")
    }

    fn came_of(&self, e: &MdEvent, user: User, low_bits: u64) -> Result<(), String> {
        wants(e, "md.user_ptr", e.user as u64, user as u64)?;
        wants(e, "match_bits", e.match_bits, BITS | low_bits)
    }

    fn same(&self, piece: &Piece<P>, word: usize, what: &str) -> Result<(), String> {
        // SAFETY: the word is one of the piece, and was written before the event that we have seen.
        let value = unsafe { piece.start.add(word).read_volatile() };
        if value == VALUE {
            Ok(())
        } else {
            Err(format!("the event of a {what} came before its bytes"))
        }
    }

    fn close(self) -> Result<(), PortalsError> {
        for piece in self.targets.iter().chain([&self.source]) {
            self.portals.md_unlink(piece.md)?;
        }
        self.portals.eq_free(self.eq)?;
        for piece in self.targets.iter().chain([&self.source]) {
            // SAFETY: made by `words`, and its descriptor is gone.
            drop(unsafe { Box::from_raw(piece.start.cast::<[u64; WORDS]>()) });
        }
        Ok(())
    }
}

fn wants(e: &MdEvent, what: &str, is: u64, wanted: u64) -> Result<(), String> {
    if is == wanted {
        return Ok(());
    }
    Err(format!(
        "{what} of an event {:?} is {is:#x} where {wanted:#x} was due; the library does not do what its header says",
        e.kind
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conduit::tests::fake;

    #[test]
    fn habits_are_found_out() {
        let [plain, mute] = [(0, 0), (3, 1)].map(|(laziness, seed)| {
            let nets = fake::net(1, laziness, seed);
            run(&nets[0], 39).expect("sound")
        });
        assert!(plain.echoes_match_bits && !mute.echoes_match_bits);
    }
}
