//! The figures to reach: which measurement, on which of our paths, against what.

/// What a ratio of ours to the other side must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    /// Times.
    AtMost(f64),
    /// Rates and bandwidths.
    AtLeast(f64),
}

/// One figure to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Our path.
    pub(crate) ours: &'static str,
    /// Measurement, processes, size.
    pub(crate) what: (&'static str, u32, u64),
    /// The other side, and its measurement, processes and size.
    pub(crate) other: (&'static str, &'static str, u32, u64),
    pub(crate) aim: Aim,
}

const CROSS: &str = "cross-mapped";
const PORTALS: &str = "portals";

/// The same measurement of another installation.
const fn peer(ours: &'static str, name: &'static str, n: u32, size: u64, who: &'static str, aim: Aim) -> Row {
    Row { ours, what: (name, n, size), other: (who, name, n, size), aim }
}

/// Another measurement of another library, both of two processes.
const fn against(
    ours: &'static str,
    what: (&'static str, u64),
    other: (&'static str, &'static str, u64),
    aim: Aim,
) -> Row {
    Row { ours, what: (what.0, 2, what.1), other: (other.0, other.1, 2, other.2), aim }
}

/// A limit of the machine: the name of its measurement.
const fn limit(
    ours: &'static str,
    name: &'static str,
    size: u64,
    of: (&'static str, u32, u64),
    aim: Aim,
) -> Row {
    Row { ours, what: (name, 2, size), other: ("machine", of.0, of.1, of.2), aim }
}

use Aim::{AtLeast, AtMost};

/// All of them.
pub(crate) const ROWS: &[Row] = &[
    peer(CROSS, "put_word", 2, 8, "smp", AtMost(1.0)),
    peer(CROSS, "get_word", 2, 8, "smp", AtMost(1.0)),
    peer(CROSS, "put", 2, 8, "smp", AtMost(1.0)),
    peer(CROSS, "get", 2, 8, "smp", AtMost(1.0)),
    peer(CROSS, "put", 2, 4096, "smp", AtMost(1.0)),
    peer(CROSS, "get", 2, 4096, "smp", AtMost(1.0)),
    limit(CROSS, "put", 4096, ("memcpy_shared_latency", 1, 4096), AtMost(1.1)),
    limit(CROSS, "get", 4096, ("memcpy_shared_latency", 1, 4096), AtMost(1.1)),
    peer(CROSS, "put_bandwidth", 2, 1 << 16, "smp", AtLeast(1.0)),
    peer(CROSS, "put_bandwidth", 2, 1 << 20, "smp", AtLeast(1.0)),
    peer(CROSS, "put_bandwidth", 2, 4 << 20, "smp", AtLeast(1.0)),
    peer(CROSS, "get_bandwidth", 2, 1 << 16, "smp", AtLeast(1.0)),
    peer(CROSS, "get_bandwidth", 2, 4 << 20, "smp", AtLeast(1.0)),
    limit(CROSS, "put_bandwidth", 1 << 16, ("memcpy_shared_bandwidth", 1, 1 << 16), AtLeast(0.95)),
    limit(CROSS, "put_bandwidth", 4 << 20, ("memcpy_shared_bandwidth", 1, 4 << 20), AtLeast(0.95)),
    peer(CROSS, "put_nbi", 2, 8, "smp", AtMost(0.5)),
    peer(CROSS, "get_nbi", 2, 8, "smp", AtMost(0.5)),
    peer(PORTALS, "put", 2, 8, "mpi", AtMost(0.08)),
    peer(PORTALS, "get", 2, 8, "mpi", AtMost(0.08)),
    against(PORTALS, ("put", 8), ("openmpi", "ping_ack", 8), AtMost(0.15)),
    against(PORTALS, ("get", 8), ("openmpi", "ping_ack", 8), AtMost(0.15)),
    against(PORTALS, ("put", 8), ("mpich", "ping_ack", 8), AtMost(0.15)),
    against(PORTALS, ("put", 4096), ("openmpi", "ping_ack", 4096), AtMost(1.0)),
    against(PORTALS, ("put_bandwidth", 64), ("openmpi", "send_bandwidth", 64), AtLeast(1.0)),
    against(PORTALS, ("put_bandwidth", 4096), ("openmpi", "send_bandwidth", 4096), AtLeast(1.0)),
    against(PORTALS, ("put_bandwidth", 1 << 16), ("openmpi", "send_bandwidth", 1 << 16), AtLeast(1.0)),
    against(PORTALS, ("put_bandwidth", 4 << 20), ("openmpi", "send_bandwidth", 4 << 20), AtLeast(1.0)),
    against(CROSS, ("put", 8), ("shmem", "put", 8), AtMost(1.0)),
    against(CROSS, ("put_bandwidth", 1 << 16), ("shmem", "put_bandwidth", 1 << 16), AtLeast(1.0)),
    peer(PORTALS, "put_bandwidth", 2, 4096, CROSS, AtLeast(0.5)),
    peer(PORTALS, "put_bandwidth", 2, 1 << 16, CROSS, AtLeast(0.95)),
    peer(PORTALS, "put_bandwidth", 2, 4 << 20, CROSS, AtLeast(0.95)),
    peer(PORTALS, "get_bandwidth", 2, 4096, CROSS, AtLeast(0.5)),
    peer(PORTALS, "get_bandwidth", 2, 1 << 16, CROSS, AtLeast(0.95)),
    peer(PORTALS, "get_bandwidth", 2, 4 << 20, CROSS, AtLeast(0.95)),
    peer(CROSS, "short_trip", 2, 0, "smp", AtMost(0.75)),
    limit(CROSS, "short_trip", 0, ("line_trip", 2, 0), AtMost(1.6)),
    peer(CROSS, "medium_trip", 2, 8, "smp", AtMost(0.7)),
    peer(CROSS, "medium_trip", 2, 64, "smp", AtMost(0.7)),
    peer(CROSS, "medium_trip", 2, 1024, "smp", AtMost(0.7)),
    peer(CROSS, "long_trip", 2, 8, "smp", AtMost(0.7)),
    peer(CROSS, "long_trip", 2, 64, "smp", AtMost(0.7)),
    peer(CROSS, "long_trip", 2, 1024, "smp", AtMost(0.7)),
    peer(CROSS, "short_flood", 2, 0, "smp", AtLeast(1.3)),
    peer(CROSS, "short_one_way", 2, 0, "smp", AtLeast(1.1)),
    peer(CROSS, "barrier_anonymous", 2, 2, "smp", AtMost(1.0)),
    peer(CROSS, "barrier_named", 2, 2, "smp", AtMost(1.0)),
    limit(CROSS, "barrier_anonymous", 2, ("line_trip", 2, 0), AtMost(1.05)),
    peer(CROSS, "startup", 2, 0, "smp", AtMost(1.0)),
    peer(CROSS, "startup", 64, 0, "smp", AtMost(1.0)),
    peer(CROSS, "launch", 2, 0, "openmpi", AtMost(0.25)),
    peer(CROSS, "launch", 64, 0, "openmpi", AtMost(0.25)),
    peer(CROSS, "pairs_trip", 8, 0, "smp", AtMost(0.2)),
    peer(CROSS, "barrier_anonymous", 8, 8, "smp", AtMost(0.2)),
];
