//! Random operations: what may be drawn, and how often.
//!
//! Used by the tests in `main`; [`super::driver`] carries the operations out. Indices count what
//! exists when an operation is carried out, and wrap, so that every list of operations makes
//! sense after shrinking.

use portals3::md_options::{
    ACK_DISABLE, EVENT_END_DISABLE, EVENT_START_DISABLE, MANAGE_REMOTE, MAX_SIZE, OP_GET, OP_PUT,
    TRUNCATE,
};
use proptest::prelude::*;

/// Queues of every process.
pub(crate) const QUEUES: usize = 2;

/// A descriptor to be made; numbers are reduced to valid ones when it is.
#[derive(Clone, Debug)]
pub(crate) struct MdDraw {
    pub(crate) len: usize,
    pub(crate) options: u32,
    pub(crate) threshold: i32,
    pub(crate) max_size: usize,
    pub(crate) eq: Option<usize>,
    pub(crate) unlink: bool,
}

/// A random operation. `at` is the process; indices count what exists at that time, and wrap.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are the arguments of the specification's calls")]
pub(crate) enum DrawnOp {
    Attach {
        at: usize,
        pt: u32,
        id: usize,
        bits: u64,
        ignore: u64,
        unlink: bool,
        before: bool,
        base: Option<usize>,
    },
    MdAttach {
        at: usize,
        me: usize,
        md: MdDraw,
    },
    MdBind {
        at: usize,
        md: MdDraw,
    },
    MeUnlink {
        at: usize,
        me: usize,
    },
    MdUnlink {
        at: usize,
        md: usize,
    },
    MdUpdate {
        at: usize,
        md: usize,
        new: Option<MdDraw>,
        test: Option<usize>,
    },
    Put {
        at: usize,
        to: usize,
        md: usize,
        part: (usize, usize),
        ack: bool,
        pt: u32,
        bits: u64,
        offset: usize,
        hdr: u64,
    },
    Get {
        at: usize,
        to: usize,
        md: usize,
        part: (usize, usize),
        pt: u32,
        bits: u64,
        offset: usize,
    },
    GetPut {
        at: usize,
        to: usize,
        get: usize,
        put: usize,
        pt: u32,
        bits: u64,
        offset: usize,
        hdr: u64,
    },
    AtOnce {
        at: usize,
        to: usize,
        get: bool,
        length: usize,
        pt: u32,
        bits: u64,
        offset: usize,
        times: usize,
    },
    EqGet {
        at: usize,
        eq: usize,
        count: usize,
    },
}

fn md_draw() -> impl Strategy<Value = MdDraw> {
    let len = prop_oneof![0..48_usize, Just(8), Just(1200_usize)];
    let options = prop::sample::subsequence(
        vec![
            MANAGE_REMOTE,
            TRUNCATE,
            ACK_DISABLE,
            MAX_SIZE,
            EVENT_START_DISABLE,
            EVENT_END_DISABLE,
        ],
        0..=4,
    );
    let ops = prop_oneof![2 => Just(OP_PUT | OP_GET), 1 => Just(OP_PUT), 1 => Just(OP_GET)];
    let threshold = prop_oneof![2 => Just(-1), 3 => 1..5_i32];
    let eq = prop::option::weighted(0.8, 0..QUEUES);
    (len, options, ops, threshold, 0..24_usize, eq, any::<bool>()).prop_map(
        |(len, options, ops, threshold, max_size, eq, unlink)| {
            let mut options = options.into_iter().fold(ops, |all, one| all | one);
            if options & MANAGE_REMOTE != 0 {
                // The meaning of a largest size is left open then.
                options &= !MAX_SIZE;
            }
            MdDraw { len, options, threshold, max_size, eq, unlink }
        },
    )
}

