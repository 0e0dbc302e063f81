//! What an unknown Portals must show of itself before the conduit relies on it: eight bytes put to ourselves and fetched back.
//!
//! Called when a libportals is opened, before anybody can send to us. What is merely a habit is found out and told
//! ([`Findings`]); what the conduit cannot work with, and what tells that the loaded library is not the one of the header
//! that it was compiled with, is refused with a line that says what is wrong.

use super::{Error, Event, EventKind, Fetched, MdFlags, MdSpec, OpenError, Place, Portals};
use crate::os::clock;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

/// Habits of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Findings {
    /// Whether REPLY events have the match bits of their get.
    pub echoes_match_bits: bool,
}

/// Nothing takes that long between a process and itself.
const PATIENCE_NS: u64 = 20_000_000_000;
/// Where the bytes go, in the target and in the source, in words.
const TARGET_WORD: usize = 2;
const SOURCE_WORD: usize = 1;
const WORDS: usize = 4;
const WORD: usize = size_of::<u64>();
/// [`Event::user`] of the two descriptors.
const AT_TARGET: usize = 0x51;
const AT_SOURCE: usize = 0xa7;
const IGNORE: u64 = !0xf;
const PUT_BITS: u64 = 0x8123_4567_89ab_cd4f;
const GET_BITS: u64 = 0x7edc_ba98_7654_328f;
const HDR_DATA: u64 = 0xf0e1_d2c3_b4a5_9687;
const VALUE: u64 = 0xa55a_1234_c33c_5678;

/// Puts eight bytes to ourselves and fetches them back, over this portal table entry.
///
/// # Errors
/// What the library does wrong.
pub fn run<P: Portals>(portals: &P, pt: u32) -> Result<Findings, OpenError> {
    let trial = Trial::open(portals, pt).map_err(|e| OpenError(format!("a trial of Portals: {e}")))?;
    let findings = trial.run().map_err(|e| OpenError(format!("a trial of Portals: {e}")))?;
    trial.close().map_err(|e| OpenError(format!("a trial of Portals: {e}")))?;
    Ok(findings)
}

struct Trial<'a, P: Portals> {
    portals: &'a P,
    pt: u32,
    eq: P::Eq,
    target: (P::Md, *mut u64),
    source: (P::Md, *mut u64),
}

fn words() -> *mut u64 {
    Box::into_raw(Box::new([0u64; WORDS])).cast()
}

impl<'a, P: Portals> Trial<'a, P> {
    fn open(portals: &'a P, pt: u32) -> Result<Self, Error> {
        let eq = portals.eq_alloc(16)?;
        let flags = MdFlags {
            op_put: true,
            op_get: true,
            manage_remote: true,
            event_start_disable: true,
            ..MdFlags::default()
        };
        let (target, source) = (words(), words());
        let spec = MdSpec {
            start: target.cast(),
            length: WORDS * WORD,
            max_size: None,
            flags,
            user: AT_TARGET,
            eq: Some(eq),
        };
        let me = portals.me_attach(Place::Head(pt), PUT_BITS & !IGNORE, IGNORE, true)?;
        // SAFETY: the words are only freed after the descriptors are gone.
        let (to, from) = unsafe {
            (
                portals.md_attach(me, &spec, false)?,
                portals.md_bind(&MdSpec { start: source.cast(), user: AT_SOURCE, ..spec })?,
            )
        };
        Ok(Trial { portals, pt, eq, target: (to, target), source: (from, source) })
    }

