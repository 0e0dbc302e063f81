//! The figures to reach: measurement, path, and what each is compared with.

use crate::turns::{STARTED, STARTUP_CPUINFO};

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
    /// Each size from the first to the last that both sides measured; these two are among them.
    Each(u64, u64),
    /// The largest size of each side. The longest message differs between libraries.
    Largest,
}

const CROSS_MAPPED: &str = "cross-mapped";
const PORTALS: &str = "portals";
const EVERYTHING: &str = "everything";
const SMP_EX: &str = "smp-ex";
const BLOCK: &str = "block";
const SMP_BLOCK: &str = "smp-block";
const REGISTERED: &str = "registered";
const OPENMPI: &str = "openmpi";
const MPICH: &str = "mpich";
const SMP: &str = "smp";
/// `cross-mapped` once more.
const AGAIN: &str = "again";
/// Messages of an MPI that its other rank answers.
const TWO_SIDED: &str = "two_sided_trip";
const TWO_SIDED_BANDWIDTH: &str = "two_sided_bandwidth";
const MIB: u64 = 1 << 20;
/// The test programs of these two, with this library and with theirs.
const SMP_TESTS: (&str, &str) = ("tests", "smp-tests");
const SMP_EX_TESTS: (&str, &str) = ("ex-tests", "smp-ex-tests");
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

/// The machine's own time for the same.
const fn bound(
    name: &'static str,
    n: u32,
    size: u64,
    of: &'static str,
    limit_size: u64,
    aim: RowAim,
) -> BenchRow {
    let other = ("machine", of, n);
    BenchRow { ours: (CROSS_MAPPED, name, n), other, sizes: One(size, limit_size), aim }
}

/// Another measurement of the same turn in EVERYTHING.
const fn above(name: &'static str, sizes: RowSizes, other: &'static str, aim: RowAim) -> BenchRow {
    BenchRow { ours: (EVERYTHING, name, 2), other: (EVERYTHING, other, 2), sizes, aim }
}

/// This library, cross-mapped, next to smp-conduit.
const fn smp(name: &'static str, n: u32, sizes: RowSizes, aim: RowAim) -> BenchRow {
    peer(CROSS_MAPPED, name, n, sizes, SMP, aim)
}

/// The same between two ranks: a time of at most smp's.
const fn time(name: &'static str, sizes: RowSizes) -> BenchRow {
    smp(name, 2, sizes, AtMost(1.0))
}

/// The same: a rate or bandwidth of at least smp's.
const fn rate(name: &'static str, sizes: RowSizes) -> BenchRow {
    smp(name, 2, sizes, AtLeast(1.0))
}

/// The start of a job next to that of smp without the 100 ms that calibrate its timer.
const fn uncalibrated(n: u32) -> BenchRow {
    let (ours, other) = ((CROSS_MAPPED, "startup", n), (SMP, STARTUP_CPUINFO, n));
    BenchRow { ours, other, sizes: at(0), aim: AtMost(1.0) }
}

/// Next to GASNet-EX over its smp-conduit.
const fn ex(name: &'static str, n: u32, sizes: RowSizes, most: f64) -> BenchRow {
    peer(CROSS_MAPPED, name, n, sizes, SMP_EX, AtMost(most))
}

/// A test program of the peer, by this library and by the peer: the time of the job.
const fn tests(name: &'static str, n: u32, of: (&'static str, &'static str)) -> BenchRow {
    BenchRow { ours: (of.0, name, n), other: (of.1, name, n), sizes: at(0), aim: AtMost(1.0) }
}

/// The same system twice: how much two measurements of one thing differ.
const fn noise(name: &'static str, n: u32, sizes: RowSizes) -> BenchRow {
    peer(CROSS_MAPPED, name, n, sizes, AGAIN, Nothing)
}