/// Strategy for a list of operations.
pub(crate) fn ops() -> impl Strategy<Value = Vec<DrawnOp>> {
    let (at, pt, bits, offset) =
        (0..2_usize, prop_oneof![8 => 0..2_u32, 1 => Just(99_999)], 0..4_u64, 0..60_usize);
    let part = (0..40_usize, 0..1300_usize);
    let attach =
        (
            at.clone(),
            0..2_u32,
            0..4_usize,
            bits.clone(),
            bits.clone(),
            any::<(bool, bool)>(),
            prop::option::of(0..9_usize),
        )
            .prop_map(|(at, pt, id, bits, ignore, (unlink, before), base)| {
                DrawnOp::Attach { at, pt, id, bits, ignore, unlink, before, base }
            });
    let put = (
        at.clone(),
        at.clone(),
        0..9_usize,
        part.clone(),
        any::<bool>(),
        (pt.clone(), bits.clone()),
        offset.clone(),
        any::<u64>(),
    )
        .prop_map(|(at, to, md, part, ack, (pt, bits), offset, hdr)| DrawnOp::Put {
            at,
            to,
            md,
            part,
            ack,
            pt,
            bits,
            offset,
            hdr,
        });
    let get = (at.clone(), at.clone(), 0..9_usize, part, pt.clone(), bits.clone(), offset.clone())
        .prop_map(|(at, to, md, part, pt, bits, offset)| DrawnOp::Get {
            at,
            to,
            md,
            part,
            pt,
            bits,
            offset,
        });
    let at_once =
        (
            at.clone(),
            at.clone(),
            any::<bool>(),
            0..40_usize,
            pt.clone(),
            (bits.clone(), offset.clone()),
            1..5_usize,
        )
            .prop_map(|(at, to, get, length, pt, (bits, offset), times)| {
                DrawnOp::AtOnce { at, to, get, length, pt, bits, offset, times }
            });
    let get_put = (at.clone(), at.clone(), 0..9_usize, 0..9_usize, pt, bits, offset, any::<u64>())
        .prop_map(|(at, to, get, put, pt, bits, offset, hdr)| DrawnOp::GetPut {
            at,
            to,
            get,
            put,
            pt,
            bits,
            offset,
            hdr,
        });
    let update =
        (at.clone(), 0..9_usize, prop::option::of(md_draw()), prop::option::of(0..QUEUES))
            .prop_map(|(at, md, new, test)| DrawnOp::MdUpdate { at, md, new, test });
    let op = prop_oneof![
        4 => attach,
        6 => (at.clone(), 0..9_usize, md_draw()).prop_map(|(at, me, md)| DrawnOp::MdAttach { at, me, md }),
        4 => (at.clone(), md_draw()).prop_map(|(at, md)| DrawnOp::MdBind { at, md }),
        1 => (at.clone(), 0..9_usize).prop_map(|(at, me)| DrawnOp::MeUnlink { at, me }),
        1 => (at.clone(), 0..9_usize).prop_map(|(at, md)| DrawnOp::MdUnlink { at, md }),
        2 => update,
        12 => put,
        6 => get,
        3 => get_put,
        8 => at_once,
        4 => (at, 0..QUEUES, 0..20_usize).prop_map(|(at, eq, count)| DrawnOp::EqGet { at, eq, count }),
    ];
    prop::collection::vec(op, 1..90)
}

/// Strategy for a list of operations from one process to the other, whose lists and descriptors
/// change meanwhile. Most are puts and gets at once with the same few cached matches.
pub(crate) fn ops_at_once() -> impl Strategy<Value = Vec<DrawnOp>> {
    let md = || {
        (md_draw(), prop::bool::weighted(0.8)).prop_map(|(mut md, quiet)| {
            if quiet {
                md.options |= EVENT_START_DISABLE;
                md.options &= !EVENT_END_DISABLE;
                md.threshold = -1;
            }
            md
        })
    };
    let attach = (0..2_u64, 0..2_u64, any::<(bool, bool)>()).prop_map(
        |(bits, ignore, (unlink, before))| DrawnOp::Attach {
            at: 1,
            pt: 0,
            id: 0,
            bits,
            ignore,
            unlink,
            before,
            base: None,
        },
    );
    let at_once = (any::<bool>(), 0..9_usize, 0..2_u64, 0..12_usize, 1..4_usize).prop_map(
        |(get, length, bits, offset, times)| DrawnOp::AtOnce {
            at: 0,
            to: 1,
            get,
            length,
            pt: 0,
            bits,
            offset,
            times,
        },
    );
    let op = prop_oneof![
        2 => attach,
        4 => (0..9_usize, md()).prop_map(|(me, md)| DrawnOp::MdAttach { at: 1, me, md }),
        1 => (0..9_usize).prop_map(|me| DrawnOp::MeUnlink { at: 1, me }),
        2 => (0..9_usize).prop_map(|md| DrawnOp::MdUnlink { at: 1, md }),
        2 => (0..9_usize, prop::option::weighted(0.9, md()), prop::option::of(0..QUEUES))
            .prop_map(|(md, new, test)| DrawnOp::MdUpdate { at: 1, md, new, test }),
        16 => at_once,
        2 => (0..QUEUES, 0..20_usize).prop_map(|(eq, count)| DrawnOp::EqGet { at: 1, eq, count }),
    ];
    prop::collection::vec(op, 1..120)
}
