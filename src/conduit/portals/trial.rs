//! What an unknown Portals must do before the conduit relies on it. A few bytes are put to
//! ourselves and fetched back, over descriptors of each kind that the conduit has.
//!
//! Called when a libportals is opened, before any peer can send to us. Behaviour that the binding
//! can adapt to is returned ([`Findings`]). Behaviour that it cannot work with is an error that
//! names the descriptor and says what is wrong. So is behaviour that shows that the loaded library
//! is not the one of the header.

use super::{
    EntryPosition, EqResult, InlineBody, MdEvent, MdEventKind, MdFlags, MdPart, MdRegion, MdSpec,
    OpenError, Portals, PortalsError, Target,
};
use crate::client_memory::{Dst, Src};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use sys::{clock, thread};

/// Habits of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Findings {
    /// Whether REPLY events have the match bits of their get.
    pub echoes_match_bits: bool,
    /// What the library says to a descriptor without a queue, if it refuses one.
    pub refuses_eq_none: Option<PortalsError>,
}

/// No operation takes that long between a process and itself.
const PATIENCE_NS: u64 = 10_000_000_000;
const EVENTS: usize = 64;
/// Where the bytes are in source and target, in words, if the initiator manages the offset.
const SOURCE_WORD: usize = 1;
const TARGET_WORD: usize = 2;
const WORDS: usize = 4;
const WORD: usize = size_of::<u64>();
/// Only the low match bits count; they select the descriptor.
const IGNORE: u64 = !0xf;
const BITS: u64 = 0x8123_4567_89ab_cd40;
const HDR_DATA: u64 = 0xf0e1_d2c3_b4a5_9687;
const VALUE: u64 = 0xa55a_1234_c33c_5678;

/// [`MdEvent::user`] of a descriptor: what it is for.
#[derive(Clone, Copy)]
enum User {
    /// Where our bytes are.
    Source = 0xa1,
    /// The first put uses it up; an UNLINK event follows.
    Limited,
    /// Behind `Limited` with the same match bits; truncates and acknowledges nothing.
    Basin,
    /// Takes puts only.
    Puts,
    /// Behind `Puts` with the same match bits; takes gets only.
    Gets,
    /// Has a queue, and posts nothing.
    Silent,
    /// Has no queue.
    Queueless,
    /// Has no bytes.
    Empty,
    /// Has no bytes and no queue: where a message of words alone comes from.
    Bare,
    /// Has no bytes and no queue, truncates: what catches puts and gets that come late.
    Catch,
}

impl User {
    /// What distinguishes the descriptor, for a message.
    fn what(self) -> &'static str {
        match self {
            User::Source => "the source of a put",
            User::Limited => "PTL_MD_MAX_SIZE and PTL_UNLINK, before another by PTL_INS_BEFORE",
            User::Basin => "PTL_MD_TRUNCATE and PTL_MD_ACK_DISABLE",
            User::Puts => "PTL_MD_OP_PUT and PTL_MD_MANAGE_REMOTE",
            User::Gets => "PTL_MD_OP_GET",
            User::Silent => "PTL_MD_EVENT_END_DISABLE",
            User::Queueless => "PTL_EQ_NONE",
            User::Empty => "a descriptor without bytes",
            User::Bare => "PTL_EQ_NONE and no bytes",
            User::Catch => {
                "PTL_MD_TRUNCATE and no bytes, as memory that is registered on demand needs it"
            }
        }
    }

    /// An error that names the descriptor.
    fn wrong(self, e: impl core::fmt::Display) -> String {
        format!("with {}: {e}", self.what())
    }
}

/// The low match bits of the descriptors.
const LIMITED: u64 = 0xe;
const ONE_WAY: u64 = 0xd;
const SILENT: u64 = 0xb;
const QUEUELESS: u64 = 0x7;
const EMPTY: u64 = 0x6;
const CATCH: u64 = 0x5;

/// Puts a few bytes to this process and fetches them back, over this portal table entry.
/// `regions`: also to where no byte is accepted, as if a region of registered memory had gone.
///
/// # Errors
/// What the library does wrong.
pub fn run<P: Portals>(portals: &P, pt: u32, regions: bool) -> Result<Findings, OpenError> {
    let mut trial = Trial::open(portals, pt).map_err(failed)?;
    let findings = trial.run().map_err(failed)?;
    if regions && findings.refuses_eq_none.is_none() {
        trial.catch_late(findings.echoes_match_bits).map_err(failed)?;
    }
    trial.close().map_err(failed)?;
    Ok(findings)
}

/// The error of a library that does what the conduit cannot work with.
pub fn failed(what: impl core::fmt::Display) -> OpenError {
    OpenError::new(
        format!("a trial of Portals: {what}"),
        "Build this library with the header of that file; if it was, the file lacks what the \
         conduit needs (docs/guide/libportals.md).",
    )
}

