//! The usual set-up of a case: a target descriptor on one node and a source descriptor on the
//! other.

use portals3::md_options::{OP_GET, OP_PUT};
use portals3::{
    AckReq, EqHandle, HdrData, InsPos, MatchBits, MdHandle, MeHandle, MemoryDescriptor, PtlEvent,
    PtlEventKind, PtlProcessId, Size, Unlink,
};

use crate::rig::{NodeBuffer, Rig, RigKind, RigNode, To, md, pattern, watchdog::Watchdog};

/// The portal table index that cases use.
pub(crate) const PT: u32 = 4;
/// Match bits of messages, unless a case is about bits.
pub(crate) const BITS: MatchBits = 0x0123_4567_89ab_cdef;
/// Room for more events than a case needs.
pub(crate) const ROOM: Size = 64;
/// A descriptor that accepts puts and gets.
pub(crate) const BOTH: u32 = OP_PUT | OP_GET;

/// Makes a test per network of each case of a file.
macro_rules! instantiate {
    ($($case:ident)*) => {
        $(mod $case {
            use crate::rig::{OfiRig, RigKind};
            use portals3::nal::ofi::OfiTagMode;
            #[test]
            fn loopback() {
                crate::common::run(RigKind::Loopback, stringify!($case), super::$case);
            }
            #[test]
            fn shm_one_process() {
                crate::common::run(RigKind::ShmOneProcess, stringify!($case), super::$case);
            }
            #[test]
            fn shm_mapped() {
                crate::common::run(RigKind::ShmMapped, stringify!($case), super::$case);
            }
            #[test]
            fn shm_attach() {
                crate::common::run(RigKind::ShmAttach, stringify!($case), super::$case);
            }
            #[test]
            fn shm_denied() {
                crate::common::run(RigKind::ShmDenied, stringify!($case), super::$case);
            }
            #[test]
            fn framed() {
                crate::common::run(RigKind::Framed, stringify!($case), super::$case);
            }
            #[test]
            fn tcp() {
                crate::common::run(RigKind::Tcp, stringify!($case), super::$case);
            }
            #[test]
            fn ofi_native() {
                let kind = RigKind::Ofi(OfiRig::Native);
                crate::common::run(kind, stringify!($case), super::$case);
            }
            #[test]
            #[ignore = "takes a minute: --include-ignored"]
            fn ofi_rxm() {
                let kind = RigKind::Ofi(OfiRig::Rxm(OfiTagMode::Full));
                crate::common::run(kind, stringify!($case), super::$case);
            }
            #[test]
            #[ignore = "takes a minute: --include-ignored"]
            fn ofi_sockets() {
                let kind = RigKind::Ofi(OfiRig::Sockets);
                crate::common::run(kind, stringify!($case), super::$case);
            }
            #[test]
            #[ignore = "takes a minute: --include-ignored"]
            fn ofi_contexts() {
                let kind = RigKind::Ofi(OfiRig::Contexts);
                crate::common::run(kind, stringify!($case), super::$case);
            }
        })*
    };
}
pub(crate) use instantiate;

/// Runs one case under a watchdog.
pub(crate) fn run(kind: RigKind, name: &str, case: fn(RigKind)) {
    let _watchdog = Watchdog::new(format!("{name} on {kind:?}"), 120);
    if kind.is_here() {
        case(kind);
    }
}

/// A descriptor with a queue of its own, on one node.
#[derive(Clone, Copy)]
pub(crate) struct QueuedMd {
    pub(crate) eq: EqHandle,
    pub(crate) md: MdHandle,
    pub(crate) buffer: NodeBuffer,
}

/// A match entry of `node` at the tail of [`PT`] that matches every message.
pub(crate) fn entry(node: &RigNode) -> MeHandle {
    node.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After)
        .expect("PtlMEAttach")
}

/// As [`entry`], for messages that carry exactly these bits.
pub(crate) fn entry_for(node: &RigNode, bits: MatchBits) -> MeHandle {
    node.me_attach(PT, PtlProcessId::ANY, bits, 0, Unlink::Retain, InsPos::After)
        .expect("PtlMEAttach")
}

/// A target of `len` bytes behind a new [`entry`] of the target node.
pub(crate) fn target(rig: &Rig, len: usize, options: u32) -> QueuedMd {
    target_with(rig, len, |md| md.options = options)
}

