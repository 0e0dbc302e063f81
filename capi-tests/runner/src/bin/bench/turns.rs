//! What the systems do in turn.

use crate::aims::{BLOCKING_COLLECTIVES, LONG_COLLECTIVES, MPI_COLLECTIVES};

/// The program of GASNet-EX.
pub(crate) const EX: &str = "ex";
/// A program, and the system that it measures.
pub(crate) const EVERYTHING: &str = "everything";
/// A program, its ranks, and its arguments apart from time and sizes.
pub(crate) type Run = (&'static str, u32, &'static [&'static str]);

/// `--only` with this name runs the test programs of the peers.
const TESTS: &str = "tests";
/// Transfers of testvisperf: blocks of 64 KiB, and of 4 KiB.
const BLOCKS: &[&str] = &["-maxdata", "65536"];
const EX_BLOCKS: &[&str] =
    &["-mindata", "4096", "-maxdata", "4096", "-mincontig", "64", "-maxcontig", "64", "20000"];

/// The round trip of a cache line between the CPUs, among the machine's own limits.
pub(crate) const LINE: &str = "line_trip";

/// Which interface a GASNet's own test programs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GasnetKind {
    Gasnet1,
    Ex,
}

/// What all systems do in one turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// Each GASNet runs this program; the machine's limits with these names are measured.
    Run(Run, &'static [&'static str]),
    /// Each GASNet that takes part in `Run` runs this program with blocks above 32 KiB.
    LongBlocks(Run),
    /// Each GASNet whose ranks block runs this program.
    Blocking(Run),
    /// Each library over a network without application bypass runs this program.
    WithoutBypass(Run),
    /// The other libraries run their programs with two ranks.
    Others,
    /// Open MPI runs these collectives with this many ranks.
    MpiCollectives(u32, &'static [&'static str]),
    /// Each GASNet-EX runs this program.
    Ex(Run),
    /// Each library for EVERYTHING runs this program.
    Everything(Run),
    /// This library over a network that demands registration runs this program.
    Registered(Run),
    /// A hit of the firehose, and a bare hash probe.
    Hits,
    /// A GASNet of this kind and this library run one of that GASNet's own test programs; its
    /// time.
    Tests(GasnetKind, Run),
    /// Jobs start and end.
    Starts,
    /// Each library over two hosts runs these programs, and each wire is measured without one.
    Hosts(&'static [Run]),
    /// Each library over two hosts that delivers without calls of the target runs this program.
    Idle(Run),
    /// Ranks of one host run these programs, alone and with another host in the job.
    Neighbours(&'static [(&'static str, &'static [&'static str])]),
    /// Jobs of four hosts start and end.
    HostStarts,
}

impl Turn {
    /// Whether it depends on the distance of the two CPUs, which the host may change at any
    /// time.
    pub(crate) fn of_lines(self) -> bool {
        matches!(
            self,
            Turn::Run((_, 2, _), _)
                | Turn::LongBlocks((_, 2, _))
                | Turn::Blocking((_, 2, _))
                | Turn::Ex((_, 2, _))
                | Turn::Tests(_, (_, 2, _))
                | Turn::Everything(_)
                | Turn::Registered(_)
        )
    }

    /// Whether programs report the 10th percentile of slices. Ranks of two hosts answer each other
    /// through the kernel, and a busy machine delays some of the answers in any block.
    pub(crate) fn takes_the_tenth(self) -> bool {
        matches!(self, Turn::Hosts(_) | Turn::Idle(_) | Turn::Neighbours(_))
    }

    /// The program that the GASNets run in it.
    pub(crate) fn program(self) -> Option<&'static str> {
        match self {
            Turn::Run(run, _)
            | Turn::LongBlocks(run)
            | Turn::Blocking(run)
            | Turn::Ex(run)
            | Turn::Everything(run)
            | Turn::Registered(run)
            | Turn::WithoutBypass(run)
            | Turn::Idle(run) => Some(run.0),
            Turn::Hosts(runs) => runs.first().map(|run| run.0),
            Turn::Tests(..) => Some(TESTS),
            Turn::Others
            | Turn::MpiCollectives(..)
            | Turn::Hits
            | Turn::Starts
            | Turn::Neighbours(_)
            | Turn::HostStarts => None,
        }
    }
}