/// A descriptor and its memory, [`WORDS`] long. The memory is never freed: a library that
/// misbehaves may write it later.
struct TrialMd<P: Portals> {
    md: P::Md,
    user: User,
    words: Dst<'static>,
}

/// A descriptor to attach, and the low match bits of its entry.
#[derive(Clone, Copy)]
struct TrialTarget {
    low_bits: u64,
    user: User,
    flags: MdFlags,
    /// Whether it unlinks itself.
    unlink: bool,
}

impl<P: Portals> TrialMd<P> {
    fn write(&self, word: usize, value: u64) {
        self.words.part(word * WORD, WORD).copy_from(Src::from(&value.to_ne_bytes()[..]));
    }

    fn read(&self, word: usize) -> u64 {
        let mut value = [0; WORD];
        Dst::from(&mut value[..]).copy_from(self.words.part(word * WORD, WORD).into());
        u64::from_ne_bytes(value)
    }
}

struct Trial<'a, P: Portals> {
    portals: &'a P,
    pt: u32,
    eq: P::Eq,
    source: TrialMd<P>,
    /// [`User::Bare`], unless it is refused.
    bare: Result<P::Md, PortalsError>,
    targets: Vec<TrialMd<P>>,
}

fn words() -> Dst<'static> {
    Dst::from(alloc::vec![0u8; WORDS * WORD].leak())
}

impl<'a, P: Portals> Trial<'a, P> {
    fn open(portals: &'a P, pt: u32) -> Result<Self, String> {
        let eq = portals.eq_alloc(EVENTS).map_err(|e| format!("{e}"))?;
        let flags = MdFlags { event_start_disable: true, ..MdFlags::default() };
        let remote = MdFlags { manage_remote: true, ..flags };
        let (words, user) = (words(), User::Source);
        let md = portals.md_bind(&spec(words, user, flags, &eq)).map_err(|e| user.wrong(e))?;
        let bare = MdFlags { event_end_disable: true, ..flags };
        let region = MdRegion::EMPTY;
        let bare = MdSpec { region, eq: None, ..spec(words, User::Bare, bare, &eq) };
        let bare = portals.md_bind(&bare);
        let source = TrialMd { md, user, words };
        let mut this = Trial { portals, pt, eq, source, bare, targets: Vec::new() };
        use EntryPosition::{Before, Head, Tail};
        let target = |low_bits, user, flags| TrialTarget { low_bits, user, flags, unlink: false };
        let basin = MdFlags { op_put: true, truncate: true, ack_disable: true, ..flags };
        let basin =
            this.attach(Tail(pt), target(LIMITED, User::Basin, basin), |spec, words| {
                spec.region = words.part(0, WORD).into();
            })?;
        let limited = MdFlags { op_put: true, ..flags };
        this.attach(
            Before(basin),
            TrialTarget { unlink: true, ..target(LIMITED, User::Limited, limited) },
            |spec, words| {
                spec.region = words.part(0, 2 * WORD).into();
                spec.max_size = Some(WORD + 1);
            },
        )?;
        let puts = MdFlags { op_put: true, ..remote };
        this.attach(Head(pt), target(ONE_WAY, User::Puts, puts), |_, _| {})?;
        let gets = MdFlags { op_get: true, ..remote };
        this.attach(Tail(pt), target(ONE_WAY, User::Gets, gets), |_, _| {})?;
        let silent = MdFlags { event_end_disable: true, ..puts };
        this.attach(Head(pt), target(SILENT, User::Silent, silent), |_, _| {})?;
        if let Ok(bare) = this.bare {
            let user = User::Queueless;
            let without = |spec: &mut MdSpec<'_, P::Eq>, _| spec.eq = None;
            if let Err(e) = this.try_attach(Head(pt), target(QUEUELESS, user, puts), without) {
                portals.md_unlink(bare).map_err(|e| User::Bare.wrong(e))?;
                this.bare = Err(e);
            }
        }
        let empty = MdFlags { ack_disable: true, ..puts };
        this.attach(Tail(pt), target(EMPTY, User::Empty, empty), |spec, words| {
            spec.region = words.part(0, 0).into();
        })?;
        Ok(this)
    }

    /// [`Trial::try_attach`]; an error names the descriptor.
    fn attach(
        &mut self,
        position: EntryPosition<P::Me>,
        target: TrialTarget,
        adapt: impl FnOnce(&mut MdSpec<'_, P::Eq>, Dst<'static>),
    ) -> Result<P::Me, String> {
        self.try_attach(position, target, adapt).map_err(|e| target.user.wrong(e))
    }

