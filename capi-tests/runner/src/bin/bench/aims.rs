//! The figures to reach: measurement, path, and what each is compared with.

use crate::turns::STARTED;

/// The ratio of our value to the other side's that must be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowAim {
    /// For times.
    AtMost(f64),
    /// For rates and bandwidths.
    AtLeast(f64),
    /// No goal: the row shows a limit of the other rows.
    Nothing,
}

/// One figure to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BenchRow {
    /// Our path, measurement and number of ranks.
    pub(crate) ours: (&'static str, &'static str, u32),
    /// The other side, its measurement and number of ranks.
    pub(crate) other: (&'static str, &'static str, u32),
    pub(crate) sizes: RowSizes,
    pub(crate) aim: RowAim,
}

/// The sizes to which the figure applies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowSizes {
    /// One size of ours, and one of the other side.
    One(u64, u64),
    /// Each size of this range that both sides measured.
    Each(u64, u64),
}

const CROSS_MAPPED: &str = "cross-mapped";
const PORTALS: &str = "portals";
const EVERYTHING: &str = "everything";
const SMP_EX: &str = "smp-ex";
const BLOCK: &str = "block";
const SMP_BLOCK: &str = "smp-block";
const REGISTERED: &str = "registered";
const MIB: u64 = 1 << 20;
/// The round trip of a wire without GASNet.
const WIRE: &str = "wire_trip";
const UDP: &str = "udp";

/// The same measurement of another system.
const fn peer(
    ours: &'static str,
    name: &'static str,
    n: u32,
    sizes: RowSizes,
    system: &'static str,
    aim: RowAim,
) -> BenchRow {
    BenchRow { ours: (ours, name, n), other: (system, name, n), sizes, aim }
}

/// Another measurement of another system, both with two ranks.
const fn against(
    ours: &'static str,
    name: &'static str,
    sizes: RowSizes,
    other: (&'static str, &'static str),
    aim: RowAim,
) -> BenchRow {
    BenchRow { ours: (ours, name, 2), other: (other.0, other.1, 2), sizes, aim }
}

