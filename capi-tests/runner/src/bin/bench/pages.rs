//! The pages of docs/bench, and what each system is.

use std::fmt::Write;
use std::fs;
use std::process::Command;

/// What a system is, for the legends of drawings.
pub(crate) fn described(system: &str) -> String {
    let known = SYSTEMS.iter().find(|(name, ..)| *name == system);
    known.map_or_else(|| format!("GASNet, {system}-conduit"), |(_, short, _)| short.to_string())
}

/// The systems: name, what legends say, what the page says.
const SYSTEMS: &[(&str, &str, &str)] = &[
    (
        "cross-mapped",
        "libgasnet (ours), cross-mapped",
        "this library; the ranks map each other's segments, so a put is a copy",
    ),
    (
        "portals",
        "libgasnet (ours), through Portals",
        "this library with `GASNET_SUPERNODE_MAXSIZE=1`: puts and gets go through Portals too",
    ),
    (
        "everything",
        "libgasnet (ours), EVERYTHING",
        "this library for programs that are compiled for GASNET_SEGMENT_EVERYTHING",
    ),
    (
        "registered",
        "libgasnet (ours), LARGE, registered on demand",
        "this library for programs that are compiled for GASNET_SEGMENT_LARGE, with \
         `GASNET_PORTAL_PIN=1` and `GASNET_SUPERNODE_MAXSIZE=1`: segments are registered on \
         demand, and were when they are measured",
    ),
    (
        "registered-segment",
        "libgasnet (ours), LARGE, registered whole",
        "the same with `GASNET_USE_FIREHOSE=0`: segments are registered whole",
    ),
    (
        "registered-events",
        "libgasnet (ours), LARGE, registered on demand, with events",
        "`registered` with `GASNET_PORTAL_AT_ONCE=0`: an event completes each put",
    ),
    (
        "registered-segment-events",
        "libgasnet (ours), LARGE, registered whole, with events",
        "`registered-segment` with `GASNET_PORTAL_AT_ONCE=0`",
    ),
    (
        "firehose-sim",
        "libgasnet's firehose alone",
        "a hit of this library's firehose, and a bare probe of a hash table (`firehose-sim --speed`)",
    ),
    (
        "block",
        "libgasnet (ours), ranks block",
        "this library as it is used by default, with `GASNET_WAITMODE=BLOCK`",
    ),
    (
        "smp-block",
        "GASNet, smp-conduit, ranks block",
        "GASNet's smp-conduit with `GASNET_WAITMODE=BLOCK`",
    ),
    (
        "no-bypass",
        "libgasnet (ours), without application bypass",
        "this library over a libportals that completes a put in a call of its target",
    ),
    (
        "no-bypass-spin",
        "the same, spinning",
        "the same with `GASNET_WAITMODE=SPIN`: no rank ever sleeps",
    ),
    ("smp", "GASNet, smp-conduit (shared memory)", "GASNet's conduit for the ranks of one host"),
    ("mpi", "GASNet, mpi-conduit (over MPI)", "GASNet's conduit over the messages of an MPI"),
    (
        "mpi-everything",
        "GASNet, mpi-conduit, EVERYTHING",
        "GASNet's mpi-conduit, built for GASNET_SEGMENT_EVERYTHING",
    ),
    ("openmpi", "Open MPI, without GASNet", "Open MPI's own puts and messages, without GASNet"),
    ("mpich", "MPICH, without GASNet", "MPICH's own puts and messages, without GASNet"),
    ("shmem", "Open MPI's OpenSHMEM", "the puts of the OpenSHMEM in Open MPI"),
    ("tcp", "", "this library over two hosts with `GASNET_NETWORK=TCP`"),
    ("tcp-thread", "", "the same with `GASNET_PROGRESS=THREAD`"),
    ("net", "", "this library over two hosts and libfabric's provider of plain TCP"),
    ("net-thread", "", "the same with `GASNET_PROGRESS=THREAD`"),
    ("rxm", "", "this library over two hosts and libfabric's provider `tcp;ofi_rxm`"),
    ("rxm-thread", "", "the same with `GASNET_PROGRESS=THREAD`"),
    ("one-host", "", "this library with two ranks of one host, through `gasnetrun`"),
    ("with-second", "", "the same with a third rank on another host; the first two are measured"),
    ("four-hosts", "", "this library over four hosts: the start and end of a job"),
    ("openmpi-hosts", "", "Open MPI's `mpirun` over the same four hosts and the same command"),
    (
        "bare-tcp",
        "",
        "two processes that answer each other over TCP (`capi-tests/bench/wire_tcp.c`)",
    ),
    (
        "bare-net",
        "",
        "two processes that answer each other over libfabric's provider of plain TCP (`capi-tests/bench/wire_ofi.c`)",
    ),
    (
        "bare-rxm",
        "",
        "two processes that answer each other over libfabric's provider `tcp;ofi_rxm`",
    ),
    (
        "machine",
        "limit of the machine",
        "what the machine itself can do (`capi-tests/bench/limits.c`)",
    ),
];