    /// Attaches a target; `adapt` changes what it is from what most are.
    fn try_attach(
        &mut self,
        position: EntryPosition<P::Me>,
        target: TrialTarget,
        adapt: impl FnOnce(&mut MdSpec<'_, P::Eq>, Dst<'static>),
    ) -> Result<P::Me, PortalsError> {
        let TrialTarget { low_bits, user, flags, unlink } = target;
        let words = words();
        let mut spec = spec(words, user, flags, &self.eq);
        adapt(&mut spec, words);
        let me = self.portals.me_attach(position, low_bits, IGNORE, true)?;
        let attached = self.portals.md_attach(me, &spec, unlink);
        if attached.is_err() {
            self.portals.me_unlink(me)?;
        }
        let md = attached?;
        self.targets.push(TrialMd { md, user, words });
        Ok(me)
    }

    /// The descriptors of ours that these match bits select.
    fn to(&self, low_bits: u64, word: usize) -> Target {
        Target {
            process: self.portals.id(),
            portal: self.pt,
            bits: BITS | low_bits,
            offset: word * WORD,
            hdr_data: HDR_DATA,
        }
    }

    /// This many words of the source.
    fn source(&self, words: usize) -> MdPart<P::Md> {
        MdPart { md: self.source.md, offset: SOURCE_WORD * WORD, len: words * WORD }
    }

    fn run(&self) -> Result<Findings, String> {
        use MdEventKind::{Ack, GetEnd, PutEnd, ReplyEnd, SendEnd, Unlink};
        let with = |user: User| move |e: String| user.wrong(e);
        self.source.write(SOURCE_WORD, VALUE);

        let limited = with(User::Limited);
        let [_, arrived, unlinked] =
            self.put(LIMITED, 1, false, [SendEnd, PutEnd, Unlink]).map_err(limited)?;
        self.arrived(&arrived, User::Limited, LIMITED, 0).map_err(limited)?;
        wants(&unlinked, "md.user_ptr", unlinked.user as u64, User::Limited as u64)
            .map_err(limited)?;

        let basin = with(User::Basin);
        let [_, arrived] = self.put(LIMITED, 2, true, [SendEnd, PutEnd]).map_err(basin)?;
        self.arrived(&arrived, User::Basin, LIMITED, 0).map_err(basin)?;

        let puts = with(User::Puts);
        let [sent, arrived, ack] =
            self.put(ONE_WAY, 1, true, [SendEnd, PutEnd, Ack]).map_err(puts)?;
        self.arrived(&arrived, User::Puts, ONE_WAY, TARGET_WORD).map_err(puts)?;
        for e in [sent, ack] {
            self.belongs_to(&e, User::Source, ONE_WAY).map_err(puts)?;
        }
        wants(&ack, "mlength", ack.mlength.data() as u64, WORD as u64).map_err(puts)?;

        for (user, bits) in [(User::Silent, SILENT), (User::Queueless, QUEUELESS)] {
            if let Some(target) = self.target(user) {
                self.put(bits, 1, true, [SendEnd, Ack]).map_err(with(user))?;
                self.same(target, TARGET_WORD, "put").map_err(with(user))?;
            }
        }

        let empty = with(User::Empty);
        let nothing = |md| MdPart { md, offset: 0, len: 0 };
        let (from, user) = match self.bare {
            Ok(bare) => (nothing(bare), User::Bare),
            Err(_) => (nothing(self.source.md), User::Source),
        };
        self.portals.put(from, false, &self.to(EMPTY, 0)).map_err(|e| user.wrong(e))?;
        let arrived = match user {
            User::Bare => self.events([PutEnd], None).map_err(with(user))?[0],
            _ => self.events([SendEnd, PutEnd], None).map_err(empty)?[1],
        };
        self.belongs_to(&arrived, User::Empty, EMPTY).map_err(empty)?;
        wants(&arrived, "hdr_data", arrived.hdr_data, HDR_DATA).map_err(empty)?;
        wants(&arrived, "mlength", arrived.mlength.data() as u64, 0).map_err(empty)?;

        let gets = with(User::Gets);
        self.source.write(SOURCE_WORD, 0);
        if let Some(target) = self.target(User::Gets) {
            target.write(TARGET_WORD, VALUE);
        }
        self.portals
            .get(self.source(1), &self.to(ONE_WAY, TARGET_WORD))
            .map_err(|e| User::Gets.wrong(e))?;
        let [read, reply] = self.events([GetEnd, ReplyEnd], Some(SendEnd)).map_err(gets)?;
        self.belongs_to(&read, User::Gets, ONE_WAY).map_err(gets)?;
        wants(&reply, "md.user_ptr", reply.user as u64, User::Source as u64).map_err(gets)?;
        wants(&reply, "mlength", reply.mlength.data() as u64, WORD as u64).map_err(gets)?;
        self.same(&self.source, SOURCE_WORD, "get").map_err(gets)?;
        // A SEND event of the get, which the specification does not know, may come at any time or
        // never.
        self.events([], Some(SendEnd))?;
        Ok(Findings {
            echoes_match_bits: reply.match_bits == BITS | ONE_WAY,
            refuses_eq_none: self.bare.as_ref().err().copied(),
        })
    }