/// A collective with MYSYNC, which is what MPI's collectives do.
const fn mpi_collective(
    name: &'static str,
    n: u32,
    sizes: RowSizes,
    library: &'static str,
) -> BenchRow {
    peer(CROSS_MAPPED, name, n, sizes, library, AtMost(1.0))
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
use RowSizes::{Each, Largest, One};

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
/// Those whose blocks exceed 32 KiB too, between few ranks.
pub(crate) const LONG_COLLECTIVES: &[&str] = &[
    "broadcast",
    "broadcast_my",
    "broadcast_no",
    "gather_all",
    "gather_all_my",
    "gather_all_no",
    "reduce",
    "reduce_my",
    "reduce_no",
];
/// The sizes of program `coll`, and its longer ones, whose bytes take most of the time.
const BLOCK_SIZES: RowSizes = Each(8, 32 << 10);
const LONG_BLOCK_SIZES: RowSizes = Each(256 << 10, 4 * MIB);
/// Collectives of ranks that block.
pub(crate) const BLOCKING_COLLECTIVES: &[&str] =
    &["broadcast", "scatter", "gather", "gather_all", "exchange", "reduce"];
/// Collectives of which MPI has the same.
pub(crate) const MPI_COLLECTIVES: &[&str] =
    &["broadcast_my", "reduce_my", "gather_all_my", "exchange_my", "barrier_anonymous"];

/// All rows of one host.
pub(crate) fn rows() -> impl Iterator<Item = BenchRow> {
    // Where ranks outnumber the CPUs, each round of waits costs a switch of processes.
    let counts = [(2, 1.0), (4, 0.5), (8, 0.5), (16, 0.5)];
    let collectives = COLLECTIVES
        .into_iter()
        .flat_map(move |name| counts.map(|(n, most)| smp(name, n, BLOCK_SIZES, AtMost(most))));
    let long = LONG_COLLECTIVES
        .iter()
        .flat_map(|name| [2, 4].map(|n| smp(name, n, LONG_BLOCK_SIZES, AtMost(1.0))));
    let blocking = BLOCKING_COLLECTIVES.iter().flat_map(|name| {
        [4, 8].map(|n| peer(BLOCK, name, n, BLOCK_SIZES, SMP_BLOCK, AtMost(0.5)))
    });
    // MPICH's ranks spin without yielding: more of them than CPUs take milliseconds a call.
    let mpi = MPI_COLLECTIVES.iter().flat_map(|&name| {
        [(2, OPENMPI), (4, OPENMPI), (2, MPICH)].map(|(n, library)| {
            let sizes = if name == "barrier_anonymous" { at(n.into()) } else { BLOCK_SIZES };
            mpi_collective(name, n, sizes, library)
        })
    });
    ROWS.iter().copied().chain(blocking).chain(mpi).chain(collectives).chain(long)
}

/// All rows of several hosts.
pub(crate) fn host_rows() -> impl Iterator<Item = BenchRow> {
    HOST_ROWS.iter().copied()
}

/// The rows of one host, apart from collectives.
const ROWS: &[BenchRow] = &[
    time("put_word", at(8)),
    time("get_word", at(8)),
    time("put", at(8)),
    time("get", at(8)),
    time("put", Each(1, 4096)),
    time("get", Each(1, 4096)),
    against(CROSS_MAPPED, "put", One(1, 4), (CROSS_MAPPED, "put"), AtMost(1.0)),
    against(CROSS_MAPPED, "put", One(2, 4), (CROSS_MAPPED, "put"), AtMost(1.0)),
    time("put", at(4096)),
    time("get", at(4096)),
    limit("put", at(4096), ("memcpy_shared_latency", 1), AtMost(1.1)),
    limit("get", at(4096), ("memcpy_shared_latency", 1), AtMost(1.1)),
    rate("put_bandwidth", Each(8, 4 * MIB)),
    rate("get_bandwidth", Each(8, 4 * MIB)),
    rate("put_bandwidth", Each(65536, 4 * MIB)),
    rate("get_bandwidth", Each(65536, 4 * MIB)),
    limit("put_bandwidth", Each(65536, 4 * MIB), ("memcpy_shared_bandwidth", 1), AtLeast(0.95)),
    limit("get_bandwidth", Each(65536, 4 * MIB), ("memcpy_shared_bandwidth", 1), AtLeast(0.95)),
    smp("put_nbi", 2, at(8), AtMost(0.5)),
    smp("get_nbi", 2, at(8), AtMost(0.5)),
    peer(PORTALS, "put", 2, at(8), "mpi", AtMost(0.08)),
    peer(PORTALS, "get", 2, at(8), "mpi", AtMost(0.08)),
    peer(PORTALS, "put", 2, Each(8, 4096), OPENMPI, AtMost(1.0)),
    peer(PORTALS, "get", 2, Each(8, 4096), OPENMPI, AtMost(1.0)),
    peer(PORTALS, "put_bandwidth", 2, Each(8, 4 * MIB), OPENMPI, AtLeast(1.0)),
    peer(CROSS_MAPPED, "put", 2, Each(8, 4096), OPENMPI, AtMost(1.0)),
    peer(CROSS_MAPPED, "get", 2, Each(8, 4096), OPENMPI, AtMost(1.0)),
    peer(CROSS_MAPPED, "put_bandwidth", 2, Each(8, 4 * MIB), OPENMPI, AtLeast(1.0)),
    peer(PORTALS, "put", 2, Each(8, 4096), MPICH, AtMost(1.0)),
    peer(PORTALS, "get", 2, Each(8, 4096), MPICH, AtMost(1.0)),
    peer(PORTALS, "put_bandwidth", 2, Each(8, 4 * MIB), MPICH, AtLeast(1.0)),
    peer(CROSS_MAPPED, "put", 2, Each(8, 4096), MPICH, AtMost(1.0)),
    peer(CROSS_MAPPED, "get", 2, Each(8, 4096), MPICH, AtMost(1.0)),
    peer(CROSS_MAPPED, "put_bandwidth", 2, Each(8, 4 * MIB), MPICH, AtLeast(1.0)),
    against(PORTALS, "put", at(8), (OPENMPI, TWO_SIDED), Nothing),
    against(PORTALS, "get", at(8), (OPENMPI, TWO_SIDED), Nothing),
    against(PORTALS, "put", Each(8, 4096), (OPENMPI, TWO_SIDED), Nothing),
    against(PORTALS, "put_bandwidth", Each(8, 4 * MIB), (OPENMPI, TWO_SIDED_BANDWIDTH), Nothing),
    against(PORTALS, "put", at(8), (MPICH, TWO_SIDED), Nothing),
    against(PORTALS, "get", at(8), (MPICH, TWO_SIDED), Nothing),
    against(PORTALS, "put", Each(8, 4096), (MPICH, TWO_SIDED), Nothing),
    against(PORTALS, "put_bandwidth", Each(8, 4 * MIB), (MPICH, TWO_SIDED_BANDWIDTH), Nothing),
    peer(PORTALS, "medium_trip", 2, Each(8, 32768), "mpi", AtMost(1.0)),
    peer(PORTALS, "medium_trip", 2, Largest, "mpi", AtMost(1.0)),
    against(CROSS_MAPPED, "put", at(8), ("shmem", "put"), AtMost(1.0)),
    against(CROSS_MAPPED, "put_bandwidth", at(65536), ("shmem", "put_bandwidth"), AtLeast(1.0)),
    peer(PORTALS, "put_bandwidth", 2, at(4096), CROSS_MAPPED, AtLeast(0.5)),
    peer(PORTALS, "get_bandwidth", 2, at(4096), CROSS_MAPPED, AtLeast(0.5)),
    peer(PORTALS, "put_bandwidth", 2, Each(65536, 4 * MIB), CROSS_MAPPED, AtLeast(0.95)),
    peer(PORTALS, "get_bandwidth", 2, Each(65536, 4 * MIB), CROSS_MAPPED, AtLeast(0.95)),
    smp("short_trip", 2, at(0), AtMost(0.75)),
    time("put_val", Each(1, 8)),
    time("get_val", Each(1, 8)),
    time("memset", Each(1, 4 * MIB)),
    rate("put_rate", at(8)),
    rate("put_bibandwidth", Each(8, 4 * MIB)),
    rate("vis_strided_put", Each(8, 8192)),
    rate("vis_strided_get", Each(8, 8192)),
    rate("vis_indexed_put", Each(8, 8192)),
    rate("medium_flood", Each(8, 32768)),
    rate("medium_flood", Largest),
    rate("medium_one_way", Each(8, 32768)),
    rate("medium_one_way", Largest),
    limit("short_trip", at(0), ("line_trip", 2), AtMost(1.6)),
    smp("medium_trip", 2, Each(8, 1024), AtMost(0.7)),
    smp("long_trip", 2, Each(8, 1024), AtMost(0.7)),
    time("own_short_trip", at(0)),
    time("own_medium_trip", Each(8, 32768)),
    smp("short_flood", 2, at(0), AtLeast(1.3)),
    smp("short_one_way", 2, at(0), AtLeast(1.1)),
    time("barrier_anonymous", at(2)),
    time("barrier_named", at(2)),
    limit("barrier_anonymous", One(2, 0), ("line_trip", 2), AtMost(1.05)),
    time("memory", at(2)),
    smp("memory", 16, at(16), AtMost(1.0)),
    smp("memory", 64, at(64), AtMost(1.0)),
    smp("memory", 250, at(250), AtMost(1.0)),
    time("startup", at(0)),
    uncalibrated(2),
    smp("startup", 64, at(0), AtMost(1.0)),
    uncalibrated(64),
    peer(CROSS_MAPPED, "launch", 2, at(0), OPENMPI, AtMost(0.25)),
    peer(CROSS_MAPPED, "launch", 64, at(0), OPENMPI, AtMost(0.25)),
    smp("pairs_trip", 8, at(0), AtMost(0.2)),
    smp("barrier_anonymous", 8, at(8), AtMost(0.2)),
    ex("ex_put", 2, Each(8, MIB), 1.0),
    ex("ex_get", 2, Each(8, MIB), 1.0),
    ex("ex_put_nb", 2, Each(8, MIB), 1.0),
    ex("ex_get_nb", 2, Each(8, MIB), 1.0),
    ex("ex_put_nbi", 2, Each(8, MIB), 1.0),
    ex("ex_get_nbi", 2, Each(8, MIB), 1.0),
    ex("ex_short_trip", 2, at(0), 0.75),
    ex("ex_medium_trip", 2, Each(8, 1024), 0.7),
    ex("ex_medium_trip", 2, at(16384), 0.9),
    ex("ex_medium_trip", 2, at(65408), 0.9),
    ex("ex_negotiated_trip", 2, Each(8, 1024), 1.0),
    ex("ex_negotiated_trip", 2, at(65408), 1.0),
    ex("ex_fadd", 2, at(8), 1.0),
    ex("ex_barrier", 2, at(2), 1.0),
    ex("ex_barrier", 4, at(4), 1.0),
    ex("ex_barrier", 8, at(8), 1.0),
    ex("ex_reduce", 2, Each(8, MIB), 1.0),
    ex("ex_reduce", 4, Each(8, MIB), 1.0),
    ex("ex_reduce", 8, Each(8, MIB), 1.0),
    ex("ex_broadcast", 2, at(MIB), 1.0),
    ex("ex_broadcast", 4, at(MIB), 1.0),
    ex("ex_broadcast", 8, at(MIB), 1.0),
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
    peer("no-bypass", "put_word", 4, at(8), "no-bypass-spin", AtMost(1.0)),
    tests("testvis", 2, SMP_TESTS),
    tests("testvis", 4, SMP_TESTS),
    tests("testvisperf", 2, SMP_TESTS),
    tests("testvisperf", 4, SMP_TESTS),
    tests("testam", 4, SMP_TESTS),
    tests("testlarge", 4, SMP_TESTS),
    tests("testqueue", 4, SMP_TESTS),
    tests("testratomic", 2, SMP_EX_TESTS),
    tests("testvisperf", 2, SMP_EX_TESTS),
    tests("testcollperf", 2, SMP_EX_TESTS),
    bound("medium_trip", 2, 8, "copy_trip", 8, Nothing),
    bound("medium_trip", 2, 1024, "copy_trip", 1024, Nothing),
    bound("long_trip", 2, 8, "copy_trip", 8, Nothing),
    bound("long_trip", 2, 1024, "copy_trip", 1024, Nothing),
    bound("pairs_trip", 8, 0, "yield_round", 0, AtMost(1.4)),
    bound("barrier_anonymous", 8, 8, "yield_round", 0, AtMost(1.1)),
    noise("put", 2, at(8)),
    noise("put", 2, at(4096)),
    noise("put_bandwidth", 2, Each(65536, 4 * MIB)),
    noise("barrier_anonymous", 2, at(2)),
    noise("barrier_anonymous", 8, at(8)),
];

/// The rows of several hosts.
const HOST_ROWS: &[BenchRow] = &[
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
];