/// As [`target`], with a descriptor that `change` makes from one with infinite threshold that
/// accepts puts and gets.
pub(crate) fn target_with(
    rig: &Rig,
    len: usize,
    change: impl FnOnce(&mut MemoryDescriptor),
) -> QueuedMd {
    let me = entry(rig.target());
    behind(rig.target(), me, len, Unlink::Retain, change)
}

/// Stands for "a queue of its own" until a case decides otherwise.
const OWN: EqHandle = EqHandle(0x1234_5678);

fn with_queue(node: &RigNode, mut md: MemoryDescriptor) -> MemoryDescriptor {
    if md.eq == OWN {
        md.eq = node.eq_alloc(ROOM).expect("PtlEQAlloc");
    }
    md
}

/// A target of `len` bytes behind an entry.
pub(crate) fn behind(
    node: &RigNode,
    me: MeHandle,
    len: usize,
    unlink: Unlink,
    change: impl FnOnce(&mut MemoryDescriptor),
) -> QueuedMd {
    let buffer = node.memory(len);
    let mut wanted = md(buffer, BOTH, OWN);
    change(&mut wanted);
    let wanted = with_queue(node, wanted);
    let md = node.md_attach(me, wanted, unlink).expect("PtlMDAttach");
    QueuedMd { eq: wanted.eq, md, buffer }
}

/// A bound descriptor of the initiator over these bytes.
pub(crate) fn source(rig: &Rig, bytes: &[u8]) -> QueuedMd {
    source_with(rig, bytes, |_| ())
}

/// As [`source`], changed.
pub(crate) fn source_with(
    rig: &Rig,
    bytes: &[u8],
    change: impl FnOnce(&mut MemoryDescriptor),
) -> QueuedMd {
    let node = rig.initiator();
    let buffer = node.filled(bytes);
    let mut wanted = md(buffer, 0, OWN);
    change(&mut wanted);
    let wanted = with_queue(node, wanted);
    let md = node.md_bind(wanted, Unlink::Retain).expect("PtlMDBind");
    QueuedMd { eq: wanted.eq, md, buffer }
}

/// A source of `len` bytes that no other seed produces.
pub(crate) fn source_of(rig: &Rig, seed: u64, len: usize) -> (QueuedMd, Vec<u8>) {
    let bytes = pattern(seed, len);
    (source(rig, &bytes), bytes)
}

/// The target node, [`PT`], [`BITS`], offset 0.
pub(crate) fn to(rig: &Rig) -> To {
    to_bits(rig, BITS)
}

/// As [`to`], with other bits.
pub(crate) fn to_bits(rig: &Rig, bits: MatchBits) -> To {
    To { id: rig.target().id(), pt: PT, ac: 0, bits, offset: 0 }
}

/// As [`to`], with an offset.
pub(crate) fn to_offset(rig: &Rig, offset: Size) -> To {
    To { offset, ..to(rig) }
}

/// Puts all of a source, without acknowledgement, and settles.
pub(crate) fn put(rig: &Rig, from: QueuedMd, to: To, hdr: HdrData) {
    rig.initiator().put(from.md, AckReq::NoAck, to, hdr).expect("PtlPut");
    rig.settle();
}

/// Gets into all of a source, and settles.
pub(crate) fn get(rig: &Rig, into: QueuedMd, to: To) {
    rig.initiator().get(into.md, to).expect("PtlGet");
    rig.settle();
}

/// The kinds of the events that wait in a queue, in order.
pub(crate) fn kinds(rig: &Rig, node: &RigNode, eq: EqHandle) -> Vec<PtlEventKind> {
    rig.events(node, eq).iter().map(|event| event.kind).collect()
}

/// The events of these kinds that wait in a queue, in order.
pub(crate) fn of_kind(
    rig: &Rig,
    node: &RigNode,
    eq: EqHandle,
    kind: PtlEventKind,
) -> Vec<PtlEvent> {
    rig.events(node, eq).into_iter().filter(|event| event.kind == kind).collect()
}

/// The header data of the puts that ended on the target's queue.
pub(crate) fn arrived(rig: &Rig, eq: EqHandle) -> Vec<HdrData> {
    of_kind(rig, rig.target(), eq, PtlEventKind::PutEnd)
        .iter()
        .map(|event| event.hdr_data)
        .collect()
}