    fn run(&self) -> Result<Findings, String> {
        let failed = |e: Error| format!("{e}");
        let (me, from) = (self.portals.id(), self.source.0);
        // SAFETY: no operation is under way.
        unsafe { self.source.1.add(SOURCE_WORD).write_volatile(VALUE) };
        self.portals
            .put(from, SOURCE_WORD * WORD, WORD, true, me, self.pt, PUT_BITS, TARGET_WORD * WORD, HDR_DATA)
            .map_err(failed)?;
        let mut seen = self.events([EventKind::SendEnd, EventKind::PutEnd, EventKind::Ack], None)?;
        let [sent, arrived, ack] = &mut seen;
        self.check(sent, AT_SOURCE, PUT_BITS, "match_bits")?;
        self.check(ack, AT_SOURCE, PUT_BITS, "match_bits")?;
        self.check(arrived, AT_TARGET, PUT_BITS, "match_bits")?;
        wants(arrived, "hdr_data", arrived.hdr_data, HDR_DATA)?;
        wants(arrived, "mlength", arrived.mlength as u64, WORD as u64)?;
        wants(arrived, "offset", arrived.offset as u64, (TARGET_WORD * WORD) as u64)?;
        wants(arrived, "md.start", arrived.start.addr() as u64, self.target.1.addr() as u64)?;
        wants(ack, "mlength", ack.mlength as u64, WORD as u64)?;
        // SAFETY: the word was written before the event that we have seen.
        self.same(unsafe { self.target.1.add(TARGET_WORD).read_volatile() }, "put")?;

        // SAFETY: no operation is under way.
        unsafe { self.source.1.add(SOURCE_WORD).write_volatile(0) };
        self.portals
            .get(from, SOURCE_WORD * WORD, WORD, me, self.pt, GET_BITS, TARGET_WORD * WORD)
            .map_err(failed)?;
        // A SEND event of the get, which the specification does not know, may come before or never.
        let seen = self.events([EventKind::GetEnd, EventKind::ReplyEnd], Some(EventKind::SendEnd))?;
        let [read, reply] = &seen;
        self.check(read, AT_TARGET, GET_BITS, "match_bits")?;
        wants(reply, "md.user_ptr", reply.user as u64, AT_SOURCE as u64)?;
        wants(reply, "mlength", reply.mlength as u64, WORD as u64)?;
        // SAFETY: the word was written before the event that we have seen.
        self.same(unsafe { self.source.1.add(SOURCE_WORD).read_volatile() }, "get")?;
        Ok(Findings { echoes_match_bits: reply.match_bits == GET_BITS })
    }

    /// The events of these kinds, in any order; others are wrong, except `tolerated`.
    fn events<const N: usize>(
        &self,
        kinds: [EventKind; N],
        tolerated: Option<EventKind>,
    ) -> Result<[Event; N], String> {
        let mut seen = [None; N];
        let end = clock::now_ns() + PATIENCE_NS;
        while let Some(missing) = seen.iter().position(Option::is_none) {
            let e = match self.portals.eq_get(self.eq).map_err(|e| format!("{e}"))? {
                Fetched::Event(e) => e,
                Fetched::Empty if clock::now_ns() < end => {
                    clock::yield_now();
                    continue;
                }
                Fetched::Empty => {
                    return Err(format!(
                        "no event {:?} came after a put and a get to ourselves",
                        kinds[missing]
                    ));
                }
                Fetched::AfterLoss(_) => return Err("an event queue of 16 lost one of five events".into()),
            };
            match kinds.iter().position(|k| *k == e.kind) {
                Some(i) if seen[i].is_none() => seen[i] = Some(e),
                _ if Some(e.kind) == tolerated => {}
                _ => return Err(format!("an event {:?} came that nobody caused", e.kind)),
            }
        }
        Ok(seen.map(|e| e.unwrap_or_else(|| unreachable!("all have been seen"))))
    }

    fn check(&self, e: &Event, user: usize, bits: u64, what: &str) -> Result<(), String> {
        wants(e, "md.user_ptr", e.user as u64, user as u64)?;
        wants(e, what, e.match_bits, bits)
    }

    fn same(&self, value: u64, what: &str) -> Result<(), String> {
        if value == VALUE { Ok(()) } else { Err(format!("the event of a {what} came before its bytes")) }
    }

    fn close(self) -> Result<(), Error> {
        self.portals.md_unlink(self.target.0)?;
        self.portals.md_unlink(self.source.0)?;
        self.portals.eq_free(self.eq)?;
        for p in [self.target.1, self.source.1] {
            // SAFETY: made by `words`, and their descriptors are gone.
            drop(unsafe { Box::from_raw(p.cast::<[u64; WORDS]>()) });
        }
        Ok(())
    }
}

fn wants(e: &Event, what: &str, is: u64, wanted: u64) -> Result<(), String> {
    if is == wanted {
        return Ok(());
    }
    Err(format!(
        "{what} of an event {:?} is {is:#x} where {wanted:#x} was sent; the library does not do what its header says",
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