/// The table of these systems.
fn systems_table(names: &[&str]) -> String {
    let mut systems = String::from("| name | what is measured |\n|---|---|\n");
    for name in names {
        let known = SYSTEMS.iter().find(|(known, ..)| known == name);
        let text = known.map_or_else(|| format!("GASNet's {name}-conduit"), |k| k.2.to_string());
        let _ = writeln!(systems, "| `{name}` | {text} |");
    }
    systems
}

/// The page of several hosts in docs/bench.
pub(crate) fn hosts_page(names: &[&str], table: &str, rounds: usize, ms: f64) -> String {
    format!(
        "# Measurements over several hosts\n\n`make bench HOSTS=2 PEER=<prefix>,udp` writes this page.\n\n\
         - Hosts are network namespaces of one machine, joined by a bridge (`ci/with-hosts.sh`).\n\
         - Two ranks are pinned to one CPU each; more ranks than CPUs share them.\n\
         - {rounds} rounds. In each round all systems take turns, {ms} ms per value.\n\
         - A value is the fastest of seven blocks. A ratio is ours to the other's within one turn.\n  \
           The table has the median over the rounds and the quartiles.\n\
         - A goal for a range of sizes applies to the worst size.\n\
         - Figures have three significant digits; ours are bold. Verdicts are of unrounded ratios.\n\
         - Ours and theirs are medians of their own, so their quotient may differ from the ratio.\n\
         - `idle_put` is a put to a rank that does not call the library, `polling_put` to one that\n  \
           polls.\n\
         - `wire_trip` is a message of the stated size and an answer of 8 bytes; in `wire_asleep` the other\n  \
           process sleeps in the system until it arrives. `wire_bandwidth` is that of 64 messages\n  \
           and one answer.\n\n{}\n{}\n{table}",
        systems_table(names),
        machine()
    )
}

/// The page of one host in docs/bench.
pub(crate) fn page(names: &[&str], table: &str, rounds: usize, ms: f64, moved: usize) -> String {
    let systems = systems_table(names);
    format!(
        "# Measurements\n\n`make bench PEER=<prefix>[,conduit]` writes this page and its drawings.\n\n\
         - Two ranks are pinned to one CPU each; more ranks than CPUs share them.\n\
         - {rounds} rounds. In each round all systems take turns, {ms} ms per value.\n\
         - A ratio is ours to the other's within one turn (within one round for libraries other\n  \
           than GASNet). The table has the median over the rounds and the quartiles.\n\
         - The round trip of a cache line is measured between the systems. If it changed by more\n  \
           than a quarter, the host had moved the CPUs. Such a turn of two ranks was repeated up\n  \
           to five times; {moved} such turns remained.\n\
         - A goal for a range of sizes applies to the worst size.\n\
         - Rows without a goal show how close we are to what the machine can do.\n\
         - Figures have three significant digits; ours are bold. Verdicts are of unrounded ratios.\n\
         - A goal of 1 to 1.05 is also reached if the median misses it by 5 % at most, and a\n  \
           quartile does not.\n\
         - Ours and theirs are medians of their own, so their quotient may differ from the ratio.\n\
         - The path is that of puts and gets. Active messages go through the conduit on each path.\n\
         - `put_word` and `get_word` move 8 bytes, a size that the compiler knows. `put` and `get` of\n  \
           8 bytes get their size at run time.\n\
         - The size of a barrier is its number of ranks.\n\n{systems}\n{}\n{table}\n\
         ![latency of small puts](put_latency.svg)\n![bandwidth of puts](put_bandwidth.svg)\n\
         ![round trip of AM Medium](medium_trip.svg)\n![barrier](barrier.svg)\n\
         ![start and end of a job](startup.svg)\n",
        machine()
    )
}

/// CPU, kernel and memory of this machine, and the commit.
fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|l| {
            l.strip_prefix("model name")?.split_once(':').map(|(_, m)| m.trim().to_string())
        })
        .unwrap_or("unknown".to_string());
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:"))
        .map(str::trim)
        .unwrap_or("unknown")
        .to_string();
    format!(
        "Machine: {model}, {cpus} CPUs usable, memory {memory}, Linux {}.\nCommit {}.\n",
        kernel.trim(),
        commit()
    )
}

/// The commit that was measured.
fn commit() -> String {
    let git = Command::new("git").args(["log", "-1", "--format=%h, %cs"]).output();
    let text = git.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string());
    text.ok().filter(|t| !t.is_empty()).unwrap_or("unknown".to_string())
}
