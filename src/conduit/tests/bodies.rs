//! Headers and bodies of active messages that no library sends. What they lead to lies in the
//! body, in our segment, or in the library memory of the sender.

use super::*;
use crate::conduit::am_body::args_bytes;
use crate::conduit::match_bits::AmHeader;
use crate::conduit::memory::Body;
use crate::conduit::message::LARGEST_STASH;
use std::sync::OnceLock;

/// Bytes of the segment.
const SMALL: usize = 4096;

fn world() -> &'static World<Emulation> {
    static WORLD: OnceLock<World<Emulation>> = OnceLock::new();
    WORLD.get_or_init(|| {
        let config = usual(tiny(2, 1));
        World::open_with(emulation(2, &config), &[&config], SMALL, 0)
    })
}

/// Whether all bytes of `part` are in `whole`.
fn within(part: Dst<'_>, whole: Dst<'_>) -> bool {
    let offset = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    part.len() == 0 || whole.try_part(offset, part.len()).is_some()
}

/// An input is the two words of a header, the bytes of the body, and the body.
fn any_message(input: &[u8]) {
    let mut input = fuzz::InputReader::new(input);
    let (bits, data) = (input.number(), input.number());
    let Some(am) = AmHeader::unpack(bits, data) else { return };
    let Rank { conduit, segment, .. } = &world().ranks[0];
    let n = input.number() as usize % (4 * CHUNK);
    let mut words = vec![0x5555_5555_5555_5555_u64; n.div_ceil(8)];
    for word in &mut words {
        if input.is_empty() {
            break;
        }
        *word = input.number();
    }
    let body = &mut words[..];
    let whole = Dst::from(&mut *body).part(0, n);
    // SAFETY: words are aligned, and this thread alone has them.
    let body = unsafe { Body::held(whole) };
    // SAFETY: segments are never freed.
    let segment = unsafe { Dst::new(*segment, SMALL) };
    let numargs = usize::from(am.numargs);
    conduit.prefetch_payload(&am, body, false);
    let args = body.args(numargs);
    assert_eq!(args.is_some(), 4 * numargs <= n);
    if let Some(payload) = conduit.payload(&am, body, args_bytes(numargs), None) {
        assert!(within(payload, whole) || within(payload, segment), "{am:?}");
    }
    if am.source.0 < 2
        && let Some(payload) = conduit.in_outbox(&am)
    {
        let memory = conduit.library_memory(am.source).expect("library memory");
        assert!(within(payload, memory) && payload.len() <= LARGEST_STASH);
    }
}

#[test]
fn fuzz_am_message() {
    fuzz::check("am_message", 10_000, any_message);
}