/// A limit of the machine, for two ranks: the name of its measurement, and its processes.
const fn limit(
    name: &'static str,
    sizes: RowSizes,
    of: (&'static str, u32),
    aim: RowAim,
) -> BenchRow {
    BenchRow { ours: (CROSS_MAPPED, name, 2), other: ("machine", of.0, of.1), sizes, aim }
}

/// The machine's own time for the same; without a goal.
const fn bound(
    name: &'static str,
    n: u32,
    size: u64,
    of: &'static str,
    limit_size: u64,
) -> BenchRow {
    let other = ("machine", of, n);
    BenchRow { ours: (CROSS_MAPPED, name, n), other, sizes: One(size, limit_size), aim: Nothing }
}

/// Another measurement of the same turn in EVERYTHING.
const fn above(name: &'static str, sizes: RowSizes, other: &'static str, aim: RowAim) -> BenchRow {
    BenchRow { ours: (EVERYTHING, name, 2), other: (EVERYTHING, other, 2), sizes, aim }
}

/// Two ranks of one host, with a third on another host in the job, and alone.
const fn neighbours(name: &'static str, sizes: RowSizes) -> BenchRow {
    let (ours, other) = (("with-second", name, 3), ("one-host", name, 2));
    BenchRow { ours, other, sizes, aim: AtMost(1.05) }
}

/// A hit of the firehose above bare hash probes.
const fn hit(name: &'static str, aim: RowAim) -> BenchRow {
    let other = ("firehose-sim", "bare_probe", 1);
    BenchRow { ours: ("firehose-sim", name, 1), other, sizes: at(8), aim }
}

const fn at(size: u64) -> RowSizes {
    One(size, size)
}

use RowAim::{AtLeast, AtMost, Nothing};
use RowSizes::{Each, One};

/// The measurements of program `coll`: each operation in its six forms.
macro_rules! forms {
    ($($operation:literal),*) => {
        [$(
            $operation,
            concat!($operation, "_my"),
            concat!($operation, "_no"),
            concat!($operation, "_nb"),
            concat!($operation, "_nb_my"),
            concat!($operation, "_nb_no"),
        )*]
    };
}
const COLLECTIVES: [&str; 36] =
    forms!["broadcast", "scatter", "gather", "gather_all", "exchange", "reduce"];

/// All rows.
pub(crate) fn rows() -> impl Iterator<Item = BenchRow> {
    // Where ranks outnumber the CPUs, each round of waits costs a switch of processes.
    let counts = [(2, 1.0), (4, 0.5), (8, 0.5), (16, 0.5)];
    let collectives = COLLECTIVES.into_iter().flat_map(move |name| {
        counts.map(|(n, most)| peer(CROSS_MAPPED, name, n, Each(8, 4 * MIB), "smp", AtMost(most)))
    });
    ROWS.iter().copied().chain(collectives)
}

/// The rows of everything but collectives.
const ROWS: &[BenchRow] = &[
    peer(CROSS_MAPPED, "put_word", 2, at(8), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "get_word", 2, at(8), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "put", 2, at(8), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "get", 2, at(8), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "put", 2, at(4096), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "get", 2, at(4096), "smp", AtMost(1.0)),
    limit("put", at(4096), ("memcpy_shared_latency", 1), AtMost(1.1)),
    limit("get", at(4096), ("memcpy_shared_latency", 1), AtMost(1.1)),
    peer(CROSS_MAPPED, "put_bandwidth", 2, Each(65536, 4 * MIB), "smp", AtLeast(1.0)),
    peer(CROSS_MAPPED, "get_bandwidth", 2, Each(65536, 4 * MIB), "smp", AtLeast(1.0)),
    limit("put_bandwidth", Each(65536, 4 * MIB), ("memcpy_shared_bandwidth", 1), AtLeast(0.95)),
    limit("get_bandwidth", Each(65536, 4 * MIB), ("memcpy_shared_bandwidth", 1), AtLeast(0.95)),
    peer(CROSS_MAPPED, "put_nbi", 2, at(8), "smp", AtMost(0.5)),
    peer(CROSS_MAPPED, "get_nbi", 2, at(8), "smp", AtMost(0.5)),
    peer(PORTALS, "put", 2, at(8), "mpi", AtMost(0.08)),
    peer(PORTALS, "get", 2, at(8), "mpi", AtMost(0.08)),
    against(PORTALS, "put", at(8), ("openmpi", "ping_ack"), AtMost(0.15)),
    against(PORTALS, "get", at(8), ("openmpi", "ping_ack"), AtMost(0.15)),
    against(PORTALS, "put", at(8), ("mpich", "ping_ack"), AtMost(0.15)),
    against(PORTALS, "put", Each(8, 4096), ("openmpi", "ping_ack"), AtMost(1.0)),
    against(PORTALS, "put", Each(8, 4096), ("mpich", "ping_ack"), AtMost(1.0)),
    against(
        PORTALS,
        "put_bandwidth",
        Each(8, 4 * MIB),
        ("openmpi", "send_bandwidth"),
        AtLeast(1.0),
    ),
    against(PORTALS, "put_bandwidth", Each(8, 4 * MIB), ("mpich", "send_bandwidth"), AtLeast(1.0)),
    peer(PORTALS, "medium_trip", 2, Each(8, 65536), "mpi", AtMost(1.0)),
    against(CROSS_MAPPED, "put", at(8), ("shmem", "put"), AtMost(1.0)),
    against(CROSS_MAPPED, "put_bandwidth", at(65536), ("shmem", "put_bandwidth"), AtLeast(1.0)),
    peer(PORTALS, "put_bandwidth", 2, at(4096), CROSS_MAPPED, AtLeast(0.5)),
    peer(PORTALS, "get_bandwidth", 2, at(4096), CROSS_MAPPED, AtLeast(0.5)),
    peer(PORTALS, "put_bandwidth", 2, Each(65536, 4 * MIB), CROSS_MAPPED, AtLeast(0.95)),
    peer(PORTALS, "get_bandwidth", 2, Each(65536, 4 * MIB), CROSS_MAPPED, AtLeast(0.95)),
    peer(CROSS_MAPPED, "short_trip", 2, at(0), "smp", AtMost(0.75)),
    limit("short_trip", at(0), ("line_trip", 2), AtMost(1.6)),
    peer(CROSS_MAPPED, "medium_trip", 2, Each(8, 1024), "smp", AtMost(0.7)),
    peer(CROSS_MAPPED, "long_trip", 2, Each(8, 1024), "smp", AtMost(0.7)),
    peer(CROSS_MAPPED, "short_flood", 2, at(0), "smp", AtLeast(1.3)),
    peer(CROSS_MAPPED, "short_one_way", 2, at(0), "smp", AtLeast(1.1)),
    peer(CROSS_MAPPED, "barrier_anonymous", 2, at(2), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "barrier_named", 2, at(2), "smp", AtMost(1.0)),
    limit("barrier_anonymous", One(2, 0), ("line_trip", 2), AtMost(1.05)),
    peer(CROSS_MAPPED, "memory", 2, at(2), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "memory", 16, at(16), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "memory", 64, at(64), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "memory", 250, at(250), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "startup", 2, at(0), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "startup", 64, at(0), "smp", AtMost(1.0)),
    peer(CROSS_MAPPED, "launch", 2, at(0), "openmpi", AtMost(0.25)),
    peer(CROSS_MAPPED, "launch", 64, at(0), "openmpi", AtMost(0.25)),
    peer(CROSS_MAPPED, "pairs_trip", 8, at(0), "smp", AtMost(0.2)),
    peer(CROSS_MAPPED, "barrier_anonymous", 8, at(8), "smp", AtMost(0.2)),
    peer(CROSS_MAPPED, "ex_put", 2, Each(8, MIB), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_get", 2, Each(8, MIB), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_put_nb", 2, Each(8, MIB), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_get_nb", 2, Each(8, MIB), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_put_nbi", 2, Each(8, MIB), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_get_nbi", 2, Each(8, MIB), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_short_trip", 2, at(0), SMP_EX, AtMost(0.75)),
    peer(CROSS_MAPPED, "ex_medium_trip", 2, Each(8, 1024), SMP_EX, AtMost(0.7)),
    peer(CROSS_MAPPED, "ex_medium_trip", 2, Each(16384, 65408), SMP_EX, AtMost(0.9)),
    peer(CROSS_MAPPED, "ex_fadd", 2, at(8), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_barrier", 2, at(2), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_barrier", 4, at(4), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_barrier", 8, at(8), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_reduce", 2, Each(8, MIB), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_reduce", 4, Each(8, MIB), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_reduce", 8, Each(8, MIB), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_broadcast", 2, at(MIB), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_broadcast", 4, at(MIB), SMP_EX, AtMost(1.0)),
    peer(CROSS_MAPPED, "ex_broadcast", 8, at(MIB), SMP_EX, AtMost(1.0)),
    peer(EVERYTHING, "put", 2, at(8), "mpi-everything", AtMost(0.75)),
    peer(EVERYTHING, "put", 2, at(65536), "mpi-everything", AtMost(0.3)),
    peer(EVERYTHING, "put", 2, at(MIB), "mpi-everything", AtMost(0.5)),
    above("attach_put", at(8), "bare_attach_put", AtMost(1.2)),
    above("attach_get", at(8), "bare_attach_get", AtMost(1.2)),
    above("asleep_put", at(8), "attach_put", AtMost(1.05)),
    above("asleep_put", at(8), "attach_put", AtLeast(0.95)),
    above("train_put", at(64), "singly_put", AtMost(0.4)),
    above("train_get", at(64), "singly_get", AtMost(0.4)),
    above("train_put", at(64), "bare_attach_vector", Nothing),
    peer(REGISTERED, "put", 2, at(8), "registered-segment", AtMost(1.05)),
    peer(REGISTERED, "put", 2, at(65536), "registered-segment", AtMost(1.05)),
    peer("registered-events", "put", 2, at(8), "registered-segment-events", AtMost(1.05)),
    peer("registered-events", "put", 2, at(65536), "registered-segment-events", AtMost(1.05)),
    hit("hit_one_thread", AtMost(10.0)),
    hit("hit_threads", AtMost(20.0)),
    peer(BLOCK, "barrier_anonymous", 2, at(2), SMP_BLOCK, AtMost(1.0)),
    peer(BLOCK, "barrier_anonymous", 4, at(4), SMP_BLOCK, AtMost(1.0)),
    peer(BLOCK, "barrier_anonymous", 8, at(8), SMP_BLOCK, AtMost(1.0)),
    peer(BLOCK, "broadcast", 4, at(8), SMP_BLOCK, AtMost(1.0)),
    peer(BLOCK, "reduce", 4, at(8), SMP_BLOCK, AtMost(1.0)),
    peer("no-bypass", "put_word", 4, at(8), "no-bypass-spin", AtMost(1.0)),
    against("tcp", "put", at(8), ("bare-tcp", WIRE), AtMost(1.15)),
    against("net", "put", at(8), ("bare-tcp", WIRE), AtMost(1.35)),
    against("rxm", "put", at(8), ("bare-rxm", WIRE), AtMost(1.15)),
    against("tcp", "short_trip", One(0, 8), ("bare-tcp", WIRE), AtMost(1.25)),
    against("net", "short_trip", One(0, 8), ("bare-net", WIRE), AtMost(1.25)),
    against("rxm", "short_trip", One(0, 8), ("bare-rxm", WIRE), AtMost(1.25)),
    against("tcp-thread", "idle_put", at(8), ("tcp-thread", "polling_put"), AtMost(1.5)),
    against("tcp-thread", "idle_put", at(8), ("bare-tcp", "wire_asleep"), Nothing),
    against("net-thread", "idle_put", at(8), ("net-thread", "polling_put"), Nothing),
    against("rxm-thread", "idle_put", at(8), ("rxm-thread", "polling_put"), Nothing),
    against("tcp", "put_bandwidth", at(MIB), ("bare-tcp", "wire_bandwidth"), AtLeast(0.9)),
    against("net", "put_bandwidth", at(MIB), ("bare-tcp", "wire_bandwidth"), AtLeast(0.75)),
    against("rxm", "put_bandwidth", at(MIB), ("bare-tcp", "wire_bandwidth"), AtLeast(0.75)),
    against("tcp", "put", at(MIB), ("bare-tcp", WIRE), Nothing),
    against("net", "put", at(MIB), ("bare-net", WIRE), Nothing),
    against("tcp", "get", at(8), ("bare-tcp", WIRE), Nothing),
    against("tcp", "barrier_anonymous", One(2, 8), ("bare-tcp", WIRE), Nothing),
    peer("tcp", "put", 2, at(8), UDP, AtMost(0.8)),
    peer("tcp", "short_trip", 2, at(0), UDP, AtMost(0.8)),
    peer("tcp", "medium_trip", 2, Each(8, 512), UDP, AtMost(0.8)),
    peer("tcp", "put_rate", 2, at(8), UDP, AtLeast(1.0)),
    peer("tcp", "get_rate", 2, at(8), UDP, AtLeast(1.0)),
    against("bare-tcp", WIRE, at(8), (UDP, "put"), Nothing),
    peer("four-hosts", "launch", STARTED, at(0), "openmpi-hosts", AtMost(0.5)),
    neighbours("put", at(8)),
    neighbours("put", at(65536)),
    neighbours("get", at(8)),
    neighbours("get", at(65536)),
    neighbours("short_trip", at(0)),
    bound("medium_trip", 2, 8, "copy_trip", 8),
    bound("medium_trip", 2, 1024, "copy_trip", 1024),
    bound("long_trip", 2, 8, "copy_trip", 8),
    bound("long_trip", 2, 1024, "copy_trip", 1024),
    bound("pairs_trip", 8, 0, "yield_round", 0),
    bound("barrier_anonymous", 8, 8, "yield_round", 0),
];