/// A round. Turns are short, so that the host rarely moves the CPUs within one.
pub(crate) const TURNS: &[Turn] = &[
    Turn::Run(
        (
            "rma",
            2,
            &["put", "get", "put_word", "get_word", "put_nbi", "get_nbi", "put_val", "get_val"],
        ),
        &["memcpy_shared_latency"],
    ),
    Turn::Run(
        ("rma", 2, &["put_bandwidth", "get_bandwidth", "put_bibandwidth", "put_rate", "memset"]),
        &["memcpy_shared_bandwidth"],
    ),
    Turn::Run(("am", 2, &["short_trip"]), &[]),
    Turn::Run(("am", 2, &["medium_trip", "long_trip"]), &["copy_trip"]),
    Turn::Run(("am", 2, &["own_short_trip", "own_medium_trip"]), &[]),
    Turn::Run(("am", 2, &["short_flood", "short_one_way"]), &[]),
    Turn::Run(("am", 2, &["medium_flood", "medium_one_way"]), &[]),
    Turn::Run(("barrier", 2, &[]), &[]),
    Turn::Run(("coll", 2, &[]), &[]),
    Turn::LongBlocks(("coll", 2, LONG_COLLECTIVES)),
    Turn::Run(("vis", 2, &["vis_strided_put", "vis_strided_get", "vis_indexed_put"]), &[]),
    Turn::Run(("barrier", 4, &[]), &[]),
    Turn::Run(("coll", 4, &[]), &[]),
    Turn::LongBlocks(("coll", 4, LONG_COLLECTIVES)),
    Turn::Run(("barrier", 8, &[]), &["yield_round"]),
    Turn::Run(("am", 8, &["pairs_trip"]), &[]),
    Turn::Run(("coll", 8, &[]), &[]),
    Turn::Run(("coll", 16, &[]), &[]),
    Turn::Ex((EX, 2, &["ex_put", "ex_get", "ex_put_nb", "ex_get_nb", "ex_put_nbi", "ex_get_nbi"])),
    Turn::Ex((EX, 2, &["ex_short_trip", "ex_medium_trip", "ex_negotiated_trip", "ex_fadd"])),
    Turn::Ex((EX, 2, &["ex_barrier", "ex_reduce", "ex_broadcast"])),
    Turn::Ex((EX, 4, &["ex_barrier", "ex_reduce", "ex_broadcast"])),
    Turn::Ex((EX, 8, &["ex_barrier", "ex_reduce", "ex_broadcast"])),
    Turn::Blocking(("barrier", 2, &[])),
    Turn::Blocking(("barrier", 4, &[])),
    Turn::Blocking(("barrier", 8, &[])),
    Turn::Blocking(("coll", 4, BLOCKING_COLLECTIVES)),
    Turn::Blocking(("coll", 8, BLOCKING_COLLECTIVES)),
    Turn::Everything(("rma", 2, &["put", "get"])),
    Turn::Everything((EVERYTHING, 2, &[])),
    Turn::Registered(("rma", 2, &["put"])),
    Turn::Hits,
    Turn::WithoutBypass(("rma", 4, &["put_word"])),
    Turn::Run(("memory", 2, &[]), &[]),
    Turn::Run(("memory", 16, &[]), &[]),
    Turn::Run(("memory", 64, &[]), &[]),
    Turn::Run(("memory", 250, &[]), &[]),
    Turn::Tests(GasnetKind::Gasnet1, ("testvis", 2, &["60"])),
    Turn::Tests(GasnetKind::Gasnet1, ("testvis", 4, &["30"])),
    Turn::Tests(GasnetKind::Gasnet1, ("testvisperf", 2, BLOCKS)),
    Turn::Tests(GasnetKind::Gasnet1, ("testvisperf", 4, BLOCKS)),
    Turn::Tests(GasnetKind::Gasnet1, ("testam", 4, &["300"])),
    Turn::Tests(GasnetKind::Gasnet1, ("testlarge", 4, &["20000", "65536"])),
    Turn::Tests(GasnetKind::Gasnet1, ("testqueue", 4, &["20", "4096", "64"])),
    Turn::Tests(GasnetKind::Ex, ("testratomic", 2, &["20000"])),
    Turn::Tests(GasnetKind::Ex, ("testvisperf", 2, EX_BLOCKS)),
    Turn::Tests(GasnetKind::Ex, ("testcollperf", 2, &["4096", "1", "1", "100"])),
    Turn::Others,
    Turn::MpiCollectives(4, MPI_COLLECTIVES),
    Turn::Starts,
];

/// The start of a job by a GASNet that reads the rate of its timer instead of calibrating it.
pub(crate) const STARTUP_CPUINFO: &str = "startup_cpuinfo";

/// Ranks that start on four hosts.
pub(crate) const STARTED: u32 = 32;

/// A round over several hosts.
pub(crate) const HOST_TURNS: &[Turn] = &[
    Turn::Hosts(&[
        ("rma", 2, &["put", "get", "put_bandwidth", "put_rate", "get_rate"]),
        ("am", 2, &["short_trip", "medium_trip"]),
        ("barrier", 2, &["barrier_anonymous"]),
    ]),
    Turn::Idle(("idle", 2, &[])),
    Turn::Neighbours(&[("rma", &["put", "get"]), ("am", &["short_trip"])]),
    Turn::HostStarts,
];