    /// A put and a get are refused by a descriptor that accepts nothing: their events say so, and
    /// no byte moves.
    fn catch_late(&mut self, gets: bool) -> Result<(), String> {
        use MdEventKind::{Ack, ReplyEnd, SendEnd};
        let with = |e: String| User::Catch.wrong(e);
        let flags = MdFlags::refusing();
        let target = TrialTarget { low_bits: CATCH, user: User::Catch, flags, unlink: false };
        self.attach(EntryPosition::Tail(self.pt), target, |spec, _| {
            spec.region = MdRegion::EMPTY;
            spec.eq = None;
        })?;
        self.source.write(SOURCE_WORD, VALUE);
        let [_, ack] = self.put(CATCH, 1, true, [SendEnd, Ack]).map_err(with)?;
        wants(&ack, "mlength", ack.mlength.data() as u64, 0).map_err(with)?;
        if !gets {
            return Ok(());
        }
        self.portals
            .get(self.source(1), &self.to(CATCH, TARGET_WORD))
            .map_err(|e| with(e.to_string()))?;
        let [reply] = self.events([ReplyEnd], Some(SendEnd)).map_err(with)?;
        wants(&reply, "mlength", reply.mlength.data() as u64, 0).map_err(with)?;
        self.events([], Some(SendEnd))?;
        self.same(&self.source, SOURCE_WORD, "refused get").map_err(with)
    }

    /// The target for this, if it was attached.
    fn target(&self, user: User) -> Option<&TrialMd<P>> {
        self.targets.iter().find(|t| t.user as usize == user as usize)
    }

    /// Puts this many words, and waits for these events.
    fn put<const N: usize>(
        &self,
        low_bits: u64,
        words: usize,
        ack: bool,
        kinds: [MdEventKind; N],
    ) -> Result<[MdEvent; N], String> {
        self.portals
            .put(self.source(words), ack, &self.to(low_bits, TARGET_WORD))
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
                    .eq_get(&self.eq, &mut InlineBody::default())
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
                _ => return Err(format!("an event {:?} came that no operation caused", e.kind)),
            }
        }
        Ok(seen.map(|e| e.unwrap_or_else(|| unreachable!("all have been seen"))))
    }

    /// Whether it is the event of a word that was put to this descriptor.
    fn arrived(&self, e: &MdEvent, user: User, low_bits: u64, at: usize) -> Result<(), String> {
        let to = self.target(user).unwrap_or(&self.source);
        self.belongs_to(e, user, low_bits)?;
        wants(e, "hdr_data", e.hdr_data, HDR_DATA)?;
        wants(e, "mlength", e.mlength.data() as u64, WORD as u64)?;
        wants(e, "offset", e.offset.data() as u64, (at * WORD) as u64)?;
        wants(e, "md.start", e.start as u64, to.words.as_ptr().addr() as u64)?;
        self.same(to, at, "put")
    }

    fn belongs_to(&self, e: &MdEvent, user: User, low_bits: u64) -> Result<(), String> {
        wants(e, "md.user_ptr", e.user as u64, user as u64)?;
        wants(e, "match_bits", e.match_bits, BITS | low_bits)
    }

    fn same(&self, piece: &TrialMd<P>, word: usize, what: &str) -> Result<(), String> {
        if piece.read(word) == VALUE {
            Ok(())
        } else {
            Err(format!("the event of a {what} came before its bytes"))
        }
    }

    fn close(self) -> Result<(), PortalsError> {
        let mds = self.targets.iter().chain([&self.source]).map(|piece| piece.md);
        for md in mds.chain(self.bare) {
            self.portals.md_unlink(md)?;
        }
        self.portals.eq_free(self.eq)
    }
}

fn spec<'a, Eq>(words: Dst<'static>, user: User, flags: MdFlags, eq: &'a Eq) -> MdSpec<'a, Eq> {
    MdSpec { region: words.into(), max_size: None, flags, user: user as usize, eq: Some(eq) }
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
            run(&nets[0], 39, true).expect("sound")
        });
        assert!(plain.echoes_match_bits && !mute.echoes_match_bits);
        assert_eq!(plain.refuses_eq_none, None);
    }
}
